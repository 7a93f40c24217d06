"""The figures and claims of the paper, in quick mode."""

from pathlib import Path

import numpy as np
import pytest

from quenched.core.claims import Verdict
from quenched.core.figures import Figure, Kind
from quenched.papers import biehl2006
from tests.papers import claimed


def check_figure(figure):
    assert isinstance(figure, Figure)
    assert figure.key.startswith("biehl2006/")
    assert len(figure.caption) > 60
    for panel in figure.panels:
        assert panel.x
        assert panel.y
        for series in panel.series:
            assert series.x.shape == series.y.shape
            assert np.all(np.isfinite(series.y)), series.label
            assert (series.yerr is not None) == (series.kind is Kind.simulation)
    for name, proof in figure.agreement.items():
        assert proof.passed, f"{name}: {proof}"


def test_the_figures_and_the_claims():
    figures = [make(quick=True) for make in biehl2006.FIGURES.values()]
    for figure in figures:
        check_figure(figure)
    check_claims(figures)


def check_claims(figures):
    stated = biehl2006.claims(quick=True, figures=figures)
    claimed.check(figures, stated)
    claimed.check_numbers(stated)
    claims = {c.statement: c for c in stated}
    assert len(claims) == len(stated) == 32
    assert not [c for c in claims.values() if c.verdict is Verdict.refuted]
    assert [s for s, c in claims.items() if c.verdict is Verdict.not_decidable] == ["learning curve of VQ"]
    close = claims["LVQ1 is very close to optimal for all priors"]
    assert close.ours.startswith("excess at most 0.009")
    corrected = {s for s, c in claims.items() if c.verdict is Verdict.corrected}
    assert corrected == {
        "VQ: a weakly repulsive fixed point in which all R are equal",
        "LVQ1: and for strongly overlapping clusters",
        "LVQ+: prototypes symmetric about λ(B₊ + B₋)",
        "the same for clusters of unequal variances",
        "the recursion of R",
        "the term with η²",
        "the term with ab(l + m)",
        "averages over the mixture",
        "the threshold β of prototype l",
        "the function Φ",
        "the differential equations in closed form",
        "the generalisation error",
        "the density of a cluster",
        "p₋ = 0.6 with 240 of 400 points in class +1",
    }
    averaging = next(c for s, c in claims.items() if "self-averaging" in s)
    slope = float(averaging.ours.split("N^")[1])
    assert slope == pytest.approx(-0.5, abs=0.1)
    assert "0.2257, not 0.0732" in claims["the generalisation error"].ours
    assert claims["LVQ+ is optimal in the minmax sense"].ours.startswith("class errors 0.19807 and 0.19807")


@pytest.mark.parametrize("module", ["claims", "equations"])
def test_no_verdict_is_written_down(module):
    claimed.check_source(Path(biehl2006.__file__).parent / f"{module}.py")
