r"""What sections 3.7 and 3.8 of the paper say of regression and classes, each decided by another computation.

Declared problems are solved; closed forms of the paper are written out in matrices of nine points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate, linalg, special, stats

from quenched.core.claims import Claim, below, near
from quenched.core.figures import Figure
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.model.components import ClassData, Components, VectorData
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.noise import InsensitiveNoise, MixtureNoise
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Difference, Laplacian, Mass
from quenched.papers.lemm1999.gaussian import ROUNDING, SOLVED, gap
from quenched.papers.lemm1999.misprint import Misprint


def regression_claims(five: Figure) -> list[Claim]:
    """Statements of sections 3.7 and 3.8."""
    return [*_regression_claims(), *_predictive_claims(), *_robust_claims(five), *_class_claims()]


def _line() -> tuple[Grid, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A line of nine points, the matrix of a proper prior and its template, and five values at four of the points."""
    axis = Axis(0, 8, points=9)
    grid = Grid(given=[axis])
    K = np.asarray((0.5 * Laplacian(grid) + Mass(grid, 0.2)).matrix)
    return grid, K, 0.1 * axis.coordinates, np.array([1, 3, 3, 5, 7]), np.array([1.0, -0.5, 0.7, 1.3, 2.0])


def _regression_claims() -> list[Claim]:
    """Section 3.7.1."""
    grid, K0, t0, x, y = _line()
    prior = Gaussian(0.5 * Laplacian(grid) + Mass(grid, 0.2), mean=t0)
    h = solve(Problem(GaussianData(x, y), Direct(grid), prior)).field
    n = np.bincount(x, minlength=9).astype(float)
    K_D, t_D = np.diag(n), np.divide(np.bincount(x, y, 9), n, out=np.zeros(9), where=n > 0)
    on, C = np.flatnonzero(n), np.linalg.inv(K0)
    data_space = t0 + C[:, on] @ np.linalg.solve(np.diag(1 / n[on]) + C[np.ix_(on, on)], (t_D - t0)[on])
    a = K_D @ (t_D - h)
    pull, push = (np.eye(9) + K_D @ C) @ a, K_D @ (t_D - t0)
    inner = C[:, on] @ np.linalg.solve(np.eye(len(on)) + np.diag(n[on]) @ C[np.ix_(on, on)], np.diag(n)[on])
    kernel = gap(np.linalg.inv(K0 + K_D) @ K_D, inner)
    D = Difference(grid, grid.given[0], 2)
    flat = solve(Problem(GaussianData(x, y), Direct(grid), Gaussian(D, mean=t0))).field
    M = np.asarray(D.matrix)
    pseudo, null = np.linalg.pinv(M, rcond=1e-10), linalg.null_space(M, rcond=1e-10)
    b = K_D @ (t_D - flat)
    solvable = float(np.max(np.abs(null.T @ (M @ t0 + b))))
    c = null.T @ flat
    form = gap(flat, pseudo @ (M @ t0 + b) + null @ c)
    pair = Grid(given=[Axis(0, 1, points=2), Components(2)])
    precision = np.array([[2.0, 0.7], [0.7, 1.0]])
    both = Problem(VectorData(points=[0.0], targets=[[0.3, -0.2]], precision=precision), Direct(pair), Gaussian(Mass(pair)))  # fmt: skip
    field = np.random.default_rng(6).normal(size=(2, 2))
    seen = float(both.expand_data(field)[0])
    law: Any = stats.multivariate_normal(field[0], np.linalg.inv(precision).tolist())
    normal = -float(law.logpdf([0.3, -0.2]))
    return [
        Claim("equation (260)", "the solution is h = t = K⁻¹ Σ K_i t_i", "unique", f"within {gap(h, np.linalg.solve(K0 + K_D, K0 @ t0 + K_D @ t_D)):.0e}", "the minimum of a declared regression with a repeated x", below(gap(h, np.linalg.solve(K0 + K_D, K0 @ t0 + K_D @ t_D)), SOLVED, what="difference")),
        Claim("equation (274)", "it can be found in the space of the data", "h = t₀ + K₀⁻¹(K_D⁻¹ + K₀⁻¹_DD)⁻¹(t_D - t₀)", f"within {gap(h, data_space):.0e}", f"a {len(on)} x {len(on)} matrix for nine points", below(gap(h, data_space), SOLVED, what="difference")),
        Claim("equations (264) to (273)", "a = K_D(t_D - h) solves (I + K_D K₀⁻¹) a = K_D(t_D - t₀)", "equal", f"within {gap(pull, push):.0e}", "the same", below(gap(pull, push), SOLVED, what="difference")),
        Claim("equations (275), (276)", "the equivalent kernel K⁻¹K_D needs an inverse in the space of the data only", "equal", f"within {kernel:.0e}", "the same", below(kernel, ROUNDING, what="difference")),
        Claim("equations (287) to (295)", "for a singular K₀: h = K₀^#(K₀t₀ + a) + Σ c_l ψ_l, and I₀(K₀t₀ + a) = 0", "with two free directions", f"within {form:.0e}; solvability {solvable:.0e}", "second differences, whose null space are straight lines", below(form, SOLVED, what="difference") & below(solvable, SOLVED, what="solvability")),
        Claim("equation (277)", "vectors with correlated components have a multivariate normal density", "normalised", f"{seen:.10f} and {normal:.10f}", "minus the logarithm of the declared likelihood, and of the normal density", near(seen, normal, within=ROUNDING)),
    ]  # fmt: skip


