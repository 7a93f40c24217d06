"""Random numbers by shared programs are those of `jax.random`."""

import jax
import numpy as np

from quenched.core import random

KEY = jax.random.key(3)


def test_numbers_are_those_of_jax(double):
    shape = (37, 41)
    np.testing.assert_array_equal(random.normals(KEY, *shape), jax.random.normal(KEY, shape))
    np.testing.assert_array_equal(random.uniforms(KEY, *shape), jax.random.uniform(KEY, shape))
    np.testing.assert_array_equal(random.signs(KEY, *shape), jax.random.rademacher(KEY, shape))
    for one, two in zip(random.split(KEY, 3), jax.random.split(KEY, 3), strict=True):
        assert one == two
