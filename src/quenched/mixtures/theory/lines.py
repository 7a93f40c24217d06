r"""The lines of the phase diagram, each followed from the point where all of them begin.

At $\alpha_c$ the splitting vector first has a direction. From there run

* `splitting_ordered`, $\sigma_1(\alpha)$: $k = 0$, along $c > 0$;
* `splitting_random`, $\sigma_2(\alpha)$: $k = c = 0$, at every $\alpha$;
* `ordered_random`: $c = 0$, along $k$ from 0 to 1, where the width is 0;
* `replica_symmetry`: along $k$, where its stability value is 1. Below it the theory is an approximation.

A line is a solution of some of the equations (A), (B) of `scaled` and (C), stability = 1, in some of the unknowns
$(k, \ln b, c, \ln\alpha)$. The closed forms that some lines have are used in tests only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks, controls, results
from quenched.core.types import Array, InputError, Outcome, double, outcome_names
from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory.scaled import equations

POINTS = 64
"""Points at which a line is followed before it is read off at the asked sample sizes."""
LAST = 1 - 1e-9
"""The largest $k$: width 0 but for nine digits."""
TOLERANCE = 1e-12
"""What the equations may leave over."""
GOOD = 1e-9
"""What they may leave over next to $\\alpha_c$, where several lines touch and no method sees more digits."""
MOST = 160
"""Steps after which a line is no longer followed."""
BATCH = 16
"""Points that are computed together."""
K, LOG_B, C, LOG_ALPHA = range(4)
"""Places of the unknowns."""


class Kind(NamedTuple):
    """What holds on a line."""

    equations: tuple[int, ...]  # of (A), (B), (C)
    along: int  # the unknown along which it is followed
    fixed: tuple[int, ...]  # unknowns that are 0


LINES = {
    "splitting_ordered": Kind((0, 1), C, (K,)),
    "splitting_random": Kind((0,), LOG_ALPHA, (K, C)),
    "ordered_random": Kind((0, 1), K, (C,)),
    "replica_symmetry": Kind((0, 1, 2), K, ()),
}


def _equations(v: Array, l: Array) -> tuple[Array, Array]:
    r"""(A), (B) and (C) at $(k, \ln b, c, \ln\alpha)$, and $S = \sigma + \sqrt q$."""
    at = equations(v[K], jnp.exp(v[LOG_B]), v[C], l, jnp.exp(v[LOG_ALPHA]))
    return jnp.stack([at.length, at.direction, 1 - 1 / at.stability]), at.scale


@jax.jit
def _many(v: Array, l: Array) -> tuple[Array, Array, Array]:
    """Equations, their derivatives and $S$ for many points."""
    value, scale = jax.vmap(_equations, (0, None))(v, l)
    return value, jax.vmap(jax.jacfwd(lambda v: _equations(v, l)[0]))(v), scale


def _evaluate(v: np.ndarray, l: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`_many` in batches of one length, so that there is one program."""
    parts = []
    for i in range(0, len(v), BATCH):
        part = v[i : i + BATCH]
        full = np.concatenate([part, np.repeat(part[-1:], BATCH - len(part), axis=0)])
        parts.append([np.asarray(x)[: len(part)] for x in _many(full, np.float64(l))])
    value, slope, scale = (np.concatenate(x) for x in zip(*parts, strict=True))
    return value, slope, scale


