"""How many examples are needed for a wanted error: the learning curve read the other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError

if TYPE_CHECKING:
    import xarray as xr


def examples_for(
    result: xr.Dataset, error: float | None = None, *, gain: float | None = None
) -> float | tuple[float, float]:
    """The number of examples at which an error is reached.

    Between sizes the log of the error is taken to be linear in the log of the size.

    Args:
        result: of `curve`, `measure` or `forecast`, at two or more sizes.
        error: the wanted error on unseen rows, as a share of the target's variance.
        gain: instead of it, the wanted error as a share of the present one, below 1; for a forecast only. This is the
            better question: how the error changes is known better than how large it is.

    Returns:
        For a curve, the smallest number of examples whose out-of-bag error is at most `error`. For a forecast a range
        `(low, high)`, from both ends of its 80% interval, each made monotone; it is known to a factor of 2 at best.
        `high` is infinite where the upper end does not come down to `error`, and `low` is the smallest size, for `gain`
        the rows at hand, where the lower end begins below it.

    Raises:
        InputError: if the error is reached at no size of the result or at all of them, or if it was refused.

    Examples:
        >>> import numpy as np, xarray as xr
        >>> from quenched import processes
        >>> curve = xr.Dataset({"oob_error": ("examples", [0.4, 0.2, 0.1])}, {"examples": [10.0, 20.0, 40.0]})
        >>> round(processes.examples_for(curve, 0.2), 9)
        20.0
    """
    import xarray as xr

    checks.kind("result", result, xr.Dataset, "a result of curve, measure or forecast")
    if (error is None) == (gain is None):
        raise InputError("Arguments `error` and `gain` must be one of the two, but both or none were given.")
    if gain is not None:
        found = reach_gain(result, checks.number("gain", gain))
        if not np.isfinite(found.low):
            raise InputError(f"Argument `gain` must be one that is reached by {found.farthest:g} examples, but "
                             f"{gain:g} is not.")  # fmt: skip
        return found.low, found.high
    error = checks.number("error", error)
    checks.positive("error", error)
    if "refused" in result:
        low, high = _reach_error(_forecasts(result, 2, "at two or more sizes"), error, ("error_low", "error_high"))
        return low, high
    if "oob_error" not in result or result["oob_error"].dims != ("examples",) or result.sizes["examples"] < 2:
        raise InputError("Argument `result` must be a forecast or a curve with `oob_error` at two or more sizes, "
                         "but it is not.")  # fmt: skip
    return _reach_error(result.isel(examples=np.isfinite(result["oob_error"].values)), error, ("oob_error",))[0]


class Reached(NamedTuple):
    """Numbers of examples at which a share of the present error is reached, infinite where it is not."""

    low: float  # by the lower end of the 80% interval of the change
    best: float  # by its best estimate
    high: float  # by its upper end
    farthest: float  # the largest size there is a forecast for


def reach_gain(result: xr.Dataset, gain: float) -> Reached:
    """Where a forecast reaches a share of the present error, among the rows at hand and more.

    Raises:
        InputError: if the result is not a forecast, was refused, or does not go beyond the rows at hand.
    """
    if "refused" not in result or "rows" not in result.attrs:
        raise InputError("Argument `result` must be a forecast to be asked for a gain, but it is not.")
    if not 0 < gain < 1:
        raise InputError(f"Argument `gain` must be between 0 and 1, but {gain:g} was given.")
    rows = float(result.attrs["rows"])
    ahead = _forecasts(result.isel(examples=result["examples"].values > rows), 1, "beyond the rows at hand")
    sizes = np.append(rows, ahead["examples"].values)
    low, best, high = (
        _crossing(sizes, np.append(1.0, ahead[name].values), gain) for name in ("gain_low", "gain", "gain_high")
    )
    return Reached(low, best, high, float(sizes[-1]))


def _forecasts(result: xr.Dataset, fewest: int, where: str) -> xr.Dataset:
    """The sizes at which there is a forecast."""
    refused = result["refused"].values.astype(str)
    known = result.isel(examples=refused == "")
    if (count := known.sizes["examples"]) < fewest:
        said = [text for text in refused if text]
        raise InputError(f"Argument `result` must have forecasts {where}, but it has {count or 'none'}"
                         f"{': ' + said[0] if said else '.'}")  # fmt: skip
    return known


def _reach_error(result: xr.Dataset, error: float, names: tuple[str, ...]) -> list[float]:
    """Where each of some errors comes down to `error`: the first, the lowest, must, the last not at the first size."""
    sizes = result["examples"].values
    found = [_crossing(sizes, result[name].values, error) for name in names]
    if not np.isfinite(found[0]):
        raise InputError(f"Argument `error` must be one that is reached by {sizes[-1]:g} examples, but {error:g} is "
                         f"below the smallest there, {float(result[names[0]].min()):.3g}.")  # fmt: skip
    if found[-1] <= sizes[0]:
        raise InputError(f"Argument `error` must be one that {sizes[0]:g} examples do not reach yet, but {error:g} is "
                         "reached by so few.")  # fmt: skip
    return found


def _crossing(sizes: np.ndarray, errors: np.ndarray, error: float) -> float:
    """The size at which the running minimum of the errors first is at most `error`; infinite where it never is."""
    lowest = np.minimum.accumulate(errors)
    below = np.flatnonzero(lowest <= error)
    if not below.size:
        return np.inf
    k = int(below[0])
    if k == 0:
        return float(sizes[0])
    (x0, x1), (e0, e1) = np.log(sizes[k - 1 : k + 1]), np.log(lowest[k - 1 : k + 1])
    return float(np.exp(x0 + (x1 - x0) * (e0 - np.log(error)) / (e0 - e1)))
