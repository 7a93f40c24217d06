"""The learner: EM never goes down, annealing splits where it must and ends at the maximum of the likelihood."""

import jax
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.mixture import GaussianMixture

from quenched.core.types import InputError, Outcome
from quenched.mixtures import learner
from quenched.mixtures.learner import annealing
from quenched.mixtures.learner.em import Freedom, Gaussians, climb, expect, maximise, rows_of
from quenched.mixtures.learner.starts import widen
from quenched.mixtures.model import Annealed, Diagonal, Full, MaximumLikelihood, RandomStart, Spherical, TwoGaussians
from tests.tolerances import ALGEBRA, MACHINE, SAME

MINIMUM = 1e-9  # log-likelihood of a maximum to which 1e-12 is left to gain
LIKELIHOOD = 1e-6  # both sides stop with less than this left to gain

KEY = jax.random.key(1994)
N = 60
GIVEN = Freedom(weights=False)


def sample(separation=2.0):
    """Examples, two for each dimension."""
    return TwoGaussians(separation).sample(KEY, 2 * N, size=N)[0]


def two(S, starts, width):
    """Rows about their mean, and Gaussians of a given width that begin on opposite sides of it."""
    v = np.random.default_rng(0).normal(size=(starts, N))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    rows = rows_of(S - S.mean(axis=0), np.full(len(S), 1 / len(S)), features=1)
    return rows, Gaussians(np.stack([v, -v], axis=1), np.full((starts, 2, 1), width), np.full((starts, 2), 0.5))


def one_of(g, i):
    return Gaussians(*(leaf[i] for leaf in g))


def cosine(a, b):
    return np.abs(np.asarray(a) @ np.asarray(b)) / np.linalg.norm(a) / np.linalg.norm(b)


# Two centres of a given width ------------------------------------------------------------------------------------


def test_an_em_step_follows_the_gradient():
    """By v/mass times it, at given widths: against central differences."""
    rows, g = two(sample(), 1, 1.3)
    g, move = one_of(g, 0), np.random.default_rng(1).normal(size=(2, N))
    r = expect(rows, g)[1]
    step = maximise(rows, g, r, GIVEN).centres - g.centres
    up, down = (expect(rows, g._replace(centres=g.centres + h * move))[0] @ rows.omega for h in (1e-5, -1e-5))
    expected = np.sum((r @ rows.omega)[:, None] / 1.3 * step * move)
    assert (up - down) / 2e-5 == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("width", [0.5, 2.5])
def test_many_starts_end_where_each_alone_does(width):
    """Each stops by itself, and none is lost or mixed up."""
    rows, g = two(sample(), 40, width)
    together = climb(rows, g, GIVEN, accuracy=1e-12, passes=10_000)
    assert np.all(together.converged)
    assert len(np.unique(together.passes)) > 3
    found = together.gaussians
    moved = maximise(rows, found, expect(rows, found)[1], GIVEN).centres - found.centres
    assert np.max(np.abs(moved)) < 2e-6
    np.testing.assert_allclose(expect(rows, found)[0] @ rows.omega, together.log_likelihood, rtol=MACHINE)
    for i in (0, 17, 39):
        alone = climb(rows, one_of(g, i), GIVEN, accuracy=1e-12, passes=10_000)
        assert alone.log_likelihood == pytest.approx(together.log_likelihood[i], abs=MINIMUM)
        assert cosine(*(c[0] - c[1] for c in (alone.gaussians.centres, found.centres[i]))) > 1 - 1e-6


def test_stretched_steps_find_the_plain_maximum_sooner():
    """Close to the splitting the plain map crawls."""
    S = sample(1.0)
    width = 0.95 * np.linalg.eigvalsh(np.cov(S.T, bias=True))[-1]
    rows, g = two(S, 1, width)
    fast = climb(rows, one_of(g, 0), GIVEN, accuracy=1e-12, passes=10_000)
    plain, steps, gain = one_of(g, 0), 0, 1.0
    while gain > 1e-13:
        level, r = expect(rows, plain)
        plain, steps = maximise(rows, plain, r, GIVEN), steps + 1
        gain = (expect(rows, plain)[0] - level) @ rows.omega
    assert fast.log_likelihood == pytest.approx(expect(rows, plain)[0] @ rows.omega, abs=MINIMUM)
    assert fast.passes < 0.6 * steps


