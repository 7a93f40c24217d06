"""From a density to the potential of one particle: ours beside iDEA's inversion, on the same lattice.

The density of a ground state is known without noise. iDEA changes the potential until the density is reached within a
tolerance; ours is the field of least energy with the density as weights of a great many positions and a prior that is
nearly nothing. Both have the same 101 points, the same kinetic energy and the same start, the oscillator as wide as the
density. Run `python -m benchmarks.potentials`; it writes the section of `docs/benchmarks.md`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import python_of
from benchmarks.page import PAGE, POTENTIALS, machine, replaced, table
from quenched import fields as f

AXIS = f.Axis(-5, 5, points=101)
GRID, Y = f.Grid(given=[AXIS]), AXIS.coordinates
CASES = {
    "oscillator": Y**2 / 2,
    "double well": 0.22 * (Y**2 - 2.25) ** 2,
    "Morse": 4 * (1 - np.exp(-0.5 * (Y + 1.5))) ** 2,
    "well with a bump": Y**2 / 3 + 2 * np.exp(-((Y - 1) ** 2) / 0.98),
}
TOLERANCE, PATIENCE = 1e-6, 420.0
"""iDEA's, of the integral of the difference of densities; and wall seconds after which all of it is given up."""
MANY, PRIOR = 1e8, 1e-3
"""Positions that the density stands for, and the strength of our prior."""
HEAD = """## From a density to a potential

One particle in its ground state, 101 points, the density known without noise. Error of V: root mean square, less its
mean, both weighed by the density. Error of the density: the integral of its difference. Both sides begin at the
oscillator as wide as the density."""
"""What was done."""
WORDS = """iDEA moves the potential by the difference of densities to a power, step by step; ours takes Newton's steps with exact
second derivatives, and stops where rounding begins. iDEA also inverts densities of several electrons and in time, for any of
its methods, which ours does not. Ours is `Newton()`, chosen after
both were tried: the default on more than 100 points, `NewtonCG()`, stops earlier at its own tolerance, with errors of V of
1.3e-3 (double well), 1.1e-3 (Morse) and 2.1e-4 (bump). iDEA was not tried at a tighter tolerance."""
"""What the page says about the numbers."""


def start_of(density: np.ndarray) -> np.ndarray:
    """The oscillator as wide as a density."""
    p = density / density.sum()
    mean = p @ Y
    return (Y - mean) ** 2 / (8 * (p @ (Y - mean) ** 2) ** 2)


def errors(found: np.ndarray, V: np.ndarray) -> tuple[float, float]:
    """Of a potential, and of its density."""
    density = f.Ground().density(GRID, V)
    p, off = density / density.sum(), found - V
    return float(np.sqrt(p @ (off - p @ off) ** 2)), float(
        np.sum(np.abs(f.Ground().density(GRID, found) - density)) * AXIS.spacing
    )


def ours(density: np.ndarray) -> tuple[np.ndarray, float]:
    """The potential and processor seconds."""
    start = start_of(density)
    weights = MANY * density / density.sum()
    data = f.PositionData(Y, f.Ground(), weights=weights)
    problem = f.Problem(data, f.Direct(GRID), f.Gaussian(PRIOR * f.Laplacian(GRID), mean=start))
    begin = time.process_time()
    fit = f.solve(problem, f.Newton(), start=f.Given(start))
    spent = time.process_time() - begin
    if not fit.converged:
        raise RuntimeError("ours did not converge")
    return fit.field, spent


def idea(densities: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What iDEA finds in time."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "question.npz", Path(folder) / "answer.npz"
        arrays: dict[str, Any] = {f"density_{name}": density for name, density in densities.items()}
        arrays |= {f"start_{name}": start_of(density) for name, density in densities.items()}
        np.savez(question, x=Y, names=np.array(list(densities)), tolerance=TOLERANCE, **arrays)
        command = [python_of("idea"), "-m", "benchmarks.sides.idea", question, answer]
        try:
            subprocess.run(command, check=True, cwd=Path(__file__).resolve().parents[1], timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            if not answer.exists():
                return {"version": np.array("")}
        with np.load(answer) as found:
            return {name: found[name] for name in found}


def main() -> None:
    """Both, and the section."""
    densities = {name: f.Ground().density(GRID, V) for name, V in CASES.items()}
    theirs = idea(densities)
    ours(densities["oscillator"])  # what is computed once
    lines = []
    for name, V in CASES.items():
        found, spent = ours(densities[name])
        lines.append([name, "quenched", *(f"{e:.1e}" for e in errors(found, V)), f"{spent:.2f}"])
        if f"potential_{name}" in theirs:
            each = *(f"{e:.1e}" for e in errors(theirs[f"potential_{name}"], V)), f"{float(theirs[f'cpu_{name}']):.2f}"
        else:
            each = "-", "-", f"no answer in {PATIENCE:.0f} s for all"
        lines.append([name, f"iDEA {theirs['version']}", *each])
    words = table(["potential", "side", "error of V", "error of the density", "CPU s"], lines)
    text = f"{HEAD} iDEA's tolerance is {TOLERANCE:g}. Measured on {machine()}\n\n{words}\n\n{WORDS}\n"
    print(text)
    if sys.argv[1:] != ["print"]:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), POTENTIALS, text), encoding="utf-8")


if __name__ == "__main__":
    main()
