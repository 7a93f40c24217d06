"""Figures and claims of Barkai and Sompolinsky (1994)."""

import re
from pathlib import Path

import numpy as np
import pytest

from quenched import mixtures
from quenched.core.claims import Verdict
from quenched.core.figures import Kind
from quenched.papers import barkai1994
from quenched.papers.barkai1994 import figures as drawn
from quenched.papers.barkai1994 import minima, printed, statements
from tests.papers import claimed

SMALL = {"size": 60, "runs": 10}


def make():
    """All figures: the theory as it is, experiments much smaller than the paper's."""
    patch = pytest.MonkeyPatch()
    smaller = (
        (mixtures, "measure", SMALL),
        (minima, "spectrum", {"size": 60, "starts": 8}),
        (minima, "follow", {"size": 150}),
    )
    for module, name, given in smaller:
        verb = getattr(module, name)
        patch.setattr(module, name, lambda *args, verb=verb, given=given, **kwargs: verb(*args, **kwargs | given))
    made = {name: make(quick=True) for name, make in barkai1994.FIGURES.items()}
    made["claims"] = barkai1994.claims(quick=True, figures=tuple(made.values()))
    patch.undo()
    return made


def figure_1_has_all_lines_where_they_belong(figures):
    *lines, regions = figures["figure_1"].panels[0].series
    assert regions.kind is Kind.word
    assert list(regions.names) == ["unsplit", "ordered", "random"]
    lines = {one.label: one for one in lines}
    assert len(lines) == 4
    ordered, dashed = lines["unsplit | ordered, σ₁"], lines["ordered | random"]
    assert np.all(np.isfinite(ordered.x))
    assert ordered.x[0] == pytest.approx(2.25, abs=1e-6)
    assert np.all(dashed.unstable)
    there = np.isfinite(dashed.x)
    assert dashed.y[there][0] == pytest.approx(4.0, abs=1e-6)
    assert dashed.y[there][-1] == pytest.approx(2 * np.pi, abs=1e-3)


def figures_2_and_3_dash_what_is_not_exact(figures):
    for name, edge in (("figure_2", 1.4487), ("figure_3", 1.5515)):
        theory = figures[name].panels[0].series[0]
        assert theory.kind is Kind.theory
        assert np.all(theory.unstable[theory.x < edge])
        assert not np.any(theory.unstable[theory.x > edge])
        assert figures[name].agreement


def figure_4_follows_minima_until_they_have_met(figures):
    path = figures["figure_4"].data["minima"]
    last = path.isel(width=-1)
    np.testing.assert_allclose(last.energy, last.annealed_energy, atol=1e-6)
    assert float(path.energy.isel(width=0).std()) > 1e-3


def every_statement_has_a_verdict_and_its_evidence(figures):
    claims = figures["claims"]
    assert len(claims) == 30
    claimed.check_numbers(claims)
    claimed.check([figures[name] for name in barkai1994.FIGURES], claims)
    for claim in claims:
        assert claim.ours
        assert claim.evidence
    corrected = [claim for claim in claims if claim.verdict is Verdict.corrected]
    cited = {name for claim in corrected for name in re.findall(r"errat\w+ (B\d+)", claim.evidence)}
    assert cited >= {"B1", "B2", "B3", "B4", "B5", "B6", "B7", "B11"}  # others rest on larger samples


def what_theory_alone_decides(figures):
    """These verdicts do not depend on the size of the experiments."""
    verdicts = {claim.statement: claim.verdict for claim in figures["claims"]}
    assert verdicts["α_c = 4 u₀⁻⁴"] is Verdict.reproduced
    assert verdicts["the least error is at the transition σ₁"] is Verdict.corrected
    assert verdicts["random phase below σ = 0.90"] is Verdict.corrected
    assert verdicts["the error is not least at the true width but at a higher one"] is Verdict.reproduced
    ours = {claim.statement: claim.ours for claim in figures["claims"]}
    assert ours["α_c = 4 u₀⁻⁴"] == "4.0000000000"
    assert ours["random phase below σ = 0.90"].startswith("0.8936")


def test_figures_and_claims():
    """In one test, so that they are made once."""
    figures = make()
    for check in (
        figure_1_has_all_lines_where_they_belong,
        figures_2_and_3_dash_what_is_not_exact,
        figure_4_follows_minima_until_they_have_met,
        every_statement_has_a_verdict_and_its_evidence,
        what_theory_alone_decides,
    ):
        check(figures)


def test_no_verdict_is_written_down():
    for module in (drawn, minima, printed, statements):
        claimed.check_source(Path(module.__file__))


def test_pairs_that_cross_are_counted():
    energies = np.array([[0.0, 1.0, 2.0], [0.5, 0.4, 2.0], [1.0, 0.0, 2.0]])
    assert statements.crossings(energies) == 1
    assert statements.crossings(energies[:, [0, 2]]) == 0
