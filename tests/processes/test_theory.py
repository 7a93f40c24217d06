"""The closures, their algebra and what they give, against brute force, enumeration and honest draws."""

import functools
import itertools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tinygp import kernels

from quenched.core.types import InputError
from quenched.processes import Cavity, Empirical, GaussianProcess, Variational, measure, theory
from quenched.processes.kernels import numbers_of
from quenched.processes.theory import crossings, trust
from quenched.processes.theory.closures import counts_of
from quenched.processes.theory.curve import Reference, Solver, estimates_632
from quenched.processes.theory.responses import Exact
from quenched.processes.theory.state import measures_of, solve
from tests import programs
from tests.processes import cases
from tests.tolerances import ALGEBRA, DIGITS

DIGITS_4 = 6e-5
"""Check values are printed to four digits after the point."""
GRADIENT = 1e-5
"""Automatic against central finite differences, relative."""


def brute_force(K, y, s2, mu, closure):
    """Plain iteration with dense inverses: nothing in common with the package but the equations of the note."""
    s = np.arange(200)
    p = stats.poisson.pmf(s, mu)
    g = np.diagonal(K).copy()
    for _ in range(3000):
        if closure == "variational":
            u = mu / (s2 + g)
            c = mu * (g / (s2 + g)) ** 2
            keep = 1 - u * g
        else:
            gc = g.copy()
            for _ in range(200):
                gc = gc * g / (gc * np.sum(p / (1 + np.outer(gc, s) / s2), axis=1))
            a1 = np.sum(p / (1 + np.outer(gc, s) / s2), axis=1)
            a2 = np.sum(p / (1 + np.outer(gc, s) / s2) ** 2, axis=1)
            u, c, keep = 1 / g - 1 / gc, 1 - a1**2 / a2, g / gc
        G = np.linalg.inv(np.linalg.inv(K) + np.diag(u))
        if np.max(np.abs(np.diagonal(G) - g)) < 1e-15:
            break
        g = np.diagonal(G).copy()
    M = (G / g) ** 2 * c
    R = G @ (u * y)
    b = R - y
    V = np.linalg.solve(np.eye(len(y)) - M, M @ b**2)
    eps = b**2 + V
    return {"g": g, "mean": R, "spread": V, "error": eps, "oob_variance": g / keep, "oob_mean": y + b / keep,
            "oob_error": eps * (1 - c) / keep**2}  # fmt: skip


@pytest.mark.parametrize(("name", "closure"), [("variational", Variational()), ("cavity", Cavity())])
def test_five_rows_by_brute_force(name, closure):
    n, _ = numbers_of(*cases.five())
    for mu in (0.2, 1.0, 3.0):
        want = brute_force(np.asarray(n.K), np.asarray(n.y), 0.2, mu, name)
        found, _ = solve(Exact(n.K), n.y, n.s2, counts_of(mu), closure, np.diagonal(n.K))
        for quantity, value in want.items():
            np.testing.assert_allclose(getattr(found, quantity), value, rtol=ALGEBRA, atol=ALGEBRA, err_msg=quantity)


def test_cavity_is_exact_for_one_row():
    K, y, s2, mu = 1.0, 0.7, 0.01, 1.0
    s = np.arange(60)
    p = stats.poisson.pmf(s, mu)
    variance, prediction = 1 / (1 / K + s / s2), (s / s2) / (1 / K + s / s2) * y
    found = _one_row(Cavity(), K, y, s2, mu)
    assert found.g[0] == pytest.approx(p @ variance, rel=1e-12)
    assert found.g[0] == pytest.approx(0.373, abs=6e-4)
    assert found.mean[0] == pytest.approx(p @ prediction, rel=1e-12)
    assert found.error[0] == pytest.approx(p @ (prediction - y) ** 2, rel=1e-12)
    assert found.spread[0] == pytest.approx(p @ prediction**2 - (p @ prediction) ** 2, rel=1e-10)
    assert found.oob_variance[0] == pytest.approx(K, rel=1e-12)
    assert found.oob_error[0] == pytest.approx(y**2, rel=1e-12)
    assert _one_row(Variational(), K, y, s2, mu).g[0] == pytest.approx(0.095, abs=6e-4)


