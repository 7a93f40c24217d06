"""Where theory and learner meet: curves that know when they may speak, tuning, forecasts beyond the data."""

from quenched.processes.practice.automatic import curve
from quenched.processes.practice.forecast import forecast
from quenched.processes.practice.tuning import Aim, Evidence, PredictedError, tune
from quenched.processes.practice.wanted import examples_for

__all__ = ["Aim", "Evidence", "PredictedError", "curve", "examples_for", "forecast", "tune"]
