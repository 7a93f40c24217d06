r"""How good will this regression be with $m$ examples, how sure is that, and how many are needed?

From a table of $N$ rows: tune a Gaussian process and measure its error on unseen rows exactly (leave-one-out). Below
$N$ the error is that of random subsets of the rows, without repeats, judged by the others. Beyond $N$ the learning
curve is continued (`theory.continuation`),

$$E_m = \mathrm{LOO}_N\, \frac{\mathrm{GCV}_m}{\mathrm{GCV}_N}\, f^{(1 + N/m)/2},$$

where $f \ge 1$ is by how much tuning anew on parts of the rows raises the cross-validated error. Hyperparameters tuned
on $m$ rows cost the test error a factor $1 + c/m$; judged by the $N$ rows that they were tuned on, they look better
than the best ones by $1 - c/N$. So $f = 1 + 2c/N$; the half of it that $\mathrm{LOO}_N$ lacks stays, the other half
falls as $1/m$.

The 80% interval adds, in the log, the errors of the level, of the shape (a jackknife; below $N$ also of the draws), of
the model (what a backtest and the two kinds of cross-validation disagree by) and of the hyperparameters. Rows that are
copies of others count once, everywhere. Where the method does not apply there is a sentence instead; what was
measured stays.

Assumed: rows are independent draws of one law, now and later. The forecast is a report, not an objective: minimised
over hyperparameters it becomes 10 to 70% too low.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import threadpoolctl
from numpy.random import Generator

from quenched.core import checks, results
from quenched.core.progress import progress, say
from quenched.core.types import InputError, Key, double
from quenched.processes import learner
from quenched.processes.model import LABELS, SCIENCE, Empirical, GaussianProcess, take
from quenched.processes.practice import judgement, trials
from quenched.processes.practice.judgement import FARTHEST, FEWEST_FORECAST, Z80
from quenched.processes.practice.table import find_copies, read
from quenched.processes.practice.trials import Advance, Prior, prior_of
from quenched.processes.theory import continuation

if TYPE_CHECKING:
    import xarray as xr

GROUPS = 10
"""Groups of rows that the jackknife leaves out in turn."""
CHECKABLE = 0.9
"""Share of the rows up to which processes tuned anew leave enough rows to judge them by."""
WORST = 10
"""Rows that are named as those that hurt most."""
SHARES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 10)
"""Sizes to report by default, as shares of the rows."""
FIRST_TUNED = 400
"""Rows on which tuning begins and on which refitting is tried, at most."""


@double
def forecast(
    X: Any, y: Any, *, examples: Any = None, rule: GaussianProcess | None = None, tune: bool = True, check: int = 0,
    accuracy: float = 0.03, key: Key | None = None, names: Sequence[str] | None = None,
) -> xr.Dataset:  # fmt: skip
    r"""Forecast the error of Gaussian-process regression at other numbers of examples.

    Columns are standardised first, and the kernel sees them so. `error` is the expected squared error on an unseen row
    of a process trained on $m$ rows and tuned on them as here, as a share of the target's variance: 1 is what
    predicting the mean gives. Of rows that are copies of each other one is used; all sizes count rows as the table
    does, so that as large a share of them is taken for copies.

    Args:
        X: the inputs `[N, d]` (or `[N]`), numbers without gaps.
        y: the targets `[N]`.
        examples: numbers $m$ of rows, increasing; by default N/8, N/4, N/2, N, 2N, 4N and 10N.
        rule: where tuning starts, or what to use as it is; by default a squared exponential with a length for each
            column.
        tune: whether hyperparameters are tuned, by the evidence.
        check: how many random subsets of $m < N$ rows to tune anew and train, as a check of `error`; 0 for none.
        accuracy: relative standard error to which the error of random subsets is measured.
        key: a JAX key, for the random folds, halves and subsets.
        names: names of the columns, for sentences.

    Returns:
        Over `examples`: `error`, `gain` (`error` over that at $N$) and `rmse` (in the target's own units), each with
        the ends `_low` and `_high` of its 80% interval; `source`, "subsets" below $N$, "leave-one-out" at $N$ and
        "continuation" beyond; `extended` where a power law stands in for the data; `refused`, a sentence where there
        is no forecast (then the numbers are NaN) and otherwise empty. Up to $N$ also `measured`, the error with
        hyperparameters tuned on all rows, with `measured_stderr` and `draws`; it stays where a forecast is refused.
        With `check` also `check_error` and `check_error_stderr`.
        Over `point`, the rows: `leave_one_out` (residuals, own units); `worst` are the rows with the largest.
        Attributes: `grade` ("A", "rough" or "refused"), `reasons` and the numbers behind them, such as `explained`,
        the share of the variance that the inputs explain, with its standard error, and `copies`.

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
    N = len(table.y)
    sizes = checks.increasing("examples", default_sizes(N) if examples is None else examples, least=1)
    check = checks.whole("check", check, least=0)
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    key, tune = jax.random.key(0) if key is None else checks.key(key), checks.flag("tune", tune)
    draw = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    law = Empirical(table.X, table.y)
    kept, place = np.unique(find_copies(table.X, table.y), return_inverse=True)
    if rule is not None:
        SCIENCE.check_pair(law, rule)
        law, start = take(law, rule, kept)
    elif tune:
        law = law.take(kept)
        start = learner.default_rule(law)
    else:
        raise InputError("Argument `rule` must be given when `tune` is False, but it is not.")
    m = sizes * law.rows / N  # different rows
    checked = np.flatnonzero((m < CHECKABLE * law.rows) & (check > 0))
    work = 2 + trials.FOLDS + trials.HALVINGS + GROUPS + int(np.sum(m < law.rows)) + len(checked)
    # One thread for BLAS: matrices are small, and a second thread mostly waits for the first.
    with threadpoolctl.threadpool_limits(1, user_api="blas"), progress("forecast", work) as advance:
        tuned = _tune(law, start, draw, advance) if tune else _Tuned(start, 1.0, 0.0, ())
        known = prior_of(law, tuned.rule)
        values, found = _judge(known, tuned, m, accuracy, draw, advance)
        anew = np.full((2, len(sizes)), np.nan)
        for i in checked:
            anew[:, i] = trials.measure_anew(law, start, tune, max(round(float(m[i])), 1), check, draw)
            advance(1)
    if check:
        values |= dict(zip(("check_error", "check_error_stderr"), anew, strict=True))
    centre, scale = (table.unit * float(unit) for unit in law.units())
    for end in ("", "_low", "_high"):
        values[f"rmse{end}"] = scale * np.sqrt(values[f"error{end}"])
    remarks = [*table.remarks, *tuned.remarks, *judgement.remarks(found, N - law.rows)]
    about = {"target_scale": scale, "target_centre": centre, "jitter": known.jitter, "neglected": known.neglected}
    about |= {"kernel": results.describe(tuned.rule.kernel) if callable(tuned.rule.kernel) else "a matrix"}
    result = _answer(values, sizes, found, remarks, N, about)
    targets = table.unit * table.y
    predicted = targets[kept] - scale * found.residual
    result["leave_one_out"] = ("point", targets - predicted[place])
    result["worst"] = ("rank", kept[np.argsort(-np.abs(found.residual), kind="stable")[:WORST]])
    return result.assign_coords(point=np.arange(N))


def default_sizes(rows: int) -> list[int]:
    """The numbers of examples that are reported by default."""
    return sorted({max(round(rows * share), 1) for share in SHARES})


class _Tuned(NamedTuple):
    rule: GaussianProcess
    ratio: float  # of errors, tuned anew on parts over tuned on all
    cost: float  # log of that ratio if all rows were tuned on
    remarks: tuple[str, ...]


def _tune(law: Empirical, start: GaussianProcess, draw: Generator, advance: Advance) -> _Tuned:
    """Tune the hyperparameters, first on few rows, and see how much of the error that hides."""
    remarks = ()
    few = _some_rows(law, draw, FIRST_TUNED) if callable(start.kernel) else law
    best = first = learner.most_likely(few, start, tolerance=trials.SHARP)
    advance(1)
    if few.rows < law.rows:
        if law.rows > trials.LARGEST_TUNED:
            remarks = (f"Hyperparameters were tuned on {trials.LARGEST_TUNED} random rows of {law.rows}.",)
            _say_first(law, first)
        best = learner.most_likely(_some_rows(law, draw, trials.LARGEST_TUNED), first, tolerance=trials.SHARP)
    advance(1)
    ratio = 1.0 if law.rows < FEWEST_FORECAST else trials.refit_ratio(few, start, first, draw, advance)
    return _Tuned(best, ratio, few.rows / law.rows * float(np.log(max(ratio, 1.0))), remarks)


def _some_rows(law: Empirical, draw: Generator, most: int) -> Empirical:
    """Random rows of a table, in its units and order; all of them if there are no more."""
    return law if law.rows <= most else law.take(np.sort(draw.permutation(law.rows)[:most]))


def _say_first(law: Empirical, rule: GaussianProcess) -> None:
    """First numbers of a large table, from hyperparameters tuned on few of its rows."""
    known = prior_of(law, rule)
    modes = known.modes()
    left = continuation.leave_out(modes, known.s2)
    at = continuation.continue_curve(modes.spectrum, known.s2, np.array([law.rows, 2 * law.rows]))
    wide = float(np.exp(Z80 * continuation.level_error(modes, known.s2, left)))
    say(f"First numbers: with all rows the error is about {left.error:.3g} ({left.error / wide:.3g} to "
        f"{left.error * wide:.3g}), with twice as many {at.gcv[1] / at.gcv[0] - 1:+.1%}.")  # fmt: skip


def _judge(
    known: Prior, tuned: _Tuned, m: np.ndarray, accuracy: float, draw: Generator, advance: Advance
) -> tuple[dict[str, Any], judgement.Found]:
    """What a forecast says of numbers `m` of different rows, and all that it is judged by."""
    modes, s2, N, log_f = known.modes(), known.s2, len(known.y), tuned.cost
    left = continuation.leave_out(modes, s2)
    at = continuation.continue_curve(modes.spectrum, s2, np.append(m, N))
    H = float(np.log(left.error / at.gcv[-1]))
    b = np.nan if N < FEWEST_FORECAST else trials.backtest(known, left.error, draw, advance)
    # Standard errors in the log: of the level, of the shape and, beyond all rows, of the model.
    se0 = continuation.level_error(modes, s2, left)
    se_r = continuation.shape_error(modes, s2, m, draw.permutation(N) % min(GROUPS, N), advance)
    gap = continuation.shape_gap(modes, s2, at)[:-1]
    below, draws = m < N, np.zeros(len(m), int)
    measured, stderr = np.where(m == N, left.error, np.nan), np.where(m == N, 0.0, np.nan)
    for i in np.flatnonzero(below):
        rows = int(np.clip(round(m[i]), 1, N - 1))
        measured[i], stderr[i], draws[i] = trials.measure_subsets(known, left.residual, rows, accuracy, draw)
        advance(1)
    shape = np.where(below, np.log(measured / left.error), np.log(at.gcv[:-1] / at.gcv[-1]))
    drawn = np.where(below, stderr / measured, 0.0)
    tau = np.where(below, drawn, _model_error(np.log2(np.maximum(m / N, 1.0)), np.abs(gap), b, H))
    tau = np.hypot(tau, np.where(m == N, 0.0, known.neglected / s2))
    tuning, unsure = log_f * (1 + N / m) / 2, log_f * np.maximum(N / m, (1 + N / m) / 2)
    present, error = left.error * np.exp(log_f), left.error * np.exp(shape + tuning)
    # A few rows tell their mean at least; tuning on very few may seem to cost more than anything could.
    error = np.where(below, np.minimum(error, np.maximum(present, 1 + 1 / m)), error)
    wide = np.exp(Z80 * np.sqrt(se0**2 + se_r**2 + tau**2 + (unsure / 2) ** 2))
    narrow = np.exp(Z80 * np.sqrt(se_r**2 + tau**2 + ((unsure - log_f) / 2) ** 2))
    gain = error / present
    values = {
        "error": error, "error_low": error / wide, "error_high": error * wide,
        "gain": gain, "gain_low": gain / narrow, "gain_high": gain * narrow,
        "measured": measured, "measured_stderr": stderr, "draws": draws,
        "source": np.where(below, "subsets", np.where(m == N, "leave-one-out", "continuation")),
        "extended": at.extended[:-1],
    }  # fmt: skip
    training, df1 = float(np.mean(left.training**2)), float(at.state.df1[-1])
    return values, judgement.Found(
        known.y, left.residual, training, H, b, tuned.ratio, float(present), df1, s2, known.neglected
    )


def _model_error(doublings: np.ndarray, gap: np.ndarray, b: float, H: float) -> np.ndarray:
    """The error of the shape beyond all rows that its own spread does not show, in the log."""
    # What the backtest (over one doubling) and the two kinds of cross-validation at N leave in doubt.
    doubt = max(abs(b) if np.isfinite(b) else 0.0, H if H > judgement.ROUGH_GAP else 0.0)
    near = np.minimum(doublings, 1.0)  # at N itself leave-one-out is exact, and the shape is certain
    return np.max([0.02 * doublings, gap / 2, near * doubt / 2], axis=0)


def _answer(
    values: dict[str, Any], sizes: np.ndarray, found: judgement.Found, remarks: list[str], N: int, about: dict[str, Any]
) -> xr.Dataset:
    """The forecast over `examples`: refused sizes are masked, with the reasons."""
    import xarray as xr

    copies = N - len(found.y)
    refusal, far = judgement.refusal(found, copies), f"This is more than {FARTHEST} times the {N} rows at hand."
    refused = np.array([refusal or (far if m > FARTHEST * N else "") for m in sizes])
    for name in (f"{name}{end}" for name in ("error", "gain", "rmse") for end in ("", "_low", "_high")):
        values[name] = np.where(refused == "", values[name], np.nan)
    result = xr.Dataset({name: ("examples", value) for name, value in {**values, "refused": refused}.items()},
                        {"examples": ("examples", sizes, {"long_name": LABELS["examples"]})})  # fmt: skip
    rough = [remark for remark in remarks if remark.startswith("Rough")]
    reasons = [refusal, *(remark for remark in remarks if remark not in rough)] if refusal else remarks
    explained, stderr = judgement.explained(found)
    return result.assign_attrs(
        grade="refused" if np.all(refused != "") else "rough" if rough else "A", reasons="\n".join(reasons), rows=N,
        copies=copies, noise=found.noise, leave_one_out=found.loo, training_error=found.training, explained=explained,
        explained_stderr=stderr, backtest=found.backtest, H=found.H, refit_ratio=found.refit, df1=found.df1,
        science="processes", source="forecast", scale="log", version=results.version(), format=results.FORMAT, **about,
    )  # fmt: skip
