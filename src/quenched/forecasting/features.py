r"""Numbers that describe a learning curve and do not depend on its scale.

A curve is a few errors $e_i$ at $n_i$ examples with standard errors, and perhaps training errors. With $N$ its last
number of examples and $L$ its level there (from the recency-weighted power law), everything is said of $e/L$ over
$x = \log_2 n/N$: values and slopes at several distances from the end, scatter, what the training errors leave, what
each family of curves (`families`) predicts at the horizon, and how well power laws would have predicted the end of the
curve, and points as far ahead as the horizon, from its beginnings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quenched.forecasting import families

PLACES = np.array([0, -0.25, -0.5, -0.75, -1, -1.5, -2, -2.5, -3, -4, -5, -6, -7.5])
"""Where a curve is read, in octaves from its end."""
TRAINING_PLACES = np.array([0, -0.5, -1, -2, -3, -4, -6.0])
SPANS = (1.0, 2.0, 4.0, 20.0)
"""Octaves at the end over which slopes are taken."""
BACK = (0.5, 1.0, 2.0, 3.0)
"""Octaves before the end at which the beginnings of a curve end that power laws continue."""
FEWEST, LEAST = 4, 0.9
"""Points of such a beginning, and octaves that it must span."""
STDERR_PLACES = np.array([0, -1, -2, -4.0])
WIDTH, WIDENING = 0.2, 0.1
"""Standard deviation of the smoothing kernel in octaves, at the end and for each octave before it."""
LEARNED = (5.9, 20.0)
"""Numbers of examples at the end of the curves that were learned from, as powers of 2."""
FAMILY, RECENCY = 0, 2
"""The power law with weights n^2: the honest baseline, and the level of the curve."""


class Curve(NamedTuple):
    """A curve with what is known of it before a horizon is named."""

    x: np.ndarray  # [P] octaves from the end
    N: float
    level: float
    about: np.ndarray  # features that do not depend on the horizon
    slopes: np.ndarray
    y: np.ndarray  # [P] log of the error over the level
    earlier: tuple[families.Averages | None, ...]  # for each of `BACK` the power laws that continue the beginning
    averages: families.Averages
    middle: families.Averages  # halfway between training and test error; the curve itself where that is not known


def read(examples: np.ndarray, errors: np.ndarray, stderr: np.ndarray | None, training: np.ndarray | None) -> Curve:
    """Describe a curve; errors need be finite and not negative, examples increasing."""
    N, unit = float(examples[-1]), float(errors[-3:].mean()) or float(errors.max()) or 1.0
    u, e = examples / N, errors / unit
    x = np.log2(u)
    given = scatter_of(x, e) if stderr is None else stderr / unit
    # A few splits measure their own spread badly: half of each standard error is that of its neighbours.
    se = np.sqrt(0.5 * given**2 + 0.5 * _running_mean(given**2) + (1e-3 * e) ** 2 + 1e-10)
    averages = families.average(u, e, se)
    level = float(averages.predict(np.ones(1))[0][FAMILY, RECENCY, 0])
    level = max(level, 0.2 * float(e[-3:].mean()), 1e-6)
    y = np.log(np.maximum(e / level, 1e-3))
    rel = np.clip(se / np.maximum(e, 0.05 * level), 1e-3, 3.0)
    trend = smooth(x, y, rel, np.maximum(PLACES, x[0]))
    slopes, spans = _slopes(x, y, rel)
    fit = smooth(x, y, rel, x)
    off = y - fit
    near = x > -1.01
    noise = [np.log(rel[near].mean()), np.log(rel.mean()), np.log(_rms(off[near]) + 1e-3), np.log(_rms(off) + 1e-3)]
    size = [_seen(np.log2(N)), x[0], np.log2(len(x)), len(x) / (1 - x[0])]
    rise = np.diff(fit)
    shape = [
        y[-1], y[-2], y.max(), x[np.argmax(y)], y.min(), x[np.argmin(y)],
        rise[rise > 0].sum(), rise[x[1:] > -2].max(initial=-1.0),
    ]  # fmt: skip
    tau = np.full(len(x), np.nan) if training is None else np.clip(training / unit / level, 0.0, 3.0)
    # With as many examples as wanted training and test error meet: halfway there is less left to fall.
    half = np.where(np.isfinite(tau), (e / level + tau) / 2, e / level)
    middle = families.average(u, half, se / level)
    about = np.concatenate([
        size, noise, shape, trend, spans, _training(x, tau, e / level), _families(averages, level),
        np.clip(middle.asymptote()[:, 1:], 0, 3).ravel(), middle.exponent()[:, 2],
        smooth(x, np.log(rel), np.ones(len(x)), np.maximum(STDERR_PLACES, x[0])), _steps(x, y),
    ])  # fmt: skip
    about = np.nan_to_num(about, nan=0.0, posinf=9.0, neginf=-9.0)
    return Curve(x, N, level * unit, about, slopes, y, _earlier(x, u, e / level, se / level), averages, middle)


def _earlier(x: np.ndarray, u: np.ndarray, e: np.ndarray, se: np.ndarray) -> tuple[families.Averages | None, ...]:
    """Power laws through beginnings of a curve, None where there is too little of it."""
    parts = [x <= 1e-6 - back for back in BACK]
    return tuple(families.average(u[part], e[part], se[part], families.power_laws())
                 if part.sum() >= FEWEST and x[part][-1] - x[0] >= LEAST else None for part in parts)  # fmt: skip


def _steps(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Steps from point to point, per octave, in the last octaves: the largest, the least, how many rise, scatter."""
    step, found = np.diff(y) / np.diff(x), []
    for span in SPANS:
        near = x[1:] > -span - 0.01
        own = step[near] if near.any() else step[-1:]
        found += [own.max(), own.min(), np.mean(own > 0), own.std()]
    return np.clip(found, -9, 9)


