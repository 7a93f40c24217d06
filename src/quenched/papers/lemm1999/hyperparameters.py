r"""Chapter 5: figure 6, and what the paper says of hyperparameters, each decided by another computation.

Priors are declared and their hyperparameters found by `adapt` and `locate`; equations are written out in matrices of a
few points and compared with differences of the energies they come from.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from scipy import integrate, stats

from quenched.core.claims import Claim, above, below, near
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.fields.model.families import Relevance, Spectrum, Strength, link_rows
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.hyper import Hyper
from quenched.fields.model.hyperpriors import Choice, Flat, LogFlat, Power
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.fields.model.switches import Jumps, Patches
from quenched.fields.practice.adapting import FittedHyper, Joint, Pathology, adapt
from quenched.fields.practice.locating import locate
from quenched.papers.lemm1999.gaussian import ROUNDING, gap
from quenched.papers.lemm1999.misprint import Misprint

POINTS = 9
"""Of the line on which equations are written out."""
FREE = 1e-4
"""How near a field is to what it becomes as a strength goes to an end of its range."""


def figure_6(*, quick: bool = False, key: Any = None) -> Figure:
    """The joint posterior of a value and a regularisation parameter, for two hyperpriors."""
    del quick, key  # nothing is drawn
    h, gamma = np.linspace(-1, 2, 121), np.linspace(0.01, 4, 121)
    panels, data = [], {}
    for title, power in (("uniform hyperprior", 0.0), ("compensating hyperprior", -0.5)):
        logs = -0.5 * h[:, None] ** 2 - 0.5 * gamma * (h[:, None] - 1) ** 2 + (0.5 + power) * np.log(gamma)
        ridge = gamma / (1 + gamma)  # the best h for each gamma
        series = (
            Series("p(h, γ | D), not normalised", Kind.image, h, gamma, values=np.exp(logs)),
            Series("best h for each γ", Kind.reference, ridge, gamma),
        )
        panels.append(Panel("h", "γ", series, title=title))
        data[title] = xr.Dataset({"log_density": (("h", "gamma"), logs), "best": ("gamma", ridge)},
                                 {"h": h, "gamma": gamma})  # fmt: skip
    caption = ("One value h with the data y = 0 and the template 1: exp(-h²/2 - γ(h - 1)²/2) times √γ (left, uniform p(γ)) or 1 (right, the "
               "compensating p(γ) ∝ 1/√γ). Along the grey line h is best for each γ. Left the density rises along it without end, right it "
               "falls from γ = 0 on.")  # fmt: skip
    return Figure("lemm1999/figure_6", "A value and its regularisation parameter", caption, tuple(panels), data)


def hyperparameter_claims(figure: Figure) -> list[Claim]:
    """Statements of chapter 5."""
    return [*_catastrophe_claims(figure), *_template_claims(), *_covariance_claims(), *_exact_claims(),
            *_switch_claims()]  # fmt: skip


def _line() -> tuple[Grid, np.ndarray]:
    """A line of a few points at distance 1."""
    axis = Axis(0, POINTS - 1, points=POINTS)
    return Grid(given=[axis]), axis.coordinates


def _quietly(problem: Problem) -> FittedHyper:
    """A joint maximum, without the warning that it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return adapt(problem, Joint())


