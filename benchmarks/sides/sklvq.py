"""sklvq's side: generalised LVQ, fold by fold."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def classifier(kind: str, **settings: Any) -> tuple[str, Callable[[tuple, dict], Any]]:
    """A model of sklvq with some settings, all else by default."""
    import sklvq  # pyright: ignore[reportMissingImports]

    def work(data: tuple, case: dict) -> list:
        parts = zip(data[::4], data[1::4], data[2::4], strict=True)
        make = lambda: getattr(sklvq, kind)(random_state=0, **settings)  # noqa: E731
        return [make().fit(X, y).predict(unseen) for X, y, unseen in parts]

    return f"sklvq {version('sklvq')}", work


STEEPEST = {"solver_type": "steepest-gradient-descent", "solver_params": {"max_runs": 20}}
SIGMOID = {"solver_type": "lbfgs", "activation_type": "sigmoid", "activation_params": {"beta": 2}}
MODELS = {
    "GLVQ, steepest descent, 20 runs, 1 per class": lambda: classifier("GLVQ", **STEEPEST),
    "GLVQ, lbfgs, 1 per class": lambda: classifier("GLVQ", solver_type="lbfgs"),
    "GMLVQ, 1 per class": lambda: classifier("GMLVQ"),
    **{
        f"{kind}, {count} per class, by default": lambda kind=kind, count=count: classifier(
            kind, prototype_n_per_class=count
        )
        for kind in ("GLVQ", "GMLVQ")
        for count in (1, 3)
    },
    "GLVQ, lbfgs, sigmoid, 5 per class": lambda: classifier("GLVQ", prototype_n_per_class=5, **SIGMOID),
}
