r"""Rows that see several fields at once: classes, vectors, and branches of which nobody knows which was seen.

The fields $\phi_k(x)$ are one field on a grid whose last axis counts them: `Grid(given=[x], over=[Components(3)])` for
classes, `Grid(given=[x, Components(3)])` for functions.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, real, reals
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import check_places
from quenched.fields.model.links import Link, LogDensity
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.rows import RowData, check_rows

SUM = 1e-9
"""Shares sum to 1 within this."""


def Components(count: int, name: str = "component") -> Axis:
    """An axis that counts: 0, 1, 2, ... with the spacing 1, so that integrals over it are sums.

    Args:
        count: how many, at least 2.
        name: of the axis.
    """
    count = checks.whole("count", count, least=2)
    checks.kind("name", name, str, "a name")
    return Axis(0, count - 1, points=count, name=name)


class _ComponentData(RowData):
    """Rows that see all components of the last axis."""

    components: ClassVar[bool] = True


class ClassData(_ComponentData):
    r"""Labels of rows: $p(k|x) = e^{g_k(x)} / \sum_l e^{g_l(x)}$.

    $E = -\sum_i \ln P_{k_i}(x_i)$ for the grid `Grid(given=[...], over=[Components(K)])`. With the link `Logits` the
    prior is about $g$, with `LogDensity` about $\ln P$. On axes with `tails` fields are linear between points.
    [lemm1999, section 3.8, erratum F325]

    Attributes:
        points: inputs `[n, dimensions]`.
        labels: classes $k_i$, whole numbers from 0.
        weights: how often each row counts; by default once.
        sums: whether the fields are sums of fields of one column: then the axes of the inputs are `Components(columns)`
            and one axis along which all columns lie.
        places, shares: on a grid, the flat places of the inputs and their shares.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=11)], over=[fields.Components(3)])
        >>> data = fields.ClassData([0.1, 0.2, 0.5, 0.9], [0, 0, 1, 2])
        >>> problem = fields.Problem(data, fields.Logits(grid), fields.Gaussian(fields.Mass(grid)))
    """

    links: ClassVar[tuple[type[Link], ...]] = (Logits, LogDensity)
    convex: ClassVar[bool] = True

    points: Any = eqx.field(converter=reals)
    labels: Any = eqx.field(converter=reals)
    weights: Any = eqx.field(converter=reals, default=None)
    sums: bool = eqx.field(static=True, default=False)
    places: Any = None
    shares: Any = None

    def __check_init__(self):
        check_rows(self.points, self.weights, labels=self.labels)
        checks.flag("sums", self.sums)
        k = np.asarray(self.labels)
        if k.ndim != 1 or not np.all((k == np.rint(k)) & (k >= 0)):
            raise InputError("Argument `labels` must be whole numbers from 0, one for each of the points, but it is "
                             "not.")  # fmt: skip
        check_places(len(k), self.places, self.shares)

    @property
    def additive(self) -> bool:
        """Whether fields are sums over columns."""
        return self.sums

    def check_rows(self, grid: Grid) -> None:
        """Check that every class has examples, and an entry of the last axis."""
        classes = grid.axes[-1].points
        seen = np.bincount(np.asarray(self.labels).astype(int), self.weights, minlength=classes)
        if len(seen) > classes:
            raise InputError(f"Argument `labels` must be below {classes}, the number of classes of the grid, but "
                             f"{len(seen) - 1} is not.")  # fmt: skip
        if np.any(seen == 0):
            raise InputError(f"Argument `labels` must hold examples of each of the {classes} classes, but class "
                             f"{int(np.argmin(seen))} has none.")  # fmt: skip

    def row_energy(self, values: Array) -> Array:
        r"""$-\ln P_k$."""
        every: Any = values
        at = jnp.asarray(self.labels, int)
        return jax.nn.logsumexp(values, axis=1) - every[jnp.arange(len(at)), at]

    def expand_rows(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""$P - \delta$ and $\mathrm{diag} P - P P^T$."""
        rows, at = np.arange(len(values)), np.asarray(self.labels).astype(int)
        total: Any = scipy.special.logsumexp(values, axis=1)
        P = np.exp(values - total[:, None])
        bends = -P[:, :, None] * P[:, None, :]
        bends[:, np.arange(P.shape[1]), np.arange(P.shape[1])] += P
        slopes = P.copy()
        slopes[rows, at] -= 1
        return total - values[rows, at], slopes, bends


