r"""The experiment: a Gaussian process trained on samples of the table, many times over.

In a sample row $i$ comes $s_i$ times. Copies of a row are one measurement with noise $\sigma^2/s_i$, so a data set of
$m$ rows is a system in its *distinct* rows $b$ only:
$$A = K_{bb} + \mathrm{diag}(\sigma^2/s_b), \qquad \alpha = A^{-1} y_b, \qquad d = \mathrm{diag}\, A^{-1}.$$
In the bag the residual is $\sigma^2 \alpha_i/s_i$, and $\alpha_i/d_i$ once all copies of the row are taken out. The
counts being independent, what is then left is a sample like any that never had the row, so every row of every sample
gives an *out-of-bag* residual, not only the few that happen to be missing.

`LatinHypercube` spreads the random numbers of a block of samples evenly, `Plain` draws them independently; either way
the total number of rows is Poisson or fixed, as asked. All sizes of a run use the same random numbers, so that curves
are smooth. Shapes are fixed, as compiled programs want them: rows of the
bag come first, and the matrix is padded to one of a few sizes, which all samples but one in $10^{12}$ fit.
Not covered: samples without repeats, and rows in groups.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks, controls, results
from quenched.core.ensemble import Ensemble, ensemble
from quenched.core.linear import inverse_factor
from quenched.core.types import Array, Key, double
from quenched.processes.model import (
    LEVEL,
    MEASURES,
    MULTIPLICITIES,
    Empirical,
    FixedTotal,
    GaussianProcess,
    Numbers,
    PoissonTotal,
    Total,
    check_pair,
    coordinates,
    declared,
    sizes_of,
    total_of,
)

TINY = 128
"""Tables up to this size have one matrix for all samples: it costs less than to compile several."""
OVERFLOW = 1e-12
"""Probability that a sample does not fit the matrix provided for it; its run then counts as failed."""
SELDOM = 0.02
"""Share of the samples of a size that may need a larger matrix than the usual one."""
WASTE = 0.15
"""Two sizes of matrix are provided only if they differ by this share of the largest one's work."""
STEPS = 16
"""Sizes of matrix are multiples of this part of the table, so that similar measurements share a compiled program."""
STRIPS = 4
"""Strips in which a triangular matrix is multiplied; four spare 3/8 of the work."""
PIECE = 2e10
"""Operations of one piece of work, about a second: it is lost when interrupted, and the progress bar waits for it."""
WIDEST = 64
"""Runs of a piece from which on it is left to `ensemble`."""

Rung = tuple[int, int]
"""A size of matrix, and the least number of distinct rows for which it is used."""


class World(NamedTuple):
    """What a run needs besides its key."""

    n: Numbers
    cdf: Any  # [sizes, k] of a Poisson count
    examples: Any  # [sizes]


class Simulator(eqx.Module):
    """A way of drawing data sets. A run is a block of `draws` of them."""

    draws: eqx.AbstractVar[int]

    @abc.abstractmethod
    def uniforms(self, key: Key, columns: int) -> Array:
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

    def uniforms(self, key: Key, columns: int) -> Array:
        """Stratified over the samples of the block, column by column."""
        return stratified(key, self.draws, columns)


class Plain(Simulator):
    """Independent samples, one in a run."""

    draws: int = eqx.field(default=1, static=True, init=False)

    def uniforms(self, key: Key, columns: int) -> Array:
        """Independent of each other."""
        return jax.random.uniform(key, (1, columns))


def stratified(key: Key, draws: int, rows: int) -> Array:
    """Uniforms `[draws, rows]`; those of a row fall one into each of `draws` equal intervals, in random order."""
    place, order = jax.random.split(key)
    strata = jnp.argsort(jax.random.uniform(order, (draws, rows)), axis=0)
    return (strata + jax.random.uniform(place, (draws, rows))) / draws


def counts_of(key: Key, world: World, simulator: Simulator, total: Total, longest: int) -> Array:
    """How often each row comes, `[sizes, draws, N]`.

    Args:
        key: a JAX key.
        world: what is sampled.
        simulator: gives the random numbers.
        total: a Poisson total takes a random number for each row of the table, a fixed one for each row of the sample;
            a smaller sample is then the beginning of a larger one.
        longest: the largest size, where it is fixed.
    """
    N = world.n.y.shape[0]
    if isinstance(total, PoissonTotal):
        u = simulator.uniforms(key, N)
        return jax.vmap(lambda table: jnp.searchsorted(table, u, side="right"))(world.cdf)
    row = jnp.minimum((N * simulator.uniforms(key, longest)).astype(int), N - 1)
    taken = jnp.arange(longest) < world.examples[:, None]
    one = jax.vmap(lambda row, taken: jnp.zeros(N, int).at[row].add(taken), (0, None))
    return jax.vmap(one, (None, 0))(row, taken)


