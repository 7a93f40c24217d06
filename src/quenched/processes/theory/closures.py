r"""Closures: what the random multiplicity of a row does on average, as a function of its posterior variance.

A row $i$ that comes $s_i \sim \mathrm{Poisson}(\mu)$ times acts on the process like one measurement of precision
$s_i/\sigma^2$. Averaged over $s_i$ it acts like a measurement of precision $u_i$, which depends on the posterior
variance $g_i$ of the row itself. Both closures give, for each row,

* $u$, the effective precision,
* $w = -du/dg \ge 0$, so that $M = (G \circ G)\,\mathrm{diag}\,w$ is the Jacobian of the fixed-point map, and
  $c = w g^2$ the strength of the fluctuations,
* $g / g^{oob} = 1 - u g$, by how much seeing the row shrinks its own variance; $0 \le c \le u g < 1$.

`Variational` is the paper's (it keeps the mean effect of $s_i$ only), `Cavity` matches the Poisson average exactly at
each row and is exact for a single one.
"""

from __future__ import annotations

import abc
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, Real, is_traced

ANY_RATIO = 256
"""Multiplicities summed over when the ratio m/N is traced and its value unknown: enough for m/N up to 90."""


class Site(NamedTuple):
    """A closure at given posterior variances, each `[N]`."""

    u: Array  # effective precision of a row
    w: Array  # -du/dg
    keep: Array  # g / g_oob = 1 - u g


class Closure(eqx.Module):
    """How the average over multiplicities is closed."""

    @abc.abstractmethod
    def site(self, g: Array, mu: Array, s2: Array, terms: int) -> Site:
        r"""Effective precision and fluctuation of rows with posterior variance `g`.

        Args:
            g: posterior variances $g_i$.
            mu: $\mu = m/N$, the mean multiplicity.
            s2: $\sigma^2$.
            terms: multiplicities to sum over, see `terms_for`.
        """


class Variational(Closure):
    r"""The paper's closure, $u = \mu/(\sigma^2 + g)$ and $w = \mu/(\sigma^2 + g)^2$. [malzahn2002, eqs. (14), (16)]

    It underestimates variance and error where $g^{oob} \gg \sigma^2$: use it to compare with the paper.
    """

    def site(self, g: Array, mu: Array, s2: Array, terms: int) -> Site:
        r"""$u = \mu/(\sigma^2 + g)$."""
        del terms
        u = mu / (s2 + g)
        return Site(u, u / (s2 + g), 1 - u * g)


class Cavity(Closure):
    r"""The closure that is exact for one row: the Poisson average at the row is matched.

    With $x = g^{oob}/\sigma^2$, $a_k = \langle (1 + s x)^{-k} \rangle_s$ over $s \sim \mathrm{Poisson}(\mu)$:

    $$g^{oob} a_1 = g, \qquad u = 1/g - 1/g^{oob}, \qquad w = (1 - a_1^2/a_2)/g^2$$

    computed without cancellation from $t = (s/\sigma^2)/(1 + s x)$: $u = \langle t \rangle/a_1$ and
    $w = \mathrm{var}(t)/(a_1^2 a_2)$.
    """

    def site(self, g: Array, mu: Array, s2: Array, terms: int) -> Site:
        r"""Solve $g^{oob} a_1(g^{oob}) = g$ and give $u$ and $c$ there."""
        oob = cavity_variance(g, mu, s2, terms)
        a1, a2, t1, t2 = _averages(oob, mu, s2, terms)
        return Site(t1 / a1, (t2 - jnp.square(t1)) / (a2 * jnp.square(a1)), a1)

    def scattering(self, g: Array, mu: Array, s2: Array, terms: int) -> tuple[Array, Array]:
        r"""How much data sets differ at a row: $v = \langle \tau^2 \rangle$ and $\langle \tau^3 \rangle/v$.

        Here $\tau = \delta/(1 + \delta g)$ with $\delta = s/\sigma^2 - u$; it has mean 0, and
        $1 - \tau g = 1/(a_1 (1 + s x))$.
        """
        oob = cavity_variance(g, mu, s2, terms)
        s, p = poisson(mu, terms)
        shrink = 1 / (1 + oob[..., None] * (s / s2))
        tau = (1 - shrink / jnp.sum(p * shrink, axis=-1, keepdims=True)) / g[..., None]
        second, third = (jnp.sum(p * tau**k, axis=-1) for k in (2, 3))
        return second, third / jnp.where(second > 0, second, 1.0)


def closure_of(closure: Any) -> Closure:
    """The closure that was asked for, by default `Cavity()`."""
    closure = Cavity() if closure is None else closure
    checks.kind("closure", closure, Closure, "Cavity() or Variational()")
    return closure


def terms_for(mu: Real) -> int:
    r"""How many multiplicities to sum over for a mean of $\mu$; rounded up, so that sizes share compiled programs."""
    if is_traced(mu):
        return ANY_RATIO
    most = float(np.max(mu))
    return max(128, 2 ** math.ceil(math.log2(most + 12 * math.sqrt(most) + 25)))


def poisson(mu: Array, terms: int) -> tuple[Array, Array]:
    r"""The multiplicities $0, 1, \ldots$ and their probabilities."""
    s = jnp.arange(terms, dtype=float)
    log_mu = jnp.log(jnp.where(mu > 0, mu, 1.0))
    log_p = jnp.where(s > 0, s * jnp.where(mu > 0, log_mu, -jnp.inf), 0.0) - mu - jax.lax.lgamma(s + 1)
    return s, jnp.exp(log_p)


def _averages(oob: Array, mu: Array, s2: Array, terms: int) -> tuple[Array, Array, Array, Array]:
    r"""$a_1$, $a_2$, $\langle t \rangle = (1 - a_1)/g^{oob}$ and $\langle t^2 \rangle$."""
    s, p = poisson(mu, terms)
    shrink = 1 / (1 + oob[..., None] * (s / s2))
    t = (s / s2) * shrink
    a1, a2, t1, t2 = (jnp.sum(p * x, axis=-1) for x in (shrink, jnp.square(shrink), t, jnp.square(t)))
    return a1, a2, t1, t2


def cavity_variance(g: Array, mu: Array, s2: Array, terms: int) -> Array:
    r"""The variance without the row, $g^{oob}$ in $g^{oob} a_1(g^{oob}) = g$.

    The left side is concave and increasing with slope $a_2$, so Newton's method from $g^{oob} = g$ is monotone.
    Its last step is the one that is differentiated: at the solution its derivatives are those of the solution.
    """
    fixed = jax.lax.stop_gradient((g, jnp.asarray(mu), s2))

    def step(oob: Array, args: tuple[Array, Array, Array]) -> Array:
        a1, a2, *_ = _averages(oob, *args[1:], terms)
        return oob + (args[0] - oob * a1) / jax.lax.stop_gradient(a2)

    def body(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        oob, _, count = state
        new = step(oob, fixed)
        return new, jnp.max(jnp.abs(new - oob) / jnp.where(new > 0, new, 1.0)), count + 1

    start = (fixed[0], jnp.asarray(jnp.inf), jnp.asarray(0))
    found, _, _ = jax.lax.while_loop(lambda s: (s[1] > 1e-9) & (s[2] < 100), body, start)  # then one more: 1e-16
    return step(jax.lax.stop_gradient(found), (g, jnp.asarray(mu), s2))
