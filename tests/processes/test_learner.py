"""The learner against scikit-learn and against itself refitted."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peers
from tinygp import kernels, transforms
from tinygp.kernels.distance import L1Distance, L2Distance

from quenched.core.types import InputError
from quenched.processes.kernels import evaluate, recognise
from quenched.processes.learner import default_rule, evidence, fit, most_likely
from quenched.processes.learner.evidence import Surprise, descend
from quenched.processes.model import Empirical, GaussianProcess
from tests.tolerances import ALGEBRA, GRADIENT

PEER = 1e-8
"""The same Gaussian process by two programs, condition number about 1e3."""
MODE = 1e-2
"""Two optimisers that stopped at the same maximum, in nats."""

LENGTHS = np.array([1.0, 2.0, 0.5])


def _standard(law):
    return (law.targets - law.targets.mean()) / law.targets.std()


@pytest.fixture(scope="module")
def table():
    """50 rows of diabetes with three columns, standardised."""
    X, y = load_diabetes(return_X_y=True)
    X = X[:50, [2, 3, 8]]
    return Empirical(X / X.std(axis=0), y[:50])


@pytest.fixture(scope="module")
def rule():
    matern = kernels.Matern52(1.0, distance=L2Distance())  # tinygp's default is L1, not positive definite here
    return GaussianProcess(1.3 * transforms.Linear(1 / LENGTHS, matern), noise=0.2)


@pytest.fixture(scope="module")
def peer(table):
    kernel = peers.ConstantKernel(1.3) * peers.Matern(LENGTHS, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=0.2, optimizer=None).fit(table.inputs, _standard(table))


def test_prediction_is_that_of_scikit_learn(table, rule, peer):
    new = np.random.default_rng(0).normal(size=(30, 3))
    mean, variance = fit(rule, table).predict(new)
    centre, scale = table.units()
    wanted, spread = peer.predict(new, return_std=True)
    np.testing.assert_allclose(mean, centre + scale * wanted, rtol=PEER)
    np.testing.assert_allclose(variance, (scale * spread) ** 2, rtol=PEER)


def test_prediction_by_blocks_is_the_same(table, rule):
    fitted = fit(rule, (table.inputs, table.targets))
    new = np.tile(table.inputs, (25, 1))  # more rows than a block has
    for once, many in zip(fitted.predict(table.inputs), fitted.predict(new), strict=True):
        np.testing.assert_allclose(many, np.tile(once, 25), rtol=ALGEBRA)


def test_one_column_may_come_without_an_axis():
    x = np.linspace(0, 1, 12)
    flat, column = Empirical(x, x**2), Empirical(x[:, None], x**2)
    for rule in (GaussianProcess(kernels.ExpSquared(0.3), 0.01), default_rule(flat)):
        one, other = fit(rule, flat).predict(x + 0.1), fit(rule, column).predict(x[:, None] + 0.1)
        np.testing.assert_allclose(one, other, rtol=ALGEBRA)


def test_leave_one_out_is_refitting_without_the_row(table, rule):
    fitted = fit(rule, table)
    centre, scale = table.units()
    for i in (0, 17, 49):
        rest = np.delete(np.arange(50), i)
        without = fit(rule, Empirical(table.inputs[rest], table.targets[rest], centre=centre, scale=scale))
        mean, _ = without.predict(table.inputs[i : i + 1])
        np.testing.assert_allclose(fitted.leave_one_out[i], (table.targets[i] - mean[0]) / scale, rtol=ALGEBRA)


def test_training_error_is_that_of_the_predictions(table, rule):
    fitted = fit(rule, table)
    mean, _ = fitted.predict(table.inputs)
    assert fitted.training_error == pytest.approx(
        np.mean((mean - table.targets) ** 2) / np.var(table.targets), rel=ALGEBRA
    )


def test_evidence_is_that_of_scikit_learn(table, rule, peer):
    assert fit(rule, table).log_evidence == pytest.approx(peer.log_marginal_likelihood_value_, abs=PEER)
    assert Surprise(table, rule)(np.zeros(6))[0] == pytest.approx(-peer.log_marginal_likelihood_value_, abs=PEER)


def test_rows_with_weights_are_repeated_rows(table, rule):
    """Predictions, and for weights of 0 and 1 the evidence, are those of the table with its rows repeated."""
    weights = np.arange(50) % 3
    centre, scale = table.units()
    rows = np.repeat(np.arange(50), weights)
    part = Empirical(table.inputs[rows], table.targets[rows], centre=centre, scale=scale)
    new = np.random.default_rng(0).normal(size=(30, 3))
    for one, other in zip(fit(rule, table, weights=weights).predict(new), fit(rule, part).predict(new), strict=True):
        np.testing.assert_allclose(one, other, rtol=PEER)
    once = weights > 0
    part = Empirical(table.inputs[once], table.targets[once], centre=centre, scale=scale)
    evidence = fit(rule, part).log_evidence
    assert fit(rule, table, weights=once).log_evidence == pytest.approx(evidence, abs=ALGEBRA)
    assert Surprise(part, rule)(np.zeros(6))[0] == pytest.approx(-evidence, abs=ALGEBRA)


DEFAULT = GaussianProcess(1.3 * transforms.Linear(1 / LENGTHS, kernels.ExpSquared(0.7)), 0.2)


@pytest.mark.parametrize("subset", [False, True])
def test_gradient_of_the_evidence_is_that_of_differences(table, rule, subset):
    """Of any kernel, and of the default one, which is not compiled."""
    part = table.take(np.flatnonzero(np.arange(50) % 3)) if subset else table
    theta = np.array([0.3, -0.2, 0.4, 0.1, -0.3, 0.2])
    for one in (rule, DEFAULT):
        surprise = Surprise(part, one)
        differences = [(surprise(theta + h)[0] - surprise(theta - h)[0]) / 2e-5 for h in 1e-5 * np.eye(6)]
        np.testing.assert_allclose(surprise(theta)[1], differences, rtol=GRADIENT, atol=GRADIENT)


def test_most_likely_reaches_the_maximum_that_scikit_learn_finds():
    X, y = load_diabetes(return_X_y=True)
    law = Empirical(X / X.std(axis=0), y)
    best = most_likely(law, GaussianProcess(kernels.ExpSquared(3.0), 0.5))
    kernel = peers.RBF(3.0) + peers.WhiteKernel(0.5)
    peer = GaussianProcessRegressor(kernel, alpha=0).fit(law.inputs, _standard(law))
    assert fit(best, law).log_evidence > peer.log_marginal_likelihood_value_ - MODE


def test_most_likely_of_a_subset_is_that_of_the_sub_table(table):
    weights = np.arange(50) % 5 > 0
    centre, scale = table.units()
    part = Empirical(table.inputs[weights], table.targets[weights], centre=centre, scale=scale)
    start = GaussianProcess(kernels.ExpSquared(2.0), 0.5)
    one, other = most_likely(table, start, weights=weights), most_likely(part, start)
    np.testing.assert_allclose(one.noise, other.noise, rtol=1e-4)  # where L-BFGS stops
    assert one.noise != start.noise


def test_default_rule_has_a_length_for_each_column_and_can_be_improved(table):
    inputs = np.column_stack([table.inputs, np.ones(50)])  # a constant column is harmless
    law = dataclasses.replace(table, inputs=inputs)
    rule = default_rule(law)
    np.testing.assert_allclose(1 / rule.kernel.kernel2.scale, 2 * np.append(table.inputs.std(axis=0), 1))
    assert fit(most_likely(law, rule, steps=20), law).log_evidence > fit(rule, law).log_evidence + 1


def test_tuning_from_the_default_rule_learns_from_a_noisy_table():
    """Two of six columns matter a little: vanishing lengths, where all is noise, are a trap."""
    for seed in (0, 4):
        draw = np.random.default_rng(seed)
        X = draw.normal(size=(150, 11))
        law = Empirical(X, 0.6 * X[:, 0] - 0.4 * X[:, 1] + draw.normal(size=150))
        best = fit(most_likely(law, default_rule(law)), law)
        assert best.log_evidence > -0.5 * 150 * (1 + np.log(2 * np.pi)) + 10  # that of noise alone
        assert np.mean(best.leave_one_out**2) < 0.9


def test_the_default_kernel_on_the_host_is_the_compiled_one(table):
    """Value, gradient and covariances, with rows left out; and other kernels are not taken for it."""
    part, theta = table.take(np.flatnonzero(np.arange(50) % 3)), np.array([0.3, -0.2, 0.4, 0.1, -0.3, 0.2])
    scales, K = recognise(DEFAULT.kernel, table.inputs), evaluate(DEFAULT.kernel, table.inputs, table.inputs)
    np.testing.assert_allclose(scales.evaluate(table.inputs, table.inputs), K, rtol=ALGEBRA)
    own = GaussianProcess(_Scaled(np.array(1.3), 1 / LENGTHS, np.array(0.7)), 0.2)
    (value, slope), (wanted, gradient) = (Surprise(part, one)(theta) for one in (DEFAULT, own))
    np.testing.assert_allclose(value, wanted, rtol=ALGEBRA)
    np.testing.assert_allclose(slope, gradient, rtol=1e-8, atol=ALGEBRA)
    for other in (kernels.Matern52(0.7, distance=L2Distance()), kernels.ExpSquared(0.7, distance=L1Distance())):
        assert recognise(1.3 * transforms.Linear(LENGTHS, other), table.inputs) is None
    for kernel in (kernels.ExpSquared(0.7), K, 1.3 * transforms.Linear(0.5, kernels.ExpSquared(0.7)), own.kernel):
        assert recognise(kernel, table.inputs) is None
    faint = GaussianProcess(DEFAULT.kernel, 1e-30)
    hopeless = Surprise(part, faint)(np.array([0, -9.0, -9, -9, 0, 0]))
    assert hopeless[0] == np.inf or np.isfinite(hopeless[0])


class _Scaled(eqx.Module):
    """The default kernel in other words."""

    amplitude: float
    weights: np.ndarray
    length: float

    def __call__(self, X1, X2):
        return self.amplitude * kernels.ExpSquared(1.0)(
            X1 * self.weights / self.length, X2 * self.weights / self.length
        )


def test_descent_leaves_alone_what_has_no_log(table):
    rotation = np.array([[1.0, 0.5, 0.2], [-0.5, 1.0, 0.1], [0.0, 0.3, 1.0]])
    kernel = transforms.Linear(rotation, kernels.Polynomial(order=2, sigma=0.0))
    best = most_likely(table, GaussianProcess(kernel, 0.2), steps=10)
    np.testing.assert_array_equal(best.kernel.scale, rotation)
    assert best.kernel.kernel.order == 2
    assert best.kernel.kernel.sigma == 0
    assert best.kernel.kernel.scale != kernel.kernel.scale
    assert best.noise != 0.2


def test_descent_leaves_a_matrix_alone(table, rule):
    K = np.asarray(rule.kernel(table.inputs, table.inputs))
    best = most_likely(table, GaussianProcess(K, 0.2), steps=10)
    np.testing.assert_array_equal(best.kernel, K)
    assert best.noise != 0.2
    rows = np.arange(0, 50, 2)
    part = most_likely(table, GaussianProcess(K, 0.2), weights=np.arange(50) % 2 == 0, steps=10)
    alone = most_likely(table.take(rows), GaussianProcess(K[np.ix_(rows, rows)], 0.2), steps=10)
    assert part.noise == pytest.approx(alone.noise, rel=1e-9)
    assert part.noise != best.noise


def _cliff(theta):
    """Falls with the noise until it is NaN."""
    noise = 0.2 * np.exp(theta[1])
    return (np.nan if noise < 0.01 else noise), np.array([0.0, noise])


def _nothing(theta):
    return np.nan, np.full(2, np.nan)


def _uphill(theta):
    """Has a wrong slope, so that every step is worse."""
    return abs(theta[1]), np.array([0.0, 0.2])


START = GaussianProcess(kernels.ExpSquared(1.0), 0.2)


@pytest.mark.parametrize("slope", [_nothing, _uphill])
def test_descent_never_worsens(slope):
    best = descend(slope, START)
    assert best.noise == START.noise
    assert best.kernel.scale == 1.0


def test_descent_keeps_off_what_is_not_a_number():
    assert 0.01 <= descend(_cliff, START).noise < 0.2


@pytest.mark.parametrize(("bound", "least"), [(10.0, 0.02), (1e9, 1e-6)])
def test_descent_stays_within_bounds(monkeypatch, bound, least):
    monkeypatch.setattr(evidence, "FARTHEST", bound)
    assert descend(_noise, START).noise == pytest.approx(least, rel=1e-6)


def _noise(theta):
    return theta[1], np.array([0.0, 1.0])


def test_other_numbers_of_rows_compile_nothing(table):
    """Neither in tuning nor in training, nor do other values and subsets."""
    traces = []

    def counted(X1, X2=None):
        traces.append(1)
        return kernels.Matern32(2.0, distance=L2Distance())(X1, X2)

    rule = GaussianProcess(counted, 0.2)
    most_likely(table, rule, steps=2)
    fit(rule, table).predict(table.inputs[:20])
    before = len(traces)
    for rows in (40, 30):
        law = Empirical(table.inputs[:rows], table.targets[:rows])
        most_likely(law, GaussianProcess(counted, 0.1), weights=np.arange(rows) % 4 > 0, steps=2)
        fit(rule, law).predict(table.inputs[:10])
    assert len(traces) == before


class _Own(eqx.Module):
    """A kernel of one's own."""

    scale: float

    def __call__(self, X1, X2=None):
        if X2 is None:
            return jnp.ones(len(X1))
        return jnp.exp(-self.scale * jnp.sum((X1[:, None] - X2[None]) ** 2, axis=-1))


