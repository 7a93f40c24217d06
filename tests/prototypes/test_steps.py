"""The on-line step and one pass of it, as JAX: compiled once, in double precision, in little memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.prototypes.learner.fit import Fitted, _world, fit
from quenched.prototypes.learner.steps import nearest, present, update
from quenched.prototypes.learner.table import Table
from quenched.prototypes.model import LVQ1, Decay, LVQPlus
from tests import tolerances
from tests.prototypes.test_learner import KEY, Cautious, table


@pytest.mark.parametrize("all_move", [False, True])
def test_update_is_the_same_eager_compiled_and_vectorised(all_move):
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        w, x, gain = (jnp.asarray(rng.normal(size=shape)) for shape in ((5, 4, 3), (5, 3), (5, 4)))
        step = lambda w, x, gain: update(w, x, gain, all_move=all_move)  # noqa: E731
        loop = np.stack([step(*each) for each in zip(w, x, gain, strict=True)])
        for run in range(5):
            d = np.sum((np.asarray(w[run]) - np.asarray(x[run])) ** 2, axis=1)
            expected = np.array(w[run])
            for s in range(4) if all_move else [int(np.argmin(d))]:
                expected[s] += float(gain[run, s]) * (np.asarray(x[run]) - expected[s])
            np.testing.assert_allclose(loop[run], expected, rtol=0, atol=tolerances.MACHINE)
        np.testing.assert_allclose(jax.jit(jax.vmap(step))(w, x, gain), loop, rtol=0, atol=tolerances.MACHINE)


def test_rules_rates_and_folds_share_one_compilation():
    X, y = table(rows=190)
    fit(LVQ1(0.1), (X, y), key=KEY, prototypes_per_class=2, passes=1)
    before = present._cache_size()
    for rule in (LVQ1(0.2), LVQPlus(0.3), Cautious(Decay(0.3, 2.0))):
        fit(rule, (X[:170], y[:170]), key=KEY, prototypes_per_class=2, passes=2, sample_weight=np.full(170, 0.5))
    assert present._cache_size() == before


def test_memory_does_not_hold_rows_times_prototypes():
    n, K, N = 4096, 64, 16
    with jax.enable_x64(True):
        labels, rows = np.arange(K), Table(np.ones((n, N)), np.arange(K), np.arange(n) % K, np.ones(n))
        w = np.ones((K, N))
        world = _world(w, labels, rows, LVQ1(0.1), None)
        compiled = present.lower(w, world, np.arange(n), n, all_move=False).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 8 * n * K / 10


def test_double_precision_inside_and_untouched_outside():
    X, y = table()
    fitted = fit(LVQ1(0.1), (X.astype(np.float32), y), key=KEY, passes=1)
    assert fitted.prototypes.dtype == np.float64
    assert not jax.config.jax_enable_x64
    assert isinstance(fitted, Fitted)


def test_nearest_far_from_the_origin():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(3000, 2)), rng.normal(size=(700, 2))
    expected = ((X[:, None] - w) ** 2).sum(axis=2)
    index, squared = nearest(w + 1e7, X + 1e7)
    np.testing.assert_array_equal(index, expected.argmin(axis=1))
    np.testing.assert_allclose(squared, expected.min(axis=1), rtol=0, atol=1e-6)
