"""The page with sliders: results of the public verbs on grids, and the page that draws them, in one HTML file.

`python -m benchmarks.static_page` computes all grids (about five minutes of one core) and writes `docs/explore.html`;
with `--keep` it takes them from the page that is there, but for the sciences that are named: `--keep mixtures`.
Sliders move on the nodes of a grid, so that every number on the page is one that Python gave, in single precision.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from sklearn.datasets import load_wine
from tinygp import kernels

from quenched import fields, mixtures, outliers, processes, prototypes
from quenched.core.results import version

TEMPLATE = Path(__file__).with_suffix(".html")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "explore.html"
LARGEST = 3_000_000
"""Bytes that the page may take."""

# ---- grids: the values that the sliders can take

RULES = {"LVQ1": prototypes.LVQ1, "LVQ+": prototypes.LVQPlus, "LVQ2.1": prototypes.LVQ21}
PRIOR = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9]
SEPARATION = [0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5]
RATE = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0]
TIME = [float(a) for a in range(51)]

SELECTIONS = {"soft": outliers.SoftSelection, "hard": outliers.HardSelection, "Hebb": outliers.Hebb}
GAMMA = [2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0]
ALPHA_OUTLIERS = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
ETA = [round(0.1 * i, 1) for i in range(61)]
BRANCHES = ["informed", "overfit", "trivial"]

WORLD = [0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0]
ALPHA_MIXTURES = [0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0]
WIDTH = [round(0.1 * i, 1) for i in range(1, 61)]
PHASES = ["unsplit", "random", "ordered"]
LINES = ("splitting_ordered", "splitting_random", "ordered_random", "replica_symmetry")

NOISE = [0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0]
LENGTH = [0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0]
EXAMPLES = [5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0, 56.0, 80.0, 113.0, 160.0, 226.0, 320.0]
INPUTS = np.linspace(0, 1, 60)
TARGETS = np.round(np.sin(2 * np.pi * INPUTS) + 0.5 * np.random.default_rng(0).standard_normal(60), 3)

STRENGTH = [float(f"{s:.3g}") for s in np.geomspace(0.01, 100, 17)]
ORDER = {1: 0.1, 2: 1e-3, 3: 1e-4}
"""Orders of the derivative, and the strength of each that the slider's 1 stands for."""
ROWS = [5, 10, 20, 40, 80, 178]
WINES = np.random.default_rng(0).permutation(load_wine().data[:, 0])
AXIS = fields.Axis(10.0, 16.0, points=91)


# ---- one point of each grid, as a reader of the page would compute it


def prototypes_at(rule: str, prior: float, separation: float, rate: float) -> dict[str, Any]:
    law = prototypes.TwoClusters(prior, separation)
    return {"error": prototypes.curve(law, RULES[rule](rate), alpha=TIME).error.values}


def outliers_at(rule: str, gamma: float, alpha: float) -> dict[str, Any]:
    curve = outliers.curve(outliers.Contaminated(gamma), SELECTIONS[rule](), alpha=alpha, eta=ETA)
    return _outliers(curve)


def _outliers(curve: xr.Dataset) -> dict[str, Any]:
    """R, error angle and free energy of each branch; the branch of least free energy."""
    if "branch" not in curve.dims:  # one state everywhere
        curve = curve.assign(lowest=np.isfinite(curve.R)).expand_dims(branch=BRANCHES[:1], axis=-1)
    there = curve.reindex(branch=BRANCHES)
    found = {name: there[name].transpose("eta", "branch").values for name in ("R", "Phi", "free_energy")}
    return found | {
        "lowest": np.where(np.isfinite(found["R"]), there.lowest.transpose("eta", "branch").isin([True]), np.nan)
    }


def mixtures_at(separation: float, alpha: float) -> dict[str, Any]:
    rule = mixtures.MaximumLikelihood()
    return _mixtures(mixtures.curve(mixtures.TwoGaussians(separation), rule, alpha=alpha, width=WIDTH))


