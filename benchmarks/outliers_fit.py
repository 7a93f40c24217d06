"""Cost and error of soft selection against scikit-learn's mixture of two Gaussians, on the same samples in one run.

The task: N = 500, P = alpha N rows of which half are outliers, |B| = 1, noise of variance 1/10; the error is
|c - B|^2 = Q - 2R + 1. Ours is `quenched.outliers.fit` on rows and labels (it multiplies them and finds the midpoint
inside its time), with gamma and eta known as in the paper or both estimated. scikit-learn gets rows already multiplied
by their labels and starts at 0 and twice the mean; its first guess of widths and weights is by k-means, or given too,
which spares it the time. Processor seconds of all threads; linear algebra has one thread on both sides.

Run `python -m benchmarks.outliers_fit [samples]`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks.timing import cpu
from quenched.outliers.learner import fit
from quenched.outliers.model import SoftSelection

N, GAMMA = 500, 10.0


def sample(alpha: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels and the true centre."""
    rng = np.random.default_rng(seed)
    P = round(alpha * N)
    B = rng.normal(size=N)
    B /= np.linalg.norm(B)
    y, V = rng.choice([-1, 1], P), rng.random(P) < 0.5
    return (y * V)[:, None] * B + rng.normal(scale=GAMMA**-0.5, size=(P, N)), y, B


def ours(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Fits of ours by name, each giving the centre."""

    def centre(**known: Any) -> np.ndarray:
        found = fit(SoftSelection(known.get("gamma")), (X, y), eta=known.get("eta"))
        return found.centres[1] - found.midpoint

    return {"fit, gamma and eta known": lambda: centre(gamma=GAMMA, eta=0.0), "fit, both estimated": centre}


def theirs(x: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Fits of scikit-learn by name, each giving the centre that does not start at 0."""
    from sklearn.mixture import GaussianMixture

    start = np.stack([np.zeros(N), 2 * x.mean(axis=0)])
    half, precision = np.array([0.5, 0.5]), 1 / x.var(axis=0)

    def centre(kind: str, **more: Any) -> np.ndarray:
        return GaussianMixture(2, covariance_type=kind, means_init=start, random_state=0, **more).fit(x).means_[1]  # pyright: ignore

    return {
        "GaussianMixture, diag": lambda: centre("diag"),
        "GaussianMixture, diag, all of the start given": lambda: centre(
            "diag", weights_init=half, precisions_init=np.stack([precision, precision])
        ),
        "GaussianMixture, spherical, all of the start given": lambda: centre(
            "spherical", weights_init=half, precisions_init=np.full(2, precision.mean())
        ),
    }


def measured(alpha: float, samples: int) -> dict[str, np.ndarray]:
    """Seconds and error of each sample `[samples, 2]`, by name."""
    found: dict[str, list] = {}
    for seed in range(samples):
        X, y, B = sample(alpha, seed)
        for name, work in {**ours(X, y), **theirs(X * y[:, None])}.items():
            seconds, c = cpu(work, warm=0)
            found.setdefault(name, []).append((seconds, float(np.sum((c - B) ** 2))))
    return {name: np.array(each) for name, each in found.items()}


def rows(samples: int = 10) -> Iterator[tuple]:
    """Ours over each peer: times, their ratio, what is promised, and the paired difference of errors."""
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured(1.0, 2)  # imports
        for alpha in (5.0, 10.0):
            found = measured(alpha, samples)
            known, estimated, *peers = found
            for mine, peer in [*((estimated, peer) for peer in peers), (known, peers[-1])]:
                a, b = found[mine], found[peer]
                d = a[:, 1] - b[:, 1]
                yield (
                    f"N = {N}, alpha = {alpha:g}, {samples} samples: {mine} over {peer}",
                    f"{a[:, 0].mean() * 1e3:.0f} ms / {b[:, 0].mean() * 1e3:.0f} ms",
                    f"{a[:, 0].mean() / b[:, 0].mean():.2f}",
                    "at most 1",
                    f"error {a[:, 1].mean():.4f} against {b[:, 1].mean():.4f}, "
                    f"difference {d.mean():.4f} ± {d.std(ddof=1) / np.sqrt(samples):.4f}",
                )


def main(samples: int = 10) -> None:
    """Print the table."""
    for row in rows(samples):
        print(" | ".join(row))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
