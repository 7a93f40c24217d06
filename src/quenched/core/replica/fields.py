r"""The field after training, integrated: nodes and weights of averages over the proximal map.

Trained together with the rest, an example of field $u$ ends at $y(u) = \arg\min_y [(y - u)^2/(2s) + \ell(y)]$ with
$s = zv$: the *global* minimum. Its inverse is explicit, $u(y) = y + s\,\ell'(y)$, so averages are integrals over $y$,

$$\langle F \rangle = \int dy\; u'(y)\, p(u(y))\, F(y, u(y)),$$

over those $y$ that are ever reached: all but the *gaps*, the intervals on which $\psi(y) = y^2/2 + s\,\ell(y)$ lies
above its convex hull. Across a gap $(a, b)$ the map jumps, at the field
$u_c = \psi'(a) = \psi'(b) = (\psi(b) - \psi(a))/(b - a)$.
A convex kink of $\ell$ holds the map: there $y$ stays while $u$ moves, and the integral goes over $u$. Everything is
smooth on each piece whether or not a jump has opened, so the accuracy does not degrade there.

Where panels lie is found under `stop_gradient`; what must move with the parameters (gaps, kinks) is put back with its
derivative by Newton steps, which change no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.gaussian import TAIL, legendre, pdf
from quenched.core.replica.problem import Problem
from quenched.core.types import Array, Real

GRID = 128
"""Points on which gaps are looked for."""
OPENING = 1e-4
"""Where $u'(y)$ is as small as this a gap is about to open: points come close, so that none opens unseen."""
PANELS, NODES = 40, 16
"""Gauss-Legendre panels between the ends, and nodes on each. Gaps and kinks add panels."""
GAPS = 8
"""Jumps of the proximal map that are told apart; with more there is no answer."""
HELD = 4
"""Panels of a kink that holds the map."""
GROWTH = 0.6
"""Neighbouring cells may differ in width by this share of their distance."""
REACH = np.concatenate([[0.0], np.geomspace(0.1, 1e10, 80)])
"""How far beyond the Gaussian an energy may pull, in standard deviations."""
POLISH = 24
"""Newton steps towards the edges of gaps: near the opening of a jump they converge slowly."""
SIDE = 1e-12
"""Distance at which the slopes beside a kink are taken."""

Jet = Callable[[Array], tuple[Array, Array, Array]]


class Nodes(NamedTuple):
    """Nodes of an average over all classes, each `[classes, nodes]`."""

    y: Array  # field after training
    u: Array  # field before
    slope: Array  # dy/du
    weight: Array  # its sum is 1
    jumps: Array  # whether the map jumps, [classes]


class Gaps(NamedTuple):
    """Gaps $(a, b)$ and the fields at which the map jumps, each `[GAPS]`; one that is not there has $a = b$."""

    a: Array
    b: Array
    u: Array


class Law(NamedTuple):
    """One class in numbers: $s$, and mean and standard deviation of the field."""

    s: Array
    mean: Array
    sd: Array

    @property
    def ends(self) -> tuple[Array, Array]:
        """Where the Gaussian is cut."""
        return self.mean - TAIL * self.sd, self.mean + TAIL * self.sd


def nodes(problem: Problem, R: Real, Q: Real, z: Real) -> Nodes:
    """Nodes and weights of `sum_V w_V < . >`, differentiable in everything."""
    w, m, v, n = problem.classes.table()
    R, Q, z = jnp.asarray(R), jnp.asarray(Q), jnp.asarray(z)
    found = jax.vmap(lambda m, v, n: _of_class(problem, Q, Law(z * v, m * R, jnp.sqrt(v * Q + n))))(m, v, n)
    return found._replace(weight=w[:, None] * found.weight)


def jet(problem: Problem, Q: Array) -> Jet:
    r"""$\ell, \ell', \ell''$ as functions of an array of fields."""
    slope = jax.value_and_grad(problem.energy)

    def one(y: Array) -> tuple[Array, Array, Array]:
        (value, first), (_, second) = jax.jvp(lambda y: slope(y, Q), (y,), (jnp.ones_like(y),))
        return value, first, second

    return jax.vmap(one)


