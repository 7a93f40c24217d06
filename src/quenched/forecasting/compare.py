"""Several forecasts of one table side by side: which estimator wins with how many rows?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError

if TYPE_CHECKING:
    import xarray as xr

SHARED = ("error", "gain", "rmse")
"""Variables that are compared, where all have them, with the ends of their intervals."""


def compare(results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Join forecasts of several estimators for the same rows and sizes.

    Args:
        results: by name, what `quenched.forecast` or `processes.forecast` returned.

    Returns:
        Over `model` and `examples`: `error`, `gain` and their intervals, and `refused`; over `model`: `grade` and
        `reasons`. `quenched.plot` draws all in one picture.

    Raises:
        InputError: if these are not forecasts of one error, for the same rows and sizes.

    Examples:
        >>> import quenched
        >>> from quenched import forecasting
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_wine(return_X_y=True)
        >>> a, b = (quenched.forecast(GaussianNB(var_smoothing=s), X, y, random_state=0) for s in (1e-9, 1e-3))
        >>> forecasting.compare({"fine": a, "coarse": b}).error.dims
        ('model', 'examples')
    """
    import xarray as xr

    if not isinstance(results, Mapping) or not results:
        raise InputError(f"Argument `results` must be forecasts by name, but {results!r} was given.")
    for value in results.values():
        checks.kind("results", value, xr.Dataset, "forecasts by name")
        if value.attrs.get("source") != "forecast":
            raise InputError("Argument `results` must be forecasts by name, but one of them is another dataset.")
    first, *others = results.values()
    for key in ("rows", "measure"):
        said = {str(one.attrs.get(key, "")) for one in results.values() if key in one.attrs}
        if len(said) > 1:
            raise InputError(
                f"Argument `results` must be of the same {key}, but they are of {' and '.join(sorted(said))}."
            )
    if any(not np.array_equal(one["examples"], first["examples"]) for one in others):
        raise InputError("Argument `results` must have the same `examples`, but they have not.")
    names = [f"{name}{end}" for name in SHARED for end in ("", "_low", "_high")]
    names = [name for name in (*names, "refused") if all(name in one for one in results.values())]
    data = {name: (("model", "examples"), np.stack([one[name].values for one in results.values()])) for name in names}
    about = {key: ("model", [str(one.attrs[key]) for one in results.values()]) for key in ("grade", "reasons")}
    kept = {
        k: v for one in results.values() for k, v in one.attrs.items() if k in ("measure", "target_scale", "target")
    }
    return xr.Dataset(
        {**data, **about}, {"model": list(map(str, results)), "examples": first["examples"]},
        {**kept, "rows": first.attrs["rows"], "source": "forecasts", "version": first.attrs["version"],
         "format": first.attrs["format"]},
    )  # fmt: skip
