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
from quenched import plots, processes, prototypes
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.core.types import InputError, printable
from tests.cli.test_forecast import made_up

ALPHA = np.array([0.0, 1.0, 2.0, 5.0])
SETTINGS = {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
"""Before anything is drawn; asking for the backend would choose one."""


def attrs(source, **more):
    law = {"name": "TwoClusters", "prior": 0.8}
    rule = {"name": more.pop("rule", "LVQ1"), "rate": more.pop("rate", 0.2)}
    return {"law": json.dumps(law), "rule": json.dumps(rule), "source": source, "sweep": more.pop("sweep", ""), **more}


def labelled(data, science):
    """With the words for axes that the results of a science have."""
    for name, words in science.LABELS.items() if hasattr(science, "LABELS") else science.SCIENCE.labels.items():
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


EXAMPLES = np.array([20.0, 50.0, 100.0, 200.0, 400.0])


def of_table(**more):
    error = 0.1 + 2 / EXAMPLES
    data = {
        "oob_error": ("examples", error),
        "error": ("examples", error / 2),
        "coverage": ("examples", 0 * error + 0.9),
    }
    point = ("examples", "point"), np.ones((5, 3))
    attrs = processes.model.SCIENCE.attrs
    return labelled(xr.Dataset(data | {"mean": point} | more, {"examples": EXAMPLES}, attrs), processes.model)


def test_a_curve_over_examples_is_its_out_of_bag_error_on_log_axes_with_plain_numbers():
    figure = plots.plot(of_table())
    (ax,) = figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "training examples, $m$"
    assert ax.get_ylabel().replace("\n", " ") == "out-of-bag error (share of the target's variance)"
    figure.canvas.draw()
    assert [t.get_text() for t in ax.get_xticklabels() if 20 <= t.get_position()[0] <= 400] == [
        "20", "50", "100", "200"
    ]  # fmt: skip
    assert all("$" not in t.get_text() for t in [*ax.get_yticklabels(minor=True), *ax.get_yticklabels()])
    assert plots.plot(of_table(), variables="coverage").axes[0].get_yscale() == "linear"


def test_zero_examples_or_zero_error_keep_the_axis_linear():
    data = of_table().assign_coords(examples=EXAMPLES - 20)
    assert plots.plot(data).axes[0].get_xscale() == "linear"
    data["oob_error"][-1] = 0.0
    assert plots.plot(data).axes[0].get_yscale() == "linear"


def test_a_curve_of_two_sources_is_a_line_where_it_is_theory_and_points_with_bars_where_it_is_draws():
    source = ("examples", np.array(["theory", "draws", "draws", "theory", "theory"]))
    bars = ("examples", np.array([0.0, 0.01, 0.02, 0.0, 0.0]))
    figure = plots.plot(of_table(oob_error_stderr=bars, source=source))
    ax, y = figure.axes[0], of_table().oob_error.values
    (line,) = lines(ax)
    np.testing.assert_array_equal(line.get_ydata(), np.where(source[1] == "theory", y, np.nan))
    assert [list(l.get_xdata()) for l in lines(ax, marker=".")] == [[20.0]]  # one point is no line
    (container,) = ax.containers
    points, _, (drawn,) = container.lines
    assert list(points.get_xdata()) == [50.0, 100.0]
    np.testing.assert_allclose([np.ptp(s[:, 1]) for s in drawn.get_segments()], [0.02, 0.04])
    assert to_hex(points.get_color()) == to_hex(line.get_color())
    assert legend_texts(figure) == ["out-of-bag error", "theory", "simulation ± 1 s.e."]


@pytest.mark.parametrize("told", ["trusted", "source"])
def test_theory_that_fails_its_self_check_is_dashed_and_named(told):
    trusted = EXAMPLES > 100
    words = {"trusted": trusted, "source": np.where(trusted, "theory", "theory, not trusted")}
    figure = plots.plot(of_table(**{told: ("examples", words[told])}))
    solid, dashed = sorted(lines(figure.axes[0]), key=lambda l: l.is_dashed())
    assert np.isfinite(solid.get_ydata()).tolist() == [False, False, False, True, True]
    assert np.isfinite(dashed.get_ydata()).tolist() == [True, True, True, True, False]
    assert "self-check failed" in legend_texts(figure)


def test_whole_tables_are_numbered_not_spelled():
    both = [of_table().assign_attrs(law=json.dumps({"name": "Empirical", "inputs": [k] * 50})) for k in (1, 2)]
    assert legend_texts(plots.plot(*both)) == ["law inputs 1", "law inputs 2"]


def a_forecast(**more):
    y = np.random.default_rng(0).standard_normal(80) * 7
    return made_up(np.zeros((80, 2)), y, **more).assign_attrs(target="price")


def drawn_forecast(**more):
    data = a_forecast(**more)
    figure = plots.plot(data)
    figure.canvas.draw()
    return data, figure, figure.axes[0]


def test_a_forecast_is_a_curve_a_band_and_a_mark_at_the_rows():
    data, figure, ax = drawn_forecast()
    texts = legend_texts(figure)
    assert texts == ["forecast (80% band)", "all 80 rows", "extended: less sure"]
    curves = {tuple(l.get_xdata()): l for l in lines(ax) if not l.is_dashed()}
    np.testing.assert_allclose(curves[tuple(data.examples.values)].get_ydata()[:-1], data.error[:-1])
    assert (80.0, 80.0) in {tuple(l.get_xdata()) for l in lines(ax)}
    (band,) = ax.collections[-1:] if len(ax.collections) == 1 else [c for c in ax.collections if len(c.get_facecolor())]
    corners = band.get_paths()[0].vertices
    for m, low, high in zip(data.examples.values, data.error_low.values, data.error_high.values, strict=True):
        heights = corners[corners[:, 0] == m, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [low, high])
    assert not ax.containers  # one number for each size


def test_a_forecast_says_its_errors_in_own_units_on_the_right():
    data, _, ax = drawn_forecast()
    (right,) = ax.child_axes
    assert right.get_ylabel().replace("\n", " ") == "root mean squared error (units of price)"
    np.testing.assert_allclose(right.get_ylim(), data.attrs["target_scale"] * np.sqrt(ax.get_ylim()))
    assert all("$" not in t.get_text() for t in right.get_yticklabels())


def test_a_forecast_shows_its_check_and_explains_the_bars():
    data, figure, ax = drawn_forecast(check=9)
    assert "check: subsets, tuned anew" in legend_texts(figure)
    (checks,) = (c.lines[0] for c in ax.containers)
    np.testing.assert_array_equal(checks.get_ydata(), data.check_error[:3])
    assert to_hex(checks.get_color()) not in {to_hex(line.get_color()) for line in lines(ax) if line is not checks}
    assert "Bars are one standard error." in ax.texts[0].get_text().replace("\n", " ")


def test_sizes_that_are_refused_are_not_drawn_but_said():
    _, _, ax = drawn_forecast(examples=[20, 80, 2000, 4000])
    assert max(max(l.get_xdata()) for l in lines(ax)) == 80
    (note,) = ax.texts
    assert "Not forecast: 2,000, 4,000 examples. A forecast reaches" in note.get_text().replace("\n", " ")
    _, figure, ax = drawn_forecast(refuse="Rows are copies.")
    assert "forecast (80% band)" not in legend_texts(figure)
    assert "measured on subsets of the rows" in legend_texts(figure)
    assert ax.texts[0].get_text().endswith("No forecast: Rows are copies.")
    _, _, ax = drawn_forecast(examples=[80, 160], refuse="")
    assert "Not forecast" not in ax.texts[0].get_text()


def test_nothing_of_a_forecast_is_hidden_or_cut_off():
    _, figure, ax = drawn_forecast(check=9, examples=[20, 80, 160, 2000])
    (legend,), (note,) = figure.legends, ax.texts
    boxes = [
        legend.get_window_extent(),
        note.get_window_extent(),
        ax.get_window_extent(),
        ax.xaxis.label.get_window_extent(),
    ]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    boxes += [ax.yaxis.label.get_window_extent(), ax.child_axes[0].yaxis.label.get_window_extent()]
    page = figure.bbox
    assert all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= page.x1 and b.y1 <= page.y1 for b in boxes)


