"""Learning curves as an experiment: data sets drawn again and again, each solved."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.linear import next_length
from quenched.core.types import Array, InputError, Key, double
from quenched.fields.model.laws import SCIENCE, Law, MaximumPosterior, TrueDensity, TrueFunction, TruePotential
from quenched.fields.model.links import Density
from quenched.fields.simulation.potentials import measure_potential

if TYPE_CHECKING:
    import xarray as xr

ACCURACY, STEPS = 1e-9, 200
"""The iteration ends when the largest component of the gradient is below this share of the number of examples."""
DAMPING = 1e-3
"""With which the iteration begins, as a share of the largest curvature."""

ROOM, MOST = 2**8, 2**16
"""Examples that are drawn at once: this number, or its square, and above that multiples of it."""


def _descend(energy: Any, field: Array, scale: Array) -> tuple[Array, Array]:
    """A minimum by damped Newton steps (Levenberg and Marquardt), and the gradient there."""
    slope, size = jax.grad(energy), field.size

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        phi, mu, E, G, i = state
        H = jax.jacfwd(slope)(phi).reshape(size, size)
        top = jnp.max(jnp.abs(jnp.diagonal(H)))
        move = jnp.linalg.solve(H + mu * top * jnp.eye(size), -G.reshape(-1)).reshape(phi.shape)
        tried = phi + move
        E_new, G_new = jax.value_and_grad(energy)(tried)
        better = (E_new <= E + 1e-13 * jnp.abs(E)) & jnp.all(jnp.isfinite(G_new))
        mu = jnp.where(better, jnp.maximum(mu / 10, 1e-12), mu * 10)
        return jnp.where(better, tried, phi), mu, jnp.where(better, E_new, E), jnp.where(better, G_new, G), i + 1

    E, G = jax.value_and_grad(energy)(field)
    begin = (field, jnp.asarray(DAMPING), E, G, jnp.asarray(0))
    phi, _, _, G, _ = jax.lax.while_loop(
        lambda s: (jnp.max(jnp.abs(s[3])) > ACCURACY * scale) & (s[4] < STEPS) & (s[1] < 1e10), step, begin
    )
    return phi, jnp.max(jnp.abs(G))


def _one_run(key: Key, point: tuple[Law, MaximumPosterior, Array], *, room: int) -> dict[str, Array]:
    """Errors on one data set; a pure function for `ensemble`.

    So many examples are drawn as there is `room` for, and the first of them are used: these are the same for any room,
    and one program serves many numbers of examples.
    """
    law, rule, examples = point
    errors = _density_errors if isinstance(law, TrueDensity) else _function_errors
    used = jnp.arange(room) < examples
    likelihood, measured = errors(law.draw(key, room), law, rule, used)  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue]

    def energy(field: Array) -> Array:
        field = rule.link.project(field)
        return likelihood(field) + rule.strength * rule.prior.energy(rule.link.argument(field))

    shape = rule.link.grid.shape
    if isinstance(law, TrueDensity):
        start = rule.link.field(rule.link.grid.normalised(jnp.zeros(shape)))
    else:
        start = jnp.zeros(shape)
    field, left = _descend(energy, rule.link.project(start), examples)
    training, test = measured(rule.link.project(field))
    stalled = (left > 1e3 * ACCURACY * examples).astype(float)
    return {"training_error": training, "test_error": test, "stalled": stalled}


def _density_errors(drawn: Array, law: TrueDensity, rule: MaximumPosterior, used: Array) -> tuple[Any, Any]:
    """Minus the log-likelihood as a function of the field, and both errors."""
    grid = law.grid
    counts = jnp.bincount(drawn, used.astype(float), length=grid.size).reshape(grid.shape)
    truth = jnp.asarray(law.density, float) * grid.weights
    truth = truth / jnp.sum(truth)

    def cross(weights: Array, field: Array) -> Array:
        return -jnp.sum(jnp.where(weights > 0, weights * rule.link.log_density(field), 0.0))

    def both(field: Array) -> tuple[Array, Array]:
        return cross(counts, field) / jnp.sum(used), cross(truth, field)

    return lambda field: cross(counts, field), both


def _function_errors(drawn: Any, law: TrueFunction, rule: MaximumPosterior, used: Array) -> tuple[Any, Any]:
    """The same for a function with noise."""
    place, y = drawn
    v, h = jnp.asarray(law.variance, float), jnp.asarray(law.values, float)
    constant = 0.5 * jnp.log(2 * jnp.pi * v)
    size = law.grid.size
    seen = jnp.bincount(place, used.astype(float), length=size)
    mean = jnp.bincount(place, jnp.where(used, y, 0.0), length=size) / jnp.maximum(seen, 1)
    scatter = jnp.sum(jnp.where(used, jnp.square(y - mean[place]), 0.0))

    def loss(field: Array) -> Array:
        return (scatter + jnp.sum(seen * jnp.square(mean - field.reshape(-1)))) / (2 * v)

    def both(field: Array) -> tuple[Array, Array]:
        return constant + loss(field) / jnp.sum(used), constant + 0.5 + jnp.mean(jnp.square(field - h)) / (2 * v)

    return loss, both


@double
def measure(
    law: Law,
    rule: MaximumPosterior,
    *,
    examples: Any,
    runs: int,
    key: Key,
    batch: int | None = None,
    executor: Any = None,
    folder: Any = None,
    **sweep: Any,
) -> xr.Dataset:
    """Training and test error over many data sets.

    Args:
        law: `TrueDensity`, `TrueFunction` or `TruePotential`.
        rule: the student; a density that may become zero (`Density`) is not measured here.
        examples: increasing numbers of examples, or one.
        runs: how many data sets.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        batch: runs computed side by side; by default what fits in memory.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any number of the law or the rule, above all `strength`; a sequence becomes a dimension.

    Returns:
        `training_error` and `test_error` (minus the mean log-likelihood of the examples and of new ones), each with
        `_stderr` and `_run`; and `runs`, `failed`, `outcome`. Of a potential also `density_error`, half of the integral
        of $|p - p_{true}|$, and `potential_error`, the root of the mean square of $V - V_{true}$ under the true
        density, up to a constant.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 9, points=10, ends=fields.Periodic())])
        >>> law = fields.TrueDensity(grid, (1 + np.cos(np.arange(10) * np.pi / 5)) / 10)
        >>> rule = fields.MaximumPosterior(fields.LogDensity(grid), fields.Gaussian(fields.Laplacian(grid)))
        >>> points = fields.measure(law, rule, examples=50, runs=10, key=jax.random.key(0))
        >>> bool(points.test_error > points.training_error)
        True
    """
    question = SCIENCE.ask(law, rule, sweep, examples=examples, least=1)
    if isinstance(rule.link, Density):
        raise InputError("Argument `rule` must have a link without a bound here, but it has Density: use LogDensity.")
    counts = [checks.whole("examples", int(n), least=1) for n in question.axes["examples"]]
    if isinstance(law, TruePotential):  # the shape of the data changes
        work: list[Any] = [(measure_potential(n), question.plan.pairs) for n in counts]
    else:
        rooms = [functools.partial(_one_run, room=next_length(n, first=ROOM, ratio=ROOM, most=MOST)) for n in counts]
        work = [(run, [(*pair, np.array(float(n))) for pair in question.plan.pairs])
                for run, n in zip(rooms, counts, strict=True)]  # fmt: skip
    return question.measure(work, key=key, runs=runs, batch=batch, executor=executor, folder=folder, label="data sets")
