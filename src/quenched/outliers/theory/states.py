r"""The state of each student as $N \to \infty$, a pure JAX function of law, rule and sample size.

There may be several: an *informed* one that knows the teacher, an *overfit* one, long but nearly orthogonal to the
teacher, that selects outliers which happen to agree, and a *trivial* one that selects next to nothing. Where the
stability exceeds 1 replica symmetry is broken and the numbers are approximations: beyond some $\eta$ on the informed
branch, on every overfit branch, and in every state of hard selection but the trivial one.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import jax.numpy as jnp

from quenched.core.types import Array, InputError, Outcome, Real, require_double
from quenched.outliers.model import Contaminated, Gibbs, HardSelection, Hebb, Rule, SoftSelection
from quenched.outliers.theory import gibbs, hard, scaled, soft
from quenched.outliers.theory.scaled import Setting


class Branch(enum.StrEnum):
    r"""The states of a student, in the order in which they are met as $\eta$ grows."""

    informed = "informed"
    """It knows the teacher."""
    overfit = "overfit"
    """Long, but nearly orthogonal to the teacher: it has selected outliers that happen to agree."""
    trivial = "trivial"
    """It selects next to nothing."""


BRANCHES = tuple(one.value for one in Branch)

LONGER = 2.5
"""How much longer than it should be the vector of hard selection is at the start of a search."""


class State(NamedTuple):
    """A state. Those of zero temperature have $q = Q$."""

    R: Array
    Q: Array
    q: Array  # overlap of two vectors drawn for the same examples
    z: Array  # susceptibility
    Delta: Array
    Phi: Array
    free_energy: Array  # of Gibbs learning: the mean energy of the vector drawn
    stability: Array  # replica symmetry is stable below 1
    selected: Array  # share of the examples, each by its weight
    outcome: Array  # an `Outcome` code
    residual: Array


def state(
    law: Contaminated,
    rule: Rule,
    alpha: Real,
    *,
    branch: Branch | str = Branch.informed,
    start: tuple[Real, Real, Real] | None = None,
) -> State:
    r"""The state after $\alpha$ examples per dimension: a pure JAX function of law, rule and $\alpha$.

    Args:
        law: the world.
        rule: the student.
        alpha: examples per dimension.
        branch: which state is sought. It is a start, not a promise: beyond the
            end of a branch the search comes to another state. `curve` knows where branches end.
        start: $(R, Q, z)$ near the wanted state instead, $(R, q, z)$ for `Gibbs`.

    Returns:
        A `State`. Nothing is raised on failure: see its `outcome` and `residual`.

    Raises:
        InputError: in single precision, or for an unknown branch.

    Examples:
        >>> import jax
        >>> from quenched import outliers
        >>> rule = outliers.SoftSelection()
        >>> with jax.enable_x64(True):
        ...     R = jax.jit(lambda eta: outliers.theory.state(outliers.Contaminated(10.0, eta), rule, 20.0).R)
        ...     round(float(R(2.0)), 4)
        0.9371
    """
    require_double("outliers.theory.state")
    if branch not in BRANCHES:
        raise InputError(f"Argument `branch` must be one of {', '.join(BRANCHES)}, but {branch!r} was given.")
    at = scaled.setting(law, rule, alpha)
    if isinstance(rule, Hebb):
        return _hebb(at)
    begin, steps = (guess(at, branch), scaled.RELAXED) if start is None else (scaled.unknowns(*start), 0)
    if isinstance(rule, SoftSelection):
        return _solved(soft.equations, at, begin, steps)
    if isinstance(rule, Gibbs):
        T = jnp.asarray(rule.temperature, float)
        found = _solved(gibbs.equations, (at, T), begin, steps, T)
        fine = gibbs.resolved(found.q, found.Q, at, 1 / T)
        return found._replace(outcome=jnp.where(fine, found.outcome, Outcome.failed))
    if not isinstance(rule, HardSelection):
        raise InputError(f"Argument `rule` must be a student of outliers, but {rule!r} was given.")
    if start is None:  # a vector that is short at first selects nothing
        begin = begin.at[1].add(2 * jnp.log(LONGER))
    return _trivial(at) if branch == "trivial" and start is None else _solved(hard.equations, at, begin, steps)


def guess(at: Setting, branch: str) -> Array:
    """Where the search for a branch begins: angle, ln Q, ln z."""
    if branch == "informed":  # as if informative examples were known
        alpha = at.alpha * at.weights[1]
        R = at.gt * alpha / (1 + at.gt * alpha)
        return scaled.unknowns(R, R * R + at.gt / at.gamma * R / (1 + at.gt * alpha), 1 / (1 + at.gt * alpha))
    if branch == "overfit":
        return jnp.stack([0.48 * jnp.pi + 0 * at.eta, jnp.log(0.9) + 0 * at.eta, jnp.log(0.5) + 0 * at.eta])
    ln_Q = jnp.log(at.alpha * at.gt**2 / at.gamma) - 2 * at.eta  # to lowest order in the weight exp(-eta) of an example
    cosine = jnp.minimum(jnp.sqrt(at.alpha * at.gamma) * jnp.exp(-at.eta), 0.5)
    return jnp.stack([jnp.arccos(cosine), ln_Q, 0 * at.eta])


def measures(R: Array, Q: Array) -> tuple[Array, Array]:
    r"""$\Delta = Q - 2R + 1$ and $\Phi = \arccos(R/\sqrt Q)/\pi$, 1/2 at $Q = 0$. [dietrich1998, eqs. (12), (15)]"""
    there = Q > 0
    cosine = jnp.where(there, R / jnp.sqrt(jnp.where(there, Q, 1.0)), 0.0)
    return Q - 2 * R + 1, jnp.arccos(jnp.clip(cosine, -1, 1)) / jnp.pi


def _solved(equations: scaled.Equations, at: Any, begin: Array, steps: int, T: Real = 0.0) -> State:
    """The state near a start, from its equations."""
    found = scaled.search(equations, begin, at, plain_steps=steps)
    x, readings = scaled.differentiable(equations, found, at)
    R, q, z = scaled.order_parameters(x)
    Q = q + T * z
    return State(R, Q, q, z, *measures(R, Q), *readings, scaled.outcome(found), found.residual)


def _trivial(at: Setting) -> State:
    """Nothing is selected; without a vector there is no angle, and 1/2 is said. [dietrich1998, erratum E8]"""
    zero, one = jnp.zeros_like(at.eta), jnp.ones_like(at.eta)
    outcome = jnp.where(at.eta > hard.threshold(at), Outcome.converged, Outcome.absent)
    return State(zero, zero, zero, one, one, one / 2, zero, zero, zero, outcome, zero)


def _hebb(at: Setting) -> State:
    r"""$R = \alpha w_1/(\alpha + 1/\tilde\gamma)$, $Q = R^2 + (\alpha/\gamma)/(\alpha + 1/\tilde\gamma)^2$.

    The energy is that of soft selection when every example counts, $\mathcal H = |J|^2/2 - \sum_\mu h_\mu$: linear in
    the fields, so that nothing can break replica symmetry. [dietrich1998, eq. (26)]
    """
    gamma, gt, eta, alpha = at
    total = alpha + 1 / gt
    R = alpha * at.weights[1] / total
    Q = R * R + alpha / gamma / total**2
    f = alpha * eta - (1 + alpha * gt) * Q / 2
    zero, one = jnp.zeros_like(R), jnp.ones_like(R)
    return State(R, Q, Q, 1 / (1 + alpha * gt), *measures(R, Q), f, zero, one, jnp.asarray(Outcome.converged), zero)