def _catastrophe_claims(figure: Figure) -> list[Claim]:
    """Section 5.3.6 and figure 6."""
    point = Grid(given=[Axis(0, 1, points=2)])  # two values that know nothing of each other
    data = GaussianData([0.0, 1.0], [0.0, 0.0])
    found = {power: _quietly(Problem(data, Direct(point), Strength(Mass(point), mean=1.0, hyperprior=Power(power))))
             for power in (0.0, -1.0)}  # fmt: skip
    frozen, released = (Pathology.frozen in found[0.0].pathologies, Pathology.released in found[-1.0].pathologies)
    at = {power: float(one.field.mean()) for power, one in found.items()}
    ridge = {title: one.log_density.sel(h=one.best, method="nearest").values for title, one in figure.data.items()}
    rise = float(np.min(np.diff(ridge["uniform hyperprior"][30:])))
    fall = float(np.max(np.diff(ridge["compensating hyperprior"])))
    grid, x = _line()
    K, phi, gamma = Laplacian(grid) + Mass(grid), np.sin(x), 1.7
    square = float(phi @ K.matrix @ phi)
    best = POINTS / square

    def energy(g: float) -> float:
        return 0.5 * g * square - 0.5 * POINTS * np.log(g)

    slope = _slope(energy, gamma)
    return [
        Claim("figure 6, left", "uniform hyperprior: the maximum of the joint posterior", "γ = ∞, h = 1", f"h = {at[0.0]:.6f} at the end of the range; the search calls it {'frozen' if frozen else 'a maximum'}; along the best h the density still rises by {rise:.0e} per step", "`adapt` with `Joint`, and the density of the figure", near(at[0.0], 1.0, within=FREE) & above(float(frozen), 0.5, what="named frozen") & above(rise, 0.0, what="rise")),
        Claim("figure 6, right; after equation (478)", "compensating hyperprior: the maximum of the joint posterior", "γ = 0, h = 0, the δ-catastrophe", f"h = {at[-1.0]:.6f}; the search calls it {'released' if released else 'a maximum'}; along the best h the density falls by at least {-fall:.0e} per step", "the same", near(at[-1.0], 0.0, within=FREE) & above(float(released), 0.5, what="named released") & below(fall, 0.0, what="rise")),
        Claim("equation (478)", "½ (φ - t, K₀(φ - t)) = d/2γ - E'_γ", "stationary in γ", f"slope {slope:.8f} against {0.5 * square - 0.5 * POINTS / gamma:.8f}", "differences of the energy with its normalisation", near(slope, 0.5 * square - 0.5 * POINTS / gamma, within=1e-7)),
        Claim("equation (479)", "without a hyperprior γ = d/(φ - t, K₀(φ - t)), and φ → t gives γ → ∞", "self-consistent", f"{best:.6f} is the least of the energy; for a field a thousand times nearer to t it is {POINTS / (square * 1e-6) / best:.3g} times as large", "the same", below(energy(best), min(energy(0.99 * best), energy(1.01 * best)), what="energy there")),
    ]  # fmt: skip


def _slope(function: Callable[[float], float], at: float, step: float = 1e-3) -> float:
    """A derivative by differences of fourth order."""
    weights = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
    return float(sum(weight * function(at + place * step) for place, weight in weights) / step)


def _template_claims() -> list[Claim]:
    """Section 5.2."""
    grid, x = _line()
    K = Laplacian(grid) + Mass(grid)
    y = np.cos(x)
    free = Hyper(lambda t: Gaussian(K, mean=t), np.zeros(POINTS), Flat(-9.0, 9.0))
    found = _quietly(Problem(GaussianData(x, y, 0.1), Direct(grid), free))
    swallowed = Pathology.swallowed in found.pathologies
    off = float(np.max(np.abs(found.field - y)))
    moving = Hyper(lambda s: Gaussian(K, mean=np.tanh(x - s)), hyperprior=Flat(0.0, 8.0))
    partitions = [moving.log_partition(s) for s in (1.0, 5.0)]
    stiff = {}
    for strength in (1e2, 1e6):
        one = Hyper(lambda s, strength=strength: Gaussian(strength * K, mean=np.tanh(x - s)), 3.0, Flat(0.0, 8.0))
        fit = adapt(Problem(GaussianData(x, np.tanh(x - 3.3) + 0.1 * y, 0.1), Direct(grid), one))
        stiff[strength] = float(np.max(np.abs(fit.field - np.tanh(x - fit.theta))))
    parametric = _least_squares(x, np.tanh(x - 3.3) + 0.1 * y)
    limit = abs(fit.theta - parametric)
    return [
        Claim("section 5.2.3", "a template that is free is equivalent to no prior", "φ follows the data", f"the field is within {off:.0e} of the data; the search calls it {'swallowed' if swallowed else 'a maximum'}", "`adapt` with `Joint` and a template with a number for each point", below(off, FREE, what="distance from the data") & above(float(swallowed), 0.5, what="named swallowed")),
        Claim("sections 5.1, 5.2.1", "the normalisation of a Gaussian is independent of its mean: adaptive templates need no normalisation", "independent", f"ln Z differs by {abs(partitions[0] - partitions[1]):.0e}", "a template that moves", below(abs(partitions[0] - partitions[1]), ROUNDING, what="difference")),
        Claim("equation (443)", "for λ → ∞ the field is its template", "h → t₀", f"distance {stiff[1e2]:.0e} at λ = 100 and {stiff[1e6]:.0e} at 10⁶", "a step at an unknown place", below(stiff[1e6], FREE, what="distance")),
        Claim("after equation (426)", "parametric methods are the limit of vanishing prior covariance", "the same parameter", f"the place of the step is {fit.theta:.6f}, by least squares {parametric:.6f}", "λ = 10⁶, and a scan of the sum of squares", below(limit, 1e-3, what="difference")),
    ]  # fmt: skip


