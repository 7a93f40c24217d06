r"""What sections 3.1 to 3.6 of the paper say of Gaussian priors, each decided by a computation that does not use the statement.

Energies and their derivatives come from declared problems; printed stationarity equations, Hessians and closed forms
are written out here in matrices, and compared with them. `A` below is $I_X$ as a matrix, so $P I_X$ is `diag(P) @ A`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg, optimize

from quenched.core.claims import Claim, above, below, near
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.model.grid import Axis, Free, Grid, Periodic
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density, Direct, Link, LogDensity, Shifted, SquareRoot
from quenched.fields.model.maps import Mirror, Translation
from quenched.fields.model.parametrisations import Bounded, Distribution, Logits, Unnormalised, check_link
from quenched.fields.model.priors import Gaussian, combined
from quenched.fields.model.problem import Problem
from quenched.fields.model.quadratic import Cumulative, QuadraticData
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.fields.model.symmetries import Invariance
from quenched.papers.lemm1999.misprint import Misprint
from quenched.papers.lemm1999.stationarity import curvature, descent, hessian, multiplier, over_matrix

ROUNDING, SOLVED, DIFFERENCES = 1e-10, 1e-8, 1e-5
"""How far two ways of the same algebra may be apart, two minima, and a derivative from finite differences."""
STEP = 1e-5
"""Of finite differences."""


def gaussian_claims() -> list[Claim]:
    """Statements of sections 3.1 to 3.6."""
    return [
        *_log_claims(),
        *_density_claims(),
        *_link_claims(),
        *_symmetry_claims(),
        *_template_claims(),
        *_parzen_claims(),
    ]


def _problem(link: type[Link], mass: float = 0.2) -> Problem:
    """Nine points of a density of y for three x, with a proper prior; a large mass keeps densities above zero."""
    x, y = Axis(0, 1, points=3, ends=Free()), Axis(-1, 2, points=5, ends=Periodic())
    grid, rng = Grid(given=[x], over=[y]), np.random.default_rng(0)
    K = 0.3 * (Laplacian(grid, x) + Laplacian(grid, y)) + Mass(grid, mass)
    points = np.stack([rng.choice(x.coordinates, 9), rng.choice(y.coordinates, 9)], axis=1)
    return Problem(DensityData(points), link(grid), Gaussian(K))


def _field(problem: Problem, seed: int = 1) -> np.ndarray:
    """A normalised density, not a stationary one."""
    z = np.random.default_rng(seed).uniform(0.5, 1.5, problem.grid.shape)
    return z / (z.sum(axis=1, keepdims=True) * problem.grid.spacing)


def _slopes(problem: Problem, field: np.ndarray) -> np.ndarray:
    """Second derivatives by finite differences of the gradient, per volume."""
    steps = STEP * np.eye(field.size).reshape(-1, *field.shape)
    rows = [(problem.gradient(field + one) - problem.gradient(field - one)).ravel() / (2 * STEP) for one in steps]
    return np.array(rows) / problem.grid.cell


def gap(a: Any, b: Any) -> float:
    """The largest difference."""
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))))


def _log_claims() -> list[Claim]:
    """Section 3.1."""
    log, shifted, logits = (_problem(link) for link in (LogDensity, Shifted, Logits))
    fits = [solve(one) for one in (log, shifted, logits)]
    L, grid = fits[0].field, log.grid
    Lam, K = multiplier(log, L), np.asarray(log.operator.matrix)
    N = np.asarray(log.likelihood.counts) / grid.cell  # pyright: ignore[reportAttributeAccessIssue]
    residual = float(np.max(np.abs(N - (K @ L.ravel()).reshape(L.shape) - np.exp(L) * Lam)))
    free = np.linalg.solve(K, N.ravel()).reshape(L.shape)
    A = over_matrix(grid)
    left = (np.eye(grid.size) - np.diag(np.exp(free).ravel()) @ A) @ (N.ravel() - K @ free.ravel())
    size = gap(np.exp(free).sum(axis=1) * grid.spacing, 1)
    g, P = fits[2].field, fits[2].density
    N_X = N.sum(axis=1, keepdims=True) * grid.spacing
    alone = float(np.max(np.abs(N - (K @ g.ravel()).reshape(g.shape) - P * N_X)))
    some = np.log(_field(log))
    H = hessian(shifted, some)
    numeric = _slopes(shifted, some)
    values = np.linalg.eigvalsh((numeric + numeric.T) / 2)
    zero = int(np.sum(np.abs(values) < 1e-6 * values[-1]))
    fixed, whole = (np.linalg.eigvalsh((M + M.T) / 2)[0] for M in (curvature(log, L), hessian(log, L)))
    return [
        Claim("equations (127), (137)", "stationarity N - K L - e^L Λ_X = 0 with Λ_X = I_X(N - K L)", "0", f"at most {residual:.0e}", "the minimum of a declared problem, found by Newton's method", below(residual, SOLVED, what="residual")),
        Claim("after equation (141)", "it has solutions that are not normalised, N = K L", "possible", f"residual {np.max(np.abs(left)):.0e} at K⁻¹N, whose integrals differ from 1 by up to {size:.2f}", "the same problem, K invertible", below(np.max(np.abs(left)), SOLVED, what="residual") & above(size, 0.1, what="norm")),
        Claim("equations (147), (151)", "normalising by parameterisation, g, leads to the same density as a multiplier", "again Eq. (141)", f"within {gap(fits[0].density, fits[1].density):.0e}", "both minima", below(gap(fits[0].density, fits[1].density), SOLVED, what="difference")),
        Claim("equations (152), (153)", "a prior on g alone: N - K g - e^L N_X = 0", "0", f"at most {alone:.0e}", "the minimum of another problem", below(alone, SOLVED, what="residual")),
        Claim("equations (159), (160)", "the Hessian of E_g", "closed form", f"within {gap(H, numeric):.0e}, symmetric within {gap(H, H.T):.0e}", "finite differences of the energy's derivative, at a density that is not stationary", below(gap(H, numeric), DIFFERENCES, what="difference") & below(gap(H, H.T), ROUNDING, what="asymmetry")),
        Claim("after equation (160)", "it has as many zero modes as there are x", "dimension of X", f"{zero} of {grid.size} eigenvalues vanish; there are {grid.shape[0]} x", "the same finite differences", near(zero, grid.shape[0], within=0, what="zero modes")),
        Claim("equation (156)", "the Hessian at a fixed multiplier is not that of the problem", "fixed Λ_X", f"least eigenvalues {fixed:.3f} and {whole:.0e} at the minimum", "both closed forms", above(fixed - whole, 1e-3, what="difference of the least eigenvalues")),
    ]  # fmt: skip


def _density_claims() -> list[Claim]:
    """Section 3.2."""
    of_P, of_z = _problem(Density, 30.0), _problem(Unnormalised, 30.0)
    grid, K, P = of_P.grid, np.asarray(of_P.operator.matrix), _field(of_P)
    N = np.asarray(of_P.likelihood.counts) / grid.cell  # pyright: ignore[reportAttributeAccessIssue]
    A, n, p = over_matrix(grid), N.ravel(), P.ravel()
    fit = solve(of_P)
    residual = float(np.max(np.abs(descent(of_P, fit.field))))
    z = _field(of_z) * np.array([[0.5], [1.3], [2.0]])
    Z = np.diag(np.repeat(1 / np.array([0.5, 1.3, 2.0]), grid.shape[1]))
    eye, GP = np.eye(grid.size), n / p - K @ p
    Lam = A @ (p * GP)
    G = -Z @ (GP - Lam)
    slope = of_z.gradient(z).ravel() / grid.cell
    numeric, inner = _slopes(of_z, z), eye - A @ np.diag(p)
    H = Z @ (inner @ (K + np.diag(n / p**2)) @ inner.T + A @ np.diag(GP - Lam) + np.diag(GP - Lam) @ A) @ Z
    NP = np.diag(n / p)
    long = Z @ (inner @ K @ inner.T + np.diag(n / p**2) - A @ NP - NP @ A + A @ np.diag(n) @ A
                + A @ np.diag(GP) + np.diag(GP) @ A - 2 * A @ np.diag(Lam)) @ Z  # fmt: skip
    along = _slopes_along(of_P, P, A)
    mode = np.where(np.arange(grid.size) // grid.shape[1] == 1, z.ravel(), 0.0)
    mean = solve(of_z)
    rest = np.where(np.arange(grid.size) // grid.shape[1] == 1, mean.field.ravel(), 0.0)
    there, elsewhere = (
        float(np.max(np.abs(of_z.hessian(at) @ m))) / grid.cell for at, m in ((mean.field, rest), (z, mode))
    )
    off, off_long = (gap(form, numeric) / float(np.max(np.abs(numeric))) for form in (H, long))
    euler = gap(of_z.hessian(z) @ mode, -np.where(mode > 0, of_z.gradient(z).ravel(), 0.0)) / grid.cell
    return [
        Claim("equations (165) to (168)", "stationarity P⁻¹N - K P - Λ_X = 0 with Λ_X = I_X(N - P K P)", "0", f"at most {residual:.0e}; least P {fit.density.min():.3f}", "the minimum of a declared problem, inside its bound", below(residual, SOLVED, what="residual")),
        Claim("equation (179)", "the derivative of E_z is Z_X⁻¹ (G_P - Λ_X), up to its sign", "closed form", f"within {gap(G, slope):.0e}", "automatic differentiation of the energy of z, not normalised", below(gap(G, slope), SOLVED, what="difference")),
        Claim("equation (181)", "the Hessian of E_P at a fixed multiplier is -K - P⁻²N", "closed form", f"within {along:.0e}", "finite differences along densities that stay normalised", below(along, DIFFERENCES, what="difference")),
        Claim("equations (182), (183)", "the Hessian of E_z", "closed form", f"within {off:.0e} of its largest entry", "finite differences, z not normalised and not stationary", below(off, DIFFERENCES, what="difference")),
        Claim("equation (184)", "the same, multiplied out", "closed form", f"within {off_long:.0e} of its largest entry", "the same", below(off_long, DIFFERENCES, what="difference")),
        Claim("after equation (184)", "H_z has a zero mode: z itself at one x", "always", f"only where the energy is stationary: |H_z z_x| is {there:.0e} at the minimum, {elsewhere:.2g} elsewhere", f"automatic differentiation; elsewhere H_z z_x = -G_x within {euler:.0e} (erratum F184)",
              below(elsewhere, SOLVED, what="|H_z z_x| at any z"), below(there, SOLVED, what="at the minimum") & below(euler, SOLVED, what="H_z z_x + G_x")),
    ]  # fmt: skip


def _slopes_along(problem: Problem, P: np.ndarray, A: np.ndarray) -> float:
    """How far K + N/P² is from the second derivatives along directions without an integral over y."""
    Q = linalg.null_space(A)
    H = curvature(problem, P)
    numeric = _slopes(problem, P)
    return gap(Q.T @ H @ Q, Q.T @ numeric @ Q)


def _link_claims() -> list[Claim]:
    """Section 3.3."""
    grid = Grid(given=[Axis(0, 1, points=2)], over=[Axis(0, 3, points=5, ends=Periodic())])
    links = {"P": Density(grid), "z": Unnormalised(grid), "√P": SquareRoot(grid), "Φ": Distribution(grid)}
    off = {name: float(check_link(link).stationarity) for name, link in links.items()}
    links |= {"L": LogDensity(grid), "g": Shifted(grid)}
    noise, most = np.random.default_rng(3).normal(size=grid.shape), 0.5
    with jax.enable_x64(True):
        raw = {name: np.asarray(links[name].probability(jnp.asarray(noise))) for name in ("P", "z", "L", "g")}
        bounded = Bounded(grid, most=most)
        ups, downs = (np.asarray(bounded.probability(jnp.asarray(noise + s * STEP))) for s in (1, -1))
    printed, slope = -2 * noise * np.exp(most - noise**2), (ups - downs) / (2 * STEP)
    total = {name: gap(values.sum(axis=1) * grid.spacing, 1) for name, values in raw.items()}
    negative = {name: float(values.min()) for name, values in raw.items()}
    line = Axis(-6, 6, points=601)
    wide = Grid(over=[line])
    sigma = 0.8
    P = np.exp(-0.5 * (line.coordinates / sigma) ** 2) / (np.sqrt(2 * np.pi) * sigma)
    root = np.sqrt(P)
    rough = float(np.sum(root * np.asarray(Laplacian(wide).apply(root))) * wide.spacing)
    fisher = float(np.sum(np.gradient(P, line.spacing) ** 2 / P) * line.spacing)
    ends = Grid(over=[Axis(0, 1, points=40)])
    K = np.asarray((Laplacian(ends) + Mass(ends, 0.5)).matrix) + np.diag(10 * ends.axes[0].coordinates)
    lowest = float(np.linalg.eigvalsh(K)[0])
    ground = optimize.minimize(lambda v: v @ K @ v / (v @ v), np.ones(40), jac=lambda v: 2 * (K @ v - (v @ K @ v) / (v @ v) * v) / (v @ v), tol=1e-12)  # fmt: skip
    small = Grid(over=[Axis(0, 3, points=7)])
    R = np.tril(np.ones((7, 7))) * small.spacing
    turned = R.T @ np.asarray((Laplacian(small) + Mass(small, 0.1)).matrix) @ R
    return [
        Claim("equations (188) to (190)", "stationarity for any φ: P'P⁻¹N - Kφ - P'Λ_X = 0", "general", "; ".join(f"{name} {value:.0e}" for name, value in off.items()), "derivatives of the energies of four links, against the equation with derivatives of P(φ)", below(max(off.values()), DIFFERENCES, what="largest deviation")),
        Claim("equation (201)", "for L = L_max - φ² the derivative is P' = -2φP", "-2φP", f"within {gap(printed, slope):.0e}", "finite differences of the declared link", below(gap(printed, slope), SOLVED, what="difference")),
        Claim("table 2", "z and g need no normalisation, L and g no bound", "constraints", f"deviation from normalisation {total['z']:.0e}, {total['g']:.0e}, but {total['P']:.2g} for P and {total['L']:.2g} for L; least values {negative['L']:.2f}, {negative['g']:.2f}, but {negative['P']:.2f} for P",
              "any field, at random", below(max(total["z"], total["g"]), ROUNDING, what="z, g") & above(min(total["P"], total["L"]), 0.1, what="P, L") & above(min(negative["L"], negative["g"]), 0.0, what="least of L, g") & below(negative["P"], 0.0, what="least P")),
        Claim("equations (195) to (197)", "for φ = √P a Laplacian prior is a quarter of the Fisher information", "I_F/4", f"(φ, -Δφ) = {rough:.5f}; I_F/4 = {fisher / 4:.5f}, in closed form {1 / (4 * sigma**2):.5f}", "a Gaussian on a fine mesh", near(rough, 1 / (4 * sigma**2), within=1e-3) & near(fisher / 4, 1 / (4 * sigma**2), within=1e-3)),
        Claim("equations (199), (200)", "without data the least energy of √P is the ground state, -2Λ_X its energy", "(φ, Kφ)/(φ, φ)", f"{float(ground.fun):.8f} by minimisation, {lowest:.8f} the least eigenvalue", "a potential on forty points", near(float(ground.fun), lowest, within=1e-6)),
        Claim("after equation (204)", "a prior that is Gaussian in the distribution function is Gaussian in the density: RᵀKR is positive", "semi-positive", f"least eigenvalue {np.linalg.eigvalsh(turned)[0]:.2e}", "seven points", above(np.linalg.eigvalsh(turned)[0], -ROUNDING, what="least eigenvalue")),
    ]  # fmt: skip


def _symmetry_claims() -> list[Claim]:
    """Section 3.4."""
    rng = np.random.default_rng(4)
    ring = Axis(0, 23, points=24, ends=Periodic())
    grid = Grid(given=[ring])
    phi = rng.normal(size=24)
    shift = Translation(grid, ring, 6.0)
    K = np.asarray(Invariance(shift).matrix)
    direct = float(np.sum((phi - np.roll(phi, -6)) ** 2))
    B = rng.normal(size=(5, 5))
    W = np.linalg.cholesky(B @ B.T).T
    back = (np.eye(5) - (np.eye(5) - W)).T @ (np.eye(5) - (np.eye(5) - W))
    skew = np.triu(B, 1) - np.triu(B, 1).T
    S = linalg.expm(skew)
    wave, theta = np.exp(np.sin(2 * np.pi * np.arange(24) / 24)), 0.7
    k = np.fft.fftfreq(24, 1 / 24)
    moved = np.fft.ifft(np.exp(2j * np.pi * k * theta / 24) * np.fft.fft(wave)).real
    exact = np.exp(np.sin(2 * np.pi * (np.arange(24) + theta) / 24))
    right, left = np.eye(24) - np.roll(np.eye(24), 6, axis=1), np.roll(np.eye(24), -6, axis=1) - np.eye(24)
    periodic = np.tile(rng.normal(size=6), 4)
    both = np.linalg.eigvalsh(np.asarray(Laplacian(grid).matrix) + 2 * K)
    free = int(np.sum(np.abs(both) < 1e-9))
    return [
        Claim("equations (208), (209)", "invariance under S is the operator (I - S)ᵀK_S(I - S)", "½(φ - Sφ, φ - Sφ)", f"{phi @ K @ phi:.10f} and {direct:.10f}", "a translation by 6 of 24 points", near(float(phi @ K @ phi), direct, within=ROUNDING)),
        Claim("after equation (209)", "every positive semi-definite K is of this form, S = I - W with K = WᵀW", "conversely", f"within {gap(back, B @ B.T):.0e}", "a random matrix of five points", below(gap(back, B @ B.T), ROUNDING, what="difference")),
        Claim("equations (210), (211)", "S = exp(A) with an antisymmetric A leaves the norm alone", "SᵀS = I", f"within {gap(S.T @ S, np.eye(5)):.0e}", "a random generator", below(gap(S.T @ S, np.eye(5)), ROUNDING, what="difference")),
        Claim("equation (217)", "exp(θ∇) φ(x) = φ(x + θ)", "Taylor", f"within {gap(moved, exact):.0e}", "a smooth periodic function, ∇ by Fourier transform, θ = 0.7 spacings", below(gap(moved, exact), SOLVED, what="difference")),
        Claim("equations (219) to (222)", "for periodic ends (∇ᴸ)ᵀ = -∇ᴿ and ½(∇ᴿφ, ∇ᴿφ) = -½(φ, Δ_θφ)", "equal", f"within {gap(left.T, -right):.0e}; {float(np.sum((right @ phi) ** 2)):.8f} and {float(-phi @ left @ right @ phi):.8f}", "matrices of 24 points", below(gap(left.T, -right), 0.0, what="difference") & near(float(np.sum((right @ phi) ** 2)), float(-phi @ left @ right @ phi), within=ROUNDING)),
        Claim("after equation (222)", "every periodic function is free, so that another term is needed", "null space", f"a function of period 6 costs {float(periodic @ K @ periodic):.0e}; with a Laplacian {free} mode is free, the constant", "24 points", below(float(periodic @ K @ periodic), ROUNDING, what="cost") & near(free, 1, within=0, what="free modes")),
    ]  # fmt: skip


def _template_claims() -> list[Claim]:
    """Section 3.5."""
    axis = Axis(-1, 1, points=9)
    grid, rng = Grid(given=[axis]), np.random.default_rng(5)
    smooth = Gaussian(0.3 * Laplacian(grid) + Mass(grid, 0.2), mean=rng.normal(size=9))
    even = Gaussian(2.0 * Invariance(Mirror(grid, axis)) + Mass(grid, 0.1), mean=rng.normal(size=9))
    both, one = smooth & even, combined(smooth & even)
    fields = rng.normal(size=(6, 9))
    with jax.enable_x64(True):
        differs = np.array([float(both.energy(jnp.asarray(f)) - one.energy(jnp.asarray(f))) for f in fields])
    parts = (smooth, even)
    K = [grid.cell * np.asarray(part.operator.matrix) for part in parts]
    t = [np.asarray(part.mean) for part in parts]
    template = np.linalg.solve(K[0] + K[1], K[0] @ t[0] + K[1] @ t[1])
    squares = sum(float(m @ k @ m) for k, m in zip(K, t, strict=True))
    least = 0.5 * (squares - float(template @ (K[0] + K[1]) @ template))
    data = GaussianData([-0.5, 0.25], [1.0, 0.3], 0.1)
    moved = regress(Problem(data, Direct(grid), smooth)).field
    S = data.prepared(grid).design
    plain = regress(Problem(GaussianData([-0.5, 0.25], np.array([1.0, 0.3]) - S @ t[0], 0.1), Direct(grid), Gaussian(smooth.operator))).field  # fmt: skip
    nothing = Problem(GaussianData([0.0], [0.0], 1e9), Direct(grid), smooth)
    expected = regress(nothing).field
    return [
        Claim("equation (226)", "a field J = K t leads to a non-zero expectation without data", "non-zero", f"the template, within {gap(expected, t[0]):.0e}", "regression of one value with a variance of 10⁹", below(gap(expected, t[0]), 1e-6, what="difference from the template")),
        Claim("equations (229) to (231)", "a prior of smooth AND mirror symmetric is one squared error about a template average", "one term", f"differs by the constant {differs.mean():.8f} ± {np.ptp(differs):.0e}; template within {gap(np.asarray(one.mean), template):.0e} of (230)", "declared by `&`, six random fields", below(np.ptp(differs), ROUNDING, what="spread of the difference") & below(gap(np.asarray(one.mean), template), SOLVED, what="template") & near(differs.mean(), least, within=SOLVED)),
        Claim("after equation (228)", "one quadratic prior's template is removed by φ' = φ - t", "simple substitution", f"within {gap(moved, plain + t[0]):.0e}", "exact regression of both", below(gap(moved, plain + t[0]), SOLVED, what="difference")),
    ]  # fmt: skip


def _parzen_claims() -> list[Claim]:
    """Section 3.6."""
    a, m, lattice = 0.1, 3.0, Axis(0, 16, points=161)
    grid = Grid(over=[lattice])
    rows = np.array([7.0, 7.6, 8.2, 8.2, 8.9])
    problem = Problem(QuadraticData(rows, Cumulative(grid)), Direct(grid), Gaussian(Mass(grid, 1 / m**2)))
    P = solve(problem).field
    kappa = 2 * np.arcsinh(a * m / 2) / a  # of the lattice: 2 (cosh(kappa a) - 1) = (m a)²
    at = np.rint(rows / a).astype(int)
    steps = np.abs(np.arange(161)[:, None] - at)
    windows = np.mean(np.tanh(kappa * a / 2) / a * np.exp(-kappa * a * steps), axis=1)
    middle = slice(40, 121)
    continuum = np.mean(m / 2 * np.exp(-m * np.abs(lattice.coordinates[:, None] - rows)), axis=1)
    off, fine = gap(P[middle], windows[middle]), gap(P[middle], continuum[middle]) / continuum.max()
    total = np.cumsum(P) * a
    D = Grid(given=[Axis(0, 1, points=2)], over=[Axis(0, 2, points=3)])
    data = QuadraticData([(0, 1), (0, 1), (0, 2)], Mass(D), extended=True).prepared(D)
    return [
        Claim("equation (237)", "the extended empirical density is N/n_x, or uniform where nothing was seen", "normalised", f"{np.asarray(data.empirical).round(4).tolist()}", "three rows at the first of two x", below(gap(np.asarray(data.empirical), [[0, 2 / 3, 1 / 3], [1 / 3] * 3]), ROUNDING, what="difference")),
        Claim("equation (243)", "in one dimension quadratic estimation is a sum of Parzen windows (m/2) exp(-m|y - y_i|)", "equivalent", f"within {off:.0e} of the windows of the lattice, within {fine:.1%} of those of the continuum", "the minimum of the declared energy; spacing 0.3 of their width, away from the ends", below(off, ROUNDING, what="largest difference") & below(fine, 0.05, what="from the continuum, relative")),
        Claim("after equation (243)", "the distribution function is monotone without multipliers", "monotone", f"steps of at least {np.diff(total).min():.1e}, its end at {total[-1]:.10f}", "the same", above(np.diff(total).min(), 0.0, what="least step") & near(total[-1], 1.0, within=1e-6)),
    ]  # fmt: skip


def misprints() -> list[Misprint]:
    """Of sections 3.4 to 3.7.1."""
    axis = Axis(0, 4, points=9)
    grid, rng = Grid(given=[axis]), np.random.default_rng(9)
    K0 = np.asarray((Laplacian(grid) + Mass(grid, 0.3)).matrix)
    t, K = rng.normal(size=(2, 9)), [K0, np.diag(rng.uniform(0.5, 1.5, 9))]
    mean = np.linalg.solve(K[0] + K[1], K[0] @ t[0] + K[1] @ t[1])
    squares, middle = sum(m @ k @ m for k, m in zip(K, t, strict=True)), mean @ (K[0] + K[1]) @ mean
    least = optimize.minimize(lambda f: 0.5 * sum((f - m) @ k @ (f - m) for k, m in zip(K, t, strict=True)), np.zeros(9), tol=1e-12).fun  # fmt: skip
    singular = np.asarray(Laplacian(grid).matrix)
    pseudo = np.linalg.pinv(singular, rcond=1e-10)
    ring = Grid(given=[Axis(0, 23, points=24, ends=Periodic())])
    wave, step = np.sin(2 * np.pi * np.arange(24) / 24), 1e-3
    k24 = 2 * np.pi * np.fft.fftfreq(24, 1 / 24) / 24
    nabla, delta = (np.fft.ifft(symbol * np.fft.fft(wave)).real for symbol in (1j * k24, -(k24**2)))
    moved = np.sin(2 * np.pi * (np.arange(24) + step) / 24)
    turned = -np.asarray(Invariance(Translation(ring, ring.given[0], 6.0)).matrix)
    eigenvalues = np.linalg.eigvalsh(turned)
    return [
        Misprint("F218", "before equation (218)", "S ≈ 1 + Σ θ_i Δ_i generates translations", "Δ_i", "∇_i", "a sine moved by a thousandth of a spacing", gap((moved - wave) / step, delta), gap((moved - wave) / step, nabla), 1e-3),
        Misprint("F221", "after equation (221)", "Δ_θ is positive definite", "positive definite", "negative semi-definite", "eigenvalues of the wrong sign, a translation by 6 of 24 points", float(max(0.0, -eigenvalues[0])), float(max(0.0, eigenvalues[-1]))),
        Misprint("F232", "equation (232)", "least energy of priors joined by AND", "½ Σ(t_j, K_j t_j) - (t, K t)", "½ [Σ(t_j, K_j t_j) - (t, K t)]", "numerical minimum of two quadratic forms", abs(0.5 * squares - middle - least), abs(0.5 * (squares - middle) - least)),
        Misprint("F278", "equations (278), (351)", "conditions of a pseudo-inverse", "A^#AA^# = A, AA^#A = A^#", "A^#AA^# = A^#, AA^#A = A", "a Laplacian with free ends", gap(pseudo @ singular @ pseudo, singular), max(gap(pseudo @ singular @ pseudo, pseudo), gap(singular @ pseudo @ singular, singular))),
    ]  # fmt: skip
