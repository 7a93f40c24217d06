r"""The learning curve in theory: every size by itself, with what may be said about it.

Sizes are solved in ascending order, each from the solution before it, which lies above it; a start from a larger size
breaks Newton's method at low noise. Other measures than the squared error come from the Gaussian approximation: over
data sets the prediction at a row is normal with the mean and spread that the theory gives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.special import ndtr, ndtri

from quenched.core import checks, controls, results, system
from quenched.core.progress import track
from quenched.core.types import Array, InputError, Outcome, Real, double, require_double
from quenched.processes.model import (
    LEVEL,
    MEASURES,
    MULTIPLICITIES,
    Empirical,
    FixedTotal,
    GaussianProcess,
    Total,
    check_pair,
    coordinates,
    declared,
    numbers,
    sizes_of,
    total_of,
)
from quenched.processes.theory import crossing, lowrank, trust
from quenched.processes.theory.algebra import Algebra, Exact, Response
from quenched.processes.theory.closures import Cavity, Closure, closure_of, terms_for
from quenched.processes.theory.solution import Solution, solve, solved

LARGEST_EXACT = 20_000
"""Rows beyond which a matrix of all pairs is refused (3 GB each, and several are needed)."""


class State(NamedTuple):
    """A learning curve at one size: averages over rows, and rows. Errors are shares of the target's variance."""

    posterior_variance: Array
    oob_variance: Array
    error: Array
    oob_error: Array
    absolute_error: Array
    oob_absolute_error: Array
    coverage: Array
    oob_coverage: Array
    mean: Array  # [N]
    spread: Array  # [N]
    point_variance: Array  # [N]
    point_error: Array  # [N]
    point_oob_error: Array  # [N]
    multiplicity_error: Array  # [4]
    outcome: Array
    residual: Array


def state(law: Empirical, rule: GaussianProcess, examples: Real, closure: Closure | None = None) -> State:
    r"""The closure at one size: a pure JAX function of law, rule and size, to be compiled and differentiated.

    `curve` adds what the closure leaves out, at trusted sizes a few percent at most; here is the closure alone. The
    equations are exact in the kernel ($O(N^3)$). Derivatives with respect to kernel parameters, noise, targets, inputs
    and `examples` are those of the solution, by one implicit step.

    Args:
        law: the world.
        rule: the student.
        examples: $m$, the mean number of rows in a data set.
        closure: `Cavity()` by default.

    Raises:
        InputError: in single precision.

    Examples:
        >>> import jax
        >>> from sklearn.datasets import load_diabetes
        >>> from tinygp import kernels
        >>> from quenched import processes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> law = processes.Empirical(X[:60], y[:60])
        >>> rule = processes.GaussianProcess(kernels.ExpSquared(0.3), noise=0.1)
        >>> with jax.enable_x64(True):
        ...     slope = jax.jit(jax.grad(lambda rule: processes.theory.state(law, rule, 60.0).oob_error))(rule)
        >>> float(slope.noise) < 0
        True
    """
    require_double("processes.theory.state")
    n = numbers(law, rule)
    mu, algebra = jnp.asarray(examples, float) / law.rows, Exact(n.K)
    found, _ = solve(algebra, n.y, n.s2, mu, closure_of(closure), algebra.prior(), terms=terms_for(mu))
    return _measures(found, n.y, n.s2)


def _measures(found: Solution, y: Array, s2: Array) -> State:
    """Averages over rows, and other measures than the squared error."""
    b, b_oob = found.mean - y, found.oob_mean - y
    V_oob = jnp.maximum(found.oob_error - jnp.square(b_oob), 0.0)
    k = jnp.arange(MULTIPLICITIES)[:, None]
    given = found.oob_error / jnp.square(1 + k * found.oob_variance / s2)
    inside, outside = found.g + s2, found.oob_variance + s2
    return State(
        jnp.mean(found.g), jnp.mean(found.oob_variance), jnp.mean(found.error), jnp.mean(found.oob_error),
        jnp.mean(_absolute(b, found.spread)), jnp.mean(_absolute(b_oob, V_oob)),
        jnp.mean(_coverage(b, found.spread, inside)), jnp.mean(_coverage(b_oob, V_oob, outside)),
        found.mean, found.spread, found.g, found.error, found.oob_error, jnp.mean(given, axis=1),
        found.outcome, found.residual,
    )  # fmt: skip


def _absolute(b: Array, V: Array) -> Array:
    r"""$\langle |b + \sqrt V z| \rangle$ over a standard normal $z$."""
    sd = jnp.sqrt(jnp.where(V > 0, V, 1.0))
    x = b / sd
    folded = sd * jnp.sqrt(2 / jnp.pi) * jnp.exp(-jnp.square(x) / 2) + b * (1 - 2 * ndtr(-x))
    return jnp.where(V > 0, folded, jnp.abs(b))


