"""quenched: the statistical mechanics of learning as working software.

One declaration of a learning problem gives the theory (no training), the simulation (with error bars) and the learner
(a scikit-learn estimator), and they must agree.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quenched import fields, mixtures, outliers, processes, prototypes
    from quenched.core import replica
    from quenched.core.ensemble import Dask, Local, Processes
    from quenched.core.proof import Agreement, agreement
    from quenched.core.results import load, save
    from quenched.core.types import InputError
    from quenched.fields.practice.calibrating import calibrate
    from quenched.forecasting.extrapolate import extrapolate
    from quenched.forecasting.forecast import forecast
    from quenched.plots import ForecastDisplay, plot
    from quenched.reference import load_reference

# Loaded when first used: start-up is part of a user's wait.
_HOME = {
    "Agreement": "quenched.core.proof",
    "Dask": "quenched.core.ensemble",
    "ForecastDisplay": "quenched.plots",
    "InputError": "quenched.core.errors",
    "Local": "quenched.core.ensemble",
    "Processes": "quenched.core.ensemble",
    "agreement": "quenched.core.proof",
    "calibrate": "quenched.fields.practice.calibrating",
    "extrapolate": "quenched.forecasting.extrapolate",
    "forecast": "quenched.forecasting.forecast",
    "load": "quenched.core.results",
    "load_reference": "quenched.reference",
    "plot": "quenched.plots",
    "save": "quenched.core.results",
}
SCIENCES = ("fields", "mixtures", "outliers", "prototypes", "processes")
"""The sciences that are built."""

__all__ = [
    "SCIENCES",
    "Agreement",
    "Dask",
    "ForecastDisplay",
    "InputError",
    "Local",
    "Processes",
    "agreement",
    "calibrate",
    "extrapolate",
    "fields",
    "forecast",
    "load",
    "load_reference",
    "mixtures",
    "outliers",
    "plot",
    "processes",
    "prototypes",
    "replica",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in SCIENCES:
        return importlib.import_module(f"quenched.{name}")
    if name == "__version__":
        return importlib.metadata.version("quenched")
    if name == "replica":
        return importlib.import_module("quenched.core.replica")
    raise AttributeError(f"module 'quenched' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
