"""Figures and claims of Dietrich and Opper (1998)."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

from quenched import outliers
from quenched.core.claims import Verdict
from quenched.core.figures import Kind
from quenched.core.proof import agreement
from quenched.papers import dietrich1998
from quenched.papers.dietrich1998 import figures as drawn
from quenched.papers.dietrich1998 import statements
from tests.papers import claimed

SMALL = {"size": 40, "runs": 10}


def make():
    """All figures and claims: theory at fewer sample sizes, experiments much smaller than the paper's."""
    patch = pytest.MonkeyPatch()
    patch.setattr(drawn, "QUICK_SIZES", 6)
    few = {"sizes": [10, 20], "runs": 20}
    for home, name, given in (outliers, "measure", SMALL), (drawn, "onsets", few), (statements, "onsets", few):
        verb = getattr(home, name)
        patch.setattr(home, name, lambda *args, verb=verb, given=given, **kwargs: verb(*args, **kwargs | given))
    patch.setattr(
        drawn, "_beyond", lambda *one, **given: outliers.measure(drawn.LAW, drawn.HARD, alpha=20.0, key=given["key"])
    )
    made = {name: make(quick=True) for name, make in dietrich1998.FIGURES.items()}
    made["claims"] = dietrich1998.claims(quick=True, figures=tuple(made.values()))
    patch.undo()
    return made


def every_figure_is_drawn_from_finite_numbers(figures):
    for name in dietrich1998.FIGURES:
        for panel in figures[name].panels:
            for series in panel.series:
                assert series.x.shape == series.y.shape
                assert np.all(np.isfinite(series.y)), (name, series.label)


def unstable_theory_is_dashed(figures):
    for name in ("figure_4", "figure_6"):
        theory = figures[name].panels[0].series[0]
        assert theory.kind is Kind.theory
        eta = theory.x
        if name == "figure_4":  # soft selection is stable up to 3.84, and again where it selects next to nothing
            assert not np.any(theory.unstable[eta < 3.8])
            assert np.all(theory.unstable[(eta > 3.95) & (eta < 7.9)])
        else:  # hard selection never is, unless it selects nothing
            assert np.all(theory.unstable[eta < 5.5])
            assert not np.any(theory.unstable[eta > 5.8])
    theory = [one for one in figures["figure_5"].panels[0].series if one.kind is Kind.theory]
    assert [one.label for one in theory][-1] == "informed state stable below"
    assert len(theory) == 3
    assert all(np.all(one.unstable) for one in theory[:-1])


def s_shapes_are_whole(figures):
    """Each line ends where the next one begins, and none bridges what lies between two pieces of a branch."""
    for name in ("figure_4", "figure_6"):
        series = figures[name].panels[0].series
        turn = next(one for one in series if one.label == "unstable, between them")
        (informed,) = [one for one in series if one.label == "informed, not the least"]
        overfit = [one for one in series if one.label == "overfit, not the least"]
        assert abs(informed.y[-1] - turn.y[-1]) < 0.01
        assert abs(overfit[0].y[0] - turn.y[0]) < 0.01
        assert max(np.diff(one.x).max() for one in (informed, *overfit) if len(one.x) > 1) < 0.2


def figure_2_jumps(figures):
    theory = figures["figure_2"].data["many outliers"]
    assert float(theory.Phi.max()) > 0.45
    assert float(theory.Phi.min()) < 0.2
    assert np.abs(np.diff(theory.Phi.values)).max() > 0.15


def figure_7_has_the_printed_jump(figures):
    series = figures["figure_7"].panels[0].series[0]
    assert np.all(series.y[series.x <= 0.278] == 0)
    assert np.all(series.y[series.x >= 0.2784] > 0.7)
    assert np.all(figures["figure_7"].panels[1].series[0].y > 0)


def every_statement_has_a_verdict_and_its_evidence(figures):
    claims = figures["claims"]
    assert len(claims) == 28
    claimed.check_numbers(claims)
    claimed.check([figures[name] for name in dietrich1998.FIGURES], claims)
    for claim in claims:
        assert claim.ours
        assert claim.evidence
        assert "nan" not in claim.ours
    amended = [claim for claim in claims if claim.verdict in (Verdict.corrected, Verdict.refuted)]
    cited = {name for claim in amended for name in re.findall(r"errat\w+ (E\d+)", claim.evidence)}
    assert cited >= {"E1", "E6", "E7", "E9", "E10", "E11"}  # that on E5 rests on runs at N = 100


def what_theory_alone_decides(figures):
    """These verdicts do not depend on the size of the experiments."""
    claims = {claim.where: claim for claim in figures["claims"]}
    assert claims["equation (A2)"].verdict is Verdict.corrected
    assert claims["equation (A2)"].ours == "Δ = 0.2824"
    assert claims["equation (31)"].ours == "0.0000"
    assert claims["equations (B3), (B4)"].ours == "Φ = 0.0758"
    assert claims["equation (B5)"].verdict is Verdict.refuted
    assert "0.27836" in claims["figure 7"].ours
    assert {claim.verdict for claim in figures["claims"]} >= {Verdict.reproduced, Verdict.corrected, Verdict.refuted}


def test_the_printed_hard_theory_is_rejected_by_its_angle():
    """Granted 0.02, which is a quarter of it, the angle of (B4) would pass."""
    points = outliers.measure(drawn.LAW, drawn.HARD, alpha=20.0, eta=2.0, size=100, runs=40, key=jax.random.key(4))
    exact = outliers.curve(drawn.LAW, drawn.HARD, alpha=20.0, eta=2.0, branch="informed")
    wrong = drawn.solve_printed(drawn.HARD, 20.0, 2.0)
    assert statements._tried(points, 100, {name: float(exact[name]) for name in ("Delta", "Phi")}).passed
    assert not statements._tried(points, 100, wrong).passed
    assert not statements._tried(points, 100, {"Phi": wrong["Phi"]}).passed
    lenient = points[["Phi"]].assign(Phi=wrong["Phi"])
    assert agreement(lenient, points, variables=["Phi"], allowance=0.02).passed


def test_no_verdict_is_written_down():
    for module in (drawn, statements):
        claimed.check_source(Path(module.__file__))


def test_figures_and_claims():
    """In one test, so that they are made once."""
    figures = make()
    for check in (
        every_figure_is_drawn_from_finite_numbers,
        unstable_theory_is_dashed,
        s_shapes_are_whole,
        figure_2_jumps,
        figure_7_has_the_printed_jump,
        every_statement_has_a_verdict_and_its_evidence,
        what_theory_alone_decides,
    ):
        check(figures)
