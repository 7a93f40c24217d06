"""The folder of finished pieces: a resumed sweep continues, damage is found, and a full disk stops nothing."""

from __future__ import annotations

import functools
import os
import tempfile
import types

import jax
import numpy as np
import pytest

from quenched.core import store
from quenched.core.ensemble import ensemble
from quenched.core.types import InputError
from tests.core.experiments import KEY, POINTS, pieces, run, same, smooth


def test_resume_loads_everything(tmp_path):
    first = run(POINTS, runs=10, batch=4, folder=tmp_path / "new" / "folder")
    assert (first.computed, first.loaded) == (9, 0)
    again = run(POINTS, runs=10, batch=4, folder=tmp_path / "new/folder")
    assert (again.computed, again.loaded, again.messages) == (0, 9, ())
    assert same(first, again)
    assert same(first, run(POINTS, runs=10, batch=4))


def test_more_runs_and_more_points_reuse_pieces(tmp_path):
    run(POINTS[:2], runs=10, batch=4, folder=tmp_path)
    more = run(POINTS[:2], runs=12, batch=4, folder=tmp_path)
    assert (more.computed, more.loaded) == (2, 4)  # the last piece of a point had two runs
    assert run(POINTS[:2], runs=10, batch=4, folder=tmp_path).loaded == 6
    most = run(POINTS, runs=17, batch=4, folder=tmp_path)
    assert (most.computed, most.loaded) == (2 * 2 + 5, 6)
    assert same(most, run(POINTS, runs=17, batch=4))


def test_damaged_pieces_are_computed_again(tmp_path):
    first = run(POINTS, runs=10, batch=2, folder=tmp_path)
    cut, empty, flipped, forged, misplaced, source, *_ = pieces(tmp_path)
    cut.write_bytes(cut.read_bytes()[:-100])
    empty.write_bytes(b"")
    content = bytearray(flipped.read_bytes())
    content[20] ^= 1
    flipped.write_bytes(content)
    forged.write_bytes(store.seal(bytes(64)))
    misplaced.write_bytes(source.read_bytes())
    again = run(POINTS, runs=10, batch=2, folder=tmp_path)
    assert (again.damaged, again.computed, again.loaded) == (5, 5, 10)
    assert len(again.messages) == 5
    assert all("was damaged and is computed again" in m for m in again.messages)
    assert {cut.name, forged.name} <= {word for m in again.messages for word in m.split()}
    assert same(first, again)
    healed = run(POINTS, runs=10, batch=2, folder=tmp_path)
    assert (healed.damaged, healed.loaded, healed.messages) == (0, 15, ())


SOURCE = """
import jax
STEPS = 3
def helper(x):
    return 2 * x  # twice
def function(key, point, *, power=1):
    total = 0.0
    for k in range(STEPS):
        total = total + helper(jax.random.normal(jax.random.fold_in(key, k))) ** power
    return {"x": point * total}
"""


def variant(old: str = "", new: str = ""):
    """A user's module, as it is or with a word replaced."""
    module = types.ModuleType("somebodys_module")
    exec(SOURCE.replace(old, new) if old else SOURCE, vars(module))
    return vars(module)["function"]


def test_the_same_function_is_found_again(tmp_path):
    first = ensemble(variant(), KEY, [1.0], runs=2, folder=tmp_path)
    assert first.computed == 1
    assert ensemble(variant(), KEY, [1.0], runs=2, folder=tmp_path).loaded == 1
    assert ensemble(variant("# twice", "# doubled"), KEY, [np.float64(1)], runs=2, folder=tmp_path).loaded == 1


def test_a_changed_function_is_another(tmp_path):
    seen = [ensemble(variant(), KEY, [1.0], runs=2, folder=tmp_path)]
    changes = {"point * total": "point + total", "2 * x": "3 * x", "STEPS = 3": "STEPS = 4", "power=1": "power=2"}
    for old, new in changes.items():
        other = ensemble(variant(old, new), KEY, [1.0], runs=2, folder=tmp_path)
        assert (other.computed, other.loaded) == (1, 0), old
        assert not any(same(one, other) for one in seen), old
        seen.append(other)


def test_everything_that_matters_is_in_the_name(tmp_path, monkeypatch):
    def loaded(function=None, key=KEY, point=1.0, batch=2):
        return ensemble(function or variant(), key, [point], runs=2, batch=batch, folder=tmp_path).loaded

    assert loaded() == 0
    assert loaded() == 1
    assert loaded(functools.partial(variant(), power=2)) == 0
    assert loaded(functools.partial(variant(), power=2.0)) == 0
    assert loaded(key=jax.random.key(8)) == 0
    assert loaded(point=np.nextafter(1.0, 2.0)) == 0
    assert loaded(batch=1) == 0
    monkeypatch.setattr(jax, "__version__", "99")
    assert loaded() == 0


