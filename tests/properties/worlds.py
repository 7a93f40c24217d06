"""Arguments of every public law, rule, start and other declaration."""

from __future__ import annotations

import enum
import importlib
import inspect
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tinygp import kernels

import quenched
from quenched import fields, mixtures, outliers, processes, prototypes
from tests.properties.strategies import INPUTS, LINE, positive, prior_on, shares, usual

ANSWERS = {"Fitted", "FittedDensity", "FittedFunction", "Laplace"}
"""Classes that verbs return; nobody declares them."""


def declarations() -> dict[str, type]:
    """Every public class that a user declares something with, found where it is exported."""
    found = {}
    for science in quenched.SCIENCES:
        home = importlib.import_module(f"quenched.{science}")
        for name in home.__all__:
            thing = getattr(home, name)
            if isinstance(thing, type) and not inspect.isabstract(thing) and not issubclass(thing, enum.Enum):
                found[f"{science}.{name}"] = thing
    return {name: cls for name, cls in found.items() if name.partition(".")[2] not in ANSWERS}


def case(cls: Any, **good: st.SearchStrategy[Any]) -> tuple[Any, st.SearchStrategy[dict[str, Any]]]:
    """A class and good arguments."""
    return cls, st.fixed_dictionaries(good)


grids, axes = st.sampled_from([LINE, INPUTS]), st.just(LINE.axes[0])
square = st.just(np.eye(8))
smooth = st.just(fields.Laplacian(LINE))
rates = {"rate": positive}
DECLARED = {
    "prototypes.TwoClusters": case(
        prototypes.TwoClusters, prior=shares, separation=positive, variances=st.tuples(positive, positive)
    ),
    "prototypes.Clusters": case(prototypes.Clusters, priors=st.just([0.5, 0.5]), labels=st.just([1, 2])),
    "prototypes.LVQ1": case(prototypes.LVQ1, **rates),
    "prototypes.LVQPlus": case(prototypes.LVQPlus, **rates),
    "prototypes.LVQ21": case(prototypes.LVQ21, **rates),
    "prototypes.VQ": case(prototypes.VQ, **rates),
    "prototypes.Decay": case(prototypes.Decay, initial=positive, time=positive),
    "prototypes.Interpolated": case(prototypes.Interpolated, rates=st.tuples(positive, positive), until=positive),
    "prototypes.NearOrigin": case(prototypes.NearOrigin, norm=positive),
    "prototypes.Overlaps": case(prototypes.Overlaps, R=st.just(np.zeros((2, 2))), Q=st.just(np.eye(2))),
    "prototypes.Direct": case(prototypes.Direct),
    "prototypes.Chain": case(prototypes.Chain),
    "mixtures.TwoGaussians": case(mixtures.TwoGaussians, separation=positive),
    "mixtures.MaximumLikelihood": case(mixtures.MaximumLikelihood, width=positive),
    "mixtures.Spherical": case(mixtures.Spherical, least=shares, equal_weights=st.booleans(), common=st.booleans()),
    "mixtures.Diagonal": case(mixtures.Diagonal, least=shares, equal_weights=st.booleans(), common=st.booleans()),
    "mixtures.Annealed": case(mixtures.Annealed, from_width=st.none() | positive, step=shares, noise=positive),
    "mixtures.RandomStart": case(mixtures.RandomStart, scale=positive),
    "mixtures.Rule": case(mixtures.Rule),
    "mixtures.Start": case(mixtures.Start),
    "outliers.Contaminated": case(outliers.Contaminated, gamma=positive, eta=usual),
    "outliers.SoftSelection": case(outliers.SoftSelection, gamma=st.none() | positive),
    "outliers.HardSelection": case(outliers.HardSelection, gamma=st.none() | positive),
    "outliers.Hebb": case(outliers.Hebb, gamma=st.none() | positive),
    "outliers.Gibbs": case(outliers.Gibbs, gamma=st.none() | positive, temperature=positive),
    "outliers.RandomStart": case(outliers.RandomStart, scale=positive),
    "outliers.TeacherStart": case(outliers.TeacherStart, scale=positive),
    "outliers.CarriedStart": case(outliers.CarriedStart, first=st.builds(outliers.RandomStart)),
    "outliers.Law": case(outliers.Law),
    "outliers.Rule": case(outliers.Rule, gamma=st.none() | positive),
    "outliers.Start": case(outliers.Start),
    "processes.Empirical": case(
        processes.Empirical, inputs=st.just(np.eye(6)), targets=st.just(np.arange(6.0)), centre=usual, scale=positive
    ),
    "processes.GaussianProcess": case(
        processes.GaussianProcess, kernel=st.sampled_from([kernels.ExpSquared(1.0), np.eye(6)]), noise=positive
    ),
    "processes.PoissonTotal": case(processes.PoissonTotal),
    "processes.FixedTotal": case(processes.FixedTotal),
    "processes.Total": case(processes.Total),
    "processes.Plain": case(processes.Plain),
    "processes.LatinHypercube": case(processes.LatinHypercube, draws=st.integers(1, 32)),
    "processes.Cavity": case(processes.Cavity),
    "processes.Variational": case(processes.Variational),
    "processes.Evidence": case(processes.Evidence),
    "processes.PredictedError": case(processes.PredictedError, ratio=positive),
    "processes.Rule": case(processes.Rule),
    "fields.Axis": case(fields.Axis, low=st.floats(-1, 0), high=usual, points=st.integers(2, 9)),
    "fields.Grid": case(fields.Grid, given=axes.map(lambda axis: [axis]), over=axes),
    "fields.Free": case(fields.Free),
    "fields.Periodic": case(fields.Periodic),
    "fields.Dirichlet": case(fields.Dirichlet, value=usual, upper=st.none() | usual),
    "fields.LogDensity": case(fields.LogDensity, grid=st.just(LINE)),
    "fields.Density": case(fields.Density, grid=st.just(LINE)),
    "fields.SquareRoot": case(fields.SquareRoot, grid=st.just(LINE)),
    "fields.Shifted": case(fields.Shifted, grid=st.just(LINE)),
    "fields.Direct": case(fields.Direct, grid=grids),
    "fields.DensityData": case(fields.DensityData, points=st.just([0.1, 0.2]), weights=st.none() | st.just([1.0, 2.0])),
    "fields.GaussianData": case(fields.GaussianData, points=st.just([0.1]), targets=st.just([1.0]), variance=positive),
    "fields.Gaussian": case(fields.Gaussian, operator=smooth, mean=st.none() | usual),
    "fields.Dense": case(fields.Dense, grid=grids, given=square),
    "fields.Filter": case(fields.Filter, grid=grids, W=square),
    "fields.Problem": case(
        fields.Problem,
        likelihood=st.just(fields.DensityData([0.1, 0.2])),
        link=st.just(fields.LogDensity(LINE)),
        prior=st.just(prior_on(LINE, 1.0, 1.0)),
    ),
    "fields.MaximumPosterior": case(
        fields.MaximumPosterior,
        link=st.just(fields.LogDensity(LINE)),
        prior=st.just(prior_on(LINE, 1.0, 1.0)),
        strength=positive,
    ),
    "fields.TrueDensity": case(
        fields.TrueDensity, grid=st.just(LINE), density=st.just(np.full(8, 1 / 8 / LINE.spacing))
    ),
    "fields.TrueFunction": case(
        fields.TrueFunction, grid=st.just(INPUTS), values=st.just(np.zeros(8)), variance=positive
    ),
    "fields.Law": case(fields.Law),
    "fields.Rule": case(fields.Rule),
    "fields.Uniform": case(fields.Uniform),
    "fields.Empirical": case(fields.Empirical, epsilon=positive),
    "fields.Kernel": case(fields.Kernel, mass=positive, operator=st.none() | smooth, conditional=st.booleans()),
    "fields.Truncated": case(fields.Truncated, mass=positive, operator=st.none() | smooth),
    "fields.Given": case(fields.Given, given=st.just(np.zeros(8))),
    "fields.Newton": case(fields.Newton, mass=positive),
    "fields.SquaredLoss": case(fields.SquaredLoss),
    "fields.AbsoluteLoss": case(fields.AbsoluteLoss),
    "fields.ZeroOneLoss": case(fields.ZeroOneLoss),
    "fields.LogLoss": case(fields.LogLoss),
}