class VectorData(_ComponentData):
    r"""Vectors with Gaussian noise, $y_i \sim \mathcal N(h(x_i), K_i^{-1})$, whose components may be correlated.

    For the grid `Grid(given=[..., Components(k)])` and the link `Direct`. [lemm1999, eq. (277)]

    Attributes:
        points: inputs `[n, dimensions]`.
        targets: $y_i$ `[n, k]`.
        precision: $K_i$, the inverse covariance of the noise: `[k, k]` or `[n, k, k]`, positive definite.
        weights: how often each row counts; by default once.
        places, shares: on a grid, the flat places of the inputs and their shares.
    """

    convex: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True

    points: Any = eqx.field(converter=reals)
    targets: Any = eqx.field(converter=reals)
    precision: Any = eqx.field(converter=reals)
    weights: Any = eqx.field(converter=reals, default=None)
    places: Any = None
    shares: Any = None

    def __check_init__(self):
        check_rows(self.points, self.weights, targets=self.targets)
        checks.finite("precision", self.precision)
        y, K = np.asarray(self.targets), np.asarray(self.precision)
        if y.ndim != 2 or y.size == 0:
            raise InputError(f"Argument `targets` must have a row of components for each point, but its shape is "
                             f"{y.shape}.")  # fmt: skip
        k = y.shape[1]
        if K.shape not in ((k, k), (len(y), k, k)) or not np.allclose(K, np.swapaxes(K, -1, -2)):
            raise InputError(f"Argument `precision` must be a symmetric {k} x {k} matrix, or one for each point, but "
                             f"its shape is {K.shape}.")  # fmt: skip
        if not np.all(np.linalg.eigvalsh(K) > 0):
            raise InputError("Argument `precision` must be positive definite, but it is not.")
        check_places(len(y), self.places, self.shares)

    def check_rows(self, grid: Grid) -> None:
        """Check that there are as many components as entries of the last axis."""
        if grid.axes[-1].points != np.shape(self.targets)[1]:
            raise InputError(f"Argument `targets` must have {grid.axes[-1].points} components, as many as the last "
                             f"axis has points, but it has {np.shape(self.targets)[1]}.")  # fmt: skip

    def _each(self, library: Any) -> tuple[Any, Any]:
        """The matrix of each row, and the constant of its density."""
        k = np.shape(self.targets)[1]
        K = library.broadcast_to(library.asarray(self.precision), (np.shape(self.targets)[0], k, k))
        return K, 0.5 * (k * np.log(2 * np.pi) - library.linalg.slogdet(K)[1])

    def row_energy(self, values: Array) -> Array:
        r"""$\tfrac12 (y - h, K (y - h)) - \tfrac12 \ln\det K/2\pi$."""
        K, constant = self._each(jnp)
        off = self.targets - values
        return 0.5 * jnp.einsum("ni,nij,nj->n", off, K, off) + constant

    def expand_rows(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A parabola."""
        K, constant = self._each(np)
        pull = np.einsum("nij,nj->ni", K, np.asarray(self.targets) - values)
        return 0.5 * np.sum((np.asarray(self.targets) - values) * pull, axis=1) + constant, -pull, np.array(K)


class ClusterData(_ComponentData):
    r"""Values of one of several functions, nobody knows which: $p(y|x) = \sum_k p_k\, \mathcal N(y; h_k(x), \sigma^2)$.

    For the grid `Grid(given=[..., Components(m)])` and the link `Direct`. The energy is not convex, and exchanging
    functions with equal shares does not change it. [lemm1999, section 3.7.3, erratum F321]

    Attributes:
        points: inputs `[n, dimensions]`.
        targets: $y_i$ `[n]`.
        variance: $\sigma^2 = 1/\beta$.
        portions: $p_k$, which sum to 1; by default equal.
        weights: how often each row counts; by default once.
        places, shares: on a grid, the flat places of the inputs and their shares.
    """

    points: Any = eqx.field(converter=reals)
    targets: Any = eqx.field(converter=reals)
    variance: Real = eqx.field(converter=real, default=1.0)
    portions: Any = eqx.field(converter=reals, default=None)
    weights: Any = eqx.field(converter=reals, default=None)
    places: Any = None
    shares: Any = None

    def __check_init__(self):
        check_rows(self.points, self.weights, targets=self.targets)
        checks.positive("variance", self.variance)
        if np.ndim(self.targets) != 1:
            raise InputError("Argument `targets` must have one number for each of the points, but its shape is "
                             f"{np.shape(self.targets)}.")  # fmt: skip
        if self.portions is not None:
            checks.positive("portions", self.portions)
            p = np.asarray(self.portions)
            if p.ndim != 1 or abs(p.sum() - 1) > SUM:
                raise InputError(f"Argument `portions` must be positive numbers that sum to 1, but {p} was given.")
        check_places(len(self.targets), self.places, self.shares)

    def check_rows(self, grid: Grid) -> None:
        """Check that there is a share for each component."""
        if self.portions is not None and len(self.portions) != grid.axes[-1].points:
            raise InputError(f"Argument `portions` must have {grid.axes[-1].points} numbers, one for each function, "
                             f"but it has {len(self.portions)}.")  # fmt: skip

    def log_parts(self, values: Any) -> Any:
        r"""$\ln p_k \mathcal N(y; h_k, \sigma^2)$ of each row `[n, k]`."""
        library: Any = np if isinstance(values, np.ndarray) else jnp
        m = values.shape[1]
        p = library.full(m, 1 / m) if self.portions is None else library.asarray(self.portions)
        off = library.asarray(self.targets)[:, None] - values
        return library.log(p) - off**2 / (2 * self.variance) - 0.5 * library.log(2 * np.pi * self.variance)

    def row_energy(self, values: Array) -> Array:
        """By the logarithm of a sum."""
        return -jax.nn.logsumexp(self.log_parts(values), axis=1)

    def responsibilities(self, values: np.ndarray) -> np.ndarray:
        """The probability of each function for each row, given the functions there `[n, k]`."""
        return scipy.special.softmax(self.log_parts(np.asarray(values)), axis=1)

    def expand_rows(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By the responsibilities."""
        parts, v = self.log_parts(values), float(self.variance)
        a = scipy.special.softmax(parts, axis=1)
        off = (np.asarray(self.targets)[:, None] - values) / v
        slopes = -a * off
        bends = slopes[:, :, None] * slopes[:, None, :]
        k = np.arange(values.shape[1])
        bends[:, k, k] += a / v - a * off**2
        total: Any = scipy.special.logsumexp(parts, axis=1)
        return -total, slopes, bends
