r"""Branches: the states at one sample size form a curve in $\eta$, and it is followed through its folds.

It begins at small $\eta$, where one state exists, and turns back and forth; where it runs towards growing $\eta$ a
branch lies: first the informed one, then (above a cusp in $\alpha$) the overfit one, and last, for soft selection, the
trivial one. That of hard selection is no part of the curve: it selects nothing, exactly, for $\eta > \eta_0$.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import saddle
from quenched.core.types import Array, InputError, Outcome
from quenched.outliers.model import Contaminated, HardSelection, Rule, SoftSelection, gamma_of
from quenched.outliers.theory import hard, scaled, soft
from quenched.outliers.theory.scaled import Equations, Setting
from quenched.outliers.theory.states import BRANCHES, guess

STEP = 0.03
"""Longest step along the curve, as a share of box and range."""
SHORTEST = -12.0
"""The $\\ln Q$ down to which the curve is followed from small $\\eta$: beyond, it is on its way to nothing."""
LARGEST = 300.0
"""Largest size of $\\eta$: a share of informative examples whose square is still a number."""
BATCH = 32
"""States that are computed together."""


class Form(NamedTuple):
    """The equations of a student, as functions to be followed in eta."""

    equations: Equations
    landscape: saddle.Landscape
    stability: Any


def form(equations: Equations) -> Form:
    """Equations as functions to be followed in eta."""

    def at(control: Array, args: Setting) -> Setting:
        return args._replace(eta=control)

    landscape = saddle.Landscape(
        lambda x, eta, args: equations(x, at(eta, args))[1].free_energy,
        lambda x, eta, args: equations(x, at(eta, args))[0],
    )
    return Form(equations, landscape, lambda x, eta, args: equations(x, at(eta, args))[1].stability)


FORMS = {SoftSelection: form(soft.equations), HardSelection: form(hard.equations)}
"""Students with several states."""


class Branches(NamedTuple):
    """The curve of states at one sample size, cut into branches."""

    form: Form
    at: Setting  # its eta means nothing
    arms: dict[str, saddle.Branch]  # those that exist and are parts of the curve
    outcome: Outcome  # of the whole curve
    threshold: float  # eta above which nothing is selected, exactly; infinite for soft selection


def numbers(law: Contaminated, rule: Rule, alpha: float) -> Setting:
    """Law, rule and sample size as plain numbers."""
    return Setting(*(np.float64(v) for v in (law.gamma, gamma_of(law, rule), law.eta, alpha)))


def trace(rule: Rule, at: Setting, etas: Any = 0.0, *, informed: bool = False) -> Branches:
    """Follow the curve of states at one sample size, over all its folds and over `etas`.

    If only the `informed` branch is wanted, no further than to the last of them, where it reaches so far.
    """
    student = FORMS[type(rule)]
    gt, b = float(at.gt), float(at.gt**2 / at.gamma)
    low = min(float(np.min(etas)), -gt / 2) - 5.0
    high = min(max(float(np.max(etas)), gt / 2 + b + max(float(np.log(at.alpha)), 0.0)) + 5.0, LARGEST)
    if informed:
        curve = follow(student, at, (low, float(np.max(etas)) + 1e-6))
        if curve.end is saddle.End.range and not curve.folds:
            return Branches(student, at, {"informed": curve}, curve.outcome, np.inf)
    if isinstance(rule, HardSelection):
        curve = follow(student, at, (low, high))
        return Branches(student, at, _named(_growing(curve)), curve.outcome, float(hard.threshold(at)))
    back = follow(student, at, (low, high), upwards=False)  # from where only the trivial state is left
    if back.end is saddle.End.range:
        *arms, last = _growing(_turned(back))
        named = _named(arms) | {"trivial": last} if arms else {"informed": last}
        return Branches(student, at, named, back.outcome, np.inf)
    # where b is large the Gaussian at the trivial branch's fold is too narrow for its jump: so from the other side
    curve, pieces = follow(student, at, (low, high)), _pieces(back)
    ends = [mark.control for mark in curve.folds]
    named = _named([arm for arm in _growing(curve) if arm.control[-1] in ends or not pieces])
    trivial = {"trivial": _turned(_piece(back, pieces[0]))} if pieces else {}
    return Branches(student, at, named | trivial, curve.outcome, np.inf)


def follow(student: Form, at: Setting, limits: tuple[float, float], *, upwards: bool = True) -> saddle.Branch:
    """The curve of states from small eta upwards, or from large eta downwards."""
    first = limits[0] if upwards else limits[1]
    start = np.asarray(guess(at._replace(eta=np.float64(first)), "informed" if upwards else "trivial"))
    deepest = SHORTEST if upwards else start[1] - 5.0
    low, high = [0.0, deepest, -np.log1p(at.alpha * at.gt) - 5.0], [0.6 * np.pi, 5.0, 5.0]
    with np.errstate(over="ignore", invalid="ignore"):  # a step too far is taken back
        return saddle.follow(
            student.landscape, start, first, limits, at, upwards=upwards, low=low, high=high, step=STEP
        )  # fmt: skip


def _growing(curve: saddle.Branch) -> list[saddle.Branch]:
    """The pieces along which eta grows."""
    arms = [_piece(curve, piece) for piece in _pieces(curve)]
    return [arm for arm in arms if arm.control[1] > arm.control[0]]


def _named(arms: list[saddle.Branch]) -> dict[str, saddle.Branch]:
    """The first and the last of them; there are more than two only for a gamma of some hundreds."""
    return dict(zip(BRANCHES, arms[:1] + arms[1:][-1:], strict=False))


def _pieces(curve: saddle.Branch) -> list[slice]:
    """The pieces of a curve between folds."""
    grows = np.diff(curve.control) > 0
    cuts = [0, *(np.flatnonzero(grows[1:] != grows[:-1]) + 1), len(grows)]
    return [slice(a, b + 1) for a, b in itertools.pairwise(cuts) if a < b]


def _piece(curve: saddle.Branch, piece: slice) -> saddle.Branch:
    names = ("control", "x", "free_energy", "index", "residual", "tangent")
    return dataclasses.replace(curve, **{name: getattr(curve, name)[piece] for name in names})


def _turned(arm: saddle.Branch) -> saddle.Branch:
    """The same branch the other way round."""
    back = _piece(arm, slice(None, None, -1))
    return dataclasses.replace(back, tangent=-back.tangent)


@functools.partial(jax.jit, static_argnums=0)
def _read(equations: Equations, x: Array, at: Setting) -> tuple[Array, Array]:
    """What is read off at states `[n, 3]`, and what the equations leave over."""

    def one(x: Array, at: Setting) -> tuple[Array, Array]:
        r, readings = equations(x, at)
        return jnp.stack(readings), jnp.max(jnp.abs(r))

    return jax.vmap(one, (0, Setting(None, None, 0, None)))(x, at)  # pyright: ignore[reportArgumentType]


def states(branches: Branches, name: str, etas: np.ndarray) -> dict[str, np.ndarray]:
    """The states of one branch at given etas; `absent` where it does not exist."""
    out = {key: np.full(len(etas), np.nan) for key in VALUES}
    out |= {"outcome": np.full(len(etas), Outcome.absent), "residual": np.zeros(len(etas))}
    if name == "trivial" and np.isfinite(branches.threshold):
        there = etas > branches.threshold
        values = {key: np.asarray(value) for key, value in EMPTY.items()}
    elif name in branches.arms:
        arm = branches.arms[name]
        there = (etas >= arm.control[0]) & (etas <= arm.control[-1])
        values = _on_arm(branches, arm, etas[there]) if np.any(there) else {}
    else:  # of a curve that was lost nobody knows
        lost = branches.outcome is not Outcome.converged
        there, values = np.full(len(etas), lost), {"outcome": np.asarray(branches.outcome)}
    for key, value in values.items():
        out[key][there] = value
    return out


VALUES = ("R", "Q", "z", "Delta", "Phi", "free_energy", "stability", "selected")
EMPTY = dict(zip(VALUES, (0, 0, 1, 1, 0.5, 0, 0, 0), strict=True)) | {"outcome": Outcome.converged}
"""What is said of the state that selects nothing. [dietrich1998, erratum E8]"""


def _on_arm(branches: Branches, arm: saddle.Branch, etas: np.ndarray) -> dict[str, np.ndarray]:
    """The states at etas within a branch."""
    found = [saddle.at(arm, float(eta)) for eta in etas]
    x = np.stack([np.full(3, np.nan) if one is None else one for one in found])
    parts = []
    for i in range(0, len(etas), BATCH):  # in batches of one length, so that there is one program
        rows = np.minimum(np.arange(i, i + BATCH), len(etas) - 1)
        found = _read(branches.form.equations, x[rows], branches.at._replace(eta=etas[rows]))
        parts.append([np.asarray(v)[: len(etas) - i] for v in found])
    (f, stability, selected), residual = (np.concatenate(part).T for part in zip(*parts, strict=True))
    Q = np.exp(x[:, 1])
    R = np.sqrt(Q) * np.cos(x[:, 0])
    outcome = np.where(residual < scaled.ACCURACY, Outcome.converged, Outcome.failed)
    values = (R, Q, np.exp(x[:, 2]), Q - 2 * R + 1, x[:, 0] / np.pi, f, stability, selected)
    return dict(zip(VALUES, values, strict=True)) | {"outcome": outcome, "residual": residual}


def check_eta(etas: Any) -> None:
    """Refuse shares of outliers that leave no number of informative examples."""
    if np.any(np.abs(etas) > LARGEST):
        raise InputError(f"Argument `eta` must lie between {-LARGEST:g} and {LARGEST:g}, but {etas} was given.")
