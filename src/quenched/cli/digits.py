"""Numbers for people to read: significant digits, and no powers of ten where nobody uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MOST_DECIMALS = 9
"""Decimals beyond which a number is written with a power of ten."""
GROUPED, POWERS = 1e3, 1e12
"""Where separators of thousands begin, and where powers of ten do."""


def number(value: Any, digits: int = 4, *, zeros: bool = True) -> str:
    """A number with a few significant digits.

    Args:
        value: the number.
        digits: how many digits.
        zeros: whether trailing zeros are kept, as in columns.

    Examples:
        >>> from quenched.cli.digits import number
        >>> [number(x) for x in (0.3, 0.00101234, 1234.5, 1e-7, 0)]
        ['0.3000', '0.001012', '1,234', '1.000e-07', '0']
        >>> number(0.3, zeros=False)
        '0.3'
    """
    x = float(value)
    if x == 0:
        return "0"
    if GROUPED <= abs(x) < POWERS:
        return f"{x:,.0f}"
    return f"{x:{'#' if zeros else ''}.{digits}g}".rstrip(".")


def with_error(value: Any, error: Any) -> str:
    """A number and its standard error, which has two digits; the number ends where the error does.

    Examples:
        >>> from quenched.cli.digits import with_error
        >>> with_error(0.0010123, 0.0000321), with_error(1234.5, 67.8), with_error(0.5, float("nan"))
        ('0.001012 ± 0.000032', '1,234 ± 68', '0.5000 ± ?')
    """
    x, e = float(value), float(error)
    if not np.isfinite(e):
        return f"{number(x)} ± ?"
    decimals = 1 - int(np.floor(np.log10(e))) if e > 0 else MOST_DECIMALS + 1
    if decimals > MOST_DECIMALS or abs(x) >= POWERS or e >= POWERS:
        return f"{number(x)} ± {number(e, 2)}"
    decimals = max(decimals, 0)
    return f"{x:,.{decimals}f} ± {e:,.{decimals}f}"


def alike(scale: float, digits: int = 3) -> Callable[..., str]:
    """A format for numbers of one scale: all with the same number of decimals, and a sign on request.

    Examples:
        >>> from quenched.cli.digits import alike
        >>> write = alike(0.5)
        >>> write(2.0), write(0.25, "+")
        ('2.000', '+0.250')
    """
    place = int(np.floor(np.log10(scale))) if scale > 0 and np.isfinite(scale) else 0
    decimals = max(digits - 1 - place, 0)
    form = f",.{decimals}f" if decimals <= MOST_DECIMALS and scale < POWERS else f".{digits + 1}g"
    return lambda value, sign="": f"{value:{sign}{form}}"


def count(m: Any) -> str:
    """A number of examples."""
    return f"{float(m):,.0f}"


def about(m: float) -> str:
    """A number of examples that is known to a factor of two at best: two digits of it."""
    place = 10 ** max(int(np.floor(np.log10(max(m, 1)))) - 1, 0)
    return f"{round(m / place) * place:,}"


def total(m: float, rows: float, width: float = np.inf) -> str:
    """A number of examples above `rows`, rounded to two digits of the excess and so never below `rows`.

    Args:
        m: the number.
        rows: the number of rows at hand.
        width: rounding changes the number by at most a twentieth of this.
    """
    place = 10 ** max(int(np.floor(np.log10(max(min(m - rows, width), 1.0)))) - 1, 0)
    return count(round(m / place) * place)