def test_closures_and_lambdas_are_told_apart(tmp_path):
    def make(factor):
        return lambda key, point: {"x": factor * point * jax.random.normal(key)}

    table = np.zeros(10_000)
    results = [ensemble(make(f), KEY, [1.0], runs=2, folder=tmp_path) for f in (1.0, 2.0, np.ones(1), 1.0, table)]
    assert [r.loaded for r in results] == [0, 0, 0, 1, 0]
    np.testing.assert_array_equal(2 * results[0].values["x"], results[1].values["x"])
    table[5_000] = 1e-300
    assert ensemble(make(table), KEY, [1.0], runs=2, folder=tmp_path).loaded == 0


def test_folder_must_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere"):
        with pytest.raises(
            InputError, match=r"^Argument `folder` must be a folder that can be written, but .* is not: "
        ):
            run(POINTS, runs=2, folder=folder)


def test_a_full_disk_stops_nothing(tmp_path, monkeypatch):
    full(monkeypatch, after=4)  # two for each file: its content, its name
    sentence = r"^The result is complete, but 4 of its files could not be saved in .*: No space left on device\.$"
    with pytest.warns(RuntimeWarning, match=sentence) as caught:
        result = run(POINTS, runs=4, batch=2, folder=tmp_path)
    assert caught[0].filename == __file__
    assert result.messages == (str(caught[0].message),)
    assert len(pieces(tmp_path)) == len(list(tmp_path.iterdir())) == 2
    assert same(result, run(POINTS, runs=4, batch=2))


def full(monkeypatch, *, after=0):
    """A disk that fails after some more files."""
    written = []

    def fsync(handle):
        written.append(handle)
        if len(written) > after:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", fsync)


def read_only(monkeypatch):
    """A disk on which nothing can be made."""

    def refuse(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)


def test_finished_pieces_are_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    first = run(POINTS, runs=4, batch=4, folder=tmp_path)
    read_only(monkeypatch)
    again = run(POINTS, runs=4, batch=4, folder=tmp_path)  # nothing to write: not a word
    assert (again.loaded, again.computed, again.messages) == (3, 0, ())
    assert same(first, again)
    sentence = (
        r"^Nothing can be saved in .* \(Read-only file system\): the 3 pieces that are there are used, 3 are comp"
    )
    with pytest.warns(RuntimeWarning, match=sentence) as caught:
        more = run(POINTS, runs=8, batch=4, folder=tmp_path)
    assert caught[0].filename == __file__
    assert (more.loaded, more.computed, more.messages) == (3, 3, (str(caught[0].message),))
    with pytest.raises(InputError, match=r"must be a folder that can be written, but .* is not: Read-only file system"):
        ensemble(smooth, jax.random.key(8), POINTS, runs=4, batch=4, folder=tmp_path)


def test_what_a_killed_sweep_left_is_removed(tmp_path):
    left = tmp_path / f".a piece-abcdefgh{store.PART}"
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    run(POINTS, runs=4, folder=tmp_path)
    assert not left.exists()


def test_code_is_known_by_the_sources_of_its_package(tmp_path, monkeypatch):
    package = tmp_path / "somebodys_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("x = 1")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("somebodys_package")
    before = store.code_digest("somebodys_package.helper")
    (package / "helper.py").write_text("x = 2")
    store.code_digest.cache_clear()
    assert store.code_digest("somebodys_package") != before
    assert store.code_digest("functools") != store.code_digest("tempfile")


def test_a_folder_is_made_and_tried(tmp_path):
    assert store.writable_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(store.OutputError, match="must be writable"):
            store.writable_folder(bad)


def test_what_cannot_be_written_is_put_elsewhere_and_the_sentence_says_where(tmp_path):
    (tmp_path / "file").write_text("")
    places = []

    def write(folder):
        places.append(folder)
        (folder / "result").write_text("precious")

    with pytest.raises(store.OutputError, match="the result was put in") as caught:
        store.write_into(tmp_path / "file", write)
    assert str(places[-1]) in str(caught.value)
    assert (places[-1] / "result").read_text() == "precious"


def test_a_disk_that_fills_up_half_way_loses_nothing(tmp_path):
    def write(folder):
        if folder == tmp_path:
            raise OSError(28, "No space left on device")
        (folder / "result").write_text("precious")

    with pytest.raises(store.OutputError, match=r"No space left on device.*put in"):
        store.write_into(tmp_path, write)
