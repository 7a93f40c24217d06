"""How many examples are needed for a wanted error: the learning curve read the other way."""

from __future__ import annotations

import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.types import InputError


def examples_for(result: xr.Dataset, error: float) -> float | tuple[float, float]:
    """The number of examples at which an error is reached.

    Between sizes the log of the error is taken to be linear in the log of the size.

    Args:
        result: of `curve`, `measure` or `forecast`, at two or more sizes.
        error: the wanted error on unseen rows, as a share of the target's variance.

    Returns:
        For a curve, the smallest number of examples whose out-of-bag error is at most `error`. For a forecast a range
        `(low, high)`, from both ends of its 80% interval, each made monotone; it is known to a factor of 2 at best.
        `high` is infinite where the upper end does not come down to `error` within the forecast's sizes, and `low` is
        the smallest of these where the lower end begins below `error`.

    Raises:
        InputError: if the error is not reached at any size of the result, if it is reached at all of them, or if the
            forecast was refused.

    Examples:
        >>> import numpy as np, xarray as xr
        >>> from quenched import processes
        >>> curve = xr.Dataset({"oob_error": ("examples", [0.4, 0.2, 0.1])}, {"examples": [10.0, 20.0, 40.0]})
        >>> round(processes.examples_for(curve, 0.2), 9)
        20.0
    """
    checks.kind("result", result, xr.Dataset, "a result of curve, measure or forecast")
    checks.positive("error", checks.number("error", error))
    if "refused" in result:
        return _range(result, float(error))
    if "oob_error" not in result or result["oob_error"].dims != ("examples",) or result.sizes["examples"] < 2:
        raise InputError("Argument `result` must be a forecast or a curve with `oob_error` at two or more sizes, "
                         "but it is not.")  # fmt: skip
    sizes, errors = result["examples"].values, result["oob_error"].values
    good = np.isfinite(errors)
    found = _crossing(sizes[good], errors[good], float(error))
    if not np.isfinite(found):
        raise _unreachable(float(error), float(np.min(errors[good])), sizes[good])
    if found <= sizes[good][0]:
        raise _reached(float(error), sizes[good])
    return found


def _range(result: xr.Dataset, error: float) -> tuple[float, float]:
    """From both ends of a forecast's interval."""
    spoken = result.isel(examples=np.flatnonzero(result["refused"].values == ""))
    if spoken.sizes["examples"] < 2:
        said = [text for text in result["refused"].values if text]
        raise InputError(f"Argument `result` must have forecasts at two or more sizes, but it has "
                         f"{spoken.sizes['examples']}{': ' + said[0] if said else '.'}")  # fmt: skip
    sizes = spoken["examples"].values
    low, high = (_crossing(sizes, spoken[name].values, error) for name in ("error_low", "error_high"))
    if not np.isfinite(low):
        raise _unreachable(error, float(spoken["error_low"].min()), sizes)
    if high <= sizes[0]:
        raise _reached(error, sizes)
    return low, high


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


def _unreachable(error: float, best: float, sizes: np.ndarray) -> InputError:
    return InputError(f"Argument `error` must be one that is reached by {sizes[-1]:g} examples, but {error:g} is below "
                      f"the smallest there, {best:.3g}.")  # fmt: skip


def _reached(error: float, sizes: np.ndarray) -> InputError:
    return InputError(f"Argument `error` must be one that {sizes[0]:g} examples do not reach yet, but {error:g} is "
                      "reached by so few.")  # fmt: skip
