"""Many runs in other processes: the same bits everywhere, workers that die, sweeps that are interrupted."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import psutil
import pytest

from quenched.core.ensemble import ClusterError, Dask, Ensemble, Local, Processes, ensemble, executors
from quenched.core.types import InputError

KEY = jax.random.key(11)
RUNS, BATCH = 6, 2
POINTS = [0.5, 1.0, 2.0]


def mixed(key, point):
    """What has different last bits when threads are not held still: a decomposition and a long inner product."""
    x = jax.random.normal(key, (160, 160))
    z = jax.random.normal(jax.random.fold_in(key, 1), (50_000,))
    return {"factor": jnp.linalg.cholesky(x @ x.T / 160 + point * jnp.eye(160)), "inner": z @ jnp.exp(point * z)}


def slow(key, point):
    """A run that takes its time in processes that are told to, and at the last point perhaps very long."""
    x = jax.random.normal(key)

    def wait(x, point):
        time.sleep(float(os.environ.get("PAUSE" if point < 2 else "LONG", "0")))
        return x

    y = jax.pure_callback(wait, jax.ShapeDtypeStruct((), x.dtype), x, point, vmap_method="sequential")
    return {"x": point * y}


def deadly(key, point, *, marker):
    """A run that kills the process it is in, unless another has done so."""
    x = jax.random.normal(key)

    def kill(x):
        if not os.path.exists(marker):
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    y = jax.pure_callback(kill, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")
    return {"x": point * y}


def same(one: Ensemble, other: Ensemble) -> bool:
    """Equal to the last bit."""
    return all(one.values[name].tobytes() == other.values[name].tobytes() for name in one.values)


def until(condition, seconds=60.0):
    """Wait for a condition, not for ever."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@contextlib.contextmanager
def meanwhile(act):
    """Do something beside a block, and wait for it, however the block ends."""
    with futures.ThreadPoolExecutor(1) as other:
        done = other.submit(act)
        yield
        done.result()


def pieces(folder) -> list:
    return sorted(Path(folder).glob("*.piece"))


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"processes": True, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, env={"PAUSE": "0.05", "LONG": "0.05"}) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,  # users who give an address have none
    ):
        yield client


@pytest.fixture(scope="module")
def reference():
    return ensemble(mixed, KEY, POINTS, runs=RUNS, batch=BATCH, executor=Local())


def test_processes_give_the_same_bits(reference):
    result = ensemble(mixed, KEY, POINTS, runs=RUNS, batch=BATCH, executor=Processes(2))
    assert result.computed == 9
    assert same(result, reference)


def test_dask_gives_the_same_bits(reference, client):
    result = ensemble(mixed, KEY, POINTS, runs=RUNS, batch=BATCH, executor=Dask(client))
    assert result.computed == 9
    assert same(result, reference)
    address = client.scheduler.address
    assert ensemble(slow, KEY, POINTS, runs=1, executor=Dask(address)).computed == 3


def test_a_killed_process_is_replaced(tmp_path):
    function = functools.partial(deadly, marker=str(tmp_path / "killed"))
    result = ensemble(function, KEY, POINTS, runs=4, batch=2, executor=Processes(1))
    assert (tmp_path / "killed").exists()
    assert (result.computed, result.messages) == (6, ())
    assert same(result, ensemble(function, KEY, POINTS, runs=4, batch=2))


class Broken(futures.Executor):
    """A pool of one worker that dies at the pieces of the first point."""

    def __init__(self):
        self.alive = True

    def submit(self, function, piece, payload, /):  # pyright: ignore[reportIncompatibleMethodOverride]
        future = futures.Future()
        self.alive = self.alive and piece.point != 0
        future.set_result(np.zeros((2, 1))) if self.alive else future.set_exception(BrokenProcessPool())
        return future


