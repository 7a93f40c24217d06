"""How good a forecast is: when it is refused, when it is rough, and whether the inputs explain anything."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Z80 = 1.2816
"""Half the width of an 80% interval, in standard errors."""
FARTHEST = 10
"""A forecast reaches to this many times the rows at hand."""
FEWEST_FORECAST, FEW = 50, 100
"""Rows below which a forecast is refused, and below which a remark is made."""
FULL = 0.9
"""Share of the rows that the degrees of freedom may use up: beyond, nothing is left to judge by."""
WORST_BACKTEST, POOR_BACKTEST = 0.35, 0.25
"""Deviation of the backtest beyond which a forecast is refused, or no better than rough."""
ROUGH_GAP = 0.15
"""Log ratio of the two kinds of cross-validation beyond which a forecast is rough: single rows dominate."""
ROUGH_REFIT = 1.25
"""Ratio by which tuning anew may raise the error; beyond, the forecast is rough."""
COPIES = 0.01
"""Share of rows that may be copies of others."""
ORDERED = 4.0
"""Correlation of residuals of neighbouring rows, in its standard errors, beyond which rows are not independent."""
SEEN = 2.0
"""Standard errors by which the explained share of the variance must be above 0 to have been seen."""
NOISY = 0.95
"""Share of the variance that the fitted noise may take; beyond, hardly anything was learned that could be continued."""


class Found(NamedTuple):
    """What a forecast is judged by."""

    y: np.ndarray  # [N], standardised
    residual: np.ndarray  # [N], each row left out
    training: float
    H: float  # log of leave-one-out over generalised cross-validation
    backtest: float
    refit: float
    present: float  # the error with all rows
    df1: float
    noise: float
    neglected: float

    @property
    def loo(self) -> float:
        """The leave-one-out error."""
        return float(np.mean(self.residual**2))


def explained(found: Found) -> tuple[float, float]:
    """The share of the variance that the inputs explain on unseen rows, and its standard error, row by row."""
    alone = (found.y - found.y.mean()) ** 2  # the process has the mean of all rows, too
    less = alone - found.residual**2 * found.present / found.loo
    return float(less.mean() / alone.mean()), float(less.std(ddof=1) / np.sqrt(len(alone)) / alone.mean())


def explains_nothing(share: float, stderr: float, rows: int) -> bool:
    """Whether an explained share of the variance cannot be told from 0 with this number of rows."""
    return share <= max(SEEN * stderr, 1 / rows)


def refusal(found: Found, copies: int) -> str:
    """Why there is no forecast at all, in a sentence; empty where there is one."""
    N = len(found.y)
    if N < FEWEST_FORECAST:
        return f"A forecast needs at least {FEWEST_FORECAST} rows, and there are {N}{' different ones' * (copies > 0)}."
    if copies > COPIES * (N + copies):
        return (f"{copies} of {N + copies} rows are copies of others. Each was counted once in what is measured here, "
                "but whether rows to come will be copies, too, the table cannot say: find out how they came about, "
                "remove them and ask again.")  # fmt: skip
    if said := neighbours(found.residual, found.y):
        return said
    if found.df1 > FULL * N:
        return (f"The process uses {found.df1:.0f} degrees of freedom for {N} rows (noise too low), which leaves "
                "nothing to judge it by.")  # fmt: skip
    if abs(found.backtest) > WORST_BACKTEST:
        way = "high" if found.backtest > 0 else "low"
        return (f"Forecasts of the present error from halves of the rows were {abs(np.expm1(found.backtest)):.0%} too "
                f"{way}.")  # fmt: skip
    return ""


def neighbours(residual: np.ndarray, y: np.ndarray) -> str:
    """A sentence where residuals of neighbouring rows are correlated; empty where rows may be independent."""
    r = residual - residual.mean()
    lag = float(r[1:] @ r[:-1] / max(r @ r, 1e-300))
    if abs(lag) <= ORDERED / np.sqrt(len(r)) or is_sorted(y):
        return ""
    return (f"Residuals of neighbouring rows are correlated ({lag:+.2f}): rows near each other know more of each "
            "other than the columns say, as in a series in time, in groups or in a sorted table. Rows from another "
            "time or group will be predicted worse than any number here, and another order of the rows would hide "
            "that, not mend it: add a column that says what neighbours share, or keep one row of each "
            "group.")  # fmt: skip


def is_sorted(y: np.ndarray) -> bool:
    """Whether rows are in the order of their targets, so that neighbours have like residuals in any case."""
    steps = np.diff(y)
    return bool(np.all(steps >= 0) or np.all(steps <= 0))


def remarks(found: Found, copies: int) -> list[str]:
    """Why a forecast is rough, or rests on little."""
    N, why = len(found.y), []
    if 0 < copies <= COPIES * (N + copies):
        what = "1 row is a copy of another" if copies == 1 else f"{copies} rows are copies of others"
        why.append(f"{what}; each was counted once.")
    if FEWEST_FORECAST <= N < FEW:
        why.append(f"There are only {N} rows, which is little to forecast from.")
    share, stderr = explained(found)
    if explains_nothing(share, stderr, N):
        why.append(f"Rough: the inputs explain nothing of the target that {N} rows could show "
                    f"({100 * share:.1f} ± {100 * stderr:.1f}% of its variance), and what was not learned cannot be "
                    "continued.")  # fmt: skip
    elif found.noise >= NOISY:
        why.append(f"Rough: the fitted model takes {found.noise:.1%} of the target's variance for noise, which leaves "
                    "little that could be continued.")  # fmt: skip
    if is_sorted(found.y):
        why.append("Rough: the rows are sorted by the target, so that their order cannot show whether they are "
                    "independent.")  # fmt: skip
    if found.H > ROUGH_GAP:
        why.append(f"Rough: single rows dominate the error (leave-one-out is {np.expm1(found.H):.0%} above "
                    "generalised cross-validation).")  # fmt: skip
    if abs(found.backtest) > POOR_BACKTEST:
        why.append(f"Rough: forecasts of the present error from halves of the rows were off by "
                    f"{abs(np.expm1(found.backtest)):.0%}.")  # fmt: skip
    if found.refit > ROUGH_REFIT:
        why.append(f"Rough: hyperparameters tuned anew raise the error by {found.refit - 1:.0%}, so there are many "
                    "for so few rows.")  # fmt: skip
    if found.neglected > 0.1 * found.noise:
        why.append(f"Rough: the low-rank kernel leaves out {found.neglected:.2g} of the prior variance, not far below "
                    f"the noise of {found.noise:.2g}.")  # fmt: skip
    return why
