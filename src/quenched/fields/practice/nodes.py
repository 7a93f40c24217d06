r"""The density of one column given those before it: what a tree of fields is made of.

A number $x$ becomes the score $z = \Phi^{-1}(F(x))$ of its own density, that of `quenched.fields.practice.density`, so
that alone it is a standard Gaussian. Given others, $z = a \cdot \beta + s e$: a linear function of the scores before
it, with a Gaussian prior whose width has the most evidence, and what it leaves (see
`quenched.fields.practice.scores`). What is left is Gaussian, or has a density that is one field, or one that varies
with the parent: for a number the conditional field of `quenched.fields.practice.conditional`, for a category one field
for each, of one strength. The most probable is kept, and if none is more probable than the column alone, that. One row
in n + 1 is unlike all before: so large is the share of a wide density that is mixed with each.

A category has shares: counted, given another category counted for each, given a number the classes field of
`quenched.fields.practice.classification`.
"""

from __future__ import annotations

import abc
import dataclasses

import numpy as np
from scipy import special

from quenched.fields.model.grid import Grid
from quenched.fields.practice import classification, conditional, density, regression
from quenched.fields.practice.scores import WIDE, Line, Linear, invert, smooth, wider

BINS = 8
"""Of each column, where dependence is looked for."""
DOUBT = 0.05
"""A field that varies with the parent is tried if a table of counts is less probable than this without dependence."""
FEWEST = 40
"""Rows below which it is not."""
ALPHA = 0.5
"""Rows of each category before any is seen."""
TINY, LEAST = 1e-300, -740.0
"""The least density of which a logarithm is taken, and the least logarithm."""
HALF_LOG = 0.5 * np.log(2 * np.pi)
PLANE, STEP = (16, 100), 64.0
"""Points of conditional fields, and how their strengths fall."""
WORTH = 1.0
"""What the logarithm of the evidence must gain by a parent."""