def test_a_piece_that_always_kills_fails_alone(monkeypatch):
    started = []

    @contextlib.contextmanager
    def pool(workers):
        started.append(workers)
        yield Broken()

    monkeypatch.setattr(executors, "pool", pool)
    result = ensemble(slow, KEY, POINTS, runs=2, batch=2, executor=Processes(2, restarts=1))
    # Nobody comes to an end, the suspect goes last and alone, and then it has two more lives.
    assert started == [2, 1, 1, 1]
    np.testing.assert_array_equal(result.failed, [[True] * 2, [False] * 2, [False] * 2])
    assert len(result.messages) == 1
    assert result.messages[0].startswith("Runs 0 to 1 of point 0 failed: the worker process died 2 times in a row")


def test_a_killed_dask_worker_is_replaced(tmp_path, client):
    victim = min(client.run(os.getpid).values())

    def kill():
        until(lambda: len(pieces(tmp_path)) >= 2)
        os.kill(victim, signal.SIGKILL)

    with meanwhile(kill):
        result = ensemble(slow, KEY, POINTS, runs=4, batch=1, executor=Dask(client), folder=tmp_path)
    assert (result.computed, result.messages) == (12, ())
    assert same(result, ensemble(slow, KEY, POINTS, runs=4, batch=1))
    until(lambda: len(client.run(os.getpid)) == 1)
    assert victim not in client.run(os.getpid).values()


def test_bugs_in_workers_and_wrong_addresses_raise(client, monkeypatch):
    def forgets(key, point):
        if multiprocessing.current_process().name != "MainProcess":
            raise ZeroDivisionError("only in a worker")
        return {"x": point}

    for executor in (Processes(1), Dask(client)):
        with pytest.raises(ZeroDivisionError, match="only in a worker"):
            ensemble(forgets, KEY, POINTS, runs=2, executor=executor)
    with pytest.raises(
        InputError, match=r"Argument `client` must name a Dask scheduler that is running, but .*nonsense"
    ):
        ensemble(forgets, KEY, POINTS, runs=2, executor=Dask("nonsense://1"))
    with pytest.raises(InputError, match="Argument `workers` must be at least 1, but 0 was given"):
        Processes(0)


@pytest.fixture
def threads():
    """Make clusters of threads in this process."""
    distributed = pytest.importorskip("distributed")
    with contextlib.ExitStack() as stack:

        def make(workers):
            options = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
            cluster = stack.enter_context(distributed.LocalCluster(n_workers=workers, **options))
            return stack.enter_context(distributed.Client(cluster, set_as_default=False))

        yield make


def test_a_cluster_without_workers_is_said_and_given_up(threads, tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "LOOK", 0.05)
    monkeypatch.setattr(executors, "SILENCE", 0.1)
    ensemble(slow, KEY, POINTS[:1], runs=1, batch=1, folder=tmp_path)
    there = r"The Dask cluster at inproc://\S+ has "
    with (
        pytest.warns(RuntimeWarning, match=there + r"no workers; it is given up after 0\.5 s without one\."),
        pytest.raises(
            ClusterError,
            match=there
            + r"had no workers for \d s\. 1 of 3 pieces are kept in .*: the same call goes on with the rest\.$",
        ),
    ):
        ensemble(slow, KEY, POINTS, runs=1, batch=1, executor=Dask(threads(0), patience=0.5), folder=tmp_path)


def test_a_lost_scheduler_is_a_sentence_and_the_same_call_goes_on(threads, tmp_path, monkeypatch):
    monkeypatch.setenv("PAUSE", "0.1")
    client = threads(1)

    def lose():
        until(lambda: len(pieces(tmp_path)) >= 2)
        client.loop.add_callback(client.scheduler_comm.comm.abort)

    sentence = r"^The Dask scheduler at \S+ was lost\. (\d+) of 12 pieces are kept in .*: the same call goes on with "
    with meanwhile(lose), pytest.raises(ClusterError, match=sentence) as caught:
        ensemble(slow, KEY, POINTS[:2], runs=6, batch=1, executor=Dask(client), folder=tmp_path)
    rest = ensemble(slow, KEY, POINTS[:2], runs=6, batch=1, folder=tmp_path)
    assert rest.loaded + rest.computed == 12
    said = re.findall(sentence, str(caught.value))
    assert said == [str(rest.loaded)]
    assert 2 <= rest.loaded < 12


