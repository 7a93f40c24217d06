r"""The state of each student as $N \to \infty$, a pure JAX function of law, rule and sample size.

There may be several: an *informed* one that knows the teacher, an *overfit* one, long but nearly orthogonal to the
teacher, that selects outliers which happen to agree, and a *trivial* one that selects next to nothing. Where the
stability exceeds 1 replica symmetry is broken and the numbers are approximations: beyond some $\eta$ on the informed
branch, on every overfit branch, and in every state of hard selection but the trivial one.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import saddle
from quenched.core.types import InputError, Outcome, Real, require_double
from quenched.outliers.model import Contaminated, Gibbs, HardSelection, Hebb, Rule, SoftSelection
from quenched.outliers.theory import gibbs
from quenched.outliers.theory.hard import HARD, threshold
from quenched.outliers.theory.setting import Setting, Student, direction, numbers, order_parameters, unknowns
from quenched.outliers.theory.soft import SOFT


class Branch(enum.StrEnum):
    r"""The states of a student, in the order in which they are met as $\eta$ grows."""

    informed = "informed"
    """It knows the teacher."""
    overfit = "overfit"
    """Long, but nearly orthogonal to the teacher: it has selected outliers that happen to agree."""
    trivial = "trivial"
    """It selects next to nothing."""


BRANCHES = tuple(one.value for one in Branch)
"""Their names."""
THEORIES: dict[type[Rule], Student] = {SoftSelection: SOFT, HardSelection: HARD, Gibbs: gibbs.DRAWN}
"""Students with several states."""
RELAXATIONS = 40
"""Steps of plain iteration with which a search begins: they stay in the valley in which they start."""
LONGER = 2.5
"""How much longer than it should be the vector of hard selection is at the start of a search."""


class State(NamedTuple):
    """A state. Those of zero temperature have $q = Q$."""

    R: Any
    Q: Any
    q: Any  # overlap of two vectors drawn for the same examples
    z: Any  # susceptibility
    Delta: Any
    Phi: Any
    free_energy: Any  # of Gibbs learning: the mean energy of the vector drawn
    stability: Any  # replica symmetry is stable below 1
    selected: Any  # share of the examples, each by its weight
    outcome: Any  # an `Outcome` code
    residual: Any


NOTHING = State(0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0, Outcome.converged, 0.0)
"""That of hard selection that selects nothing; without a vector there is no angle. [dietrich1998, erratum E8]"""


def check_branch(branch: Any) -> None:
    """Check the name of a branch."""
    if not (isinstance(branch, str) and branch in BRANCHES):
        raise InputError(f"Argument `branch` must be one of {', '.join(BRANCHES)}, but {branch!r} was given.")


def state(
    law: Contaminated, rule: Rule, alpha: Real, *, branch: Branch | str = Branch.informed,
    start: tuple[Real, Real, Real] | None = None,
) -> State:  # fmt: skip
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
        >>> law, rule = outliers.Contaminated(10.0, eta=2.0), outliers.SoftSelection()
        >>> with jax.enable_x64(True):  # also inside `jax.jit`, `jax.vmap` and `jax.grad`
        ...     found = outliers.theory.state(law, rule, 20.0)
        >>> round(float(found.R), 4)
        0.9371
    """
    require_double("outliers.theory.state")
    check_branch(branch)
    theta = jax.tree.map(lambda v: jnp.asarray(v, float), numbers(law, rule, alpha))
    if isinstance(rule, Hebb):
        return compute_hebb(theta)
    theory = THEORIES.get(type(rule))
    if theory is None:
        raise InputError(f"Argument `rule` must be a student of outliers, but {rule!r} was given.")
    if theory is HARD and branch == "trivial" and start is None:
        outcome = jnp.where(theta.eta > threshold(theta), Outcome.converged, Outcome.absent)
        return jax.tree.map(lambda value: value + 0 * theta.eta, NOTHING)._replace(outcome=outcome)
    begin = guess(theta, branch) if start is None else unknowns(*(jnp.asarray(v, float) for v in start))
    if theory is HARD and start is None:  # a vector that is short at first selects nothing
        begin = begin.at[1].add(2 * jnp.log(LONGER))
    found = saddle.state(theory, theta, begin, relaxations=RELAXATIONS if start is None else 0)
    return read(theory, found, theta)


def read(theory: Student, found: Any, theta: Setting) -> State:
    """The order parameters of a state that was found, as JAX or as NumPy."""
    xp, T = saddle.namespace(found.x), theta.temperature
    R, q, z = order_parameters(found.x)
    Q, outcome = q + T * z, found.outcome
    if theory is gibbs.DRAWN:
        outcome = xp.where(gibbs.is_resolved(q, Q, theta), outcome, Outcome.failed)
    noise = q * xp.square(direction(found.x)[1]) + T * z  # Q - R^2, with all its digits
    stability, selected, energy = found.readings
    return State(R, Q, q, z, *errors(R, Q, noise), energy, stability, selected, outcome, found.residual)


def errors(R: Any, Q: Any, noise: Any) -> tuple[Any, Any]:
    r"""$\Delta = Q - 2R + 1$, $\Phi = \arccos(R/\sqrt Q)/\pi$; `noise` is $Q - R^2$. [dietrich1998, eqs. (12), (15)]"""
    xp = saddle.namespace(R)
    return Q - 2 * R + 1, xp.arctan2(xp.sqrt(noise), R) / np.pi


def guess(theta: Setting, branch: str) -> Any:
    """Unknowns with which the search for a branch begins."""
    xp, (gamma, gt, eta, alpha, _) = saddle.namespace(theta.eta), theta
    if branch == "informed":  # as if informative examples were known
        alpha = alpha / (1 + xp.exp(eta))
        R = gt * alpha / (1 + gt * alpha)
        return unknowns(R, R * R + gt / gamma * R / (1 + gt * alpha), 1 / (1 + gt * alpha))
    if branch == "overfit":
        return xp.stack([np.tan(0.24 * np.pi) + 0 * eta, np.log(0.9) + 0 * eta, np.log(0.5) + 0 * eta])
    ln_Q = xp.log(alpha * gt**2 / gamma) - 2 * eta  # to lowest order in the weight exp(-eta) of an example
    cosine = xp.minimum(xp.sqrt(alpha * gamma) * xp.exp(-eta), 0.5)
    return xp.stack([xp.sqrt((1 - cosine) / (1 + cosine)), ln_Q, 0 * eta])


def compute_hebb(theta: Setting) -> State:
    r"""$R = \alpha w_1/(\alpha + 1/\tilde\gamma)$, $Q = R^2 + (\alpha/\gamma)/(\alpha + 1/\tilde\gamma)^2$.

    The energy is that of soft selection when every example counts, $\mathcal H = |J|^2/2 - \sum_\mu h_\mu$: linear in
    the fields, so that nothing can break replica symmetry. [dietrich1998, eq. (26)]
    """
    gamma, gt, eta, alpha, _ = theta
    total = alpha + 1 / gt
    R, noise = alpha * theta.weights[1] / total, alpha / gamma / total**2
    Q = R * R + noise
    f = alpha * eta - (1 + alpha * gt) * Q / 2
    outcome = Outcome.converged + saddle.namespace(R).zeros_like(R, int)
    return State(R, Q, Q, 1 / (1 + alpha * gt) + 0 * R, *errors(R, Q, noise), f, 0 * R, 0 * R + 1, outcome, 0 * R)