def _one_row(closure, K, y, s2, mu):
    return solve(Exact(np.array([[K]])), np.array([y]), s2, counts_of(mu), closure, np.array([K]))[0]


@pytest.fixture(scope="module")
def boston_curves():
    law, rule = cases.boston()
    return {
        type(closure).__name__: theory.curve(law, rule, examples=[200, 506], closure=closure)
        for closure in (Variational(), Cavity())
    }


@functools.cache
def boston_state(m):
    """The cavity closure alone, on the host."""
    n, _ = numbers_of(*cases.boston())
    return measures_of(solve(Exact(n.K), n.y, n.s2, counts_of(m / 506), Cavity(), np.diagonal(n.K))[0], n.y, n.s2)


def test_check_values(boston_curves):
    paper, cavity = boston_curves["Variational"].sel(examples=200), boston_state(200)
    assert float(paper.posterior_variance) == pytest.approx(0.02974, abs=DIGITS)
    assert float(paper.error) == pytest.approx(0.1280, abs=DIGITS_4)
    assert float(cavity.posterior_variance) == pytest.approx(0.03422, abs=DIGITS)
    assert float(cavity.error) == pytest.approx(0.1486, abs=DIGITS_4)
    alone, whole = boston_state(506), boston_curves["Cavity"].sel(examples=506)
    assert float(alone.oob_error) == pytest.approx(0.1558, abs=DIGITS_4)
    np.testing.assert_allclose(alone.multiplicity_error, [0.1558, 0.0325, 0.0176, 0.0115], atol=DIGITS_4)
    assert whole.attrs["leave_one_out"] == pytest.approx(0.12513, abs=DIGITS)
    assert whole.attrs["training_error"] == pytest.approx(0.03333, abs=DIGITS)
    assert float(whole.error_632) == pytest.approx(0.368 * 0.03333 + 0.632 * float(whole.oob_error), abs=1e-5)
    assert float(whole.oob_rmse) == pytest.approx(np.sqrt(84.419556 * float(whole.oob_error)), rel=1e-6)


def test_oversampling_is_no_new_information():
    # Erratum: eps falls towards 0 with repeats while the out-of-bag error rises.
    assert float(boston_state(4000).error) == pytest.approx(0.0184, abs=DIGITS_4)
    np.testing.assert_allclose([boston_state(m).oob_error for m in (1600, 4000)], [0.1440, 0.1598], atol=DIGITS_4)


def test_632_plus():
    known = theory_reference(training=0.1, no_information=1.5)
    plain, plus = estimates_632(np.array([0.1, 0.8, 2.0]), known)
    np.testing.assert_allclose(plain, [0.1, 0.5424, 1.3008])
    overfit = 0.7 / 1.4
    weight = 0.632 / (1 - 0.368 * overfit)
    np.testing.assert_allclose(plus, [0.1, (1 - weight) * 0.1 + weight * 0.8, 1.5])


def theory_reference(training, no_information):
    return Reference(training, 0.0, no_information, np.zeros(1))


def test_reference_is_refitting():
    law, rule = cases.diabetes(rows=40)
    n, _ = numbers_of(law, rule)
    K, y, s2 = (np.asarray(x) for x in n)
    known = Solver(law, rule).reference
    for i in (0, 17, 39):
        rest = np.arange(40) != i
        prediction = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + s2 * np.eye(39), y[rest])
        assert known.residuals[i] == pytest.approx(y[i] - prediction, rel=1e-10)
    f = K @ np.linalg.solve(K + s2 * np.eye(40), y)
    assert known.training_error == pytest.approx(np.mean((y - f) ** 2), rel=1e-10)
    assert known.no_information == pytest.approx(np.mean((y[:, None] - f) ** 2), rel=1e-10)