def _least_squares(x: np.ndarray, y: np.ndarray) -> float:
    """The place of a step that fits best."""
    places = np.linspace(2, 5, 30_001)
    return float(places[np.argmin([np.sum((y - np.tanh(x - s)) ** 2) for s in places])])


def _covariance_claims() -> list[Claim]:
    """Sections 5.3.2 to 5.3.5."""
    grid, _ = _line()
    prior = Spectrum(Laplacian(grid) + Mass(grid), count=2)
    shift = abs(prior.log_partition({"theta": np.array([1.0, -0.7])}) - prior.log_partition({"theta": np.zeros(2)}))
    values, U = np.linalg.eigh((Laplacian(grid) + Mass(grid)).matrix)
    O = stats.special_ortho_group(POINTS, seed=0).rvs()
    turned = (O @ U) * values @ (O @ U).T
    det = abs(np.linalg.slogdet(turned)[1] - np.sum(np.log(values)))
    spectrum = gap(np.linalg.eigvalsh(turned), values)
    axes = [Axis(0, 1, points=5, name=name) for name in "abc"]
    cube, draw = Grid(given=axes), np.random.default_rng(1)
    rows = draw.choice(axes[0].coordinates, size=(60, 3))
    data = GaussianData(rows, np.sin(5 * rows[:, 1]) + 0.1 * draw.normal(size=60), 0.01)
    strengths = adapt(Problem(data, Direct(cube), Relevance(cube, hyperprior=LogFlat(0.01, 1e4)))).theta["relevance"]
    ratio = float(np.sort(strengths)[1] / strengths[1])
    return [
        Claim("equations (467) to (471)", "eigenvalues shifted against each other leave the determinant alone", "invariant", f"ln Z differs by {shift:.0e}", "`Spectrum` with two patterns", below(shift, ROUNDING, what="difference")),
        Claim("equations (463), (464)", "an orthogonal K → O K Oᵀ leaves the determinant and the eigenvalues alone, and K symmetric", "invariant", f"ln det differs by {det:.0e}, eigenvalues by {spectrum:.0e}, K from its transpose by {gap(turned, turned.T):.0e}", "a random rotation of nine dimensions", below(max(det, spectrum, gap(turned, turned.T)), ROUNDING, what="difference")),
        Claim("section 5.3.2", "adapting a strength for each axis finds sensible directions", "automatic relevance detection", f"of three axes the one that matters has the least strength, {ratio:.0f} times below the next", "60 values of a function of the second of three columns", above(ratio, 10.0, what="ratio")),
    ]  # fmt: skip


def _exact_claims() -> list[Claim]:
    """Section 5.4."""
    grid, x = _line()
    places, y = np.array([1, 3, 5, 7]), np.array([1.0, -0.5, 0.7, 1.3])
    K, templates = Laplacian(grid) + Mass(grid), (np.zeros(POINTS), np.sin(x))
    prior = Hyper(lambda i: Gaussian(K, mean=templates[i]), hyperprior=Choice([0, 1]))
    found = adapt(Problem(GaussianData(places, y, 0.3), Direct(grid), prior))
    C = np.linalg.inv(K.matrix)[np.ix_(places, places)] + 0.3 * np.eye(4)
    p = np.array([float(stats.multivariate_normal(t[places], C.tolist()).pdf(y)) for t in templates])
    exact = float(p[1] / p.sum())
    theta = 0.4
    first, second = _first_terms(theta)
    return [
        Claim("equations (484) to (486)", "p(θ | D) is exact in Gaussian regression", "analytic", f"{found.probability()[1]:.10f} and {exact:.10f}", "two templates: `adapt`, and the normal density of the data", near(found.probability()[1], exact, within=ROUNDING)),
        Claim("after equation (488)", "at the stationary h* the first terms of (487) and (488) are equal", "equal", f"{first:.10f} and {second:.10f}", "a template that moves, nine points, four values", near(first, second, within=ROUNDING)),
    ]  # fmt: skip


