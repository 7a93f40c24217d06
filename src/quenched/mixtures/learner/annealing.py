r"""Deterministic annealing: a mixture of Gaussians on a table, found while the width falls.

At a large width $\sigma$ all centres coincide in the mean. A cluster of coincident centres stays together as long as
$\sigma > \lambda_{\max}(C_k)$, the largest variance of its rows in any direction: the linear part of EM for the
difference of two centres in it is $C_k/\sigma$. At $\sigma = \lambda_{\max}$ it splits, along that direction
[rose1990]. So the width falls from split to split (in steps in between, each beginning where the last one ended), until
there are as many centres as wanted; then widths become free and EM goes to the maximum of the likelihood.

Coincident centres are kept as one cluster with their number: above a split nothing has to be iterated. A
`Diagonal` mixture is annealed in features of unit variance. Not covered: full covariances, missing values.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from quenched.core.types import InputError
from quenched.mixtures.learner.em import Climbed, Freedom, Gaussians, Rows, climb
from quenched.mixtures.learner.tree import Tree
from quenched.mixtures.model import Annealed, Diagonal, MaximumLikelihood, Spherical

CRITICAL = 1e-3
"""A cluster whose variance is within this share of the width splits."""
DENSE = 1500
"""Largest covariance matrix that is formed; beyond it the largest eigenvalue is found by Lanczos's method."""
ROUGH, COARSE = 10.0, 1e-7
"""How much less accurate than the last one the stages of annealing are, and the accuracy that suffices for them."""


class Settings(NamedTuple):
    """What to fit, and how accurately."""

    rule: MaximumLikelihood | Spherical | Diagonal
    components: int
    accuracy: float
    passes: int

    @property
    def equal(self) -> bool:
        """Whether all weights are equal."""
        return isinstance(self.rule, MaximumLikelihood) or self.rule.equal_weights


def critical(rows: Rows, centre: np.ndarray, r: np.ndarray) -> tuple[float, np.ndarray, float]:
    r"""The largest variance of a cluster's rows, its direction, and the fourth moment along it over its square.

    Args:
        rows: the data.
        centre: $c_k$ `[N]`.
        r: responsibilities of the cluster `[n]`.
    """
    from scipy import linalg

    share = rows.omega * r
    share = share / max(share.sum(), np.finfo(float).tiny)
    Y = np.sqrt(share)[:, None] * (rows.Z - centre)
    n, N = Y.shape
    if min(n, N) > DENSE:
        v = _lanczos(Y)
    elif N <= n:
        v = linalg.eigh(Y.T @ Y, subset_by_index=[N - 1, N - 1])[1][:, 0]
    else:
        v = linalg.eigh(Y @ Y.T, subset_by_index=[n - 1, n - 1])[1][:, 0] @ Y
    v = v / max(float(np.linalg.norm(v)), np.finfo(float).tiny)
    along = rows.Z @ v - centre @ v
    spread = float(share @ along**2)
    along = along / (np.sqrt(spread) or 1.0)  # fourth powers of very large numbers overflow
    v = v if share @ along**3 >= 0 else -v  # towards the longer tail, so that equal data give equal answers
    return spread, v, float(share @ along**4)


def _lanczos(Y: np.ndarray) -> np.ndarray:
    """The direction of largest variance of many rows with many features, without forming the covariance."""
    from scipy.sparse import linalg

    N = Y.shape[1]
    covariance: Any = linalg.LinearOperator((N, N), matvec=lambda v: Y.T @ (Y @ v), dtype=float)  # pyright: ignore[reportCallIssue]
    start = Y.T @ np.linalg.norm(Y, axis=1)
    return linalg.eigsh(covariance, k=1, v0=start, tol=1e-6)[1][:, 0]  # pyright: ignore[reportArgumentType]


class Cluster(NamedTuple):
    """Coincident centres."""

    node: int  # in the tree
    centres: int  # how many


