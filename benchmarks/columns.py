"""Densities of several columns, rows by the million, and functions of few rows.

* Planes and space: how often the 90% band holds the true density at 20 places inside the region of the densest 90%, the
  integrated squared error, and the log-density of new rows less the truth's.
* A plane of 10,000 rows beside KDEpy and NIFTy, in one run.
* Rows counted in a second, by Dask and in batches.
* How often the 90% band of `FieldRegressor` holds a function of few rows, beside scikit-learn's Gaussian process.

`python -m benchmarks.columns` writes `benchmarks/results/columns.json` and a section of `docs/benchmarks.md`; with `page` it
writes the section again from the results; `ask SIDE` is what runs in the environment of a side.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worker import HOME, SINGLE

RESULTS = Path(__file__).resolve().parent / "results" / "columns.json"
LEVEL, PLACES, NEW, DENSEST = 0.9, 20, 4_000, 0.9
SIZES, SEEDS = (500, 5_000), {2: 20, 3: 10}
SIDE = np.linspace(-4.0, 4.0, 161)
"""Of the square in which planes are compared with peers."""
Part = tuple[float, Any, Any]


class Gaussians:
    """A mixture of Gaussians: shares, centres and covariances."""

    def __init__(self, *parts: Part):
        self.parts = [(share, np.array(centre, float), np.array(spread, float)) for share, centre, spread in parts]

    def draw(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """New rows."""
        which = rng.choice(len(self.parts), rows, p=[share for share, _, _ in self.parts])
        X = rng.normal(size=(rows, len(self.parts[0][1])))
        for i, (_, centre, spread) in enumerate(self.parts):
            X[which == i] = centre + X[which == i] @ np.linalg.cholesky(spread).T
        return X

    def pdf(self, x: np.ndarray) -> np.ndarray:
        """The density."""
        total = np.zeros(x.shape[:-1])
        for share, centre, spread in self.parts:
            z = x - centre
            norm = np.sqrt(np.linalg.det(2 * np.pi * spread))
            total += share * np.exp(-0.5 * np.sum(z * np.linalg.solve(spread, z[..., None])[..., 0], axis=-1)) / norm
        return total


class Banana:
    """A Gaussian along a parabola."""

    def draw(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """New rows."""
        x = rng.normal(size=rows)
        return np.stack([x, x**2 / 1.5 + 0.5 * rng.normal(size=rows)], axis=1)

    def pdf(self, p: np.ndarray) -> np.ndarray:
        """The density."""
        x, y = p[..., 0], p[..., 1]
        return np.exp(-(x**2) / 2 - (y - x**2 / 1.5) ** 2 / 0.5) / np.pi


FAMILY: dict[int, dict[str, Any]] = {
    2: {
        "Gaussian": Gaussians((1, [0, 0], [[1, 0.7], [0.7, 1]])),
        "narrow": Gaussians((1, [0, 0], [[1, 0.95], [0.95, 1]])),
        "two": Gaussians((0.5, [-1.2, 0], 0.36 * np.eye(2)), (0.5, [1.2, 0.5], 0.36 * np.eye(2))),
        "narrow in wide": Gaussians((0.3, [0, 0], 0.04 * np.eye(2)), (0.7, [0.5, 0.5], np.eye(2))),
        "three": Gaussians(
            (0.4, [-1.5, -1], [[0.3, 0.2], [0.2, 0.3]]),
            (0.3, [1.5, -1], [[0.3, -0.2], [-0.2, 0.3]]),
            (0.3, [0, 1.3], [[0.6, 0], [0, 0.1]]),
        ),
        "banana": Banana(),
    },
    3: {
        "Gaussian": Gaussians((1, [0.5, -1, 2], [[1.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])),
        "two": Gaussians((0.5, [-1.2] * 3, 0.36 * np.eye(3)), (0.5, [1.2] * 3, 0.36 * np.eye(3))),
    },
}
FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sine": lambda x: np.sin(2 * np.pi * x),
    "parabola": lambda x: 4 * (x - 0.5) ** 2,
    "step": lambda x: np.tanh(8 * (x - 0.5)),
    "bump": lambda x: np.exp(-(((x - 0.4) / 0.15) ** 2)),
    "line": lambda x: 1.5 * x,
}
NOISE, FEW, REPEATS = 0.2, (8, 12, 20, 50), 80


def judge(question: tuple[int, str, int, int]) -> dict[str, Any]:
    """`FieldDensity()` on one data set."""
    from quenched.estimators import FieldDensity

    columns, name, rows, seed = question
    warnings.simplefilter("ignore")
    law, rng = FAMILY[columns][name], np.random.default_rng([seed, rows, columns])
    X, new = law.draw(rows, rng), law.draw(NEW, rng)
    truth = law.pdf(new)
    at = new[truth > np.quantile(truth, 1 - DENSEST)][:PLACES]
    begin = time.process_time()
    model = FieldDensity().fit(X)
    seconds = time.process_time() - begin
    low, high = model.credible_band(at, level=LEVEL)
    p, q = law.pdf(at), model.pdf(new)
    return {
        "columns": columns, "density": name, "rows": rows, "points": len(model.grid_[0]), "cpu_s": seconds,
        "covered": float(np.mean((low < p) & (p < high))),
        "error": float(np.mean((q - truth) ** 2 / truth)),
        "log_density": float(np.mean(np.log(q) - np.log(truth))),
    }  # fmt: skip


def regress(question: tuple[str, int, int]) -> dict[str, Any]:
    """`FieldRegressor()` and a Gaussian process on few rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    from quenched.estimators import FieldRegressor

    name, rows, seed = question
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, rows, len(name)])
    X = rng.random((rows, 1))
    y = FUNCTIONS[name](X[:, 0]) + NOISE * rng.normal(size=rows)
    at = np.linspace(X.min(), X.max(), PLACES)[:, None]
    truth, found = FUNCTIONS[name](at[:, 0]), {"rows": rows}
    kernel = ConstantKernel(1.0) * RBF(0.3) + WhiteKernel(0.1)
    peer = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0).fit(X, y)
    mean, deviation = peer.predict(at, return_std=True)
    noise = peer.kernel_.k2.noise_level * np.var(y)  # of a new value; the band is that of the function
    sides = {
        "ours": FieldRegressor().fit(X, y).predict(at, return_std=True),
        "theirs": (mean, np.sqrt(np.maximum(deviation**2 - noise, 1e-12))),
    }
    for side, (mean, deviation) in sides.items():
        found[f"{side}_covered"] = float(np.mean(np.abs(mean - truth) < 1.645 * deviation))
        found[f"{side}_error"] = float(np.mean((mean - truth) ** 2))
    return found


