r"""All rest states of two prototypes in `TwoClusters` as $\eta \to 0$ with $\eta\alpha \to \infty$.

Setting the drift to zero gives $w_+ - w_- = \lambda c (B_+ - B_-) + c' n$ with $n$ the direction of $w_+ - w_-$, so
either $n$ lies along the axis $(B_+ - B_-)/\sqrt2$, or $c = 0$.

* *On the axis*: let the boundary be at $\theta$ and $y_S$ the distance of prototype $S$ from it,
  $$y_S(\theta) = \frac{\sum_k p_k g_{Sk} \sqrt{v_k}\,[t\Phi(t) + \varphi(t)]}{\sum_k p_k g_{Sk} \Phi(t)},\quad
  t = S(m_k - \theta)/\sqrt{v_k},\quad m_\pm = \pm\lambda/\sqrt2,$$
  from the mid-point of the centres in the direction of $n$. It is half-way between the prototypes, so
  $y_+(\theta) = y_-(\theta) > 0$. The direction of $n$ may also be the other one ($m_\pm = \mp\lambda/\sqrt2$): then
  each prototype lies on the side of the other class.
* *Unspecialised* ($c = 0$, for VQ and LVQ1): prototypes that differ only in directions without signal, with the same
  part along the centres.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize
from scipy.special import erfcx, log_ndtr, ndtr

from quenched.core.gaussian import cdf, pdf
from quenched.core.types import QUICK, Array, Outcome, double
from quenched.prototypes.model import LVQ1, VQ, Numbers, Rule, TwoClusters, numbers

REACH = np.sinh(np.linspace(-14.5, 14.5, 2001))
"""Boundaries tried around a point that matters, in units of its width: up to a million, each 1.5% further."""
NEARLY, ROUNDING = 0.1, 1e-11
"""Two roots may hide between neighbours where the two sides differ by less than one share and more than the other."""
SAME_PRIORS = 1e-9
"""Priors this close are equal: a state of LVQ1 that is further away than one over this does not exist."""


class RestState(NamedTuple):
    """Where a flow ends; NaN where an overlap has no limit."""

    R: np.ndarray  # [K, M]
    Q: np.ndarray  # [K, K]
    error: float
    growth: float  # largest real part of the eigenvalues of the flow of the overlaps
    outcome: Outcome = Outcome.converged
    reversed: bool = False  # whether each prototype lies on the side of the other class


def _distance(p: np.ndarray, g: np.ndarray, sd: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Numerator and denominator of y_S, both divided by the largest of the probabilities: free of underflow.

    Of $\Phi(t) = 1 - \Phi(-t)$ and $t\Phi(t) + \varphi(t) = t + [-t\Phi(-t) + \varphi(t)]$ at $t > 0$ the first parts,
    which nearly cancel between the clusters far away, are added up first.
    """
    weight = p * g
    largest = np.max(np.where(weight == 0, -np.inf, log_ndtr(t)), axis=-1, keepdims=True)
    tail, ahead = -np.abs(t), (t > 0) & (weight != 0)
    lost = np.where(weight == 0, 0.0, np.exp(np.minimum(log_ndtr(tail) - largest, 0.0)))  # Phi(-|t|)
    x = np.maximum(-tail, 100.0)  # beyond 100 the series of t + phi/Phi, otherwise the difference itself
    far = (1 - (2 - (10 - 74 / x**2) / x**2) / x**2) / x
    near = tail + np.sqrt(2 / np.pi) / erfcx(np.minimum(-tail, 100.0) / np.sqrt(2))
    rest = weight * sd * lost * np.where(tail < -100, far, near)
    straight = np.where(ahead, weight * np.exp(np.minimum(-largest, 1.0)), 0.0)
    top = np.sum(straight * sd * t, axis=-1) + np.sum(rest, axis=-1)
    return top, np.sum(straight, axis=-1) + np.sum(weight * np.where(ahead, -lost, lost), axis=-1)


