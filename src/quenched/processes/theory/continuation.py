r"""The learning curve beyond the data: subsampling without repeats, continued to more rows than there are.

Oversampling a table repeats its rows, which lowers the noise and adds nothing new. Subsampling without repeats is the
honest smaller experiment, and averaged over the rows its mean-field answer is closed: a sample of $m$ rows acts through
one number, the effective ridge $\kappa$, with $m \kappa = \sigma^2 + \kappa\, d_1(\kappa)$, and the error on an unseen
row is $E_m = B(\kappa)/(1 - d_2(\kappa)/m)$. All $N$ rows with another ridge $\delta$ show every $\kappa$ without
knowledge of spectrum, teacher or noise: with $A = K + \delta I$ and $T_k = \mathrm{tr} A^{-k}$,

$$\kappa = 1/T_1, \quad d_1 = N - \delta T_1, \quad d_2 = N - T_1^2/T_2, \quad B = y^\top A^{-2} y / T_2 .$$

Equal $\kappa$ for $(m, \sigma^2)$ and $(N, \delta)$ continues the curve to $m < N$ and to $m > N$; at $m = N$ it is
generalised cross-validation. Where the table cannot show so small a $\kappa$, $d_1$ is continued as a power law and the
answer is marked as extended.
Assumed: rows are independent draws of one law, and the kernel stays as it is. Not covered: a kernel tuned anew at each
size, repeats, order in time. Everything is NumPy on the host, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

FLAT = 1e-9
"""Logarithms of ridges that differ by less, as a share, are those of one ridge."""
NEGLIGIBLE = 1e-11
"""Eigenvalues below this share of the largest count as zero: they are rounding."""
FULLEST = 0.7
"""Share of the rows that the degrees of freedom may use up; beyond, the finite table distorts what is left."""
TAIL = 8
"""Points of a grid of ridges whose slope the power law takes."""
STEP = 2.0**0.25
"""Ratio of neighbouring ridges on that grid."""
NEAR = 4.0
"""The error is regressed over effective ridges up to this many times the present one."""
FAINT = 1e-6
"""Eigenvalues below this share of the noise are left out of the jackknife."""


class Spectrum(NamedTuple):
    """What the continuation takes from a table and a kernel; all arrays have one entry for each eigenvalue."""

    lam: np.ndarray  # eigenvalues of the kernel matrix, ascending; one entry for all that are zero
    p: np.ndarray  # squared length of the targets in the space of the eigenvalue
    dims: np.ndarray  # dimensions of that space

    @property
    def rows(self) -> int:
        """The number of rows, $N$."""
        return int(self.dims.sum())


class Modes(NamedTuple):
    """A spectrum with its eigenvectors, for what is needed row by row."""

    spectrum: Spectrum
    phi: np.ndarray  # [N, r], the vectors of the last r eigenvalues, which are not zero
    y: np.ndarray  # [N], the standardised targets


def modes_of_matrix(K: np.ndarray, y: np.ndarray) -> Modes:
    """From the kernel matrix `[N, N]` and the standardised targets `[N]`, by one eigendecomposition."""
    lam, phi = _decompose(K, len(y))
    return Modes(_spectrum(lam, phi.T @ y, y), phi, y)


def modes_of_factor(F: np.ndarray, y: np.ndarray) -> Modes:
    r"""From a factor `[N, r]` of the kernel matrix, $K = F F^\top$, by an eigendecomposition of order $r$."""
    lam, v = _decompose(F.T @ F, len(y))
    phi = F @ (v / np.sqrt(lam))
    return Modes(_spectrum(lam, phi.T @ y, y), phi, y)


def _spectrum(lam: np.ndarray, c: np.ndarray, y: np.ndarray) -> Spectrum:
    """From the eigenvalues that are not zero, the coefficients of the targets in their vectors, and the targets."""
    if (zeros := len(y) - len(lam)) == 0:
        return Spectrum(lam, c**2, np.ones(len(y)))
    rest = max(float(y @ y - c @ c), 0.0)
    return Spectrum(np.append(0.0, lam), np.append(rest, c**2), np.append(zeros, np.ones(len(lam))))


def _decompose(M: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of a positive matrix that are not zero, at most `most`, and their vectors."""
    from scipy.linalg import eigh

    lam, v = eigh(M, driver="evd", check_finite=False)
    kept = (lam >= NEGLIGIBLE * lam[-1]) & (np.arange(len(lam)) >= len(lam) - most)
    return lam[kept], v[:, kept]


class State(NamedTuple):
    """The mean-field state of the learner at one effective ridge, or at many."""

    kappa: np.ndarray
    df1: np.ndarray
    df2: np.ndarray
    B: np.ndarray

    def error(self, m: float | np.ndarray) -> np.ndarray:
        """The error of `m` rows with this effective ridge."""
        return self.B / (1 - self.df2 / m)