def test_the_student_of_the_paper():
    """One centre above the largest variance of the sample; below it two, along its direction, from any start."""
    S = sample()
    values, vectors = np.linalg.eigh(np.cov(S.T, bias=True))
    top = values[-1]
    one = learner.fit(MaximumLikelihood(1.01 * top), S)
    np.testing.assert_allclose(one.centres, S.mean(axis=0)[None].repeat(2, axis=0), atol=SAME)
    assert one.splits.sizes["split"] == 0
    below, two, other = (
        learner.fit(MaximumLikelihood(share * top), S, accuracy=1e-12, start=start, passes=10_000)
        for share, start in ((0.98, None), (0.6, Annealed()), (0.6, RandomStart()))
    )
    assert cosine(below.centres[0] - below.centres[1], vectors[:, -1]) > 0.98
    assert two.log_likelihood == pytest.approx(other.log_likelihood, abs=MINIMUM)
    np.testing.assert_array_equal(two.weights, 0.5)
    X, dU = S - two.centres.mean(axis=0), (two.centres[0] - two.centres[1]) / 2  # [barkai1994, eqs. (4), (6)]
    energy = np.mean(np.sum(X**2, axis=1) + dU @ dU) / (1.2 * top) - np.mean(np.log(np.cosh(X @ dU / (0.6 * top))))
    assert two.log_likelihood == pytest.approx(-0.5 * N * np.log(2 * np.pi * 0.6 * top) - energy, rel=SAME)


# EM --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [1, 3, 6], ids=["spherical", "diagonal", "full"])
@pytest.mark.parametrize(
    "free",
    [Freedom(), Freedom(widths=True), Freedom(widths=True, common=True), Freedom(weights=False, widths=True)],
    ids=["given widths", "free", "common", "equal weights"],
)
def test_em_never_goes_down(free, features):
    rng = np.random.default_rng(0)
    Z, omega = rng.normal(size=(60, 3)) ** 3, rng.uniform(size=60)
    omega /= omega.sum()
    rows = rows_of(Z - omega @ Z, omega, features=features)
    g = widen(Gaussians(rng.normal(size=(4, 3)), np.ones((4, 1)), np.full(4, 0.25)), features)
    levels = []
    for _ in range(50):
        log_p, r = expect(rows, g)
        levels.append(log_p @ rows.omega)
        g = maximise(rows, g, r, free)
    assert np.all(np.diff(levels) >= -MACHINE)
    assert levels[-1] > levels[0] + 0.1


@pytest.mark.parametrize("features", [1, 3, 6], ids=["spherical", "diagonal", "full"])
def test_with_a_common_width_steps_need_no_squares_of_the_rows(features):
    """Only their mean: responsibilities, the likelihood and the next width are the same."""
    rng = np.random.default_rng(0)
    Z, omega = rng.normal(size=(60, 3)) ** 3, rng.uniform(size=60)
    omega /= omega.sum()
    rows = rows_of(Z - omega @ Z, omega, features=features)
    free = Freedom(widths=True, common=True)
    g = widen(Gaussians(rng.normal(size=(2, 4, 3)), np.ones((2, 4, 1)), np.full((2, 4), 0.25)), features)
    g = maximise(rows, g, expect(rows, g)[1], free)
    means = rows._replace(squares=np.broadcast_to(omega @ rows.squares, rows.squares.shape))
    (log_p, r), (mean, same) = expect(rows, g), expect(means, g, equal=True)
    np.testing.assert_allclose(same, r, atol=MACHINE)
    np.testing.assert_allclose(mean @ omega, log_p @ omega, rtol=MACHINE)
    apart = maximise(rows, g, r, free._replace(common=False))
    together = np.sum(apart.weights[..., None] * apart.widths, axis=-2, keepdims=True)
    np.testing.assert_allclose(maximise(means, g, same, free).widths, np.repeat(together, 4, axis=-2), rtol=ALGEBRA)


def blobs():
    return make_blobs(200, centers=3, n_features=3, cluster_std=1.5, random_state=4)[0] * [1.0, 3.0, 0.5] + 100.0


RULES = {
    "spherical": Spherical(),
    "diagonal": Diagonal(),
    "common": Spherical(common=True),
    "equal weights": Diagonal(equal_weights=True),
    "full": Full(),
    "given": MaximumLikelihood(3.0),
}


@pytest.mark.parametrize("name", RULES)
def test_weights_are_repetitions(name):
    X, times = blobs(), np.random.default_rng(0).integers(0, 4, 200)
    weighted = learner.fit(RULES[name], X, components=3, sample_weight=times)
    repeated = learner.fit(RULES[name], np.repeat(X, times, axis=0), components=3)
    np.testing.assert_allclose(weighted.centres, repeated.centres, rtol=SAME)
    np.testing.assert_allclose(weighted.widths, repeated.widths, rtol=SAME)
    np.testing.assert_allclose(weighted.splits.width, repeated.splits.width, rtol=SAME)
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, rel=SAME)
    plain = learner.fit(RULES[name], X, components=3)
    assert not np.allclose(weighted.centres, plain.centres, rtol=1e-4)


