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

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import threadpoolctl

from quenched.core import checks, results
from quenched.core.progress import progress, say
from quenched.core.types import InputError, Key, double
from quenched.processes import learner
from quenched.processes.learner.prior import Prior, prior_of
from quenched.processes.model import LABELS, Empirical, GaussianProcess
from quenched.processes.practice import copies, judgement, trials
from quenched.processes.practice.judgement import FARTHEST, FEWEST_FORECAST, Z80
from quenched.processes.practice.table import read
from quenched.processes.simulation import subsets
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
    $m$ rows, tuned on them as here. Of rows that are copies of each other one is used; all sizes count rows as the
    table does, so that as large a share of them is taken for copies.

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
    sizes = _sizes(examples, len(table.y))
    check = checks.whole("check", check, least=0)
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    key, tune = jax.random.key(0) if key is None else checks.key(key), checks.flag("tune", tune)
    draw = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    world = _world(Empirical(table.X, table.y), rule, tune)
    checked = world.rows(sizes) < CHECKABLE * world.law.rows if check else np.zeros(len(sizes), bool)
    work = 2 + trials.FOLDS + trials.HALVINGS + GROUPS + int(np.sum(sizes < len(table.y))) + int(checked.sum())
    with _threads(), progress("forecast", work) as advance:
        tuned = _tuned(world, tune, draw, advance)
        known = prior_of(world.law, tuned.rule)
        found = _judge(known, tuned, world.rows(sizes), accuracy, draw, advance)
        result = _beyond(found, world, sizes)
        if check:
            anew = _anew(world, tuned.rule if not tune else world.start, tune, check, sizes, checked, draw, advance)
            result = result.assign({name: ("examples", value) for name, value in anew.items()})
    refusal = judgement.refusal(found, world.copies)
    remarks = [*table.remarks, *tuned.remarks, *judgement.remarks(found, known, world.copies)]
    return table.in_own_units(_finish(result, found, refusal, remarks, world, tuned.rule, known))


def _threads() -> contextlib.AbstractContextManager[Any]:
    """One thread for BLAS: matrices are small, and a second thread mostly waits for the first."""
    return threadpoolctl.threadpool_limits(1, user_api="blas")


def default_sizes(rows: int) -> list[int]:
    """The numbers of examples that are reported by default."""
    return sorted({max(round(rows * share), 1) for share in SHARES})


def _sizes(examples: Any, N: int) -> np.ndarray:
    """The numbers of examples to report."""
    if examples is None:
        return np.array(default_sizes(N), float)
    return checks.increasing("examples", examples, least=1)


# What is known --------------------------------------------------------------------------------------------------------


class _World(NamedTuple):
    """A table without the copies in it, and where tuning starts."""

    table: Empirical
    law: Empirical  # each row once, in the table's units
    start: GaussianProcess
    first: np.ndarray  # [N], the place in `law` of each row of the table

    @property
    def copies(self) -> int:
        """How many rows are copies of others."""
        return self.table.rows - self.law.rows

    def rows(self, sizes: np.ndarray) -> np.ndarray:
        """The number of different rows among some numbers of rows."""
        return sizes * (self.law.rows / self.table.rows)


def _world(table: Empirical, rule: GaussianProcess | None, tune: bool) -> _World:
    """The table with every row once."""
    if rule is not None and not isinstance(rule, GaussianProcess):
        raise InputError(f"Argument `rule` must be a GaussianProcess, but {rule!r} was given.")
    if rule is None and not tune:
        raise InputError("Argument `rule` must be given when `tune` is False, but it is not.")
    kept, first = np.unique(
        copies.groups(np.asarray(table.inputs), np.asarray(table.targets)), return_inverse=True
    )  # fmt: skip
    law = table.take(kept)
    if rule is not None and not callable(rule.kernel) and len(kept) < table.rows:
        rule = GaussianProcess(np.asarray(rule.kernel)[np.ix_(kept, kept)], rule.noise)
    return _World(table, law, learner.default_rule(law) if rule is None else rule, first)


class _Tuned(NamedTuple):
    rule: GaussianProcess
    ratio: float  # of errors, tuned anew on parts over tuned on all
    share: float  # of the rows, on which that was tried
    remarks: tuple[str, ...]


def _tuned(world: _World, tune: bool, draw: np.random.Generator, advance: Callable[[int], None]) -> _Tuned:
    """Tune the hyperparameters, first on few rows, and see how much of the error that hides."""
    law, start, remarks = world.law, world.start, ()
    if not tune:
        return _Tuned(start, 1.0, 1.0, ())
    small = not callable(start.kernel)
    few = law if small else _some_rows(law, draw, FIRST_TUNED)
    best = first = learner.most_likely(few, start, tolerance=subsets.SHARP)
    advance(1)
    if few.rows < law.rows:
        if law.rows > subsets.LARGEST_TUNED:
            remarks = (f"Hyperparameters were tuned on {subsets.LARGEST_TUNED} random rows of {law.rows}.",)
            _say_first(law, first)
        best = learner.most_likely(_some_rows(law, draw, subsets.LARGEST_TUNED), first, tolerance=subsets.SHARP)
    advance(1)
    ratio = 1.0 if law.rows < FEWEST_FORECAST else trials.refit_ratio(few, start, first, draw, advance)
    return _Tuned(best, ratio, few.rows / law.rows, remarks)