def plane() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """10,000 rows, the places at which a density is asked for `[places, 2]`, and the truth there."""
    law = FAMILY[2]["three"]
    at = np.stack(np.meshgrid(SIDE, SIDE, indexing="ij"), axis=-1).reshape(-1, 2)
    return law.draw(10_000, np.random.default_rng(0)), at, law.pdf(at)


def ours(X: np.ndarray, at: np.ndarray) -> np.ndarray:
    """`FieldDensity()`, nothing set."""
    from quenched.estimators import FieldDensity

    return FieldDensity().fit(X).pdf(at)


def kernels(X: np.ndarray, at: np.ndarray) -> np.ndarray:
    """KDEpy by Fourier transform, each column in units of its bandwidth (Scott's rule): it has no better one in a plane."""
    import KDEpy  # pyright: ignore[reportMissingImports]
    from scipy.interpolate import RegularGridInterpolator

    width = X.std(axis=0) * len(X) ** (-1 / 6)
    points, p = KDEpy.FFTKDE(bw=1.0).fit(X / width).evaluate((512, 512))
    x, y = (np.unique(column) for column in points.T)
    found = RegularGridInterpolator((x, y), p.reshape(512, 512), bounds_error=False, fill_value=0.0)
    return found(at / width) / np.prod(width)


