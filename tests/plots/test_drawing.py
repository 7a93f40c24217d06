"""What is drawn is what is in the datasets, nothing is hidden, and nothing global changes."""

from __future__ import annotations

import json
import sys

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Canvas

import quenched
from quenched import plots, prototypes
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.core.types import InputError

ALPHA = np.array([0.0, 1.0, 2.0, 5.0])
SETTINGS = {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
"""Before anything is drawn; asking for the backend would choose one."""


def attrs(source, **more):
    law = {"name": "TwoClusters", "prior": 0.8}
    rule = {"name": more.pop("rule", "LVQ1"), "rate": more.pop("rate", 0.2)}
    return {"law": json.dumps(law), "rule": json.dumps(rule), "source": source, "sweep": more.pop("sweep", ""), **more}


def labelled(data, science):
    """With the words for axes that the results of a science have."""
    for name, words in science.SCIENCE.labels.items():
        if name in data.variables:
            data[name].attrs["long_name"] = words
    return data


def theory(**more):
    R = np.arange(16.0).reshape(4, 2, 2)
    Q = R + np.swapaxes(R, 1, 2)
    sides = {"prototype": [1, -1], "prototype2": [1, -1], "cluster": [1, -1]}
    data = xr.Dataset(
        {
            "R": (("alpha", "prototype", "cluster"), R),
            "Q": (("alpha", "prototype", "prototype2"), Q),
            "error": ("alpha", 0.5 - 0.05 * ALPHA),
            "outcome": ("alpha", np.full(4, "converged")),
        },
        {"alpha": ALPHA, **sides},
        attrs("theory", **more),
    )
    return labelled(data, prototypes.model)


def simulation(failed=0, runs=7, **more):
    data = theory(**more).drop_vars("outcome")
    for name in ("R", "Q", "error"):
        data[f"{name}_stderr"] = data[name] * 0 + 0.03
        data[f"{name}_run"] = data[name].expand_dims(run=2, axis=-1)
    data["failed"], data["runs"] = ((), failed), ((), runs)
    return data.assign_attrs(source="simulation", size=200, **more)


def lines(ax, *, marker=None):
    """The lines of a panel: those without a marker, or those with a given one; empty ones left out."""
    chosen = [l for l in ax.lines if (l.get_marker() == marker if marker else l.get_marker() in ("", "None", None))]
    return [l for l in chosen if np.isfinite(np.asarray(l.get_ydata(), float)).any()]


def legend_texts(figure):
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


def test_theory_is_lines_with_the_values_of_the_dataset():
    figure = quenched.plot(theory(), variables="R")
    drawn = {tuple(l.get_ydata()) for l in lines(figure.axes[0])}
    R = theory().R.values
    assert drawn == {tuple(R[:, i, j]) for i in range(2) for j in range(2)}
    assert all(np.array_equal(l.get_xdata(), ALPHA) for l in lines(figure.axes[0]))


def test_one_panel_for_each_variable_and_axes_in_words():
    figure = plots.plot(theory(), simulation())
    assert [ax.get_ylabel().split(",")[0] for ax in figure.axes] == [
        "overlap with the centres",
        "overlap among prototypes",
        "generalisation error",
    ]
    assert {ax.get_xlabel() for ax in figure.axes} == {r"examples per dimension, $\alpha$"}


def test_a_symmetric_matrix_is_drawn_once():
    figure = plots.plot(theory(), variables="Q")
    assert len(lines(figure.axes[0])) == 3


def test_simulation_is_points_with_bars_of_one_standard_error_in_the_colour_of_its_theory():
    figure = plots.plot(theory(), simulation(), variables="R")
    ax = figure.axes[0]
    assert len(ax.containers) == 4
    colours = {tuple(l.get_ydata()): to_hex(l.get_color()) for l in lines(ax)}
    assert len(set(colours.values())) == 4
    for container in ax.containers:
        points, _, (bars,) = container.lines
        assert to_hex(points.get_color()) == colours[tuple(points.get_ydata())]
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        np.testing.assert_allclose(np.diff(ends)[:, 0], 2 * 0.03)


def test_legend_names_components_and_says_what_lines_and_points_are():
    texts = legend_texts(plots.plot(theory(), simulation(), variables="R"))
    assert texts == ["$R_{++}$", "$R_{+-}$", "$R_{-+}$", "$R_{--}$", "theory", "simulation ± 1 s.e."]


def test_datasets_are_told_apart_by_what_differs_and_only_by_that():
    same, other = theory(), theory(rule="VQ")
    assert legend_texts(plots.plot(same, other, variables="error")) == ["LVQ1", "VQ"]
    rates = plots.plot(theory(rate=0.1), theory(rate=0.4), variables="error")
    assert legend_texts(rates) == ["rate = 0.1", "rate = 0.4"]
    assert len({to_hex(l.get_color()) for l in lines(rates.axes[0])}) == 2


def test_sizes_share_the_colour_of_their_theory_but_not_the_marker():
    small = simulation().assign_attrs(size=50)
    figure = plots.plot(theory(), small, simulation(), variables="error")
    points = [c.lines[0] for c in figure.axes[0].containers]
    assert {to_hex(p.get_color()) for p in points} == {to_hex(l.get_color()) for l in lines(figure.axes[0])}
    assert len({p.get_marker() for p in points}) == 2
    assert {"error, N = 50", "error, N = 200"} <= set(legend_texts(figure))


def test_a_sweep_is_one_line_for_each_value_and_can_be_the_abscissa():
    priors = xr.DataArray([0.5, 0.6, 0.7], dims="prior", name="prior")
    swept = labelled(xr.concat([theory(sweep="prior") for _ in range(3)], priors), prototypes.model)
    assert legend_texts(plots.plot(swept, variables="error")) == ["prior = 0.5", "prior = 0.6", "prior = 0.7"]
    across = plots.plot(swept, variables="error", x="prior")
    assert across.axes[0].get_xlabel().startswith("prior of class +1")
    assert legend_texts(across) == [f"alpha = {a:g}" for a in ALPHA]


def test_many_lines_thin_the_legend_and_say_so():
    values = np.linspace(0.1, 0.9, 30)
    swept = xr.concat([theory(sweep="prior") for _ in values], xr.DataArray(values, dims="prior", name="prior"))
    figure = plots.plot(swept, variables="error")
    assert len(lines(figure.axes[0])) == 30
    assert "and 22 between" in legend_texts(figure)


def test_what_did_not_converge_is_marked_and_named():
    data = theory()
    data["outcome"][2:] = ["stalled", "diverged"]
    data["error"][3] = np.nan
    figure = plots.plot(data, variables="error")
    crosses = lines(figure.axes[0], marker="x")
    assert [list(c.get_xdata()) for c in crosses] == [[2.0], [5.0]]
    assert crosses[0].get_ydata()[0] == data.error.values[2]  # at its value, where it has one
    assert crosses[1].get_transform() == figure.axes[0].get_xaxis_transform()  # on the edge, where it has none
    assert "stalled or diverged" in legend_texts(figure)


def test_failed_runs_are_marked_and_the_mean_of_no_runs_is_not_drawn():
    some = plots.plot(simulation(failed=2), variables="error")
    assert "some runs failed" in legend_texts(some)
    assert list(lines(some.axes[0], marker="x")[0].get_xdata()) == list(ALPHA)
    none = plots.plot(simulation(failed=7, runs=0), variables="error")
    assert "all runs failed" in legend_texts(none)
    assert not np.isfinite(none.axes[0].containers[0].lines[0].get_ydata()).any()


def test_unstable_theory_is_dashed():
    x = np.arange(6.0)
    series = Series("f", Kind.theory, x, x**2, unstable=x > 3)
    figure = plots.draw(Figure("p/f", "t", "c", (Panel("x", "y", (series,)),)))
    solid, dashed = sorted(lines(figure.axes[0]), key=lambda l: l.is_dashed())
    assert not solid.is_dashed()
    assert dashed.is_dashed()
    assert np.isfinite(solid.get_ydata()).tolist() == [True, True, True, True, False, False]
    assert np.isfinite(dashed.get_ydata()).tolist() == [
        False,
        False,
        False,
        True,
        True,
        True,
    ]  # it touches the solid part
    assert "unstable" in legend_texts(figure)


def hand_made(panels=2):
    x = np.linspace(0.1, 1, 9)
    series = (
        Series("LVQ1", Kind.theory, x, x),
        Series("LVQ1", Kind.simulation, x, x, np.full(9, 0.1)),
        Series("class", Kind.cloud, x, -x),
        Series("optimum", Kind.reference, x, 0 * x),
        Series("centres", Kind.mark, x[:1], x[:1]),
    )
    panel = Panel("time", "error", series, "a title", (0.0, 2.0), (-2.0, 2.0))
    other = Panel("time", "error", series, log="xy", equal=True)
    return Figure("paper/figure_1", "Title", "Caption", (panel, other)[:panels])


def test_draw_keeps_limits_scales_titles_and_kinds():
    figure = plots.draw(hand_made())
    first, second = figure.axes
    assert (first.get_xlim(), first.get_ylim(), first.get_title()) == ((0.0, 2.0), (-2.0, 2.0), "a title")
    assert (second.get_xscale(), second.get_yscale(), second.get_aspect()) == ("log", "log", 1.0)
    assert figure.get_suptitle() == "Title"
    assert plots.draw(hand_made(), title=False).get_suptitle() == ""
    expected = ["LVQ1", "class", "optimum", "centres", "theory", "simulation ± 1 s.e."]
    assert legend_texts(figure) == expected  # one legend for both panels


@pytest.mark.parametrize("panels", [1, 2])
def test_legends_hide_nothing(panels):
    figure = plots.draw(hand_made(panels))
    figure.canvas.draw()
    boxes = [legend.get_window_extent() for legend in figure.legends]
    assert boxes
    assert not any(box.overlaps(ax.get_window_extent()) for box in boxes for ax in figure.axes)
    different = plots.plot(theory(), simulation(), variables=["R", "Q"])  # no shared entries: a legend below each
    different.canvas.draw()
    for ax in different.axes:
        assert not ax.get_legend().get_window_extent().overlaps(ax.get_window_extent())


def test_plot_takes_a_figure_and_given_axes():
    assert len(plots.plot(hand_made()).axes) == 2
    canvas = Canvas()
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(1, 2)
    assert plots.plot(theory(), ax=axes[0], variables="error") is canvas
    assert lines(axes[0])
    assert not lines(axes[1])


def test_the_picture_is_written_without_a_screen_and_without_global_changes(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would raise
    target = tmp_path / "x.png"
    quenched.plot(theory(), simulation()).savefig(target)
    assert target.read_bytes().startswith(b"\x89PNG")
    assert {name: matplotlib.rcParams[name] for name in SETTINGS} == SETTINGS


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plots.plot(), "must be datasets"),
        (lambda: plots.plot(theory(), 3), "must be datasets"),
        (lambda: plots.plot(theory().isel(alpha=0)), "share a control"),
        (lambda: plots.plot(theory(), variables="S"), "'S' is not among"),
        (lambda: plots.plot(theory(), ax=[Canvas().add_subplot()]), "one axes for each of R, Q, error"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
