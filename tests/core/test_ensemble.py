"""Many runs of one function, in this process: keys, pieces, programs and failures."""

from __future__ import annotations

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.core import progress as progress_module
from quenched.core.ensemble import Local, OnHost, ensemble
from quenched.core.ensemble import program as program_module
from quenched.core.types import InputError
from tests.core.experiments import KEY, POINTS, Law, pieces, raises_above, run, same, smooth
from tests.tolerances import MACHINE

CLOSE = {"rtol": MACHINE, "atol": MACHINE}


def counted(key, point):
    # The environment is no part of a program, so it can count traces without changing it.
    os.environ["TRACES"] = str(int(os.environ["TRACES"]) + 1)
    return {"x": point["scale"] * jax.random.normal(key)}


def sometimes_nan(key, point):
    x = jax.random.uniform(key)
    return {"x": jnp.where(x < point, jnp.nan, x), "y": jnp.stack([x, x])}


def decompositions(key, point):
    x = jax.random.normal(key, (120, 120))
    a = x @ x.T / 120 + point * jnp.eye(120)
    return {"c": jnp.linalg.cholesky(a).sum(), "e": jnp.linalg.eigvalsh(a), "s": jnp.linalg.solve(a, x)[0]}


# ---- runs, keys and numbers


def test_every_run_has_its_own_key():
    result = run(POINTS, runs=5, batch=2)
    assert result.values["waves"].shape == (3, 5, 3)
    assert result.values["mean"].dtype == np.float64
    assert not result.failed.any()
    assert (result.width, result.computed, result.loaded) == (2, 9, 0)
    with jax.enable_x64(True):
        for i, point in enumerate(POINTS):
            for r in range(5):
                alone = smooth(jax.random.fold_in(jax.random.fold_in(KEY, i), r), point)
                for name, value in alone.items():
                    np.testing.assert_allclose(result.values[name][i, r], value, **CLOSE)


@pytest.mark.parametrize("vectorized", [False, True])
def test_width_does_not_matter(vectorized):
    one = run(POINTS, runs=10)
    for batch in (3, 64):
        other = run(POINTS, runs=10, batch=batch, vectorized=vectorized)
        assert other.width == batch
        for name in ("mean", "waves"):
            np.testing.assert_allclose(other.values[name], one.values[name], **CLOSE)


def test_mean_and_standard_error():
    result = run(POINTS, runs=200)
    x = result.values["waves"]
    np.testing.assert_allclose(result.mean("waves"), x.mean(axis=1), rtol=MACHINE)
    np.testing.assert_allclose(result.stderr("waves"), x.std(axis=1, ddof=1) / np.sqrt(200), rtol=MACHINE)
    # Over 4000 standard normal numbers of known mean: five standard errors are a safe bound.
    scale, shift = np.array([1.0, 2.0, 0.1]), np.array([0.5, -1.0, 1e-3])
    assert np.all(np.abs(result.mean("mean") - shift) < 5 * scale / np.sqrt(4000))


def test_caller_settings_neither_change_nor_matter():
    before = jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    one = run(POINTS, runs=4)
    program_module._programs.clear()
    with jax.enable_x64(not before), jax.threefry_partitionable(False):
        other = run(POINTS, runs=4)
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


def test_decompositions_run_one_by_one():
    # As batches, independent decompositions wait for each other for ever on two cores.
    assert not ensemble(decompositions, KEY, [1.0, 2.0], runs=16).failed.any()


def test_a_function_on_the_host(tmp_path):
    def throw(key, point, *, size):
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        return {"x": point["scale"] * rng.normal(size=size), "scale": point["scale"]}

    on_host = OnHost(functools.partial(throw, size=3), {"x": (3,), "scale": ()})
    one = ensemble(on_host, KEY, POINTS, runs=5, batch=2, folder=tmp_path)
    np.testing.assert_array_equal(one.values["scale"], [[p["scale"]] * 5 for p in POINTS])
    assert len(np.unique(one.values["x"])) == 45
    assert (one.computed, one.loaded) == (9, 0)
    again = ensemble(OnHost(functools.partial(throw, size=3), on_host.outputs), KEY, POINTS, runs=5, folder=tmp_path)
    assert (again.width, again.computed, again.loaded) == (8, 3, 0)  # pieces of two runs are too few
    assert same(one, again)
    other = OnHost(functools.partial(throw, size=2), {"x": (2,), "scale": ()})
    assert ensemble(other, KEY, POINTS, runs=2, folder=tmp_path).loaded == 0
    with pytest.raises(InputError, match=r"Argument `outputs` must be the shapes that the function returns, but"):
        ensemble(OnHost(on_host.function, {"x": (4,), "scale": ()}), KEY, POINTS, runs=2)
    with pytest.raises(InputError, match="A run must fit in memory"):
        ensemble(OnHost(on_host.function, on_host.outputs, bytes=10**15), KEY, POINTS, runs=2)


