r"""Section 3.9 and table 4, inverse quantum mechanics: what the library computes, beside matrices of all states.

The comparison uses nothing of `fields`: the Hamiltonian is a dense matrix, its states come from NumPy, its exponentials
from SciPy. The example has 41 points, $V = y^2/2 + 0.3 \sin y$, and $\hbar = m = 1$.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import linalg

from quenched.core.claims import Claim, below
from quenched.fields.learner.solving import solve
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.links import Direct
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.quantum import PositionData
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.fields.model.states import Canonical, Evolving, Ground, Mixed, Packet, State, Stationary, Weighted
from quenched.papers.lemm1999.misprint import Misprint

AXIS = Axis(-4, 4, points=41)
GRID, Y, STEP = Grid(given=[AXIS]), AXIS.coordinates, AXIS.spacing
V = Y**2 / 2 + 0.3 * np.sin(Y)
TIME, TEMPERATURE = 0.7, 0.8
BARRIER, MOMENTUM, SPREAD, CROSSED = 1.2, 1.5, 4.0, 34.0
"""Of a packet that meets a barrier: its height, momentum and width of the packet, and a time at which it is over."""
FINITE = 1e-4
"""Of central differences."""


def matrix(potential: np.ndarray) -> np.ndarray:
    """The Hamiltonian; wave functions vanish one spacing outside."""
    off = np.full(len(Y) - 1, -0.5 / STEP**2)
    return np.diag(1 / STEP**2 + potential) + np.diag(off, 1) + np.diag(off, -1)


@functools.cache
def spectrum() -> tuple[np.ndarray, np.ndarray]:
    """All energies and, as columns, unit vectors."""
    E, states = np.linalg.eigh(matrix(V))
    return E, states * np.sign(states.sum(axis=0))


def moved(start: np.ndarray, time: float) -> np.ndarray:
    """A pure state after some time."""
    return linalg.expm(-1j * time * matrix(V)) @ start


def _starts() -> list[np.ndarray]:
    """Packets, as unit vectors."""
    packets = [np.exp(-((Y - c) ** 2) / 0.6 + 1j * k * Y) for c, k in ((-1.0, 0.5), (0.8, -1.0))]
    return [packet / np.linalg.norm(packet) for packet in packets]


def rows_of_table() -> dict[str, tuple[State, np.ndarray]]:
    r"""Table 4: each state as the library has it, and $\rho$ as a matrix; scattering is apart."""
    U = spectrum()[1]
    first, second = _starts()
    late = moved(first, TIME)
    boltzmann = linalg.expm(-matrix(V) / TEMPERATURE)

    def pure(psi: np.ndarray) -> np.ndarray:
        return np.outer(psi, psi.conj())

    def moving(psi: np.ndarray, time: float) -> Evolving:
        return Evolving(psi, [time])

    shares = np.array([0.2, 0.5, 0.3])
    return {
        "general pure state": (moving(first, 0.0), pure(first)),
        "stationary pure state": (Stationary(2), pure(U[:, 2])),
        "ground state": (Ground(), pure(U[:, 0])),
        "time-dependent pure state": (moving(first, TIME), pure(late)),
        "general mixture state": (Mixed([0.4, 0.6], [moving(first, TIME), moving(second, TIME)]), 0.4 * pure(late) + 0.6 * pure(moved(second, TIME))),
        "stationary mixture state": (Weighted(shares), (U[:, :3] * shares) @ U[:, :3].T),
        "canonical ensemble": (Canonical(TEMPERATURE), boltzmann / np.trace(boltzmann)),
    }  # fmt: skip


def _problem(state: State, rows: np.ndarray) -> Problem:
    """Positions in a state, and a smooth potential about an oscillator."""
    repeated: Any = state.again(len(rows))
    prior = Gaussian(0.05 * Laplacian(GRID) + Mass(GRID, 0.01), mean=Y**2 / 2)
    return Problem(PositionData(positions=rows, state=repeated), Direct(GRID), prior)


def reconstructed(state: State, rho: np.ndarray) -> tuple[float, bool]:
    """The largest slope of the energy at the field that `solve` finds from 60 positions, and whether it arrived.

    Slopes are central differences of the whole energy along ten random directions.
    """
    p = np.real(np.diag(rho))
    random = np.random.default_rng(4)
    rows = random.choice(Y, 60, p=p / p.sum())
    problem = _problem(state, rows)
    fit = solve(problem)
    along = random.normal(size=(10, len(Y)))
    energies = [
        [problem.expand(fit.field + side * FINITE * one).energy for side in (1, -1)]
        for one in along / np.linalg.norm(along, axis=1, keepdims=True)
    ]
    return max(abs(up - down) / (2 * FINITE) for up, down in energies), bool(fit.converged)


def table_4_claims() -> list[Claim]:
    """One for each row: its density against the matrix, and a reconstruction from it."""
    claims = []
    for name, (state, rho) in rows_of_table().items():
        density = state.density(GRID, V).reshape(-1)
        off = float(np.max(np.abs(density * STEP - np.real(np.diag(rho)))))
        left, arrived = reconstructed(state, rho)
        blind = isinstance(state, Evolving) and not np.any(state.times)
        statement = "which says nothing of V" if blind else "and a potential can be found from it"
        ours = f"the same probabilities within {off:.0e}; slopes below {left:.0e} where `solve` ends with 60 positions"
        check = below(off, 1e-9, what="difference") & below(left if arrived else np.inf, 1e-6, what="largest slope")
        if blind:
            slope = float(np.max(np.abs(_problem(state, Y[10:30]).expand_data(V)[1])))
            ours, check = (
                f"the same within {off:.0e}; V moves the likelihood by {slope:.0e}",
                below(off, 1e-9, what="difference") & below(slope, 1e-9, what="slope"),
            )
        claims.append(Claim("Table 4", f"{name}: p(y) = Tr(Π ρ), eq. (330), {statement}", "ρ", ours, "ρ as a matrix of all states; finite differences of the energy", check))  # fmt: skip
    claims.append(_scattering_claim())
    return claims


def transmitted(points: int) -> float:
    r"""The probability behind a barrier $V_0/\cosh^2 y$ after a packet met it, and before it meets the ends."""
    axis = Axis(-60, 60, points=points)
    potential = BARRIER / np.cosh(axis.coordinates) ** 2
    packet = Packet(centre=-25.0, width=SPREAD, momentum=MOMENTUM)
    density = Evolving(packet, [CROSSED]).density(Grid(given=[axis]), potential)[0]
    return float(np.sum(density[axis.coordinates > 0]) * axis.spacing)


def transmission() -> float:
    r"""The same for infinite times, in the continuum: that of plane waves, over the momenta of the packet.

    $T(k) = \sinh^2 \pi k/(\sinh^2 \pi k + \cosh^2 \frac\pi2 \sqrt{8 V_0 - 1})$ with $\hbar = m = 1$ (Landau and Lifshitz,
    Quantum Mechanics, section 25).
    """
    k = np.linspace(0.01, 4.0, 4000)
    weights = np.exp(-2 * SPREAD**2 * (k - MOMENTUM) ** 2)
    through = np.sinh(np.pi * k) ** 2
    return float(np.average(through / (through + np.cosh(np.pi / 2 * np.sqrt(8 * BARRIER - 1)) ** 2), weights=weights))


def _scattering_claim() -> Claim:
    """A packet that moves for so long that the collision is over stands for the limit of infinite times."""
    coarse, fine, exact = transmitted(481), transmitted(961), transmission()
    limit = (4 * fine - coarse) / 3
    order = float(np.log2((coarse - exact) / (fine - exact)))
    check = below(abs(limit - exact), 1e-3, what="difference") & below(abs(order - 2), 0.2, what="order less 2")
    return Claim("Table 4", "scattering: lim U(t, t₀) ψ(t₀)", "a limit of infinite times", f"a packet that has met V₀/cosh² y: {fine:.4f} behind it at spacing 1/8, {limit:.4f} at spacing 0 (order {order:.2f})", f"plane waves in closed form, over the momenta of the packet: {exact:.4f}; a box must be so wide that the collision ends before the walls are met", check)  # fmt: skip


def by_all_states(potential: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The derivatives of the log-likelihood by the values of a potential. [lemm1999, eqs. (338), (339)]"""
    E, U = np.linalg.eigh(matrix(potential))
    total = np.zeros(len(Y))
    for i in rows:
        total += 2 * ((U[i, 1:] / (E[0] - E[1:])) @ U[:, 1:].T) * U[:, 0] / U[i, 0]
    return total


