r"""The learning curve: theory where its self-check passes, honest draws elsewhere.

Draws are Gaussian processes trained on random data sets, as many as the required standard error takes. By default the
theory is tried first. With `cheapest` a few draws show how many that would take, and whichever way costs less is taken;
after a failed check the theory is then not tried again before the size has doubled, since its trouble does not vanish
from one size to the next. Operations are counted, not seconds, so that the same call gives the same answer.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from quenched.core import checks, results
from quenched.core.ensemble import Ensemble, ensemble
from quenched.core.progress import track
from quenched.core.types import Key, Outcome, double
from quenched.processes import kernels
from quenched.processes.model import MEASURES, Empirical, GaussianProcess, Total, ask, total_of
from quenched.processes.simulation.measure import LatinHypercube, block_of, finish
from quenched.processes.theory.closures import Closure
from quenched.processes.theory.curve import LARGEST_EXACT, Solver, answer

if TYPE_CHECKING:
    import xarray as xr

BLOCK = LatinHypercube(draws=4)
"""Draws that are stratified together; few, so that the error of their mean is known from many blocks."""
PILOT, FEWEST_BLOCKS, MOST_BLOCKS = 4, 16, 128
"""Blocks from which the number needed is estimated; the fewest for a standard error, since with fewer draws would stop
where it happens to look small; and the most, after which a size is reported as it is, marked as stalled."""
CHECKS = ("self_check_error", "self_check_variance", "self_check_shift_error", "self_check_shift_variance")
"""The self-check of the theory."""
THEORY_COST, DRAW_COST = 40.0, 1.8
r"""Operations of the theory, in units of $N^3$, and of a draw, in units of its distinct rows cubed."""


@double
def curve(
    law: Empirical, rule: GaussianProcess, *, examples: Any, accuracy: float = 0.03, cheapest: bool = False,
    total: Total | None = None, closure: Closure | None = None, rank: int | None = None, key: Key | None = None,
    executor: Any = None, folder: Any = None, **sweep: Any,
) -> xr.Dataset:  # fmt: skip
    """The learning curve: theory at every size where its self-check passes, honest draws at the others.

    Args:
        law: the world.
        rule: the student.
        examples: mean numbers $m$ of rows in a data set, increasing, or one. Beyond $N$ rows are repeated ever more
            often, which makes the noise smaller without new information; to look beyond the data use `forecast`.
        accuracy: relative standard error of the out-of-bag error up to which draws are made, where draws are made.
        cheapest: whether to take draws also where they reach the accuracy for less work than the theory.
        total: `PoissonTotal()` (default), a Poisson number of rows of mean $m$, or `FixedTotal()`, just $m$ rows.
        closure: `Cavity()` (default) or `Variational()`.
        rank: columns of a low-rank factor of the kernel for the theory of large tables.
        key: a JAX key for the draws; the same key gives the same numbers.
        executor: where draws are made: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished draws are kept.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        Over `examples`: the measures of `processes.measure`, each with `_stderr` (0 where it is theory); `source`,
        "theory" (its self-check passed), "draws" or, on tables too large for draws, "theory, not trusted"; `draws`, how
        many were made; `outcome`, stalled where `accuracy` was not reached; the self-check, other estimates and own
        units as from `theory.curve`.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from tinygp import kernels
        >>> from quenched import processes
        >>> law = processes.Empirical(*load_diabetes(return_X_y=True))
        >>> rule = processes.GaussianProcess(kernels.ExpSquared(0.3), noise=0.5)
        >>> processes.curve(law, rule, examples=[100, 442]).source.values.tolist()
        ['theory', 'theory']
    """
    total, cheapest = total_of(total), checks.flag("cheapest", cheapest)
    question = ask(law, rule, sweep, examples, total)
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    key = jax.random.key(0) if key is None else checks.key(key)
    sizes = question.axes["examples"]

    def solve_sizes(solver: Solver, law: Empirical, rule: GaussianProcess) -> list[dict[str, Any]]:
        draws = Draws(law, rule, sizes, key, executor, folder, total)
        points, next_try, too_large = [], 0.0, law.rows > LARGEST_EXACT
        for i, m in enumerate(track(list(sizes), "learning curve")):
            found: dict[str, Any] = dict.fromkeys(CHECKS, np.nan)
            if too_large or (m >= next_try and not (cheapest and draws.are_cheaper(i, accuracy))):
                found = solver.solve(float(m))
                next_try = 2 * m if cheapest and not found["trusted"] else 0.0
            if too_large or found.get("trusted"):
                point = {name: found[name] for name in (*MEASURES, "outcome")}
                point |= {f"{name}_stderr": np.zeros_like(found[name]) for name in MEASURES}
                point |= {"source": "theory" if found["trusted"] else "theory, not trusted", "draws": 0}
            else:
                point = draws.draw(i, accuracy)
            points.append(point | {name: found[name] for name in CHECKS})
        return points

    dims = {f"{name}_stderr": own for name, own in MEASURES.items()}
    how = {"source": "theory and draws", "accuracy": accuracy, "seed": results.seed(key), "dims": dims}
    return answer(question, solve_sizes, total, closure, rank, **how)


class Draws:
    """Honest draws at given sizes, more on demand; all sizes share their random numbers."""

    def __init__(
        self, law: Empirical, rule: GaussianProcess, sizes: np.ndarray, key: Key, executor: Any, folder: Any,
        total: Total | None = None,
    ):  # fmt: skip
        self._sizes, self._key, self._where = sizes, key, {"executor": executor, "folder": folder}
        self.rows, self._run = law.rows, block_of(law.rows, 1, BLOCK, total_of(total), longest=sizes[-1])
        self._numbers = functools.cache(lambda: kernels.numbers_of(law, rule)[0])  # only if there is a draw
        self._made: dict[int, Ensemble] = {}

    def blocks(self, i: int, count: int) -> Ensemble:
        """At least `count` blocks at size number `i`; those made before are kept."""
        point = self._numbers(), self._sizes[i : i + 1]
        made = self._made[i].failed.shape[1] if i in self._made else 0
        if made < count:
            key, runs = jax.random.fold_in(self._key, made), PILOT * math.ceil((count - made) / PILOT)  # for all sizes
            more = ensemble(self._run, key, [point], runs=runs, batch=PILOT, label="data sets", **self._where)
            self._made[i] = _join(self._made[i], more) if made else more
        return finish(self._made[i], [point], BLOCK.draws)

    def are_cheaper(self, i: int, accuracy: float) -> bool:
        """Whether draws reach the accuracy with less work than the theory takes, by what a few of them show."""
        affordable = THEORY_COST / (BLOCK.draws * DRAW_COST * (-math.expm1(-self._sizes[i] / self.rows)) ** 3)
        if affordable <= FEWEST_BLOCKS:
            return False
        pilot = self.blocks(i, PILOT)
        spread = float(pilot.stderr("oob_error")[0, 0] / pilot.mean("oob_error")[0, 0]) * pilot.failed.shape[1] ** 0.5
        needed = math.ceil((spread / accuracy) ** 2) if math.isfinite(spread) else MOST_BLOCKS
        return needed < affordable

    def draw(self, i: int, accuracy: float) -> dict[str, Any]:
        """A size by draws, with a standard error of at most the accuracy, or marked as stalled."""
        wanted = FEWEST_BLOCKS
        while True:
            done = self.blocks(i, wanted)
            count, mean, stderr = done.failed.shape[1], done.mean("oob_error")[0, 0], _stderr(done, "oob_error")
            if stderr <= accuracy * mean or count >= MOST_BLOCKS:
                break
            wanted = min(MOST_BLOCKS, max(count + 1, math.ceil(count * min((stderr / (accuracy * mean)) ** 2, 4.0))))
        point = {name: done.mean(name)[0, 0] for name in MEASURES}
        # a multiplicity that never came has no mean, and as in `measure` an infinite standard error
        errors = {name: _stderr(done, name) for name in MEASURES}
        point |= {f"{name}_stderr": np.where(np.isnan(error), np.inf, error) for name, error in errors.items()}
        reached = Outcome.converged if stderr <= accuracy * mean else Outcome.stalled
        return {**point, "source": "draws", "draws": count * BLOCK.draws, "outcome": reached}


def _stderr(done: Ensemble, name: str) -> np.ndarray:
    """The standard error of a mean over blocks, times the standard deviation of Student's distribution."""
    n = int(np.sum(~done.failed))
    return done.stderr(name)[0, 0] * (math.sqrt((n - 1) / (n - 3)) if n > 3 else np.inf)


def _join(first: Ensemble, then: Ensemble) -> Ensemble:
    """The runs of both."""
    values = {name: np.concatenate([first.values[name], then.values[name]], axis=1) for name in first.values}
    failed = np.concatenate([first.failed, then.failed], axis=1)
    return dataclasses.replace(then, values=values, failed=failed, messages=first.messages + then.messages)
