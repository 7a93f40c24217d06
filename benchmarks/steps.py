"""A noisy step: jumps summed over exactly, against the best single strength of a Laplacian, chosen in hindsight.

`python -m benchmarks.steps` prints the mean squared errors over 20 seeds and how often the edge is found within one
point, also by annealing and by mean field.
"""

from __future__ import annotations

import numpy as np

from quenched import fields as f

SEEDS, NOISE = 20, 0.25
AXIS = f.Axis(0, 1, points=60)
GRID = f.Grid(given=[AXIS])
TRUTH = np.where(AXIS.coordinates > 0.55, 1.0, 0.0) + 0.3 * np.sin(3 * AXIS.coordinates)
EDGE = int(np.flatnonzero(AXIS.coordinates > 0.55)[0]) - 1
"""The link that the step crosses."""
STRENGTHS = np.geomspace(1e-3, 10, 60)


def error(field: np.ndarray) -> float:
    """Mean squared error of a field."""
    return float(np.mean((field - TRUTH) ** 2))


def near(found: f.FittedSwitches) -> bool:
    """Whether the most probable jump is within one point of the edge."""
    return bool(found.switches.any()) and abs(int(np.argmax(found.probability)) - EDGE) <= 1


def run(seeds: int = SEEDS) -> dict[str, float]:
    """Errors and how often the edge was found."""
    total = dict.fromkeys(("jumps", "laplacian", "exact", "annealing", "mean field", "better"), 0.0)
    for seed in range(seeds):
        y = TRUTH + NOISE * np.random.default_rng(seed).normal(size=GRID.size)
        data = f.GaussianData(AXIS.coordinates, y, NOISE**2)
        jumps = f.Jumps(GRID, strength=f.LogFlat(0.01, 1e3), mass=f.LogFlat(0.01, 100.0))
        exact = f.locate(f.Problem(data, f.Direct(GRID), jumps), noise=f.LogFlat(0.1, 10.0))
        smooth = [f.regress(f.Problem(data, f.Direct(GRID), f.Gaussian(s * f.Laplacian(GRID)))) for s in STRENGTHS]
        best = min(error(fit.mean) for fit in smooth)
        held = f.Problem(data, f.Direct(GRID), f.Jumps(GRID, exact.theta["strength"], exact.theta["mass"]))
        total["jumps"] += error(exact.field) / seeds
        total["laplacian"] += best / seeds
        total["exact"] += near(exact)
        total["annealing"] += near(f.locate(held, f.Annealing()))
        total["mean field"] += near(f.locate(held, f.Alternation()))
        total["better"] += error(exact.field) < best
    return total


def main() -> None:
    """Print them."""
    found = run()
    print(f"mean squared error: jumps {found['jumps']:.4f}, best Laplacian in hindsight {found['laplacian']:.4f}; "
          f"better in {found['better']:.0f} of {SEEDS}")  # fmt: skip
    print(", ".join(f"{name}: edge found in {found[name]:.0f} of {SEEDS}"
                    for name in ("exact", "annealing", "mean field")))  # fmt: skip


if __name__ == "__main__":
    main()