class Drawn(NamedTuple):
    """One data set, at every row `[N]`; variances are None where they were not asked for."""

    residual: Array  # y - prediction
    oob_residual: Array  # the same with all copies of the row taken out
    variance: Array | None
    oob_variance: Array | None


def draw(n: Numbers, s: Array, *, ladder: tuple[Rung, ...], variance: bool) -> Drawn:
    """Train on the data set with counts `s` and predict every row; a pure JAX function.

    Args:
        n: law and rule as arrays.
        s: how often each row comes, `[N]`.
        ladder: the sizes of matrix to choose from, see `ladder_of`. NaN comes out where none fits.
        variance: whether to compute posterior variances.
    """
    N = n.y.shape[0]
    order = jnp.argsort(s == 0, stable=True)  # rows of the bag first
    K, y, s2, s = n.K[order[:, None], order], n.y[order], n.s2, s[order]
    distinct = jnp.sum(s > 0)
    rung = jnp.searchsorted(jnp.asarray([P for P, _ in ladder]), distinct)
    rung = jnp.where(distinct < ladder[0][1], len(ladder), rung)
    solvers = [functools.partial(_solve, rung=rung, variance=variance) for rung in ladder]
    nothing = jnp.full((3, N), jnp.nan)
    alpha, d, known = jax.lax.switch(rung, [*solvers, lambda *_: nothing], K, y, jnp.sqrt(s / s2))
    bag, c = s > 0, s2 / jnp.maximum(s, 1)
    residual = jnp.where(bag, c * alpha, y - K @ alpha)
    away = jnp.diagonal(K) - known
    drawn = Drawn(
        residual=residual,
        oob_residual=jnp.where(bag, alpha / d, residual),
        variance=jnp.where(bag, c - c**2 * d, away) if variance else None,
        oob_variance=jnp.where(bag, 1 / d - c, away) if variance else None,
    )
    return jax.tree.map(lambda value: jnp.zeros(N).at[order].set(value), drawn)


def _solve(K: Array, y: Array, r: Array, *, rung: Rung, variance: bool) -> Array:
    """`A^-1 y`, `diag A^-1` and the prior variance that the data explain, `[3, N]`; only the first `P` rows count.

    With r = sqrt(s/s2) it is A^-1 = r B^-1 r, B = I + r K r. Rows outside the bag have r = 0 and are harmless padding.
    """
    (P, least), N = rung, y.shape[0]
    r = r[:P]
    B = jnp.eye(P) + r[:, None] * K[:P, :P] * r
    W = inverse_factor(jnp.linalg.cholesky(B, symmetrize_input=False)) * r  # A^-1 = W' W
    known = jnp.zeros(N - least)
    for k in range(STRIPS if variance else 0):
        first, last = P * k // STRIPS, P * (k + 1) // STRIPS
        known += jnp.sum(jnp.square(W[first:last, :last] @ K[:last, least:]), axis=0)
    short = jnp.stack([(W @ y[:P]) @ W, jnp.sum(W * W, axis=0)])
    return jnp.concatenate([jnp.pad(short, ((0, 0), (0, N - P))), jnp.pad(known, (least, 0))[None]])