def _of_class(problem: Problem, Q: Array, law: Law) -> Nodes:
    live, kinks = jet(problem, Q), jnp.asarray(problem.kinks, float).reshape(-1)
    still, Q_still, law_still, kinks_still = _stopped((problem, Q, law, kinks))
    frozen = jet(still, Q_still)
    grid, runaway = _grid(frozen, law_still, kinks_still)
    ends, gaps, too_many = _landmarks(frozen, law_still, grid, kinks_still)
    gaps = _moving(live, law, gaps, kinks)
    left, right = _panels(frozen, law_still, ends, gaps, kinks, grid)

    x, gauss = legendre(NODES)
    y = (left[:, None] + (right - left)[:, None] * x).reshape(-1)
    _, first, second = live(y)
    u, stretch = y + law.s * first, 1 + law.s * second  # u(y) and u'(y)
    weight = ((right - left)[:, None] * gauss).reshape(-1) * stretch * pdf((u - law.mean) / law.sd) / law.sd
    held_y, held_u, held_weight = _held(live, law, gaps, kinks)

    y, u = jnp.concatenate([y, held_y]), jnp.concatenate([u, held_u])
    slope = jnp.concatenate([1 / stretch, jnp.zeros_like(held_u)])
    weight = jnp.concatenate([weight, held_weight])
    weight = jnp.where(runaway | too_many, jnp.nan, weight)
    return Nodes(y, u, slope, weight, jnp.any(gaps.b > gaps.a) | jnp.any(stretch < 0))


def _stopped(tree: Any) -> Any:
    """The same numbers without their derivatives."""
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(jax.lax.stop_gradient, arrays), rest)


def _grid(jet: Jet, law: Law, kinks: Array) -> tuple[Array, Array]:
    """Points that cover all fields after training, dense where the energy bends; and whether the energy
    falls faster than the parabola rises."""
    sides, ends = jnp.array([[-1.0], [1.0]]), jnp.stack(law.ends)
    tried = ends[:, None] + sides * law.sd * REACH
    _, first, _ = jet(tried.reshape(-1))
    u = tried + law.s * first.reshape(tried.shape)
    inside = sides * (u - ends[:, None]) < 0  # still within the Gaussian
    last = jnp.max(jnp.where(inside, np.arange(REACH.size), -1), axis=1)
    low, high = jnp.take_along_axis(tried, jnp.minimum(last + 1, REACH.size - 1)[:, None], axis=1)[:, 0]
    y = low + (high - low) * np.linspace(0, 1, GRID)
    y = jax.lax.fori_loop(0, 3, lambda _, y: _spread(y, _shares(jet, law, kinks, y), GRID), y)
    below, above = _beside(jet, law, kinks) if kinks.size else (kinks, kinks)
    beside = kinks + jnp.abs(above - below) * np.array([[-1.0], [-0.5], [0.0], [0.5], [1.0]])  # a gap may be as narrow
    return jnp.sort(jnp.concatenate([y, jnp.clip(beside.reshape(-1), low, high)])), jnp.any(inside[:, -1])


def _shares(jet: Jet, law: Law, kinks: Array, y: Array) -> Array:
    """What each cell deserves by length, by `u`, by the bends of the energy, and where a gap may open."""
    _, first, second = jet(y + SIDE * (1 + jnp.abs(y)))
    u = jnp.clip(y + law.s * first, *law.ends)
    steepest = jnp.max(jnp.abs(first))
    if kinks.size:  # they will be edges of panels, and deserve nothing
        below, above = _beside(jet, law, kinks)
        step = jnp.where(y[:, None] >= kinks, above - below, 0.0)
        clipped = jnp.where(y[:, None] >= kinks, jnp.clip(above, *law.ends) - jnp.clip(below, *law.ends), 0.0)
        first, u = first - jnp.sum(step, axis=1) / law.s, u - jnp.sum(clipped, axis=1)
    stretch = jnp.where(1 + law.s * second > 0, 1 + law.s * second, 1.0)
    opening = jnp.diff(y) / (OPENING + jnp.minimum(stretch[1:], stretch[:-1]))

    def share(cells: Array, scale: Array) -> Array:  # rounding errors deserve nothing either
        return jnp.abs(cells) / (jnp.sum(jnp.abs(cells)) + 1e-9 * scale + 1e-150)

    return 0.2 * (
        share(jnp.diff(y), y[-1] - y[0])
        + share(jnp.diff(u), law.sd)
        + share(jnp.diff(first), steepest)
        + share(jnp.diff(second), jnp.max(jnp.abs(second)))
        + share(opening, y[-1] - y[0])
    )


def _spread(y: Array, share: Array, count: int) -> Array:
    """`count` points over the range of `y`, of a density that follows `share` and changes slowly."""
    step, middle = jnp.diff(y), 0.5 * (y[1:] + y[:-1])
    there = step > 0
    width = jnp.where(there, step / (count * jnp.where(there, share, 1.0)), jnp.inf)
    width = jnp.min(width + GROWTH * jnp.abs(middle[:, None] - middle), axis=1)
    cells = jnp.where(there, step / width, 0.0)
    filled = np.tri(y.size, y.size - 1, -1) @ cells  # cells to the left of each point
    wanted = np.linspace(0, 1, count) * filled[-1]
    place = jnp.clip(jnp.sum(filled <= wanted[:, None], axis=1) - 1, 0, y.size - 2)
    within = (wanted - filled[place]) / jnp.where(cells[place] > 0, cells[place], 1.0)
    return y[place] + jnp.clip(within, 0.0, 1.0) * step[place]


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