def test_one_size_has_an_interval_too_and_other_variables_of_a_forecast_can_be_drawn():
    data, _, ax = drawn_forecast(examples=[160])
    band = next(c for c in ax.collections if len(c.get_facecolor()))
    heights = band.get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([heights.min(), heights.max()], [data.error_low[0], data.error_high[0]])
    gain = plots.plot(a_forecast(), variables="gain")
    np.testing.assert_allclose(lines(gain.axes[0])[0].get_ydata(), a_forecast().gain)


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


# Names from the data

ODD = ("a$_$", r"a\$b$ and {%s", "a\x00\x1b[31m", "x" * 300, "\ud800")


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_any_name_of_a_column_is_drawn_as_it_is(name, tmp_path):
    x = np.linspace(0, 1, 5)
    over = {f"density{end}": ("value", np.ones(5)) for end in ("", "_low", "_high")}
    alone = {"source": "density", "column": name, "level": 0.9, "rows": 5}
    density = xr.Dataset({**over, "histogram": ("bar", [1.0])}, {"value": x, "edge": [0.0, 1.0]}, alone)
    over = {end: ("given", np.ones(5)) for end in ("mean", "low", "high")}
    rows = {"row_given": ("row", x), "row_value": ("row", x)}
    image = {"density": (("given", "value"), np.ones((5, 5)))}
    given = xr.Dataset({**over, **rows, **image}, {"given": x, "value": x}, alone | {"given": name})
    words = xr.Dataset({"error": (("alpha", "kind"), np.ones((3, 2)))}, {"alpha": [1.0, 2.0, 3.0], "kind": [name, "b"]})
    shown = printable(name)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    for data in (density, given, a_forecast().assign_attrs(target=name), words):
        figure = quenched.plot(data)
        figure.savefig(tmp_path / "p.png", dpi=40)
        labels = [text.get_text() for text in figure.findobj(matplotlib.text.Text)]
        assert any(shown in label.replace(r"\$", "$") for label in labels)
