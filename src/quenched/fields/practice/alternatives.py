r"""Which of several priors holds: the posterior probability of each alternative, and of each minimum.

Under the prior $\sum_j p_j\, p_j(\phi)$ the posterior is the mixture of the posteriors under each alternative alone,
with $b_j \propto p_j\, p(D | j)$, the evidence of each (Laplace's, exact for regression). A minimum of the energy of
the mixture need not belong to one alternative: its share is the evidence that Laplace's approximation finds about it.
[lemm1999, eqs. (570) to (576), section 7.4.2]
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from quenched.core import checks
from quenched.core.types import InputError, double
from quenched.fields.learner.fitted import Fitted
from quenched.fields.learner.solving import solve
from quenched.fields.model.either import log_sum, resolve
from quenched.fields.model.links import Direct
from quenched.fields.model.problem import Problem
from quenched.fields.theory.laplace import Laplace, laplace

if TYPE_CHECKING:
    import xarray as xr

HALVINGS = 60
"""Of the interval in which a quantile lies."""


@dataclasses.dataclass(frozen=True, eq=False)
class Alternatives:
    """The posterior under alternatives.

    Attributes:
        problem: what was asked.
        probabilities: of each alternative, given the data.
        log_evidence: logarithm of the density of the data.
        fits: the field of least energy under each alternative alone.
        posteriors: Laplace's approximation about each.
        minima: of the energy of all alternatives together, lowest first: `energy`, `share` of the posterior,
            `responsibility` of each `component`, and the `field`.
    """

    problem: Problem
    probabilities: np.ndarray
    log_evidence: float
    fits: tuple[Fitted, ...]
    posteriors: tuple[Laplace, ...]
    minima: xr.Dataset

    @property
    def mean(self) -> np.ndarray:
        """The mean density of the alternatives, or in regression their mean function."""
        direct = isinstance(self.problem.link, Direct)
        return np.tensordot(self.probabilities, [fit.field if direct else fit.density for fit in self.fits], 1)

    def band(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The interval of the density (of the function, in regression) at each point, between quantiles of the mixture.

        Args:
            level: its probability.
        """
        checks.inside("level", checks.number("level", level), 0, 1)
        direct = isinstance(self.problem.link, Direct)
        centres = np.array([fit.field if direct else np.log(fit.density) for fit in self.fits])
        widths = np.sqrt([one.variance if direct else one.log_density_variance() for one in self.posteriors])
        ends = [self._quantile(centres, np.maximum(widths, 1e-300), q) for q in (0.5 - level / 2, 0.5 + level / 2)]
        return (ends[0], ends[1]) if direct else (np.exp(ends[0]), np.exp(ends[1]))

    def _quantile(self, centres: np.ndarray, widths: np.ndarray, q: float) -> np.ndarray:
        low, high = np.min(centres - 40 * widths, axis=0), np.max(centres + 40 * widths, axis=0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = np.tensordot(self.probabilities, ndtr((middle - centres) / widths), 1) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2


@double
def weigh(problem: Problem, *, start: Any = None) -> Alternatives:
    """Find the posterior probability of each alternative of a prior, `a | b`.

    Args:
        problem: likelihood x link x prior, with alternatives in the prior, at `beta=1`.
        start: of the search for the minima of all alternatives together, see `solve`; by default the templates, their
            mean, and the data.

    Returns:
        Probabilities, the fit under each alternative, and all minima that were met with their shares.

    Raises:
        InputError: for a link at whose bounds the posterior is no Gaussian (`Density`), or a prior that is not made of
            Gaussian ones.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> axis = fields.Axis(-3, 3, points=31)
        >>> grid, x = fields.Grid(over=[axis]), axis.coordinates
        >>> smooth = 0.5 * fields.Laplacian(grid) + fields.Mass(grid, 0.05)
        >>> one = fields.Gaussian(smooth, mean=-(x**2) / 2)
        >>> two = fields.Gaussian(smooth, mean=np.log(np.exp(-2 * (x - 1.5) ** 2) + np.exp(-2 * (x + 1.5) ** 2)))
        >>> data = fields.DensityData([-1.6, -1.2, 1.1, 1.5, 1.9])
        >>> found = fields.weigh(fields.Problem(data, fields.LogDensity(grid), one | two))
        >>> bool(found.probabilities[1] > 0.8)
        True
    """
    import xarray as xr

    checks.kind("problem", problem, Problem, "a Problem")
    prior = resolve(problem.prior)
    if prior.beta != 1:
        raise InputError(f"Argument `problem` must have alternatives at `beta=1`, but it is {prior.beta:g}.")
    fits, posteriors = [], []
    for gaussian in prior.gaussians:
        alone = Problem(problem.likelihood, problem.link, gaussian)
        fits.append(solve(alone))
        posteriors.append(laplace(alone, fits[-1]))
    with np.errstate(divide="ignore"):
        each = np.log(prior.weights) + np.array([one.log_evidence for one in posteriors])
    evidence = log_sum(each).item()
    best = solve(problem, start=start)
    met = best.met or (best,)  # where nothing arrived, as far as it came
    about = np.array([laplace(problem, one).log_evidence for one in met])
    fields = np.array([one.field for one in met])
    arguments = [np.asarray(problem.link.argument(problem.link.project(jnp.asarray(one)))) for one in fields]
    energies = np.array([[type(one).expand(one, field)[0] for one in prior.gaussians] for field in arguments])
    a = prior.log_weights - energies
    dims = tuple(f"axis_{i}" for i in range(fields.ndim - 1))
    minima = xr.Dataset(
        {
            "energy": ("minimum", np.array([one.energy for one in met])),
            "share": ("minimum", np.exp(about - log_sum(about))),
            "responsibility": (("minimum", "component"), np.exp(a - log_sum(a, 1))),
            "field": (("minimum", *dims), fields),
        }
    )
    return Alternatives(problem, np.exp(each - evidence), evidence, tuple(fits), tuple(posteriors), minima)
