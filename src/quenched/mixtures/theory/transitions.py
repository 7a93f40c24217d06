r"""The lines of the phase diagram, each followed by continuation and read off where it is asked for.

At $\alpha_c$ the splitting vector first has a direction. From there run, in the unknowns of `equations`,

* `splitting_ordered`, $\sigma_1(\alpha)$: $u = 0$, along $v > 0$;
* `splitting_random`, $\sigma_2(\alpha)$: $u = v = 0$, at every $\alpha$;
* `ordered_random`: $v = 0$, along $u$, from $\alpha_c$ to where the width is 0;
* `replica_symmetry`: where the stability value is 1. Below it the theory is an approximation.

The last two are entered from the ordered state of one width, followed from large $\alpha$ (or separation) down to where
its direction is lost. The closed forms that some lines have are used as first guesses and in tests only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from quenched.core import checks, saddle
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double
from quenched.mixtures.model import SCIENCE, MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory.equations import (
    MIXTURE,
    ORDERED,
    A,
    B,
    C,
    Setting,
    U,
    V,
    guess_ordered,
    guess_random,
)
from quenched.mixtures.theory.state import edge

LINES = {
    "splitting_ordered": (A, B, U),
    "splitting_random": (A, V, U),
    "ordered_random": (A, B, V),
    "replica_symmetry": (A, B, C),
}
"""The conditions that hold on each line."""
LOW, HIGH = np.array([0.0, -60.0, 0.0]), np.array([25.0, 60.0, 25.0])
"""The box of the unknowns."""
END = np.array([10.0, 60.0, 25.0])
"""The same for `ordered_random`, whose sample size no longer changes above this u."""
ALONG = {"width": "log_alpha", "separation": "log_l"}
"""The parameter in which lines are followed, for each control in which they are sought."""
AWAY = {"log_alpha": 2.5, "log_l": 1.0}
"""How far above its critical value, in logarithms, that parameter is where the ordered state is found."""
NEAR = 0.9
"""The width of that state, over that of the splitting: so near, the first guess is good."""


class Lines:
    """All lines at one separation, over the sample size; or at one sample size, over the separation.

    Args:
        setting: the parameters; that in which lines are followed, and the width, are not used.
        along: the parameter in which they are followed.
        low: its least value.
        high: its largest.
    """

    def __init__(self, setting: Setting, along: str, low: float, high: float):
        self.setting, self.along = setting, along
        self.critical = -2 * setting.log_l if along == "log_alpha" else -setting.log_alpha / 2  # alpha l^2 = 1
        self.limits = min(low - 0.01, self.critical - 1), max(high + 0.01, self.critical + AWAY[along])
        at = self._setting(ORDERED, self.critical + 1)
        alpha = np.exp(at.log_alpha)
        points = [guess_ordered(at.log_l, alpha, splitting_width(at)), guess_random(alpha, edge(alpha))]
        enter = [(self.critical + 1, x) for x in points] + self._enter()
        self.arms = {name: self._trace(name, *point) for name, point in zip(LINES, enter, strict=True)}

    def _enter(self) -> list[tuple[float, np.ndarray]]:
        """Where the ordered state of one width loses its direction, and where it breaks replica symmetry."""
        values = self.critical, self.critical + AWAY[self.along]
        width = NEAR * min(splitting_width(self._setting(ORDERED, value)) for value in values)
        setting = self._setting(ORDERED, values[1])
        start = guess_ordered(setting.log_l, np.exp(setting.log_alpha), width)
        state = self._follow(setting._replace(log_width=np.log(width)), start, upwards=False)
        broken = saddle.locate(state, "stability", 1.0)
        if state.end is not saddle.End.box or not broken:
            raise InputError("Argument `separation` must be one at which the lines can be followed, but at "
                             f"{np.sqrt(2 * np.exp(setting.log_l)):g} they are lost in rounding.")  # fmt: skip
        return [(float(state.control[-1]), state.x[-1]), (broken[0].control, broken[0].x)]

    def _trace(self, name: str, value: float, start: np.ndarray) -> list[saddle.Branch]:
        """A line to both sides of one of its points."""
        setting = self._setting(LINES[name], value)
        both = (self._follow(setting, start, upwards=up, high=END if name == "ordered_random" else HIGH)
                for up in (False, True))  # fmt: skip
        return [branch.arms[0] for branch in both if branch.arms]

    def _setting(self, conditions: tuple[int, ...], value: float) -> Setting:
        return saddle.move(self.setting, self.along, value)._replace(conditions=np.array(conditions))

    def _follow(self, setting: Setting, start: np.ndarray, *, upwards: bool, high: Any = HIGH) -> saddle.Branch:
        return saddle.follow(MIXTURE, np.clip(start, LOW, high), setting, self.along, self.limits, upwards=upwards,
                             low=LOW, high=high, step=0.06)  # fmt: skip

    def find(self, name: str, value: float) -> saddle.Point | None:
        """The point of a line at a value of the parameter in which it was followed."""
        arms = self.arms[name]
        found = next((point for arm in arms if (point := arm.find(value)) is not None), None)
        k = int(np.searchsorted(arms[0].control, value, side="right"))
        if found is not None or not value > self.critical or k == len(arms[0].control):
            return found
        # Next to the critical point all lines touch, and v is as the square of u, alpha as that of v.
        share = (value - self.critical) / (arms[0].control[k] - self.critical)
        u, log_b, v = arms[0].x[k]
        guess = [u * share**0.25, self.log_b + (log_b - self.log_b) * share**0.5, v * share**0.5]
        return saddle.solve(MIXTURE, self._setting(LINES[name], value), guess)

    @property
    def log_b(self) -> float:
        """At the critical point."""
        return float(self.arms["splitting_ordered"][0].x[0, 1])

    @property
    def ends(self) -> tuple[float, float]:
        """Where `ordered_random` begins and ends."""
        return float(self.arms["splitting_ordered"][0].control[0]), float(self.arms["ordered_random"][-1].control[-1])


def splitting_width(setting: Setting) -> float:
    """The width at which the ordered state splits."""
    l, alpha = np.exp(setting.log_l), np.exp(setting.log_alpha)
    return (1 + l) * (1 + 1 / (alpha * l))


def _line(name: str, point: saddle.Point | None, value: Any, *, lost: bool) -> dict[str, Any]:
    """A transition by name: its control, its outcome and what the equations leave over."""
    if point is None:
        outcome = Outcome.stalled if lost else Outcome.absent
        return {name: np.nan, f"{name}_outcome": outcome, f"{name}_residual": 0.0}
    good = point.outcome == Outcome.converged
    return {name: value, f"{name}_outcome": Outcome.converged if good else Outcome.stalled,
            f"{name}_residual": point.residual}  # fmt: skip


def _widths(setting: Setting, alphas: np.ndarray) -> tuple[list[dict[str, Any]], tuple[float, float]]:
    """All transitions at each sample size, and where the ordered phase meets the random one."""
    lines = Lines(setting, "log_alpha", np.log(alphas[0]), np.log(alphas[-1]))
    rows = []
    for value in np.log(alphas):
        found = {}
        for name in LINES:
            point = lines.find(name, value)
            last = lines.arms[name][-1].control[-1]
            lost = name != "ordered_random" and value > last  # that one ends, the others do not
            found |= _line(name, point, None if point is None else float(point.readings.width), lost=lost)
        rows.append(found)
    first, last = lines.ends
    return rows, (float(np.exp(first)), float(np.exp(last)))


def _separations(setting: Setting, width: float, alphas: np.ndarray) -> list[dict[str, Any]]:
    """All transitions at each sample size, as separations at which they happen at a given width."""
    rows = []
    for alpha in alphas:
        at = setting._replace(log_alpha=np.log(alpha))
        lines = Lines(at, "log_l", 0.0, np.log(2 * width + 2))
        found = {}
        for name in LINES:  # the random splitting does not depend on the separation
            arms = lines.arms[name] if name != "splitting_random" else []
            point = next((p for arm in arms for p in saddle.locate(arm, "width", width)), None)
            found |= _line(
                name, point, None if point is None else float(np.sqrt(2 * np.exp(point.control))), lost=False
            )
        rows.append(found)
    return rows


@double
def transitions(
    law: TwoGaussians, rule: MaximumLikelihood, *, along: str = "width", alpha: Any, **sweep: Any
) -> xr.Dataset:
    r"""Where the state changes, over the sample size: the lines of the phase diagram.

    Args:
        law: the world.
        rule: the student.
        along: the control in which transitions are sought: `"width"`, or `"separation"` at the width of the rule.
        alpha: increasing sample sizes (examples per dimension), or one.
        **sweep: any other field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        Values of that control over `alpha`: `splitting_ordered` and `splitting_random`, where one centre becomes two,
        in a direction that is correlated with the true one or in a random one; `ordered_random`, where the direction
        becomes random; `replica_symmetry`, where the theory becomes an approximation (in the random phase it always is
        one). Each with its `_outcome`: `absent` where there is no such line. Along the width also `alpha_c`, below
        which no width gives a direction that is correlated with the true one, and `alpha_end`, above which every width
        below the splitting does.

    Examples:
        >>> from quenched import mixtures
        >>> law, rule = mixtures.TwoGaussians(separation=1.0), mixtures.MaximumLikelihood(width=2.1)
        >>> round(float(mixtures.transitions(law, rule, alpha=5.0).splitting_ordered), 4)
        2.1
        >>> round(float(mixtures.transitions(law, rule, alpha=5.0, along="separation").splitting_ordered), 4)
        1.0
    """
    checks.kind("law", law, TwoGaussians, "a TwoGaussians law")
    if not isinstance(along, str) or along not in ALONG:
        raise InputError(f'Argument `along` must be "width" or "separation", but {along!r} was given.')
    if along in sweep:
        raise InputError(f"Argument `{along}` must not be given, but it is sought.")
    question = SCIENCE.ask(law, rule, sweep, alpha=alpha)
    checks.positive("alpha", question.axes["alpha"])
    alphas, rows, ends = question.axes["alpha"], [], []
    for one, student in track(question.plan.pairs, "theory"):
        zero = np.float64(0.0)
        setting = Setting(np.log(np.float64(one.separation) ** 2 / 2), zero, zero, np.array(ORDERED))
        if along == "width":
            found, end = _widths(setting, alphas)
            ends.append(end)
        else:
            found = _separations(setting, float(student.width), alphas)
        rows += found
    shape = (len(question.plan.pairs), len(alphas))
    values = {name: np.array([row[name] for row in rows]).reshape(shape) for name in rows[0]}
    result = question.answer(values, source="lines")
    for name, value in zip(("alpha_c", "alpha_end"), np.transpose(ends), strict=False):
        result[name] = (question.plan.dims, value.reshape(question.plan.shape))
    return result


def phase_lines(law: TwoGaussians, *, alpha: Any, **sweep: Any) -> xr.Dataset:
    """The lines of the phase diagram, width over sample size: `transitions` along the width.

    Args:
        law: the world.
        alpha: increasing sample sizes (examples per dimension), or one.
        **sweep: any field of the law; a sequence becomes a dimension of the result.

    Returns:
        As `transitions`.

    Examples:
        >>> from quenched import mixtures
        >>> lines = mixtures.phase_lines(mixtures.TwoGaussians(separation=1.0), alpha=[5.0, 8.0])
        >>> lines.splitting_ordered.values.round(4).tolist()
        [2.1, 1.875]
    """
    return transitions(law, MaximumLikelihood(), alpha=alpha, **sweep)
