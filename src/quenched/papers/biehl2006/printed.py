r"""Equation (29) of the paper, written out term by term, with each misprint to be put back by its number.

Plain NumPy and SciPy, no equation of the package's: without misprints it is a second derivation of the flow.
"""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ndtr

from quenched.prototypes import TwoClusters

LABEL = np.array([1.0, -1.0])


def drift(
    p: np.ndarray, lam: float, v: np.ndarray, a: float, b: float, eta: float, R: np.ndarray, Q: np.ndarray,
    misprints: frozenset[int] = frozenset(),
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    r"""Equation (29): $(\dot R, \dot Q)$ for $g(S, \sigma) = a + b S \sigma$, with the misprints of the given errata."""
    p, v = np.asarray(p), np.asarray(v)
    weight = np.ones(2) if 8 in misprints else p
    scale = np.sqrt(1 / (2 * np.pi)) if 4 in misprints else 1.0
    v_C = np.ones(2) if 10 in misprints else v
    v_noise = np.ones(2) if 6 in misprints else v
    D = Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
    at = 2 * np.sqrt(v * D)  # alpha~_ls, the same for both l
    dR, dQ = np.zeros((2, 2)), np.zeros((2, 2))

    def of(i):
        """Phi_is, exp(-beta~^2/2 alpha~^2)/sqrt(2 pi) for both clusters s."""
        beta = LABEL[i] * (Q[0, 0] - Q[1, 1])
        if 3 in misprints:
            beta = LABEL[i] * (Q[i, i] - Q[1 - i, 1 - i])
        u = (2 * lam * (R[i] - R[1 - i]) - beta) / at
        return scale * ndtr(u), np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)

    def C_b(i, m):
        return 2 * v_C * (R[i, m] - R[1 - i, m])

    def C_h(i, m):
        return 2 * v_C * (Q[i, m] - Q[1 - i, m])

    for l in range(2):
        Phi, edge = of(l)
        for m in range(2):
            axis = l if 5 in misprints else m
            mean_b = lam * (np.arange(2) == axis)
            labelled = C_b(l, axis) * edge / (1.0 if 9 in misprints else at) + mean_b * Phi
            plain = C_b(l, axis) * edge / at + mean_b * Phi
            dR[l, m] = eta * (
                b * LABEL[l] * np.sum(LABEL * weight * (labelled - Phi * R[l, m]))
                + a * np.sum(weight * (plain - Phi * R[l, m]))
            )
            Phi_m, edge_m = of(m)
            first = C_h(l, m) * edge / at + lam * R[m] * Phi
            second = C_h(m, l) * edge_m / at + lam * R[l] * Phi_m
            second_b = C_h(l, m) * edge_m / at + lam * R[l] * Phi_m if 11 in misprints else second
            second_a = C_h(l, l) * edge_m / at + lam * R[l] * Phi_m if 12 in misprints else second
            loss_m = Phi_m * (1.0 if 13 in misprints else Q[l, m])
            loss_a = (Phi_m if 14 in misprints else Phi) * Q[l, m]
            dQ[l, m] = eta * b * (
                LABEL[l] * np.sum(LABEL * weight * (first - Phi * Q[l, m]))
                + LABEL[m] * np.sum(LABEL * weight * (second_b - loss_m))
            ) + eta * a * np.sum(weight * (first - loss_a + second_a - Phi_m * Q[l, m]))
            if l == m:
                even = 0.0 if 15 in misprints else (a**2 + b**2) * np.sum(weight * v_noise * Phi)
                sign = np.ones(2) if 7 in misprints else LABEL
                dQ[l, m] += eta**2 * (even + 2 * a * b * LABEL[l] * np.sum(sign * weight * v_noise * Phi))
    return dR, dQ


def integrate(
    law: TwoClusters, coefficients: tuple[float, float], eta: float, times: np.ndarray,
    misprints: frozenset[int] = frozenset(),
) -> tuple[np.ndarray, np.ndarray] | None:  # fmt: skip
    """R and Q at `times` from the start of figure 2, or None if the integration breaks down."""
    p, v = np.array([law.prior, 1 - law.prior]), np.array(law.variances)

    def rhs(_, y):
        R, Q = y[:4].reshape(2, 2), y[4:].reshape(2, 2)
        return np.concatenate(
            [x.ravel() for x in drift(p, float(law.separation), v, *coefficients, eta, R, Q, misprints)]
        )

    start = np.concatenate([np.zeros(4), 1e-4 * np.eye(2).ravel()])
    with np.errstate(all="ignore"):
        path = solve_ivp(rhs, (0, times[-1]), start, t_eval=times, rtol=1e-8, atol=1e-10)
    if not path.success or path.y.shape[1] < len(times) or not np.all(np.isfinite(path.y)):
        return None
    return path.y[:4].T.reshape(-1, 2, 2), path.y[4:].T.reshape(-1, 2, 2)


def printed_error(law: TwoClusters, R: np.ndarray, Q: np.ndarray) -> float:
    """Equation (8) as printed: weight p_sigma (read as the prior of the other class), denominator sqrt(D)."""
    D = Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
    p = np.array([law.prior, 1 - law.prior])
    x = [(Q[s, s] - Q[1 - s, 1 - s] - 2 * law.separation * (R[s, s] - R[1 - s, s])) / np.sqrt(D) for s in range(2)]
    return float(np.sum(p * ndtr(np.array(x))))
