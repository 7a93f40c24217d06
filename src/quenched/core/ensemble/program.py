"""A piece of work as one compiled JAX program, and what makes it come out the same everywhere.

A piece is `width` consecutive runs at one point. Numbers of the point are arguments of the program and all
else about it is part of the program, so a sweep compiles once. The last piece of a point is as wide as the
others: its surplus runs are the true next runs, so a later call that asks for more finds them done.

On a CPU the last bits of a matrix decomposition depend on the number of BLAS threads, which differs between
this process and a Dask worker, so every piece runs with one. `Processes` is the way to use more cores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import threadpoolctl

from quenched.core import checks
from quenched.core.ensemble.identity import digest
from quenched.core.types import InputError

Result = tuple[np.ndarray, ...] | str
"""What a piece gives: its output leaves, each `[width, ...]` in float64, or the message of what it raised."""

HOST_BUDGET = 2 * 2**30
"""Bytes that one piece may take in main memory. A constant: the width must not depend on who computes."""
DEVICE_SHARE = 0.5
"""Share of an accelerator's memory that one piece may take."""

_BLOCKING = {"cholesky", "eig", "eigh", "fft", "geqp3", "geqrf", "hessenberg", "householder_product", "lu",
             "ormqr", "qr", "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve"}  # fmt: skip
"""Primitives that on a CPU give their batch to XLA's thread pool and wait, holding a thread of that pool."""

_turn = threading.Lock()  # one piece at a time in a process: see `_may_hang`


@dataclasses.dataclass(frozen=True)
class OnHost:
    """An experiment in NumPy: nothing is traced or compiled.

    Attributes:
        function: of a key and a point to a dictionary of arrays, called once for each run.
        outputs: the names of these arrays and their shapes.
        bytes: memory that a run takes.
    """

    function: Callable[[Any, Any], dict[str, Any]]
    outputs: dict[str, tuple[int, ...]]
    bytes: int = 0

    def compute(self, program: Program, piece: Piece) -> tuple[np.ndarray, ...]:
        """The runs of a piece, one after the other."""
        leaves, structure = jax.tree.flatten(program.template)
        given = iter(piece.numbers)
        point = structure.unflatten([next(given) if is_number(leaf) else leaf for leaf in leaves])
        key = jax.random.wrap_key_data(piece.key, impl=program.implementation)
        runs = [self.function(jax.random.fold_in(key, piece.start + r), point) for r in range(program.width)]
        return tuple(
            np.stack([np.asarray(run[name], dtype=np.float64) for run in runs]) for name in sorted(self.outputs)
        )


@dataclasses.dataclass(frozen=True)
class Piece:
    """Runs `start`, `start + 1`, ... of the point number `point`."""

    point: int
    start: int
    key: np.ndarray  # key data of the point
    numbers: tuple[np.ndarray, ...]  # the point's numbers, in the order of its leaves


@dataclasses.dataclass(frozen=True)
class Program:
    """`function` over `width` runs at a point that has the structure of `template`.

    Attributes:
        function: the experiment, a pure function of (key, parameters).
        template: one point, its numbers as NumPy arrays.
        implementation: which random generator the keys belong to.
        width: runs a piece.
        name: a digest of all these but not of the numbers' values.
    """

    function: Callable[[Any, Any], Any] | Any
    template: Any
    implementation: str
    width: int
    name: str

    def __reduce__(self):
        # What was compiled stays here: another process compiles for itself.
        return Program, (self.function, self.template, self.implementation, self.width, self.name)

    @functools.cached_property
    def traced(self) -> Any:
        """The program traced, not yet compiled. Bugs in the function show here, before any piece runs."""
        with _settings():
            traced = self._trace(jax.vmap)
            if jax.local_devices()[0].platform == "cpu" and _may_hang(traced.jaxpr):
                traced = self._trace(lambda function: functools.partial(jax.lax.map, function))
            return traced

    def _trace(self, mapped: Callable[[Any], Any]) -> Any:
        """The program traced with `mapped` as the way to do many runs."""
        leaves, structure = jax.tree.flatten(self.template)

        def runs(key_data, start, numbers):
            given = iter(numbers)
            point = structure.unflatten([next(given) if is_number(leaf) else leaf for leaf in leaves])
            key = jax.random.wrap_key_data(key_data, impl=self.implementation)
            run = start + jnp.arange(self.width, dtype=jnp.uint32)
            keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, run)
            return mapped(lambda key: self.function(key, point))(keys)

        numbers = tuple(leaf for leaf in leaves if is_number(leaf))
        data = jax.random.key_data(jax.random.key(0, impl=self.implementation))
        return jax.jit(runs).trace(np.asarray(data), np.uint32(0), numbers)

    @functools.cached_property
    def compiled(self) -> Any:
        """The program, compiled."""
        with _settings():
            return self.traced.lower().compile()

    def outputs(self) -> tuple[list[tuple[int, ...]], Any]:
        """Shapes of the output leaves of one run, and the structure they belong to.

        Raises:
            InputError: if the function does not return real arrays.
        """
        if isinstance(self.function, OnHost):
            names = sorted(self.function.outputs)
            return [self.function.outputs[name] for name in names], jax.tree.structure(dict.fromkeys(names, 0))
        leaves, structure = jax.tree.flatten(self.traced.out_info)
        kinds = [np.dtype(leaf.dtype).kind if not _is_key(leaf) else "key" for leaf in leaves]
        if not leaves or any(kind not in "biufV" for kind in kinds):  # V: the short floats of ml_dtypes
            raise InputError("Argument `function` must return real arrays, "
                             f"but it returns {[str(leaf.dtype) for leaf in leaves] or 'none'}.")  # fmt: skip
        return [leaf.shape[1:] for leaf in leaves], structure

    def memory(self) -> int:
        """Bytes that a piece takes while it runs, as the compiler says; 0 where it does not say."""
        if isinstance(self.function, OnHost):
            return self.function.bytes
        stats = self.compiled.memory_analysis()
        if stats is None:
            return 0
        return stats.temp_size_in_bytes + stats.output_size_in_bytes + stats.argument_size_in_bytes


