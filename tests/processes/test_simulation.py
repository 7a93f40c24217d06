"""The simulation against brute force: rows duplicated, systems of m x m, every row left out by refitting."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes
from tinygp import kernels

from quenched.core.ensemble import Executor
from quenched.core.types import InputError
from quenched.processes import fit
from quenched.processes.kernels import numbers_of
from quenched.processes.model import (
    LEVEL,
    MEASURES,
    Empirical,
    FixedTotal,
    GaussianProcess,
    PoissonTotal,
)
from quenched.processes.simulation.measure import LatinHypercube, Plain, draw_counts, measure, stratified
from tests.processes import cases
from tests.tolerances import SAME

DEVIATIONS = 4.0
"""Standard errors; keys are fixed, so what passes once passes always."""
SIZES = np.array([6.0, 12.0, 30.0])


def table(rows):
    X, y = load_diabetes(return_X_y=True)
    X = X[:rows, [2, 3, 8]]
    return Empirical(X / X.std(axis=0), y[:rows])


POISSON = PoissonTotal()
LAW = table(12)
RULE = GaussianProcess(1.3 * kernels.ExpSquared(2.0), noise=0.05)


def gp(K, y, s2, rows):
    """Mean and variance at all rows after training on the listed rows, repeats and all."""
    k = K[rows]
    A = K[np.ix_(rows, rows)] + s2 * np.eye(len(rows))
    return k.T @ np.linalg.solve(A, y[rows]), np.diagonal(K) - np.sum(k * np.linalg.solve(A, k), axis=0)


def brute(K, y, s2, s):
    """Residuals and variances of every row, and the same without its copies: each `[N]`."""
    rows = np.repeat(np.arange(len(y)), s)
    mean, variance = gp(K, y, s2, rows)
    without = [gp(K, y, s2, rows[rows != i]) for i in range(len(y))]
    oob = [(y[i] - without[i][0][i], without[i][1][i]) for i in range(len(y))]
    return y - mean, np.array([o[0] for o in oob]), variance, np.array([o[1] for o in oob])


def wanted(K, y, s2, s):
    """All measures of runs with the counts `[runs, draws, N]`: each `[runs, ...]`, or `[...]` for those of all runs."""
    e, o, v, ov = np.moveaxis([[brute(K, y, s2, draw) for draw in run] for run in s], 2, 0)
    z = stats.norm.ppf((1 + LEVEL) / 2)
    each = {
        "posterior_variance": v.mean((1, 2)),
        "oob_variance": ov.mean((1, 2)),
        "error": (e**2).mean((1, 2)),
        "oob_error": (o**2).mean((1, 2)),
        "absolute_error": np.abs(e).mean((1, 2)),
        "oob_absolute_error": np.abs(o).mean((1, 2)),
        "coverage": (np.abs(e) < z * np.sqrt(v + s2)).mean((1, 2)),
        "oob_coverage": (np.abs(o) < z * np.sqrt(ov + s2)).mean((1, 2)),
        "mean": (y - e).mean(1),
        "point_variance": v.mean(1),
        "point_error": (e**2).mean(1),
        "point_oob_error": (o**2).mean(1),
    }
    together = {
        "multiplicity_error": np.array([np.mean(e[s == k] ** 2) if np.any(s == k) else np.nan for k in range(4)]),
    }
    together["oob_error_counted"] = together["multiplicity_error"][0]
    f = y - e
    block = f.mean(1)
    # E f^2 - (E f)^2, with the variance of the mean over runs added back
    together["spread"] = (f**2).mean((0, 1)) - block.mean(0) ** 2 + block.var(0, ddof=1) / len(block)
    return each, together


def counts(simulator, key, runs, total=POISSON):
    """The counts `[runs, sizes, draws, N]` of the first point of a measurement."""
    with jax.enable_x64(True), jax.threefry_partitionable(True):
        n, _ = numbers_of(LAW, RULE)
        keys = [jax.random.fold_in(jax.random.fold_in(key, 0), run) for run in range(runs)]
        return np.stack([draw_counts(k, (n, SIZES), simulator, total, 30) for k in keys])


@functools.cache
def measured(simulator, runs, **options):
    return measure(LAW, RULE, examples=SIZES, runs=runs, key=jax.random.key(3), simulator=simulator, **options)


EVERY_WAY = [
    (LatinHypercube(3), PoissonTotal(), 4),
    (Plain(), PoissonTotal(), 9),
    (Plain(), FixedTotal(), 9),
    (LatinHypercube(3), FixedTotal(), 4),
]


@pytest.mark.parametrize(("simulator", "total", "runs"), EVERY_WAY)
def test_every_measure_is_that_of_brute_force(simulator, total, runs):
    result = measured(simulator, runs, total=total) if isinstance(total, FixedTotal) else measured(simulator, runs)
    (K, y, s2), _ = numbers_of(LAW, RULE)
    s = counts(simulator, jax.random.key(3), runs, total)
    assert int(result.failed) == 0
    assert result.attrs["total"] == type(total).__name__
    for k in range(len(SIZES)):
        each, together = wanted(np.asarray(K), np.asarray(y), float(s2), s[:, k])
        at = result.isel(examples=k)
        assert {*each, *together} == {*MEASURES, "oob_error_counted"}
        for name, value in each.items():
            np.testing.assert_allclose(at[f"{name}_run"].transpose("run", ...), value, rtol=SAME, atol=SAME)
            np.testing.assert_allclose(at[name], value.mean(0), rtol=SAME, atol=SAME)
            error = value.std(0, ddof=1) / np.sqrt(runs)
            np.testing.assert_allclose(at[f"{name}_stderr"], error, rtol=SAME, atol=SAME)
        for name, value in together.items():
            np.testing.assert_allclose(at[name], value, rtol=SAME, atol=SAME)


@pytest.mark.parametrize("total", [PoissonTotal(), FixedTotal()])
def test_what_is_measured_is_the_learner_that_is_shipped(total):
    """Each data set of `measure`, handed to `fit` as weights: its predictions and residuals are those measured."""
    result = measured(Plain(), 9, total=total) if isinstance(total, FixedTotal) else measured(Plain(), 9)
    _, scale = LAW.units()
    for run, sizes in enumerate(counts(Plain(), jax.random.key(3), 9, total)):
        for at, (s,) in zip(np.arange(len(SIZES)), sizes, strict=True):
            if not s.any():
                continue
            fitted, seen = fit(RULE, LAW, weights=s), result.isel(examples=at, run=run)
            mean, variance = fitted.predict(LAW.inputs)
            np.testing.assert_allclose(scale * seen.mean_run + LAW.units()[0], mean, rtol=SAME)
            np.testing.assert_allclose(scale**2 * seen.point_variance_run, variance, rtol=SAME, atol=SAME)
            np.testing.assert_allclose(seen.point_oob_error_run, fitted.leave_one_out**2, rtol=SAME, atol=SAME)
            np.testing.assert_allclose(seen.error_run, np.mean((LAW.targets - mean) ** 2) / scale**2, rtol=SAME)


def test_spread_of_independent_samples_is_their_variance():
    result = measured(Plain(), 9)
    np.testing.assert_allclose(result.spread, result.mean_run.var("run", ddof=1), rtol=SAME, atol=SAME)


@pytest.mark.parametrize(("simulator", "known"), [(LatinHypercube(3), True), (Plain(), False)])
def test_spread_of_a_single_run_is_that_of_its_block(simulator, known):
    result = measured(simulator, 1)
    (K, y, s2), _ = numbers_of(LAW, RULE)
    s = counts(simulator, jax.random.key(3), 1)[0, 1]
    f = np.array([np.asarray(y) - brute(np.asarray(K), np.asarray(y), float(s2), draw)[0] for draw in s])
    value = f.var(axis=0, ddof=1) if known else np.full(12, np.nan)
    np.testing.assert_allclose(result.spread[1], value, rtol=SAME, atol=SAME)
    assert np.all(np.isinf(result.spread_stderr))


def test_what_is_said():
    result = measured(LatinHypercube(3), 4)
    said = {"science": "processes", "source": "simulation", "simulator": "LatinHypercube", "draws": 3, "jitter": 0.0}
    assert said.items() <= result.attrs.items()
    assert {"law", "rule", "seed", "version"} <= result.attrs.keys()
    assert result.sizes == {"examples": 3, "point": 12, "multiplicity": 4, "run": 4}
    assert int(result.runs) == 4


def assert_close(result, full, atol=0.0):
    """Whatever the first has is as in the second."""
    np.testing.assert_array_equal(result.outcome, full.outcome)
    for name in result.drop_vars("outcome"):
        np.testing.assert_allclose(result[name], full[name], rtol=SAME, atol=atol, err_msg=str(name))


def test_without_variance_the_rest_is_the_same():
    result, full = measured(LatinHypercube(3), 4, variance=False), measured(LatinHypercube(3), 4)
    missing = {"posterior_variance", "oob_variance", "coverage", "oob_coverage", "point_variance"}
    assert {str(name) for name in full} - {str(name) for name in result} == {
        f"{name}{end}" for name in missing for end in ("", "_stderr", "_run")
    }
    assert_close(result, full)


def test_uniforms_of_a_row_hit_every_stratum_once(double):
    u = np.asarray(stratified(jax.random.key(0), 8, 50))
    np.testing.assert_array_equal(np.sort(np.floor(8 * u), axis=0), np.tile(np.arange(8)[:, None], (1, 50)))
    assert len({tuple(column) for column in np.floor(8 * u).T}) > 40  # in an order of its own for each row
    assert stats.kstest(np.ravel(8 * u % 1), "uniform").pvalue > 1e-4


def test_counts_are_poisson_and_grow_with_the_size():
    for simulator in (LatinHypercube(16), Plain()):
        s = counts(simulator, jax.random.key(1), 400 // simulator.draws)
        assert np.all(np.diff(s, axis=1) >= 0)
        for k, mu in enumerate(SIZES / 12):
            seen = np.bincount(np.ravel(s[:, k]), minlength=20)
            expected = stats.poisson.pmf(np.arange(20), mu) * seen.sum()
            assert np.sum((seen - expected) ** 2 / np.maximum(expected, 1)) < 60


def test_fixed_samples_have_exactly_as_many_rows():
    for simulator in (Plain(), LatinHypercube(2)):
        s = counts(simulator, jax.random.key(1), 20, FixedTotal())
        np.testing.assert_array_equal(s.sum(axis=-1), np.broadcast_to(SIZES[:, None], (20, 3, simulator.draws)))
        assert np.all(np.diff(s, axis=1) >= 0)
        assert stats.chisquare(s[:, 2].sum(axis=(0, 1))).pvalue > 1e-4  # every row is as likely as any other


@pytest.fixture(scope="module")
def same_work():
    """640 samples, by blocks and one by one."""
    law, options = table(40), {"examples": 40, "key": jax.random.key(0)}
    plain = measure(law, RULE, runs=640, simulator=Plain(), **options)
    return measure(law, RULE, runs=40, simulator=LatinHypercube(16), **options), plain


def test_blocks_are_unbiased(same_work):
    blocks, plain = same_work
    for name in [*MEASURES, "oob_error_counted"]:
        off = (blocks[name] - plain[name]) / np.hypot(blocks[f"{name}_stderr"], plain[f"{name}_stderr"])
        assert float(np.abs(off).max()) < DEVIATIONS, name


def test_blocks_have_smaller_errors(same_work):
    blocks, plain = same_work
    for name in ("posterior_variance", "error", "oob_error"):
        assert float(blocks[f"{name}_stderr"]) < 0.8 * float(plain[f"{name}_stderr"])


class Idle(Executor):
    """Has nothing to do, or complains."""

    def run(self, program, pieces):
        assert not pieces
        yield from ()


def test_a_folder_is_resumed(tmp_path):
    options = {"examples": [6, 12], "key": jax.random.key(0), "variance": False, "batch": 2}
    first = measure(LAW, RULE, runs=2, folder=tmp_path, **options)
    whole = measure(LAW, RULE, runs=4, folder=tmp_path, **options)
    again = measure(LAW, RULE, runs=4, folder=tmp_path, executor=Idle(), **options)
    np.testing.assert_array_equal(whole.oob_error_run[:, :2], first.oob_error_run)
    np.testing.assert_array_equal(whole.oob_error_run, again.oob_error_run)


def test_sizes_where_all_rows_or_none_come():
    result = measure(LAW, RULE, examples=[0.01, 1000], runs=3, key=jax.random.key(0), simulator=LatinHypercube(2))
    (K, y, _), _ = numbers_of(LAW, RULE)
    empty, full = result.isel(examples=0), result.isel(examples=1)
    assert int(result.failed) == 0
    np.testing.assert_allclose(empty.posterior_variance, np.mean(np.diagonal(K)), rtol=SAME)
    np.testing.assert_allclose(empty.oob_error, np.mean(np.asarray(y) ** 2), rtol=SAME)
    assert np.isnan(full.oob_error_counted)
    assert np.isinf(full.oob_error_counted_stderr)
    assert np.isfinite(full.oob_error)


def test_sweeps_become_dimensions():
    options = {"examples": [6, 12], "runs": 3, "key": jax.random.key(0), "variance": False, "simulator": Plain()}
    swept = measure(LAW, RULE, noise=[0.05, 0.2, 0.5], **options)
    assert swept.oob_error.dims == ("noise", "examples")
    alone = measure(LAW, RULE, noise=0.05, **options)
    np.testing.assert_allclose(swept.oob_error.isel(noise=0), alone.oob_error, rtol=SAME)
    assert float(swept.error.isel(noise=2).mean()) > float(swept.error.isel(noise=0).mean())
    kernel = measure(LAW, RULE, kernel=[RULE.kernel, kernels.ExpSquared(0.5), kernels.Constant(2.0)], **options)
    assert kernel.oob_error.dims == ("kernel", "examples")
    np.testing.assert_allclose(kernel.oob_error.isel(kernel=0), alone.oob_error, rtol=SAME)
    assert kernel.attrs["jitter"] > 0  # a constant kernel is singular


def test_check_values_of_boston():
    pytest.importorskip("mlxtend")
    points = measure(*cases.boston(), examples=[200, 506], runs=10, key=jax.random.key(0))
    checks = [
        ("posterior_variance", 0, 0.03813, 0.00034),
        ("error", 0, 0.1586, 0.0021),
        ("oob_error", 1, 0.1606, 0.0004),
    ]
    for name, k, value, error in checks:
        off = (float(points[name][k]) - value) / np.hypot(error, float(points[f"{name}_stderr"][k]))
        assert abs(off) < DEVIATIONS, name
    by_multiplicity = [0.1592, 0.0326, 0.0178, 0.0117]  # printed without errors
    np.testing.assert_allclose(points.multiplicity_error[1], by_multiplicity, rtol=0.15)


@pytest.mark.parametrize("examples", [0, -3, [0, 5], [5, 5], [10, 5], [1, np.nan], [], "many"])
def test_bad_sizes_are_refused(examples):
    with pytest.raises(InputError, match="`examples` must"):
        measure(LAW, RULE, examples=examples, runs=1, key=jax.random.key(0))


def test_bad_input_is_refused_in_one_sentence():
    options = {"key": jax.random.key(0), "runs": 1}
    with pytest.raises(InputError, match="whole numbers"):
        measure(LAW, RULE, examples=2.5, total=FixedTotal(), **options)
    with pytest.raises(InputError, match="`draws` must"):
        LatinHypercube(0)
    with pytest.raises(InputError, match="positive definite"):
        measure(LAW, GaussianProcess(np.eye(12) - 0.5, 0.1), examples=5, **options)
    with pytest.raises(InputError, match="`width` must be a field"):
        measure(LAW, RULE, examples=5, width=3.0, **options)
    with pytest.raises(InputError, match="`runs` must"):
        measure(LAW, RULE, examples=5, runs=0, key=jax.random.key(0))
