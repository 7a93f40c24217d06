r"""Which columns matter: `screen`. Integer hyperparameters, enumerated. [lemm1999, sections 5.3.2 and 5.5]

Values are a sum of functions of one column each, with noise,
$$y_i = c + \sum_j b_j\, h_j(x_{ij}) + \epsilon_i , \qquad b_j \in \{0, 1\} ,$$
and each $h_j$ is a field on its own axis, of a length $\ell$ (as a share of the axis) and of a variance that is $\rho$
times that of the noise (see `LengthScale`). With the modes of the fields at the rows as columns $F_j$, $c$ flat and the
noise flat in its logarithm, all are integrated exactly: with $A_b = 1/\rho + F_b^T F_b$
$$\ln p(y | b, \rho, \ell) = -\tfrac12 \ln\det \rho A_b
  - \tfrac{n-1}2 \ln (y^T y - y^T F_b A_b^{-1} F_b^T y) + \text{const} ,$$
where $y$ and $F$ have their means taken away. All combinations of columns are enumerated, or sampled if they are too
many; beforehand every number of columns is as probable as any other.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from scipy.special import gammaln

from quenched.core import checks
from quenched.core.types import InputError, double
from quenched.fields.model.families import LengthScale
from quenched.fields.model.grid import Axis, Grid

if TYPE_CHECKING:
    import xarray as xr

POINTS = 33
"""Of the axis of each column."""
LENGTHS = (0.2, 0.6)
"""Lengths that are tried, as shares of the axis."""
RATIOS = tuple(np.geomspace(0.05, 100.0, 6).tolist())
"""Variances of the fields that are tried, in units of that of the noise."""
LOST = 1e-4
"""Modes with less than this share of the variance are left out."""
ENUMERATED = 12
"""So many columns are enumerated; more are sampled."""
SWEEPS, BURNED = 300, 50
"""Sweeps through all columns when they are sampled, and how many of them are left out."""
LISTED = 1e-3
"""Combinations with at least this probability are listed and make up the functions."""


@dataclasses.dataclass(frozen=True, eq=False)
class FittedColumns:
    """Which columns matter, and how.

    Attributes:
        probability: that each column matters.
        combinations: those that are probable: which columns they `use`, with their `share` of the posterior.
        grids: the axis of each column.
        effects: the mean of the function of each column `[columns, points]`, zero on average over the rows.
        variances: of these `[columns, points]`.
        constant: the mean of the values.
        noise: the variance of the noise.
    """

    probability: np.ndarray
    combinations: xr.Dataset
    grids: tuple[Grid, ...]
    effects: np.ndarray
    variances: np.ndarray
    constant: float
    noise: float

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the values at some rows.

        Args:
            X: a table with the same columns.
        """
        rows = checks.numbers("X", X)
        if rows.ndim != 2 or rows.shape[1] != len(self.grids):
            raise InputError(f"Argument `X` must have {len(self.grids)} columns, but its shape is {rows.shape}.")
        parts = [grid.interpolation(column) @ effect
                 for grid, column, effect in zip(self.grids, rows.T, self.effects, strict=True)]  # fmt: skip
        return self.constant + np.sum(parts, axis=0)


