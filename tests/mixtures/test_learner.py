"""The learner: EM never goes down, annealing splits where it must and ends at the maximum of the likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.mixture import GaussianMixture

from quenched.core.types import InputError, Outcome
from quenched.mixtures import learner
from quenched.mixtures.learner.expectation import Freedom, Gaussians, expect, maximise, rows_of
from quenched.mixtures.model import Diagonal, MaximumLikelihood, Spherical, TwoGaussians, draw

SAME = 1e-9  # weighted and repeated sums, carried through some hundred EM steps
ROUNDING = 1e-12  # energies of the order of one
MINIMUM = 1e-9  # energy of a minimum whose residual is 1e-6: quadratic in it
LIKELIHOOD = 1e-6  # both sides stop with less than this left to gain

KEY = jax.random.key(1994)
N = 100


def sample(separation=2.0, key=KEY):
    """Centred examples (two for each dimension), as drawn, half the true difference of centres, and their mean."""
    S, _ = draw(TwoGaussians(separation), key, 2 * N, N)
    U = np.asarray(TwoGaussians(separation).centres(N))
    return S - jnp.mean(S, axis=0), S, (U[0] - U[1]) / 2, (U[0] + U[1]) / 2


def directions(count, key=KEY):
    v = jax.random.normal(key, (count, N))
    return v / jnp.linalg.norm(v, axis=1, keepdims=True)


@jax.jit
def ten_steps(X, dU, width):
    return jax.lax.fori_loop(0, 10, lambda _, v: learner.step(X, v, width), dU)


def cosine(a, b):
    return np.abs(np.asarray(a) @ np.asarray(b)) / np.linalg.norm(a) / np.linalg.norm(b)


# Two centres -----------------------------------------------------------------------------------------------------


def test_the_map_is_a_gradient_step(double):
    X, *_ = sample()
    dU = directions(80)
    slope = jax.vmap(jax.grad(lambda v: learner.energy(X, v, 1.3)))(dU)
    np.testing.assert_allclose(learner.step(X, dU, 1.3), dU - 1.3 * slope, atol=ROUNDING)


@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
def test_a_step_never_raises_the_energy(double, width):
    X, *_ = sample()
    dU, energies = 3 * directions(80), []
    for _ in range(20):
        energies.append(np.asarray(learner.energy(X, dU, width)))
        dU = learner.step(X, dU, width)
    assert np.all(np.diff(energies, axis=0) <= ROUNDING)


@pytest.mark.parametrize("width", [0.5, 2.5])
def test_many_starts_end_where_each_alone_does(double, width):
    """Eighty starts share 64 slots, the last of them 16: no start may be lost or mixed up."""
    X, *_ = sample()
    starts = directions(80)
    together = learner.relax(X, starts, width, slots=64)
    assert np.all(np.asarray(together.outcome) == Outcome.converged)
    np.testing.assert_allclose(learner.step(X, together.dU, width), together.dU, atol=2e-6)
    np.testing.assert_allclose(learner.energy(X, together.dU, width), together.energy, atol=ROUNDING)
    assert np.all(np.asarray(together.energy <= learner.energy(X, starts, width) + ROUNDING))
    for i in (0, 37, 79):
        alone = learner.relax(X, starts[i : i + 1], width)
        assert float(alone.energy[0]) == pytest.approx(float(together.energy[i]), abs=MINIMUM)
        assert cosine(alone.dU[0], together.dU[i]) > 1 - 1e-6


def test_stretched_steps_find_the_plain_minimum_sooner(double):
    """Close to the splitting the plain map crawls."""
    X, *_ = sample(separation=1.0)
    width = 0.95 * float(np.linalg.eigvalsh(np.asarray(X.T @ X / len(X)))[-1])
    start = directions(1)
    fast = learner.relax(X, start, width)
    plain, steps = start, 0
    while np.linalg.norm(learner.step(X, plain, width) - plain) > 1e-6 * np.sqrt(width):
        plain, steps = ten_steps(X, plain, width), steps + 10
    assert float(fast.energy[0]) == pytest.approx(float(learner.energy(X, plain, width)[0]), abs=MINIMUM)
    assert int(fast.steps[0]) < 0.6 * steps


def test_the_vector_dies_above_the_largest_variance_of_the_sample(double):
    X, *_ = sample()
    values, vectors = np.linalg.eigh(np.asarray(X.T @ X / len(X)))
    above = learner.relax(X, directions(1), 1.05 * values[-1])
    below = learner.relax(X, 1e-3 * directions(1), 0.98 * values[-1])
    assert float(jnp.linalg.norm(above.dU)) < 1e-4
    assert float(jnp.linalg.norm(below.dU)) > 0.1
    assert cosine(below.dU[0], vectors[:, -1]) > 0.98
    assert 0.9 * values[-1] < float(learner.spread(X)) <= values[-1] * (1 + ROUNDING)


def test_uncentred_data_split_along_the_mean(double):
    """Erratum B1: the printed map takes the mean of the data for structure in many samples, the centred one never."""
    wrong = {"centred": 0, "printed": 0}
    for i in range(16):
        X, S, truth, mean = sample(key=jax.random.key(i))
        for name, data in (("centred", X), ("printed", S)):
            found = learner.relax(data, directions(1, jax.random.key(i)), 2.0).dU[0]
            wrong[name] += cosine(found, mean) > cosine(found, truth)
    assert wrong["centred"] == 0
    assert wrong["printed"] >= 4


def test_a_budget_of_steps_is_kept(double):
    X, *_ = sample()
    found = learner.relax(X, directions(80), 1.0, max_steps=3, slots=64)
    assert np.all(np.asarray(found.outcome) == Outcome.stalled)
    assert np.all(np.asarray(found.steps) == 3)


def test_single_precision_is_refused():
    with pytest.raises(InputError, match="double precision"):
        learner.step(jnp.ones((2, 2)), jnp.ones((1, 2)), 1.0)


# EM --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(
    "free",
    [Freedom(), Freedom(widths=True), Freedom(widths=True, common=True), Freedom(weights=False, widths=True)],
    ids=["given widths", "free", "common", "equal weights"],
)
def test_em_never_goes_down(free, diagonal):
    rng = np.random.default_rng(0)
    Z, omega = rng.normal(size=(60, 3)) ** 3, rng.uniform(size=60)
    rows = rows_of(Z, omega / omega.sum(), diagonal=diagonal)
    g = Gaussians(rng.normal(size=(4, 3)), np.ones((4, 3 if diagonal else 1)), np.full(4, 0.25))
    levels = []
    for _ in range(50):
        log_p, r = expect(rows, g)
        levels.append(rows.omega @ log_p)
        g = maximise(rows, g, r, free)
    assert np.all(np.diff(levels) >= -ROUNDING)
    assert levels[-1] > levels[0] + 0.1


def blobs():
    return make_blobs(200, centers=3, n_features=3, cluster_std=1.5, random_state=4)[0] * [1.0, 3.0, 0.5] + 100.0


RULES = {
    "spherical": Spherical(),
    "diagonal": Diagonal(),
    "common": Spherical(common=True),
    "equal weights": Diagonal(equal_weights=True),
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


@pytest.mark.parametrize(("rule", "kind"), [(Spherical(), "spherical"), (Diagonal(), "diag")])
@pytest.mark.parametrize("data", ["blobs", "iris"])
def test_it_ends_at_the_maximum_of_the_likelihood(rule, kind, data):
    X = blobs() if data == "blobs" else load_iris().data
    ours = learner.fit(rule, X, components=3, accuracy=1e-10, passes=5000)
    model = GaussianMixture(3, covariance_type=kind, tol=1e-11, max_iter=5000, n_init=5, reg_covar=0, random_state=0)
    theirs = model.fit(X)
    assert ours.outcome == Outcome.converged
    assert ours.log_likelihood >= theirs.score(X) * (1 - np.sign(theirs.score(X)) * LIKELIHOOD)
    here = {"means_init": ours.centres, "weights_init": ours.weights, "precisions_init": 1 / ours.widths}
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
    monkeypatch.setattr(learner.annealing, "DENSE", 1)
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


def test_the_paper_s_student(double):
    """Two components of a given width are the paper's: one above the splitting, the map's minimum below it."""
    X, S, *_ = sample()
    top = float(np.linalg.eigvalsh(np.asarray(X.T @ X / len(X)))[-1])
    one = learner.fit(MaximumLikelihood(1.01 * top), np.asarray(S))
    np.testing.assert_allclose(one.centres, np.asarray(S).mean(axis=0)[None].repeat(2, axis=0), atol=1e-9)
    assert one.splits.sizes["split"] == 0
    two = learner.fit(MaximumLikelihood(0.6 * top), np.asarray(S), accuracy=1e-10)
    minimum = learner.relax(X, directions(1), 0.6 * top)
    assert cosine(two.centres[0] - two.centres[1], minimum.dU[0]) > 0.999

    def level(width, energy):  # the whole log-likelihood from the energy; [barkai1994, eqs. (4), (6)]
        return -0.5 * N * np.log(2 * np.pi * width) - 0.5 * float(jnp.mean(jnp.sum(X**2, axis=1))) / width - energy

    least = level(0.6 * top, float(minimum.energy[0]))
    assert least <= two.log_likelihood < least + 2.5e-3  # erratum B2: the mean of the centres is not quite the data's
    np.testing.assert_array_equal(two.weights, 0.5)


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
    several = [learner.fit(Spherical(), X, components=5, noise=3.0, n_init=n, key=KEY) for n in (1, 4)]
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
    "step": (Spherical(), X, {"step": 1.0}, "`step` must lie strictly between"),
    "accuracy": (Spherical(), X, {"accuracy": 0.0}, "`accuracy` must be positive"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    rule, data, options, message = BAD[name]
    with pytest.raises(InputError, match=message):
        learner.fit(rule, data, **options)


def test_widths_must_be_positive():
    with pytest.raises(InputError, match="`width` must be positive"):
        MaximumLikelihood(0.0)
    with pytest.raises(InputError, match="`least` must be positive"):
        Spherical(least=-1.0)


def test_a_budget_of_passes_is_kept():
    fitted = learner.fit(Spherical(), load_iris().data, components=4, passes=5)
    assert fitted.outcome == Outcome.stalled
    assert fitted.centres.shape == (4, 4)
    assert np.all(np.isfinite(fitted.centres))