def ladder_of(examples: np.ndarray, rows: int, total: Total) -> tuple[Rung, ...]:
    """The sizes of matrix for samples of these sizes.

    The number of distinct rows is binomial (for a fixed number of rows: narrower). Each size of sample would like a
    matrix that usually suffices and one that nearly always does; those that spare little work are left out.
    """
    from scipy import stats

    if rows <= TINY:
        return ((rows, 0),)
    p = 1 - (1 - 1 / rows) ** examples if isinstance(total, FixedTotal) else -np.expm1(-examples / rows)
    step = -(-rows // STEPS)
    least = int(np.min(stats.binom.ppf(OVERFLOW, rows, p))) // step * step
    wanted = np.concatenate([stats.binom.isf(tail, rows, p) for tail in (SELDOM, OVERFLOW)])
    wanted = np.clip(step * np.ceil(wanted / step), 1, rows).astype(int).tolist()
    sizes = [max(wanted)]
    for size in sorted(set(wanted), reverse=True):
        if sizes[-1] ** 3 - size**3 > WASTE * sizes[0] ** 3:
            sizes.append(size)
    sizes.reverse()
    return tuple(zip(sizes, [least, *(size + 1 for size in sizes[:-1])], strict=True))


def _summary(n: Numbers, s: Array, drawn: Drawn) -> dict[str, Array]:
    """What a block of data sets says; counts and what was drawn have axes `[draws, N]`."""
    e, o = drawn.residual, drawn.oob_residual
    came = s == jnp.arange(MULTIPLICITIES)[:, None, None]
    values = {
        "error": jnp.mean(e**2),
        "oob_error": jnp.mean(o**2),
        "absolute_error": jnp.mean(jnp.abs(e)),
        "oob_absolute_error": jnp.mean(jnp.abs(o)),
        "mean": n.y - jnp.mean(e, axis=0),
        "point_error": jnp.mean(e**2, axis=0),
        "point_oob_error": jnp.mean(o**2, axis=0),
        "came": jnp.sum(came, axis=(1, 2)),
        "came_error": jnp.sum(came * e**2, axis=(1, 2)),
    }
    if drawn.variance is None or drawn.oob_variance is None:
        return values
    z = jax.scipy.special.ndtri((1 + LEVEL) / 2)
    return values | {
        "posterior_variance": jnp.mean(drawn.variance),
        "oob_variance": jnp.mean(drawn.oob_variance),
        "coverage": jnp.mean(jnp.abs(e) < z * jnp.sqrt(drawn.variance + n.s2), dtype=float),  # else single precision
        "oob_coverage": jnp.mean(jnp.abs(o) < z * jnp.sqrt(drawn.oob_variance + n.s2), dtype=float),
        "point_variance": jnp.mean(drawn.variance, axis=0),
    }


def one_run(
    key: Key, world: World, *, simulator: Simulator, total: Total, longest: int, ladder: tuple[Rung, ...],
    variance: bool,
) -> dict[str, Array]:  # fmt: skip
    """One block of data sets at every size of `world`; a pure function for `ensemble`."""

    # Side by side (vmap) every data set would go through every size of matrix: one after the other is cheaper.
    @jax.custom_batching.sequential_vmap
    def run(key: Key, world: World) -> dict[str, Array]:
        def at_size(s: Array) -> dict[str, Array]:
            one = functools.partial(draw, world.n, ladder=ladder, variance=variance)
            return _summary(world.n, s, jax.lax.map(one, s))

        return jax.lax.map(at_size, counts_of(key, world, simulator, total, longest))

    return run(key, world)


def _spread(values: dict[str, np.ndarray], good: np.ndarray, y: np.ndarray, draws: int) -> np.ndarray:
    """Variance over data sets of the prediction at each row, `[points, runs, sizes, N]`.

    The samples of a block are not independent, so their variance is taken about the mean of all runs, whose own error
    is added: the mean over runs is unbiased, for independent samples the usual estimate.
    """
    good = good[..., None, None]
    count = np.sum(good, axis=1, keepdims=True)
    residual = y - values["mean"]
    b = np.sum(np.where(good, residual, 0.0), axis=1, keepdims=True) / np.maximum(count, 1)
    off = np.sum(np.where(good, residual - b, 0.0) ** 2, axis=1, keepdims=True) / np.maximum(count - 1, 1)
    about = values["point_error"] - 2 * b * residual + b**2
    if draws == 1:
        return np.where(count > 1, about + off / np.maximum(count, 1), np.nan)
    return np.where(count > 1, about + off / np.maximum(count, 1), about * draws / (draws - 1))


def _by_multiplicity(values: dict[str, np.ndarray], good: np.ndarray) -> np.ndarray:
    """Mean squared residual of the rows that came k times, `[points, runs, sizes, k]`.

    Runs have different numbers of such rows, some none at all, so it is the ratio of two sums over all runs. A run's
    own value is that ratio plus its first-order part in it: their mean is the ratio, and their spread its error.
    """
    good = good[..., None, None]
    total, came = (np.where(good, values[name], 0.0) for name in ("came_error", "came"))
    mean = came.sum(axis=1, keepdims=True) / np.maximum(good.sum(axis=1, keepdims=True), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = total.sum(axis=1, keepdims=True) / came.sum(axis=1, keepdims=True)
        return np.where(good, ratio + (total - ratio * came) / mean, np.nan)


def finished(done: Ensemble, worlds: list[World], draws: int) -> Ensemble:
    """The runs with what only all of them together can say, in the order of `MEASURES`."""
    values, good = dict(done.values), ~done.failed
    y = np.stack([np.asarray(world.n.y) for world in worlds])[:, None, None]
    values["spread"] = _spread(values, good, y, draws)
    values["multiplicity_error"] = _by_multiplicity(values, good)
    values["oob_error_counted"] = values["multiplicity_error"][..., 0]
    order = [name for name in [*MEASURES, "oob_error_counted"] if name in values]
    return dataclasses.replace(done, values={name: values[name] for name in order})


def poisson_table(examples: np.ndarray, rows: int) -> np.ndarray:
    """Distribution functions of the counts `[sizes, k]`, up to where nothing is left."""
    from scipy import stats

    mu = examples / rows
    longest = int(np.max(mu + 12 * np.sqrt(mu) + 25)) // 32 * 32 + 32  # in steps, to share compiled programs
    return stats.poisson.cdf(np.arange(longest), mu[:, None])


@double
def measure(
    law: Empirical,
    rule: GaussianProcess,
    *,
    examples: Any,
    runs: int,
    key: Key,
    total: Total | None = None,
    simulator: Simulator | None = None,
    variance: bool = True,
    batch: int | None = None,
    executor: Any = None,
    folder: Any = None,
    **sweep: Any,
) -> xr.Dataset:
    r"""The learning curve as an experiment.

    Args:
        law: the world.
        rule: the student.
        examples: increasing sizes $m$ of the data sets.
        runs: how many independent runs; a run is a block of data sets, or just one, as the simulator says.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        total: `PoissonTotal()` (default), a Poisson number of rows of mean $m$, or `FixedTotal()`, just $m$ rows. Then
            taking out the copies of a row leaves fewer than $m$ rows, so that `oob_error` is off by a share of order
            $1/N$; `oob_error_counted` is not.
        simulator: `LatinHypercube()` (default) or `Plain()`.
        variance: whether to measure posterior variances and coverage, which about double the time.
        batch: runs in a piece of work; by default as many as take about a second.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

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
        >>> from quenched.processes.model import Empirical, GaussianProcess
        >>> from quenched.processes.simulation import measure
        >>> x = np.linspace(0, 1, 20)
        >>> law, rule = Empirical(x, np.sin(6 * x)), GaussianProcess(kernels.ExpSquared(0.3), noise=0.01)
        >>> points = measure(law, rule, examples=[10, 20], runs=5, key=jax.random.key(0))
        >>> bool(points.oob_error[1] < points.oob_error[0])
        True
    """
    check_pair(law, rule)
    simulator, runs = LatinHypercube() if simulator is None else simulator, checks.whole("runs", runs, least=1)
    checks.kind("simulator", simulator, Simulator, "LatinHypercube() or Plain()")
    total, variance, key = total_of(total), checks.flag("variance", variance), checks.key(key)
    sizes = sizes_of(examples, law.rows, total)
    plan = controls.expand(law, rule, sweep)
    pairs = [declared(*pair) for pair in zip(plan.laws, plan.rules, strict=True)]
    rows, longest = plan.laws[0].rows, int(sizes[-1]) if isinstance(total, FixedTotal) else 0
    worlds = [World(jax.tree.map(np.asarray, n), poisson_table(sizes, rows), sizes) for n, _ in pairs]
    ladder = ladder_of(sizes, rows, total)
    if batch is None:
        fitting = int(PIECE / (simulator.draws * len(sizes) * ladder[-1][0] ** 3))
        batch = min(runs, max(1, fitting)) if fitting < WIDEST else None
    how: dict[str, Any] = {"total": total, "longest": longest, "ladder": ladder, "variance": variance}
    run = functools.partial(one_run, simulator=simulator, **how)
    done = ensemble(run, key, worlds, runs=runs, batch=batch, executor=executor, folder=folder, label="data sets")
    result = results.assemble_runs(
        finished(done, worlds, simulator.draws), plan, {"examples": sizes}, MEASURES | {"oob_error_counted": ()},
        coordinates(law), science="processes", source="simulation", simulator=type(simulator).__name__,
        draws=simulator.draws, total=type(total).__name__, seed=results.seed(key), jitter=max(j for _, j in pairs),
    )  # fmt: skip
    for name in ("multiplicity_error_stderr", "oob_error_counted_stderr", "spread_stderr"):
        result[name] = result[name].fillna(np.inf)
    return result.isel(examples=0) if np.ndim(examples) == 0 else result
