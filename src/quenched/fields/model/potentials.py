r"""Priors that are not quadratic: potentials $\psi$ of filtered differences. [lemm1999, section 6.5]

$$E(\phi) = \int dx\, \psi\big(\omega(x)\big), \qquad \omega = W(\phi - t) .$$

| potential | $\psi(s)$ | what it says |
|---|---|---|
| `Quadratic` | $\tfrac a2 s^2$ | differences are small: a Gaussian |
| `Huber` | $\tfrac a2 s^2$, beyond $d$ linear | small, with outliers |
| `AbsoluteValue` | $a \lvert s\rvert$ | most are zero: total variation |
| `Cup` | $a\,[1 - 1/(1 + (\lvert s - s_0\rvert/b)^\gamma)]$ | one large step is cheaper than many small ones |
| `Cup` with $a < 0$ | the same | structure: differences are not small |
| `Smoothed` | $\psi(\sqrt{s^2 + \epsilon^2})$ | another one without its cusp |

Filters are in `filters`. Several are combined by `&`: a filter bank with a potential each, beside Gaussians. With
`together` the potential is one of the length of the components at each place: $\psi(|\nabla\phi|)$, which has no
preferred axes.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, double, is_traced, real
from quenched.fields.model.filters import FilterBank
from quenched.fields.model.grid import Grid
from quenched.fields.model.priors import Prior, PriorExpansion

FAR, NEAR, FALL = 1e8, 1e2, 1e3
"""A potential has no minimum if far out it is below minus this multiple of its largest value nearby."""
STEEP, ALONE = 1e12, 1e-300
"""The largest weight of a parabola; and a square below this is zero."""


def _library(s: Any) -> Any:
    return np if isinstance(s, (np.ndarray, np.floating, float)) else jnp


class PotentialFunction(eqx.Module):
    r"""A potential $\psi(s)$; one of your own has `value`, and what else it knows of itself."""

    convex: ClassVar[bool] = False  # whether it is known to be convex
    smooth: ClassVar[bool] = True  # whether it has a derivative everywhere

    @abc.abstractmethod
    def value(self, s: Any) -> Any:
        r"""$\psi(s)$, of NumPy or JAX."""

    @double
    def slope(self, s: np.ndarray) -> np.ndarray:
        r"""$\psi'(s)$."""
        return np.asarray(jax.jvp(self.value, (jnp.asarray(s),), (jnp.ones(np.shape(s)),))[1])

    @double
    def bend(self, s: np.ndarray) -> np.ndarray:
        r"""$\psi''(s)$."""

        def slope(x: Array) -> Array:
            return jax.jvp(self.value, (x,), (jnp.ones(np.shape(s)),))[1]

        return np.asarray(jax.jvp(slope, (jnp.asarray(s),), (jnp.ones(np.shape(s)),))[1])

    def parabola(self, s: np.ndarray) -> np.ndarray:
        r"""Curvatures of parabolas that touch $\psi$ at $s$ and lie above it.

        They are $\psi'(s)/s$, iterated reweighting, for an even function that is concave in $s^2$. By default the
        largest of this, $\psi''(s)$ and zero.
        """
        small = np.abs(s) < np.sqrt(ALONE)
        ratio = self.slope(s) / np.where(small, 1.0, s)
        return np.maximum(np.maximum(np.where(small, 0.0, ratio), self.bend(s)), 0.0)

    def shrink(self, s: np.ndarray, step: Any) -> np.ndarray:
        r"""The minimum over $z$ of $\psi(z) + (z - s)^2/(2\,$`step`$)$."""
        raise InputError(f"Splitting can only be used with Quadratic, Huber and AbsoluteValue, but {self!r} was given.")

    def dual(self, p: np.ndarray) -> np.ndarray:
        r"""$\psi^*(p) = \sup_s [p s - \psi(s)]$."""
        raise InputError(f"Splitting can only be used with Quadratic, Huber and AbsoluteValue, but {self!r} was given.")


class Quadratic(PotentialFunction):
    r"""$\psi(s) = \tfrac a2 s^2$.

    Attributes:
        strength: $a$.
    """

    convex: ClassVar[bool] = True
    strength: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("strength", self.strength)

    def value(self, s: Any) -> Any:
        """A parabola."""
        return 0.5 * self.strength * s**2

    def slope(self, s: np.ndarray) -> np.ndarray:
        """$a s$."""
        return float(self.strength) * s

    def bend(self, s: np.ndarray) -> np.ndarray:
        """$a$."""
        return np.full(np.shape(s), float(self.strength))

    def parabola(self, s: np.ndarray) -> np.ndarray:
        """$a$."""
        return self.bend(s)

    def shrink(self, s: np.ndarray, step: Any) -> np.ndarray:
        r"""$s/(1 + a\,$`step`$)$."""
        return s / (1 + float(self.strength) * step)

    def dual(self, p: np.ndarray) -> np.ndarray:
        """$p^2/2a$."""
        return p**2 / (2 * float(self.strength))


