r"""How a state answers to its potential: probabilities of outcomes, and their first and second derivatives by $V$.

An outcome $a$ has the probability $p_a = \mathrm{Tr}(M_a \rho)$. [lemm1999, eq. (330)] With a function $f$ of the
levels, $\rho = \sum_i f_i \varphi_i \varphi_i^T = f(H)$, and for $A = \sum_a w_a M_a$ the derivatives along $v$ are
$$\delta \rho = \sum_{ij} f_{[ij]}\, \varphi_i v_{ij} \varphi_j^T, \qquad
  \delta^2\, \mathrm{Tr}(A\rho) = \sum_{ijk} f_{[ijk]} (A_{ij} v_{jk} + v_{ij} A_{jk}) v_{ki}$$
with divided differences $f_{[ij]} = (f_i - f_j)/(E_i - E_j)$ and so on, which are smooth where levels meet. Only levels
with weight are summed over. What the others add are solutions of $(E_i - H)\, \nu_i = v \varphi_i$ on the complement
of these levels: two equations for each level and each direction. For one level this is perturbation theory,
[lemm1999, eqs. (336) to (338), erratum F336].
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any

import numpy as np

from quenched.fields.model.hamiltonian import Particle
from quenched.fields.model.observables import Observable, Positions


class Response(abc.ABC):
    """The probabilities of a state at one potential, and their derivatives. Directions are flat fields `[B, points]`.

    Probabilities have the shape `[times, outcomes]`, with one time for states that do not move.
    """

    @property
    @abc.abstractmethod
    def chance(self) -> np.ndarray:
        """$p$ `[times, outcomes]`."""

    @property
    @abc.abstractmethod
    def density(self) -> np.ndarray:
        """The probabilities of the points `[times, points]`."""

    @abc.abstractmethod
    def move(self, v: np.ndarray) -> np.ndarray:
        r"""$\delta p$ along directions `[B, times, outcomes]`."""

    @abc.abstractmethod
    def pull(self, weights: np.ndarray) -> np.ndarray:
        r"""The derivatives of $\sum_a w_a p_a$ by the potential `[points]`."""

    @abc.abstractmethod
    def bend(self, weights: np.ndarray, v: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """How `pull` changes along directions, along which the weights change, too: `[B, points]`."""


@dataclasses.dataclass(frozen=True, eq=False)
class Occupation:
    """The weights of levels as a function of their energies, for divided differences.

    Attributes:
        f: the weights `[m]`.
        first: $f_{[ij]}$ `[m, m]`.
        second: $f''_i$, for levels that meet.
        near: the distance of levels that meet.
        beta: $1/T$ of a canonical ensemble, whose weights sum to 1 at every potential; otherwise 0.
    """

    f: np.ndarray
    first: np.ndarray
    second: np.ndarray
    near: float
    beta: float = 0.0


def fixed(E: np.ndarray, f: np.ndarray, near: float) -> Occupation:
    """Levels whose weights do not depend on their energies."""
    gap, off = E[:, None] - E, f[:, None] - f
    first = np.divide(off, gap, out=np.zeros_like(gap), where=off != 0)
    return Occupation(f, first, np.zeros(len(f)), near)


def canonical(E: np.ndarray, temperature: float) -> Occupation:
    r"""$f = e^{-E/T}/Z$."""
    beta = 1 / temperature
    e = beta * (E - E[0])
    Z = np.sum(np.exp(-e))
    half = (e[:, None] - e) / 2
    ratio = np.where(np.abs(half) < 1e-4, 1 + half**2 / 6, np.sinh(half) / np.where(half == 0, 1.0, half))
    first = -beta * np.exp(-(e[:, None] + e) / 2) * ratio / Z
    f = np.exp(-e) / Z
    return Occupation(f, first, beta**2 * f, 1e-4 * temperature, beta)


class LevelResponse(Response):
    """The response of weighted levels.

    Attributes:
        particle: the Hamiltonian.
        occupation: the weights of its lowest levels.
        observable: what is measured.
    """

    def __init__(self, particle: Particle, occupation: Occupation, observable: Observable):
        self.particle, self.occupation, self.observable = particle, occupation, observable
        self.E, self.states = particle.lowest(len(occupation.f))
        self._last: Any = None  # the direction along which the states were moved last
        self._pushed: Any = None  # and the weights that pulled last

    @functools.cached_property
    def _amplitudes(self) -> np.ndarray:
        return self.observable.amplitude(self.states)

    @functools.cached_property
    def chance(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        r"""$\sum_i f_i |c_i|^2$."""
        return (self.occupation.f @ np.abs(self._amplitudes) ** 2)[None]

    @functools.cached_property
    def density(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        r"""$\sum_i f_i \varphi_i^2$."""
        return (self.occupation.f @ self.states**2)[None]

    def _solve(self, right: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """$(E_i - H)^{-1} b_i$, zero for levels that are not asked for."""
        levels = np.arange(len(self.states)) if which is None else which
        found = np.zeros_like(right)
        found[levels] = self.particle.resolve(levels, len(self.states), right[levels])
        return found

    def _along(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""$\nu_i$ `[m, B, points]` and $v_{ij}$ `[B, m, m]`."""
        if self._last is None or self._last[0] is not v:
            pushed = self.states[:, None] * v
            self._last = v, self._solve(pushed), np.einsum("ibn,jn->bij", pushed, self.states)
        return self._last[1:]

    def _norm(self, v: np.ndarray) -> np.ndarray:
        r"""$\beta \langle v \rangle$ of a canonical ensemble `[B, 1]`; zero for others."""
        return self.occupation.beta * (v @ self.density[0])[:, None]

    def move(self, v: np.ndarray) -> np.ndarray:
        """By divided differences among the levels, and the solutions beside them."""
        nu, inside = self._along(v)
        o, c = self.occupation, self._amplitudes
        mixed = np.einsum("bij,ja->bia", o.first * inside, c)
        out = self.observable.amplitude(nu)
        change = np.einsum("ia,bia->ba", c.conj(), mixed).real
        change = change + 2 * np.einsum("i,ia,iba->ba", o.f, c.conj(), out).real
        return (change + self._norm(v) * self.chance)[:, None]

    def _move_density(self, v: np.ndarray) -> np.ndarray:
        if isinstance(self.observable, Positions):
            return self.move(v)[:, 0]
        nu, inside = self._along(v)
        mixed = np.einsum("bij,jn->bin", self.occupation.first * inside, self.states)
        change = np.einsum(
            "in,bin->bn", self.states, mixed + 2 * (self.occupation.f[:, None, None] * nu).swapaxes(0, 1)
        )
        return change + self._norm(v) * self.density

    def _pulled(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""$A \varphi_i$, $\alpha_i = (E_i - H)^{-1} A \varphi_i$ and $A_{ij}$."""
        if self._pushed is not None and self._pushed[0] is weights:
            return self._pushed[1:]
        a = self.observable.spread(weights[0], self.states)
        self._pushed = weights, a, self._solve(a), a @ self.states.T
        return self._pushed[1:]

    def pull(self, weights: np.ndarray) -> np.ndarray:
        """The diagonal of the derivative of the trace."""
        o, (_, alpha, A) = self.occupation, self._pulled(weights)
        g = np.sum(((o.first * A) @ self.states + 2 * o.f[:, None] * alpha) * self.states, axis=0)
        return g + o.beta * float(o.f @ np.diag(A)) * self.density[0]

    def bend(self, weights: np.ndarray, v: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """By second divided differences, see the module."""
        o, phi = self.occupation, self.states
        a, alpha, A = self._pulled(weights)
        nu, inside = self._along(v)
        changed = self.observable.spread(changes[:, 0], phi[:, None])  # [m, B, points]
        dA = np.einsum("ibn,jn->bij", changed, phi)
        pairs = self._second(A, inside) + o.first * dA
        pairs = pairs + o.first * np.einsum("in,kbn->bik", alpha, phi[:, None] * v)
        pairs = pairs + o.first * np.einsum("ibn,kn->bik", nu, a)
        meet = np.einsum("in,kbn->bik", alpha, nu)
        pairs = pairs - o.f * meet - o.f * meet.swapaxes(1, 2)
        back = np.einsum("ij,jbn->ibn", A, nu) + np.einsum("bij,jn->ibn", inside, alpha)
        push = v * alpha[:, None] + self.observable.spread(weights[0], nu) + changed - back
        X = np.einsum("ij,jbn->ibn", o.first * A, nu) + np.einsum("bij,jn->ibn", o.first * inside, alpha)
        X = X + o.f[:, None, None] * self._solve(push, np.flatnonzero(o.f))
        pairs = (pairs + pairs.swapaxes(1, 2)) / 2
        found = np.einsum("bin,in->bn", np.einsum("bij,jn->bin", pairs, phi), phi)
        found = found + 2 * np.einsum("ibn,in->bn", X, phi) + 2 * np.einsum("i,in,ibn->bn", o.f, alpha, nu)
        if not o.beta:
            return found
        g, t, p = self.pull(weights), float(o.f @ np.diag(A)), self.density[0]
        moved = (v @ g)[:, None] + np.einsum("i,bii->b", o.f, dA)[:, None]
        return found + self._norm(v) * (g - o.beta * t * p) + o.beta * (moved * p + t * self._move_density(v))

    def _second(self, A: np.ndarray, v: np.ndarray) -> np.ndarray:
        r"""$\sum_j f_{[ikj]} (A_{ij} v_{jk} + v_{ij} A_{jk})$ `[B, m, m]`, by commutators where levels are apart."""
        o, E = self.occupation, self.E
        fA, fv = o.first * A, o.first * v
        gap = E[:, None] - E
        near = np.abs(gap) <= o.near
        found = (fA @ v - A @ fv + fv @ A - v @ fA) / np.where(near, 1.0, gap)
        for i, k in zip(*np.nonzero(near), strict=True):
            other = np.where(np.abs(gap[i]) > o.near, np.abs(gap[i]), np.inf)
            apart = np.divide(o.first[i, k] - o.first[k], gap[i], out=np.zeros(len(E)), where=np.isfinite(other))
            S = np.where(np.isfinite(other), apart, o.second[i] / 2)
            found[:, i, k] = (A[i] * v[:, :, k] + v[:, i] * A[:, k]) @ S
        return found


class MixedResponse(Response):
    """The response of a mixture of states.

    Attributes:
        weights: of the states.
        parts: their responses.
    """

    def __init__(self, weights: np.ndarray, parts: list[Response]):
        self.weights, self.parts = weights, parts

    def _sum(self, terms: list[np.ndarray]) -> np.ndarray:
        return np.tensordot(self.weights, np.stack(terms), axes=1)

    @functools.cached_property
    def chance(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The sum."""
        return self._sum([part.chance for part in self.parts])

    @functools.cached_property
    def density(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The sum."""
        return self._sum([part.density for part in self.parts])

    def move(self, v: np.ndarray) -> np.ndarray:
        """The sum."""
        return self._sum([part.move(v) for part in self.parts])

    def pull(self, weights: np.ndarray) -> np.ndarray:
        """The sum."""
        return self._sum([part.pull(weights) for part in self.parts])

    def bend(self, weights: np.ndarray, v: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """The sum."""
        return self._sum([part.bend(weights, v, changes) for part in self.parts])
