"""Results on disk: damage is noticed, other people's files are refused, and nothing is ever unpickled."""

from __future__ import annotations

import ast
import io
import pickle
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import quenched
from quenched.core import results
from quenched.core.ensemble import ensemble
from quenched.core.store import SEAL, Damaged, Store, seal
from quenched.core.types import InputError
from tests.properties import common as properties

SOURCE = Path(quenched.__file__).parent


def result() -> xr.Dataset:
    """A result with numbers, words, truths and attributes."""
    words = np.array(["converged", "failed", "stalled"])
    data = {
        "R": (("alpha", "prototype"), np.arange(6.0).reshape(3, 2)),
        "outcome": ("alpha", words),
        "runs": ("alpha", [1, 2, 3]),
        "passed": ("alpha", [True, False, True]),
    }
    about = {"law": '{"name": "TwoClusters"}', "seed": "fry:[0, 0]", "size": 8, "allowance": 0.1}
    return xr.Dataset(data, {"alpha": [0.5, 1.0, 2.0], "prototype": [1, -1]}, about)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    return quenched.save(result(), tmp_path_factory.mktemp("saved") / "result.nc")


def sealed(result: xr.Dataset, path: Path, **options: Any) -> Path:
    """A file that is written and sealed by another program."""
    body = bytes(result.to_netcdf(engine="h5netcdf", **options))
    path.write_bytes(seal(body))
    return path


@st.composite
def wounds(draw: st.DrawFn, size: int) -> tuple[list[tuple[int, int]], int]:
    """Bytes that change, and where the file ends."""
    flips = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, 255)), max_size=3))
    return flips, draw(st.sampled_from([size, size, draw(st.integers(0, size))]))


def wounded(content: bytes, flips: list[tuple[int, int]], end: int) -> bytes:
    """The content with other bytes in some places, cut short."""
    changed = bytearray(content)
    for place, byte in flips:
        changed[place] = byte
    return bytes(changed[:end])


@properties.property_settings(25)
@given(data=st.data())
def test_a_damaged_result_is_the_same_or_a_sentence(saved, data):
    whole = saved.read_bytes()
    bad = saved.with_name("bad.nc")
    bad.write_bytes(wounded(whole, *data.draw(wounds(len(whole)))))
    found = properties.answer(lambda: quenched.load(bad))
    if not isinstance(found, str):
        xr.testing.assert_identical(found, quenched.load(saved))


def test_a_file_that_another_tool_rewrote_is_not_taken(saved, tmp_path):
    true = xr.load_dataset(saved, engine="h5netcdf")
    true.assign(R=true.R + 1e-12).to_netcdf(tmp_path / "rewritten.nc", engine="h5netcdf")
    with pytest.raises(InputError, match="the checksum at its end is missing"):
        quenched.load(tmp_path / "rewritten.nc")
    (tmp_path / "edited.nc").write_bytes(saved.read_bytes())
    with h5py.File(tmp_path / "edited.nc", "r+") as file:
        file["R"][0, 0] = 1e-12
    with pytest.raises(InputError, match=r"the checksum at its end (is missing|differs)"):
        quenched.load(tmp_path / "edited.nc")


