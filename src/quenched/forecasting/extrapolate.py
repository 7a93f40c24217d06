r"""A learning curve continued: errors at a few numbers of examples in, errors with intervals at more examples out.

The method is free of scale: an error rate, a squared error and a log-loss are treated alike, and the learner is not
asked for. Between the last number $N$ and $\sqrt 2 N$ the curve runs, straight in the logs, from its own level to the
forecast there; below $N$ it is the curve itself, smoothed.

Assumed: more examples are drawn as these were. Not covered: curves that have not begun to fall, and learners that
change their nature beyond what is seen (a second descent, a network that begins to train).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from quenched.core import checks, results
from quenched.core.types import InputError
from quenched.forecasting import features, prior

if TYPE_CHECKING:
    import xarray as xr

FEWEST, OCTAVES = 5, 1.5
"""Points of a curve, and octaves that they must span."""
FARTHEST = 16
"""The forecast reaches to this many times the examples of the curve: as far as it was tested."""
NEAREST = 0.5
"""Octaves beyond the last point from which on the networks are asked."""
UNSEEN = 0.6
"""Half the width of the level's interval, in the log, beyond which the networks have learned from no curve."""
LEVELS = (0.5, 0.95)
"""Probabilities that an interval may contain: tails were not learned further out."""
PEAK, SURE = 0.05, 3.0
"""A rise is reported if it is larger than this share of the error and than this many standard errors."""


class Given(NamedTuple):
    """A learning curve, checked."""

    examples: np.ndarray
    errors: np.ndarray
    stderr: np.ndarray | None
    training: np.ndarray | None


def extrapolate(
    examples: Any, errors: Any, at: Any, *, stderr: Any = None, training_errors: Any = None, level: float = 0.8
) -> xr.Dataset:
    r"""Continue a learning curve, with intervals.

    The shape comes from a prior learned from thousands of other curves (`quenched.forecasting.prior`): networks see
    the curve, its training errors and what families of curves say, each averaged over its exponents with weights
    $n^r/\mathrm{se}^2$. Intervals are calibrated on tables that were held out, at each horizon.

    Args:
        examples: numbers of training examples, increasing; at least 5, which span a factor of 3.
        errors: errors on unseen examples there, of any kind that is 0 at best: a rate, a squared error, a log-loss.
        at: numbers of examples to forecast, increasing, from `examples[0]` on. Beyond 16 times the last there is no
            forecast.
        stderr: standard errors of `errors`; by default they are estimated from the scatter of the curve.
        training_errors: errors on the training examples. Next to the curve itself they tell most.
        level: the probability that the interval contains, from 0.5 to 0.95.

    Returns:
        Over `examples` (those of `at`): `error`, and `low` and `high`, the ends of its interval; `source`, "measured"
        up to the last of the given examples and "continuation" beyond; `refused`, a sentence where there is no forecast
        and otherwise empty. Attributes: `remarks`, sentences about peaks and dips of the curve.

    Raises:
        InputError: in one sentence, for a curve that cannot be worked with.

    Examples:
        >>> import quenched
        >>> n, errors = [50, 70, 100, 140, 200, 280, 400], [0.31, 0.29, 0.26, 0.25, 0.23, 0.22, 0.21]
        >>> answer = quenched.extrapolate(n, errors, [800, 1600])
        >>> bool((answer.low < answer.error).all() and (answer.error < 0.21).all())
        True
    """
    curve = check(examples, errors, stderr, training_errors)
    level = checks.number("level", level)
    if not LEVELS[0] <= level <= LEVELS[1]:
        raise InputError(f"Argument `level` must lie between {LEVELS[0]:g} and {LEVELS[1]:g}, but it is {level:g}.")
    sizes = checks.increasing("at", at, least=float(curve.examples[0]))
    N = float(curve.examples[-1])
    refused = np.array([f"This is more than {FARTHEST} times the {N:g} examples of the curve." if m > FARTHEST * N
                        else "" for m in sizes])  # fmt: skip
    ends = np.where(refused == "", predict(curve, np.minimum(sizes, FARTHEST * N), level), np.nan)
    return _dataset(sizes, ends, refused, curve, level)