def _mixtures(curve: xr.Dataset) -> dict[str, Any]:
    number = np.select([curve.phase.values == name for name in PHASES], range(len(PHASES)), -1.0)
    broken = np.where(curve.stability.values < 1, 0.0, 1.0)
    return {"r": curve.r.values, "q": curve.q.values, "error": curve.error.values, "phase": number, "broken": broken}


def lines_at(separation: float) -> dict[str, Any]:
    law = mixtures.TwoGaussians(separation)
    first, last = (float(mixtures.phase_lines(law, alpha=1.0)[name]) for name in ("alpha_c", "alpha_end"))
    low, high = ALPHA_MIXTURES[0], ALPHA_MIXTURES[-1]
    near = np.linspace(first, last, 18)[1:-1]  # where the line between true and invented clusters is
    near = near[(low < near) & (near < high)]
    alphas = np.union1d(near, np.geomspace(low, high, 43 - len(near)))
    lines = mixtures.phase_lines(law, alpha=alphas)
    return {"line_alpha": alphas} | {name: lines[name].values for name in LINES}


def processes_at(noise: float, length: float) -> dict[str, Any]:
    law = processes.Empirical(INPUTS[:, None], TARGETS)
    rule = processes.GaussianProcess(kernels.ExpSquared(length), noise=noise)
    curve = processes.theory.curve(law, rule, examples=EXAMPLES)
    mean, variance = _predicted(processes.fit(rule, (INPUTS[:, None], TARGETS)))
    return {"error": curve.error.values, "oob_error": curve.oob_error.values, "trusted": curve.trusted.values.astype(float),
            "mean": mean, "deviation": np.sqrt(variance)}  # fmt: skip


def _predicted(fit: processes.Fitted) -> tuple[np.ndarray, np.ndarray]:
    found = fit.predict(INPUTS[:, None])
    return np.asarray(found[0], float), np.asarray(found[1], float)


def fields_at(order: int, rows: int, strength: float) -> dict[str, Any]:
    grid = fields.Grid(over=[AXIS])
    prior = fields.Gaussian(ORDER[order] * strength * fields.ThinPlate(grid, order))
    problem = fields.Problem(fields.DensityData(WINES[:rows]), fields.LogDensity(grid), prior)
    fit = fields.solve(problem, modes=True)
    if not fit.converged:
        raise ValueError(f"order {order}, {rows} rows, strength {strength}: no minimum")
    posterior = fields.laplace(problem, fit)
    low, high = posterior.band()
    return {"density": fit.density, "low": low, "high": high, "evidence": np.array(posterior.log_evidence)}


# ---- all points


def over(function: Callable[..., dict[str, Any]], *axes: Sequence[Any]) -> dict[str, np.ndarray]:
    """A function at all points of a grid, stacked."""
    points = [function(*point) for point in _product(axes)]
    shape = tuple(map(len, axes))
    return {name: np.reshape([one[name] for one in points], (*shape, *np.shape(points[0][name]))) for name in points[0]}


