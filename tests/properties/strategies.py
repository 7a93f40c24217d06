"""Strategies of laws, rules, starts, tables and problems: few shapes and any numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from tinygp import kernels

from quenched import fields, mixtures, outliers, processes, prototypes
from tests.properties.common import KEY

keys = st.just(KEY)
shares = st.one_of(st.floats(0.05, 0.95), st.sampled_from([1e-12, 1 - 1e-12]))
usual = st.floats(0.1, 4.0)
positive = st.one_of(usual, usual, st.sampled_from([1e-12, 1e-3, 50.0, 1e4]))
"""Numbers that a user may give, with some far away."""


def increasing(values: st.SearchStrategy[float], length: int) -> st.SearchStrategy[list[float]]:
    """Lists of one length, so that there is one program."""
    return st.lists(values, min_size=length, max_size=length, unique=True).map(sorted)


def one_or(values: st.SearchStrategy[float], length: int = 3) -> st.SearchStrategy[Any]:
    """A number, or a list of them."""
    return st.one_of(values, increasing(values, length))


# prototypes -----------------------------------------------------------------------------------------------------------

two_clusters = st.builds(
    prototypes.TwoClusters,
    prior=shares,
    separation=st.one_of(positive, st.just(0.0)),
    variances=st.tuples(usual, usual),
)
clusters = st.builds(
    prototypes.Clusters,
    priors=st.floats(0.1, 0.9).map(lambda p: [p, 1 - p]),
    labels=st.just((1, 2)),
    separations=st.tuples(usual, usual),
    gram=st.floats(-0.9, 0.9).map(lambda c: [[1.0, c], [c, 1.0]]),
)
worlds = st.one_of(two_clusters, two_clusters, clusters)
winner_rules = st.one_of(
    *(st.builds(rule, rate=positive) for rule in (prototypes.LVQ1, prototypes.LVQPlus, prototypes.VQ))
)
lvq_rules = st.one_of(winner_rules, st.builds(prototypes.LVQ21, rate=usual))
overlap_starts = st.one_of(
    st.builds(prototypes.NearOrigin, norm=positive),
    st.tuples(st.floats(-1, 1), st.floats(0, 2)).map(
        lambda t: prototypes.Overlaps(R=np.full((2, 2), t[0]), Q=2 * t[0] ** 2 + t[1] * np.eye(2))
    ),
)

# tables ---------------------------------------------------------------------------------------------------------------


def table(rows: int, columns: int, seed: int, scale: float = 1.0) -> np.ndarray:
    """Random numbers in three lumps."""
    rng = np.random.default_rng(seed)
    return scale * (rng.normal(size=(rows, columns)) + 3 * rng.integers(0, 3, (rows, 1)))


def labelled(rows: int, columns: int, seed: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes."""
    return table(rows, columns, seed, scale), np.arange(rows) % 2


seeds = st.integers(0, 2**31)
scales = st.sampled_from([1.0, 1.0, 1e-100, 1e-8, 1e8, 1e100])
tables = st.builds(table, st.just(24), st.just(2), seeds, scales)
pairs = st.builds(labelled, st.just(24), st.just(2), seeds, scales)
row_weights = st.lists(st.floats(0.0, 5.0), min_size=24, max_size=24).filter(any)

# processes ------------------------------------------------------------------------------------------------------------

targets = st.builds(lambda seed, scale: table(24, 1, seed, scale)[:, 0], seeds, scales)
empirical = st.builds(lambda X, y: processes.Empirical(X, y), st.builds(table, st.just(24), st.just(2), seeds), targets)
gaussian_processes = st.builds(
    lambda amplitude, length, noise: processes.GaussianProcess(amplitude * kernels.ExpSquared(length), noise),
    positive,
    positive,
    positive,
)

# fields ---------------------------------------------------------------------------------------------------------------

LINE = fields.Grid(over=[fields.Axis(0, 1, points=8, ends=fields.Periodic())])
INPUTS = fields.Grid(given=[fields.Axis(0, 1, points=8)])


def prior_on(grid: fields.Grid, smooth: float, mass: float) -> fields.Prior:
    """A smooth field of finite size."""
    return fields.Gaussian(smooth * fields.Laplacian(grid) + fields.Mass(grid, mass))


def density_of(logs: list[float]) -> np.ndarray:
    """A density on the line."""
    P = np.exp(np.asarray(logs))
    return P / P.sum() / LINE.spacing


true_densities = st.lists(st.floats(-5, 5), min_size=8, max_size=8).map(
    lambda v: fields.TrueDensity(LINE, density_of(v))
)
true_functions = st.builds(
    lambda values, variance: fields.TrueFunction(INPUTS, values, variance),
    st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=8),
    positive,
)


def rules_on(link: Any) -> st.SearchStrategy[Any]:
    """Students with a link, of any smoothness."""
    return st.builds(
        lambda smooth, mass, strength: fields.MaximumPosterior(link, prior_on(link.grid, smooth, mass), strength),
        positive, positive, positive,
    )  # fmt: skip


density_rules, function_rules = rules_on(fields.LogDensity(LINE)), rules_on(fields.Direct(INPUTS))
places = st.lists(st.floats(0, 1), min_size=3, max_size=3)
density_problems = st.builds(
    lambda points, smooth, mass: fields.Problem(
        fields.DensityData(points), fields.LogDensity(LINE), prior_on(LINE, smooth, mass)
    ),
    places,
    positive,
    positive,
)
function_problems = st.builds(
    lambda points, values, variance, smooth, mass: fields.Problem(
        fields.GaussianData(points, values, variance), fields.Direct(INPUTS), prior_on(INPUTS, smooth, mass)
    ),
    places,
    st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    positive,
    positive,
    positive,
)
probabilities = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(lambda p: (np.asarray(p) / np.sum(p)).tolist())

# outliers and mixtures ------------------------------------------------------------------------------------------------

contaminated = st.builds(outliers.Contaminated, gamma=positive, eta=st.floats(-6, 8))
selections = st.one_of(
    st.builds(outliers.SoftSelection, gamma=st.none() | positive),
    st.builds(outliers.HardSelection, gamma=st.none() | positive),
)
students = st.one_of(
    selections,
    selections,
    st.builds(outliers.Hebb, gamma=st.none() | positive),
    st.builds(outliers.Gibbs, temperature=usual),
)
outlier_starts = st.one_of(
    st.builds(outliers.RandomStart, scale=positive),
    st.builds(outliers.TeacherStart, scale=positive),
    st.builds(outliers.CarriedStart),
)
two_gaussians = st.builds(mixtures.TwoGaussians, separation=positive)
likelihoods = st.builds(mixtures.MaximumLikelihood, width=positive)
mixture_starts = st.one_of(
    st.builds(mixtures.Annealed, from_width=st.none() | usual, step=st.floats(0.05, 0.9), noise=positive),
    st.builds(mixtures.RandomStart, scale=positive),
)