def ahead(curve: Curve, at: np.ndarray) -> np.ndarray:
    """The features of a curve at numbers of examples `at`, `[m, d]`."""
    h = np.log2(at / curve.N)
    u = at / curve.N
    mean, sd = curve.averages.predict(u)
    now, _ = curve.averages.predict(np.ones(1))
    ratio = np.log(np.clip(mean / np.maximum(now, 1e-9), 1e-3, 10.0))
    level = now[FAMILY, RECENCY, 0]
    value = np.log(np.clip(mean / max(level, 1e-9), 1e-3, 10.0))
    spread = np.clip(sd / np.maximum(mean, 1e-3 * level), 0.0, 3.0)
    lines = np.clip(curve.slopes[:, None] * h, -5.0, 3.0)
    whole = np.exp(curve.averages.evidence - curve.averages.evidence.max(axis=0))[..., None]
    mixed = np.log(np.clip(np.sum(whole * mean, axis=0) / np.sum(whole, axis=0) / max(level, 1e-9), 1e-3, 10.0))
    half, doubt = curve.middle.predict(u)
    here, _ = curve.middle.predict(np.ones(1))
    halves = np.concatenate([half[:, 2], (half - here)[:, 2], half[FAMILY, :2], doubt[:, 2]])
    rows = [
        _looked_back(curve, h),
        np.clip(halves, -3, 3), value.reshape(-1, len(at)), ratio[:, 2], spread.reshape(-1, len(at)), mixed, lines,
        [h, _seen(np.log2(at))],
    ]  # fmt: skip
    return np.column_stack([np.broadcast_to(curve.about, (len(at), len(curve.about))), np.concatenate(rows).T])


def _looked_back(curve: Curve, h: np.ndarray) -> np.ndarray:
    """What beginnings of a curve say, of its end and of `h` octaves beyond, and by how much they were wrong."""
    m, rows = len(h), []
    whole = _log(curve.averages.predict(np.append(1.0, 2.0**h))[0][FAMILY, RECENCY])
    for back, earlier in zip(BACK, curve.earlier, strict=True):
        if earlier is None:
            rows.append(np.zeros((5, m)))
            continue
        places = np.concatenate([[1.0], 2.0**h, 2.0 ** (h - back)])
        said = _log(earlier.predict(places)[0][FAMILY])
        known = np.interp(np.minimum(h - back, 0.0), curve.x, curve.y)
        wrong = np.where(h <= back, known - said[RECENCY, 1 + m :], -said[RECENCY, 0])
        ahead = said[RECENCY, 1 : 1 + m]
        change = ahead - (whole[1:] - whole[0])
        rows.append(np.stack([np.full(m, said[1, 0]), np.full(m, said[RECENCY, 0]), ahead, change, wrong]))
    return np.concatenate(rows)


def _log(values: np.ndarray) -> np.ndarray:
    """Logs of errors in units of the level, within limits."""
    return np.log(np.clip(values, 1e-3, 10.0))


