"""Which of two known shapes do the rows come from? A template round: three numbers of rows, many seeds, one run.

The truth is one of two shapes times the exponential of a smooth random function. Every side gets both shapes and the
rows, and says how probable each shape is and what the density is. Judged by the log-probability of the right shape, the
Brier score $(1 - p)^2$, and the log-density of 10,000 new rows, less that of the truth.

* ours: `weigh` of the alternatives shape x size x length of the distortion, all equally probable;
* scikit-learn: a Gaussian process of what the logarithm of a histogram differs from each shape by, its kernel and noise
  by marginal likelihood;
* nobody: the ratio of the likelihoods of the shapes as they are;
* NIFTy: counts in bins, the shape times the exponential of a correlated field whose spectrum is inferred; two runs of
  geometric variational inference and their evidence lower bounds.

`python -m benchmarks.templates` writes `benchmarks/results/templates.json` and a section of `docs/benchmarks.md`;
`python -m benchmarks.templates page` writes the section again; `python -m benchmarks.templates ask SIDE ...` is what
runs in the environment of a side.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worker import HOME, SINGLE

RESULTS = Path(__file__).resolve().parent / "results" / "templates.json"
ROWS, SEEDS, NEW = (12, 50, 200), 50, 10_000
ENOUGH = 20
"""Seeds for which a ratio means something."""
FLOOR = 1e-12
"""Least probability and density that is counted."""
END, BINS = 4.0, 64
PLACES = (np.arange(BINS) + 0.5) * 2 * END / BINS - END
"""Where densities are known: the middles of bins of one width."""
WIDTH = 2 * END / BINS
SIZE, LENGTH = 0.4, 1.5
"""Of the distortion: standard deviation and correlation length."""
SIZES, LENGTHS = (0.2, 0.4, 0.8), (0.7, 1.4)
"""What we take for possible."""
Answer = tuple[float, np.ndarray]
"""The probability of the first shape, and the density at the places."""


def _bump(centre: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((PLACES - centre) / width) ** 2) / width


def normalised(p: np.ndarray) -> np.ndarray:
    """With the integral 1."""
    return p / (p.sum() * WIDTH)


SHAPES = (normalised(_bump(0.0, 1.3)), normalised(_bump(-1.3, 0.75) + _bump(1.3, 0.75)))
"""One hump, and two."""


def draw(seed: int, rows: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Which shape, the true density, rows and new rows."""
    rng = np.random.default_rng([seed, rows])
    which = seed % 2
    C = SIZE**2 * np.exp(-0.5 * ((PLACES[:, None] - PLACES) / LENGTH) ** 2) + 1e-9 * np.eye(BINS)
    truth = normalised(SHAPES[which] * np.exp(np.linalg.cholesky(C) @ rng.normal(size=BINS)))
    x, new = (rng.choice(BINS, n, p=truth * WIDTH) for n in (rows, NEW))
    return which, truth, PLACES[x], new


def ours(x: np.ndarray) -> Answer:
    """Alternatives: each shape with distortions of several sizes and lengths."""
    from quenched import fields as f

    axis = f.Axis(PLACES[0], PLACES[-1], points=BINS)
    grid = f.Grid(over=[axis])
    priors = [
        f.Gaussian(1 / (2 * np.sqrt(2) * length * size**2) * (f.Mass(grid) + length**4 * f.Laplacian(grid) ** 2),
                   mean=np.log(shape))
        for shape in SHAPES for size in SIZES for length in LENGTHS
    ]  # fmt: skip
    found = f.weigh(f.Problem(f.DensityData(x), f.Logits(grid), f.either(*priors)), start=f.Uniform())
    half = len(priors) // 2
    return float(found.probabilities[:half].sum()), np.asarray(found.mean)


def told(x: np.ndarray) -> Answer:
    """Ours, told the true covariance of the distortion: what can be known."""
    from quenched import fields as f

    grid = f.Grid(over=[f.Axis(PLACES[0], PLACES[-1], points=BINS)])
    C = SIZE**2 * np.exp(-0.5 * ((PLACES[:, None] - PLACES) / LENGTH) ** 2) + 1e-4 * np.eye(BINS)
    K = f.Dense(grid, np.linalg.inv(C) / grid.cell)
    priors = [f.Gaussian(K, mean=np.log(shape)) for shape in SHAPES]
    found = f.weigh(f.Problem(f.DensityData(x), f.Logits(grid), f.either(*priors)), start=f.Uniform())
    return float(found.probabilities[0]), np.asarray(found.mean)


