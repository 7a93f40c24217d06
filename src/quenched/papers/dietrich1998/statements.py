r"""Every number and statement of the paper that can be checked, and the comparisons that decide each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched import outliers
from quenched.core.claims import Check, Claim, above, agrees, apart, below, near
from quenched.core.figures import Figure, comparison
from quenched.core.proof import Agreement
from quenched.outliers import measure
from quenched.papers.dietrich1998.figures import FIGURES, HARD, HEBB, LAW, SOFT, compare, find_lines, solve_printed
from quenched.papers.dietrich1998.onsets import onsets
from quenched.papers.dietrich1998.printed import critical_fraction

SURE = 3.0
"""Standard errors between an extrapolation and a theory that do not agree."""
DECIDED = ("Delta", "Phi")
"""By which variables a printed theory is tried."""


def claims(*, quick: bool = False, figures: Iterable[Figure] = ()) -> tuple[Claim, ...]:
    """Every number and statement of the paper that can be checked, ours beside it.

    Args:
        quick: fewer and smaller runs, as for the figures.
        figures: figures computed already, which need not be computed again.
    """
    known = {figure.key.split("/")[1]: figure for figure in figures}
    made = {name: known.get(name) or make(quick=quick) for name, make in FIGURES.items() if name != "figure_3"}
    return (
        *_learning_claims(made), *_theory_claims(made, quick=quick), *_soft_claims(made),
        *_hard_claims(made), *_run_claims(made, quick=quick), *_limit_claims(made),
    )  # fmt: skip


def _agrees(figure: Figure, name: str, where: str, statement: str, words: str, evidence: str) -> Claim:
    """The claim that rests on a comparison of theory and simulation in a figure."""
    proof = figure.agreement[name]
    ours = f"p {proof.chance}, largest deviation {proof.largest:.1f} standard errors beyond the allowance"
    return Claim(where, statement, words, ours, evidence, agrees(proof), rests_on=comparison(figure, name))


def _tried(points: xr.Dataset, size: int, values: dict[str, float]) -> Agreement:
    """A theory with these numbers against runs at one setting."""
    names = [name for name in DECIDED if name in values]
    here = points[[part for name in names for part in (name, f"{name}_run")]]
    return compare(xr.Dataset({name: values[name] for name in names}), here, size, names)


def _learning_claims(made: dict[str, Figure]) -> list[Claim]:
    """Statements on figures 1 and 2 and equation (30)."""
    floor = float(outliers.asymptote(LAW, HEBB).R - 1) ** 2
    naive = made["figure_1"].data["Hebb rule, simulation"].isel(alpha=-1)
    etas = [0.0, 2.0, 4.0]
    limit = outliers.asymptote(LAW, SOFT, eta=etas)
    late = outliers.curve(LAW, SOFT, alpha=2000.0, eta=etas, branch="informed")
    ratio = (late.Phi / (limit.Phi_amplitude / np.sqrt(2000.0))).values
    R, c = limit.R.values, limit.c.values
    along_alpha = made["figure_2"].data["many outliers"].Phi.values
    theory = made["figure_4"].data["theory"]
    along_eta = theory.isel(branch=theory.lowest.argmax("branch")).Phi.values
    many = made["figure_2"].data["many outliers"]
    jump = float(many.alpha[int(np.argmin(np.diff(along_alpha)))])
    share = 100 / (1 + np.exp(etas[-1]))
    agreed = "agreement of five variables"
    return [
        _agrees(made["figure_1"], "soft selection", "figure 1", "theory and simulation of soft selection, η = 0", "solid line through the points", agreed),
        _agrees(made["figure_1"], "Hebb rule", "figure 1", "theory and simulation of the Hebb rule", "solid line through the points", agreed),
        _agrees(made["figure_2"], "η = 0, α ≥ 5", "figure 2", "theory and simulation at η = 0", "solid line through the points", f"{agreed}, α ≥ 5"),
        Claim("section 5.1", "with all examples weighted equally the teacher is not recovered as α → ∞", "not recovered",
              f"Δ → {floor:.4f} at η = 0; {float(naive.Delta):.3f} ± {float(naive.Delta_stderr):.3f} in runs at α = {float(naive.alpha):g}",
              "closed form of the Hebb rule, and its simulation",
              above(floor, 0.1, what="limit of Δ") & above(float(naive.Delta), 0.1, stderr=float(naive.Delta_stderr), what="Δ of runs")),
        Claim("equation (30)", "Φ ≃ (1/π R∞) √(c/α); R∞ and c depend on η", "both depend on η",
              f"R∞ = {', '.join(f'{x:.6f}' for x in R)} at η = 0, 2, 4; c = {', '.join(f'{x:.4g}' for x in c)}",
              f"R∞ = 1 for every η if γ̃ = γ; at α = 2000 Φ is {ratio[0]:.4f}, {ratio[1]:.4f}, {ratio[2]:.4f} of the expansion",
              apart(np.ptp(R), 0.0, by=1e-6, what="change of R∞") & above(np.ptp(c), 0.01, what="change of c"),
              below(np.max(np.abs(R - 1)), 1e-6, what="|R∞ - 1|") & above(np.ptp(c), 0.01, what="change of c")
              & near(ratio[0], 1.0, within=0.02, what="Φ over the expansion at η = 0")),
        Claim("section 5.1", "at η = 4 about 1.8% of the examples are informative", "1.8%", f"{share:.2f}%", "1/(1 + e^η)",
              near(share, 1.8, within=0.05)),
        Claim("section 5.1, on figure 2", "a sudden drop of the error as η is varied", "as η is varied", f"as α is varied: at η = 4 between α = {jump:.3g} and the next point",
              "figure 2 has α on its axis, and as η grows the error rises (erratum E9); replica symmetry is broken there",
              above(-np.min(np.diff(along_eta)), 0.15, what="largest fall of Φ along η"),
              above(-np.min(np.diff(along_alpha)), 0.15, what="largest fall of Φ along α")),
    ]  # fmt: skip


def _theory_claims(made: dict[str, Figure], *, quick: bool) -> list[Claim]:
    """Statements of sections 3 and the appendices: printed equations against the experiments that decide them."""
    size = 300 if quick else 500
    points = measure(LAW, SOFT, alpha=5.0, eta=2.4, size=size, runs=40, key=jax.random.key(11))
    exact, wrong = outliers.curve(LAW, SOFT, alpha=5.0, eta=2.4, branch="informed"), solve_printed(SOFT, 5.0, 2.4)
    soft = {name: _tried(points, size, values) for name, values in
            (("printed", wrong), ("exact", {name: float(exact[name]) for name in DECIDED}))}  # fmt: skip
    at, wrong_hard = outliers.curve(LAW, HARD, alpha=20.0, eta=2.0, branch="informed"), solve_printed(HARD, 20.0, 2.0)
    teacher = made["figure_6"].data["teacher start"].sel(eta=2.0)
    hard = {name: _tried(teacher, 100, values) for name, values in
            (("printed", wrong_hard), ("exact", {name: float(at[name]) for name in DECIDED}))}  # fmt: skip
    start, counted = float(find_lines(HARD).trivial_start), _first_selected(10.0, 10.0)
    again = _posterior()
    return [
        Claim("equation (A2)", "the free energy as β → ∞", f"Δ = {wrong['Delta']:.4f} at α = 5, η = 2.4", f"Δ = {float(exact.Delta):.4f}",
              f"(A2) is one Newton step, not the limit (erratum E1); runs at N = {size}: {float(points.Delta):.4f} ± {float(points.Delta_stderr):.4f}",
              agrees(soft["printed"]), agrees(soft["exact"])),
        Claim("equations (B3), (B4)", "free energy and order parameters of hard selection", f"Φ = {wrong_hard['Phi']:.4f} at α = 20, η = 2", f"Φ = {float(at.Phi):.4f}",
              f"a factor of 2 in the noise term (erratum E5); teacher starts at N = 100 give {float(teacher.Phi):.4f} ± {float(teacher.Phi_stderr):.4f}",
              agrees(hard["printed"]), agrees(hard["exact"])),
        Claim("equation (31)", "selecting nothing becomes stable at η₀ = -γ̃/2 + γ̃²/4γ", "-2.5", f"{start:.4f}",
              "energy of selecting one example out of none: η₀ = -γ̃/2 + γ̃²/2γ (erratum E6)",
              near(counted, -2.5, within=0.01, what="η at which one example costs nothing"), near(counted, start, within=0.01, what="the same")),
        Claim("section 3", "at β = 1 student and teacher are alike, and replica symmetry is exact", "usually considered exact",
              f"R = q and Q = 1 to {again['off']:.0e}, stability value at most {again['stability']:.3f} at α = 5, η = 0 and 2, and α = 20, η = 3",
              "theory of Gibbs learning", below(again["off"], 1e-8, what="|R - q| and |Q - 1|") & below(again["stability"], 1.0, what="stability value")),
    ]  # fmt: skip


def _first_selected(gamma: float, gt: float, N: int = 10**7) -> float:
    """The eta at which selecting one example out of none costs nothing, of its energy at large N."""
    a = 1 + gt / N
    return gt**2 / (2 * a * gamma) - N / 2 * np.log(a)


def _posterior() -> dict[str, float]:
    """How far a vector drawn from the posterior is from being one more teacher, and its stability."""
    found = [outliers.curve(LAW, outliers.Gibbs(), alpha=alpha, eta=eta, branch="informed") for alpha, eta in ((5.0, 0.0), (5.0, 2.0), (20.0, 3.0))]  # fmt: skip
    off = max(max(abs(float(one.R - one.q)), abs(float(one.Q - 1))) for one in found)
    return {"off": off, "stability": max(float(one.stability) for one in found)}


def _soft_claims(made: dict[str, Figure]) -> list[Claim]:
    """Statements on figures 3 and 4."""
    lines = find_lines(SOFT)
    T1, T2, edge = (float(lines[name]) for name in ("informed_overfit", "overfit_trivial", "replica_symmetry"))
    stability = float(outliers.curve(LAW, SOFT, alpha=20.0, eta=T1, branch="informed").stability)
    none, some = outliers.transitions(LAW, SOFT, alpha=[5.3, 5.6]).informed_overfit_outcome.values
    scaling, figure = made["figure_4"].data["scaling"], made["figure_4"]
    limit, error = float(scaling.informative_limit), float(scaling.informative_limit_stderr)
    share = 1 / (1 + np.exp(T1))
    teacher, random = figure.data["teacher start"], figure.data["random start"]
    between = (random.Phi_run - teacher.Phi_run).sel(eta=4.0)
    late = _lowest(figure.data["theory"], [7.0, 8.0])
    off, off_error = (random.Phi.sel(eta=[7.0, 8.0]) - late.Phi), random.Phi_stderr.sel(eta=[7.0, 8.0])
    R_falls, Q_falls = (_half(random[name]) for name in ("R", "Q"))
    return [
        Claim("figure 3", "three solutions, and a jump of the order parameters", "one transition",
              f"two: R drops at η = {T1:.4f}, Q at {T2:.3f} (α = 20)",
              f"continuation of the saddle point (erratum E10); the first one is {none} at α = 5.3, {some} at 5.6; both in the region of broken replica symmetry",
              below(T2 - T1, 0.5, what="η between the drops of R and Q"), above(T2 - T1, 2.0, what="η between the drops of R and Q")),
        Claim("section 3", "effects of replica-symmetry breaking are small", "no stability analysis",
              f"the informed state is stable up to η = {edge:.3f} at α = 20, so not at its transition, where the value is {stability:.2f}", "de Almeida-Thouless value of each state",
              below(stability, 1.0, what="stability value at the transition"), above(T1 - edge, 0.01, what="η from there to the transition")),
        _agrees(figure, "η ≤ 3, N = 100", "figure 4", "good agreement of theory and simulation at small η", "good", "teacher starts, five variables, η ≤ 3"),
        Claim("section 5.1", "good agreement of theory and simulation at large η", "good",
              f"Φ = {float(random.Phi.sel(eta=8.0)):.3f} ± {float(off_error[1]):.3f} against {float(late.Phi[1]):.3f} at η = 8",
              f"random starts, N = 100; in Φ only: Q is {float(random.Q.sel(eta=8.0)):.3f} in runs, {float(late.Q[1]):.3f} in the state of least free energy",
              near(float(off[0]), 0.0, within=0.05, stderr=float(off_error[0]), what="Φ off at η = 7") & near(float(off[1]), 0.0, within=0.05, stderr=float(off_error[1]), what="at 8")),
        Claim("figure 4", "discrepancies close to the transition", "yes",
              f"η = 3.5: Φ = {float(random.Phi.sel(eta=3.5)):.3f} from random starts, {float(teacher.Phi.sel(eta=3.5)):.3f} from the teacher; "
              f"η = 4: {float(random.Phi.sel(eta=4.0)):.3f} and {float(teacher.Phi.sel(eta=4.0)):.3f}",
              "the same samples, N = 100: EM loses the informed state before it ends",
              above(float(between.mean()), 0.02, stderr=_error(between), what="Φ between the starts at η = 4")),
        Claim("figure 4, inset", "finite-size scaling extrapolates to the predicted transition", "good agreement",
              f"{limit:.4f} ± {error:.4f} against {share:.4f} of theory",
              f"{abs(limit - share) / error:.1f} standard errors apart; random starts of EM, whose onset is not that of the least energy",
              below(abs(limit - share) / error, SURE, what="standard errors"), above((limit - share) / error, SURE, what="standard errors above the theory")),
        Claim("figure 4, caption", "R and Q show a transition at slightly different η, as N is finite; so the bar at η = 6.8", "slightly different",
              f"R has fallen by half at η = {R_falls:.2f}, Q at {Q_falls:.2f}; as N → ∞ at {T1:.2f} and {T2:.2f}",
              "random starts at N = 100, by straight lines; theory (erratum E10): not an effect of finite N",
              below(Q_falls - R_falls, 0.5, what="η between the falls in runs") & below(T2 - T1, 0.5, what="and in theory"),
              above(Q_falls - R_falls, 0.5, what="η between the falls in runs") & above(T2 - T1, 0.5, what="and in theory")),
    ]  # fmt: skip


def _error(runs: xr.DataArray) -> float:
    """The standard error of a mean over runs."""
    return float(runs.std(ddof=1) / np.sqrt(runs.size))


def _lowest(curve: xr.Dataset, etas: list[float]) -> xr.Dataset:
    """The states of least free energy."""
    here = curve.sel(eta=etas)
    return here.isel(branch=here.lowest.argmax("branch"))


def _half(values: xr.DataArray) -> float:
    """The eta at which a mean has fallen to half of its first value, by straight lines."""
    y, x = values.values, values.eta.values
    i = int(np.argmax(y < y[0] / 2))
    return float(x[i - 1] + (x[i] - x[i - 1]) * (y[i - 1] - y[0] / 2) / (y[i - 1] - y[i]))


def _hard_claims(made: dict[str, Figure]) -> list[Claim]:
    """Statements on figures 5 and 6."""
    lines = find_lines(HARD)
    first, last, T1, T2 = (
        float(lines[name]) for name in ("overfit_start", "informed_end", "informed_overfit", "overfit_trivial")
    )
    middle = outliers.curve(LAW, HARD, alpha=20.0, eta=(first + last) / 2)
    states, overfit = int((middle.outcome == "converged").sum()), middle.sel(branch="overfit")
    at, soft = (outliers.curve(LAW, rule, alpha=20.0, eta=2.0, branch="informed") for rule in (HARD, SOFT))
    both = [made[name].data["random start"].Phi_run.sel(eta=3.0) for name in ("figure_4", "figure_6")]
    runs = both[0] - both[1]
    return [
        _agrees(made["figure_6"], "η ≤ 3, N = 100", "figure 6", "theory and simulation of hard selection", "agree away from the transition",
                "teacher starts and exact descent, η ≤ 3; replica symmetry is never stable here"),
        Claim("section 5.2", "two solutions", "informed and trivial", f"an overfitted one between η = {first:.3f} and {float(lines.overfit_end):.3f}",
              "continuation at α = 20 (erratum E11); replica-symmetric",
              below(states, 2, what=f"states at η = {(first + last) / 2:.2f}"),
              above(states, 3, what="states") & below(float(overfit.R), 0.2, what="R of the third") & above(float(overfit.Q), 0.5, what="its Q")),
        Claim("figure 5", "beyond a critical η selecting nothing is best", "one line", f"α = 20: informed to overfitted at {T1:.3f}, overfitted to trivial at {T2:.2f}",
              "both replica-symmetric where that is an approximation",
              below(T2 - T1, 0.1, what="η between the end of the informed state and the trivial one"), above(T2 - T1, 1.0, what="the same")),
        Claim("figure 6", "soft selection should be preferred", "preferred", f"α = 20, η = 2: Φ = {float(soft.Phi):.4f} soft, {float(at.Phi):.4f} hard",
              f"theory; random starts on the same samples at η = 3, N = 100: {float(both[0].mean()):.3f} soft, {float(both[1].mean()):.3f} hard",
              below(float(soft.Phi - at.Phi), 0.0, what="Φ soft minus hard in theory") & below(float(runs.mean()), 0.0, stderr=_error(runs), what="in runs")),
    ]  # fmt: skip


def _run_claims(made: dict[str, Figure], *, quick: bool) -> list[Claim]:
    """Statements on single runs of hard selection and their scaling."""
    teacher, random = (made["figure_6"].data[f"{name} start"] for name in ("teacher", "random"))
    higher = (random.free_energy_run > teacher.free_energy_run + 1e-9).sel(eta=3.0)
    share = float(higher.mean())
    R = random.R_run.sel(eta=3.0).values / float(teacher.R.sel(eta=3.0))
    low, high = np.mean(R < 0.4), np.mean(R > 0.6)
    sizes = [10, 20, 40] if quick else [25, 50, 100]
    scaling = onsets(
        LAW, HARD, alpha=20.0, sizes=sizes, eta=np.linspace(0.0, 4.0, 9), runs=40, start=outliers.RandomStart(),
        key=jax.random.key(8),
    )  # fmt: skip
    limit, error = float(scaling.eta_limit), float(scaling.eta_limit_stderr)
    T1 = float(find_lines(HARD).informed_overfit)
    return [
        Claim("section 5.2", "effects of metastability could not be observed", "none",
              f"η = 3: {share:.0%} of random starts end above the energy of the teacher start on the same sample", "N = 100, EM and descent by single flips",
              below(share, 0.05, stderr=np.sqrt(share * (1 - share) / higher.size), what="share of random starts")),
        Claim("section 5.2", "single runs tend clearly to either of two optima", "two",
              f"η = 3: {low:.0%} of the runs have less than 0.4 of the informed overlap, {high:.0%} more than 0.6", f"{len(R)} random starts at N = 100",
              below(np.mean((R >= 0.4) & (R <= 0.6)), 0.1, what="share of runs between") & above(low, 0.1, what="share near nothing") & above(high, 0.1, what="share informed")),
        Claim("section 5.2", "finite-size scaling of hard selection does not agree with the theory, shifted to smaller η", "not satisfactory",
              f"onset at η = {limit:.2f} ± {error:.2f} as N → ∞ (N = {', '.join(map(str, sizes))}), theory {T1:.3f}", "random starts of EM and descent",
              _decided((T1 - limit) / error, SURE, "standard errors below the theory")),
    ]  # fmt: skip


def _decided(value: float, bound: float, what: str) -> Check | None:
    """A comparison, if there is a number: an onset may lie outside the sweep."""
    return above(value, bound, what=what) if np.isfinite(value) else None


def _limit_claims(made: dict[str, Figure]) -> list[Claim]:
    """Statements on unlimited examples and figure 7."""
    many = outliers.asymptote(LAW, SOFT, eta=[0.0, 5.0, 10.0]).R.values
    critical = critical_fraction
    low, high = 0.27, 0.29
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if critical(middle).eta > 0 else (middle, high)
    cold, energy = (made["figure_7"].data[f"simulation {i}"] for i in (0, 1))
    bracket = min(critical(gamma).bracket for gamma in (0.3, 1.0, 5.0))
    return [
        Claim("section 5.2", "soft selection tolerates any fraction of outliers", "any", f"R∞ = {', '.join(f'{R:.6f}' for R in many)} at η = 0, 5, 10", "population limit",
              near(np.min(many), 1.0, within=1e-6, what="least R∞")),
        Claim("equation (B5)", "hard selection has a critical fraction even at α = ∞", f"η_c = {critical(1.0).eta:.3f} at γ = 1",
              f"none; energy over N at γ = 1, η = 5, α = 10000: {_value(energy)}, below 0",
              f"every root of (B5) has R < 0 (its bracket is at least {bracket:.2g} > 0); the population energy of the best overlap is negative for all γ and η (erratum E7)",
              above(float(energy.free_energy), 0.0, stderr=float(energy.free_energy_stderr), what="least energy beyond η_c")),
        Claim("figure 7", "below γ = 0.278 the critical η jumps to zero", "0.278",
              f"(B5) has no root below γ = {high:.5f}; but at γ = 0.2, η = 0.5 the energy is {_value(cold)}: there is no critical η at any γ",
              "hard EM where learning was said to be impossible (erratum E7)",
              near(high, 0.278, within=5e-4, what="end of the roots of (B5)") & above(float(cold.free_energy), 0.0, stderr=float(cold.free_energy_stderr), what="least energy below it")),
    ]  # fmt: skip


def _value(points: Any) -> str:
    return f"{float(points.free_energy):.2f} ± {float(points.free_energy_stderr):.2f}"
