"""Mixtures of Gaussians as templates, and rough fields beside smooth ones."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from benchmarks import densities
from quenched import fields
from quenched.core.types import InputError
from quenched.estimators import FieldDensity
from quenched.fields.learner.templates import Rows, templates
from tests.tolerances import ALGEBRA

X = np.linspace(-6.0, 6.0, 400)
WEIGHTS = np.full(400, X[1] - X[0])


def counted(x):
    return np.histogram(x, np.append(X - WEIGHTS / 2, X[-1] + WEIGHTS[0] / 2))[0].astype(float)


@pytest.fixture(scope="module")
def rows():
    return densities.draw("skewed bimodal", 2000, np.random.default_rng(3))


def test_slopes_and_information_are_those_of_the_log_density():
    start = Rows(X, WEIGHTS, np.ones(400), 0.01)
    w, m, s, h = np.array([0.3, 0.7]), np.array([-1.0, 0.8]), np.array([0.5, 1.1]), 1e-6
    found, _ = start.look(w, m, s)
    assert WEIGHTS @ np.exp(found.log_density) == pytest.approx(1, abs=ALGEBRA)
    steps = [(w * np.exp(h * np.eye(2)[i]), m, s) for i in range(2)]
    steps += [(w, m + h * s * np.eye(2)[i], s) for i in range(2)]
    steps += [(w, m, s * np.exp(h * np.eye(2)[i])) for i in range(2)]
    differences = [(start.look(*step)[0].log_density - found.log_density) / h for step in steps]
    np.testing.assert_allclose(found.slopes, np.stack(differences, axis=1), atol=2e-4)
    mass = WEIGHTS * np.exp(found.log_density)
    np.testing.assert_allclose(found.information, (found.slopes.T * mass) @ found.slopes, atol=ALGEBRA)


def test_the_maximum_is_stationary_and_that_of_expectation_and_maximisation(rows):
    found = list(templates(X, WEIGHTS, counted(rows), 3))
    assert [len(one.shares) for one in found] == [1, 2, 3]
    pull = counted(rows) @ found[1].slopes
    assert pull @ np.linalg.pinv(len(rows) * found[1].information) @ pull < 1e-4  # nats still to gain
    peer = GaussianMixture(2, tol=1e-8, max_iter=2000, random_state=0).fit(rows[:, None])
    np.testing.assert_allclose(np.sort(found[1].centres), np.sort(peer.means_[:, 0]), atol=0.02)
    np.testing.assert_allclose(np.sort(found[1].widths), np.sort(np.sqrt(peer.covariances_.ravel())), atol=0.02)
    assert found[0].likelihood < found[1].likelihood <= found[2].likelihood + 1e-6


def test_a_support_that_ends_does_not_bend_a_template():
    """Half a Gaussian, whose mean and width are those of the whole."""
    x = np.abs(np.random.default_rng(0).normal(size=20_000))
    at = np.linspace(0.0, 5.0, 300)
    weights = np.full(300, at[1])
    weights[0] /= 2
    counts = np.histogram(x, np.append(np.maximum(at - at[1] / 2, 0), 5 + at[1] / 2))[0]
    (found,) = templates(at, weights, counts.astype(float), 1)
    assert abs(found.centres[0]) < 0.15
    assert found.widths[0] == pytest.approx(1, abs=0.05)


def test_the_variance_is_that_of_other_data():
    logs, variances = [], []
    for seed in range(60):
        x = densities.draw("separated", 1000, np.random.default_rng(seed))
        *_, found = templates(X, WEIGHTS, counted(x), 2)
        logs.append(found.log_density)
        variances.append(found.variance(1000))
    seen = (-2.5 < X) & (X < 2.5)
    ratio = np.var(logs, axis=0, ddof=1)[seen] / np.mean(variances, axis=0)[seen]
    assert 0.8 < np.mean(ratio) < 1.25  # 60 data sets: 0.1 to expect


def test_roughened_operators_add_covariances():
    grid = fields.Grid(over=[fields.Axis(0, 2, points=30)])
    smooth = 0.1 * fields.ThinPlate(grid, 3)
    rough = smooth.roughen(0.4, 12)
    C, more = np.linalg.pinv(grid.cell * smooth.matrix), np.linalg.pinv(grid.cell * rough.matrix)
    added = np.linalg.eigvalsh(more - C)
    np.testing.assert_allclose(added[-9:], 0.4**2 * 30 / 9, rtol=1e-6)  # twelve modes, three of them free
    np.testing.assert_allclose(added[:-9], 0, atol=1e-6)
    assert len(rough.null_space()) == 3
    with pytest.raises(InputError, match="deviation"):
        smooth.roughen(-1.0, 12)


def test_evidence_chooses_between_smooth_fields_and_templates():
    narrow = FieldDensity().fit(densities.draw("kurtotic", 1000, np.random.default_rng(0)))
    assert (narrow.order_, narrow.components_, narrow.strength_) == (0, 2, np.inf)
    assert set(narrow.path_["components"]) >= {0, 2}
    smooth = FieldDensity().fit(np.random.default_rng(0).normal(size=1000))
    assert (smooth.order_, smooth.components_) == (3, 0)
    given = FieldDensity(order=3).fit(densities.draw("kurtotic", 1000, np.random.default_rng(0)))
    assert set(given.path_["components"]) == {0}


def test_bands_hold_the_valley_between_two_gaussians():
    """One strength for all places is too stiff for it: the band of a smooth field alone misses it."""
    valley = densities.places("separated")[9:11]
    truth, held = densities.density("separated", valley), {None: 0, 3: 0}
    for seed in range(6):
        x = densities.draw("separated", 1000, np.random.default_rng(seed))
        for order in held:
            low, high = FieldDensity(order=order).fit(x).credible_band(valley)
            held[order] += int(np.sum((low <= truth) & (truth <= high)))
    assert held[None] >= 9
    assert held[3] <= 6
