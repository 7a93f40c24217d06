r"""Several particles in one mean field: Hartree's approximation. [lemm1999, section 3.9]

$N$ equal particles repel or attract each other by $w(y, y')$. In a product of equal states each moves in
$$U = V + (N - 1)\, W p, \qquad (W p)(y) = \sum_{y'} w(y, y')\, p(y'),$$
where $p$ is the probability of one of them, itself that of $U$: a nonlinear equation, solved by Newton's method. With
$\chi = \delta p/\delta U$ of the state in a given $U$, derivatives by $V$ follow from those by $U$,
$$\delta U = (1 - W\chi)^{-1} \delta V, \qquad g_V = (1 - \chi W)^{-1} g_U, \qquad
  \delta g_V = (1 - \chi W)^{-1} \big(\delta g_U + \delta\chi\, W g_V\big).$$
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from quenched.core import checks
from quenched.core.types import Array, InputError
from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Particle
from quenched.fields.model.modes import require_matrix
from quenched.fields.model.observables import Observable, Positions
from quenched.fields.model.responses import Response
from quenched.fields.model.states import Ground, State

CONSISTENT, ROUNDS = 1e-12, 60
"""The mean field is known to this share of the interaction, after so many Newton steps at most."""
SOLVED = 1e-12
"""Residual of linear equations, as a share of the right side."""


class Hartree(State):
    """Each of several equal particles, in the mean field of the others.

    Attributes:
        interaction: $w$: a function of the distance of two particles, or its values `[points, points]`.
        particles: how many there are.
        state: that of each of them in the mean field.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> y = fields.Axis(-6, 6, points=121)
        >>> two = fields.Hartree(lambda distance: np.exp(-distance))
        >>> density = two.density(fields.Grid(given=[y]), y.coordinates**2 / 2)
        >>> alone = fields.Ground().density(fields.Grid(given=[y]), y.coordinates**2 / 2)
        >>> bool(density.max() < alone.max())  # they repel each other
        True
    """

    interaction: Any = eqx.field(static=True)
    particles: int = eqx.field(static=True, default=2)
    state: State = Ground()

    def __init__(self, interaction: Any, particles: int = 2, state: State | None = None):
        if not callable(interaction):
            w = checks.numbers("interaction", interaction)
            checks.finite("interaction", w)
            if w.ndim != 2 or w.shape[0] != w.shape[1] or not np.allclose(w, w.T):
                raise InputError("Argument `interaction` must be a function of the distance or a symmetric matrix, but "
                                 f"its shape is {w.shape}.")  # fmt: skip
            interaction = tuple(map(tuple, w.tolist()))
        self.interaction, self.particles = interaction, checks.whole("particles", particles, least=1)
        self.state = Ground() if state is None else state
        checks.kind("state", self.state, State, "a state such as Ground()")
        if self.state.times is not None or isinstance(self.state, Hartree):
            raise InputError("Argument `state` must be one that does not move, such as Ground(), but "
                             f"{type(self.state).__name__} was given.")  # fmt: skip

    def check(self, grid: Grid) -> None:
        """The interaction must be one of points of the grid."""
        self.state.check(grid)
        self._matrix(grid)

    def carried(self, old: Grid, new: Grid) -> State | None:
        """A function is known everywhere."""
        return self if callable(self.interaction) else None

    def _matrix(self, grid: Grid) -> np.ndarray:
        """$(N - 1)\\, w$ between all points."""
        require_matrix(grid.size)
        if not callable(self.interaction):
            w = np.asarray(self.interaction)
            if len(w) != grid.size:
                raise InputError(f"Argument `interaction` must have {grid.size} rows, one for each point of the grid, "
                                 f"but it has {len(w)}.")  # fmt: skip
            return (self.particles - 1) * w
        y = np.stack(np.meshgrid(*(axis.coordinates for axis in grid.axes), indexing="ij"), axis=-1)
        y = y.reshape(grid.size, -1)
        return (self.particles - 1) * np.asarray(self.interaction(np.linalg.norm(y[:, None] - y, axis=-1)), float)

    def chances(self, particle: Particle, energies: Array, states: Array, amplitudes: Any) -> Array:
        """There is no closed form."""
        raise InputError("A mean field is found on the host alone: use `Newton()` or `NewtonCG()`.")

    def respond(self, particle: Particle, observable: Observable) -> Response:
        """At the mean field that is consistent, from that of the last potential."""
        W, V, grid = self._matrix(particle.grid), particle.potential, particle.grid
        push = particle.steps.get("mean field", np.zeros(grid.size))
        here = self._at(particle, V + push, W)
        for _ in range(ROUNDS):
            if np.linalg.norm(here.off) <= CONSISTENT * (np.linalg.norm(V + here.push) + np.linalg.norm(W)):
                break
            step, length = -here.solve(here.off[None])[0], 1.0
            there = self._at(particle, here.particle.potential + step, W)
            while np.linalg.norm(there.off) > np.linalg.norm(here.off) and length > 1e-3:
                length /= 2
                there = self._at(particle, here.particle.potential + length * step, W)
            here = there
        particle.steps["mean field"] = here.particle.potential - V
        return HartreeResponse(here, self.state.respond(here.particle, observable))

    def _at(self, particle: Particle, U: np.ndarray, W: np.ndarray) -> MeanField:
        inside = Particle(particle.hamiltonian, particle.grid, U)
        return MeanField(inside, self.state.respond(inside, Positions(particle.grid)), W, particle.potential)


class MeanField:
    """A mean field, whether it is consistent or not.

    Attributes:
        particle: one particle in it.
        density: its response.
        W: the interaction.
        push: $W p$.
        off: by how much it is not consistent, $U - V - W p$.
    """

    def __init__(self, particle: Particle, density: Response, W: np.ndarray, potential: np.ndarray):
        self.particle, self.density, self.W = particle, density, W
        self.push = W @ density.density[0]
        self.off = particle.potential - potential - self.push

    def solve(self, right: np.ndarray, *, adjoint: bool = False) -> np.ndarray:
        r"""$(1 - W\chi)^{-1}$ of rows, or $(1 - \chi W)^{-1}$."""
        n = right.shape[-1]

        def product(x: np.ndarray) -> np.ndarray:
            x = np.ravel(x)
            seen = self.density.move((self.W @ x if adjoint else x)[None].copy())[0, 0]
            return x - (seen if adjoint else self.W @ seen)

        operator: Any = LinearOperator((n, n), matvec=product, dtype=np.float64)  # pyright: ignore[reportCallIssue]
        return np.stack([gmres(operator, b, rtol=SOLVED, atol=0.0, restart=50, maxiter=20)[0] for b in right])


class HartreeResponse(Response):
    """The response of one of several particles.

    Attributes:
        field: the mean field.
        response: that of its state in a given field.
    """

    def __init__(self, field: MeanField, response: Response):
        self.field, self.response = field, response

    @property
    def chance(self) -> np.ndarray:
        """That in the mean field."""
        return self.response.chance

    @property
    def density(self) -> np.ndarray:
        """That in the mean field."""
        return self.response.density

    def move(self, v: np.ndarray) -> np.ndarray:
        """Along the change of the mean field."""
        return self.response.move(self.field.solve(v))

    def pull(self, weights: np.ndarray) -> np.ndarray:
        """By the adjoint equation."""
        return self.field.solve(self.response.pull(weights)[None], adjoint=True)[0]

    def bend(self, weights: np.ndarray, v: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """See the module."""
        along = self.field.solve(v)
        pushed = (self.field.W @ self.pull(weights))[None]
        nothing = np.zeros((len(v), *pushed.shape))
        right = self.response.bend(weights, along, changes) + self.field.density.bend(pushed, along, nothing)
        return self.field.solve(right, adjoint=True)
