r"""Whether rows lie as the model of classes and outliers says: without that, the share of outliers means nothing.

Three things are asked, each beside draws from the fitted model.

*Good rows* that the fit has not seen: a row of class $k$ has a distance $d$ from $c_k$, and the share $u = F_k(d)$ of
good rows that the model expects nearer is uniform between 0 and 1 if the classes have the assumed shape; the largest
gap between the distribution of $u$ and the straight line is the statistic of Kolmogorov and Smirnov. *Outliers* that
the fit has not seen lie anywhere, whatever their label; if they lie near the centre of their own class more often than
the model expects, they are tails of the classes. *All rows* of a class have products of columns, about its centre and
in its units, that the model knows; columns that belong together, or classes that differ in their widths, have others.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from quenched.outliers.learner.fit import Fitted

DRAWS = 4000
"""Draws from the model for each class."""
JUDGED = 2000
"""Rows that are judged at most: these show every misfit that matters."""
GAP, EXCESS, CHANGE = 2.0, 2.5, 3.0
"""What may be chance: the largest gap, times the root of the number of good rows; the excess of outliers near the
centre of their class and the change of the products of columns, in standard deviations."""
COLUMNS, SAMPLES = 100, 30
"""Columns whose products are looked at, at most, and samples of the model that tell what chance does."""


class Places(NamedTuple):
    """Where rows lie, beside where the model expects them; `[n]` each."""

    good: np.ndarray  # how probable it is that the row is no outlier
    nearer: np.ndarray  # the share of good rows of its class that the model expects nearer to the centre
    excess: np.ndarray  # the row as an outlier that lies near its own class, less what the model expects of outliers
    variance: np.ndarray  # of that, by the model


class Goodness(NamedTuple):
    """How well the model of a fit describes rows."""

    gap: float = 0.0
    excess: float = 0.0
    change: float = 0.0

    @property
    def misfit(self) -> str:
        """What the model does not describe, for a reader; empty if all that is seen may be chance."""
        if self.excess > EXCESS:
            return "rows that look like outliers lie near their own class more often than outliers would"
        if self.gap > GAP or self.change > CHANGE:
            return "rows do not have the assumed shape about the centres of their classes"
        return ""


def find_places(fitted: Fitted, X: np.ndarray, codes: np.ndarray, generator: np.random.Generator) -> Places:
    """Place rows beside draws from the model of a fit to others.

    Args:
        fitted: a fit to other rows.
        X: rows `[n, N]`.
        codes: the numbers of their classes `[n]`.
        generator: of the draws.
    """
    found = Places(*np.zeros((4, len(X))))
    for k in np.unique(codes):
        own, drawn = codes == k, _draw(fitted, int(k), generator)
        good, distance, near = _look(fitted, X[own], k)
        expected, reach, often = _look(fitted, drawn, k)
        order = np.argsort(reach)
        share = np.append(0.0, np.cumsum(expected[order])) / max(expected.sum(), 1e-300)
        usual = ((1 - expected) @ often) / max(float(np.sum(1 - expected)), 1e-300)
        found.good[own], found.nearer[own] = good, share[np.searchsorted(reach[order], distance)]
        found.excess[own] = (1 - good) * (near - usual)
        found.variance[own] = np.mean(np.square((1 - expected) * (often - usual)))
    return found


def _draw(fitted: Fitted, k: int, generator: np.random.Generator, number: int = DRAWS) -> np.ndarray:
    """Rows with the label of a class, outliers among them, as the model has them."""
    N, shapes = fitted.centres.shape[1], fitted.shapes
    bad = int(generator.binomial(number, fitted.outlier_fraction))
    # The centre itself is known as well as the selected rows of its class tell it.
    known = max(float(fitted.shares[k] * fitted.selected.sum()), 1.0)
    good = ((1 + 1 / known) / fitted.gamma) ** 0.5 * generator.standard_normal((number - bad, N))
    far = (fitted.spread / fitted.gamma) ** 0.5 * generator.standard_normal((bad, N))
    if shapes is not None:
        good, far = good @ shapes.inverses[k], far @ shapes.inverses[-1]
    return np.concatenate([fitted.centres[k] + good, fitted.midpoint + far])


def _look(fitted: Fitted, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rows with the label of a class: are they good, how far from its centre, and is it the nearest."""
    ratios = fitted.log_ratios(X)
    good = 1 - fitted.outlier_probability(X, np.full(len(X), fitted.classes[k]))
    distance = np.square(_into(fitted, X, k)).sum(axis=1)
    return good, distance, np.argmax(ratios, axis=1) == k


def find_change(
    fitted: Fitted, X: np.ndarray, codes: np.ndarray, omega: np.ndarray, generator: np.random.Generator
) -> float:
    """How far the products of columns are from those of the model, in standard deviations of samples of the model.

    Args:
        fitted: the fit to these rows.
        X: rows `[n, N]`.
        codes: the numbers of their classes `[n]`.
        omega: their weights `[n]`; in no order, as the outliers of a sample are its last rows.
        generator: of the samples.
    """
    columns, seen, usual = generator.permutation(X.shape[1])[:COLUMNS], 0.0, np.zeros(SAMPLES)
    for k in np.unique(codes).tolist():
        own = codes == k
        n, weights = int(own.sum()), omega[own] / omega[own].sum()
        expected = _products(_into(fitted, _draw(fitted, k, generator), k)[:, columns])
        samples = (_draw(fitted, k, generator, n) for _ in range(SAMPLES))
        seen_here, *usual_here = (
            n * np.sum(np.square(_products(_into(fitted, rows, k)[:, columns], weights) - expected))
            for rows in itertools.chain([X[own]], samples)
        )
        seen, usual = seen + seen_here, usual + usual_here
    return float((seen - usual.mean()) / max(usual.std(), 1e-300))


def _products(U: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean products of columns."""
    return U.T @ U / len(U) if weights is None else (U * weights[:, None]).T @ U


def _into(fitted: Fitted, X: np.ndarray, k: int) -> np.ndarray:
    """Rows about the centre of a class, in its units."""
    Z = X - fitted.centres[k]
    return Z if fitted.shapes is None else fitted.shapes.into(Z, k)


def judge(places: Places, omega: np.ndarray) -> Goodness:
    """Gap and excess of all rows together, by their weights."""
    order = np.argsort(places.nearer)
    u, w = places.nearer[order], (omega * places.good)[order]
    total = float(w.sum())
    if total <= 0:
        return Goodness()
    above = np.cumsum(w) / total
    gap = max(float(np.max(above - u)), float(np.max(u - above + w / total)))
    deviation = float(np.sqrt(np.square(omega) @ places.variance))
    excess = float(omega @ places.excess) / deviation if deviation > 0 else 0.0
    return Goodness(gap * total / float(np.sqrt(np.sum(w**2))), excess)