def test_a_closed_client_is_a_sentence(threads):
    client = threads(0)
    client.close()
    with pytest.raises(ClusterError, match=r"was lost\. Nothing was kept; with `folder=`, finished pieces are\.$"):
        ensemble(slow, KEY, POINTS, runs=1, executor=Dask(client))


def test_a_cluster_can_be_reached_by_tls(monkeypatch):
    distributed = pytest.importorskip("distributed")
    asked = []

    def client(address, **options):
        asked.append((address, options))
        raise OSError("nobody is there")

    monkeypatch.setattr(distributed, "Client", client)
    security = distributed.Security(tls_ca_file="ca.pem", require_encryption=True)
    with pytest.raises(InputError, match="nobody is there"):
        ensemble(slow, KEY, POINTS, runs=1, executor=Dask("tls://10.0.0.1:8786", security=security))
    assert asked == [("tls://10.0.0.1:8786", {"set_as_default": False, "security": security})]
    with pytest.raises(InputError, match="Argument `security` must come with the address of a scheduler"):
        Dask(object(), security=security)
    with pytest.raises(InputError, match="Argument `patience` must be positive"):
        Dask("tcp://x", patience=0)
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"must name a Dask scheduler that is running, but tls://127\.0\.0\.1:9 d"):
        ensemble(slow, KEY, POINTS, runs=1, executor=Dask("tls://127.0.0.1:9"))  # no certificates


def test_what_cannot_be_pickled_is_refused():
    lock = threading.Lock()

    def function(key, point):
        with lock:
            return {"x": point}

    with pytest.raises(InputError, match="Argument `function` must be picklable to run in other processes, but "):
        ensemble(function, KEY, POINTS, runs=2, executor=Processes(1))
    assert ensemble(function, KEY, POINTS, runs=2).computed == 3


def sweep(folder: str, executor: str) -> None:
    """A sweep for another process to be interrupted in."""
    chosen = {"Local": Local(), "Processes": Processes(1)}[executor]
    ensemble(slow, KEY, POINTS, runs=6, batch=1, executor=chosen, folder=folder)


@pytest.mark.parametrize(
    ("executor", "interrupt"),
    [("Local", signal.SIGINT), ("Processes", signal.SIGINT), ("Processes", signal.SIGKILL)],
)
def test_an_interrupted_sweep_is_resumed(tmp_path, launch, executor, interrupt):
    start = f"import {__name__} as t; t.sweep({str(tmp_path)!r}, {executor!r})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PAUSE": "0.05", "LONG": "60"}
    process = launch("-c", start, env=environment, stderr=subprocess.PIPE, text=True)
    until(lambda: len(pieces(tmp_path)) == 12)
    time.sleep(0.3)  # all are now inside a long run
    family = psutil.Process(process.pid).children(recursive=True)
    if interrupt == signal.SIGINT:
        os.killpg(process.pid, interrupt)  # Ctrl-C on a terminal reaches the workers too
    else:
        process.kill()
    _, said = process.communicate(timeout=15)
    assert psutil.wait_procs(family, timeout=15)[1] == [], "workers outlived the sweep"
    assert process.returncode == -interrupt
    if executor == "Processes":  # the workers have nothing to say
        assert said.count("Traceback") == (interrupt == signal.SIGINT)

    assert len(pieces(tmp_path)) == 12
    rest = ensemble(slow, KEY, POINTS, runs=6, batch=1, folder=tmp_path)
    assert (rest.loaded, rest.computed, rest.damaged) == (12, 6, 0)
    assert same(rest, ensemble(slow, KEY, POINTS, runs=6, batch=1))
