"""The views of priors: what they make of a few points, and the potential in which positions were measured."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched import fields as f
from quenched.core.results import provenance
from quenched.core.types import InputError, double
from quenched.estimators import InversePotential
from quenched.explorer.answers import Answer, Knob, State, choose, plain, turn, write

END = 10.0
"""The line on which points are drawn reaches from 0 to this."""
POINTS = 101
"""Of the grid: always as many, so that programs are compiled once."""
MOST = 400
"""Points that are drawn at most."""
LEVEL = 0.9
"""Of bands."""
QUANTILE = 1.6448536269514722
"""Standard deviations to either side that hold so much of a Gaussian."""
BALANCE = 0.01
"""Strength with which the field is drawn to its template as a whole: without, evidence would not be defined."""
ORDERS = {"slope": 1, "bend": 2}
"""What a smooth field has little of, and the derivative that says so."""
SHAPES = {
    "none": None, "bump": "2.0 * np.exp(-((x - 5.0) ** 2) / 2.0)",
    "two bumps": "2.0 * np.exp(-((x - 2.5) ** 2)) + 2.0 * np.exp(-((x - 7.5) ** 2))",
    "wave": "np.sin(2.0 * np.pi * x / 5.0)", "slope": "0.3 * (x - 5.0)",
}  # fmt: skip
"""Shapes near which a field may be, as Python of the place x."""
KNOBS = (
    Knob("strength", "how smooth", "λ", 1e-3, 1e2, 1.0, log=True),
    Knob("noise", "noise of the values, standard deviation", "σ", 0.02, 2.0, 0.2, log=True),
    Knob("mirror", "how symmetric", "μ", 0.1, 1e3, 30.0, log=True),
)
"""Of the field."""
WELL_KNOBS = (Knob("temperature", "temperature, 0 for the ground state", "T", 0.0, 1.5, 0.0),)
"""Of the quantum well; hotter ones have so many states that an answer takes too long for a page."""
WELLS = {"double well": f.DoubleWell(height=3.0, distance=4.0), "oscillator": f.Harmonic()}
"""Potentials in which positions are drawn as an example."""
DRAWN = 200
"""Positions of an example."""
FEWEST = 5
"""Positions from which a potential is found at least."""


def describe() -> dict[str, Any]:
    """What the page has to know."""
    return {"end": END, "orders": list(ORDERS), "shapes": list(SHAPES), "wells": list(WELLS), "fewest": FEWEST,
            "knobs": [vars(k) for k in KNOBS], "well_knobs": [vars(k) for k in WELL_KNOBS], "most": MOST}  # fmt: skip


def _shape(name: str, x: np.ndarray) -> np.ndarray:
    """The values of a shape."""
    if name == "bump":
        return 2.0 * np.exp(-((x - 5.0) ** 2) / 2.0)
    if name == "two bumps":
        return 2.0 * np.exp(-((x - 2.5) ** 2)) + 2.0 * np.exp(-((x - 7.5) ** 2))
    return np.sin(2.0 * np.pi * x / 5.0) if name == "wave" else 0.3 * (x - 5.0)


def _drawn(state: State, coordinates: int) -> np.ndarray:
    """The points that were drawn, each with one or two coordinates."""
    given = state.get("points", [])
    good = isinstance(given, list) and all(
        isinstance(p, list) and len(p) == coordinates
        and all(isinstance(c, (int, float)) and not isinstance(c, bool) and abs(c) <= 100 for c in p) for p in given
    )  # fmt: skip
    if not good:
        raise InputError(f"Points must be lists of {coordinates} numbers, but others were given.")
    if len(given) > MOST:
        raise InputError(f"There must be at most {MOST} points, but {len(given)} were drawn.")
    points = np.array(given, float).reshape(-1, coordinates)
    if np.any((points[:, 0] < 0) | (points[:, 0] > END)):
        raise InputError(f"Points must lie between 0 and {END:g}, but some do not.")
    return points


@double
def field(state: State) -> Answer:
    """The field that a prior makes of points, and its band."""
    kind, at = choose(state, "kind", ("values", "density")), turn(KNOBS, state.get("knobs", {}))
    order = ORDERS[choose(state, "order", list(ORDERS))]
    shapes = [choose(state, name, list(SHAPES)) for name in ("shape", "other")]
    shapes = [name for name in dict.fromkeys(shapes) if name != "none"]
    periodic, symmetric = state.get("periodic") is True, state.get("symmetric") is True
    points = _drawn(state, 2 if kind == "values" else 1)
    if kind == "density" and not len(points):
        raise InputError("A density must have at least one point, but there is none: tap on the line to draw one.")
    axis = f.Axis(0, END, points=POINTS, ends=f.Periodic()) if periodic else f.Axis(0, END, points=POINTS)
    grid = f.Grid(given=[axis]) if kind == "values" else f.Grid(over=[axis])
    x, means = axis.coordinates, shapes or [None]
    operator = at["strength"] * f.Difference(grid, axis, order=order) + BALANCE * f.Mass(grid)
    if symmetric:
        operator = operator + at["mirror"] * f.Invariance(f.Mirror(grid, axis))
    priors = [f.Gaussian(operator) if name is None else f.Gaussian(operator, mean=_shape(name, x)) for name in means]
    prior = priors[0] if len(priors) == 1 else priors[0] | priors[1]
    mean, low, high, probabilities, evidence = _learn(kind, grid, points, prior, at["noise"], len(priors))
    words = " & ".join(["smooth", *(["periodic"] if periodic else []), *(["symmetric"] if symmetric else [])])
    words += f" & near ({' | '.join(shapes)})" if len(shapes) > 1 else f" & near {shapes[0]}" if shapes else ""
    templates = [_shape(name, x) for name in shapes]
    if kind == "density":
        templates = [np.exp(t) / np.sum(grid.weights * np.exp(t)) for t in templates]
    result = xr.Dataset({"mean": ("x", mean), "low": ("x", low), "high": ("x", high)}, {"x": x},
                        provenance("fields", source="field", prior=words))  # fmt: skip
    return Answer(
        {"x": plain(x), "mean": plain(mean), "low": plain(low), "high": plain(high), "words": words,
         "shapes": shapes, "templates": plain([t.tolist() for t in templates]), "log_evidence": plain(evidence),
         "probabilities": plain(probabilities)},
        _script(kind, points, at, order, shapes, periodic, symmetric), result,
    )  # fmt: skip


def _learn(
    kind: str, grid: Any, points: np.ndarray, prior: Any, noise: float, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[float], float]:
    """Mean, band, the probability of each shape, and the evidence."""
    if kind == "values":
        data = f.GaussianData(points[:, 0], points[:, 1], noise**2)
        if not len(points):  # no data: the prior itself, by a value that says nothing
            data = f.GaussianData([END / 2], [0.0], 1e12)
        found: Any = f.regress(f.Problem(data, f.Direct(grid), prior))
        reach = QUANTILE * np.sqrt(found.variance)
        band = found.mean - reach, found.mean + reach
        probabilities = [float(p) for p in found.probabilities] if count > 1 else [1.0]
        return np.asarray(found.mean), *band, probabilities, float(found.log_evidence)
    data = f.DensityData(points[:, 0])
    if count > 1:
        found = f.weigh(f.Problem(data, f.Logits(grid), prior))
        return np.asarray(found.mean), *found.band(LEVEL), [float(p) for p in found.probabilities], np.nan
    problem = f.Problem(data, f.Logits(grid), prior)
    fit: Any = f.solve(problem)
    near: Any = f.laplace(problem, fit.field)
    return np.asarray(fit.density), *near.band(LEVEL), [1.0], float(near.log_evidence)


def _script(
    kind: str, points: np.ndarray, at: dict[str, float], order: int, shapes: list[str], periodic: bool, symmetric: bool
) -> str:
    """The same in Python."""
    ends = ", ends=f.Periodic()" if periodic else ""
    mirror = f" + {at['mirror']!r} * f.Invariance(f.Mirror(grid, axis))" if symmetric else ""
    means = [f", mean={SHAPES[name]}" for name in shapes] or [""]
    prior = " | ".join(f"f.Gaussian(operator{mean})" for mean in means)
    lines = [
        "import numpy as np; from quenched import fields as f",
        f"axis = f.Axis(0, {END!r}, points={POINTS}{ends}); x = axis.coordinates",
        f"grid = f.Grid({'given' if kind == 'values' else 'over'}=[axis])",
        f"operator = {at['strength']!r} * f.Difference(grid, axis, order={order}) + {BALANCE!r} * f.Mass(grid){mirror}",
    ]
    if kind == "values":
        data = (f"{write(points[:, 0])}, {write(points[:, 1])}, {at['noise'] ** 2!r}" if len(points)
                else f"[{END / 2!r}], [0.0], 1e12")  # fmt: skip
        lines += [f"found = f.regress(f.Problem(f.GaussianData({data}), f.Direct(grid), {prior}))",
                  "print(found.mean.max(), found.variance.max())"]  # fmt: skip
    elif len(shapes) > 1:
        lines += [f"found = f.weigh(f.Problem(f.DensityData({write(points[:, 0])}), f.Logits(grid), {prior}))",
                  "print(found.mean.max(), found.probabilities)"]  # fmt: skip
    else:
        lines += [f"found = f.solve(f.Problem(f.DensityData({write(points[:, 0])}), f.Logits(grid), {prior}))",
                  "print(found.density.max())"]  # fmt: skip
    return "\n".join(lines)


def well(state: State) -> Answer:
    """The potential in which positions were measured, and its band."""
    at, truth = turn(WELL_KNOBS, state.get("knobs", {})), None
    example = choose(state, "example", ("", *WELLS))
    hot = at["temperature"] > 0
    if example:
        grid = f.Grid(given=[f.Axis(-6, 6, points=241)])
        law = f.TruePotential(grid, WELLS[example], f.Canonical(at["temperature"]) if hot else f.Ground())
        positions = law.sample(jax.random.key(0), DRAWN)[:, 0]
        truth = {"x": grid.axes[0].coordinates, "V": law.potential, "P": law.density.reshape(-1)}
    else:
        positions = np.sort(_drawn(state, 1)[:, 0])
        if len(positions) < FEWEST:
            raise InputError(f"There must be at least {FEWEST} positions, but {len(positions)} were drawn.")
    settings: dict[str, Any] = {"temperature": at["temperature"]} if hot else {}
    model = InversePotential(**settings).fit(positions)
    low, high = model.credible_band(level=LEVEL)
    x = model.grid_
    keep = (x >= positions.min()) & (x <= positions.max())
    given = "".join(f"{name}={value!r}" for name, value in settings.items())
    script = (f"from quenched.estimators import InversePotential\npositions = {write(positions.tolist())}\n"
              f"model = InversePotential({given}).fit(positions)\n"
              "low, high = model.credible_band(level=0.9)\nprint(model.potential_.min(), model.energies_)")  # fmt: skip
    if truth is not None:  # of a potential only differences are measured
        inside = np.interp(truth["x"], x, model.density_, left=0.0, right=0.0)
        truth["V"] = truth["V"] - np.sum(inside * truth["V"]) / np.sum(inside)
        near = (truth["x"] >= positions.min()) & (truth["x"] <= positions.max())
        truth = {name: plain(values[near]) for name, values in truth.items()}
    values = {"potential": model.potential_, "low": low, "high": high, "density": model.density_}
    about = provenance("fields", source="potential")
    result = xr.Dataset({name: ("x", value) for name, value in values.items()}, {"x": x}, about)
    return Answer({"x": plain(x[keep]), "potential": plain(model.potential_[keep]), "low": plain(low[keep]),
                   "high": plain(high[keep]), "density": plain(model.density_[keep]),
                   "positions": plain(positions), "energies": plain(model.energies_), "truth": truth,
                   "all": {"x": plain(x), "potential": plain(model.potential_)}}, script, result)  # fmt: skip
