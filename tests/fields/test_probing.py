"""Laplace's approximation from random probes, against dense algebra."""

import numpy as np
import pytest

from quenched import fields
from quenched.core.types import InputError
from quenched.fields.model import preconditioner

X, Y = fields.Axis(0, 1, points=12, ends=fields.Periodic()), fields.Axis(0, 1, points=10)
ROWS = np.random.default_rng(0).normal(0.5, 0.12, (200, 2))
FIVE = 5.0
"""Standard errors within which an estimate lies; seeds are fixed, so it does not fluctuate."""


def problems():
    plane, inputs = fields.Grid(over=[X, Y]), fields.Grid(given=[X, Y])
    values = np.random.default_rng(1).normal(size=200)
    conditional = fields.Grid(given=[X], over=[Y])
    blind = fields.Gaussian(1e-3 * fields.Laplacian(conditional, Y))
    return {
        "density": fields.Problem(fields.DensityData(ROWS), fields.LogDensity(plane),
                                  fields.Gaussian(1e-3 * fields.Laplacian(plane) ** 2)),
        "conditional": fields.Problem(fields.DensityData(ROWS), fields.Shifted(conditional), blind),
        "regression": fields.Problem(fields.GaussianData(ROWS, values, 0.3), fields.Direct(inputs),
                                     fields.Gaussian(1e-3 * fields.Laplacian(inputs) ** 2 + fields.Mass(inputs, 1e-2))),
    }  # fmt: skip


PROBLEMS = problems()


@pytest.fixture
def small_block(monkeypatch):
    """On so small a grid the preconditioner would be exact, and nothing would be random. Programs are kept by shape."""
    monkeypatch.setattr(preconditioner.box_of, "__defaults__", (20,))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.usefixtures("small_block")
def test_the_evidence_and_the_variance_are_those_of_dense_algebra_within_their_errors(name):
    problem = PROBLEMS[name]
    fit = fields.solve(problem)
    dense, probed = fields.laplace(problem, fit), fields.laplace(problem, fit, probes=32)
    assert probed.proper == dense.proper
    assert 0.01 < probed.log_evidence_error < 5.0
    assert abs(probed.log_evidence - dense.log_evidence) < FIVE * probed.log_evidence_error
    off = (probed.variance - dense.variance) / probed.variance_error
    assert np.max(np.abs(off)) < FIVE
    assert abs(np.mean(off)) < 1.0
    widths = [
        np.subtract(*(one.band(0.9) if name == "regression" else np.log(one.band(0.9)))) for one in (probed, dense)
    ]
    np.testing.assert_allclose(widths[0] / widths[1], 1.0, atol=FIVE * np.sqrt(0.5 / probed.draws))


def test_the_evidence_is_exact_where_the_preconditioner_is():
    inputs = fields.Grid(given=[X, fields.Axis(0, 1, points=9)])
    prior = fields.Gaussian(1e-3 * fields.Laplacian(inputs) ** 2 + fields.Mass(inputs, 1e-2))
    problem = fields.Problem(fields.GaussianData(ROWS, ROWS[:, 0], 0.3), fields.Direct(inputs), prior)
    fit = fields.solve(problem)
    probed = fields.laplace(problem, fit, probes=2)
    assert probed.log_evidence == pytest.approx(fields.laplace(problem, fit).log_evidence, rel=1e-8)
    assert probed.log_evidence_error < 1e-6


def test_what_cannot_be_probed_is_refused():
    problem, fit = PROBLEMS["density"], np.zeros((12, 10))
    with pytest.raises(InputError, match=r"`unit_information` must be False with `probes`"):
        fields.laplace(problem, fit, probes=4, unit_information=True)
    root = fields.Problem(problem.likelihood, fields.SquareRoot(problem.grid), problem.prior)
    with pytest.raises(InputError, match="`probes` must be None here"):
        fields.laplace(root, fit, probes=4)
    with pytest.raises(InputError, match="`probes` must be"):
        fields.laplace(problem, fit, probes=0)
