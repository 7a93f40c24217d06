r"""The figures, computed again."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.fields.learner.matrices import LearningMatrix, Newton
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Empirical, Given, Kernel, Start, Truncated, Uniform, empirical
from quenched.fields.model.grid import Axis, Free, Grid, Periodic
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density, Direct, Link, LogDensity
from quenched.fields.model.noise import InsensitiveNoise, MixtureNoise, Noise
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.papers.lemm1999 import temperatures
from quenched.papers.lemm1999.examples import (
    TWO,
    densities,
    expected_error,
    fifty,
    mesh,
    moments,
    normalised,
    roughness,
    sampled,
)
from quenched.papers.lemm1999.graphs import figure_1, figure_2
from quenched.papers.lemm1999.hyperparameters import figure_6
from quenched.papers.lemm1999.information import learning_decay
from quenched.papers.lemm1999.learning import expected
from quenched.papers.lemm1999.matrices import GaussianFilter, Gradient, Massive
from quenched.papers.lemm1999.mixtures import MIXTURES
from quenched.papers.lemm1999.panels import image, regression_panel

ENTANGLED = (0.5, 0.0, 0.0, 0.5)
"""A prior of figure 3 that is not factorial: both means are +1 or both are -1."""
MIXED = (0.4, 0.1, 0.1, 0.4)
"""Another, in which every state is possible."""


def _field(P: np.ndarray, **more: Any) -> xr.Dataset:
    _, x, y = mesh(Free())
    return xr.Dataset({"density": (("x", "y"), P), **more}, {"x": x.coordinates, "y": y.coordinates})


def figure_3(*, quick: bool = False, key: Any = None) -> Figure:
    """The decay of mutual information during learning."""
    key = jax.random.key(3) if key is None else key
    lucky = learning_decay(ENTANGLED, 0, examples=50, key=key, sigma=2.0)
    tried = [
        learning_decay(MIXED, 0, examples=50, key=jax.random.fold_in(key, i), sigma=2.0)
        for i in range(10 if quick else 40)
    ]
    early = [
        float(one.probability.isel(state=slice(1, None), examples=slice(5, 25)).sum("state").min()) for one in tried
    ]
    worst = int(np.argmax(early))
    unlucky = tried[worst]
    factorial = learning_decay([0.25] * 4, 0, examples=50, key=jax.random.fold_in(key, worst), sigma=2.0)
    cases = {
        "a prior that is not factorial": lucky,
        "unlucky data": unlucky,
        "a factorial prior, the same data": factorial,
    }
    names = ("h = (+1, +1), true", "h = (+1, -1)", "h = (-1, +1)", "h = (-1, -1)")
    n, panels = lucky.examples.values, []
    for title, one in cases.items():
        series = [Series(name, Kind.theory, n, one.probability.values[:, i]) for i, name in enumerate(names)]
        share = one.information.values / max(float(one.information[0]), 1e-6)
        series.append(Series("mutual information, share of its start", Kind.reference, n, share))
        panels.append(
            Panel("examples", "posterior probability", tuple(series), title=title, ylim=(-0.03, 1.03), key=False)
        )
    caption = (f"Four states of Nature with means ±1 at two places, 50 single observations with standard deviation 2 (the paper states none). Priors {ENTANGLED}, {MIXED} "
               f"and equal (the paper states none): mutual information {float(lucky.information[0]):.4f}, {float(unlucky.information[0]):.4f} and 0 nats at the start. Unlucky: of {len(tried)} "
               "series of data the one for which the true state stayed least probable between 5 and 25 examples.")  # fmt: skip
    data = {"lucky": lucky, "unlucky": unlucky, "factorial": factorial}
    return Figure("lemm1999/figure_3", "The decay of mutual information", caption, tuple(panels), data)


def figure_4(*, quick: bool = False, key: Any = None) -> Figure:
    """A random function, and what a device with input averaging measures of it."""
    first, second = jax.random.split(jax.random.key(4) if key is None else key)
    axis = Axis(0, 1, points=201)
    grid = Grid(given=[axis])
    with jax.enable_x64(True):
        rough = np.asarray(jax.random.uniform(first, (201,), minval=-1.0, maxval=1.0))
        seen = np.sort(np.asarray(jax.random.permutation(second, 201))[:40])
    anyone = Problem(GaussianData([0.5], [0.0]), Direct(grid), Gaussian(Mass(grid)))
    smooth = GaussianFilter(0.03).step(anyone, rough, rough, 0)
    priors = [
        Gaussian(s * Laplacian(grid) ** 2 + Mass(grid, m))
        for s in np.geomspace(1e-9, 1, 10)
        for m in (600.0, 60.0, 6.0)
    ]
    panels, data = [], {}
    for title, h in (("a bounded random function", rough), ("measured with input averaging", smooth)):
        points = GaussianData(axis.coordinates[seen], h[seen], 1e-4)
        best = max(
            (regress(Problem(points, Direct(grid), prior)) for prior in priors), key=lambda one: one.log_evidence
        )
        hidden = np.setdiff1d(np.arange(201), seen)
        learned = 1 - float(np.mean((h - best.mean)[hidden] ** 2) / np.var(h[hidden]))
        series = (
            Series("function", Kind.reference, axis.coordinates, h),
            Series("regression from the points", Kind.theory, axis.coordinates, best.mean),
            Series("40 points measured", Kind.cloud, axis.coordinates[seen], h[seen]),
        )
        panels.append(Panel("x", "h(x)", series, title=title, ylim=(-1.1, 1.1), key=False))
        data[title] = xr.Dataset(
            {"function": ("x", h), "regression": ("x", best.mean)}, {"x": axis.coordinates}, {"learned": learned}
        )
    caption = ("Left: independent uniform values at 201 points. Right: the same, averaged over x with a Gaussian of width 0.03. Lines: regression from 40 "
               "points with a prior on second derivatives and size, both strengths by evidence. "
               f"Share of the variance at the other points that it explains: {data['a bounded random function'].attrs['learned']:.2f} and "
               f"{data['measured with input averaging'].attrs['learned']:.2f}.")  # fmt: skip
    times, runs = (1, 2, 4, 8), 50 if quick else 400
    panel, more, proof = expected(grid, smooth, times=times, runs=runs, key=jax.random.fold_in(second, 1))
    caption += (" Last panel (not in the paper): the test error of such a regression on the right function with noise of variance 0.1, exactly averaged over "
                f"data sets, and the mean over {int(more['learning curve, simulation'].runs.min())} data sets.")  # fmt: skip
    return Figure(
        "lemm1999/figure_4", "Generalisation needs a link between places", caption, (*panels, panel), data | more, proof
    )


def figure_5(*, quick: bool = False, key: Any = None) -> Figure:
    """Three robust error functions, flat where errors are small."""
    del quick, key  # nothing is drawn
    r = np.linspace(-4, 4, 401)
    noises: dict[str, Noise] = {
        "two Gaussians": MixtureNoise([-1.0, 1.0], 1.0),
        "eleven Gaussians": MixtureNoise(np.linspace(-2, 2, 11), 0.25),
        "ε-insensitive": InsensitiveNoise(1.0, epsilon=1.5),
    }
    panels, data = [], {}
    for title, noise in noises.items():
        error = np.asarray(noise.energy(r))
        error = error - error.min()
        flat = float(np.ptp(r[error < 0.1]))
        series = (
            Series("error", Kind.theory, r, error),
            Series("a square of the same size at 4", Kind.reference, r, error[-1] * (r / 4) ** 2),
        )
        panels.append(Panel("y − h(x)", "error", series, title=title, key=not panels))
        data[title] = xr.Dataset({"error": ("residual", error)}, {"residual": r}, {"flat": flat})
    caption = ("Minus the logarithm of a mixture of two Gaussians of variance 1 at ±1, of eleven of variance 1/4 from -2 to 2, and the ε-insensitive error with "
               "ε = 1.5 (the paper states no numbers), each less its least value. The error is below 0.1 over "
               + ", ".join(f"{one.attrs['flat']:.2f}" for one in data.values()) + " units of y.")  # fmt: skip
    return Figure("lemm1999/figure_5", "Errors that do not mind small deviations", caption, tuple(panels), data)


def figure_13(*, quick: bool = False, key: Any = None) -> Figure:
    """Initial guesses: the kernel on the data, or on the conditional empirical density."""
    del quick, key  # nothing random
    panels, data = [], {}
    for conditional in (False, True):
        for lambda_2 in (0.1, 1.0):
            K = roughness(Periodic(), lambda_2=lambda_2)
            problem = Problem(DensityData(TWO), Density(K.grid), Gaussian(K))
            with jax.enable_x64(True):
                P = normalised(np.asarray(Kernel(1.0, conditional=conditional).field(problem)))
            name = f"{'C on P_emp' if conditional else 'C on N'}, λ₂ = {lambda_2:g}"
            panels.append(image("P⁽⁰⁾", P, name, TWO))
            data[name] = _field(P)
    caption = ("Data (3, 3) and (7, 12), shown as points, periodic in x and y; C = (K + m²)⁻¹ with m² = 1 (erratum F692: the paper prints the inverse). Above, the kernel acts on the data and the "
               "result is normalised; below, it acts on the empirical density, which is uniform in y where nothing was seen.")  # fmt: skip
    return Figure("lemm1999/figure_13", "Initial guesses", caption, tuple(panels), data)


PAIRS: dict[int, tuple[type[Link], dict[str, float], LearningMatrix, float]] = {
    14: (LogDensity, {"lambda_2": 0.025}, Newton(), 0.1),
    15: (Density, {"lambda_2": 1.0}, Massive(1.0), 1.0),
    16: (LogDensity, {"lambda_6": 0.01}, Newton(), 0.1),
    17: (Density, {"lambda_6": 0.1}, Massive(1.0), 1.0),
}
"""Field, smoothness, learning matrix and mass of the kernel start of figures 14 to 17."""


def _figure_of_two(number: int) -> Figure:
    link, smoothness, method, mass = PAIRS[number]
    K = roughness(Periodic(), **smoothness)
    problem = Problem(DensityData(TWO), link(K.grid), Gaussian(K))
    fit, best = (solve(problem, one, start=Kernel(mass), max_steps=200) for one in (method, Newton()))
    P, other = best.density, solve(problem, start=Uniform()).energy
    with np.errstate(divide="ignore"):
        L = np.maximum(np.log(P), -12.0)
    steps = min(len(fit.trace.iteration), 21)
    energy = Series("energy", Kind.theory, np.arange(steps), fit.trace.energy.values[:steps])
    panels = (image("P", P, "density P(x, y)", TWO), image("L = ln P", L, "log-density", TWO),
              Panel("iteration", "energy", (energy,), title="energy during iteration", key=False), regression_panel(P))  # fmt: skip
    prior = "P" if link is Density else "L"
    what = ", ".join(f"λ{'₂' if name == 'lambda_2' else '₆'} = {value:g}" for name, value in smoothness.items())
    zeros = int(np.sum(best.field == 0)) if link is Density else 0
    caption = (f"Data (3, 3) and (7, 12), shown as points, periodic in x and y; smoothness prior on {prior}, {what}; {type(method).__name__} from the kernel estimate with m² = {mass:g}. "
               f"Energy {best.energy:.8f}, largest P {P.max():.6f}, stationarity residual {best.kkt:.0e}."
               + (f" P = 0 at {zeros} of 150 points (there L is drawn as -12)." if zeros else "")
               + (f" From a uniform start one arrives at another minimum, of energy {other:.5f}." if other > best.energy + 1e-6 else ""))  # fmt: skip
    trace = fit.trace.assign_attrs(energy=best.energy, kkt=best.kkt, zeros=zeros, steps=len(fit.trace.iteration) - 1)
    data = {"solution": _field(P), "iteration": trace}
    return Figure(f"lemm1999/figure_{number}", f"Two data points, prior on {prior}, {what}", caption, panels, data)


def figure_14(*, quick: bool = False, key: Any = None) -> Figure:
    """Two data points, smoothness prior on the log-density."""
    del quick, key  # nothing random
    return _figure_of_two(14)


def figure_15(*, quick: bool = False, key: Any = None) -> Figure:
    """Two data points, smoothness prior on the density."""
    del quick, key  # nothing random
    return _figure_of_two(15)


def figure_16(*, quick: bool = False, key: Any = None) -> Figure:
    """Two data points, third derivatives of the log-density small."""
    del quick, key  # nothing random
    return _figure_of_two(16)


def figure_17(*, quick: bool = False, key: Any = None) -> Figure:
    """Two data points, third derivatives of the density small."""
    del quick, key  # nothing random
    return _figure_of_two(17)


def figure_18(*, quick: bool = False, key: Any = None) -> Figure:
    """The true density and the two templates."""
    del quick, key  # nothing random
    printed = densities()
    shown = {name: printed[name] for name in ("truth", "template 1", "template 2")}
    titles = ("true density", "template 1", "template 2")
    above = [image("P", P, title) for title, P in zip(titles, shown.values(), strict=True)]
    below = [image("ln P", np.log(P), title) for title, P in zip(titles, shown.values(), strict=True)]
    truth = printed["truth"]
    errors = {
        name: (expected_error(truth, P), expected_error(normalised(truth), normalised(P)))
        for name, P in printed.items()
    }
    caption = ("Expected test error as the paper computes it (densities of the continuum at y = 1 to 15, not normalised there) and with densities normalised on the mesh: "
               + "; ".join(f"{name} {a:.2f} and {b:.4f}" for name, (a, b) in errors.items()) + ".")  # fmt: skip
    table = xr.Dataset(
        {
            "printed": ("density", [a for a, _ in errors.values()]),
            "normalised": ("density", [b for _, b in errors.values()]),
        },
        {"density": list(errors)},
    )
    return Figure(
        "lemm1999/figure_18", "The true density and two templates", caption, (*above, *below), {"errors": table}
    )


def figure_19(*, quick: bool = False, key: Any = None) -> Figure:
    """The regression function of the true density."""
    del quick, key  # nothing random
    P = normalised(densities()["truth"])
    mean, spread = moments(P)
    data = {"truth": _field(P, mean=("x", mean), spread=("x", spread))}
    caption = (
        "Mean of y for each x and one standard deviation about it, under the true density, normalised on the mesh."
    )
    return Figure(
        "lemm1999/figure_19",
        "Regression function of the true density",
        caption,
        (regression_panel(P, title=""),),
        data,
    )


def figure_20(*, quick: bool = False, key: Any = None) -> Figure:
    """The empirical density and the conditional one."""
    del quick  # fifty points
    problem, _ = fifty(key)
    N = np.asarray(problem.likelihood.counts)  # pyright: ignore[reportAttributeAccessIssue]
    P = empirical(problem.grid, N)
    panels = (
        image("N/n", N / N.sum(), "empirical density", sampled(key)),
        image("P_emp", P, "conditional empirical density", sampled(key)),
    )
    caption = ("50 points drawn from the true density for uniform p(x) (some at one place), with a fixed key: the paper's own are not available. "
               f"Between {int(N.sum(axis=1).min())} and {int(N.sum(axis=1).max())} of them at each x.")  # fmt: skip
    return Figure(
        "lemm1999/figure_20", "Fifty data points", caption, panels, {"points": _field(P, counts=(("x", "y"), N))}
    )


def _watched(problem: Problem, method: LearningMatrix, start: Start, steps: int) -> xr.Dataset:
    """The trace of an iteration, with the test error."""
    truth, rows = normalised(densities()["truth"]), []
    with jax.enable_x64(True):
        P = np.asarray(problem.link.density(start.field(problem)))

    def look(trace: xr.Dataset, k: int) -> list[float]:
        return [float(trace.energy[k]), float(trace.training_error[k]), expected_error(truth, P)]

    fit = None
    for _ in range(steps):
        fit = solve(problem, method, start=start, max_steps=1)
        rows.append(look(fit.trace, 0))
        P, start = fit.density, Given(fit.field)
        if fit.converged:
            break
    assert fit is not None
    columns = np.array([*rows, look(fit.trace, -1)]).T
    names = ("energy", "training_error", "test_error")
    data = {name: ("iteration", column) for name, column in zip(names, columns, strict=True)}
    return xr.Dataset({**data, "density": (("x", "y"), P)}, attrs={"kkt": fit.kkt})


def figure_21(*, quick: bool = False, key: Any = None) -> Figure:
    """The density estimated from 50 points."""
    del quick  # one iteration
    problem, K = fifty(key)
    trace = _watched(problem, Massive(0.01, K), Uniform(), 50)
    P, truth = trace.density.values, normalised(densities()["truth"])
    lines = [
        Panel("iteration", name.replace("_", " "), (Series(name.replace("_", " "), Kind.theory, trace.iteration.values, trace[name].values),),
              title=name.replace("_", " "), key=False, log="")
        for name in ("energy", "training_error", "test_error")
    ]  # fmt: skip
    panels = (
        image("P", P, "density P(x, y)", sampled(key)),
        image("ln P", np.log(P), "log-density", sampled(key)),
        regression_panel(P, truth),
        *lines,
    )
    caption = ("50 points, shown on the images, drawn from the true density with a fixed key (the paper's are not available). Smoothness prior on L, λ = 0.5, λ_x = 2, λ_y = 1, λ₂ = 1; free ends in x, periodic "
               f"in y; massive relaxation with m² = 0.01 from a uniform start. Final training error {float(trace.training_error[-1]):.4f}, test error {float(trace.test_error[-1]):.4f} "
               f"(true density {expected_error(truth, truth):.4f}).")  # fmt: skip
    return Figure("lemm1999/figure_21", "Density estimated from fifty points", caption, panels, {"iteration": trace})


RUNS: dict[str, tuple[str, str]] = {
    "massive relaxation, uniform start": ("massive", "uniform"),
    "Newton, uniform start": ("newton", "uniform"),
    "Newton, kernel start": ("newton", "kernel"),
    "gradient, uniform start": ("gradient", "uniform"),
    "gradient, kernel start": ("gradient", "kernel"),
    "gradient, peaks as start": ("gradient", "peaks"),
}
"""The six rows of figure 22."""


def figure_22(*, quick: bool = False, key: Any = None) -> Figure:
    """Iteration schemes and starts."""
    del quick  # six iterations
    problem, K = fifty(key)
    methods = {"massive": Massive(0.01, K), "newton": Newton(), "gradient": Gradient()}
    starts = {"uniform": Uniform(), "kernel": Truncated(0.01, K), "peaks": Empirical(1e-10)}
    least = solve(problem).energy
    data = {
        name: _watched(problem, methods[m], starts[s], 50).assign_attrs(least=least) for name, (m, s) in RUNS.items()
    }
    panels = []
    for name, label in (
        ("energy", "energy above its minimum"),
        ("training_error", "training error"),
        ("test_error", "test error"),
    ):
        series = []
        for run, one in data.items():
            y = one[name].values
            y = np.where(y - least > 1e-9, y - least, np.nan) if name == "energy" else y
            there = np.isfinite(y)
            series.append(Series(run, Kind.theory, one.iteration.values[there], y[there]))
        panels.append(Panel("iteration", label, tuple(series), log="y", xlim=(-1, 51), key=False))
    caption = ("The problem of figure 21, at most 50 iterations. Kernel start: L = (K + m²)⁻¹ N with m² = 0.01, normalised; peaks: ln(N/n + 10⁻¹⁰).")  # fmt: skip
    return Figure("lemm1999/figure_22", "Iteration schemes and starts", caption, tuple(panels), data)


FIGURES = {
    "figure_1": figure_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "figure_5": figure_5,
    "figure_6": figure_6,
    **temperatures.FIGURES,
    "figure_13": figure_13,
    "figure_14": figure_14,
    "figure_15": figure_15,
    "figure_16": figure_16,
    "figure_17": figure_17,
    "figure_18": figure_18,
    "figure_19": figure_19,
    "figure_20": figure_20,
    "figure_21": figure_21,
    "figure_22": figure_22,
    **MIXTURES,
}