class Huber(PotentialFunction):
    r"""$\psi(s) = \tfrac a2 s^2$ for $|s| \le d$, and the straight line beyond.

    Attributes:
        strength: $a$.
        width: $d$.
    """

    convex: ClassVar[bool] = True
    strength: Real = eqx.field(converter=real, default=1.0)
    width: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("strength", self.strength)
        checks.positive("width", self.width)

    def value(self, s: Any) -> Any:
        """A parabola with straight sides."""
        library = _library(s)
        inner = library.clip(s, -self.width, self.width)
        return self.strength * (inner * s - 0.5 * inner**2)

    def slope(self, s: np.ndarray) -> np.ndarray:
        """$a s$, cut off."""
        return float(self.strength) * np.clip(s, -float(self.width), float(self.width))

    def bend(self, s: np.ndarray) -> np.ndarray:
        """$a$ within, zero outside."""
        return np.where(np.abs(s) <= float(self.width), float(self.strength), 0.0)

    def parabola(self, s: np.ndarray) -> np.ndarray:
        r"""$a \min(1, d/|s|)$."""
        return float(self.strength) / np.maximum(1.0, np.abs(s) / float(self.width))

    def shrink(self, s: np.ndarray, step: Any) -> np.ndarray:
        """Within, that of the parabola; outside, by a constant."""
        a, d = float(self.strength) * step, float(self.width)
        return np.where(np.abs(s) <= d * (1 + a), s / (1 + a), s - a * d * np.sign(s))

    def dual(self, p: np.ndarray) -> np.ndarray:
        r"""$p^2/2a$, for $|p| \le a d$."""
        return p**2 / (2 * float(self.strength))


class AbsoluteValue(PotentialFunction):
    r"""$\psi(s) = a |s|$: with a gradient, total variation.

    Attributes:
        strength: $a$.
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    strength: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("strength", self.strength)

    def value(self, s: Any) -> Any:
        """The absolute value."""
        return self.strength * _library(s).abs(s)

    def slope(self, s: np.ndarray) -> np.ndarray:
        """Its sign; zero at zero."""
        return float(self.strength) * np.sign(s)

    def bend(self, s: np.ndarray) -> np.ndarray:
        """None."""
        return np.zeros(np.shape(s))

    def shrink(self, s: np.ndarray, step: Any) -> np.ndarray:
        """Towards zero by a constant."""
        return np.sign(s) * np.maximum(np.abs(s) - float(self.strength) * step, 0.0)

    def dual(self, p: np.ndarray) -> np.ndarray:
        r"""Zero, for $|p| \le a$."""
        return np.zeros(np.shape(p))


class Cup(PotentialFunction):
    r"""$\psi(s) = a\,[1 - 1/(1 + (|s - s_0|/b)^\gamma)]$, flat far out: a large step costs less than many small ones.

    A negative height inverts it: the potential falls to its value far out, and differences are pushed away from $s_0$.
    [lemm1999, figure 12, erratum F12: with a cusp for $\gamma \le 1$]

    Attributes:
        height: $a$; negative for an inverted cup.
        width: $b$.
        power: $\gamma$; with a cusp at $s_0$ up to 1.
        centre: $s_0$.

    Examples:
        >>> from quenched import fields
        >>> float(fields.Cup(height=5.0, width=10.0, power=0.7).value(10.0))
        2.5
    """

    height: Real = eqx.field(converter=real, default=1.0)
    width: Real = eqx.field(converter=real, default=1.0)
    power: Real = eqx.field(converter=real, default=2.0)
    centre: Real = eqx.field(converter=real, default=0.0)

    def __check_init__(self):
        checks.finite("height", self.height)
        if not is_traced(self.height) and not np.asarray(self.height).any():
            raise InputError("Argument `height` must not be zero, but it is.")
        checks.positive("width", self.width)
        checks.positive("power", self.power)
        checks.finite("centre", self.centre)

    @property
    def smooth(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it has no cusp."""
        return bool(self.power > 1)

    @property
    def inverted(self) -> bool:
        """Whether the height is negative."""
        return bool(self.height < 0)

    def _scaled(self, s: Any) -> tuple[Any, Any, Any]:
        r"""$s - s_0$, $u = (|s - s_0|/b)^\gamma$, and where it is zero; derivatives of JAX are numbers there."""
        library = _library(s)
        off = (s - self.centre) / self.width
        alone = off**2 < ALONE
        u = library.where(alone, 0.0, library.where(alone, 1.0, off**2) ** (self.power / 2))
        return off * self.width, u, alone

    def value(self, s: Any) -> Any:
        r"""$a\, u/(1 + u)$."""
        u = self._scaled(s)[1]
        if isinstance(self.power, (int, float)) and self.power == 2:
            u = ((s - self.centre) / self.width) ** 2  # with its curvature at zero
        return self.height * (1 - 1 / (1 + u))

    def slope(self, s: np.ndarray) -> np.ndarray:
        r"""$a \gamma u / [(1 + u)^2 (s - s_0)]$; zero at $s_0$."""
        off, u, alone = self._scaled(np.asarray(s, float))
        return np.where(alone, 0.0, float(self.height * self.power) * u / (1 + u) ** 2 / np.where(alone, 1.0, off))

    def bend(self, s: np.ndarray) -> np.ndarray:
        r"""$a \gamma u\, [(\gamma - 1) - (\gamma + 1) u] / [(1 + u)^3 (s - s_0)^2]$."""
        off, u, alone = self._scaled(np.asarray(s, float))
        g, a = float(self.power), float(self.height)
        middle = 2 * a / float(self.width) ** 2 if g == 2 else 0.0
        away = a * g * u * ((g - 1) - (g + 1) * u) / (1 + u) ** 3 / np.where(alone, 1.0, off) ** 2
        return np.where(alone, middle, away)

    def parabola(self, s: np.ndarray) -> np.ndarray:
        r"""$\psi'(s)/(s - s_0)$ of a cup about zero, else the largest curvature."""
        if not self.inverted and float(self.centre) == 0 and float(self.power) <= 2:
            _, _, alone = self._scaled(np.asarray(s, float))
            ratio = self.slope(s) / np.where(alone, 1.0, s)
            at_zero = 2 * float(self.height) / float(self.width) ** 2 if float(self.power) == 2 else np.inf
            return np.where(alone, at_zero, ratio)
        return np.full(np.shape(s), self._steepest())

    def _steepest(self) -> float:
        """The largest curvature."""
        line = float(self.centre) + float(self.width) * np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 2001)])
        return float(np.max(self.bend(line)))


