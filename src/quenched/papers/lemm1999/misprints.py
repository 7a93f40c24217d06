r"""Equations of the paper that cannot stand as printed, each decided by a number.

Every misprint is evaluated as it is printed and as it should read, and both are compared with a direct computation: a
derivative, an integral, a determinant or a minimum that uses neither of them. What is returned is how far both are off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import integrate, optimize, special

from quenched.fields.learner.starts import empirical
from quenched.fields.model.grid import Periodic
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import Density, LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Mass
from quenched.papers.lemm1999 import framework, gaussian, hyperparameters, potentials, regression, temperatures
from quenched.papers.lemm1999.examples import TWO, densities, normalised, roughness
from quenched.papers.lemm1999.misprint import LATTICE, Misprint
from quenched.papers.lemm1999.stationarity import over


def misprints() -> tuple[Misprint, ...]:
    """All of them."""
    chapters = (framework, gaussian, regression, potentials, hyperparameters, temperatures)
    others = [misprint for chapter in chapters for misprint in chapter.misprints()]
    ours = (*_of_entropies(), *_of_decisions(), *_of_energies(), *_of_regression(), *_of_propagators(), *_of_kernels())
    return (*others, *ours)


def _of_entropies() -> list[Misprint]:
    """Section 2.1.5."""
    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.3, 0.2])
    pq = np.outer(p, q).ravel()

    def H(p: np.ndarray) -> float:
        return float(-np.sum(p * np.log(p)))

    def as_printed(p: np.ndarray) -> float:
        return float(-np.log(np.abs(np.sum(p * np.log(p)))))  # of the size of the sum, which is negative

    y = np.linspace(-9, 9, 361)
    h = y[1] - y[0]
    bells = [np.exp(-((y - m) ** 2) / 2) / np.sqrt(2 * np.pi) for m in (1, -1)]
    joint = 0.5 * np.outer(bells[0], bells[0]) + 0.5 * np.outer(bells[1], bells[1])
    one = joint.sum(axis=1) * h
    distance = np.sum(joint * np.log(joint / np.outer(one, one))) * h**2
    alone, both = -np.sum(one * np.log(one)) * h, -np.sum(joint * np.log(joint)) * h**2
    return [
        Misprint("F29", "equation (29)", "entropy", "H = -ln Σ p ln p", "H = -Σ p ln p", "entropies of independent variables add up",
                 abs(as_printed(pq) - as_printed(p) - as_printed(q)), abs(H(pq) - H(p) - H(q))),
        Misprint("F33", "equation (33)", "mutual information of several variables", "∫dy_i H(Y_i) - H(Y)", f"Σ_i H(Y_i) - H(Y), which is {2 * alone - both:.8f} for p = (0.5, 0, 0, 0.5) and σ = 1",
                 "distance from independence, eq. (32), for two of four states with means ±1; the printed integral from -9 to 9",
                 abs(18 * alone - both - distance), abs(2 * alone - both - distance)),
    ]  # fmt: skip


def _of_decisions() -> list[Misprint]:
    """Section 2.2, and the step function of section 2.3."""
    P = normalised(densities()["truth"])
    Q = normalised(densities()["template 1"])
    distance = float(np.mean(np.sum(special.rel_entr(P, Q), axis=1)))
    risk = {name: float(np.mean(np.sum(P * (b - np.log(Q)), axis=1))) for name, b in (("p", P), ("ln p", np.log(P)))}
    mode = np.argmax(P, axis=1)
    eta, xi, cut = np.linspace(-60, 60, 1201), np.linspace(0.0, 10.0, 1001), 0.1
    waves = np.exp(-((cut * eta) ** 2) / 2) * (eta[1] - eta[0])
    steps = [
        np.sum(waves * np.cos(np.outer(xi, eta) - x * eta), axis=1) @ np.full(len(xi), xi[1] - xi[0])
        for x in (3.0, -3.0)
    ]
    off = [max(abs(steps[0] / factor - 1), abs(steps[1] / factor)) for factor in (1.0, 2 * np.pi)]
    return [
        Misprint("F48", "before equation (48)", "log-loss is the Kullback-Leibler distance for b₂ = p(y|x, f)", "b₂ = p", "b₂ = ln p", "the distance of the first template of figure 18 from the truth",
                 abs(risk["p"] - distance), abs(risk["ln p"] - distance)),
        Misprint("F63", "equation (63)", "risk of the δ-loss", "+∫ b₁ p(x) p(a|x, f)", "minus that", "share of the x at which the mode has not the least risk, true density of figure 18",
                 float(np.mean(np.argmin(P, axis=1) != mode)), float(np.mean(np.argmin(-P, axis=1) != mode))),
        Misprint("F99", "equation (99)", "step function as a double integral", "no factor", "a factor 1/2π", "the integral with a Gaussian cut-off, 3 above and 3 below the step",
                 off[0], off[1]),
    ]  # fmt: skip


def _of_energies() -> list[Misprint]:
    """Chapter 3: energies, and the iteration of a density."""
    K = roughness(Periodic(), lambda_2=1.0)
    grid, N = K.grid, K.grid.counts(TWO)
    P = normalised(np.asarray((K + Mass(grid)).solve(empirical(grid, N))))
    L, matrix = np.log(P).ravel(), np.asarray(K.matrix)
    slopes = [_slope(lambda L, half=half: float(half * L @ matrix @ L), L) for half in (0.25, 0.5)]
    whole = float(_along(L) @ matrix @ L)
    push = (matrix @ P.ravel()).reshape(P.shape)
    down = -Problem(DensityData(TWO), Density(grid), Gaussian(K)).gradient(P)
    sign = {s: float(np.max(np.abs(N / P - over(grid, N) + s * over(grid, P * push) - push - down))) for s in (-1, 1)}
    lam, square = 0.3, float(P.ravel() @ P.ravel())
    rng = np.random.default_rng(0)
    parts = [(B @ B.T, rng.normal(size=4)) for B in rng.normal(size=(3, 4, 4))]
    total, pull = sum(k for k, _ in parts), sum(k @ t for k, t in parts)
    t = np.linalg.solve(total, pull)
    least = optimize.minimize(lambda h: 0.5 * sum((h - t) @ k @ (h - t) for k, t in parts), np.zeros(4), tol=1e-12).fun
    squares = sum(t @ k @ t for k, t in parts)
    return [
        Misprint("F106", "equations (106), (109)", "the prior's part of the stationarity equation (127) is K L", "1/2 in the scalar product and again in the energy", "1/2 once, in the energy", "central differences of the energy",
                 abs(slopes[0] / whole - 1), abs(slopes[1] / whole - 1)),
        Misprint("F164", "before equation (164)", "λ/2 (P, P) is (163) with K = λ/2 I", "λ/2 I", "λ I", "both energies of one density", abs(0.5 * lam / 2 * square / (lam / 2 * square) - 1), abs(0.5 * lam * square / (lam / 2 * square) - 1)),
        Misprint("F170", "equations (170), (620), (705)", "iteration of a density", "- I_X P K P", "+ I_X P K P", "derivative of the energy at the start of figure 15; eq. (706) has it right", sign[-1], sign[1]),
        Misprint("F252", "equations (252), (253)", "least error of a sum of squares", "½ [Σ (t_i, K_i t_i) + (t, K t)]", "½ [Σ (t_i, K_i t_i) - (t, K t)]", "numerical minimum of three random quadratic forms",
                 abs(0.5 * (squares + t @ total @ t) - least), abs(0.5 * (squares - t @ total @ t) - least)),
    ]  # fmt: skip


def _along(L: np.ndarray) -> np.ndarray:
    """A direction."""
    return np.random.default_rng(1).normal(size=L.shape)


def _slope(energy: Callable[[np.ndarray], float], L: np.ndarray, step: float = 1e-4) -> float:
    """The derivative along a direction, by central differences."""
    return (energy(L + step * _along(L)) - energy(L - step * _along(L))) / (2 * step)


def _of_regression() -> list[Misprint]:
    """Section 3.7."""
    rng = np.random.default_rng(2)
    B = rng.normal(size=(5, 5))
    K0, t0, y = B @ B.T + np.eye(5), rng.normal(size=5), rng.normal(size=5)
    h = optimize.minimize(
        lambda h: 0.5 * (h - t0) @ K0 @ (h - t0) + np.sum(np.log(np.cosh(h - y))),
        t0,
        tol=1e-14,
        options={"gtol": 1e-10},
    ).x
    a, slope = K0 @ (h - t0), np.tanh(h - y)
    ours, printed, direct = _predictive(K0, t0, y)
    K, Kx = K0 + np.diag([1.0, 1, 0, 2, 0]), np.diag([0.0, 0, 3, 0, 0])
    det = np.linalg.det(np.linalg.solve(K, K + Kx))
    ratio = np.linalg.solve(K, Kx)
    least = float(np.linalg.eigvalsh(K0 - 2 * np.eye(5) * np.linalg.eigvalsh(K0)[0])[0])
    return [
        Misprint("F296", "equation (296)", "the pull a of general data terms", "a = g'(h)", "a = -g'(h), with h = K₀^# (K₀ t₀ + a) + h⁰", "K₀ (h - t₀) at the numerical minimum for g = ln cosh",
                 float(np.max(np.abs(a - slope))), float(np.max(np.abs(a + slope)))),
        Misprint("F301", "equations (301), (306)", "exact predictive density", "+n/2 V₊ above and below in (301), -n/2 V₊ in both places of (306)", "-n/2 V₊ above, -n/2 V below", "the conditional normal density of one new value after three",
                 abs(printed - direct), abs(ours - direct)),
        Misprint("F308", "equation (308)", "det K⁻¹K₊", "det(I - K⁻¹K_x)", "det(I + K⁻¹K_x)", "determinants of random matrices",
                 abs(np.linalg.det(np.eye(5) - ratio) - det), abs(np.linalg.det(np.eye(5) + ratio) - det)),
        Misprint("F632", "after equation (632)", "a mass makes A₀ positive definite", "if m² is larger than the smallest eigenvalue", "if it is larger than minus that", f"least eigenvalue of A₀ + m² below zero, where A₀ has {least:.3f}: m² larger by 0.1 than either",
                 max(0.0, -(least + max(least + 0.1, 0.0))), max(0.0, -(least - least + 0.1))),
    ]  # fmt: skip


def _predictive(K0: np.ndarray, t0: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """The log-density of a value at the third point after three others: by (306), as printed, and directly."""
    seen, new, weights = [0, 1, 3], 2, np.array([1.0, 1.0, 2.0, 3.0])
    operators, means = [K0], [t0]
    for i, w in zip([*seen, new], weights, strict=True):
        operators.append(w * np.outer(np.eye(5)[i], np.eye(5)[i]))
        means.append(y[i] * np.eye(5)[i])

    def parts(count: int) -> tuple[float, float]:
        K = sum(operators[:count])
        t = np.linalg.solve(K, sum(k @ m for k, m in zip(operators[:count], means[:count], strict=True)))
        nV = sum(m @ k @ m for k, m in zip(operators[:count], means[:count], strict=True)) - t @ K @ t
        logs = np.linalg.slogdet(K0 / (2 * np.pi))[1] + np.sum(np.log(weights[: count - 1] / (2 * np.pi)))
        return float(nV), 0.5 * (logs - np.linalg.slogdet(K / (2 * np.pi))[1])

    (above, rest), (under, less) = parts(5), parts(4)
    C = np.linalg.inv(K0)
    S = C[np.ix_(seen, seen)] + np.diag(1 / weights[:3])
    gain = C[new, seen] @ np.linalg.inv(S)
    mean, variance = t0[new] + gain @ (y[seen] - t0[seen]), C[new, new] - gain @ C[seen, new] + 1 / weights[3]
    direct = -0.5 * (np.log(2 * np.pi * variance) + (y[new] - mean) ** 2 / variance)
    return -0.5 * (above - under) + rest - less, rest - less, float(direct)


def _of_propagators() -> list[Misprint]:
    """Section 7.2.3."""
    plane, space = _propagator(512, 2, 0.06), _propagator(80, 3, 0.15)
    steps = {2: 16, 3: 7}
    a2, a3 = 0.06 * steps[2], 0.15 * steps[3]
    at2, at3 = plane[steps[2], steps[2]], space[steps[3], steps[3], steps[3]]
    near2, far2 = (special.k0(r) / (2 * np.pi) for r in (np.sqrt(2) * a2, 2 * a2))
    near3, far3 = (np.exp(-r) / (4 * np.pi * r) for r in (np.sqrt(3) * a3, (np.sqrt(2) + 1) * a3))
    beta, gamma, nu = 0.7, 1.3, 0.5
    bessel = special.kv(nu, 2 * np.sqrt(beta * gamma))
    s = np.linspace(np.log(0.02), np.log(60), 4001)  # t = exp(s)
    both = [
        0.5
        * (gamma / beta) ** (nu / 2)
        * np.sum(np.exp(nu * s + sign * beta * np.exp(-s) - gamma * np.exp(s)))
        * (s[1] - s[0])
        for sign in (1, -1)
    ]
    lattice, mu = _propagator(64, 2, 1.0), 2 + 0.5
    walks = [
        0.5 * integrate.quad(lambda t, f=f: f(t), 0, 80, limit=400)[0]
        for f in (
            lambda t: np.exp(-mu * t) * special.k0(t) ** 2,
            lambda t: np.exp((2 - mu) * t) * special.ive(0, t) ** 2,
        )
    ]
    return [
        Misprint("F635", "equation (635)", "propagator of a massive field", "of |x - x'| + |y - y'|", "of the Euclidean distance", "lattice of 512 x 512 points, on the diagonal", abs(far2 / at2 - 1), abs(near2 / at2 - 1), LATTICE),
        Misprint("F636", "equation (636)", "integral representation of K_ν", "exp(β/t - γt)", "exp(-β/t - γt)", "quadrature from t = 0.02 on, and the Bessel function", abs(both[0] / bessel - 1), abs(both[1] / bessel - 1)),
        Misprint("F637", "equation (637)", "propagator in three dimensions", "of |x - x'| + |y - y'|", "of the Euclidean distance", "lattice of 80³ points, on the diagonal", abs(far3 / at3 - 1), abs(near3 / at3 - 1), LATTICE),
        Misprint("F644", "equation (644)", "lattice propagator by modified Bessel functions", "K_ν", "I_ν, and dt", "the inverse of the lattice operator by Fourier sum, at the origin", abs(walks[0] / lattice[0, 0] - 1), abs(walks[1] / lattice[0, 0] - 1)),
    ]  # fmt: skip


def _propagator(points: int, d: int, a: float) -> np.ndarray:
    """The inverse of minus the lattice Laplacian plus one, per volume, on a periodic lattice. [lemm1999, eq. (641)]"""
    one = 2 * (1 - np.cos(2 * np.pi * np.arange(points) / points)) / a**2
    total = sum(one.reshape([-1 if i == k else 1 for i in range(d)]) for k in range(d)) + 1
    return np.fft.ifftn(1 / total).real / a**d


def _of_kernels() -> list[Misprint]:
    """Section 7.3, and captions."""
    K = roughness(Periodic(), lambda_2=1.0)
    grid, N = K.grid, K.grid.counts(TWO)
    start = empirical(grid, N).ravel()
    A = np.asarray((K + Mass(grid)).matrix)
    lowest = [float(np.min(kernel)) for kernel in (A @ start, np.linalg.solve(A, start))]
    uniform = np.full(grid.shape, np.log(1 / 15))
    problem = Problem(DensityData(TWO), LogDensity(grid), Gaussian(K))
    C = np.linalg.inv(A)
    full = C @ -problem.gradient(uniform).ravel()  # K L = 0
    Lam = np.broadcast_to(over(grid, N), grid.shape).ravel()
    first = {s: C @ N.ravel() + s * C @ (Lam / 15) for s in (1, -1)}
    H = problem.hessian(uniform)
    zero = int(np.sum(np.abs(np.linalg.eigvalsh((H + H.T) / 2)) < 1e-10))
    P = C @ N.ravel()
    P = P / np.broadcast_to(over(grid, P.reshape(grid.shape)), grid.shape).ravel()
    bar = C / np.broadcast_to(over(grid, (C @ N.ravel()).reshape(grid.shape)), grid.shape).reshape(-1, 1)
    tilde = np.linalg.inv(bar) / (bar @ N.ravel())[:, None]
    wanted = N.ravel() / P
    top = np.max(np.abs(wanted))
    return [
        Misprint("F692", "captions of figures 13 to 15, 22", "kernel of the initial guess", "C = K + m² I", "C = (K + m² I)⁻¹", "how far the guess of figure 13 lies below zero; eq. (676) has it right", max(0.0, -lowest[0]), max(0.0, -lowest[1])),
        Misprint("F685", "equation (685)", "one step from a uniform start", "C N + C P⁰ Λ_X", "C N - C P⁰ Λ_X", "kernel times the derivative of the energy; it drops out when L is normalised", float(np.max(np.abs(first[1] - full))), float(np.max(np.abs(first[-1] - full)))),
        Misprint("F686", "after equation (686)", "the Hessian at a uniform start", "can be invertible", "has one zero mode for each x: use the pseudo-inverse", "zero eigenvalues too many: against none, and against ten", float(zero), float(abs(zero - 10))),
        Misprint("F693", "equations (693) to (695)", "the kernel estimate makes the functional (695) stationary", "C̃⁻¹ P = P⁻¹ N from (695)", "C̃⁻¹ is not symmetric: (693) holds, but is not the derivative of (695)", "residuals of both, relative to the largest of P⁻¹ N",
                 float(np.max(np.abs((tilde + tilde.T) @ P / 2 - wanted)) / top), float(np.max(np.abs(tilde @ P - wanted)) / top)),
    ]  # fmt: skip
