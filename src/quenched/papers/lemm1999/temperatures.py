r"""A mixture of two priors at a temperature: figures 7 to 12, and what section 6.3 says of them. [lemm1999, chapter 6]

One number $h$ is measured once, $y_D = 0.1$, and is near $+1$ or near $-1$ beforehand, all with inverse variance
$\beta$. Stationary states come from `mean_field` of the declared problem; sums and integrals over $h$ decide what is
said of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import optimize, special

from quenched.core.claims import Claim, above, below, near
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.potentials import Cup
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Mass
from quenched.fields.theory.mean_field import find_bifurcations, mean_field
from quenched.papers.lemm1999.misprint import Misprint

SEEN, TEMPLATES = 0.1, (1.0, -1.0)
"""The value that was measured, and where it is expected."""
SHOWN = (2.0, 2.75, 4.0)
"""Inverse temperatures of figure 7."""
CUPS = {"(a)": (5.0, 10.0, 0.7), "(b)": (1.0, 3.0, 2.0), "(c)": (-4.8, 15.0, 2.0)}
"""Height, width and power of the potentials of figure 12."""


def declared(seen: float = SEEN) -> Problem:
    """One value, near one of two others; the second point of the grid takes no part."""
    grid = Grid(given=[Axis(0, 1, points=2)])
    first, second = (Gaussian(Mass(grid), mean=[t, 0.0]) for t in TEMPLATES)
    return Problem(GaussianData([0.0], [seen]), Direct(grid), first | second)


def least_errors(seen: float = SEEN) -> np.ndarray:
    """$V_j$, the least error of each prior with the value. [lemm1999, eq. (558)]"""
    means = (seen + np.array(TEMPLATES)) / 2
    return 0.5 * ((means - seen) ** 2 + (means - np.array(TEMPLATES)) ** 2)


B = float((TEMPLATES[0] - TEMPLATES[1]) ** 2 / 2)
"""$b = (\\bar t_1 - \\bar t_2, (K_D + K_0)(\\bar t_1 - \\bar t_2))$, which is 2. [lemm1999, eq. (564)]"""


def push(a: np.ndarray, beta: Any) -> np.ndarray:
    r"""$\tfrac12 (\tanh\Delta + 1)$. [lemm1999, eqs. (568), (569)]"""
    V = least_errors()
    return 0.5 * (np.tanh(beta / 4 * B * (2 * a - 1) + beta * (V[1] - V[0]) / 2) + 1)


def sides(a: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Both sides of the equation of figure 7, upper row."""
    V = least_errors()
    return (
        a * np.exp(-beta / 2 * B * a**2 - beta * V[1]),
        (1 - a) * np.exp(-beta / 2 * B * (1 - a) ** 2 - beta * V[0]),
    )


