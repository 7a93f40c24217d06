"""One EM pass of outliers against the memory of the device, which it should read once.

Run `PYTHONPATH=src python -m benchmarks.outliers [gigabytes]` on a machine that has JAX and little else: the data and the
copy they are compared with are single precision. Every line is a whole EM step, carried on from the last one.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
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


def ways(N: int) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The candidates. Functions are compared by identity: each is compiled once and used again."""
    megabytes = 16 if GPU else 0.25
    yield "two products", em.two_products
    yield f"two products, tiles of {megabytes} MB", functools.partial(tiles, rows_of_tile=int(megabytes * 2**18 / N))
    if GPU:
        yield "kernel", em.stream


def throughput(gigabytes: float = 4.0) -> Iterator[tuple]:
    """Bytes of data over the time of a pass, and its share of the copy bandwidth."""
    copy = copying(int(2 * gigabytes * 2**30))
    yield jax.devices()[0].device_kind, f"jax {jax.__version__}", f"copy {copy / 1e9:.0f} GB/s (read and written)"
    for N, K in itertools.product((500, 1000, 2000), (1, 2, 4)):
        rows, belief, start = world(int(gigabytes * 2**30 / 4 / N), N, K)
        with jax.default_matmul_precision("highest"):
            truth = iterate(rows, belief, start, em.two_products, PASSES)
        for name, way in ways(N):
            found = iterate(rows, belief, start, way, PASSES)
            off = float(jnp.linalg.norm(found - truth) / jnp.linalg.norm(truth))
            rate = PASSES * rows.common.nbytes / wall(lambda: iterate(rows, belief, start, way, PASSES))
            shown = f"{rate / 1e9:.0f} GB/s", f"{rate / copy:.0%} of copy", f"differs {off:.0e}"
            yield f"N = {N}, {K} worlds", name, *shown


if __name__ == "__main__":
    for row in throughput(*map(float, sys.argv[1:])):
        print(*row, sep=" | ", flush=True)