def find_state(spectrum: Spectrum, delta: float | np.ndarray) -> State:
    """What all rows with ridge `delta` show."""
    delta, N = np.asarray(delta, float), spectrum.rows
    a = 1 / (spectrum.lam + delta[..., None])
    T1, T2, q = a @ spectrum.dims, a**2 @ spectrum.dims, a**2 @ spectrum.p
    return State(1 / T1, N - delta * T1, N - T1**2 / T2, q / T2)


def find_ridge(spectrum: Spectrum, s2: float, m: float) -> float:
    r"""The ridge at which all $N$ rows have the effective ridge of `m` rows with noise `s2`, or NaN if there is none.

    It solves $\delta + (m - N)\, \kappa(\delta) = \sigma^2$. The left side increases, for $m < N$ at each root
    (there $d_2 \le d_1 < m$), so the root is unique. Where there is none, even without any ridge this table cannot
    stand for that many rows.
    """
    N, zeros = spectrum.rows, spectrum.dims[spectrum.lam == 0].sum()
    if m == N:
        return float(s2)

    def excess(delta: float) -> float:
        return delta + (m - N) * float(find_state(spectrum, delta).kappa) - s2

    if m < N:  # kappa <= mean lam + delta, by convexity
        low, high = s2, (s2 + (1 - m / N) * float(spectrum.lam.sum()) / N) * N / m * (1 + 1e-9)
    else:  # kappa <= delta/zeros
        low, high = s2 * zeros / (m - N + zeros) * (1 - 1e-9), s2
        if not zeros and excess(0.0) >= 0:
            return float("nan")
    return _root(excess, low, high)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """The root of an increasing function between two positive numbers, or 0 and one, to all digits."""
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-16 * high, rtol=1e-14))  # pyright: ignore[reportArgumentType]


class Continued(NamedTuple):
    """The continued curve, all `[sizes]`."""

    delta: np.ndarray  # NaN where extended
    state: State
    gcv: np.ndarray
    extended: np.ndarray


def continue_curve(spectrum: Spectrum, s2: float, sizes: np.ndarray) -> Continued:
    """Generalised cross-validation continued to other numbers of rows, from 1 upwards, below $N$ and above."""
    m = np.asarray(sizes, float)
    N = spectrum.rows
    delta = np.array([find_ridge(spectrum, s2, float(size)) for size in m])
    shown = find_state(spectrum, np.where(np.isfinite(delta), delta, s2))
    extended = (m > N) & ~(np.isfinite(delta) & (shown.df1 <= FULLEST * N))
    if extended.any():
        beyond = _extend(spectrum, s2, m[extended])
        for here, there in zip(shown, beyond, strict=True):
            here[extended] = there
    delta[extended] = np.nan
    return Continued(delta, shown, shown.error(m), extended)


def edge(spectrum: Spectrum, s2: float) -> float:
    """The smallest ridge at which the degrees of freedom use up only the allowed share of the rows; `s2` at most."""

    def room(delta: float) -> float:
        return FULLEST - float(find_state(spectrum, delta).df1) / spectrum.rows

    least = NEGLIGIBLE * s2
    if room(s2) <= 0:
        return float(s2)
    return _root(room, least, s2) if room(least) < 0 else least


def _extend(spectrum: Spectrum, s2: float, m: np.ndarray) -> State:
    """Below the smallest effective ridge that the table shows: a power law of the degrees of freedom."""
    from scipy.optimize import nnls

    last, now = edge(spectrum, s2), float(find_state(spectrum, s2).kappa)
    top = NEAR * (float(spectrum.lam.sum()) / spectrum.rows + s2)  # there the effective ridge is above NEAR * now
    seen = find_state(spectrum, last * STEP ** np.arange(max(np.ceil(np.log(top / last) / np.log(STEP)), TAIL), -1, -1))
    kappa_e, df_e, B_e = (float(x[-1]) for x in (seen.kappa, seen.df1, seen.B))
    x, y = np.log(seen.kappa[-TAIL:]), np.log(seen.df1[-TAIL:])
    slope = np.polyfit(x, y, 1)[0] if np.ptp(x) > FLAT * np.max(np.abs(x)) else 0.0  # the table shows one ridge only
    power = float(np.clip(-slope, 1e-3, 1 - 1e-3))

    def df1(kappa: float | np.ndarray) -> float | np.ndarray:
        return df_e * (kappa / kappa_e) ** -power

    def ridge(size: float) -> float:
        return _root(lambda kappa: size * kappa - s2 - kappa * float(df1(kappa)), s2 / size, now * (1 + 1e-9))

    kappa = np.array([ridge(float(size)) for size in m])
    d1 = np.asarray(df1(kappa))
    near = (seen.kappa <= NEAR * now) | (np.arange(len(seen.kappa)) >= len(seen.kappa) - TAIL)
    white = (seen.kappa * (seen.df1 - seen.df2))[near]  # how the error of a white teacher falls
    bias = float(nnls(np.column_stack([np.ones(len(white)), white]), seen.B[near])[0][1])
    bias = min(bias, B_e / (power * kappa_e * df_e))  # an error is not negative
    return State(kappa, d1, (1 - power) * d1, B_e + bias * power * (kappa * d1 - kappa_e * df_e))


