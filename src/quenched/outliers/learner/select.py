"""Selection around any model, from a table to weights: what the estimators for any model are made of.

`select_labels` is for classes, `select_values` for numbers. Both judge rows out of fold (`around`), look for signs that
selection is misled (`doubts`), and return weights of one where it does not help.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from quenched.core.types import Outcome
from quenched.outliers.learner import density, labels, values
from quenched.outliers.learner.around import Fit, Fold, Predict, Verdict, iterate, predict
from quenched.outliers.learner.classes import weigh
from quenched.outliers.learner.doubts import (
    count_neighbours,
    find_clump,
    find_fault,
    measure_distance,
)
from quenched.outliers.model import Rule

FEWEST = 5
"""Rows of a class, or of a table, that are kept whatever they look like."""
INNER = 3
"""M-steps inside the check of classes: the selection has mostly settled by then."""
GAIN = 1.25
"""Classes: standard errors by which held-out labels must become more probable for selection to be used."""
LOSS = 1.0
"""Standard errors by which a ball of rows must harm what is predicted of the others to be left out."""
BETTER = 0.04
"""Values: the gain in log-likelihood of a row, over the plain model, without which selection is not used."""
APART, CLOSE = 0.1, 3.0
"""Two selections differ if probabilities do by this in the mean, and compete if log-likelihoods, tempered, differ by
less."""
LEVEL = 0.8
"""Probability in the interval of the share."""
TEMPER = 0.2
"""Power of the likelihood in the interval: models are wrong, and folds share rows."""
WIDEST = 0.35
"""An interval of the share that is wider does not tell it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Selection:
    """Which rows count, and why.

    Attributes:
        weights: how much each row counts, between 0 and 1 `[n]`.
        outlier: the probability that each row is an outlier `[n]`.
        share: of outliers.
        interval: of the share, 80% of the probability.
        told: whether the data tell the share.
        used: whether selection is used; otherwise weights are one.
        gain: of the check out of fold: change of the mean log-likelihood of labels, or 1 minus the ratio of median
            residuals.
        gain_stderr: its standard error; 0 for values.
        clump: rows in a tight ball `[n]`.
        alternative: the probabilities by another selection that explains the table about as well `[n]`, or None.
        sentence: what to say about all this; empty if selection is used without a doubt.
        passes: M-steps.
        outcome: `converged`, or `stalled` when the passes ran out.
        signs: numbers on which the choices rest, by name.
    """

    weights: np.ndarray
    outlier: np.ndarray
    share: float
    interval: tuple[float, float]
    told: bool
    used: bool
    gain: float
    gain_stderr: float
    clump: np.ndarray
    alternative: np.ndarray | None
    sentence: str
    passes: int
    outcome: Outcome
    signs: dict[str, float]


def split(codes: np.ndarray | None, n: int, folds: int, generator: np.random.Generator) -> list[Fold]:
    """Folds, with every class in each where there are enough rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    seed, plain = int(generator.integers(2**31)), np.zeros((n, 1))
    sizes = np.array([n]) if codes is None else np.bincount(codes)
    count = min(folds, n) if codes is None else min(folds, max(2, int(sizes.min())))
    if codes is None or sizes.max() < count:
        return list(KFold(count, shuffle=True, random_state=seed).split(plain))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(StratifiedKFold(count, shuffle=True, random_state=seed).split(plain, codes))


def keep_some(codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights with which every class still has some rows: where it would not, all of its rows count."""
    counts = np.bincount(codes, weights)
    all_rows = np.bincount(codes)
    few = counts < np.minimum(np.maximum(FEWEST, 0.1 * all_rows), all_rows)
    return np.where(few[codes], 1.0, weights)


