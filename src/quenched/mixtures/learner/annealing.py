r"""Deterministic annealing: a mixture of Gaussians on a table, found while the width falls.

At a large width $\sigma$ all centres coincide in the mean. A cluster of coincident centres stays together as long as
$\sigma > \lambda_{\max}(C_k)$, the largest variance of its rows in any direction: the linear part of EM for the
difference of two centres in it is $C_k/\sigma$. At $\sigma = \lambda_{\max}$ it splits, along that direction
[rose1990]. So the width falls from split to split (in steps in between, each beginning where the last one ended), until
there are as many centres as wanted; then widths become free and EM goes to the maximum of the likelihood.

Coincident centres are kept as one cluster with their number: above a split nothing has to be iterated. Mixtures with
`Diagonal` or `Full` covariances are annealed in features of unit variance. Not covered: missing values.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from quenched.core.types import InputError
from quenched.mixtures.learner.em import Climbed, Freedom, Gaussians, Rows, climb, rows_of
from quenched.mixtures.learner.moves import rearrange
from quenched.mixtures.learner.noise import judge_spread
from quenched.mixtures.learner.starts import draw, fewest_rows, is_sound, race, widen
from quenched.mixtures.model import Annealed, Diagonal, Full, MaximumLikelihood

CRITICAL = 1e-3
"""A cluster whose variance is within this share of the width splits."""
DENSE = 1500
"""Largest covariance matrix that is formed; beyond it the largest eigenvalue is found by Lanczos's method."""
ROUGH, COARSE = 10.0, 1e-5
"""How much less accurate than the last one the stages of annealing are; what suffices for them at given widths."""


def critical(rows: Rows, centre: np.ndarray, r: np.ndarray) -> tuple[float, np.ndarray, float]:
    """The largest variance of a cluster's rows, its direction, and the fourth moment along it over its square."""
    from scipy import linalg
    from scipy.sparse import linalg as sparse

    share = rows.omega * r
    share = share / max(share.sum(), np.finfo(float).tiny)
    Y = np.sqrt(share)[:, None] * (rows.Z - centre)
    n, N = Y.shape
    if min(n, N) > DENSE:
        covariance: Any = sparse.LinearOperator((N, N), matvec=lambda v: Y.T @ (Y @ v), dtype=float)  # pyright: ignore
        v = sparse.eigsh(covariance, k=1, v0=Y.T @ np.linalg.norm(Y, axis=1), tol=1e-6)[1][:, 0]  # pyright: ignore
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


class Cluster(NamedTuple):
    """Coincident centres."""

    node: int  # in the tree of splits: 0 is all rows, a split makes two new nodes
    centres: int  # how many


