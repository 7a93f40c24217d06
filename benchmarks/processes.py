"""Costs of Gaussian-process learning curves: theory, honest draws, the automatic choice and low rank.

Processor seconds of all threads, after compilation, with the accuracy reached. Run `python -m benchmarks.processes`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from tinygp import kernels

from benchmarks.accelerator import SquaredExponential
from benchmarks.timing import cpu
from quenched import io, processes
from quenched.papers import malzahn2002
from quenched.papers.malzahn2002 import sets

KEY = jax.random.key(0)


def off(found: Any, truth: Any) -> float:
    """Largest relative deviation of the out-of-bag error."""
    return float(np.max(np.abs(np.asarray(found.oob_error) / np.asarray(truth.oob_error) - 1)))


def duplicated_rows(sizes: np.ndarray, draws: int) -> float:
    """What a scikit-learn user does: fit on duplicated rows, predict all; processor seconds for so many draws."""
    law = malzahn2002.boston_law()
    y = np.asarray(law.standard())
    squared = 147.1 * law.inputs.std(axis=0)
    X = law.inputs * np.sqrt(2 / squared)
    draw = np.random.default_rng(0)
    begin = time.process_time()
    for m in sizes.astype(int):
        for _ in range(draws):
            row = draw.integers(0, 506, m)
            model = GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=0.01, optimizer=None).fit(X[row], y[row])
            model.predict(X, return_std=True)
    return time.process_time() - begin


def boston() -> list[tuple]:
    """All of Boston, 20 sizes: the theory against duplicated rows."""
    law, rule, sizes = (
        malzahn2002.boston_law(),
        malzahn2002.boston_rule(),
        np.unique(np.geomspace(50, 4000, 20).round()),
    )
    ours, curve = cpu(lambda: processes.theory.curve(law, rule, examples=sizes))
    slow = duplicated_rows(sizes, 2) * 25
    truth = processes.measure(law, rule, examples=sizes, runs=8, key=KEY, variance=False)
    return [
        ("Boston, N = 506, 20 sizes: 50 draws on duplicated rows (scikit-learn, 2 draws timed) over theory",
         f"{slow:.0f} s / {ours:.2f} s", f"{slow / ours:.0f}", "at least 50",
         f"closure off by {off(curve, truth):.1%} at worst, {int(curve.trusted.sum())} of 20 sizes pass the self-check"),
    ]  # fmt: skip


def automatic() -> Iterator[tuple]:
    """The automatic choice against theory alone and draws alone, at an accuracy of 1%."""
    diabetes = io.bundled("diabetes")
    X = (diabetes.inputs - diabetes.inputs.mean(axis=0)) / diabetes.inputs.std(axis=0)
    plain = processes.Empirical(X, diabetes.targets)
    draw = np.random.default_rng(0).permutation(4177)[:1000]
    cases = {
        "Boston": (malzahn2002.boston_law(), malzahn2002.boston_rule()),
        "diabetes": (plain, processes.GaussianProcess(1.12**2 * kernels.ExpSquared(6.23), 0.469)),
        "diabetes, low noise": (plain, processes.GaussianProcess(kernels.ExpSquared(2.5), 0.02)),
        "Abalone, N = 1000": (malzahn2002.abalone_law(draw), malzahn2002.abalone_rule()),
    }
    for name, (law, rule) in cases.items():
        N = law.rows
        sizes = np.array([N / 8, N / 4, N / 2, N, 2 * N])
        chosen, found = cpu(lambda: processes.curve(law, rule, examples=sizes, accuracy=0.01, cheapest=True, key=KEY))
        theory, alone = cpu(lambda: processes.theory.curve(law, rule, examples=sizes))
        draws, _ = cpu(lambda: drawn(law, rule, sizes, 0.01))
        cheaper = theory if bool(alone.trusted.all()) and theory < draws else draws
        words = ", ".join(str(s) for s in found.source.values)
        yield (
            f"{name}: automatic choice over the cheaper of draws and (if trusted) theory, 5 sizes, 1%",
            f"{chosen:.2f} s / {cheaper:.2f} s", f"{chosen / cheaper:.2f}", "at most 1.5",
            f"draws alone {draws:.2f} s, theory alone {theory:.2f} s ({int(alone.trusted.sum())} of 5 trusted); took {words}",
        )  # fmt: skip


def drawn(law: Any, rule: Any, sizes: np.ndarray, accuracy: float) -> None:
    """Honest draws alone, up to an accuracy, by the same code."""
    from quenched.processes.practice.curve import Draws

    with jax.enable_x64(True):
        draws = Draws(law, rule, sizes, KEY, None, None)
        for i in range(len(sizes)):
            draws.draw(i, accuracy)


def low_rank() -> Iterator[tuple]:
    """All of Abalone: low rank against exact, and the growth of its cost."""
    X, y = sets.abalone().inputs, np.asarray(sets.abalone().targets, float)
    rule = processes.GaussianProcess(SquaredExponential(np.sqrt(2 / (10 * X.var(axis=0)))), noise=0.1)
    law = processes.Empirical(X, y)
    full, exact = cpu(lambda: processes.theory.curve(law, rule, examples=[4177]), warm=0)
    for rank in (448, 512):
        low, thin = cpu(lambda: processes.theory.curve(law, rule, examples=[4177], rank=rank))
        yield (
            f"Abalone, N = 4177, one size: exact (compilation included) over rank {rank}", f"{full:.0f} s / {low:.1f} s",
            f"{full / low:.0f}", "at least 10", ", ".join(
                f"{name.replace('_', ' ')} {abs(float(thin[name][0] / exact[name][0]) - 1):.2%}"
                for name in ("posterior_variance", "error", "oob_error")
            ) + " apart",
        )  # fmt: skip
    draw, spent = np.random.default_rng(0), {}
    for rows in (12_500, 25_000, 50_000, 100_000):
        many = draw.integers(0, len(y), rows)
        large = processes.Empirical(X[many] + 0.05 * X.std(axis=0) * draw.normal(size=(rows, X.shape[1])), y[many])
        begin = time.perf_counter()
        seconds, _ = cpu(lambda: processes.theory.curve(large, rule, examples=[rows], rank=512), warm=0)
        spent[rows] = (seconds, time.perf_counter() - begin)
    slope = np.polyfit(np.log(list(spent)), np.log([cpu for cpu, _ in spent.values()]), 1)[0]
    wall = spent[100_000][1]
    yield (
        "N = 100,000, rank 512, one size, wall seconds with compilation", f"{wall:.0f} s", f"{wall:.0f}", "below 180",
        f"processor {spent[100_000][0]:.0f} s",
    )  # fmt: skip
    yield "exponent of the cost in N, rank 512, N = 12,500 to 100,000", "", f"{slope:.2f}", "below 1.15", ""


def tuning() -> list[tuple]:
    """Hyperparameters by evidence and by the predicted out-of-bag error, judged by draws and by a held-out third."""
    out = []
    for name, table in (("Boston", sets.boston()), ("diabetes", io.bundled("diabetes"))):
        X = (table.inputs - table.inputs.mean(axis=0)) / table.inputs.std(axis=0)
        y = np.asarray(table.targets, float)
        order = np.random.default_rng(0).permutation(len(y))
        test, train = order[: len(y) // 3], order[len(y) // 3 :]
        law = processes.Empirical(X[train], y[train])
        for aim in (processes.Evidence(), processes.PredictedError()):
            spent, rule = cpu(lambda: processes.tune(law, None, aim, steps=60), warm=0)
            points = processes.measure(law, rule, examples=law.rows, runs=8, key=KEY, variance=False)
            mean, _ = processes.fit(rule, law).predict(X[test])
            held = np.mean((mean - y[test]) ** 2) / np.var(y[train])
            with jax.enable_x64(True):
                predicted = float(processes.theory.state(law, rule, float(law.rows)).oob_error)
            out.append((name, type(aim).__name__, f"{predicted:.4f}", f"{float(points.oob_error):.4f} ± {float(points.oob_error_stderr):.4f}",
                        f"{held:.4f}", f"{float(rule.noise):.3g}", f"{spent:.0f} s"))  # fmt: skip
    return out


def rows() -> Iterator[tuple]:
    """Every ratio: work, times, value, promise, accuracy."""
    for measured in (boston, automatic, low_rank):
        yield from measured()


if __name__ == "__main__":
    for row in itertools.chain(rows(), tuning()):
        print(row, flush=True)
