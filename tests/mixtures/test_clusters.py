"""How many clusters: a test that is valid for any single peak, tables with and without clusters, and rows needed."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

import quenched
from benchmarks.cluster_worlds import close_pair, known_number, one_cluster
from quenched.core.types import InputError
from quenched.mixtures import Full, Spherical, find_clusters, fit, rows_needed
from quenched.mixtures.learner.valleys import find_valley, judge
from quenched.mixtures.theory import rows as theory
from tests.tolerances import SAME

LEVEL = 0.05


# The test of a valley ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chances", [(0.4, 0.3, 0.1), (0.2, 0.2, 0.2), (0.1, 0.3, 0.1)], ids=["slope", "flat", "peak"])
def test_a_single_peak_rarely_has_a_small_p(chances):
    """Whatever its shape: the share of p-values below the level is at most the level."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(120, [*chances, 1 - sum(chances)], size=2000)[:, :3]
    below = np.mean([judge(one[None], np.array([False])) < LEVEL for one in counts])
    assert below < LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / 2000)


def test_a_valley_has_the_p_of_the_binomial_law():
    p = judge(np.array([[40, 10, 30]]), np.array([False]))
    assert p == pytest.approx(stats.binom.cdf(10, 40, 0.5), rel=SAME)  # of the emptier side


def test_a_peak_that_changes_sides_is_no_valley():
    """Lines of two folds may point to opposite sides; the sums left and right would show a valley."""
    folds = np.array([[100, 60, 20], [20, 60, 100]])
    left, middle, right = folds.sum(axis=0)
    assert stats.binom.cdf(middle, middle + min(left, right), 0.5) > LEVEL / 2
    turned = np.array([[300, 180, 20], [20, 180, 300]])
    assert stats.binom.cdf(360, 360 + 320, 0.5) > LEVEL
    assert judge(folds, np.array([True, False])) > 0.9
    assert judge(turned, np.array([True, False])) > 0.9


def test_the_line_is_fisher_s_and_the_middle_lies_between():
    shape = np.array([[2.0, 1.5], [1.5, 2.0]])
    centres = np.array([[0.0, 0.0], [4.0, 0.0]])
    valley = find_valley(np.array([0.5, 0.5]), centres, np.array([shape, shape]), np.array([False, True]), 1e9)
    assert valley is not None
    expected = np.linalg.solve(shape, centres[1])
    np.testing.assert_allclose(valley.line, expected / np.linalg.norm(expected), atol=1e-6)
    assert valley.edges[1].mean() == pytest.approx((centres @ valley.line).mean(), abs=0.1)
    np.testing.assert_allclose(np.diff(valley.edges, axis=1), np.diff(valley.edges[:1], axis=1)[0, 0], rtol=1e-9)
    assert (
        find_valley(np.array([0.5, 0.5]), centres / 4, np.array([shape, shape]), np.array([False, True]), 1e9) is None
    )


# Clusters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [2, 4, 5, 18], ids=["skewed", "exponential", "heavy tails", "mixed columns"])
def test_a_cluster_of_any_shape_is_one(case):
    assert find_clusters(one_cluster(case, 7)).count == 1


def test_rounded_values_and_noise_in_many_columns_are_one_cluster():
    rng = np.random.default_rng(0)
    assert find_clusters(np.round(rng.normal(size=(300, 2)))).count == 1
    assert find_clusters(rng.normal(size=(60, 80))).count == 1


@pytest.fixture(scope="module")
def three():
    X, K = known_number(1, 3)
    return X, K, find_clusters(X)


def test_clusters_are_found(three):
    X, K, found = three
    assert found.count == K == 3
    log_p = found.log_densities(X)
    np.testing.assert_array_equal(found.labels, log_p.argmax(axis=1))
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    assert np.all(np.diff(found.shares) <= 0)
    assert found.shares.sum() == pytest.approx(1)
    s = found.splits
    assert int(s.seen.sum()) == K - 1
    assert np.all(s.p.values[s.seen.values] < LEVEL)
    np.testing.assert_allclose(s.share[s.leaf], found.shares)
    for node, halves in zip(s.cluster.values, s.into.values, strict=True):
        assert float(s.share[node]) == pytest.approx(float(s.share[halves].sum()))
    again = find_clusters(3.0 * X - 1.0)  # units do not matter
    assert adjusted_rand_score(again.labels, found.labels) > 0.95


def test_the_density_is_one_of_the_data(three):
    X, _, found = three
    rng = np.random.default_rng(0)
    low, high = X.min(axis=0) - 10, X.max(axis=0) + 10
    points = rng.uniform(low, high, size=(400_000, X.shape[1]))
    mass = np.exp(found.log_densities(points)).sum(axis=1) * np.prod(high - low)
    assert mass.mean() == pytest.approx(1, abs=4 * mass.std() / np.sqrt(len(mass)))


