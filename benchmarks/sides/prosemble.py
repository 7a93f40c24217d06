"""prosemble's side: prototypes trained by gradients on all rows, fold by fold, everything else by default."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np


def classifier(kind: str, prototypes: int) -> tuple[str, Callable[[tuple, dict], Any]]:
    """A model of prosemble with so many prototypes per class."""
    from prosemble import models  # pyright: ignore

    def work(data: tuple, case: dict) -> list:
        parts = zip(data[::4], data[1::4], data[2::4], strict=True)
        make = lambda: getattr(models, kind)(n_prototypes_per_class=prototypes)  # noqa: E731
        return [np.asarray(make().fit(X, y).predict(unseen)) for X, y, unseen in parts]

    return f"prosemble {version('prosemble')}", work


MODELS = {
    f"{kind}, {count} per class": lambda kind=kind, count=count: classifier(kind, count)
    for kind in ("GLVQ", "GMLVQ", "RSLVQ")
    for count in (1, 3)
}