def _predictive_claims() -> list[Claim]:
    """Section 3.7.2."""
    grid, K0, t0, x, y = _line()
    noise, new = 0.3, 4
    prior = Gaussian(0.5 * Laplacian(grid) + Mass(grid, 0.2), mean=t0)
    exact = regress(Problem(GaussianData(x, y, noise), Direct(grid), prior))
    C, n = np.linalg.inv(K0), np.bincount(x, minlength=9)
    S = np.eye(9)[x]
    joint = S @ C @ S.T + noise * np.eye(5)  # of the data, without the field
    gain = C[new] @ S.T @ np.linalg.inv(joint)
    mean, variance = t0[new] + gain @ (y - t0[x]), C[new, new] - gain @ S @ C[:, new] + noise
    on, K_D = np.flatnonzero(n), np.diag(n / noise)
    K = K0 + K_D
    whole = C - C[:, on] @ np.linalg.solve(np.diag(noise / n[on]) + C[np.ix_(on, on)], C[on])
    K_x = np.zeros((9, 9))
    K_x[new, new] = 1 / noise
    K_y = K_x - K_x @ np.linalg.inv(K + K_x) @ K_x
    other = K_x @ np.linalg.inv(K + K_x) @ K, K - K @ np.linalg.inv(K + K_x) @ K
    narrow = 1 / K_y[new, new]
    return [
        Claim("equations (310), (313)", "K_y = K_x - K_x K₊⁻¹ K_x = K_x K₊⁻¹ K = K - K K₊⁻¹ K, and K_y⁻¹ = K_x⁻¹ + I_x K⁻¹ I_x", "equal", f"within {max(gap(K_y, one) for one in other):.0e}; variance {narrow:.8f} against {variance:.8f}", "matrices of nine points; the variance from the joint normal density of the data", below(max(gap(K_y, one) for one in other), ROUNDING, what="difference") & near(narrow, variance, within=ROUNDING)),
        Claim("equation (316)", "the posterior covariance by the prior's: an inverse in the space of the data", "K⁻¹", f"within {gap(whole, np.linalg.inv(K)):.0e}; within {gap(exact.covariance, np.linalg.inv(K)):.0e} of the declared regression", "the same", below(gap(whole, np.linalg.inv(K)), ROUNDING, what="difference") & below(gap(exact.covariance, np.linalg.inv(K)), ROUNDING, what="regression")),
        Claim("equation (319)", "exact prediction and maximum posterior have the same mean", "equal", f"{exact.field[new]:.10f} and {mean:.10f}", "field of least energy, and conditional mean of a normal density", near(exact.field[new], mean, within=ROUNDING)),
        Claim("after equation (319)", "the variances differ by I_x K⁻¹ I_x", "differ", f"{variance - noise:.10f} and {np.linalg.inv(K)[new, new]:.10f}", "conditional variance less that of the noise", near(variance - noise, np.linalg.inv(K)[new, new], within=ROUNDING)),
    ]  # fmt: skip