def test_many_maxima_of_nearly_the_same_likelihood():
    """A table without clusters: with a common covariance the first steps say little about where a start ends."""
    rng, best = np.random.default_rng(22), -7.2112  # the likeliest that is known
    rows, columns = int(rng.choice([200, 350, 600])), int(rng.integers(4, 10))
    X = rng.beta(0.7, 0.7, size=(rows, columns)) @ (np.eye(columns) + 0.3 * rng.normal(size=(columns, columns)))
    X, rule, found = (X - X.mean(axis=0)) / X.std(axis=0), Full(common=True), []
    for seed in range(16):
        found.append(learner.fit(rule, X, components=3, key=jax.random.key(seed)).log_likelihood)
    assert np.max(found) == pytest.approx(best, abs=1e-3)
    assert np.sum(np.array(found) > best - 1e-3) >= 4


@pytest.mark.parametrize(("rule", "kind"), [(Spherical(), "spherical"), (Diagonal(), "diag"), (Full(), "full")])
@pytest.mark.parametrize("data", ["blobs", "iris"])
def test_it_ends_at_the_maximum_of_the_likelihood(rule, kind, data):
    X = blobs() if data == "blobs" else load_iris().data
    ours = learner.fit(rule, X, components=3, accuracy=1e-10, passes=5000)
    model = GaussianMixture(3, covariance_type=kind, tol=1e-11, max_iter=5000, n_init=5, reg_covar=0, random_state=0)
    theirs = model.fit(X)
    assert ours.outcome == Outcome.converged
    assert ours.log_likelihood >= theirs.score(X) * (1 - np.sign(theirs.score(X)) * LIKELIHOOD)
    precisions = np.linalg.inv(ours.widths) if kind == "full" else 1 / ours.widths
    here = {"means_init": ours.centres, "weights_init": ours.weights, "precisions_init": precisions}
    again = GaussianMixture(3, covariance_type=kind, tol=1e-11, max_iter=5000, reg_covar=0, random_state=0, **here)
    assert again.fit(X).score(X) == pytest.approx(ours.log_likelihood, rel=LIKELIHOOD)
    np.testing.assert_allclose(np.sort(again.weights_), np.sort(ours.weights), atol=1e-4)


def test_one_component_is_one_gaussian():
    X = blobs()
    one = learner.fit(Diagonal(), X, components=1)
    np.testing.assert_allclose(one.centres[0], X.mean(axis=0))
    np.testing.assert_allclose(one.widths[0], X.var(axis=0))
    assert one.splits.sizes["split"] == 0


# Annealing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [Spherical(), Diagonal()], ids=["spherical", "diagonal"])
@pytest.mark.parametrize("shape", [(200, 3), (8, 20)], ids=["tall", "wide"])
def test_the_first_split_is_at_the_largest_eigenvalue(rule, shape):
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    unit = X.std(axis=0) if isinstance(rule, Diagonal) else np.ones(shape[1])
    values, vectors = np.linalg.eigh(np.cov(X / unit, rowvar=False, bias=True))
    splits = learner.fit(rule, X, passes=50, accuracy=1.0).splits
    assert float(splits.width[0]) == pytest.approx(values[-1], rel=SAME)
    assert cosine(splits.direction[0], vectors[:, -1] * unit) > 1 - SAME


def test_a_second_split_is_at_the_largest_eigenvalue_of_its_cluster():
    """Far apart, clusters do not feel each other: each splits at its own largest variance."""
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(400, 2)) * [3.0, 1.0], rng.normal([0.0, 1000.0], size=(400, 2))
    fitted = learner.fit(Spherical(), np.vstack([wide, narrow]), components=3)
    assert float(fitted.splits.width[1]) == pytest.approx(np.linalg.eigvalsh(np.cov(wide.T, bias=True))[-1], rel=2e-3)
    assert abs(float(fitted.splits.direction[1, 0])) > 0.99
    assert np.sum(fitted.centres[:, 1] > 500) == 1


def test_large_tables_find_the_same_direction(monkeypatch):
    X = blobs()
    direct = learner.fit(Spherical(), X, components=3)
    monkeypatch.setattr(annealing, "DENSE", 1)
    np.testing.assert_allclose(learner.fit(Spherical(), X, components=3).splits.width, direct.splits.width, rtol=1e-5)


