"""What the paper says, ours beside it: its figures here, chapters 2 and 3 in `framework`, `gaussian` and
`regression`, section 3.9 and table 4 in `potentials`, section 6.3 in `temperatures`, chapter 4 and section 6.5 in `trial_spaces`, tables 3, 5 and 6 in `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import numpy as np
import xarray as xr

from quenched.core.claims import Check, Claim, above, agrees, below, near
from quenched.core.figures import Figure, comparison
from quenched.fields.learner.matrices import Newton
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Kernel, Truncated, Uniform
from quenched.fields.model.grid import Periodic
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.theory.decisions import AbsoluteLoss, LogLoss, Loss, SquaredLoss, ZeroOneLoss
from quenched.papers.lemm1999.examples import (
    MU,
    TWO,
    densities,
    expected_error,
    fifty,
    mesh,
    moments,
    normalised,
    roughness,
)
from quenched.papers.lemm1999.figures import FIGURES, PAIRS
from quenched.papers.lemm1999.framework import framework_claims
from quenched.papers.lemm1999.gaussian import gaussian_claims
from quenched.papers.lemm1999.hyperparameters import hyperparameter_claims
from quenched.papers.lemm1999.information import mutual_information
from quenched.papers.lemm1999.learning import LEARNING
from quenched.papers.lemm1999.matrices import Gradient, Massive
from quenched.papers.lemm1999.misprints import misprints
from quenched.papers.lemm1999.mixtures import mixture_claims
from quenched.papers.lemm1999.potentials import potential_claims
from quenched.papers.lemm1999.regression import regression_claims
from quenched.papers.lemm1999.stationarity import curvature, hessian
from quenched.papers.lemm1999.tables import table_claims
from quenched.papers.lemm1999.temperatures import temperature_claims
from quenched.papers.lemm1999.trial_spaces import trial_space_claims

ARRIVED = 1e-6
"""An iteration has arrived when its energy is this close to the least."""


def claims(*, quick: bool = False, figures: Iterable[Figure] = ()) -> tuple[Claim, ...]:
    """Every number and statement of the paper that can be checked, ours beside it.

    Args:
        quick: fewer keys, as for the figures.
        figures: figures computed already, which need not be computed again.
    """
    known = {figure.key.split("/")[1]: figure for figure in figures}
    made = {int(name.split("_")[1]): known.get(name) or make(quick=quick) for name, make in FIGURES.items()}
    return (
        *framework_claims(made[1], made[2]),
        *_information_claims(made[3]),
        *_decision_claims(),
        *_link_claims(made[4]),
        *gaussian_claims(),
        *regression_claims(made[5]),
        *potential_claims(),
        *trial_space_claims(),
        *table_claims(),
        *hyperparameter_claims(made[6]),
        *temperature_claims(made),
        *_print_claims(made),
        *_two_point_claims(made),
        *_error_claims(made[18]),
        *_fifty_claims(made),
        *_speed_claims(made[22], quick=quick),
        *mixture_claims(made, quick=quick),
    )


def _if_it_holds(check: Check) -> Check | None:
    """A statement on data or choices that the paper does not state: ours can support it, but not refute it."""
    return check if check.holds else None


def _information_claims(figure: Figure) -> list[Claim]:
    """Statements of section 2.1.5."""
    lucky, unlucky, factorial = (figure.data[name] for name in ("lucky", "unlucky", "factorial"))
    share = (lucky.information / lucky.information[0]).values
    gone = int(np.argmax(share < 0.01)) if np.any(share < 0.01) else -1
    wrong = unlucky.probability.isel(state=slice(1, None)).max("state").values
    little = (unlucky.information / unlucky.information[0]).values < 0.1
    survivor = float(wrong[little].max(initial=0.0))
    most = float(np.abs(factorial.information).max())
    pure = max(abs(mutual_information(row)) for row in np.eye(4))
    product = abs(mutual_information(np.outer([0.3, 0.7], [0.8, 0.2]).ravel()))
    return [
        Claim("after equation (36)", "pure states have no mutual information", "0", f"at most {pure:.0e}", "all four states", below(pure, 1e-10, what="M")),
        Claim("equation (37)", "a factorial p(h) leads to a factorial predictive density", "M = 0", f"{product:.0e}", "p = (0.3, 0.7) x (0.8, 0.2)", below(product, 1e-10, what="M")),
        Claim("after equation (40)", "factorial states remain factorial under local data", "M = 0 up to fluctuations", f"at most {most:.0e} during 50 examples", "figure 3, right", below(most, 1e-10, what="M")),
        Claim("figure 3", "mutual information decays rapidly", "quickly practically zero", f"below 1% of its start after {gone} examples; {share[-1]:.0e} of it after 50",
              "one series of data, σ = 2", below(share.min(), 0.01, what="least share of its start")),
        Claim("figure 3", "a wrong hypothesis may survive the decay of mutual information", "for unlucky data",
              f"a wrong state has probability {survivor:.2f} while M is below 10% of its start; in the end the true one has {float(unlucky.probability[-1, 0]):.2f}",
              "figure 3, middle; the paper does not state its data", _if_it_holds(above(survivor, 0.5, what="the wrong one") & above(unlucky.probability[-1, 0], 0.5, what="the true one in the end"))),
    ]  # fmt: skip


def _best(loss: Loss, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best of many constant actions at each x, and how much less its risk is than that of the given action."""
    grid, _, y = mesh(Periodic())
    tried = np.linspace(y.low, y.high, 561)
    risks = np.array([loss.risk(grid, P, np.full(10, a)) for a in tried])
    return tried[np.argmin(risks, axis=0)], loss.risk(grid, P, loss.action(grid, P)) - risks.min(axis=0)


