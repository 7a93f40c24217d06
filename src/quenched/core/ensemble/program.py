"""A piece of work, and the programs that compute it: compiled by JAX, or in NumPy.

A piece is up to `width` consecutive runs at one point. The numbers of a point are arguments of a compiled program and
everything else about it is part of the program, so a sweep compiles once, for any number of runs.

On a CPU the last bits of a matrix decomposition depend on the number of BLAS threads, which differs between this
process and a Dask worker, so every piece runs with one. `Processes` is the way to use more cores.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import threading
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import threadpoolctl

from quenched.core.errors import ClusterError as ClusterError
from quenched.core.store import code_digest
from quenched.core.system import require_memory
from quenched.core.types import LIGHT, InputError

Result = np.ndarray | str
"""What a piece returns: a row for each run, with all its outputs in float64, or the message of an exception."""

Results = Generator[tuple[int, Result], None, None]
"""Positions of pieces and their results."""

WIDTH = 8
"""Runs of a piece that are computed one after the other."""
WIDTHS = (64, 8, 1)
"""Runs of a piece that are computed together: 64 take about half the time of eight times 8."""
HOST_BUDGET = 2 * 2**30
"""Bytes of main memory that a piece may take. A constant: the width must not depend on who computes."""
DEVICE_SHARE = 0.5
"""Share of an accelerator's memory that a piece may take."""

KEPT = 16
"""Programs that are kept for a later call."""

_programs: dict[Hashable, Compiled] = {}
_turn = threading.Lock()  # one piece at a time in a process: BLAS threads are set for all of it


@dataclasses.dataclass(frozen=True)
class Piece:
    """Runs `start` to `start + count - 1` of the point number `point`."""

    point: int
    start: int
    count: int
    key: np.ndarray  # key data of the point
    numbers: tuple[np.ndarray, ...]  # the point's numbers, in the order of its leaves