def cross_densities(p: np.ndarray, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where two weighted Gaussian densities are equal, and the slope of the logarithm of their ratio there."""
    square, linear = (1 / v[1] - 1 / v[0]) / 2, m[0] / v[0] - m[1] / v[1]
    constant = (m[1] ** 2 / v[1] - m[0] ** 2 / v[0]) / 2 + np.log(p[0] / p[1]) - np.log(v[0] / v[1]) / 2
    roots = np.real(np.roots([square, linear, constant]))
    return roots, 2 * square * roots + linear


def boundaries(p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray) -> list[tuple[float, float]]:
    r"""All $\theta$ at which both prototypes are equally far from the boundary, and that distance.

    Clusters with priors `p` and variances `v` lie at `m` in the direction from the second prototype to the first.
    """
    sd = np.sqrt(v)

    def mismatch(theta: Any) -> np.ndarray:
        """The difference of the y's, multiplied by both denominators (no poles), relative to its two parts."""
        t = (m - np.asarray(theta)[..., None]) / sd
        (top, bottom), (top_2, bottom_2) = _distance(p, g[0], sd, t), _distance(p, g[1], sd, -t)
        one, two = top * bottom_2, top_2 * bottom
        return (one - two) / np.maximum(np.abs(one) + np.abs(two), 1e-300)

    around = [*zip(m, sd, strict=True)]
    around += [
        (x, 1 / abs(slope)) for x, slope in zip(*cross_densities(p, m, v), strict=True) if np.isfinite(x) and slope
    ]
    grid = np.unique(np.concatenate([centre + width * REACH for centre, width in around]))
    found = []
    for low, high in _brackets(mismatch, grid):
        root = optimize.root_scalar(lambda x: float(mismatch(x)), bracket=(low, high), xtol=1e-300, rtol=1e-15)
        theta = float(root.root)
        top, bottom = _distance(p, g[0], sd, (m - theta) / sd)
        # the mismatch jumps from -1 to 1 where a product vanishes, which is no root
        if abs(float(mismatch(theta))) < 1e-6 and bottom != 0 and top / bottom > 0:
            found.append((theta, float(top / bottom)))
    return found


def _brackets(function: Any, grid: np.ndarray) -> list[tuple[float, float]]:
    """Intervals at whose ends the function has different signs, where it nearly touches zero too."""
    values = function(grid)
    sign = np.sign(values)
    change = np.flatnonzero(sign[:-1] * sign[1:] < 0)
    brackets = [(float(grid[i]), float(grid[i + 1])) for i in change]
    exact = np.flatnonzero(sign == 0)  # on the grid itself: its neighbours are on both sides
    brackets += [(float(grid[i - 1]), float(grid[i + 1])) for i in exact if 0 < i < grid.size - 1]
    size = np.abs(values)
    dip = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:]) & (size[1:-1] < NEARLY) & (size[1:-1] > ROUNDING)
    for i in np.flatnonzero(dip) + 1:
        if sign[i - 1] == sign[i] == sign[i + 1]:
            least: Any = optimize.minimize_scalar(
                lambda x, s=sign[i]: s * float(function(x)), bounds=grid[[i - 1, i + 1]], method="bounded",
                options={"xatol": 1e-12 * (grid[i + 1] - grid[i - 1])},
            )  # fmt: skip
            if least.fun < 0:
                brackets += [(float(grid[i - 1]), float(least.x)), (float(least.x), float(grid[i + 1]))]
    return [(low, high) for low, high in brackets if function(low) * function(high) < 0]


@double
def axis_states(law: TwoClusters, rule: Rule) -> list[RestState]:
    r"""All rest states on the line through the centres as $\eta \to 0$: stable ones first, reversed ones last."""
    n, lam = numbers(law, rule), float(law.separation)
    if lam == 0:  # there is no such line
        return []
    side, found = np.array([1.0, -1.0]), []
    for sign in (1.0, -1.0):
        m = sign * side * lam / np.sqrt(2)
        for theta, half in boundaries(n.p, n.g, m, n.v):
            x = sign * (theta + side * half)  # positions along (B_+ - B_-)/sqrt2
            R = lam / 2 + x[:, None] * side / np.sqrt(2)
            win = ndtr((m - theta) / np.sqrt(n.v))
            error = float(np.sum(n.p * np.where([False, True], win, 1 - win)))
            growth = _growth(n, half, 0, m - theta)
            found.append(RestState(R, R @ R.T, error, growth, reversed=sign < 0))
    return sorted(found, key=lambda state: (state.reversed, state.growth))


