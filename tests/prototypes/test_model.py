import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched import prototypes
from quenched.core.types import InputError
from quenched.prototypes import model


def test_sample_has_the_declared_moments():
    law = prototypes.TwoClusters(prior=0.7, separation=2.0, variances=(0.5, 2.0))
    X, y = law.sample(jax.random.key(0), 20_000, size=3)
    assert X.dtype == np.float64
    assert np.mean(y == 1) == pytest.approx(0.7, abs=0.02)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), [2, 0, 0], atol=0.05)
    np.testing.assert_allclose(X[y == -1].mean(axis=0), [0, 2, 0], atol=0.1)
    np.testing.assert_allclose(X[y == 1].var(axis=0), 0.5, rtol=0.05)
    np.testing.assert_allclose(X[y == -1].var(axis=0), 2.0, rtol=0.08)


def test_centres_have_the_declared_gram_matrix():
    gram = np.array([[1.0, -1.0, 0.2], [-1.0, 1.0, -0.2], [0.2, -0.2, 1.0]])  # the first two are antipodal: rank 2
    law = prototypes.Clusters([0.3, 0.3, 0.4], (0, 1, 1), separations=[1.0, 2.0, 3.0], variances=[1e-8] * 3, gram=gram)
    X, _ = law.sample(jax.random.key(1), 300, size=5)
    distance = np.unique(np.round(np.linalg.norm(X, axis=1), 2))
    np.testing.assert_allclose(distance, [1.0, 2.0, 3.0], atol=0.01)
    with jax.enable_x64(True):
        B = np.asarray(model.frame(jnp.asarray(gram)))
    np.testing.assert_allclose(B @ B.T, gram, atol=1e-12)


def test_importing_and_sampling_leave_jax_as_it_was():
    law = prototypes.TwoClusters()
    law.sample(jax.random.key(0), 2, size=3)
    assert not jax.config.jax_enable_x64
    assert jnp.ones(1).dtype == jnp.float32


def test_the_rules_of_the_paper():
    S, sigma = jnp.array([[1], [-1]]), jnp.array([[1, -1]])
    np.testing.assert_array_equal(prototypes.LVQ1().g(S, sigma), [[1, -1], [-1, 1]])
    np.testing.assert_array_equal(prototypes.LVQPlus().g(S, sigma), [[1, 0], [0, 1]])
    np.testing.assert_array_equal(prototypes.VQ().g(S, sigma), [[1, 1], [1, 1]])


def test_schedules(double):
    assert float(prototypes.Decay(0.4, 10.0)(10.0)) == pytest.approx(0.2)
    line = prototypes.Interpolated([0.4, 0.2], until=20.0)
    assert [float(line(a)) for a in (0.0, 5.0, 20.0, 99.0)] == pytest.approx([0.4, 0.35, 0.2, 0.2])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: prototypes.TwoClusters(prior=1.0), "`prior` must lie strictly between 0 and 1"),
        (lambda: prototypes.TwoClusters(prior=-0.2), "`prior`"),
        (lambda: prototypes.TwoClusters(prior=float("nan")), "`prior`"),
        (lambda: prototypes.TwoClusters(prior="x"), "must be a number"),
        (lambda: prototypes.TwoClusters(separation=-1), "`separation`"),
        (lambda: prototypes.TwoClusters(variances=(1.0, 0.0)), "`variances` must be positive"),
        (lambda: prototypes.TwoClusters(variances=(1.0,)), "two numbers"),
        (lambda: prototypes.LVQ1(rate=0.0), "`rate` must be positive"),
        (lambda: prototypes.LVQ1(rate=-0.1), "`rate` must be positive"),
        (lambda: prototypes.LVQ1(rate=float("inf")), "`rate` must be positive and finite"),
        (lambda: prototypes.LVQ1(labels=(1,)), "at least two prototypes"),
        (lambda: prototypes.LVQ21(labels=(1, 1, -1)), "two prototypes"),
        (lambda: prototypes.Clusters([0.5, 0.6], (0, 1)), "must sum to 1"),
        (lambda: prototypes.Clusters([0.5, 0.5], (0, 1), gram=[[1, 2], [2, 1]]), "positive semi-definite"),
        (lambda: prototypes.Clusters([0.5, 0.5], (0, 1, 1)), "one number for each of the 3 labels"),
        (lambda: prototypes.Overlaps(R=[[0.0, 0.0]], Q=[[1.0, 0.0], [0.0, 1.0]]), "shapes"),
        (lambda: prototypes.NearOrigin(0.0), "`norm` must be positive"),
        (lambda: prototypes.Decay(0.0, 1.0), "`initial` must be positive"),
        (lambda: prototypes.Interpolated([0.1], 1.0), "two numbers or more"),
        (lambda: prototypes.TwoClusters().sample(jax.random.key(0), 0, size=3), "`examples` must be at least 1"),
        (lambda: prototypes.TwoClusters().sample(jax.random.key(0), 3, size=1), "`size` must be at least 2"),
    ],
)
def test_bad_declarations_get_a_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
