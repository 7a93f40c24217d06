r"""Noise of any shape, and losses that are no noise: $E = \sum_i V(y_i - h(x_i))$. [lemm1999, sections 2.5, 3.7.4]

A `Noise` is a density $p(r) = e^{-V(r)}$ of the residual, normalised, so that evidence compares scales and shapes.
Kinks are rounded: within a small distance $\delta$ of one the energy is a parabola, and Newton's method works.
A loss that is no density is minimised by `RiskData`: empirical risk minimisation, the case without a likelihood.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, real, reals
from quenched.fields.model.likelihoods import check_places
from quenched.fields.model.rows import RowData, check_rows

HUBER = 1.345
"""Deviations beyond which Huber's energy is linear: 95% efficient under Gaussian noise."""
ROUNDED = 0.05
"""By default kinks are rounded within this share of the scale."""


class Noise(eqx.Module):
    """The density of residuals."""

    convex: ClassVar[bool] = True

    @abc.abstractmethod
    def energy(self, residual: Any) -> Any:
        r"""$V(r) = -\ln p(r)$, in JAX or NumPy, whatever the residuals are."""

    @abc.abstractmethod
    def expand(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """$V$, $V'$ and $V''$, on the host."""


class GaussianNoise(Noise):
    r"""$V = r^2/2\sigma^2 + \tfrac12 \ln 2\pi\sigma^2$.

    Attributes:
        variance: $\sigma^2$.
    """

    variance: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("variance", self.variance)

    def energy(self, residual: Any) -> Any:
        """A parabola."""
        library = _library(residual)
        return residual**2 / (2 * self.variance) + 0.5 * library.log(2 * np.pi * self.variance)

    def expand(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A parabola."""
        v = float(self.variance)
        return self.energy(residual), residual / v, np.full(residual.shape, 1 / v)


class InsensitiveNoise(Noise):
    r"""The $\epsilon$-insensitive error of support vector machines: $V = |r|_\epsilon / s$ and a constant.

    $|r|_\epsilon = \max(|r| - \epsilon, 0)$, with its kink rounded: an excess $u = |r| - \epsilon$ below $\delta$ costs
    $u^2/2\delta$, beyond it $u - \delta/2$. [lemm1999, section 3.7.4, figure 5]

    Attributes:
        scale: $s$: beyond $\epsilon$ the density falls by a factor e over this length.
        epsilon: $\epsilon$: errors up to it cost nothing.
        rounding: $\delta$; by default 0.05 of the scale.
    """

    scale: Real = eqx.field(converter=real, default=1.0)
    epsilon: Real = eqx.field(converter=real, default=0.0)
    rounding: Real | None = eqx.field(converter=lambda v: None if v is None else real(v), default=None)

    def __check_init__(self):
        checks.positive("scale", self.scale)
        checks.not_negative("epsilon", self.epsilon)
        if self.rounding is not None:
            checks.positive("rounding", self.rounding)

    @property
    def width(self) -> Any:
        r"""$\delta$."""
        return ROUNDED * self.scale if self.rounding is None else self.rounding

    @property
    def slope(self) -> Any:
        r"""$1/s$."""
        return 1 / self.scale

    def energy(self, residual: Any) -> Any:
        """Zero, a parabola, a line."""
        library = _library(residual)
        d = self.width
        u = library.maximum(library.abs(residual) - self.epsilon, 0.0)
        bent = library.where(u < d, u**2 / (2 * d), u - d / 2)
        x = d * self.slope / 2
        parabola = library.sqrt(np.pi * d / (2 * self.slope)) * _erf(library, library.sqrt(x))
        return self.slope * bent + library.log(2 * (self.epsilon + parabola + library.exp(-x) / self.slope))

    def expand(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Zero, a parabola, a line."""
        d, slope, size = float(self.width), float(self.slope), np.abs(residual)
        u = size - float(self.epsilon)
        slopes = slope * np.sign(residual) * np.clip(u / d, 0.0, 1.0)
        energies = np.asarray(type(self).energy(self, residual))
        return energies, slopes, np.where((u > 0) & (u < d), slope / d, 0.0)


class LaplaceNoise(InsensitiveNoise):
    r"""The absolute error, $V = |r|/s$ and a constant, with its kink rounded within $\delta$.

    Attributes:
        scale: $s$, the mean of $|r|$.
        rounding: $\delta$; by default 0.05 of the scale.
    """

    def __init__(self, scale: Any = 1.0, rounding: Any = None):
        super().__init__(scale=scale, epsilon=0.0, rounding=rounding)


class HuberNoise(InsensitiveNoise):
    r"""Huber's error: Gaussian up to $k$ deviations $\sigma$, linear beyond: rows far off pull no more than that.

    Attributes:
        deviation: $\sigma$ of the Gaussian part.
        threshold: $k$, by default 1.345.
    """

    deviation: Real = eqx.field(converter=real, default=1.0)
    threshold: Real = eqx.field(converter=real, default=HUBER)

    def __init__(self, deviation: Any = 1.0, threshold: Any = HUBER):
        for name, value in (("deviation", deviation), ("threshold", threshold)):
            checks.positive(name, value)
        self.deviation, self.threshold = real(deviation), real(threshold)
        super().__init__(scale=self.deviation / self.threshold, epsilon=0.0, rounding=self.threshold * self.deviation)


class MixtureNoise(Noise):
    r"""A mixture of Gaussians, $V = -\ln \sum_j p_j\, \mathcal N(r; m_j, v_j)$.

    Different means make small errors cost little, different variances make it robust. The energy need not be convex.
    [lemm1999, section 3.7.4, figure 5]

    Attributes:
        means: $m_j$.
        variances: $v_j$, one number or one for each mean.
        shares: $p_j$, which sum to 1; by default equal.
    """

    convex: ClassVar[bool] = False

    means: Any = eqx.field(converter=reals)
    variances: Any = eqx.field(converter=reals, default=1.0)
    shares: Any = eqx.field(converter=reals, default=None)

    def __init__(self, means: Any, variances: Any = 1.0, shares: Any = None):
        m = np.atleast_1d(checks.numbers("means", means))
        checks.finite("means", m)
        checks.positive("variances", variances)
        if m.ndim != 1 or m.size == 0:
            raise InputError(f"Argument `means` must be one number or a list of some, but its shape is {m.shape}.")
        if np.shape(variances) not in ((), m.shape):
            raise InputError("Argument `variances` must be one number or one for each mean, but its shape is "
                             f"{np.shape(variances)}.")  # fmt: skip
        p = np.full(len(m), 1 / len(m)) if shares is None else checks.numbers("shares", shares)
        checks.not_negative("shares", p)
        if p.shape != m.shape or abs(p.sum() - 1) > 1e-9:
            raise InputError(f"Argument `shares` must be {len(m)} numbers that are not negative and sum to 1, but "
                             f"{shares!r} was given.")  # fmt: skip
        self.means, self.variances, self.shares = m, np.broadcast_to(np.asarray(variances, float), m.shape), p

    def _parts(self, residual: Any) -> tuple[Any, Any]:
        """Logarithms of the parts `[..., j]`, and residuals over variances."""
        library = _library(residual)
        off = residual[..., None] - self.means
        return (
            library.log(self.shares) - 0.5 * (off**2 / self.variances + library.log(2 * np.pi * self.variances)),
            off / self.variances,
        )

    def energy(self, residual: Any) -> Any:
        """By the logarithm of a sum."""
        parts, _ = self._parts(residual)
        if isinstance(parts, np.ndarray):
            return -np.asarray(scipy.special.logsumexp(parts, axis=-1))
        return -jax.nn.logsumexp(parts, axis=-1)

    def expand(self, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By the shares of the parts at each residual."""
        parts, pull = self._parts(residual)
        a = scipy.special.softmax(parts, axis=-1)
        slope = np.sum(a * pull, axis=-1)
        bend = np.sum(a * (1 / self.variances - pull**2), axis=-1) + slope**2
        return self.energy(residual), slope, bend


class NoisyData(RowData):
    r"""Values of a function with noise of any shape, $y_i = h(x_i) + r_i$ with $-\ln p(r) = V(r)$.

    Use it with the link `Direct`. On axes with `tails` the function is linear between points, on a lattice
    rows are at the nearest. `GaussianData` has an exact solution.

    Attributes:
        points: inputs `[n, dimensions]`; inputs may repeat.
        targets: $y_i$ `[n]`.
        noise: `LaplaceNoise(scale)`, `HuberNoise(deviation)`, `InsensitiveNoise(scale, epsilon)`, `MixtureNoise(...)`
            or `GaussianNoise(variance)`.
        weights: how often each row counts; by default once.
        places, shares: on a grid, the flat places of the inputs and their shares.

    Examples:
        >>> from quenched import fields
        >>> data = fields.NoisyData([0.1, 0.2, 0.3], [1.0, 9.0, 1.2], fields.LaplaceNoise(0.1))
    """

    points: Any = eqx.field(converter=reals)
    targets: Any = eqx.field(converter=reals)
    noise: Noise = GaussianNoise()
    weights: Any = eqx.field(converter=reals, default=None)
    places: Any = None
    shares: Any = None

    def __check_init__(self):
        checks.kind("noise", self.noise, Noise, "a noise such as LaplaceNoise(scale)")
        check_rows(self.points, self.weights, targets=self.targets)
        if np.ndim(self.targets) != 1:
            raise InputError("Argument `targets` must have one number for each of the points, but its shape is "
                             f"{np.shape(self.targets)}.")  # fmt: skip
        check_places(len(self.targets), self.places, self.shares)

    @property
    def convex(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the energy of the noise is convex."""
        return self.noise.convex

    @property
    def quadratic(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the noise is Gaussian."""
        return isinstance(self.noise, GaussianNoise)

    def row_energy(self, values: Array) -> Array:
        """$V(y - h)$."""
        return self.noise.energy(self.targets - values)

    def expand_rows(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Closed forms of the noise."""
        noise = self.noise
        energy, slope, bend = type(noise).expand(noise, np.asarray(self.targets) - values)
        return energy, -slope, bend


class RiskData(RowData):
    r"""Empirical risk minimisation: $E = \sum_i \ell(y_i, h(x_i))$ of any loss, without a likelihood.

    The prior is a regulariser then, and there is no evidence. With $\ell = -\ln p$ it is the posterior again. The
    solution has the form $h = t + K^\# a + \sum_l c_l \psi_l$ with $a = -\ell'$ at the rows.
    [lemm1999, section 2.5 and eqs. (294) to (296), erratum F296]

    Attributes:
        points: inputs `[n, dimensions]`.
        targets: what is known of each row, `[n]` or `[n, ...]`.
        loss: a function of targets and values `[n]` in JAX, which returns costs `[n]`.
        weights: how often each row counts; by default once.
        places, shares: on a grid, the flat places of the inputs and their shares.

    Examples:
        >>> import jax.numpy as jnp
        >>> from quenched import fields
        >>> hinge = lambda side, value: jnp.logaddexp(0.0, 4 * (1 - side * value)) / 4
        >>> data = fields.RiskData([0.1, 0.5, 0.9], [-1.0, 1.0, 1.0], hinge)
    """

    points: Any = eqx.field(converter=reals)
    targets: Any = eqx.field(converter=reals)
    loss: Callable[[Any, Any], Any] = eqx.field(static=True)
    weights: Any = eqx.field(converter=reals, default=None)
    places: Any = None
    shares: Any = None

    def __check_init__(self):
        if not callable(self.loss):
            raise InputError(f"Argument `loss` must be a function of targets and values, but {self.loss!r} was given.")
        check_rows(self.points, self.weights, targets=self.targets)
        check_places(len(self.targets), self.places, self.shares)

    def row_energy(self, values: Array) -> Array:
        """The loss."""
        return self.loss(self.targets, values)


def _library(value: Any) -> Any:
    return np if isinstance(value, np.ndarray) else jnp


def _erf(library: Any, value: Any) -> Any:
    return scipy.special.erf(value) if library is np else jax.scipy.special.erf(value)