def _coverage(b: Array, V: Array, variance: Array) -> Array:
    r"""The probability that $|b + \sqrt V z|$ is inside the predictive interval of the given variance."""
    half = ndtri((1 + LEVEL) / 2) * jnp.sqrt(variance)
    sd = jnp.sqrt(jnp.where(V > 0, V, 1.0))
    return jnp.where(V > 0, ndtr((half - b) / sd) - ndtr((-half - b) / sd), jnp.abs(b) < half)


class Reference(NamedTuple):
    """What all rows together give, each once: no average, no approximation."""

    training_error: float
    leave_one_out: float
    no_information: float  # error of predictions for the targets of other rows
    residuals: np.ndarray  # [N] y_i minus the prediction without row i

    def errors(self) -> dict[str, float]:
        """The two errors, as attributes of a result."""
        return {"training_error": self.training_error, "leave_one_out": self.leave_one_out}


def reference(algebra: Algebra, y: Array, s2: Array, rows: int) -> Reference:
    r"""Training error and exact leave-one-out error of the process on all rows.

    With $A = K + \sigma^2$ and $G$ the response at $u = 1/\sigma^2$: $A^{-1} = (1 - G/\sigma^2)/\sigma^2$.
    """
    trained, left_out = (np.asarray(x)[:rows] for x in _residuals(algebra, y, s2))
    f = np.asarray(y)[:rows] - trained
    no_information = float(np.var(f) + np.var(f + trained) + np.mean(trained) ** 2)
    return Reference(float(np.mean(trained**2)), float(np.mean(left_out**2)), no_information, left_out)


@jax.jit
def _residuals(algebra: Algebra, y: Array, s2: Array) -> tuple[Array, Array]:
    response = algebra.response(jnp.full_like(y, 1 / s2))
    trained = y - response.apply(y) / s2
    return trained, trained / (1 - response.diagonal() / s2)


def estimates_632(oob: np.ndarray, known: Reference) -> tuple[np.ndarray, np.ndarray]:
    """The .632 and .632+ estimates of Efron and Tibshirani from an out-of-bag error."""
    err, gamma = known.training_error, known.no_information
    capped = np.minimum(oob, gamma)
    overfit = np.where((capped > err) & (gamma > err), (capped - err) / max(gamma - err, 1e-300), 0.0)
    weight = 0.632 / (1 - 0.368 * overfit)
    return 0.368 * err + 0.632 * oob, (1 - weight) * err + weight * capped


class Solver:
    """The theory of one law and rule, size after size.

    Sizes must be asked for in ascending order: each begins at the solution of the one before.

    Attributes:
        about: facts about the kernel: `jitter`, and for a low rank what it neglects.
        reference: errors that need no average, exact.
    """

    def __init__(
        self, law: Empirical, rule: GaussianProcess, closure: Closure | None = None, rank: int | None = None,
        total: Total | None = None,
    ):  # fmt: skip
        self.closure, self.total = closure_of(closure), total_of(total)
        self.rows = law.rows
        if self._sums_walks:
            system.require_memory(f"The kernel matrices of {law.rows} rows", crossing.MATRICES * 8.0 * law.rows**2)
        self._algebra, self._y, self._s2, self.about, self._factor = _prepare(law, rule, rank)
        self.reference = reference(self._algebra, self._y, self._s2, law.rows)
        self._known = [(0.0, self._algebra.prior())]  # sizes and their solutions, ascending

    def at(self, m: float) -> dict[str, np.ndarray]:
        """All measures at one size, with the self-check."""
        mu, terms, y, s2, N = jnp.asarray(m / self.rows), terms_for(m / self.rows), self._y, self._s2, self.rows
        found, response = self._solved(m)
        check = trust.cluster_check(found, response, y, s2, mu, terms=terms, rows=N)
        final, shift = self._corrected(self._cut(found), response, m)
        values = _compiled_measures(final, y[:N], s2)._asdict()
        values |= {"self_check_error": check.oob_error, "self_check_variance": check.oob_variance}
        values |= {"self_check_shift_error": shift.oob_error, "self_check_shift_variance": shift.oob_variance}
        row = {name: np.asarray(x) for name, x in values.items()}
        trusted = trust.is_trusted(check, shift, self._sums_walks)
        row["trusted"] = np.asarray(trusted) & (row["outcome"] == Outcome.converged)
        if self._factor is not None:
            bound = lowrank.variance_bound(self._factor, row["point_variance"], np.asarray(final.u))
            row["variance_bound"] = np.asarray(bound)
        return row

    def _cut(self, found: Solution) -> Solution:
        """The true rows, without those that fill up a low-rank factor."""
        return jax.tree.map(lambda x: x[: self.rows] if np.ndim(x) else x, found)

    @property
    def _sums_walks(self) -> bool:
        """Whether what the closure leaves out can be computed, and not only bounded."""
        return isinstance(self.closure, Cavity) and self.rows <= crossing.LARGEST

    def _solved(self, m: float) -> tuple[Solution, Response]:
        """The closure at one size, from the largest known size below it."""
        start = [g for size, g in self._known if size <= m][-1]
        mu, terms = jnp.asarray(m / self.rows), terms_for(m / self.rows)
        found, response = solved(
            self._algebra, self._y, self._s2, mu, self.closure, start, terms=terms, implicit=False
        )  # fmt: skip
        if found.outcome == Outcome.converged:  # otherwise the next size begins where this one did
            prior, *others = self._known
            self._known = [prior, *sorted([*others[-3:], (m, found.g)], key=lambda known: known[0])]
        return found, response

    def _corrected(self, found: Solution, response: Response, m: float) -> tuple[Solution, crossing.Shift]:
        """The solution with what the closure leaves out, where that is small, and how much it is."""
        N, final, fixed = self.rows, found, isinstance(self.total, FixedTotal)
        if self._sums_walks:
            G, mu, terms = response.matrix()[:N, :N], jnp.asarray(m / N), terms_for(m / N)
            final = crossing.corrected(found, G, self._y[:N], self._s2, mu, terms=terms)
        shift = crossing.shift(found, final)
        if fixed or not self._sums_walks:
            sizes, weights = crossing.nodes(m)
            beside = [self._cut(self._solved(float(size))[0]) for size in sizes]
            after = crossing.averaged(found, beside, weights)
            shift = crossing.larger(shift, crossing.shift(found, after))
            if fixed and isinstance(self.closure, Cavity):
                final = crossing.at_fixed_total(final, found, after, self._y[:N])
        return final if trust.is_small(shift, self._sums_walks) else found, shift