def test_own_kernels_learn_too(table):
    best = most_likely(table, GaussianProcess(_Own(0.3), 0.3), steps=30)
    wanted = most_likely(table, GaussianProcess(kernels.ExpSquared(np.sqrt(1 / 0.6)), 0.3), steps=30)
    assert fit(best, table).log_evidence == pytest.approx(fit(wanted, table).log_evidence, abs=MODE)


def test_bad_input_is_refused_in_one_sentence(table, rule):
    fitted = fit(rule, table)
    for inputs in (np.ones((3, 2)), np.ones(3), np.full((3, 3), np.nan)):
        with pytest.raises(InputError, match="`inputs` must be finite and of shape"):
            fitted.predict(inputs)
    with pytest.raises(InputError, match="given as a matrix"):
        fit(GaussianProcess(np.eye(50), 0.1), table).predict(np.ones((3, 3)))
    with pytest.raises(InputError, match="`data` must be"):
        fit(rule, table.inputs)
    with pytest.raises(InputError, match="`rule` must be"):
        fit(rule.kernel, table)
    with pytest.raises(InputError, match="`weights` must be 0 or 1"):
        most_likely(table, rule, weights=np.full(50, 0.5))
    with pytest.raises(InputError, match="not all 0"):
        most_likely(table, rule, weights=np.zeros(50))
    with pytest.raises(InputError, match="`weights` must be a number of at least 0"):
        fit(rule, table, weights=-np.ones(50))
    with pytest.raises(InputError, match="`steps` must"):
        most_likely(table, rule, steps=-1)