def _states(beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Stable and unstable solutions a_1."""
    found = mean_field(declared(), beta).isel(beta=0)
    a, stable = found.responsibility.values[:, 0], found.stable.values
    return a[np.isfinite(a) & stable], a[np.isfinite(a) & ~stable]


def figure_7(*, quick: bool = False, key: Any = None) -> Figure:
    """The mean-field equation solved graphically."""
    del quick, key  # nothing random
    a, above_it, below_it, data = np.linspace(0, 1, 201), [], [], {}
    for beta in SHOWN:
        stable, unstable = _states(beta)
        left, right = sides(a, beta)
        title = f"β = {beta:g}"
        crossing = sides(stable, beta)[0], sides(unstable, beta)[0]
        above_it.append(_graphical(("left side", a, left), ("right side", a, right), stable, unstable, crossing, title))
        lines = ("a₁", a, a), ("½ (tanh Δ + 1)", a, push(a, beta))
        below_it.append(_graphical(*lines, stable, unstable, (stable, unstable), title))
        data[title] = xr.Dataset({"left": ("a_1", left), "right": ("a_1", right), "push": ("a_1", push(a, beta)),
                                  "stable": ("state", stable), "unstable": ("saddle", unstable)}, {"a_1": a})  # fmt: skip
    turn = float(find_bifurcations(declared()).beta[0])
    caption = (f"b = 2, d₁ = -0.2025 β, d₂ = -0.3025 β: templates ±1, measured {SEEN:g}. Above: both sides of a₁ exp(-βb a₁²/2 + d₂) = (1 - a₁) exp(-βb (1 - a₁)²/2 + d₁). "
               f"Below: a₁ and ½ (tanh Δ + 1). Crosses are stable solutions, dots unstable ones; two of them appear at β = {turn:.4f}.")  # fmt: skip
    return Figure(
        "lemm1999/figure_7", "Stationary states of a mixture of priors", caption, (*above_it, *below_it), data
    )


def _graphical(
    one: tuple[str, np.ndarray, np.ndarray], two: tuple[str, np.ndarray, np.ndarray], stable: np.ndarray,
    unstable: np.ndarray, heights: tuple[np.ndarray, np.ndarray], title: str,
) -> Panel:  # fmt: skip
    series = [Series(one[0], Kind.theory, *one[1:]), Series(two[0], Kind.theory, *two[1:])]
    series.append(Series("stable", Kind.mark, stable, heights[0]))
    if len(unstable):
        series.append(Series("unstable", Kind.simulation, unstable, heights[1]))
    return Panel("a₁", "", tuple(series), title=title, key=False)


def figure_8(*, quick: bool = False, key: Any = None) -> Figure:
    """The same over the inverse temperature."""
    del quick, key  # nothing random
    beta, a = np.linspace(0, 4, 161), np.linspace(0, 1, 121)
    excess = push(a[None], beta[:, None]) - a
    found = mean_field(declared(), beta)
    first, *others = _branches(found)
    series = [Series("½ (tanh Δ + 1) − a₁", Kind.image, beta, a, values=excess), first, *others]
    panel = Panel("inverse temperature β", "a₁", tuple(series), ylim=(0, 1), key=False)
    caption = ("The difference of the two surfaces that the paper draws; where it vanishes lie the solutions (lines; dashed where they are unstable).")  # fmt: skip
    data = {"solutions": found, "excess": xr.Dataset({"excess": (("beta", "a_1"), excess)}, {"beta": beta, "a_1": a})}
    return Figure("lemm1999/figure_8", "Stationary states over the temperature", caption, (panel,), data)


def _branches(found: xr.Dataset) -> list[Series]:
    """The solution that is always there, and the two that appear."""
    a, stable, beta = found.responsibility.values[:, :, 0], found.stable.values, found.beta.values
    high, rest = np.nanmax(a, axis=1), []
    lines = [Series("solution for t₁", Kind.theory, beta, high)]
    for name, wanted in (("solution for t₂", True), ("between them", False)):
        y = np.full(len(beta), np.nan)
        for i, (values, fixed) in enumerate(zip(a, stable, strict=True)):
            mine = values[np.isfinite(values) & (fixed == wanted) & (values < high[i] - 1e-9)]
            y[i] = mine[0] if len(mine) else np.nan
        there = np.isfinite(y)
        rest.append(Series(name, Kind.theory, beta[there], y[there], unstable=np.full(there.sum(), not wanted)))
    return lines + rest


def joint(h: np.ndarray, beta: np.ndarray, seen: float, power: float = 1.0) -> np.ndarray:
    r"""$\beta^{power}$ times both Gaussians, of value and prior, at the same temperature. [lemm1999, eq. (538)]"""
    value = np.exp(-beta / 2 * (h - seen) ** 2)
    return beta**power * value * sum(np.exp(-beta / 2 * (h - t) ** 2) for t in TEMPLATES)


def _posterior(seen: float, power: float, title: str, most: float) -> tuple[Panel, xr.Dataset]:
    h, beta = np.linspace(-1.5, 1.5, 151), np.linspace(0, most, 151)
    p = joint(h[:, None], beta[None], seen, power)
    i, j = np.nonzero(p >= p.max() * (1 - 1e-12))  # at infinite temperature any h is as good
    image = Series("density, up to a constant", Kind.image, h, beta, values=p)
    top = Series("maximum", Kind.mark, np.array([h[i].mean()]), np.array([beta[j].mean()]))
    panel = Panel("h", "β", (image, top), title=title, key=False)
    about = {"h": float(h[i].mean()), "beta": float(beta[j].mean()), "edge": most}
    return panel, xr.Dataset({"density": (("h", "beta"), p)}, {"h": h, "beta": beta}, about)


def figure_9(*, quick: bool = False, key: Any = None) -> Figure:
    """Joint posterior of a number and a temperature, with two hyperpriors."""
    del quick, key  # nothing random
    cases = {"uniform p(β)": 1.0, "p(β) ∝ 1/β": 0.0}
    made = {title: _posterior(SEEN, power, title, 10.0) for title, power in cases.items()}
    caption = (f"Measured {SEEN:g}, expected near ±1, all with inverse variance β. The paper prints h² for (h - {SEEN:g})² and 1/√β for the prior that takes the factor β away (erratum F9). "
               + " ".join(f"{title}: maximum at h = {data.attrs['h']:.2f}, β = {data.attrs['beta']:.2f}." for title, (_, data) in made.items()))  # fmt: skip
    panels, data = tuple(panel for panel, _ in made.values()), {title: one for title, (_, one) in made.items()}
    return Figure("lemm1999/figure_9", "Joint posterior of a number and a temperature", caption, panels, data)


def figure_10(*, quick: bool = False, key: Any = None) -> Figure:
    """The same for other data."""
    del quick, key  # nothing random
    made = {f"measured {seen:g}": _posterior(seen, 1.0, f"measured {seen:g}", 25.0) for seen in (0.3, 0.5)}
    caption = ("As in figure 9, left, for other data. "
               + " ".join(f"{title}: maximum at h = {data.attrs['h']:.2f}, β = {data.attrs['beta']:.2f}." for title, (_, data) in made.items()))  # fmt: skip
    panels, data = tuple(panel for panel, _ in made.values()), {title: one for title, (_, one) in made.items()}
    return Figure("lemm1999/figure_10", "Joint posterior for other data", caption, panels, data)


def figure_11(*, quick: bool = False, key: Any = None) -> Figure:
    """Exact mixture coefficient and that of the maximum posterior."""
    del quick, key  # nothing random
    beta = np.linspace(0, 6, 121)
    found = mean_field(declared(), beta)
    exact, map_ = found.probability.values[:, 0], found.responsibility.values[:, 0, 0]
    series = (
        Series("exact, b₁", Kind.theory, beta, exact),
        Series("maximum posterior, a₁", Kind.theory, beta, map_, unstable=np.full(len(beta), True), dashes="approximation"),
    )  # fmt: skip
    panel = Panel("inverse temperature β", "share of the first template", series, ylim=(0.45, 1.02))
    caption = (f"b = 2, V₁ = {least_errors()[0]:g}, V₂ = {least_errors()[1]:g} by eq. (572); the paper prints twice that, 0.405 and 0.605 (erratum F11).")  # fmt: skip
    return Figure(
        "lemm1999/figure_11", "Mixture coefficients over the temperature", caption, (panel,), {"states": found}
    )


def cup(s: Any, height: float, width: float, power: float) -> np.ndarray:
    """The declared potential at some differences."""
    return np.asarray(Cup(height=height, width=width, power=power).value(np.asarray(s, float)))


def figure_12(*, quick: bool = False, key: Any = None) -> Figure:
    """Potentials that are not quadratic."""
    del quick, key  # nothing random
    s, panels, data = np.linspace(-40, 40, 401), [], {}
    words = {"(a)": "a cup with a cusp", "(b)": "a smooth cup", "(c)": "an inverted cup"}
    for name, (height, width, power) in CUPS.items():
        y = cup(s, height, width, power)
        title = f"{name} {words[name]}, γ = {power:g}"
        panels.append(Panel("filtered difference", "ψ", (Series("ψ", Kind.theory, s, y),), title=title, key=False))
        data[name] = xr.Dataset({"potential": ("difference", y)}, {"difference": s})
    caption = ("ψ(x) = a (1 - 1/(1 + (|x|/b)^γ)) with the numbers of the caption. The paper names the second one the one with a cusp; it is the first (erratum F12).")  # fmt: skip
    return Figure("lemm1999/figure_12", "Potentials that are not quadratic", caption, tuple(panels), data)


FIGURES = {f"figure_{n}": make for n, make in zip(range(7, 13), (figure_7, figure_8, figure_9, figure_10, figure_11, figure_12), strict=True)}  # fmt: skip
"""Those of chapter 6 that have one variable."""


def _energy(h: np.ndarray, beta: float, seen: float = SEEN) -> np.ndarray:
    """Minus the logarithm of value and mixture, without what depends on the temperature alone."""
    return -np.asarray(special.logsumexp([-beta / 2 * ((h - seen) ** 2 + (h - t) ** 2) for t in TEMPLATES], axis=0))


def _minima(beta: float) -> np.ndarray:
    """a_1 at the minima of the energy over h, by search."""
    h = np.linspace(-1.2, 1.2, 2401)
    E = _energy(h, beta)
    dips = np.flatnonzero((E[1:-1] < E[:-2]) & (E[1:-1] < E[2:])) + 1
    search: Any = optimize.minimize_scalar
    best = [search(lambda x: float(_energy(np.array(x), beta)), bounds=(h[i - 1], h[i + 1]), method="bounded", options={"xatol": 1e-12}).x for i in dips]  # fmt: skip
    return np.sort([float(special.expit(2 * beta * x)) for x in best])


def _means(beta: float, seen: float = SEEN) -> tuple[float, float]:
    """Probability of the first template and mean of a new value, by integration over h."""
    h = np.linspace(-1, 1, 16_001) * (2 + 12 / np.sqrt(beta))
    parts = np.array([np.exp(-beta / 2 * ((h - seen) ** 2 + (h - t) ** 2)) for t in TEMPLATES])
    return float(parts[0].sum() / parts.sum()), float((parts @ h).sum() / parts.sum())


def temperature_claims(made: dict[int, Figure]) -> list[Claim]:
    """Statements of section 6.3 and of figures 7 to 12."""
    problem = declared()
    counts = [int(mean_field(problem, beta).solutions[0]) for beta in SHOWN]
    turns = find_bifurcations(problem)
    turn = float(turns.beta[0])
    off = max(float(np.max(np.abs(np.sort(_states(beta)[0]) - _minima(beta)))) for beta in SHOWN)
    middle = (SEEN + np.array(TEMPLATES)) / 2
    hot, cold = mean_field(problem, 1e-6).isel(beta=0), mean_field(problem, 60.0).isel(beta=0)
    share = np.sort(cold.responsibility.values[cold.stable.values][:, 0])
    exact = {beta: _means(beta) for beta in (0.5, 2.0, 4.0)}
    gap = max(abs(b - float(mean_field(problem, beta).probability[0, 0])) for beta, (b, _) in exact.items())
    closed = max(abs(b - special.expit(0.1 * beta)) for beta, (b, _) in exact.items())
    twice = max(abs(b - special.expit(0.2 * beta)) for beta, (b, _) in exact.items())
    limits = _means(1e-3)[1], _means(200.0)[1]
    a = float(mean_field(problem, 2.0).responsibility[0, 0, 0])
    fixed = float(special.expit(2 * 2.0 * (a * middle[0] + (1 - a) * middle[1])))
    peaks = {n: [one.attrs["beta"] for one in made[n].data.values()] for n in (9, 10)}
    second = {seen: _secondary(seen) for seen in (0.1, 0.3, 0.5)}
    steep = {name: float(cup(1e-9, *CUPS[name]) / 1e-9) for name in ("(a)", "(b)")}
    cheap = {name: float(cup(20.0, *CUPS[name]) / (20 * cup(1.0, *CUPS[name]))) for name in CUPS}
    return [
        Claim("figure 7", "one stable solution at β = 2, two stable and one unstable at β = 4", "1 and 3", f"{counts[0]} and {counts[2]}", "solutions of (569) between its turning points", near(counts[0], 1, within=0) & near(counts[2], 3, within=0)),
        Claim("figure 7", "β = 2.75 is near the bifurcation", "near", f"two solutions appear at β = {turn:.6f}", "where (569) has a double root", near(turn, 2.75, within=0.1)),
        Claim("equations (563), (569)", "stationary states solve a₁ = ½ (tanh Δ + 1)", "mean field", f"within {off:.0e}", "minima of the energy over h, by search, at three temperatures", below(off, 1e-6, what="largest difference of a₁")),
        Claim("equations (547), (560)", "at high temperature the solution is the mean of the component solutions", "a_j⁰ = 1/2", f"a₁ = {float(hot.responsibility[0, 0]):.6f} at β = 10⁻⁶", "the declared problem", near(float(hot.responsibility[0, 0]), 0.5, within=1e-4) & near(int(hot.solutions), 1, within=0)),
        Claim("equations (553) to (556)", "at low temperature the component solutions become stable", "all that are stable", f"a₁ = {share[0]:.0e} and 1 - {1 - share[-1]:.0e} at β = 60", "the same", near(len(share), 2, within=0) & below(share[0], 1e-6) & below(1 - share[-1], 1e-6)),
        Claim("equations (571) to (575)", "the exact mixture coefficients are b_j ∝ exp(-β Ẽ_0j)", "exact", f"within {gap:.0e}; b₁ = 1/(1 + exp(-0.1 β)) within {closed:.0e}", "integration over h at three temperatures", below(gap, 1e-9, what="difference") & below(closed, 1e-9, what="closed form")),
        Claim("equation (576)", "in saddle point approximation b_j is a_j(h*)", "equal", f"{fixed:.8f} and {a:.8f}", "probability of the first template at the field of least energy, β = 2", near(fixed, a, within=1e-9)),
        Claim("equations (579), (580)", "the mean goes from the average of the components to the one closest to the data", "limits", f"{limits[0]:.4f} at β = 0.001 and {limits[1]:.4f} at 200; average {middle.mean():.4f}, first component {middle[0]:.4f}", "integration over h", near(limits[0], middle.mean(), within=1e-3) & near(limits[1], middle[0], within=1e-3)),
        Claim("caption of figure 9", "for uniform p(β) the maximum is at finite β, for the compensating one at β = 0", "finite, 0", f"β = {peaks[9][0]:.2f} and {peaks[9][1]:.2f}", "both densities on a mesh", above(peaks[9][0], 0.1, what="left") & below(peaks[9][0], 9.9, what="left, inside the mesh") & below(peaks[9][1], 0.0, what="right")),
        Claim("figure 10", "with data farther to one side the maximum on the other side becomes lower", "varying data", f"height of the second maximum beside the first: {', '.join(f'{ratio:.2f} at {seen:g}' for seen, ratio in second.items())}", "the largest density with h < 0 and h > 0; the paper shows pictures only", above(second[0.1] - second[0.3], 0.0, what="from 0.1 to 0.3") & above(second[0.3] - second[0.5], 0.0, what="from 0.3 to 0.5")),
        Claim("caption of figure 11", "Ẽ₁ = 0.405, Ẽ₂ = 0.605", "0.405, 0.605", f"{least_errors()[0]:.4f}, {least_errors()[1]:.4f}; b₁ with the printed ones is off by up to {twice:.2f}", f"eq. (572), and b₁ by integration, within {closed:.0e} (erratum F11)", below(twice, 1e-6, what="b₁ as printed"), below(closed, 1e-6, what="b₁ with half of that")),
        Claim("caption of figure 12", "(b) has the cusp", "(b), γ = 2", f"(a), γ = 0.7: slope at 10⁻⁹ {steep['(a)']:.0f}, and {steep['(b)']:.0e} for (b)", "difference quotients (erratum F12)", above(steep["(b)"], 1e-3, what="slope of (b)"), above(steep["(a)"], 1.0, what="slope of (a)") & below(steep["(b)"], 1e-3, what="slope of (b)")),
        Claim("section 6.5", "for cups with flat tails one large step is cheaper than many small ones", "cheaper", f"a step of 20 costs {cheap['(a)']:.2f} of twenty of 1 for (a), {cheap['(b)']:.2f} for (b)", "figure 12", below(cheap["(a)"], 0.5, what="(a)") & below(cheap["(b)"], 1.0, what="(b)")),
    ]  # fmt: skip


def _secondary(seen: float) -> float:
    """The height of the maximum on the side of the second template beside that of the first, uniform p(β)."""
    h, beta = np.linspace(0.02, 1.5, 149), np.linspace(0.05, 10, 200)
    return float(joint(-h[:, None], beta[None], seen).max() / joint(h[:, None], beta[None], seen).max())


def misprints() -> list[Misprint]:
    """Of section 6.3 and figure 9."""
    beta, h, step = 1.7, 0.35, 1e-5
    E = np.array([0.5 * (h - SEEN) ** 2 + 0.5 * (h - t) ** 2 for t in TEMPLATES])

    def whole(beta: float) -> float:
        return -float(np.asarray(special.logsumexp(-beta * E + np.log(beta))))  # d = n = 1

    slope = (whole(beta + step) - whole(beta - step)) / (2 * step)
    a, prior = special.softmax(-beta * E), E - 0.5 * (h - SEEN) ** 2
    y, at = np.array([0.3, 0.9, -0.2, 1.4, 0.8]), np.array([0, 0, 1, 1, 1])
    n, means = np.bincount(at), np.bincount(at, y) / np.bincount(at)
    spread = np.bincount(at, y**2) / n - means**2
    f = np.array([0.5, -0.1])
    rest = float(np.sum((y - f[at]) ** 2) - np.sum(n * (f - means) ** 2))
    both: Any = optimize.minimize_scalar(lambda x: (x - SEEN) ** 2 + sum(0.5 * (x - t) ** 2 for t in TEMPLATES))
    ends = []
    for temperature in (60.0, 1e-6):
        a_1 = float(mean_field(declared(), temperature).responsibility[0, 0, 0])
        ends.append(a_1 * (SEEN + TEMPLATES[0]) / 2 + (1 - a_1) * (SEEN + TEMPLATES[1]) / 2)
    V, exact = least_errors(), _means(beta)[0]
    line, hot = np.linspace(-1.5, 1.5, 61)[:, None], np.linspace(0.5, 6, 12)[None]
    law = (
        np.sqrt(hot)
        * np.exp(-hot / 2 * (line - SEEN) ** 2)
        * np.sqrt(hot)
        * sum(np.exp(-hot / 2 * (line - t) ** 2) for t in TEMPLATES)
    )
    phi = np.linspace(-9, 9, 1801)
    parts = [np.exp(-((phi - t) ** 2)) for t in TEMPLATES]
    kinds = {"printed": parts[0] / sum(parts), "right": np.sqrt(parts[0]) / np.sqrt(2 * np.pi)}
    whole_of = {name: float(np.sum(values) * (phi[1] - phi[0])) for name, values in kinds.items()}
    shapes = {off: joint(line, hot, off, 0.0) for off in (0.0, SEEN)}
    spread_of = {
        power: float(np.ptp(np.log(law / hot**power / shapes[off]))) for power, off in ((0.5, 0.0), (1.0, SEEN))
    }
    return [
        Misprint("F539", "equation (539)", "the energy of a component in (538)", "E_D + E_0j + E_θβj", "β (E_D + E_0j) + E_θβj", "minus the logarithm of a component of (538) at β = 1.7", float(np.max(np.abs(E - beta * E))), float(np.max(np.abs(-np.log(np.exp(-beta * E)) - beta * E)))),
        Misprint("F541", "after equation (541)", "what repeated data add, V_D", "Σ V_i", "Σ n_i V_i", "sum of squares of five values at two places, less that of their means", abs(float(spread.sum()) - rest), abs(float(n @ spread) - rest)),
        Misprint("F544", "equation (544)", "stationarity by β", "E_0j + (d + n)/2β", "E_hj - (d + n)/2β", "finite differences of (538), d = n = 1", abs(float(a @ (prior + 1 / beta)) - slope), abs(float(a @ (E - 1 / beta)) - slope), 1e-6),
        Misprint("F550", "equation (550)", "OR becomes AND in the limit", "β = ∞", "β = 0", "minimum of the sum of squares, and the stationary state at β = 60 and 10⁻⁶", abs(ends[0] - both.x), abs(ends[1] - both.x)),
        Misprint("F575", "after equation (575)", "mixture coefficients exp(-β Ẽ_j)", "Ẽ_j = β Ẽ_0j + E_θj", "exp(-Ẽ_j): β counts once", "integration over h at β = 1.7", abs(float(special.softmax(-beta * beta * V)[0]) - exact), abs(float(special.softmax(-beta * V)[0]) - exact)),
        Misprint("F586", "equation (586)", "normalisation of local alternatives at one x", "Z = Σ_θ exp(-|ω|²)", "Z = ∫dφ exp(-|ω|²/2) at fixed θ; (582) lacks the ½ of (496)", "integral of the prior of one of two alternatives over φ, from -9 to 9", abs(whole_of["printed"] - 1), abs(whole_of["right"] - 1)),
        Misprint("F9", "caption of figure 9", "joint posterior and the prior that takes its factor away", "h², and p(β) ∝ 1/√β", f"(h - {SEEN:g})², and 1/β", "by how much the logarithm of the product of both normal densities and the prior differs from the printed exponent over a mesh", spread_of[0.5], spread_of[1.0]),
    ]  # fmt: skip