def _decision_claims() -> list[Claim]:
    """Statements of section 2.2."""
    grid, _, y = mesh(Periodic())
    P = normalised(densities()["truth"])
    rng = np.random.default_rng(0)
    distances = []
    for _ in range(100):
        Q = normalised(P * np.exp(0.3 * rng.normal(size=P.shape)))
        distances.append(np.min(LogLoss().risk(grid, P, Q) - LogLoss().risk(grid, P, P)))
    gap = {loss: float(np.max(_best(loss, P)[1])) for loss in (SquaredLoss(), AbsoluteLoss(), ZeroOneLoss())}
    bell = normalised(np.exp(-((np.tile(y.coordinates, (10, 1)) - 8) ** 2) / 8))
    places = [float(loss.action(grid, bell)[0]) for loss in gap]
    return [
        Claim("equations (78), (79)", "the density itself has the least log-loss", "argmin r(a, h) = h", f"100 others are worse by at least {min(distances):.4f}", "perturbed true densities of figure 18", above(min(distances), 0.0, what="excess")),
        Claim("equation (52)", "squared loss: the mean is best", "mean", f"no action on a fine scale is better ({max(gap[SquaredLoss()], 0.0):.0e})", "true density of figure 18", below(gap[SquaredLoss()], 1e-9, what="excess risk")),
        Claim("equation (60)", "absolute loss: a median is best", "median", f"none is better ({max(gap[AbsoluteLoss()], 0.0):.0e})", "the same", below(gap[AbsoluteLoss()], 1e-9, what="excess risk")),
        Claim("after equation (63)", "for Gaussians mode, median and mean coincide", "equal", ", ".join(f"{place:.10g}" for place in places), "a Gaussian on the mesh", below(np.ptp(places), 1e-9, what="largest difference")),
    ]  # fmt: skip