@dataclasses.dataclass(frozen=True)
class OnHost:
    """An experiment written in NumPy, for `ensemble`: called once for each run instead of being compiled.

    The function of (key, parameters) returns a dict of NumPy arrays and depends on nothing else.
    """

    function: Callable[[Any, Any], Mapping[str, Any]]
    outputs: Mapping[str, tuple[int, ...]]  # the shape of each array
    bytes: int = 0  # memory that a run takes, if it is large


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A JAX function, compiled."""

    function: Callable[[Any, Any], Any]  # the experiment, a pure function of (key, parameters)
    template: Any  # a point with its numbers as shapes
    implementation: str  # the random generator of the keys
    width: int  # runs in a piece
    vectorized: bool  # whether the runs of a piece are computed together rather than one after the other

    def __reduce__(self):
        # Compiled code stays here: another process compiles for itself.
        return Compiled, (self.function, self.template, self.implementation, self.width, self.vectorized)

    @functools.cached_property
    def _lowered(self) -> Any:
        """The program before it is compiled. Bugs in the function show here, before any piece runs."""

        @jax.jit  # traced once
        def one(data, numbers, run):
            key = jax.random.fold_in(jax.random.wrap_key_data(data, impl=self.implementation), run)
            return self.function(key, _point(self.template, numbers))

        def loop(data, numbers, start, count):
            def step(i, values):
                return jax.tree.map(lambda v, new: v.at[i].set(new), values, one(data, numbers, start + i))

            empty = jax.tree.map(lambda leaf: jnp.zeros((self.width, *leaf.shape), leaf.dtype), like)
            return jax.lax.fori_loop(jnp.uint32(0), count, step, empty)

        def together(data, numbers, start, _):
            return jax.vmap(lambda i: one(data, numbers, start + i))(jnp.arange(self.width, dtype=jnp.uint32))

        with _settings():
            data = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl=self.implementation)))
            numbers = tuple(leaf for leaf in jax.tree.leaves(self.template) if is_number(leaf))
            like = jax.eval_shape(one, data, numbers, np.uint32(0))
            kinds = [leaf.dtype for leaf in jax.tree.leaves(like)]
            keys = [jnp.issubdtype(kind, jax.dtypes.prng_key) for kind in kinds]
            if not kinds or any(keys) or any(np.dtype(kind).kind not in "biufV" for kind in kinds):
                raise InputError("Argument `function` must return real arrays, "  # V: the short floats of ml_dtypes
                                 f"but it returns {[str(kind) for kind in kinds] or 'none'}.")  # fmt: skip
            runs = jax.jit(together if self.vectorized else loop, keep_unused=True)
            return runs.lower(data, numbers, np.uint32(0), np.uint32(0))

    def outputs(self) -> tuple[list[tuple[int, ...]], Any]:
        """Shapes of the output leaves of one run, and the pytree structure they belong to."""
        leaves, structure = jax.tree.flatten(self._lowered.out_info)
        return [leaf.shape[1:] for leaf in leaves], structure

    @functools.cached_property
    def _compiled(self) -> Any:
        with _settings():
            return self._lowered.compile(compiler_options=LIGHT if jax.default_backend() == "cpu" else None)

    def identity(self) -> str:
        """A digest of the program as JAX lowers it: all that it computes, but for what is called back on the host."""
        return _digest(self._lowered.as_text(), jax.__version__, importlib.metadata.version("jaxlib"))

    def memory(self) -> int:
        """Bytes that a piece takes while it runs, according to the compiler; 0 where it does not tell."""
        stats = self._compiled.memory_analysis()
        if stats is None:
            return 0
        return stats.temp_size_in_bytes + stats.output_size_in_bytes + stats.argument_size_in_bytes

    def run(self, piece: Piece) -> Sequence[Any]:
        """The output leaves of a piece."""
        values = self._compiled(piece.key, piece.numbers, np.uint32(piece.start), np.uint32(piece.count))
        return [leaf[: piece.count] for leaf in map(np.asarray, jax.tree.leaves(values))]


@dataclasses.dataclass(frozen=True)
class Hosted:
    """A NumPy function, called run by run."""

    experiment: OnHost
    template: Any
    implementation: str
    width: int

    def outputs(self) -> tuple[list[tuple[int, ...]], Any]:
        """Shapes of the output leaves of one run, and the pytree structure they belong to."""
        names = sorted(self.experiment.outputs)
        return [tuple(self.experiment.outputs[name]) for name in names], jax.tree.structure(dict.fromkeys(names, 0))

    def identity(self) -> str:
        """A digest of the function with its arguments, and of the source files of its package."""
        function: Any = self.experiment.function
        while isinstance(function, functools.partial):
            function = function.func
        source = "" if function.__module__ == "__main__" else code_digest(function.__module__)
        packed = cloudpickle.dumps((self.experiment.function, self.template))
        return _digest(packed, source, repr(sorted(self.experiment.outputs.items())), np.__version__)

    def run(self, piece: Piece) -> Sequence[Any]:
        """The output leaves of a piece."""
        key = jax.random.wrap_key_data(jnp.asarray(piece.key), impl=self.implementation)
        point, leaves = _point(self.template, piece.numbers), []
        for run in range(piece.start, piece.start + piece.count):
            values = self.experiment.function(jax.random.fold_in(key, np.uint32(run)), point)
            shapes = {name: np.shape(value) for name, value in values.items()}
            if shapes != dict(self.experiment.outputs):
                raise InputError(f"Argument `outputs` must be the shapes that the function returns, but it returns "
                                 f"{shapes}.")  # fmt: skip
            leaves.append([np.asarray(values[name], np.float64) for name in sorted(values)])
        return [np.stack(leaf) for leaf in zip(*leaves, strict=True)]


Program = Compiled | Hosted
"""An experiment over pieces of one width: `outputs`, `identity` and `run`."""


def build(function: Any, point: Any, implementation: str, runs: int, batch: int | None, vectorized: bool) -> Program:
    """The program of an experiment, of the given width or of the widest that fits in memory."""
    template = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_number(leaf) else leaf, point
    )
    if isinstance(function, OnHost):
        require_memory("A run", function.bytes)
        return Hosted(function, template, implementation, batch or WIDTH)
    width = batch or (next(width for width in WIDTHS if width <= 2 * runs) if vectorized else WIDTH)
    while True:
        program = _remember(Compiled(function, template, implementation, width, vectorized))
        if batch is not None:
            return program
        program.outputs()
        if width == 1 or program.memory() <= _budget():
            require_memory("A run", program.memory())
            return program
        width //= 2


def _remember(program: Compiled) -> Compiled:
    """The program of the same code and the same arguments, if there was one: nothing is compiled again."""
    parts = (getattr(program, field.name) for field in dataclasses.fields(program))
    key = tuple(_key(part) for part in parts)
    try:
        found = _programs.pop(key, program)
    except TypeError:  # something in it cannot be compared
        return program
    _programs[key] = found
    while len(_programs) > KEPT:
        del _programs[next(iter(_programs))]
    return found


def _key(value: Any) -> Any:
    """What makes a function or a point another one, with numbers distinguished by type and bits."""
    if isinstance(value, functools.partial):
        return "partial", _key(value.func), _key((value.args, value.keywords))
    leaves, structure = jax.tree.flatten(value)
    arrays = (np.ndarray, jax.Array)
    return structure, tuple(
        (leaf.dtype, leaf.shape, np.asarray(leaf).tobytes()) if isinstance(leaf, arrays)
        else (type(leaf), repr(leaf) if isinstance(leaf, (float, complex)) else leaf)
        for leaf in leaves
    )  # fmt: skip


def compute(program: Program, piece: Piece) -> Result:
    """Run a piece in double precision. An exception while it runs is its result; bugs raise."""
    import scipy.linalg.cython_lapack  # noqa: F401  JAX loads this BLAS at the first decomposition: too late

    with _turn, _settings(), threadpoolctl.threadpool_limits(1, user_api="blas"):
        if isinstance(program, Compiled):
            _ = program._compiled  # outside the block: what is raised here is a bug
        try:
            leaves = [np.asarray(leaf, dtype=np.float64) for leaf in program.run(piece)]
            return np.concatenate([leaf.reshape(piece.count, -1) for leaf in leaves], axis=1)
        except InputError:
            raise
        except Exception as error:
            if "KeyboardInterrupt" in str(error):  # Ctrl-C inside a callback, which JAX wraps
                raise KeyboardInterrupt from error
            text = str(error).strip()  # JAX packs a traceback into the message of a failed callback
            last = text.splitlines()[-1] if "Traceback (most recent call last)" in text else text
            return f"{type(error).__name__}: {last}"


def is_number(leaf: Any) -> bool:
    """Whether a leaf of a point, or of its template, is a number rather than part of the structure."""
    return isinstance(leaf, (np.ndarray, jax.ShapeDtypeStruct))


def _point(template: Any, numbers: Sequence[Any]) -> Any:
    """A point with these numbers."""
    leaves, structure = jax.tree.flatten(template)
    given = iter(numbers)
    return structure.unflatten([next(given) if is_number(leaf) else leaf for leaf in leaves])


def _digest(*parts: str | bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part if isinstance(part, bytes) else part.encode()).digest())
    return total.hexdigest()


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """The JAX settings on which results depend, whatever they are outside."""
    with jax.enable_x64(True), jax.threefry_partitionable(True):
        yield


def _budget() -> float:
    device = jax.local_devices()[0]
    stats = None if device.platform == "cpu" else device.memory_stats()
    return DEVICE_SHARE * stats["bytes_limit"] if stats and "bytes_limit" in stats else HOST_BUDGET


class Executor(abc.ABC):
    """Where the pieces of an ensemble run. Closing its generator early, as an interrupt does, cancels the rest."""

    @abc.abstractmethod
    def run(self, program: Program, pieces: Sequence[Piece]) -> Results:
        """Yield the position of each piece and its result, as they are completed, in any order."""


@dataclasses.dataclass(frozen=True)
class Local(Executor):
    """This process, on its first device, one piece after the other. An interrupt waits for a piece to end."""

    def run(self, program: Program, pieces: Sequence[Piece]) -> Results:
        """Yield the results in order."""
        for position, piece in enumerate(pieces):
            yield position, compute(program, piece)
