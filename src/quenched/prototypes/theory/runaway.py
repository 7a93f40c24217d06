r"""Where LVQ2.1 ends: both prototypes move at every example, so their equations are linear and solved at all times.

In time $t = \eta\alpha$ a prototype obeys $\dot w_S = c_S - \gamma_S w_S$ on average, with
$c_S = \sum_k p_k g_{Sk} \lambda_k B_k$ and $\gamma_S = \sum_k p_k g_{Sk}$. It comes to rest if $\gamma_S > 0$, runs
away as $e^{|\gamma_S| t}$ if $\gamma_S < 0$ and along a straight line if $\gamma_S = 0$. Around that path the noise
gives $\dot V_{ST} = -(\gamma_S + \gamma_T) V_{ST} + \eta \sum_k p_k v_k g_{Sk} g_{Tk}$, and
$Q_{ST} = w_S \cdot w_T + V_{ST}$. Every overlap is therefore a sum of terms $e^{\kappa t} t^j$, and the limit of the
error follows from the leading ones: what matters is not whether prototypes run away but which does so faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from quenched.core.types import Outcome
from quenched.prototypes.model import Numbers
from quenched.prototypes.theory.rest_states import RestState

GRAIN = 1e-9
r"""Step to which $\gamma_S$ is known: priors need to sum to 1 no more exactly than this."""
CANCELLED = 1e-11
"""A coefficient this small beside the terms it is the sum of is rounding."""

Place = tuple[int, int]
r"""$(\kappa/\text{GRAIN}, j)$ of a term $e^{\kappa t} t^j$; the larger the place, the faster it grows."""
Terms = list[tuple[Place, float, float]]
"""Place and coefficient of each term, and the size of what was added up to the coefficient."""


def end(n: Numbers, R: np.ndarray, Q: np.ndarray, noise: float) -> RestState:
    r"""The end of LVQ2.1 from given overlaps, with its growth for each unit of $t$; `noise` is $\eta$ or 0."""
    p, lam, v, g, wrong, B = (np.asarray(x) for x in (n.p, n.lam, n.v, n.g, n.wrong, n.gram))
    grains = np.rint(np.sum(p * g, axis=1) / GRAIN).astype(int)
    pull = p * g * lam  # c_S = sum_k pull_Sk B_k
    gram = np.block([[Q, R @ pull.T, R], [pull @ R.T, pull @ B @ pull.T, pull @ B], [R.T, B @ pull.T, B]])
    basis = np.eye(len(gram))  # w_1(0), w_2(0), c_1, c_2 and the centres, whose overlaps these are
    paths = [_relax(grains[S], basis[S], basis[2 + S]) for S in range(2)]
    jolt = noise * (g * p * v) @ g.T
    r = [[_multiply(path, {(0, 0): centre}, gram) for centre in basis[4:]] for path in paths]
    q = [[_multiply(paths[S], paths[T], gram)
          + [(place, x, abs(x)) for place, x in _relax(grains[S] + grains[T], 0.0, jolt[S, T]).items()]
          for T in range(2)] for S in range(2)]  # fmt: skip
    first = np.array([_first_wins(lam[k], v[k], r[0][k], r[1][k], q) for k in range(p.size)])
    error = float(np.sum(p * (wrong[0] * first + wrong[1] * (1 - first))))
    R, Q = (np.array([[_limit(terms) for terms in row] for row in rows]) for rows in (r, q))
    rests = np.all(np.isfinite(R)) and np.all(np.isfinite(Q))
    return RestState(R, Q, error, GRAIN * float(0 - grains.min()), Outcome.converged if rests else Outcome.diverged)


def _relax(grains: int, begin: Any, pull: Any) -> dict[Place, Any]:
    r"""The terms of the solution of $\dot x = \text{pull} - \gamma x$."""
    if grains == 0:
        return {(0, 0): begin, (0, 1): pull}
    rest = pull / (GRAIN * grains)
    return {(-int(grains), 0): begin - rest, (0, 0): rest}


def _multiply(one: dict[Place, np.ndarray], two: dict[Place, np.ndarray], gram: np.ndarray) -> Terms:
    """The overlap of two paths."""
    size = np.abs(gram)
    return [
        ((k + l, i + j), float(a @ gram @ b), float(np.abs(a) @ size @ np.abs(b)))
        for (k, i), a in one.items()
        for (l, j), b in two.items()
    ]


def _leading(*sums: tuple[float, Terms]) -> tuple[Place, float] | None:
    """The term of a weighted sum of sums that grows fastest, or none if all vanish."""
    total: dict[Place, np.ndarray] = {}
    for weight, terms in sums:
        for place, value, size in terms:
            total[place] = total.get(place, np.zeros(2)) + np.array([weight * value, abs(weight) * size])
    left = {place: float(value) for place, (value, size) in total.items() if abs(value) > CANCELLED * size}
    return max(left.items()) if left else None


def _limit(terms: Terms) -> float:
    """The limit of a sum, NaN if it has none."""
    lead = _leading((1.0, terms))
    if lead is None or lead[0] < (0, 0):
        return 0.0
    return lead[1] if lead[0] == (0, 0) else np.nan


def _first_wins(lam: float, v: float, r_first: Terms, r_second: Terms, q: list[list[Terms]]) -> float:
    r"""The limit of the first prototype's probability to win an example of one cluster.

    It is $\Phi(x/2\sqrt{vD})$ with $x = 2\lambda(R_1 - R_2) - (Q_{11} - Q_{22})$ and $D = |w_1 - w_2|^2$.
    """
    ahead = _leading((2 * lam, r_first), (-2 * lam, r_second), (-1.0, q[0][0]), (1.0, q[1][1]))
    apart = _leading((1.0, q[0][0]), (1.0, q[1][1]), (-2.0, q[0][1]))
    if ahead is None or apart is None:  # halfway, or at the same place: examples are shared
        return 0.5
    (kappa, j), x = ahead
    faster = (2 * kappa, 2 * j)
    if faster == apart[0]:
        return float(ndtr(x / (2 * np.sqrt(v * abs(apart[1])))))
    return float(np.heaviside(x, 0.5)) if faster > apart[0] else 0.5