def _newton(v: np.ndarray, l: float, chosen: tuple[int, ...], free: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Newton's method for many points at once; returns them, $S$ and what is left over."""
    v, best, least = v.copy(), v.copy(), np.full(len(v), np.inf)
    for _ in range(30):
        value, slope, _ = _evaluate(v, l)
        left = np.max(np.abs(value[:, chosen]), axis=1)
        best, least = np.where((left < least)[:, None], v, best), np.fmin(left, least)
        v = np.where(np.isfinite(left)[:, None], v, (v + best) / 2)  # a step too far: into the gap, or out of range
        if np.all(~(left > TOLERANCE)):
            break
        matrix = slope[:, chosen][:, :, free]
        going = (left > TOLERANCE) & np.all(np.isfinite(matrix), axis=(1, 2))
        going[going] = np.linalg.det(matrix[going]) != 0
        v[np.ix_(going, free)] -= np.linalg.solve(matrix[going], value[going][:, chosen, None])[..., 0]
        v[:, K] = np.clip(v[:, K], 0, LAST)
    return best, _evaluate(best, l)[2], least


def critical(l: float) -> np.ndarray:
    r"""$(0, \ln b, 0, \ln\alpha_c)$: (A) and (B) at $k = c = 0$."""
    start = np.array([[0.0, np.log(1 - 1e-4), 0.0, 0.0]])  # from above, where the equations are convex
    found, _, left = _newton(start, l, (0, 1), (LOG_B, LOG_ALPHA))
    if not left[0] < GOOD:
        raise InputError("Argument `separation` must be one at which the lines can be followed, but at "
                         f"{np.sqrt(2 * l):g} their beginning is lost in rounding.")  # fmt: skip
    return found[0]


def _follow(kind: Kind, l: float, grid: np.ndarray) -> np.ndarray:
    """Points along a line from the critical one, each begun on the straight line through the last two.

    Args:
        kind: which line.
        l: $u_0^2/2$.
        grid: values of the unknown along which it is followed; the first is that of the critical point. Where a step
            is too long it is halved.
    """
    free, unit = _free(kind, kind.along), np.eye(4)
    path, ahead = [critical(l)], list(grid[:0:-1])
    while ahead and len(path) + len(ahead) < MOST:
        by = ahead[-1] - path[-1][kind.along]
        if len(path) > 1:
            last = path[-1][kind.along] - path[-2][kind.along]
            if last == 0:  # steps were halved until nothing moved: the line is lost here
                break
            start = path[-1:] + by * (path[-1] - path[-2]) / last
        else:  # if c is an unknown it begins as the square of k, by a factor that is not known
            squares = by**2 * 2.0 ** np.arange(-3, 7) if C in free and kind.along == K else np.zeros(1)
            start = path[0] + by * unit[kind.along] + squares[:, None] * unit[C]
        v, _, left = _newton(start, l, kind.equations, free)
        best = np.argmin(np.where(v[:, C] >= 0, left, np.inf))
        if left[best] < GOOD:
            path.append(v[best])
            ahead.pop()
        else:
            ahead.append(ahead[-1] - by / 2)
    return np.array(path)


def _free(kind: Kind, known: int) -> tuple[int, ...]:
    """The unknowns of a line, where one of them is known."""
    return tuple(i for i in range(4) if i != known and i not in kind.fixed)


def _path(kind: Kind, l: float, alphas: np.ndarray) -> np.ndarray:
    """A line followed as far as the asked sample sizes, in order of these."""
    ends, begin = np.log(alphas[[0, -1]]), critical(l)[LOG_ALPHA]
    grid = np.linspace(0, 1, POINTS)
    farther = np.exp(max(ends[1] - begin, 0.0))
    if kind.along == C:  # 1 - c^2 falls as 1/alpha
        return _follow(kind, l, np.sqrt(-np.expm1(-np.log1p(8 * farther) * np.square(grid))))
    if kind.along == K and C in kind.fixed:
        return _follow(kind, l, LAST * grid)
    if kind.along == K:  # 1 - k falls as 1/alpha
        return _follow(kind, l, -np.expm1(-np.log1p(8 * farther) * np.square(grid)))
    down, up = (
        _follow(kind, l, np.linspace(begin, end, POINTS)) for end in (min(ends[0], begin - 1), max(ends[1], begin + 1))
    )
    return np.concatenate([down[:0:-1], up])


def _read(name: str, path: np.ndarray, l: float, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Widths, outcomes and what the equations leave over, at sample sizes along a line that was followed."""
    kind = LINES[name]
    inside = (np.log(alphas) >= path[0, LOG_ALPHA]) & (np.log(alphas) <= path[-1, LOG_ALPHA])
    left_k, log_a, c = (
        np.interp(np.log(alphas), path[:, LOG_ALPHA], y)
        for y in (np.log1p(-path[:, K]), path[:, LOG_B] - np.log1p(-path[:, K]), path[:, C])  # a < 1 stays so
    )
    start = np.column_stack([-np.expm1(left_k), log_a + left_k, c, np.log(alphas)])
    width, residual = np.full(len(alphas), np.nan), np.zeros(len(alphas))
    lost = (alphas > np.exp(path[-1, LOG_ALPHA])) & (name != "ordered_random")  # that one ends, the others do not
    outcome = np.where(lost, Outcome.stalled, Outcome.absent)
    if np.any(inside):
        v, scale, left = _newton(start[inside], l, kind.equations, _free(kind, LOG_ALPHA))
        width[inside], residual[inside] = (1 - v[:, K]) * scale, left
        outcome[inside] = np.where(left < GOOD, Outcome.converged, Outcome.stalled)
    return width, outcome, residual


@double
def phase_lines(law: TwoGaussians, *, alpha: Any, **sweep: Any) -> xr.Dataset:
    r"""The lines of the phase diagram: the widths at which the state changes, over the sample size.

    Args:
        law: the world.
        alpha: increasing sample sizes (examples per dimension), or one.
        **sweep: any field of the law; a sequence becomes a dimension of the result.

    Returns:
        Widths over `alpha`: `splitting_ordered` and `splitting_random`, below which one centre becomes two, in a
        direction that knows the truth or in a random one; `ordered_random`, below which the direction no longer
        knows the truth; `replica_symmetry`, below which the theory is an approximation (in the random phase it
        always is). Each with its `_outcome`: `absent` where there is no such line. Beside them `alpha_c`, below which
        no width gives a direction that knows the truth, and `alpha_end`, above which every width below the
        splitting does.

    Examples:
        >>> from quenched import mixtures
        >>> lines = mixtures.phase_lines(mixtures.TwoGaussians(separation=1.0), alpha=[5.0, 8.0])
        >>> lines.splitting_ordered.values.round(4).tolist()
        [2.1, 1.875]
    """
    checks.kind("law", law, TwoGaussians, "a TwoGaussians law")
    alphas = checks.increasing("alpha", alpha)
    checks.positive("alpha", alphas)
    plan = controls.expand(law, MaximumLikelihood(), sweep)
    values: dict[str, list[np.ndarray]] = {}
    for one in plan.laws:
        l = float(one.separation) ** 2 / 2
        paths = {name: _path(kind, l, alphas) for name, kind in LINES.items()}
        first, last = np.exp(paths["ordered_random"][[0, -1], LOG_ALPHA])
        found: dict[str, Any] = {"alpha_c": first, "alpha_end": last}
        for name, path in paths.items():
            found[name], found[f"{name}_outcome"], found[f"{name}_residual"] = _read(name, path, l, alphas)
        for name, value in found.items():
            values.setdefault(name, []).append(value)
    return _dataset(values, plan, alphas, scalar=np.ndim(alpha) == 0)


def _dataset(
    values: dict[str, list[np.ndarray]], plan: controls.Plan, alphas: np.ndarray, *, scalar: bool
) -> xr.Dataset:
    """Arrays over the sweep and the sample size, named."""
    named = {}
    for name, value in values.items():
        array = np.stack(value).reshape((*plan.shape, *np.shape(value[0])))
        array = outcome_names(array) if name.endswith("_outcome") else array
        named[name] = ((*plan.dims, *(("alpha",) if np.ndim(value[0]) else ())), array)
    about = {"law": results.describe(plan.laws[0]), "version": results.version(), "format": results.FORMAT}
    found = xr.Dataset(named, {**plan.coords, "alpha": alphas}, {**about, "science": "mixtures", "source": "lines"})
    return found.isel(alpha=0) if scalar else found
