r"""Closures: what the random multiplicity of a row does on average, as a function of its posterior variance.

A row $i$ that comes $s_i \sim \mathrm{Poisson}(\mu)$ times acts on the process like one measurement of precision
$s_i/\sigma^2$. Averaged over $s_i$ it acts like a measurement of precision $u_i$, which depends on the posterior
variance $g_i$ of the row itself. Both closures give, for each row,

* $u$, the effective precision,
* $w = -du/dg \ge 0$, so that $M = (G \circ G)\,\mathrm{diag}\,w$ is the Jacobian of the fixed-point map, and
  $c = w g^2$ the strength of the fluctuations,
* $g / g^{oob} = 1 - u g$, by how much seeing the row shrinks its own variance; $0 \le c \le u g < 1$.

`Variational` is the paper's (it keeps the mean effect of $s_i$ only), `Cavity` matches the Poisson average exactly at
each row and is exact for a single one. The equations take NumPy arrays, or JAX arrays for derivatives.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from quenched.core import checks
from quenched.core.linear import namespace, repeat_while
from quenched.core.types import Array, is_traced

ANY_RATIO = 256
"""Multiplicities summed over when the ratio m/N is traced and its value unknown: enough for m/N up to 90."""


class Site(NamedTuple):
    """A closure at given posterior variances, each `[N]`."""

    u: Array  # effective precision of a row
    w: Array  # -du/dg
    keep: Array  # g / g_oob = 1 - u g


class Counts(NamedTuple):
    r"""How often a row comes: multiplicities and their Poisson probabilities, `[terms]`."""

    mu: Any
    s: Any
    p: Any


def counts_of(mu: Any) -> Counts:
    r"""The multiplicities that occur for a mean of $\mu$, all but $10^{-30}$ of them, and their probabilities."""
    from scipy.special import gammaln

    if is_traced(mu):
        s = np.arange(ANY_RATIO, dtype=float)
    else:
        wide = 12 * np.sqrt(float(mu)) + 25
        s = np.arange(max(np.floor(float(mu) - wide), 0.0), np.ceil(float(mu) + wide))
    xp = namespace(mu)
    p = xp.exp(s * xp.log(xp.where(mu > 0, mu, 1.0)) - mu - gammaln(s + 1))
    return Counts(mu, s, xp.where((mu > 0) | (s == 0), p, 0.0))


class Closure(eqx.Module):
    """How the average over multiplicities is closed."""

    @abc.abstractmethod
    def site(self, g: Array, counts: Counts, s2: Array) -> Site:
        r"""Effective precision and fluctuation of rows with posterior variance `g` and noise variance `s2`."""


class Variational(Closure):
    r"""The paper's closure, $u = \mu/(\sigma^2 + g)$ and $w = \mu/(\sigma^2 + g)^2$. [malzahn2002, eqs. (14), (16)]

    It underestimates variance and error where $g^{oob} \gg \sigma^2$: use it to compare with the paper.
    """

    def site(self, g: Array, counts: Counts, s2: Array) -> Site:
        r"""$u = \mu/(\sigma^2 + g)$."""
        u = counts.mu / (s2 + g)
        return Site(u, u / (s2 + g), 1 - u * g)


class Cavity(Closure):
    r"""The closure that is exact for one row: the Poisson average at the row is matched.

    With $x = g^{oob}/\sigma^2$, $a_k = \langle (1 + s x)^{-k} \rangle_s$ over $s \sim \mathrm{Poisson}(\mu)$:

    $$g^{oob} a_1 = g, \qquad u = 1/g - 1/g^{oob}, \qquad w = (1 - a_1^2/a_2)/g^2$$

    computed without cancellation from $t = (s/\sigma^2)/(1 + s x)$: $u = \langle t \rangle/a_1$ and
    $w = \mathrm{var}(t)/(a_1^2 a_2)$.
    """

    def site(self, g: Array, counts: Counts, s2: Array) -> Site:
        r"""Solve $g^{oob} a_1(g^{oob}) = g$ and give $u$ and $c$ there."""
        d, shrink = counts.s / s2, _shrinking(cavity_variance(g, counts, s2), counts, s2)
        a1, a2 = shrink @ counts.p, shrink**2 @ counts.p
        t1, t2 = shrink @ (counts.p * d), shrink**2 @ (counts.p * d**2)
        return Site(t1 / a1, (t2 - t1**2) / (a2 * a1**2), a1)


def closure_of(closure: Any) -> Closure:
    """Check a closure; by default it is `Cavity()`."""
    closure = Cavity() if closure is None else closure
    checks.kind("closure", closure, Closure, "Cavity() or Variational()")
    return closure


def _shrinking(oob: Array, counts: Counts, s2: Array) -> Array:
    """By how much a row that comes `s` times shrinks its variance, `[N, terms]`."""
    return 1 / (1 + oob[..., None] * (counts.s / s2))


def cavity_variance(g: Array, counts: Counts, s2: Array) -> Array:
    r"""The variance without the row, $g^{oob}$ in $g^{oob} a_1(g^{oob}) = g$.

    The left side is concave and increasing with slope $a_2$, so Newton's method from $g^{oob} = g$ is monotone.
    Its last step is the one that is differentiated: at the solution its derivatives are those of the solution.
    """
    xp = namespace(g)
    stop = jax.lax.stop_gradient if isinstance(g, jax.Array) else lambda x: x

    def step(oob: Array, g: Array, counts: Counts, s2: Array) -> Array:
        shrink = _shrinking(oob, counts, s2)
        return oob + (g - oob * (shrink @ counts.p)) / stop(shrink**2 @ counts.p)

    def body(state: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        oob, _, count = state
        new = step(oob, *stop((g, counts, s2)))
        return new, xp.max(xp.abs(new - oob) / xp.where(new > 0, new, 1.0)), count + 1

    found, _, _ = repeat_while(lambda s: (s[1] > 1e-9) & (s[2] < 100), body, (stop(g), xp.asarray(np.inf), 0))
    return step(stop(found), g, counts, s2)  # after one more the error is 1e-16