def build(function: Callable[[Any, Any], Any], template: Any, implementation: str, width: int, family: str) -> Program:
    """The program of this width, compiled before if the same one was asked for before."""
    name = digest(family, width)
    program = _remembered.pop(name, None) or Program(function, template, implementation, width, name)
    _remembered[name] = program
    while len(_remembered) > 16:  # the least recently used goes first
        del _remembered[next(iter(_remembered))]
    return program


_remembered: dict[str, Program] = {}


def fitting(build_width: Callable[[int], Program], wanted: int) -> Program:
    """The widest program, of at most `wanted` runs, whose piece fits the memory budget."""
    width = wanted
    while True:
        program = build_width(width)
        excess = program.memory() / _budget()
        if excess <= 1 or width == 1:
            checks.memory("A run", program.memory())
            return program
        # Memory grows about linearly with the width, so the halvings needed are done at once.
        width = max(1, width >> math.ceil(math.log2(excess)))


def compute(program: Program, piece: Piece) -> Result:
    """Run a piece in double precision. An exception while it runs is its result; bugs raise."""
    with _turn, _settings(), _one_thread():
        host = isinstance(program.function, OnHost)
        compiled = None if host else program.compiled
        try:
            if host:
                return program.function.compute(program, piece)
            output = compiled(piece.key, np.uint32(piece.start), piece.numbers)
            return tuple(np.asarray(leaf, dtype=np.float64) for leaf in jax.tree.leaves(output))
        except Exception as error:
            if "KeyboardInterrupt" in str(error):  # Ctrl-C inside a callback, which JAX wraps
                raise KeyboardInterrupt from error
            return _sentence(error)


def _sentence(error: Exception) -> str:
    """What an exception says, without the traceback that JAX packs into the message of a failed callback."""
    text = str(error).strip()
    said = text.splitlines()[-1] if "Traceback (most recent call last)" in text else text
    return f"{type(error).__name__}: {said}"


def is_number(leaf: Any) -> bool:
    """Whether a leaf of a point is data, not part of its structure."""
    return isinstance(leaf, np.ndarray)


def _one_thread() -> contextlib.AbstractContextManager[Any]:
    """Hold BLAS to one thread."""
    import scipy.linalg.cython_lapack  # noqa: F401  JAX loads this BLAS at the first decomposition: too late

    return threadpoolctl.threadpool_limits(1, user_api="blas")


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """The JAX settings that results depend on, whatever they are outside."""
    with jax.enable_x64(True), jax.threefry_partitionable(True):
        yield


def _may_hang(jaxpr: Any) -> bool:
    """Whether a program could wait for itself for ever on a machine with few cores.

    Two batched decompositions that do not depend on each other may hold both threads of a pool of two, each
    waiting for the pool to work off its batch. Runs are then done one by one instead: their decompositions are
    no batch and do not wait. (Those of a function that makes batches itself still are; the environment variable
    NPROC, set before JAX starts, makes the pool larger.)
    """
    return sum(1 for _ in _batches(jaxpr)) > 1


def _batches(jaxpr: Any) -> Iterator[Any]:
    """The batched decompositions and Fourier transforms in a jaxpr and in the jaxprs inside it."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        single = 1 if equation.primitive.name == "fft" else 2
        if equation.primitive.name in _BLOCKING and any(v.aval.ndim > single for v in equation.invars):
            yield equation
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                yield from _batches(inner)


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns")


def _budget() -> float:
    device = jax.local_devices()[0]
    stats = None if device.platform == "cpu" else device.memory_stats()
    return DEVICE_SHARE * stats["bytes_limit"] if stats and "bytes_limit" in stats else HOST_BUDGET


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
