r"""Order parameters that move: differential equations $\dot y = F(t, y)$ for a few overlaps.

`integrate` is a pure JAX function over diffrax: it can be differentiated, and takes seconds to compile. `follow` runs
the same method, Tsitouras' pair of order 5(4) with the same step sizes, on the host: there only $F$ is compiled. Both
return the state at given times and an outcome for each; a state that runs away is `Outcome.diverged`, not an overflow.
`settle` follows a flow until it stands still and polishes the end by Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.integrate import RK45
from scipy.optimize import root

from quenched.core.types import Array, Outcome

RTOL, ATOL = 1e-8, 1e-10
"""Accuracy of one step: check values are unchanged in the seventh digit when both are tightened a hundredfold."""
BOUND = 1e12
"""A state with a component beyond it has diverged."""
FIRST = 0.01
"""Length of the first step, which need not be accepted."""
STILL = 1e-8
"""A flow hardly moves where its field is smaller, relative to the state or 1."""
SLOW, NEAR, UNSEEN = 1e-5, 1e-2, 1e-13
"""Where the field is smaller than the first a rest state is sought; the state must be nearer to it than the second, and
its growing part, if there is any, smaller than the third."""
HORIZON, EXACT = 1e4, 1e-12
"""How long `settle` follows a flow at most; accuracy of a rest state, relative to its largest component or 1."""
LEAP = 0.5
"""A rest state further than this from the end of a flow, as a share of its largest component or 1, is another one's."""
MAX_STEPS = 16**4
"""Steps after which an integration stops."""


class Trajectory(NamedTuple):
    """States along a flow."""

    states: Any  # the state's pytree with a leading axis of times; NaN at times that were not reached
    outcome: Any  # [times] `Outcome` codes


def integrate(
    field: Callable[[Any, Any, Any], Any],
    start: Any,
    times: Array,
    args: Any = None,
    *,
    rtol: float = RTOL,
    atol: float = ATOL,
    bound: float = BOUND,
    max_steps: int = MAX_STEPS,
) -> Trajectory:
    """Follow a flow from time 0 and return its state at `times` (pure JAX).

    Args:
        field: $F(t, y, args)$, of the shape of the state.
        start: the state at time 0.
        times: increasing, from 0 or above.
        args: passed to the field; one may differentiate with respect to it.
        rtol: relative accuracy of a step.
        atol: absolute accuracy of a step.
        bound: a state with a component beyond it has diverged.
        max_steps: of the integrator.
    """
    import diffrax  # takes as long to import as a small program to compile

    def diverged(t: Array, y: Any, args: Any, **kwargs: Any) -> Array:
        return ~(jnp.max(jnp.abs(ravel_pytree(y)[0])) < bound)

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=0.0,
        t1=jnp.maximum(times[-1], 1e-12),
        dt0=None,
        y0=start,
        args=args,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        event=diffrax.Event(diverged),
        max_steps=max_steps,
        throw=False,
    )
    why = jnp.where(solution.result == diffrax.RESULTS.event_occurred, Outcome.diverged, Outcome.failed)
    why = jnp.where(solution.result == diffrax.RESULTS.max_steps_reached, Outcome.stalled, why)
    assert solution.ts is not None
    reached = jnp.isfinite(solution.ts)  # diffrax marks times it did not reach by infinity
    states = jax.tree.map(
        lambda y: jnp.where(jnp.expand_dims(reached, tuple(range(1, y.ndim))), y, jnp.nan), solution.ys
    )
    return Trajectory(states, jnp.where(reached, Outcome.converged, why))