class LeftOut(NamedTuple):
    """What is known of the rows when each is left out, all `[N]`."""

    residual: np.ndarray  # y_i minus its prediction from the other rows
    training: np.ndarray  # y_i minus its prediction from all rows
    square: np.ndarray  # diagonal of A^-2

    @property
    def error(self) -> float:
        """The mean squared residual."""
        return float(np.mean(self.residual**2))


def leave_out(known: Modes, delta: float) -> LeftOut:
    r"""Residuals without refitting: $y_i - \hat y_i^{(-i)} = (A^{-1} y)_i / (A^{-1})_{ii}$, $A = K + \delta I$."""
    spectrum, phi, y = known
    r = phi.shape[1]
    a, c, phi2 = 1 / (spectrum.lam[-r:] + delta), phi.T @ y, phi**2
    solved, inverse, square = phi @ (a * c), phi2 @ a, phi2 @ a**2
    if r < len(y):  # the part of every row that the kernel does not see
        blind = np.maximum(1 - phi2.sum(1), 0.0)
        solved, inverse, square = solved + (y - phi @ c) / delta, inverse + blind / delta, square + blind / delta**2
    return LeftOut(solved / inverse, delta * solved, square)


def level_error(known: Modes, s2: float, left: LeftOut) -> float:
    r"""The standard error of the log of the leave-one-out error, the square root of

    $$(2\, \mathrm{tr} W^2 + k_4 \textstyle\sum_i W_{ii}^2)/(\mathrm{tr} W)^2, \qquad W = (K + \sigma^2)^{-2},$$

    where $k_4$ is the excess kurtosis of the leave-one-out residuals, or 0 if that is negative.
    """
    centred = left.residual - left.residual.mean()
    k4 = max(float(np.mean(centred**4) / np.mean(centred**2) ** 2) - 3.0, 0.0)
    W2 = (known.spectrum.lam + s2) ** -4.0 @ known.spectrum.dims
    return float(np.sqrt(2 * W2 + k4 * np.sum(left.square**2)) / np.sum(left.square))


def remove_rows(known: Modes, s2: float, rows: np.ndarray) -> Spectrum:
    """The spectrum of the table without some rows; eigenvalues far below the noise are left out."""
    lam, phi, y = known.spectrum.lam[-known.phi.shape[1] :], known.phi, known.y
    bright = lam >= min(FAINT * s2, lam.max())  # the largest stays, however faint
    root = np.sqrt(lam[bright])
    F = phi[np.ix_(rows, np.flatnonzero(bright))] * root
    left, v = _decompose(np.diag(lam[bright]) - F.T @ F, len(y) - len(rows))
    c = v.T @ (root * (phi[:, bright].T @ y) - F.T @ y[rows]) / np.sqrt(left)
    return _spectrum(left, c, np.delete(y, rows))


def shape_error(
    known: Modes, s2: float, sizes: np.ndarray, groups: np.ndarray, advance: Callable[[int], None] = lambda steps: None
) -> np.ndarray:
    r"""The standard error of $\log(\mathrm{GCV}_m/\mathrm{GCV}_N)$ at each size, by a jackknife over groups of rows.

    Each group is left out in turn, and the ratio is estimated anew from the rest, between the same $m$ and $N$: all
    estimates are then of one quantity. `groups` has the group of each row, from 0; `advance` is called after each.
    """
    count, asked = int(groups.max()) + 1, np.append(np.asarray(sizes, float), known.spectrum.rows)
    ratio = []
    for g in range(count):
        at = continue_curve(remove_rows(known, s2, np.flatnonzero(groups == g)), s2, asked).gcv
        ratio.append(np.log(at[:-1] / at[-1]))
        advance(1)
    spread = np.array(ratio) - np.mean(ratio, axis=0)
    return np.sqrt((count - 1) / count * np.sum(spread**2, axis=0))


def shape_gap(known: Modes, s2: float, continued: Continued) -> np.ndarray:
    """How far the shape by leave-one-out is from the shape by generalised cross-validation, in the log, at each size.

    Where the curve is extended, the comparison stops at the last ridge that the table shows.
    """
    N, last = known.spectrum.rows, edge(known.spectrum, s2)

    def apart(delta: float) -> float:
        return float(np.log(leave_out(known, delta).error / find_state(known.spectrum, delta).error(N)))

    here = apart(s2)
    return np.array([apart(float(delta)) - here for delta in np.where(continued.extended, last, continued.delta)])
