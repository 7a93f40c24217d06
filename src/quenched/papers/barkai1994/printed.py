r"""The equations as they are printed, tried on samples with nothing of the package but its law.

Each function returns numbers: what the printed equation gives, what the one used here gives, and what is counted.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from quenched import mixtures


def _sample(seed: int, separation: float, alpha: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples and their classes."""
    return mixtures.TwoGaussians(separation).sample(jax.random.key(seed), round(alpha * size), size=size)


def _directions(size: int) -> tuple[np.ndarray, np.ndarray]:
    """The true splitting vector and the true mean, as unit vectors."""
    unit = np.eye(2, size) / np.sqrt(2)
    return unit[0] - unit[1], unit[0] + unit[1]


def _iterate(X: np.ndarray, width: float, seed: int) -> np.ndarray:
    """Eq. (8) to its end, from a random start."""
    u = np.random.default_rng(seed).normal(size=X.shape[1]) / np.sqrt(X.shape[1])
    for _ in range(300):
        u = X.T @ np.tanh(X @ u / width) / len(X)
    return u


class Lost(NamedTuple):
    """Shares of runs whose splitting vector is nearer to the mean of the centres than to their difference."""

    printed: float
    centred: float


def lost_to_the_mean(samples: int = 20) -> Lost:
    """Eqs. (6), (8) with the data as they are, and with their mean taken away. [barkai1994, erratum B1]"""
    apart, mean = _directions(100)
    found = np.zeros((samples, 2))
    for seed in range(samples):
        S, _ = _sample(seed, 2.0, 1.0, 100)
        for k, X in enumerate((S, S - S.mean(axis=0))):
            u = _iterate(X, 3.0, seed)
            found[seed, k] = abs(u @ mean) > abs(u @ apart)
    return Lost(*(float(share) for share in found.mean(axis=0)))


class Centre(NamedTuple):
    """Distances of the mean of the centres of maximum likelihood from what eq. (7) and its correction say."""

    printed: float
    used: float


def centre_of_mass() -> Centre:
    """EM for both centres, to its end. [barkai1994, eq. (7), erratum B2]"""
    S, _ = _sample(0, 2.0, 1.0, 60)
    width, U = 3.0, np.random.default_rng(0).normal(size=(2, 60))
    for _ in range(3000):
        log = -((S[:, None] - U) ** 2).sum(axis=2) / (2 * width)
        p = 1 / (1 + np.exp(log[:, ::-1] - log))
        U = p.T @ S / p.sum(axis=0)[:, None]
    mean, apart = U.mean(axis=0), (U[0] - U[1]) / 2
    t = np.tanh((S - mean) @ apart / width)
    away = (S.mean(axis=0), S.mean(axis=0) - t.mean() * apart)
    return Centre(*(float(np.linalg.norm(mean - one)) for one in away))


class Chance(NamedTuple):
    """The error of an arbitrary direction: as printed, with the usual measure, and counted."""

    printed: float
    used: float
    counted: float
    stderr: float


def error_of_chance() -> Chance:
    """H(0) with dt/(2 pi) and with dt/sqrt(2 pi). [barkai1994, eq. (9), erratum B3]"""
    S, labels = _sample(1, 1.0, 400.0, 50)
    wrong = np.sign((S - S.mean(axis=0)) @ np.eye(50)[2]) != labels
    t = np.linspace(0, 12, 4001)
    half = float(np.trapezoid(np.exp(-t * t / 2), t))
    return Chance(half / (2 * np.pi), half / (2 * np.pi) ** 0.5, float(wrong.mean()), 0.5 / len(S) ** 0.5)


class Units(NamedTuple):
    """By which factor an order parameter changes when the data are given in a unit ten times smaller."""

    printed: float
    used: float


def change_of_units() -> Units:
    """q of a splitting vector fitted in either unit. [barkai1994, eq. (10), erratum B4]"""
    S, _ = _sample(2, 2.0, 2.0, 40)
    X, factors = S - S.mean(axis=0), []
    for unit in (1.0, 10.0):
        u = _iterate(unit * X, 2.0 * unit**2, 0)
        factors.append((unit**2 * (u @ u), u @ u / unit**2))
    (printed, used), (printed_there, used_there) = factors
    return Units(float(printed_there / printed), float(used_there / used))


class Power(NamedTuple):
    """With which power of 1/N the overlap of a random splitting falls."""

    value: float
    stderr: float


def overlap_of_chance() -> Power:
    """The largest eigenvector of samples below alpha_c, at N = 50 and 400. [barkai1994, erratum B5]"""
    squares, errors = [], []
    for size, samples in ((50, 400), (400, 150)):
        apart, _ = _directions(size)
        found = []
        for seed in range(samples):
            S, _ = _sample(1000 + seed, 1.0, 0.5, size)
            X = S - S.mean(axis=0)
            v = np.linalg.eigh(X @ X.T)[1][:, -1] @ X
            found.append((v @ apart) ** 2 / (v @ v))
        squares.append(np.mean(found))
        errors.append(np.std(found) / np.mean(found) / np.sqrt(samples))
    scale = 2 * np.log(400 / 50)
    return Power(float(np.log(squares[0] / squares[1]) / scale), float(np.hypot(*errors) / scale))


class Constant(NamedTuple):
    """What eq. (5) lacks for each example: as measured, with its standard error, and the term that was left out."""

    measured: float
    stderr: float
    term: float


def energy_left_out() -> Constant:
    """The logarithm of the likelihood against eq. (5). [barkai1994, erratum B11]"""
    separation, size, width = 1.5, 20, 1.3
    S, _ = _sample(2, separation, 2000.0, size)
    U = np.random.default_rng(0).normal(size=(2, size)) * 0.3
    mean, apart = U.mean(axis=0), (U[0] - U[1]) / 2
    log = -((S[:, None] - U) ** 2).sum(axis=2) / (2 * width)
    each = size / 2 * np.log(2 * np.pi * width) + np.log(2) - np.logaddexp(*log.T)
    X = (S - mean) @ apart / width
    eps = (mean @ (mean - 2 * S.mean(axis=0)) + apart @ apart) / (2 * width) - np.log(np.cosh(X))
    rest = each - eps - size / 2 * (np.log(2 * np.pi * width) + 1 / width)
    return Constant(float(rest.mean()), float(rest.std() / np.sqrt(len(S))), separation**2 / (2 * width))


def likeliest_width() -> float:
    """The width of maximum likelihood at N = 1000 with both centres at the mean of the data: their own share is 1/N."""
    S, _ = _sample(3, 1.0, 0.5, 1000)
    return float(np.mean((S - S.mean(axis=0)) ** 2) * len(S) / (len(S) - 1))
