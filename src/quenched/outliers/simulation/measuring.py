"""The order parameters as an experiment."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr

from quenched.core import checks, results
from quenched.core.ensemble import ensemble
from quenched.core.types import Key, double
from quenched.outliers.model import ORDER_PARAMETERS, Contaminated, Rule, Start
from quenched.outliers.simulation.runs import ask, one_run


@double
def measure(
    law: Contaminated,
    rule: Rule,
    *,
    alpha: Any,
    size: int,
    runs: int,
    key: Key,
    start: Start | None = None,
    descend: bool = True,
    batch: int | None = None,
    executor: Any = None,
    folder: Any = None,
    **sweep: Any,
) -> xr.Dataset:
    r"""The order parameters as an experiment.

    Args:
        law: the world.
        rule: the student.
        alpha: examples per dimension; $P = \alpha N$ is rounded to a whole number.
        size: the dimension $N$.
        runs: how many independent samples.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        start: `RandomStart()` (default), as a student must who does not know the teacher; `TeacherStart()`, to stay
            with the teacher while there is a minimum near it: the default of hard selection, whose iteration stops
            at one of very many selections, and from random starts at a bad one already where the best one is good;
            or `CarriedStart()`, from each eta to the next larger one.
        descend: in hard selection, whether to flip single examples after EM until no flip lowers the energy.
        batch: runs computed side by side; by default what fits in memory.
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
    swept, alphas = np.ndim(sweep.get("eta", 0)) > 0, checks.increasing("alpha", alpha)
    asked = ask(law, rule, start, sweep)
    parts = []
    for one in alphas:  # the shape of the data changes with alpha: each is a program of its own
        run = functools.partial(one_run, P=checks.examples(one, size, least=1), size=size, descend=bool(descend))
        done = ensemble(
            run, key, asked.points, runs=runs, batch=batch, executor=executor, folder=folder, label="samples"
        )
        parts.append(
            results.assemble_runs(
                done.ordered(asked.order), asked.plan, {"eta": asked.etas[asked.order]},
                ORDER_PARAMETERS | dict.fromkeys(done.values, ()), {}, size=size, seed=results.seed(key),
                start=results.describe(asked.points[0][2]), science="outliers", source="simulation",
            )
        )  # fmt: skip
    result = results.stack(parts, "alpha", alpha)
    if not swept:
        return result.isel(eta=0, drop=True)
    return result.assign_attrs(sweep=" ".join([*asked.plan.dims, "eta"]))
