"""Panels for datasets: which variables, which series, their labels, and the outcome of each point."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import xarray as xr

from quenched.core.figures import Kind, Panel, Series
from quenched.core.types import InputError, printable

_NOT_DRAWN = ("runs", "failed", "outcome", "residual", "stability", "z")
UNTRUSTED = "self-check failed"
BROKEN = "replica symmetry broken"
LONGEST_FACT = 30
"""Values of fields that are longer than this are numbered instead."""
ABSENT = "absent"
LONGEST_NAME = 60
"""Longest name from the data, such as a column's, in a label."""


def plain(name: object, most: int = LONGEST_NAME) -> str:
    """A name from the data as a label: printable, without mathematics, and shortened."""
    text = printable(str(name))
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    return text.replace("$", r"\$")


def abscissa(datasets: list[xr.Dataset]) -> str:
    """The control that goes on the abscissa."""
    for name in ("alpha", "examples", *_swept(datasets[0])):
        if all(name in data.dims for data in datasets):
            return name
    raise InputError("Argument `results` must share a control that takes several values, but they have none: "
                     "give one as a sequence, such as `alpha=[1, 5, 10]`.")  # fmt: skip


def _swept(data: xr.Dataset) -> list[str]:
    """The controls that were swept."""
    return str(data.attrs.get("sweep", "")).split()


def variables(datasets: list[xr.Dataset], axis: str) -> list[str]:
    """The variables to draw by default: the main one, if all results have the same, or else all."""
    mains = {str(data.attrs.get("main", "")) for data in datasets}
    main = mains.pop() if len(mains) == 1 else ""
    return [main] if all(main in data and axis in data[main].dims for data in datasets) else _every(datasets, axis)


def _every(datasets: list[xr.Dataset], axis: str) -> list[str]:
    """Every variable that can be drawn."""
    names = dict.fromkeys(str(name) for data in datasets for name in data.data_vars)
    drawn = [name for name in names if name not in _NOT_DRAWN and not name.endswith(("_stderr", "_run"))]
    having = {name: [data[name] for data in datasets if name in data] for name in drawn}
    return [k for k, some in having.items() if all(axis in one.dims and one.dtype.kind in "fi" for one in some)]


def panel(datasets: list[xr.Dataset], name: str, axis: str) -> Panel:
    """All series of one variable."""
    holders = [data for data in datasets if name in data and axis in data[name].dims]
    if not holders:
        raise InputError(f"Argument `variables` must name what the results have over {axis}, but {name!r} is not "
                         f"among {_every(datasets, axis)}.")  # fmt: skip
    titles, first = _distinctions(holders), holders[0]
    series = tuple(one for data, title in zip(holders, titles, strict=True) for one in _series(data, name, axis, title))
    log = _log("x", first, series) + ("" if "coverage" in name else _log("y", first, series))
    return Panel(_words(first, axis), _words(first, name), series, log=log)


def _log(axis: str, data: xr.Dataset, series: tuple[Series, ...]) -> str:
    """The axis, if the results ask for a logarithmic one and all its values are positive."""
    values = np.concatenate([np.asarray(getattr(one, axis), float).ravel() for one in series])
    share = np.isfinite(values) & (values > 0)
    return axis if data.attrs.get("scale") == "log" and share.any() and np.all(share | np.isnan(values)) else ""


def _series(data: xr.Dataset, name: str, axis: str, title: tuple[str, str]) -> list[Series]:
    """The series of one variable of one dataset: one for each component and each value of the other controls."""
    variable = data[name]
    others = [str(d) for d in variable.dims if d != axis]
    controls = [d for d in others if d in _swept(data) or variable[d].dtype.kind == "f"]
    simulated = data.attrs.get("source") == "simulation" or f"{name}_stderr" in data
    found = []
    for index in np.ndindex(*(variable.sizes[d] for d in others)):
        place = dict(zip(others, index, strict=True))
        if any(f"{d}2" in place and place[d] > place[f"{d}2"] for d in place):
            continue  # the other half of a symmetric matrix
        component = _component(name, variable, {d: i for d, i in place.items() if d not in controls})
        values = [f"{d} = {_short(variable, d, place[d])}" for d in controls if variable.sizes[d] > 1]
        plainly = name.replace("oob", "out-of-bag").replace("_", " ")
        group = ", ".join(filter(None, [component, *values, title[0]])) or plainly
        cut = data.isel(place, missing_dims="ignore")
        here = {str(k): v for k, v in cut.data_vars.items() if v.dims in ((axis,), ())}
        bars = here[f"{name}_stderr"].values if f"{name}_stderr" in here else None
        y, outcome = _outcomes(here, here[name].values.astype(float), bars)
        label, kind = ", ".join(filter(None, [group, title[1]])), Kind.simulation if simulated else Kind.theory
        names = [n for n in ("branch", "phase") if n in cut.variables and cut[n].dims == (axis,) and n != axis]
        one = Series(label, kind, data[axis].values, y, bars, *_unstable(here), group=group, outcome=outcome,
                     state=cut[names[0]].values if names else None)  # fmt: skip
        found += _by_source(one, here.get("source"))
    return found


