r"""Density estimation with a mixture of two templates. [lemm1999, section 7.4.2, figures 23 to 28]

The energy is not convex: where an iteration ends depends on its start, on the data and on the strength. The paper's data
are not available; figures have the fifty points of figure 21, and minima are counted for points drawn with seeds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core.claims import Check, Claim, above, below
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.core.types import double
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Given, Start, Template, Uniform
from quenched.fields.model.either import Either
from quenched.fields.model.grid import Free
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.papers.lemm1999.examples import densities, expected_error, fifty, normalised, roughness, sampled
from quenched.papers.lemm1999.matrices import Massive
from quenched.papers.lemm1999.panels import image, regression_panel

LONGEST = 60
"""Iterations at most."""
STRENGTHS, SEEDS = (0.1, 0.5, 1.0, 2.0), 10
"""For which minima are counted, and on how many sets of points."""
ARRIVED = 1e-6
"""An iteration has arrived when its energy is this close to its end."""
RUNS: dict[int, tuple[str, float, float, Start]] = {
    23: ("Two templates, from the first", 0.5, 0.01, Template(0)),
    24: ("Two templates, from the second", 0.5, 0.01, Template(1)),
    25: ("Two templates, from a uniform density", 0.5, 0.01, Uniform()),
    26: ("Two templates, large λ", 1.0, 0.01, Template(0)),
    27: ("Two templates, small λ", 0.1, 0.01, Template(0)),
    28: ("Two templates, a solution that is nearly stable", 1.2, 0.5, Template(1)),
}
"""Title, λ, squared mass and start of each figure."""


def fifty_rows(seed: int, examples: int = 50) -> np.ndarray:
    """Points of the true density for uniform p(x): x uniform, y by the inverse distribution function."""
    rng = np.random.default_rng(seed)
    x, u = rng.integers(1, 11, examples), rng.random(examples)
    below_y = np.cumsum(normalised(densities()["truth"]), axis=1)
    return np.column_stack([x, 1 + np.minimum(np.sum(below_y[x - 1] < u[:, None], axis=1), 14)])


def two_templates(rows: Any, strength: float) -> Problem:
    """One of both templates holds, p_j = 1/2. [lemm1999, eq. (713)]"""
    K = roughness(Free(), lambda_2=1.0, lambda_x=2.0)
    first, second = (
        Gaussian(strength * K, mean=np.log(normalised(densities()[name]))) for name in ("template 1", "template 2")
    )
    return Problem(DensityData(rows), LogDensity(K.grid), first | second)


@double
def _followed(problem: Problem, mass: float, start: Start) -> xr.Dataset:
    """Massive relaxation step by step: energies, errors and mixture coefficients."""
    K, truth, rows = roughness(Free(), lambda_2=1.0, lambda_x=2.0), normalised(densities()["truth"]), []
    prior: Any = problem.prior
    assert isinstance(prior, Either)
    field, fit = np.asarray(problem.link.project(jnp.asarray(start.field(problem)))), None
    total = problem.likelihood.total
    for _ in range(LONGEST):
        at = problem.expand(field)
        rows.append((at.energy, at.loss / total, expected_error(truth, np.exp(field)), *prior.responsibilities(field)))
        fit = solve(problem, Massive(mass, K), start=Given(field), max_steps=1)
        if fit.converged or np.max(np.abs(fit.field - field)) < 1e-8:
            break
        field = fit.field
    assert fit is not None
    energy, training, test, first, second = np.array(rows).T
    return xr.Dataset(
        {
            "energy": ("iteration", energy),
            "training_error": ("iteration", training),
            "test_error": ("iteration", test),
            "coefficient": (("component", "iteration"), np.array([first, second])),
            "density": (("x", "y"), np.exp(field)),
        },
        attrs={"kkt": fit.kkt},
    )


def _figure(number: int, *, quick: bool = False, key: Any = None) -> Figure:
    """One run."""
    del quick  # one iteration
    title, strength, mass, start = RUNS[number]
    trace = _followed(two_templates(sampled(key), strength), mass, start)
    P, truth = trace.density.values, normalised(densities()["truth"])
    names = {"energy": "energy", "training_error": "training error", "test_error": "test error"}
    lines = [
        Panel("iteration", label, (Series(label, Kind.theory, trace.iteration.values, trace[name].values),),
              title=label, key=False)
        for name, label in names.items()
    ]  # fmt: skip
    coefficients = tuple(
        Series(f"a_{j + 1}", Kind.theory, trace.iteration.values, trace.coefficient.values[j]) for j in (0, 1)
    )
    panels = (
        image("P", P, "density P(x, y)", sampled(key)),
        image("ln P", np.log(P), "log-density", sampled(key)),
        regression_panel(P, truth),
        *lines,
        Panel("iteration", "mixture coefficient", coefficients, title="which template", ylim=(-0.05, 1.05)),
    )
    where = (
        f"template {start.which + 1}"
        if isinstance(start, Template) and start.which is not None
        else "a uniform density"
    )
    caption = ("The 50 points of figure 21, shown on the images, drawn with a fixed key (the paper's are not available). Mixture of two templates on L, "
               f"λ = {strength:g}, λ_x = 2, λ_y = 1, λ₂ = 1; free ends in x, periodic in y; massive relaxation with m² = {mass:g} from "
               f"{where}. Final training error {float(trace.training_error[-1]):.4f}, test error {float(trace.test_error[-1]):.4f}; "
               f"mixture coefficients {float(trace.coefficient[0, -1]):.3f} and {float(trace.coefficient[1, -1]):.3f}.")  # fmt: skip
    return Figure(f"lemm1999/figure_{number}", title, caption, panels, {"iteration": trace})


MIXTURES: dict[str, Callable[..., Figure]] = {f"figure_{n}": functools.partial(_figure, n) for n in RUNS}
"""Figures 23 to 28."""


def count_minima(seeds: int) -> dict[float, list[int]]:
    """The number of minima for each strength and each set of points."""
    return {
        strength: [len(solve(two_templates(fifty_rows(seed), strength)).minima) for seed in range(seeds)]
        for strength in STRENGTHS
    }


def _if_it_holds(check: Check) -> Check | None:
    """A statement on data that are not available: ours can support it, but not refute it."""
    return check if check.holds else None


def mixture_claims(made: dict[int, Figure], *, quick: bool) -> list[Claim]:
    """Statements of section 7.4.2."""
    run = {n: made[n].data["iteration"] for n in RUNS}
    test, training = ({n: float(one[name][-1]) for n, one in run.items()} for name in ("test_error", "training_error"))
    steps = {n: int(np.argmax(one.energy.values < one.energy.values[-1] + ARRIVED)) for n, one in run.items()}
    plain = solve(fifty(None)[0]).density
    gauss = expected_error(normalised(densities()["truth"]), plain)
    off = {n: float(np.sqrt(np.mean((one.density.values - plain) ** 2))) for n, one in run.items()}
    templates = [normalised(densities()[f"template {j}"]) for j in (1, 2)]
    strong = solve(two_templates(sampled(None), 100.0))
    near_template = max(min(float(np.max(np.abs(one.density - t))) for t in templates) for one in strong.met)
    seeds = 2 if quick else SEEDS
    minima = count_minima(seeds)
    two = {strength: sum(count == 2 for count in counts) for strength, counts in minima.items()}
    a_1 = run[28].coefficient.values[0]
    ours = "our own 50 points; those of the paper are not available"
    rises = float(run[27].test_error[-1] - run[27].test_error.min())
    return [
        Claim("figure 23", "convergence is fast for massive relaxation from the first template", "fast", f"within {ARRIVED:g} of its end after {steps[23]} iterations", ours, below(steps[23], 30, what="iterations")),
        Claim("figures 21, 23", "the final test error is slightly lower than for the Gaussian prior with mean zero", "lower", f"{test[23]:.4f}, and {gauss:.4f} for the Gaussian prior", ours, _if_it_holds(below(test[23], gauss, what="test error"))),
        Claim("figure 24", "from the second template convergence is not much slower and the solution is similar", "similar", f"{steps[24]} and {steps[23]} iterations; test errors {test[24]:.4f} and {test[23]:.4f}, coefficients a_1 = {float(run[24].coefficient[0, -1]):.3f} and {float(run[23].coefficient[0, -1]):.3f}",
              ours, _if_it_holds(below(steps[24], 3 * steps[23] + 10, what="iterations"))),
        Claim("figure 25", "from a uniform start the solution is very similar to that of figure 21", "very similar", f"root mean square difference of P {off[25]:.4f}, from the first template {off[23]:.4f}", ours, _if_it_holds(below(off[25], off[23] / 2, what="difference"))),
        Claim("figure 26", "a larger λ has a larger training error", "larger", f"{training[26]:.4f} and {training[23]:.4f}", "λ = 1 and 0.5, from the first template", above(training[26], training[23], what="training error")),
        Claim("figure 26", "convergence is very fast when starting from a template", "very fast", f"{steps[26]} iterations, {steps[23]} at λ = 0.5 and {steps[27]} at λ = 0.1", ours, below(steps[26], steps[23], what="iterations") & below(steps[23], steps[27], what="iterations at λ = 0.5")),
        Claim("figure 27", "a small λ has a small training error and a test error that grows", "overfitting", f"training error {training[27]:.4f}, {training[23]:.4f} at λ = 0.5; the test error ends {rises:.4f} above its least value",
              ours, below(training[27], training[23], what="training error") & above(rises, 1e-3, what="rise of the test error")),
        Claim("figure 28", "a nearly stable solution near the second template decays into one near the first", "a_1 from 0 to 1", f"a_1 = {a_1[0]:.3f} at the start and {a_1[-1]:.3f} at the end, {len(a_1)} iterations; at λ = 0.5 (figure 24) it is {float(run[24].coefficient[0, 0]):.3f} and {float(run[24].coefficient[0, -1]):.3f}",
              ours, _if_it_holds(below(a_1[0], 0.5, what="a_1 at the start") & above(a_1[-1], 0.5, what="at the end"))),
        Claim("section 7.4.2", "prior mixtures have metastable solutions", "typically", "; ".join(f"λ = {s:g}: two minima for {two[s]} of {seeds}" for s in STRENGTHS), f"{seeds} sets of 50 points, five starts each",
              below(two[0.1], 0, what="sets with two minima at λ = 0.1") & above(two[2.0], seeds, what="at λ = 2")),
        Claim("equation (713)", "for λ to infinity the solutions are the templates", "t_j", f"{len(strong.met)} minima at λ = 100, densities within {near_template:.1e} of a template", ours, below(near_template, 0.02, what="difference") & above(len(strong.met), 2, what="minima")),
    ]  # fmt: skip
