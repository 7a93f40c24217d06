"""One EM pass of outliers against the memory of the device, which it should read once.

Run `PYTHONPATH=src python -m benchmarks.outliers [gigabytes]` on a machine that has JAX and little else: the data and the
copy they are compared with are single precision. Every line is a whole EM step, carried on from the last one.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp


def _load() -> Any:
    """The iteration alone: the package around it needs more than JAX."""
    path = Path(__file__).resolve().parents[1] / "src" / "quenched" / "outliers" / "learner" / "em.py"
    spec = importlib.util.spec_from_file_location("em", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["em"] = module
    spec.loader.exec_module(module)
    return module


em = _load()
PASSES = 10
CANDIDATES = (
    (8, 2, 2112, False), (8, 4, 2112, False), (16, 4, 2112, False), (4, 1, 4224, False),
    (8, 2, 2112, True), (8, 4, 2112, True), (16, 4, 2112, True),
)  # fmt: skip
"""Kilobytes of a tile, warps and programs of the kernel, and whether a tile is asked for ahead."""
GPU = jax.default_backend() == "gpu"


def wall(work: Callable[[], Any], times: int = 3) -> float:
    """Wall seconds of the fastest of some calls, after one that compiles."""
    seconds = []
    for _ in range(times + 1):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:])


def copying(size: int) -> float:
    """Bytes read and written in a second by a copy."""
    long = jax.random.normal(jax.random.key(0), (size // 8,), jnp.float32)  # in and out together fill the size
    copy = jax.jit(lambda a: jax.lax.fori_loop(0, PASSES, lambda i, a: a + 1, a))
    return 2 * PASSES * long.nbytes / wall(lambda: copy(long))


def tiles(rows: Any, gc: Any, offset: Any, *, rows_of_tile: int) -> Any:
    """Two products for each tile of rows, which is small enough for the cache that all processors share."""
    (P, N), K, T = rows.common.shape, gc.shape[0], rows_of_tile
    whole = P // T * T
    each = em.Rows(rows.common[:whole].reshape(-1, T, N), rows.shift[:, :whole].reshape(K, -1, T).swapaxes(0, 1))
    last = em.two_products(em.Rows(rows.common[whole:], rows.shift[:, whole:]), gc, offset)
    add = lambda sums, tile: (jax.tree.map(jnp.add, sums, em.two_products(tile, gc, offset)), None)  # noqa: E731
    return jax.lax.scan(add, last, each)[0]


def together(rows: Any, gc: Any, offset: Any, *, tile: int, programs: int, warps: int, interpret: bool = False) -> Any:
    """The kernel with all worlds in one array, so that there is one reduction for all of them."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    (P, N), K = rows.common.shape, gc.shape[0]
    wide = 1 << (N - 1).bit_length()
    each = -(-P // (programs * tile)) * tile
    programs = -(-P // each)
    V = jnp.pad(rows.shift.astype(gc.dtype), ((0, 0), (0, programs * each - P)))

    def kernel(g_ref: Any, V_ref: Any, gc_ref: Any, offset_ref: Any, sums_ref: Any, vector_ref: Any) -> None:
        first, inside = pl.program_id(0) * each, jnp.arange(wide) < N
        gc, offset = gc_ref[:, :], offset_ref[:]
        head = gc_ref[:, 0]

        def add(i: Any, state: Any) -> Any:
            weight, log, shifted, vector = state
            real = first + i * tile + jnp.arange(tile) < P
            g = triton.load(g_ref.at[pl.ds(i * tile, tile), :], mask=real[:, None] & inside[None, :], other=0.0)[None]
            V = V_ref[:, pl.ds(i * tile, tile)]
            h = jnp.sum(g * gc[:, None, :], axis=2) + head[:, None] * V - offset[:, None]
            p, l = (jnp.where(real[None, :], x, 0) for x in em._weigh(h, False))
            return weight + p, log + l, shifted + p * V, vector + jnp.sum(g * p[:, :, None], axis=1)

        nothing = (*(jnp.zeros((K, tile), gc.dtype) for _ in range(3)), jnp.zeros((K, wide), gc.dtype))
        *scalars, vector = jax.lax.fori_loop(0, each // tile, add, nothing)
        vector_ref[:, :] = vector
        for j, scalar in enumerate(scalars):
            sums_ref[j, :] = jnp.sum(scalar, axis=1)

    whole = [
        pl.BlockSpec((each, wide), lambda i: (i, 0)),
        pl.BlockSpec((K, each), lambda i: (0, i)),
        pl.BlockSpec((K, wide), lambda i: (0, 0)),
        pl.BlockSpec((K,), lambda i: (0,)),
    ]
    sums, vector = pl.pallas_call(
        kernel, grid=(programs,), in_specs=whole, interpret=interpret,
        out_specs=[pl.BlockSpec((None, 3, K), lambda i: (i, 0, 0)), pl.BlockSpec((None, K, wide), lambda i: (i, 0, 0))],
        out_shape=[jax.ShapeDtypeStruct((programs, 3, K), gc.dtype), jax.ShapeDtypeStruct((programs, K, wide), gc.dtype)],
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
    )(rows.common, V, jnp.pad(gc, ((0, 0), (0, wide - N))), offset)  # fmt: skip
    weight, log, shifted = jnp.sum(sums, axis=0)
    return weight, jnp.sum(vector, axis=0)[:, :N], log, shifted


@functools.partial(jax.jit, static_argnames=("way", "passes"))
def iterate(rows: Any, belief: Any, c: Any, way: Callable[..., Any], passes: int) -> Any:
    """EM steps, one after the other."""

    def step(_: Any, c: Any) -> Any:
        offset = belief.gamma * jnp.sum(c * c, axis=1) / 2 + belief.eta
        weight, vector, log, shifted = way(rows, belief.gamma * c, offset)
        sums = em.Moments(weight, vector.at[:, 0].add(shifted), log)
        return em._image(belief, c.shape[1], sums)[0]

    return jax.lax.fori_loop(0, passes, step, c)


@functools.partial(jax.jit, static_argnames=("P", "N", "K"))
def world(P: int, N: int, K: int) -> tuple[Any, Any, Any]:
    """Rows of K worlds in single precision, and a start."""
    eta = jnp.linspace(0.0, 3.0, K, dtype=jnp.float32)
    g = jax.random.normal(jax.random.key(0), (P, N), jnp.float32) / jnp.sqrt(jnp.float32(10))
    V = (jax.random.uniform(jax.random.key(1), (P,)) < jax.nn.sigmoid(-eta)[:, None]).astype(jnp.float32)
    return em.Rows(g, V), em.Belief(jnp.float32(10), eta), jnp.zeros((K, N), jnp.float32).at[:, 0].set(1)


def ways(N: int, K: int) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The candidates. Functions made here are compared by identity: each is compiled once and used twice."""
    yield "two products", em.two_products
    for megabytes in (16,) if GPU else (0.25,):
        yield f"scan, tiles of {megabytes} MB", functools.partial(tiles, rows_of_tile=int(megabytes * 2**20 / 4 / N))
    if GPU:
        wide = 2 ** (N - 1).bit_length()
        for kilobytes, warps, programs, ahead in CANDIDATES:
            tile = max(1, kilobytes * 256 // wide)
            settings = {"tile": tile, "warps": warps, "programs": programs, "ahead": ahead}
            yield f"kernel {settings}", functools.partial(em.stream, **settings)
        for kilobytes, warps, programs in ((8, 2, 2112), (8, 4, 2112), (16, 4, 2112), (32, 8, 2112)):
            settings = {"tile": max(1, kilobytes * 256 // wide), "warps": warps, "programs": programs}
            yield f"together {settings}", functools.partial(together, **settings)


def throughput(gigabytes: float = 4.0) -> Iterator[tuple]:
    """Bytes of data over the time of a pass, and its share of the copy bandwidth."""
    copy = copying(int(2 * gigabytes * 2**30))
    yield jax.devices()[0].device_kind, f"jax {jax.__version__}", f"copy {copy / 1e9:.0f} GB/s (read and written)"
    for N, K in ((1000, 4), (500, 4), (2000, 4), (1000, 2), (1000, 8)):
        rows, belief, start = world(int(gigabytes * 2**30 / 4 / N), N, K)
        with jax.default_matmul_precision("highest"):
            truth = iterate(rows, belief, start, em.two_products, PASSES)
        for name, way in ways(N, K):
            try:
                found = iterate(rows, belief, start, way, PASSES)
                off = float(jnp.linalg.norm(found - truth) / jnp.linalg.norm(truth))
                rate = PASSES * rows.common.nbytes / wall(lambda: iterate(rows, belief, start, way, PASSES))
                yield (
                    f"N = {N}, {K} worlds",
                    name,
                    f"{rate / 1e9:.0f} GB/s",
                    f"{rate / copy:.0%} of copy",
                    f"differs {off:.0e}",
                )
            except Exception as error:
                yield f"N = {N}, {K} worlds", name, "failed", type(error).__name__, str(error)[:300]


if __name__ == "__main__":
    for row in throughput(*map(float, sys.argv[1:])):
        print(*row, sep=" | ", flush=True)
