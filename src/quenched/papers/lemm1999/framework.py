r"""What sections 2.1 to 2.5 of the paper say, each decided by a small computation: finite sets of states, quadrature.

Four states of Nature are the rows of `P`: densities over five values, at two places. Posteriors, predictive densities
and risks are sums over them; what is compared is computed in another way.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import integrate, special, stats

from quenched.core.claims import Claim, above, below, near
from quenched.core.figures import Figure
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.model.grid import Axis, Free, Grid
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct, LogDensity
from quenched.fields.model.measurements import BlurredData
from quenched.fields.model.noise import RiskData
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.papers.lemm1999.examples import densities, mesh, normalised
from quenched.papers.lemm1999.graphs import GIVEN, HIDDEN, SEEN, STATES, TRUTH, predictions
from quenched.papers.lemm1999.information import mutual_information
from quenched.papers.lemm1999.misprint import Misprint

ROUNDING = 1e-12
"""Two ways of computing one number."""
BETA = 1.7
"""An inverse temperature that is not one."""


def _states() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Energies of five values for four states at two places, probabilities of the states, and of the places."""
    rng = np.random.default_rng(5)
    return rng.normal(size=(4, 2, 5)), np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.7])


DATA = ((0, 1), (1, 4), (0, 3))
"""Three rows: place and value."""


def _posterior(P: np.ndarray, prior: np.ndarray) -> np.ndarray:
    joint = prior * np.prod([P[:, x, y] for x, y in DATA], axis=0)
    return joint / joint.sum()


def framework_claims(one: Figure, two: Figure) -> list[Claim]:
    """Statements of sections 2.1 to 2.5."""
    return [*_graph_claims(one), *_energy_claims(), *_prediction_claims(two), *_loss_claims(), *_approximation_claims(), *_prior_claims()]  # fmt: skip


def _parents(drawn: xr.Dataset, role: str) -> list[list[str]]:
    """Roles of the parents of every node of a role."""
    roles, source, target = drawn.role.values, drawn.source.values, drawn.target.values
    return [sorted(roles[source[target == node]]) for node in np.flatnonzero(roles == role)]


def _graph_claims(figure: Figure) -> list[Claim]:
    """Figure 1."""
    drawn = list(figure.data.values())
    other = sum(parents != sorted([GIVEN, HIDDEN]) for graph in drawn for parents in _parents(graph, SEEN))
    causes = sum(len(parents) for graph in drawn for role in (GIVEN, HIDDEN) for parents in _parents(graph, role))
    rows = sum(int(np.sum(graph.role.values == SEEN)) for graph in drawn)
    return [
        Claim("equation (2), figure 1", "p(x, y, h) = ∏ p(y_i|x_i, h) p(x_i) p(h)", "y_i depends on x_i and h alone", f"so do all {rows} rows of two declared problems; x and h have {causes} causes", "the graph of each declared problem",
              below(other, 0, what="rows with other parents") & below(causes, 0, what="parents of x and h")),
    ]  # fmt: skip


def _energy_claims() -> list[Claim]:
    """Sections 2.1.2 and 2.1.3."""
    E, prior, p_x = _states()
    P = special.softmax(-BETA * E, axis=2)
    F = -np.asarray(special.logsumexp(-BETA * E, axis=2)) / BETA
    whole = np.sum(np.exp(-BETA * (E - F[..., None])), axis=2)
    f = _posterior(P, prior)
    joint = prior * np.prod([P[:, x, y] * p_x[x] for x, y in DATA], axis=0)
    comb = sum(E[:, x, y] - F[:, x] for x, y in DATA) - np.log(prior) / BETA
    step, one = 1e-3, E[0, 0]

    def free(beta: float) -> float:
        return -float(np.asarray(special.logsumexp(-beta * one)))  # beta F

    mean, variance = P[0, 0] @ one, P[0, 0] @ one**2 - (P[0, 0] @ one) ** 2
    slope = (free(BETA + step) - free(BETA - step)) / (2 * step)
    bend = (free(BETA + step) - 2 * free(BETA) + free(BETA - step)) / step**2
    return [
        Claim("equations (3) to (12)", "p = exp(-β(E - F)) with the free energy F is normalised", "∑ p = 1", f"within {np.max(np.abs(whole - 1)):.0e}", "random energies of five values for four states at two places", below(np.max(np.abs(whole - 1)), ROUNDING, what="largest deviation")),
        Claim("section 2.1.2", "derivatives of the free energy by β are cumulants of the energy", "a generating function", f"d(βF)/dβ = {slope:.6f} is the mean {mean:.6f}, -d²(βF)/dβ² = {-bend:.6f} the variance {variance:.6f}", "of βF, not of F; finite differences", near(slope, mean, within=1e-5) & near(-bend, variance, within=1e-4)),
        Claim("equation (16)", "joint and conditional likelihoods give the same posterior", "p(x) drops out", f"within {np.max(np.abs(joint / joint.sum() - f)):.0e}", "three rows, four states", below(np.max(np.abs(joint / joint.sum() - f)), ROUNDING, what="largest difference")),
        Claim("equations (23), (24)", "the posterior is that of E_comb = Σ E(y_i|x_i, h) + E(h|D₀) - F(Y_D|x_D, h)", "E_comb", f"within {np.max(np.abs(special.softmax(-BETA * comb) - f)):.0e}", "Bayes' theorem with normalised likelihoods", below(np.max(np.abs(special.softmax(-BETA * comb) - f)), ROUNDING, what="largest difference")),
    ]  # fmt: skip