@double
def screen(X: Any, y: Any, *, lengths: Any = LENGTHS, ratios: Any = RATIOS, seed: int = 0) -> FittedColumns:
    """Find out which columns matter for some values.

    Args:
        X: a table of numbers.
        y: the values, one for each row.
        lengths: over what share of its axis a function varies; all are weighed.
        ratios: variances of the functions that are weighed, in units of that of the noise.
        seed: of random numbers, used only for more columns than can be enumerated.

    Returns:
        The probability that each column matters, and its function.

    Raises:
        InputError: if a column does not vary, or there are fewer than three rows.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> X = np.random.default_rng(0).uniform(size=(80, 4))
        >>> found = fields.screen(X, np.sin(6 * X[:, 2]) + 0.1 * np.cos(99 * X[:, 0] * X[:, 1]))
        >>> np.flatnonzero(found.probability > 0.5).tolist()
        [2]
    """
    rows, values = checks.numbers("X", X), checks.numbers("y", y)
    if rows.ndim != 2 or rows.shape[1] == 0 or len(rows) < 3 or values.shape != (len(rows),):
        raise InputError("Arguments `X` and `y` must be a table of at least three rows and a value for each, but "
                         f"their shapes are {rows.shape} and {values.shape}.")  # fmt: skip
    checks.finite("X", rows)
    checks.finite("y", values)
    grids = _axes(rows)
    if np.ptp(values) == 0:
        raise InputError("Argument `y` must vary, but all values are the same.")
    for name, given in (("lengths", lengths), ("ratios", ratios)):
        if np.size(given) == 0 or np.ndim(given) != 1:
            raise InputError(f"Argument `{name}` must be a list of numbers, but {given!r} was given.")
        checks.positive(name, checks.numbers(name, given))
    seed = checks.whole("seed", seed, least=0)
    scale = float(np.std(values))
    designs = [_Design(grids, rows, (values - values.mean()) / scale, float(length)) for length in lengths]
    weigh = functools.partial(_weigh, designs, tuple(float(r) for r in ratios), rows.shape[1])
    every = _enumerate(rows.shape[1], weigh) if rows.shape[1] <= ENUMERATED else _sample(rows.shape[1], weigh, seed)
    return _answer(every, designs, ratios, grids, float(values.mean()), scale)


def _axes(rows: np.ndarray) -> tuple[Grid, ...]:
    """An axis for each column."""
    if np.any(np.ptp(rows, axis=0) == 0):
        place = int(np.argmax(np.ptp(rows, axis=0) == 0))
        raise InputError(f"Argument `X` must vary in every column, but column {place} does not.")
    ends = [(float(column.min()), float(column.max())) for column in rows.T]
    return tuple(Grid(given=[Axis(low, high, points=POINTS, tails=(0.0, 0.0))]) for low, high in ends)


class _Design:
    """Modes of the fields at the rows, for one length."""

    def __init__(self, grids: tuple[Grid, ...], rows: np.ndarray, y: np.ndarray, length: float):
        unit = Grid(given=[Axis(0, 1, points=POINTS)])
        K = LengthScale(unit).prior({"length": length, "variance": 1.0}).operator
        values, vectors = K.spectrum
        variance = 1 / (unit.cell * values)
        kept = variance > LOST * variance.sum()
        self.modes = vectors[:, kept] * np.sqrt(variance[kept])
        F = [grid.interpolation(column) @ self.modes for grid, column in zip(grids, rows.T, strict=True)]
        self.means = [part.mean(axis=0) for part in F]
        whole = np.concatenate([part - mean for part, mean in zip(F, self.means, strict=True)], axis=1)
        self.Q, self.f, self.yy, self.n = whole.T @ whole, whole.T @ y, float(y @ y), len(y)
        self.width = self.modes.shape[1]

    def places(self, used: tuple[int, ...]) -> np.ndarray:
        """The modes of some columns."""
        return np.concatenate([np.arange(j * self.width, (j + 1) * self.width) for j in used] or [np.zeros(0, int)])

    def solve(self, used: tuple[int, ...], ratio: float) -> tuple[Any, np.ndarray, float, float]:
        """A factor of A, coefficients, what is left of the squares, and the logarithm of det rho A."""
        at = self.places(used)
        if len(at) == 0:
            return None, np.zeros(0), self.yy, 0.0
        A = self.Q[np.ix_(at, at)] + np.eye(len(at)) / ratio
        factor = scipy.linalg.cho_factor(A, lower=True, check_finite=False)
        c = scipy.linalg.cho_solve(factor, self.f[at], check_finite=False)
        log_det = 2 * float(np.sum(np.log(np.diag(factor[0])))) + len(at) * np.log(ratio)
        return factor, c, max(self.yy - float(self.f[at] @ c), 1e-12 * self.yy), log_det


