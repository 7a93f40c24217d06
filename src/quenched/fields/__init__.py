"""Fields: Bayesian learning of functions and densities on a grid, with priors that can be said in words."""

from quenched.fields import theory
from quenched.fields.learner.annealing import Annealed
from quenched.fields.learner.fit import fit
from quenched.fields.learner.fitted import Fitted, FittedAlternatives, FittedDensity, FittedFunction
from quenched.fields.learner.matrices import LearningMatrix, Method, Newton
from quenched.fields.learner.matrix_free import LBFGS, MatrixFree, NewtonCG
from quenched.fields.learner.parameters import FittedParameters
from quenched.fields.learner.regression import regress
from quenched.fields.learner.reweighting import Reweighting
from quenched.fields.learner.solving import solve
from quenched.fields.learner.splitting import Splitting
from quenched.fields.learner.starts import Empirical, Given, Kernel, Start, Template, Truncated, Uniform
from quenched.fields.model.components import ClassData, ClusterData, Components, VectorData
from quenched.fields.model.either import Either, either
from quenched.fields.model.families import (
    LengthScale,
    MassField,
    Order,
    Period,
    Relevance,
    Smoothness,
    Spectrum,
    Strength,
    links_of,
)
from quenched.fields.model.filters import Convolution, Derivative, FilterBank, Gradient
from quenched.fields.model.grid import Axis, Dirichlet, Free, Grid, Periodic
from quenched.fields.model.hamiltonian import Hamiltonian
from quenched.fields.model.hartree import Hartree
from quenched.fields.model.hyper import Hyper
from quenched.fields.model.hyperpriors import Choice, Flat, Gamma, Hyperprior, LogFlat, LogNormal, Normal, Power
from quenched.fields.model.laws import Law, MaximumPosterior, Rule, TrueDensity, TrueFunction, TruePotential
from quenched.fields.model.likelihoods import DensityData, GaussianData, Likelihood
from quenched.fields.model.links import Density, Direct, Link, LogDensity, Shifted, SquareRoot
from quenched.fields.model.locally import LocalEither, locally
from quenched.fields.model.maps import Coordinates, LinearMap, Map, Mirror, Permutation, Rotation, Translation
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
from quenched.fields.model.operators import Dense, Filter, Operator
from quenched.fields.model.parameters import Parametrised
from quenched.fields.model.parametrisations import Bounded, Distribution, Logits, Unnormalised, check_link
from quenched.fields.model.potentials import (
    AbsoluteValue,
    Cup,
    Huber,
    Potential,
    PotentialFunction,
    Quadratic,
    Smoothed,
)
from quenched.fields.model.priors import Gaussian, Prior
from quenched.fields.model.problem import Problem
from quenched.fields.model.quadratic import Cumulative, QuadraticData
from quenched.fields.model.quantum import CombinedData, LevelData, MomentumData, PositionData
from quenched.fields.model.rows import RowData
from quenched.fields.model.shapes import Cosine, DoubleWell, Harmonic, Morse, Shape, TwoWells
from quenched.fields.model.smoothness import Difference, Laplacian, Mass, ThinPlate
from quenched.fields.model.states import Canonical, Evolving, Ground, Mixed, Packet, State, Stationary, Weighted
from quenched.fields.model.switches import Jumps, Patches, Switches
from quenched.fields.model.symmetries import Infinitesimal, Invariance
from quenched.fields.practice.adapting import Adaptation, FittedHyper, Integral, Joint, Marginal, Pathology, adapt
from quenched.fields.practice.alternatives import Alternatives, weigh
from quenched.fields.practice.columns import FittedColumns, screen
from quenched.fields.practice.locating import Alternation, Annealing, Exact, FittedSwitches, Locator, locate
from quenched.fields.practice.posteriors import LaplaceDraws, PosteriorDraws
from quenched.fields.practice.sampling import NUTS, Sampler, sample
from quenched.fields.practice.tempering import Tempered
from quenched.fields.simulation import measure
from quenched.fields.theory.curve import curve
from quenched.fields.theory.decisions import AbsoluteLoss, LogLoss, Loss, SquaredLoss, ZeroOneLoss
from quenched.fields.theory.laplace import Laplace, laplace
from quenched.fields.theory.mean_field import find_bifurcations, mean_field
from quenched.fields.theory.probing import ProbedLaplace

