"""The continuation of the learning curve: identities, exact algebra, and real subsampling."""

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

from quenched.processes.theory import continuation as c
from tests.tolerances import ALGEBRA, SAME

LOW_RANK = 1e-6
"""Eigenvalues of F'F carry rounding errors of 1e-16 of the largest, so small ones are known to 1e-6 of the noise."""
MEAN_FIELD = 0.02
"""The mean-field answer for a finite table, against its subsampling, on top of sampling error."""


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices: two threads for each only wait for each other."""
    with threadpoolctl.threadpool_limits(1):
        yield


def table(N=120, d=3, noise=0.3, seed=0, length=0.8):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(N, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + noise * draw.normal(size=N)
    y = (y - y.mean()) / y.std()
    return X, kernel(X, X, length), y


def kernel(X, Z, length=0.8):
    return np.exp(-0.5 * ((X[:, None] - Z[None]) ** 2).sum(-1) / length**2)


def test_at_all_rows_it_is_generalised_cross_validation():
    _, K, y = table()
    s2 = 0.2
    known = c.modes_of_matrix(K, y).spectrum
    A = np.linalg.inv(K + s2 * np.eye(len(y)))
    expected = len(y) * (y @ A @ A @ y) / np.trace(A) ** 2
    assert c.find_state(known, s2).error(len(y)) == pytest.approx(expected, rel=ALGEBRA)
    at = c.continue_curve(known, s2, np.array([float(len(y))]))
    assert at.gcv[0] == pytest.approx(expected, rel=ALGEBRA)
    assert at.delta[0] == s2
    assert not at.extended[0]


def test_traces_are_those_of_the_matrix():
    _, K, y = table()
    delta = np.array([0.05, 0.7])
    found = c.find_state(c.modes_of_matrix(K, y).spectrum, delta)
    for k, d in enumerate(delta):
        A = np.linalg.inv(K + d * np.eye(len(y)))
        T1, T2, q = np.trace(A), np.trace(A @ A), y @ A @ A @ y
        expected = 1 / T1, len(y) - d * T1, len(y) - T1**2 / T2, q / T2
        np.testing.assert_allclose([x[k] for x in found], expected, rtol=ALGEBRA)


@settings(max_examples=40, deadline=None)
@given(mu=st.floats(0.02, 10), s2=st.floats(1e-3, 3), length=st.floats(0.3, 3), seed=st.integers(0, 5))
def test_the_effective_ridge_is_that_of_the_asked_size(mu, s2, length, seed):
    """m kappa = s2 + kappa df1, and E = B / (1 - df2/m), for every size; the curve falls in kappa."""
    _, K, y = table(N=40, seed=seed, length=length)
    known = c.modes_of_matrix(K, y).spectrum
    m = max(mu * 40, 1.0)
    at = c.continue_curve(known, s2, np.array([m]))
    kappa, df1, df2, B = (x[0] for x in at.state)
    assert m * kappa == pytest.approx(s2 + kappa * df1, rel=1e-8)
    assert 0 <= df2 <= df1 * (1 + 1e-9) < m
    assert at.gcv[0] == pytest.approx(B / (1 - df2 / m), rel=1e-12)
    assert at.gcv[0] > 0
    if not at.extended[0]:
        assert at.gcv[0] == pytest.approx(c.find_state(known, at.delta[0]).error(m), rel=1e-8)
        assert df1 == pytest.approx(c.find_state(known, at.delta[0]).df1, abs=1e-8)


def test_a_longer_way_is_the_same_way():
    """From N with s2 to (N, delta) and from there to another size gives what one step gives."""
    _, K, y = table()
    known = c.modes_of_matrix(K, y).spectrum
    N, s2 = len(y), 0.3
    twice = c.find_ridge(known, s2, 2 * N)
    kappa = c.find_state(known, twice).kappa
    assert 2 * N * kappa == pytest.approx(s2 + kappa * c.find_state(known, twice).df1, rel=ALGEBRA)
    half = c.find_ridge(known, s2, N / 2)
    assert twice < s2 < half


def test_low_rank_factor_gives_the_same():
    draw = np.random.default_rng(1)
    F = draw.normal(size=(150, 12)) * 0.7 ** np.arange(12)
    y = F @ draw.normal(size=12) + 0.3 * draw.normal(size=150)
    thin, dense = c.modes_of_factor(F, y), c.modes_of_matrix(F @ F.T, y)
    assert thin.spectrum.dims.tolist() == dense.spectrum.dims.tolist() == [138] + [1] * 12
    np.testing.assert_allclose(thin.spectrum.lam, dense.spectrum.lam, rtol=1e-9)
    np.testing.assert_allclose(thin.spectrum.p[1:], dense.spectrum.p[1:], rtol=LOW_RANK)
    assert thin.spectrum.p[0] == pytest.approx(dense.spectrum.p[0], rel=1e-9)
    sizes, groups = np.array([20.0, 150.0, 900.0]), np.arange(150) % 10
    one, two = (c.continue_curve(known.spectrum, 0.1, sizes).gcv for known in (thin, dense))
    np.testing.assert_allclose(one, two, rtol=SAME)
    for name in c.LeftOut._fields:
        np.testing.assert_allclose(getattr(c.leave_out(thin, 0.1), name), getattr(c.leave_out(dense, 0.1), name),
                                   rtol=1e-7, atol=1e-10)  # fmt: skip
    A = np.linalg.inv(F @ F.T + 0.1 * np.eye(150))  # all in one, by the plain inverse
    np.testing.assert_allclose(c.leave_out(thin, 0.1).residual, (A @ y) / np.diagonal(A), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(c.leave_out(thin, 0.1).square, np.diagonal(A @ A), rtol=1e-7)
    np.testing.assert_allclose(c.shape_error(thin, 0.1, sizes, groups), c.shape_error(dense, 0.1, sizes, groups),
                               rtol=1e-6, atol=1e-12)  # fmt: skip


def test_leaving_out_is_refitting():
    _, K, y = table(N=40)
    s2 = 0.2
    left = c.leave_out(c.modes_of_matrix(K, y), s2)
    for i in range(40):
        rest = np.arange(40) != i
        predicted = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + s2 * np.eye(39), y[rest])
        assert left.residual[i] == pytest.approx(y[i] - predicted, abs=ALGEBRA)
    A = np.linalg.inv(K + s2 * np.eye(40))
    np.testing.assert_allclose(left.training, y - K @ A @ y, atol=ALGEBRA)
    np.testing.assert_allclose(left.square, np.diagonal(A @ A), rtol=1e-9)


def test_without_rows_is_the_smaller_table():
    _, K, y = table(length=2.5)
    rows = np.arange(0, 120, 7)
    rest = np.setdiff1d(np.arange(120), rows)
    fast, plain = (
        c.remove_rows(c.modes_of_matrix(K, y), 0.1, rows),
        c.modes_of_matrix(K[np.ix_(rest, rest)], y[rest]).spectrum,
    )
    sizes = np.array([30.0, 103.0, 240.0, 1200.0])
    np.testing.assert_allclose(
        c.continue_curve(fast, 0.1, sizes).gcv, c.continue_curve(plain, 0.1, sizes).gcv, rtol=1e-4
    )


def test_jackknife_is_that_of_the_smaller_tables():
    _, K, y = table()
    groups, sizes, N = np.arange(120) % 10, np.array([60.0, 480.0]), 120
    logs = []
    for g in range(10):
        rest = groups != g
        at = c.continue_curve(c.modes_of_matrix(K[np.ix_(rest, rest)], y[rest]).spectrum, 0.2, np.append(sizes, N)).gcv
        logs.append(np.log(at[:-1] / at[-1]))
    expected = np.sqrt(9 / 10 * ((np.array(logs) - np.mean(logs, axis=0)) ** 2).sum(0))
    np.testing.assert_allclose(c.shape_error(c.modes_of_matrix(K, y), 0.2, sizes, groups), expected, rtol=1e-4)
    assert c.shape_error(c.modes_of_matrix(K, y), 0.2, np.array([120.0]), groups)[0] == pytest.approx(0, abs=1e-12)


def test_level_error_is_the_spread_of_leave_one_out():
    """For targets that are noise the formula is the spread of y' A^-2 y, and leave-one-out spreads alike."""
    _, K, y = table(N=150)
    s2, draw = 0.3, np.random.default_rng(3)
    known = c.modes_of_matrix(K, y)
    plain = c.leave_out(known, s2)
    normal = c.level_error(known, s2, plain._replace(residual=np.array([-1.0, 1.0])))  # no excess kurtosis
    heavy = c.level_error(known, s2, plain._replace(residual=draw.laplace(size=100_000)))
    for expected, noise in ((normal, draw.normal), (heavy, draw.laplace)):
        logs = [np.log(c.leave_out(known._replace(y=noise(size=150)), s2).error) for _ in range(600)]
        assert expected == pytest.approx(np.std(logs), rel=0.1)  # over three standard errors of a spread
    assert heavy > 1.4 * normal


