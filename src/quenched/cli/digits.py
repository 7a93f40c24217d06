"""Numbers for people to read: significant digits, and no powers of ten where nobody uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.core.proof import SMALLEST_P

MOST_DECIMALS = 9
"""Decimals beyond which a number is written with a power of ten."""
GROUPED, POWERS = 1e3, 1e12
"""Where separators of thousands begin, and where powers of ten do."""


def number(value: Any, digits: int = 4, *, zeros: bool = True) -> str:
    """A number with a few significant digits; trailing zeros are kept for columns."""
    x = float(value)
    if x == 0:
        return "0"
    if GROUPED <= abs(x) < POWERS:
        return f"{x:,.0f}"
    return f"{x:{'#' if zeros else ''}.{digits}g}".rstrip(".")


def chance(p: Any) -> str:
    """A p-value."""
    return f"{float(p):.2g}" if p >= SMALLEST_P else f"below {SMALLEST_P:g}"


def with_error(value: Any, error: Any) -> str:
    """A number and its standard error, which has two digits; the number ends where the error does."""
    x, e = float(value), float(error)
    if not np.isfinite(e):
        return f"{number(x)} ± ?"
    decimals = 1 - int(np.floor(np.log10(e))) if e > 0 else MOST_DECIMALS + 1
    if decimals > MOST_DECIMALS or abs(x) >= POWERS or e >= POWERS:
        return f"{number(x)} ± {number(e, 2)}"
    decimals = max(decimals, 0)
    return f"{x:,.{decimals}f} ± {e:,.{decimals}f}"


def alike(scale: float) -> Callable[..., str]:
    """A format for numbers of one scale: all with the same number of decimals, and a sign on request."""
    place = int(np.floor(np.log10(scale))) if scale > 0 and np.isfinite(scale) else 0
    decimals = max(2 - place, 0)
    form = f",.{decimals}f" if decimals <= MOST_DECIMALS and scale < POWERS else ".4g"
    return lambda value, sign="": f"{value:{sign}{form}}"


def count(m: Any) -> str:
    """A number of examples."""
    return f"{float(m):,.0f}"


def total(m: float, rows: float = 0.0, width: float = np.inf) -> str:
    """A number of examples, rounded to two digits of the excess over `rows`, or to a twentieth of `width`."""
    place = 10 ** max(int(np.floor(np.log10(max(min(m - rows, width), 1.0)))) - 1, 0)
    return count(round(m / place) * place)