__all__ = [
    "LBFGS",
    "NUTS",
    "AbsoluteLoss",
    "AbsoluteValue",
    "Adaptation",
    "Alternation",
    "Alternatives",
    "Annealed",
    "Annealing",
    "Axis",
    "BinnedData",
    "BlurredData",
    "Bounded",
    "Canonical",
    "Choice",
    "ClassData",
    "ClusterData",
    "CombinedData",
    "Components",
    "Convolution",
    "Coordinates",
    "Cosine",
    "Cumulative",
    "Cup",
    "Dense",
    "Density",
    "DensityData",
    "Derivative",
    "Difference",
    "Direct",
    "Dirichlet",
    "Distribution",
    "DoubleWell",
    "Either",
    "Empirical",
    "Evolving",
    "Exact",
    "Filter",
    "FilterBank",
    "Fitted",
    "FittedAlternatives",
    "FittedColumns",
    "FittedDensity",
    "FittedFunction",
    "FittedHyper",
    "FittedParameters",
    "FittedSwitches",
    "Flat",
    "Free",
    "Gamma",
    "Gaussian",
    "GaussianData",
    "GaussianNoise",
    "Given",
    "Gradient",
    "Grid",
    "Ground",
    "Hamiltonian",
    "Harmonic",
    "Hartree",
    "Huber",
    "HuberNoise",
    "Hyper",
    "Hyperprior",
    "Infinitesimal",
    "InsensitiveNoise",
    "Integral",
    "Invariance",
    "Joint",
    "Jumps",
    "Kernel",
    "KernelData",
    "Laplace",
    "LaplaceDraws",
    "LaplaceNoise",
    "Laplacian",
    "Law",
    "LearningMatrix",
    "LengthScale",
    "LevelData",
    "Likelihood",
    "LinearMap",
    "Link",
    "LocalEither",
    "Locator",
    "LogDensity",
    "LogFlat",
    "LogLoss",
    "LogNormal",
    "Logits",
    "Loss",
    "Map",
    "Marginal",
    "Mass",
    "MassField",
    "MatrixFree",
    "MaximumPosterior",
    "Method",
    "Mirror",
    "Mixed",
    "MixtureNoise",
    "MomentumData",
    "Morse",
    "Newton",
    "NewtonCG",
    "Noise",
    "NoisyData",
    "Normal",
    "Operator",
    "Order",
    "Packet",
    "Parametrised",
    "Patches",
    "Pathology",
    "Period",
    "Periodic",
    "Permutation",
    "PositionData",
    "PosteriorDraws",
    "Potential",
    "PotentialFunction",
    "Power",
    "Prior",
    "ProbedLaplace",
    "Problem",
    "Quadratic",
    "QuadraticData",
    "Relevance",
    "Reweighting",
    "RiskData",
    "Rotation",
    "RowData",
    "Rule",
    "Sampler",
    "Shape",
    "Shifted",
    "Smoothed",
    "Smoothness",
    "Spectrum",
    "Splitting",
    "SquareRoot",
    "SquaredLoss",
    "Start",
    "State",
    "Stationary",
    "Strength",
    "Switches",
    "Tempered",
    "Template",
    "ThinPlate",
    "Translation",
    "TrueDensity",
    "TrueFunction",
    "TruePotential",
    "Truncated",
    "TwoWells",
    "Uniform",
    "Unnormalised",
    "VectorData",
    "Weighted",
    "ZeroOneLoss",
    "adapt",
    "check_link",
    "curve",
    "either",
    "find_bifurcations",
    "fit",
    "laplace",
    "links_of",
    "locally",
    "locate",
    "mean_field",
    "measure",
    "regress",
    "sample",
    "screen",
    "solve",
    "theory",
    "weigh",
]
