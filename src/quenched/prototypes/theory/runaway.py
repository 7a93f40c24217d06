r"""Where LVQ2.1 ends: both prototypes move at every example, so their equations are linear and solved at all times.

In time $t = \eta\alpha$ a prototype obeys $\dot w_S = c_S - \gamma_S w_S$ on average, with
$c_S = \sum_k p_k g_{Sk} \lambda_k B_k$ and $\gamma_S = \sum_k p_k g_{Sk}$. It comes to rest if $\gamma_S > 0$, runs
away as $e^{|\gamma_S| t}$ if $\gamma_S < 0$ and along a straight line if $\gamma_S = 0$. Around that path the noise
gives $\dot V_{ST} = -(\gamma_S + \gamma_T) V_{ST} + \eta \sum_k p_k v_k g_{Sk} g_{Tk}$, and
$Q_{ST} = w_S \cdot w_T + V_{ST}$. Every overlap is therefore a sum of terms $e^{\kappa t} t^j$, and the limit of the
error follows from the leading ones: what matters is not whether prototypes run away but which does so faster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from quenched.prototypes.model import Numbers

GRAIN = 1e-9
r"""Step to which $\gamma_S$ is known: priors need to sum to 1 no more exactly than this."""
CANCELLED = 1e-11
"""A coefficient this small beside the terms it is the sum of is rounding."""

Place = tuple[int, int]
r"""$(\kappa/\text{GRAIN}, j)$ of a term $e^{\kappa t} t^j$; the larger the place, the faster it grows."""
Sum = dict[Place, tuple[float, float]]
"""Coefficient of each term, and the size of what was added up to it."""


class End(NamedTuple):
    """The limit of unlimited examples; NaN where an overlap has none."""

    R: np.ndarray  # [2, M]
    Q: np.ndarray  # [2, 2]
    error: float
    growth: float  # of the prototype that grows fastest, for each unit of t
    rests: bool  # whether all overlaps have a limit


def end(n: Numbers, R: np.ndarray, Q: np.ndarray, noise: float) -> End:
    r"""The end of LVQ2.1 from given overlaps.

    Args:
        n: law and rule in numbers (NumPy arrays).
        R: overlaps with the centres at the start.
        Q: overlaps among prototypes at the start.
        noise: $\eta$, or 0 in the small-rate limit.
    """
    p, lam, v, g, wrong = (np.asarray(x) for x in (n.p, n.lam, n.v, n.g, n.wrong))
    centres = np.asarray(n.gram)
    grains = np.rint(np.sum(p * g, axis=1) / GRAIN).astype(int)
    pull = p * g * lam  # c_S = sum_k pull_Sk B_k
    along = np.vstack([R, pull @ centres])  # overlaps of w_1(0), w_2(0), c_1, c_2 with the centres
    gram = np.block([[Q, R @ pull.T], [pull @ R.T, pull @ centres @ pull.T]])
    paths = [_path(S, int(grains[S])) for S in range(2)]
    jolt = noise * (g * p * v) @ g.T
    r = [[_times([path], along[:, m]) for m in range(p.size)] for path in paths]
    q = [[_plus((1.0, _times([paths[S], paths[T]], gram)), (1.0, _spread(int(grains[S] + grains[T]), jolt[S, T])))
          for T in range(2)] for S in range(2)]  # fmt: skip
    first = np.array([_first_wins(lam[k], v[k], r[0][k], r[1][k], q) for k in range(p.size)])
    error = float(np.sum(p * (wrong[0] * first + wrong[1] * (1 - first))))
    limits = [np.array([[_limit(term) for term in row] for row in rows]) for rows in (r, q)]
    rests = all(bool(np.all(np.isfinite(limit))) for limit in limits)
    return End(limits[0], limits[1], error, GRAIN * float(0 - grains.min()), rests)


def _path(S: int, grains: int) -> dict[Place, np.ndarray]:
    """The mean path of a prototype, coefficients of w_1(0), w_2(0), c_1, c_2 for each term."""
    begin, pull = np.eye(4)[S], np.eye(4)[2 + S]
    if grains == 0:
        return {(0, 0): begin, (0, 1): pull}
    rest = pull / (GRAIN * grains)
    return {(-grains, 0): begin - rest, (0, 0): rest}


def _spread(grains: int, jolt: float) -> Sum:
    """What noise adds to an overlap."""
    if grains == 0:
        return {(0, 1): (jolt, abs(jolt))}
    rest = jolt / (GRAIN * grains)
    return {(-grains, 0): (-rest, abs(rest)), (0, 0): (rest, abs(rest))}


def _times(paths: list[dict[Place, np.ndarray]], form: np.ndarray) -> Sum:
    """The overlap of a path with a vector, or of two paths, whose overlaps are in `form`."""
    total: Sum = {}
    for here, a in paths[0].items():
        for there, b in paths[1].items() if len(paths) > 1 else [((0, 0), None)]:
            value, size = (a @ form, np.abs(a) @ np.abs(form))
            if b is not None:
                value, size = value @ b, size @ np.abs(b)
            place = (here[0] + there[0], here[1] + there[1])
            before = total.get(place, (0.0, 0.0))
            total[place] = before[0] + float(value), before[1] + float(size)
    return total


def _plus(*terms: tuple[float, Sum]) -> Sum:
    """A weighted sum of sums."""
    total: Sum = {}
    for weight, one in terms:
        for place, (value, size) in one.items():
            before = total.get(place, (0.0, 0.0))
            total[place] = before[0] + weight * value, before[1] + abs(weight) * size
    return total


def _leading(one: Sum) -> tuple[Place, float] | None:
    """The term that grows fastest, or none if all vanish."""
    for place in sorted(one, reverse=True):
        value, size = one[place]
        if abs(value) > CANCELLED * size:
            return place, value
    return None


def _limit(one: Sum) -> float:
    """The limit of a sum, NaN if it has none."""
    lead = _leading(one)
    if lead is None or lead[0] < (0, 0):
        return 0.0
    return lead[1] if lead[0] == (0, 0) else np.nan


def _first_wins(lam: float, v: float, r_first: Sum, r_second: Sum, q: list[list[Sum]]) -> float:
    r"""The limit of the first prototype's probability to win an example of one cluster.

    It is $\Phi(x/2\sqrt{vD})$ with $x = 2\lambda(R_1 - R_2) - (Q_{11} - Q_{22})$ and $D = |w_1 - w_2|^2$.
    """
    ahead = _leading(_plus((2 * lam, r_first), (-2 * lam, r_second), (-1.0, q[0][0]), (1.0, q[1][1])))
    apart = _leading(_plus((1.0, q[0][0]), (1.0, q[1][1]), (-2.0, q[0][1])))
    if ahead is None or apart is None:  # halfway, or at the same place: examples are shared
        return 0.5
    (kappa, j), x = ahead
    faster = (2 * kappa, 2 * j)
    if faster == apart[0]:
        return float(ndtr(x / (2 * np.sqrt(v * abs(apart[1])))))
    return float(np.heaviside(x, 0.5)) if faster > apart[0] else 0.5
