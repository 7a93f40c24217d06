r"""Landmarks of the averages: where the trained field jumps, and between which fields Gauss-Legendre panels lie.

Trained together with the rest, an example of field $u$ ends at $y(u) = \arg\min_y [(y - u)^2/(2s) + \ell(y)]$ with
$s = zv$: the *global* minimum. Its inverse is explicit, $u(y) = y + s\,\ell'(y)$, so averages are integrals over $y$,
over those $y$ that are ever reached: all but the *gaps*, the intervals on which $\psi(y) = y^2/2 + s\,\ell(y)$ lies
above its convex hull. Across a gap $(a, b)$ the map jumps, at the field
$u_c = \psi'(a) = \psi'(b) = (\psi(b) - \psi(a))/(b - a)$.

Everything is smooth on each panel whether or not a jump has opened, so the accuracy does not degrade there. Nothing
here is differentiated: `averages` lets the edges of gaps and the kinks move again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.gaussian import TAIL, legendre
from quenched.core.replica.problem import Problem
from quenched.core.types import Array

GRID = 128
"""Points between which panels lie, and on which gaps are looked for."""
OPENING = 1e-4
"""Where $u'(y)$ is as small as this a gap is about to open: points come close, so that none opens unseen."""
PASSES, MOST_PASSES, NEIGHBOURS, SETTLED = 4, 12, 16, 0.5
"""Times that the points are spread anew: the first, and as many as it takes, at most, until the nearest so many of them
come no closer by that factor. Each pass resolves fields after training that lie up to 25 times closer together."""
NODES = 8
"""Gauss-Legendre nodes between two points."""
GAPS = 8
"""Jumps of the proximal map that are told apart; averages are NaN where there are more."""
GROWTH = 0.6
"""Neighbouring cells may differ in width by this share of their distance."""
REACH = np.concatenate([[0.0], np.geomspace(0.1, 1e10, 80)])
"""How far beyond the Gaussian an energy may pull, in standard deviations."""
POLISH = 24
"""Newton steps towards the edges of gaps: near the opening of a jump they converge slowly."""
SIDE = 1e-12
"""Distance at which the slopes beside a kink are taken."""

Jet = Callable[[Array], tuple[Array, Array, Array]]


class Law(NamedTuple):
    """One class in numbers: $s$, and mean and standard deviation of the field."""

    s: Array
    mean: Array
    sd: Array

    @property
    def ends(self) -> Array:
        """Where the Gaussian is cut, `[2]`."""
        return jnp.stack([self.mean - TAIL * self.sd, self.mean + TAIL * self.sd])


class Landmarks(NamedTuple):
    """Gaps and quadrature of one class: constants of the kernel."""

    y: Array  # [nodes] fields after training; the last ones are edges of gaps (a, b) and places below and above kinks
    dy: Array  # [nodes] weights in an integral over all fields that are reached; of the last ones 1 where it ends there
    # and moves with the parameters, -1 where it begins
    a: Array  # [GAPS] lower edges; a gap that does not exist has a = b
    b: Array  # [GAPS] upper edges
    kinks: Array  # [kinks]
    valid: Array  # False where the energy falls faster than the parabola rises, or there are too many gaps


def jet(problem: Problem, Q: Array) -> Jet:
    r"""$\ell, \ell', \ell''$ as functions of an array of fields."""
    slope = jax.value_and_grad(problem.energy)

    def one(y: Array) -> tuple[Array, Array, Array]:
        (value, first), (_, second) = jax.jvp(lambda y: slope(y, Q), (y,), (jnp.ones_like(y),))
        return value, first, second

    return jax.vmap(one)


def laws(problem: Problem, R: Array, Q: Array, z: Array) -> Law:
    """The classes in numbers, each `[classes]`."""
    _, m, v, n = problem.classes.table()
    return Law(z * v, m * R, jnp.sqrt(v * Q + n))