def _link_claims(figure: Figure) -> list[Claim]:
    """Statements of section 2.7 on figure 4."""
    rough, smooth = (float(one.attrs["learned"]) for one in list(figure.data.values())[:2])
    proof = figure.agreement[LEARNING]
    return [
        Claim("figure 4", "a bounded random function does not allow generalisation; with input averaging it becomes learnable", "-",
              f"regression from 40 of 201 points explains {max(rough, 0.0):.0%} and {smooth:.0%} of the variance at the others", "strengths of the prior by evidence", below(rough, 0.1, what="share of the rough one") & above(smooth, 0.5, what="of the smooth one")),
        Claim("figure 4", "training and test error of a regression, averaged over data sets (not in the paper)", "-",
              f"p {proof.chance}, largest deviation {proof.largest:.1f} standard errors",
              f"exact theory against {proof.runs} data sets, without any allowance", agrees(proof), rests_on=comparison(figure, LEARNING), own=True),
    ]  # fmt: skip


def _print_claims(made: dict[int, Figure]) -> list[Claim]:
    """Printed equations and captions that cannot stand as they are, and one that can."""
    H, beta = np.array([[2.0, 0.5], [0.5, 1.0]]), 1.3
    h = np.linspace(-6, 6, 401)
    grid = np.stack(np.meshgrid(h, h), axis=-1)
    integral = np.sum(np.exp(-beta * np.einsum("...i,ij,...j", grid, H, grid))) * (h[1] - h[0]) ** 2
    closed = np.pi / beta / np.sqrt(np.linalg.det(H))
    trace = made[21].data["iteration"]
    K, N = fifty(None)[1], made[20].data["points"].counts.values
    L = np.log(trace.density.values)
    exponent = float(np.sum(N * L) - 0.25 * L.ravel() @ (K.matrix @ L.ravel()))
    drawn, smooth = float(trace.energy[-1]), {n: PAIRS[n][1]["lambda_6"] for n in (16, 17)}
    middles = MU + 25 / 9, MU - 25 / 9
    return [
        Claim("equation (70)", "Gaussian integral", "π^(d/2) β^(-d/2) det H^(-1/2)", f"{integral:.10f} by summation, {closed:.10f} by the formula (d = 2)", "without a factor 1/2 in the exponent", near(integral, closed, within=1e-9)),
        *(misprint.claim for misprint in misprints()),
        Claim("captions of figures 14, 21", "energy E_L", "(108)", f"(109), which is {-exponent:.6f} at the solution of figure 21; the exponent of the posterior (108) is {exponent:.6f} and rises", f"the energy that falls during the iteration ends at {drawn:.6f} (erratum F21)",
              near(exponent, drawn, within=1e-6, what="(108)"), near(-exponent, drawn, within=1e-6, what="(109)")),
        Claim("caption of figure 17", "a smaller λ₆ than in Fig. 17", "smaller", f"larger than in figure 16: {smooth[17]:g} against {smooth[16]:g}", "the captions' own numbers, with which both figures are computed (erratum F17)",
              below(smooth[17], smooth[16], what="λ₆"), above(smooth[17], smooth[16], what="λ₆")),
        Claim("equation (719)", "middle of the first template", "μ_a = 10.27, μ_b = 4.72", f"{middles[0]:.4f}, {middles[1]:.4f}", "7.5 ± 25/9; cut, not rounded (erratum F719)",
              near(middles[0], 10.27, within=0.005) & near(middles[1], 4.72, within=0.005), near(middles[0], 10.28, within=0.005) & near(middles[1], 4.72, within=0.005)),
    ]  # fmt: skip


def _kink(P: np.ndarray) -> float:
    """Mean second difference of the regression function at the data, relative to its range."""
    mean, _ = moments(P)
    return float(np.mean(np.abs(mean[[1, 5]] - 2 * mean[[2, 6]] + mean[[3, 7]])) / np.ptp(mean))


