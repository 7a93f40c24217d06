"""pomegranate's side: a mixture whose background component is fixed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np


def frozen_background() -> tuple[str, Callable[[tuple, dict], Any]]:
    """Rows times labels; the background stays at 0, the other component starts at twice the mean."""
    import torch  # pyright: ignore[reportMissingImports]
    from pomegranate.distributions import Normal  # pyright: ignore[reportMissingImports]
    from pomegranate.gmm import GeneralMixtureModel  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)

    def work(data: tuple, case: dict) -> np.ndarray:
        X = torch.tensor(data[0] * data[1][:, None], dtype=torch.float32)
        var = X.var(0)
        background = Normal(torch.zeros(X.shape[1]), var, covariance_type="diag", frozen=True)
        student = Normal(2 * X.mean(0), var.clone(), covariance_type="diag")
        GeneralMixtureModel([background, student], max_iter=100, tol=1e-2).fit(X)
        return student.means.numpy().astype(float)

    return f"pomegranate {version('pomegranate')}", work


MODELS = {"mixture, background frozen": frozen_background}