@pytest.mark.parametrize("outlier", [0.0, 1e4])
def test_the_tree_is_a_tree(outlier):
    """With an outlier a cluster may be unstable as soon as it is born: it cannot have split before that."""
    fitted = learner.fit(Spherical(), np.vstack([load_iris().data, np.full((1, 4), outlier)]), components=6)
    s = fitted.splits
    assert np.all(np.diff(s.width) <= 0)
    assert s.sizes["split"] == 5
    born = {int(h): float(w) for w, into in zip(s.width, s.into.values, strict=True) for h in into}
    for cluster, width, (a, b) in zip(s.cluster.values, s.width.values, s.into.values, strict=True):
        assert width <= born.get(int(cluster), np.inf)
        assert float(s.share[cluster]) == pytest.approx(float(s.share[a] + s.share[b]))
    np.testing.assert_allclose(s.share[s.leaf], fitted.weights)
    assert sorted(set(s.leaf.values)) == sorted(set(range(11)) - set(s.cluster.values))
    np.testing.assert_allclose(np.linalg.norm(s.direction, axis=1), 1)


def test_equal_weights_with_an_odd_number():
    fitted = learner.fit(Spherical(equal_weights=True), blobs(), components=3, n_init=4)
    np.testing.assert_allclose(fitted.weights, 1 / 3)
    found = learner.fit(MaximumLikelihood(50.0), blobs(), components=3)
    assert found.centres.shape == (3, 3)
    assert len(np.unique(found.centres.round(2), axis=0)) < 3  # at this width some still coincide


def test_warm_starts_and_several_annealings():
    X = blobs()
    first = learner.fit(Diagonal(), X, components=3, accuracy=1e-8)
    again = learner.fit(Diagonal(), X, components=3, start=first, accuracy=1e-8)
    assert again.passes <= 3
    assert again.log_likelihood == pytest.approx(first.log_likelihood, abs=1e-7)
    from_centres = learner.fit(Diagonal(), X, components=3, start=first.centres, accuracy=1e-8)
    assert from_centres.log_likelihood == pytest.approx(first.log_likelihood, abs=1e-6)
    several = [learner.fit(Spherical(), X, components=5, start=Annealed(noise=3.0), n_init=n, key=KEY) for n in (1, 4)]
    assert several[1].log_likelihood >= several[0].log_likelihood


def test_equal_rows_do_not_collapse():
    X = np.vstack([np.zeros((20, 2)), np.random.default_rng(0).normal(size=(20, 2)) + 3])
    fitted = learner.fit(Spherical(least=1e-3), X)
    assert np.isfinite(fitted.log_likelihood)
    assert fitted.widths.min() == pytest.approx(1e-3 * X.var(axis=0).mean())


X = np.arange(12.0).reshape(6, 2)
BAD = {
    "few rows": (Spherical(), X, {"components": 7}, "at least as many rows as there are components, 7, but it has 6"),
    "few by weight": (Spherical(), X, {"sample_weight": [1, 0, 0, 0, 0, 0]}, "at least as many rows"),
    "duplicates": (Spherical(), X[[0, 0, 1, 1, 0, 0]], {"components": 3}, "at least 3 different rows, but it holds 2"),
    "one point": (Diagonal(), np.ones((6, 2)), {}, "at least 2 different rows, but it holds 1"),
    "nan": (Spherical(), np.where(X > 5, np.nan, X), {}, "must be finite"),
    "one axis": (Spherical(), X[0], {}, "must have rows and columns, but its shape is \\(2,\\)"),
    "words": (Spherical(), [["a", "b"]], {}, "must be a table of numbers"),
    "weights": (Spherical(), X, {"sample_weight": [1, 2]}, "one number for each of the 6 rows"),
    "negative weight": (Spherical(), X, {"sample_weight": -np.ones(6)}, "not negative"),
    "no component": (Spherical(), X, {"components": 0}, "at least 1"),
    "word": ("spherical", X, {}, "must be Spherical\\(\\), Diagonal\\(\\)"),
    "start": (Spherical(), X, {"start": X}, "centres of shape \\[2, 2\\]"),
    "start by name": (Spherical(), X, {"start": "annealed"}, "`start` must be"),
    "accuracy": (Spherical(), X, {"accuracy": 0.0}, "`accuracy` must be positive"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_raises_one_sentence(name):
    rule, data, options, message = BAD[name]
    with pytest.raises(InputError, match=message):
        learner.fit(rule, data, **options)


def test_widths_must_be_positive():
    with pytest.raises(InputError, match="`width` must be positive"):
        MaximumLikelihood(0.0)
    with pytest.raises(InputError, match="`least` must be positive"):
        Spherical(least=-1.0)
    with pytest.raises(InputError, match="`step` must lie strictly between"):
        Annealed(step=1.0)


def test_a_budget_of_passes_is_kept():
    fitted = learner.fit(Spherical(), load_iris().data, components=4, passes=5)
    assert fitted.outcome == Outcome.stalled
    assert fitted.centres.shape == (4, 4)
    assert np.all(np.isfinite(fitted.centres))
