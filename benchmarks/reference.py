"""The reference values: every number of a theory that an independent route certifies, in one file.

Run `quenched reproduce --out FOLDER`, then `python -m benchmarks.reference FOLDER`: it takes the comparisons and claims
of the papers from there (and computes what is missing), solves the exactly solvable cases of `tests/systems` beside the
theory, and writes `src/quenched/reference/values.json`. A value that its other route does not confirm stops it.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from tinygp import kernels as covariances

from quenched import fields, mixtures, outliers, processes, prototypes
from quenched.core import replica, results
from quenched.core.claims import Claim
from quenched.core.figures import Figure, comparison
from quenched.core.proof import agreement
from quenched.core.store import write
from quenched.papers.reproduction.run import run
from quenched.papers.reproduction.steps import papers, steps
from quenched.reference import FORMAT, VALUES, parameters
from tests.core.test_replica import shifted_ridge
from tests.systems import clusters, lvq21, ridge, selection, vq

Row = dict[str, Any]
SCIENCES = {"biehl2006": "prototypes", "malzahn2002": "processes", "barkai1994": "mixtures", "dietrich1998": "outliers",
            "lemm1999": "fields"}  # fmt: skip
"""Of which science a paper is."""
CONTROLS = ("alpha", "examples")
DIGITS = 13
"""Significant digits that are kept."""


def row(science: str, quantity: str, value: float, route: str, other: float, allowance: float, source: str, *,
        verb: str | None = None, law: Any = None, rule: Any = None, controls: Mapping[str, Any] | None = None,
        at: Mapping[str, Any] | None = None, stderr: float | None = None, runs: int | None = None,
        size: int | None = None) -> Row:  # fmt: skip
    """A value with all that is known of it; what its other route does not confirm is an error."""
    margin = allowance + (6.0 * stderr if stderr else 0.0)
    if not abs(value - other) <= margin * (1 + 1e-9):
        raise ValueError(f"{science} {quantity} {value} is not confirmed by {other} within {margin} ({source}).")
    plain = {"science": science, "quantity": quantity, "verb": verb, "law": law, "rule": rule,
             "controls": dict(controls or {}), "at": dict(at or {}), "value": value, "route": route, "other": other,
             "stderr": stderr, "runs": runs, "size": size, "allowance": allowance, "source": source}  # fmt: skip
    return rounded(plain)


def rounded(value: Any) -> Any:
    """Plain numbers, with as many digits as both routes can have in common."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    if isinstance(value, np.generic):
        return rounded(value.item())
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def points(values: xr.DataArray, declared: xr.Dataset) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Every finite number of a result: its place, and its law, rule, controls and component."""
    given = {name: json.loads(declared.attrs[name]) if name in declared.attrs else None for name in ("law", "rule")}
    start = (
        json.loads(declared.attrs["start"])
        if declared.attrs.get("science") == "prototypes" and "start" in declared.attrs
        else None
    )
    alone = {str(name): values[name].item() for name in values.coords if values[name].ndim == 0}
    for place in np.argwhere(np.isfinite(values.values)):
        here = alone | {
            str(dim): values[dim].values[i].item() if dim in values.coords else int(i)
            for dim, i in zip(values.dims, place, strict=True)
        }
        law, rule = (dict(one) if one else None for one in (given["law"], given["rule"]))
        controls, at = {"start": start} if start else {}, {}
        for name, value in here.items():
            owner = next((one for one in (law, rule) if one and name in one), None)
            target = owner if owner is not None else controls if name in CONTROLS else at
            if not name.endswith("_label"):
                target[name] = value
        yield tuple(place), {"law": law, "rule": rule, "controls": controls, "at": at}


def exact(science: str, verb: str, result: xr.Dataset, known: Mapping[str, Any], route: str, tolerance: float,
          source: str) -> list[Row]:  # fmt: skip
    """Rows of a result and the exact values of its variables, of the same shapes; NaN where none is known."""
    found = []
    for name, other in known.items():
        other = np.broadcast_to(np.asarray(other, float), result[name].shape)
        for place, told in points(result[name].where(np.isfinite(other)), result):
            value = float(result[name].values[place])
            allowed = tolerance * max(1.0, abs(value))
            found.append(row(science, name, value, route, float(other[place]), allowed, source, verb=verb, **told))
    return found


# ---- exactly solvable cases


def of_prototypes() -> list[Row]:
    found = []
    alpha, rates = np.array([0.5, 1.0, 2.0, 5.0, 10.0, 20.0]), [0.1, 0.5, 1.0]
    for prior, separation in itertools.product((0.5, 0.6, 0.8), (1.0, 2.0)):
        law = prototypes.TwoClusters(prior, separation)
        curve = prototypes.curve(law, prototypes.LVQ21(), rate=rates, alpha=alpha)
        R = [[lvq21.R(prior, separation, rate, a, np.zeros((2, 2))) for a in alpha] for rate in rates]
        found += exact(
            "prototypes",
            "curve",
            curve,
            {"R": R},
            "closed form",
            1e-6,
            "tests/prototypes/test_theory.py::test_lvq21_is_linear",
        )
    for separation, prior, rate in itertools.product((0.5, 1.0, 2.0), (0.5, 0.6, 0.7, 0.8, 0.9), (0.05, 0.2, 1.0)):
        law, rule = prototypes.TwoClusters(prior, separation), prototypes.VQ(rate)
        declared = {name: json.loads(results.describe(one)) for name, one in (("law", law), ("rule", rule))}
        found.append(row("prototypes", "escape_rate", float(prototypes.escape_rate(law, rule)), "closed form",
                         float(vq.escape_rate(prior, separation, rate)), 1e-12, "tests/prototypes/test_asymptotics.py, tests/systems/vq.py",
                         verb="escape_rate", **declared))  # fmt: skip
    priors, separations = np.linspace(0.05, 0.95, 19), np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
    best = prototypes.optimum(prototypes.TwoClusters(), prior=priors, separation=separations)
    p, d = priors[:, None], np.sqrt(2) * separations  # two spheres a distance apart: the best boundary is flat
    shift = np.log(p / (1 - p)) / d
    error = p * stats.norm.cdf(-d / 2 - shift) + (1 - p) * stats.norm.cdf(-d / 2 + shift)
    return found + exact(
        "prototypes",
        "optimum",
        best,
        {"error": error},
        "closed form",
        1e-8,
        "tests/prototypes/test_asymptotics.py::test_the_optimum_is_the_best_flat_boundary",
    )


def of_mixtures() -> list[Row]:
    found, source = [], "tests/mixtures/test_theory_exact.py"
    law, alphas, separations = (
        mixtures.TwoGaussians(),
        np.array([0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0]),
        np.array([0.5, 1.0, 1.5, 2.0, 3.0]),
    )
    for separation in separations:
        lines = mixtures.phase_lines(mixtures.TwoGaussians(separation), alpha=alphas)
        gain = separation**2 / 2  # the largest eigenvalue of the covariance, of noise and of the signal in it
        seen = alphas * gain**2 > 1  # below, the signal's eigenvalue is within those of noise
        spike = np.where(seen, (1 + gain) * (1 + 1 / (alphas * gain)), np.nan)
        known = {
            "splitting_random": (1 + 1 / np.sqrt(alphas)) ** 2,
            "splitting_ordered": spike,
            "alpha_c": 4 / separation**4,
        }
        found += exact(
            "mixtures",
            "phase_lines",
            lines,
            known,
            "closed form",
            1e-9,
            "tests/mixtures/test_theory.py: the largest eigenvalue of a random covariance",
        )
    best = mixtures.optimum(law, separation=separations, alpha=alphas)
    least = [[clusters.least_error(u, a) for a in alphas] for u in separations]
    found += exact("mixtures", "optimum", best, {"error": least}, "quadrature", 1e-8, source)
    apart = mixtures.curve(law, mixtures.MaximumLikelihood(1.0), separation=[50.0, 100.0, 1000.0], alpha=alphas[2:])
    r, q, _ = np.moveaxis([[clusters.far_apart(u, a) for a in alphas[2:]] for u in apart.separation.values], -1, 0)
    found += exact("mixtures", "curve", apart, {"r": r, "q": q}, "closed form", 1e-7, source)
    narrow = mixtures.curve(
        mixtures.TwoGaussians(2.0), mixtures.MaximumLikelihood(), alpha=[20.0, 100.0], width=[1e-3, 1e-4, 1e-6, 1e-10]
    )
    r, q = (np.array([clusters.two_means(2.0, a)[i] for a in narrow.alpha.values]) for i in (0, 1))
    shape = [-1 if dim == "alpha" else 1 for dim in narrow.r.dims]
    known = {"r": r, "q": q, "error": clusters.error(2.0, r, q)}
    found += exact(
        "mixtures",
        "curve",
        narrow,
        {name: np.broadcast_to(v.reshape(shape), narrow.r.shape) for name, v in known.items()},
        "closed form",
        1e-6,
        source,
    )
    return found + by_quadrature_of_mixtures()


def by_quadrature_of_mixtures() -> list[Row]:
    """Ordered states against plain quadrature."""
    curve = mixtures.curve(
        mixtures.TwoGaussians(),
        mixtures.MaximumLikelihood(),
        separation=[1.5, 2.0, 2.5, 3.0, 4.0],
        alpha=[2.0, 5.0, 10.0, 20.0],
        width=[0.5, 0.75, 1.0, 1.5, 2.0],
    )
    known = {name: np.full(curve.r.shape, np.nan) for name in ("r", "q", "error")}
    for place in np.argwhere(curve.phase.values == "ordered"):
        at = {dim: float(curve[dim].values[i]) for dim, i in zip(curve.r.dims, place, strict=True)}
        state = curve.isel(dict(zip(curve.r.dims, map(int, place), strict=True)))
        for chi in (1.0, 1.3, 2.0, 0.7, 4.0):
            (r, q, _), left = clusters.solve(
                (float(state.r), float(state.q), chi), at["separation"], at["alpha"], at["width"]
            )
            if left < 1e-11:
                for name, value in (("r", r), ("q", q), ("error", clusters.error(at["separation"], r, q))):
                    known[name][tuple(place)] = value
                break
    return exact("mixtures", "curve", curve, known, "quadrature", 1e-7, "tests/systems/clusters.py")


def of_outliers() -> list[Row]:
    found = []
    cases = [(outliers.SoftSelection(), 0.0), *((outliers.Gibbs(temperature=T), T) for T in (0.1, 1.0))]
    for (rule, T), gamma, alpha in itertools.product(cases, (5.0, 10.0, 20.0), (5.0, 20.0)):
        curve = outliers.curve(outliers.Contaminated(gamma), rule, alpha=alpha, eta=[0.0, 1.0, 2.0, 3.0])
        names = [name for name in ("R", "Q", "z", "free_energy") if name in curve]
        known = {name: np.full(curve.R.shape, np.nan) for name in names}
        stable = (curve.outcome.values == "converged") & (curve.R.values > 1e-3)
        for place in map(tuple, np.argwhere(stable)):
            eta = float(curve.eta.values[place[curve.R.dims.index("eta")]])
            R, Q, z = (float(curve[name].values[place]) for name in ("R", "Q", "z"))
            x, left = selection.solve((R, Q - T * z, z), gamma, alpha, eta, T)
            if left < 1e-9:
                own = dict(zip(("R", "q", "z"), x, strict=True))
                own |= {"Q": own["q"] + T * own["z"], "free_energy": selection.free_energy(*x, gamma, alpha, eta, T)}
                for name in names:
                    known[name][place] = own[name]
        if T:
            known.pop("free_energy", None)  # of another convention than the energy at zero temperature
        found += exact("outliers", "curve", curve, known, "quadrature", 1e-6, "tests/systems/selection.py")
    return found


def of_replica() -> list[Row]:
    found, alpha = [], np.array([0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 6.0])
    for strength, noise in itertools.product((0.01, 0.1, 1.0), (0.1, 0.25, 1.0)):
        curve = replica.curve(shifted_ridge(strength, noise), alpha=alpha)
        words = f"a linear teacher of norm 1 with noise of variance {noise}"
        student = f"ridge regression of J - B, strength {strength}"
        for name, known in ridge.closed_form(alpha, strength, noise).items():
            for a, value, other in zip(alpha, curve[name].values, known, strict=True):
                found.append(row("replica", name, float(value), "closed form", float(other), 1e-8,
                                 "tests/core/test_replica.py::test_ridge_regression_is_marchenko_and_pasturs",
                                 law=words, rule=student, controls={"alpha": float(a)}))  # fmt: skip
    return found


def of_processes() -> list[Row]:
    """Errors without averages over samples, against scikit-learn trained on all rows, and on all but one."""
    found, (X, y) = [], load_diabetes(return_X_y=True)
    X, y = X[:60] / X.std(0), y[:60]
    for length, noise in itertools.product((2.0, 4.0, 8.0), (0.1, 0.5, 1.0)):
        law = processes.Empirical(X, y)
        rule = processes.GaussianProcess(covariances.ExpSquared(length), noise=noise)
        curve = processes.theory.curve(law, rule, examples=60)
        t = (y - y.mean()) / y.std()
        model = GaussianProcessRegressor(kernels.RBF(length), alpha=noise, optimizer=None)
        left_out = [t[i] - model.fit(np.delete(X, i, 0), np.delete(t, i)).predict(X[i : i + 1])[0] for i in range(60)]
        trained = t - model.fit(X, t).predict(X)
        for name, residuals in (("leave_one_out", left_out), ("training_error", trained)):
            found.append(row("processes", name, float(curve.attrs[name]), "closed form", float(np.mean(np.square(residuals))), 1e-9,
                             "tests/processes/test_theory.py::test_reference_is_refitting",
                             law="Empirical: first 60 rows of scikit-learn's diabetes, columns divided by their standard deviations over all rows; targets standardised",
                             rule=f"GaussianProcess(ExpSquared({length}), noise={noise})", controls={}))  # fmt: skip
    return found


def of_fields() -> list[Row]:
    found = []
    grid = fields.Grid(given=[fields.Axis(-4, 12, points=801)])
    wells = [(fields.Harmonic(w, centre=2.0), w * (np.arange(3) + 0.5)) for w in (1.0, 1.5, 2.0, 3.0)]
    wells += [
        (fields.Morse(depth, width=1.0), depth - (np.sqrt(2 * depth) - np.arange(3) - 0.5) ** 2 / 2)
        for depth in (8.0, 10.0, 12.0)
    ]
    for shape, levels in wells:
        for n, (value, other) in enumerate(
            zip(fields.Hamiltonian().levels(grid, shape.values(grid), 3)[0], levels, strict=True)
        ):
            found.append(row("fields", "level", float(value), "closed form", float(other), 1e-3 * float(other),
                             "tests/fields/test_quantum.py::test_named_potentials_have_their_levels",
                             law=f"{shape}, mass and hbar 1, 801 points from -4 to 12", at={"level": n}))  # fmt: skip
    line, examples = fields.Axis(0, 1, points=12), np.array([1, 3, 10, 30, 100])
    inputs = fields.Grid(given=[line])
    truth = np.sin(6 * line.coordinates)
    student = fields.MaximumPosterior(fields.Direct(inputs), fields.Gaussian(fields.Mass(inputs)))
    for variance, strength in itertools.product((0.1, 0.3, 1.0), (0.1, 1.0, 10.0)):
        curve = fields.curve(
            fields.TrueFunction(inputs, truth, variance=variance), student, examples=examples, strength=[strength]
        )
        for n, value in zip(examples, curve.test_error.values.ravel(), strict=True):
            rows = (n - np.arange(12) + 11) // 12 / variance  # every point by itself: a shrunken mean of its rows
            pull = strength * inputs.cell
            off = np.mean((truth**2 * pull**2 + rows) / (pull + rows) ** 2)
            other = 0.5 * np.log(2 * np.pi * variance) + 0.5 + off / (2 * variance)
            found.append(row("fields", "test_error", float(value), "closed form", float(other), 1e-9, "benchmarks/reference.py: points without a link between them",
                             law=f"TrueFunction: sin(6x) at 12 points of [0, 1], noise of variance {variance}",
                             rule=f"MaximumPosterior: Gaussian(Mass), strength {strength}", controls={"examples": int(n)}))  # fmt: skip
    return found


def by_simulation() -> list[Row]:
    """Prototypes beside the exact chain of their overlaps, at rates and priors that the paper does not have."""
    found, alpha = [], [1.0, 5.0, 20.0]
    for i, (rule, prior) in enumerate(itertools.product((prototypes.LVQ1(0.5), prototypes.LVQPlus(0.5)), (0.5, 0.7))):
        law = prototypes.TwoClusters(prior, 1.5)
        curve = prototypes.curve(law, rule, alpha=alpha)
        points = prototypes.measure(
            law, rule, alpha=alpha, size=200, runs=100, key=jax.random.key(i), simulator=prototypes.Chain(), tests=500
        )
        proof = {"exact chain of overlaps": agreement(curve, points, allowance=0.004)}
        if not proof["exact chain of overlaps"].passed:
            raise ValueError(f"{law} and {rule}: {proof}")
        found += of_figure(
            Figure("prototypes/benchmarks.reference", "", "", (), {"theory": curve, "simulation": points}, proof)
        )
    return found


# ---- comparisons and claims of the papers


def of_figure(figure: Figure) -> list[Row]:
    """Theory beside simulation, at every point that a figure compares."""
    science = figure.key.split("/")[0]
    science, found = SCIENCES.get(science, science), []
    for name, proof in figure.agreement.items():
        if not proof.passed:
            continue
        source = comparison(figure, name)
        for variable, z in proof.z.items():
            pair = matching(figure, str(variable), z)
            if pair is None:
                print(f"{comparison(figure, name)}: {variable} has no theory among the data of the figure")
                continue
            theory, simulation = pair
            values, mean, stderr = (
                chosen(one, z) for one in (theory[variable], simulation[variable], simulation[f"{variable}_stderr"])
            )
            allowance = proof.allowances.get(str(variable), proof.allowance)
            for place, told in points(values, theory):
                value, error = float(values.values[place]), float(stderr.values[place])
                extra = proof.relative_allowance * abs(value)
                verb = "curve" if science in ("prototypes", "mixtures", "outliers") and told["law"] else None
                if science == "processes":
                    told |= {"law": f"the data of {comparison(figure, name)}", "rule": json.dumps(told["rule"])[:200]}
                found.append(row(science, str(variable), value, "simulation", float(mean.values[place]), allowance + extra + 1e-9, source,
                                 verb=verb, stderr=error, runs=proof.runs, size=simulation.attrs.get("size"), **told))  # fmt: skip
    return found


def matching(figure: Figure, variable: str, z: xr.DataArray) -> tuple[xr.Dataset, xr.Dataset] | None:
    """The theory and the simulation of a figure whose difference in standard errors is `z`."""
    simulated = [one for one in figure.data.values() if f"{variable}_run" in one]
    theories = [one for one in figure.data.values() if variable in one and f"{variable}_run" not in one]
    theories = [
        part
        for one in theories
        for part in ([one.sel(branch=b) for b in one.branch.values] if "branch" in one.dims else [one])
    ]
    for simulation, theory in itertools.product(simulated, theories):
        try:
            value, mean, stderr = (
                chosen(one, z) for one in (theory[variable], simulation[variable], simulation[f"{variable}_stderr"])
            )
            off = (mean - value.values) / stderr.where(stderr > 0, np.inf)
            if off.shape == z.shape and np.allclose(off.values, z.values, atol=1e-6, equal_nan=True):
                return theory, simulation
        except (KeyError, ValueError, IndexError):
            continue
    return None


def chosen(values: xr.DataArray, z: xr.DataArray) -> xr.DataArray:
    """A variable at the points that were compared."""
    for dim in z.dims:
        if dim in values.dims and dim in z.coords:
            tolerance = (
                {"method": "nearest", "tolerance": 1e-9 * (1 + np.max(np.abs(z[dim].values)))}
                if z[dim].dtype.kind == "f"
                else {}
            )
            values = values.sel({dim: z[dim].values}, **tolerance)
        elif dim in z.coords and dim not in values.dims:
            values = values.expand_dims(dim)
    return values.transpose(*z.dims)


def of_claim(paper: str, claim: Claim) -> list[Row]:
    """Numbers of a claim that lie within two bounds: near what is printed, or near what corrects it."""
    found = []
    for check in (claim.stands, claim.instead):
        for part in check.parts if check is not None and check.holds else ():
            if part.inside and math.isfinite(part.low) and math.isfinite(part.high):
                found.append(row(SCIENCES[paper], f"{claim.statement}: {part.what or 'value'}", part.value, "printed", (part.low + part.high) / 2,
                                 (part.high - part.low) / 2, f"{paper}, {claim.where}", law=claim.evidence, stderr=part.stderr or None))  # fmt: skip
    return found


def of_papers(folder: Path) -> list[Row]:
    found: list[Row] = []
    for step, done in run(steps(papers()), quick=True, folder=folder).items():
        if isinstance(done.value, Figure):
            found += of_figure(done.value)
        elif done.value is not None:
            found += [one for claim in done.value for one in of_claim(step.paper, claim)]
        else:
            print(f"{step}: {done.sentence}")
    return found


def compute(one: Mapping[str, Any]) -> float:
    """The present theory's value of a row whose parameters are not words."""
    science = one["science"]
    asked = ("law",) if one["verb"] in ("phase_lines", "optimum") else ("law", "rule")  # those are of every student
    declared = [parameters(science, one[name]) for name in asked]
    controls = {
        name: parameters(science, value) if name == "start" else value for name, value in one["controls"].items()
    }
    if one["verb"] == "phase_lines":
        controls.setdefault("alpha", 1.0)  # alpha_c is of all
    module = {"prototypes": prototypes, "mixtures": mixtures, "outliers": outliers}[science]
    result = getattr(module, one["verb"])(*declared, **controls)
    if not isinstance(result, xr.Dataset):
        return float(result)
    at = {name: value for name, value in one["at"].items() if name in result.dims}
    return float(result[one["quantity"]].sel(at))


def unique(rows: Iterable[Row]) -> list[Row]:
    """Every row once."""
    return list({json.dumps(one, sort_keys=True): one for one in rows}.values())


def main(folder: Path) -> None:
    with jax.enable_x64(True):
        every = [*of_prototypes(), *of_mixtures(), *of_outliers(), *of_replica(), *by_simulation()]
    rows = unique([*every, *of_processes(), *of_fields(), *of_papers(folder)])
    head = json.dumps({"format": FORMAT, "version": results.version()})[:-1]
    body = ",\n".join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in rows)
    write(VALUES, f'{head}, "values": [\n{body}\n]}}\n')
    for science in dict.fromkeys(one["science"] for one in rows):
        routes = [one["route"] for one in rows if one["science"] == science]
        print(science, {route: routes.count(route) for route in dict.fromkeys(routes)})
    print(len(rows), "values")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
