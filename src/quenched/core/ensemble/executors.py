"""Other places where pieces run: a pool of processes, and a Dask cluster.

A worker that dies is replaced and its pieces are computed again, a bounded number of times; a piece that keeps killing
its worker is returned as failed.

The pool is that of `concurrent.futures`: joblib's breaks like it when a worker dies, so neither saves the retry.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import cloudpickle
import jax

from quenched.core import checks
from quenched.core.ensemble.program import ClusterError, Executor, Piece, Program, Result, Results, compute
from quenched.core.progress import silence
from quenched.core.system import load_extra
from quenched.core.types import InputError

LOOK = 1.0
"""Seconds without a result after which the state of a cluster is checked."""
SILENCE = 30.0
"""Seconds without a worker after which there is a warning."""


class LostError(ClusterError):
    """The scheduler of a cluster does not answer any more."""

    def __init__(self, client: Any):
        super().__init__(f"The Dask scheduler at {_address(client)} was lost.")


@dataclasses.dataclass(frozen=True)
class Processes(Executor):
    """A pool of fresh processes on this machine, for CPUs; each compiles for itself.

    A script that uses it needs the usual `if __name__ == "__main__":`, because fresh processes import it.

    Attributes:
        workers: how many processes.
        restarts: how many times in a row the pool is started again without a piece having been finished.
    """

    workers: int = 2
    restarts: int = 3

    def __post_init__(self):
        checks.whole("workers", self.workers, least=1)
        checks.whole("restarts", self.restarts, least=0)

    def run(self, program: Program, pieces: Sequence[Piece]) -> Results:
        """Yield the results as they are completed."""
        payload = _packed(program)
        left, deaths = dict(enumerate(pieces)), 0
        while left and deaths <= self.restarts:
            if deaths:  # the first piece is suspect: it goes last, and alone, so that it harms no other
                first = next(iter(left))
                left[first] = left.pop(first)
            workers = 1 if deaths else min(self.workers, len(left))
            deaths += 1
            with pool(workers) as ready, contextlib.suppress(BrokenProcessPool):
                places = {ready.submit(_run, piece, payload): position for position, piece in left.items()}
                for future in futures.as_completed(places):
                    position = places.pop(future)
                    with contextlib.suppress(BrokenProcessPool):
                        result = future.result()
                        del left[position]
                        deaths = 0
                        yield position, result
        for position in left:
            yield position, (f"the worker process died {deaths} times in a row (out of memory, or a script "
                             'without `if __name__ == "__main__":`)')  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Dask(Executor):
    """A Dask cluster, on this machine or others. Its workers need this package in the same version.

    A piece whose worker dies is computed again by another; the scheduler's setting
    `distributed.scheduler.allowed-failures` (3) is the number of times.

    Attributes:
        client: a `distributed.Client`, or the address of a scheduler such as `"tls://scheduler:8786"`. What goes to a
            `tcp://` address is not encrypted, and whoever reaches the scheduler can run programs on its workers.
        patience: seconds to wait while the cluster has no worker; after 30 there is a warning.
        security: a `distributed.Security` for a `tls://` address; by default that of Dask's configuration.
    """

    client: Any
    patience: float = 600.0
    security: Any = dataclasses.field(default=None, repr=False)

    def __post_init__(self):
        checks.positive("patience", checks.number("patience", self.patience))
        if self.security is not None and not isinstance(self.client, str):
            raise InputError("Argument `security` must come with the address of a scheduler, but a client was given, "
                             "which has its own.")  # fmt: skip

    def run(self, program: Program, pieces: Sequence[Piece]) -> Results:
        """Yield the results as they are completed."""
        distributed: Any = load_extra("distributed", extra="cluster", purpose="`Dask`")
        if not pieces:
            return
        with self.connected() as client:
            if client.status != "running":
                raise LostError(client)
            # As a task, not as scattered data: the scheduler can make it again when its holders die.
            payload = client.submit(bytes, _packed(program), pure=False)
            tasks = client.map(_run, pieces, payload=payload, pure=False)
            places = {task.key: position for position, task in enumerate(tasks)}
            try:
                for task in _completed(client, tasks, self.patience):
                    try:
                        result = task.result()
                    except distributed.KilledWorker as error:
                        result = f"KilledWorker: {error}"
                    except (futures.CancelledError, OSError, TimeoutError) as error:
                        if task.status == "error":  # the experiment raised it
                            raise
                        raise LostError(client) from error
                    yield places[task.key], result
                    task.release()
            except LostError:  # there is nothing to cancel
                raise
            except BaseException:  # an interrupt, too
                with contextlib.suppress(OSError, TimeoutError):
                    client.cancel(tasks)
                raise

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        """The client, for a block."""
        Client = load_extra("distributed", extra="cluster", purpose="`Dask`").Client
        if not isinstance(self.client, str):
            yield self.client
            return
        try:
            client = Client(self.client, set_as_default=False, security=self.security)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"Argument `client` must name a Dask scheduler that is running, "
                             f"but {self.client} does not answer: {error}.") from error  # fmt: skip
        log = logging.getLogger("distributed.client")
        before = log.disabled
        try:
            yield client
        except LostError:
            log.disabled = True  # it tells at length how it tried to reach the scheduler
            raise
        finally:
            client.close()
            log.disabled = before


def _completed(client: Any, tasks: Sequence[Any], patience: float) -> Iterator[Any]:
    """Tasks as they are completed; the state of the cluster is checked while none is."""
    import distributed

    done, idle, warned = distributed.as_completed(tasks, loop=client.loop), 0.0, False
    while not done.is_empty():
        began = time.monotonic()
        while not done.has_ready() and time.monotonic() < began + LOOK:
            time.sleep(0.02)
        batch = done.next_batch(block=False)
        if client.status != "running" or any(task.status in ("cancelled", "lost") for task in batch):
            raise LostError(client)
        yield from batch
        if batch:
            idle = 0.0
            continue
        try:
            workers = client.sync(client.scheduler.ncores, callback_timeout=patience)
        except (OSError, TimeoutError) as error:
            raise LostError(client) from error
        idle = 0.0 if workers else idle + time.monotonic() - began
        if idle > patience:
            raise ClusterError(f"The Dask cluster at {_address(client)} has had no workers for {idle:.0f} s.")
        if idle > SILENCE and not warned:
            warned = True
            warnings.warn(f"The Dask cluster at {_address(client)} has no workers; it is given up after {patience:g} s "
                          "without one.", RuntimeWarning, stacklevel=2)  # fmt: skip


def _address(client: Any) -> str:
    return getattr(client.scheduler, "address", "the given address")


def _packed(program: Program) -> bytes:
    try:
        return cloudpickle.dumps(program)
    except Exception as error:  # whatever the pickling of a user's object raises
        raise InputError("Argument `function` must be picklable to run in other processes, "
                         f"but {type(error).__name__}: {error}.") from error  # fmt: skip


@contextlib.contextmanager
def pool(workers: int) -> Iterator[futures.ProcessPoolExecutor]:
    """Fresh processes that end with their block: by themselves when all is done, killed otherwise."""
    platforms = jax.config.jax_platforms  # pyright: ignore[reportAttributeAccessIssue]
    context = multiprocessing.get_context("spawn")
    ready = futures.ProcessPoolExecutor(workers, context, _begin, (platforms,))
    try:
        yield ready
    except BaseException:
        processes = list((ready._processes or {}).values())
        ready.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # a worker inside a compiled program reacts to nothing gentler
            process.kill()
        raise
    ready.shutdown(wait=True, cancel_futures=True)


def _begin(platforms: str | None) -> None:
    """Prepare a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    jax.config.update("jax_platforms", platforms)
    silence()
    parent = multiprocessing.parent_process()
    if parent is not None:  # a parent that is killed cannot end its workers
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@functools.lru_cache(maxsize=4)
def _unpacked(payload: bytes) -> Program:
    return cloudpickle.loads(payload)


def _run(piece: Piece, payload: bytes) -> Result:
    return compute(_unpacked(payload), piece)