@functools.partial(programs.compiled, static_argnames="closure")
def _slope(K, s2, mu, g, closure):
    """The Jacobian of the fixed-point map, by automatic differentiation."""
    return jax.jacfwd(lambda g: Exact(K).respond(closure.site(g, counts_of(mu), s2).u).diagonal())(g)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 2.0), st.floats(0.05, 8.0), st.booleans())
def test_theorems(seed, s2, mu, cavity):
    """Positivity, c <= q < 1, contraction, and that the Jacobian of the fixed-point map is M."""
    draw = np.random.default_rng(seed)
    A = draw.normal(size=(8, 10))
    closure = Cavity() if cavity else Variational()
    K, y = A @ A.T / 10 + 1e-6 * np.eye(8), draw.normal(size=8)
    prior = np.diagonal(K)
    found, response = solve(Exact(K), y, s2, counts_of(mu), closure, prior)
    site = closure.site(found.g, counts_of(mu), s2)
    M = response.G**2 * site.w
    with jax.enable_x64(True):
        np.testing.assert_allclose(M, _slope(K, s2, mu, found.g, closure), rtol=1e-6, atol=1e-9)
    assert found.residual < 1e-8
    assert np.all((found.g > 0) & (found.g <= prior + 1e-12))
    assert np.all(found.spread >= 0)
    q, c = 1 - site.keep, site.w * found.g**2
    assert np.all((c >= 0) & (c <= q + 1e-12) & (q < 1))
    assert np.max(np.abs(np.linalg.eigvals(M))) < 1
    assert np.all(found.oob_error >= found.error * (1 - 1e-9))


def test_errors_scale_with_the_square_of_the_target():
    law, rule = cases.five()
    one = theory.curve(law, rule, examples=[3])
    kept = Empirical(law.inputs, 3 * np.asarray(law.targets), *(3 * x for x in law.units()))
    larger = Empirical(law.inputs, 3 * np.asarray(law.targets), 3 * law.units()[0], law.units()[1])
    same, nine = theory.curve(kept, rule, examples=[3]), theory.curve(larger, rule, examples=[3])
    np.testing.assert_allclose(same.oob_error, one.oob_error, rtol=1e-12)
    np.testing.assert_allclose(nine.oob_error, 9 * one.oob_error, rtol=1e-10)
    np.testing.assert_allclose(nine.posterior_variance, one.posterior_variance, rtol=1e-12)
    np.testing.assert_allclose(same.oob_rmse, 3 * one.oob_rmse, rtol=1e-12)


# ---- derivatives


@pytest.mark.parametrize("closure", [Cavity(), Variational()])
def test_gradients(double, closure):
    law, _ = cases.diabetes(rows=60)
    lengths = np.linspace(3.0, 9.0, 10)

    def oob(parameters):
        lengths, amplitude, noise, examples, shift = parameters
        scaled = Empirical(jnp.asarray(law.inputs) / lengths, jnp.asarray(law.targets) * (1 + shift), 0.0, 100.0)
        return theory.state(
            scaled, GaussianProcess(amplitude * kernels.ExpSquared(1.0), noise), examples, closure
        ).oob_error

    start = (jnp.asarray(lengths), jnp.asarray(1.2), jnp.asarray(0.05), jnp.asarray(45.0), jnp.asarray(0.0))
    flat, back = jax.flatten_util.ravel_pytree(start)
    flat = np.asarray(flat)
    both = programs.compiled(jax.value_and_grad(lambda x: oob(back(x))))  # one program for values and slopes
    slope = np.asarray(both(flat)[1])

    def function(x):
        return float(both(x)[0])

    for k in range(flat.size):
        h = 1e-4 * max(float(flat[k]), 1.0)
        e = np.eye(flat.size)[k] * h
        five_point = (
            8 * (function(flat + e) - function(flat - e)) - function(flat + 2 * e) + function(flat - 2 * e)
        ) / (12 * h)
        assert float(slope[k]) == pytest.approx(float(five_point), rel=GRADIENT, abs=1e-9), k


