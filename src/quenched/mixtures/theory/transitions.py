r"""The lines of the phase diagram, each followed by continuation and read off where it is asked for.

At $\alpha_c$ the splitting vector first has a direction. From there run, in the unknowns of `equations`,

* `splitting_ordered`, $\sigma_1(\alpha)$: $u = 0$, along $v > 0$;
* `splitting_random`, $\sigma_2(\alpha)$: $u = v = 0$, at every $\alpha$;
* `ordered_random`: $v = 0$, along $u$, from $\alpha_c$ to where the width is 0;
* `replica_symmetry`: where the stability value is 1. Below it the theory is an approximation.

The last two are entered from the ordered state of one width, followed from large $\alpha$ (or separation) down to where
its direction is lost. The closed forms that some lines have are used as first guesses and in tests only, but for
$\alpha_c = l^{-2}$.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from quenched.core import checks, saddle
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double
from quenched.mixtures.model import SCIENCE, MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory import equations as eq
from quenched.mixtures.theory.equations import MIXTURE, ORDERED, Setting
from quenched.mixtures.theory.state import edge

LINES = {
    "splitting_ordered": (eq.A, eq.B, eq.U),
    "splitting_random": (eq.A, eq.V, eq.U),
    "ordered_random": (eq.A, eq.B, eq.V),
    "replica_symmetry": (eq.A, eq.B, eq.C),
}
"""The conditions that hold on each line."""
BOUNDARIES = {
    "width": [("splitting_ordered", "unsplit", "ordered"), ("splitting_random", "unsplit", "random"),
              ("ordered_random", "ordered", "random")],
    "separation": [("splitting_ordered", "ordered", "unsplit"), ("ordered_random", "ordered", "random")],
}  # fmt: skip
"""What each line parts, along each control: the state above it and the one below."""
LOW, HIGH = np.array([0.0, -60.0, 0.0]), np.array([25.0, 60.0, 25.0])
"""The box of the unknowns."""
END = np.array([10.0, 60.0, 25.0])
"""The same for `ordered_random`, whose sample size no longer changes above this u."""
ALONG = {"width": "log_alpha", "separation": "log_l"}
"""The parameter in which lines are followed, for each control in which they are sought."""
AWAY = {"log_alpha": 2.5, "log_l": 1.0}
"""How far above its critical value, in logarithms, that parameter is where the ordered state is found."""
NEAR, DEEP = 0.1, 3.0
"""How far below that of the splitting, as a share of it, the width of that state is: so near, the first guess is good.
Where $l$ is large, below 1 - DEEP/l the state has broken replica symmetry already."""
ACCURACY = 1e-4
"""What the equations of a line may leave over. Where clusters are far apart the stability rises to infinity so fast
that the width at which it is 1 cannot be told from that at which the gap opens."""


class Lines:
    """All lines at one separation, over the sample size; or at one sample size, over the separation.

    They are followed in the parameter `along`, from `low` to `high`; its value in `setting` is not used.
    """

    def __init__(self, setting: Setting, along: str, low: float, high: float):
        self.setting, self.along = setting, along
        self.critical = -2 * setting.log_l if along == "log_alpha" else -setting.log_alpha / 2  # alpha l^2 = 1
        far = self.critical + AWAY[along]
        self.limits = min(low - 0.01, self.critical - 1), max(high + 0.01, far)
        at, above = self._move(ORDERED, self.critical + 1), self._move(ORDERED, far)
        alpha, l = np.exp(at.log_alpha), np.exp(above.log_l)
        width = min(_splitting(above), _splitting(self._move(ORDERED, self.critical))) * (1 - min(NEAR, DEEP / l))
        start = eq.guess_ordered(above.log_l, np.exp(above.log_alpha), width)
        state = self._follow(above._replace(log_width=np.log(width)), start, upwards=False)
        broken, turned = saddle.locate(state, "stability", 1.0), state.end is saddle.End.box
        enter = {
            "splitting_ordered": (self.critical + 1, eq.guess_ordered(at.log_l, alpha, _splitting(at))),
            "splitting_random": (self.critical + 1, eq.guess_random(alpha, edge(alpha))),
            "ordered_random": (float(state.control[-1]), state.x[-1]) if turned else None,
            "replica_symmetry": (broken[0].control, broken[0].x) if broken else None,
        }
        self.arms: dict[str, list[saddle.Branch]] = {name: self._trace(name, point) for name, point in enter.items()}

    def _trace(self, name: str, point: tuple[float, np.ndarray] | None) -> list[saddle.Branch]:
        """A line to both sides of one of its points."""
        if point is None:
            return []
        setting, high = self._move(LINES[name], point[0]), END if name == "ordered_random" else HIGH
        both = (self._follow(setting, point[1], upwards=up, high=high) for up in (False, True))
        return [branch.arms[0] for branch in both if branch.arms]

    def _move(self, conditions: tuple[int, ...], value: float) -> Setting:
        return saddle.move(self.setting, self.along, value)._replace(conditions=np.array(conditions))

    def _follow(self, setting: Setting, start: np.ndarray, *, upwards: bool, high: Any = HIGH) -> saddle.Branch:
        return saddle.follow(MIXTURE, np.clip(start, LOW, high), setting, self.along, self.limits, upwards=upwards,
                             low=LOW, high=high, step=0.06)  # fmt: skip

    def find(self, name: str, value: float) -> saddle.Point | None:
        """The point of a line at a value of the parameter in which it was followed."""
        arms = self.arms[name]
        found = next((point for arm in arms if (point := arm.find(value)) is not None), None)
        k = int(np.searchsorted(arms[0].control, value, side="right")) if arms else 0
        if found is not None or not value > self.critical or not arms or k == len(arms[0].control):
            return found
        # Next to the critical point all lines touch, and v is as the square of u, alpha as that of v.
        share, first = (value - self.critical) / (arms[0].control[k] - self.critical), self.arms["splitting_ordered"][0]
        u, log_b, v = arms[0].x[k]
        guess = [u * share**0.25, first.x[0, 1] + (log_b - first.x[0, 1]) * share**0.5, v * share**0.5]
        return saddle.solve(MIXTURE, self._move(LINES[name], value), guess)

    def is_lost(self, name: str, value: float) -> bool:
        """Whether a line that should reach a value was not followed so far."""
        arms = self.arms[name]
        ends = name == "ordered_random"  # it has an end, the others do not
        return value > self.critical and (not arms or (not ends and value > arms[-1].control[-1]))


def _splitting(setting: Setting) -> float:
    """The width at which the ordered state splits."""
    l, alpha = np.exp(setting.log_l), np.exp(setting.log_alpha)
    return (1 + l) * (1 + 1 / (alpha * l))


def _find(setting: Setting, along: str, width: float, alphas: np.ndarray) -> tuple[list[dict[str, Any]], list[float]]:
    """All transitions at each sample size; along the width also where the ordered phase meets the random one."""
    logs, rows, ends = np.log(alphas), [], []
    if along == "width":
        lines = Lines(setting, "log_alpha", logs[0], logs[-1])
        last = lines.arms["ordered_random"][-1].control[-1] if lines.arms["ordered_random"] else np.nan
        every, ends = [lines] * len(logs), [float(np.exp(lines.critical)), float(np.exp(last))]
    else:
        every = (Lines(setting._replace(log_alpha=a), "log_l", 0.0, np.log(2 * width + 2)) for a in logs)
    for lines, log_alpha in zip(every, logs, strict=True):
        found: dict[str, Any] = {}
        for name in LINES:
            point, value, outcome = None, np.nan, Outcome.absent
            if along == "width":
                point, outcome = (
                    lines.find(name, log_alpha),
                    Outcome.stalled if lines.is_lost(name, log_alpha) else outcome,
                )
                value = np.nan if point is None else float(point.readings.width)
            elif name != "splitting_random":  # which does not depend on the separation
                point = next((p for arm in lines.arms[name] for p in saddle.locate(arm, "width", width)), None)
                value = np.nan if point is None else float(np.sqrt(2 * np.exp(point.control)))
            if point is not None:
                good = point.outcome == Outcome.converged and point.residual < ACCURACY
                outcome = Outcome.converged if good else Outcome.stalled
            residual = 0.0 if point is None else point.residual
            found |= {name: value, f"{name}_outcome": outcome, f"{name}_residual": residual}
        rows.append(found)
    return rows, ends


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
        found, end = _find(setting, along, float(student.width), alphas)
        rows, ends = rows + found, [*ends, end]
    shape = (len(question.plan.pairs), len(alphas))
    values = {name: np.array([row[name] for row in rows]).reshape(shape) for name in rows[0]}
    result = question.answer(values, source="lines", along=along, boundaries=json.dumps(BOUNDARIES[along]))
    for name, value in zip(("alpha_c", "alpha_end")[: len(ends[0])], np.transpose(ends), strict=True):
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
