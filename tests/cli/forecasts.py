"""A made-up forecast, for tests of what is printed and drawn of one."""

from __future__ import annotations

import numpy as np
import xarray as xr

from quenched.core.types import InputError

SCALE = 10.0
"""Standard deviation of the made-up target, so that numbers in its own units are known."""
TOO_FAR = "A forecast reaches at most 10 times the rows."


def made_up(X, y, *, examples=None, check=0, grade="A", reasons="", differ=(), refuse="", explained=0.6, **_):
    """A dataset of the form that `processes.forecast` gives, from a plain power law."""
    rows = len(y)
    shares = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 10)
    m = np.array([round(rows * share) for share in shares] if examples is None else examples, dtype=float)
    refused = np.where(m > 10 * rows, TOO_FAR, refuse)
    spoken = refused == ""
    E, width = 0.2 + 0.2 * np.sqrt(rows / m), np.exp(0.05 + 0.02 * np.abs(np.log2(m / rows)))
    E, width = np.where(spoken, E, np.nan), np.where(spoken, width, np.nan)
    over, scale = {}, float(np.std(y))
    for name, value, wide in (
        ("error", E, width),
        ("gain", E / 0.4, np.sqrt(width)),
        ("rmse", scale * E**0.5, width**0.5),
    ):
        over |= {name: value, f"{name}_low": value / wide, f"{name}_high": value * wide}
    over["measured"] = np.where(m <= rows, 0.9 * (0.2 + 0.2 * np.sqrt(rows / m)), np.nan)
    over["measured_stderr"] = np.where(m < rows, 0.01, np.where(m == rows, 0.0, np.nan))
    if check:
        off = np.where(np.isin(m, differ), 1.5, 1.01)
        below = m < 0.9 * rows
        over["check_error"] = np.where(below, E * off, np.nan)
        over["check_error_stderr"] = np.where(below, 0.005, np.nan)
    miss = np.asarray(y) - np.mean(y)
    data = {name: ("examples", value) for name, value in over.items()}
    data |= {"extended": ("examples", m > 4 * rows), "refused": ("examples", refused.astype(str))}
    data["source"] = ("examples", np.where(m < rows, "subsets", np.where(m == rows, "leave-one-out", "continuation")))
    data["leave_one_out"] = ("point", miss)
    data["worst"] = ("rank", np.argsort(-np.abs(miss), kind="stable")[:10])
    about = {"grade": grade, "reasons": reasons, "rows": rows, "target_scale": scale, "target_centre": np.mean(y),
             "noise": 0.46, "kernel": "ExpSquared", "leave_one_out": 0.36, "copies": 0, "training_error": 0.3,
             "explained": explained, "explained_stderr": 0.02, "backtest": 0.01, "H": 0.02, "refit_ratio": 1.01,
             "df1": 5.0, "jitter": 0.0, "science": "processes", "source": "forecast", "version": "0",
             "format": 1}  # fmt: skip
    return xr.Dataset(data, {"examples": m, "point": np.arange(rows)}, about)


def answers(result, error):
    """In place of `examples_for`: by the error, one answer of each kind."""
    if error < 0.2 or error > 1:
        raise InputError("Argument `error` must be another.")
    kinds = {0.21: (743.0, np.inf), 0.22: (43.0, np.inf), 0.6: (10.0, 35.0), 0.5: (30.0, 90.0), 0.8: (10.0, 300.0)}
    return kinds.get(error, (743.0, 2871.0))
