r"""Regression under alternatives with one operator: the mean-field equation and its solutions. [lemm1999, section 6.3]

With $A = v K + S^T \sigma^{-2} S$, the fields $\bar t_j$ of least energy $V_j$ of each alternative alone, and
$G_{kl} = (\bar t_k, A\, \bar t_l)$, every stationary field is $h = \sum_j a_j \bar t_j$ with
$$a_j \propto w_j\, e^{-\beta \left(V_j + \frac12 G_{jj} - \sum_k G_{jk} a_k\right)} .$$
It is a minimum of the energy if the largest eigenvalue of $\beta\, (\mathrm{diag}\, a - a a^T)\, G$ is below 1. For two
alternatives, with $u = a_1 - a_2$ and $b = G_{11} + G_{22} - 2 G_{12}$,
$$u = \tanh\Big(\frac{\beta b}{4} u + \frac\delta2\Big), \qquad \delta = \ln\frac{w_1}{w_2} + \beta (V_2 - V_1) ,$$
the equation of the ferromagnet: between its turning points $\pm\sqrt{1 - 4/\beta b}$ lies at most one solution, and
beyond each of them, too. The exact posterior probabilities are $b_j \propto w_j e^{-\beta V_j}$.
[eqs. (555) to (569), (575), erratum F575]
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize
from scipy.special import softmax

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.either import log_sum, resolve, temper, uncertain
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.problem import Problem

if TYPE_CHECKING:
    import xarray as xr

DRAWN, ROUNDS, SAME = 64, 100, 1e-7
"""With more than two alternatives: how many random starts there are besides corners and middles, Newton steps from
each, and when two solutions are the same."""
COLDEST, SCANNED = 1e6, 4000
"""Bifurcations are looked for up to this multiple of the least possible inverse temperature, at so many of them."""


class _Reduced:
    """What is left of a problem: one number or product for each pair of alternatives."""

    def __init__(self, problem: Any):
        checks.kind("problem", problem, Problem, "a Problem")
        if not isinstance(problem.likelihood, GaussianData) or not uncertain(problem.prior):
            raise InputError("Argument `problem` must be a regression, of `GaussianData` and a prior such as a | b, "
                             "but it is not.")  # fmt: skip
        found, hot = resolve(temper(problem.prior, 1.0)), resolve(temper(problem.prior, 0.0))
        K = problem.grid.cell * found.gaussians[0].operator.matrix
        for one in found.gaussians[1:]:
            if not np.allclose(problem.grid.cell * one.operator.matrix, K, rtol=1e-9, atol=1e-12 * np.max(np.abs(K))):
                raise InputError("Argument `problem` must have alternatives with one operator, but theirs differ.")
        data = problem.likelihood
        S, y = data.design.toarray(), np.asarray(data.targets)
        w = np.broadcast_to(np.asarray(data.weights) / np.asarray(data.variance), y.shape)
        self.A = K + S.T @ (w[:, None] * S)
        t = np.array([np.ravel(one.mean) for one in found.gaussians])
        self.fields = np.linalg.solve(self.A, (S.T @ (w * y))[:, None] + K @ t.T).T
        off, shift = y - self.fields @ S.T, self.fields - t
        constant = 0.5 * float(np.sum(np.broadcast_to(np.asarray(data.weights) * np.log(
            2 * np.pi * np.asarray(data.variance)), y.shape)))  # fmt: skip
        self.V = 0.5 * (np.sum(w * off**2, axis=1) + np.sum(shift * (shift @ K), axis=1)) + constant
        self.V = self.V + hot.log_weights - found.log_weights  # what templates of several parts leave
        self.G = self.fields @ self.A @ self.fields.T
        self.log_weights, self.beta = hot.log_weights, resolve(problem.prior).beta

    def push(self, a: np.ndarray, beta: float) -> np.ndarray:
        """Logarithms of the right-hand side."""
        return self.log_weights - beta * (self.V + 0.5 * np.diag(self.G) - self.G @ a)

    def solutions(self, beta: float) -> np.ndarray:
        """All of them for two alternatives, otherwise all that are met, `[solution, component]`."""
        found = self._two(beta) if len(self.V) == 2 else self._several(beta)
        return found[np.argsort([self.energy(a, beta) for a in found], kind="stable")]

    @property
    def b(self) -> float:
        """The distance of two alternatives."""
        return float(self.G[0, 0] + self.G[1, 1] - 2 * self.G[0, 1])

    def delta(self, beta: float) -> float:
        """By how much the first of two alternatives is better."""
        return float(self.log_weights[0] - self.log_weights[1] + beta * (self.V[1] - self.V[0]))

    def _two(self, beta: float) -> np.ndarray:
        """Bracketed by the turning points."""
        slope, delta = beta * self.b / 4, self.delta(beta)

        def excess(u: float) -> float:
            return u - np.tanh(slope * u + delta / 2)

        turn = np.sqrt(1 - 1 / slope) if slope > 1 else 0.0
        ends, found = [-1.0, -turn, turn, 1.0] if turn > 0 else [-1.0, 1.0], []
        for low, high in itertools.pairwise(ends):
            left, right = excess(low), excess(high)
            if left == 0 or right == 0:
                found.append(low if left == 0 else high)
            elif (left < 0) != (right < 0):
                found.append(optimize.brentq(excess, low, high, xtol=1e-15))
        values = np.unique(found)
        return np.column_stack([(1 + values) / 2, (1 - values) / 2])

    def _several(self, beta: float) -> np.ndarray:
        """Newton's method from the corners of the simplex, the middles of its edges, its own, and at random."""
        m = len(self.V)
        corners = np.eye(m)
        starts = [*corners, *(0.5 * (corners[i] + corners[j]) for i, j in itertools.combinations(range(m), 2)),
                  np.full(m, 1 / m), *np.random.default_rng(0).dirichlet(np.ones(m), DRAWN)]  # fmt: skip
        found: list[np.ndarray] = []
        for start, relaxed in itertools.product(starts, (0, 30)):
            a = start
            for _ in range(relaxed):  # some steps of the iteration that descends to minima
                a = softmax(self.push(a, beta))
            a = self._polish(a, beta)
            if a is not None and all(np.max(np.abs(a - other)) > SAME for other in found):
                found.append(a)
        return np.array(found)

    def _polish(self, a: np.ndarray, beta: float) -> np.ndarray | None:
        for _ in range(ROUNDS):
            p = softmax(self.push(a, beta))
            J = np.eye(len(a)) - beta * (np.diag(p) - np.outer(p, p)) @ self.G
            step = np.linalg.lstsq(J, p - a, rcond=None)[0]
            a = a + step
            if not np.all(np.isfinite(a)) or np.max(np.abs(a)) > 2:
                return None
            if np.max(np.abs(step)) < 1e-13:
                return a
        return None

    def energy(self, a: np.ndarray, beta: float) -> float:
        r"""$-\tfrac1\beta \ln \sum_j w_j e^{-\beta E_j}$ at the field."""
        E = self.V + 0.5 * (a @ self.G @ a + np.diag(self.G)) - self.G @ a
        if beta == 0:
            return float(np.exp(self.log_weights) @ E)
        return -log_sum(self.log_weights - beta * E).item() / beta

    def stable(self, a: np.ndarray, beta: float) -> bool:
        """Whether it is a minimum."""
        return bool(np.max(np.linalg.eigvals(beta * (np.diag(a) - np.outer(a, a)) @ self.G).real) < 1)


