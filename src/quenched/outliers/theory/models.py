r"""Selection around a model as $N \to \infty$: two energies of one field, by the replica theory of `core`.

Logistic regression with a background: the field $u = S \xi \cdot J/\sqrt N$ of an example with the right label is
Gaussian about $mR$, with a wrong one about $-mR$, of variance $Q$. Least squares with a background: the field of
$J - B$ is the residual, of variance $\Delta + n$ with the noise $n$ of the two classes, and the ridge is a norm of
$J - B$: $|J|^2/N = \Delta + 2 (J - B) \cdot B/N + 1$. The energies are those of the rules' docstrings. They are not
convex: the state is sought from that without selection, as the learner begins. Hard selection has a kink at which the
trained field jumps, so that its stability is infinite: replica symmetry is broken, and its numbers are approximations.
There are many minima then, and the learner ends in one that depends on where it begins. For logistic regression at
$\alpha = 4$, $m = 1.5$ and 20% wrong labels, the theory has $R = 0.52$; the learner, $N = 400$, ends at $0.48 \pm 0.01$
from all rows and at $0.58 \pm 0.01$ from the right ones, and that gap is no wider at $N = 50$.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, replica
from quenched.core.types import Array, InputError, Outcome, real
from quenched.outliers.model import MODELS, HardSelection, Hebb, ModelLaw, ModelRule, SelectedLogistic, WrongLabels


class Logistic(eqx.Module):
    """The energy of a field by the label's probability."""

    f: Any = eqx.field(converter=real)
    hard: bool = eqx.field(static=True)

    def __call__(self, y: Array, Q: Array) -> Array:
        """Of one field."""
        log_p = -jax.nn.softplus(-y)
        if self.hard:
            return -jnp.maximum(log_p - jnp.log(self.f), 0.0)
        return -jax.nn.softplus(log_p - jnp.log(self.f / (1 - 2 * self.f)))


class Plain(eqx.Module):
    """The energy of a field of which every example counts: its logistic loss, or half its square over the noise's."""

    noise: Any = eqx.field(converter=real)
    logistic: bool = eqx.field(static=True)

    def __call__(self, y: Array, Q: Array) -> Array:
        """Of one field."""
        return jax.nn.softplus(-y) if self.logistic else 0.5 * (y / self.noise) ** 2


class Squares(eqx.Module):
    """The energy of a residual."""

    cut: Any = eqx.field(converter=real)
    noise: Any = eqx.field(converter=real)
    hard: bool = eqx.field(static=True)

    def __call__(self, y: Array, Q: Array) -> Array:
        """Of one field."""
        h = (self.cut**2 - y * y) / (2 * self.noise**2)
        return -jnp.maximum(h, 0.0) if self.hard else -jax.nn.softplus(h)


class Ridge(eqx.Module):
    """The ridge of J, from R and Q of J or of J - B."""

    strength: Any = eqx.field(converter=real)
    shifted: bool = eqx.field(static=True)

    def __call__(self, R: Array, Q: Array) -> Array:
        """Over N."""
        return 0.5 * self.strength * (Q + 2 * R + 1 if self.shifted else Q)


class State(NamedTuple):
    """A state in the order parameters of the science."""

    R: float
    Q: float
    Delta: float
    Phi: float
    free_energy: float
    stability: float
    outcome: int
    residual: float


def declare(law: Any, rule: Any, *, plain: bool = False) -> replica.Problem:
    """The energy, the classes of the field and the norm of a law and a rule; `plain`: without selection."""
    hard, e = isinstance(rule.selection, HardSelection), float(law.share)
    plain = plain or isinstance(rule.selection, Hebb)
    weights = [1 - e, e]
    if isinstance(law, WrongLabels):
        m = float(law.separation)
        classes = replica.Classes(weights, [m, -m], 1.0, 0.0)
        f = float(rule.outlier_fraction)
        plain = plain or f == 0
        energy = Plain(1.0, True) if plain else Logistic(f, hard)
        kinks = (float(np.log(f / (1 - f))),) if hard and not plain else ()
    else:
        s, t = float(law.noise), float(law.spread)
        classes = replica.Classes(weights, 0.0, 1.0, [s * s, s * s + t * t])
        energy = Plain(float(rule.noise), False) if plain else Squares(float(rule.cut), float(rule.noise), hard)
        kinks = (-float(rule.cut), float(rule.cut)) if hard and not plain else ()
    return replica.Problem(energy, classes, Ridge(float(rule.ridge), not isinstance(law, WrongLabels)), kinks=kinks)


def find(law: Any, rule: Any, alphas: np.ndarray) -> list[State]:
    """The states at some sample sizes, each from the state without selection.

    Where the search from there does not come to an end, it begins as if the outliers were known.
    """
    plain, problem = declare(law, rule, plain=True), declare(law, rule)
    known = dataclasses.replace(law, share=0.0)
    found = []
    for alpha in alphas:
        first = one = replica.curve(plain, alpha=float(alpha))
        if not isinstance(problem.energy, Plain):
            one = replica.curve(problem, alpha=float(alpha), start=_begin(first))
            if one.outcome.item() != Outcome.converged.name:
                first = replica.curve(declare(known, rule, plain=True), alpha=float(alpha) * (1 - float(law.share)))
                one = replica.curve(problem, alpha=float(alpha), start=_begin(first))
        found.append(_read(one, shifted=not isinstance(rule, SelectedLogistic)))
    return found


def _begin(state: Any) -> tuple[float, ...]:
    return tuple(float(state[name]) for name in ("R", "Q", "z"))


def _read(state: Any, *, shifted: bool) -> State:
    """The order parameters of J; `shifted`: from those of J - B."""
    R, Q = float(state.R), float(state.Q)
    if shifted:
        R, Q = R + 1, Q + 2 * R + 1
    Phi = float(np.arccos(np.clip(R / np.sqrt(max(Q, 1e-300)), -1, 1)) / np.pi)
    rest = float(state.free_energy), float(state.stability), Outcome[str(state.outcome.item())].value
    return State(R, Q, Q - 2 * R + 1, Phi, *rest, float(state.residual))


def curve(law: ModelLaw, rule: ModelRule, *, alpha: Any, branch: Any = None, **sweep: Any) -> Any:
    """The verb `curve` for selection around a model."""
    if branch is not None:
        raise InputError(f"Argument `branch` must not be given with selection around a model, but {branch!r} was.")
    question = MODELS.ask(law, rule, sweep, alpha=alpha)
    alphas = question.axes["alpha"]
    checks.positive("alpha", alphas)
    states = [find(*pair, alphas) for pair in question.plan.pairs]
    columns = {name: np.array([[getattr(one, name) for one in row] for row in states]) for name in State._fields}
    return question.answer(columns)
