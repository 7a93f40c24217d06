"""Fields: Bayesian learning of functions and densities on a grid, with priors that can be said in words."""

from quenched.fields import theory
from quenched.fields.learner.fit import fit
from quenched.fields.learner.fitted import Fitted, FittedDensity, FittedFunction
from quenched.fields.learner.matrices import LearningMatrix, Newton
from quenched.fields.learner.matrix_free import LBFGS, MatrixFree, NewtonCG
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Empirical, Given, Kernel, Start, Truncated, Uniform
from quenched.fields.model.components import ClassData, ClusterData, Components, VectorData
from quenched.fields.model.grid import Axis, Dirichlet, Free, Grid, Periodic
from quenched.fields.model.laws import Law, MaximumPosterior, Rule, TrueDensity, TrueFunction
from quenched.fields.model.likelihoods import DensityData, GaussianData, Likelihood
from quenched.fields.model.links import Density, Direct, Link, LogDensity, Shifted, SquareRoot
from quenched.fields.model.measurements import BinnedData, BlurredData, KernelData
from quenched.fields.model.noise import (
    GaussianNoise,
    HuberNoise,
    InsensitiveNoise,
    LaplaceNoise,
    MixtureNoise,
    Noise,
    NoisyData,
    RiskData,
)
from quenched.fields.model.operators import Dense, Difference, Filter, Laplacian, Mass, Operator, ThinPlate
from quenched.fields.model.parametrisations import Bounded, Distribution, Logits, Unnormalised, check_link
from quenched.fields.model.priors import Gaussian, Prior
from quenched.fields.model.problem import Problem
from quenched.fields.model.quadratic import Cumulative, QuadraticData
from quenched.fields.model.rows import RowData
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
    "LBFGS",
    "AbsoluteLoss",
    "Axis",
    "BinnedData",
    "BlurredData",
    "Bounded",
    "ClassData",
    "ClusterData",
    "Components",
    "Coordinates",
    "Cumulative",
    "Dense",
    "Density",
    "DensityData",
    "Difference",
    "Direct",
    "Dirichlet",
    "Distribution",
    "Empirical",
    "Filter",
    "Fitted",
    "FittedDensity",
    "FittedFunction",
    "Free",
    "Gaussian",
    "GaussianData",
    "GaussianNoise",
    "Given",
    "Grid",
    "HuberNoise",
    "Infinitesimal",
    "InsensitiveNoise",
    "Invariance",
    "Kernel",
    "KernelData",
    "Laplace",
    "LaplaceNoise",
    "Laplacian",
    "Law",
    "LearningMatrix",
    "Likelihood",
    "LinearMap",
    "Link",
    "LogDensity",
    "LogLoss",
    "Logits",
    "Loss",
    "Map",
    "Mass",
    "MatrixFree",
    "MaximumPosterior",
    "Mirror",
    "MixtureNoise",
    "Newton",
    "NewtonCG",
    "Noise",
    "NoisyData",
    "Operator",
    "Periodic",
    "Permutation",
    "Prior",
    "Problem",
    "QuadraticData",
    "RiskData",
    "Rotation",
    "RowData",
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
    "Unnormalised",
    "VectorData",
    "ZeroOneLoss",
    "check_link",
    "curve",
    "fit",
    "laplace",
    "measure",
    "regress",
    "solve",
    "theory",
]
