r"""Can draws of several chains be trusted? Rank-normalised split R-hat and effective sample sizes.

Draws are replaced by the normal scores of their ranks, so that the numbers exist also where moments do not. Every chain
is split into halves; R-hat compares the variance between the halves with that within them, for the draws and for their
distance from the median, and the larger one counts. The effective sample size of the bulk is that of the scores, that
of the tails the smaller one of the two indicators "below the 5% quantile" and "below the 95% quantile".
[vehtari2021, sections 3 and 4]
"""

from __future__ import annotations

import numpy as np
from scipy import fft, special

TAILS = (0.05, 0.95)
"""Quantiles whose effective sample sizes are those of the tails."""


def split_rhat(draws: np.ndarray) -> np.ndarray:
    """The rank-normalised split R-hat of each quantity, of bulk and folded draws the larger one.

    Args:
        draws: `[chains, draws, quantities]`, at least 4 of each chain.

    Returns:
        `[quantities]`, NaN where draws are not finite, and 1 where all are equal.
    """
    folded = np.abs(draws - np.median(draws, axis=(0, 1)))
    return np.maximum(_rhat(_scores(_halves(draws))), _rhat(_scores(_halves(folded))))


def bulk_size(draws: np.ndarray) -> np.ndarray:
    """The effective sample size of the bulk of each quantity `[quantities]`; see `split_rhat` for the argument."""
    return _size(_scores(_halves(draws)))


def tail_size(draws: np.ndarray) -> np.ndarray:
    """The effective sample size of the tails of each quantity `[quantities]`; see `split_rhat` for the argument."""
    ends = np.quantile(draws, TAILS, axis=(0, 1))
    return np.min([_size(_halves((draws <= end).astype(float))) for end in ends], axis=0)


def _halves(draws: np.ndarray) -> np.ndarray:
    """Every chain as two, without the middle one of an odd number of draws."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _scores(draws: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks among all chains, equal draws with their mean rank."""
    from scipy import stats

    chains, count, quantities = draws.shape
    ranks = stats.rankdata(draws.reshape(-1, quantities), axis=0, nan_policy="propagate")
    scores = special.ndtri((ranks - 0.375) / (chains * count + 0.25))
    return np.where(np.ptp(draws, axis=(0, 1)) > 0, scores.reshape(draws.shape), draws * 0.0)


def _rhat(draws: np.ndarray) -> np.ndarray:
    """The root of the whole variance over that within chains."""
    count = draws.shape[1]
    within, between = draws.var(axis=1, ddof=1).mean(axis=0), draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((count - 1) / count + between / within)
    return np.where((within == 0) & (between == 0), 1.0, found)


def _size(draws: np.ndarray) -> np.ndarray:
    r"""$MN/\tau$ with the autocorrelation time by Geyer's initial monotone sequence, at most $MN \log_{10} MN$."""
    chains, count, _ = draws.shape
    total = chains * count
    off = draws - draws.mean(axis=1, keepdims=True)
    length = fft.next_fast_len(2 * count)
    transformed = np.asarray(fft.rfft(off, length, axis=1))
    covariance = np.asarray(fft.irfft(np.abs(transformed) ** 2, length, axis=1))[:, :count] / count
    within = covariance[:, 0].mean(axis=0) * count / (count - 1)
    whole = within * (count - 1) / count + draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - covariance.mean(axis=0)) / whole  # [draws, quantities]
    rho[0] = 1.0
    even = count - count % 2
    pairs = rho[:even].reshape(-1, 2, rho.shape[1]).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0).astype(bool)  # until the first pair that is not
    steady = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    tau = np.maximum(-1 + 2 * steady.sum(axis=0), 1 / np.log10(total))
    return np.where(
        np.all(np.isfinite(draws), axis=(0, 1)) & (whole > 0), total / tau, np.where(whole == 0, total, 0.0)
    )
