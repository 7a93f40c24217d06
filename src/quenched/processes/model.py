r"""The question: how well does Gaussian-process regression on random samples of these data predict?

Setting: a table of $N$ rows $(x_i, y_i)$ is the world. A data set is a sample of it with repeats; row $i$ comes
$s_i$ times, Poisson with mean $\mu = m/N$ (`PoissonTotal`), or just $m$ rows are drawn (`FixedTotal`). A Gaussian
process with kernel $K$ and noise variance $\sigma^2$ learns from the sample and predicts every row: those that were in
the sample and, *out of bag*, those that were not.

Units: targets are standardised, $(y - \bar y)/\mathrm{std}(y)$, so that errors are shares of the target's variance
and kernel and noise are declared on that scale. Inputs are taken as they are.
Order parameters: the posterior variance and the mean and spread over data sets of the prediction, at each row.
Nothing here solves or trains. Not covered: other likelihoods than Gaussian noise, and rows that depend on each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, verbs
from quenched.core.types import Array, InputError, Key, Real, double, is_traced, real, reals

LEAST_EXAMPLES, MOST_COPIES = 1e-9, 10_000
"""Mean number of rows in the smallest data set, and of copies of each row in the largest."""


class Law(eqx.Module):
    """A world to sample data sets from."""


class Empirical(Law):
    r"""The rows of a table, each as likely as any other.

    Attributes:
        inputs: `[N, d]`, or `[N]` for one input; not needed (zeros do) when the kernel is given as a matrix.
        targets: `[N]`, in their own units.
        centre: what is subtracted from the targets; default their mean.
        scale: what they are then divided by; default their population standard deviation.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from quenched import processes
        >>> law = processes.Empirical(*load_diabetes(return_X_y=True))
        >>> law.rows
        442
    """

    inputs: Any = eqx.field(converter=reals)
    targets: Any = eqx.field(converter=reals)
    centre: Any = eqx.field(converter=real, default=None)
    scale: Any = eqx.field(converter=real, default=None)

    def __check_init__(self):
        if np.ndim(self.targets) != 1 or np.ndim(self.inputs) not in (1, 2):
            raise InputError("Arguments `inputs` and `targets` must have shapes [N, d] and [N], but they are "
                             f"{np.shape(self.inputs)} and {np.shape(self.targets)}.")  # fmt: skip
        if np.shape(self.inputs)[0] != self.rows:
            raise InputError(f"Argument `targets` must have one number for each of the {np.shape(self.inputs)[0]} rows "
                             f"of `inputs`, but it has {self.rows}.")  # fmt: skip
        for name, value in (("inputs", self.inputs), ("targets", self.targets)):
            if not is_traced(value) and (bad := int(np.sum(~np.isfinite(value)))):
                raise InputError(f"Argument `{name}` must be finite, but {bad} of its values are not.")
        if self.centre is not None:
            checks.finite("centre", self.centre)
        if self.scale is not None:
            checks.positive("scale", self.scale)
        if is_traced(self.targets):
            return
        if np.any(self.targets):
            checks.positive("targets", np.abs(self.targets).max())  # their squares must be numbers
        if self.scale is None and np.ptp(self.targets) == 0:
            raise InputError("Argument `targets` must vary, but all its values are equal.")

    @property
    def rows(self) -> int:
        """The number of rows, $N$."""
        return np.shape(self.targets)[0]

    def standard(self) -> Array:
        """The standardised targets `[N]`."""
        centre, scale = self.units()
        return (self.targets - centre) / scale

    def units(self) -> tuple[Any, Any]:
        """What is subtracted from the targets, and what they are divided by."""
        y = jnp.asarray(self.targets) if is_traced(self.targets) else np.asarray(self.targets)
        return y.mean() if self.centre is None else self.centre, y.std() if self.scale is None else self.scale

    def take(self, rows: np.ndarray) -> Empirical:
        """Some rows of the table, in its units."""
        return Empirical(np.asarray(self.inputs)[rows], np.asarray(self.targets)[rows], *self.units())

    @double
    def sample(self, key: Key, examples: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw a data set: rows with repeats.

        Args:
            key: a JAX key.
            examples: how many rows.

        Returns:
            The inputs `[examples, d]` and the targets `[examples]`, in their own units.
        """
        examples = checks.whole("examples", examples, least=1)
        row = np.asarray(jax.random.randint(key, (examples,), 0, self.rows))
        return np.asarray(self.inputs)[row], np.asarray(self.targets)[row]


def _kernel(value: Any) -> Any:
    """Converter of the kernel: a tinygp kernel with float64 parameters, or a matrix."""

    def leaf(x: Any) -> Any:
        fixed = is_traced(x) or not eqx.is_inexact_array_like(x) or isinstance(x, complex)
        return x if fixed else np.asarray(x, dtype=np.float64)

    return jax.tree.map(leaf, value) if callable(value) else reals(value)


class Rule(eqx.Module):
    """How one learns from a data set."""


