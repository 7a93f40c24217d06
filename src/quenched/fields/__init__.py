"""Fields: Bayesian learning of functions and densities on a grid, with priors that can be said in words."""

from quenched.fields import theory
from quenched.fields.learner.fit import fit
from quenched.fields.learner.fitted import Fitted, FittedDensity, FittedFunction
from quenched.fields.learner.matrices import LearningMatrix, Newton
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Empirical, Given, Kernel, Start, Truncated, Uniform
from quenched.fields.model.grid import Axis, Dirichlet, Free, Grid, Periodic
from quenched.fields.model.laws import Law, MaximumPosterior, Rule, TrueDensity, TrueFunction
from quenched.fields.model.likelihoods import DensityData, GaussianData, Likelihood
from quenched.fields.model.links import Density, Direct, Link, LogDensity, Shifted, SquareRoot
from quenched.fields.model.operators import Dense, Difference, Filter, Laplacian, Mass, Operator, ThinPlate
from quenched.fields.model.priors import Gaussian, Prior
from quenched.fields.model.problem import Problem
from quenched.fields.model.symmetries import (
    Coordinates,
    Infinitesimal,
    Invariance,
    LinearMap,
    Map,
    Mirror,
    Permutation,
    Rotation,
    Translation,
)
from quenched.fields.simulation import measure
from quenched.fields.theory.curve import curve
from quenched.fields.theory.decisions import AbsoluteLoss, LogLoss, Loss, SquaredLoss, ZeroOneLoss
from quenched.fields.theory.laplace import Laplace, laplace

__all__ = [
    "AbsoluteLoss",
    "Axis",
    "Coordinates",
    "Dense",
    "Density",
    "DensityData",
    "Difference",
    "Direct",
    "Dirichlet",
    "Empirical",
    "Filter",
    "Fitted",
    "FittedDensity",
    "FittedFunction",
    "Free",
    "Gaussian",
    "GaussianData",
    "Given",
    "Grid",
    "Infinitesimal",
    "Invariance",
    "Kernel",
    "Laplace",
    "Laplacian",
    "Law",
    "LearningMatrix",
    "Likelihood",
    "LinearMap",
    "Link",
    "LogDensity",
    "LogLoss",
    "Loss",
    "Map",
    "Mass",
    "MaximumPosterior",
    "Mirror",
    "Newton",
    "Operator",
    "Periodic",
    "Permutation",
    "Prior",
    "Problem",
    "Rotation",
    "Rule",
    "Shifted",
    "SquareRoot",
    "SquaredLoss",
    "Start",
    "ThinPlate",
    "Translation",
    "TrueDensity",
    "TrueFunction",
    "Truncated",
    "Uniform",
    "ZeroOneLoss",
    "curve",
    "fit",
    "laplace",
    "measure",
    "regress",
    "solve",
    "theory",
]