def potential_claims() -> list[Claim]:
    """Section 3.9."""
    U = spectrum()[1]
    random = np.random.default_rng(0)
    rows = random.choice(len(Y), 60, p=U[:, 0] ** 2)
    unit = np.eye(len(Y))
    raised = [
        np.linalg.eigvalsh(matrix(V + FINITE * e))[0] - np.linalg.eigvalsh(matrix(V - FINITE * e))[0] for e in unit
    ]
    first = float(np.max(np.abs(np.array(raised) / (2 * FINITE) - U[:, 0] ** 2)))
    ground = float(np.max(np.abs(Ground().density(GRID, V) * STEP - U[:, 0] ** 2)))
    problem = _problem(Ground(), Y[rows])
    slope = -np.ravel(problem.expand_data(V)[1])
    off = float(np.max(np.abs(slope - by_all_states(V, rows))) / np.max(np.abs(slope)))
    fit = solve(problem)
    left = _stationarity(problem, fit.field, rows)
    shift = abs(problem.expand_data(V + 5.0)[0] - problem.expand_data(V)[0])
    return [
        Claim("equation (333)", "the likelihood of a position in the ground state is |φ₀|²", "|φ₀(y)|²", f"the same within {ground:.0e}", "all states of a dense matrix", below(ground, 1e-9, what="difference")),
        Claim("equation (337)", "the ground state energy changes by |φ₀(y)|²", "|φ₀(y)|²", f"central differences agree within {first:.0e}", "dense matrices with one value of V changed", below(first, 1e-7, what="difference")),
        Claim("equations (338), (339)", "the derivative of the log-likelihood is a sum over all states", "sum over states", f"the derivative without a sum over states is the same within {off:.0e}", "60 positions; implicit differentiation against all 41 states", below(off, 1e-8, what="relative difference")),
        Claim("equation (341)", "stationarity of likelihood and prior", "0", f"{left:.0e} of either part", "where `solve` ends with 60 positions; the derivative by the sum over states there", below(left, 1e-6, what="what is left")),
        Claim("section 3.9", "measured positions determine the potential but for a constant", "-", f"V + 5 changes the log-likelihood by {shift:.0e}", "60 positions in the ground state", below(shift, 1e-9, what="change")),
        *table_4_claims(),
    ]  # fmt: skip


