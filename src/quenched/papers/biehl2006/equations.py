"""Equations as they are printed, put to the test: each against runs of the learner, or against its own definition."""

from __future__ import annotations

import jax
import numpy as np
import xarray as xr

from quenched import prototypes
from quenched.core.claims import Check, Claim, above, agrees, near
from quenched.core.figures import Figure
from quenched.core.proof import PASSED, Agreement, agreement
from quenched.papers.biehl2006 import printed
from quenched.papers.biehl2006.figures import ALLOWANCE

TIMES = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.5, 10.0])
RULES = {"LVQ1": (prototypes.LVQ1(0.2), (0.0, 1.0)), "LVQ+": (prototypes.LVQPlus(0.2), (0.5, 0.5))}
LAWS = {"A": prototypes.TwoClusters(prior=0.8, separation=1.0), "B": prototypes.TwoClusters(0.6, 1.0, (0.81, 0.25))}
CLOSED = {9: ("LVQ1", "A"), 10: ("LVQ1", "B"), 11: ("LVQ1", "A"), 12: ("LVQ+", "A"), 13: ("LVQ1", "A"),
          14: ("LVQ+", "A"), 15: ("LVQ1", "A")}  # fmt: skip
"""Misprints of equation (29), by the number of the erratum, and a rule and a world that feel them."""


def equation_claims(figure: Figure) -> list[Claim]:
    """Printed equations that cannot stand as they are."""
    trial = Trial()
    return [*_single_claims(trial), _closed_claim(trial), _error_claim(figure), _density_claim()]


class Trial:
    """Equation (29), with misprints put back, against runs of the exact chain of the overlaps, each made once."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], xr.Dataset] = {}

    def simulated(self, rule: str, law: str) -> xr.Dataset:
        """200 runs at N = 400."""
        if (rule, law) not in self.runs:
            self.runs[rule, law] = prototypes.measure(
                LAWS[law], RULES[rule][0], alpha=TIMES, size=400, runs=200, key=jax.random.key(11),
                simulator=prototypes.Chain(), tests=1,  # only the overlaps are compared
            )  # fmt: skip
        return self.runs[rule, law]

    def compare(self, rule: str, law: str, misprints: frozenset[int] = frozenset()) -> Agreement | None:
        """The equation against the runs; None if it cannot be integrated."""
        found = printed.integrate(LAWS[law], RULES[rule][1], 0.2, TIMES, misprints)
        if found is None:
            return None
        points = self.simulated(rule, law)
        curve = points[["R", "Q"]].copy()
        curve["R"], curve["Q"] = (points.R.dims, found[0]), (points.Q.dims, found[1])
        return agreement(curve, points, variables=["R", "Q"], allowance=ALLOWANCE)

    def p(self, rule: str, law: str, misprints: frozenset[int] = frozenset()) -> float:
        """The p-value of that comparison, 0 if the equation cannot be integrated."""
        found = self.compare(rule, law, misprints)
        return 0.0 if found is None else found.p


SINGLE = (
    (5, "LVQ1", "A", "equation (5), R", "the recursion of R", "b_S − R_Sσ", "b_σ − R_Sσ, with σ the index of B"),
    (6, "LVQ1", "B", "equation (5), Q", "the term with η²", "Θ Θ g g", "times the variance of the example's cluster"),
    (7, "LVQ+", "A", "equation (17)", "the term with ab(l + m)", "Σ v p ⟨Θ⟩", "Σ s v p ⟨Θ⟩"),
    (8, "LVQ1", "A", "section 2.2", "averages over the mixture", "Σ ⟨…⟩", "Σ p ⟨…⟩"),
    (3, "LVQ1", "A", "equation (18)", "the threshold β of prototype l", "l (Q_ll − Q_−l−l)", "Q_ll − Q_−l−l"),
    (4, "LVQ1", "A", "after equation (26)", "the function Φ", "prefactor 1/(2π)", "prefactor (2π)^−1/2"),
)
"""Misprints that change the flow by themselves: erratum, rule and world that feel it, place, what, printed, ours."""


def _single_claims(trial: Trial) -> list[Claim]:
    found = []
    for number, rule, law, where, what, before, after in SINGLE:
        p, right = trial.p(rule, law, frozenset({number})), trial.compare(rule, law)
        assert right is not None
        found.append(Claim(
            where, what, before, f"{after}: p {right.chance}, as printed {p:.0e}",
            f"200 runs of {rule} at N = 400 against the flow with and without the misprint (erratum P{number})",
            above(p, PASSED, what="p as printed"), agrees(right)))  # fmt: skip
    return found


def _closed_claim(trial: Trial) -> Claim:
    alone = {number: trial.p(*felt, frozenset({number})) for number, felt in CLOSED.items()}
    together = trial.p("LVQ1", "A", frozenset(CLOSED))
    right: Check | None = None
    for rule, law in sorted(set(CLOSED.values())):
        one = trial.compare(rule, law)
        assert one is not None
        right = agrees(one) if right is None else right & agrees(one)
    assert right is not None
    return Claim(
        "equation (29)", "the differential equations in closed form", "as printed",
        f"{len(alone)} corrections; each misprint put back alone has p = {max(alone.values()):.0e} at most",
        "200 runs of LVQ1 and LVQ+ at N = 400 (errata P9 to P15)", above(together, PASSED, what="p as printed"),
        right & above(-max(alone.values()), -PASSED, what="minus the largest p of one misprint alone"))  # fmt: skip


def _error_claim(figure: Figure) -> Claim:
    law, points = LAWS["A"], figure.data["simulation"].isel(alpha=-1)
    state = figure.data["theory"].isel(alpha=-1)
    wrong, counted = printed.printed_error(law, state.R.values, state.Q.values), float(points.error)
    close = {"within": ALLOWANCE + 3 * float(points.error_stderr), "what": "error at α = 50"}
    return Claim(
        "equation (8)", "the generalisation error", "denominator √D, weight pσ",
        f"denominator 2√(vD), weight p of the summed class: {float(state.error):.4f}, not {wrong:.4f}, at α = 50 of figure 2",
        f"counted on fresh examples: {counted:.4f} ± {float(points.error_stderr):.4f} (erratum P1)",
        near(wrong, counted, **close), near(state.error, counted, **close))  # fmt: skip


def _density_claim() -> Claim:
    x = np.linspace(-9, 9, 2001)
    N = 2
    mass = float(np.trapezoid(np.exp(-(x**2) / 2), x)) ** N
    before, after = mass / np.sqrt(2 * np.pi**N), mass * (2 * np.pi) ** (-N / 2)
    return Claim(
        "equation (3)", "the density of a cluster", "prefactor 1/√(2π^N)",
        f"prefactor (2π)^(−N/2): it integrates to {after:.6f}, as printed to {before:.4f} in two dimensions",
        "a density integrates to 1 (erratum P16)", near(before, 1.0, within=1e-6, what="integral as printed"),
        near(after, 1.0, within=1e-6, what="integral"))  # fmt: skip
