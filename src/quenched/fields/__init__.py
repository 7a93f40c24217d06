"""Fields: Bayesian learning of functions and densities on a grid, with priors that can be said in words."""

from quenched.fields import theory
from quenched.fields.learner.fitting import fit
from quenched.fields.learner.matrices import (
    DirichletRelaxation,
    GaussianFilter,
    GaussSeidel,
    Gradient,
    Jacobi,
    LearningMatrix,
    Massive,
    Newton,
    PriorRelaxation,
)
from quenched.fields.learner.regression import Regression, regress
from quenched.fields.learner.solving import Fit, solve
from quenched.fields.learner.starts import Empirical, Given, Kernel, Start, Truncated, Uniform
from quenched.fields.model.grid import Axis, Dirichlet, Free, Grid, Periodic
from quenched.fields.model.laws import Law, MaximumPosterior, Rule, TrueDensity, TrueFunction
from quenched.fields.model.likelihoods import DensityData, GaussianData, Likelihood
from quenched.fields.model.links import Density, Direct, Link, LogDensity, Shifted, SquareRoot
from quenched.fields.model.operators import Dense, Difference, Filter, Laplacian, Mass, Operator
from quenched.fields.model.priors import Gaussian, Prior
from quenched.fields.model.problem import Problem
from quenched.fields.simulation import measure
from quenched.fields.theory.curves import curve
from quenched.fields.theory.decisions import AbsoluteLoss, LogLoss, Loss, SquaredLoss, ZeroOneLoss
from quenched.fields.theory.information import learning_decay, mutual_information
from quenched.fields.theory.laplace import Laplace, laplace

__all__ = [
    "AbsoluteLoss",
    "Axis",
    "Dense",
    "Density",
    "DensityData",
    "Difference",
    "Direct",
    "Dirichlet",
    "DirichletRelaxation",
    "Empirical",
    "Filter",
    "Fit",
    "Free",
    "GaussSeidel",
    "Gaussian",
    "GaussianData",
    "GaussianFilter",
    "Given",
    "Gradient",
    "Grid",
    "Jacobi",
    "Kernel",
    "Laplace",
    "Laplacian",
    "Law",
    "LearningMatrix",
    "Likelihood",
    "Link",
    "LogDensity",
    "LogLoss",
    "Loss",
    "Mass",
    "Massive",
    "MaximumPosterior",
    "Newton",
    "Operator",
    "Periodic",
    "Prior",
    "PriorRelaxation",
    "Problem",
    "Regression",
    "Rule",
    "Shifted",
    "SquareRoot",
    "SquaredLoss",
    "Start",
    "TrueDensity",
    "TrueFunction",
    "Truncated",
    "Uniform",
    "ZeroOneLoss",
    "curve",
    "fit",
    "laplace",
    "learning_decay",
    "measure",
    "mutual_information",
    "regress",
    "solve",
    "theory",
]
