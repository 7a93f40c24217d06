r"""Log-densities as sums of the smoothest modes of their prior: a convex problem in a few hundred numbers.

The log-density is $g = \sum_m c_m u_m$, where $u_m$ are the modes of the roughness
$\int |\partial^k g|^2 = \sum_m s_m c_m^2$ with free ends on a grid of unit length. Polynomials below the order $k$ have
none ($s_m = 0$): with $k = 3$ every Gaussian is free. In two dimensions the roughness is that of a thin plate,
$\sum_a \binom{k}{a} \int (\partial_x^a \partial_y^{k-a} g)^2$, among products of the smoothest modes of the axes.

What is minimised, with $N_j$ rows at the points and $\mu_j$ their share of the volume, is
$$E(g) = -\sum_j N_j g_j + n \sum_j \mu_j e^{g_j} + \tfrac{\lambda}{2} \sum_m s_m c_m^2 .$$
Constants are free, so at the minimum $\sum_j \mu_j e^{g_j} = 1$ by itself: no multiplier is needed, as one is in
[lemm1999, eq. (109)], and the minimum is the same. In modes the condition number of the Hessian is that of its
diagonal, which is scaled away: also $\lambda \to \infty$, the maximum-likelihood exponential of a polynomial, is safe.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
from scipy import linalg

from quenched.fields.model.grid import Axis

STIFF = 1e3
"""Modes on which the prior is this many times as sure as the data are left out: they stay zero."""
SHARP, CLOSE, FALLS = 1e-22, 1e-6, 4.0
"""Newton's method stops when its step would lower the energy by less than the first, in nats; below the second its
steps are taken whole, as long as the gain falls by the third from step to step: after that only rounding is left."""
ROUNDING, RIDGE = 1e-14, 1e-11
"""Noise of the energy, for each row; and what is added to the unit diagonal of the scaled Hessian, which is singular
when nearly all rows are at one point."""
STEPS = 200
"""Newton steps at most: about four are made at each strength, more than a hundred where rows are at few points."""
ALONG = 18
"""Modes of each axis of which those of a plane are made."""


@dataclasses.dataclass(frozen=True)
class Modes:
    r"""Modes of the roughness of some order, the smoothest first.

    Attributes:
        order: $k$.
        fields: $u_m$ as columns `[points, modes]`; on a line they have a mean square of one.
        roughness: $s_m$, zero for polynomials.
        free: how many are zero.
    """

    order: int
    fields: np.ndarray
    roughness: np.ndarray
    free: int


@functools.lru_cache(maxsize=32)
def line_modes(points: int, order: int) -> Modes:
    """All modes of a line of unit length."""
    axis = Axis(0.0, 1.0, points)
    D = np.diff(np.eye(points), n=order, axis=0) / axis.spacing**order
    # Singular values of D, not eigenvalues of its square: the smallest is known to more than half of all digits.
    _, root, V = np.linalg.svd(D)
    free, _ = np.linalg.qr(np.vander(np.linspace(-1, 1, points), order, increasing=True))
    rough = V[: len(root)][::-1].T
    rough = rough - free @ (free.T @ rough)
    fields = np.concatenate([free, rough], axis=1) / np.sqrt(axis.spacing)
    return Modes(order, fields, np.concatenate([np.zeros(order), root[::-1] ** 2]), order)


@functools.lru_cache(maxsize=8)
def plane_modes(points: tuple[int, int], order: int) -> Modes:
    """The modes of a unit square among products of the smoothest ones of its sides."""
    sides, energies = [], []
    for count in points:
        axis = Axis(0.0, 1.0, count)
        U = line_modes(count, order).fields[:, :ALONG]
        slopes = [U] + [np.diff(U, n=a, axis=0) / axis.spacing**a for a in range(1, order + 1)]
        sides.append(U)
        energies.append([axis.spacing * D.T @ D for D in slopes])
    total = sum(math.comb(order, a) * np.kron(energies[0][a], energies[1][order - a]) for a in range(order + 1))
    roughness, mixed = np.linalg.eigh(total)
    free = order * (order + 1) // 2
    return Modes(order, np.kron(*sides) @ mixed, np.where(np.arange(len(roughness)) < free, 0.0, roughness), free)


def modes_of(shape: tuple[int, ...], order: int) -> Modes:
    """The modes of a line or of a plane."""
    return line_modes(shape[0], order) if len(shape) == 1 else plane_modes((shape[0], shape[1]), order)


@dataclasses.dataclass(frozen=True)
class Minimum:
    r"""The log-density of least energy at one strength.

    Attributes:
        coefficients: $c_m$ of the modes that take part.
        field: $g$ at the points.
        energy: $E$.
        precision: $\lambda s_m$.
        factor: lower triangle of the scaled Hessian's Cholesky factor.
        scale: by which rows and columns of the Hessian were divided to have a unit diagonal.
        converged: whether Newton's method came to its end.
    """

    coefficients: np.ndarray
    field: np.ndarray
    energy: float
    precision: np.ndarray
    factor: np.ndarray
    scale: np.ndarray
    converged: bool

    @property
    def logdet(self) -> float:
        """Of the Hessian in modes."""
        return 2 * float(np.sum(np.log(np.diag(self.factor)) + np.log(self.scale)))

    def variances(self, directions: np.ndarray) -> np.ndarray:
        """Of linear functions of the coefficients `[n, modes]`, in the Gaussian of this curvature."""
        rows = linalg.solve_triangular(self.factor, (directions / self.scale).T, lower=True, check_finite=False)
        return np.sum(rows**2, axis=0)


def minimum(modes: Modes, counts: np.ndarray, measure: np.ndarray, strength: float, start: np.ndarray) -> Minimum:
    r"""The log-density of least energy, by Newton's method with a line search.

    Args:
        modes: of which it is a sum.
        counts: rows $N_j$ at the points.
        measure: $\mu_j$.
        strength: $\lambda$; infinite: only free modes take part.
        start: first coefficients; those not given are zero.

    Returns:
        The minimum and what its curvature says.
    """
    n = counts.sum()
    size = modes.free
    if np.isfinite(strength):
        size = max(size + 1, int(np.searchsorted(strength * modes.roughness, STIFF * n)))
    U, precision = modes.fields[:, :size], np.zeros(size)
    if np.isfinite(strength):
        precision = strength * modes.roughness[:size]
    c = np.zeros(U.shape[1])
    c[: len(start)] = start[: len(c)]

    def energy(g: np.ndarray, c: np.ndarray) -> float:
        with np.errstate(over="ignore"):  # a step much too long: refused
            return float(-counts @ g + n * (measure @ np.exp(g)) + 0.5 * precision @ c**2)

    g = U @ c
    E, last = energy(g, c), np.inf
    for taken in itertools.count():
        w = n * measure * np.exp(g)
        factor, scale = _factor(U, w, precision)
        gradient = U.T @ (w - counts) + precision * c
        step = -linalg.cho_solve((factor, True), gradient / scale, check_finite=False) / scale
        gain, along, t = -gradient @ step, U @ step, 1.0
        if gain < SHARP or (gain < CLOSE and not gain < last / FALLS) or taken == STEPS:
            return Minimum(c, g, E, precision, factor, scale, bool(gain < CLOSE))
        while gain > CLOSE and not energy(g + t * along, c + t * step) <= E - 1e-4 * t * gain + ROUNDING * n:
            t /= 2
        c, g = c + t * step, g + t * along
        E, last = energy(g, c), gain
    raise AssertionError  # the loop ends by itself


def _factor(U: np.ndarray, w: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cholesky factor of the Hessian with unit diagonal, and the scale taken out."""
    B = np.sqrt(w)[:, None] * U
    A = B.T @ B
    A.flat[:: len(A) + 1] += precision
    scale = np.sqrt(np.diag(A))
    A = A / scale / scale[:, None]
    A.flat[:: len(A) + 1] += RIDGE
    return linalg.cholesky(A, lower=True, check_finite=False), scale
