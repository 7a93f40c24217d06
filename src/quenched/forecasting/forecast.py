r"""How good will this estimator be with $m$ rows, how sure is that, and how many are needed?

The learning curve is measured inside the $N$ rows at hand (`measure`) and continued (`extrapolate`). To the interval
of the shape comes the error of the level: $N$ rows tell an error rate $p$ to $\sqrt{p(1-p)/N}$ only, the same for all
sizes. So the change, `gain`, is known better than the error itself.

Assumed: rows, or groups of them, are independent draws of one law, now and later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special
from sklearn.utils import get_tags

from quenched.core import checks, results
from quenched.core.ensemble import Executor
from quenched.core.types import InputError, double
from quenched.forecasting import linear
from quenched.forecasting.errors import Error, error_of
from quenched.forecasting.extrapolate import NEAREST, Given, predict, remarks
from quenched.forecasting.measure import FOLDS, Measured, Rows, measure
from quenched.processes.practice import judgement
from quenched.processes.practice.forecast import WORST, default_sizes
from quenched.processes.practice.judgement import FARTHEST, FEWEST_FORECAST
from quenched.processes.practice.table import find_copies

if TYPE_CHECKING:
    import xarray as xr

FEWEST = 20
"""Rows below which not even the curve is measured."""
FEW_WRONG = 10
"""Wrong rows below which an error rate is hardly known."""
FEW_PAIRS = 5
"""Neighbours that are both wrong by chance, below which their number does not show whether rows are independent."""
LEVEL = 0.8
"""Probability of the intervals."""
OVERLAP = float(np.sqrt(1 + FOLDS / (FOLDS - 1)))
"""Folds share training rows, so that their scatter shows too small an error [nadeau2003, sec. 3]."""


@double
def forecast(
    estimator: Any, X: Any, y: Any, *, examples: Any = None, scoring: Any = None, groups: Any = None,
    budget: float | None = None, executor: Executor | None = None, random_state: int | None = None,
) -> xr.Dataset:  # fmt: skip
    r"""Forecast the error of any scikit-learn estimator at other numbers of rows.

    The estimator is trained on nested parts of the rows, from 1/16 of them on, in ten folds; the curve is continued by
    `extrapolate`. That takes at most about three times as long as scikit-learn's `learning_curve` with five sizes and
    five splits. Rows that are copies of each other stay on one side of every split, and so do groups.

    Args:
        estimator: a classifier or a regressor, or a pipeline or search that ends in one; it is cloned.
        X: the inputs `[N, d]`: an array, a sparse matrix or a data frame, whatever the estimator takes.
        y: the targets `[N]`, classes or numbers.
        examples: numbers $m$ of rows, increasing; by default N/8, N/4, N/2, N, 2N, 4N and 10N.
        scoring: what to forecast: by default the share of wrong classes, or the squared error as a share of the
            target's variance; or the name of a score of scikit-learn, which is negated ("neg_log_loss") or subtracted
            from 1 ("roc_auc"), as the remarks of the result say.
        groups: for each row the group it belongs to: new rows are taken to be of new groups.
        budget: seconds to spend about; fewer or more splits are made. By default ten.
        executor: where the splits run, as `quenched.Processes(4)`; by default one after the other.
        random_state: a seed of the splits.

    Returns:
        As `processes.forecast`. Over `examples`: `error`, `gain` (`error` over that at $N$) and, for a squared error,
        `rmse` in the target's own units, each with the ends `_low` and `_high` of its 80% interval; `source`,
        `extended` (nowhere) and `refused`, a sentence where there is no forecast. Over `size`, the parts of the rows:
        the measured `curve_error`, `curve_stderr` and `curve_training`. Over `rank`: `worst`, the rows with the largest
        errors. Attributes: `grade` ("A", "rough" or "refused"), `reasons`, `measure` (which error it is), `explained`
        (the share of a constant answer's error that the inputs save), `passes` over the folds, and others.

    Raises:
        InputError: in one sentence, for an estimator, a table or arguments that cannot be worked with.

    Examples:
        >>> import quenched
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_wine(return_X_y=True)
        >>> answer = quenched.forecast(GaussianNB(), X, y, examples=[178, 356], random_state=0)
        >>> bool((answer.error_low < answer.error).all() and (answer.error < answer.error_high).all())
        True
    """
    task = _read(estimator, X, y, groups, scoring)
    N = len(task.rows.y)
    sizes = checks.increasing("examples", default_sizes(N) if examples is None else examples, least=1)
    if budget is not None:
        checks.positive("budget", checks.number("budget", budget))
    if executor is not None:
        checks.kind("executor", executor, Executor, "a place such as quenched.Processes(4)")
    if random_state is not None:
        random_state = checks.whole("random_state", random_state, least=0)
    found = measure(estimator, task.rows, task.error, budget, executor, np.random.default_rng(random_state))
    if (known := linear.leave_one_out(estimator, task.rows, task.error)) is not None:
        found = found._replace(residual=known.residual, examples=np.append(found.examples, N - 1.0),
                               error=np.append(found.error, known.error), stderr=np.append(found.stderr, known.stderr),
                               training=np.append(found.training, known.training))  # fmt: skip
    return _answer(task, found, sizes)


class Task(NamedTuple):
    """What is learned, and by which error."""

    rows: Rows
    error: Error
    alone: float  # the error of the best constant answer, where that is known
    copies: int
    grouped: bool
    remarks: tuple[str, ...]


def _read(estimator: Any, X: Any, y: Any, groups: Any, scoring: Any) -> Task:
    """Check the arguments that make a table."""
    classes = _predicts_classes(estimator)
    table, target = _table(X, y)
    N = len(target)
    if N < FEWEST:
        raise InputError(f"Argument `y` must have at least {FEWEST} rows, but there are {N}.")
    target = _classes(target) if classes else _numbers(target)
    copies = _copies(table, target)
    together = _together(groups, copies, N)
    scale = 1.0 if classes else float(np.std(target))
    error = error_of(scoring, classes, scale)
    counts = np.unique(target, return_counts=True)[1] / N
    alone = np.nan if error.scorer is not None else 1 - float(counts.max()) if classes else 1.0
    extra = int(np.sum(copies != np.arange(N)))
    said = [error.remark] if error.remark else []
    if extra:
        what = "1 row is a copy of another" if extra == 1 else f"{extra} rows are copies of others"
        said.append(f"{what}; copies stay on one side of every split.")
    return Task(Rows(table, target, together, classes), error, alone, extra, groups is not None, tuple(said))


def _predicts_classes(estimator: Any) -> bool:
    """Whether an estimator is a classifier; otherwise it must be good for a regressor."""
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise InputError(
            f"Argument `estimator` must be an estimator with `fit`, as Ridge(), but {estimator!r} was given."
        )
    try:
        kind = get_tags(estimator).estimator_type
    except AttributeError:
        raise InputError(f"Argument `estimator` must be an estimator of scikit-learn, with tags, but {estimator!r} is "
                         "not: derive its class from `sklearn.base.BaseEstimator`.") from None  # fmt: skip
    if kind not in ("classifier", "regressor") and not hasattr(estimator, "predict"):  # a stack gets it in `fit`
        raise InputError(f"Argument `estimator` must be an estimator with `predict`, but {estimator!r} has none.")
    if kind not in ("classifier", "regressor", None):
        raise InputError(f"Argument `estimator` must be a classifier or a regressor, but {estimator!r} is of the kind "
                         f"{kind.replace('_', ' ')}.")  # fmt: skip
    return kind == "classifier"


def _table(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """The inputs, as the estimator takes them, and the targets."""
    try:
        target = np.asarray(y)
        table = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "iloc") else np.asarray(X)
    except ValueError:  # rows of different lengths
        raise InputError("Arguments `X` and `y` must be a table and a list, but rows differ in length.") from None
    if target.ndim != 1 or np.ndim(table) != 2 or table.shape[0] != len(target) or table.shape[1] == 0:
        raise InputError(f"Arguments `X` and `y` must have shapes [N, d] and [N], but they are {np.shape(table)} and "
                         f"{target.shape}.")  # fmt: skip
    return table, target


def _numbers(y: np.ndarray) -> np.ndarray:
    """A target of numbers."""
    try:
        y = checks.numbers("y", y)
    except InputError:
        raise InputError("Argument `y` must be real numbers, because the estimator is a regressor, but some are "
                         "not.") from None  # fmt: skip
    if lost := int(np.sum(~np.isfinite(y))):
        raise InputError(f"Argument `y` must be finite, but {lost} of {len(y)} targets are NaN or infinite.")
    if np.ptp(y) == 0:
        raise InputError("Argument `y` must vary, but all targets are the same.")
    return y


def _classes(y: np.ndarray) -> np.ndarray:
    """A target of classes, each with a row for every fold."""
    import pandas as pd

    if np.any(pd.isna(y)) or (y.dtype.kind == "f" and not np.all(np.isfinite(y))):
        raise InputError("Argument `y` must have a class in each row, but some are missing or infinite.")
    if y.dtype.kind == "O" and 0 < np.sum([isinstance(value, str) for value in y]) < len(y):
        raise InputError("Argument `y` must have either words or numbers for classes, but it has both.")
    values, counts = np.unique(y if y.dtype.kind != "O" else y.astype(str), return_counts=True)
    if len(values) < 2:
        raise InputError(f"Argument `y` must have two or more classes, but all rows are of class {values[0]}.")
    if counts.min() < FOLDS:
        raise InputError(
            f"Argument `y` must have at least {FOLDS} rows of each class, one for each split, but class "
            f"{values[counts.argmin()]} has {counts.min()}. Leave such classes out, or join them."
        )
    return y


def _copies(X: Any, y: np.ndarray) -> np.ndarray:
    """For each row the first that it is a copy of; itself where the table cannot be compared."""
    import pandas as pd

    if hasattr(X, "tocsr"):
        return np.arange(len(y))
    columns = [X.iloc[:, k] for k in range(X.shape[1])] if hasattr(X, "iloc") else list(np.asarray(X).T)
    return find_copies(np.column_stack([pd.factorize(c)[0] for c in columns]), pd.factorize(y)[0].astype(float))


def _together(groups: Any, copies: np.ndarray, N: int) -> np.ndarray | None:
    """A number for each row, the same for those that must not be torn apart; None where all may be."""
    import pandas as pd

    if groups is None:
        return np.unique(copies, return_inverse=True)[1] if np.any(copies != np.arange(N)) else None
    named = np.asarray(groups)
    if named.shape != (N,):
        raise InputError(
            f"Argument `groups` must have one group for each of the {N} rows, but its shape is {named.shape}."
        )
    if np.any(pd.isna(named)):
        raise InputError("Argument `groups` must have a group for each row, but some are missing.")
    found = np.unique(named.astype(str), return_inverse=True)[1]
    for i in np.flatnonzero(copies != np.arange(N)):  # copies join their groups
        found[found == found[i]] = found[copies[i]]
    found = np.unique(found, return_inverse=True)[1]
    if found.max() + 1 < FOLDS:
        raise InputError(f"Argument `groups` must have at least {FOLDS} groups, one for each split, but there are "
                         f"{found.max() + 1}.")  # fmt: skip
    return found


def _answer(task: Task, found: Measured, sizes: np.ndarray) -> xr.Dataset:
    """The forecast over `examples`, with its reasons."""
    import xarray as xr

    N, curve = len(task.rows.y), Given(found.examples, found.error, found.stderr, np.maximum(found.training, 0.0))
    refusal = _refusal(task, found)
    refused = np.array([refusal or _out_of_reach(m, N, found) for m in sizes])
    values = dict.fromkeys(_names(task.error), np.full(len(sizes), np.nan))
    if np.any(refused == ""):
        values = {k: np.where(refused == "", v, np.nan) for k, v in _values(curve, found, sizes, N, task.error).items()}
    rough = [f"Rough: {line}" for line in remarks(curve)] if not refusal else []
    share, stderr = _explained(task, found)
    if not refusal and np.isfinite(share) and judgement.explains_nothing(share, stderr, N):
        rough.append(f"Rough: the inputs explain nothing of the target that {N} rows could show ({100 * share:.1f} ± "
                     f"{100 * stderr:.1f}% of a constant answer's error), and what was not learned cannot be "
                     "continued.")  # fmt: skip
    if task.error.classes and not refusal and (wrong := int(np.nansum(found.residual))) < FEW_WRONG:
        rough.append(f"Rough: the estimator is wrong on only {wrong} of {N} rows.")
    few = (
        [f"There are only {N} rows, which is little to forecast from."] if FEWEST_FORECAST <= N < judgement.FEW else []
    )
    reasons = [line for line in (refusal, *task.remarks, *found.remarks, *few, *rough) if line]
    source = np.where(sizes <= found.examples[-1], "subsets", "continuation")
    result = xr.Dataset(
        {**{k: ("examples", v) for k, v in values.items()}, "source": ("examples", source),
         "extended": ("examples", np.zeros(len(sizes), bool)), "refused": ("examples", refused),
         "curve_error": ("size", found.error), "curve_stderr": ("size", found.stderr),
         "curve_training": ("size", found.training),
         "worst": ("rank", np.argsort(-np.abs(np.nan_to_num(found.residual)), kind="stable")[:WORST])},
        {"examples": ("examples", sizes, {"long_name": "training examples"}), "size": found.examples},
    )  # fmt: skip
    about = {} if task.error.scorer is not None or task.error.classes else {"target_scale": task.error.scale}
    grade = "refused" if np.all(refused != "") else "rough" if rough else "A"
    return result.assign_attrs(
        grade=grade, reasons="\n".join(reasons), rows=N, copies=task.copies, measure=task.error.words, level=LEVEL,
        explained=share, explained_stderr=stderr, constant_error=task.alone, training_error=float(found.training[-1]),
        passes=found.passes, source="forecast", scale="log", version=results.version(), format=results.FORMAT, **about,
    )  # fmt: skip


def _out_of_reach(m: float, N: int, found: Measured) -> str:
    """Why there is no forecast for `m` rows, in a sentence; empty where there is one."""
    if m > FARTHEST * N:
        return f"This is more than {FARTHEST} times the {N} rows at hand."
    if m < found.examples[0]:
        return f"This is fewer than the {found.examples[0]:g} rows of the smallest part that was learned."
    return ""


def _names(error: Error) -> list[str]:
    """The variables that have an interval, with its ends."""
    known = ("error", "gain", "rmse") if error.scorer is None and not error.classes else ("error", "gain")
    return [f"{name}{end}" for name in known for end in ("", "_low", "_high")]


def _values(curve: Given, found: Measured, sizes: np.ndarray, N: int, error: Error) -> dict[str, np.ndarray]:
    """Errors, gains and their intervals."""
    reach = np.clip(np.append(sizes, N), curve.examples[0], FARTHEST * N)
    best, low, high = predict(curve, reach, LEVEL)
    present, best, low, high = best[-1], best[:-1], low[:-1], high[:-1]
    t = special.stdtrit(FOLDS - 1, (1 + LEVEL) / 2)  # ten folds do not tell their scatter exactly
    level = (
        t
        * OVERLAP
        * np.interp(np.log(reach[:-1]), np.log(found.examples), found.stderr / np.maximum(found.error, 1e-12))
    )
    # Of itself the present error is a known share; below it, the level is all that there is doubt of.
    octaves = np.log2(reach[:-1] / N) / NEAREST
    near, beyond = np.minimum(np.abs(octaves), 1.0), np.clip(octaves, 0.0, 1.0)
    wide_low, wide_high = (np.hypot(beyond * np.log(best / low), level), np.hypot(beyond * np.log(high / best), level))
    values = {"error": best, "error_low": best * np.exp(-wide_low), "error_high": best * np.exp(wide_high)}
    gain = best / present
    values |= {"gain": gain, "gain_low": gain * (low / best) ** near, "gain_high": gain * (high / best) ** near}
    for end in ("", "_low", "_high"):
        if "rmse" in _names(error):
            values[f"rmse{end}"] = error.scale * np.sqrt(values[f"error{end}"])
    return values


def _refusal(task: Task, found: Measured) -> str:
    """Why there is no forecast, in a sentence; empty where there is one."""
    N = len(task.rows.y)
    if N < FEWEST_FORECAST:
        return f"A forecast needs at least {FEWEST_FORECAST} rows, and there are {N}."
    if not np.any(found.error[-1] > 0):
        return "The estimator makes no error on any of these rows, so there is nothing to continue."
    if len(found.examples) < 5:
        return "The estimator learns from too few sizes of parts of these rows."
    known = np.isfinite(found.residual)
    if task.grouped or not np.all(known):
        return ""
    if task.error.classes and min(wrong := found.residual.sum(), N - wrong) ** 2 < FEW_PAIRS * N:
        return ""
    order = task.rows.y if not task.error.classes else np.unique(task.rows.y, return_inverse=True)[1]
    return judgement.neighbours(found.residual, order)


def _explained(task: Task, found: Measured) -> tuple[float, float]:
    """The share of a constant answer's error that the inputs save on unseen rows, and its standard error."""
    known = np.isfinite(found.residual)
    if not np.isfinite(task.alone) or not np.any(known):
        return np.nan, np.nan
    y = task.rows.y[known]
    if task.error.classes:
        values, counts = np.unique(y, return_counts=True)
        alone = (y != values[counts.argmax()]).astype(float)
    else:
        alone = ((y - y.mean()) / task.error.scale) ** 2
    less = alone - found.residual[known] ** 2
    return float(less.mean() / alone.mean()), float(less.std(ddof=1) / np.sqrt(len(less)) / alone.mean())