def _some_rows(law: Empirical, draw: np.random.Generator, most: int) -> Empirical:
    """Random rows of a table, in its units and order; all of them if there are no more."""
    return law if law.rows <= most else law.take(np.sort(draw.permutation(law.rows)[:most]))


def _say_first(law: Empirical, rule: GaussianProcess) -> None:
    """First numbers of a large table, from hyperparameters tuned on few of its rows."""
    known = prior_of(law, rule)
    modes = trials.modes_of(known)
    left = continuation.leave_out(modes, known.s2)
    at = continuation.continue_curve(modes.spectrum, known.s2, np.array([law.rows, 2 * law.rows]))
    wide = float(np.exp(Z80 * continuation.level_error(modes, known.s2, left)))
    say(f"First numbers: with all rows the error is about {left.error:.3g} ({left.error / wide:.3g} to "
        f"{left.error * wide:.3g}), with twice as many {at.gcv[1] / at.gcv[0] - 1:+.1%}.")  # fmt: skip


def _judge(
    known: Prior,
    tuned: _Tuned,
    sizes: np.ndarray,
    accuracy: float,
    draw: np.random.Generator,
    advance: Callable[[int], None],
) -> judgement.Found:
    r"""Error, gain and their standard errors in the log, at numbers of different rows."""
    modes, s2, N = trials.modes_of(known), known.s2, len(known.y)
    left = continuation.leave_out(modes, s2)
    at = continuation.continue_curve(modes.spectrum, s2, np.append(sizes, N))
    H = float(np.log(left.error / at.gcv[-1]))
    b = np.nan if N < FEWEST_FORECAST else trials.backtest(known, left.error, draw, advance)
    se0 = continuation.level_error(modes, s2, left)
    groups = draw.permutation(N) % min(GROUPS, N)
    se_r = continuation.shape_error(modes, s2, sizes, groups, advance)
    gap = continuation.shape_gap(modes, s2, at)[:-1]
    measured = _measured(known, left, sizes, accuracy, draw, advance)
    below = sizes < N
    shape = np.where(below, np.log(measured.error / left.error), np.log(at.gcv[:-1] / at.gcv[-1]))
    drawn = np.where(below, measured.stderr / measured.error, 0.0)
    tau = np.where(below, drawn, _model_error(np.log2(np.maximum(sizes / N, 1.0)), np.abs(gap), b, H))
    tau = np.hypot(tau, np.where(sizes == N, 0.0, known.neglected / s2))
    log_f = tuned.share * np.log(max(tuned.ratio, 1.0))
    tuning, unsure = log_f * (1 + N / sizes) / 2, log_f * np.maximum(N / sizes, (1 + N / sizes) / 2)
    present, error = left.error * np.exp(log_f), left.error * np.exp(shape + tuning)
    # A few rows tell their mean at least; tuning on very few may seem to cost more than anything could.
    error = np.where(below, np.minimum(error, np.maximum(present, 1 + 1 / sizes)), error)
    return judgement.Found(
        N, known.y, left.error, left.residual, float(np.mean(left.training**2)), error, error / present,
        np.sqrt(se0**2 + se_r**2 + tau**2 + (unsure / 2) ** 2),
        np.sqrt(se_r**2 + tau**2 + ((unsure - log_f) / 2) ** 2),
        measured, at.extended[:-1], H, b, tuned.ratio, present, float(at.state.df1[-1]),
    )  # fmt: skip


def _measured(
    known: Prior,
    left: continuation.LeftOut,
    sizes: np.ndarray,
    accuracy: float,
    draw: np.random.Generator,
    advance: Callable[[int], None],
) -> subsets.Measured:
    """What can be measured, over sizes: subsets of the rows below all of them, leave-one-out at all."""
    N = len(known.y)
    error, stderr, draws = np.full(len(sizes), np.nan), np.full(len(sizes), np.nan), np.zeros(len(sizes), int)
    error[sizes == N], stderr[sizes == N] = left.error, 0.0
    for i in np.flatnonzero(sizes < N):
        m = int(np.clip(round(sizes[i]), 1, N - 1))
        error[i], stderr[i], draws[i] = subsets.measure_subsets(known, left.residual, m, accuracy, draw)
        advance(1)
    return subsets.Measured(error, stderr, draws)