def test_state_asks_for_double_precision():
    with pytest.raises(InputError, match="double precision"):
        theory.state(*cases.five(), 3.0)


@pytest.mark.parametrize("closure", [Cavity(), Variational()])
def test_state_is_the_curve_before_anything_is_added(double, monkeypatch, closure):
    monkeypatch.setattr(crossings, "LARGEST", 0)
    law, rule = cases.five()
    one, many = (
        programs.compiled(theory.state)(law, rule, 4.0, closure),
        theory.curve(law, rule, examples=[2, 4], closure=closure),
    )
    for name, value in one._asdict().items():
        if name not in ("outcome", "residual"):
            np.testing.assert_allclose(many[name].sel(examples=4), value, rtol=1e-9, err_msg=name)


# ---- the self-check


def test_clusters_of_all_rows_are_resampling(monkeypatch):
    """With all other rows in the cluster the check is the exact average over Poisson counts, by enumeration."""
    law, rule = cases.five()
    n, _ = numbers_of(law, rule)
    K, y, s2, mu = np.asarray(n.K), np.asarray(n.y), 0.2, 0.6
    errors, variances = np.zeros(5), np.zeros(5)
    for i in range(5):
        rest = [j for j in range(5) if j != i]
        for s in itertools.product(range(7), repeat=4):
            p, bag = np.prod(stats.poisson.pmf(s, mu)), [j for j, k in zip(rest, s, strict=True) if k]
            A = K[np.ix_(bag, bag)] + np.diag([s2 / k for k in s if k])
            a = np.linalg.solve(A, K[bag, i]) if bag else np.zeros(0)
            errors[i] += p * (y[i] - a @ y[bag]) ** 2
            variances[i] += p * (K[i, i] - a @ K[bag, i])
    monkeypatch.setattr(trust, "DRAWS", 2**16)
    trust._latin.cache_clear()
    found, response = solve(Exact(n.K), n.y, n.s2, counts_of(mu), Cavity(), np.diagonal(n.K))
    check = trust.check_clusters(found, response, n.y, n.s2, counts_of(mu))
    trust._latin.cache_clear()
    assert float((1 + check.oob_error) * found.oob_error.mean()) == pytest.approx(errors.mean(), rel=3e-3)
    assert float((1 + check.oob_variance) * found.oob_variance.mean()) == pytest.approx(variances.mean(), rel=3e-3)
    assert abs(float(check.oob_error)) > 0.01  # five rows are few: here the closure by itself is off


# ---- against honest draws


@pytest.fixture(scope="module")
def honest():
    """Draws at m = N: the paper's Boston, and Abalone with 1000 rows."""
    return {
        "boston": measure(*cases.boston(), examples=[506], runs=8, key=jax.random.key(1)),
        "abalone": measure(*cases.abalone(1000), examples=[1000], runs=8, key=jax.random.key(2)),
    }


def test_boston_is_within_8_percent(boston_curves, honest):
    _close(boston_curves["Cavity"].sel(examples=[506]), honest["boston"], 0.08)
    paper = boston_curves["Variational"].sel(examples=[506])
    assert float(paper.posterior_variance[0]) < 0.65 * float(honest["boston"].posterior_variance[0])  # 39% too low
    assert not bool(boston_curves["Cavity"].trusted.sel(examples=506))