def _prediction_claims(figure: Figure) -> list[Claim]:
    """Sections 2.1.3 to 2.1.5."""
    E, prior, _ = _states()
    P = special.softmax(-BETA * E, axis=2)
    weights = np.prod([P[:, x, y] for x, y in DATA], axis=0)
    mean = _posterior(P, prior) @ P[:, 1]
    ratio = (prior * weights) @ P[:, 1] / (prior @ weights)
    path = figure.data["path"]
    states = path.states.values
    rebuilt = np.max(np.abs(path.probability.values @ states - path.predictive.values))
    least, pure = float(path.probability.min()), float(np.min(1 - path.probability.values.max(axis=1)))
    many = [predictions(STATES, TRUTH, rows=12, key=jax.random.key(i)) for i in range(12)]
    away = np.array([np.linalg.norm(one.predictive.values - states[TRUTH], axis=1) for one in many])
    back = float(np.mean(np.any(np.diff(away, axis=1) > 0, axis=1)))
    (grid, _, y), known = mesh(Free()), densities()
    link, points = LogDensity(grid), np.array([(3, 3.0), (7, 12.0), (7, 11.0)])
    with jax.enable_x64(True):
        both = [jnp.log(normalised(known[name])) for name in ("truth", "template 1")]
        sharp, exact = (
            float(data.prepared(grid).energy(link, both[0]) - data.prepared(grid).energy(link, both[1]))
            for data in (BlurredData(points, width=0.05 * y.spacing), DensityData(points))
        )
    finer = mutual_information([0.5, 0.0, 0.0, 0.5])
    return [
        Claim("equations (21), (22)", "the predictive density is a ratio of two correlation functions under the prior", "equal", f"within {np.max(np.abs(mean - ratio)):.0e}", "mean over the posterior, and the ratio", below(np.max(np.abs(mean - ratio)), ROUNDING, what="largest difference")),
        Claim("equation (26)", "a measurement that is ever sharper has the likelihood of a point", "limit", f"log-odds of two densities {-sharp:.10f} and {-exact:.10f}", "a kernel of a twentieth of the spacing and three points; true density and first template of figure 18", near(sharp, exact, within=1e-9)),
        Claim("after equation (27), figure 2", "p(y|x, f) is in the convex hull of the states, and typically none of them", "inside", f"the sum over states with weights of at least {least:.2g}; the largest weight stays {pure:.2g} below 1", "figure 2", above(least, 0.0, what="least weight") & below(rebuilt, ROUNDING, what="distance from the sum") & above(pure, 1e-3, what="distance from a state")),
        Claim("figure 2", "during learning it tends to move towards the true state, stochastically", "tends to", f"mean distance {away[:, 0].mean():.3f} at first, {away[:, -1].mean():.3f} after 12 rows; {back:.0%} of the paths also move away somewhere", f"{len(many)} series of rows", below(away[:, -1].mean(), away[:, 0].mean() / 2, what="mean distance") & above(back, 0.5, what="share that moves away somewhere")),
        Claim("equation (38)", "a pure state made of finer ones with a prior that is not factorial can be learned from again", "M > 0", f"{finer:.4f} nats", "two finer states with means (1, 1) and (-1, -1)", above(finer, 0.01, what="M")),
    ]  # fmt: skip


