r"""A pure state that moves, $\psi(t) = e^{-iHt/\hbar} \psi(0)$, and its derivatives by $V$. [lemm1999, table 4]

Time goes in steps that are split into factors of $T$, by fast transforms, and of $V$, which are phases: unitary, of
fourth order [blanes2002, S6], and at the same cost on fine grids. Derivatives are those of the steps, to rounding: a
change of $V$ changes the phases, forwards; and sensitivities $\lambda$ go backwards by the inverse steps, with
$$\psi' = e^{-i\theta V} \psi, \qquad \lambda = e^{i\theta V} \lambda', \qquad
  \frac{\partial}{\partial V} = \theta\, \mathrm{Im}\, \bar\lambda' \psi' ,$$
and so do the changes of both, for second derivatives. Nothing is stored on the way.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Hamiltonian, Particle
from quenched.fields.model.observables import Observable
from quenched.fields.model.operators import Waves
from quenched.fields.model.responses import Response

KICKS = (0.0792036964311957, 0.353172906049774, -0.0420650803577195)
DRIFTS = (0.209515106613362, -0.143851773179818)
"""Shares of a step for which the potential and the kinetic energy act. [blanes2002, table 2]"""
DENSE = 150
"""Points up to which a product with a matrix is as quick as transforms."""
ACCURATE, MOST = 1e-6, 20
"""Steps are halved until the state changes by less than this, and so often at most."""


def scheme() -> tuple[np.ndarray, np.ndarray]:
    """Shares of the potential (7) and of the kinetic energy (6) in a step, in turn."""
    a, b = list(KICKS), list(DRIFTS)
    b.append(0.5 - sum(b))
    return np.array([*a, 1 - 2 * sum(a), *a[::-1]]), np.array([*b, *b[::-1]])


class Motion:
    """Steps in time.

    Attributes:
        particle: the Hamiltonian.
        spans: times from each epoch to the next, beginning at zero.
        counts: how many steps each takes.
    """

    def __init__(self, particle: Particle, spans: np.ndarray, counts: np.ndarray):
        self.particle, self.spans, self.counts = particle, spans, counts
        self.hbar = particle.hamiltonian.hbar

    def steps(self, epoch: int) -> tuple[float, int]:
        r"""$\Delta t/\hbar$ before an epoch, and how often."""
        n = int(self.counts[epoch])
        return (float(self.spans[epoch]) / (n * self.hbar) if n else 0.0), n

    def drift(self, states: np.ndarray, theta: float) -> np.ndarray:
        r"""$e^{-i\theta T}$."""
        if states.shape[-1] <= DENSE:
            return states @ _drift_matrix(self.particle.hamiltonian, self.particle.grid, theta)
        return _drift(self.particle.kinetic, states, theta)

    def forward(self, psi: np.ndarray, v: np.ndarray | None = None) -> list[np.ndarray]:
        """The state `[1, points]` at each epoch, and with directions `v` its changes behind it `[1 + B, points]`."""
        a, b = scheme()
        found, V = [], self.particle.potential
        z = psi[None] if v is None else np.concatenate([psi[None], np.zeros((len(v), len(psi)), complex)])
        for epoch in range(len(self.spans)):
            dt, n = self.steps(epoch)
            phases = [np.exp(-1j * share * dt * V) for share in a]
            for _ in range(n):
                for k, share in enumerate(a):
                    if v is not None:
                        z[1:] -= 1j * share * dt * v * z[:1]
                    z = phases[k] * z
                    if k < len(b):
                        z = self.drift(z, b[k] * dt)
            found.append(z.copy())
        return found

    def backward(self, ends: list[np.ndarray], pulls: list[np.ndarray], v: np.ndarray | None = None) -> np.ndarray:
        r"""The derivative by the potential `[1, points]`, and with directions its changes behind it.

        Args:
            ends: states and their changes at each epoch.
            pulls: what is added to the sensitivity $\lambda$ there, and to its changes, of the same shape.
            v: directions of the changes.
        """
        a, b = scheme()
        V = self.particle.potential
        count = len(ends[0])
        found, w = np.zeros(ends[0].shape), np.zeros(ends[0].shape, complex)
        for epoch in reversed(range(len(self.spans))):
            dt, n = self.steps(epoch)
            w = w + pulls[epoch]
            z = np.concatenate([ends[epoch], w])
            phases = [np.exp(1j * share * dt * V) for share in a]
            for _ in range(n):
                for k in reversed(range(len(a))):
                    if k < len(b):
                        z = self.drift(z, -b[k] * dt)
                    psi, lam = z[:count], z[count:]
                    found[:1] += a[k] * dt * np.imag(lam[:1].conj() * psi[:1])
                    if v is not None:
                        change = lam[1:].conj() * psi[:1] + lam[:1].conj() * psi[1:]
                        found[1:] += a[k] * dt * np.imag(change)
                    z = phases[k] * z
                    if v is not None:
                        z[1:count] += 1j * a[k] * dt * v * z[:1]
                        z[count + 1 :] += 1j * a[k] * dt * v * z[count : count + 1]
            w = z[count:]
        return found


def _drift(T: Waves, states: Any, theta: float) -> np.ndarray:
    flat = np.stack([states.real, states.imag]).reshape(2, -1, *T.grid.shape)
    a = np.asarray(T.to_modes(flat))
    turned = (a[0] + 1j * a[1]) * np.exp(-1j * theta * np.asarray(T.values))
    back = np.asarray(T.from_modes(np.stack([turned.real, turned.imag])))
    return (back[0] + 1j * back[1]).reshape(states.shape)


@functools.lru_cache(maxsize=64)
def _drift_matrix(hamiltonian: Hamiltonian, grid: Grid, theta: float) -> np.ndarray:
    return _drift(hamiltonian.kinetic(grid), np.eye(grid.size, dtype=complex), theta)


def plan(particle: Particle, psi: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """How many steps each span needs."""
    counts = (spans > 0).astype(int)
    before = Motion(particle, spans, counts).forward(psi)
    for _ in range(MOST):
        found = Motion(particle, spans, 2 * counts).forward(psi)
        if max(float(np.linalg.norm(one - two)) for one, two in zip(found, before, strict=True)) < ACCURATE:
            return 2 * counts
        counts, before = 2 * counts, found
    return counts


class MovingResponse(Response):
    """The response of a pure state that moves.

    Attributes:
        motion: its steps.
        psi: where it begins, a unit vector.
        observable: what is measured.
    """

    def __init__(self, motion: Motion, psi: np.ndarray, observable: Observable):
        self.motion, self.psi, self.observable = motion, psi, observable
        self._last: Any = None  # the directions of which the motion was computed last

    @functools.cached_property
    def _path(self) -> list[np.ndarray]:
        return self.motion.forward(self.psi)

    @functools.cached_property
    def chance(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        """$|c_a|^2$ at each epoch."""
        return np.stack([np.abs(self.observable.amplitude(z[0])) ** 2 for z in self._path])

    @functools.cached_property
    def density(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        r"""$|\psi|^2$ at each epoch."""
        return np.stack([np.abs(z[0]) ** 2 for z in self._path])

    def _changed(self, v: np.ndarray) -> list[np.ndarray]:
        if self._last is None or self._last[0] is not v:
            self._last = v, self.motion.forward(self.psi, v)
        return self._last[1]

    def move(self, v: np.ndarray) -> np.ndarray:
        r"""$2\, \mathrm{Re}\, \bar c\, \delta c$."""
        c = [self.observable.amplitude(z) for z in self._changed(v)]
        return np.stack([2 * (one[:1].conj() * one[1:]).real for one in c], axis=1)

    def pull(self, weights: np.ndarray) -> np.ndarray:
        """Backwards."""
        pulls = [2 * self.observable.spread(w, z) for w, z in zip(weights, self._path, strict=True)]
        return self.motion.backward(self._path, pulls)[0]

    def bend(self, weights: np.ndarray, v: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """Backwards, with the changes."""
        path, pulls = self._changed(v), []
        for epoch, z in enumerate(path):
            force = 2 * self.observable.spread(weights[epoch], z)
            force[1:] += 2 * self.observable.spread(changes[:, epoch], z[:1])
            pulls.append(force)
        return self.motion.backward(path, pulls, v)[1:]