def _product(axes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return [()] if not axes else [(value, *rest) for value in axes[0] for rest in _product(axes[1:])]


def knob(name: str, label: str, values: Sequence[Any], start: Any, symbol: str = "") -> dict[str, Any]:
    return {"name": name, "label": label, "symbol": symbol, "values": list(values), "start": list(values).index(start)}


def all_prototypes() -> dict[str, Any]:
    found = []
    for rule in RULES.values():  # swept in one call; a test compares it with the points one by one
        curve = prototypes.curve(
            prototypes.TwoClusters(), rule(), prior=PRIOR, separation=SEPARATION, rate=RATE, alpha=TIME
        )
        found.append(curve.error.values)
    best = prototypes.optimum(prototypes.TwoClusters(), prior=PRIOR, separation=SEPARATION)
    return {
        "knobs": [knob("rule", "rule", RULES, "LVQ1"), knob("prior", "share of the larger class", PRIOR, 0.8, "p₊"),
                  knob("separation", "separation of the clusters", SEPARATION, 1.0, "λ"), knob("rate", "learning rate", RATE, 0.2, "η")],
        "axes": {"alpha": TIME}, "arrays": {"error": np.array(found), "optimum": best.error.values},
    }  # fmt: skip


def all_outliers() -> dict[str, Any]:
    return {
        "knobs": [knob("rule", "student", SELECTIONS, "soft"), knob("gamma", "signal, inverse variance", GAMMA, 12.0, "γ"),
                  knob("alpha", "examples per dimension", ALPHA_OUTLIERS, 20.0, "α"), knob("eta", "log odds of an outlier", ETA, 3.0, "η")],
        "axes": {"branch": BRANCHES}, "arrays": over(outliers_at, list(SELECTIONS), GAMMA, ALPHA_OUTLIERS),
    }  # fmt: skip


def all_mixtures() -> dict[str, Any]:
    law, rule = mixtures.TwoGaussians(), mixtures.MaximumLikelihood()
    curve = mixtures.curve(law, rule, separation=WORLD, alpha=ALPHA_MIXTURES, width=WIDTH)
    swept = _mixtures(curve.transpose("separation", "alpha", "width"))
    return {
        "knobs": [knob("separation", "separation of the clusters", WORLD, 2.0, "u₀"), knob("alpha", "examples per dimension", ALPHA_MIXTURES, 2.0, "α"),
                  knob("width", "width of the student", WIDTH, 1.0, "σ")],
        "axes": {"phases": PHASES, "lines": list(LINES)}, "arrays": swept | over(lines_at, WORLD),
    }  # fmt: skip


def all_processes() -> dict[str, Any]:
    return {
        "knobs": [knob("noise", "variance of the noise", NOISE, 0.2, "σ²"), knob("length", "length scale of the kernel", LENGTH, 0.2, "ℓ"),
                  knob("examples", "examples", EXAMPLES, 80.0, "m")],
        "axes": {"x": INPUTS.tolist(), "y": TARGETS.tolist(), "standard": [float(TARGETS.mean()), float(TARGETS.std())]},
        "arrays": over(processes_at, NOISE, LENGTH),
    }  # fmt: skip


def all_fields() -> dict[str, Any]:
    return {
        "knobs": [knob("order", "derivative that the prior makes small", ORDER, 3), knob("rows", "rows seen", ROWS, 40, "n"),
                  knob("strength", "strength of the prior", STRENGTH, 1.0, "λ")],
        "axes": {"y": AXIS.coordinates.tolist(), "data": WINES.tolist(), "unit": list(ORDER.values())},
        "arrays": over(fields_at, list(ORDER), ROWS, STRENGTH),
    }  # fmt: skip


SCIENCES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "prototypes": all_prototypes, "outliers": all_outliers, "mixtures": all_mixtures, "processes": all_processes,
    "fields": all_fields,
}  # fmt: skip


def packed(values: np.ndarray) -> dict[str, Any]:
    """An array as its shape and its numbers in single precision, as text."""
    return {"shape": values.shape, "data": base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()}


def grids(known: Mapping[str, Any]) -> str:
    """All grids as JSON, those that are not known computed."""
    found = dict.fromkeys(SCIENCES) | dict(known)
    for name in SCIENCES.keys() - known.keys():
        one = SCIENCES[name]()
        found[name] = one | {"arrays": {key: packed(values) for key, values in one["arrays"].items()}}
        print(name, sum(len(array["data"]) for array in found[name]["arrays"].values()), "bytes", flush=True)
    return json.dumps({"version": version(), "sciences": found}, ensure_ascii=False, separators=(",", ":"))


def kept() -> dict[str, Any]:
    """The grids of the page that is there."""
    found = re.search(
        r'<script id="grids" type="application/json">(.*?)</script>', PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    if found is None:
        raise ValueError(f"{PAGE} has no grids.")
    return json.loads(found[1])["sciences"]


def main(arguments: Sequence[str]) -> None:
    known = {name: one for name, one in kept().items() if name not in arguments} if "--keep" in arguments else {}
    text = TEMPLATE.read_text(encoding="utf-8").replace("@GRIDS@", grids(known))
    if len(text.encode()) > LARGEST:
        raise ValueError(f"The page takes {len(text.encode())} bytes.")
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.name}: {len(text.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