class GaussianProcess(Rule):
    r"""Gaussian-process regression: the prior has covariance $K$ and mean 0, targets have Gaussian noise.

    Attributes:
        kernel: any tinygp kernel (or a function with `kernel(X1, X2)` giving a matrix and `kernel(X)` its diagonal),
            or the matrix $K$ of the rows, `[N, N]`.
        noise: $\sigma^2$, a variance, in units of the target's.

    Examples:
        >>> from tinygp import kernels
        >>> from quenched import processes
        >>> rule = processes.GaussianProcess(1.25 * kernels.ExpSquared(6.0), noise=0.5)
    """

    kernel: Any = eqx.field(converter=_kernel)
    noise: Real = eqx.field(converter=real)

    def __check_init__(self):
        checks.positive("noise", self.noise)
        if callable(self.kernel) or is_traced(self.kernel):
            return
        K = np.asarray(self.kernel)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise InputError(f"Argument `kernel` must be a kernel or a square matrix, but its shape is {K.shape}.")
        if not np.all(np.isfinite(K)):
            raise InputError("Argument `kernel` must be finite, but some of its entries are not.")
        if not np.allclose(K, K.T, rtol=1e-8, atol=1e-10 * max(float(np.abs(np.diagonal(K)).max()), 1e-300)):
            raise InputError("Argument `kernel` must be symmetric, but its transpose differs.")


def take(law: Empirical, rule: GaussianProcess, rows: np.ndarray) -> tuple[Empirical, GaussianProcess]:
    """Some rows of a law, and the rule for them."""
    kernel = rule.kernel if callable(rule.kernel) else np.asarray(rule.kernel)[np.ix_(rows, rows)]
    return law.take(rows), GaussianProcess(kernel, rule.noise)


class Total(eqx.Module):
    """How many rows a data set of size $m$ has."""


class PoissonTotal(Total):
    r"""A Poisson number of rows of mean $m$: the counts of the rows are independent. This is what is usually meant."""


class FixedTotal(Total):
    r"""Exactly $m$ rows: the counts of the rows are multinomial, as in the bootstrap."""


def total_of(total: Any) -> Total:
    """Check a total; by default it is `PoissonTotal()`."""
    total = PoissonTotal() if total is None else total
    checks.kind("total", total, (PoissonTotal, FixedTotal), "PoissonTotal() or FixedTotal()")
    return total


class Numbers(NamedTuple):
    """Law and rule as arrays: all that exact theory and simulation need."""

    K: Array  # [N, N] prior covariance of the rows
    y: Array  # [N] standardised targets
    s2: Array  # noise variance


def numbers(law: Empirical, rule: GaussianProcess) -> Numbers:
    """Law and rule as arrays; a pure JAX function."""
    kernel: Any = rule.kernel
    X = jnp.asarray(law.inputs)
    K: Any = kernel(X, X) if callable(kernel) else jnp.asarray(kernel)
    check_pairs(K, law.rows)
    return Numbers((K + K.T) / 2, jnp.asarray(law.standard()), jnp.asarray(rule.noise, float))


def check_pairs(K: Any, rows: int) -> None:
    """Check that a kernel matrix has all pairs of rows."""
    if K.shape != (rows, rows):
        raise InputError(f"Argument `kernel` must give a matrix of {rows} x {rows} rows, but its shape is {K.shape}.")


SHARE = "share of the target's variance"
LABELS = {
    "examples": "training examples, $m$",
    "posterior_variance": f"posterior variance ({SHARE})",
    "oob_variance": f"out-of-bag posterior variance ({SHARE})",
    "error": f"error on all rows, seen or not ({SHARE})",
    "oob_error": f"out-of-bag error ({SHARE})",
    "absolute_error": "absolute error (standard deviations of the target)",
    "oob_absolute_error": "out-of-bag absolute error (standard deviations of the target)",
    "coverage": "coverage of the predictive interval",
    "oob_coverage": "out-of-bag coverage of the predictive interval",
}
"""Words for the axes of a plot."""

OVERALL = ("posterior_variance", "oob_variance", "error", "oob_error", "absolute_error", "oob_absolute_error",
           "coverage", "oob_coverage")  # fmt: skip
AT_ROWS = ("mean", "spread", "point_variance", "point_error", "point_oob_error")
MEASURES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(OVERALL, ()), **dict.fromkeys(AT_ROWS, ("point",)), "multiplicity_error": ("multiplicity",)
}  # fmt: skip
"""What theory and simulation report, and the dimensions of each besides `examples`."""

MULTIPLICITIES = 4
"""Errors are given for rows that came 0, 1, 2 or 3 times."""
LEVEL = 0.9
"""Nominal probability of the predictive interval whose coverage is reported."""


SCIENCE = verbs.Science(
    "processes",
    laws=(Empirical, "an Empirical table"),
    rules=(GaussianProcess, "a GaussianProcess"),
    reports=MEASURES,
    check=lambda law, rule: callable(rule.kernel) or check_pairs(rule.kernel, law.rows),
    coordinates=lambda law, _: {
        "point": ("point", np.arange(law.rows)),
        "multiplicity": ("multiplicity", np.arange(MULTIPLICITIES)),
    },
    labels=LABELS,
    attrs={"main": "oob_error", "scale": "log"},  # learning curves are powers of the number of examples
    command="quenched forecast DATA.csv --target COLUMN",
)
"""What the verbs have in common."""


def ask(law: Any, rule: Any, sweep: dict[str, Any], examples: Any, total: Total) -> verbs.Question:
    """Check a question about data sets of some sizes; whole numbers where the total is fixed."""
    SCIENCE.check_pair(law, rule)
    question = SCIENCE.ask(law, rule, sweep, examples=examples, most=MOST_COPIES * law.rows)
    sizes = question.axes["examples"]
    if sizes[0] < LEAST_EXAMPLES:
        raise InputError(f"Argument `examples` must be positive, but it begins with {sizes[0]:g}.")
    if isinstance(total, FixedTotal) and np.any(sizes != np.rint(sizes)):
        raise InputError("Argument `examples` must be whole numbers when just as many rows are drawn, but "
                         f"{sizes[sizes != np.rint(sizes)][0]:g} was given.")  # fmt: skip
    return question