def subsampled(K, y, s2, m, draw, draws=300):
    """The error of m rows without repeats on those outside, and its relative standard error."""
    errors = []
    for _ in range(draws):
        order = draw.permutation(len(y))
        train, test = order[:m], order[m:]
        alpha = np.linalg.solve(K[np.ix_(train, train)] + s2 * np.eye(m), y[train])
        errors.append(np.mean((y[test] - K[np.ix_(test, train)] @ alpha) ** 2))
    return np.mean(errors), np.std(errors) / np.sqrt(draws) / np.mean(errors)


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_below_all_rows_it_is_subsampling_without_repeats(share):
    """Rows that are alike (uniform in a box): averages over rows are enough."""
    draw, N, s2 = np.random.default_rng(7), 240, 0.16
    X, y = known_teacher(N, draw)
    known = c.modes_of_matrix(kernel(X, X), y)
    m = round(share * N)
    at = c.continue_curve(known.spectrum, s2, np.array([m, N]))
    forecast = c.leave_out(known, s2).error * at.gcv[0] / at.gcv[1]
    truth, sampling = subsampled(kernel(X, X), y, s2, m, draw)
    assert forecast == pytest.approx(truth, rel=MEAN_FIELD + 3 * sampling)


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_below_all_rows_the_shape_is_that_of_leave_one_out(share):
    """Rows that are not alike (normal in three dimensions, some far out): their own residuals are needed."""
    _, K, y = table(N=240, length=1.5)
    N, s2, draw = 240, 0.15, np.random.default_rng(7)
    m = round(share * N)
    known = c.modes_of_matrix(K, y)
    at = c.continue_curve(known.spectrum, s2, np.array([m, N]))
    average = c.leave_out(known, s2).error * at.gcv[0] / at.gcv[1]
    truth, sampling = subsampled(K, y, s2, m, draw)
    assert average * np.exp(c.shape_gap(known, s2, at)[0]) == pytest.approx(truth, rel=MEAN_FIELD + 3 * sampling)
    assert average > truth * (1 + MEAN_FIELD)  # what the average alone would say


