"""Figures and claims of Malzahn and Opper."""

import pytest

from quenched import plots
from quenched.core.figures import Kind, Verdict
from quenched.core.types import InputError
from quenched.papers import malzahn2002
from tests.papers import claimed


def figure_1_agrees_and_can_be_drawn(figure):
    assert set(figure.agreement) == {f"{part}, cavity closure, trusted sizes" for part in malzahn2002.BOSTON_PARTS}
    assert all(one.passed for one in figure.agreement.values()), figure.agreement
    assert len(figure.panels) == 4
    assert all({s.kind for s in panel.series} == {Kind.theory, Kind.simulation} for panel in figure.panels)
    plots.draw(figure)


def claims_of_boston(figure):
    stated = malzahn2002._boston_claims(figure)
    claimed.check([figure], stated)
    claims = {claim.statement: claim for claim in stated}
    assert [claim.verdict for claim in claims.values()].count(Verdict.reproduced) == 4
    paper = malzahn2002._off(figure, "all 506 rows", "the paper's closure", "posterior_variance", 506)
    assert paper == pytest.approx(-0.39, abs=0.03)
    error = [float(figure.data[f"{part}, simulation"].error.sel(examples=506)) for part in malzahn2002.BOSTON_PARTS]
    assert error[1] < 0.5 * error[0] < error[2]


def test_boston():
    """In one test, so that the figure is made once."""
    figure = malzahn2002.figure_1(quick=True)
    figure_1_agrees_and_can_be_drawn(figure)
    claims_of_boston(figure)


def test_iterations_and_arithmetic():
    few, distinct, share, *_ = malzahn2002._print_claims()
    assert few.ours.startswith("2 ") or few.ours.startswith("3 ")
    assert "320." in distinct.ours
    assert share.ours == "0.239 and 0.479"


def test_without_the_packages_one_sentence_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("boston", "abalone"):
        with pytest.raises(InputError, match=r"quenched\[papers\]"):
            getattr(malzahn2002.io, name)()