def _stationarity(problem: Problem, field: np.ndarray, rows: np.ndarray) -> float:
    """What is left of (341) at a field, relative to the pull of the data."""
    push = STEP * np.asarray(problem.operator.apply(field - Y**2 / 2))
    return float(np.max(np.abs(by_all_states(field, rows) - push)) / np.max(np.abs(push)))


def misprints() -> list[Misprint]:
    """The derivative of the ground state."""
    E, U = spectrum()
    along = np.random.default_rng(3).normal(size=len(Y))
    ends = [np.linalg.eigh(matrix(V + side * FINITE * along))[1][:, 0] for side in (1, -1)]
    up, down = (one * np.sign(one @ U[:, 0]) for one in ends)
    left = (matrix(V) - E[0] * np.eye(len(Y))) @ (up - down) / (2 * FINITE)
    right = (along - U[:, 0] @ (along * U[:, 0])) * U[:, 0]  # (dH - dE) phi
    off = {sign: float(np.max(np.abs(left - sign * right)) / np.max(np.abs(right))) for sign in (1, -1)}
    return [
        Misprint("F336", "equation (336)", "derivative of the ground state", "(H - E₀) δφ₀ = (δH - δE₀) φ₀", "(δE₀ - δH) φ₀", "central differences of eigenvectors",
                 off[1], off[-1]),
    ]  # fmt: skip