def mean_field(problem: Problem, beta: Any = None) -> xr.Dataset:
    r"""The stationary fields of a regression under alternatives, at one inverse temperature or several.

    Args:
        problem: `GaussianData`, `Direct` and alternatives that differ in their templates.
        beta: $\beta$, of likelihood and prior; by default that of the prior.

    Returns:
        Over `beta` and `solution`, lowest energy first: `responsibility` $a_j$ of each `component`, `energy`, `stable`
        (whether it is a minimum) and `solutions`, how many there are; beyond these are NaN. `probability` is the
        exact $b_j$. With two alternatives all solutions are found, with more those that many starts lead to.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=2)])
        >>> up, down = (fields.Gaussian(fields.Mass(grid), mean=[t, 0.0]) for t in (1.0, -1.0))
        >>> problem = fields.Problem(fields.GaussianData([0.0], [0.1]), fields.Direct(grid), up | down)
        >>> found = fields.mean_field(problem, [2.0, 4.0])
        >>> found.solutions.values.tolist(), round(float(found.responsibility[0, 0, 0]), 10)
        ([1, 3], 0.8059057774)
    """
    import xarray as xr

    reduced = _Reduced(problem)
    checks.not_negative("beta", reduced.beta if beta is None else beta)
    betas = np.atleast_1d(np.asarray(reduced.beta if beta is None else beta, dtype=np.float64))
    if betas.ndim > 1 or not betas.size:
        raise InputError(f"Argument `beta` must be a number or a list of some, but its shape is {betas.shape}.")
    found = [reduced.solutions(one) for one in betas]
    most, m = max(len(one) for one in found), len(reduced.V)
    a, energy, stable = np.full((len(betas), most, m), np.nan), np.full((len(betas), most), np.nan), []
    for i, (one, several) in enumerate(zip(betas, found, strict=True)):
        a[i, : len(several)] = several
        energy[i, : len(several)] = [reduced.energy(s, one) for s in several]
        stable.append([k < len(several) and reduced.stable(several[k], one) for k in range(most)])
    exact = np.array([softmax(reduced.log_weights - one * reduced.V) for one in betas])
    return xr.Dataset(
        {
            "responsibility": (("beta", "solution", "component"), a),
            "energy": (("beta", "solution"), energy),
            "stable": (("beta", "solution"), np.array(stable)),
            "solutions": ("beta", np.array([len(one) for one in found])),
            "probability": (("beta", "component"), exact),
        },
        coords={"beta": betas},
    )