def _robust_claims(figure: Figure) -> list[Claim]:
    """Section 3.7.4 and figure 5."""
    r = np.array([-0.01, 0.0, 0.01])
    two, wide, single = MixtureNoise([-1.0, 1.0], 1.0), MixtureNoise([0.0, 0.0], [0.2, 5.0]), MixtureNoise([0.0], 1.0)
    bend = {name: float(np.diff(np.asarray(noise.energy(r)), 2)[0] / 1e-4) for name, noise in (("two", two), ("one", single))}  # fmt: skip
    flat, far = ", ".join(f"{one.attrs['flat']:.2f}" for one in figure.data.values()), np.array([4.0, 5.0])
    slope = {
        name: float(np.diff(np.asarray(noise.energy(far)))[0]) for name, noise in (("wide", wide), ("one", single))
    }
    sharp = InsensitiveNoise(1.0, epsilon=1.5)
    at = np.asarray(sharp.energy(np.array([0.0, 1.2, 2.5, 3.5, 4.5])))
    axis = Axis(0, 4, points=9)
    grid = Grid(given=[axis])
    K = np.asarray((Laplacian(grid) + Mass(grid, 0.3)).matrix)
    values, vectors = np.linalg.eigh(K)
    h = np.random.default_rng(8).normal(size=9)
    modes = vectors.T @ h
    return [
        Claim("figure 5", "mixtures of Gaussians with different means have flat regions", "insensitive", f"curvature at 0: {bend['two']:.4f} of two Gaussians a deviation away, {bend['one']:.4f} of one; error below 0.1 over {flat}", "second differences", below(abs(bend["two"]), 0.01, what="curvature") & near(bend["one"], 1.0, within=0.01)),
        Claim("section 3.7.4", "added Gaussians are flat compared with one for large errors", "flat", f"rise from 4 to 5: {slope['wide']:.2f} of two of variance 0.2 and 5, {slope['one']:.2f} of one of variance 1", "energies", below(slope["wide"], slope["one"] / 2, what="rise")),
        Claim("figure 5", "the ε-insensitive error is zero below ε and linear beyond", "zero, linear", f"{at[1] - at[0]:.0e} up to 0.8 ε; rises by {at[3] - at[2]:.6f} and {at[4] - at[3]:.6f}", "ε = 1.5", below(abs(at[1] - at[0]), 0.02, what="below ε") & near(at[4] - at[3], at[3] - at[2], within=0.02)),
        Claim("equation (323)", "in eigenfunctions of K₀ the prior is a sum of squares", "Σ λ_k n_k²", f"{float(values @ modes**2):.10f} and {float(h @ K @ h):.10f}", "nine points", near(float(values @ modes**2), float(h @ K @ h), within=ROUNDING)),
    ]  # fmt: skip


def _class_problem() -> tuple[Problem, np.ndarray, np.ndarray]:
    """Three classes along a line, and where their rows are."""
    axis = Axis(0, 8, points=9)
    grid = Grid(given=[axis], over=[Components(3)])
    x, k = np.array([1, 1, 3, 3, 5, 6, 6, 6]), np.array([0, 1, 0, 0, 1, 2, 2, 1])
    K = 0.6 * Laplacian(grid, axis) + Mass(grid, 0.3)
    return Problem(ClassData(points=x, labels=k), Logits(grid), Gaussian(K)), x, k


def _class_claims() -> list[Claim]:
    """Section 3.8."""
    problem, x, k = _class_problem()
    fit = solve(problem)
    g, grid = fit.field, problem.grid
    P = special.softmax(g, axis=1)
    pulled = (np.asarray(problem.operator.matrix) @ g.ravel()).reshape(g.shape) * grid.cell
    empty = np.setdiff1d(np.arange(9), x)
    N = np.zeros(g.shape)
    np.add.at(N, (x, k), 1.0)
    residual = gap(pulled, N - N.sum(axis=1, keepdims=True) * P)
    p = P[5]
    risks = 1 - p
    energy = float(-np.sum(np.log(P[x, k])))
    return [
        Claim("equation (327)", "under zero-one loss the most probable class is the best decision", "argmax", f"risks {np.round(risks, 4).tolist()} of the classes at x = 5, whose probabilities are {np.round(p, 4).tolist()}", "three classes of a declared problem", near(float(np.argmin(risks)), float(np.argmax(p)), within=0, what="best class")),
        Claim("section 3.8, equation (153)", "with g the solution is found in the space of the x of the data: K g = N - P N_X", "no multiplier", f"residual {residual:.0e}; K g at most {np.max(np.abs(pulled[empty])):.0e} where there are no rows", "the same", below(residual, SOLVED, what="residual") & below(np.max(np.abs(pulled[empty])), SOLVED, what="K g without rows")),
        Claim("after equation (327)", "P_k = e^{g_k}/Σ e^{g_l} is normalised for any g, and its energy is that of classes", "-Σ ln P", f"{energy:.10f} and {float(problem.expand_data(g)[0]):.10f}; sums within {gap(fit.density.sum(axis=1), 1):.0e} of 1", "the same", near(energy, float(problem.expand_data(g)[0]), within=ROUNDING) & below(gap(fit.density.sum(axis=1), 1), ROUNDING, what="sums")),
    ]  # fmt: skip