@double
def curve(
    law: Empirical,
    rule: GaussianProcess,
    *,
    examples: Any,
    total: Total | None = None,
    closure: Closure | None = None,
    rank: int | None = None,
    **sweep: Any,
) -> xr.Dataset:
    """The learning curve in theory, with its self-check: no training, no resampling.

    Args:
        law: the world.
        rule: the student.
        examples: mean numbers $m$ of rows in a data set, increasing, or one. Beyond $N$ rows are repeated ever more
            often, which makes the noise smaller without new information; to look beyond the data use `forecast`.
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
    check_pair(law, rule)
    total, closure = total_of(total), closure_of(closure)
    sizes = sizes_of(examples, law.rows, total)
    plan = controls.expand(law, rule, sweep)
    points = [_one(law, rule, sizes, closure, rank, total) for law, rule in zip(plan.laws, plan.rules, strict=True)]
    values = {name: np.stack([point[0][name] for point in points]) for name in points[0][0]}
    result = results.assemble(
        values, plan, {"examples": sizes}, MEASURES, coordinates(law),
        science="processes", source="theory", total=type(total).__name__, closure=type(closure).__name__,
        rank=0 if rank is None else rank, **units(law), **points[0][1],
    )  # fmt: skip
    return result.isel(examples=0) if np.ndim(examples) == 0 else result


def units(law: Empirical) -> dict[str, float]:
    """Centre and scale of the targets, as attributes of a result."""
    centre, scale = law.units()
    return {"target_centre": float(centre), "target_scale": float(scale)}


def _one(
    law: Empirical, rule: GaussianProcess, sizes: np.ndarray, closure: Closure, rank: int | None, total: Total
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """All sizes of one law and rule: arrays over sizes, and facts about the kernel."""
    solver = Solver(law, rule, closure, rank, total)
    rows = [solver.at(m) for m in track(list(sizes), "theory")]
    values = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return {**values, **derived(values, solver.reference, law)}, {**solver.about, **solver.reference.errors()}


def derived(values: dict[str, np.ndarray], known: Reference, law: Empirical) -> dict[str, np.ndarray]:
    """What follows from errors without further average: other estimates, and errors in the target's own units."""
    plain, plus = estimates_632(values["oob_error"], known)
    scale = float(law.units()[1])
    rmse, oob_rmse = (scale * np.sqrt(values[name]) for name in ("error", "oob_error"))
    return {"error_632": plain, "error_632plus": plus, "rmse": rmse, "oob_rmse": oob_rmse}


_compiled_measures = jax.jit(_measures)


def _prepare(law: Empirical, rule: GaussianProcess, rank: int | None) -> tuple[Algebra, Array, Array, dict, Any]:
    """The algebra, targets filled up to its rows, noise, and facts about the kernel."""
    if rank is None:
        if law.rows > LARGEST_EXACT:
            raise InputError(f"A table of more than {LARGEST_EXACT} rows needs a low-rank kernel, but there are "
                             f"{law.rows}: give `rank`, such as rank=512.")  # fmt: skip
        n, jitter = declared(law, rule)
        return Exact(n.K), n.y, n.s2, {"jitter": jitter}, None
    factor = lowrank.factorise(law, rule, checks.whole("rank", rank, least=1))
    y = jnp.zeros(factor.algebra.F.shape[0] * factor.algebra.F.shape[1]).at[: law.rows].set(law.standard())
    share = float(factor.neglected.sum() / np.sum(factor.algebra.prior()))
    about = {"jitter": 0.0, "neglected": share, "neglected_largest": float(factor.neglected.max())}
    return factor.algebra, y, jnp.asarray(rule.noise, float), about, factor
