"""The order parameters as an experiment: one sample at several eta, and what a student makes of it."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core import checks, random
from quenched.core.ensemble import OnHost
from quenched.core.types import InputError, Key, Outcome, double
from quenched.outliers import model
from quenched.outliers.learner import Freedom, Learned, Rows, State, learn
from quenched.outliers.simulation import gibbs, models

ACCURACY, PASSES = 1e-13, 10_000
"""Of EM: what may be left to gain in the log-probability of an example, and the steps after which a run is stalled."""

READINGS = ("R", "Q", "Delta", "Phi", "free_energy", "selected", "stalled")
"""What a run gives at each eta."""


def sample(key: Key, law: model.Contaminated, etas: np.ndarray, P: int, size: int) -> Rows:
    """What `law.sample` gives with this key at each eta, times the labels: common noise, and the informative rows."""
    noise, _, u = model.draw(law, key, P, size)
    V = (u < 1 / (1 + np.exp(etas))[:, None]).astype(float)
    return Rows(noise, np.ones(P), np.array([0, P]), V)


def begin(key: Key, start: model.Start, size: int) -> np.ndarray:
    """The centre at the start, the same at every eta."""
    if isinstance(start, model.CarriedStart):
        return begin(key, start.first, size)
    if isinstance(start, model.TeacherStart):
        return float(start.scale) * np.eye(1, size)[0]
    assert isinstance(start, model.RandomStart)
    v = random.normals(key, size)
    return float(start.scale) * v / np.linalg.norm(v)


def solve(
    key: Key, rule: model.Rule, rows: Rows, gamma: float, etas: np.ndarray, c: np.ndarray, search: model.Search
) -> Learned:
    """What the student finds at each eta from the centre `[N]`, by the learner behind `fit`."""
    one, student = np.ones(len(etas)), model.SoftSelection() if isinstance(rule, model.Gibbs) else rule
    state = State(np.tile(c, (len(etas), 1, 1)), 0 * one[:, None], gamma * one, one, etas)
    found = learn(student, rows, state, Freedom(float(len(c))), accuracy=ACCURACY, passes=PASSES, search=search)
    return gibbs.draw(key, rows, state, found, float(rule.temperature)) if isinstance(rule, model.Gibbs) else found


def observe(found: Learned) -> dict[str, np.ndarray]:
    """Order parameters at each eta. [dietrich1998, eqs. (13), (14), erratum E8]"""
    c, P = found.state.centres[:, 0], found.sums.p.shape[1]
    R, Q = c[:, 0], np.sum(c**2, axis=1)
    alive = Q > 0
    cosine = np.where(alive, R / np.sqrt(np.where(alive, Q, 1.0)), 0.0)
    Phi = np.arccos(np.clip(cosine, -1.0, 1.0)) / np.pi
    stalled = (found.outcome != Outcome.converged).astype(float)
    energy, selected = found.energy / c.shape[1], found.sums.mass[:, 0] / P
    return dict(zip(READINGS, (R, Q, Q - 2 * R + 1, Phi, energy, selected, stalled), strict=True))


def run_once(key: Key, point: Any, *, P: int, size: int, search: model.Search) -> dict[str, np.ndarray]:
    """Order parameters at rising eta on one sample."""
    law, rule, start, etas = point
    sampling, starting, drawing = jax.random.split(key, 3)
    rows, c = sample(sampling, law, etas, P, size), begin(starting, start, size)
    gamma = float(model.gamma_of(law, rule))
    if not isinstance(start, model.CarriedStart):
        return observe(solve(drawing, rule, rows, gamma, etas, c, search))
    path = []
    for k, one in enumerate(jax.random.split(drawing, len(etas))):
        at = slice(k, k + 1)
        path.append(observe(found := solve(one, rule, rows.take(at), gamma, etas[at], c, search)))
        c = found.state.centres[0, 0]
    return {name: np.concatenate([one[name] for one in path]) for name in READINGS}


@double
def measure(
    law: model.Contaminated | model.ModelLaw, rule: model.Rule | model.ModelRule, *, alpha: Any, size: int, runs: int,
    key: Key,
    start: model.Start | None = None, search: model.Search | None = None, batch: int | None = None,
    executor: Any = None, folder: Any = None, **sweep: Any,
) -> xr.Dataset:  # fmt: skip
    r"""What students find on random samples with outliers.

    Args:
        law: `Contaminated(gamma, eta)`, or for selection around a model `WrongLabels()` or `WrongTargets()`.
        rule: `SoftSelection()`, `HardSelection()`, `Hebb()` or `Gibbs()`; around a model `SelectedLogistic()` or
            `SelectedSquares()`, the selection of the estimators with all examples in one fold and a known share.
        alpha: examples per dimension; $P = \alpha N$ is rounded to a whole number.
        size: the dimension $N$.
        runs: how many independent samples.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        start: `RandomStart()` (default), as a student must who does not know the teacher; `TeacherStart()`, to stay
            with the teacher while there is a minimum near it: the default of hard selection, whose iteration stops
            at one of very many selections, and from random starts at a bad one already where the best one is good;
            or `CarriedStart()`, from each eta to the next larger one.
        search: of hard selection: `Flips()` (default), flips of single examples after EM until none lowers the energy;
            or `Iteration()`, EM alone.
        batch: runs in a piece of the work.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result. All `eta` are met by
            each run, on the same noise.

    Returns:
        `R`, `Q`, `Delta`, `Phi`, `free_energy` and `selected`, the mean weight of an example, each with `_stderr` and
        `_run`; and `runs`, `failed`, `outcome`. `free_energy` is the energy over N of the vector that was found or, by
        `Gibbs`, drawn.

    Examples:
        >>> import jax
        >>> from quenched.outliers.model import Contaminated, SoftSelection
        >>> from quenched.outliers.simulation import measure
        >>> given = {"alpha": 10.0, "size": 20, "runs": 4, "key": jax.random.key(0)}
        >>> points = measure(Contaminated(), SoftSelection(), eta=[0.0, 2.0], **given)
        >>> bool(points.Delta[0] < points.Delta[1])
        True
    """
    size = checks.whole("size", size, least=1)
    if isinstance(law, model.ModelLaw):
        if start is not None or search is not None:
            raise InputError("Arguments `start` and `search` must not be given with selection around a model, "
                             "which starts at all examples, but one is.")  # fmt: skip
        how = {"batch": batch, "executor": executor, "folder": folder}
        model.MODELS.check_pair(law, rule)
        around: Any = rule
        return models.measure(law, around, alpha=alpha, size=size, runs=runs, key=key, sweep=sweep, **how)
    question = model.SCIENCE.ask(law, rule, sweep, alpha=alpha, through="eta")
    if start is None:
        start = model.TeacherStart() if isinstance(rule, model.HardSelection) else model.RandomStart()
    checks.kind("start", start, model.Start, "RandomStart(), TeacherStart() or CarriedStart()")
    search = model.Flips() if search is None else search
    checks.kind("search", search, model.Search, "Flips() or Iteration()")
    etas = question.axes["eta"]
    points = [(*pair, start, etas) for pair in question.plan.pairs]
    outputs, work = {name: (len(etas),) for name in READINGS}, []
    for one in question.axes["alpha"]:  # the shape of the data depends on alpha
        P = checks.examples(one, size, least=1)
        run = functools.partial(run_once, P=P, size=size, search=search)
        work.append((OnHost(run, outputs, bytes=8 * P * (2 * size + 4 * len(etas))), points))
    return question.measure(
        work, key=key, runs=runs, batch=batch, executor=executor, folder=folder, label="samples", size=size, start=start
    )
