"""Forecasts: what they say of worlds that are known, when they refuse, and how they are read the other way."""

import jax
import numpy as np
import pytest
import xarray as xr
from tinygp import kernels, transforms

from quenched.core.results import load, save
from quenched.core.types import InputError
from quenched.processes.model import GaussianProcess
from quenched.processes.practice import examples_for, forecast
from quenched.processes.practice import forecast as _  # noqa: F401
