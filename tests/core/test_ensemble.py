"""Many runs of one function, in this process: keys, pieces, failures, and the folder of finished pieces."""

from __future__ import annotations

import functools
import os
import tempfile
import threading
import types
import zipfile
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.core import files as files_module
from quenched.core import progress as progress_module
from quenched.core.ensemble import Ensemble, Local, ensemble
from quenched.core.ensemble import program as program_module
from quenched.core.ensemble import store as store_module
from quenched.core.ensemble import sweep as sweep_module
from quenched.core.ensemble.identity import describe
from quenched.core.types import InputError

KEY = jax.random.key(7)
POINTS = [{"scale": 1.0, "shift": 0.5}, {"scale": 2.0, "shift": -1.0}, {"scale": 0.1, "shift": 1e-3}]


class Law(eqx.Module):
    scale: Any
    name: str = eqx.field(static=True, default="normal")


def smooth(key, point, *, size):
    x = point["scale"] * jax.random.normal(key, (size,)) + point["shift"]
    return {"mean": jnp.mean(x), "waves": jnp.sin(x[:3])}


def counted(key, point):
    # The environment is no part of a function's identity, so it can count traces without changing it.
    os.environ["TRACES"] = str(int(os.environ["TRACES"]) + 1)
    return {"x": point["scale"] * jax.random.normal(key)}


def sometimes_nan(key, point):
    x = jax.random.uniform(key)
    return {"x": jnp.where(x < point, jnp.nan, x), "y": jnp.stack([x, x])}


def raises_above(key, point):
    def refuse(x, limit):
        if x > limit:
            raise ValueError("too large for me")
        return x

    x = jax.random.uniform(key)
    return {"x": jax.pure_callback(refuse, jax.ShapeDtypeStruct((), x.dtype), x, point, vmap_method="sequential")}


def decompositions(key, point):
    x = jax.random.normal(key, (120, 120))
    a = x @ x.T / 120 + point * jnp.eye(120)
    return {"c": jnp.linalg.cholesky(a).sum(), "e": jnp.linalg.eigvalsh(a), "s": jnp.linalg.solve(a, x)[0]}


def same(one: Ensemble, other: Ensemble) -> bool:
    """Equal to the last bit, NaN included."""
    leaves = zip(jax.tree.leaves(one.values), jax.tree.leaves(other.values), strict=True)
    return all(a.tobytes() == b.tobytes() for a, b in leaves) and bool(np.array_equal(one.failed, other.failed))


def pieces(folder) -> list:
    return sorted(folder.glob("*.npz"))


# ---- runs, keys and numbers


def test_every_run_has_its_own_key():
    result = ensemble(functools.partial(smooth, size=20), KEY, POINTS, runs=5, batch=2)
    assert result.values["waves"].shape == (3, 5, 3)
    assert result.values["mean"].dtype == np.float64
    assert not result.failed.any()
    assert (result.width, result.computed, result.loaded) == (2, 9, 0)
    with jax.enable_x64(True):
        for i, point in enumerate(POINTS):
            for r in range(5):
                alone = smooth(jax.random.fold_in(jax.random.fold_in(KEY, i), r), point, size=20)
                for name, value in alone.items():
                    np.testing.assert_allclose(result.values[name][i, r], value, rtol=1e-12, atol=1e-12)


def test_width_does_not_matter():
    results = [
        ensemble(functools.partial(smooth, size=50), KEY, POINTS, runs=10, batch=b) for b in (1, 3, 10, 64, None)
    ]
    for other in results[1:]:
        for name in ("mean", "waves"):
            np.testing.assert_allclose(other.values[name], results[0].values[name], rtol=1e-12, atol=1e-12)
    assert [r.width for r in results] == [1, 3, 10, 64, 10]


