"""All the minima of one sample: those that random starts find, and where they go as the width changes."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core.ensemble import OnHost, ensemble
from quenched.core.types import Key, double
from quenched.mixtures.learner import Climbed, Freedom, Gaussians, climb, rows_of
from quenched.mixtures.model import SCIENCE, Annealed, Law, MaximumLikelihood
from quenched.mixtures.simulation.measure import ACCURACY, PASSES, Sample, anneal, draw_sample, observe, split

SAME_ENERGY, SAME_ANGLE = 1e-6, 1e-4
"""Minima whose energies differ by less, and whose squared cosine differs from 1 by less, are the same one."""
UNDONE = 1e-3
"""A step in width after which the way back ends further off than this (in the squared cosine) was a jump."""
KEPT = ("r", "q", "energy")
"""Order parameters of a minimum."""

Values = dict[str, np.ndarray]


class Descent:
    """EM of two Gaussians from many starts on one sample."""

    def __init__(self, sample: Sample):
        self.sample, X = sample, sample.S - sample.S.mean(axis=0)
        self.rows = rows_of(X, np.full(len(X), 1 / len(X)), features=1)

    def begin(self, key: Key, starts: int) -> np.ndarray:
        """Centres `[starts, 2, N]` on opposite sides of the mean, at a distance of 1 from it."""
        v = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist()).normal(
            size=(starts, len(self.sample.truth))
        )
        v = v / np.linalg.norm(v, axis=1, keepdims=True)
        return np.stack([v, -v], axis=1)

    def settle(self, centres: np.ndarray, width: float) -> np.ndarray:
        """The centres of the minima."""
        return self._climb(centres, width).gaussians.centres

    def look(self, centres: np.ndarray, width: float) -> Values:
        """Splitting vectors and order parameters of centres at a minimum."""
        dU, energy = split(self.sample, width, centres, self._climb(centres, width).log_likelihood)
        return {"dU": dU} | {name: observe(self.sample, dU, energy)[name] for name in KEPT}

    def _climb(self, centres: np.ndarray, width: float) -> Climbed:
        shape = centres.shape[:-1]
        g = Gaussians(centres, np.full((*shape, 1), width), np.full(shape, 0.5))
        return climb(self.rows, g, Freedom(weights=False), accuracy=ACCURACY, passes=PASSES)


def _anneal(key: Key, sample: Sample, widths: np.ndarray) -> Values:
    """The annealed solution at falling widths."""
    values = anneal(key, sample, widths, Annealed())
    return {f"annealed_{name}": values[name] for name in KEPT}


def _count(dU: np.ndarray, energy: np.ndarray) -> int:
    """How many different minima there are."""
    unit = dU / np.maximum(np.linalg.norm(dU, axis=1, keepdims=True), 1e-300)
    same = (np.abs(energy[:, None] - energy) < SAME_ENERGY) & ((unit @ unit.T) ** 2 > 1 - SAME_ANGLE)
    return int(np.sum(~np.any(np.tril(same, -1), axis=1)))


def _one_spectrum(key: Key, point: Any, *, P: int, size: int, starts: int) -> Values:
    """All minima of one sample, at falling widths."""
    law, widths = point
    sampling, cooling, starting = jax.random.split(key, 3)
    sample = draw_sample(sampling, law, P, size, 1)
    descent, best = Descent(sample), _anneal(cooling, sample, widths)
    found = [descent.look(descent.settle(descent.begin(one, starts), width), width)
             for one, width in zip(jax.random.split(starting, len(widths)), widths, strict=True)]  # fmt: skip
    values = {name: np.array([one[name] for one in found]) for name in KEPT}
    above = np.mean(values["energy"] > best["annealed_energy"][:, None] + SAME_ENERGY, axis=1)
    return values | best | {"minima": np.array([_count(one["dU"], one["energy"]) for one in found]), "above": above}


def _one_pursuit(key: Key, point: Any, *, P: int, size: int, starts: int) -> Values:
    """Minima of one sample followed in width, at falling widths."""
    law, (middle, widths) = point
    sampling, cooling, starting = jax.random.split(key, 3)
    descent = Descent(draw_sample(sampling, law, P, size, 1))
    first = descent.settle(descent.begin(starting, starts), middle)
    found = {float(middle): descent.look(first, middle) | {"jump": np.zeros(starts)}}
    for way in (widths[widths < middle], widths[widths > middle][::-1]):
        old, before = first, middle
        for width in way:
            new = descent.settle(old, width)
            # A trace of the old centres lets those that met above their splitting part again: that is no jump.
            back = descent.settle(new + UNDONE * old, before)
            a, b = ((one[:, 0] - one[:, 1]) / 2 for one in (back, old))
            overlap = np.sum(a * b, axis=1) ** 2 < (1 - UNDONE) * np.sum(a**2, axis=1) * np.sum(b**2, axis=1)
            found[float(width)] = descent.look(new, width) | {"jump": overlap.astype(float)}
            old, before = new, width
    values = {name: np.array([found[float(width)][name] for width in widths]) for name in (*KEPT, "jump")}
    return values | _anneal(cooling, descent.sample, widths)


def _listed(
    one: Any, law: Law, widths: np.ndarray, *points: Any, alpha: float, size: int, starts: int, runs: int, key: Key
) -> xr.Dataset:
    """Values of every run, width and start by name."""
    question = SCIENCE.ask(law, MaximumLikelihood(), {"width": widths}, through="width", falling=True)
    every = question.axes["width"]
    run = functools.partial(one, P=round(alpha * size), size=size, starts=starts)
    names = (*KEPT, "jump") if points else KEPT
    alone = [f"annealed_{name}" for name in KEPT] + ([] if points else ["minima", "above"])
    outputs = dict.fromkeys(names, (len(every), starts)) | dict.fromkeys(alone, (len(every),))
    point = (law, (*points, every) if points else every)
    done = ensemble(OnHost(run, outputs), key, [point], runs=runs, label="samples")
    values = {name: np.moveaxis(value, 1, 2) for name, value in done.values.items()}
    found = question.answer(values, axes={"run": np.arange(runs)}, dims=dict.fromkeys(names, ("start",)),
                            source="minima", alpha=alpha, size=size)  # fmt: skip
    return found.transpose("run", "width", ...)


@double
def spectrum(
    law: Law, *, width: Any, alpha: float, size: int, starts: int, key: Key, runs: int = 1
) -> xr.Dataset:  # fmt: skip
    """The minima that many random starts find on one sample, beside the annealed one.

    Args:
        law: the world.
        width: of the student, one or several.
        alpha: examples per dimension.
        size: the dimension $N$.
        starts: how many random starts at each width.
        key: a JAX key.
        runs: how many samples.

    Returns:
        `r`, `q`, `energy` (of an example) of every `start` and, as `annealed_r` and so on, of the annealed solution;
        `minima`, the number of different ones (energies within 1e-6 and squared cosines within 1e-4 of 1 are the
        same); `above`, the share of starts that ended more than 1e-6 above the annealed energy.

    Examples:
        >>> import jax
        >>> from quenched.mixtures import TwoGaussians
        >>> given = {"alpha": 1.0, "size": 20, "starts": 4, "key": jax.random.key(0)}
        >>> spectrum(TwoGaussians(2.0), width=[0.5, 2.5], **given).energy.dims
        ('run', 'width', 'start')
    """
    given = {"alpha": alpha, "size": size, "starts": starts, "runs": runs, "key": key}
    found = _listed(_one_spectrum, law, np.atleast_1d(width), **given)
    return found if np.ndim(width) else found.isel(width=0)


@double
def follow(
    law: Law, *, from_width: float, width: Any, alpha: float, size: int, starts: int, key: Key, runs: int = 1
) -> xr.Dataset:
    """Individual minima followed up and down in width, each step from where the last one ended.

    Args:
        law: the world.
        from_width: the width at which random starts find the minima.
        width: increasing widths on both sides of it, close to each other: steps of a few per cent.
        alpha: examples per dimension.
        size: the dimension $N$.
        starts: how many minima.
        key: a JAX key.
        runs: how many samples.

    Returns:
        `energy` (of an example), `r`, `q` over `run`, `width` (`from_width` among them) and `start`; those of the
        annealed solution, `annealed_energy` and so on; `jump` (0 or 1) where the step to this width, away from
        `from_width`, could not be undone: going back in width, the minimum that it came from was not found again, so it
        had disappeared.

    Examples:
        >>> import jax
        >>> from quenched.mixtures import TwoGaussians
        >>> path = follow(TwoGaussians(2.0), from_width=0.5, width=[0.4, 0.45, 0.55], alpha=1.0, size=20, starts=2,
        ...               key=jax.random.key(0))
        >>> path.width.values.tolist()
        [0.4, 0.45, 0.5, 0.55]
    """
    given = {"alpha": alpha, "size": size, "starts": starts, "runs": runs, "key": key}
    return _listed(_one_pursuit, law, np.union1d(width, from_width), float(from_width), **given)