def _two_point_claims(made: dict[int, Figure]) -> list[Claim]:
    """Statements on figures 14 to 17."""
    P = {n: made[n].data["solution"].density.values for n in PAIRS}
    trace = {n: made[n].data["iteration"] for n in PAIRS}
    drop = {
        n: (trace[n].energy[0] - trace[n].energy).values / float(trace[n].energy[0] - trace[n].attrs["energy"])
        for n in PAIRS
    }
    spread = {n: float(np.mean(moments(P[n])[1][[2, 6]])) for n in PAIRS}
    low = {n: float(np.median(P[n])) for n in PAIRS}
    kink = {n: _kink(P[n]) for n in PAIRS}
    zeros = {n: trace[n].attrs["zeros"] for n in (15, 17)}
    problem = Problem(
        DensityData(TWO), LogDensity(mesh(Periodic())[0]), Gaussian(roughness(Periodic(), lambda_2=0.025))
    )
    fixed, whole = (
        float(np.linalg.eigvalsh((H + H.T) / 2)[0])
        for H in (curvature(problem, np.log(P[14])), hessian(problem, np.log(P[14])))
    )
    mean = moments(P[14])[0]
    bends = np.abs(mean[:-2] - 2 * mean[1:-1] + mean[2:])
    straight = float(np.max(np.delete(bends, [1, 5])) / np.min(bends[[1, 5]]))
    return [
        Claim("figures 14, 15", "the largest P is the same", "max P = 0.6", f"{P[14].max():.6f} and {P[15].max():.6f}",
              f"minima with stationarity residuals {trace[14].attrs['kkt']:.0e} and {trace[15].attrs['kkt']:.0e}", near(P[14].max(), 0.6, within=0.05) & near(P[15].max(), 0.6, within=0.05)),
        Claim("figure 14", "the energy falls fast within the first two iterations", "first two", f"{drop[14][2]:.1%} of the fall after two", "Newton from the kernel estimate", above(drop[14][2], 0.9, what="share")),
        Claim("figure 15", "the energy falls fast during the first iteration", "first", f"{drop[15][1]:.1%} of the fall after one", "massive relaxation from the kernel estimate", above(drop[15][1], 0.8, what="share")),
        Claim("figure 14", "iteration with -H where it is positive definite, or else with the gradient", "-H", f"least eigenvalue at the solution: {fixed:.5f} at fixed multiplier (156), {whole:.0e} of the whole Hessian (160)",
              "the paper does not say which; (156) is not positive even at the minimum, (160) is but for the shifts of g"),
        Claim("section 3.2.1", "a typical smoothness constraint and data make P > 0 everywhere, so that P ≥ 0 need not be asked for", "typically", f"P = 0 at {zeros[15]} of 150 points in figure 15 and at {zeros[17]} in figure 17",
              "constrained minima with vanishing residual at the paper's own parameters", below(zeros[15], 0, what="zeros in figure 15") & below(zeros[17], 0, what="in figure 17")),
        Claim("figure 14", "the regression is piecewise linear, as for a Laplacian prior", "typical", f"elsewhere it bends up to {straight:.0%} as much as at the data", "second differences", below(straight, 0.5, what="bend elsewhere")),
        Claim("figures 14, 15", "a prior on P smooths small probabilities less", "deep valleys in L", f"median of P {low[14]:.4f} and {low[15]:.4f}; least P {P[14].min():.4f} and {P[15].min():.4f}", "both solutions", below(P[15].min(), P[14].min(), what="least P")),
        Claim("figures 14, 15", "at the x of the data the variance is much smaller for a prior on P", "much smaller", f"standard deviation of y there: {spread[14]:.2f} and {spread[15]:.2f}", "mean of x = 3 and 7", below(spread[15], spread[14] / 2, what="standard deviation")),
        Claim("figures 14, 16", "third derivatives make the regression function much rounder at the data", "striking", f"kink {kink[14]:.2f} and {kink[16]:.2f} of the range", "second differences at x = 3 and 7", below(kink[16], kink[14] / 2, what="kink")),
        Claim("figures 15, 17", "the same for priors on P", "rounder", f"kink {kink[15]:.2f} and {kink[17]:.2f} of the range", "the same", below(kink[17], kink[15], what="kink")),
        Claim("figures 16, 17", "smoothing of small probabilities is less effective for the prior on P", "smaller variance at the data", f"standard deviation {spread[16]:.2f} and {spread[17]:.2f}; least P {P[16].min():.5f} and {P[17].min():.5f}",
              "the same", below(spread[17], spread[16], what="standard deviation") & below(P[17].min(), P[16].min(), what="least P")),
    ]  # fmt: skip


