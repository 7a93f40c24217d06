r"""Calibration by simulation: does a posterior hold the truth as often as it says?

A truth is drawn from the prior, data from the truth, and $L$ draws from the posterior of these data. If the posterior
is right, the rank of the truth among the draws is uniform over $0, \ldots, L$, for every quantity; draws that are
too narrow put it at the ends, draws that are shifted at one of them. [talts2018, theorem 1]

The joint test has for each quantity the means over the runs of the first `DEGREES` polynomials that are orthonormal
under a uniform rank: one is zero if there is no shift, the second if the width is right, and so on. Each mean times the
root of the number of runs is a normal score $z$. How often the largest $|z|$ of *these correlated* quantities would be
as large by chance is drawn from Gaussians with the correlations of the runs themselves, as in `quenched.core.proof`.

The band of the difference between the empirical distribution of the ranks and the uniform one is simultaneous: a
uniform rank leaves it nowhere with the probability `LEVEL`. [sailynoja2022, section 2]
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy import stats

from quenched.core import checks, results
from quenched.core.ensemble import OnHost, ensemble
from quenched.core.random import uniforms
from quenched.core.types import InputError, Key, Outcome, outcome_names

DEGREES = 4
"""Polynomials of a rank that are tested: shift, width, skewness and weight of the ends."""
NULL_DRAWS = 20_000
"""Draws of the null distribution: p-values are resolved to 5e-5."""
PASSED = 1e-3
"""Chance explains ranks whose p-value is above this."""
LEVEL = 0.95
"""Probability that uniform ranks stay within the band everywhere."""
BAND_DRAWS = 4000
"""Simulated sets of uniform ranks from which the band is found: its level is known to 0.4%."""
SHARES = 50
"""Places at which the distribution of ranks is drawn, at most."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """One run: the truth, draws from the posterior of its data, and whether they can be trusted.

    Attributes:
        truth: of each quantity `[quantities]`.
        drawn: from the posterior `[draws, quantities]`.
        outcome: of the posterior; draws that did not converge are counted as failed and kept out of the test.
    """

    truth: np.ndarray
    drawn: np.ndarray
    outcome: Outcome = Outcome.converged


class Simulator(abc.ABC):
    """A world from which truth and data can be drawn, with a posterior that is judged."""

    @property
    @abc.abstractmethod
    def quantities(self) -> list[str]:
        """The names of what is ranked."""

    @abc.abstractmethod
    def run(self, key: Key, draws: int) -> Trial:
        """Draw truth and data, and from the posterior of the data.

        Args:
            key: of all that is random in the run.
            draws: of the posterior, nearly independent of each other.
        """

    @property
    def facts(self) -> dict[str, Any]:
        """What a reader needs to know, as attributes of the result."""
        return {}


def rank(truth: np.ndarray, drawn: np.ndarray, key: Key) -> np.ndarray:
    """The number of draws below the truth `[quantities]`; among equal ones a random place.

    Args:
        truth: `[quantities]`.
        drawn: `[draws, quantities]`.
        key: of the places among equals.
    """
    below, equal = np.sum(drawn < truth, axis=0), np.sum(drawn == truth, axis=0)
    return below + np.floor(uniforms(key, len(truth)) * (equal + 1)).astype(int)


def polynomials(draws: int) -> np.ndarray:
    """Polynomials of the rank, orthonormal under a uniform one and without the constant `[draws + 1, degrees]`."""
    degrees = min(DEGREES, draws)
    x = np.linspace(-1, 1, draws + 1)
    every, _ = np.linalg.qr(np.polynomial.legendre.legvander(x, degrees))
    return every[:, 1:] * np.sqrt(draws + 1)


def judge(ranks: np.ndarray, draws: int) -> tuple[float, np.ndarray]:
    """Test whether ranks are uniform.

    Args:
        ranks: `[runs, quantities]`, whole numbers from 0 to `draws`.
        draws: of each posterior.

    Returns:
        The probability of a largest deviation this large under uniform ranks, with the correlations of the
        quantities; and the same for each quantity alone.
    """
    runs = len(ranks)
    features = polynomials(draws)[ranks]  # [runs, quantities, degrees]
    z = np.abs(features.sum(axis=0)) / np.sqrt(runs)
    alone = -np.expm1(z.shape[1] * np.log1p(-2 * stats.norm.sf(z.max(axis=1))))
    worst = float(z.max())
    bound = min(1.0, 2 * z.size * stats.norm.sf(worst))  # Bonferroni: resolves p below 1 / NULL_DRAWS
    if bound < 1 / NULL_DRAWS:
        return bound, alone
    flat = features.reshape(runs, -1)
    off = flat - flat.mean(axis=0)
    size = np.sqrt(np.sum(off**2, axis=0))
    moves = size > 0
    root = np.linalg.qr(off[:, moves] / size[moves], mode="r")  # scaled: under the null the variance is one
    random, exceeded = np.random.default_rng(0), 0
    for _ in range(NULL_DRAWS // 1000):
        exceeded += int(np.sum(np.max(np.abs(random.standard_normal((1000, len(root))) @ root), axis=1) >= worst))
    return float(min(bound, (1 + exceeded) / (1 + NULL_DRAWS))), alone


def band(runs: int, draws: int, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The simultaneous band of the distribution of uniform ranks, less the uniform distribution.

    Args:
        runs: whose ranks make the distribution.
        draws: ranks are uniform over 0 to `draws`.
        level: the probability that a set of uniform ranks stays inside everywhere.

    Returns:
        The shares $z$ of ranks at which it is given, its lower and its upper edge.
    """
    shares = _shares(draws)
    random = np.random.default_rng(0)
    each = np.diff(shares, prepend=0.0, append=1.0)
    counts = np.cumsum(random.multinomial(runs, each, size=BAND_DRAWS), axis=1)[:, :-1]
    below, above = stats.binom.cdf(counts, runs, shares), stats.binom.sf(counts - 1, runs, shares)
    tail = np.quantile(2 * np.min(np.minimum(below, above), axis=1), 1 - level)  # of one place, that all together keep
    low, high = stats.binom.ppf(tail / 2, runs, shares), stats.binom.isf(tail / 2, runs, shares)
    return shares, low / runs - shares, high / runs - shares


