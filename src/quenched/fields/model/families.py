r"""Priors with hyperparameters, ready-made: strength, relevance of axes, lengths, local smoothness, masses, periods.

All keep their normalisation (see `quenched.fields.model.hyper`) and are used like any other prior.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, is_traced
from quenched.fields.model.grid import Axis, Grid, Periodic
from quenched.fields.model.hyper import Hyper
from quenched.fields.model.hyperpriors import Choice, Flat, Hyperprior, LogFlat
from quenched.fields.model.maps import Translation
from quenched.fields.model.operators import Dense, Filter, Operator, Waves
from quenched.fields.model.priors import Gaussian, Prior
from quenched.fields.model.smoothness import Difference, Laplacian, Mass
from quenched.fields.model.symmetries import Invariance

LEAST = 1e-6
"""Mass of ready-made priors, as a share of the curvature of the longest wave: it makes them proper."""


def Strength(operator: Operator, mean: Any = None, hyperprior: Hyperprior | None = None) -> Hyper:
    r"""How strong a prior is: $K(\theta) = \theta K$, the regularisation parameter. [lemm1999, section 5.3.6]

    Args:
        operator: $K$.
        mean: the template.
        hyperprior: of the `strength`; by default `LogFlat()`.
    """
    checks.kind("operator", operator, Operator, "an operator such as Laplacian(grid)")
    return Hyper(lambda theta: Gaussian(theta["strength"] * operator, mean=mean),
                 hyperprior={"strength": _known(hyperprior, LogFlat())})  # fmt: skip


def Relevance(grid: Grid, order: int = 1, mass: float | None = None, hyperprior: Hyperprior | None = None) -> Hyper:
    r"""A strength for each axis, $K(\theta) = m + \sum_i \theta_i K_i$. [lemm1999, section 5.3.2, erratum F453]

    The field hardly depends on an axis whose strength is large (`relevance` is an array, in the order of the axes).

    Args:
        grid: where the fields live.
        order: of the derivatives that are small.
        mass: $m$, which makes the prior proper; by default small.
        hyperprior: of each strength; by default `LogFlat()`.
    """
    checks.kind("grid", grid, Grid, "a Grid")
    order = checks.whole("order", order, least=1)
    parts = [Difference(grid, axis, order) if order > 1 else Laplacian(grid, axis) for axis in grid.axes]
    rest = Mass(grid, _small(grid) if mass is None else checks.number("mass", mass))

    def make(theta: Any) -> Prior:
        total: Any = rest
        for i, part in enumerate(parts):
            total = total + theta["relevance"][i] * part
        return Gaussian(total)

    known = _known(hyperprior, LogFlat())
    return Hyper(make, {"relevance": np.full(len(parts), known.middle)}, {"relevance": known})


def LengthScale(grid: Grid, power: int = 2, hyperprior: dict[str, Hyperprior] | None = None) -> Hyper:
    r"""Fields that vary over a length $\ell$ by a variance $s^2$: $K = (1 - \ell^2 \Delta)^p / Z$.

    $Z$ is such that the mean variance of a point is $s^2$: the two mean what they say at every length.

    Args:
        grid: where the fields live, with points at equal distances.
        power: $p$; the larger, the smoother.
        hyperprior: of the `length` and the `variance`; by default between the spacing and the extent of the grid, and
            `LogFlat()`.
    """
    checks.kind("grid", grid, Grid, "a Grid")
    power, base = checks.whole("power", power, least=1), Laplacian(grid)
    values = np.broadcast_to(base.values, grid.shape)
    given = {} if hyperprior is None else hyperprior
    if not isinstance(given, dict) or not set(given) <= {"length", "variance"}:
        raise InputError("Argument `hyperprior` must be a dictionary with `length` or `variance`, but "
                         f"{hyperprior!r} was given.")  # fmt: skip
    shortest, longest = min(axis.spacing for axis in grid.axes), max(axis.length for axis in grid.axes)

    def make(theta: Any) -> Prior:
        shape = (1 + theta["length"] ** 2 * values) ** power
        library: Any = jnp if is_traced(shape) else np
        mean = library.mean(1 / shape) / grid.cell
        return Gaussian(Waves(grid, shape * mean / theta["variance"], base.orders))

    return Hyper(make, hyperprior={"length": LogFlat(shortest, longest), "variance": LogFlat(), **given})


def Smoothness(grid: Grid, axis: Axis | None = None, hyperprior: Prior | None = None) -> Hyper:
    r"""Local smoothness, $\tfrac12 \int e^{\theta(x)} (\partial\phi)^2$. [lemm1999, section 5.3.3, erratum F455]

    `theta` has a value for each link between two neighbours along the axis, in the shape of the grid with one point
    less along a free axis.

    Args:
        grid: where the fields live.
        axis: along which; by default the first.
        hyperprior: of `theta`, on the grid of the links (`links_of(grid, axis)`); by default smooth and about 0.
    """
    W, links = link_rows(grid, axis)
    known = _known_field(hyperprior, links)

    def make(theta: Any) -> Prior:
        library: Any = jnp if is_traced(theta["theta"]) else np
        return Gaussian(Filter(grid, library.exp(0.5 * theta["theta"]).reshape(-1, 1) * W))

    return Hyper(make, {"theta": np.zeros(links.shape)}, {"theta": known})


def MassField(operator: Operator, mean: Any = None, hyperprior: Prior | None = None) -> Hyper:
    r"""A mass that depends on the place, $K = e^{2\theta(x)} + K_0$. [lemm1999, section 5.3.4, erratum F460]

    Where it is large the field copies its template, where it is small it follows its neighbours.

    Args:
        operator: $K_0$, such as `Laplacian(grid)`.
        mean: the template.
        hyperprior: of `theta`, on the same grid; by default smooth and about 0.
    """
    checks.kind("operator", operator, Operator, "an operator such as Laplacian(grid)")
    grid, base = operator.grid, operator.matrix
    known = _known_field(hyperprior, grid)

    def make(theta: Any) -> Prior:
        library: Any = jnp if is_traced(theta["theta"]) else np
        return Gaussian(Dense(grid, base + library.diag(library.exp(2 * theta["theta"]).reshape(-1))), mean=mean)

    return Hyper(make, {"theta": np.zeros(grid.shape)}, {"theta": known})


def Spectrum(operator: Operator, count: int = 4, mean: Any = None, hyperprior: Hyperprior | None = None) -> Hyper:
    r"""Eigenvalues are shifted against each other with a fixed determinant. [lemm1999, section 5.3.5, erratum F474]

    $\lambda_k \to \lambda_k e^{\sum_a \theta_a b_a(k)}$, where $b_a$ is a cosine of the rank of $k$ without its mean:
    the logarithms add up to what they were, so that nothing has to be normalised.

    Args:
        operator: diagonal in waves, such as `Laplacian(grid) + Mass(grid)`.
        count: how many patterns $b_a$.
        mean: the template.
        hyperprior: of each $\theta_a$; by default between -5 and 5.
    """
    if not isinstance(operator, Waves):
        raise InputError("Argument `operator` must be an operator in waves, such as Laplacian(grid), but it is "
                         f"{operator!r}.")  # fmt: skip
    grid, values = operator.grid, np.broadcast_to(np.asarray(operator.values), operator.grid.shape)
    count = checks.whole("count", count, least=1)
    place = np.argsort(np.argsort(values, axis=None, kind="stable")).reshape(grid.shape) / grid.size
    bands = np.stack([np.cos(np.pi * a * place) for a in range(1, count + 1)], axis=-1) * (values > 0)[..., None]
    bands = bands - (values > 0)[..., None] * bands[values > 0].mean(axis=0)

    def make(theta: Any) -> Prior:
        library: Any = jnp if is_traced(theta["theta"]) else np
        return Gaussian(Waves(grid, values * library.exp(bands @ theta["theta"]), operator.orders), mean=mean)

    return Hyper(make, {"theta": np.zeros(count)}, {"theta": _known(hyperprior, Flat(-5.0, 5.0))})


def Order(
    grid: Grid,
    axis: Axis | None = None,
    orders: Any = (1, 2, 3),
    mass: float = 0.01,
    hyperprior: Hyperprior | None = None,
) -> Hyper:
    r"""Which derivative is small, an `order` among some, with a `strength` for each. [lemm1999, section 5.5]

    The strength is in units of the axis, so that it means the same for each order. A mass makes all of them proper:
    polynomials below the order have coefficients of variance $1/m$, which is what an order has to pay for each.

    Args:
        grid: where the fields live.
        axis: along which; by default the first.
        orders: the alternatives.
        mass: $m$, in units of the axis: one over the variance that the field may have at all.
        hyperprior: of the `strength`; by default `LogFlat(1e-6, 1e3)`.
    """
    checks.kind("grid", grid, Grid, "a Grid")
    axis = grid.axes[0 if axis is None else grid.place(axis)]
    orders = [checks.whole("orders", k, least=1) for k in Choice(orders).values]
    every = {k: axis.length ** (2 * k - 1) * Difference(grid, axis, k) for k in orders}
    checks.positive("mass", checks.number("mass", mass))
    small = Mass(grid, checks.number("mass", mass) / axis.length)

    def make(theta: Any) -> Prior:
        return Gaussian(theta["strength"] * every[theta["order"]] + small)

    return Hyper(make, hyperprior={"order": Choice(orders), "strength": _known(hyperprior, LogFlat(1e-6, 1e3))})


def Period(operator: Operator, periods: Any, axis: Axis | None = None, hyperprior: Hyperprior | None = None) -> Hyper:
    r"""A field that nearly repeats itself after one of some periods, $K(T) = K_0 + s\, (1 - S_T)^T (1 - S_T)$.

    Args:
        operator: $K_0$, which must be proper: `Laplacian(grid) + Mass(grid, 0.01)`.
        periods: the alternatives $T$; a shift must stay on the grid.
        axis: along which; by default the first.
        hyperprior: of the `strength` $s$; by default `LogFlat()`.
    """
    checks.kind("operator", operator, Operator, "an operator such as Laplacian(grid)")
    grid = operator.grid
    axis = grid.axes[0 if axis is None else grid.place(axis)]
    shifts = [checks.number("periods", by) for by in Choice(periods).values]
    every = {by: Invariance(Translation(grid, axis, by)) for by in shifts}

    def make(theta: Any) -> Prior:
        return Gaussian(operator + theta["strength"] * every[theta["period"]])

    return Hyper(make, hyperprior={"period": Choice(tuple(every)), "strength": _known(hyperprior, LogFlat())})


def links_of(grid: Grid, axis: Axis | None = None) -> Grid:
    """The grid of the links between neighbours along an axis, where hyperfields of differences live.

    Args:
        grid: where the fields live.
        axis: along which; by default the first.
    """
    return link_rows(grid, axis)[1]


def link_rows(grid: Grid, axis: Axis | None) -> tuple[np.ndarray, Grid]:
    """First differences per spacing along an axis, as a matrix on flat fields, and the grid of their places."""
    checks.kind("grid", grid, Grid, "a Grid")
    place = 0 if axis is None else grid.place(axis)
    axis = grid.axes[place]
    if isinstance(axis.ends, Periodic):
        D, links = np.roll(np.eye(axis.points), 1, axis=1) - np.eye(axis.points), axis
    else:
        if axis.points < 3:
            raise InputError(f"Argument `axis` must have at least 3 points, but it has {axis.points}.")
        half = axis.spacing / 2
        D = np.diff(np.eye(axis.points), axis=0)
        links = Axis(axis.low + half, axis.high - half, points=axis.points - 1)
    sides = [D / axis.spacing if i == place else np.eye(one.points) for i, one in enumerate(grid.axes)]
    axes = [links if i == place else one for i, one in enumerate(grid.axes)]
    W = sides[0]
    for side in sides[1:]:
        W = np.kron(W, side)
    return W, Grid(given=axes[: len(grid.given)], over=axes[len(grid.given) :])


def _known(hyperprior: Any, usual: Hyperprior) -> Hyperprior:
    """A hyperprior of a number, or the usual one."""
    checks.kind("hyperprior", hyperprior, (Hyperprior, type(None)), "a hyperprior such as LogFlat(), or None")
    return usual if hyperprior is None else hyperprior


def _known_field(hyperprior: Any, grid: Grid) -> Prior:
    """A prior of a hyperfield, or that of a smooth one."""
    checks.kind("hyperprior", hyperprior, (Prior, type(None)), "a prior such as Gaussian(Laplacian(grid)), or None")
    if hyperprior is not None and hyperprior.grid.shape != grid.shape:
        raise InputError(f"Argument `hyperprior` must live on a grid of the shape {grid.shape}, but it has "
                         f"{hyperprior.grid.shape}.")  # fmt: skip
    return Gaussian(Laplacian(grid) + Mass(grid, 0.1)) if hyperprior is None else hyperprior


def _small(grid: Grid) -> float:
    """A mass that makes a prior proper and is not felt."""
    return LEAST * min(1 / axis.length**2 for axis in grid.axes)
