r"""The experiment: prototypes trained on examples drawn one by one, many times over.

Two simulators of the same finite-$N$ process, independent of each other and of the theory:

* `Direct` draws every example as a vector in $N$ dimensions and trains by the learner's own on-line step;
* `Chain` draws only what the overlaps need. The update moves prototypes inside the span of prototypes, centres and
  example, so the overlaps are themselves a Markov chain: the example's components along $M + K$ orthonormal axes
  are Gaussian, its squared length along the rest is $v\chi^2_{N-M-K}$. The law is exactly that of `Direct`, and a step
  costs the same at every $N$.

With a drift the centres turn before each example; with weight decay the prototypes shrink before they learn. The error
of a run is counted on fresh examples, not computed from a formula. Rules that minimise an energy are in `batches`.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from quenched.core.types import Array, Key
from quenched.prototypes.learner.steps import pair, squared_distances, update
from quenched.prototypes.model import Numbers, draw, frame, place_centres, rate_at, turn

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
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: Array, all_move: Array
    ) -> Record:
        """Train, and report at the end of each of `steps`; arrays may have `room` for more than `size` dimensions."""


class Direct(Simulator):
    """Examples and prototypes as vectors in $N$ dimensions: the plain experiment, cost per example $O(KN)$."""

    shaped: ClassVar[bool] = True

    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: Array, all_move: Array
    ) -> Record:
        """Train on drawn vectors."""
        K, M = n.g.shape
        resting, basis = place_centres(n, room), frame(n.gram)
        inside = jnp.arange(room) < size  # the first numbers drawn are the same, however many there are
        training, testing = jax.random.split(key)

        def example(key: Key, axes: Array | None) -> tuple[Array, Array]:
            k, xi = draw(key, n, resting if axes is None else n.lam[:, None] * (basis @ axes))
            return k, jnp.where(inside, xi, 0.0)

        def learn(mu: Array, state: tuple[Array, Array | None]) -> tuple[Array, Array | None]:
            (w, axes), key = state, jax.random.fold_in(training, mu)
            if axes is not None:
                turning, key = jax.random.split(key)
                noise = jax.random.normal(turning, axes.shape)
                axes = turn(axes, jnp.where(inside, noise, 0.0), n.drift, size)
            k, xi = example(key, axes)
            w = w if n.decay is None else (1 - n.decay / size) * w
            gain = rate_at(n.rate, mu / size) / size * n.g[:, k]
            if n.window is not None:
                movers = pair(squared_distances(w, xi), n.wrong[:, k] == 0, n.window / size)
                return update(w, xi, jnp.where(movers, gain, 0.0), all_move=True), axes
            return jax.lax.cond(all_move, functools.partial(update, all_move=True), update, w, xi, gain), axes

        def segment(state: tuple[Array, Array | None], bounds: Steps) -> tuple[Any, Record]:
            w, axes = jax.lax.fori_loop(bounds.first, bounds.last, learn, state)

            def is_wrong(key: Key) -> Array:
                k, xi = example(key, axes)
                return n.wrong[jnp.argmin(jnp.sum(jnp.square(xi - w), axis=1)), k]

            error = _count_errors(is_wrong, jax.random.fold_in(testing, bounds.last), bounds.wanted, tests)
            R = w[:, :M] @ basis.T if axes is None else w @ (basis @ axes).T
            return (w, axes), {"R": R, "Q": w @ w.T, "error": error}

        r, rest = _split(begin, n.gram)
        w = jnp.zeros((K, room)).at[:, :M].set(r).at[:, M : M + K].set(rest)
        return jax.lax.scan(segment, (w, None if n.drift is None else jnp.eye(M, room)), steps)[1]


class Chain(Simulator):
    """The exact Markov chain of the overlaps at finite $N$: cost per example independent of $N$."""

    shaped: ClassVar[bool] = False

    def run(
        self, key: Key, n: Numbers, begin: Any, steps: Steps, *, size: Array, room: int, tests: Array, all_move: Array
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
            key = jax.random.fold_in(training, mu)
            if n.drift is not None:
                turning, key = jax.random.split(key)
                r = _turn(turning, r, Q, n.drift, size)
            gaussian, remainder = jax.random.split(key)
            if n.decay is not None:
                r, Q = (1 - n.decay / size) * r, (1 - n.decay / size) ** 2 * Q
            k, xi, h = project(gaussian, r, Q)
            length = xi[:M] @ xi[:M] + xi[M:] @ xi[M:] + n.v[k] * jax.random.chisquare(remainder, size - M - K)
            G = rate_at(n.rate, mu / size) / size * n.g[:, k]
            score = 2 * h - jnp.diagonal(Q)
            if n.window is None:
                G = G * (all_move | (jnp.arange(K) == jnp.argmax(score)))
            else:
                near, far = jnp.sqrt(length - jnp.max(score)), jnp.sqrt(length - jnp.min(score))
                G = G * ((size + n.window) * near >= (size - n.window) * far)
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


def _turn(key: Key, r: Array, Q: Array, drift: Array, size: Array) -> Array:
    r"""Components `[K, M]` of the prototypes along the axes of the centres, after these have turned by one step.

    The noise of the axes has components along the axes, along the K directions in which prototypes leave these, and
    along all others; of the last only the Gram matrix matters, which has Wishart's law (Bartlett's decomposition).
    """
    K, M = r.shape
    along, beside, below, lengths = jax.random.split(key, 4)
    A, C = jax.random.normal(along, (M, M)), jax.random.normal(beside, (M, K))
    others = jnp.tril(jax.random.normal(below, (M, M)), -1)
    others = others + jnp.diag(jnp.sqrt(jax.random.chisquare(lengths, size - M - K - jnp.arange(M))))
    step = jnp.sqrt(2.0 * drift) / size
    gram = jnp.eye(M) + step * (A + A.T) + step**2 * (A @ A.T + C @ C.T + others @ others.T)
    moved = r + step * (r @ A.T + _cholesky(Q - r @ r.T) @ C.T)
    return 1.5 * moved - 0.5 * moved @ gram


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
