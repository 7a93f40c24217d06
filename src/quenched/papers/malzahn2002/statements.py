"""What Malzahn and Opper state, and the numbers that decide it: in honest draws, in theory, or over all samples."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import jax
import numpy as np
import xarray as xr

from quenched import processes
from quenched.core.claims import Check, Claim, above, agrees, below, near
from quenched.core.figures import Figure, comparison
from quenched.papers.malzahn2002 import printed
from quenched.papers.malzahn2002.figures import (
    BOSTON_PARTS,
    CLOSURES,
    COMPARED,
    abalone_law,
    abalone_rule,
    boston_law,
    boston_rule,
    figure_1,
    figure_2,
)

GOOD, FAIRLY_GOOD, WEAK = 0.1, 0.2, 0.1
"""Relative deviations up to which "good" and "fairly good" agreement and a "weak" underestimation are granted."""
CLOSE = 0.05
"""Relative deviation up to which theory and simulation are called close where the corrected statement says so."""
MARKS = {1000: 4000.0, 2000: 3800.0}
"""Rows of a random subset, and where its bar stands in figure 2."""
PAPER, CAVITY = CLOSURES
WHOLE, FIRST, SECOND = BOSTON_PARTS


def claims(*, quick: bool = False, figures: Iterable[Figure] = ()) -> tuple[Claim, ...]:
    """Every number and statement of the paper that can be checked, ours beside it.

    Args:
        quick: fewer draws and subsets, as for the figures.
        figures: figures computed already, which need not be computed again.
    """
    known = {figure.key.split("/")[1]: figure for figure in figures}
    one = known.get("figure_1") or figure_1(quick=quick)
    two = known.get("figure_2") or figure_2(quick=quick)
    return (
        *agreement_on_boston(one),
        *halves_of_boston(one),
        *sampling(one),
        *subsets_of_abalone(two, HardRows(np.asarray(processes.fit(abalone_rule(), abalone_law()).leave_one_out))),
        *kernels(quick),
        *printed.equations(),
        *printed.arithmetic(),
        *open_questions(),
    )


class Ratio:
    """A quotient of two numbers and its standard error.

    Attributes:
        value: the quotient.
        stderr: its standard error, of independent numbers.
    """

    def __init__(self, above: xr.DataArray | float, below: xr.Dataset, name: str, stderr: float = 0.0):
        number = float(above)
        self.value = number / float(below[name])
        parts = (stderr / number, float(below[f"{name}_stderr"]) / float(below[name]))
        self.stderr = abs(self.value) * math.hypot(*parts)


def _words(name: str) -> str:
    """A variable in words."""
    return name.replace("_", " ")


def _off(figure: Figure, part: str, theory: str, name: str, m: float) -> Ratio:
    """The theory relative to the simulation."""
    curve, points = figure.data[f"{part}, {theory}"], figure.data[f"{part}, simulation"]
    return Ratio(curve[name].sel(examples=m), points.sel(examples=m), name)


def _between(points: xr.Dataset, others: xr.Dataset, name: str) -> Ratio:
    """A simulation relative to another one."""
    return Ratio(points[name], others, name, float(points[f"{name}_stderr"]))


def _worst(figure: Figure, part: str, theory: str, names: Iterable[str]) -> tuple[Ratio, str, float]:
    """The theory where it is farthest from the simulation: how far, in which measure, at which size."""
    sizes = figure.data[f"{part}, simulation"].examples.values
    every = [(_off(figure, part, theory, name, m), name, float(m)) for name in names for m in sizes]
    return max(every, key=lambda found: abs(found[0].value - 1))


def agreement_on_boston(figure: Figure) -> list[Claim]:
    """Whether theory and simulation of figure 1 agree."""
    names = ("error", "posterior_variance")

    def said(part: str, theory: str, m: float) -> str:
        error, variance = (_off(figure, part, theory, name, m).value - 1 for name in names)
        return f"error {error:+.0%}, posterior variance {variance:+.0%} at m = {m:.0f}"

    def worst(*parts: str) -> tuple[float, float]:
        found = max((_worst(figure, part, PAPER, names)[0] for part in parts), key=lambda ratio: abs(ratio.value - 1))
        return abs(found.value - 1), found.stderr

    def late(*parts: str) -> Check:
        """Where m is much larger than N the theory is close."""
        checks = [near(_off(figure, p, PAPER, n, 4000).value, 1, within=CLOSE,
                       stderr=_off(figure, p, PAPER, n, 4000).stderr, what=f"{_words(n)} of {p} at m = 4000, theory / simulation")
                  for p in parts for n in names]  # fmt: skip
        return functools.reduce(Check.__and__, checks)

    whole, halves = worst(WHOLE), worst(FIRST, SECOND)
    largest = "largest deviation of the paper's closure"
    far = "; true for m much larger than N only"
    found = [
        Claim("section VI, figure 1", "theory and simulation are in good agreement (all data)", "good",
              f"{said(WHOLE, PAPER, 506)}; {said(WHOLE, PAPER, 4000)}; cavity closure: {said(WHOLE, CAVITY, 506)}",
              f"honest draws (erratum M9){far}",
              below(whole[0], GOOD, stderr=whole[1], what=largest),
              late(WHOLE) & above(whole[0], FAIRLY_GOOD, stderr=whole[1], what=largest)),
        Claim("section VI, figure 1", "theory and simulation are in fairly good agreement (halves)", "fairly good",
              f"first half {said(FIRST, PAPER, 506)}; second half {said(SECOND, PAPER, 506)}", f"honest draws{far}",
              below(halves[0], FAIRLY_GOOD, stderr=halves[1], what=largest), late(FIRST, SECOND)),
    ]  # fmt: skip
    for name, proof in figure.agreement.items():
        part = name.partition(",")[0]
        beyond, where, m = _worst(figure, part, CAVITY, COMPARED)
        ours = (f"p {proof.chance}, largest deviation {proof.largest:.1f} standard errors beyond "
                f"{proof.relative_allowance:.1%} where it passes its self-check; over all sizes off by up to "
                f"{abs(beyond.value - 1):.0%} ({_words(where)} at m = {m:.0f})")  # fmt: skip
        evidence = "joint test of posterior variance, error and out-of-bag error against honest draws"
        found.append(Claim("figure 1", f"theory of {part} with the cavity closure (not in the paper)", "-", ours, evidence,
                           agrees(proof), rests_on=comparison(figure, name), own=True))  # fmt: skip
    return found


def halves_of_boston(figure: Figure) -> list[Claim]:
    """How the halves of figure 1 differ, in honest draws at m = 506."""
    at = {part: figure.data[f"{part}, simulation"].sel(examples=506) for part in BOSTON_PARTS}
    to_whole = {(p, n): _between(at[p], at[WHOLE], n) for p in (FIRST, SECOND) for n in COMPARED}
    first, second = to_whole[FIRST, "error"], to_whole[SECOND, "error"]
    apart = _between(at[SECOND], at[FIRST], "error")
    lines = [figure.data[f"{part}, {PAPER}"].posterior_variance for part in (FIRST, SECOND)]
    alike = max((float(x) for x in lines[0] / lines[1]), key=lambda x: abs(math.log(x)))
    more = {}  # by how much more the posterior variance of a half misses the whole set's than its error does
    for p in (FIRST, SECOND):
        variance, error = to_whole[p, "posterior_variance"], to_whole[p, "error"]
        more[p] = abs(variance.value - 1) - abs(error.value - 1), math.hypot(variance.stderr, error.stderr)
    errors = ", ".join(f"{p} {float(x.error):.3f}" for p, x in at.items())
    variances = ", ".join(f"{p} {float(x.posterior_variance):.4f}" for p, x in at.items())
    return [
        Claim("section VI, figure 1", "the error differs substantially between the halves", "substantially",
              f"m = 506: {errors}; the second half's is {apart.value:.2f} ± {apart.stderr:.2f} times the first's",
              "honest draws", above(apart.value, 1.5, stderr=apart.stderr, what="error of the second half / first half")),
        Claim("section VI, figure 1",
              "the first half is a poor forecast of the error on the whole set, the second a much better one",
              "poor, much better", f"m = 506: {errors}", "honest draws",
              below(first.value, 0.5, stderr=first.stderr, what="error of the first half / whole set")
              & above(second.value, 0.5, stderr=second.stderr, what="error of the second half / whole set")
              & above(second.value - first.value, 0.2, stderr=math.hypot(first.stderr, second.stderr),
                      what="by how much the second is nearer")),
        Claim("section VI, figure 1", "both halves give similar information about the inputs: their posterior variances "
              "are alike", "quite similar", f"m = 506: {variances}; in theory, over all m, farthest apart by a factor of "
              f"{alike:.2f}", "the paper's own lines", near(alike, 1, within=0.25, what="first half / second half")),
        Claim("section VI, figure 1", "posterior variances of the halves resemble that of the whole set more than errors do",
              "resemble more", f"m = 506: {variances}; errors: {errors}",
              "honest draws; the halves resemble each other, both are far below the whole set",
              below(more[FIRST][0], 0, stderr=more[FIRST][1], what="deviation of the variance - of the error, first half")
              & below(more[SECOND][0], 0, stderr=more[SECOND][1], what="second half")),
    ]  # fmt: skip


def sampling(figure: Figure) -> list[Claim]:
    """What samples with repeats can tell about rows that are not in them."""
    points = figure.data[f"{WHOLE}, simulation"]
    near_n, early, late = (points.sel(examples=m) for m in (506, 1200 if 1200 in points.examples else 1600, 4000))
    unseen = Ratio(near_n.oob_error, near_n, "error", float(near_n.oob_error_stderr))
    rise = _between(late, early, "oob_error")
    change = _variance_of_other_labels()
    return [
        Claim("section IV", "the posterior variance is independent of the output labels", "independent",
              f"with the labels in another order it changes by {change[0]:.1g}, the error by a factor of {change[1]:.1f}",
              "the first half of Boston at m = 253, theory",
              below(change[0], 1e-12, what="change of the posterior variance")
              & above(change[1], 1.1, what="factor of the error")),
        Claim("section V", "for m >= N the simple bootstrap underestimates the error on unseen data", "underestimates",
              f"m = N = 506: error {float(near_n.error):.3f}, out of bag {float(near_n.oob_error):.3f}", "honest draws",
              above(unseen.value, 1, stderr=unseen.stderr, what="out-of-bag error / error")),
        Claim("section VI", "oversampling, m > N, is an attempt to extrapolate to the true learning curve", "extrapolates",
              f"out-of-bag error {float(early.oob_error):.4f} at m = {float(early.examples):.0f}, "
              f"{float(late.oob_error):.4f} at m = 4000, while the error on all rows falls from {float(early.error):.4f} "
              f"to {float(late.error):.4f}",
              "honest draws (erratum M10): repeats act as a smaller noise without new information; `processes.forecast` is "
              "the continuation without repeats",
              below(rise.value, 1, stderr=rise.stderr, what="out-of-bag error at m = 4000 / earlier")),
    ]  # fmt: skip


def _variance_of_other_labels() -> tuple[float, float]:
    """The change of the posterior variance and the factor of the error when labels are shuffled."""
    law, rule = boston_law(BOSTON_PARTS[FIRST]), boston_rule()
    y = np.random.default_rng(0).permutation(np.asarray(law.targets))
    other = processes.Empirical(law.inputs, y, law.centre, law.scale)
    one, two = (processes.theory.curve(x, rule, examples=253, closure=CLOSURES[PAPER]) for x in (law, other))
    return abs(float(two.posterior_variance / one.posterior_variance) - 1), float(two.error / one.error)


def subsets_of_abalone(figure: Figure, hard: HardRows) -> list[Claim]:
    """Statements of section VI on Abalone."""
    whole = figure.data["whole set, simulation"]
    found = {rows: figure.data[f"{rows} random rows"] for rows in MARKS}

    def low(rows: int, name: str, m: float) -> Ratio:
        """The theory on one subset relative to draws from the whole set."""
        return Ratio(found[rows][name].isel(subset=0).sel(examples=m), whole.sel(examples=m), name)

    def short(rows: int, name: str, m: float, most: float, *, more: bool = False) -> Check:
        """Whether the theory on a subset is too low by at most, or by more than, a share."""
        ratio, what = low(rows, name, m), f"shortfall of the {_words(name)} of {rows} rows at m = {m:.0f}"
        return (above if more else below)(1 - ratio.value, most, stderr=ratio.stderr, what=what)

    def grows(rows: int) -> Check:
        """Whether the posterior variance of a subset is too low by more at m = 4000 than at 400."""
        early, late = (low(rows, "posterior_variance", m) for m in (400, 4000))
        return above(early.value - late.value, 0, stderr=math.hypot(early.stderr, late.stderr),
                     what=f"growth of the shortfall of {rows} rows from m = 400 to 4000")  # fmt: skip

    bars = {(rows, name): np.ptp(found[rows][name].sel(examples=mark).values)
            for rows, mark in MARKS.items() for name in ("posterior_variance", "error")}  # fmt: skip
    spans = {rows: np.ptp(found[rows].posterior_variance.isel(subset=0).dropna("examples").values) for rows in MARKS}
    share = {rows: bars[rows, "posterior_variance"] / spans[rows] for rows in MARKS}
    subsets = found[1000].sizes["subset"]

    def said(name: str) -> str:
        return ", ".join(f"N = {r}: {low(r, name, 400).value - 1:+.0%} at m = 400, {low(r, name, 4000).value - 1:+.0%} at "
                         "m = 4000" for r in MARKS)  # fmt: skip

    against = "cavity closure on a subset against draws from the whole set"
    return [
        Claim("section VI, figure 2", "posterior variances of random subsets are highly consistent: the bars are barely "
              "visible", "barely visible",
              ", ".join(f"N = {r}: range {bars[r, 'posterior_variance']:.1g}, {share[r]:.1%} of the height of the curve"
                        for r in MARKS), f"{subsets} random subsets each",
              below(share[1000], 0.02, what="range / height of the curve, 1000 rows")
              & below(share[2000], 0.02, what="2000 rows")),
        Claim("section VI, figure 2", "subsets lead to a weak underestimation of the posterior variance", "weak",
              f"{said('posterior_variance')}: it grows with m and is not weak where m exceeds N", against,
              short(1000, "posterior_variance", 4000, WEAK),
              grows(1000) & grows(2000) & short(1000, "posterior_variance", 4000, WEAK, more=True)),
        Claim("section VI, figure 2", "learning curves from 1000 rows are already very informative", "informative",
              f"{said('error')}", f"{against}; repeats in small subsets make the error on all rows too low",
              short(1000, "error", 400, GOOD) & short(1000, "error", 4000, GOOD),
              short(1000, "error", 400, GOOD) & short(1000, "error", 4000, GOOD, more=True)),
        Claim("section VI, figure 2", "results scatter less for 2000 rows than for 1000", "bars",
              f"range of the error {bars[1000, 'error']:.3f} and {bars[2000, 'error']:.3f}; spread of the leave-one-out "
              f"error {hard.spread[1000]:.3f} and {hard.spread[2000]:.3f}",
              f"{subsets} random subsets each; {hard.DRAWS} of rows predicted from all others",
              below(bars[2000, "error"] / bars[1000, "error"], 1, what="range of the error, 2000 rows / 1000 rows")
              & below(hard.spread[2000] / hard.spread[1000], 1, stderr=hard.stderr_of_spreads, what="spread")),
        Claim("section VI", "a small part of Abalone, less than one fourth, is responsible for large errors",
              "less than one fourth", f"half of the error comes from {hard.half:.1%} of the rows, {hard.quarter:.0%} from a "
              f"quarter of them (of Gaussian errors {hard.GAUSSIAN:.0%})", "squared leave-one-out errors of all 4177 rows",
              below(hard.half, 0.25, what="share of rows with half of the error")
              & above(hard.quarter, hard.GAUSSIAN, stderr=hard.stderr, what="share of the error in the hardest quarter")),
    ]  # fmt: skip


class HardRows:
    """Which share of the error of Abalone comes from how many rows, each predicted from all others.

    Attributes:
        half: the smallest share of rows that has half of the squared error.
        quarter: the share of the squared error in the quarter of the rows that has most of it.
        stderr: the standard error of `quarter`.
        spread: standard deviation of the mean error of 1000 and of 2000 random rows.
        stderr_of_spreads: the standard error of their quotient.
    """

    GAUSSIAN = 0.72369
    """`quarter` of independent Gaussian errors: 1/4 + 2 a phi(a), where a = 1.15035 is exceeded by a quarter."""
    DRAWS = 1000

    def __init__(self, leave_one_out: np.ndarray) -> None:
        errors = leave_one_out**2
        draw = np.random.default_rng(0)
        order = np.sort(errors)[::-1]
        self.half = (1 + np.searchsorted(np.cumsum(order), order.sum() / 2)) / order.size
        self.quarter = _in_quarter(errors)
        self.stderr = float(np.std([_in_quarter(draw.choice(errors, errors.size)) for _ in range(100)]))
        means = {
            rows: [errors[draw.permutation(errors.size)[:rows]].mean() for _ in range(self.DRAWS)] for rows in MARKS
        }
        self.spread = {rows: float(np.std(values)) for rows, values in means.items()}
        self.stderr_of_spreads = self.spread[2000] / self.spread[1000] / math.sqrt(self.DRAWS)


def _in_quarter(errors: np.ndarray) -> float:
    """The share of the sum in the largest quarter of the terms."""
    order = np.sort(errors)[::-1]
    return float(order[: order.size // 4].sum() / order.sum())


def kernels(quick: bool) -> list[Claim]:
    """Whether lengths from standard deviations or from variances predict better on Boston."""
    law, runs = boston_law(), 4 if quick else 16
    rules = {"√variance": boston_rule(), "variance": boston_rule(power=1.0),
             "variance, half the length": boston_rule(73.55, 1.0)}  # fmt: skip
    points = {name: processes.measure(law, rule, examples=506, runs=runs, key=jax.random.key(5), variance=False)
              for name, rule in rules.items()}  # fmt: skip
    exact = {name: float(np.mean(processes.fit(rule, law).leave_one_out ** 2)) for name, rule in rules.items()}
    root, half = "√variance", "variance, half the length"
    seen, unseen = (_between(points[root], points[half], name) for name in ("error", "oob_error"))
    ours = "; ".join(f"{name}: error {float(x.error):.3f}, out of bag {float(x.oob_error):.3f}, leave-one-out "
                     f"{exact[name]:.3f}" for name, x in points.items())  # fmt: skip
    worse = above(unseen.value, 1, stderr=unseen.stderr, what="out of bag")
    return [
        Claim("section VI", "lengths from the square roots of the variances generalise better on Boston", "better",
              f"{ours}: better on rows that may be in the sample only",
              "the error on all rows counts rows that were seen (erratum M11)",
              below(unseen.value, 1, stderr=unseen.stderr, what="out-of-bag error, √variance / variance, half the length")
              & below(exact[root] / exact[half], 1, what="leave-one-out"),
              below(seen.value, 1, stderr=seen.stderr, what="error on all rows") & worse),
    ]  # fmt: skip


def open_questions() -> list[Claim]:
    """What the paper does not say enough about."""
    return [
        Claim("section VI", "the theory is much faster than the simulation", "much faster",
              "against duplicated rows yes; one Newton solution costs as much as 30 to 50 honest draws on distinct rows",
              "depends on the code of the simulation, which the paper does not describe; measured in the benchmarks"),
        Claim("section VI", "scale of the targets", "not stated", "standardised here",
              "theory and simulation scale alike with the targets, so that their agreement cannot tell"),
    ]  # fmt: skip
