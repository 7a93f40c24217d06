r"""The EM iterations of the paper, one centre for each of many worlds on the same noise (pure JAX).

Rows are signed examples $x = S \xi$; the centre is $c = J/\sqrt N$. With $h = \tilde\gamma\, x \cdot c -
\tilde\gamma (|c|^2 + v)/2 - \eta$ both students do the same,

$$p_\mu = \text{weight}(h_\mu), \qquad a = 1 + \frac{\tilde\gamma}{N} \sum_\mu p_\mu, \qquad
c \leftarrow \frac{\tilde\gamma}{N a} \sum_\mu p_\mu x^\mu$$

the soft one with $p = 1/(1 + e^{-h})$ and $v = 0$, the hard one with $p = \Theta(h)$ and $v = 1/a$, the variance of
each component of $J$ [dietrich1998, eqs. (24), (25), (27) to (29)]; all weights 1 is the Hebb rule, eq. (26).

World $k$ has the rows $g^\mu + V^\mu_k e_1$ with common $g$, so one pass over $g$ serves all of them. On a CPU a pass
is two matrix products. On an accelerator they would wait for the memory twice: there a kernel reads the data once, a
tile of rows giving its fields, weights and weighted sum before the next one is read. It serves a few worlds, whose sums
must fit into registers; for more it is two products again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.core.types import Array, Outcome, Real, require_double

WORLDS, SUMS, REGISTERS, PROGRAMS, WARPS = 4, 2**12, 2**13, 2112, 2
"""Of the kernel: most worlds, most components of all, bytes of a tile of rows, pieces of the rows, warps of each."""
LONGEST = 2**31
"""Numbers that the kernel can count."""
NEAR = 0.03
"""Residual, as a share of the centre, below which steps are stretched: so near, the basin is decided."""
ROUNDING = 1e-13
"""Energies over N that are closer than this are equal."""


class Rows(NamedTuple):
    """Signed rows of K worlds: row mu of world k is `common[mu]`, with `shift[k, mu]` added to its first component."""

    common: Array  # [P, N]
    shift: Array  # [K, P]


class Belief(NamedTuple):
    """What the student of each world takes for known."""

    gamma: Array  # []
    eta: Array  # [K]


class Moments(NamedTuple):
    """Sums over all rows."""

    weight: Array  # [K] of p
    vector: Array  # [K, N] of p x
    log: Array  # [K] of ln(1 + e^h); hard: of max(h, 0)


class Found(NamedTuple):
    """Where the iteration of each world ended."""

    c: Array  # [K, N]
    variance: Array  # [K] v; 0 in soft selection
    energy: Array  # [K] over N
    selected: Array  # [K] the mean weight
    residual: Array  # [K] |F(c) - c|
    steps: Array  # [K]
    outcome: Array  # [K] an `Outcome` code


def _weigh(h: Array, hard: bool) -> tuple[Array, Array]:
    """Weight and log partition function of the two answers "informative" and "outlier"."""
    if hard:
        return (h > 0).astype(h.dtype), jnp.maximum(h, 0)
    e = jnp.exp(-jnp.abs(h))
    return jnp.where(h > 0, 1.0, e).astype(h.dtype) / (1 + e), jnp.maximum(h, 0) + jnp.log1p(e)


def moments(rows: Rows, belief: Belief, c: Array, variance: Array, *, hard: bool = False) -> Moments:
    """One pass over the data (pure JAX)."""
    gamma = belief.gamma.astype(c.dtype)
    offset = gamma * (jnp.sum(c * c, axis=1) + variance) / 2 + belief.eta.astype(c.dtype)
    few = c.shape[0] <= WORLDS and c.size <= SUMS  # with more, arithmetic counts and products are faster
    once = few and jax.default_backend() == "gpu" and rows.common.size < LONGEST
    weight, vector, log, shifted = (stream if once else two_products)(rows, gamma * c, offset, hard=hard)
    return Moments(weight, vector.at[:, 0].add(shifted), log)


def two_products(rows: Rows, gc: Array, offset: Array, *, hard: bool = False) -> tuple[Array, Array, Array, Array]:
    """The sums of p, p g, ln(1 + e^h) and p V over all rows; `gc` is $\\tilde\\gamma c$."""
    g, V = rows
    p, log = _weigh(gc @ g.T + gc[:, :1] * V - offset[:, None], hard)
    return jnp.sum(p, axis=1), p @ g, jnp.sum(log, axis=1), jnp.sum(p * V, axis=1)


def stream(
    rows: Rows,
    gc: Array,
    offset: Array,
    *,
    hard: bool = False,
    tile: int | None = None,
    programs: int = PROGRAMS,
    warps: int = WARPS,
    interpret: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """The same sums by one kernel of an accelerator: each program keeps its sums in registers and reads its rows once.

    Args:
        rows: the data.
        gc: gamma times the centres `[K, N]`.
        offset: what is subtracted from each field `[K]`.
        hard: whether weights are 0 or 1.
        tile: rows in registers at a time, a power of 2.
        programs: how many pieces the rows are cut into.
        warps: warps of each program.
        interpret: whether to run on a CPU, slowly, for a test.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    (P, N), K = rows.common.shape, gc.shape[0]
    wide = 1 << (N - 1).bit_length()
    tile = tile or max(1, min(64, REGISTERS // (wide * gc.dtype.itemsize)))
    each = -(-P // (programs * tile)) * tile  # rows of a program
    programs = -(-P // each)
    V = jnp.pad(rows.shift.astype(gc.dtype), ((0, 0), (0, programs * each - P)))
    kernel = functools.partial(_kernel, P=P, N=N, K=K, tile=tile, each=each, hard=hard)
    sums, vector = pl.pallas_call(
        kernel,
        grid=(programs,),
        in_specs=[
            pl.BlockSpec((each, wide), lambda i: (i, 0)),
            pl.BlockSpec((K, each), lambda i: (0, i)),
            pl.BlockSpec((K, wide), lambda i: (0, 0)),
            pl.BlockSpec((K,), lambda i: (0,)),
        ],
        out_specs=[
            pl.BlockSpec((None, 3, K), lambda i: (i, 0, 0)),
            pl.BlockSpec((None, K, wide), lambda i: (i, 0, 0)),
        ],
        out_shape=[
            jax.ShapeDtypeStruct((programs, 3, K), gc.dtype),
            jax.ShapeDtypeStruct((programs, K, wide), gc.dtype),
        ],
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
    )(rows.common, V, jnp.pad(gc, ((0, 0), (0, wide - N))), offset)
    weight, log, shifted = jnp.sum(sums, axis=0)
    return weight, jnp.sum(vector, axis=0)[:, :N], log, shifted


def _kernel(
    g_ref: Any, V_ref: Any, gc_ref: Any, offset_ref: Any, sums_ref: Any, vector_ref: Any,
    *, P: int, N: int, K: int, tile: int, each: int, hard: bool,
) -> None:  # fmt: skip
    """The rows of one program; vectors are sums of products, worlds are unrolled."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    wide, dtype = gc_ref.shape[1], gc_ref.dtype
    first = pl.program_id(0) * each
    inside = jnp.arange(wide) < N
    gc = [gc_ref[k, :] for k in range(K)]

    def add(i: Array, sums: list[Any]) -> list[Any]:
        here = pl.ds(i * tile, tile)
        real = first + i * tile + jnp.arange(tile) < P
        g = triton.load(g_ref.at[here, :], mask=real[:, None] & inside[None, :], other=0.0)
        after = []
        for k, (weight, log, shifted, vector) in enumerate(sums):
            V = V_ref[k, here]
            h = jnp.sum(g * gc[k][None, :], axis=1) + gc_ref[k, 0] * V - offset_ref[k]
            p, l = (jnp.where(real, x, 0).astype(dtype) for x in _weigh(h, hard))
            after.append((weight + p, log + l, shifted + p * V, vector + jnp.sum(g * p[:, None], axis=0)))
        return after

    nothing = [(*(jnp.zeros(tile, dtype) for _ in range(3)), jnp.zeros(wide, dtype)) for _ in range(K)]
    for k, (*scalars, vector) in enumerate(jax.lax.fori_loop(0, each // tile, add, nothing)):
        vector_ref[k, :] = vector
        for j, scalar in enumerate(scalars):
            sums_ref[j, k] = jnp.sum(scalar)


def _image(belief: Belief, size: int, sums: Moments) -> tuple[Array, Array]:
    """The next centre, and a. [dietrich1998, eqs. (25), (28)]"""
    a = 1 + belief.gamma * sums.weight / size
    return belief.gamma * sums.vector / (size * a[:, None]), a


def evaluate(rows: Rows, belief: Belief, c: Array, variance: Array, hard: bool) -> tuple[Array, Array, Array, Array]:
    """The image of a centre, its variance, the energy over N and the mean weight, all from one pass (pure JAX).

    Soft: the energy of the centre itself. Hard: that of its selection, whose mean the image is.
    """
    P, N = rows.common.shape
    sums = moments(rows, belief, c, variance, hard=hard)
    F, a = _image(belief, N, sums)
    if hard:
        energy = -a * jnp.sum(F * F, axis=1) / 2 + jnp.log(a) / 2 + belief.eta * sums.weight / N
        return F, 1 / a, energy, sums.weight / P
    return F, variance, jnp.sum(c * c, axis=1) / 2 - sums.log / N, sums.weight / P


@functools.partial(jax.jit, static_argnames=("hard",))
def step(rows: Rows, belief: Belief, c: Array, variance: Array, *, hard: bool = False) -> tuple[Array, Array]:
    """One EM step: the next centres `[K, N]` and their variances `[K]` (pure JAX)."""
    require_double("step")
    return evaluate(rows, belief, c, variance, hard)[:2]


@jax.jit
def energy(rows: Rows, belief: Belief, c: Array) -> Array:
    r"""$\mathcal H/N = |c|^2/2 - N^{-1} \sum_\mu \ln(1 + e^{h_\mu})$ of soft selection `[K]` (pure JAX)."""
    require_double("energy")
    return evaluate(rows, belief, c, jnp.zeros(c.shape[0]), False)[2]


@jax.jit
def hebb(rows: Rows, belief: Belief) -> Found:
    """The Hebb rule: all weights are 1, and the energy is what that of soft selection tends to as eta falls."""
    require_double("hebb")
    (P, N), K = rows.common.shape, rows.shift.shape[0]
    total = jnp.broadcast_to(jnp.sum(rows.common, axis=0), (K, N)).at[:, 0].add(jnp.sum(rows.shift, axis=1))
    ones = jnp.ones(K)
    c, a = _image(belief, N, Moments(P * ones, total, ones))  # [dietrich1998, eq. (26)]
    least = belief.eta * P / N - a * jnp.sum(c * c, axis=1) / 2
    return Found(c, 0 * ones, least, ones, 0 * ones, ones.astype(int), jnp.full(K, Outcome.converged.value))


class _Now(NamedTuple):
    """The trial centre of each world, and the last accepted one with what was found there."""

    c: Array
    variance: Array
    before: Array
    g: Array  # F - c at the accepted one
    energy: Array
    selected: Array
    plain: Array  # whether the trial is an EM step, which needs no test
    steps: Array
    done: Array


@functools.partial(jax.jit, static_argnames=("hard", "accelerate"))
def relax(
    rows: Rows,
    belief: Belief,
    start: Array,
    *,
    hard: bool = False,
    accelerate: bool = True,
    accuracy: Real = 1e-7,
    max_steps: int | Array = 10_000,
) -> Found:
    r"""EM from a centre for each world until $|F(c) - c|$ is below the accuracy (pure JAX).

    A start has no variance. In soft selection, once $|F - c| < 0.03\,|c|$, the step $F - c$ is stretched by Barzilai
    and Borwein's factor, and taken back for a plain one where the energy would rise: it never does.

    Args:
        rows: the data.
        belief: gamma, and eta of each world.
        start: centres `[K, N]`.
        hard: whether to select or to weigh.
        accelerate: False is the plain iteration.
        accuracy: see above.
        max_steps: at most, for each world; beyond them its outcome is `stalled`.
    """
    require_double("relax")
    K = start.shape[0]
    zero, no = jnp.zeros(K), jnp.zeros(K, bool)
    now = _Now(start, zero, start, jnp.full_like(start, jnp.inf), zero + jnp.inf, zero, ~no, zero.astype(int), no)
    stretch = accelerate and not hard
    advance = functools.partial(_advance, hard=hard, stretch=stretch, accuracy=accuracy, max_steps=max_steps)
    now = _iterate(advance, rows, belief, now, few=K // 8)
    residual = jnp.linalg.norm(now.g, axis=1)
    stopped = jnp.where(jnp.isfinite(residual), Outcome.stalled.value, Outcome.failed.value)
    outcome = jnp.where(residual <= accuracy, Outcome.converged.value, stopped)
    return Found(now.before, now.variance, now.energy, now.selected, residual, now.steps, outcome)


def _iterate(advance: Callable[..., _Now], rows: Rows, belief: Belief, now: _Now, few: int) -> _Now:
    """All worlds together; the last few go on alone, so that the others do not wait for the slowest."""
    step = functools.partial(advance, rows, belief)
    now = jax.lax.while_loop(lambda now: jnp.sum(~now.done) > few, step, now)
    if not few:
        return now
    rest = jnp.argsort(now.done)[:few]  # those that are not done are first
    fewer = Rows(rows.common, rows.shift[rest]), Belief(belief.gamma, belief.eta[rest])
    left = _iterate(advance, *fewer, jax.tree.map(lambda x: x[rest], now), 0)
    return jax.tree.map(lambda x, y: x.at[rest].set(y), now, left)


def _advance(
    rows: Rows, belief: Belief, now: _Now, *, hard: bool, stretch: bool, accuracy: Real, max_steps: int | Array
) -> _Now:
    """One pass: accept the trial or take it back, and make the next one."""
    F, variance, energy, selected = evaluate(rows, belief, now.c, now.variance, hard)
    g = F - now.c
    residual = jnp.linalg.norm(g, axis=1)
    rises = ~now.plain & (energy > now.energy + ROUNDING)
    near = stretch & (residual < NEAR * jnp.linalg.norm(now.c, axis=1))
    factor = jnp.where(near, _stretch(now, g), 1.0)
    done = (residual <= accuracy) | (now.steps + 1 >= max_steps) | ~jnp.isfinite(residual)
    onward = now.c + factor[:, None] * g
    accepted = _Now(onward, variance, now.c, g, energy, selected, factor == 1, now.steps + 1, done)
    rejected = now._replace(c=now.before + now.g, plain=jnp.ones_like(now.plain), steps=now.steps + 1)
    return _choose(now.done, now, _choose(rises, rejected, accepted))


def _choose(first: Array, one: _Now, other: _Now) -> _Now:
    return jax.tree.map(lambda x, y: jnp.where(first[:, None] if x.ndim == 2 else first, x, y), one, other)


def _stretch(now: _Now, g: Array) -> Array:
    """Barzilai and Borwein's factor from the last accepted step, at least that of the plain map."""
    s, y = now.c - now.before, now.g - g
    curvature, scale = jnp.sum(s * y, axis=1), jnp.sum(y * y, axis=1)
    good = (curvature > 0) & jnp.isfinite(scale)
    return jnp.where(good, jnp.maximum(curvature / jnp.where(scale > 0, scale, 1.0), 1.0), 1.0)


@jax.jit
def descend(
    rows: Rows, belief: Belief, c: Array, variance: Array, *, max_flips: int | Array = 100_000
) -> tuple[Found, Array]:
    r"""From the selection of a centre, flip one $V^\mu$ at a time, the best one, until none lowers $\mathcal H_h$.

    With $B = \sum_\mu V^\mu x^\mu$ and $n = \sum_\mu V^\mu$, $\mathcal H_h = -\tilde\gamma^2 |B|^2/2Na + (N/2) \ln a +
    \eta n$, and a flip with $s = 1 - 2V^\mu$ changes $|B|^2$ by $2 s B \cdot x^\mu + |x^\mu|^2$ and $n$ by $s$: one
    product of the data with $B$ gives the change of every flip. [dietrich1998, eq. (10)] (pure JAX)

    Returns:
        Where it ended, and the selections `[K, P]`.
    """
    require_double("descend")
    g, shift = rows
    (P, N), K = g.shape, shift.shape[0]
    gamma, eta, worlds = belief.gamma, belief.eta, jnp.arange(K)
    squares = jnp.sum(g * g, axis=1) + shift * (2 * g[:, 0] + shift)

    def fields(B: Array) -> Array:
        return B @ g.T + B[:, :1] * shift

    def energy(length: Array, n: Array, eta: Array) -> Array:
        a = 1 + gamma * n / N
        return -(gamma**2) * length / (2 * N**2 * a) + jnp.log(a) / 2 + eta * n / N

    def flip(state: tuple[Array, ...]) -> tuple[Array, ...]:
        V, B, _, flips, done = state
        n, length, s = jnp.sum(V, axis=1), jnp.sum(B * B, axis=1), 1 - 2 * V
        after = energy(length[:, None] + 2 * s * fields(B) + squares, n[:, None] + s, eta[:, None])
        now, best = energy(length, n, eta), jnp.argmin(after, axis=1)
        done = after[worlds, best] >= now - ROUNDING
        sign = jnp.where(done, 0.0, s[worlds, best])
        x = g[best].at[:, 0].add(shift[worlds, best])
        return V.at[worlds, best].add(sign), B + sign[:, None] * x, now, flips + ~done, done

    h = gamma * fields(c) - (gamma * (jnp.sum(c * c, axis=1) + variance) / 2 + eta)[:, None]
    V, _ = _weigh(h, True)
    B = (V @ g).at[:, 0].add(jnp.sum(V * shift, axis=1))
    begin = (V, B, jnp.zeros(K), jnp.zeros(K, int), jnp.zeros(K, bool))
    V, B, least, flips, done = jax.lax.while_loop(
        lambda state: ~jnp.all(state[4] | (state[3] >= max_flips)), flip, begin
    )
    n = jnp.sum(V, axis=1)
    c, a = _image(belief, N, Moments(n, B, n))
    outcome = jnp.where(done, Outcome.converged.value, Outcome.stalled.value)
    return Found(c, 1 / a, least, n / P, jnp.zeros(K), flips, outcome), V