def _landmarks(jet: Jet, law: Law, grid: Array, kinks: Array) -> tuple[Array, Gaps, Array]:
    """The lowest and the highest field after training, and the gaps between; and whether there are too many."""
    value, _, _ = jet(grid)
    psi = 0.5 * jnp.square(grid - law.mean) + law.s * (value - value[GRID // 2])
    start, stop, more = _hull_gaps(grid, psi)
    reached = jnp.argmin(psi - (jnp.stack(law.ends)[:, None] - law.mean) * grid, axis=1)
    y = _polish(jet, law, grid, kinks, jnp.concatenate([start, stop, reached]))
    a, b, low, high = y[:GAPS], y[GAPS : 2 * GAPS], y[-2], y[-1]

    at_a, at_b, at_middle = jet(jnp.concatenate([a, b, 0.5 * (a + b)]))[0].reshape(3, GAPS)
    bulge = law.s * (at_middle - 0.5 * (at_a + at_b)) - 0.125 * jnp.square(b - a)  # of psi above its chord
    there = (stop > start) & (bulge > 0) & (a < high) & (b > low)
    there &= b - a > 1e-3 * (grid[stop] - grid[start])  # not a gap made by rounding
    a, b = jnp.where(there, a, high), jnp.where(there, b, high)
    return jnp.stack([low, high]), Gaps(a, b, _chord(law, a, b, at_a, at_b)), more & jnp.all(there)


def _chord(law: Law, a: Array, b: Array, at_a: Array, at_b: Array) -> Array:
    """Slope of psi's chord from `a` to `b`, with the energies there: the field at which the map jumps."""
    return 0.5 * (a + b) + law.s * (at_b - at_a) / jnp.where(b > a, b - a, 1.0)


def _polish(jet: Jet, law: Law, grid: Array, kinks: Array, index: Array) -> Array:
    """Gap edges (a, then b) and ends from the grid points next to them, by safeguarded Newton steps."""
    is_end, is_a = np.arange(index.size) >= 2 * GAPS, np.arange(index.size) < GAPS
    before, after = grid[jnp.maximum(index - 1, 0)], grid[jnp.minimum(index + 1, grid.size - 1)]
    low, high = jnp.where(is_a, -jnp.inf, before), jnp.where(is_a | is_end, after, jnp.inf)
    outer = jnp.where(is_a, before, after)

    def step(_: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        y, low, high = carry
        value, first, second = jet(y)
        jump = _chord(law, y[:GAPS], y[GAPS:-2], value[:GAPS], value[GAPS:-2])
        target = jnp.concatenate([jump, jump, jnp.stack(law.ends)])
        u, hold = _one_sided(jet, law, kinks, y, y + law.s * first, target)
        new = y + (target - u) / (1 + law.s * second)
        new = jnp.clip(new, *_between_kinks(kinks, y))
        good = (1 + law.s * second > 0) & (new >= low) & (new <= high)
        # away from a gap psi is convex; an end is bracketed
        retreat = jnp.where(is_end, 0.5 * (low + high), 0.5 * (y + outer))
        new = jnp.where(hold, y, jnp.where(good, new, retreat))
        return new, jnp.where(is_end & (u < target), y, low), jnp.where(is_end & (u > target), y, high)

    return jax.lax.fori_loop(0, POLISH, step, (grid[index], low, high))[0]


def _one_sided(jet: Jet, law: Law, kinks: Array, y: Array, u: Array, target: Array) -> tuple[Array, Array]:
    """u(y) on the side where `target` is, and whether a kink at `y` holds it."""
    if not kinks.size:
        return u, jnp.zeros(y.shape, bool)
    kink = jnp.any(y[:, None] == kinks, axis=1)
    below, above = _beside(jet, law, y)
    u = jnp.where(kink, jnp.where(target < below, below, above), u)
    return u, kink & (below <= target) & (target <= above)


def _between_kinks(kinks: Array, y: Array) -> tuple[Array, Array]:
    """The kinks on either side of `y`: no step passes over one."""
    below = jnp.max(jnp.where(kinks < y[:, None], kinks, -jnp.inf), axis=1, initial=-jnp.inf)
    above = jnp.min(jnp.where(kinks > y[:, None], kinks, jnp.inf), axis=1, initial=jnp.inf)
    return below, above


def _beside(jet: Jet, law: Law, y: Array) -> tuple[Array, Array]:
    """The field u(y) just below and just above `y`."""
    side = SIDE * (1 + jnp.abs(jax.lax.stop_gradient(y)))
    below, above = jet(jnp.concatenate([y - side, y + side]))[1].reshape(2, -1)
    return y + law.s * below, y + law.s * above


def _moving(jet: Jet, law: Law, gaps: Gaps, kinks: Array) -> Gaps:
    """The same gaps with their first two derivatives: two Newton steps from where they are."""
    there = gaps.b > gaps.a

    def held(y: Array) -> tuple[Array, Array]:  # an edge on a kink stays there
        match = y[:, None] == jax.lax.stop_gradient(kinks)
        return jnp.any(match, axis=1), jnp.sum(jnp.where(match, kinks, 0.0), axis=1)

    (a_held, a_kink), (b_held, b_kink) = held(gaps.a), held(gaps.b)

    def step(_: int, gaps: Gaps) -> Gaps:
        edges = jnp.stack([jnp.where(a_held, a_kink, gaps.a), jnp.where(b_held, b_kink, gaps.b)])
        value, first, second = (part.reshape(2, GAPS) for part in jet(edges.reshape(-1)))
        jump = _chord(law, *edges, *value)
        a, b = edges + jnp.where(there, (jump - edges - law.s * first) / (1 + law.s * second), 0.0)
        return Gaps(jnp.where(a_held, a_kink, a), jnp.where(b_held, b_kink, b), jump)

    return jax.lax.fori_loop(0, 2, step, gaps)


def _panels(jet: Jet, law: Law, ends: Array, gaps: Gaps, kinks: Array, grid: Array) -> tuple[Array, Array]:
    """Left and right edges of the panels: no panel touches a gap, none has a kink inside."""
    a, b, kink = jax.lax.stop_gradient((gaps.a, gaps.b, kinks))
    low, high = ends

    def squeeze(y: Array) -> Array:  # a coordinate x >= 0 without the gaps
        return y - low - jnp.sum(jnp.clip(y[..., None] - a, 0.0, b - a), axis=-1)

    x_gap, x_kink, x_high = squeeze(a), squeeze(jnp.clip(kink, low, high)), squeeze(high)

    def shift(x: Array) -> Array:  # y - x
        return low + jnp.sum(jnp.where(x[..., None] > x_gap, b - a, 0.0), axis=-1)

    x = jnp.sort(jnp.concatenate([squeeze(jnp.clip(grid, low, high)), np.linspace(0, 1, GRID // 2) * x_high]))
    x = _spread(x, _shares(jet, law, kink, x + shift(x)), PANELS + 1)
    x = jnp.sort(jnp.concatenate([x, x_gap, x_kink]))

    left, right = x[:-1], x[1:]
    same = 1e-11 * x_high  # edges closer than this are one, and the panel between them is empty

    def put_back(x: Array, edge: Array) -> Array:  # the derivatives of what moves
        at_gap = (jnp.abs(x[:, None] - x_gap) <= same) & (b > a)
        of_gap = jnp.sum(jnp.where(at_gap, edge - jax.lax.stop_gradient(edge), 0.0), axis=1)
        of_kink = jnp.sum(jnp.where(jnp.abs(x[:, None] - x_kink) <= same, kinks - kink, 0.0), axis=1)
        return jnp.where(right - left > 2 * same, jnp.where(jnp.any(at_gap, axis=1), of_gap, of_kink), 0.0)

    between = shift(0.5 * (left + right))
    return left + between + put_back(left, gaps.b), right + between + put_back(right, gaps.a)


def _held(jet: Jet, law: Law, gaps: Gaps, kinks: Array) -> tuple[Array, Array, Array]:
    """Nodes where a kink holds the map: `y`, `u` and the weights."""
    if not kinks.size:
        return kinks, kinks, kinks
    a, b, at = jax.lax.stop_gradient((gaps.a, gaps.b, kinks))
    u_below, u_above = _beside(jet, law, kinks)
    at_a, at_b = (at[:, None] == a) & (b > a), (at[:, None] == b) & (b > a)
    u_below = jnp.where(jnp.any(at_b, axis=1), jnp.sum(jnp.where(at_b, gaps.u, 0.0), axis=1), u_below)
    u_above = jnp.where(jnp.any(at_a, axis=1), jnp.sum(jnp.where(at_a, gaps.u, 0.0), axis=1), u_above)
    passed = jnp.any((at[:, None] > a) & (at[:, None] < b), axis=1)
    u_below, u_above = jnp.clip(u_below, *law.ends), jnp.clip(u_above, *law.ends)
    width = jnp.where(passed, 0.0, jnp.maximum(u_above - u_below, 0.0))[:, None]
    x, gauss = legendre(NODES)
    x = (np.arange(HELD)[:, None] + x).reshape(-1) / HELD
    u = u_below[:, None] + width * x
    weight = width * np.tile(gauss, HELD) / HELD * pdf((u - law.mean) / law.sd) / law.sd
    return jnp.repeat(kinks, x.size), u.reshape(-1), weight.reshape(-1)
