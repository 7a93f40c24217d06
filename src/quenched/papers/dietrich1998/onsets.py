r"""Finite-size scaling: where runs begin to lose the teacher, and where that would be in an infinite system.

At small `eta` all runs of one size have nearly the same overlap $R$, near 1. The paper takes as the onset where "the
distribution of the observed values for R significantly broadens". Here that is a number: the `eta` from which on more
than a given share of the runs (a tenth) have less than half of the mean overlap that all of them had at the first
`eta`, taken between two neighbours of the sweep by a straight line. A tenth of the runs at a small overlap means a
standard deviation of $R$ of about 0.3 of its mean. The error is the spread of the onset when runs are drawn again.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core import checks, results
from quenched.core.types import InputError, Key, Outcome, double
from quenched.outliers import measure
from quenched.outliers.model import Contaminated, Rule, Start

SHARE = 0.1
"""Share of the runs that have lost the teacher at the onset."""
AGAIN = 1000
"""How many times runs are drawn again."""


@double
def onsets(
    law: Contaminated,
    rule: Rule,
    *,
    alpha: float,
    sizes: Any,
    eta: Any,
    runs: int,
    key: Key,
    start: Start | None = None,
    executor: Any = None,
    folder: Any = None,
) -> xr.Dataset:
    r"""The `eta` at which the distribution of $R$ over runs broadens, for several sizes, and its limit.

    The onset is where a tenth of the runs have less than half of the mean $R$ at the first `eta`; see the module. The
    limit $N \to \infty$ is that of a straight line in $1/N$, weighted by the errors. [dietrich1998, figure 4]

    Args:
        law: the world.
        rule: the student.
        alpha: examples per dimension.
        sizes: increasing dimensions $N$.
        eta: increasing; the first must be small enough that runs agree.
        runs: how many samples for each size, at least 20.
        key: a JAX key.
        start: as in `measure`.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.

    Returns:
        Over `size`: the onset as `eta` and, as the share of informative examples there, `informative`, each with
        `_stderr`; `outcome` is `absent` where it lies outside the sweep. Without a dimension: `eta_limit`,
        `informative_limit`, each with `_stderr`; NaN with fewer than two onsets. `R` and `R_spread`, the mean and
        standard deviation over runs, over `size` and `swept_eta`.

    Examples:
        >>> import jax
        >>> from quenched.outliers.model import Contaminated, SoftSelection
        >>> from quenched.papers.dietrich1998.onsets import onsets
        >>> found = onsets(Contaminated(), SoftSelection(), alpha=20.0, sizes=[8], eta=[0.0, 2.0, 4.0, 6.0],
        ...                runs=20, key=jax.random.key(0))
        >>> bool(0 < found.eta[0] < 6)
        True
    """
    numbers, etas = checks.increasing("sizes", sizes), checks.increasing("eta", eta, least=-np.inf)
    Ns = np.array([checks.whole("sizes", int(N) if N == int(N) else N, least=1) for N in numbers])
    runs, key = checks.whole("runs", runs, least=20), checks.key(key)
    if len(etas) < 2:
        raise InputError(f"Argument `eta` must be at least two numbers, but it is {etas}.")
    points = [
        measure(law, rule, alpha=alpha, size=int(N), runs=runs, key=jax.random.fold_in(key, int(N)), start=start,
                executor=executor, folder=folder, eta=etas)
        for N in Ns
    ]  # fmt: skip
    R = np.stack([p.R_run.transpose("eta", "run").values for p in points])
    each = np.array([_with_error(one, etas) for one in R])
    result = xr.Dataset({"R": (("size", "swept_eta"), np.nanmean(R, axis=2))}, {"size": Ns, "swept_eta": etas})
    result["R_spread"] = (("size", "swept_eta"), np.nanstd(R, axis=2, ddof=1))
    names = ("eta", "eta_stderr", "informative", "informative_stderr")
    result = result.assign({name: ("size", column) for name, column in zip(names, each.T, strict=True)})
    found = np.isfinite(each[:, 0])
    result["outcome"] = ("size", np.where(found, Outcome.converged.name, Outcome.absent.name))
    for name, column in (("eta", 0), ("informative", 2)):
        limit, error = _limit(1 / Ns[found], *each[found][:, column : column + 2].T)
        result = result.assign({f"{name}_limit": limit, f"{name}_limit_stderr": error})
    kept = {name: points[0].attrs[name] for name in ("law", "rule", "version", "format", "start", "science")}
    return result.assign_attrs(
        kept, source="onsets", alpha=float(alpha), runs=runs, seed=results.seed(key), share=SHARE
    )


def _onset(R: np.ndarray, etas: np.ndarray) -> float:
    """Where the share of lost runs crosses `SHARE` for the last time; NaN if it does not. R is `[eta, runs]`."""
    lost = np.mean(R < np.mean(R[0]) / 2, axis=1)
    below = np.flatnonzero(lost <= SHARE)
    if len(below) == 0 or below[-1] == len(etas) - 1:
        return np.nan
    i = below[-1]
    return float(etas[i] + (etas[i + 1] - etas[i]) * (SHARE - lost[i]) / (lost[i + 1] - lost[i]))


def _with_error(R: np.ndarray, etas: np.ndarray) -> tuple[float, float, float, float]:
    """The onset in eta and as the share of informative examples, each with its standard error."""
    R = R[:, np.all(np.isfinite(R), axis=0)]
    rng = np.random.default_rng(0)
    again = [_onset(R[:, rng.integers(0, R.shape[1], R.shape[1])], etas) for _ in range(AGAIN)]
    again = np.array([one for one in again if np.isfinite(one)])
    onset = _onset(R, etas)
    if not np.isfinite(onset) or len(again) < AGAIN // 2:
        return np.nan, np.nan, np.nan, np.nan
    share = lambda eta: 1 / (1 + np.exp(eta))  # noqa: E731
    return onset, float(np.std(again)), float(share(onset)), float(np.std(share(again)))


def _limit(x: np.ndarray, y: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """The intercept of a weighted straight line, and its standard error."""
    if len(x) < 2:
        return np.nan, np.nan
    w = 1 / np.maximum(error, 1e-12) ** 2
    A = np.stack([np.ones_like(x), x], axis=1)
    covariance = np.linalg.inv(A.T @ (w[:, None] * A))
    intercept = (covariance @ (A.T @ (w * y)))[0]
    return float(intercept), float(np.sqrt(covariance[0, 0]))