def landmarks(problem: Problem, R: Array, Q: Array, z: Array) -> Landmarks:
    """The landmarks of all classes, `[classes, ...]`."""
    energy, kinks = jet(problem, Q), jnp.asarray(problem.kinks, float).reshape(-1)
    return jax.vmap(lambda law: _of_class(energy, law, kinks))(laws(problem, R, Q, z))


def _of_class(jet: Jet, law: Law, kinks: Array) -> Landmarks:
    grid, value, runaway = _grid(jet, law, kinks)
    low, high, a, b, too_many = _gaps(jet, law, grid, value, kinks)
    edges = jnp.sort(jnp.concatenate([jnp.clip(jnp.append(grid, kinks), low, high), a, b]))
    left, right = edges[:-1, None], edges[1:, None]
    inside = jnp.any((left >= a) & (right <= b), axis=1, keepdims=True)  # of a gap
    x, gauss = legendre(NODES)
    y, dy = left + (right - left) * x, jnp.where(inside, 0.0, right - left) * gauss
    place, there = kinks[:, None], b > a
    is_a, is_b, passed = (place == a) & there, (place == b) & there, (place > a) & (place < b)
    free_a, free_b = there & ~jnp.any(is_a, axis=0), there & ~jnp.any(is_b, axis=0)  # an edge on a kink stays there
    below, above = ~jnp.any(is_b | passed, axis=1), ~jnp.any(is_a | passed, axis=1)
    ends = jnp.concatenate([a, b, kinks - near(kinks), kinks + near(kinks)])
    signs = jnp.concatenate([1.0 * free_a, -1.0 * free_b, 1.0 * below, -1.0 * above])
    y, dy = jnp.append(y, ends), jnp.append(dy, signs)
    return Landmarks(y, dy, a, b, kinks, ~(runaway | too_many))


def beside(jet: Jet, law: Law, y: Array, side: Array) -> tuple[Array, Array]:
    """The field u(y) just below and just above `y`, at the distance `side`."""
    below, above = jet(jnp.concatenate([y - side, y + side]))[1].reshape(2, -1)
    return y + law.s * below, y + law.s * above


def near(y: Array) -> Array:
    """A small distance from `y`."""
    return SIDE * (1 + jnp.abs(y))