def _dataset(
    sizes: np.ndarray, ends: np.ndarray, refused: np.ndarray, curve: Given, level: float
) -> xr.Dataset:  # fmt: skip
    """The answer with its names."""
    import xarray as xr

    source = np.where(sizes <= curve.examples[-1], "measured", "continuation")
    values = dict(zip(("error", "low", "high"), ends, strict=True)) | {"source": source, "refused": refused}
    result = xr.Dataset({name: ("examples", value) for name, value in values.items()},
                        {"examples": ("examples", sizes, {"long_name": "training examples"})})  # fmt: skip
    return result.assign_attrs(remarks="\n".join(remarks(curve)), level=level, rows=float(curve.examples[-1]),
                               source="extrapolation", version=results.version(), format=results.FORMAT)  # fmt: skip


def check(examples: Any, errors: Any, stderr: Any, training: Any) -> Given:
    """Check the arguments of a curve."""
    n = checks.increasing("examples", examples, least=1)
    if len(n) < FEWEST or np.log2(n[-1] / n[0]) < OCTAVES:
        raise InputError(f"Argument `examples` must have at least {FEWEST} numbers that span a factor of "
                         f"{2**OCTAVES:.2g}, but there are {len(n)}, from {n[0]:g} to {n[-1]:g}.")  # fmt: skip
    values = [None if v is None else _errors(name, v, len(n))
              for name, v in (("errors", errors), ("stderr", stderr), ("training_errors", training))]  # fmt: skip
    if values[0] is None:
        raise InputError("Argument `errors` must be real numbers, but None was given.")
    if not np.any(values[0] > 0):
        raise InputError("Argument `errors` must have errors above 0, but all are 0: nothing is left to learn.")
    return Given(n, *values)  # pyright: ignore[reportArgumentType]


def _errors(name: str, value: Any, count: int) -> np.ndarray:
    """Errors of a curve: one for each number of examples, finite and not negative."""
    array = checks.numbers(name, value)
    if array.shape != (count,):
        raise InputError(f"Argument `{name}` must have one number for each of the {count} numbers of examples, but its "
                         f"shape is {array.shape}.")  # fmt: skip
    checks.not_negative(name, array)
    return array


def predict(curve: Given, sizes: np.ndarray, level: float) -> np.ndarray:
    """Error and ends of the interval at each size, `[3, m]`."""
    known = features.read(*curve)
    h = np.log2(sizes / known.N)
    rows = features.ahead(known, known.N * 2 ** np.maximum(h, NEAREST))
    shipped = prior.shipped()
    q = prior.read_outputs(shipped.evaluate(rows), rows, shipped.widening, level)
    here, width, doubt = _level(known, curve, np.minimum(h, 0.0), level)
    t = np.clip(h / NEAREST, 0.0, 1.0)
    least = doubt if doubt > UNSEEN else 0.0
    low, high = np.minimum(q.low, q.point - least), np.maximum(q.high, q.point + least)
    ends = ((q.point, here), (low, here - width), (high, here + width))
    return known.level * np.exp(np.stack([t * far + (1 - t) * near for far, near in ends]))


def _level(known: features.Curve, curve: Given, h: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The log of the smoothed curve over its level at octaves `h` up to its end, half the width of its interval there,
    and half of that which the last octave together has."""
    e = np.maximum(curve.errors / known.level, 1e-3)
    spread = features.scatter_of(known.x, e) if curve.stderr is None else curve.stderr / known.level
    relative = np.clip(spread / np.maximum(e, 0.05), 1e-3, 3.0)
    here = features.smooth(known.x, np.log(e), relative, h)
    z = special.ndtri((1 + level) / 2)
    last = relative[known.x > -1.01]
    return here, z * np.interp(h, known.x, relative), float(z / np.sqrt(np.sum(last**-2)))


def remarks(curve: Given) -> list[str]:
    """What is unusual about a curve."""
    n, x = curve.examples, np.log2(curve.examples / curve.examples[-1])
    e = np.maximum(curve.errors, 1e-3 * curve.errors.max())
    spread = features.scatter_of(x, e) if curve.stderr is None else curve.stderr
    relative = np.clip(spread / e, 1e-3, 3.0)
    y = features.smooth(x, np.log(e), relative, x)
    lowest = np.minimum.accumulate(y)
    top = int(np.argmax(y - lowest))
    bottom = int(np.argmin(y[: top + 1]))
    rise = float(y[top] - y[bottom])
    if rise < max(np.log1p(PEAK), SURE * float(np.hypot(relative[top], relative[bottom]))):
        return []
    where = f"The error rises by {np.expm1(rise):.0%} between {n[bottom]:g} and {n[top]:g} examples"
    if top == len(n) - 1:
        return [f"{where}, the end of the curve: a dip behind it, or a peak that is not reached yet."]
    return [f"{where} and falls again: a peak, such as learners have where they begin to fit every example."]