def _error_claims(figure: Figure) -> list[Claim]:
    """The four test errors."""
    table = figure.data["errors"]
    return [
        Claim("figure 18", f"expected test error of the {name}", printed,
              f"{float(table.printed.sel(density=name)):.4f} in the paper's way, {float(table.normalised.sel(density=name)):.4f} normalised on the mesh",
              "densities of the continuum on y = 1 to 15, with and without normalisation (erratum F711)", near(table.printed.sel(density=name), float(printed), within=0.005))
        for name, printed in {"truth": "2.23", "template 1": "2.56", "template 2": "2.90", "uniform": "2.68"}.items()
    ]  # fmt: skip


def _fifty_claims(made: dict[int, Figure]) -> list[Claim]:
    """Statements on figures 20 and 21."""
    counts, trace = made[20].data["points"].counts, made[21].data["iteration"]
    P, truth = trace.density.values, normalised(densities()["truth"])
    off = float(np.sqrt(np.mean((moments(P)[0] - moments(truth)[0]) ** 2)))
    wide = float(np.mean(moments(truth)[1]))
    distance = float(np.mean(np.sum(truth * np.log(truth / P), axis=1)))
    difference = expected_error(truth, P) - expected_error(truth, truth)
    arrived = int(np.argmax(trace.energy.values < trace.energy.values[-1] + ARRIVED))
    return [
        Claim("figure 20", "P_emp equals the extended P̃_emp", "data at every x", f"at least {int(counts.sum('y').min())} points at each x", "our own 50 points; those of the paper are not available", _if_it_holds(above(counts.sum("y").min(), 1, what="fewest points"))),
        Claim("equations (711), (712)", "up to a constant the test error is the distance from the truth", "equal", f"{difference:.10f} and {distance:.10f}", "solution of figure 21", near(difference, distance, within=1e-12)),
        Claim("figure 21", "convergence is fast", "fast", f"within {ARRIVED:g} of the least energy after {arrived} iterations", "massive relaxation, uniform start, our own 50 points", below(arrived, 30, what="iterations")),
        Claim("figure 21", "the regression function is similar to the true one", "similar", f"root mean square difference {off:.2f}, standard deviation of y {wide:.2f}", "our own 50 points; those of the paper are not available", _if_it_holds(below(off, 0.5 * wide, what="difference"))),
    ]  # fmt: skip


def _steps(key: jax.Array) -> dict[str, list[tuple[int, int]]]:
    """Iterations that Newton, massive relaxation and gradient need to 1% of the fall and to the end, from two starts."""
    problem, K = fifty(key)
    least = solve(problem).energy
    found = {}
    for name, start in (("uniform", Uniform()), ("kernel", Truncated(0.01, K))):
        counts = []
        for method in (Newton(), Massive(0.01, K), Gradient()):
            energy = solve(problem, method, start=start, max_steps=150).trace.energy.values
            goals = (least + 0.01 * (energy[0] - least), least + ARRIVED)
            counts.append(tuple(int(np.argmax(np.append(energy, -np.inf) < goal)) for goal in goals))
        found[name] = counts
    return found