def _grid(jet: Jet, law: Law, kinks: Array) -> tuple[Array, Array, Array]:
    """Points that cover all fields after training, dense where the energy bends; the energy there; and whether it
    falls faster than the parabola rises."""
    sides = jnp.array([[-1.0], [1.0]])
    tried = law.ends[:, None] + sides * law.sd * REACH
    u = tried + law.s * jet(tried.reshape(-1))[1].reshape(tried.shape)
    inside = sides * (u - law.ends[:, None]) < 0  # still within the Gaussian
    last = jnp.max(jnp.where(inside, np.arange(REACH.size), -1), axis=1)
    low, high = jnp.take_along_axis(tried, jnp.minimum(last + 1, REACH.size - 1)[:, None], axis=1)[:, 0]
    steps = beside(jet, law, kinks, near(kinks)) if kinks.size else (kinks, kinks)

    def refine(_: int, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        y, first, second = carry[:3]
        y = _spread(y, _shares(law, kinks, steps, y, first, second))
        value, first, second = jet(y + near(y))  # beside a kink
        return y, first, second, value

    def again(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        passed, _, points = carry
        return passed + 1, _nearest(points[0]), refine(passed, points)

    def coarse(carry: tuple[Any, ...]) -> Array:
        passed, before, points = carry
        return (passed < MOST_PASSES) & (_nearest(points[0]) < SETTLED * before)

    even, flat = low + (high - low) * np.linspace(0, 1, GRID), jnp.zeros(GRID)
    points = jax.lax.fori_loop(0, PASSES - 1, refine, (even, flat, flat, flat))
    y, _, _, value = jax.lax.while_loop(coarse, again, again((PASSES - 1, flat[0], points)))[2]
    if kinks.size:  # a gap around one may be as narrow as this
        around = kinks + jnp.abs(steps[1] - steps[0]) * np.array([[-1.0], [-0.5], [0.0], [0.5], [1.0]])
        y = jnp.sort(jnp.append(y, jnp.clip(around, low, high)))
        value = jet(y)[0]
    return y, value, jnp.any(inside[:, -1])


def _nearest(y: Array) -> Array:
    """How close some neighbours are to each other, at least."""
    return jnp.min(y[NEIGHBOURS:] - y[:-NEIGHBOURS])


def _shares(
    law: Law, kinks: Array, steps: tuple[Array, Array], y: Array, first: Array, second: Array
) -> Array:  # fmt: skip
    """What each cell deserves by length, by `u`, by the bends of the energy, and where a gap may open."""
    u = jnp.clip(y + law.s * first, *law.ends)
    steepest = jnp.max(jnp.abs(first))
    if kinks.size:  # they will be edges of panels, and deserve nothing
        below, above = steps
        passed = y[:, None] >= kinks
        first = first - jnp.sum(jnp.where(passed, above - below, 0.0), axis=1) / law.s
        clipped = jnp.clip(above, *law.ends) - jnp.clip(below, *law.ends)
        u = u - jnp.sum(jnp.where(passed, clipped, 0.0), axis=1)
    stretch = jnp.where(1 + law.s * second > 0, 1 + law.s * second, 1.0)
    step, length = jnp.diff(y), y[-1] - y[0]
    opening = step / (OPENING + jnp.minimum(stretch[1:], stretch[:-1]))
    cells = jnp.abs(jnp.stack([step, jnp.diff(u), jnp.diff(first), jnp.diff(second), opening]))
    scale = jnp.stack([length, law.sd, steepest, jnp.max(jnp.abs(second)), length])
    return jnp.mean(cells.T / (jnp.sum(cells, axis=1) + 1e-9 * scale + 1e-150), axis=1)  # rounding deserves nothing


def _spread(y: Array, share: Array) -> Array:
    """As many points over the range of `y`, of a density that follows `share` and changes slowly."""
    step, middle = jnp.diff(y), 0.5 * (y[1:] + y[:-1])
    there = step > 0
    width = jnp.where(there, step / (GRID * jnp.where(there, share, 1.0)), jnp.inf)
    width = jnp.min(width + GROWTH * jnp.abs(middle[:, None] - middle), axis=1)
    cells = jnp.where(there, step / width, 0.0)
    filled = np.tri(GRID - 1, GRID - 1, -1) @ cells  # cells to the left
    wanted = np.linspace(0, 1, GRID)[:, None] * jnp.sum(cells)
    within = jnp.clip((wanted - filled) / jnp.where(there, cells, 1.0), 0.0, 1.0)
    return y[0] + jnp.sum(within * step, axis=1)


def _hull_gaps(y: Array, psi: Array) -> tuple[Array, Array, Array]:
    """Indices of the points beside the widest gaps, equal where there is none; and whether there are more."""
    index = np.arange(y.size)
    step = y[None, :] - y[:, None]
    slope = (psi[None, :] - psi[:, None]) / jnp.where(step == 0, 1.0, step)
    before = jnp.max(jnp.where(step < 0, slope, -jnp.inf), axis=1)
    after = jnp.min(jnp.where(step > 0, slope, jnp.inf), axis=1)
    spacing = jnp.concatenate([jnp.ones(1), 0.5 * (y[2:] - y[:-2]), jnp.ones(1)])
    noise = 1e-14 * jnp.abs(psi) / jnp.where(spacing > 0, spacing, 1.0)
    off = before - after > noise  # above a chord
    following = jnp.min(jnp.where((index > index[:, None]) & ~off, index, y.size - 1), axis=1)
    width = jnp.where(~off & (following > index + 1), y[following] - y, 0.0)
    widest, start = jax.lax.top_k(width, GAPS + 1)
    stop = jnp.where(widest > 0, following[start], start)
    return start[:-1], stop[:-1], widest[-1] > 0


def _gaps(jet: Jet, law: Law, grid: Array, value: Array, kinks: Array) -> tuple[Array, ...]:
    """The lowest and the highest field after training, and the gaps between; and whether there are too many."""
    psi = 0.5 * jnp.square(grid - law.mean) + law.s * (value - value[GRID // 2])
    start, stop, more = _hull_gaps(grid, psi)
    reached = jnp.argmin(psi - (law.ends[:, None] - law.mean) * grid, axis=1)
    y, bulge = _polish(jet, law, grid, kinks, jnp.concatenate([start, stop, reached]))
    a, b, (low, high) = y[:GAPS], y[GAPS:-2], y[-2:]
    there = (stop > start) & (bulge > 0) & (a < high) & (b > low)
    there &= b - a > 1e-3 * (grid[stop] - grid[start])  # not a gap made by rounding
    return low, high, jnp.where(there, a, high), jnp.where(there, b, high), more & jnp.all(there)


def chord(law: Law, a: Array, b: Array, at_a: Array, at_b: Array) -> Array:
    """Slope of psi's chord from `a` to `b`, with the energies there: the field at which the map jumps."""
    return 0.5 * (a + b) + law.s * (at_b - at_a) / jnp.where(b > a, b - a, 1.0)


def _polish(jet: Jet, law: Law, grid: Array, kinks: Array, index: Array) -> tuple[Array, Array]:
    """Gap edges (a, then b) and ends from the grid points next to them, by safeguarded Newton steps; and how far psi
    is above the chords between the edges."""
    is_end, is_a = np.arange(index.size) >= 2 * GAPS, np.arange(index.size) < GAPS
    before, after = grid[jnp.maximum(index - 1, 0)], grid[jnp.minimum(index + 1, grid.size - 1)]
    low, high = jnp.where(is_a, -jnp.inf, before), jnp.where(is_a | is_end, after, jnp.inf)
    outer = jnp.where(is_a, before, after)

    def step(_: int, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        y, low, high = carry[:3]
        a, b = y[:GAPS], y[GAPS:-2]
        value, first, second = jet(jnp.append(y, 0.5 * (a + b)))
        at_a, at_b, at_middle = value[:GAPS], value[GAPS : 2 * GAPS], value[-GAPS:]
        bulge = law.s * (at_middle - 0.5 * (at_a + at_b)) - 0.125 * jnp.square(b - a)
        jump, stretch = chord(law, a, b, at_a, at_b), 1 + law.s * second[:-GAPS]
        target = jnp.concatenate([jump, jump, law.ends])
        u, hold = _one_sided(jet, law, kinks, y, y + law.s * first[:-GAPS], target)
        new = jnp.clip(y + (target - u) / stretch, *_between_kinks(kinks, y))
        good = (stretch > 0) & (new >= low) & (new <= high)
        # away from a gap psi is convex; an end is bracketed
        retreat = jnp.where(is_end, 0.5 * (low + high), 0.5 * (y + outer))
        new = jnp.where(hold, y, jnp.where(good, new, retreat))
        return new, jnp.where(is_end & (u < target), y, low), jnp.where(is_end & (u > target), y, high), bulge

    y, _, _, bulge = jax.lax.fori_loop(0, POLISH, step, (grid[index], low, high, jnp.zeros(GAPS)))
    return y, bulge


def _one_sided(jet: Jet, law: Law, kinks: Array, y: Array, u: Array, target: Array) -> tuple[Array, Array]:
    """u(y) on the side where `target` is, and whether a kink at `y` holds it."""
    if not kinks.size:
        return u, jnp.zeros(y.shape, bool)
    kink = jnp.any(y[:, None] == kinks, axis=1)
    below, above = beside(jet, law, y, near(y))
    u = jnp.where(kink, jnp.where(target < below, below, above), u)
    return u, kink & (below <= target) & (target <= above)


def _between_kinks(kinks: Array, y: Array) -> tuple[Array, Array]:
    """The kinks on either side of `y`: no step passes over one."""
    below = jnp.max(jnp.where(kinks < y[:, None], kinks, -jnp.inf), axis=1, initial=-jnp.inf)
    above = jnp.min(jnp.where(kinks > y[:, None], kinks, jnp.inf), axis=1, initial=jnp.inf)
    return below, above