def baseline(rows: np.ndarray) -> np.ndarray:
    """The forecast of the recency-weighted power law, in the log over the level, out of features."""
    k = rows.shape[1] - AHEAD + FAMILY * len(families.RECENCIES) + RECENCY
    return rows[:, k]


AHEAD = 4 * 3 + 4 + 4 * 3 + 3 + len(SPANS) + 2
"""Features that depend on the horizon; they are the last."""


def smooth(x: np.ndarray, y: np.ndarray, se: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Lines through the neighbours of each place, by weighted least squares."""
    width = WIDTH + WIDENING * np.abs(places[:, None])
    d = x - places[:, None]
    w = np.exp(-0.5 * (d / width) ** 2) / se**2 + 1e-12
    w = w / w.sum(axis=1, keepdims=True)
    d1, d2, y1, dy = (w * d).sum(1), (w * d * d).sum(1), w @ y, (w * d) @ y
    # A ridge on the slope: two points of one octave do not determine it.
    slope = (dy - d1 * y1) / (d2 - d1**2 + 0.02 * width[:, 0] ** 2)
    return y1 - slope * d1


def _slopes(x: np.ndarray, y: np.ndarray, se: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes per octave over the last octaves, with standard errors and scatter about the line."""
    slopes, rows = [], []
    for span in SPANS:
        near = x > -span - 0.01
        if near.sum() < 3:
            near = np.arange(len(x)) >= len(x) - 3
        w = 1 / se[near] ** 2
        w = w / w.sum()
        d, v = x[near] - w @ x[near], y[near] - w @ y[near]
        spread = w @ (d * d) + 1e-9
        slope = (w @ (d * v)) / spread
        off = np.sqrt(w @ (v - slope * d) ** 2)
        slopes.append(slope)
        rows += [slope, np.log(off + 1e-3), np.log(off / np.sqrt(spread * len(d)) + 1e-3)]
    return np.array(slopes), np.array(rows)


def _training(x: np.ndarray, tau: np.ndarray, e: np.ndarray) -> np.ndarray:
    """What the training errors say: their values and what is left between them and the errors."""
    known = np.isfinite(tau)
    if known.sum() < 3:
        return np.zeros(len(TRAINING_PLACES) + 9)
    x, tau, e = x[known], tau[known], e[known]
    one = np.full(len(x), 1.0)
    at = smooth(x, tau, one, np.maximum(TRAINING_PLACES, x[0]))
    gap = np.log(np.clip(e - tau, 0.01, None))
    slopes, _ = _slopes(x, tau, one)
    closing, _ = _slopes(x, gap, one)
    fitted = np.array([np.mean(tau < 0.01), float(at[0] < 0.01)])
    return np.concatenate([np.ones(1), at, slopes[:3], closing[:3], fitted])


def _families(averages: families.Averages, level: float) -> np.ndarray:
    """What the families say of the curve: floors, exponents and which of them fits."""
    evidence = averages.evidence / 10
    best = evidence.max(axis=0)
    return np.concatenate([
        np.clip(averages.asymptote() / level, 0, 3).ravel(), averages.exponent().ravel(),
        np.clip(evidence - best, -3, 0).ravel(), np.clip(best, 0, 20),
    ])  # fmt: skip


def scatter_of(x: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Standard errors out of the scatter of a curve about its neighbours, where none are given."""
    if len(e) < 4:
        return 0.05 * np.maximum(e, 0.05 * e.mean())
    t = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    off = (e[1:-1] - (1 - t) * e[:-2] - t * e[2:]) / np.sqrt(1 + t**2 + (1 - t) ** 2)
    relative = np.median(np.abs(off) / np.maximum(e[1:-1], 1e-9)) / 0.6745
    return np.clip(relative, 0.003, 0.5) * np.maximum(e, 0.05 * e.mean())


def _running_mean(v: np.ndarray) -> np.ndarray:
    """Means over five neighbours."""
    total = np.cumsum(np.concatenate([[0.0], v]))
    i = np.arange(len(v))
    low, high = np.maximum(i - 2, 0), np.minimum(i + 3, len(v))
    return (total[high] - total[low]) / (high - low)


def _seen(octaves: np.ndarray) -> np.ndarray:
    """Numbers of examples, as a power of 2, within those of the curves that were learned from."""
    return np.clip(octaves, *LEARNED)


def _rms(v: np.ndarray) -> float:
    """Root mean square, of nothing 0."""
    return float(np.sqrt(np.mean(v**2))) if len(v) else 0.0
