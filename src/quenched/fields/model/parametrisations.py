r"""Further links: other functions of the density that can be smooth a priori, and a check of links of your own.

| link | what the prior is about | density | constraints |
|---|---|---|---|
| `Unnormalised` | $P = z / \int z$ | of $z$ | $z$ not negative |
| `Distribution` | $\Phi(y) = \int^y P$ | $d\Phi/dy$ | $\Phi$ monotone, 1 at the end |
| `Bounded` | $\phi = \sqrt{L_{\max} - L}$ | $e^{L_{\max} - \phi^2}$ | normalised |
| `Logits` | $g$ itself | $e^g / \int e^g$ | none |

[lemm1999, sections 3.2.2, 3.3 and 3.8]
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.types import QUICK, Array, InputError, Real, double, real
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Density, Direct, Link

HALVINGS, POLISHES = 60, 3
"""The scale that normalises a bounded log-density is bracketed by halving and then polished by Newton steps, which also
carry its first three derivatives."""
WIDEST = 30.0
"""The logarithm of that scale lies within this of zero."""
STEP = 1e-6
"""Of finite differences."""


class Unnormalised(Density):
    r"""The field is a density that need not be normalised, $P = z / \int z\, dy$; the prior is about $P$.

    The energy $E_z$ does not change when $z$ is multiplied by a function of $x$: its Hessian $H_z$ is singular where
    the energy is least, and only there (elsewhere $H_z z_x = -G_x$). [lemm1999, eqs. (173) to (184)]
    """

    def argument(self, field: Array) -> Array:
        r"""$P = z / \int z$."""
        return field / self.grid.integrate(field)

    def project(self, field: Array) -> Array:
        """Nothing to do."""
        return field

    def log_density(self, field: Array) -> Array:
        r"""$\ln z - \ln \int z$."""
        return super().log_density(self.argument(field))

    def probability(self, field: Array) -> Array:
        r"""$z / \int z$."""
        return self.argument(field)


class Distribution(Density):
    r"""The prior is about the distribution function, $\Phi(y) = \int^y P$, over all axes that are normalised over.

    The unknown on the grid is $P \ge 0$, normalised: then $\Phi$ is monotone and ends at 1, and a prior that is
    Gaussian in $\Phi$ is Gaussian in $P$, with $R^T K R$. `distribution(field)` is $\Phi$. [lemm1999, eqs.
    (202) to (206)]

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 3, points=4)])
        >>> fields.Distribution(grid).distribution([0.4, 0.3, 0.2, 0.1]).round(6).tolist()
        [0.4, 0.7, 0.9, 1.0]
    """

    def argument(self, field: Array) -> Array:
        r"""$\Phi = R P$."""
        total = field * self.grid.weights
        for dim in self.grid.dims:
            total = jnp.cumsum(total, axis=dim)
        return total

    @double
    def distribution(self, field: Any) -> np.ndarray:
        r"""$\Phi$ of a field."""
        return np.asarray(self.argument(self.project(jnp.asarray(field, float))))


class Bounded(Link):
    r"""The field is the root of what a log-density stays below its bound, $L = L_{\max} - \phi^2$.

    The sign of the field means nothing. A field is normalised by a scale, $\phi \to s\,\phi$ with
    $\int e^{L_{\max} - s^2\phi^2} = 1$. [lemm1999, eq. (201)]

    Attributes:
        most: $L_{\max}$, the largest log-density; the range of $y$ must be longer than $e^{-L_{\max}}$.
    """

    even: ClassVar[bool] = True

    most: Real = eqx.field(converter=real, default=0.0)

    def __check_init__(self):
        checks.kind("grid", self.grid, Grid, "a Grid")
        checks.finite("most", self.most)
        width = float(np.sum(self.grid.weights))
        if not np.log(width) + float(self.most) > 0:
            raise InputError(f"Argument `most` must be above {-np.log(width):.4g}, the log of a uniform density "
                             f"on this grid, but {float(self.most):g} was given.")  # fmt: skip

    def _excess(self, u: Array, square: Array) -> Array:
        r"""$\ln \int e^{L_{\max} - e^{2u} \phi^2}$."""
        L = self.most - jnp.exp(2 * u) * square
        return jax.nn.logsumexp(L + np.log(self.grid.weights), axis=self.grid.dims, keepdims=True)

    def project(self, field: Array) -> Array:
        """By a scale for each $x$."""
        square = jnp.square(field)

        def halve(ends: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            middle = (ends[0] + ends[1]) / 2
            low = self._excess(middle, jax.lax.stop_gradient(square)) > 0  # too much: a larger scale
            return (jnp.where(low, middle, ends[0]), jnp.where(low, ends[1], middle)), None

        wide = jnp.full_like(jnp.sum(square, axis=self.grid.dims, keepdims=True), WIDEST)
        (below, above), _ = jax.lax.scan(halve, (-wide, wide), length=HALVINGS)
        u = jax.lax.stop_gradient((below + above) / 2)
        for _ in range(POLISHES):  # at the root a Newton step has the derivatives of the root
            excess, slope = jax.jvp(lambda v: self._excess(v, square), (u,), (jnp.ones_like(u),))
            u = u - excess / slope
        return jnp.multiply(jnp.exp(u), field)

    def argument(self, field: Array) -> Array:
        r"""$\phi$."""
        return field

    def log_density(self, field: Array) -> Array:
        r"""$L_{\max} - \phi^2$."""
        return jnp.asarray(self.most - jnp.square(field))

    def field(self, log_density: Array) -> Array:
        r"""$\sqrt{L_{\max} - L}$; zero where $L$ is above its bound."""
        below = self.most - log_density
        there = below > 0
        return jnp.where(there, jnp.sqrt(jnp.where(there, below, 1.0)), 0.0)


class Logits(Link):
    r"""The field is the log-density up to a function of $x$, $P = e^g / \int e^g$, and the prior is about $g$ itself.

    For classes: smooth log-odds. `Shifted` has the same densities and a prior about $\ln P$. [lemm1999, section 3.8,
    erratum F325]
    """

    exponential: ClassVar[bool] = True
    linear: ClassVar[bool] = True

    def project(self, field: Array) -> Array:
        """Nothing to do."""
        return field

    def argument(self, field: Array) -> Array:
        """$g$."""
        return field

    def log_density(self, field: Array) -> Array:
        r"""$g - \ln \int e^g$."""
        return self.grid.normalised(field)

    def field(self, log_density: Array) -> Array:
        """$g = L$."""
        return log_density


@double
def check_link(link: Link, *, seed: int = 0, tolerance: float = 1e-5) -> xr.Dataset:
    r"""Check a link, of your own for example, against what the stationarity equation assumes of it.

    With $P(\phi)$, its derivatives $P'$, counts $N$ and a prior $K$, all drawn at random, the energy must fall along
    $$G = P'^T P^{-1} N - \phi'^T K \phi - P'^T \Lambda_X, \qquad
    \Lambda_X = I_X (N - P P'^{-1} K \phi) ,$$
    seen along the constraint, where $\phi'$ are the derivatives of what the prior is about. [lemm1999, eqs. (188) to
    (190)]

    Args:
        link: the link, on a small grid: matrices of its size are made.
        seed: of the random numbers.
        tolerance: largest deviation, relative.

    Returns:
        The largest deviation of each property: `normalised` ($\int P = 1$), `projection` (projecting twice changes
        nothing), `inverse` (`log_density` of `field`), `slopes` (derivatives of $\ln P$ against finite differences),
        `constraint` ($I_X P'$ vanishes along the constraint, so that $\Lambda_X$ drops out), `stationarity` (the
        derivative of the energy against $G$).

    Raises:
        InputError: if one is above the tolerance; it names the property.

    Examples:
        >>> from quenched import fields
        >>> small = fields.Grid(over=[fields.Axis(0, 1, points=6)])
        >>> bool(fields.check_link(fields.SquareRoot(small)).to_array().max() < 1e-6)
        True
    """
    checks.kind("link", link, Link, "a link such as LogDensity(grid)")
    checks.positive("tolerance", checks.number("tolerance", tolerance))
    if isinstance(link, Direct):
        raise InputError("Argument `link` must be that of a density, but `Direct` has none.")
    grid, rng = link.grid, np.random.default_rng(checks.whole("seed", seed, least=0))
    N, root = rng.uniform(0.5, 1.5, grid.shape), rng.normal(size=(grid.size, grid.size)) / np.sqrt(grid.size)
    K, step = root.T @ root, STEP * rng.normal(size=grid.size)

    def flat(function: Any) -> Any:
        return lambda v: function(v.reshape(grid.shape)).reshape(-1)

    def energy(v: Array) -> Array:
        where = link.project(v.reshape(grid.shape))
        about = link.argument(where).reshape(-1)
        return -jnp.sum(N * link.log_density(where)) + 0.5 * about @ K @ about

    @functools.partial(jax.jit, compiler_options=QUICK)  # one program for all that is asked of the link
    def look(noise: Array) -> dict[str, Array]:
        L = grid.normalised(noise)
        at = link.project(link.field(L)).reshape(-1)
        log_density, project, argument = flat(link.log_density), flat(link.project), flat(link.argument)
        return {
            "P": link.density(at.reshape(grid.shape)).reshape(-1),
            "about": argument(at),
            "turned": jax.jacfwd(argument)(at),
            "log_slopes": jax.jacfwd(log_density)(at),
            "along": jax.jacfwd(project)(at),
            "gradient": jax.grad(energy)(at),
            "projection": project(at) - at,
            "inverse": log_density(at) - L.reshape(-1),
            "change": (log_density(at + step) - log_density(at - step)) / 2,
        }

    seen = {name: np.asarray(value) for name, value in look(jnp.asarray(0.3 * rng.normal(size=grid.shape))).items()}
    P, along, I_X = seen["P"], seen["along"], _sums(grid)  # I_X: the integral over y, spread over y again
    slopes = P[:, None] * seen["log_slopes"]  # P'
    pull, push = N.ravel(), seen["turned"].T @ (K @ seen["about"])  # of the data, and of the prior
    multiplier = I_X @ (pull - P * np.linalg.lstsq(slopes.T, push, rcond=1e-10)[0])
    volumes = np.broadcast_to(grid.weights, grid.shape).ravel()
    G = along.T @ (slopes.T @ (pull / P) - push - slopes.T @ (volumes * multiplier))
    deviations = {
        "normalised": I_X @ P - 1,
        "projection": seen["projection"],
        "inverse": seen["inverse"],
        "slopes": (seen["change"] - seen["log_slopes"] @ step) / STEP,
        "constraint": I_X @ slopes @ along,
        "stationarity": (seen["gradient"] + G) / max(1.0, float(np.max(np.abs(G)))),
    }
    found = {name: float(np.max(np.abs(value))) for name, value in deviations.items()}
    for name, value in found.items():
        if not value <= tolerance:
            raise InputError(f"Argument `link` must be {_PROPERTIES[name]}, but it deviates by {value:.2g}.")
    return xr.Dataset(found)


_PROPERTIES = {
    "normalised": "a normalised density for each x",
    "projection": "such that projecting twice is projecting once",
    "inverse": "such that `log_density` inverts `field`",
    "slopes": "differentiable by JAX",
    "constraint": "such that `project` keeps the integral of the density",
    "stationarity": "such that its energy has the derivative of eq. (188)",
}
"""What the sentence of an error says."""


def _sums(grid: Grid) -> np.ndarray:
    """The integral over $y$, spread over $y$ again, as a matrix of flattened fields."""
    unit = np.eye(grid.size).reshape(-1, *grid.shape) * grid.weights
    dims = tuple(1 + dim for dim in grid.dims)
    return np.broadcast_to(unit.sum(axis=dims, keepdims=True), unit.shape).reshape(grid.size, -1).T
