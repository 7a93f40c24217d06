"""The figures and claims of the paper, in quick mode."""

import numpy as np
import pytest

from quenched.core.figures import Figure, Kind, Verdict
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
    claims = {c.statement: c for c in stated}
    assert len(claims) == 19
    assert not [c for c in claims.values() if c.verdict is Verdict.refuted]
    close = claims["LVQ1 is very close to optimal for all priors"]
    assert close.ours.startswith("excess at most 0.009")
    assert claims["LVQ+: prototypes symmetric about λ(B₊ + B₋)"].verdict is Verdict.corrected
    averaging = next(c for s, c in claims.items() if "self-averaging" in s)
    slope = float(averaging.ours.split("N^")[1])
    assert slope == pytest.approx(-0.5, abs=0.1)
    assert "0.2257, not 0.0732" in claims["the generalisation error"].ours