class Annealing:
    """One Gaussian for each cluster of coincident centres, while the width falls.

    It begins with a schedule; or with Gaussians, at which EM begins without annealing. `most` are EM steps in all.
    `rivals` random starts compete with what the annealing finds, and `moves` times Gaussians are moved, at most.
    """

    def __init__(
        self, rows: Rows, rule: Any, components: int, start: Annealed | Gaussians, rng: np.random.Generator,
        *, accuracy: float, most: int, rivals: int = 0, moves: int = 0,
    ):  # fmt: skip
        self.rule, self.components, self.rng, self.accuracy, self.most = rule, components, rng, accuracy, most
        self.rivals, self.moves = rivals, moves
        self.final = rows  # with as many squares as a width has features in the end
        self.rows = rows_of(rows.Z, rows.omega, features=1, mean=rows.mean, unit=rows.unit)
        if rows.squares.shape[1] == 1:
            self.rows = rows
        self.given = isinstance(rule, MaximumLikelihood)
        self.equal = self.given or rule.equal_weights
        self.splits: list[tuple[int, float, np.ndarray, float]] = []  # which node, at which width, along what; p-value
        self.passes, self.last, self.sound, self.r = 0, 0.0, True, np.ones((1, len(rows.Z)))
        if isinstance(start, Gaussians):
            self.schedule, self.gaussians, self.clusters = Annealed(), start, [Cluster(0, 1)] * len(start.weights)
        else:
            self.schedule, self.clusters = start, [Cluster(0, components)]
            self.gaussians = Gaussians(np.zeros((1, rows.Z.shape[1])), np.ones((1, 1)), np.ones(1))
        self.width = self.before = np.inf if self.schedule.from_width is None else float(self.schedule.from_width)

    @functools.cached_property
    def variance(self) -> float:
        """Of all rows, all features together."""
        return float(self.rows.omega @ self.rows.squares.sum(axis=1))

    def finish(self, width: float | None = None) -> Climbed:
        """Anneal to a width; or until all centres have parted, and on to the likeliest widths. One entry a centre."""
        self.last = 0.0 if width is None else width
        self.descend()
        if width is None:
            return self.polish()
        if self.width < np.inf:
            self.lower(width)
        done = self.settle(width, self.accuracy)
        self.sound = bool(np.all(done.r @ self.rows.omega > 0))
        counts, g = [c.centres for c in self.clusters], done.gaussians
        g = Gaussians(*(np.repeat(leaf, counts, axis=0) for leaf in g._replace(weights=g.weights / counts)))
        return done._replace(gaussians=g)

    def polish(self) -> Climbed:
        """EM with free widths: the likeliest of the annealed mixture and of random ones, one entry a centre."""
        rows, rule, K = self.final, self.rule, self.components
        least = float(rule.least) * self.variance / rows.Z.shape[1]
        free = Freedom(not self.equal, widths=True, common=rule.common, least=least, fewest=rule.fewest)
        g = self.gaussians
        begin = widen(g, rows.squares.shape[1]) if g.widths.shape[1] == 1 else g
        begin = Gaussians(*(leaf[None] for leaf in begin))
        if self.rivals and K > 1 and rows.total > K * fewest_rows(rows, free):  # otherwise none can be sound
            drawn = draw(rows, K, self.rivals, least, self.rng)
            drawn = drawn._replace(weights=np.full_like(drawn.weights, 1 / K)) if self.equal else drawn
            begin = Gaussians(*(np.concatenate(pair) for pair in zip(begin, drawn, strict=True)))
        done = race(rows, begin, free, accuracy=self.accuracy, passes=max(1, self.most - self.passes))
        if K > 1 and rows.total > K * fewest_rows(rows, free):
            moves = self.moves if self.rivals else 0
            moves = moves if is_sound(rows, done, free) else max(1, moves)
            left = max(1, self.most - self.passes)
            done = rearrange(rows, done, free, self.rng, moves=moves, accuracy=self.accuracy, passes=left)
        self.passes += int(done.passes)
        done = self._match(done) if K > 1 and len(self.r) == K else done  # no annealing, nothing to match
        self.gaussians, self.r, self.sound = done.gaussians, done.r, bool(is_sound(rows, done, free))
        return done

    def _match(self, done: Climbed) -> Climbed:
        """The same Gaussians in the order of the annealed ones whose rows they have, so that the tree fits them."""
        from scipy.optimize import linear_sum_assignment

        shared = (self.r * self.rows.omega) @ done.r.T
        order = linear_sum_assignment(shared, maximize=True)[1]
        return done._replace(gaussians=Gaussians(*(leaf[order] for leaf in done.gaussians)), r=done.r[order])

    def climb(self, free: Freedom, accuracy: float) -> Climbed:
        """EM from the present Gaussians."""
        left = max(1, self.most - self.passes)  # of free widths, stages need not be accurate
        done = climb(self.rows, self.gaussians, free, accuracy=accuracy, passes=left, stretch=self.given)
        self.gaussians, self.r, self.passes = done.gaussians, done.r, self.passes + int(done.passes)
        return done

    def settle(self, width: float, accuracy: float | None = None) -> Climbed:
        """EM at a given width; as a stage of the annealing, unless its accuracy is given."""
        self.before, self.width = self.width, width
        self.gaussians = self.gaussians._replace(widths=np.full_like(self.gaussians.widths, width))
        rough = max(ROUGH * self.accuracy, COARSE if self.given else 0.0)
        return self.climb(Freedom(weights=not self.equal), accuracy or rough)

    def lower(self, width: float) -> None:
        """Let the width fall in steps."""
        while self.width > width:
            self.settle(max(width, self.width * (1 - float(self.schedule.step))))

    @functools.cached_property
    def _whole(self) -> tuple[float, np.ndarray, float]:
        return critical(self.rows, self.gaussians.centres[0], self.r[0])

    def unstable(self) -> tuple[int, float, np.ndarray, float]:
        """Of the clusters that can split the one that does so first: its place, variance, direction, fourth moment."""
        if len(self.clusters) == 1:
            return 0, *self._whole
        found = [(k, *critical(self.rows, self.gaussians.centres[k], self.r[k]))
                 for k, cluster in enumerate(self.clusters) if cluster.centres > 1]  # fmt: skip
        return max(found, key=lambda one: one[1])

    def split(self, k: int, spread: float, v: np.ndarray, fourth: float) -> None:
        r"""Split a cluster of variance $\lambda$ and go on a little below it.

        The halves begin where EM expanded in a small distance, $\delta \leftarrow \delta \lambda/\sigma - \delta^3
        \langle y^4 \rangle/3\sigma^3$, has its fixed point.
        """
        sigma = max(self.last, min(self.width, spread * (1 - float(self.schedule.step))))
        p = self.judge(k, spread)
        g, (node, count) = self.gaussians, self.clusters.pop(k)
        counts = (count - count // 2, count // 2) if self.equal else (count, count)
        if counts[0] != counts[1]:
            v = v * self.rng.choice([-1, 1])  # which side gets more centres
        latest = self.splits[-1][1] if self.splits else np.inf
        self.splits.append((node, min(spread, self.before, latest), v, p))
        noisy = v + float(self.schedule.noise) * self.rng.normal(size=len(v)) / np.sqrt(len(v))
        delta = sigma / spread * np.sqrt(3 * (spread - sigma) / fourth) * noisy
        centres = np.vstack([np.delete(g.centres, k, axis=0), g.centres[k] + delta, g.centres[k] - delta])
        weights = np.append(np.delete(g.weights, k), g.weights[k] * np.array(counts) / sum(counts))
        new = 2 * len(self.splits) - 1
        self.clusters += [Cluster(new, counts[0]), Cluster(new + 1, counts[1])]
        self.gaussians = Gaussians(centres, np.repeat(g.widths[:1], len(centres), axis=0), weights)
        self.settle(sigma)
        if not self.equal and len(self.clusters) == self.components:
            self.clusters = [Cluster(c.node, 1) for c in self.clusters]

    def judge(self, k: int, spread: float) -> float:
        """The p-value of a split, at least that of the one before it: halves of noise do not look like noise."""
        rows, centre, node = self.rows, self.gaussians.centres[k], self.clusters[k].node
        share = rows.omega * self.r[k]
        mass = max(float(share.sum()), np.finfo(float).tiny)
        total = (share @ rows.squares.sum(axis=1) - 2 * (share @ rows.Z) @ centre) / mass + centre @ centre
        p = judge_spread(spread, float(total), rows.total * mass, rows.Z.shape[1])
        return p if node == 0 else max(p, self.splits[(node - 1) // 2][3])

    def descend(self) -> None:
        """Lower the width, split by split, until no centres are left to part or the last width is reached."""
        while any(c.centres > 1 for c in self.clusters):
            k, spread, v, fourth = self.unstable()
            if not spread > np.finfo(float).eps * self.variance:
                raise InputError(f"Argument `data` must hold at least {self.components} different rows, but it "
                                 f"holds {len(self.clusters)}.")  # fmt: skip
            if spread <= self.last:
                break
            if spread >= self.width * (1 - CRITICAL) or self.width == np.inf:
                self.split(k, spread, v, fourth)
            else:
                self.lower(spread)

    def tabulate(self, weights: np.ndarray) -> xr.Dataset:
        """The splitting sequence, given the weight of each component; directions are in the units of the data."""
        parents, widths, directions, p = zip(*self.splits, strict=True) if self.splits else ((), (), (), ())
        leaves = np.repeat([c.node for c in self.clusters], [c.centres for c in self.clusters])
        first, unit = 1 + 2 * np.arange(len(parents)), self.rows.unit
        share = np.bincount(leaves, weights, 1 + 2 * len(parents))
        for node, half in reversed(list(zip(parents, first, strict=True))):
            share[node] = share[half] + share[half + 1]
        along = np.reshape(directions, (len(parents), len(unit))) * unit
        return xr.Dataset(
            {
                "width": ("split", np.array(widths, float)),
                "p": ("split", np.array(p, float)),
                "cluster": ("split", np.array(parents, int)),
                "into": (("split", "half"), np.stack([first, first + 1], axis=1)),
                "direction": (("split", "feature"), along / np.linalg.norm(along, axis=1, keepdims=True)),
                "share": ("node", share),
                "leaf": ("component", leaves),
            },
            attrs={
                "science": "mixtures",
                "source": "annealing",
                "relative": int(isinstance(self.rule, (Diagonal, Full))),
            },
        )
