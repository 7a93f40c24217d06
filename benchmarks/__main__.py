"""What we promise of our own costs, in one run; the tables go to `docs/benchmarks.md`, no number is copied by hand.

Peers are in `benchmarks.peers`.
"""

from __future__ import annotations

from benchmarks import mixtures, processes, prototypes
from benchmarks.page import BENCHMARKS, PAGE, machine, replaced, table


def dynamics() -> str:
    """Simulators and theory sweeps."""
    measured = prototypes.rows()
    costs = [(r["work"], f"{r['cpu_s']:.3g} s", r["each"], f"{r['compile_s']:.1f} s") for r in measured if "work" in r]
    ratios = [(r["ratio"], f"{r['value']:.2f}", r["promise"]) for r in measured if "ratio" in r]
    return "\n\n".join(
        [
            "## Dynamics of prototypes",
            table(("work", "processor time", "for each", "compilation"), costs),
            table(("ratio", "measured", "promised"), ratios),
        ]
    )


def curves() -> str:
    """Gaussian-process learning curves, and tuning."""
    ratios = table(("ratio", "times", "measured", "promised", "accuracy"), list(processes.rows()))
    header = (
        "data",
        "tuned for",
        "predicted out-of-bag error",
        "measured",
        "held-out third",
        "noise",
        "processor time",
    )
    return "\n\n".join(
        [
            "## Learning curves of Gaussian processes",
            "Linear algebra has one thread on both sides; an accelerator is measured by `python -m benchmarks.accelerator`.",
            ratios,
            "### Hyperparameters by evidence and by the predicted out-of-bag error",
            "On two thirds of the rows, 60 steps; errors are shares of the target's variance.",
            table(header, processes.tuning()),
        ]
    )


def annealing() -> str:
    """The phase diagram, and many starts against one."""
    header = ("ratio", "times", "measured", "promised", "quality")
    return "\n\n".join(["## Mixtures", table(header, list(mixtures.rows()))])


def main() -> None:
    """Measure everything and write the page."""
    body = "\n\n".join([f"Measured on {machine()}", dynamics(), curves(), annealing()])
    PAGE.write_text(replaced(PAGE.read_text(), BENCHMARKS, body))
    print(body)


if __name__ == "__main__":
    main()
