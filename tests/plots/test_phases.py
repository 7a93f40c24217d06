"""A phase diagram is one panel: lines that break where they jump, and regions with names."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import quenched
from quenched import outliers

ALPHA = np.arange(1.0, 11.0)
BOUNDARIES = [("hot_cold", "hot", "cold"), ("hot_glass", "hot", "glass"), ("cold_glass", "cold", "glass")]


def diagram(**more):
    """Hot above cold above glass; below alpha = 4 hot meets the glass, and that line goes on inside cold."""
    late = ALPHA >= 4
    lines = {
        "hot_cold": np.where(late, 6.0, np.nan),
        "hot_glass": np.where(late, 5.5, 6.0),
        "cold_glass": np.where(late, 2.0, np.nan),
        "cold_start": np.where(late, 8.0, 1.0),
        "replica_symmetry": np.full(10, 4.0),
    }
    data = {name: ("alpha", y) for name, y in lines.items()}
    data |= {f"{name}_outcome": ("alpha", np.full(10, "converged")) for name in lines}
    data |= {f"{name}_residual": ("alpha", np.full(10, 1e-13)) for name in lines}
    return xr.Dataset(data, {"alpha": ALPHA}, {"source": "lines", "along": "width", "law": "{}", "rule": "{}",
                                               "boundaries": json.dumps(BOUNDARIES), "sweep": ""} | more)  # fmt: skip


@pytest.fixture(scope="module")
def axes():
    (one,) = quenched.plot(diagram()).axes
    return one


def drawn(axes, label):
    """The line of a label in the legend of its figure."""
    legend = axes.figure.legends[0]
    handle = {text.get_text(): h for text, h in zip(legend.get_texts(), legend.legend_handles, strict=True)}[label]
    return [line for line in axes.lines if line.get_color() == handle.get_color() and line.get_linestyle() == "-"]


def test_one_panel_names_the_regions_where_they_are(axes):
    words = {text.get_text(): text.get_position() for text in axes.texts if text.get_style() == "italic"}
    assert set(words) == {"hot", "cold", "glass"}
    assert words["hot"][1] > 6
    assert words["cold"][0] >= 4
    assert 2 < words["cold"][1] < 6
    assert words["glass"][1] < (2 if words["glass"][0] >= 4 else 6)
    assert axes.get_ylabel() == "width"


def test_a_line_is_solid_only_where_the_state_of_least_free_energy_changes(axes):
    (solid,) = [line for line in drawn(axes, "hot | glass") if np.isfinite(line.get_ydata()).any()]
    x, y = solid.get_xdata(), solid.get_ydata()
    assert x[np.isfinite(y)].max() < 4


def test_a_line_breaks_where_it_jumps(axes):
    jumping = [line for line in axes.lines if 8.0 in line.get_ydata() and 1.0 in line.get_ydata()]
    assert jumping
    for line in jumping:
        x, y = line.get_xdata(), line.get_ydata()
        assert np.isnan(y[list(x).index(3.0) + 1])


def test_its_axes_are_in_words():
    (axes,) = quenched.plot(diagram(along_name="width (a variance)")).axes
    assert axes.get_ylabel() == "width (a variance)"
    law = outliers.Contaminated(gamma=10.0)
    (axes,) = quenched.plot(outliers.transitions(law, outliers.HardSelection(), alpha=[20.0, 21.0])).axes
    assert axes.get_xlabel() == outliers.model.SCIENCE.labels["alpha"]
    assert axes.get_ylabel() == outliers.model.SCIENCE.labels["eta"]


def test_without_boundaries_there_are_lines_but_no_names():
    (axes,) = quenched.plot(diagram(boundaries="[]")).axes
    assert not [text for text in axes.texts if text.get_style() == "italic"]
    assert len([line for line in axes.lines if np.isfinite(np.asarray(line.get_ydata(), float)).any()]) >= 5