class Smoothed(PotentialFunction):
    r"""Another potential, even and increasing away from zero, without its cusp: $\psi(\sqrt{s^2 + \epsilon^2})$.

    Attributes:
        potential: the other one: `AbsoluteValue`, or a `Cup` about zero.
        epsilon: $\epsilon$, below which differences hardly count.
    """

    potential: PotentialFunction
    epsilon: Real = eqx.field(converter=real, default=1e-3)

    def __check_init__(self):
        checks.kind("potential", self.potential, PotentialFunction, "a potential such as AbsoluteValue()")
        checks.positive("epsilon", self.epsilon)
        if float(getattr(self.potential, "centre", 0.0)) != 0 or getattr(self.potential, "inverted", False):
            raise InputError("Argument `potential` must have its minimum at zero here, but it has not.")

    @property
    def convex(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """If the other is: it increases with $|s|$."""
        return self.potential.convex

    def value(self, s: Any) -> Any:
        r"""$\psi(\sqrt{s^2 + \epsilon^2})$."""
        return self.potential.value(_library(s).sqrt(s**2 + self.epsilon**2))

    def slope(self, s: np.ndarray) -> np.ndarray:
        r"""$\psi'(r)\, s/r$."""
        r = np.hypot(s, float(self.epsilon))
        return self.potential.slope(r) * s / r

    def bend(self, s: np.ndarray) -> np.ndarray:
        r"""$\psi''(r)\, s^2/r^2 + \psi'(r)\, \epsilon^2/r^3$."""
        r = np.hypot(s, float(self.epsilon))
        return self.potential.bend(r) * s**2 / r**2 + self.potential.slope(r) * float(self.epsilon) ** 2 / r**3

    def parabola(self, s: np.ndarray) -> np.ndarray:
        r"""$\psi'(r)/r$."""
        r = np.hypot(s, float(self.epsilon))
        ratio = self.potential.slope(r) / r
        return ratio if isinstance(self.potential, (AbsoluteValue, Cup)) else np.maximum(ratio, self.bend(s))


class Potential(Prior):
    r"""A potential of filtered differences, $\int dx\, \psi(\omega)$ with $\omega = W(\phi - t)$. [lemm1999, eq. (589)]

    Attributes:
        filter: $W$, such as `Gradient(grid)`.
        psi: $\psi$, such as `AbsoluteValue(0.1)`.
        mean: $t$, the template, of the shape of the grid; by default zero.
        together: whether the potential is one of the length of the components at each place. `Gradient` with
            `AbsoluteValue` is then isotropic total variation, otherwise the sum over the axes.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=50)])
        >>> prior = fields.Potential(fields.Gradient(grid), fields.AbsoluteValue(0.3))
        >>> both = prior & fields.Gaussian(0.1 * fields.Mass(grid))
    """

    filter: FilterBank
    psi: PotentialFunction
    mean: Any = None
    together: bool = eqx.field(static=True, default=False)

    def __init__(self, filter: FilterBank, psi: PotentialFunction, mean: Any = None, *, together: bool = False):
        checks.kind("filter", filter, FilterBank, "a filter such as Gradient(grid)")
        checks.kind("psi", psi, PotentialFunction, "a potential such as Huber(1.0)")
        self.filter, self.psi, self.together = filter, psi, checks.flag("together", together)
        self.mean = np.zeros(filter.grid.shape) if mean is None else filter.grid.check("mean", mean)
        if together and float(getattr(psi, "centre", 0.0)) != 0:
            raise InputError("Argument `psi` must be even where components are taken together, but it has the centre "
                             f"{float(psi.centre):g}.")  # fmt: skip  # pyright: ignore[reportAttributeAccessIssue]
        _check_bounded(psi)

    @property
    def grid(self) -> Grid:
        """That of the filter."""
        return self.filter.grid

    def energy(self, field: Array) -> Array:
        r"""$\int dx\, \psi(\omega)$."""
        omega = self.filter.respond(field - self.mean)
        if self.together:
            square = jnp.sum(jnp.square(omega), axis=0)
            alone = square < ALONE
            omega = jnp.where(alone, 0.0, jnp.sqrt(jnp.where(alone, 1.0, square)))
        return self.grid.cell * jnp.sum(self.psi.value(omega))

    def differences(self, field: np.ndarray) -> np.ndarray:
        r"""$\omega$ `[components, places]`, on the host."""
        return self.filter.respond(np.reshape(field, self.grid.shape).astype(np.float64) - np.asarray(self.mean))

    def lengths(self, omega: np.ndarray) -> np.ndarray:
        """What the potential is a function of."""
        return np.sqrt(np.sum(omega**2, axis=0, keepdims=True)) if self.together else omega

    def expand(self, field: np.ndarray) -> PriorExpansion:
        """Energy, slope and curvature in closed form on the host; where there is a cusp, those beside it."""
        omega = self.differences(field)
        length = self.lengths(omega)
        v, W = self.grid.cell, self.filter.matrix
        energy = v * float(np.sum(self.psi.value(length)))
        pull = v * self.psi.slope(length) * self.directions(omega, length)
        return energy, (W.T @ pull.ravel()).reshape(field.shape), lambda: self.curve(omega).toarray()

    def directions(self, omega: np.ndarray, length: np.ndarray) -> np.ndarray:
        """Derivatives of the lengths by the components; zero where the length is."""
        return omega / np.where(length > 0, length, 1.0) if self.together else np.ones(omega.shape)

    def curve(self, omega: np.ndarray, share: float = 0.0) -> sparse.csr_array:
        r"""$W^T B W$ with the second derivatives of the potential.

        Args:
            omega: the filtered differences `[components, places]`.
            share: if positive, second derivatives are at least this share of those of parabolas above the potential;
                with 1 they are those.
        """
        length, W = self.lengths(omega), self.filter.matrix
        along = self.psi.bend(length) if share < 1 else np.zeros(length.shape)
        if share > 0:
            parabolas = np.minimum(self.psi.parabola(length), STEEP)
            along = np.maximum(along, share * parabolas)
        if not self.together:
            return sparse.csr_array(self.grid.cell * (W.T @ (sparse.diags_array(along.ravel()) @ W)))
        n, some = self.directions(omega, length), length > 0
        across = np.where(some, self.psi.slope(length) / np.where(some, length, 1.0), along)
        across = across if share == 0 else np.maximum(across, along)
        B = [[sparse.diags_array((along * a * b + across * (float(i == j) - a * b))[0]) for j, b in enumerate(n)]
             for i, a in enumerate(n)]  # fmt: skip
        return sparse.csr_array(self.grid.cell * (W.T @ (sparse.block_array(B, format="csr") @ W)))


def _check_bounded(psi: PotentialFunction) -> None:
    """Check that a potential has a minimum, or at least is bounded."""
    if any(is_traced(leaf) for leaf in jax.tree.leaves(psi)):
        return
    near, far = np.linspace(-NEAR, NEAR, 401), np.array([-FAR, FAR])
    with np.errstate(all="ignore"):
        inside, outside = (np.asarray(psi.value(s), dtype=np.float64) for s in (near, far))
    if not np.all(np.isfinite(inside)) or not np.all(outside > -FALL * (1 + np.max(np.abs(inside)))):
        raise InputError("Argument `psi` must be finite and have a minimum, but it falls without bound or is not "
                         "finite: a prior with it is no density.")  # fmt: skip