def _speed_claims(figure: Figure, *, quick: bool) -> list[Claim]:
    """Statements on figure 22."""
    runs = figure.data
    rise = max(float(np.max(np.diff(one.energy))) for one in runs.values())
    every = [_steps(jax.random.key(22 + i)) for i in range(2 if quick else 5)]
    lead = min(min(b - a, c - b) for one in every for (_, a), (_, b), (_, c) in one.values())
    counts = "; ".join(", ".join(f"{s}: {a}/{b}/{c}" for s, ((_, a), (_, b), (_, c)) in one.items()) for one in every)
    eye = [[method[0] for method in one["uniform"]] for one in every]
    ratio = [np.mean([one["uniform"][k][1] / one["uniform"][0][1] for one in every]) for k in (1, 2)]
    moves = {
        name: _moves(runs[name])
        for name in ("Newton, uniform start", "gradient, kernel start", "gradient, peaks as start")
    }
    uniform, kernel, peaks = moves.values()
    slow = runs["gradient, kernel start"]
    problem, K = fifty(None)
    guesses = (Kernel(0.01, K, conditional=False), Kernel(0.01, K), Kernel(1.0, K))
    others = [float(solve(problem, start=guess, max_steps=1).trace.training_error[0]) for guess in guesses]
    after = float(slow.test_error[-1] - slow.test_error.min())
    trained = float(slow.training_error[-1] - slow.training_error.min())
    return [
        Claim("figure 22", "all methods decrease the energy", "all", f"no step raises it by more than {max(rise, 0.0):.0e}", "six runs of at most 50 iterations", below(rise, 1e-9, what="largest rise")),
        Claim("figure 22", "Newton is fastest, then massive relaxation, then the gradient", "in this order", f"iterations to {ARRIVED:g} (Newton/massive/gradient): {counts}", f"{len(every)} sets of 50 points, two starts", above(lead, 1, what="iterations between one method and the next, at least")),
        Claim("figure 22", "massive relaxation is nearly as fast as Newton, even from a uniform start", "nearly", f"99% of the fall after {np.mean(eye, axis=0)[0]:.1f}, {np.mean(eye, axis=0)[1]:.1f} and {np.mean(eye, axis=0)[2]:.1f} iterations (Newton, massive, gradient)",
              f"mean of the same; but {ratio[0]:.1f} and {ratio[1]:.0f} times as many as Newton to {ARRIVED:g}", below(np.mean(eye, axis=0)[1], 3 * np.mean(eye, axis=0)[0], what="iterations of massive relaxation")),
        Claim("figure 22", "the uniform start is prior-oriented: its training error falls to that of the solution", "larger at the start", f"{uniform[0]:.3f} at the start, {uniform[1]:.3f} at the end", "one set of 50 points", above(uniform[0], uniform[1], what="training error at the start")),
        Claim("figure 22", "the start from peaks is data-oriented", "smaller at the start", f"{peaks[0]:.3f} at the start, {uniform[1]:.3f} for the solution", "the same", below(peaks[0], uniform[1], what="training error at the start")),
        Claim("figure 22", "the kernel start is data-oriented", "smaller at the start", f"{kernel[0]:.3f} at the start, {uniform[1]:.3f} for the solution",
              f"eq. (682); the paper does not say which of its guesses it took: (691) and (698) give {others[0]:.3f} and {others[1]:.3f}, and {others[2]:.3f} with m² = 1 instead of 0.01", _if_it_holds(below(kernel[0], uniform[1], what="training error at the start"))),
        Claim("figure 22, fifth row", "test and training error grow again while the energy falls", "after a minimum", f"gradient, kernel start: test error {after:+.4f}, training error {trained:+.4f} above the least",
              "our own 50 points; which errors grow depends on the data", _if_it_holds(above(after, 1e-4, what="test error") & above(trained, 1e-4, what="training error"))),
    ]  # fmt: skip


def _moves(run: xr.Dataset) -> tuple[float, float]:
    """Training error at the start and at the end."""
    return float(run.training_error[0]), float(run.training_error[-1])
