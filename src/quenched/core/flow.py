r"""Order parameters that move: differential equations for a few overlaps, integrated by diffrax.

A flow is a field $\dot y = F(t, y, \theta)$ on a pytree of arrays. `integrate` returns the state at given times and
says of each time whether it was reached; a state that runs away ends as `Outcome.diverged`, not as an overflow.
`settle` follows a flow until it stands still and polishes the end with Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.core import fixed_point
from quenched.core.types import Array, Outcome

Field = Callable[[Any, Any, Any], Any]

RTOL, ATOL = 1e-8, 1e-10
"""Accuracy of one step: check values are unchanged in the seventh digit when both are tightened a hundredfold."""


class Trajectory(NamedTuple):
    """States along a flow."""

    states: Any  # the state's pytree with a leading axis of times
    outcome: Array  # [times] `Outcome` codes


def integrate(
    field: Field,
    start: Any,
    times: Array,
    args: Any = None,
    *,
    rtol: float = RTOL,
    atol: float = ATOL,
    bound: float = 1e12,
    max_steps: int = 16**4,
) -> Trajectory:
    """Follow a flow from time 0 and return its state at `times`.

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


class Rest(NamedTuple):
    """A stationary state of a flow."""

    state: Any
    outcome: Array
    residual: Array  # largest component of the field there
    jacobian: Array  # of the field there

    @property
    def growth(self) -> float:
        """The largest real part of the Jacobian's eigenvalues: negative is stable. Computed on the host."""
        jacobian = np.asarray(self.jacobian)
        return float(np.linalg.eigvals(jacobian).real.max()) if np.all(np.isfinite(jacobian)) else np.nan


def settle(
    field: Field, start: Any, args: Any = None, *, horizon: float = 1e4, bound: float = 1e12, tolerance: float = 1e-12
) -> Rest:
    """Follow an autonomous flow for `horizon` (or until it hardly moves), then find the rest state beside the end.

    Where Newton's method breaks down the end itself is returned, as `Outcome.stalled`.

    Args:
        field: $F(t, y, args)$, which must not depend on $t$. The state must have no redundant component.
        start: the state at time 0.
        args: passed to the field.
        horizon: how long to follow the flow at most.
        bound: a state with a component beyond it has diverged.
        tolerance: accuracy of the rest state.
    """
    still = diffrax.steady_state_event(rtol=1e-8, atol=1e-8)

    def diverged(t: Array, y: Any, args: Any, **kwargs: Any) -> Array:
        return ~(jnp.max(jnp.abs(ravel_pytree(y)[0])) < bound)

    def end(t: Array, y: Any, args: Any, **kwargs: Any) -> Array:
        return diverged(t, y, args) | still(t, y, args, **kwargs)

    run = diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), t0=0.0, t1=horizon, dt0=None, y0=start, args=args,
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8), event=diffrax.Event(end),
        max_steps=16**4, throw=False,
    )  # fmt: skip
    last = jax.tree.map(lambda y: y[-1], run.ys)
    gone = diverged(jnp.zeros(()), last, args)
    found = rest_near(field, last, args, tolerance=tolerance, gone=gone)
    lost = ~gone & (found.outcome == Outcome.failed)  # no rest state beside the end: the end itself, marked
    state = jax.tree.map(lambda new, old: jnp.where(lost, old, new), found.state, last)
    force = _flat(field, last)
    jacobian = jnp.where(lost, jax.jacfwd(force)(ravel_pytree(last)[0], args), found.jacobian)
    residual = jnp.where(lost, jnp.max(jnp.abs(force(ravel_pytree(last)[0], args))), found.residual)
    return Rest(state, jnp.where(lost, Outcome.stalled, found.outcome), residual, jacobian)


def rest_near(
    field: Field, guess: Any, args: Any = None, *, tolerance: float = 1e-12, gone: Array | bool = False
) -> Rest:
    """The rest state of an autonomous flow next to `guess`, with the Jacobian of the flow there."""
    flat, unflatten = ravel_pytree(guess)
    force = _flat(field, guess)
    found = fixed_point.root(force, jnp.where(gone, jnp.ones_like(flat), flat), args, tolerance=tolerance, newton=True)
    outcome = jnp.where(gone, Outcome.diverged, found.outcome)
    value = jnp.where(gone, jnp.nan, found.value)
    return Rest(unflatten(value), outcome, found.residual, jax.jacfwd(force)(value, args))


def _flat(field: Field, like: Any) -> Callable[[Array, Any], Array]:
    """The field of an autonomous flow as a function of a vector."""
    unflatten = ravel_pytree(like)[1]
    return lambda y, args: ravel_pytree(field(jnp.zeros(()), unflatten(y), args))[0]
