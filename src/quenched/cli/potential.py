"""What `quenched potential` reads and prints, for a reader with measured positions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console

from quenched import io
from quenched.cli import digits, screen, tables
from quenched.core.types import InputError

EXAMPLE = 400
"""Positions of the example."""


def read(data: Path | None, column: str | None, **how: Any) -> tuple[io.Table, str]:
    """The positions as targets, and the name of the file."""
    if not tables.is_given(data, "potential", "--column", column, "the column with the positions", **how):
        positions = example()
        called = "positions drawn in a double well, because no file was given"
        return io.Table(np.zeros((len(positions), 0)), positions, (), "position"), called
    found, called = tables.read(data, None, [str(column)], **how)
    io.require_spread(called, str(column), found.inputs[:, 0])
    return found._replace(inputs=found.inputs[:, :0], targets=found.inputs[:, 0], names=(), target=column), called


def example() -> np.ndarray:
    """Positions of a particle in the ground state of a double well, measured again and again."""
    from quenched import fields

    axis = fields.Axis(-5, 5, points=401)
    y = axis.coordinates
    p = fields.Ground().density(fields.Grid(given=[axis]), 0.22 * (y**2 - 2.25) ** 2)
    random = np.random.default_rng(0)
    return random.choice(y, EXAMPLE, p=p / p.sum()) + axis.spacing * (random.uniform(size=EXAMPLE) - 0.5)


def state_of(text: str) -> Any:
    """What a state is called here: ground, or the number of a level."""
    if text.strip().lower() == "ground":
        return "ground"
    if not text.strip().isdecimal():
        raise InputError(f"Option --state must be 'ground' or the number of a level, from 0, but {text!r} was given.")
    return int(text)


def number(option: str, value: float | None) -> float | None:
    """Check a number that must be positive."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise InputError(f"Option --{option} must be positive, but {value:g} was given.")
    return value


def describe(table: io.Table, **settings: Any) -> xr.Dataset:
    """The potential in which the positions were measured, as a dataset."""
    from quenched.estimators import InversePotential

    model = InversePotential(**settings).fit(np.asarray(table.targets))
    return model.describe().assign_attrs(column=str(table.target))


def show(result: xr.Dataset, console: Console) -> None:
    """Print a headline, the lowest energies, and the potential at a few places."""
    a, x = result.attrs, result["value"].values
    E, error = result["energy"].values, result["energy_deviation"].values
    screen.say(console, f"{a['data']}: {int(a['rows']):,} rows of {a['column']}, measured in {a['measured']}", "")
    screen.say(console, _headline(result), "")
    levels = screen.grid(("level", (str(k) for k in range(len(E)))), ("energy", map(digits.number, E)),
                         ("standard deviation", map(digits.number, error)),
                         ("above the lowest", map(digits.number, E - E[0])))  # fmt: skip
    console.print(levels, highlight=False)
    P = result["density"].values
    below = np.cumsum(P) / P.sum()
    places = np.interp([0.05, 0.25, 0.5, 0.75, 0.95], below, x)
    at = {name: np.interp(places, x, result[name].values) for name in ("potential", "potential_low", "potential_high")}
    words = a["column"], "potential", "from", "to (90%)"
    columns = zip(words, (places, *at.values()), strict=True)
    screen.titled(console, "potential", screen.grid(*((word, map(digits.number, values)) for word, values in columns)))
    screen.say(console, "", "Positions leave a constant open: energies count from the mean of the potential "
                            f"over them. Mass {a['mass']:g}, ħ = {a['hbar']:g}. Log-evidence "
                            f"{a['log_evidence']:.1f}.")  # fmt: skip


def _headline(result: xr.Dataset) -> str:
    """How many wells, how deep, and how far the first level is."""
    x, V, E = (result[name].values for name in ("value", "potential", "energy"))
    edges = result["edge"].values
    seen = (x >= edges[0]) & (x <= edges[-1])
    x, V = x[seen], V[seen]
    inner = (V[1:-1] < V[:-2]) & (V[1:-1] <= V[2:])
    bottoms = [digits.number(place) for place in x[1:-1][inner]]
    wells = "no well inside the data" if not bottoms else "a well" if len(bottoms) == 1 else f"{len(bottoms)} wells"
    where = f" at {', '.join(bottoms)}" if bottoms else ""
    return (
        f"The potential has {wells}{where}; the first excited level lies {digits.number(E[1] - E[0])} above the lowest."
    )