def test_abalone_is_within_1_percent(honest):
    curve = theory.curve(*cases.abalone(1000), examples=[1000])
    _close(curve, honest["abalone"], 0.01)
    assert bool(curve.trusted[0])
    for name in ("absolute_error", "oob_absolute_error", "coverage", "oob_coverage"):
        assert float(curve[name][0]) == pytest.approx(float(honest["abalone"][name][0]), rel=0.01), name
    for name in ("mean", "spread"):
        a, b = curve[name].values[0], honest["abalone"][name].values[0]
        assert np.corrcoef(a, b)[0, 1] > 0.9, name
    np.testing.assert_allclose(curve.multiplicity_error, honest["abalone"].multiplicity_error, rtol=0.05)


def _close(curve, points, tolerance):
    for name in ("posterior_variance", "error", "oob_error"):
        allowed = tolerance * float(points[name][0]) + 3 * float(points[f"{name}_stderr"][0])
        assert 3 * float(points[f"{name}_stderr"][0]) < 0.5 * tolerance * float(points[name][0]), name
        assert abs(float(curve[name][0]) - float(points[name][0])) < allowed, name


# ---- bad input


def test_bad_input():
    law, rule = cases.five()
    for examples in (0, -3, [5, 2], [], np.nan):
        with pytest.raises(InputError, match="examples"):
            theory.curve(law, rule, examples=examples)
    with pytest.raises(InputError, match="noise"):
        GaussianProcess(kernels.ExpSquared(1.0), noise=0.0)
    with pytest.raises(InputError, match="finite"):
        Empirical([[1.0], [np.nan]], [1.0, 2.0])
    with pytest.raises(InputError, match="vary"):
        Empirical([1.0, 2.0], [1.0, 1.0])
    with pytest.raises(InputError, match="square"):
        GaussianProcess(np.ones((2, 3)), 0.1)
    with pytest.raises(InputError, match="symmetric"):
        GaussianProcess(np.array([[1.0, 0.5], [0.2, 1.0]]), 0.1)
    for rank, sweep in ((None, {}), (2, {}), (2, {"kernel": [np.eye(6)] * 2})):
        with pytest.raises(InputError, match="5 x 5"):
            theory.curve(law, GaussianProcess(np.eye(5 if sweep else 3), 0.1), examples=3, rank=rank, **sweep)
    with pytest.raises(InputError, match="rank"):
        theory.curve(law, rule, examples=3, rank=0)


def test_jitter_is_reported_and_refused_beyond_a_limit():
    law, _ = cases.five()
    nearly = np.ones((5, 5)) - 1e-9 * np.diag([1.0, 0, 0, 0, 0])
    curve = theory.curve(law, GaussianProcess(nearly, 0.1), examples=3)
    assert 0 < curve.attrs["jitter"] <= 1e-6
    assert np.isfinite(float(curve.oob_error))
    bad = np.ones((5, 5)) - 0.5 * np.eye(5)
    for rank in (None, 3):
        with pytest.raises(InputError, match="positive definite"):
            theory.curve(law, GaussianProcess(bad, 0.1), examples=3, rank=rank)


def test_a_kernel_may_be_a_function():
    law, rule = cases.five()

    def squared_exponential(X1, X2=None):
        return jnp.ones(len(X1)) if X2 is None else jnp.exp(-((X1[:, None] - X2) ** 2) / (2 * 0.8**2))

    found = theory.curve(law, GaussianProcess(squared_exponential, rule.noise), examples=3)
    np.testing.assert_allclose(found.oob_error, theory.curve(law, rule, examples=3).oob_error, rtol=1e-10)
    assert "squared_exponential" in found.attrs["rule"]


def test_sweeps_are_loops():
    law, rule = cases.five()
    swept = theory.curve(law, rule, examples=[2, 4], noise=[0.1, 0.3])
    assert swept.oob_error.dims == ("noise", "examples")
    alone = theory.curve(law, GaussianProcess(rule.kernel, 0.3), examples=[2, 4])
    np.testing.assert_allclose(swept.oob_error.sel(noise=0.3), alone.oob_error, rtol=1e-10)
    assert theory.curve(law, rule, examples=3).oob_error.dims == ()