def test_clusters_are_drawn_as_a_tree_of_real_splits(three):
    _, K, found = three
    ax = quenched.plot(found.splits).axes[0]
    assert len(ax.get_xticklabels()) == K
    assert sum(text.get_text().startswith("p ") for text in ax.texts) == K - 1
    single = find_clusters(np.random.default_rng(0).normal(size=(100, 2)))
    assert len(quenched.plot(single.splits).axes[0].get_xticklabels()) == 1


def test_a_gaussian_of_one_row_is_never_called_converged():
    """A row far away is infinitely likely by itself: such a mixture loses against every other, or it is said."""
    X = np.vstack([np.random.default_rng(0).normal(size=(80, 3)), [[50.0, 50.0, 50.0]]])
    for rule, fewest in ((Spherical(), 2.5), (Full(), 4.5)):
        found = fit(rule, X, components=2)
        log_p = found.log_densities(X)
        rows = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True)).sum(axis=0)
        assert (found.outcome.name == "converged") == bool(np.all(rows > fewest))


# Rows needed ------------------------------------------------------------------------------------------------------


def test_rows_needed_has_its_limits():
    assert rows_needed(1.9, columns=1) == np.inf  # together they have one peak
    falling = [rows_needed(d, columns=5) for d in (3.0, 4.0, 5.0)]
    assert falling[0] > falling[1] > falling[2]
    rising = [rows_needed(4.0, columns=N) for N in (1, 10, 100)]
    assert rising[0] < rising[1] < rising[2]
    assert rows_needed(4.0, columns=5, shares=(0.1, 0.1)) == pytest.approx(5 * rows_needed(4.0, columns=5), rel=0.1)
    assert rows_needed(4.0, columns=5, shares=(0.1, 0.9)) > 2 * rows_needed(4.0, columns=5)
    assert rows_needed(1e6, columns=2) < 60


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_far_apart_the_direction_is_as_certain_as_with_labels(share):
    r"""There $\tau$ is the label and the cosine Fisher's, with $c^2/(1-c^2) = n/(N-1)\,(1/p_1p_2\Delta^2 + 1)^{-1}$."""
    product = share * (1 - share)
    expected = 5000 / 9 / (1 / (product * 64) + 1)
    cosine = theory.overlap(5000, 8.0, share, 10)
    assert cosine**2 / (1 - cosine**2) == pytest.approx(expected, rel=0.02)
    assert theory.overlap(30, 2.0, share, 100) < 0.05


@pytest.mark.parametrize("n", [60, 150])
def test_the_chance_is_that_of_exact_binomial_tests(n):
    """The normal approximation against draws of the counts, each judged by the learner's own test."""
    places = theory.intervals(3.5, 0.4)
    assert places is not None
    counts = np.random.default_rng(1).multinomial(n, [*places, 1 - places.sum()], size=2000)[:, :3]
    seen = np.mean([judge(one[None], np.array([False])) < LEVEL for one in counts])
    assert theory.chance(n, 3.5, 0.4, LEVEL) == pytest.approx(seen, abs=0.06)


def test_splits_are_seen_where_theory_has_them():
    """With half the rows in fewer than half of the samples, with twice as many in more."""
    wanted = rows_needed(4.0, columns=3, shares=(1 / 3, 1 / 3))

    def seen(n):
        samples = (close_pair(run, 3, 3, 4.0, np.full(3, 1 / 3), round(n)) for run in range(8))
        return np.mean([find_clusters(X, components=5).count == 3 for X in samples])

    assert seen(wanted / 2) < 0.5 < seen(2 * wanted)


# Bad input --------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(40, 2))
BAD = {
    "components": (lambda: find_clusters(X, components=0), "`components` must be at least 1"),
    "level": (lambda: find_clusters(X, level=2.0), "`level` must lie"),
    "same": (lambda: find_clusters(np.ones((40, 2))), "must hold different rows"),
    "nan": (lambda: find_clusters(np.where(X > 1, np.nan, X)), "must be finite"),
    "separation": (lambda: rows_needed(-1.0, columns=2), "`separation` must be positive"),
    "columns": (lambda: rows_needed(3.0, columns=0), "`columns` must be at least 1"),
    "shares": (lambda: rows_needed(3.0, columns=2, shares=(0.9, 0.9)), "whose sum is at most 1"),
    "one share": (lambda: rows_needed(3.0, columns=2, shares=(1.0, 0.0)), "two positive numbers"),
    "power": (lambda: rows_needed(3.0, columns=2, power=1.0), "`power` must lie"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_raises_one_sentence(name):
    ask, message = BAD[name]
    with pytest.raises(InputError, match=message):
        ask()