def _first_terms(theta: float) -> tuple[float, float]:
    """Of equations (487) and (488)."""
    grid, x = _line()
    places, y, K = np.array([1, 3, 5, 7]), np.array([1.0, -0.5, 0.7, 1.3]), (Laplacian(grid) + Mass(grid)).matrix
    t, slope = np.tanh(x - theta), -1 / np.cosh(x - theta) ** 2
    whole = np.linalg.inv(0.3 * np.eye(4) + np.linalg.inv(K)[np.ix_(places, places)])
    h = t + np.linalg.inv(K)[:, places] @ whole @ (y - t[places])
    return float(slope @ K @ (t - h)), float(slope[places] @ whole @ (t[places] - y))


def _switch_claims() -> list[Claim]:
    """Section 5.6."""
    grid, x = _line()
    W = link_rows(grid, None)[0]
    cut = np.diag((np.arange(POINTS - 1) != 3).astype(float))
    apart = W.T @ cut @ W
    across, zero = float(np.max(np.abs(apart[:4, 4:]))), int(np.sum(np.linalg.eigvalsh(apart) < 1e-10))
    patches = Patches(0.3 * Laplacian(grid), np.sin(x), 0.5 * x, mass=2.0)
    b = (np.arange(POINTS) > 3).astype(float)
    held, phi = patches.hold(b), np.cos(2 * x)
    targets = np.where(b > 0, 0.5 * x, np.sin(x))
    sums = 0.5 * float(2.0 * np.sum((phi - targets) ** 2) + phi @ patches.common.operator.matrix @ phi)
    own = np.asarray(held.mean)
    rest = 0.5 * (2.0 * targets @ targets - own @ held.operator.matrix @ own)
    whole = float(0.5 * (phi - own) @ held.operator.matrix @ (phi - own) + rest)
    draw = np.random.default_rng(0)
    y = np.where(x > 3.5, 2.0, 0.0) + 0.2 * draw.normal(size=POINTS)
    asked = Problem(GaussianData(x, y, 0.04), Direct(grid), Jumps(grid, 5.0, 0.1))
    found = locate(asked)
    best, alone = _enumerated(asked)
    return [
        Claim("equations (519) to (522)", "setting rows of W to zero disconnects the two sides, with one zero mode each", "disconnected", f"entries across the cut are {across:.0e} at most, and there are {zero} zero modes", "a free line of nine points", below(across, ROUNDING, what="entries across") & near(float(zero), 2.0, within=0.5)),
        Claim("equations (505) to (509)", "local templates are one effective template with K(θ') = ∫ K_x, up to a constant", "equal", f"{sums:.10f} and {whole:.10f}", "templates switched at one place", near(sums, whole, within=ROUNDING)),
        Claim("section 5.6", "a binary field that disconnects the Laplacian leaves the height of the jump open", "not given in advance", f"of {2 ** (POINTS - 1)} combinations the most probable is one cut at link {int(np.argmax(found.switches))} with the probability {found.probability.max():.8f}, by brute force {alone:.8f}", "a step with noise: `locate` sums exactly, and all combinations one by one", near(float(found.probability.max()), alone, within=ROUNDING) & near(float(np.argmax(found.switches)), best, within=0.5)),
    ]  # fmt: skip


def _enumerated(problem: Problem) -> tuple[float, float]:
    """The link that is most probably cut, and its probability, by brute force."""
    prior: Any = problem.prior
    data: Any = problem.likelihood
    every = np.array(list(itertools.product([0.0, 1.0], repeat=POINTS - 1)))
    logs = []
    for b in every:
        C = np.linalg.inv(prior.hold(b).operator.matrix) + 0.04 * np.eye(POINTS)
        logs.append(
            float(stats.multivariate_normal(np.zeros(POINTS), C.tolist()).logpdf(data.targets)) - prior.price_of(b)
        )
    p = np.exp(np.array(logs) - np.logaddexp.reduce(logs)) @ every
    return float(np.argmax(p)), float(p.max())