def _loss_claims() -> list[Claim]:
    """Section 2.2."""
    E, prior, p_x = _states()
    P = special.softmax(-BETA * E, axis=2)
    f, y = _posterior(P, prior), np.arange(5.0)
    action = np.array([1.3, 2.9])
    loss = (y[None] - action[:, None]) ** 2
    of_states = np.einsum("x,hxy,xy->h", p_x, P, loss)
    predictive = np.einsum("h,hxy->xy", f, P)
    direct = float(np.einsum("x,xy,xy", p_x, predictive, loss))
    mean = predictive @ y

    def square(a: np.ndarray) -> float:
        return float(np.einsum("x,xy,xy", p_x, predictive, (y[None] - a[:, None]) ** 2))

    excess = square(action) - square(mean)
    K, rows = np.array([[2.0, 0.6], [0.6, 1.0]]), np.random.default_rng(6).normal(size=(50, 2))
    slope = float(np.max(np.abs(np.mean((rows - rows.mean(axis=0)) @ K, axis=0))))
    law: Any = stats.gamma(2.3)
    a = 3.1
    m = float(law.median())
    risk = [float(law.expect(lambda y, at=at: abs(y - at))) for at in (a, m)]
    part = 2 * float(np.asarray(integrate.quad(lambda y: (a - y) * law.pdf(y), m, a)[0]))
    return [
        Claim("equation (43)", "the risk of a state of knowledge is the mean of the risks of the states of Nature", "r(a, f) = ⟨r(a, h)⟩", f"{f @ of_states:.10f} and {direct:.10f}", "squared loss, three rows, four states", near(float(f @ of_states), direct, within=ROUNDING)),
        Claim("equation (55)", "squared loss exceeds its least value by ∫ p(x) (a - ⟨y⟩)²", "equal", f"{excess:.10f} and {float(p_x @ (action - mean) ** 2):.10f}", "the same", near(excess, float(p_x @ (action - mean) ** 2), within=ROUNDING)),
        Claim("equation (56)", "under a general quadratic loss the mean is best, whatever K", "mean", f"slope of the risk there at most {slope:.0e}", "fifty random vectors of two components", below(slope, ROUNDING, what="slope")),
        Claim("equation (59)", "absolute loss exceeds that of a median by 2 ∫_m^a (a - y) p(y)", "equal", f"{risk[0] - risk[1]:.8f} and {part:.8f}", "a gamma density by quadrature", near(risk[0] - risk[1], part, within=1e-6)),
    ]  # fmt: skip


def _approximation_claims() -> list[Claim]:
    """Section 2.3."""
    off, best = [], 0.4 - special.lambertw(0.2 * np.exp(0.4)).real  # where (h - 0.4)²/2 + e^h/5 is least
    for beta in (200.0, 2000.0):
        h = best + np.linspace(-9, 9, 2001) / np.sqrt(beta)
        energy = beta * (0.5 * (h - 0.4) ** 2 + 0.2 * np.exp(h))
        w = np.exp(-(energy - energy.min()))
        off.append(abs(float(w @ special.expit(h) / w.sum()) - float(special.expit(best))))
    P = np.array([[0.8, 0.1, 0.1], [0.1, 0.5, 0.4], [0.1, 0.4, 0.5]])
    posterior = np.array([0.4, 0.3, 0.3])
    f = posterior @ P
    risks = -np.log(P) @ f
    least, mode = int(np.argmin(risks)), int(np.argmax(posterior))
    distance = special.rel_entr(f[None], P).sum(axis=1)
    return [
        Claim("equations (71), (72)", "p(y|x, h*) is the first term of an expansion in 1/β", "error of order 1/β", f"off by {off[0]:.2e} at β = 200 and {off[1]:.2e} at 2000: a factor {off[0] / off[1]:.2f}", "one hidden number h with a skewed posterior and p(y = 1|h) = 1/(1 + e^-h), by quadrature", near(off[0] / off[1], 10.0, within=0.5, what="ratio of the errors")),
        Claim("section 2.3, before (78)", "h* of most posterior probability is the best decision under log-loss among a ∈ H", "a* = h*", f"the state closest to the predictive density: risk {risks[least]:.4f} against {risks[mode]:.4f} of h*",
              "three states with posterior 0.4, 0.3, 0.3, of which the last two are alike; (78) holds for known h, (79) among all densities (erratum F78)",
              below(risks[mode] - risks[least], 0.0, what="risk of h* above the least"), near(float(np.argmin(distance)), least, within=0, what="the closest state") & above(risks[mode] - risks[least], 0.01, what="risk of h* above the least")),
    ]  # fmt: skip


