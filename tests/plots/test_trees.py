"""Trees of splits, and pictures that move."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from PIL import Image

import quenched
from quenched.core.types import InputError
from quenched.plots.animation import FRAMES

WIDTHS = np.array([5.0, 4.6])


def splits(**more):
    """All rows part at the first width, and the first half of them at the second."""
    return xr.Dataset(
        {
            "width": ("split", WIDTHS),
            "p": ("split", [1e-6, 0.02]),
            "cluster": ("split", [0, 1]),
            "into": (("split", "half"), [[1, 2], [3, 4]]),
            "share": ("node", [1.0, 0.6, 0.4, 0.35, 0.25]),
            "leaf": ("component", [2, 3, 4]),
        },
        attrs={"source": "annealing", "relative": 0} | more,
    )


def drawn(axes):
    """The abscissa of each upright line, with its lower and upper end."""
    lines = [(line.get_xdata(), np.sort(line.get_ydata())) for line in axes.lines]
    return [(x[0], *y) for x, y in lines if x[0] == x[1] and y[0] < y[1]]


def test_branches_of_an_annealing_end_at_the_widths_where_they_split():
    (axes,) = quenched.plot(splits()).axes
    low, high = axes.get_ylim()
    assert low < WIDTHS.min() < WIDTHS.max() < high
    (whole,) = [one for one in drawn(axes) if one[2] == high]
    assert whole[1] == WIDTHS[0]
    assert sorted(one[1:] for one in drawn(axes) if one[1] == low) == [(low, 4.6), (low, 4.6), (low, 5.0)]
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.texts].count("p = 0.02") == 1


def test_shares_and_p_values_stand_on_different_sides():
    figure = quenched.plot(splits())
    figure.canvas.draw()
    boxes = [
        text.get_window_extent() for text in figure.axes[0].texts if "%" in text.get_text() or "p" in text.get_text()
    ]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_a_tree_grows_while_the_width_falls():
    moving = quenched.plot(splits(), animate="width")
    assert len(moving.values) == FRAMES
    assert np.all(np.diff(moving.values) < 0)
    (axes,) = moving.figure.axes
    seen = []
    for frame in (0, FRAMES - 1):
        moving.show(frame)
        seen.append(axes.lines[0].get_clip_box().height)
    assert 0 <= seen[0] < seen[1]


def test_an_animation_is_a_gif_with_all_its_frames_or_a_sentence(tmp_path, monkeypatch):
    x = np.linspace(0.0, 2.0, 5)
    curve = xr.Dataset(
        {"error": ("alpha", 1 - x / 4)}, {"alpha": x}, {"source": "theory", "law": "{}", "rule": "{}", "sweep": ""}
    )
    moving = quenched.plot(curve, variables="error", animate="alpha")
    (axes,) = moving.figure.axes
    moving.show(0)
    assert axes.get_title(loc="right").endswith("= 0")
    moving.show(FRAMES - 1)
    assert axes.get_title(loc="right").endswith("= 2")
    moving.values = moving.values[:3]
    with Image.open(moving.save(tmp_path / "moving.gif")) as picture:
        assert picture.n_frames == 3
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"must end in \.gif where ffmpeg is not installed"):
        moving.save(tmp_path / "moving.mp4")
    with pytest.raises(InputError, match="must be a control that takes several values, such as alpha"):
        quenched.plot(curve, variables="error", animate="rate")


def test_a_tree_of_one_cluster_says_that_no_split_is_certain():
    one = splits(source="clusters").isel(component=[0]).assign(seen=("split", [False, False]))
    figure = quenched.plot(one.assign(leaf=("component", [0]), p=("split", [0.57, 0.81])))
    said = " ".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))
    assert "One cluster: of 2 splits that were tried none is certain (least p 0.57)." in said
    assert "p: of no valley" not in said
