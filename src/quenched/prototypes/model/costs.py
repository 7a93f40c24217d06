r"""Rules that minimise an energy of all rows: generalised LVQ, with a learned metric or without, and robust soft LVQ.

Setting: rows $x$ with classes $\sigma$, and $K$ prototypes $w_S$ with labels. A rule says the energy of a row by its
squared distances $d_S$ from the prototypes, and which of them are of its class; that of the table is the mean over rows

$$E = \langle \ell(d_1, \dots, d_K;\, \sigma) \rangle,\quad d_S = |\Omega (x - w_S)|^2,$$

with $\Omega = I$ unless the rule learns it. The learner does not take examples one at a time but follows the slope of
$E$ to a minimum. There is no theory of these rules for $N \to \infty$ here.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from scipy.special import expit, logsumexp

from quenched.core import checks
from quenched.core.types import InputError, Real, label_tuple

Slopes = tuple[np.ndarray, np.ndarray]
"""The energy of each row `[n]`, and its derivatives by the squared distances `[n, K]`."""


class Cost(checks.Declared):
    r"""An energy of all rows that the prototypes minimise. To add one, subclass and say `energy`:

        class Hinge(prototypes.Cost):
            def energy(self, d, own, scale):
                ...

    A rule with `learns_metric = True` in its class body learns the metric, too. Fields `rank` and `stiffness` are read
    as in `GMLVQ`, a field `anchor` as in `RSLVQ`. `steps` in the class body is how many steps of the descent are made
    unless more or fewer are asked for.

    Attributes:
        labels: the label of each prototype; default one for each class of the law.
    """

    labels: tuple[int, ...] | None = eqx.field(converter=label_tuple, static=True, default=None)
    learns_metric: ClassVar[bool] = False
    steps: ClassVar[int] = 100

    def __check_init__(self):
        if self.labels is not None and len(self.labels) < 2:
            raise InputError(f"Argument `labels` must name at least two prototypes, but {self.labels} was given.")

    @abc.abstractmethod
    def energy(self, d: np.ndarray, own: np.ndarray, scale: float) -> Slopes:
        """The energies of rows and their derivatives by the squared distances.

        Args:
            d: squared distances `[n, K]`.
            own: whether row and prototype have the same class `[n, K]`; for each row some have, and some have not.
            scale: mean squared distance of the rows from the nearest prototype of their class, at the start.
        """

    def prototypes(self, law: Any) -> tuple[int, ...]:
        """The labels of the prototypes in this world."""
        return tuple(dict.fromkeys(law.mixture().labels)) if self.labels is None else self.labels


class GLVQ(Cost):
    r"""Generalised LVQ: how much nearer the own class is than the others, softly counted.

    $$\ell = \frac{1}{1 + e^{-\beta\mu}},\quad \mu = \frac{d_+ - d_-}{d_+ + d_-}$$

    where $d_+$ is the squared distance from the nearest prototype of the row's class, $d_-$ from the nearest of any
    other. A row is right if $\mu < 0$; for large $\beta$ the energy is the number of errors.

    Attributes:
        steepness: $\beta$.
    """

    steepness: Real = checks.declare(15.0)

    def energy(self, d: np.ndarray, own: np.ndarray, scale: float) -> Slopes:
        """The energies of rows and their derivatives by the squared distances."""
        return count_softly(d, own, float(self.steepness))


class GMLVQ(Cost):
    r"""Generalised LVQ that learns its metric, $d_S = |\Omega(x - w_S)|^2$, with the prototypes.

    The energy is that of `GLVQ` plus

    $$\kappa\, \frac{N^2}{n} \Big[ \log \mathrm{mean}(\lambda) - \mathrm{mean}(\log \lambda) \Big],$$

    where $\lambda$ are the eigenvalues of $\Omega\Omega^T$ and $n$ the number of rows: it vanishes for a metric
    without preferences, is infinite where a direction is lost, and counts the less the more rows there are beside the
    $N^2$ entries of a metric. The scale of $\Omega$ does not matter; it is given with
    $\mathrm{tr}\,\Omega^T\Omega = N$. The descent stops after few steps: more of them cost time and find no more
    classes of new rows.

    Attributes:
        rank: rows of $\Omega$, at most $N$; default $N$.
        steepness: $\beta$, as in `GLVQ`.
        stiffness: $\kappa$; zero lets the metric do what it likes.
    """

    rank: int | None = eqx.field(static=True, default=None)
    steepness: Real = checks.declare(2.0)
    stiffness: Real = checks.declare(0.01, checks.not_negative)
    learns_metric: ClassVar[bool] = True
    steps: ClassVar[int] = 30

    def __check_init__(self):
        if self.rank is not None:
            checks.whole("rank", self.rank, least=1)

    def energy(self, d: np.ndarray, own: np.ndarray, scale: float) -> Slopes:
        """The energies of rows and their derivatives by the squared distances."""
        return count_softly(d, own, float(self.steepness))


class RSLVQ(Cost):
    r"""Robust soft LVQ: the class of each row shall be probable, when prototypes are centres of equal Gaussian clouds.

    $$\ell = -\log \frac{\sum_{S \in \sigma} e^{-d_S/2v}}{\sum_S e^{-d_S/2v}}$$

    Classes that can be told apart perfectly would drive the prototypes to infinity. So there is a pull to where they
    began, $\frac{a}{2n} \sum_S |w_S - w_S^0|^2 / u^2$, added to the energy of the table; $n$ is the number of rows and
    $u^2$ the mean squared distance of a row, in one column, from the nearest prototype of its class.

    Attributes:
        width: the variance $v$ of a cloud, in units of the mean squared distance of the rows from the nearest prototype
            of their class at the start.
        anchor: $a$.
    """

    width: Real = checks.declare(1.0)
    anchor: Real = checks.declare(0.03, checks.not_negative)

    def energy(self, d: np.ndarray, own: np.ndarray, scale: float) -> Slopes:
        """The energies of rows and their derivatives by the squared distances."""
        T = 2 * float(self.width) * scale
        logs = -d / T
        every: Any = logsumexp(logs, axis=1, keepdims=True)
        mine: Any = logsumexp(np.where(own, logs, -np.inf), axis=1, keepdims=True)
        posterior = np.exp(logs - every)
        within = np.where(own, np.exp(np.minimum(logs - mine, 0.0)), 0.0)
        return (every - mine)[:, 0], (within - posterior) / T


def count_softly(d: np.ndarray, own: np.ndarray, beta: float) -> Slopes:
    r"""The energies of generalised LVQ; a row that lies on prototypes of two classes has $\mu = 0$ and no slope."""
    rows = np.arange(len(d))
    right, wrong = np.argmin(np.where(own, d, np.inf), axis=1), np.argmin(np.where(own, np.inf, d), axis=1)
    near, far = d[rows, right], d[rows, wrong]
    total = near + far
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    energy = expit(beta * (near - far) * inverse)
    force = 2 * beta * energy * (1 - energy) * inverse
    slopes = np.zeros_like(d)
    slopes[rows, right], slopes[rows, wrong] = force * far * inverse, -force * near * inverse
    return energy, slopes