def gaussian_process(x: np.ndarray) -> Answer:
    """scikit-learn's, on the logarithm of a histogram of 32 bins, half a row added to each."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    counts, edges = np.histogram(x, BINS // 2, (-END, END))
    middle, expected = (edges[1:] + edges[:-1]) / 2, 2 * len(x) * WIDTH
    evidence, fields = [], []
    for shape in SHAPES:
        mean = np.log(np.interp(middle, PLACES, shape))
        kernel = ConstantKernel(0.2, (1e-3, 10.0)) * RBF(1.0, (0.2, 8.0))
        model = GaussianProcessRegressor(kernel, alpha=1 / (counts + 0.5), n_restarts_optimizer=2, random_state=0)
        model.fit(middle[:, None], np.log((counts + 0.5) / expected) - mean)
        evidence.append(model.log_marginal_likelihood_value_)
        fields.append(normalised(shape * np.exp(model.predict(PLACES[:, None]))))
    return _averaged(np.array(evidence), fields)


def bare(x: np.ndarray) -> Answer:
    """No distortion at all: the ratio of the likelihoods of both shapes."""
    at = np.argmin(np.abs(x[:, None] - PLACES), axis=1)
    return _averaged(np.array([np.sum(np.log(shape[at])) for shape in SHAPES]), list(SHAPES))


def _averaged(evidence: np.ndarray, fields: list[np.ndarray]) -> Answer:
    share = np.exp(evidence - evidence.max())
    share = share / share.sum()
    return float(share[0]), np.tensordot(share, fields, 1)


def nifty(x: np.ndarray) -> Answer:
    """NIFTy's re: two runs, weighed by the lower bounds of their evidence."""
    import jax
    import jax.numpy as jnp
    import nifty.re as jft  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    counts = np.histogram(x, BINS, (-END, END))[0]

    class Expected(jft.Model):
        """Expected counts; twice as long as the grid, because the field is periodic."""

        def __init__(self, field: Any, base: np.ndarray):
            self.field, self.base = field, base
            super().__init__(init=field.init)

        def __call__(self, xi: Any) -> Any:
            return self.base * jnp.exp(self.field(xi)[:BINS])

    bounds, fields = [], []
    for shape in SHAPES:
        maker = jft.CorrelatedFieldMaker("field")
        maker.set_amplitude_total_offset(offset_mean=0.0, offset_std=(0.3, 0.1))
        maker.add_fluctuations(2 * BINS, distances=WIDTH, fluctuations=(0.4, 0.3), loglogavgslope=(-4.0, 1.0),
                               prefix="x", non_parametric_kind="power")  # fmt: skip
        expected = Expected(maker.finalize(), len(x) * WIDTH * shape)
        likelihood = jft.Poissonian(jnp.asarray(counts)).amend(expected)
        start, key = jax.random.split(jax.random.key(0))
        newton = {"name": None, "xtol": 1e-4, "cg_kwargs": {"name": None}}
        samples, _ = jft.optimize_kl(
            likelihood, 0.1 * jft.Vector(likelihood.init(start)), key=key, n_total_iterations=5, n_samples=4,
            sample_mode="nonlinear_resample",
            draw_linear_kwargs={"cg_name": None, "cg_kwargs": {"absdelta": 1e-4 * BINS, "maxiter": 100}},
            nonlinearly_update_kwargs={"minimize_kwargs": {**newton, "maxiter": 5}},
            kl_kwargs={"minimize_kwargs": {**newton, "maxiter": 20}}, odir=None,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:  # it writes eigenvalues
            bound, _ = jft.estimate_evidence_lower_bound(
                likelihood, samples, BINS, n_batches=1, verbose=False, metric_jit=True, output_directory=folder
            )
        total = np.mean(np.asarray(bound)) - np.sum([np.sum(np.log(np.arange(1, n + 1))) for n in counts])
        bounds.append(float(total))
        fields.append(normalised(np.mean([np.asarray(expected(s)) for s in samples], axis=0)))
    return _averaged(np.array(bounds), fields)


BARE = "likelihood ratio of the bare shapes"
"""No package: what a statistician would compute by hand."""
TOLD = "quenched, told the true covariance"
"""What nobody knows: nothing can be expected to be better."""
SIDES: dict[str, dict[str, Callable[[np.ndarray], Answer]]] = {
    "ours": {"quenched, weigh": ours, "scikit-learn, GP with either mean": gaussian_process, BARE: bare, TOLD: told},
    "nifty": {"NIFTy re, two runs and ELBO": nifty},
}
OURS = "quenched, weigh"


def judge(question: tuple[str, str, int, int]) -> dict[str, Any]:
    """One model on one data set."""
    side, model, rows, seed = question
    which, truth, x, new = draw(seed, rows)
    found: dict[str, Any] = {"model": model, "rows": rows, "seed": seed}
    warnings.simplefilter("ignore")
    try:
        begin = time.process_time()
        first, density = SIDES[side][model](x)
        found["cpu_s"] = time.process_time() - begin
        p = first if which == 0 else 1 - first
        found["log_probability"], found["brier"] = float(np.log(max(p, FLOOR))), float((1 - p) ** 2)
        found["log_density"] = float(np.mean(np.log(np.maximum(density[new], FLOOR)) - np.log(truth[new])))
    except Exception as error:
        found["failed"] = f"{type(error).__name__}: {error}"[:200]
    return found


def answer(side: str, seeds: int, processes: int) -> None:
    """All questions to one side, printed as one line."""
    questions = [
        (side, model, rows, seed)
        for model in SIDES[side] for rows in ROWS for seed in range(seeds)
    ]  # fmt: skip
    if processes == 1:
        print(json.dumps([judge(one) for one in questions]))
        return
    with ProcessPoolExecutor(processes) as pool:
        print(json.dumps(list(pool.map(judge, questions, chunksize=5))))


def run(seeds: int = SEEDS, processes: int | None = None) -> dict[str, Any]:
    """Ask all sides; one that cannot be asked says why."""
    from benchmarks import page
    from benchmarks.environments import python_of

    found: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for side in SIDES:
        print(f"asking {', '.join(SIDES[side])}", file=sys.stderr, flush=True)
        try:
            python = str(python_of(side))
        except RuntimeError as error:
            missing[side] = str(error)
            continue
        command = [
            python,
            "-m",
            "benchmarks.templates",
            "ask",
            side,
            str(seeds),
            str(processes or os.cpu_count()),
        ]
        said = subprocess.run(
            command, cwd=HOME, env={**os.environ, **SINGLE}, stdout=subprocess.PIPE, text=True, check=True
        )
        found += json.loads(said.stdout.strip().splitlines()[-1])
    return {"machine": page.machine(), "seeds": seeds, "missing": missing, "answers": found}


def gather(found: list[dict[str, Any]], seeds: int | None = None) -> list[dict[str, Any]]:
    """Means over the seeds of each model and number of rows; over the first `seeds` alone if they are given."""
    cells = []
    for model in dict.fromkeys(one["model"] for one in found):
        for rows in ROWS:
            each = [one for one in found if (one["model"], one["rows"]) == (model, rows)
                    and (seeds is None or one["seed"] < seeds)]  # fmt: skip
            good = [one for one in each if "failed" not in one]
            cell: dict[str, Any] = {"model": model, "rows": rows, "seeds": len(each), "failed": len(each) - len(good)}
            for key in ("log_probability", "brier", "log_density", "cpu_s"):
                cell[key] = float(np.mean([one[key] for one in good])) if good else float("nan")
            cells.append(cell)
    return cells


def page_section(found: dict[str, Any]) -> str:
    """The section of the page."""
    from benchmarks import page

    cells = gather(found["answers"])
    few = min(cell["seeds"] for cell in cells)
    lines = [
        (cell["model"], cell["rows"], cell["seeds"], f"{cell['log_probability']:.3f}", f"{cell['brier']:.4f}",
         f"{cell['log_density']:.3f}", f"{cell['cpu_s']:.2g}")
        for cell in cells
    ]  # fmt: skip
    ratios = []
    for rows in ROWS:
        for whole in dict.fromkeys((found["seeds"], few)):
            label, these = f"{whole} seeds", gather(found["answers"], whole)
            scores = {c["model"]: c["brier"] for c in these if c["rows"] == rows and c["seeds"] - c["failed"] >= whole}
            peers = {model: score for model, score in scores.items() if model not in (OURS, BARE, TOLD)}
            if OURS in scores and peers:
                best = min(peers, key=lambda model: peers[model])
                ratios.append((rows, label, f"{scores[OURS]:.4f}", f"{peers[best]:.4f} ({best})",
                               f"{scores[OURS] / peers[best]:.2f}" if whole >= ENOUGH else "too few seeds"))  # fmt: skip
    missing = "".join(f" Not asked: {side} ({why})." for side, why in found.get("missing", {}).items())
    return "\n\n".join([
        "## Which of two shapes is it?",
        f"One hump or two, times the exponential of a smooth random function (standard deviation {SIZE}, length {LENGTH} on a "
        f"range of {2 * END:g}); {found['seeds']} data sets for each number of rows. Every side knows both shapes. "
        "Log-probability and Brier score are those of the right shape (a coin has -0.693 and 0.25); the log-density is that of "
        f"10,000 new rows, less the truth's. Measured on {found['machine']}{missing}",
        page.table(("model", "rows", "seeds", "log-probability", "Brier score", "log-density", "processor s"), lines),
        page.table(("rows", "compared on", "our Brier score", "best package's", "ratio"), ratios),
        "Told the true covariance of the distortion one does no better in 12 and 50 rows: there is nothing left to win there, and "
        "which shape it is the likelihoods of the bare shapes say about as well. In 200 rows these are too sure, and at every "
        "number of rows they miss the density. NIFTy's bounds are about as good as our evidence, for more than twenty times "
        "the work: better in 50 rows, worse in 12 and 200.",
    ])  # fmt: skip


def main() -> None:
    """Ask, or write the page."""
    from benchmarks import page

    if sys.argv[1:2] == ["ask"]:
        answer(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    if sys.argv[1:2] != ["page"]:
        processes = int(sys.argv[1]) if len(sys.argv) > 1 else None
        RESULTS.write_text(json.dumps(run(processes=processes)) + "\n")
    body = page_section(json.loads(RESULTS.read_text()))
    page.PAGE.write_text(page.replaced(page.PAGE.read_text(), page.TEMPLATES, body))
    print(body)


if __name__ == "__main__":
    main()
