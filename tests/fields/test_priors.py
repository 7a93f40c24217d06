"""Priors of any kind, and their derivatives."""

import numpy as np
import pytest

from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct, LogDensity, Shifted
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian, Prior
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass
from tests.fields.meshes import small


class Quartic(Prior):
    """A prior of one's own, with closed forms and without `energy` in JAX."""

    like: Gaussian

    @property
    def grid(self):
        return self.like.grid

    def energy(self, field):
        raise NotImplementedError

    def expand(self, field):
        return np.sum(field**4), 4 * field**3, lambda: np.diag(12 * field.ravel() ** 2)


def differences(function, field, step=1e-5):
    """Central differences of a function of a field by its components, one row for each."""
    units = step * np.eye(field.size).reshape(-1, *field.shape)
    return np.array([(function(field + unit) - function(field - unit)) / (2 * step) for unit in units])


@pytest.mark.parametrize("link", [LogDensity, Shifted, Logits, Direct])
def test_a_prior_with_closed_forms_needs_no_compiled_program(link):
    template, field = small(LogDensity)
    grid = template.grid
    prior = Gaussian(0.3 * Laplacian(grid)) & Quartic(Gaussian(Mass(grid)))
    points = [(0.0, 0.5), (1.0, -1.0), (0.5, 2.0)]
    data = GaussianData(points, [1.0, 2.0, 3.0]) if link is Direct else DensityData(points)
    problem = Problem(data, link(grid), prior)
    about = problem.expand(field)
    np.testing.assert_allclose(about.slope, differences(lambda f: problem.expand(f).energy, field), atol=1e-6)
    np.testing.assert_allclose(about.hessian(), differences(lambda f: problem.expand(f).slope, field), atol=1e-6)
