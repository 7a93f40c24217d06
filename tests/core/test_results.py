import os
import subprocess
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

import quenched
from quenched import prototypes
from quenched.core import results, store
from quenched.core.store import OutputError
from quenched.core.types import InputError

KEY = jax.random.key(0)
DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def points():
    """A result with numbers, words and attributes."""
    law, rule, rng = prototypes.TwoClusters(prior=0.7), prototypes.LVQ1(rate=0.2), np.random.default_rng(0)
    named = {
        "R": (("prior", "prototype"), rng.normal(size=(2, 2)), {"long_name": "overlap"}),
        "R_run": (("prior", "prototype", "run"), rng.normal(size=(2, 2, 20))),
        "runs": ("prior", [20, 20]),
        "outcome": ("prior", np.array(["converged", "stalled"])),
    }
    facts = {"law": results.describe(law), "rule": results.describe(rule), "source": "simulation"}
    about = results.provenance("prototypes", **facts)
    return xr.Dataset(named, {"prior": [0.3, 0.6], "prototype": [1, -1]}, {**about, "seed": results.seed(KEY)})


def test_a_result_says_where_it_comes_from(points):
    assert '"TwoClusters"' in points.attrs["law"]
    assert '"rate": 0.2' in points.attrs["rule"]
    assert points.attrs["version"] == results.version()
    assert points.attrs["seed"] == "threefry2x32:[0, 0]"
    assert points.attrs["source"] == "simulation"


def test_save_and_load_give_the_same(points, tmp_path):
    path = quenched.save(points, tmp_path / "deep" / "points.nc")
    xr.testing.assert_identical(quenched.load(path), points.assign_attrs(format=results.FORMAT))


def test_a_file_of_format_1_still_loads(tmp_path):
    old = quenched.load(DATA / "format_1.nc")
    assert (old.attrs["format"], old.attrs["size"], old.R.attrs["long_name"]) == (1, 8, "overlap")
    assert "checksum" not in old.attrs
    np.testing.assert_array_equal(old.R, np.arange(6.0).reshape(3, 2))
    assert old.outcome.values.tolist() == ["converged", "failed", "stalled"]
    assert old.passed.dtype == bool
    new = quenched.load(quenched.save(old, tmp_path / "new.nc"))
    xr.testing.assert_identical(new, old.assign_attrs(format=results.FORMAT))


def test_a_damaged_file_gets_a_sentence(points, tmp_path):
    whole = quenched.save(points, tmp_path / "points.nc").read_bytes()
    for cut in (len(whole) // 2, 100, 0):
        (tmp_path / "cut.nc").write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"damaged|not"):
            quenched.load(tmp_path / "cut.nc")
    with pytest.raises(InputError, match="is not there"):
        quenched.load(tmp_path / "nowhere.nc")
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "foreign.nc", engine="h5netcdf")
    with pytest.raises(InputError, match="must be a result of quenched"):
        quenched.load(tmp_path / "foreign.nc")
    (tmp_path / "changed.nc").write_bytes(whole.replace(b"LVQ1", b"LVQ2"))
    with pytest.raises(InputError, match="checksum at its end differs"):
        quenched.load(tmp_path / "changed.nc")


def test_a_result_is_not_lost_when_the_place_cannot_be_written(points, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="the result was put in") as caught:
        quenched.save(points, tmp_path / "file" / "points.nc")
    refuge = str(caught.value).rsplit("put in ", 1)[1].rstrip(".")
    xr.testing.assert_identical(quenched.load(refuge), points)


def test_nothing_is_left_behind_when_writing_fails(points, tmp_path):
    (tmp_path / "points.nc").mkdir()
    with pytest.raises(OutputError):
        quenched.save(points, tmp_path / "points.nc")
    assert [p.name for p in tmp_path.iterdir()] == ["points.nc"]


FULL = """
import os, resource, sys, tempfile
import numpy as np, xarray as xr
import quenched
from quenched.core import results

refuge, limits = tempfile.mkdtemp, resource.getrlimit(resource.RLIMIT_FSIZE)

def elsewhere(**options):  # the disk of the temporary folder has room
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return refuge(**options)

tempfile.mkdtemp = elsewhere
resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, limits[1]))
try:
    quenched.save(xr.Dataset({"R": ("run", np.arange(4000.0))}), sys.argv[1])
except results.OutputError as error:
    print(error)
"""


def test_a_full_disk_neither_loses_a_result_nor_ends_the_process(tmp_path, launch):
    process = launch("-c", FULL, tmp_path / "R.nc", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    refuge = out.rsplit("the result was put in ", 1)[1].strip().rstrip(".")
    np.testing.assert_array_equal(quenched.load(refuge).R, np.arange(4000.0))


def test_a_name_that_is_too_long_for_the_disk(points, tmp_path):
    with pytest.raises(OutputError, match="File name too long") as caught:
        quenched.save(points, tmp_path / ("n" * 300 + ".nc"))
    xr.testing.assert_identical(quenched.load(str(caught.value).rsplit("put in ", 1)[1].rstrip(".")), points)


def test_no_room_anywhere_is_a_sentence(points, tmp_path, monkeypatch):
    def full(target, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=r"nor could .* \(No space left on device\): the result is in memory only\.$"):
        quenched.save(points, tmp_path / "points.nc")


def test_what_a_killed_process_left_is_removed(points, tmp_path, launch):
    start = "import sys, time; from pathlib import Path; from quenched.core import store; import os;"
    start += "os.replace = lambda *_: print('writing', flush=True) or time.sleep(60);"
    start += "store.write(Path(sys.argv[1]), 'x')"
    process = launch("-c", start, tmp_path / "points.nc", stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    (left,) = tmp_path.iterdir()
    quenched.save(points, tmp_path / "points.nc")
    assert left.exists()  # its writer may live
    process.kill()
    process.wait()
    os.utime(left, (1, 1))  # long ago
    (tmp_path / ".mine.part").touch()
    quenched.save(points, tmp_path / "points.nc")
    assert {p.name for p in tmp_path.iterdir()} == {"points.nc", ".mine.part"}


def test_a_file_is_on_disk_before_it_has_its_name(points, tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        true = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, true=true: done.append(name) or true(*a))
    quenched.save(points, tmp_path / "points.nc")
    assert done == ["fsync", "replace", "fsync"]
