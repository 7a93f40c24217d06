r"""Local alternatives: at every place one of several priors holds, it may be another one at each."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array, InputError
from quenched.fields.model.either import check_alternatives, check_weights, log_sum, same_operator
from quenched.fields.model.grid import Grid
from quenched.fields.model.operators import Filter, Operator, Waves
from quenched.fields.model.priors import Prior, PriorExpansion


class LocalEither(Prior):
    r"""Alternatives that hold region by region, independently: at every place another template may hold.

    With the filter $W$ of the operator $K = W^T W$ and $\omega_j = W (\phi - t_j)$ the energy is
    $$E = -\sum_g \ln \sum_j p_j\, e^{-\frac v2 \sum_{r \in g} \omega_j(r)^2} ,$$
    a sum over the regions $g$ of the rows $r$ of $W$, which must be independent: then all combinations of templates
    have the same normalisation. [lemm1999, eqs. (582) to (588), erratum F586]

    Attributes:
        operator: $K$, a `Mass` or a `Filter`.
        W: the filter.
        templates: $t_j$ `[component, ...]`.
        weights: $p_j$.
        regions: of each row of the filter, numbers from 0.
    """

    operator: Operator
    W: Any
    templates: Any
    weights: Any
    regions: Any

    def __init__(self, priors: Any, weights: Any = None, regions: Any = None):
        parts = check_alternatives(priors)
        K = self.operator = parts[0].operator
        if not all(same_operator(K, part.operator) for part in parts[1:]):
            raise InputError("Argument `priors` must have one operator and differ in their means, but they do not.")
        if isinstance(K, Filter):
            self.W = np.asarray(K.W, dtype=np.float64)
        elif isinstance(K, Waves) and all(order is None for order in K.orders):
            self.W = np.sqrt(np.asarray(K.values).item()) * np.eye(K.grid.size)
        else:
            raise InputError("Argument `priors` must have a Mass or a Filter as operator, because others have no rows "
                             f"to choose for, but they have a {type(K).__name__}.")  # fmt: skip
        rows = len(self.W)
        if np.linalg.matrix_rank(self.W) < rows:
            raise InputError("Argument `priors` must have a filter with independent rows, because otherwise choices "
                             "have different normalisations, but its rows depend on each other.")  # fmt: skip
        self.templates = np.array([part.mean for part in parts])
        self.weights = check_weights(weights, len(parts))
        found = np.arange(rows) if regions is None else np.asarray(regions).ravel()
        if found.shape != (rows,) or found.dtype.kind not in "iu":
            raise InputError(f"Argument `regions` must have a whole number for each of the {rows} rows of the filter, "
                             f"but {regions!r} was given.")  # fmt: skip
        self.regions = np.unique(found, return_inverse=True)[1]

    @property
    def grid(self) -> Grid:
        """That of the operator."""
        return self.operator.grid

    @property
    def _log_weights(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(self.weights))[:, None]

    def energy(self, field: Array) -> Array:
        """See the class."""
        omega = (field - self.templates).reshape(len(self.templates), -1) @ self.W.T
        each = omega**2 @ (self.regions[:, None] == np.arange(len(self.W)))
        return -jnp.sum(jax.nn.logsumexp(jnp.log(self.weights)[:, None] - 0.5 * self.grid.cell * each, axis=0))

    def expand(self, field: np.ndarray) -> PriorExpansion:
        """By the responsibilities in each region."""
        v, omega, total, a = self.grid.cell, *self._share(field)
        here = a[:, self.regions]
        mean = np.sum(here * omega, axis=0)

        def matrix() -> np.ndarray:
            H = v * self.W.T @ self.W
            for share, off in zip(here, omega - mean, strict=True):
                rows = np.zeros((a.shape[1], self.W.shape[1]))
                np.add.at(rows, self.regions, (v * np.sqrt(share) * off)[:, None] * self.W)
                H = H - rows.T @ rows
            return H

        return -float(np.sum(total)), (v * mean @ self.W).reshape(field.shape), matrix

    def _share(self, field: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Filtered differences, and for each region the logarithm of its sum and the responsibilities."""
        omega = (field - self.templates).reshape(len(self.templates), -1) @ self.W.T
        each = np.array([np.bincount(self.regions, one) for one in omega**2])
        terms = self._log_weights - 0.5 * self.grid.cell * each
        total = log_sum(terms)
        return omega, total, np.exp(terms - total)

    def responsibilities(self, field: Any) -> np.ndarray:
        """The probability of each alternative in each region `[component, region]` for a given field.

        Args:
            field: what the prior is about, of the shape of the grid.
        """
        return self._share(self.grid.check("field", field))[2]


def locally(*priors: Prior, weights: Any = None, regions: Any = None) -> LocalEither:
    """The prior of which one of several holds at every place, it may be another one at each.

    Args:
        *priors: Gaussian ones with one operator, a `Mass` or a `Filter`, that differ in their means.
        weights: the probability of each; by default all are equal.
        regions: whole numbers for the points of the grid (`Mass`) or the rows of the filter: those with the same
            number follow the same prior; by default each has its own.

    Returns:
        The prior, with its `responsibilities`.

    Raises:
        InputError: for other operators.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=4)])
        >>> up, down = (fields.Gaussian(fields.Mass(grid, 30.0), mean=t) for t in (1.0, -1.0))
        >>> prior = fields.locally(up, down, regions=[0, 0, 1, 1])
        >>> prior.responsibilities(np.array([1.0, 1.0, -1.0, -1.0])).round(6).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    if not priors:
        raise InputError("Argument `priors` must have at least one prior, but there is none.")
    return LocalEither(priors, weights, regions)
