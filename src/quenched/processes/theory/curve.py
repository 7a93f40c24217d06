r"""The learning curve in theory: every size by itself, with a check of how far it can be trusted.

Sizes are solved in ascending order, each from the solution before it, which lies above it; a start from a larger size
breaks Newton's method at low noise. All of it runs in NumPy, and nothing is compiled but the kernel; on an accelerator
arrays are those of JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, system, verbs
from quenched.core.progress import track
from quenched.core.types import Array, InputError, Outcome, double
from quenched.processes import kernels
from quenched.processes.model import Empirical, FixedTotal, GaussianProcess, Total, ask, total_of
from quenched.processes.theory import crossings, responses, trust
from quenched.processes.theory.closures import Cavity, Closure, closure_of, counts_of
from quenched.processes.theory.responses import Covariance
from quenched.processes.theory.state import Solution, measures_of, solve

if TYPE_CHECKING:
    import xarray as xr

LARGEST_EXACT = 20_000
"""Rows beyond which a matrix of all pairs is not attempted (3 GB each, and several are needed)."""


class Reference(NamedTuple):
    """What all rows together give, each once: no average, no approximation."""

    training_error: float
    leave_one_out: float
    no_information: float  # error of predictions for the targets of other rows
    residuals: np.ndarray  # [N] y_i minus the prediction without row i


def reference(prior: Covariance, y: Array, s2: Array) -> Reference:
    r"""From the response $G$ at $u = 1/\sigma^2$: $(K + \sigma^2)^{-1} = (1 - G/\sigma^2)/\sigma^2$."""
    response = prior.respond(0 * y + 1 / s2)
    trained = y - response.apply(y) / s2
    trained, left_out = (np.asarray(x) for x in (trained, trained / (1 - response.diagonal() / s2)))
    f = np.asarray(y) - trained
    no_information = float(np.var(f) + np.var(f + trained) + np.mean(trained) ** 2)
    return Reference(float(np.mean(trained**2)), float(np.mean(left_out**2)), no_information, left_out)


def estimates_632(oob: np.ndarray, known: Reference) -> tuple[np.ndarray, np.ndarray]:
    """The .632 and .632+ estimates of Efron and Tibshirani from an out-of-bag error."""
    err, gamma = known.training_error, known.no_information
    capped = np.minimum(oob, gamma)
    overfit = np.where((capped > err) & (gamma > err), (capped - err) / max(gamma - err, 1e-300), 0.0)
    weight = 0.632 / (1 - 0.368 * overfit)
    return 0.368 * err + 0.632 * oob, (1 - weight) * err + weight * capped


class Solver:
    """The theory of one law and rule, size after size.

    Attributes:
        about: facts about the kernel: `jitter`, and for a low rank what it neglects.
        reference: errors that need no average, exact.
    """

    def __init__(
        self, law: Empirical, rule: GaussianProcess, closure: Closure | None = None, rank: int | None = None,
        total: Total | None = None,
    ):  # fmt: skip
        self.closure, self.rows, self._fixed = closure_of(closure), law.rows, isinstance(total_of(total), FixedTotal)
        # whether what the closure leaves out can be computed, and not only bounded
        self._sums_walks = isinstance(self.closure, Cavity) and self.rows <= crossings.LARGEST
        if self._sums_walks:
            system.require_memory(f"The kernel matrices of {law.rows} rows", crossings.MATRICES * 8.0 * law.rows**2)
        if rank is not None:
            prior = responses.factorise(law, rule, checks.whole("rank", rank, least=1))
            neglected = np.asarray(prior.E) / responses.KEPT
            share, largest = float(neglected.sum() / np.sum(prior.diagonal())), float(neglected.max())
            self.about = {"jitter": 0.0, "neglected": share, "neglected_largest": largest}
        elif law.rows > LARGEST_EXACT:
            raise InputError(f"A table of more than {LARGEST_EXACT} rows needs a low-rank kernel, but there are "
                             f"{law.rows}: give `rank`, such as rank=512.")  # fmt: skip
        else:
            n, jitter = kernels.numbers_of(law, rule)
            prior, self.about = responses.Exact(n.K), {"jitter": jitter}
        arrays: Any = prior, np.asarray(law.standard(), float), np.asarray(rule.noise, float)
        self._prior, self._y, self._s2 = arrays if jax.default_backend() == "cpu" else jax.tree.map(jnp.asarray, arrays)
        self.reference = reference(self._prior, self._y, self._s2)
        self._known = [(0.0, self._prior.diagonal())]  # sizes and their solutions, ascending

    @np.errstate(all="ignore")  # what is not finite becomes an outcome
    def solve(self, m: float) -> dict[str, np.ndarray]:
        """All measures at one size, with the self-check; sizes must be asked for in ascending order."""
        found, response = self._close(m)
        check = trust.check_clusters(found, response, self._y, self._s2, counts_of(m / self.rows))
        final, shift = self._correct(found, response, m)
        values = measures_of(final, self._y, self._s2)._asdict()
        values |= {"self_check_error": check.oob_error, "self_check_variance": check.oob_variance}
        values |= {"self_check_shift_error": shift.oob_error, "self_check_shift_variance": shift.oob_variance}
        if isinstance(self._prior, responses.LowRank):
            values["variance_bound"] = responses.variance_bound(self._prior, final.g, final.u)
        row = {name: np.asarray(x) for name, x in values.items()}
        trusted = trust.is_trusted(check, shift, self._sums_walks)
        return {**row, "trusted": np.asarray(trusted) & (row["outcome"] == Outcome.converged)}

    def _close(self, m: float) -> tuple[Solution, Covariance]:
        """The closure at one size, from the largest known size below it."""
        start = [g for size, g in self._known if size <= m][-1]
        found, response = solve(self._prior, self._y, self._s2, counts_of(m / self.rows), self.closure, start)
        if found.outcome == Outcome.converged:  # otherwise the next size begins where this one did
            prior, *others = self._known
            self._known = [prior, *sorted([*others[-3:], (m, found.g)], key=lambda known: known[0])]
        return found, response

    def _correct(self, found: Solution, response: Covariance, m: float) -> tuple[Solution, crossings.Shift]:
        """The solution with what the closure leaves out, where that is small, and how much it is."""
        final = found
        if self._sums_walks:
            G = response.rows(np.arange(self.rows))  # pyright: ignore[reportArgumentType]
            final = crossings.add_walks(found, G, self._y, self._s2, counts_of(m / self.rows))
        shift = crossings.shift(found, final)
        if self._fixed or not self._sums_walks:
            sizes, weights = crossings.nodes(m)
            after = crossings.average_total(found, [self._close(float(size))[0] for size in sizes], weights)
            both = zip(shift, crossings.shift(found, after), strict=True)
            shift = crossings.Shift(*(max(pair, key=abs) for pair in both))
            if self._fixed and isinstance(self.closure, Cavity):
                final = crossings.fix_total(final, found, after, self._y)
        return final if trust.is_small(shift, self._sums_walks) else found, shift


@double
def curve(
    law: Empirical, rule: GaussianProcess, *, examples: Any, total: Total | None = None, closure: Closure | None = None,
    rank: int | None = None, **sweep: Any,
) -> xr.Dataset:  # fmt: skip
    """The learning curve in theory, with its self-check: no training, no resampling.

    Args:
        law: the world.
        rule: the student.
        examples: mean numbers $m$ of rows in a data set, increasing, or one; beyond $N$ see `processes.curve`.
        total: `PoissonTotal()` (default), a Poisson number of rows of mean $m$, or `FixedTotal()`, just $m$ rows.
        closure: `Cavity()` (default) or `Variational()`; the latter as it is printed, whatever the total.
        rank: columns of a low-rank factor of the kernel, for large tables; exact if not given.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        The measures of `processes.measure` over `examples`, with `trusted` (the self-check passed), `self_check_error`
        and `self_check_variance` (how far clusters of neighbours are from the closure), `self_check_shift_error` and
        `self_check_shift_variance` (what rows do together, as a share: added where it is little), `error_632`,
        `error_632plus`, `rmse` and `oob_rmse` in the target's own units, `training_error`, `leave_one_out` and
        `outcome`.
    """
    total = total_of(total)
    question = ask(law, rule, sweep, examples, total)

    def solve_sizes(solver: Solver, law: Empirical, rule: GaussianProcess) -> list[dict[str, Any]]:
        del law, rule
        return [solver.solve(m) for m in track(list(question.axes["examples"]), "theory")]

    return answer(question, solve_sizes, total, closure, rank, source="theory")


def answer(
    question: verbs.Question, solve_sizes: Callable[[Solver, Empirical, GaussianProcess], list[dict[str, Any]]],
    total: Total, closure: Closure | None, rank: int | None, **how: Any,
) -> xr.Dataset:  # fmt: skip
    """The result of a question, from a function that gives all measures of a law and a rule at each size."""
    values, about = [], {"total": type(total).__name__, "rank": rank or 0, **how}
    for law, rule in question.plan.pairs:
        solver = Solver(law, rule, closure, rank, total)
        rows = solve_sizes(solver, law, rule)
        point = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        known, (centre, scale) = solver.reference, (float(unit) for unit in law.units())
        plain, plus = estimates_632(point["oob_error"], known)
        rmse, oob_rmse = (scale * np.sqrt(point[name]) for name in ("error", "oob_error"))
        values.append({**point, "error_632": plain, "error_632plus": plus, "rmse": rmse, "oob_rmse": oob_rmse})
        about = {
            "closure": type(solver.closure).__name__, "target_centre": centre, "target_scale": scale, **solver.about,
            "training_error": known.training_error, "leave_one_out": known.leave_one_out, **about,
        }  # fmt: skip
    return question.answer({name: np.stack([value[name] for value in values]) for name in values[0]}, **about)
