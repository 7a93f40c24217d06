"""The verb `measure`: the order parameters as an experiment."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.ensemble import OnHost
from quenched.core.types import Key, double
from quenched.mixtures.learner import fit_path
from quenched.mixtures.model import SCIENCE, Annealed, Law, MaximumLikelihood, Start, draw

ACCURACY, PASSES = 1e-12, 10_000
"""What may be left to gain in the log-likelihood of an example, and EM steps at each width, at most."""


class Sample(NamedTuple):
    """A finite world, and the truth about it."""

    S: np.ndarray  # [P, N] examples
    truth: np.ndarray  # [N] dU0 / u0
    fresh: np.ndarray  # [tests, N] new examples, about the mean of the others
    side: np.ndarray  # [tests] their classes


def draw_sample(key: Key, law: Law, P: int, size: int, tests: int) -> Sample:
    """Draw examples and fresh ones."""
    S, side = draw(law, key, P + tests, size)
    U = np.asarray(law.centres(size))
    truth = (U[0] - U[1]) / (2 * np.linalg.norm(U[0]))
    return Sample(S[:P], truth, S[P:] - S[:P].mean(axis=0), side[P:])


def observe(sample: Sample, dU: np.ndarray, energy: np.ndarray) -> dict[str, np.ndarray]:
    """Order parameters of splitting vectors `[..., N]`. [barkai1994, eqs. (9), (10), erratum B4]"""
    r, (P, N) = dU @ sample.truth, sample.S.shape
    right = np.where(r >= 0, 1.0, -1.0)[..., None] * sample.side
    wrong = np.where(dU @ sample.fresh.T >= 0, 1.0, -1.0) != right
    values = {"r": np.abs(r), "q": np.sum(dU**2, axis=-1), "error": np.mean(wrong, axis=-1), "energy": energy}
    return values | {"free_energy": energy * (P / N)}


def split(sample: Sample, width: Any, centres: np.ndarray, log_likelihood: Any) -> tuple[np.ndarray, np.ndarray]:
    """Splitting vectors of centres `[..., 2, N]`, and energies: how much less likely one Gaussian at the mean is."""
    width, N = np.asarray(width), centres.shape[-1]
    unsplit = -0.5 * (N * np.log(2 * np.pi * width) + np.sum(sample.S.var(axis=0)) / width)
    return (centres[..., 0, :] - centres[..., 1, :]) / 2, unsplit - log_likelihood


def anneal(key: Key, sample: Sample, widths: Any, start: Any) -> dict[str, np.ndarray]:
    """What the learner finds on one sample at falling widths."""
    found = fit_path(MaximumLikelihood(), sample.S, widths, key=key, start=start, accuracy=ACCURACY, passes=PASSES)
    centres, levels = np.array([one.gaussians.centres for one in found]), [one.log_likelihood for one in found]
    stalled = np.array([not one.converged for one in found], float)
    return observe(sample, *split(sample, widths, centres, levels)) | {"stalled": stalled}


def _run(key: Key, point: Any, *, P: int, size: int, tests: int) -> dict[str, np.ndarray]:
    """Order parameters at falling widths on one sample."""
    law, start, widths = point
    sampling, starting = jax.random.split(key)
    return anneal(starting, draw_sample(sampling, law, P, size, tests), widths, start)


@double
def measure(
    law: Law, rule: MaximumLikelihood, *, alpha: Any, size: int, runs: int, key: Key, start: Start | None = None,
    tests: int = 1000, batch: int | None = None, executor: Any = None, folder: Any = None, **sweep: Any,
) -> xr.Dataset:  # fmt: skip
    r"""What the learner finds on random samples of two Gaussians.

    Args:
        law: a law such as `TwoGaussians(separation)`.
        rule: `MaximumLikelihood(width)`.
        alpha: examples per dimension; $P = \alpha N$ is rounded to a whole number.
        size: the dimension $N$.
        runs: how many independent samples.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        start: `Annealed()` (default): each run anneals its sample once, through all widths; or `RandomStart()`, anew
            at each width.
        tests: fresh examples on which the error of each run is counted.
        batch: runs in a piece of work.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `r`, `q`, `error`, `energy` (of an example) and `free_energy` (over $N$), each with `_stderr` and `_run`, and
        `runs`, `failed`, `outcome`.

    Examples:
        >>> import jax
        >>> from quenched import mixtures
        >>> law, rule = mixtures.TwoGaussians(2.0), mixtures.MaximumLikelihood()
        >>> given = {"alpha": 5.0, "size": 20, "runs": 4, "key": jax.random.key(0)}
        >>> points = mixtures.measure(law, rule, width=[1.0, 2.0], **given)
        >>> bool(points.q[0] > points.q[1])
        True
    """
    start = Annealed() if start is None else start
    checks.kind("start", start, Start, "Annealed() or RandomStart()")
    size, tests = checks.whole("size", size, least=2), checks.whole("tests", tests, least=1)
    question = SCIENCE.ask(law, rule, sweep, through="width", falling=True, alpha=alpha)
    widths = question.axes["width"]
    points = [(one, start, widths) for one in question.plan.laws]
    outputs = dict.fromkeys([*SCIENCE.reports, "stalled"], (len(widths),))
    work = []
    for one in question.axes["alpha"]:
        run = functools.partial(_run, P=checks.examples(one, size, least=2), size=size, tests=tests)
        work.append((OnHost(run, outputs), points))
    return question.measure(work, key=key, runs=runs, batch=batch, executor=executor, folder=folder, label="samples",
                            size=size, tests=tests, start=start)  # fmt: skip
