"""Where theory and learner meet: curves that fall back on draws, tuning, forecasts beyond the data."""

from quenched.processes.practice.curve import curve
from quenched.processes.practice.examples_for import examples_for
from quenched.processes.practice.forecast import forecast
from quenched.processes.practice.tune import Aim, Evidence, PredictedError, tune

__all__ = ["Aim", "Evidence", "PredictedError", "curve", "examples_for", "forecast", "tune"]
