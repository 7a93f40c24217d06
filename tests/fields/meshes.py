"""The meshes, priors and data of the paper's examples."""

import jax
import numpy as np

from quenched.fields.model.grid import Axis, Free, Grid, Periodic
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import Density, LogDensity, Shifted, SquareRoot
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass

TWO = [(3, 3), (7, 12)]
LINE = Grid(over=[Axis(0, 1, points=12)])
LINKS = (LogDensity, Shifted, Density, SquareRoot)


def paper_mesh(x_ends=None):
    """10 x 15 points at distance 1, periodic in y."""
    x, y = Axis(1, 10, points=10, ends=x_ends or Periodic()), Axis(1, 15, points=15, ends=Periodic())
    return Grid(given=[x], over=[y]), x, y


def two_points(link, strength, power=1):
    """Figures 14 to 17."""
    grid, x, y = paper_mesh()
    K = strength * (Laplacian(grid, x) ** power + Laplacian(grid, y) ** power)
    return Problem(DensityData(TWO), link(grid), Gaussian(K))


FIGURES = {14: (LogDensity, 0.025, 1), 15: (Density, 1.0, 1), 16: (LogDensity, 0.01, 3), 17: (Density, 0.1, 3)}


def small(link, seed=0, *, rough=False):
    """A small problem with unequal spacings, a template and repeated data, and a field to look at it.

    A rough template is negative at some points, so that densities reach zero near data and there are several minima.
    """
    rng = np.random.default_rng(seed)
    x, y = Axis(0, 1, points=3, ends=Free()), Axis(-1, 2, points=5, ends=Periodic())
    grid = Grid(given=[x], over=[y])
    K = 0.3 * Laplacian(grid, x) + 0.1 * Laplacian(grid, y) ** 2 + Mass(grid, 0.2)
    template = rng.normal(size=grid.shape) if rough else rng.uniform(0.2, 1.0, size=grid.shape)
    points = np.stack([rng.choice(x.coordinates, 12), rng.choice(y.coordinates, 12)], axis=1)
    problem = Problem(DensityData(points), link(grid), Gaussian(K, mean=template))
    with jax.enable_x64(True):
        return problem, np.asarray(problem.link.project(rng.uniform(0.5, 1.5, grid.shape)))
