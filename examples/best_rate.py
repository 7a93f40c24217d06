"""The best learning rate for a given number of examples, by gradient descent through the theory.

A learning curve is a differentiable function of the learning rate, or of a whole schedule of rates. So the best ones
for a budget of examples are found without any training. Training then shows that the gain is real.

Run `python examples/best_rate.py`; it prints a table and writes `best_rate.png`. The marked sections are shown in
`docs/how-to/best-rate.md`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import minimize

import quenched
from quenched import prototypes
from quenched.core.figures import Figure, Kind, Panel, Series

LAW = prototypes.TwoClusters(prior=0.7, separation=1.2)
BUDGET = 20.0  # examples per dimension
KNOTS = 7  # a schedule is this many rates, joined by straight lines
USUAL = 0.2  # the rate of the paper's figures
NAMES = ("usual rate", "best constant rate", "best schedule")


class Result(NamedTuple):
    """Error at the end of the budget with three ways of choosing the rate, in the order of `NAMES`."""

    rates: np.ndarray  # [3, KNOTS]
    theory: np.ndarray  # [3]
    measured: np.ndarray  # [3]
    stderr: np.ndarray  # [3]
    curve: xr.Dataset
    points: xr.Dataset

    def gain(self, better: int, worse: int) -> tuple[float, float]:
        """How much smaller the measured error is, and the standard error of that difference."""
        return float(self.measured[worse] - self.measured[better]), float(np.hypot(*self.stderr[[worse, better]]))


# --8<-- [start:objective]
def schedule(rates):
    """A schedule over the budget."""
    return prototypes.Interpolated(rates, until=BUDGET)


@jax.jit
@jax.value_and_grad
def error_and_slope(log_rates):
    """The error at the end of the budget and its derivative with respect to the logarithm of each rate."""
    return prototypes.theory.state(LAW, prototypes.LVQ1(schedule(jnp.exp(log_rates))), BUDGET).error


# --8<-- [end:objective]


# --8<-- [start:search]
def best_rates() -> tuple[np.ndarray, np.ndarray]:
    """The best constant rate and the best schedule, each as rates at the knots."""

    def of_schedule(log_rates):
        error, slope = error_and_slope(log_rates)
        return float(error), np.asarray(slope)

    def of_constant(log_rate):
        error, slope = of_schedule(np.full(KNOTS, log_rate[0]))
        return error, slope.sum(keepdims=True)

    with jax.enable_x64(True):
        constant = minimize(of_constant, [np.log(USUAL)], jac=True, method="L-BFGS-B")
        best = minimize(of_schedule, np.full(KNOTS, constant.x[0]), jac=True, method="L-BFGS-B")
    return np.full(KNOTS, np.exp(constant.x[0])), np.exp(best.x)


# --8<-- [end:search]


# --8<-- [start:check]
def run(*, size: int = 200, runs: int = 128) -> Result:
    """Find the best rates by theory, then train with them `runs` times in `size` dimensions."""
    rates = np.stack([np.full(KNOTS, USUAL), *best_rates()])
    sweep = [schedule(row) for row in rates]
    rule = prototypes.LVQ1(sweep[0])
    curve = prototypes.curve(LAW, rule, alpha=np.linspace(0, BUDGET, 81), rate=sweep)
    points = prototypes.measure(
        LAW, rule, alpha=[2, 5, 10, 15, BUDGET], rate=sweep, size=size, runs=runs, tests=2000,
        key=jax.random.key(20), simulator=prototypes.Chain(),
    )  # fmt: skip
    last = points.isel(alpha=-1)
    theory = curve.error.isel(alpha=-1).values
    return Result(rates, theory, last.error.values, last.error_stderr.values, curve, points)


# --8<-- [end:check]


def picture(result: Result) -> Figure:
    """The rates, and the learning curves they give."""
    times = np.linspace(0, BUDGET, KNOTS)
    rates, errors = [], []
    for i, name in enumerate(NAMES):
        line, dots = result.curve.isel(rate=i), result.points.isel(rate=i)
        rates.append(Series(name, Kind.theory, times, result.rates[i]))
        errors.append(Series(name, Kind.theory, line.alpha.values, line.error.values))
        errors.append(Series(name, Kind.simulation, dots.alpha.values, dots.error.values, dots.error_stderr.values))
    best = np.full(2, prototypes.optimum(LAW).error)
    errors.append(Series("best possible", Kind.reference, np.array([0.0, BUDGET]), best))
    x = "examples per dimension, α"
    left = Panel(x, "learning rate, η", tuple(rates))
    right = Panel(x, "generalisation error", tuple(errors), ylim=(0.16, 0.33))
    return Figure("examples/best_rate", "", "", (left, right))


def main(folder: Path = Path()) -> Result:
    """Print the table and save the picture."""
    result = run()
    print(f"LVQ1, {LAW.prior:g} : {1 - LAW.prior:.1g}, separation {LAW.separation:g}; error at alpha = {BUDGET:g}")
    for name, rate, *numbers in zip(NAMES, result.rates, result.theory, result.measured, result.stderr, strict=True):
        words = f"{rate[0]:.3f}" if np.ptp(rate) == 0 else " ".join(f"{r:.2f}" for r in rate)
        print("{:20} theory {:.4f}   simulation {:.4f} +- {:.4f}   rate {}".format(name, *numbers, words))
    for better, worse in ((1, 0), (2, 1)):
        gain, stderr = result.gain(better, worse)
        print(f"{NAMES[better]} against {NAMES[worse]}: {gain:.4f}, {gain / stderr:.1f} standard errors")
    print(f"best possible: {float(prototypes.optimum(LAW).error):.4f}")
    quenched.plot(picture(result)).savefig(folder / "best_rate.png")
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
