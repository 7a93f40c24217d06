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
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from quenched.core.types import Array, Key
from quenched.prototypes.learner.steps import update
from quenched.prototypes.model import Numbers, draw, frame, place_centres, rate_at

Record = dict[str, Array]
"""`R`, `Q` and `error` of one run, each with a leading axis of times."""


class Steps(NamedTuple):
    """Stretches of training, each from one number of examples to another; surplus ones, of no length, at the end."""

    first: Any  # [times]
    last: Any  # [times]
    wanted: Any  # [times] whether its end is a time that was asked for


class Simulator(eqx.Module):
    """A way of running one training sequence in finite dimension."""

    shaped: ClassVar[bool]
    """Whether arrays have room for the dimensions of the system, so that programs differ between sizes."""

    @abc.abstractmethod
    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: Array, all_move: bool
    ) -> Record:
        """Train, and report at the end of each of `steps`; arrays may have `room` for more than `size` dimensions."""


class Direct(Simulator):
    """Examples and prototypes as vectors in $N$ dimensions: the plain experiment, cost per example $O(KN)$."""

    shaped: ClassVar[bool] = True

    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: Array, all_move: bool
    ) -> Record:
        """Train on drawn vectors."""
        K, M = n.g.shape
        centres, basis = place_centres(n, room), frame(n.gram)
        inside = jnp.arange(room) < size  # the first numbers drawn are the same, however many there are
        training, testing = jax.random.split(key)

        def example(key: Key) -> tuple[Array, Array]:
            k, xi = draw(key, n, centres)
            return k, jnp.where(inside, xi, 0.0)

        def learn(mu: Array, w: Array) -> Array:
            k, xi = example(jax.random.fold_in(training, mu))
            return update(w, xi, rate_at(n.rate, mu / size) / size * n.g[:, k], all_move=all_move)

        def segment(w: Array, bounds: Steps) -> tuple[Array, Record]:
            w = jax.lax.fori_loop(bounds.first, bounds.last, learn, w)

            def is_wrong(key: Key) -> Array:
                k, xi = example(key)
                return n.wrong[jnp.argmin(jnp.sum(jnp.square(xi - w), axis=1)), k]

            error = _count_errors(is_wrong, jax.random.fold_in(testing, bounds.last), bounds.wanted, tests)
            return w, {"R": w[:, :M] @ basis.T, "Q": w @ w.T, "error": error}

        r, rest = _split(begin, n.gram)
        w = jnp.zeros((K, room)).at[:, :M].set(r).at[:, M : M + K].set(rest)
        return jax.lax.scan(segment, w, steps)[1]


class Chain(Simulator):
    """The exact Markov chain of the overlaps at finite $N$: cost per example independent of $N$."""

    shaped: ClassVar[bool] = False

    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: Array, all_move: bool
    ) -> Record:
        """Train by drawing projections."""
        K, M = n.g.shape
        centres, basis = place_centres(n, M + K), frame(n.gram)
        training, testing = jax.random.split(key)

        def project(key: Key, r: Array, Q: Array) -> tuple[Array, Array, Array]:
            """The cluster, the components along the axes of centres and prototypes, and h."""
            k, xi = draw(key, n, centres)
            return k, xi, r @ xi[:M] + _cholesky(Q - r @ r.T) @ xi[M:]

        def learn(mu: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            r, Q = state
            gaussian, remainder = jax.random.split(jax.random.fold_in(training, mu))
            k, xi, h = project(gaussian, r, Q)
            length = xi[:M] @ xi[:M] + xi[M:] @ xi[M:] + n.v[k] * jax.random.chisquare(remainder, size - M - K)
            G = rate_at(n.rate, mu / size) / size * n.g[:, k]
            if not all_move:
                G = G * (jnp.arange(K) == jnp.argmax(2 * h - jnp.diagonal(Q)))
            pull = G[:, None] * (h - Q)  # G_S (h_T - Q_ST)
            push = G[:, None] * G * (length - h[:, None] - h + Q)
            return r + G[:, None] * (xi[:M] - r), Q + pull + pull.T + push

        def segment(state: Any, bounds: Steps) -> tuple[Any, Record]:
            r, Q = jax.lax.fori_loop(bounds.first, bounds.last, learn, state)

            def is_wrong(key: Key) -> Array:
                k, _, h = project(key, r, Q)
                return n.wrong[jnp.argmax(2 * h - jnp.diagonal(Q)), k]

            error = _count_errors(is_wrong, jax.random.fold_in(testing, bounds.last), bounds.wanted, tests)
            return (r, Q), {"R": r @ basis.T, "Q": Q, "error": error}

        r, rest = _split(begin, n.gram)
        return jax.lax.scan(segment, (r, r @ r.T + rest @ rest.T), steps)[1]


def _count_errors(is_wrong: Callable[[Key], Array], key: Key, wanted: Array, tests: Array) -> Array:
    """The share of errors on fresh examples, if it is wanted."""
    count = jnp.where(wanted, tests, 0)
    return jax.lax.fori_loop(0, count, lambda t, sum: sum + is_wrong(jax.random.fold_in(key, t)), 0.0) / tests


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
