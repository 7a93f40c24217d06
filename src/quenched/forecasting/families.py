r"""Families of learning curves, each averaged over its exponents instead of fitted.

A curve $e(n)$ over numbers of examples $n \le N$ is compared with $e = a + b\,f(u)$ at $u = n/N$, where $f$ falls and

* power law: $f = u^{-c}$;
* shifted power law: $f = (u + s)^{-c}$;
* Hill function (the Morgan-Mercer-Flodin family): $f = 1/(1 + (u/s)^c)$;
* stretched exponential (the Weibull family): $f = e^{-(u/s)^c}$.

Everything but $a, b \ge 0$ lies on a grid; at each of its points $k$ weighted least squares are closed. Points weigh
$n^r/\mathrm{se}^2$: with $r > 0$ the end of the curve counts most, because that is where it is continued. With residual
sum of squares $R_k$ and $\nu = (\sum w)^2/\sum w^2$ points that count, a grid point has the posterior weight
$R_k^{-(\nu - 2)/2}$ (the scale of the noise integrated out), and the forecast is the average over the grid.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

RECENCIES = (0.0, 1.0, 2.0)
"""Powers of the number of examples in the weights."""
SHIFTS = (0.03, 0.1, 0.3, 1.0)
SCALES = (0.03, 0.1, 0.3, 1.0, 3.0)
FLOOR = 1e-3
"""Relative error below which residuals are not told apart."""


class Grid(NamedTuple):
    """The members of all families."""

    family: np.ndarray  # [K], 0 to 3, in order
    shift: np.ndarray  # [K]
    power: np.ndarray  # [K]

    def shapes(self, u: np.ndarray) -> np.ndarray:
        """The function $f$ of each member at shares `u` of the examples, `[K, P]`."""
        s, c, logs = self.shift[:, None], self.power[:, None], np.log(u)
        f = np.empty((len(self.power), len(u)))
        power, shifted, hill, stretched = (self.family == k for k in range(4))
        f[power] = np.exp(-c[power] * logs)
        f[shifted] = (u + s[shifted]) ** -c[shifted]
        ratio = np.exp(np.clip(c * (logs - np.log(np.where(s > 0, s, 1.0))), -50, 50)[hill | stretched])
        both = self.family[hill | stretched]
        f[hill], f[stretched] = 1 / (1 + ratio[both == 2]), np.exp(-np.minimum(ratio[both == 3], 50.0))
        return f


@cache
def grid() -> Grid:
    """The grid: exponents of practice, each about 1.25 times the last."""
    rows = [(0, 0.0, c) for c in np.geomspace(0.05, 3.0, 24)]
    rows += [(1, s, c) for s in SHIFTS for c in np.geomspace(0.1, 6.0, 10)]
    rows += [(2, s, c) for s in SCALES for c in (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)]
    rows += [(3, s, c) for s in SCALES for c in (0.25, 0.4, 0.6, 1.0, 1.5)]
    family, shift, power = np.array(rows).T
    return Grid(family.astype(int), shift, power)


@cache
def power_laws() -> Grid:
    """The power laws of the grid."""
    known = grid()
    return Grid(*(v[known.family == 0] for v in known))


class Averages(NamedTuple):
    """The posterior over a grid for each recency."""

    grid: Grid
    a: np.ndarray  # [K, r]
    b: np.ndarray  # [K, r]
    weight: np.ndarray  # [K, r], sums to 1 in each family
    evidence: np.ndarray  # [4, r], log of the mean likelihood of each family

    def predict(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation over the grid at shares `u`, `[4, r, m]` each."""
        value = self.a[..., None] + self.b[..., None] * self.grid.shapes(u)[:, None, :]
        weighted = self.weight[..., None] * value
        mean, square = _by_family(self.grid, weighted), _by_family(self.grid, weighted * value)
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    def asymptote(self) -> np.ndarray:
        """Mean of $a$, `[4, r]`."""
        return _by_family(self.grid, self.weight * self.a)

    def exponent(self) -> np.ndarray:
        """Mean of $\\log c$, `[4, r]`."""
        return _by_family(self.grid, self.weight * np.log(self.grid.power)[:, None])


def _by_family(members: Grid, values: np.ndarray) -> np.ndarray:
    """Sums over the members of each family."""
    return np.add.reduceat(values, np.flatnonzero(np.diff(members.family, prepend=-1)), axis=0)


def average(u: np.ndarray, errors: np.ndarray, stderr: np.ndarray, members: Grid | None = None) -> Averages:
    """The posterior over all families.

    Args:
        u: shares of the examples; the last is 1, except where all members are power laws.
        errors: errors there, in units of about the last.
        stderr: their standard errors, positive.
        members: by default the whole grid.
    """
    members = grid() if members is None else members
    F, family = members.shapes(u), members.family
    w = u[:, None] ** np.array(RECENCIES) / stderr[:, None] ** 2  # [P, r]
    w = w / w.sum(axis=0)
    nu = 1 / np.sum(w**2, axis=0)
    f1, f2, fe = F @ w, (F**2) @ w, F @ (w * errors[:, None])  # [K, r]
    e1, e2 = errors @ w, errors**2 @ w
    spread = np.maximum(f2 - f1**2, 1e-12 * f2)
    b = (fe - f1 * e1) / spread
    a = e1 - b * f1
    low = a < 0
    a, b = np.where(low, 0.0, a), np.where(low, fe / f2, b)
    rising = b < 0
    a, b = np.where(rising, e1, a), np.where(rising, 0.0, b)
    rss = e2 - 2 * a * e1 - 2 * b * fe + a**2 + 2 * a * b * f1 + b**2 * f2
    scale = (FLOOR * np.abs(e1)) ** 2 + 1e-300
    log_weight = -0.5 * np.maximum(nu - 2, 1.0) * np.log(np.maximum(rss, 0.0) + scale)
    top = np.stack([log_weight[family == k].max(axis=0) for k in range(family[-1] + 1)])
    weight = np.exp(log_weight - top[family])
    total = _by_family(members, weight)
    counts = np.bincount(family)[:, None]
    evidence = top + np.log(total / counts) + 0.5 * np.maximum(nu - 2, 1.0) * np.log(e2 - e1**2 + scale)
    return Averages(members, a, b, weight / total[family], evidence)
