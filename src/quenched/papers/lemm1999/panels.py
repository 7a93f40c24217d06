"""Panels that several figures have: a density on the mesh, and its regression function."""

from __future__ import annotations

from typing import Any

import numpy as np

from quenched.core.figures import Kind, Panel, Series
from quenched.fields.model.grid import Free
from quenched.papers.lemm1999.examples import mesh, moments


def image(label: str, values: np.ndarray, title: str, data: Any = ()) -> Panel:
    """Values on the mesh, and the data points on it."""
    _, x, y = mesh(Free())
    series = [Series(label, Kind.image, x.coordinates, y.coordinates, values=values)]
    if len(data):
        places = np.unique(np.asarray(data, float), axis=0)
        series.append(Series("", Kind.row, *places.T))
    return Panel("x", "y", tuple(series), title=title, key=False)


def regression_panel(P: np.ndarray, reference: np.ndarray | None = None, title: str = "regression function") -> Panel:
    """The mean of y and one standard deviation about it."""
    x = mesh(Free())[1].coordinates
    mean, spread = moments(P)
    ends = min(0.0, float((mean - spread).min())), max(16.0, float((mean + spread).max()))
    series = [
        Series("⟨y⟩ ± one standard deviation", Kind.band, x, mean, low=mean - spread, high=mean + spread),
        Series("regression function, ⟨y⟩", Kind.theory, x, mean),
    ]
    if reference is not None:
        series.append(Series("of the true density", Kind.reference, x, moments(reference)[0]))
    return Panel("x", "y", tuple(series), title=title, ylim=ends, key=False)
