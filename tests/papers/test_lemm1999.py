"""Figures and claims of Lemm (1999)."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from quenched import fields, plots
from quenched.core.claims import Verdict
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.papers import lemm1999
from quenched.papers.lemm1999 import examples, graphs
from quenched.papers.lemm1999.misprints import misprints
from tests.papers import claimed


class Made(dict):
    """Figures and claims, each made when it is first looked at."""

    def __missing__(self, name):
        if name == "claims":
            self[name] = lemm1999.claims(quick=True, figures=tuple(self[name] for name in lemm1999.FIGURES))
        else:
            self[name] = lemm1999.FIGURES[name](quick=True)
        return self[name]


@pytest.fixture(scope="module")
def figures():
    return Made()


def test_every_figure_has_panels_data_and_a_caption(figures):
    assert list(lemm1999.FIGURES) == [f"figure_{n}" for n in range(1, 29)]
    for name in lemm1999.FIGURES:
        figure = figures[name]
        assert figure.key == f"lemm1999/{name}"
        assert figure.caption
        assert figure.data
        for panel in figure.panels:
            for series in panel.series:
                shown = series.values if series.kind is Kind.image else series.y
                assert np.all(np.isfinite(np.asarray(shown))), (name, series.label)
    assert "not available" in figures["figure_20"].caption
    assert "not available" in figures["figure_21"].caption


@pytest.mark.parametrize("number", [14, 15, 16, 17])
def test_densities_of_two_points_are_normalised_and_minima(figures, number):
    data = figures[f"figure_{number}"].data
    P = data["solution"].density.values
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert P.min() >= 0
    assert data["iteration"].attrs["kkt"] < 1e-8
    assert P[2].argmax() == 2  # x = 3, y = 3
    assert P[6].argmax() == 11
    if number == 16:
        assert "another minimum, of energy 1.51155" in figures["figure_16"].caption


def test_robust_errors_are_flat_where_deviations_are_small(figures):
    """Two Gaussians a standard deviation from zero have no curvature there: the error begins with the fourth power."""
    data = figures["figure_5"].data
    two = data["two Gaussians"].error
    np.testing.assert_allclose(two.sel(residual=[0.2, 0.4], method="nearest"), [0.2**4 / 12, 0.4**4 / 12], rtol=0.06)
    assert [data[name].attrs["flat"] for name in data] == sorted(one.attrs["flat"] for one in data.values())
    insensitive = data["ε-insensitive"].error
    assert float(insensitive.sel(residual=1.4, method="nearest")) < 1e-3
    np.testing.assert_allclose(insensitive.sel(residual=[3.0, -3.5], method="nearest"), [1.5, 2.0], atol=0.05)


def test_f711_the_four_test_errors_in_both_ways(figures):
    table = figures["figure_18"].data["errors"]
    assert [f"{v:.2f}" for v in table.printed.values] == ["2.23", "2.56", "2.90", "2.68"]
    assert [f"{v:.4f}" for v in table.normalised.values] == ["2.2470", "2.5744", "2.9455", "2.7081"]
    assert table.normalised.values[3] == pytest.approx(np.log(15))


def test_points_have_the_law_they_are_said_to_have():
    """Frequencies of many, in standard errors."""
    import jax

    points = examples.sampled(jax.random.key(1), examples=20_000)
    N = examples.mesh(examples.Free())[0].counts(points)
    expected = 20_000 * examples.normalised(examples.densities()["truth"]) / 10
    assert np.sum((N - expected) ** 2 / expected) < 149 + 5 * np.sqrt(2 * 149)


def test_every_statement_has_a_verdict_and_its_evidence(figures):
    claims = figures["claims"]
    assert len(claims) == 238
    claimed.check([figures[name] for name in lemm1999.FIGURES], claims)
    claimed.check_numbers(claims)
    for claim in claims:
        assert claim.ours
        assert claim.evidence
    cited = {name for claim in claims for name in re.findall(r"errat\w+ (F\d+)", claim.evidence)}
    assert cited >= {misprint.erratum for misprint in misprints()} | {
        "F11",
        "F12",
        "F17",
        "F21",
        "F78",
        "F184",
        "F711",
        "F719",
    }
    refuted = [claim.where for claim in claims if claim.verdict is Verdict.refuted]
    assert refuted == ["section 3.2.1"]


def test_no_verdict_is_written_down():
    for path in Path(lemm1999.__file__).parent.glob("*.py"):
        claimed.check_source(path)


MISPRINTS = {misprint.erratum: misprint for misprint in misprints()}


@pytest.mark.parametrize("name", MISPRINTS)
def test_misprints_are_decided_by_a_direct_computation(name):
    """The printed equation is far off, the corrected one is not: by at least ten times what is allowed."""
    misprint = MISPRINTS[name]
    assert misprint.off > 10 * misprint.within
    assert misprint.off_right < misprint.within
    assert misprint.claim.verdict is Verdict.corrected
    right = dataclasses.replace(misprint, off=misprint.off_right)
    assert right.claim.verdict is Verdict.reproduced
    assert dataclasses.replace(misprint, off_right=misprint.off).claim.verdict is Verdict.refuted


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("F11", "figure 11"),
        ("F12", "figure 12"),
        ("F17", "figure 17"),
        ("F21", "figures 14, 21"),
        ("F78", "(78)"),
        ("F719", "(719)"),
    ],
)
def test_captions_and_cut_numbers_are_corrected(figures, name, where):
    claim = next(claim for claim in figures["claims"] if f"erratum {name})" in claim.evidence)
    assert where in claim.where
    assert claim.verdict is Verdict.corrected


def test_numbers_of_the_paper(figures):
    ours = {claim.statement: claim.ours for claim in figures["claims"]}
    verdicts = {claim.statement: claim.verdict for claim in figures["claims"]}
    assert ours["the largest P is the same"] == "0.602228 and 0.589287"
    assert ours["expected test error of the uniform"].startswith("2.6827")
    assert "0.17358950" in ours["mutual information of several variables"]
    for statement in (
        "Newton is fastest, then massive relaxation, then the gradient",
        "mutual information decays rapidly",
        "third derivatives make the regression function much rounder at the data",
        "squared loss: the mean is best",
    ):
        assert verdicts[statement] is Verdict.reproduced


def test_the_graph_is_that_of_the_declared_problem():
    """A row is a pair of nodes, without x where nothing is given; rows that repeat are one, with their number."""
    declared = graphs.declared()["density of two points"]
    drawn = graphs.graph(declared)
    assert drawn.name.values.tolist() == ["h", "$y_{1}$", "$x_{1}$", "$y_{2}$", "$x_{2}$"]
    assert list(zip(drawn.source.values, drawn.target.values, strict=True)) == [(0, 1), (2, 1), (0, 3), (4, 3)]
    line = fields.Grid(over=[fields.Axis(0, 3, points=4)])
    alone = fields.Problem(fields.DensityData([1, 1, 2]), fields.LogDensity(line), fields.Gaussian(fields.Mass(line)))
    assert graphs.graph(alone).name.values.tolist() == ["h", "$y_{1}$ x2", "$y_{2}$"]
    assert set(graphs.graph(alone).role.values) == {graphs.HIDDEN, graphs.SEEN}


def test_predictions_lie_between_the_states_and_find_the_true_one(figures):
    path = figures["figure_2"].data["path"]
    np.testing.assert_allclose(path.probability.sum("state"), 1)
    np.testing.assert_allclose(path.predictive, path.probability.values @ path.states.values, atol=1e-12)
    assert float(path.probability[-1, graphs.TRUTH]) > float(path.probability[0, graphs.TRUTH])


def test_stationary_states_of_two_priors_are_those_of_the_check_values(figures):
    """One solution at β = 2, three at 4; two appear in between."""
    data = figures["figure_7"].data
    assert [len(data[f"β = {beta}"].stable) for beta in ("2", "2.75", "4")] == [1, 2, 2]
    assert float(data["β = 2"].stable[0]) == pytest.approx(0.8059057774, abs=1e-10)
    solutions = figures["figure_8"].data["solutions"].solutions
    assert solutions.sel(beta=slice(0, 2.7)).max() == 1
    assert solutions.sel(beta=slice(2.75, 4)).min() == 3
    exact = figures["figure_11"].data["states"].probability.sel(component=0)
    np.testing.assert_allclose(exact, 1 / (1 + np.exp(-0.1 * exact.beta)), atol=1e-12)


def test_nodes_have_their_names_and_arrows_their_ends():
    nodes = Series("seen", Kind.node, np.array([0.0, 1.0]), np.array([0.0, 0.0]), names=np.array(["a", "b"]))
    arrows = Series("acts on", Kind.arrow, np.array([0.0]), np.array([0.0]), ends=np.array([[1.0, 0.0]]))
    picture = plots.draw(Figure("a/b", "title", "", (Panel("", "", (arrows, nodes), frame=False),)))
    (axes,) = picture.axes
    assert not axes.axison
    assert [text.get_text() for text in axes.texts] == ["", "a", "b"]
    assert axes.texts[0].xy == (1.0, 0.0)  # of the arrow
    assert [text.get_text() for text in picture.legends[0].get_texts()] == ["seen", "acts on"]


def test_an_image_is_drawn_as_it_is_with_a_scale():
    x, y, values = np.arange(4.0), np.arange(3.0), np.arange(12.0).reshape(4, 3)
    image = Series("P", Kind.image, x, y, values=values)
    line = Series("mean", Kind.theory, x, np.ones(4))
    picture = plots.draw(Figure("a/b", "title", "", (Panel("x", "y", (image, line)),)))
    axes, bar = picture.axes
    np.testing.assert_array_equal(axes.collections[0].get_array().reshape(3, 4), values.T)
    assert bar.get_ylabel() == "P"
    assert [text.get_text() for text in picture.legends[0].get_texts()] == ["mean"]
    assert axes.collections[0].get_cmap().name == "shades"
    picture.draw_without_rendering()


def test_the_figures_can_be_drawn(figures):
    for name in ("figure_1", "figure_2", "figure_3", "figure_14"):
        plots.draw(figures[name])