def find_bifurcations(problem: Problem) -> xr.Dataset:
    r"""The inverse temperatures at which solutions of the mean-field equation of two alternatives appear or vanish.

    There are three solutions where $|\delta(\beta)| < \tfrac12 \beta b u - 2\, \mathrm{artanh}\, u$ with
    $u = \sqrt{1 - 4/\beta b}$.

    Args:
        problem: `GaussianData`, `Direct` and two alternatives that differ in their templates.

    Returns:
        `beta` of each `bifurcation` and the number of `solutions` above it.
    """
    import xarray as xr

    reduced = _Reduced(problem)
    if len(reduced.V) != 2:
        raise InputError(f"Argument `problem` must have two alternatives, but there are {len(reduced.V)}.")
    if not reduced.b > 0:
        raise InputError("Argument `problem` must have two alternatives with different templates, but they are equal.")

    def room(beta: float) -> float:
        u = np.sqrt(max(1 - 4 / (beta * reduced.b), 0.0))
        return 0.5 * beta * reduced.b * u - 2 * float(np.arctanh(u)) - abs(reduced.delta(beta))

    first = 4 / reduced.b
    scan = first * np.geomspace(1, COLDEST, SCANNED)
    values = np.array([room(beta) for beta in scan])
    found = [first] if values[0] == 0 else []
    for i in np.flatnonzero((values[:-1] < 0) != (values[1:] < 0)):
        if not (i == 0 and values[0] == 0):
            found.append(optimize.brentq(room, scan[i], scan[i + 1], xtol=1e-14))  # pyright: ignore[reportArgumentType]
    above = [3 if room(beta * (1 + 1e-6)) > 0 else 1 for beta in found]
    return xr.Dataset({"solutions": ("bifurcation", np.array(above, dtype=int))},
                      coords={"beta": ("bifurcation", np.array(found))})  # fmt: skip
