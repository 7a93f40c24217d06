r"""Classes of rows with probabilities that can be trusted: smooth log-odds, their smoothness chosen by evidence.

$p(k|x) = e^{g_k(x)} / \sum_l e^{g_l(x)}$, and the fields $g_k$ are smooth a priori. One column, or up to three
together, live on a grid; of more columns the field is a sum of one-dimensional ones, $g_k(x) = \sum_c g_{kc}(x_c)$. In
each column constants have a wide prior, straight lines the strength $\lambda_1$, and what is left of them
$\tfrac{\lambda_2}2 \int (g'')^2$. Probabilities are those at the strengths of most evidence; bands are made of all
strengths that are likely, each with its share.

A probability is the ratio of two integrals over all fields: of the data with the row, as if it had class $k$, and of
the data alone,
$$p(k|x, D) = \frac{\int d\phi\; p(k|x,\phi)\, p(D|\phi)\, p(\phi)}{\int d\phi\; p(D|\phi)\, p(\phi)} ,$$
each by Laplace about its own maximum. [lemm1999, eq. (22)] The mean over a Gaussian about the one maximum of the data
alone is far less accurate where classes can be separated: the posterior is skewed, and such probabilities are too
cautious. It is what remains for tables so large that every row cannot be added to them, where both agree.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import jax
import numpy as np
from scipy import linalg, special

from quenched.core import checks
from quenched.core.types import InputError, Key
from quenched.fields.learner.fitted import Fitted
from quenched.fields.learner.solving import moved_by_data, solve_in_modes
from quenched.fields.model.components import ClassData, Components
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.modes import Modes
from quenched.fields.model.operators import Operator, Waves
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import ThinPlate, line_waves
from quenched.fields.practice.bands import Part, part_of_fit, thin
from quenched.fields.practice.search import climb, spread
from quenched.fields.practice.settings import pick
from quenched.fields.theory.laplace import laplace

POINTS, MODES = {1: 33, 2: 17, 3: 11}, {1: 10, 2: 6, 3: 4}
"""Points of each axis, and modes, by the number of columns on one grid; columns that are added are grids of one."""
MOST = 150
"""Coefficients of all columns and classes at most: columns that are added have fewer modes then, at least one."""
MARGIN, BEYOND = 0.1, 1.0
"""Share of the range of a column by which its axis goes beyond it, and ranges beyond which nothing changes any more."""
QUARTILES = 1.349
"""Distance of the quartiles of a Gaussian, in deviations."""
CONSTANT = 0.02
"""Inverse variance of constants: the log-odds of classes before any row."""
LINES = 10.0 ** np.arange(-4.0, 3.01, 0.5)
"""Strengths of straight lines that are tried: inverse variances of their mean square over the axis."""
BENDS = 10.0 ** np.arange(-5.0, 3.01, 0.5)
"""Strengths of what is left that are tried."""
COARSE = 4
"""Of the strengths every so many-th is tried first, so that the search begins near the best."""
AFFORDABLE = 3e7
"""Rows x the square of coefficients up to which every row that is asked about is added to the data."""
STEPS, CLOSE = 60, 1e-9
"""Newton steps at most with a row more, and the gain of the last one."""
STRIDE, LOST, NEGLIGIBLE = 2, 3.0, 1e-3
"""For bands strengths are weighed, every so many-th of those that can be tried, up to where the logarithm of the
evidence is so much below its best; and shares that are left out."""
DRAWS = 512
"""Points for the mean over a Gaussian of several log-odds."""


def Polynomial(grid: Grid, axis: Axis, degree: int, order: int = 2) -> Operator:
    r"""The mean square of a field's polynomial of one degree along an axis: $\tfrac12 a^2$.

    It is small on what `ThinPlate` and `Difference` of an order leave free. $a^2$ is the mean over the points of the
    square of the part of the field that is the orthogonal polynomial of this degree, summed over the other axes.

    Args:
        grid: where the fields live.
        axis: along which, with free ends.
        degree: of the polynomial, below the order.
        order: of the differences whose null space it is from.
    """
    order = checks.whole("order", order, least=1)
    degree = checks.whole("degree", degree, least=0)
    if degree >= order:
        raise InputError(f"Argument `degree` must be below the order {order}, but {degree} was given.")
    values = np.zeros(axis.points)
    values[degree] = 1 / (axis.points * grid.cell)
    return line_waves(grid, grid.place(axis), values, order)


@dataclasses.dataclass(frozen=True)
class Layout:
    r"""Where columns lie: positions from 0 to 1, a margin beyond the rows on both sides.

    Positions are linear in $\sinh^{-1}((x - c)/s)$ with the median $c$ and a robust deviation $s$ of a column: a few
    values far out do not push all others together.

    Attributes:
        centre, scale: $c$ and $s$.
        low: where each axis begins, in units of $\sinh^{-1}$.
        width: its length.
        joint: whether all columns are on one grid.
        grid: of the fields, classes last.
        modes: how many, of each axis.
    """

    centre: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    width: np.ndarray
    joint: bool
    grid: Grid
    modes: tuple[int, ...]

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray, classes: int, *, joint: bool, points: int | None) -> Layout:
        """For a table."""
        d = rows.shape[1]
        least, most = rows.min(axis=0), rows.max(axis=0)
        checks.inside("X", np.concatenate([least, most, most - least]), -checks.LARGEST, checks.LARGEST)
        lower, centre, upper = np.array([quantiles(x, weights, (0.25, 0.5, 0.75)) for x in rows.T]).T
        span = np.where(most > least, most - least, np.maximum(np.abs(most), 1.0))
        scale = np.where(upper > lower, (upper - lower) / QUARTILES, span / QUARTILES)
        least, most = np.arcsinh((least - centre) / scale), np.arcsinh((most - centre) / scale)
        span = np.where(most > least, most - least, 1.0)
        together = d if joint else 1
        count = points or POINTS[together]
        axes = [Axis(0, 1, points=count, tails=(0, 0), name=f"column {i}") for i in range(together)]
        given = axes if joint else [Components(d, "column"), *axes]
        some = MODES[together] if joint else max(2, min(MODES[1], MOST // (d * (classes - 1)) + 1))
        modes = (*((some,) * together if joint else (d, some)), classes)
        grid = Grid(given=given, over=[Components(classes, "class")])
        return cls(centre, scale, least - MARGIN * span, (1 + 2 * MARGIN) * span, joint, grid, modes)

    def place(self, rows: np.ndarray) -> np.ndarray:
        """Positions of rows; far beyond an axis they stay where they are."""
        bent = np.arcsinh((rows - self.centre) / self.scale)
        return np.clip((bent - self.low) / self.width, -BEYOND, 1 + BEYOND)

    def prior(self, lines: float, bends: float) -> Gaussian:
        """Smooth fields: strengths of straight lines and of what is left."""
        grid, axes = self.grid, self.grid.given if self.joint else self.grid.given[1:]
        bends = bends * float(np.prod([axis.length for axis in grid.axes]))  # by which `ThinPlate` divides
        if len(axes) == 1:
            K = lines * Polynomial(grid, axes[0], 1) + bends * ThinPlate(grid, 2, axes[0])
            columns = grid.given[0].points if len(grid.given) > 1 else 1  # each has a constant
            return Gaussian(K + CONSTANT * columns * Polynomial(grid, axes[0], 0))
        values = [np.array([CONSTANT, lines, *([0.0] * (axis.points - 2))]) for axis in axes]
        rough = [np.append([0.0, 0.0], ThinPlate(grid, 2, axis).values.ravel()[2:]) for axis in axes]  # pyright: ignore[reportAttributeAccessIssue]
        unit = 1 / (np.prod([axis.points for axis in axes]) * grid.cell)
        total = np.zeros([axis.points for axis in axes])
        for i, (value, bend) in enumerate(zip(values, rough, strict=True)):
            shape = [-1 if j == i else 1 for j in range(len(axes))]
            level = np.where(np.arange(axes[i].points) == 0, 0.0, value)
            total = total + (level * unit + bends * bend).reshape(shape)
        total.flat[0] = CONSTANT * unit
        return Gaussian(Waves(grid, total[..., None], (2,) * len(axes) + (None,)))


@dataclasses.dataclass(frozen=True, eq=False)
class Classes:
    """Fields of classes and the data they were learned from.

    Attributes:
        layout: where they live.
        fit: the fields of least energy.
        lines, bends: strengths.
        log_evidence: logarithm of the probability of the labels.
        labels: of the different rows `[n]`.
        weights: how many rows each stands for.
        weighed: fits at strengths that are likely, and the share of each.
    """

    layout: Layout
    fit: Fitted
    lines: float
    bends: float
    log_evidence: float
    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    weighed: tuple[tuple[Fitted, float], ...]

    @functools.cached_property
    def design(self) -> np.ndarray:
        """Modes at the rows it was learned from `[n, a]`."""
        return self.modes_at(self.rows)

    def modes_at(self, rows: np.ndarray) -> np.ndarray:
        """Modes of the inputs at some rows, in units of the columns `[n, a]`."""
        return self._hats(rows) @ self.fit.modes.given  # pyright: ignore[reportOptionalMemberAccess]

    def _hats(self, rows: np.ndarray) -> Any:
        """The matrix that takes fields at the points to some rows, in units of the columns."""
        data = ClassData(points=self.layout.place(rows), labels=np.zeros(len(rows)), sums=not self.layout.joint)
        return data.placed(self.layout.grid).design(self.layout.grid.shape)

    @functools.cached_property
    def state(self) -> _State:
        """The maximum of the data alone, in coefficients."""
        modes: Any = self.fit.modes
        prior = self.layout.grid.cell * modes.values
        c = modes.coefficients(self.fit.field).reshape(modes.values.shape)
        return _State.at(self.design, self.labels, self.weights, modes.over, prior, c)

    def gaussian(self, key: Key, count: int) -> np.ndarray:
        """Fields from Laplace's Gaussians, in even steps of the shares of their strengths `[count, *grid]`."""
        at = pick(np.array([share for _, share in self.weighed]), (np.arange(count) + 0.5) / count)
        fields = np.empty((count, *self.layout.grid.shape))
        for j, times in zip(*np.unique(at, return_counts=True), strict=True):
            fit = self.weighed[j][0]
            drawn = part_of_fit(fit, fit.factor, 1.0).gaussian(jax.random.fold_in(key, int(j)), int(times))
            fields[at == j] = drawn.reshape(times, *fields.shape[1:])
        return fields

    def parts(self) -> list[Part]:
        """Posteriors of the fields at a few strengths."""
        shares = thin(np.array([share for _, share in self.weighed]))
        return [part_of_fit(self.weighed[i][0], self.weighed[i][0].factor, share) for i, share in shares.items()]

    def drawn(self, fields: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Probabilities of the classes at some rows, for drawn fields `[draws, n, k]`."""
        hats = self._hats(rows)
        g = hats @ np.moveaxis(fields.reshape(len(fields), hats.shape[1], -1), 0, 1).reshape(hats.shape[1], -1)
        return special.softmax(np.moveaxis(g.reshape(len(rows), len(fields), -1), 0, 1), axis=2)

    @property
    def exact(self) -> bool:
        """Whether probabilities are ratios of two integrals; otherwise means over a Gaussian."""
        return len(self.labels) * self.state.c.size**2 <= AFFORDABLE

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Of each class for each row `[n, k]`."""
        B = self.modes_at(rows)
        every, where = np.unique(B, axis=0, return_inverse=True)
        found = np.array([self._ratios(b) for b in every]) if self.exact else self.state.mean(every)
        return found[where.ravel()]

    def _ratios(self, b: np.ndarray) -> np.ndarray:
        """Probabilities of the classes of one row."""
        state = self.state
        logs = [state.with_row(b, k).log_integral - state.log_integral for k in range(len(state.over))]
        return special.softmax(logs)

    def without(self, i: int) -> np.ndarray:
        """Probabilities of the classes of one of its rows, had it not been seen with its class once."""
        state, one = self.state, np.zeros(len(self.labels))
        one[i] = min(1.0, self.weights[i])
        less = dataclasses.replace(state, weights=state.weights - one).settle()
        logs = [less.with_row(self.design[i], k).log_integral for k in range(len(state.over))]
        return special.softmax(logs)


@dataclasses.dataclass(frozen=True, eq=False)
class _State:
    """Data, prior and the coefficients of least energy, with what is needed of the Hessian there."""

    B: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    over: np.ndarray
    prior: np.ndarray
    c: np.ndarray
    energy: float = np.nan
    lower: np.ndarray | None = None

    @classmethod
    def at(cls, *given: np.ndarray) -> _State:
        """The minimum near some coefficients."""
        B, labels, weights, over, prior, c = given
        return cls(B, labels, weights, over, prior, c).settle()

    @property
    def log_integral(self) -> float:
        """Of the posterior over the coefficients, up to a constant that only the prior decides."""
        return -self.energy - float(np.sum(np.log(np.diag(self.lower))))  # pyright: ignore[reportArgumentType, reportCallIssue]

    def _look(self, c: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Energy, slope, and the probabilities of the classes at the rows."""
        g = self.B @ (c @ self.over.T)
        g = g - g.max(axis=1, keepdims=True)
        P = np.exp(g)
        total = P.sum(axis=1)
        P /= total[:, None]
        at, off = (np.arange(len(g)), self.labels), P.copy()
        off[at] -= 1
        energy = float(self.weights @ (np.log(total) - g[at]) + 0.5 * np.sum(self.prior * c**2))
        return energy, self.B.T @ ((self.weights[:, None] * off) @ self.over) + self.prior * c, P

    def _hessian(self, P: np.ndarray) -> np.ndarray:
        a, b = self.c.shape
        seen = P @ self.over
        H = np.empty((a, b, a, b))
        for i in range(b):
            for j in range(i, b):
                bend = self.weights * (P @ (self.over[:, i] * self.over[:, j]) - seen[:, i] * seen[:, j])
                H[:, i, :, j] = self.B.T @ (bend[:, None] * self.B)
                H[:, j, :, i] = H[:, i, :, j].T
        H = H.reshape(a * b, a * b)
        H.flat[:: len(H) + 1] += self.prior.ravel()
        return H

    def settle(self) -> _State:
        """Newton's method from here."""
        c = self.c
        energy, slope, P = self._look(c)
        lower = np.eye(c.size)
        for _ in range(STEPS):
            lower = linalg.cholesky(self._hessian(P), lower=True, check_finite=False)
            step = linalg.cho_solve((lower, True), slope.ravel(), check_finite=False).reshape(c.shape)
            gain, length = float(np.sum(step * slope)), 1.0
            moved = self._look(c - step)
            while not moved[0] <= energy - 1e-4 * length * gain + CLOSE and length > CLOSE:
                length /= 2
                moved = self._look(c - length * step)
            c, (energy, slope, P) = c - length * step, moved
            if gain < CLOSE:
                break
        return dataclasses.replace(self, c=c, energy=energy, lower=lower)

    def with_row(self, b: np.ndarray, k: int) -> _State:
        """With one row more."""
        return dataclasses.replace(
            self,
            B=np.concatenate([self.B, b[None]]),
            labels=np.append(self.labels, k),
            weights=np.append(self.weights, 1.0),
        ).settle()

    def mean(self, B: np.ndarray) -> np.ndarray:
        """Mean probabilities of the classes over the Gaussian about the minimum, at some rows."""
        b = self.c.shape[1]
        m, out = B @ self.c, []
        z, w = _gaussian_points(b)
        for x, centre in zip(B, m, strict=True):
            rows = np.kron(x[:, None], np.eye(b))  # [a b, b]
            half = linalg.solve_triangular(self.lower, rows, lower=True, check_finite=False)
            root = np.linalg.cholesky(half.T @ half + CLOSE * np.eye(b))
            out.append(w @ special.softmax((centre + z @ root.T) @ self.over.T, axis=1))
        return np.array(out)


@functools.lru_cache(maxsize=16)
def _gaussian_points(b: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights for means over a standard Gaussian in b dimensions."""
    if b == 1:
        x, w = np.polynomial.hermite_e.hermegauss(40)
        return x[:, None], w / w.sum()
    from scipy.stats import qmc

    z = special.ndtri(qmc.Sobol(b, scramble=True, rng=0).random(DRAWS // 2))
    return np.concatenate([z, -z]), np.full(DRAWS, 1 / DRAWS)


def learn(
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    classes: int,
    *,
    joint: bool,
    points: int | None = None,
    strength: tuple[float, float] | None = None,
) -> Classes:
    """Fields of classes, with the strengths of most evidence.

    Args:
        rows: inputs `[n, d]`.
        labels: classes, from 0.
        weights: how many equal rows each stands for, all positive.
        classes: how many.
        joint: whether all columns are on one grid.
        points: of each axis.
        strength: of straight lines and of what is left; by default those of most evidence.
    """
    both, where = np.unique(np.column_stack([rows, labels]), axis=0, return_inverse=True)
    rows, labels = both[:, :-1], both[:, -1].astype(int)
    weights = np.bincount(where.ravel(), weights)
    layout = Layout.of(rows, weights, classes, joint=joint, points=points)
    link = Logits(layout.grid)
    data = ClassData(points=layout.place(rows), labels=labels, weights=weights, sums=not joint).prepared(layout.grid)
    tried: dict[tuple[float, float], tuple[float, Fitted]] = {}

    def evidence(lines: float, bends: float) -> float:
        if (lines, bends) not in tried:
            prior = layout.prior(lines, bends)
            problem = Problem(data, link, prior)
            modes = _ascending(prior.operator.modes(layout.modes).without_constant())
            fit = solve_in_modes(problem, moved_by_data(problem, modes))
            tried[lines, bends] = laplace(problem, fit).log_evidence, fit
        return tried[lines, bends][0]

    if strength is None:
        far_apart = itertools.product(LINES[::COARSE], BENDS[::COARSE])  # evidence can have several maxima
        lines, bends = max(((float(a), float(b)) for a, b in far_apart), key=lambda pair: evidence(*pair))
        for _ in range(2):  # along one strength, then along the other, and again
            lines = climb(LINES, lines, lambda value, b=bends: evidence(value, b))
            bends = climb(BENDS, bends, lambda value, a=lines: evidence(a, value))
    else:
        lines, bends = strength
        evidence(lines, bends)
    log_evidence, fit = tried[lines, bends]
    found = {(lines, bends): log_evidence}
    if strength is None:
        a, b = (values[int(np.argmin(np.abs(values - best))) % STRIDE :: STRIDE]
                for values, best in ((LINES, lines), (BENDS, bends)))  # fmt: skip
        found = spread(a, b, (lines, bends), evidence, LOST)
    shares = special.softmax(list(found.values())).tolist()
    weighed = tuple((tried[pair][1], share) for pair, share in zip(found, shares, strict=True) if share > NEGLIGIBLE)
    return Classes(layout, fit, lines, bends, log_evidence, rows, labels, weights, weighed)


def quantiles(values: np.ndarray, weights: np.ndarray, levels: tuple[float, ...]) -> list[float]:
    """Values below which a share of the rows lies."""
    at = np.argsort(values, kind="stable")
    total = np.cumsum(weights[at])
    return [float(values[at][np.searchsorted(total, level * total[-1])]) for level in levels]


def _ascending(modes: Modes) -> Modes:
    """The smoothest modes of the inputs first."""
    order = np.argsort(modes.values[:, 0], kind="stable")
    return Modes(modes.grid, modes.values[order], modes.given[:, order], modes.over)
