"""The state near a start, found on the host: the search of `state`, driven from NumPy, without its compilation."""

from __future__ import annotations

from typing import Any

import numpy as np

from quenched.core.saddle.path import count_unstable
from quenched.core.saddle.state import ACCURACY, STEPS, TOLERANCE
from quenched.core.saddle.theory import Evaluation, Point, Theory, control_of, evaluate
from quenched.core.types import Outcome, double


@double
@np.errstate(all="ignore")  # a trial may lie far from any state
def solve(theory: Theory, theta: Any, start: Any, *, relaxations: int = 0, along: str = "") -> Point:
    """The state near a start, on the host.

    Args:
        theory: what is solved.
        theta: parameters.
        start: unknowns `[d]` to begin with.
        relaxations: steps of `theory.relax` that come first.
        along: a control in which the state will be followed: both then use one compiled program.

    Returns:
        The state; where none was found, the best point that was reached: see its `outcome` and `residual`.
    """
    x = np.atleast_1d(np.asarray(start, dtype=np.float64))
    control = control_of(theta, along) if along else np.nan
    best = evaluate(theory, x, theta, along, control)
    trial, at, damping, left, count = best, x, 0.01, np.inf, 0
    for count in range(STEPS):
        better = (np.linalg.norm(trial.equations) < left or count < relaxations) and np.isfinite(trial.slopes).all()
        if better:
            best, at, left = trial, x, np.linalg.norm(trial.equations)
        damping = 0.01 if count <= relaxations else damping / 6 if better else damping * 4
        if left == np.inf or np.abs(best.equations).max() <= TOLERANCE or damping > 1e8:
            break
        step = best.relaxed if count < relaxations else _damp(best, damping)
        x = at + step * min(1.0, theory.furthest / max(np.abs(step).max(), 1e-300))
        trial = evaluate(theory, x, theta, along, control)
    residual = float(np.abs(best.equations).max())
    outcome = Outcome.converged if residual < ACCURACY else Outcome.failed if count < STEPS - 1 else Outcome.stalled
    unstable = count_unstable(best.slopes[:, : x.size])
    return Point(at, best.free_energy, best.readings, unstable, residual, outcome, control)


def _damp(at: Evaluation, damping: float) -> np.ndarray:
    """Newton's step where it is short, else that of Levenberg and Marquardt."""
    G, J = at.equations, at.slopes[:, : at.equations.size]
    newton, normal = -np.linalg.lstsq(J, G, rcond=None)[0], J.T @ J
    if np.all(np.abs(newton) * max(damping, 1.0) < 0.5):
        return newton
    return -np.linalg.solve(normal + damping * np.diag(np.diagonal(normal) + 1e-12), J.T @ G)
