r"""The experiment: prototypes trained on examples drawn one by one, many times over.

Two simulators of the same finite-$N$ process, independent of each other and of the theory:

* `Direct` draws every example as a vector in $N$ dimensions and trains by the learner's own on-line step;
* `Chain` draws only what the overlaps need. The update moves prototypes inside the span of prototypes, centres and
  example, so the overlaps are themselves a Markov chain: the example's components along $M + K$ orthonormal axes
  are Gaussian, its squared length along the rest is $v\chi^2_{N-M-K}$. The law is exactly that of `Direct`, and a step
  costs the same at every $N$.

The error of a run is counted on fresh examples, not computed from a formula. Not covered: windows, batches.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.ensemble import Ensemble
from quenched.core.lengths import next_length, padded
from quenched.core.types import Array, InputError, Key, double
from quenched.prototypes.learner import update
from quenched.prototypes.model import (
    SCIENCE,
    Law,
    Numbers,
    Rule,
    Start,
    count,
    draw,
    draw_cluster,
    frame,
    numbers_of,
    rate_at,
    start_of,
)

Record = dict[str, Array]
"""`R`, `Q` and `error` of one run, each with a leading axis of times."""


class Steps(NamedTuple):
    """Stretches of training, each from one number of examples to another; surplus ones, of no length, at the end."""

    first: Array  # [times]
    last: Array  # [times]
    wanted: Array  # [times] whether its end is a time that was asked for


class Simulator(eqx.Module):
    """A way of running one training sequence in finite dimension."""

    shaped: ClassVar[bool]
    """Whether arrays have room for the dimensions of the system, so that programs differ between sizes."""

    @abc.abstractmethod
    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: int, all_move: bool
    ) -> Record:
        """Train, and report `R`, `Q` and `error` after each number of examples in `steps`.

        Arrays may have `room` for more dimensions than the `size` of the system.
        """


class Direct(Simulator):
    """Examples and prototypes as vectors in $N$ dimensions: the plain experiment, cost per example $O(KN)$."""

    shaped: ClassVar[bool] = True

    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: int, all_move: bool
    ) -> Record:
        """Train on drawn vectors."""
        K, M = n.g.shape
        basis = frame(n.gram)  # B_m in the first M axes
        centres = jnp.zeros((M, room)).at[:, :M].set(n.lam[:, None] * basis)
        inside = jnp.arange(room) < size  # the first numbers drawn are the same, however many there are
        training, testing = jax.random.split(key)

        def example(key: Key) -> tuple[Array, Array]:
            xi, k = draw(key, n, centres)
            return jnp.where(inside, xi, 0.0), k

        def learn(mu: Array, w: Array) -> Array:
            xi, k = example(jax.random.fold_in(training, mu))
            return update(w, xi, rate_at(n.rate, mu / size) / size * n.g[:, k], all_move=all_move)

        def is_wrong(t: Array, wrong: Array, w: Array, key: Key) -> Array:
            xi, k = example(jax.random.fold_in(key, t))
            winner = jnp.argmin(jnp.sum(jnp.square(xi - w), axis=1))
            return wrong + n.wrong[winner, k]

        def segment(w: Array, bounds: Steps) -> tuple[Array, dict[str, Array]]:
            w = jax.lax.fori_loop(bounds.first, bounds.last, learn, w)
            fresh = jax.random.fold_in(testing, bounds.last)
            count = jnp.where(bounds.wanted, tests, 0)
            wrong = jax.lax.fori_loop(0, count, lambda t, wrong: is_wrong(t, wrong, w, fresh), 0.0)
            return w, {"R": w[:, :M] @ basis.T, "Q": w @ w.T, "error": wrong / tests}

        r, rest = _split(begin, n.gram)
        w = jnp.zeros((K, room)).at[:, :M].set(r).at[:, M : M + K].set(rest)
        return jax.lax.scan(segment, w, steps)[1]


class Chain(Simulator):
    """The exact Markov chain of the overlaps at finite $N$: cost per example independent of $N$."""

    shaped: ClassVar[bool] = False

    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: int, all_move: bool
    ) -> Record:
        """Train by drawing projections."""
        K, M = n.g.shape
        basis = frame(n.gram)
        training, testing = jax.random.split(key)

        def projections(key: Key, r: Array, Q: Array) -> tuple[Array, Array, Array, Array]:
            """The cluster, the components along the centres' axes, those along the rest of the prototypes, and h."""
            which, noise = jax.random.split(key)
            k = draw_cluster(which, n)
            z = jnp.sqrt(n.v[k]) * jax.random.normal(noise, (M + K,))
            b, rest = n.lam[k] * basis[k] + z[:M], z[M:]
            return k, b, rest, r @ b + _cholesky(Q - r @ r.T) @ rest

        def learn(mu: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            r, Q = state
            gaussian, remainder = jax.random.split(jax.random.fold_in(training, mu))
            k, b, rest, h = projections(gaussian, r, Q)
            length = b @ b + rest @ rest + n.v[k] * jax.random.chisquare(remainder, size - M - K)
            G = rate_at(n.rate, mu / size) / size * n.g[:, k]
            if not all_move:
                G = G * (jnp.arange(K) == jnp.argmax(2 * h - jnp.diagonal(Q)))
            pull = G[:, None] * (h - Q)  # G_S (h_T - Q_ST)
            push = G[:, None] * G * (length - h[:, None] - h + Q)
            return r + G[:, None] * (b - r), Q + pull + pull.T + push

        def is_wrong(key: Key, r: Array, Q: Array) -> Array:
            k, _, _, h = projections(key, r, Q)
            return n.wrong[jnp.argmax(2 * h - jnp.diagonal(Q)), k]

        def count_errors(r: Array, Q: Array, key: Key) -> Array:
            return jnp.mean(jax.vmap(lambda key: is_wrong(key, r, Q))(jax.random.split(key, tests)))

        def segment(state: Any, bounds: Steps) -> tuple[Any, dict[str, Array]]:
            r, Q = jax.lax.fori_loop(bounds.first, bounds.last, learn, state)
            fresh = jax.random.fold_in(testing, bounds.last)
            error = jax.lax.cond(bounds.wanted, lambda: count_errors(r, Q, fresh), lambda: jnp.zeros(()))
            return (r, Q), {"R": r @ basis.T, "Q": Q, "error": error}

        r, rest = _split(begin, n.gram)
        return jax.lax.scan(segment, (r, r @ r.T + rest @ rest.T), steps)[1]


def _split(begin: tuple[Array, Array], gram: Array) -> tuple[Array, Array]:
    """Prototypes with given overlaps: components along the centres' axes `[K, M]` and along K further axes."""
    R, Q = begin
    r = R @ jnp.linalg.pinv(frame(gram))
    return r, frame(Q - r @ r.T)


def _cholesky(A: Array) -> Array:
    """Cholesky factor of a small matrix, written out: batches of tiny matrices are slow through LAPACK."""
    K = A.shape[0]
    L = [[jnp.zeros(()) for _ in range(K)] for _ in range(K)]
    for i in range(K):
        for j in range(i + 1):
            inner = A[i, j] - sum(L[i][m] * L[j][m] for m in range(j))
            pivot = jnp.where(L[j][j] > 0, L[j][j], 1.0)
            L[i][j] = jnp.sqrt(jnp.maximum(inner, 0.0)) if i == j else jnp.where(L[j][j] > 0, inner / pivot, 0.0)
    return jnp.stack([jnp.stack(row) for row in L])


def _one_run(
    key: Key, declared: tuple[Numbers, Any, Array, Array, Array], *, simulator: Simulator, tests: int, all_move: bool,
    room: int,
) -> Record:  # fmt: skip
    n, begin, last, count, dimension = declared
    last, size = last.astype(int), dimension.astype(int)
    first = jnp.concatenate([jnp.zeros(1, last.dtype), last[:-1]])
    steps = Steps(first, last, jnp.arange(last.shape[0]) < count)
    return simulator.run(key, n, begin, steps, size=size, room=room, tests=tests, all_move=all_move)


@double
def measure(
    law: Law,
    rule: Rule,
    *,
    alpha: Any,
    size: int,
    runs: int,
    key: Key,
    start: Start | None = None,
    simulator: Simulator | None = None,
    tests: int = 1000,
    batch: int | None = None,
    executor: Any = None,
    folder: Any = None,
    **sweep: Any,
) -> xr.Dataset:
    r"""The learning curve as an experiment.

    Args:
        law: the world.
        rule: the student.
        alpha: increasing times; a time is rounded to a whole number of examples, $\alpha N$.
        size: the dimension $N$, more than there are prototypes and clusters together.
        runs: how many independent training sequences.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        start: where the prototypes begin; `NearOrigin()` by default.
        simulator: `Direct()` (default) or `Chain()`.
        tests: fresh examples on which the error of each run is counted, at each time.
        batch: runs computed side by side; by default what fits in memory.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `R`, `Q`, `error`, each with `_stderr` and `_run`, and `runs`, `failed`, `outcome`.

    Examples:
        >>> import jax
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(prior=0.8), prototypes.LVQ1(rate=0.2)
        >>> points = prototypes.measure(law, rule, alpha=[1, 5], size=20, runs=20, key=jax.random.key(0))
    """
    size = checks.whole("size", size, least=1)
    question = SCIENCE.ask(law, rule, sweep, alpha=alpha, most=checks.MOST / size)
    K, M = count(law, rule)
    if size <= K + M:
        raise InputError(f"Argument `size` must exceed the number of vectors, {K} prototypes and {M} centres, "
                         f"but {size} was given.")  # fmt: skip
    tests = checks.whole("tests", tests, least=1)
    start, simulator = start_of(start), Direct() if simulator is None else simulator
    checks.kind("simulator", simulator, Simulator, "Direct() or Chain()")
    _check_start(law, rule, start)
    times = question.axes["alpha"]
    steps = padded(np.rint(times * size), next_length(len(times)))
    many = jax.tree.map(np.asarray, numbers_of(question.plan))
    every = [jax.tree.map(lambda leaf, i=i: leaf[i], many) for i in range(len(question.plan.laws))]
    points = [(point, start.overlaps(K, M), steps, float(len(times)), float(size)) for point in every]
    room = next_length(size, ratio=4, most=256) if simulator.shaped else 0
    run = functools.partial(_one_run, simulator=simulator, tests=tests, all_move=rule.all_move, room=room)

    def cut(done: Ensemble) -> Ensemble:
        values = {name: value[:, :, : len(times)] for name, value in done.values.items()}
        return dataclasses.replace(done, values=values)

    return question.measure(
        (run, jax.tree.map(np.asarray, points)), key=key, runs=runs, batch=batch, executor=executor, folder=folder,
        label="training", finish=cut, simulator=type(simulator).__name__, size=size, tests=tests, start=start,
    )  # fmt: skip


def _check_start(law: Law, rule: Rule, start: Start) -> None:
    """Check that vectors can have these overlaps."""
    mix = law.mixture()
    R, Q = (np.asarray(x) for x in start.overlaps(*count(law, rule)))
    gram = np.block([[np.asarray(mix.gram), R.T], [R, Q]])
    if np.linalg.eigvalsh(gram)[0] < -1e-9:
        raise InputError("Argument `start` must be overlaps that vectors can have, but their Gram matrix has a "
                         "negative eigenvalue.")  # fmt: skip