def variational(X: np.ndarray, at: np.ndarray) -> np.ndarray:
    """NIFTy: Poisson counts on 64 x 64 cells of a log-normal field whose spectrum is inferred; priors are not tuned."""
    import jax
    import jax.numpy as jnp
    import nifty.re as jft  # pyright: ignore[reportMissingImports]
    from scipy.interpolate import RegularGridInterpolator

    jax.config.update("jax_enable_x64", True)
    cells, pad = 64, 0.25 * np.ptp(X, axis=0)
    edges = [
        np.linspace(low, high, cells + 1) for low, high in zip(X.min(axis=0) - pad, X.max(axis=0) + pad, strict=True)
    ]
    counts, _, _ = np.histogram2d(*X.T, bins=edges)
    area = float(np.prod([side[1] - side[0] for side in edges]))
    maker = jft.CorrelatedFieldMaker("field")
    maker.set_amplitude_total_offset(offset_mean=-4.0, offset_std=(2.0, 1.0))
    maker.add_fluctuations(
        (cells, cells), distances=1 / cells, fluctuations=(3.0, 1.5), loglogavgslope=(-5.0, 1.0), flexibility=(1.0, 0.5),
        asperity=(0.5, 0.25), prefix="x", non_parametric_kind="power",
    )  # fmt: skip
    field = maker.finalize()

    class Expected(jft.Model):
        """Expected counts."""

        def __init__(self) -> None:
            super().__init__(init=field.init)

        def __call__(self, x: Any) -> Any:
            return len(X) * area * jnp.exp(field(x))

    expected = Expected()
    likelihood = jft.Poissonian(jnp.asarray(counts, dtype=int)).amend(expected)
    start, key = jax.random.split(jax.random.key(0))
    newton = {"name": None, "xtol": 1e-4, "cg_kwargs": {"name": None}}
    samples, _ = jft.optimize_kl(
        likelihood, jft.Vector(0.1 * jft.Vector(likelihood.init(start))), key=key, n_total_iterations=5, n_samples=4,
        sample_mode="nonlinear_resample", odir=None,
        draw_linear_kwargs={"cg_name": None, "cg_kwargs": {"absdelta": 1e-5 * cells**2, "maxiter": 100}},
        nonlinearly_update_kwargs={"minimize_kwargs": {**newton, "maxiter": 5}},
        kl_kwargs={"minimize_kwargs": {**newton, "maxiter": 35}},
    )  # fmt: skip
    p = np.mean([np.asarray(expected(s)) for s in samples], axis=0) / len(X) / area
    middle = [(side[1:] + side[:-1]) / 2 for side in edges]
    return RegularGridInterpolator(middle, p, bounds_error=False, fill_value=0.0)(at)


SIDES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "ours": ("FieldDensity", ours),
    "density": ("KDEpy, FFTKDE, Scott's rule", kernels),
    "nifty": ("NIFTy.re, geoVI, 64 x 64 cells", variational),
}


def answer(side: str) -> None:
    """What one side says of the plane, printed as one line; processor seconds of the second call."""
    X, at, truth = plane()
    name, ask = SIDES[side]
    for _ in range(2):
        begin = time.process_time()
        p = ask(X, at)
        seconds = time.process_time() - begin
    print(
        json.dumps(
            {"model": name, "cpu_s": seconds, "error": float(np.sum((p - truth) ** 2) * (SIDE[1] - SIDE[0]) ** 2)}
        )
    )


def peers() -> list[dict[str, Any]]:
    """All sides on the plane."""
    from benchmarks.environments import python_of

    found = []
    for side in SIDES:
        command = [str(python_of(side)), "-m", "benchmarks.columns", "ask", side]
        path = {"PYTHONPATH": os.pathsep.join([str(HOME), *([str(HOME / "src")] if side == "ours" else [])])}
        said = subprocess.run(
            command, cwd=HOME, env={**os.environ, **SINGLE, **path}, stdout=subprocess.PIPE, text=True
        )
        lines = said.stdout.strip().splitlines()
        found.append(json.loads(lines[-1]) if said.returncode == 0 else {"model": SIDES[side][0], "failed": True})
    return found


def throughput(chunk: int = 1_000_000, many: int = 20) -> list[dict[str, Any]]:
    """Rows counted in a processor second: two passes of Dask, batches, and one fit of as many rows in memory."""
    import dask  # pyright: ignore[reportMissingImports]
    import dask.array as da  # pyright: ignore[reportMissingImports]

    from quenched.estimators import FieldDensity

    found = []
    for columns in (1, 2, 3):
        block = np.random.default_rng(0).normal(size=(chunk, columns))
        given: Any = {"order": 3, "strength": 1.0}  # one strength: counting is what is measured
        X = da.concatenate([da.from_array(block, chunks=chunk, name=f"part{i}") for i in range(many)])
        FieldDensity(**given).fit(block[:2_000])
        line: dict[str, Any] = {"columns": columns, "rows": chunk * many}
        with dask.config.set(scheduler="synchronous"):
            begin = time.process_time()
            FieldDensity(**given).fit(X)
            line["dask"] = chunk * many / (time.process_time() - begin)
        model, begin = FieldDensity(**given), time.process_time()
        for i in range(many):
            model.partial_fit(block, update=i == many - 1)
        line["batches"] = chunk * many / (time.process_time() - begin)
        found.append(line)
    return found