def misprints() -> list[Misprint]:
    """Equations of chapter 5 that are printed wrongly."""
    grid, x = _line()
    K, phi, theta = (Laplacian(grid) + Mass(grid)).matrix, np.cos(x), 0.7
    t, slope = np.tanh(x - theta), -1 / np.cosh(x - theta) ** 2

    def moving(s: float) -> float:
        off = phi - np.tanh(x - s)
        return float(0.5 * off @ K @ off + 0.5 * s**2)

    pull = float(slope @ K @ (phi - t))
    template = [abs(-pull + sign * theta - _slope(moving, theta)) for sign in (-1, 1)]

    def strong(s: float) -> float:
        M = np.exp(s) * Laplacian(grid).matrix + np.eye(POINTS)
        return float(0.5 * phi @ M @ phi - 0.5 * np.linalg.slogdet(M)[1] + 0.5 * s**2)

    D = np.exp(theta) * Laplacian(grid).matrix
    trace = float(np.trace(np.linalg.solve(D + np.eye(POINTS), D)))
    traced = [abs(0.5 * phi @ D @ phi - factor * trace + theta - _slope(strong, theta)) for factor in (1.0, 0.5)]
    W = link_rows(grid, None)[0]
    least = [max(0.0, -float(np.linalg.eigvalsh(sign * 2.0 * W.T @ W)[0])) for sign in (-1, 1)]
    local = np.exp(np.sin(x))
    bent = [np.diag(local) @ W.T @ W, W.T @ np.diag(np.exp(np.sin(x[:-1] + 0.5))) @ W]
    values, shift = np.array([1.0, 2.0, 5.0]), 1.3
    change = _slope(lambda s: float(values[2] / s), shift)  # the second of a pair, eq. (467)
    normal = [float(np.asarray(integrate.quad(_gauss(sign), -20, 20)[0])) for sign in (1, -1)]
    kappa = 2.0
    return [
        Misprint("F425", "equations (425), (426), (429), (430)", "stationarity of a template's parameter", "t' K(φ - t) = -E'_θ", "t' K(φ - t) = +E'_θ", "differences of the energy of a template that moves",
                 template[0], template[1]),
        Misprint("F449", "equations (449), (452), (487) to (489)", "derivative of the normalisation", "Tr(K⁻¹ ∂K)", "½ Tr(K⁻¹ ∂K), as eq. (478) has it", "differences of the energy with ½ ln det K, strength e^θ", traced[0], traced[1]),
        Misprint("F453", "equation (453)", "the operator of relevance detection", "-Σ θ_i K_i", "+Σ θ_i K_i, because K_i = -∂² is positive already", "least eigenvalue, which must not be negative", least[0], least[1]),
        Misprint("F455", "equations (455), (457)", "local smoothness", "-e^θ(x) ∂²", "-∂ e^θ(x) ∂, of the energy ½ ∫ e^θ (∂φ)²", "how far the matrix is from its transpose", gap(bent[0], bent[0].T), gap(bent[1], bent[1].T)),
        Misprint("F460", "equation (460)", "(M + ∂)(M - ∂)", "M² - ∂²", "M² + M' - ∂², unless the mass is constant", "applied to a sine, with Fourier derivatives", *_gauge()),
        Misprint("F474", "equations (474), (475)", "derivative of the eigenvalue that is divided", "+λ̃/θ", "-λ̃/θ", "differences of λ/θ", abs(values[2] / shift**2 - change), abs(-values[2] / shift**2 - change)),
        Misprint("F481", "after equation (481)", "what is minimised with a normalised prior", "E + (1/2β) ln det(βK/2π)", "E - (1/2β) ln det(βK/2π)", "the prior's integral, which is one", abs(normal[0] - 1), abs(normal[1] - 1)),
        Misprint("F525", "equations (525), (528)", "a prior that counts discontinuities", "exponent -½ ∫(... - ½κ N_d)", "-½ ∫(...) - ½κ N_d - ln Z", "by how much a discontinuity raises the log-density", max(0.0, 0.25 * kappa), max(0.0, -0.5 * kappa)),
    ]  # fmt: skip


def _gauss(sign: int, beta: float = 2.0, K: float = 3.0) -> Callable[[float], float]:
    """exp(-beta f) of one value with the normalisation added or subtracted."""
    return lambda h: float(np.exp(-beta * (0.5 * K * h**2 + sign * np.log(beta * K / (2 * np.pi)) / (2 * beta))))


def _gauge() -> tuple[float, float]:
    """How far the product is from what is printed, and from what it is."""
    n = 32
    x = 2 * np.pi * np.arange(n) / n
    waves = 1j * np.fft.fftfreq(n, 1 / n)

    def d(f: np.ndarray) -> np.ndarray:
        return np.fft.ifft(waves * np.fft.fft(f)).real

    M, phi = 2 + np.cos(x), np.sin(2 * x)
    inner = M * phi - d(phi)
    product = M * inner + d(inner)
    plain = M**2 * phi - d(d(phi))
    return float(np.max(np.abs(product - plain))), float(np.max(np.abs(product - plain - d(M) * phi)))