def test_mean_and_standard_error():
    result = ensemble(functools.partial(smooth, size=4), KEY, POINTS, runs=200)
    x = result.values["waves"]
    np.testing.assert_allclose(result.mean("waves"), x.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(result.stderr("waves"), x.std(axis=1, ddof=1) / np.sqrt(200), rtol=1e-12)
    # Over 600 standard normal numbers of known mean: five standard errors are a safe bound.
    scale, shift = np.array([1.0, 2.0, 0.1]), np.array([0.5, -1.0, 1e-3])
    assert np.all(np.abs(result.mean("mean") - shift) < 5 * scale / np.sqrt(800))


def test_caller_settings_neither_change_nor_matter():
    before = jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    one = ensemble(functools.partial(smooth, size=9), KEY, POINTS, runs=4)
    program_module._remembered.clear()
    with jax.enable_x64(not before), jax.threefry_partitionable(False):
        other = ensemble(functools.partial(smooth, size=9), KEY, POINTS, runs=4)
        assert jax.config.jax_enable_x64 is not before  # pyright: ignore[reportAttributeAccessIssue]
    assert same(one, other)
    assert len(np.unique(one.values["mean"].astype(np.float32))) == one.values["mean"].size
    assert not np.array_equal(one.values["mean"], one.values["mean"].astype(np.float32))


def test_modules_old_keys_and_other_trees():
    def function(key, law):
        return law.scale * jax.random.normal(key), jnp.sign(law.scale)

    result = ensemble(function, jax.random.PRNGKey(3), [Law(1), Law(np.float64(-2.5))], runs=3)
    x, sign = result.values
    np.testing.assert_array_equal(sign, [[1.0] * 3, [-1.0] * 3])
    assert same(result, ensemble(function, jax.random.key(3), [Law(1.0), Law(-2.5)], runs=3))
    assert x.shape == (2, 3)


def test_compiles_once(monkeypatch):
    monkeypatch.setenv("TRACES", "0")
    points = [{"scale": s} for s in (0.5, 1.0, 1.5, 2.0)]
    ensemble(counted, KEY, points, runs=10, batch=3)
    assert os.environ["TRACES"] == "1"
    ensemble(counted, jax.random.key(8), points[:2], runs=30, batch=3)
    assert os.environ["TRACES"] == "1"
    ensemble(counted, KEY, points, runs=10, batch=4)
    assert os.environ["TRACES"] == "2"


def test_decompositions_run_one_by_one():
    # Done as batches, independent decompositions hang for ever on two cores.
    result = ensemble(decompositions, KEY, [1.0, 2.0], runs=16, batch=8)
    assert not result.failed.any()
    program = next(reversed(program_module._remembered.values()))
    with jax.enable_x64(True):
        assert program_module._may_hang(program._trace(jax.vmap).jaxpr)
        assert not program_module._may_hang(program.traced.jaxpr)


# ---- failures


def test_runs_that_are_not_finite_are_counted():
    result = ensemble(sometimes_nan, KEY, [0.0, 0.3, 1.1], runs=40, batch=16)
    x = result.values["y"][..., 0]
    np.testing.assert_array_equal(result.failed, x < np.array([[0.0], [0.3], [1.1]]))
    assert 0 < result.failed[1].sum() < 40
    assert result.failed[2].all()
    good = x[1][~result.failed[1]]
    np.testing.assert_allclose(result.mean("x")[1], good.mean(), rtol=1e-13)
    np.testing.assert_allclose(result.stderr("y")[1], np.full(2, good.std(ddof=1) / np.sqrt(good.size)), rtol=1e-13)
    assert np.isnan(result.mean("x")[2])
    assert result.stderr("x")[2] == np.inf
    assert result.messages == (f"{result.failed.sum()} of 120 runs gave a value that is not finite.",)


def test_one_run_has_no_standard_error():
    result = ensemble(sometimes_nan, KEY, [0.0], runs=1)
    assert result.stderr("x")[0] == np.inf
    assert np.isfinite(result.mean("x")[0])


def test_a_piece_that_raises_is_marked(tmp_path):
    result = ensemble(raises_above, KEY, [2.0, 0.5], runs=12, batch=1, folder=tmp_path)
    x = ensemble(raises_above, KEY, [2.0, 2.0], runs=12, batch=1).values["x"]
    np.testing.assert_array_equal(result.failed, [[False] * 12, list(x[1] > 0.5)])
    assert np.isnan(result.values["x"][result.failed]).all()
    np.testing.assert_array_equal(result.values["x"][~result.failed], x[~result.failed])
    count = int(result.failed.sum())
    assert len(result.messages) == count > 0
    assert all("of point 1 failed: " in m and "ValueError: too large for me" in m for m in result.messages)
    assert all("\n" not in m for m in result.messages)
    assert len(pieces(tmp_path)) == 24 - count
    again = ensemble(raises_above, KEY, [2.0, 0.5], runs=12, batch=1, folder=tmp_path)
    assert (again.loaded, again.computed) == (24 - count, count)


def test_nothing_but_exceptions_raises():
    with pytest.raises(RuntimeError, match=r"^All 8 runs failed\. Runs 0 to 3 of point 0 failed: .*too large for me$"):
        ensemble(raises_above, KEY, [-1.0, -1.0], runs=4, batch=4)


def test_bugs_raise_at_once(tmp_path):
    def bug(key, point):
        return {"x": jnp.zeros(3) + jnp.zeros(4)}

    with pytest.raises(TypeError, match="add got incompatible shapes"):
        ensemble(bug, KEY, POINTS, runs=2, folder=tmp_path)
    assert pieces(tmp_path) == []


# ---- the folder


def test_resume_loads_everything(tmp_path):
    function = functools.partial(smooth, size=20)
    first = ensemble(function, KEY, POINTS, runs=10, batch=4, folder=tmp_path / "new" / "folder")
    assert (first.computed, first.loaded) == (9, 0)
    again = ensemble(functools.partial(smooth, size=20), KEY, POINTS, runs=10, batch=4, folder=tmp_path / "new/folder")
    assert (again.computed, again.loaded, again.messages) == (0, 9, ())
    assert same(first, again)
    assert same(first, ensemble(function, KEY, POINTS, runs=10, batch=4))


def test_more_runs_and_more_points_reuse_pieces(tmp_path):
    function = functools.partial(smooth, size=20)
    ensemble(function, KEY, POINTS[:2], runs=10, batch=4, folder=tmp_path)
    # The last piece of a point was computed whole, so runs 10 and 11 are there already.
    more = ensemble(function, KEY, POINTS[:2], runs=12, batch=4, folder=tmp_path)
    assert (more.computed, more.loaded) == (0, 6)
    most = ensemble(function, KEY, POINTS, runs=17, batch=4, folder=tmp_path)
    assert (most.computed, most.loaded) == (2 * 2 + 5, 6)
    assert same(most, ensemble(function, KEY, POINTS, runs=17, batch=4))


def test_chosen_width_is_kept(tmp_path, monkeypatch):
    function = functools.partial(smooth, size=1000)
    monkeypatch.setattr(program_module, "HOST_BUDGET", 100_000)
    first = ensemble(function, KEY, POINTS[:1], runs=32, folder=tmp_path)
    assert 1 < first.width < 32
    wide = (p for p in program_module._remembered.values() if getattr(p.function, "keywords", 0) == {"size": 1000})
    used = {p.width: p.memory() for p in wide}
    assert used[first.width] <= 100_000 < used[32]
    monkeypatch.undo()
    again = ensemble(function, KEY, POINTS[:1], runs=32, folder=tmp_path)
    assert (again.width, again.computed, again.loaded) == (first.width, 0, 32 // first.width)
    assert ensemble(function, KEY, POINTS[:1], runs=32).width == 32


def test_few_runs_do_not_bind_many(tmp_path):
    function = functools.partial(smooth, size=5)
    assert ensemble(function, KEY, POINTS, runs=1, folder=tmp_path).width == 1
    many = ensemble(function, KEY, POINTS, runs=100, folder=tmp_path)
    assert (many.width, many.computed) == (50, 6)
    few = ensemble(function, KEY, POINTS, runs=9, folder=tmp_path)
    assert (few.width, few.computed, few.loaded) == (50, 0, 3)


def test_damaged_pieces_are_computed_again(tmp_path):
    function = functools.partial(smooth, size=20)
    first = ensemble(function, KEY, POINTS, runs=10, batch=2, folder=tmp_path)
    cut, empty, flipped, forged, misplaced, source, *_ = pieces(tmp_path)
    cut.write_bytes(cut.read_bytes()[:-100])
    empty.write_bytes(b"")
    flip(flipped)
    forge(forged)
    misplaced.write_bytes(source.read_bytes())
    again = ensemble(function, KEY, POINTS, runs=10, batch=2, folder=tmp_path)
    assert (again.damaged, again.computed, again.loaded) == (5, 5, 10)
    assert len(again.messages) == 5
    assert all("was damaged and is computed again" in m for m in again.messages)
    assert {cut.name, forged.name} <= {word for m in again.messages for word in m.split()}
    assert same(first, again)
    healed = ensemble(function, KEY, POINTS, runs=10, batch=2, folder=tmp_path)
    assert (healed.damaged, healed.loaded, healed.messages) == (0, 15, ())


def flip(path):
    """Change one bit of the data inside a piece."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        inside = file.getinfo("leaf_0.npy").header_offset + 30 + len("leaf_0.npy") + 140
    content[inside] ^= 1
    path.write_bytes(bytes(content))


def forge(path):
    """Write other numbers into a piece, in a zip file that is in order."""
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, "leaf_0": arrays["leaf_0"] + 1})  # pyright: ignore[reportArgumentType]


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


@pytest.mark.parametrize(
    ("old", "new"),
    [("point * total", "point + total"), ("2 * x", "3 * x"), ("STEPS = 3", "STEPS = 4"), ("power=1", "power=2")],
    ids=["body", "helper", "constant", "default"],
)
def test_a_changed_function_is_another(tmp_path, old, new):
    first = ensemble(variant(), KEY, [1.0], runs=2, folder=tmp_path)
    other = ensemble(variant(old, new), KEY, [1.0], runs=2, folder=tmp_path)
    assert (other.computed, other.loaded) == (1, 0)
    assert not same(first, other)


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
    monkeypatch.setattr(sweep_module.importlib.metadata, "version", lambda package: "99")
    assert loaded() == 0


def test_closures_and_lambdas_are_told_apart(tmp_path):
    def make(factor):
        return lambda key, point: {"x": factor * point * jax.random.normal(key)}

    results = [ensemble(make(f), KEY, [1.0], runs=2, folder=tmp_path) for f in (1.0, 2.0, np.ones(1), 1.0)]
    assert [r.loaded for r in results] == [0, 0, 0, 1]
    np.testing.assert_array_equal(2 * results[0].values["x"], results[1].values["x"])


def test_identity_sees_through_wrappers():
    def make(factor, slope):
        @jax.custom_jvp
        def f(x):
            return factor * x

        f.defjvp(lambda primals, tangents: (f(*primals), slope * tangents[0]))
        return f

    assert describe(make(1.0, 2.0)) == describe(make(1.0, 2.0))
    assert len({describe(make(a, b)) for a in (1.0, 2.0) for b in (1.0, 2.0)}) == 4
    assert len({describe(jax.jit(make(a, 1.0))) for a in (1.0, 2.0)}) == 2
    assert len({describe(wrap(variant())) for wrap in (jax.jit, eqx.filter_jit, functools.partial)}) == 3
    law = Law(1.0)
    assert describe(law) == describe(Law(1.0))
    assert len({describe(x) for x in (law, Law(1.0, "x"), Law(-0.0), Law(0.0), Law, threading.Lock())}) == 6
    assert describe({"a": 1, "b": {2, 3}}) == describe({"b": {3, 2}, "a": 1})


def test_folder_must_be_one(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACES", "0")
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere"):
        with pytest.raises(
            InputError, match=r"^Argument `folder` must be a folder that can be written, but .* is not: "
        ):
            ensemble(counted, KEY, POINTS, runs=2, folder=folder)
    assert os.environ["TRACES"] == "0"


def test_a_full_disk_stops_nothing(tmp_path, monkeypatch):
    function = functools.partial(smooth, size=20)
    full(monkeypatch, after=4)  # two for each file: its content, its name
    sentence = r"^The result is complete, but 4 of its files could not be saved in .*: No space left on device\.$"
    with pytest.warns(RuntimeWarning, match=sentence) as caught:
        result = ensemble(function, KEY, POINTS, runs=4, batch=2, folder=tmp_path)
    assert caught[0].filename == __file__
    assert result.messages == (str(caught[0].message),)
    assert len(pieces(tmp_path)) == len(list(tmp_path.iterdir())) == 2
    assert same(result, ensemble(function, KEY, POINTS, runs=4, batch=2))


def full(monkeypatch, *, after=0):
    """A disk that has room for so many more files."""
    written = []

    def fsync(handle):
        written.append(handle)
        if len(written) > after:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files_module.os, "fsync", fsync)


def read_only(monkeypatch):
    """A disk on which nothing can be made."""

    def refuse(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)


def test_finished_pieces_are_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    function = functools.partial(smooth, size=20)
    first = ensemble(function, KEY, POINTS, runs=4, batch=4, folder=tmp_path)
    read_only(monkeypatch)
    again = ensemble(function, KEY, POINTS, runs=4, batch=4, folder=tmp_path)  # nothing to write: not a word
    assert (again.loaded, again.computed, again.messages) == (3, 0, ())
    assert same(first, again)
    sentence = (
        r"^Nothing can be saved in .* \(Read-only file system\): the 3 pieces that are there are used, 3 are comp"
    )
    with pytest.warns(RuntimeWarning, match=sentence) as caught:
        more = ensemble(function, KEY, POINTS, runs=8, batch=4, folder=tmp_path)
    assert caught[0].filename == __file__
    assert (more.loaded, more.computed, more.messages) == (3, 3, (str(caught[0].message),))
    with pytest.raises(InputError, match=r"must be a folder that can be written, but .* is not: Read-only file system"):
        ensemble(function, jax.random.key(8), POINTS, runs=4, batch=4, folder=tmp_path)


@pytest.mark.parametrize(
    "record",
    [b'{"width": 1e400, "wanted": 2}', b"[" * 100_000, b'{"width": 10, "wanted": 64}', b"\xff", b"", b"[4, 4]"],
    ids=["infinite", "deep", "another", "no text", "empty", "unsigned"],
)
def test_a_damaged_width_is_said(tmp_path, record):
    function = functools.partial(smooth, size=20)
    first = ensemble(function, KEY, POINTS, runs=4, folder=tmp_path)
    (path,) = tmp_path.glob("width-*.json")
    path.write_bytes(record)
    again = ensemble(function, KEY, POINTS, runs=4, folder=tmp_path)
    assert len(again.messages) == 1
    assert again.messages[0].startswith("The width of the pieces on disk is not known and is chosen again")
    assert path.name in again.messages[0]
    assert same(first, again)
    assert ensemble(function, KEY, POINTS, runs=4, folder=tmp_path).messages == ()


def test_the_record_of_another_function_is_not_taken(tmp_path):
    functions = [functools.partial(smooth, size=size) for size in (20, 21)]
    for function, runs in zip(functions, (4, 5), strict=True):
        ensemble(function, KEY, POINTS, runs=runs, folder=tmp_path)
    one, other = tmp_path.glob("width-*.json")
    one.write_bytes(other.read_bytes())
    messages = [ensemble(f, KEY, POINTS, runs=4, folder=tmp_path).messages for f in functions]
    assert sorted(map(len, messages)) == [0, 1]


def test_a_piece_that_is_packed_is_not_unpacked(tmp_path):
    store = store_module.Store.open(tmp_path)
    store.write("piece", [np.zeros((2, 10_000))])
    with np.load(tmp_path / "piece.npz") as file:
        np.savez_compressed(tmp_path / "piece.npz", **dict(file))  # pyright: ignore[reportArgumentType]
    with pytest.raises(store_module.Damaged, match=r"piece\.npz cannot be read \(ValueError\)"):
        store.read("piece", [(2, 10_000)])


def test_what_a_killed_sweep_left_is_removed(tmp_path):
    left = tmp_path / f".a piece-abcdefgh{files_module.PART}"
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    ensemble(functools.partial(smooth, size=20), KEY, POINTS, runs=4, folder=tmp_path)
    assert not left.exists()


# ---- the front door


def test_progress_is_for_terminals(capfd, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    monkeypatch.setattr(progress_module, "PATIENCE", 0.0)
    ensemble(functools.partial(smooth, size=5), KEY, POINTS, runs=2, label="throws")
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    ensemble(raises_above, KEY, [2.0] * 50, runs=2, label="throws")
    assert "throws" in capfd.readouterr().err
    monkeypatch.setattr(progress_module, "PATIENCE", 60.0)
    ensemble(functools.partial(smooth, size=5), KEY, POINTS, runs=2, label="throws")
    assert capfd.readouterr() == ("", "")


def arguments(**changes):
    good = {"function": functools.partial(smooth, size=3), "key": KEY, "parameters": POINTS, "runs": 2}
    return good | changes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"runs": 0}, "Argument `runs` must be at least 1, but 0 was given."),
        ({"runs": 2.5}, "Argument `runs` must be a whole number, but 2.5 was given."),
        ({"batch": 0}, "Argument `batch` must be at least 1, but 0 was given."),
        ({"parameters": []}, "Argument `parameters` must be a list of at least one point, but it is []."),
        ({"parameters": 3.0}, "Argument `parameters` must be a list of at least one point, but it is 3.0."),
        (
            {"parameters": [{"a": 1.0}, {"b": 1.0}]},
            "Argument `parameters` must be points of one structure, but point 1, ",
        ),
        ({"parameters": [1.0, np.ones(2)]}, "Argument `parameters` must be points of one structure, but point 1, "),
        (
            {"parameters": [Law(1.0), Law(1.0, "x")]},
            "Argument `parameters` must be points of one structure, but point 1",
        ),
        ({"key": 0}, "Argument `key` must be one JAX key, as `jax.random.key(0)`, but it is 0."),
        ({"key": jax.random.split(KEY, 2)}, "Argument `key` must be one JAX key, as `jax.random.key(0)`, but it is"),
        ({"executor": "local"}, "Argument `executor` must be Local(), Processes() or Dask(), but 'local' was given."),
        ({"executor": Local}, "Argument `executor` must be Local(), Processes() or Dask(), but <class"),
        ({"function": 3}, "Argument `function` must be a function of (key, parameters), but it is 3."),
        ({"function": lambda key, point: {}}, "Argument `function` must return real arrays, but it returns none."),
        (
            {"function": lambda key, point: 1j},
            "Argument `function` must return real arrays, but it returns ['complex128",
        ),
        (
            {"function": lambda key, point: key},
            "Argument `function` must return real arrays, but it returns ['key<fry>",
        ),
    ],
)
def test_bad_input(changes, sentence):
    with pytest.raises(InputError) as caught:
        ensemble(**arguments(**changes))
    assert str(caught.value).startswith(sentence)


def test_unknown_output():
    result = ensemble(**arguments())
    with pytest.raises(InputError, match="must be one of the function's outputs, but 'z' is not in: mean, waves"):
        result.mean("z")
