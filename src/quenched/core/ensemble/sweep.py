"""The front door: check, cut into pieces, load what is on disk, compute the rest, put the runs together."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import hashlib
import math
import numbers
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from quenched.core import checks
from quenched.core.ensemble import program as programs
from quenched.core.ensemble.program import ClusterError, Executor, Local, OnHost, Piece, Program, Result, is_number
from quenched.core.progress import progress
from quenched.core.store import Damaged, Store
from quenched.core.system import require_memory
from quenched.core.types import InputError, Key, double

_place: contextvars.ContextVar[tuple[Executor | None, Any]] = contextvars.ContextVar("place", default=(None, None))


@contextlib.contextmanager
def place(executor: Executor | None = None, folder: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Set where the ensembles of a block run and keep their pieces, unless they are given a place of their own."""
    before = _place.set((executor, folder))
    try:
        yield
    finally:
        _place.reset(before)


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble:
    """Every run at every point.

    Attributes:
        values: what the function returned, each leaf with leading axes `[points, runs]`, in float64.
        failed: `[points, runs]`, whether the run returned a value that is not finite, or raised an exception (then its
            values are NaN).
        messages: one sentence for each thing that went wrong.
        computed: how many pieces were computed now.
        loaded: how many pieces came from the folder.
        damaged: how many pieces in the folder were damaged and computed again.
        width: runs in a piece.
    """

    values: Any
    failed: np.ndarray
    messages: tuple[str, ...]
    computed: int
    loaded: int
    damaged: int
    width: int

    def mean(self, name: str) -> np.ndarray:
        """The mean over the runs that did not fail, `[points, ...]`; NaN where all of them failed."""
        values, count = self._good(name)
        with np.errstate(invalid="ignore"):
            return np.sum(values, axis=1) / count

    def stderr(self, name: str) -> np.ndarray:
        """The standard error of `mean`; infinite, never NaN, where fewer than two runs did not fail."""
        values, count = self._good(name)
        mean = np.sum(values, axis=1) / np.maximum(count, 1)
        off, _ = self._good(name, np.expand_dims(mean, 1))
        squares = np.sum(off**2, axis=1)
        return np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1)), np.inf)

    def _good(self, name: str, less: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """The values of runs that did not fail, less something, zero for the others; and how many there are."""
        if not isinstance(self.values, dict) or name not in self.values:
            known = ", ".join(map(str, self.values)) if isinstance(self.values, dict) else "no names"
            raise InputError(f"Argument `name` must be one of the function's outputs, but {name!r} is not in: {known}.")
        values = self.values[name]
        good = ~np.expand_dims(self.failed, tuple(range(2, values.ndim)))
        return np.where(good, values - less, 0.0), np.sum(good, axis=1)


@double
def ensemble(
    function: Callable[[Any, Any], Any] | OnHost,
    key: Key,
    parameters: Sequence[Any],
    *,
    runs: int,
    batch: int | None = None,
    vectorized: bool = False,
    executor: Executor | None = None,
    folder: str | os.PathLike[str] | None = None,
    label: str = "runs",
) -> Ensemble:
    """Run a pure function of (key, parameters) many times at every point of a sweep.

    Run `r` of point `i` gets the key `fold_in(fold_in(key, i), r)`. The same key gives the same values to the last bit
    on any executor and after a resume, on one kind of machine and with pieces of one width.

    Args:
        function: a pure JAX function that returns a dict (or another pytree) of real arrays, usually a
            `functools.partial` of a module's function with its sizes as keywords; or a NumPy function, as `OnHost`. As
            with `jax.jit`, global variables are read when a function is called for the first time.
        key: a JAX key.
        parameters: one pytree for each point, all of one structure; numbers may vary from point to point.
        runs: how many runs at each point.
        batch: how many runs make a piece; by default 8, or up to 64 that are computed together, and fewer if memory is
            short.
        vectorized: whether the runs of a piece are computed together (`jax.vmap`), which is faster for functions of
            many small steps. Not for functions with matrix decompositions: on a machine with few cores, two batches of
            them may wait for each other for ever.
        executor: `Local()`, `Processes(...)` or `Dask(...)`; by default that of `place`, or else `Local()`.
        folder: where finished pieces are kept. A later call with the same function, key and points computes only the
            pieces that are missing; it may have more runs (in pieces of the same `batch`), or more points at the end.
            A JAX function is recognised by what it computes, another by the source files of its package.
        label: a word for the report of progress when the work is long.

    Returns:
        An `Ensemble`.

    Raises:
        InputError: if an argument is not as above.
        ClusterError: if a cluster is lost or has no workers; the message tells what is kept.
        RuntimeError: if every run raised an exception. What a JAX function raises while it is traced is a bug in it
            and is raised as it is.

    Examples:
        >>> import jax
        >>> from quenched.core.ensemble import ensemble
        >>> def throw(key, point):
        ...     return {"x": point["scale"] * jax.random.normal(key)}
        >>> result = ensemble(throw, jax.random.key(0), [{"scale": 1.0}, {"scale": 2.0}], runs=100)
        >>> result.mean("x").shape
        (2,)
    """
    runs = checks.whole("runs", runs, least=1)
    batch = None if batch is None else checks.whole("batch", batch, least=1)
    there, kept = _place.get()
    executor = (there or Local()) if executor is None else executor
    folder = kept if folder is None else folder
    if not isinstance(executor, Executor):
        raise InputError(f"Argument `executor` must be Local(), Processes() or Dask(), but {executor!r} was given.")
    if not callable(function) and not isinstance(function, OnHost):
        raise InputError(f"Argument `function` must be a function of (key, parameters), but it is {function!r}.")
    key, points = checks.key(key), _points(parameters)
    store = None if folder is None else Store.open(folder)
    program = programs.build(function, points[0], str(jax.random.key_impl(key)), runs, batch, vectorized)
    work = _Work(program, key, points, runs, store)
    missing = work.load()
    try:
        total = sum(piece.count for piece in missing)
        with progress(label, total) as advance, contextlib.closing(executor.run(program, missing)) as results:
            for position, result in results:
                work.take(missing[position], result)
                advance(missing[position].count)
    except ClusterError as error:
        raise ClusterError(f"{error} {work.kept()}") from error
    return work.ensemble()


def _points(parameters: Any) -> list[Any]:
    """The points with every number as a NumPy array, all of one structure."""
    if not isinstance(parameters, (list, tuple)) or not parameters:
        raise InputError(f"Argument `parameters` must be a list of at least one point, but it is {parameters!r}.")
    points = [jax.tree.map(_number, point) for point in parameters]
    first = _structure(points[0])
    for k, point in enumerate(points):
        if _structure(point) != first:
            raise InputError(f"Argument `parameters` must be points of one structure, but point {k}, "
                             f"{parameters[k]!r}, differs from point 0, {parameters[0]!r}.")  # fmt: skip
    return points


def _number(leaf: Any) -> Any:
    """Python numbers and floats of any kind become float64; other leaves are part of the structure."""
    if isinstance(leaf, numbers.Real) and not isinstance(leaf, (bool, np.integer)):
        return np.asarray(float(leaf))
    if not isinstance(leaf, (bool, np.generic, np.ndarray, jax.Array)):
        return leaf
    array = np.asarray(leaf)
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def _structure(point: Any) -> Any:
    """What may not vary from point to point."""
    leaves, structure = jax.tree.flatten(point)
    return structure, [(leaf.shape, leaf.dtype.str) if is_number(leaf) else leaf for leaf in leaves]


class _Work:
    """The runs as they come in."""

    def __init__(self, program: Program, key: Any, points: list[Any], runs: int, store: Store | None):
        self.shapes, self.structure = program.outputs()
        size = sum(map(math.prod, self.shapes))
        require_memory("All runs", 8.0 * len(points) * runs * size)
        self.program, self.store = program, store
        self.identity = "" if store is None else program.identity()
        self.pieces = _pieces(key, points, runs, program.width)
        self.values = np.full((len(points), runs, size), np.nan)
        self.raised = np.zeros((len(points), runs), dtype=bool)
        self.messages: list[str] = []
        self.computed = self.loaded = self.damaged = 0

    def load(self) -> list[Piece]:
        """Take what is on disk; return the pieces that are not."""
        missing = []
        for piece in self.pieces:
            rows = None
            try:
                rows = self._read(piece)
            except Damaged as error:
                self.damaged += 1
                self.messages.append(f"A piece on disk was damaged and is computed again: {error}.")
            if rows is None:
                missing.append(piece)
            else:
                self.loaded += 1
                self.values[piece.point, piece.start : piece.start + piece.count] = rows
        if missing and self.store is not None and self.store.barred:
            if not self.loaded:
                raise self.store.refusal()
            self._warn(f"Nothing can be saved in {self.store.folder} ({self.store.barred}): the {self.loaded} pieces "
                       f"that are there are used, {len(missing)} are computed and not kept.")  # fmt: skip
        return missing

    def take(self, piece: Piece, result: Result) -> None:
        """Take a result that was computed now."""
        self.computed += 1
        stop = piece.start + piece.count
        if isinstance(result, str):
            self.raised[piece.point, piece.start : stop] = True
            self.messages.append(f"Runs {piece.start} to {stop - 1} of point {piece.point} failed: {result}")
            return
        self.values[piece.point, piece.start : stop] = result
        if self.store is not None:
            self.store.write(self._name(piece), result.astype("<f8").tobytes(), self._name(piece))

    def kept(self) -> str:
        """What is kept after the work was broken off, in a sentence."""
        if self.store is None:
            return "Nothing was kept; with `folder=`, finished pieces are."
        there = sum(self.store.has(self._name(piece)) for piece in self.pieces)
        return (f"{there} of {len(self.pieces)} pieces are kept in {self.store.folder}: the same call goes on with the "
                "rest.")  # fmt: skip

    def ensemble(self) -> Ensemble:
        """All runs."""
        if self.raised.all():
            raise RuntimeError(f"All {self.raised.size} runs failed. {self.messages[0]}")
        failed = self.raised | ~np.isfinite(self.values).all(axis=2)
        if count := int(np.sum(failed & ~self.raised)):
            self.messages.append(f"{count} of {failed.size} runs gave a value that is not finite.")
        if self.store is not None and self.store.unsaved:
            self._warn(f"The result is complete, but {len(self.store.unsaved)} of its files could not be saved in "
                       f"{self.store.folder}: {self.store.unsaved[0]}.")  # fmt: skip
        parts = np.split(self.values, np.cumsum([math.prod(shape) for shape in self.shapes])[:-1], axis=2)
        leaves = [part.reshape(*failed.shape, *shape) for part, shape in zip(parts, self.shapes, strict=True)]
        counts = self.computed, self.loaded, self.damaged, self.program.width
        return Ensemble(jax.tree.unflatten(self.structure, leaves), failed, tuple(self.messages), *counts)

    def _warn(self, sentence: str) -> None:
        self.messages.append(sentence)
        warnings.warn(sentence, RuntimeWarning, stacklevel=5)

    def _name(self, piece: Piece) -> str:
        """The file of a piece: a digest of all that determines its values."""
        total = hashlib.sha256(f"{self.identity} rows {piece.start}".encode() + piece.key.tobytes())
        for number in piece.numbers:
            total.update(f"{number.dtype.str} {number.shape}".encode() + number.tobytes())
        return f"{total.hexdigest()}.piece"

    def _read(self, piece: Piece) -> np.ndarray | None:
        """The runs of a piece on disk, which may have more than are asked for; None if it has not as many."""
        body = None if self.store is None else self.store.read(self._name(piece), self._name(piece))
        wanted = piece.count * self.values.shape[2]
        if body is None or len(body) < 8 * wanted:
            return None
        return np.frombuffer(body, "<f8", wanted).reshape(piece.count, -1)


def _pieces(key: Any, points: list[Any], runs: int, width: int) -> list[Piece]:
    """The runs of all points, cut into pieces."""
    data = [np.asarray(jax.random.key_data(jax.random.fold_in(key, np.uint32(i)))) for i in range(len(points))]
    numbers = [tuple(leaf for leaf in jax.tree.leaves(point) if is_number(leaf)) for point in points]
    return [
        Piece(point, start, min(width, runs - start), data[point], numbers[point])
        for point in range(len(points))
        for start in range(0, runs, width)
    ]
