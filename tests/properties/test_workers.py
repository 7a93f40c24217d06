"""The same key gives the same numbers here, in another process, and after an interruption, in every science."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import numpy as np
import pytest
import xarray as xr
from tinygp import kernels

import quenched
from quenched import fields, mixtures, outliers, processes, prototypes
from quenched.core.ensemble import Executor, Local, executors
from tests.conftest import CACHE
from tests.properties.arguments import LINE, flat, prior_on, table
from tests.properties.common import KEY

RUNS = {"runs": 4, "batch": 2, "key": KEY}


def _table() -> processes.Empirical:
    return processes.Empirical(table(12, 2, 0), table(12, 1, 1)[:, 0])


MEASURED: dict[str, Any] = {
    "prototypes": lambda **where: prototypes.measure(
        prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2), alpha=[1.0, 2.0], size=8, tests=20,
        simulator=prototypes.Chain(), **RUNS | {"runs": 66, "batch": 64}, **where,  # a program that others use, too
    ),
    "mixtures": lambda **where: mixtures.measure(
        mixtures.TwoGaussians(2.0), mixtures.MaximumLikelihood(1.0), alpha=2.0, size=8, tests=20,
        start=mixtures.RandomStart(), **RUNS, **where,
    ),
    "outliers": lambda **where: outliers.measure(
        outliers.Contaminated(10.0), outliers.SoftSelection(), alpha=2.0, size=8, **RUNS, **where
    ),
    "processes": lambda **where: processes.measure(
        _table(), processes.GaussianProcess(kernels.ExpSquared(1.0), 0.1), examples=6.0, simulator=processes.Plain(),
        **RUNS, **where,
    ),
    "fields": lambda **where: fields.measure(
        fields.TrueDensity(LINE, flat),
        fields.MaximumPosterior(fields.LogDensity(LINE), prior_on(LINE)), examples=5, **RUNS, **where,
    ),
}  # fmt: skip
"""A small measurement of every science."""


@dataclasses.dataclass(frozen=True)
class Pool(Executor):
    """`Processes` with a pool that outlives a call, so that five sciences start it once."""

    pool: futures.ProcessPoolExecutor

    def run(self, program: Any, pieces: Any) -> Iterator[tuple[int, Any]]:
        """Give the results as they are completed."""
        payload = executors._packed(program)
        places = {self.pool.submit(executors._run, piece, payload): i for i, piece in enumerate(pieces)}
        for done in futures.as_completed(places):
            yield places[done], done.result()


@pytest.fixture(scope="module")
def elsewhere():
    """Another process, which finds compiled programs where this one left them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))
        patched.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patched.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
        with futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            yield Pool(pool)


def same(one: xr.Dataset, other: xr.Dataset) -> None:
    """Equal to the last bit, and in what is said."""
    xr.testing.assert_identical(one, other)
    assert all(one[name].values.tobytes() == other[name].values.tobytes() for name in one.data_vars)


def test_every_science_is_measured():
    assert sorted(MEASURED) == sorted(quenched.SCIENCES)


@pytest.mark.parametrize("science", MEASURED)
def test_another_process_and_a_resumed_folder_give_the_same_numbers(science, elsewhere, tmp_path):
    measure = MEASURED[science]
    alone = measure(executor=Local(), folder=tmp_path)
    same(alone, measure(executor=elsewhere))
    pieces = sorted(tmp_path.glob("*.piece"))
    assert len(pieces) == 2
    pieces[0].unlink()
    pieces[1].write_bytes(pieces[1].read_bytes()[:-20])  # the last one was being written
    resumed = measure(folder=tmp_path)
    assert "damaged" in resumed.attrs.pop("messages")
    same(alone, resumed)
    assert np.all(resumed.failed == 0)
