"""A learning curve of regression beside figure 4: the one place here where a theory meets an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from quenched.core.figures import Kind, Panel, Series
from quenched.core.proof import agreement
from quenched.fields.model.grid import Grid
from quenched.fields.model.laws import MaximumPosterior, TrueFunction
from quenched.fields.model.links import Direct
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.fields.simulation.measure import measure
from quenched.fields.theory.curve import curve

LEARNING = "expected errors of regression"
"""What is compared."""


def expected(
    grid: Grid, h: np.ndarray, *, times: Sequence[int], runs: int, key: Any
) -> tuple[Panel, dict[str, xr.Dataset], dict[str, Any]]:
    """The learning curve of regression, in theory and as an experiment, with every place measured so many `times`."""
    law = TrueFunction(grid, h, 0.1)
    rule = MaximumPosterior(Direct(grid), Gaussian(1e-4 * Laplacian(grid) ** 2 + Mass(grid)))
    sizes = grid.size * np.array(times)
    line = curve(law, rule, examples=grid.size * np.arange(1, 9))
    points = measure(law, rule, examples=sizes, runs=runs, key=key)
    series = (
        Series("expected test error", Kind.theory, line.examples.values, line.test_error.values),
        Series(
            "expected test error", Kind.simulation, sizes, points.test_error.values, points.test_error_stderr.values
        ),
    )
    panel = Panel("examples", "−log-likelihood of a new example", series, title="learning curve")
    data = {"learning curve, theory": line, "learning curve, simulation": points}
    return panel, data, {LEARNING: agreement(line, points)}