def _weigh(designs: list[_Design], ratios: tuple[float, ...], d: int, used: tuple[int, ...]) -> np.ndarray:
    """Logarithms of the weights of one combination of columns, for all lengths and ratios."""
    beforehand = gammaln(len(used) + 1) + gammaln(d - len(used) + 1) - gammaln(d + 2)
    logs = np.empty((len(designs), len(ratios)))
    for (i, design), (k, ratio) in itertools.product(enumerate(designs), enumerate(ratios)):
        _, _, left, log_det = design.solve(used, ratio)
        logs[i, k] = -0.5 * log_det - 0.5 * (design.n - 1) * np.log(left)
    return logs - np.log(logs.size) + beforehand


Weights = dict[tuple[int, ...], tuple[float, np.ndarray]]
"""For each combination its probability, and logarithms of the weights of its lengths and ratios."""


def _enumerate(d: int, weigh: Any) -> Weights:
    found = {used: weigh(used) for k in range(d + 1) for used in itertools.combinations(range(d), k)}
    total = np.logaddexp.reduce([np.logaddexp.reduce(logs, axis=None) for logs in found.values()])
    return {used: (float(np.exp(np.logaddexp.reduce(logs, axis=None) - total)), logs) for used, logs in found.items()}


def _sample(d: int, weigh: Any, seed: int) -> Weights:
    """Combinations as often as a chain of single changes meets them."""
    random, met, known = np.random.default_rng(seed), {}, functools.lru_cache(maxsize=None)(weigh)
    used: tuple[int, ...] = ()
    for sweep in range(SWEEPS):
        for j in random.permutation(d):
            other = tuple(sorted(set(used) ^ {int(j)}))
            gain = np.logaddexp.reduce(known(other), axis=None) - np.logaddexp.reduce(known(used), axis=None)
            if random.random() < 1 / (1 + np.exp(-np.clip(gain, -700, 700))):
                used = other
            if sweep >= BURNED:
                met[used] = met.get(used, 0) + 1
    total = sum(met.values())
    return {used: (count / total, known(used)) for used, count in met.items()}


def _answer(
    every: Weights, designs: list[_Design], ratios: Any, grids: tuple[Grid, ...], constant: float, scale: float
) -> FittedColumns:
    """Probabilities, and functions averaged over the probable combinations."""
    import xarray as xr

    d = len(grids)
    probability = np.zeros(d)
    for used, (share, _) in every.items():
        probability[list(used)] += share
    listed = sorted(((share, used) for used, (share, _) in every.items() if share >= LISTED), reverse=True)
    mean, square, noise, total = np.zeros((d, POINTS)), np.zeros((d, POINTS)), 0.0, 0.0
    for share, used in listed:
        logs = every[used][1]
        parts = share * np.exp(logs - np.logaddexp.reduce(logs, axis=None))
        for (i, design), (k, ratio) in itertools.product(enumerate(designs), enumerate(ratios)):
            if parts[i, k] < LISTED * share:
                continue
            factor, c, left, _ = design.solve(used, float(ratio))
            variance = left / (design.n - 3) if design.n > 3 else left
            noise, total = noise + parts[i, k] * variance, total + parts[i, k]
            for place, j in enumerate(used):
                at = np.arange(place * design.width, (place + 1) * design.width)
                U = design.modes - design.means[j]  # zero on average over the rows
                wide = np.zeros((len(c), POINTS))
                wide[at] = U.T
                spread = variance * np.sum(wide * scipy.linalg.cho_solve(factor, wide), axis=0)
                mean[j] += parts[i, k] * (U @ c[at])
                square[j] += parts[i, k] * ((U @ c[at]) ** 2 + spread)
    mean, square = mean / total, square / total
    table = xr.Dataset({
        "share": ("combination", np.array([share for share, _ in listed])),
        "use": (("combination", "column"), np.array([[j in used for j in range(d)] for _, used in listed])),
    })  # fmt: skip
    return FittedColumns(np.clip(probability, 0, 1), table, grids, scale * mean,
                         scale**2 * np.maximum(square - mean**2, 0.0), constant, scale**2 * noise / total)  # fmt: skip
