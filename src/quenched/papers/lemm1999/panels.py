"""Panels that several figures have: a density on the mesh, and its regression function."""

from __future__ import annotations

import numpy as np

from quenched.core.figures import Kind, Panel, Series
from quenched.fields.model.grid import Free
from quenched.papers.lemm1999.examples import mesh, moments


def image(label: str, values: np.ndarray, title: str) -> Panel:
    """Values on the mesh."""
    _, x, y = mesh(Free())
    series = Series(label, Kind.image, x.coordinates, y.coordinates, values=values)
    return Panel("x", "y", (series,), title=title)


def regression_panel(P: np.ndarray, reference: np.ndarray | None = None, title: str = "regression function") -> Panel:
    """The mean of y and one standard deviation about it."""
    x = mesh(Free())[1].coordinates
    mean, spread = moments(P)
    series = [
        Series("⟨y⟩ ± one standard deviation", Kind.band, x, mean, low=mean - spread, high=mean + spread),
        Series("regression function, ⟨y⟩", Kind.theory, x, mean),
    ]
    if reference is not None:
        series.append(Series("of the true density", Kind.reference, x, moments(reference)[0]))
    return Panel("x", "y", tuple(series), title=title, ylim=(0, 16), key=False)