def misprints() -> list[Misprint]:
    """Of sections 3.7 and 3.8."""
    axis = Axis(0, 4, points=9)
    grid, rng = Grid(given=[axis]), np.random.default_rng(9)
    K0, y = np.asarray((Laplacian(grid) + Mass(grid, 0.3)).matrix), rng.normal(size=4)
    h, x = rng.normal(size=9), np.array([0, 2, 5, 8])
    values, vectors = np.linalg.eigh(K0)
    energy = 0.5 * float(np.sum((h[x] - y) ** 2)) + 0.5 * float(h @ K0 @ h)
    expanded = float(np.sum((h[x] - y) ** 2) + values @ (vectors.T @ h) ** 2)
    beta, p, means = 1.7, np.array([0.2, 0.3, 0.5]), np.array([-1.0, 0.4, 2.0])
    sums = integrate.quad(lambda v: float(p @ np.exp(-beta / 2 * (v - means) ** 2)), -30, 30, limit=200)[0]
    problem, rows, k = _class_problem()
    g = rng.normal(size=problem.grid.shape)
    L = g - np.asarray(special.logsumexp(g, axis=1, keepdims=True))
    declared, classes = float(problem.expand_data(g)[0]), float(np.sum(L[rows, k]))
    probability = special.softmax(g[5])
    mode = int(np.argmax(probability))
    _, K9, _, at, _ = _line()
    C, noise, new = np.linalg.inv(K9), 0.3, 4
    S = np.eye(9)[at]
    inner = C[new] @ S.T @ np.linalg.solve(S @ C @ S.T + noise * np.eye(5), S @ C[:, new])
    sure = np.linalg.inv(K9 + S.T @ S / noise)[new, new] + noise
    return [
        Misprint("F318", "equation (318)", "predictive variance", "K_x + K₀⁻¹_xx - ...", "K_x⁻¹ + K₀⁻¹_xx - ...", "the inverse of the posterior precision, noise variance 0.3", abs(1 / noise + C[new, new] - inner - sure), abs(noise + C[new, new] - inner - sure)),
        Misprint("F321", "equations (321), (322)", "normalisation of a mixture of m Gaussians", "Σ p(k) (β/2π)^{m/2}", "Σ p(k) (2π/β)^{1/2}", "quadrature of three Gaussians", abs((beta / (2 * np.pi)) ** 1.5 - sums), abs((2 * np.pi / beta) ** 0.5 - sums)),
        Misprint("F324", "equation (324)", "the energy (246) in eigenfunctions", "no factor", "½ of both terms", "both energies of one function", abs(expanded - energy), abs(0.5 * expanded - energy)),
        Misprint("F325", "equation (325)", "the data's part of the energy of classes", "+Σ ln P", "-Σ ln P", "the declared likelihood", abs(classes - declared), abs(-classes - declared)),
        Misprint("F326", "before equation (327)", "zero-one loss", "δ_{k,a}", "1 - δ_{k,a}", "probability of being wrong with the decision of least risk, above the least", float(probability[mode] - probability.min()), float(probability[mode] - probability[int(np.argmin(1 - probability))])),
        Misprint("F327", "after equation (327)", "shifted log-likelihoods", "g_k = L_k + ln Σ e^{L_l}", "L_k = g_k - ln Σ e^{g_l}", "random g: what (146) makes of them, and back", gap(L + np.asarray(special.logsumexp(L, axis=1, keepdims=True)), g), gap(np.exp(g) / np.exp(g).sum(axis=1, keepdims=True), np.exp(L))),
    ]  # fmt: skip
