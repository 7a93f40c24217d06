"""Branches, folds and crossings of an energy that has two kinds of minima, against training."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize

from quenched.core import replica
from quenched.core.proof import agreement
from quenched.core.types import InputError
from tests import tolerances

SCALE, RIDGE, NOISE = 0.2, 30.0, 0.01
FINITE_SIZE = 3.0
"""Overlaps at size N deviate from N = infinity by less than this over N, besides their standard error."""


class Bounded(eqx.Module):
    """A loss that is quadratic for small residuals and constant for large ones: outliers have no pull."""

    scale: float

    def __call__(self, y, Q):
        return 1 - jnp.exp(-0.5 * (y / self.scale) ** 2)


class Ridge(eqx.Module):
    """The ridge of J, written for J - B."""

    strength: float

    def __call__(self, R, Q):
        return 0.5 * self.strength * (Q + 2 * R + 1)


def bounded(scale=SCALE, strength=RIDGE):
    return replica.Problem(Bounded(scale), replica.Classes(noise=NOISE), Ridge(strength))


@pytest.fixture(scope="module")
def lines():
    return replica.transitions(bounded(), limits=(15.0, 29.0))


@pytest.fixture(scope="module")
def curve():
    return replica.curve(bounded(), alpha=[16.0, 18.0, 20.0, 22.0, 28.0], branches=True)


def test_two_branches_end_in_folds_and_cross_between(lines, curve):
    assert lines.sizes["branch"] == 2
    assert list(lines.start_outcome.values) == ["absent", "converged"]
    assert list(lines.end_outcome.values) == ["converged", "absent"]
    begin, crossing, end = float(lines.start[1]), float(lines.crossing.sel(pair="0-1")), float(lines.end[0])
    assert 16 < begin < 18 < 20 < crossing < 22 < end < 28
    assert float(lines.crossing_stability.max()) < 1  # replica symmetry holds at the transition
    exists = np.stack([curve.alpha < end, curve.alpha > begin], axis=1)
    np.testing.assert_array_equal(curve.outcome, np.where(exists, "converged", "absent"))
    np.testing.assert_array_equal(curve.lowest[1:4, 0], curve.alpha[1:4] < crossing)
    np.testing.assert_array_equal(np.isnan(curve.R), ~exists)
    assert float(curve.residual.max()) < tolerances.SAME
    near = replica.curve(bounded(), alpha=[begin + 1e-4, end - 1e-4], branches=True)  # beside either fold
    assert np.all(near.outcome == "converged")


def test_free_energies_are_equal_at_a_crossing_in_any_control(lines):
    alpha = float(lines.crossing[0])
    both = replica.curve(bounded(), alpha=[alpha - 1, alpha], branches=True).free_energy[-1]
    assert float(both[0]) == pytest.approx(float(both[1]), abs=tolerances.SAME)
    found = replica.transitions(bounded(), along="strength", limits=(25.0, 35.0), alpha=[alpha, alpha + 1])
    assert found.crossing.dims == ("alpha", "pair")
    assert float(found.crossing[0, 0]) == pytest.approx(RIDGE, abs=1e-7)  # the same point, along another control
    assert float(found.crossing[1, 0]) > RIDGE
    swept = replica.curve(bounded(), alpha=alpha, branches=True, strength=[29.0, 30.0, 31.0])
    assert swept.R.dims == ("strength", "branch")
    np.testing.assert_allclose(swept.free_energy.sel(strength=30.0).values, both.values[::-1], atol=tolerances.SAME)


def test_replica_symmetry_breaks_where_the_stability_is_one():
    found = replica.transitions(bounded(strength=20.0), limits=(8.0, 12.0))
    alpha = float(found.replica_symmetry[0])
    assert float(replica.curve(bounded(strength=20.0), alpha=alpha).stability) == pytest.approx(1, abs=tolerances.SAME)


def test_one_branch_without_folds():
    found = replica.transitions(bounded(scale=1.0), limits=(15.0, 29.0))
    assert found.sizes == {"branch": 1, "pair": 0}
    assert np.all(found.start_outcome == "absent")
    alone = replica.curve(bounded(scale=1.0), alpha=20.0)
    branch = replica.curve(bounded(scale=1.0), alpha=20.0, branches=True)
    for name in ("R", "Q", "z", "free_energy"):
        np.testing.assert_allclose(branch[name], [alone[name]], atol=tolerances.SAME)


def train(rng, size, alpha, informed):
    """Descend from the teacher or from nothing: overlap and norm of J - B, and the energy."""
    B = rng.standard_normal(size)
    B *= np.sqrt(size) / np.linalg.norm(B)
    x = rng.standard_normal((int(alpha * size), size)) / np.sqrt(size)
    target = x @ B + np.sqrt(NOISE) * rng.standard_normal(len(x))

    def energy(J):
        residual = x @ J - target
        weight = np.exp(-0.5 * (residual / SCALE) ** 2)
        total = np.sum(1 - weight) + 0.5 * RIDGE * J @ J
        return total, x.T @ (weight * residual) / SCALE**2 + RIDGE * J

    found = minimize(energy, B if informed else np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    D = found.x - B
    return D @ B / size, D @ D / size, found.fun / size


@pytest.mark.parametrize("branch", [0, 1], ids=["from nothing", "from the teacher"])
def test_training_ends_in_the_branch_in_which_it_begins(curve, branch):
    size, runs, rng = 200, 12, np.random.default_rng(5)
    alphas, names = [18.0, 20.0, 22.0], ("R", "Q", "free_energy")
    found = np.array([[train(rng, size, alpha, branch == 1) for _ in range(runs)] for alpha in alphas])
    values = {f"{name}_run": (("alpha", "run"), found[..., i]) for i, name in enumerate(names)}
    values |= {name: ("alpha", found[..., i].mean(axis=1)) for i, name in enumerate(names)}
    theory = curve.sel(branch=branch, alpha=alphas)
    assert np.all(theory.stability < 1)
    for name, allowance in (("R", FINITE_SIZE / size), ("Q", FINITE_SIZE / size), ("free_energy", 0.0)):
        proof = agreement(theory, xr.Dataset(values, {"alpha": alphas}), variables=[name], allowance=allowance)
        assert proof.passed, proof


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: replica.transitions(bounded(), along="depth", limits=(1.0, 2.0), alpha=1.0),
            "A control must be alpha",
        ),
        (lambda: replica.transitions(bounded(), limits=(1.0, 2.0, 3.0)), "`limits` must be a low and a high"),
        (lambda: replica.transitions(bounded(), limits=(2.0, 1.0)), "`limits` must increase"),
        (lambda: replica.transitions(bounded(), limits=(1.0, 2.0), alpha=1.0), "`alpha` must be given, unless"),
        (lambda: replica.transitions(bounded(), along="scale", limits=(1.0, 2.0)), "`alpha` must be given, unless"),
        (lambda: replica.curve(bounded(), alpha=1.0, scale=[2.0, 1.0]), "`scale` must increase"),
        (lambda: replica.curve(bounded(), alpha=1.0, scale=1.0, strength=1.0), "One control besides alpha"),
    ],
)
def test_bad_input_is_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
