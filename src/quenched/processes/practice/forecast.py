r"""How good will this regression be with $m$ examples, how sure is that, and how many are needed?

From a table of $N$ rows: tune a Gaussian process, measure its error on unseen rows exactly (leave-one-out), and
continue the learning curve to other numbers of rows (`theory.continuation`),

$$E_m = \mathrm{LOO}_N\, \frac{\mathrm{GCV}_m}{\mathrm{GCV}_N}\, f^{(1 + N/m)/2},$$

where $f \ge 1$ is by how much tuning anew on parts of the rows raises the cross-validated error. Hyperparameters tuned
on $m$ rows cost the test error a factor $1 + c/m$; judged by the $N$ rows that they were tuned on, they look better
than the best ones by $1 - c/N$. So $f = 1 + 2c/N$; the half of it that $\mathrm{LOO}_N$ lacks stays, the other half
falls as $1/m$.

The 80% interval adds, in the log, the errors of the level, of the shape (a jackknife), of the model (what a backtest
and the two kinds of cross-validation disagree by) and of the hyperparameters. Beside it stands the bootstrap: the
out-of-bag error at sizes up to $N$. Where the method has no right to speak it refuses in a sentence; what was computed
stays.

Assumed: rows are independent draws of one law, now and later. The forecast is a report, not an objective: minimised
over hyperparameters it becomes 10 to 70% too low.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import threadpoolctl
import xarray as xr

from quenched.core import checks, results
from quenched.core.progress import progress
from quenched.core.types import InputError, Key, double
from quenched.processes import learner, simulation
from quenched.processes.model import Empirical, GaussianProcess
from quenched.processes.practice import automatic, trials
from quenched.processes.practice.table import Table, read
from quenched.processes.theory import continuation

Z80 = 1.2816
"""Half the width of an 80% interval, in standard errors."""
FARTHEST = 10
"""A forecast reaches to so many times the rows at hand."""
FEWEST_FORECAST, FEW = 50, 100
"""Rows below which a forecast is refused, and below which it is said to rest on little."""
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
LARGEST_TUNED = 1000
"""Rows, at most, on which hyperparameters are tuned (for a minute or two)."""
GROUPS = 10
"""Groups of rows that the jackknife leaves out in turn."""
WORST = 10
"""Rows that are named as those that hurt most."""


@double
def forecast(
    X: Any,
    y: Any,
    *,
    examples: Any = None,
    rule: GaussianProcess | None = None,
    tune: bool = True,
    check: int = 0,
    accuracy: float = 0.03,
    key: Key | None = None,
    names: Sequence[str] | None = None,
) -> xr.Dataset:
    r"""Forecast the error of Gaussian-process regression at other numbers of examples.

    Columns are standardised first, and the kernel sees them so. Errors are shares of the target's variance: 1 is what
    predicting the mean gives. What `error` means: the expected squared error on an unseen row of a process trained on
    $m$ rows, tuned on them as here.

    Args:
        X: the inputs `[N, d]` (or `[N]`), numbers without gaps.
        y: the targets `[N]`.
        examples: numbers $m$ of rows to speak about, increasing; by default N/8, N/4, N/2, N, 2N, 4N and 10N.
        rule: where tuning starts, or what to use as it is; by default a squared exponential with a length for each
            column.
        tune: whether hyperparameters are tuned, by the evidence.
        check: how many honest bootstrap draws to make beside the theory of the out-of-bag error; 0 for none.
        accuracy: relative standard error to which the out-of-bag error is measured where its theory is not trusted.
        key: a JAX key, for the random folds, halves and draws.
        names: names of the columns, for sentences.

    Returns:
        Over `examples`: `error`, `gain` (`error` over that at $N$) and `rmse` (in the target's own units), each with
        the ends `_low` and `_high` of its 80% interval; `extended` where a power law stands in for the data; `refused`,
        a sentence where there is no forecast (then the numbers are NaN) and otherwise empty.
        Over `bootstrap`, sizes up to $N$: `oob_error`, `oob_error_stderr`, `source` ("theory" or "draws"), `oob_rmse`;
        with `check` also `check_oob_error` and `check_oob_error_stderr`.
        Over `point`, the rows: `leave_one_out` (residuals, own units) and `point_oob_error`; `worst` are the rows that
        hurt most. Attributes: `grade` ("A", "rough" or "refused"), `reasons` and the numbers behind them.

    Raises:
        InputError: in one sentence, for a table or arguments that cannot be worked with.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from quenched import processes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> answer = processes.forecast(X[:60], y[:60], examples=[60, 120, 240])
        >>> bool(answer["error_low"][2] < answer["error"][2] < answer["error_high"][2])
        True
    """
    table = read(X, y, names, keep=rule is not None)
    law = Empirical(table.X, table.y)
    sizes = _sizes(examples, law.rows)
    check = checks.whole("check", check, least=0)
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    key, tune = jax.random.key(0) if key is None else checks.key(key), checks.flag("tune", tune)
    draw = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    work = 1 + (trials.FOLDS if tune else 0) + trials.HALVINGS + GROUPS
    with _threads(law.rows):
        with progress("forecast", work) as advance:
            tuned = _tuned(law, rule, tune, draw, advance)
            known = trials.prior(law, tuned.rule)
            found = _judge(known, tuned.ratio, tuned.rows / law.rows, sizes, draw, advance)
        bootstrap = _bootstrap(law, tuned.rule, sizes, accuracy, check, key)
    result = xr.merge([_beyond(found, law, sizes), bootstrap]).assign_attrs(bootstrap.attrs)
    refusal, remarks = _refusal(found, table), [*table.remarks, *tuned.remarks, *_remarks(found, known)]
    return table.in_own_units(_speak(result, found, refusal, remarks, law, tuned.rule, known))


def _threads(rows: int) -> contextlib.AbstractContextManager[Any]:
    """One thread for BLAS on small tables: a second one mostly waits for the first, and makes JAX wait for both."""
    import scipy.linalg.cython_lapack  # noqa: F401  JAX loads this BLAS at the first decomposition: too late

    return threadpoolctl.threadpool_limits(1 if rows <= LARGEST_TUNED else None, user_api="blas")


def _sizes(examples: Any, N: int) -> np.ndarray:
    """The numbers of rows to speak about."""
    if examples is None:
        return np.unique([max(round(N * share), 1) for share in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 10)]).astype(float)
    return checks.increasing("examples", examples, least=1)


# What is known --------------------------------------------------------------------------------------------------------


class _Tuned(NamedTuple):
    rule: GaussianProcess
    ratio: float  # of errors, tuned anew on parts over tuned on all
    rows: int  # on which the hyperparameters were tuned
    remarks: tuple[str, ...]


def _tuned(
    law: Empirical, rule: GaussianProcess | None, tune: bool, draw: np.random.Generator, advance: Callable[[int], None]
) -> _Tuned:
    """Tune the hyperparameters, and see how much of the error that hides."""
    if rule is not None and not isinstance(rule, GaussianProcess):
        raise InputError(f"Argument `rule` must be a GaussianProcess, but {rule!r} was given.")
    start = learner.default_rule(law) if rule is None else rule
    if not tune:
        if rule is None:
            raise InputError("Argument `rule` must be given when `tune` is False, but it is not.")
        return _Tuned(start, 1.0, law.rows, ())
    few, remarks = law, ()
    if law.rows > LARGEST_TUNED and callable(start.kernel):
        rows = np.sort(draw.permutation(law.rows)[:LARGEST_TUNED])
        centre, scale = law.units()
        few = Empirical(np.asarray(law.inputs)[rows], np.asarray(law.targets)[rows], centre, scale)
        remarks = (f"Hyperparameters were tuned on {LARGEST_TUNED} random rows of {law.rows}.",)
    with _threads(few.rows):
        best = learner.most_likely(few, start)
        advance(1)
        ratio = 1.0 if law.rows < FEWEST_FORECAST else trials.refit_ratio(few, start, best, draw, advance)
    return _Tuned(best, ratio, few.rows, remarks)


class _Found(NamedTuple):
    """All numbers of a forecast before anything is refused; arrays over the asked sizes."""

    rows: int
    loo: float
    residual: np.ndarray  # [N]
    training: float
    error: np.ndarray
    gain: np.ndarray
    spread: np.ndarray  # standard error of log error
    gain_spread: np.ndarray
    extended: np.ndarray
    H: float
    backtest: float
    refit: float
    df1: float


def _judge(
    known: trials.Prior,
    ratio: float,
    share: float,
    sizes: np.ndarray,
    draw: np.random.Generator,
    advance: Callable[[int], None],
) -> _Found:
    r"""Error, gain and their standard errors in the log.

    Args:
        known: prior covariance and targets.
        ratio: by which tuning anew raises the error.
        share: of the rows, on which hyperparameters were tuned.
        sizes: numbers of rows.
        draw: chooses groups and halves.
        advance: is told of steps done.
    """
    modes, s2, N = known.modes(), known.s2, len(known.y)
    left = continuation.left_out(modes, s2)
    at = continuation.curve(modes.spectrum, s2, np.append(sizes, N))
    H = float(np.log(left.error / at.gcv[-1]))
    b = np.nan if N < FEWEST_FORECAST else trials.backtest(known, left.error, draw, advance)
    se0 = continuation.level_error(modes, s2, left)
    groups = draw.permutation(N) % min(GROUPS, N)
    se_r = continuation.shape_error(modes, s2, sizes, groups, advance)
    gap = continuation.shape_gap(modes, s2, at)[:-1]
    shape = np.log(at.gcv[:-1] / at.gcv[-1]) + np.where(sizes < N, gap, 0.0)  # below N row by row is more exact
    tau = _model_error(np.abs(np.log2(sizes / N)), np.abs(gap), b, H)
    log_f = share * np.log(max(ratio, 1.0))
    tuning, unsure = log_f * (1 + N / sizes) / 2, log_f * np.maximum(N / sizes, (1 + N / sizes) / 2)
    present, error = left.error * np.exp(log_f), left.error * np.exp(shape + tuning)
    # A few rows tell their mean at least; tuning on very few may seem to cost more than anything could.
    error = np.where(sizes < N, np.minimum(error, np.maximum(present, 1 + 1 / sizes)), error)
    return _Found(
        N, left.error, left.residual, float(np.mean(left.training**2)), error, error / present,
        np.sqrt(se0**2 + se_r**2 + tau**2 + (unsure / 2) ** 2),
        np.sqrt(se_r**2 + tau**2 + ((unsure - log_f) / 2) ** 2),
        at.extended[:-1], H, b, ratio, float(at.state.df1[-1]),
    )  # fmt: skip


def _model_error(doublings: np.ndarray, gap: np.ndarray, b: float, H: float) -> np.ndarray:
    """The error of the shape that its own spread does not show, in the log.

    Args:
        doublings: how often $N$ has to be doubled, or halved, for each size.
        gap: between the two kinds of cross-validation, at each size.
        b: log deviation of the backtest, which is over one doubling.
        H: log ratio of the two kinds of cross-validation at $N$.
    """
    doubt = max(abs(b) if np.isfinite(b) else 0.0, H if H > ROUGH_GAP else 0.0)
    near = np.minimum(doublings, 1.0)  # at N itself leave-one-out is exact, and the shape is certain
    return np.max([0.02 * doublings, gap / 2, near * doubt / 2], axis=0)


# What may be said -----------------------------------------------------------------------------------------------------


def _refusal(found: _Found, table: Table) -> str:
    """Why there is no forecast at all, in a sentence; empty where there is one."""
    N, r = found.rows, found.residual - found.residual.mean()
    if N < FEWEST_FORECAST:
        return f"A forecast needs at least {FEWEST_FORECAST} rows, and there are {N}."
    copies = N - len(np.unique(np.column_stack([table.X, table.y]), axis=0))
    if copies > COPIES * N:
        return f"{copies} of {N} rows are copies of others, so that no row is unseen: remove them and ask again."
    lag = float(r[1:] @ r[:-1] / (r @ r))
    if abs(lag) > ORDERED / np.sqrt(N):
        return (f"Residuals of neighbouring rows are correlated ({lag:+.2f}): the rows seem to be in order of time, in "
                "groups or sorted, so that rows to come may differ from these; if they are independent, shuffle them "
                "and ask again.")  # fmt: skip
    if found.df1 > FULL * N:
        return (f"The process uses {found.df1:.0f} degrees of freedom for {N} rows (noise too low), which leaves "
                "nothing to judge it by.")  # fmt: skip
    if abs(found.backtest) > WORST_BACKTEST:
        way = "high" if found.backtest > 0 else "low"
        return (f"Forecasts of the present error from halves of the rows were {abs(np.expm1(found.backtest)):.0%} too "
                f"{way}.")  # fmt: skip
    return ""


def _remarks(found: _Found, known: trials.Prior) -> list[str]:
    """Why a forecast is rough, or rests on little."""
    said = []
    if FEWEST_FORECAST <= found.rows < FEW:
        said.append(f"There are only {found.rows} rows, which is little to forecast from.")
    if found.H > ROUGH_GAP:
        said.append(f"Rough: single rows dominate the error (leave-one-out is {np.expm1(found.H):.0%} above "
                    "generalised cross-validation).")  # fmt: skip
    if abs(found.backtest) > POOR_BACKTEST:
        said.append(f"Rough: forecasts of the present error from halves of the rows were off by "
                    f"{abs(np.expm1(found.backtest)):.0%}.")  # fmt: skip
    if found.refit > ROUGH_REFIT:
        said.append(f"Rough: hyperparameters tuned anew raise the error by {found.refit - 1:.0%}, so there are many "
                    "for so few rows.")  # fmt: skip
    if known.neglected > 0.1 * known.s2:
        said.append(f"Rough: the low-rank kernel leaves out {known.neglected:.2g} of the prior variance, not far below "
                    f"the noise of {known.s2:.2g}.")  # fmt: skip
    return said


def _beyond(found: _Found, law: Empirical, sizes: np.ndarray) -> xr.Dataset:
    """The forecast over `examples`, before anything is refused."""
    scale = float(law.units()[1])
    wide, narrow = np.exp(Z80 * found.spread), np.exp(Z80 * found.gain_spread)
    values = {
        "error": found.error, "error_low": found.error / wide, "error_high": found.error * wide,
        "gain": found.gain, "gain_low": found.gain / narrow, "gain_high": found.gain * narrow,
    }  # fmt: skip
    values |= {name.replace("error", "rmse"): scale * np.sqrt(values[name]) for name in list(values)[:3]}
    return xr.Dataset(
        {name: ("examples", value) for name, value in values.items()} | {"extended": ("examples", found.extended)},
        {"examples": sizes},
    )


def _speak(
    result: xr.Dataset,
    found: _Found,
    refusal: str,
    remarks: list[str],
    law: Empirical,
    rule: GaussianProcess,
    known: trials.Prior,
) -> xr.Dataset:
    """Take back what may not be said, and say why; describe where the rest comes from."""
    sizes, N = result["examples"].values, law.rows
    far = f"This is more than {FARTHEST} times the {N} rows at hand."
    refused = np.array([refusal or (far if m > FARTHEST * N else "") for m in sizes])
    for name, value in result.data_vars.items():
        if value.dims == ("examples",) and value.dtype.kind == "f":
            result[name] = value.where(refused == "")
    result["refused"] = ("examples", refused)
    centre, scale = (float(x) for x in law.units())
    result["leave_one_out"] = ("point", scale * found.residual)
    rough = any(remark.startswith("Rough") for remark in remarks)
    grade = "refused" if np.all(refused != "") else "rough" if rough else "A"
    reasons = [refusal, *(remark for remark in remarks if not remark.startswith("Rough"))] if refusal else remarks
    return result.assign_attrs(
        grade=grade, reasons="\n".join(reasons), rows=N, target_scale=scale, target_centre=centre,
        noise=float(rule.noise), kernel=_words(rule), leave_one_out=found.loo, training_error=found.training,
        backtest=found.backtest, H=found.H, refit_ratio=found.refit, df1=found.df1, jitter=known.jitter,
        science="processes", source="forecast", version=results.version(), format=results.FORMAT,
    )  # fmt: skip


def _words(rule: GaussianProcess) -> str:
    """The kernel as text."""
    return results.describe(rule.kernel) if callable(rule.kernel) else "a matrix"


# The bootstrap --------------------------------------------------------------------------------------------------------


def _bootstrap(
    law: Empirical, rule: GaussianProcess, sizes: np.ndarray, accuracy: float, check: int, key: Key
) -> xr.Dataset:
    """The out-of-bag error at sizes up to all rows, and the rows that contribute most to it."""
    within = np.unique(np.append(sizes[sizes <= law.rows], law.rows))
    curve_key, check_key = jax.random.split(key)
    rank = None if law.rows <= trials.LARGEST_DENSE else trials.RANK
    out = automatic.curve(law, rule, examples=within, accuracy=accuracy, rank=rank, key=curve_key)
    here, scale = out.isel(examples=-1), float(law.units()[1])
    kept = out[["oob_error", "oob_error_stderr", "source"]].reset_coords(drop=True)
    result = kept.rename(examples="bootstrap").drop_attrs()
    result["oob_rmse"] = scale * np.sqrt(result["oob_error"])
    point = np.asarray(here["point_oob_error"])
    result["point_oob_error"] = ("point", point)
    result["worst"] = ("rank", np.argsort(-point)[:WORST])
    result = result.assign_coords(point=np.arange(law.rows))
    if check:
        honest = simulation.measure(
            law, rule, examples=within, runs=check, key=check_key, simulator=simulation.Plain(), variance=False
        )
        for name in ("oob_error", "oob_error_stderr"):
            result[f"check_{name}"] = ("bootstrap", np.asarray(honest[name]))
    return result.assign_attrs({name: float(here[name]) for name in ("error_632", "error_632plus")})