def select_labels(
    rule: Rule, fit: Fit, X: np.ndarray, codes: np.ndarray, omega: np.ndarray, *, folds: int, passes: int,
    generator: np.random.Generator, share: float | None = None, check: bool = True,
) -> Selection:  # fmt: skip
    """Which rows of a table with classes count.

    Args:
        rule: `SoftSelection()` or `HardSelection()`.
        fit: the model, with log-probabilities of the classes.
        X: rows in comparable units `[n, d]`, for densities and distances.
        codes: classes from 0 `[n]`.
        omega: positive weights `[n]`.
        folds: by which rows are judged.
        passes: M-steps at most.
        generator: of the folds and the permuted rows.
        share: of wrong labels; None: estimated.
        check: whether selection is given up where it does not help.
    """
    how = {"folds": folds, "passes": passes, "generator": generator, "share": share, "check": check}
    clump, K = find_clump(X, codes), int(codes.max()) + 1
    rest = np.flatnonzero(~clump)
    if clump.any() and np.bincount(codes[rest], minlength=K).min() >= FEWEST:
        parts = split(codes, len(codes), folds, generator)
        right = [predict(fit, parts, omega * w).argmax(axis=1) == codes for w in (np.ones(len(codes)), ~clump)]
        gain, stderr = average((right[1].astype(float) - right[0])[rest], omega[rest])
        if gain > LOSS * stderr:
            found = _select_labels(rule, _within(fit, rest), X[rest], codes[rest], omega[rest], **how)
            return conclude(found, clump, omega, left_out=True)
    return conclude(_select_labels(rule, fit, X, codes, omega, **how), clump, omega, left_out=False)


def _select_labels(
    rule: Rule, fit: Fit, X: np.ndarray, codes: np.ndarray, omega: np.ndarray, *, folds: int, passes: int,
    generator: np.random.Generator, share: float | None, check: bool,
) -> Selection:  # fmt: skip
    """The same but for rows in a tight ball."""
    n, K = len(codes), int(codes.max()) + 1
    parts = split(codes, n, folds, generator)
    strange = density.compare(X, codes, omega, parts, generator)
    judge = labels.Labels(rule, codes, K, omega, share, strange)
    plain = predict(fit, parts, omega)

    def keep(w: np.ndarray) -> np.ndarray:
        return keep_some(codes, w)

    starts = np.ones(n), keep((plain.argmax(axis=1) == codes).astype(float))
    tried = [iterate(rule, fit, judge.judge, parts, omega, start=w, passes=passes, keep=keep) for w in starts]
    best = int(np.argmax([one.verdict.level for one in tried]))
    found, gain, stderr = tried[best], 0.0, 0.0
    if check:
        held = _predict_held_out(rule, fit, X, judge, parts, starts[best], min(passes, INNER), generator)
        gain, stderr = average(judge.explain(held) - judge.explain(plain), omega)
    used = not check or gain > GAIN * stderr
    last = _ask_neighbours(judge, X)
    verdict, rival = last.judge(found.predicted if used else plain), None
    if used:
        rival = find_rival(verdict, [last.judge(one.predicted) for one in tried if one is not found], omega)
    interval = find_interval(verdict, strange, None if used else last.judge(found.predicted), float(omega.sum()))
    signs = {
        "strange": strange.share, "wrong": verdict.about.wrong, "sharper": verdict.about.sharper,
        "level": verdict.level, "start": float(best), "first": tried[0].verdict.level,
    }  # fmt: skip
    return Selection(
        keep(weigh(rule, verdict.h)[0]) if used else np.ones(n), mix(verdict.outlier, rival), verdict.share, interval,
        interval[1] - interval[0] <= WIDEST, used, gain, stderr, np.zeros(n, bool), rival and rival[0],
        say(used, "held-out labels do not become more probable", rival), found.passes, found.outcome, signs,
    )  # fmt: skip


def _ask_neighbours(judge: labels.Labels, X: np.ndarray) -> labels.Labels:
    """The judge of the last weights, who hears the rows around a row, too."""
    return dataclasses.replace(judge, near=count_neighbours(X, judge.codes, judge.omega, judge.K))