class _Tsitouras(RK45):
    """Tsitouras' pair in scipy's form, with the step sizes of diffrax: no shorter after a step that is accepted."""

    C = np.array([0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0])
    A = np.array([
        [0, 0, 0, 0, 0],
        [0.161, 0, 0, 0, 0],
        [-0.008480655492356989, 0.335480655492357, 0, 0, 0],
        [2.8971530571054935, -6.359448489975075, 4.3622954328695815, 0, 0],
        [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525, 0],
        [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
    ])  # fmt: skip
    B = np.array([0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081,
                  2.324710524099774])  # fmt: skip
    E = np.array([0.0017800110522257773, 0.0008164344596567463, -0.007880878010261994, 0.1447110071732629,
                  -0.5823571654525552, 0.45808210592918686, -1 / 66])  # fmt: skip
    P = np.array([
        [1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216],
        [0, 0.1317, -0.2234, 0.1017],
        [0, 3.9302962368947516, -5.941033872131505, 2.490627285651253],
        [0, -12.411077166933676, 30.33818863028232, -16.548102889244902],
        [0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
        [0, -27.896526289197286, 65.09189467479366, -34.87065786149661],
        [0, 1.5, -4.0, 2.5],
    ])  # fmt: skip

    def stages(self, t: float, y: np.ndarray, f: np.ndarray, h: float) -> np.ndarray:
        """The field at the seven stages of a step, the first of which is known."""
        K = np.empty((7, y.size))
        K[0] = f
        for s in range(1, 7):
            K[s] = self.fun(t + ROWS[s, 7] * h, y + h * (ROWS[s, :s] @ K[:s]))
        return K

    @np.errstate(over="ignore", invalid="ignore")  # a step too far is tried again, shorter
    def _step_impl(self) -> Any:
        K, length = self.K, self.h_abs
        while length > 10 * np.spacing(self.t):
            t = min(self.t + length, self.t_bound)
            h = t - self.t
            K[:] = self.stages(self.t, self.y, self.f, h)
            y = self.y + h * (self.B @ K[:6])
            scale = self.atol + self.rtol * np.maximum(np.abs(self.y), np.abs(y))
            error = float(np.sqrt(np.mean(np.square(h * (self.E @ K) / scale))))
            ideal = 0.9 * error**self.error_exponent if error else np.inf
            if error < 1:
                self.h_abs, self.h_previous, self.y_old = h * min(max(ideal, 1.0), 10.0), h, self.y
                self.t, self.y, self.f = t, y, K[6].copy()
                return True, None
            length = h * (min(max(ideal, 0.2), 0.9) if np.isfinite(ideal) else 0.2)
        return False, self.TOO_SMALL_STEP


ROWS = np.zeros((7, 8))
"""Shares of the stages in the state at each stage, and in the last column its time: in this form all are alike."""
ROWS[:6, :5], ROWS[6, :6], ROWS[:, 7] = _Tsitouras.A, _Tsitouras.B, [*_Tsitouras.C, 1.0]


def follow(
    field: Callable[[float, np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray,
    *,
    rtol: float = RTOL,
    atol: float = ATOL,
    bound: float = BOUND,
    max_steps: int = MAX_STEPS,
    until: Callable[[np.ndarray, np.ndarray], bool] | None = None,
    stages: Callable[[float, np.ndarray, np.ndarray, float], np.ndarray] | None = None,
) -> Trajectory:
    """Follow a flow from time 0 on the host and return its state at `times`.

    Args:
        field: $F(t, y)$ of a vector.
        start: the state at time 0.
        times: increasing, from 0 or above.
        rtol: relative accuracy of a step.
        atol: absolute accuracy of a step.
        bound: a state with a component beyond it has diverged.
        max_steps: of the integrator.
        until: a condition on $y$ and $F$ after a step; where it is met the state is taken as that at all later times.
        stages: of $t$, $y$, $F$ and the length of a step: the field at its seven stages, in one call of a program.
    """
    last = max(float(times[-1]), 1e-12)
    solver = _Tsitouras(field, 0.0, start, last, rtol=rtol, atol=atol, first_step=min(FIRST, last))
    if stages is not None:
        solver.stages = stages  # pyright: ignore[reportAttributeAccessIssue]
    states, done, end = np.full((len(times), start.size), np.nan), 0, Outcome.stalled
    for _ in range(max_steps):
        solver.step()
        if solver.status == "failed":
            end = Outcome.failed
            break
        reached = int(np.searchsorted(times, solver.t, side="right"))
        if reached > done:
            states[done:reached] = solver.dense_output()(times[done:reached]).T  # pyright: ignore[reportOptionalCall]
            done = reached
        if not np.max(np.abs(solver.y)) < bound:
            end = Outcome.diverged
            break
        if until is not None and until(solver.y, solver.f):
            states[done:], end = solver.y, Outcome.converged
            break
        if solver.status == "finished":
            end = Outcome.converged
            break
    return Trajectory(states, np.where(np.arange(len(times)) < done, Outcome.converged, end))


class Rest(NamedTuple):
    """A stationary state of a flow."""

    state: np.ndarray
    outcome: Outcome
    residual: float  # largest component of the field there
    jacobian: np.ndarray  # of the field there

    @property
    def growth(self) -> float:
        """The largest real part of the Jacobian's eigenvalues: negative is stable."""
        finite = np.all(np.isfinite(self.jacobian))
        return float(np.linalg.eigvals(self.jacobian).real.max()) if finite else np.nan


def settle(
    field: Callable[[np.ndarray], np.ndarray],
    linear: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    *,
    bound: float = BOUND,
    stages: Callable[[float, np.ndarray, np.ndarray, float], np.ndarray] | None = None,
) -> Rest:
    """Follow an autonomous flow to its end, at most for `HORIZON`, and find the rest state there.

    It ends where it hardly moves, or next to a rest state that attracts all states around it, or at least this one.
    Where there is no rest state at the end the last state is returned, as `Outcome.stalled`.

    Args:
        field: $F(y)$. The state must have no redundant component.
        linear: $F(y)$ and its Jacobian.
        start: as in `follow`.
        bound: as in `follow`.
        stages: as in `follow`.
    """
    slow = SLOW

    def is_over(y: np.ndarray, f: np.ndarray) -> bool:
        nonlocal slow
        if np.sqrt(np.mean(np.square(f))) < STILL * (1 + np.sqrt(np.mean(np.square(y)))):
            return True
        if np.max(np.abs(f)) > slow * max(1.0, float(np.max(np.abs(y)))):
            return False
        slow, found = slow / 10, _rest_near(linear, y)
        return found is not None and is_attracted(y - found.state, found.jacobian)

    path = follow(
        lambda t, y: field(y), start, np.array([HORIZON]), rtol=1e-6, atol=1e-8, bound=bound, until=is_over,
        stages=stages,
    )  # fmt: skip
    end = path.states[-1]
    if path.outcome[-1] == Outcome.diverged:
        return Rest(np.full_like(end, np.nan), Outcome.diverged, np.nan, np.full((end.size, end.size), np.nan))
    found = _rest_near(linear, end)
    if found is not None and np.max(np.abs(found.state - end)) < LEAP * max(1.0, float(np.max(np.abs(end)))):
        return found
    force, jacobian = linear(end)
    return Rest(end, Outcome.stalled, float(np.max(np.abs(force))), jacobian)


def _rest_near(linear: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], guess: np.ndarray) -> Rest | None:
    """The rest state next to a guess, if there is one."""
    state: np.ndarray = root(linear, guess, jac=True, method="hybr", options={"xtol": EXACT / 10}).x
    force, jacobian = linear(state)
    residual = float(np.max(np.abs(force)))
    good = residual <= EXACT * max(1.0, float(np.max(np.abs(state))))
    return Rest(state, Outcome.converged, residual, jacobian) if good else None


def is_attracted(away: np.ndarray, jacobian: np.ndarray) -> bool:
    """Whether a state that is `away` from a rest state comes back to it: no part of it grows, up to rounding."""
    rates, left = np.linalg.eig(jacobian.T)
    growing = np.abs(left[:, np.real(rates) >= 0].T @ away)
    return bool(np.max(np.abs(away)) < NEAR and np.all(growing < UNSEEN))
