"""What is drawn of curves over examples, and of forecasts."""

from __future__ import annotations

import json

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import quenched
from quenched import plots, processes
from quenched.core.types import printable
from tests.cli.forecasts import made_up
from tests.plots.test_drawing import labelled, legend_texts, lines

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
