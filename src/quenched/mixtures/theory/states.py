r"""The state of maximum likelihood as $N \to \infty$: a replica theory declared in one energy.

With the centre of all examples taken away, the likelihood of the splitting vector is, per example,
$\epsilon = q/2\sigma - \langle \ln\cosh(y/\sigma) \rangle$, where $y$ is the field of an example, so the energy of a
field is $\ell(y, q) = q/2\sigma - \ln\cosh(y/\sigma)$, its law $y_0 \sim \mathcal N(u_0 r, q)$ and $\rho^2 = 1/2$. The
zero-temperature replica-symmetric theory of `core.replica` does the rest. Three phases: unsplit ($q = 0$), ordered
($r > 0$) and random ($q > 0$, $r = 0$). Where the stability value exceeds 1, as in all of the random phase, replica
symmetry is broken and the numbers are approximations.

[barkai1994, eqs. (6), (9), (10); errata B1, B3, B4, B10]
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.special import erf

from quenched.core import checks, controls, gaussian, replica, results
from quenched.core.fixed_point import three
from quenched.core.progress import track
from quenched.core.types import Array, Outcome, Real, double, outcome_names, require_double
from quenched.mixtures.model import ORDER_PARAMETERS, MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory.scaled import equations

DIRECTION = 1e-5
"""A cosine below this is none."""
GAIN = 1e-6
"""The random state is unstable if it gains more than this by turning towards the truth."""
SMALLEST, HALVINGS = -40.0, 60
"""The least logarithm of $c^2/(1 - c^2)$ of the best estimate, and how often its range is halved."""
POINTS = 801
"""Points of the trapezoidal rule over a Gaussian: for smooth functions it converges exponentially."""
ACCURACY = 1e-9
"""What the equation of the best estimate may leave over, relative."""
BATCH = 16
"""States that are computed together."""


class Phase(enum.IntEnum):
    """What the two centres do."""

    unsplit = 0
    """They coincide."""
    ordered = 1
    """They are apart, in a direction that knows the truth."""
    random = 2
    """They are apart, in a direction that only the accidents of the sample chose."""


class State(NamedTuple):
    """The state at one sample size and width."""

    r: Array
    q: Array
    error: Array
    free_energy: Array
    stability: Array
    phase: Array  # a `Phase` code
    outcome: Array  # an `Outcome` code
    residual: Array


class Energy(eqx.Module):
    r"""$\ell(y, q) = q/2\sigma - \ln\cosh(y/\sigma)$."""

    width: Array

    def __call__(self, y: Array, q: Array) -> Array:
        """The energy of a field."""
        h = jnp.abs(y / self.width)
        return q / (2 * self.width) - (h + jnp.log1p(jnp.exp(-2 * h)) - jnp.log(2.0))


def problem(law: TwoGaussians, rule: MaximumLikelihood) -> replica.Problem:
    """What the replica core is asked."""
    fields = replica.Classes(means=jnp.asarray(law.separation))
    return replica.Problem(Energy(jnp.asarray(rule.width)), fields, rho2=0.5)


def error(law: TwoGaussians, r: Real, q: Real) -> Array:
    r"""The probability of assigning a new example to the wrong centre.

    $$\epsilon_C = \Phi(-u_0 \cos\theta/\sqrt2), \qquad \cos\theta = \sqrt{2 r^2/q}$$

    and 1/2 at $q = 0$, where there is no direction. [barkai1994, eq. (9), erratum B3]
    """
    split = jnp.asarray(q) > 0
    cosine = jnp.where(split, jnp.sqrt(2.0) * r / jnp.sqrt(jnp.where(split, q, 1.0)), 0.0)
    return gaussian.cdf(-law.separation * cosine / jnp.sqrt(2.0))


def state(law: TwoGaussians, rule: MaximumLikelihood, alpha: Real) -> State:
    r"""The state after $\alpha$ examples per dimension: a pure JAX function of law, rule and $\alpha$.

    Args:
        law: the world.
        rule: the student.
        alpha: examples per dimension.

    Raises:
        InputError: in single precision.

    Examples:
        >>> import jax
        >>> from quenched import mixtures
        >>> law, rule = mixtures.TwoGaussians(2.0), mixtures.MaximumLikelihood
        >>> with jax.enable_x64(True):
        ...     error = jax.jit(jax.value_and_grad(lambda width: mixtures.theory.state(law, rule(width), 1.0).error))
        ...     value, slope = error(3.0)
        >>> round(float(value), 4), round(float(slope), 4)
        (0.1511, 0.0012)
    """
    require_double("mixtures.theory.state")
    alpha = jnp.asarray(alpha, float)
    asked = problem(law, rule)
    start, lost = _start(law, rule, alpha)
    R, Q, _, f, _, stability, outcome, residual = replica.state(asked, alpha, start)
    outcome = jnp.where(lost, Outcome.failed, outcome)
    r = jnp.abs(R)
    split = jnp.asarray(rule.width) < splitting(law, alpha)
    phase = jnp.where(r > DIRECTION * jnp.sqrt(Q / 2), Phase.ordered, Phase.random)
    return State(
        r=jnp.where(split, r, 0.0),
        q=jnp.where(split, Q, 0.0),
        error=error(law, jnp.where(split, r, 0.0), jnp.where(split, Q, 0.0)),
        free_energy=jnp.where(split, f / alpha, 0.0),
        stability=jnp.where(split, stability, _unsplit_stability(rule, alpha)),
        phase=jnp.where(split, phase, Phase.unsplit),
        outcome=jnp.where(split, outcome, Outcome.converged),
        residual=jnp.where(split, residual, 0.0),
    )


def splitting(law: TwoGaussians, alpha: Real) -> Array:
    r"""The width below which one centre becomes two.

    $$\sigma_1 = (1 + l)\Big(1 + \frac{1}{\alpha l}\Big) \ \text{above}\ \alpha_c = l^{-2}, \qquad
      \sigma_2 = (1 + \alpha^{-1/2})^2 \ \text{below}, \qquad l = u_0^2/2$$

    the outlier and the edge of the spectrum of the examples' covariance.
    """
    l = jnp.square(law.separation) / 2
    return jnp.where(alpha * l * l > 1, (1 + l) * (1 + 1 / (alpha * l)), jnp.square(1 + 1 / jnp.sqrt(alpha)))


def _unsplit_stability(rule: MaximumLikelihood, alpha: Array) -> Array:
    r"""$\alpha a^2/(1-a)^2$, where $a$ is the smaller root of $\sigma = 1/\alpha a + 1/(1-a)$."""
    s = alpha * rule.width
    half = (s + 1 - alpha) / 2
    a = (half - jnp.sqrt(jnp.maximum(jnp.square(half) - s, 0.0))) / s
    return alpha * jnp.square(a / (1 - a))


def _start(law: TwoGaussians, rule: MaximumLikelihood, alpha: Array) -> tuple[tuple[Array, Array, Array], Array]:
    """$(r, q, x)$ by the scaled equations, in which order cannot be lost to the random state: that is divided out.

    Beside it, whether an ordered state that must exist was not found: order exists where the random state would gain
    by turning towards the truth.
    """
    law, rule, alpha = jax.lax.stop_gradient((law, rule, alpha))
    l, width = jnp.square(law.separation) / 2, jnp.asarray(rule.width)

    def both(x: Array, ordered: Array) -> tuple[Array, Array]:
        k, rest, b = jax.nn.sigmoid(x[0]), jax.nn.sigmoid(-x[0]), jnp.exp(x[1])
        c, noise = ordered * jnp.sqrt(jax.nn.sigmoid(2 * x[2])), jnp.where(ordered > 0, jax.nn.sigmoid(-2 * x[2]), 1.0)
        at = equations(k, b, c, l, alpha, rest=rest, noise=noise)
        direction = jnp.where(ordered > 0, at.direction, x[2])
        return jnp.stack([at.length, direction, jnp.log(rest * at.scale / width)]), at.direction

    def found(guess: Array, ordered: Array) -> tuple[Array, Array, Array]:
        tangent, q, x = guess
        s = jnp.sqrt(q) / width  # k/(1 - k)
        begin = jnp.stack([jnp.log(s), jnp.log(x / width**2 / (1 + s)), jnp.log(tangent)])
        root = three(lambda x: both(x, ordered), begin, tolerance=1e-12)
        (log_s, log_b, log_tangent), direction = root.value
        s, c = jnp.exp(log_s), ordered * jnp.sqrt(jax.nn.sigmoid(2 * log_tangent))
        state = jnp.stack([c * s * width / jnp.sqrt(2.0), (s * width) ** 2, jnp.exp(log_b) * (1 + s) * width**2])
        return state, root.outcome == Outcome.converged, direction

    guesses = jnp.stack([_ordered_guess(law, rule, alpha), _random_guess(rule, alpha)])
    (ordered, random), (exists, _), (_, gain) = jax.vmap(found)(guesses, jnp.array([1.0, 0.0]))
    r, q, x = jnp.where(exists, ordered, random)
    return (r, q, x), ~exists & (gain > GAIN)


def _ordered_guess(law: TwoGaussians, rule: MaximumLikelihood, alpha: Array) -> Array:
    r"""$(\cot\theta, q, x)$ between what is known at the splitting line and at width 0: two-means clustering."""
    l, u0 = jnp.square(law.separation) / 2, jnp.asarray(law.separation)
    top = (1 + l) * (1 + 1 / (alpha * l))
    y = jnp.minimum(rule.width / top, 1 - 1e-12)
    t1 = jnp.sqrt(jnp.maximum(alpha * l * l - 1, 1e-4) / (1 + l))  # cot of the angle, at the splitting

    def means(_: int, t: Array) -> Array:
        return u0 * jnp.sqrt(alpha / 2) * erf(u0 / 2 * t / jnp.sqrt(1 + t * t))

    t0 = jnp.maximum(jax.lax.fori_loop(0, 30, means, jnp.asarray(2.0)), 0.05)
    c1, c0 = (jnp.square(t) / (1 + jnp.square(t)) for t in (t1, t0))
    field = jnp.sqrt(2 / jnp.pi) * jnp.exp(-l * c0 / 2)
    root0 = field + jnp.sqrt((1 + jnp.square(t0)) / alpha)
    b = l * alpha / (1 + l * alpha)
    K = (l - 1 / (l * alpha)) * (3 + l * c1) / (3 * b**3) + (1 + l * c1) / b**4
    root1 = jnp.sqrt(top**3 / jnp.maximum(K, 0.1))
    q = (1 - y) * jnp.square(y * root1 + (1 - y) * root0)
    chi = y * (1 + 1 / l) + (1 - y) / (1 - field / root0)
    return jnp.stack([jnp.exp(y * jnp.log(t1) + (1 - y) * jnp.log(t0)), q, chi * rule.width / alpha])


def _random_guess(rule: MaximumLikelihood, alpha: Array) -> Array:
    """The same without a direction."""
    y = jnp.minimum(rule.width / jnp.square(1 + 1 / jnp.sqrt(alpha)), 1 - 1e-12)
    q = (1 - y) * jnp.square(1 / jnp.sqrt(alpha) + jnp.sqrt(2 / jnp.pi))
    chi = 1 + jnp.sqrt(alpha) * (y + (1 - y) * jnp.sqrt(2 / jnp.pi))
    return jnp.stack([jnp.ones(()), q, chi * rule.width / alpha])


@jax.jit
def _some(laws: TwoGaussians, rules: MaximumLikelihood, alphas: Array) -> State:
    return jax.vmap(state)(laws, rules, alphas)


def _states(plan: controls.Plan, alphas: np.ndarray) -> dict[str, np.ndarray]:
    """States `[points, sample sizes]`, in batches of one length, so that there is one program."""
    every = [(law, rule, alpha) for law, rule in zip(plan.laws, plan.rules, strict=True) for alpha in alphas]
    parts = []
    for i in track(range(0, len(every), BATCH), "theory"):
        laws, rules, sizes = zip(*(every[i : i + BATCH] + [every[i]] * BATCH)[:BATCH], strict=True)
        parts.append(jax.tree.map(np.asarray, _some(controls.stack(laws), controls.stack(rules), np.array(sizes))))
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in State._fields}
    return {name: value[: len(every)].reshape(len(plan.laws), len(alphas)) for name, value in joined.items()}


@double
def curve(law: TwoGaussians, rule: MaximumLikelihood, *, alpha: Any, **sweep: Any) -> xr.Dataset:
    """Order parameters and error of maximum likelihood in theory.

    Args:
        law: the world.
        rule: the student.
        alpha: increasing sample sizes (examples per dimension), or one.
        **sweep: any field of the law or the rule, above all `width`; a sequence becomes a dimension of the result.

    Returns:
        A dataset with `r`, `q`, `error`, `free_energy` (per example), `stability` (below 1 replica symmetry holds),
        `phase`, `outcome` and `residual` over the controls.

    Examples:
        >>> from quenched import mixtures
        >>> law, rule = mixtures.TwoGaussians(separation=1.0), mixtures.MaximumLikelihood()
        >>> curve = mixtures.curve(law, rule, alpha=5.0, width=[0.5, 1.5, 3.0])
        >>> [str(phase) for phase in curve.phase.values]
        ['random', 'ordered', 'unsplit']
    """
    checks.kind("law", law, TwoGaussians, "a TwoGaussians law")
    checks.kind("rule", rule, MaximumLikelihood, "a MaximumLikelihood rule")
    alphas = checks.increasing("alpha", alpha)
    checks.positive("alpha", alphas)
    plan = controls.expand(law, rule, sweep)
    found = _states(plan, alphas)
    found["phase"] = np.array([p.name for p in Phase])[found["phase"]]
    result = results.assemble(
        found, plan, {"alpha": alphas}, ORDER_PARAMETERS, {}, science="mixtures", source="theory"
    )  # fmt: skip
    return result.isel(alpha=0) if np.ndim(alpha) == 0 else result


@jax.jit
def _optimal(law: TwoGaussians, alphas: Array) -> tuple[Array, Array]:
    r"""$c^2$, and what its equation leaves over.

    Divided by $c^2$ the equation reads $\alpha l^2\, (T(B)/B)\, (1 - c^2) = 1$. The left side falls from
    $\alpha l^2$ to 0: one solution above $\alpha_c = l^{-2}$, found by bisection in $\ln c^2/(1 - c^2)$, none below.
    """
    l, z = jnp.square(law.separation) / 2, np.linspace(-gaussian.TAIL, gaussian.TAIL, POINTS)

    def excess(x: Array) -> Array:
        B = l * jax.nn.sigmoid(x)
        # <tanh> = <tanh^2>, which loses no digits where B is small
        T = jnp.square(jnp.tanh(B[:, None] + jnp.sqrt(B)[:, None] * z)) @ (gaussian.pdf(z) * (z[1] - z[0]))
        return jnp.log(alphas * l * l * T / B) - jax.nn.softplus(x)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        above = excess(middle) > 0
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    exists = alphas * l * l > 1
    ends = (jnp.full_like(alphas, SMALLEST), jnp.log(alphas * l + 1) + 1)  # c^2/(1 - c^2) = alpha l T < alpha l
    low, high = jax.lax.fori_loop(0, HALVINGS, halve, ends)
    x = (low + high) / 2
    c2 = jnp.where(exists, jax.nn.sigmoid(x), 0.0)
    return c2, jnp.where(exists, jnp.abs(excess(x)), 0.0)


@double
def optimum(law: TwoGaussians, *, alpha: Any) -> xr.Dataset:
    r"""The least error that any estimate from so many unlabelled examples can have on average (Bayes).

    $$c^2 = \frac{\alpha l T}{1 + \alpha l T}, \qquad T = \langle \tanh(B + \sqrt B z) \rangle, \quad B = l c^2$$

    with $l = u_0^2/2$. Up to $\alpha_c = l^{-2}$ only $c = 0$ solves it: nothing can be learned, and the error is 1/2.

    Args:
        law: the world.
        alpha: increasing sample sizes, or one.

    Returns:
        `error`, `cosine` (of the angle between the best estimate and the truth), `outcome` and `residual` over `alpha`.

    Examples:
        >>> from quenched import mixtures
        >>> best = mixtures.optimum(mixtures.TwoGaussians(separation=1.0), alpha=[4.0, 5.0])
        >>> best.error.values.round(4).tolist()
        [0.5, 0.394]
    """
    checks.kind("law", law, TwoGaussians, "a TwoGaussians law")
    alphas = checks.increasing("alpha", alpha)
    checks.positive("alpha", alphas)
    c2, residual = (np.asarray(value) for value in _optimal(law, alphas))
    error = np.asarray(gaussian.cdf(-jnp.sqrt(jnp.square(law.separation) / 2 * c2)))
    outcome = outcome_names(np.where(residual < ACCURACY, Outcome.converged, Outcome.failed))
    values = {"error": error, "cosine": np.sqrt(c2), "outcome": outcome, "residual": residual}
    found = xr.Dataset({name: ("alpha", value) for name, value in values.items()}, {"alpha": alphas})
    return found.isel(alpha=0) if np.ndim(alpha) == 0 else found