def _model_error(doublings: np.ndarray, gap: np.ndarray, b: float, H: float) -> np.ndarray:
    """The error of the shape beyond all rows that its own spread does not show, in the log.

    It grows with the doublings of $N$, the gap between the two kinds of cross-validation at each size, and what the
    backtest (over one doubling) and the two kinds at $N$ leave in doubt.
    """
    doubt = max(abs(b) if np.isfinite(b) else 0.0, H if H > judgement.ROUGH_GAP else 0.0)
    near = np.minimum(doublings, 1.0)  # at N itself leave-one-out is exact, and the shape is certain
    return np.max([0.02 * doublings, gap / 2, near * doubt / 2], axis=0)


def _anew(
    world: _World,
    start: GaussianProcess,
    tune: bool,
    count: int,
    sizes: np.ndarray,
    chosen: np.ndarray,
    draw: np.random.Generator,
    advance: Callable[[int], None],
) -> dict[str, np.ndarray]:
    """The error of processes tuned anew on random subsets, at some sizes; NaN at the others."""
    values = np.full((2, len(sizes)), np.nan)
    for i in np.flatnonzero(chosen):
        m = max(round(float(world.rows(sizes[i : i + 1])[0])), 1)
        values[:, i] = subsets.measure_anew(world.law, start, tune, m, count, draw)
        advance(1)
    return dict(zip(("check_error", "check_error_stderr"), values, strict=True))


# The result ----------------------------------------------------------------------------------------------------------


def _beyond(found: judgement.Found, world: _World, sizes: np.ndarray) -> xr.Dataset:
    """The forecast over `examples`, before anything is refused."""
    import xarray as xr

    scale, N = float(world.law.units()[1]), world.table.rows
    wide, narrow = np.exp(Z80 * found.spread), np.exp(Z80 * found.gain_spread)
    values = {
        "error": found.error, "error_low": found.error / wide, "error_high": found.error * wide,
        "gain": found.gain, "gain_low": found.gain / narrow, "gain_high": found.gain * narrow,
    }  # fmt: skip
    values |= {name.replace("error", "rmse"): scale * np.sqrt(values[name]) for name in list(values)[:3]}
    source = np.where(sizes < N, "subsets", np.where(sizes == N, "leave-one-out", "continuation"))
    values |= {
        "measured": found.measured.error, "measured_stderr": found.measured.stderr, "draws": found.measured.draws,
        "source": source, "extended": found.extended,
    }  # fmt: skip
    return xr.Dataset({name: ("examples", value) for name, value in values.items()},
                      {"examples": ("examples", sizes, {"long_name": LABELS["examples"]})})  # fmt: skip


def _finish(
    result: xr.Dataset,
    found: judgement.Found,
    refusal: str,
    remarks: list[str],
    world: _World,
    rule: GaussianProcess,
    known: Prior,
) -> xr.Dataset:
    """Mask refused sizes and record the reasons; describe where the rest comes from."""
    sizes, N = result["examples"].values, world.table.rows
    far = f"This is more than {FARTHEST} times the {N} rows at hand."
    refused = np.array([refusal or (far if m > FARTHEST * N else "") for m in sizes])
    for name in (f"{name}{end}" for name in ("error", "gain", "rmse") for end in ("", "_low", "_high")):
        result[name] = result[name].where(refused == "")
    result["refused"] = ("examples", refused)
    centre, scale = (float(x) for x in world.law.units())
    predicted = np.asarray(world.law.targets) - scale * found.residual
    result["leave_one_out"] = ("point", np.asarray(world.table.targets) - predicted[world.first])
    kept = np.unique(world.first, return_index=True)[1]
    result["worst"] = ("rank", kept[np.argsort(-np.abs(found.residual), kind="stable")[:WORST]])
    result = result.assign_coords(point=np.arange(N))
    rough = any(remark.startswith("Rough") for remark in remarks)
    grade = "refused" if np.all(refused != "") else "rough" if rough else "A"
    reasons = [refusal, *(remark for remark in remarks if not remark.startswith("Rough"))] if refusal else remarks
    explained, stderr = judgement.explained(found)
    return result.assign_attrs(
        grade=grade, reasons="\n".join(reasons), rows=N, copies=world.copies, target_scale=scale,
        target_centre=centre, noise=float(rule.noise), kernel=_words(rule), leave_one_out=found.loo,
        training_error=found.training, explained=explained, explained_stderr=stderr, backtest=found.backtest,
        H=found.H, refit_ratio=found.refit, df1=found.df1, jitter=known.jitter, neglected=known.neglected,
        science="processes", source="forecast", scale="log", version=results.version(), format=results.FORMAT,
    )  # fmt: skip


def _words(rule: GaussianProcess) -> str:
    """The kernel as text."""
    return results.describe(rule.kernel) if callable(rule.kernel) else "a matrix"
