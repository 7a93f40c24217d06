r"""A theory with a landmark whose state is known in closed form.

$x^3 = a$, $y = b(a + 1)$, $z = b y$, so that $m = xz = a^{1/3} b^2 (a + 1)$; the cube root is a landmark.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from quenched.core import saddle


class Moment(NamedTuple):
    m: jax.Array


class Cubic(saddle.Theory):
    def kernel(self, x, theta, marks):
        a, b = theta
        root = marks - (marks**3 - a) / (3 * marks**2)
        root = root - (root**3 - a) / (3 * root**2)
        equations = jnp.stack([x[0] - root, x[1] - b * (a + 1), x[2] - b * x[1]])
        return saddle.Kernel(equations, jnp.sum(x), Moment(x[0] * x[2]))

    def landmarks(self, x, theta):
        xp = saddle.namespace(x)
        return saddle.iterate(lambda w: w - (w**3 - theta.a) / (3 * w**2), 1.0 + abs(theta.a),
                              lambda new, old: xp.any(new < old), most=60)  # fmt: skip


class Numbers(NamedTuple):
    a: float
    b: float


CUBIC = Cubic()


def moment(a, b):
    return a ** (1 / 3) * b**2 * (a + 1)
