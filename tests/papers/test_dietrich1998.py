"""Figures and claims of Dietrich and Opper (1998)."""

import re

import numpy as np
import pytest

from quenched.core.figures import Kind, Verdict
from quenched.papers import dietrich1998
from tests.papers import claimed

SMALL = {"size": 40, "runs": 10}


def make():
    """All figures and claims: the theory as it is, experiments much smaller than the paper's."""
    patch = pytest.MonkeyPatch()
    for name, given in (("measure", SMALL), ("onsets", {"sizes": [10, 20], "runs": 20})):
        verb = getattr(dietrich1998.outliers, name)
        patch.setattr(
            dietrich1998.outliers, name, lambda *args, verb=verb, given=given, **kwargs: verb(*args, **kwargs | given)
        )
    patch.setattr(dietrich1998, "_beyond", lambda *one, **given: dietrich1998.outliers.measure(
        dietrich1998.LAW, dietrich1998.HARD, alpha=20.0, key=given["key"]))  # fmt: skip
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
    for series in figures["figure_5"].panels[0].series[:-1]:
        assert np.all(series.unstable)


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
    assert len(claims) == 23
    claimed.check([figures[name] for name in dietrich1998.FIGURES], claims)
    for claim in claims:
        assert claim.ours
        assert claim.evidence
        assert "nan" not in claim.ours
    amended = [claim for claim in claims if claim.verdict in (Verdict.corrected, Verdict.refuted)]
    cited = {name for claim in amended for name in re.findall(r"errat\w+ (E\d+)", claim.evidence)}
    assert cited >= {"E1", "E5", "E6", "E7", "E9", "E10", "E11"}


def what_theory_alone_decides(figures):
    """These verdicts do not depend on the size of the experiments."""
    claims = {claim.where: claim for claim in figures["claims"]}
    assert claims["equation (A2)"].verdict is Verdict.corrected
    assert claims["equation (A2)"].ours == "Δ = 0.2824"
    assert claims["equation (31)"].ours == "0.0000"
    assert claims["equations (B3), (B4)"].ours == "Φ = 0.0758"
    assert claims["equation (B5)"].verdict is Verdict.refuted
    assert "0.27836" in claims["figure 7"].ours


def test_figures_and_claims():
    """In one test, so that they are made once."""
    figures = make()
    for check in (
        every_figure_is_drawn_from_finite_numbers,
        unstable_theory_is_dashed,
        figure_2_jumps,
        figure_7_has_the_printed_jump,
        every_statement_has_a_verdict_and_its_evidence,
        what_theory_alone_decides,
    ):
        check(figures)
