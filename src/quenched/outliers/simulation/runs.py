"""One sample at several eta, and what a student makes of it; pure JAX functions for `ensemble`."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import controls
from quenched.core.types import Array, InputError, Key, Outcome
from quenched.outliers.learner import em
from quenched.outliers.model import (
    CarriedStart,
    Contaminated,
    Gibbs,
    HardSelection,
    Hebb,
    RandomStart,
    Rule,
    Start,
    TeacherStart,
    check_pair,
    draw,
    gamma_of,
)
from quenched.outliers.simulation import gibbs


def world(key: Key, law: Contaminated, etas: Array, P: int, size: int) -> em.Rows:
    """What `law.sample` would give with this key at each eta: common noise, and which rows are informative."""

    def at(eta: Array) -> tuple[Array, Array]:
        X, _, V = draw(dataclasses.replace(law, eta=eta), key, P, size)
        return X, V.astype(float)

    X, V = at(etas[0])
    return em.Rows(X.at[:, 0].add(-V), jax.vmap(lambda eta: at(eta)[1])(etas))


def begin(key: Key, start: Start, shape: tuple[int, int]) -> Array:
    """Centres `[K, N]` at the start, the same in every world."""
    if isinstance(start, CarriedStart):
        return begin(key, start.first, shape)
    if isinstance(start, TeacherStart):
        return jnp.zeros(shape).at[:, 0].set(jnp.asarray(start.scale, float))
    assert isinstance(start, RandomStart)
    v = jax.random.normal(key, shape[1:])
    return jnp.broadcast_to(jnp.asarray(start.scale) * v / jnp.linalg.norm(v), shape)


def solve(key: Key, rows: em.Rows, belief: em.Belief, rule: Rule, c: Array, descend: bool) -> em.Found:
    """What the student finds in each world from its own start `[K, N]`."""
    if isinstance(rule, Hebb):
        return em.hebb(rows, belief)
    if isinstance(rule, Gibbs):
        return gibbs.draw(key, rows, belief, c, rule.temperature)
    found = em.relax(rows, belief, c, hard=isinstance(rule, HardSelection))
    if isinstance(rule, HardSelection) and descend:
        lower, _ = em.descend(rows, belief, found.c, found.variance)
        return lower._replace(outcome=jnp.maximum(lower.outcome, found.outcome))
    return found


def carry(key: Key, rows: em.Rows, belief: em.Belief, rule: Rule, c: Array, descend: bool) -> em.Found:
    """The same, each world from where the one before ended; the first one from its start."""

    def move(c: Array, one: tuple[Key, Array, Array]) -> tuple[Array, em.Found]:
        key, shift, eta = one
        alone = em.Rows(rows.common, shift[None]), em.Belief(belief.gamma, eta[None])
        found = solve(key, *alone, rule, c, descend)
        return found.c, found

    keys = jax.random.split(key, c.shape[0])
    _, path = jax.lax.scan(move, c[:1], (keys, rows.shift, belief.eta))
    return jax.tree.map(lambda leaf: leaf[:, 0], path)


def observe(found: em.Found) -> dict[str, Array]:
    """Order parameters `[K]`. [dietrich1998, eqs. (13), (14), erratum E8]"""
    R, Q = found.c[:, 0], jnp.sum(found.c**2, axis=1)
    alive = Q > 0
    cosine = jnp.where(alive, R / jnp.sqrt(jnp.where(alive, Q, 1.0)), 0.0)
    Phi = jnp.arccos(jnp.clip(cosine, -1.0, 1.0)) / jnp.pi
    return {"R": R, "Q": Q, "Delta": Q - 2 * R + 1, "Phi": Phi, "free_energy": found.energy, "selected": found.selected}


def one_run(key: Key, point: Any, *, P: int, size: int, descend: bool) -> dict[str, Array]:
    """Order parameters at rising eta on one sample; a pure function for `ensemble`."""

    # Side by side (vmap) every run would wait for the slowest: one after the other is cheaper.
    @jax.custom_batching.sequential_vmap
    def run(key: Key, point: Any) -> dict[str, Array]:
        law, rule, start, etas = point
        sampling, starting, drawing = jax.random.split(key, 3)
        rows = world(sampling, law, etas, P, size)
        belief = em.Belief(jnp.asarray(gamma_of(law, rule), float), etas)
        c = begin(starting, start, (etas.shape[0], size))
        way = carry if isinstance(start, CarriedStart) else solve
        found = way(drawing, rows, belief, rule, c, descend)
        return observe(found) | {"stalled": (found.outcome != Outcome.converged.value).astype(float)}

    return run(key, point)


class Asked(NamedTuple):
    """A checked question."""

    etas: np.ndarray  # rising
    order: np.ndarray  # their places as given
    plan: controls.Plan  # of all other controls
    points: list[Any]


def ask(law: Any, rule: Any, start: Any, sweep: dict[str, Any]) -> Asked:
    """Every run goes through all eta, so they are no points of the sweep."""
    check_pair(law, rule)
    if start is None:
        start = TeacherStart() if isinstance(rule, HardSelection) else RandomStart()
    if not isinstance(start, Start):
        raise InputError(f"Argument `start` must be RandomStart(), TeacherStart() or CarriedStart(), but {start!r} was "
                         "given.")  # fmt: skip
    every = controls.expand(law, rule, {"eta": sweep.pop("eta", law.eta)})
    given = np.array([float(one.eta) for one in every.laws])
    plan = controls.expand(every.laws[0], rule, sweep)
    order = np.argsort(given, kind="stable")
    points = [(*pair, start, given[order]) for pair in zip(plan.laws, plan.rules, strict=True)]
    return Asked(given[order], np.argsort(order), plan, points)