def run(processes: int | None = None) -> dict[str, Any]:
    """Everything."""
    from benchmarks import page

    os.environ.update(SINGLE)
    questions = [(d, name, n, s) for d, laws in FAMILY.items() for n in SIZES for name in laws for s in range(SEEDS[d])]
    few = [(name, n, s) for n in FEW for name in FUNCTIONS for s in range(REPEATS)]
    with ProcessPoolExecutor(processes) as pool:
        cells, values = list(pool.map(judge, questions, chunksize=4)), list(pool.map(regress, few, chunksize=10))
    return {
        "machine": page.machine(),
        "densities": _means(cells, ("columns", "density", "rows")),
        "regression": _means(values, ("rows",)),
        "plane": peers(),
        "throughput": throughput(),
    }


def _means(found: list[dict[str, Any]], by: tuple[str, ...]) -> list[dict[str, Any]]:
    """Means over data sets."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for one in found:
        groups.setdefault(tuple(one[key] for key in by), []).append(one)
    return [
        dict(zip(by, which, strict=True))
        | {"runs": len(each)}
        | {key: float(f"{np.mean([one[key] for one in each]):.4g}") for key in each[0] if key not in by}
        for which, each in groups.items()
    ]


def page_section(found: dict[str, Any]) -> str:
    """The section of the page."""
    from benchmarks import page

    lines = [
        (c["columns"], c["density"], f"{c['rows']:,}", f"{c['points']:g}", c["runs"], f"{c['covered']:.0%}", f"{c['error']:.2g}", f"{c['log_density']:.2g}",
         f"{c['cpu_s']:.2f}") for c in found["densities"]
    ]  # fmt: skip
    means = [
        f"{np.mean([c['covered'] for c in found['densities'] if (c['columns'], c['rows']) == (d, n)]):.1%} for {d} columns and {n:,} rows"
        for d in FAMILY for n in SIZES
    ]  # fmt: skip
    beside = [
        (c["model"], *(("failed", "") if "failed" in c else (f"{c['error']:.3g}", f"{c['cpu_s']:.3g}")))
        for c in found["plane"]
    ]
    speed = [(c["columns"], f"{c['dask']:.2g}", f"{c['batches']:.2g}") for c in found["throughput"]]
    few = [
        (c["rows"], c["runs"], f"{c['ours_covered']:.1%}", f"{c['theirs_covered']:.1%}", f"{np.sqrt(c['ours_error']):.3f}",
         f"{np.sqrt(c['theirs_error']):.3f}") for c in found["regression"]
    ]  # fmt: skip
    return "\n\n".join(part for part in [
        "## Several columns, many rows, and few",
        "`FieldDensity()` of two and three columns. Covered: how often the 90% band holds the true density, at 20 places inside the "
        f"region of the densest 90%: {'; '.join(means)}. Error: integrated squared error. Measured on {found['machine']}",
        page.table(("columns", "density", "rows", "points", "data sets", "covered", "error", "log-density of new rows less the truth's",
                    "processor s"), lines),
        found.get("note", ""),
        "A plane with three heaps and 10,000 rows, one side after the other, second calls. KDEpy and NIFTy were not tuned.",
        page.table(("model", "integrated squared error", "processor s"), beside),
        f"Rows in a processor second, of {found['throughput'][0]['rows']:,} in chunks of a million, on one core: a Dask array, of "
        "which two passes are made, and batches of `partial_fit`.",
        page.table(("columns", "Dask", "batches"), speed),
        f"`FieldRegressor()` on few rows of five functions with noise {NOISE}: how often the 90% band holds the function, at 20 "
        "places over the range of the rows, and the root of the mean squared error; beside scikit-learn's "
        "`GaussianProcessRegressor` with a Gaussian kernel and noise, both found by maximum likelihood.",
        page.table(("rows", "data sets", "covered", "covered, scikit-learn", "error", "error, scikit-learn"), few),
    ] if part)  # fmt: skip


def main(arguments: list[str]) -> None:
    """Measure and write."""
    from benchmarks import page

    if arguments[:1] == ["ask"]:
        answer(arguments[1])
        return
    if arguments != ["page"]:
        RESULTS.write_text(json.dumps(run()) + "\n")
    found = json.loads(RESULTS.read_text())
    page.PAGE.write_text(page.replaced(page.PAGE.read_text(), page.COLUMNS, page_section(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