def _shares(draws: int) -> np.ndarray:
    """Shares of the ranks at which their distribution is evaluated."""
    steps = np.unique(np.rint(np.linspace(1, draws, min(draws, SHARES))).astype(int))
    return steps / (draws + 1)


def simulate(
    simulator: Simulator, *, key: Any, runs: int, draws: int, executor: Any = None, folder: Any = None
) -> xr.Dataset:
    """Run a simulator many times, and judge the ranks of its truths.

    Args:
        simulator: the world and the posterior.
        key: of all runs; each draws from a key of its own, whoever computes it.
        runs: how often, at least 2.
        draws: of each posterior.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished runs are kept, so that an interrupted calibration goes on where it stopped.

    Returns:
        What `quenched.calibrate` returns.
    """
    key, runs = checks.key(key), checks.whole("runs", runs, least=2)
    draws = checks.whole("draws", draws, least=DEGREES)
    names = simulator.quantities
    once = OnHost(_Once(simulator, draws), {"rank": (len(names),), "outcome": ()})
    done = ensemble(once, key, [{}], runs=runs, executor=executor, folder=folder, label="calibration")
    ranks = np.nan_to_num(np.asarray(done.values["rank"])[0]).astype(int)
    outcomes = np.where(done.failed[0], Outcome.failed, np.nan_to_num(done.values["outcome"][0])).astype(int)
    about = dict(simulator.facts) | {"seed": results.seed(key)}
    if done.messages:
        about["messages"] = "\n".join(done.messages)
    return _gather(ranks, outcomes, names, draws, about)


@dataclasses.dataclass(frozen=True)
class _Once:
    """One run; a class, so that processes can be sent it."""

    simulator: Simulator
    draws: int

    def __call__(self, key: Key, point: Any) -> dict[str, Any]:
        with jax.enable_x64(True):
            mine, ties = jax.random.split(key)
            trial = self.simulator.run(mine, self.draws)
            known = np.all(np.isfinite(trial.drawn)) and np.all(np.isfinite(trial.truth))
            outcome = trial.outcome if known else Outcome.failed
            return {"rank": rank(trial.truth, trial.drawn, ties).astype(float), "outcome": np.array(float(outcome))}


def _gather(ranks: np.ndarray, outcomes: np.ndarray, names: list[str], draws: int, facts: Any) -> xr.Dataset:
    """The result."""
    good = outcomes == Outcome.converged
    if good.sum() < 2:
        raise InputError(f"At least two runs must end with a posterior that can be trusted, but {good.sum()} of "
                         f"{len(good)} did.")  # fmt: skip
    p, alone = judge(ranks[good], draws)
    shares, low, high = band(int(good.sum()), draws)
    steps = np.rint(shares * (draws + 1)).astype(int)
    off = np.mean(ranks[good][:, :, None] < steps, axis=0) - shares
    worst = names[int(np.argmin(alone))]
    failed = int(np.sum(~good))
    verdict = (f"ranks are {'uniform' if p > PASSED else 'NOT uniform'}: p = {p:.2g}; least even is {worst} "
               f"({len(names)} quantities, {good.sum()} runs, {draws} draws each"
               f"{f', {failed} runs failed' if failed else ''})")  # fmt: skip
    data = {
        "rank": (("run", "quantity"), ranks),
        "outcome": ("run", outcome_names(outcomes)),
        "p_value": ((), p),
        "p_value_alone": ("quantity", alone),
        "draws": ((), draws),
        "failed": ((), failed),
        "difference": (("quantity", "share"), off, {"long_name": "distribution of ranks - uniform"}),
        "low": ("share", low),
        "high": ("share", high),
    }
    at = {"run": np.arange(len(ranks)), "quantity": names, "share": shares}
    about = results.provenance(
        facts.pop("science", "own"), source="calibration", level=LEVEL, runs=len(ranks), verdict=verdict, **facts
    )
    return xr.Dataset(data, at, about)
