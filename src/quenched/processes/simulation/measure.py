r"""The experiment: a Gaussian process trained on samples of the table, many times over.

In a sample row $i$ comes $s_i$ times; the learner (`learner.fit.predict_rows`) takes these counts for weights, trains
on the distinct rows and predicts all. The counts being independent, what is left once all copies of a row are taken
out is a sample like any that never had the row, so every row of every sample gives an *out-of-bag* residual, not only
the few that happen to be missing. All sizes of a run use the same random numbers, so that curves are smooth.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from quenched.core import checks, random
from quenched.core.ensemble import Ensemble, OnHost
from quenched.core.types import Key, double
from quenched.processes import kernels, model
from quenched.processes.learner.fit import Predictions, predict_rows
from quenched.processes.model import MEASURES, MULTIPLICITIES, Empirical, GaussianProcess, Numbers, PoissonTotal, Total

if TYPE_CHECKING:
    import xarray as xr

PIECE = 2e10
"""Operations of one piece of work, about a second: it is lost when interrupted, and the progress bar waits for it."""
WIDEST = 64
"""Runs of a piece at most."""
OF_VARIANCE = ("posterior_variance", "oob_variance", "coverage", "oob_coverage", "point_variance")
"""Measures that need posterior variances."""


Point = tuple[Numbers, np.ndarray]
"""What a run needs besides its key: law and rule as arrays, and the sizes of the data sets."""


class Simulator(eqx.Module):
    """A way of drawing data sets. A run is a block of `draws` of them."""

    draws: eqx.AbstractVar[int]

    @abc.abstractmethod
    def uniforms(self, key: Key, columns: int) -> np.ndarray:
        """Uniform random numbers `[draws, columns]`, those of a data set independent of each other."""


class LatinHypercube(Simulator):
    """Blocks of samples in which the random numbers of each row are spread evenly.

    Every single sample has the right distribution, so means are unbiased, but the samples of a block differ more from
    each other than independent ones, and their mean fluctuates less. The block is the unit of the standard error.

    Attributes:
        draws: samples in a block.
    """

    draws: int = eqx.field(default=16, static=True)

    def __check_init__(self):
        checks.whole("draws", self.draws, least=1)

    def uniforms(self, key: Key, columns: int) -> np.ndarray:
        """Stratified over the samples of the block, column by column."""
        return stratified(key, self.draws, columns)


class Plain(Simulator):
    """Independent samples, one in a run."""

    draws: int = eqx.field(default=1, static=True, init=False)

    def uniforms(self, key: Key, columns: int) -> np.ndarray:
        """Independent of each other."""
        return random.uniforms(key, 1, columns)


def stratified(key: Key, draws: int, rows: int) -> np.ndarray:
    """Uniforms `[draws, rows]`; those of a row fall one into each of `draws` equal intervals, in random order."""
    place, order = (random.uniforms(one, draws, rows) for one in random.split(key))
    return (np.argsort(order, axis=0, kind="stable") + place) / draws  # a sort takes a second to compile


def draw_counts(key: Key, point: Point, simulator: Simulator, total: Total, longest: int) -> np.ndarray:
    """How often each row comes, `[sizes, draws, N]`.

    A Poisson total takes a random number for each row of the table, a fixed one for each row of the sample, of which
    the largest has `longest`; a smaller sample is then the beginning of a larger one.
    """
    from scipy.special import pdtr

    N, sizes = len(point[0].y), np.asarray(point[1])
    if isinstance(total, PoissonTotal):
        u, mu = np.asarray(simulator.uniforms(key, N)), sizes / N
        counts = np.arange(int(np.max(mu + 12 * np.sqrt(mu) + 25)))  # beyond, nothing is left
        return np.stack([np.searchsorted(cdf, u, side="right") for cdf in pdtr(counts, mu[:, None])])
    rows = np.minimum((N * np.asarray(simulator.uniforms(key, longest))).astype(int), N - 1)
    return np.stack([[np.bincount(row[: int(m)], minlength=N) for row in rows] for m in sizes])


def _summarise(n: Numbers, s: np.ndarray, drawn: list[Predictions]) -> dict[str, Any]:
    """Averages over a block of data sets with counts `[draws, N]`."""
    from scipy.special import ndtri

    parts: Any = [None if part[0] is None else np.stack(part) for part in zip(*(one[1:] for one in drawn), strict=True)]
    residual, left_out, variance, left_out_variance = parts
    came, z = s == np.arange(MULTIPLICITIES)[:, None, None], ndtri((1 + model.LEVEL) / 2)
    values: dict[str, Any] = {"mean": n.y - np.mean(residual, axis=0), "came": np.sum(came, axis=(1, 2))}
    values["came_error"] = np.sum(came * residual**2, axis=(1, 2))
    for oob, e, v in (("", residual, variance), ("oob_", left_out, left_out_variance)):
        values |= {f"{oob}error": np.mean(e**2), f"point_{oob}error": np.mean(e**2, axis=0)}
        values[f"{oob}absolute_error"] = np.mean(np.abs(e))
        if v is not None:
            values[f"{oob}coverage"] = np.mean(np.abs(e) < z * np.sqrt(v + n.s2))
            values[f"{oob or 'posterior_'}variance"] = np.mean(v)
    return values if variance is None else values | {"point_variance": np.mean(variance, axis=0)}


def _run(
    key: Key, point: Point, *, simulator: Simulator, total: Total, longest: int, variance: bool
) -> dict[str, np.ndarray]:
    """One block of data sets at every size."""
    n, _ = point
    sizes = [
        _summarise(n, s, [predict_rows(n, one, variance=variance) for one in s])
        for s in draw_counts(key, point, simulator, total, longest)
    ]
    return {name: np.stack([size[name] for size in sizes]).astype(float) for name in sizes[0]}


def block_of(
    rows: int, sizes: int, simulator: Simulator, total: Total, *, longest: float, variance: bool = True
) -> OnHost:
    """A run, for `ensemble`: one block of data sets at each of a number of sizes, the largest of all is `longest`."""
    lengths = {"point": rows, "multiplicity": MULTIPLICITIES}
    reports = {**MEASURES, "came": ("multiplicity",), "came_error": ("multiplicity",)}
    left = {"spread", "multiplicity_error", *(() if variance else OF_VARIANCE)}
    shapes = {name: (sizes, *(lengths[d] for d in own)) for name, own in reports.items() if name not in left}
    run = functools.partial(_run, simulator=simulator, total=total, longest=int(longest), variance=variance)
    return OnHost(run, shapes, bytes=8 * kernels.MATRICES * rows**2)


def finish(done: Ensemble, points: list[Point], draws: int) -> Ensemble:
    """The runs with the statistics that need all of them, in the order of `MEASURES`."""
    values, good = dict(done.values), ~done.failed[..., None, None]
    count = np.sum(good, axis=1, keepdims=True)

    def add(x: np.ndarray) -> np.ndarray:
        return np.sum(np.where(good, x, 0.0), axis=1, keepdims=True)

    # The samples of a block are not independent, so the variance of a prediction over data sets is taken about the mean
    # of all runs, whose own error is added.
    residual = np.stack([np.asarray(n.y) for n, _ in points])[:, None, None] - values["mean"]
    b = add(residual) / np.maximum(count, 1)
    off = add((residual - b) ** 2) / np.maximum(count - 1, 1)
    about = values["point_error"] - 2 * b * residual + b**2
    alone = about * draws / (draws - 1) if draws > 1 else np.nan
    values["spread"] = np.where(count > 1, about + off / np.maximum(count, 1), alone)
    # Runs have different numbers of rows that came k times, some none at all, so their error is the ratio of two sums
    # over all runs. A run's own value is that ratio plus its first-order part in it: their mean is the ratio, and
    # the spread its error.
    came, came_error = values["came"], values["came_error"]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = add(came_error) / add(came)
        own = ratio + (came_error - ratio * came) * np.maximum(count, 1) / add(came)
    values["multiplicity_error"] = np.where(good, own, np.nan)
    values["oob_error_counted"] = values["multiplicity_error"][..., 0]
    order = [name for name in [*MEASURES, "oob_error_counted"] if name in values]
    return dataclasses.replace(done, values={name: values[name] for name in order})


@double
def measure(
    law: Empirical, rule: GaussianProcess, *, examples: Any, runs: int, key: Key, total: Total | None = None,
    simulator: Simulator | None = None, variance: bool = True, batch: int | None = None, executor: Any = None,
    folder: Any = None, **sweep: Any,
) -> xr.Dataset:  # fmt: skip
    r"""The learning curve as an experiment.

    Args:
        law: the world.
        rule: the student.
        examples: increasing sizes $m$ of the data sets.
        runs: how many independent runs; a run is a block of data sets, or just one, see the simulator.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        total: `PoissonTotal()` (default), a Poisson number of rows of mean $m$, or `FixedTotal()`, just $m$ rows. Then
            taking out the copies of a row leaves fewer than $m$ rows, so that `oob_error` is off by a share of order
            $1/N$; `oob_error_counted` is not.
        simulator: `LatinHypercube()` (default) or `Plain()`.
        variance: whether to measure posterior variances and coverage, which about double the time.
        batch: runs in a piece of work; by default as many as take about a second.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: fields of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        The measures of `model.MEASURES` and `oob_error_counted`, each with `_stderr` and `_run`, and `runs`,
        `failed`, `outcome`. Errors are shares of the target's variance; `mean` and `spread` are of the standardised
        prediction. Out-of-bag measures average over all rows, each with its copies taken out; `oob_error_counted` and
        `multiplicity_error` average the rows that came 0, 1, ... times (NaN where none ever did, with an infinite
        standard error), and `spread` needs two runs, or a block.

    Raises:
        InputError: for sizes that are not positive, or a kernel that is not positive definite.

    Examples:
        >>> import jax, numpy as np
        >>> from tinygp import kernels
        >>> from quenched import processes
        >>> x = np.linspace(0, 1, 20)
        >>> law = processes.Empirical(x, np.sin(6 * x))
        >>> rule = processes.GaussianProcess(kernels.ExpSquared(0.3), noise=0.01)
        >>> points = processes.measure(law, rule, examples=[10, 20], runs=5, key=jax.random.key(0))
        >>> bool(points.oob_error[1] < points.oob_error[0])
        True
    """
    simulator, runs = LatinHypercube() if simulator is None else simulator, checks.whole("runs", runs, least=1)
    checks.kind("simulator", simulator, Simulator, "LatinHypercube() or Plain()")
    total, variance = model.total_of(total), checks.flag("variance", variance)
    question = model.ask(law, rule, sweep, examples, total)
    sizes, rows = question.axes["examples"], question.plan.laws[0].rows
    pairs = [kernels.numbers_of(*pair) for pair in question.plan.pairs]
    points: list[Point] = [(n, sizes) for n, _ in pairs]
    if batch is None:
        batch = min(runs, max(1, min(int(PIECE / (simulator.draws * len(sizes) * rows**3)), WIDEST)))
    block = block_of(rows, len(sizes), simulator, total, longest=sizes[-1], variance=variance)
    result = question.measure(
        (block, points), key=key, runs=runs, batch=batch,
        executor=executor, folder=folder, label="data sets", finish=lambda done: finish(done, points, simulator.draws),
        simulator=type(simulator).__name__, draws=simulator.draws, total=type(total).__name__,
        jitter=max(jitter for _, jitter in pairs),
    )  # fmt: skip
    for name in ("multiplicity_error_stderr", "oob_error_counted_stderr", "spread_stderr"):
        result[name] = result[name].fillna(np.inf)
    return result