def _prior_claims() -> list[Claim]:
    """Sections 2.4 and 2.5."""
    K, t = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.7, -1.1])
    grid = np.linspace(-9, 9, 361)
    both = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    sums = [
        float(np.sum(np.exp(-0.5 * np.einsum("...i,ij,...j", both - c, K, both - c))) * (grid[1] - grid[0]) ** 2)
        for c in (np.zeros(2), t)
    ]
    axis = Axis(0, 4, points=9)
    line = Grid(given=[axis])
    rng = np.random.default_rng(7)
    x, prior = rng.choice(axis.coordinates, 12), Gaussian(0.4 * Laplacian(line) + Mass(line, 0.3))
    y = np.sin(x) + 0.3 * rng.normal(size=12)
    risk = RiskData(points=x, targets=y, loss=lambda y, h: (y - h) ** 2 / (2 * 0.09))
    ours = solve(Problem(risk, Direct(line), prior)).field
    bayes = regress(Problem(GaussianData(x, y, 0.09), Direct(line), prior)).field
    return [
        Claim("equations (95), (96)", "likelihood and posterior form of a Gaussian prior coincide: its normalisation does not depend on its mean", "equal", f"{sums[0]:.10f} and {sums[1]:.10f}", "sums over a plane", near(sums[1], sums[0], within=1e-9)),
        Claim("section 2.5, equation (105)", "a posterior is an empirical risk with regularisation", "technically the same", f"solutions agree within {np.max(np.abs(ours - bayes)):.0e}", "squared loss without a likelihood, and exact Gaussian regression", below(np.max(np.abs(ours - bayes)), 1e-8, what="largest difference")),
    ]  # fmt: skip


def misprints() -> list[Misprint]:
    """Of sections 2.1 to 2.3."""
    E, prior, _ = _states()
    P = special.softmax(-BETA * E, axis=2)
    f = _posterior(P, prior)
    a, b = 0.3, 0.6
    Z = np.exp(-BETA * E).sum(axis=2)
    up = np.exp(-BETA * sum(E[:, x, y] for x, y in DATA)) * prior
    down = np.prod([Z[:, x] for x, _ in DATA], axis=0)
    printed, ours = (up / down) * np.sum(down / up), (up / down) / np.sum(up / down)
    y, action = np.arange(5.0), 1.3
    p = np.einsum("h,hy->y", f, P[:, 0])
    mean = p @ y
    whole = (y - action) ** 2
    first, second = (y - mean) ** 2, (action - mean) ** 2
    Q = special.softmax(np.random.default_rng(8).normal(size=5))
    extra = np.random.default_rng(9).normal(size=5)
    direct = float(P[0, 0] @ (-np.log(Q) + extra))
    signs = {s: float(-P[0, 0] @ (np.log(Q) + s * extra)) for s in (1, -1)}
    return [
        Misprint("F3", "before equation (3)", "log-probability of A AND B", "L(A) L(B)", "L(A) + L(B)", "the logarithm of p(A) p(B) = 0.18", abs(np.log(a) * np.log(b) - np.log(a * b)), abs(np.log(a) + np.log(b) - np.log(a * b))),
        Misprint("F18", "equation (18)", "posterior by energies", "times ∫dh Z Z/exp(..)", "divided by ∫dh exp(..)/(Z Z)", "Bayes' theorem for four states and three rows", float(np.max(np.abs(printed - f))), float(np.max(np.abs(ours - f)))),
        Misprint("F54", "equation (54)", "the last term of a square", "-2 (y - ⟨y⟩)(a - ⟨y⟩)²", "-2 (y - ⟨y⟩)(a - ⟨y⟩)", "(y - a)² at five values", float(np.max(np.abs(first + second - 2 * (y - mean) * second - whole))), float(np.max(np.abs(first + second - 2 * (y - mean) * (action - mean) - whole)))),
        Misprint("F83", "equation (83)", "risk of the log-loss (46)", "-(b₁ ln p + b₂)", "-b₁ ln p + b₂", "the mean of (46) over five values; no action feels the difference", abs(signs[1] - direct), abs(signs[-1] - direct)),
    ]  # fmt: skip
