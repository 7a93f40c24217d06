"""Forecasts for any learner: a learning curve continued, and measured first where there is only a table."""

from quenched.forecasting.compare import compare
from quenched.forecasting.extrapolate import extrapolate
from quenched.forecasting.forecast import forecast

__all__ = ["compare", "extrapolate", "forecast"]
