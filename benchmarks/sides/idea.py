"""iDEA's inversion of densities, in an environment of its own: densities in one file, potentials in another."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import numpy as np


def main() -> None:
    """One electron without interaction and the three-point kinetic energy, which is our lattice."""
    import iDEA  # pyright: ignore[reportMissingImports]

    asked, answers = np.load(sys.argv[1]), {}
    x = asked["x"]
    for name in asked["names"]:
        system = iDEA.system.System(x, asked[f"start_{name}"], np.zeros((len(x), len(x))), "u", stencil=3)
        started = time.process_time()
        found = iDEA.reverse_engineering.reverse(
            system, asked[f"density_{name}"], iDEA.methods.non_interacting, tol=float(asked["tolerance"]), silent=True
        )
        answers[f"cpu_{name}"], answers[f"potential_{name}"] = time.process_time() - started, found.v_ext
        np.savez(sys.argv[2], version=version("iDEA-latest"), **answers)  # what there is, should the next not end


if __name__ == "__main__":
    main()