class Annealing:
    """One Gaussian for each cluster of coincident centres, while the width falls.

    Args:
        rows: the data.
        how: what to fit.
        start: the schedule; or Gaussians at which EM begins, without annealing.
        rng: of the noise.
    """

    def __init__(self, rows: Rows, how: Settings, start: Annealed | Gaussians, rng: np.random.Generator):
        self.rows, self.how, self.rng = rows, how, rng
        self.tree, self.passes, self.last = Tree(), 0, 0.0
        N, features = rows.Z.shape[1], rows.squares.shape[1]
        if isinstance(start, Gaussians):
            self.schedule, self.gaussians, self.clusters = Annealed(), start, [Cluster(0, 1)] * len(start.weights)
        else:
            self.schedule, self.clusters = start, [Cluster(0, how.components)]
            self.gaussians = Gaussians(np.zeros((1, N)), np.ones((1, features)), np.ones(1))
        self.width = self.before = np.inf if self.schedule.from_width is None else float(self.schedule.from_width)
        self.r = np.ones((1, len(rows.Z)))

    def finish(self, width: float | None = None) -> Climbed:
        """Anneal to a width; or until all centres have parted, and on to the likeliest widths.

        Args:
            width: below the last one.
        """
        self.last = 0.0 if width is None else width
        self.descend()
        if width is not None:
            if self.width < np.inf:
                self.lower(width)
            return self.settle(width, self.how.accuracy)
        rule: Any = self.how.rule
        free = Freedom(not self.how.equal, widths=True, common=rule.common, least=float(rule.least) * self.unit())
        return self.climb(free, self.how.accuracy)

    def climb(self, free: Freedom, accuracy: float) -> Climbed:
        """EM from the present Gaussians."""
        left = max(1, self.how.passes - self.passes)
        given = isinstance(self.how.rule, MaximumLikelihood)  # otherwise stages need not be accurate
        done = climb(self.rows, self.gaussians, free, accuracy=accuracy, passes=left, stretch=given)
        self.gaussians, self.r, self.passes = done.gaussians, done.r, self.passes + int(done.passes)
        return done

    def settle(self, width: float, accuracy: float | None = None) -> Climbed:
        """EM at a given width; as a stage of the annealing, unless its accuracy is given."""
        self.before, self.width = self.width, width
        self.gaussians = self.gaussians._replace(widths=np.full_like(self.gaussians.widths, width))
        return self.climb(Freedom(weights=not self.how.equal), accuracy or max(ROUGH * self.how.accuracy, COARSE))

    def lower(self, width: float) -> None:
        """Let the width fall in steps."""
        while self.width > width:
            self.settle(max(width, self.width * (1 - float(self.schedule.step))))

    def unstable(self) -> tuple[int, float, np.ndarray, float]:
        """Of the clusters that can split the one that does so first: its place, variance, direction, fourth moment."""
        if len(self.clusters) == 1:
            return 0, *self._whole
        found = [(k, *critical(self.rows, self.gaussians.centres[k], self.r[k]))
                 for k, cluster in enumerate(self.clusters) if cluster.centres > 1]  # fmt: skip
        return max(found, key=lambda one: one[1])

    @functools.cached_property
    def _whole(self) -> tuple[float, np.ndarray, float]:
        return critical(self.rows, self.gaussians.centres[0], self.r[0])

    def split(self, k: int, spread: float, v: np.ndarray, fourth: float) -> None:
        r"""Split a cluster of variance $\lambda$ and go on a little below it.

        The halves begin where EM expanded in a small distance, $\delta \leftarrow \delta \lambda/\sigma - \delta^3
        \langle y^4 \rangle/3\sigma^3$, has its fixed point.
        """
        sigma = max(self.last, min(self.width, spread * (1 - float(self.schedule.step))))
        g, count = self.gaussians, self.clusters[k].centres
        counts = (count - count // 2, count // 2) if self.how.equal else (count, count)
        if counts[0] != counts[1]:
            v = v * self.rng.choice([-1, 1])  # which side gets more centres
        self.tree.split(self.clusters[k].node, min(spread, self.before, self.tree.last), v)
        noisy = v + float(self.schedule.noise) * self.rng.normal(size=len(v)) / np.sqrt(len(v))
        delta = sigma / spread * np.sqrt(3 * (spread - sigma) / fourth) * noisy
        share = np.array(counts) / sum(counts)
        centres = np.vstack([np.delete(g.centres, k, axis=0), g.centres[k] + delta, g.centres[k] - delta])
        weights = np.append(np.delete(g.weights, k), g.weights[k] * share)
        self.clusters.pop(k)
        self.clusters += [Cluster(self.tree.nodes - 2, counts[0]), Cluster(self.tree.nodes - 1, counts[1])]
        self.gaussians = Gaussians(centres, np.repeat(g.widths[:1], len(centres), axis=0), weights)
        self.settle(sigma)
        if not self.how.equal and len(self.clusters) == self.how.components:
            self.clusters = [Cluster(c.node, 1) for c in self.clusters]

    def descend(self) -> None:
        """Lower the width, split by split, until no centres are left to part or the last width is reached."""
        while any(c.centres > 1 for c in self.clusters):
            k, spread, v, fourth = self.unstable()
            if not spread > np.finfo(float).eps * float(self.rows.omega @ self.rows.squares.sum(axis=1)):
                raise InputError(f"Argument `data` must hold at least {self.how.components} different rows, but it "
                                 f"holds {len(self.clusters)}.")  # fmt: skip
            if spread <= self.last:
                break
            if spread >= self.width * (1 - CRITICAL) or self.width == np.inf:
                self.split(k, spread, v, fourth)
            else:
                self.lower(spread)

    def unit(self) -> float:
        """The mean variance of a feature."""
        return float(self.rows.omega @ self.rows.squares.sum(axis=1)) / self.rows.Z.shape[1]
