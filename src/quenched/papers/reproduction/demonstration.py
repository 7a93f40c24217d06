"""The two figures of `quenched demo` that belong to no paper: answers on data that come with scikit-learn."""

from __future__ import annotations

import jax
import numpy as np

from quenched import io, processes
from quenched.core.figures import Figure
from quenched.estimators import FieldDensity

TITLE = "On your own data"
REFERENCE = "scikit-learn's diabetes and iris data stand for a table of yours"
LEVEL = 0.9


def forecast() -> Figure:
    """How much data does a regression need?"""
    table = io.bundled("diabetes")
    assert table.targets is not None
    rows, ahead = 150, (75, 150, 300, 600)
    answer = processes.forecast(
        table.inputs[:rows], table.targets[:rows].astype(float), examples=np.asarray(ahead, float),
        key=jax.random.key(0), names=table.names,
    )  # fmt: skip
    answer = answer.assign_attrs(data=f"the first {rows} rows of scikit-learn's diabetes data", target="progression")
    at = {m: answer.sel(examples=m) for m in ahead}
    said = "; ".join(
        f"{m} rows: {float(one.error):.2f}, 80% between {float(one.error_low):.2f} and {float(one.error_high):.2f}"
        for m, one in at.items() if m > rows
    )  # fmt: skip
    caption = (f"`quenched forecast`: the error of a regression on {rows} rows, and with more rows than there are "
               f"({said}), without training on any resampled table. {len(table.targets)} rows exist: the forecast did "
               "not see the others.")  # fmt: skip
    return Figure("demo/forecast", "How much data do I need?", caption, (), {"forecast": answer})


def density() -> Figure:
    """What is the density of a column, and how sure is it?"""
    values = io.bundled("iris").inputs[:, 2]
    answer = FieldDensity().fit(values).describe(LEVEL).assign_attrs(column="petal length (cm)")
    caption = ("`quenched density`: the petal lengths of irises, smooth with a smoothness that the data choose by "
               f"evidence; the band holds {LEVEL:.0%} of the posterior probability at each place.")  # fmt: skip
    return Figure(
        "demo/density", "What is the density of this column, and how sure am I?", caption, (), {"density": answer}
    )


FIGURES = {"forecast": forecast, "density": density}