def test_a_newer_or_foreign_file_gets_a_sentence(saved, tmp_path):
    true = xr.load_dataset(saved, engine="h5netcdf")
    sealed(true.assign_attrs(format=99), tmp_path / "newer.nc")
    with pytest.raises(InputError, match="newer quenched"):
        quenched.load(tmp_path / "newer.nc")
    for name, content in {
        "empty": b"",
        "text": b"alpha,R\n1,2\n",
        "zip": b"PK\x03\x04",
        "hdf": b"\x89HDF\r\n\x1a\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="damaged or of another kind"):
            quenched.load(tmp_path / name)
    for number in ("1", 1.5, [1, 2], -1):
        sealed(true.assign_attrs(format=number), tmp_path / "odd.nc")
        with pytest.raises(InputError, match="must be a result of quenched"):
            quenched.load(tmp_path / "odd.nc")


def test_a_file_without_its_checksum_is_not_read(saved, tmp_path, monkeypatch):
    """One bit in it may keep the library that reads it for ever."""
    monkeypatch.setattr(results, "_unpack", lambda body: pytest.fail("it was read"))
    whole = saved.read_bytes()
    for cut in (1, 64, 64 + len(SEAL), len(whole) // 2):
        (tmp_path / "cut.nc").write_bytes(whole[:-cut])
        with pytest.raises(InputError, match="the checksum at its end is missing"):
            quenched.load(tmp_path / "cut.nc")


def bombs() -> dict[str, bytes]:
    """Small files that unpack to gigabytes."""
    names = {"packed": {"chunks": (1 << 20,), "compression": "gzip"}, "never written": {}}
    files = {}
    for name, options in names.items():
        with h5py.File(stream := io.BytesIO(), "w") as file:
            file.create_dataset("R", (1 << 28,), "f8", **options)
        files[name] = stream.getvalue()
    with h5py.File(stream := io.BytesIO(), "w") as file:  # a hundred thousand pointers to one long text
        words = file.create_dataset("R", (100_000,), h5py.string_dtype())
        words[0] = "x" * 100_000
        place = words.id.get_offset()
    body = stream.getvalue()
    files["one text"] = body[:place] + body[place : place + 16] * 100_000 + body[place + 1_600_000 :]
    return files


def test_a_small_file_does_not_unpack_to_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(xr, "open_dataset", lambda *args, **options: pytest.fail("it was unpacked"))
    for name, body in bombs().items():
        (tmp_path / "bomb.nc").write_bytes(seal(body))
        with pytest.raises(InputError, match=r"damaged or of another kind|must fit in memory"):
            quenched.load(tmp_path / "bomb.nc")
        assert len(body) < 2e6, name


CANNOT = {
    "a table of attributes": result().assign_attrs(what={}),
    "nothing": result().assign_attrs(what=None),
    "an object": result().assign_attrs(what=object()),
    "a truth": result().assign_attrs(what=True),
    "truths": result().assign_attrs(what=[True, False]),
    "a reserved name": result().assign_attrs(_NCProperties="1"),
    "half a letter": result().assign(outcome=("alpha", np.array(["\ud800", "b", "c"]))),
    "a column of objects": result().assign(what=("alpha", np.array([1, "a", None], dtype=object))),
    "a number as a name": result().assign({5: ("alpha", np.ones(3))}),
    "an attribute with a meaning": result().assign(R=result().R.assign_attrs(scale_factor=2.0)),
    "an epoch": result().assign(R=result().R.assign_attrs(units="days since 2000-01-01")),
    "a fill value": result().assign(R=result().R.assign_attrs(_FillValue=1.0)),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_be_saved_leaves_no_file(tmp_path, name):
    with pytest.raises(InputError, match=r"^Argument `result` must hold what (netCDF can|a netCDF file returns)"):
        quenched.save(CANNOT[name], tmp_path / "odd.nc")
    assert list(tmp_path.iterdir()) == []


def test_what_can_be_saved_comes_back(tmp_path):
    packed = result()
    packed.R.encoding.update(dtype="i1", zlib=True)
    others = {
        "a long name": result().assign({"n" * 300: ("alpha", np.ones(3))}).assign_attrs({"m" * 300: "é" * 3000}),
        "lists": result().assign_attrs(words=["a", "b"], numbers=[1.0, 2.0], none=[]),
        "an encoding": packed.assign(R=packed.R + 0.5),
        "no points": result().isel(alpha=slice(0, 0)),
        "words as objects": result().assign(what=("alpha", np.array(["", "b", "c"], dtype=object))),
        "times": result().assign(what=("alpha", np.array(["2000-01-01"] * 3, "M8[ns]"))),
    }
    for name, other in others.items():
        back = quenched.load(quenched.save(other, tmp_path / "other.nc"))
        assert back.identical(other.assign_attrs(format=results.FORMAT)), name
    one = quenched.load(quenched.save(result().assign_attrs(numbers=[1.0]), tmp_path / "one.nc"))
    assert one.attrs["numbers"] == 1.0


@properties.property_settings(25)
@given(data=st.data())
def test_a_damaged_file_of_a_store_is_the_same_or_damaged(tmp_path_factory, data):
    store, body = Store.open(tmp_path_factory.getbasetemp() / "pieces"), bytes(range(48))
    store.write("piece", body, "its identity")
    path = store.folder / "piece"
    path.write_bytes(wounded(path.read_bytes(), *data.draw(wounds(len(path.read_bytes())))))
    try:
        assert store.read("piece", "its identity") == body
    except Damaged:
        return


class Bomb:
    """What writes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "exploded")


def _throw(key, point):
    return {"x": point * jax.random.normal(key)}


def test_a_pickle_under_the_name_of_a_piece_is_not_unpickled(tmp_path):
    mark, folder = tmp_path / "mark", tmp_path / "pieces"
    clean = ensemble(_throw, jax.random.key(0), [1.0], runs=4, batch=2, folder=folder)
    pieces = sorted(folder.glob("*.piece"))
    bomb = pickle.dumps(Bomb(mark))
    pieces[0].write_bytes(bomb)
    pieces[1].write_bytes(seal(bomb))
    again = ensemble(_throw, jax.random.key(0), [1.0], runs=4, batch=2, folder=folder)
    assert again.damaged == 2
    assert np.array_equal(again.values["x"], clean.values["x"])
    assert not mark.exists()
    pickle.loads(bomb)
    assert mark.exists(), "the bomb is none"


def test_a_pickle_under_the_name_of_a_result_is_refused(tmp_path):
    mark = tmp_path / "mark"
    (tmp_path / "result.nc").write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(InputError, match="damaged or of another kind"):
        quenched.load(tmp_path / "result.nc")
    assert not mark.exists()


FORBIDDEN = {"eval", "exec", "loads", "load", "read_pickle", "Unpickler", "compile", "memmap", "fromfile"}
LOADERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "torch", "pd", "np", "numpy", "pandas"}
ALLOWED = {
    # Programs go to worker processes by memory, from this process to its own; no file is ever unpickled.
    ("core/ensemble/executors.py", "cloudpickle.loads"),
    ("forecasting/prior.py", "np.load"),  # numbers that the package brings, and no objects
}


def _calls(path: Path) -> list[tuple[str, ast.Call]]:
    """Every call in a file, by its name."""
    return [
        (ast.unparse(node.func), node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    ]


def test_no_file_is_unpickled_and_no_text_is_run():
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        for call, node in _calls(path):
            home, _, last = call.rpartition(".")
            if (home in LOADERS and last in FORBIDDEN) or call in ("eval", "exec", "compile", "__import__"):
                found.add((name, call))
            allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
            assert all(isinstance(value, ast.Constant) and value.value is False for value in allowed), (name, call)
            if call == "np.load":
                assert allowed, f"np.load in {name} must say allow_pickle=False"
    assert found == ALLOWED