class Rest(abc.ABC):
    """The density of what a linear function leaves, given the parent."""

    log_evidence: float

    @abc.abstractmethod
    def log_density(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of each row."""

    @abc.abstractmethod
    def variance(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""

    @abc.abstractmethod
    def draw(self, parent: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """What has some share below."""


@dataclasses.dataclass(frozen=True)
class Bell(Rest):
    """A standard Gaussian."""

    log_evidence: float

    def log_density(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of each row."""
        return -0.5 * e**2 - HALF_LOG

    def variance(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        return np.zeros(len(e))

    def draw(self, parent: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """What has some share below."""
        return np.where(below < above, special.ndtri_exp(below), -special.ndtri_exp(above))


@dataclasses.dataclass(frozen=True)
class Same(Rest):
    """The same for every parent."""

    line: Line

    @property
    def log_evidence(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the line."""
        return self.line.log_evidence

    def log_density(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of each row."""
        return self.line.log_density(e)

    def variance(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        return self.line.variance(e)

    def draw(self, parent: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """What has some share below."""
        P = np.exp(self.line.log_values)[None]
        return invert(self.line.axis, np.broadcast_to(P, (len(below), P.shape[1])), below, above)


@dataclasses.dataclass(frozen=True)
class Varied(Rest):
    """A conditional field of the parent's score."""

    field: conditional.Conditional
    log_evidence: float
    deviation: np.ndarray

    @classmethod
    def learn(cls, e: np.ndarray, parent: np.ndarray, weights: np.ndarray) -> Varied:
        """From what is left of rows."""
        grid = regression.grid_for(parent[:, None])
        centre = regression.learn(grid, parent[:, None], e, weights, order=2)
        found = conditional.learn(centre, parent, e, weights, points=PLANE, order=1, step=STEP, quick=True)
        miss = e - centre.at(parent[:, None])
        likelihood = -0.5 * weights.sum() * np.log(2 * np.pi * centre.noise) - 0.5 * weights @ miss**2 / centre.noise
        mixture = found.mixture
        kept = np.flatnonzero(mixture.shares > 1e-2)
        p = mixture.shares[kept] / mixture.shares[kept].sum()
        logs = np.stack([np.log(np.maximum(mixture.trials[i].fit.density, TINY)) for i in kept])
        mean = np.tensordot(p, logs, axes=1)
        deviation = np.sqrt(
            np.tensordot(p, np.stack([mixture.trials[i].variance() for i in kept]) + (logs - mean) ** 2, axes=1)
        )
        return cls(found, float(found.log_evidence + centre.log_evidence - likelihood), deviation)

    def log_density(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of each row."""
        return np.maximum(self.field.log_density(parent, e), LEAST)

    def variance(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        field = self.field
        rows = np.stack([field._near(parent), (e - field.centre.at(parent[:, None])) / field._spread(parent)], axis=1)
        return (field.grid.interpolation(rows) @ self.deviation.ravel()) ** 2

    def draw(self, parent: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """What has some share below."""
        field = self.field
        r = invert(field.grid.over[0], field._between(parent) @ field.density, below, above)
        return field.centre.at(parent[:, None]) + field._spread(parent) * r


@dataclasses.dataclass(frozen=True)
class Split(Rest):
    """A field for each category of the parent, all of one strength."""

    grid: Grid
    log_values: np.ndarray
    deviations: np.ndarray
    log_evidence: float

    @classmethod
    def learn(cls, e: np.ndarray, parent: np.ndarray, weights: np.ndarray, levels: int) -> Split:
        """From what is left of rows."""
        grid = density.grid_for(e[:, None], weights, bounds=[(None, None)], points=[200], extend=False)
        codes = parent.astype(int)
        few = 1e-3 * grid.weights * np.exp(-0.5 * grid.axes[0].coordinates ** 2)  # a category may have no rows
        counts = [few + grid.counts(e[codes == k, None], weights[codes == k]) for k in range(levels)]
        return cls(grid, *smooth(grid, counts))

    def log_density(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of each row."""
        found, codes = np.empty(len(e)), parent.astype(int)
        for k in np.unique(codes):
            found[codes == k] = self.grid.log_values(self.log_values[k], e[codes == k, None])
        return found

    def variance(self, e: np.ndarray, parent: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        found, codes = np.empty(len(e)), parent.astype(int)
        for k in np.unique(codes):
            found[codes == k] = np.interp(e[codes == k], self.grid.axes[0].coordinates, self.deviations[k]) ** 2
        return found

    def draw(self, parent: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """What has some share below."""
        return invert(self.grid.axes[0], np.exp(self.log_values)[parent.astype(int)], below, above)


@dataclasses.dataclass(frozen=True)
class Node(abc.ABC):
    """A column given those before it.

    Attributes:
        column: which.
        parent: in the tree; None if it depends on no other.
        log_evidence: logarithm of the probability of its values.
        gain: what the logarithm gains by the others.
    """

    column: int
    parent: int | None
    log_evidence: float
    gain: float

    @abc.abstractmethod
    def log_density(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Of each row."""

    @abc.abstractmethod
    def variance(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""

    @abc.abstractmethod
    def draw(self, rows: np.ndarray, scores: np.ndarray, random: np.random.RandomState) -> None:
        """Write values, and their scores, into rows that hold the columns before it."""


@dataclasses.dataclass(frozen=True)
class Number(Node):
    """A column of numbers: a line alone, and what others say of its score; `doubt` is the share unlike the rest."""

    line: Line
    linear: Linear | None = None
    rest: Rest | None = None
    doubt: float = 0.0

    def log_density(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Of each row."""
        alone = self.line.log_density(rows[:, self.column])
        if self.linear is None or self.rest is None:
            return alone
        z = scores[:, self.column]
        mean, scale = self.linear.spread(scores)
        e = (z - mean) / scale
        given = self.rest.log_density(e, self._parent(rows, scores)) + np.log1p(-self.doubt)
        given = np.logaddexp(given, wider(e) + np.log(self.doubt)) - np.log(scale)
        return alone + 0.5 * z**2 + HALF_LOG + given

    def variance(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        alone = self.line.variance(rows[:, self.column])
        if self.linear is None or self.rest is None:
            return alone
        mean, scale = self.linear.spread(scores)
        return alone + self.rest.variance((scores[:, self.column] - mean) / scale, self._parent(rows, scores))

    def draw(self, rows: np.ndarray, scores: np.ndarray, random: np.random.RandomState) -> None:
        """Write values into rows that hold the columns before it."""
        u = random.random_sample(len(rows))
        with np.errstate(divide="ignore"):
            below, above = np.log(u), np.log1p(-u)
        if self.linear is None or self.rest is None:
            z = special.ndtri(u)
        else:
            mean, scale = self.linear.spread(scores)
            e = self.rest.draw(self._parent(rows, scores), below, above)
            other = random.random_sample(len(rows)) < self.doubt
            z = mean + scale * np.where(other, random.logistic(scale=WIDE, size=len(rows)), e)
        scores[:, self.column], rows[:, self.column] = z, self.line.value(z)

    def _parent(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """What the field depends on."""
        if self.parent is None:
            return np.zeros(len(rows))
        return rows[:, self.parent] if isinstance(self.rest, Split) else scores[:, self.parent]


@dataclasses.dataclass(frozen=True)
class Category(Node):
    """A column of categories: shares at every place of the parent."""

    places: np.ndarray | None
    shares: np.ndarray
    weight: np.ndarray

    def _at(self, rows: np.ndarray, scores: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What is known at the places, for each row `[n, levels]`."""
        if self.parent is None:
            return np.broadcast_to(values[0], (len(rows), values.shape[1]))
        if self.places is None:
            return values[rows[:, self.parent].astype(int)]
        z = np.clip(scores[:, self.parent], self.places[0], self.places[-1])
        j = np.clip(np.searchsorted(self.places, z, side="right") - 1, 0, len(self.places) - 2)
        t = ((z - self.places[j]) / (self.places[j + 1] - self.places[j]))[:, None]
        return (1 - t) * values[j] + t * values[j + 1]

    def log_density(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Of each row."""
        at = rows[:, self.column].astype(int)
        return np.log(self._at(rows, scores, self.shares)[np.arange(len(rows)), at])

    def variance(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        at = rows[:, self.column].astype(int)
        p = self._at(rows, scores, self.shares)[np.arange(len(rows)), at]
        n = self._at(rows, scores, self.weight[:, None])[:, 0]
        return (1 - p) / (p * n + 1)

    def draw(self, rows: np.ndarray, scores: np.ndarray, random: np.random.RandomState) -> None:
        """Write values into rows that hold the columns before it."""
        below = np.cumsum(self._at(rows, scores, self.shares), axis=1)
        u = random.random_sample(len(rows))[:, None] * below[:, -1:]
        rows[:, self.column] = np.sum(below <= u, axis=1)


def count(codes: np.ndarray, weights: np.ndarray, levels: int) -> tuple[np.ndarray, float]:
    """Shares of categories with their prior, and the logarithm of the evidence."""
    seen = np.bincount(codes, weights, levels)
    evidence = special.gammaln(levels * ALPHA) - special.gammaln(seen.sum() + levels * ALPHA)
    evidence += np.sum(special.gammaln(seen + ALPHA)) - levels * special.gammaln(ALPHA)
    return (seen + ALPHA) / (seen + ALPHA).sum(), float(evidence)


def information(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Mutual information of two columns of codes, less what chance gives, and how probable so much is by chance."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), weights)
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(rows, columns) / n
    there = table > 0
    found = float(np.sum(table[there] * np.log(table[there] / expected[there])))
    freedom = max((np.sum(rows > 0) - 1) * (np.sum(columns > 0) - 1), 1)
    return (found - freedom / 2) / n, float(special.chdtrc(freedom, 2 * found))


def cut(x: np.ndarray, weights: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Numbers as codes of bins of equal weight."""
    order = np.argsort(x, kind="stable")
    place = np.empty(len(x))
    total = np.cumsum(weights[order])
    place[order] = (total - weights[order] / 2) / total[-1]
    return np.minimum((place * bins).astype(int), bins - 1)


def learn_number(
    column: int,
    parent: int | None,
    before: list[int],
    line: Line,
    rows: np.ndarray,
    scores: np.ndarray,
    weights: np.ndarray,
    levels: list[int],
) -> Number:
    """A column of numbers given those before it, if that is more probable than alone.

    Args:
        column: which.
        parent: on which its field may depend.
        before: columns that are drawn before it.
        line: its density alone.
        rows: the table, categories as codes.
        scores: of the columns of numbers.
        weights: of the rows.
        levels: categories of each column, 0 for numbers.
    """
    z = scores[:, column]
    alone, n = float(-weights @ (0.5 * z**2 + HALF_LOG)), float(weights.sum())
    best = Number(column, None, line.log_evidence, 0.0, line)
    if parent is None:
        return best
    linear = Linear.learn(tuple(i for i in before if not levels[i]), scores, z, weights)
    e = linear.left(scores, z)
    units = linear.penalty - 0.5 * weights.sum() * np.log(linear.noise)
    tried: list[Rest] = [Bell(float(-weights @ (0.5 * e**2 + HALF_LOG))), Same(Line.learn(e, weights, simple=True))]
    if levels[parent]:
        tried.append(Split.learn(e, rows[:, parent], weights, levels[parent]))
    elif weights.sum() >= FEWEST:
        chance = information(cut(e, weights), cut(scores[:, parent], weights), weights)[1]
        if chance < DOUBT:
            varied, (mean, scale) = Varied.learn(e, scores[:, parent], weights), linear.spread(scores)
            as_new = (z - mean) / scale
            # So narrow that rows miss it in the units of new rows, which differ by their leverages.
            if weights @ varied.log_density(as_new, scores[:, parent]) < varied.log_evidence:
                varied = Varied.learn(as_new, scores[:, parent], weights)
            tried.append(varied)
    for rest in tried:
        gain = rest.log_evidence + units - alone
        if gain > best.gain + WORTH:
            best = Number(column, parent, line.log_evidence + gain, gain, line, linear, rest, 1 / (n + 1))
    return best


def learn_category(
    column: int,
    parent: int | None,
    rows: np.ndarray,
    scores: np.ndarray,
    weights: np.ndarray,
    levels: list[int],
) -> Category:
    """A column of categories given its parent, if that is more probable than alone."""
    codes, k = rows[:, column].astype(int), levels[column]
    shares, alone = count(codes, weights, k)
    best = Category(column, None, alone, 0.0, None, shares[None], np.array([weights.sum()]))
    if parent is None or (not levels[parent] and len(np.unique(codes)) < k):  # a cluster without some of them
        return best
    if levels[parent]:
        given = rows[:, parent].astype(int)
        parts = [count(codes[given == j], weights[given == j], k) for j in range(levels[parent])]
        gain = sum(part[1] for part in parts) - alone
        table, n = np.stack([part[0] for part in parts]), np.bincount(given, weights, levels[parent])
        places = None
    else:
        z = scores[:, parent]
        found = classification.learn(z[:, None], codes, weights, k, joint=True)
        gain = found.log_evidence - alone
        places = np.linspace(z.min(), z.max(), 33)
        table = found.probabilities(places[:, None])
        near = np.exp(-0.5 * ((z[:, None] - places) / 0.3) ** 2)
        n = weights @ near
    if gain <= WORTH:
        return best
    return Category(column, parent, alone + gain, gain, places, table, n)