def _by_source(series: Series, source: xr.DataArray | None) -> list[Series]:
    """A curve whose points have different sources: a line where it is theory, points where it is simulation."""
    if source is None or not source.dims:
        return [series]
    words = source.values.astype(str)
    drawn, doubt = words == "draws", words == "theory, not trusted"
    series = dataclasses.replace(series, unstable=doubt, dashes=UNTRUSTED) if doubt.any() else series
    y, marks = np.where(drawn, np.nan, series.y), np.where(drawn, "", series.marks)  # a line breaks where draws are
    line = dataclasses.replace(series, kind=Kind.theory, y=y, yerr=None, outcome=marks)
    given = {name: getattr(series, name) for name in ("x", "y", "yerr", "unstable", "state")}
    cut = {name: value[drawn] for name, value in given.items() if value is not None}
    points = dataclasses.replace(series, kind=Kind.simulation, outcome=series.marks[drawn], **cut)
    return [one for one, there in ((line, ~drawn), (points, drawn)) if there.any()]


def _unstable(here: dict[str, xr.DataArray]) -> tuple[np.ndarray | None, str]:
    """Where the state of a theory is unstable or cannot be trusted, and the word for that."""
    over = {name: here[name].values for name in ("trusted", "stability", "growth") if name in here and here[name].dims}
    if "trusted" in over:
        return ~over["trusted"].astype(bool), UNTRUSTED
    if "stability" in over:
        return over["stability"] > 1, BROKEN
    return over["growth"] > 0 if "growth" in over else None, "unstable"


def _outcomes(here: dict[str, xr.DataArray], y: np.ndarray, bars: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The ordinates that may be drawn, and a word for each point that needs one."""
    words = np.broadcast_to(here["outcome"].values if "outcome" in here else "", y.shape).astype(object)
    if bars is not None:
        words = np.where(np.isfinite(bars), words, "one run, no error bar")
    if "failed" in here:
        failed, good = (np.broadcast_to(here[k].values, y.shape) for k in ("failed", "runs"))
        words = np.where(failed > 0, "some runs failed", words)
        words = np.where(good == 0, "all runs failed", words)
        y = np.where(good == 0, np.nan, y)  # the mean over no runs is not a number
    settled = np.isin(words.astype(str), ("", "converged"))
    return y, np.where(settled & ~np.isfinite(y), "no value", np.where(settled, "", words)).astype(str)


def _distinctions(datasets: list[xr.Dataset]) -> list[tuple[str, str]]:
    """What tells datasets apart: law, rule and start (a colour each), and size (a marker each)."""
    facts = _facts(datasets)
    words = [""] * len(datasets)
    for name in dict.fromkeys(name for fact in facts for name in fact):
        alike = list(words)
        for i, fact in enumerate(facts):
            rivals = {other.get(name) for other, word in zip(facts, alike, strict=True) if word == alike[i]}
            if len(rivals) > 1 and name in fact:  # named only where needed
                words[i] = ", ".join(filter(None, [words[i], fact[name]]))
    sizes = [data.attrs.get("size") for data in datasets]
    several = len(set(sizes) - {None}) > 1
    return [(w, f"N = {size}" if several and size is not None else "") for w, size in zip(words, sizes, strict=True)]


def _facts(datasets: list[xr.Dataset]) -> list[dict[str, str]]:
    """Rule, law and start of each dataset as words; controls that are swept are no part of them."""
    starts = list(dict.fromkeys(data.attrs["start"] for data in datasets if "start" in data.attrs))
    found = []
    for data in datasets:
        facts = {}
        for owner in ("rule", "law"):
            declared = json.loads(data.attrs.get(owner, "{}"))
            facts[owner] = str(declared.pop("name", ""))
            facts |= {f"{owner} {k}": f"{k} = {v}" for k, v in declared.items() if k not in data.dims}
        if "start" in data.attrs and len(starts) > 1:  # a theory may have none
            facts["start"] = f"start {starts.index(data.attrs['start']) + 1}"
        found.append(facts)
    for name in dict.fromkeys(name for facts in found for name in facts):  # whole arrays: the first, the second, ...
        values = list(dict.fromkeys(facts[name] for facts in found if name in facts))
        for facts in found if max(map(len, values)) > LONGEST_FACT else ():
            facts |= {name: f"{name} {values.index(facts[name]) + 1}"} if name in facts else {}
    return found


def _component(name: str, variable: xr.DataArray, place: dict[str, int]) -> str:
    """A component in mathematics, such as $R_{+-}$, and what is not a number in words."""
    values = [_short(variable, d, i) for d, i in place.items()]
    indices = [v for v in values if v.lstrip("-").isdigit()]
    signs = {"1": "+", "-1": "-"}
    symbol = "".join(signs[v] for v in indices) if set(indices) <= set(signs) else ",".join(indices)
    words = [v for v in values if v not in indices]
    return ", ".join([f"${name}_{{{symbol}}}$", *words] if indices else words)


def _short(variable: xr.DataArray, dim: str, index: int) -> str:
    """A coordinate as short text."""
    value = variable[dim].values[index] if dim in variable.coords else index
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else plain(value)


def _words(data: xr.Dataset, name: str) -> str:
    """The label of an axis."""
    return str(data[name].attrs.get("long_name", name.replace("_", " ")))