# ---- programs


def test_compiles_once(monkeypatch):
    monkeypatch.setenv("TRACES", "0")
    points = [{"scale": s} for s in (0.5, 1.0, 1.5, 2.0)]
    for key, several, runs in ((KEY, points, 10), (jax.random.key(8), points[:2], 30), (KEY, points[:1], 1)):
        ensemble(functools.partial(counted), key, several, runs=runs)
    assert os.environ["TRACES"] == "1"  # other keys, points and numbers of runs
    ensemble(counted, KEY, points, runs=10, batch=4)
    assert os.environ["TRACES"] == "2"


def test_the_width_is_one_of_a_few(monkeypatch):
    monkeypatch.setattr(program_module.Compiled, "memory", lambda self: 0)  # nothing is compiled
    point = jax.tree.map(np.asarray, POINTS[0])
    widths = [
        program_module.build(smooth, point, "threefry2x32", runs, None, vectorized).width
        for runs, vectorized in ((1, False), (100, False), (1, True), (4, True), (31, True), (32, True), (1000, True))
    ]
    assert widths == [8, 8, 1, 8, 8, 64, 64]


def test_pieces_that_are_too_large_are_made_narrower(monkeypatch):
    wide = run(POINTS[:1], runs=32, vectorized=True)
    program = program_module.build(smooth, jax.tree.map(np.asarray, POINTS[0]), "threefry2x32", 32, None, True)
    monkeypatch.setattr(program_module, "HOST_BUDGET", program.memory() - 1)
    narrow = run(POINTS[:1], runs=32, vectorized=True)
    assert (wide.width, narrow.width) == (64, 32)
    np.testing.assert_allclose(narrow.values["mean"], wide.values["mean"], **CLOSE)


def test_arguments_of_a_partial_are_told_apart():
    def scaled(key, point, *, factor):
        return {"x": factor * point * jax.random.normal(key)}

    factors = (1.0, 2.0, -0.0, 0.0, np.ones(1))
    found = [ensemble(functools.partial(scaled, factor=f), KEY, [1.0], runs=2).values["x"] for f in factors]
    for value, factor in zip(found, factors, strict=True):
        np.testing.assert_array_equal(value.ravel(), np.asarray(factor) * found[0].ravel())
    assert np.signbit(found[2]).tolist() != np.signbit(found[3]).tolist()


# ---- failures


def test_runs_that_are_not_finite_are_counted():
    result = ensemble(sometimes_nan, KEY, [0.0, 0.3, 1.1], runs=40, batch=16)
    x = result.values["y"][..., 0]
    np.testing.assert_array_equal(result.failed, x < np.array([[0.0], [0.3], [1.1]]))
    assert 0 < result.failed[1].sum() < 40
    assert result.failed[2].all()
    good = x[1][~result.failed[1]]
    np.testing.assert_allclose(result.mean("x")[1], good.mean(), rtol=MACHINE)
    np.testing.assert_allclose(result.stderr("y")[1], np.full(2, good.std(ddof=1) / np.sqrt(good.size)), rtol=MACHINE)
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


# ---- the front door


def test_progress_is_for_terminals(capfd, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    monkeypatch.setattr(progress_module, "PATIENCE", 0.0)
    run(POINTS, runs=2, label="throws")
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    ensemble(raises_above, KEY, [2.0] * 50, runs=2, label="throws")
    assert "throws" in capfd.readouterr().err
    monkeypatch.setattr(progress_module, "PATIENCE", 60.0)
    run(POINTS, runs=2, label="throws")
    assert capfd.readouterr() == ("", "")


def arguments(**changes):
    good = {"function": smooth, "key": KEY, "parameters": POINTS, "runs": 2}
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