def unspecialised_state(law: TwoClusters, rule: Rule) -> RestState | None:
    r"""The unspecialised state as $\eta \to 0$, if the rule has one.

    LVQ1: $R_{Ss} = \lambda s p_s/(p_+ - p_-)$ and
    $\sqrt D = 2\sqrt{2/\pi}\,(p_+\sqrt{v_+} - p_-\sqrt{v_-})/(p_+ - p_-)$, if that is positive. VQ: see
    `unspecialised_overlaps`. The direction of $w_+ - w_-$ is any without signal; here none of the centres has a part in
    it.
    """
    n, lam = numbers(law, rule), float(law.separation)
    weight = n.p * np.array([1.0, -1.0]) if isinstance(rule, LVQ1) else n.p
    if not isinstance(rule, (VQ, LVQ1)) or abs(weight.sum()) < SAME_PRIORS:
        return None
    common = weight / weight.sum()
    half = float(common @ np.sqrt(n.v) * np.sqrt(2 / np.pi))
    if half <= 0:
        return None
    m = np.array([1.0, -1.0]) * lam / np.sqrt(2)
    R, Q = _unspecialised(lam, common, half, 0.0)
    return RestState(R, Q, 0.5, _growth(n, half, 1, m - m @ common))


def unspecialised_overlaps(law: TwoClusters, rate: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Overlaps of the unspecialised state of VQ, in closed form.

    $$R_{Ss} = \lambda p_s,\quad \sqrt D = 2\bar\varphi + \sqrt{4\bar\varphi^2 + \eta\bar v},\quad
    \bar\varphi = \sum_s p_s\sqrt{v_s}/\sqrt{2\pi},\ \bar v = \sum_s p_s v_s$$

    where $D = |w_+ - w_-|^2$.
    """
    mix = law.mixture()
    edge, noise = np.sum(mix.p * np.sqrt(mix.v)) / np.sqrt(2 * np.pi), rate * np.sum(mix.p * mix.v)
    return _unspecialised(float(law.separation), mix.p, edge + np.sqrt(edge**2 + noise / 4), noise)


def _unspecialised(lam: float, common: np.ndarray, half: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Overlaps of two prototypes with the same part along the centres, at a distance of twice `half`."""
    middle = lam**2 * np.sum(common**2) + noise / 4  # mean of the entries of Q: (w_+ + w_-)^2 / 4
    return np.tile(lam * common, (2, 1)), middle + half**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])


def _vector_drift(w: Array, p: Array, g: Array, sd: Array, centres: Array) -> Array:
    r"""The small-rate drift of two prototypes as vectors, at which only directions of interest need be kept."""
    apart, middle = w[0] - w[1], (w[0] + w[1]) / 2
    n = apart / jnp.linalg.norm(apart)
    t = jnp.array([[1.0], [-1.0]]) * ((centres - middle) @ n) / sd  # [S, k]
    win, edge = cdf(t), pdf(t)
    weight = p * g
    towards = jnp.array([[1.0], [-1.0]]) * jnp.sum(weight * sd * edge, axis=1)[:, None] * n
    return (weight * win) @ centres + towards - jnp.sum(weight * win, axis=1)[:, None] * w


_jacobian = jax.jit(jax.jacfwd(_vector_drift), compiler_options=QUICK)


@double
def _growth(n: Numbers, half: float, direction: int, positions: np.ndarray) -> float:
    r"""The largest real part of the eigenvalues of the flow of the overlaps at a rest state.

    The prototypes lie on both sides of the origin of a space of three dimensions: the axis, on which the clusters have
    their `positions`, and two directions without signal. Eigenvalues of `R` are eigenvalues $\mu$ of the flow of the
    vectors; overlaps outside the plane of the centres are products, and have sums of two $\mu$.
    """
    space = np.eye(3)
    w, centres = np.outer([half, -half], space[direction]), np.outer(positions, space[0])
    J = np.asarray(_jacobian(w, n.p, n.g, np.sqrt(n.v), centres))  # [S, a, T, b]
    outside = np.linalg.eigvals(J[:, 2, :, 2]).real.max()
    return float(max(np.linalg.eigvals(J.reshape(6, 6)).real.max(), 2 * outside))