def _predict_held_out(
    rule: Rule, fit: Fit, X: np.ndarray, judge: labels.Labels, parts: Sequence[Fold], start: np.ndarray, passes: int,
    generator: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Each row predicted by a model whose whole selection, folds of its own included, never saw the row."""
    codes, omega, strange = judge.codes, judge.omega, judge.strange
    found: Any = None
    for rows, judged in parts:
        own = None if strange is None else strange._replace(outlier=strange.outlier[rows])
        inner = labels.Labels(rule, codes[rows], judge.K, omega[rows], judge.share, own)
        selected = iterate(
            rule, _within(fit, rows), inner.judge, split(codes[rows], len(rows), len(parts), generator), omega[rows],
            start=keep_some(codes[rows], start[rows]), passes=passes, keep=lambda w, c=codes[rows]: keep_some(c, w),
        )  # fmt: skip
        last = _ask_neighbours(inner, X[rows]).judge(selected.predicted)
        w = keep_some(codes[rows], weigh(rule, last.h)[0])
        part = fit(rows[w > 0], (omega[rows] * w)[w > 0])(judged)
        found = np.empty((len(codes), *part.shape[1:])) if found is None else found
        found[judged] = part
    return found


def _within(fit: Fit, rows: np.ndarray) -> Fit:
    """The model on some rows, which are counted from 0."""

    def fit_some(some: np.ndarray, weights: np.ndarray) -> Predict:
        inner = fit(rows[some], weights)
        return lambda judged: inner(rows[judged])

    return fit_some


def find_interval(
    verdict: Verdict, strange: density.Strangeness | None, other: Verdict | None = None, number: float = 0.0
) -> tuple[float, float]:
    """The shortest set of shares with enough probability, from the first to the last of it.

    Args:
        verdict: on each row, with the support of each share.
        strange: what the densities say; None: nothing.
        other: another verdict, which has a say as far as it explains the rows as well.
        number: of rows, by weight.
    """
    support = verdict.about.support
    if not support.size:
        return verdict.share, verdict.share
    f, pf = labels.SHARES, np.exp(TEMPER * support)
    if other is not None:
        behind = max(0.0, TEMPER * number * (verdict.level - other.level))
        pf = pf + np.exp(TEMPER * other.about.support - behind)
    g, pg = np.zeros(1), np.ones(1)
    if strange is not None and strange.told:
        g, pg = density.SHARES, np.exp(TEMPER * strange.support)
    total = (g[:, None] + (1 - g[:, None]) * f).ravel()
    p, _ = np.histogram(total, bins=np.linspace(-0.005, 1.005, 102), weights=np.outer(pg, pf).ravel())
    low, high = shortest(np.linspace(0.0, 1.0, 101), p)
    return max(0.0, min(low, verdict.share)), min(1.0, max(high, verdict.share))


def shortest(values: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """From the first to the last of the most probable values that have enough probability together."""
    order = np.argsort(-p)
    inside = order[: int(np.searchsorted(np.cumsum(p[order]), LEVEL * p.sum())) + 1]
    return float(values[inside.min()]), float(values[inside.max()])


def average(change: np.ndarray, omega: np.ndarray) -> tuple[float, float]:
    """The mean of a change and its standard error."""
    mean = float(omega @ change / omega.sum())
    return mean, float(np.sqrt(omega**2 @ (change - mean) ** 2) / omega.sum())


def find_rival(best: Verdict, others: Sequence[Verdict], omega: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The probabilities by another selection that explains the table about as well, and how probable it is itself."""
    rivals = []
    for other in others:
        behind = TEMPER * float(omega.sum()) * (best.level - other.level)
        apart = float(omega @ np.abs(other.outlier - best.outlier) / omega.sum())
        if apart >= APART and abs(behind) < CLOSE:
            rivals.append((behind, other))
    if not rivals:
        return None
    behind, other = min(rivals, key=lambda pair: pair[0])
    return other.outlier, float(expit(-behind))


def mix(outlier: np.ndarray, rival: tuple[np.ndarray, float] | None) -> np.ndarray:
    """The probabilities by two selections, one of which is right."""
    return outlier if rival is None else (1 - rival[1]) * outlier + rival[1] * rival[0]


def set_apart(found: Selection, clump: np.ndarray, omega: np.ndarray, *, left_out: bool) -> Selection:
    """The selection with the rows of a tight ball, of which nothing tells whether they are outliers."""
    size, rest = float(omega[clump].sum() / omega.sum()), ~clump
    less = 1 - size if left_out else 1.0

    def spread(values: np.ndarray, ball: Any) -> np.ndarray:
        every = np.empty(len(clump))
        every[clump], every[rest] = ball, values if left_out else values[rest]
        return every

    words = "They are kept; a fit without them shows the alternative."
    if left_out:
        words = "They are left out: the others are predicted better without them. A fit to all shows the alternative."
    said = (
        f"{clump.sum()} rows lie in a tight ball apart from the others (`clump_` marks them): they may be a group of "
        f"their own, or outliers that agree with each other. {words}"
    )
    return dataclasses.replace(
        found, weights=spread(found.weights, 0.0 if left_out else found.weights[clump]),
        outlier=spread(found.outlier, 0.5), share=found.share * less, told=False, clump=clump,
        interval=(found.interval[0] * less, min(1.0, found.interval[1] * less + size)),
        alternative=None if found.alternative is None else spread(found.alternative, 0.5),
        sentence=" ".join(filter(None, [said, found.sentence])),
    )  # fmt: skip


def conclude(found: Selection, clump: np.ndarray, omega: np.ndarray, *, left_out: bool) -> Selection:
    """The selection with what is to be said of a ball, if there is one, and of the share."""
    if clump.any():
        found = set_apart(found, clump, omega, left_out=left_out)
    if found.told:
        return found
    low, high = found.interval
    said = f"The share of outliers cannot be told: anything from {low:.0%} to {high:.0%} fits."
    return dataclasses.replace(found, sentence=" ".join(filter(None, [found.sentence, said])))


def say(used: bool, reason: str, rival: Any) -> str:
    """The sentences of a selection, but for what is said of balls and of the share."""
    said = [] if used else [f"Selection does not help here ({reason}): all rows count alike."]
    if rival is not None:
        said.append("Another selection explains the table about as well; `alternative_` holds its probabilities.")
    return " ".join(said)


def select_values(
    rule: Rule, fit: Fit, X: np.ndarray, targets: np.ndarray, omega: np.ndarray, *, folds: int, passes: int,
    generator: np.random.Generator, check: bool = True,
) -> Selection:  # fmt: skip
    """Which rows of a table with numbers as targets count; the arguments are those of `select_labels`."""
    n = len(targets)
    clump = find_clump(np.column_stack([X, _scaled(targets)]), None)
    how = {"folds": folds, "passes": passes, "generator": generator, "check": check}
    if clump.any():
        parts = split(None, n, folds, generator)
        sizes = [np.abs(targets - predict(fit, parts, omega * w))[~clump] for w in (np.ones(n), ~clump)]
        gain, stderr = average(sizes[0] - sizes[1], omega[~clump])
        if gain > LOSS * stderr:
            rest = np.flatnonzero(~clump)
            found = _select_values(rule, _within(fit, rest), X[rest], targets[rest], omega[rest], **how)
            return conclude(found, clump, omega, left_out=True)
    return conclude(_select_values(rule, fit, X, targets, omega, **how), clump, omega, left_out=False)


def _select_values(
    rule: Rule, fit: Fit, X: np.ndarray, targets: np.ndarray, omega: np.ndarray, *, folds: int, passes: int,
    generator: np.random.Generator, check: bool,
) -> Selection:  # fmt: skip
    """The same where no rows lie in a tight ball."""
    n, judge = len(targets), values.Values(targets, omega, far=measure_distance(X))
    parts = split(None, n, folds, generator)

    def keep(w: np.ndarray) -> np.ndarray:
        return w if w.sum() >= max(FEWEST, 0.3 * n) else np.ones(n)

    plain = predict(fit, parts, omega)
    base = judge.judge(plain)
    starts = values.find_starts(fit, X, targets, omega, generator)
    tried = [iterate(rule, fit, judge.judge, parts, omega, start=w, passes=passes, keep=keep) for w in starts]
    faults = [find_fault(one.verdict, one.predicted, judge.far, X, targets) for one in tried]
    sound = [i for i, fault in enumerate(faults) if not fault]
    place = max(sound or range(len(tried)), key=lambda i: tried[i].verdict.level)
    best = tried[place]
    used, reason = not check or best.verdict.level >= base.level + BETTER, "the likelihood out of fold does not rise"
    if check and not sound:
        used, reason = False, faults[place]
    scale = float(np.median(np.abs(targets - plain)))
    ratio = float(np.median(np.abs(targets - best.predicted))) / max(scale, 1e-300)
    verdict = best.verdict if used else base
    interval, rival = (
        find_interval(verdict, None),
        find_rival(verdict, [tried[i].verdict for i in sound], omega) if used else None,
    )
    signs = {
        "ratio": ratio, "level": best.verdict.level, "first": base.level,
        "noise": best.verdict.about.noise, "spread": best.verdict.about.spread,
    }  # fmt: skip
    return Selection(
        keep(weigh(rule, verdict.h)[0]) if used else np.ones(n), mix(verdict.outlier, rival), verdict.share, interval,
        used and interval[1] - interval[0] <= WIDEST, used, 1 - ratio, 0.0, np.zeros(n, bool), rival and rival[0],
        say(used, reason, rival), best.passes, best.outcome, signs,
    )  # fmt: skip


def _scaled(y: np.ndarray) -> np.ndarray:
    return (y - np.median(y)) / max(float(np.std(y)), 1e-300)