def known_teacher(N, draw, length=1.0, noise=0.4):
    X = draw.uniform(-1.7, 1.7, size=(N, 2))
    return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + noise * draw.normal(size=N)


@pytest.mark.parametrize("many", [2, 4])
def test_beyond_all_rows_it_is_fresh_data(many):
    """Means over 30 tables, from each of which the error at more rows is forecast: level and shape both."""
    draw, N, s2 = np.random.default_rng(5), 80, 0.16
    forecasts, shapes, truths, present = [], [], [], []
    for _ in range(30):
        X, y = known_teacher(N, draw)
        known = c.modes_of_matrix(kernel(X, X), y)
        at = c.continue_curve(known.spectrum, s2, np.array([many * N, N]))
        shapes.append(at.gcv[0] / at.gcv[1])
        forecasts.append(c.leave_out(known, s2).error * shapes[-1])
        Z, t = known_teacher(2000, draw)
        for m, errors in ((many * N, truths), (N, present)):
            X, y = known_teacher(m, draw)
            alpha = np.linalg.solve(kernel(X, X) + s2 * np.eye(m), y)
            errors.append(np.mean((t - kernel(Z, X) @ alpha) ** 2))
    sampling = np.std(forecasts) / np.sqrt(30) / np.mean(forecasts)
    assert np.mean(forecasts) == pytest.approx(np.mean(truths), rel=3 * sampling)
    assert sampling < 0.04
    assert np.mean(shapes) == pytest.approx(np.mean(truths) / np.mean(present), rel=0.03)


def test_extension_is_marked_and_joins_smoothly():
    """A rough kernel at low noise: the table cannot show what ten times the rows would do."""
    draw = np.random.default_rng(2)
    x = np.sort(draw.uniform(0, 1, 200))
    K = np.exp(-np.abs(x[:, None] - x[None]) / 0.3)
    y = np.linalg.cholesky(K + 1e-9 * np.eye(200)) @ draw.normal(size=200) + 0.1 * draw.normal(size=200)
    sizes = np.geomspace(100, 2000, 80)
    at = c.continue_curve(c.modes_of_matrix(K, y).spectrum, 0.01, sizes)
    assert at.extended.any()
    assert not at.extended[sizes <= 200].any()
    assert np.all(np.diff(at.extended.astype(int)) >= 0)  # once extended, always
    jumps = np.abs(np.diff(np.log(at.gcv)))
    assert jumps.max() < 0.1
    assert np.all(np.isnan(at.delta) == at.extended)
    assert np.all(np.diff(at.state.kappa) < 0)
    gap = c.shape_gap(c.modes_of_matrix(K, y), 0.01, at)
    assert np.all(np.isfinite(gap))
    assert np.ptp(gap[at.extended]) == 0


def test_no_root_is_extended():
    draw = np.random.default_rng(4)
    known = c.Spectrum(np.full(50, 1.0), draw.normal(size=50) ** 2, np.ones(50))
    assert np.isnan(c.find_ridge(known, 0.01, 100.0))
    assert c.continue_curve(known, 0.01, np.array([100.0])).extended[0]
