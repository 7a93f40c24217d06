"""Low rank: at full rank it is exact, and what it neglects is bounded."""

import jax
import numpy as np
import pytest

from quenched.processes import GaussianProcess, theory
from quenched.processes.kernels import numbers_of
from quenched.processes.theory import responses
from quenched.processes.theory.responses import Exact, LowRank
from tests.processes import cases
from tests.tolerances import ALGEBRA, EXACT, MACHINE, SAME


def test_full_rank_is_exact(monkeypatch):
    monkeypatch.setattr(responses, "CHUNK", 17)  # several chunks
    law, rule = cases.diabetes(rows=60)
    exact, low = theory.curve(law, rule, examples=[30, 60]), theory.curve(law, rule, examples=[30, 60], rank=60)
    for name in ("posterior_variance", "error", "oob_error", "mean", "spread", "oob_coverage", "multiplicity_error"):
        np.testing.assert_allclose(low[name], exact[name], rtol=2e-6, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(low.self_check_error, exact.self_check_error, atol=1e-6)
    assert low.attrs["leave_one_out"] == pytest.approx(exact.attrs["leave_one_out"], rel=1e-6)


def test_kernel_as_matrix_is_the_kernel(monkeypatch):
    monkeypatch.setattr(responses, "CHUNK", 17)
    law, rule = cases.diabetes(rows=60)
    n, _ = numbers_of(law, rule)
    matrix = GaussianProcess(np.asarray(n.K), rule.noise)
    for rank in (None, 20):
        one, two = (theory.curve(law, r, examples=[30], rank=rank) for r in (rule, matrix))
        np.testing.assert_allclose(one.oob_error, two.oob_error, rtol=1e-9)


def test_low_rank_response_is_the_dense_one(monkeypatch):
    monkeypatch.setattr(responses, "CHUNK", 5)
    draw = np.random.default_rng(1)
    F, E, u, v, w = draw.normal(size=(12, 5)), draw.random(12), draw.random(12), draw.normal(size=12), draw.random(12)
    rows, C = np.array([7, 2]), np.array([[0, 5, 11], [2, 1, 4]])
    thin, dense = LowRank(F, E).respond(u), Exact(F @ F.T + np.diag(E)).respond(u)
    np.testing.assert_allclose(thin.diagonal(), dense.diagonal(), rtol=ALGEBRA)
    np.testing.assert_allclose(thin.apply(v), dense.apply(v), rtol=ALGEBRA, atol=MACHINE)
    np.testing.assert_allclose(thin.square(v), dense.square(v), rtol=ALGEBRA, atol=MACHINE)
    found = thin.solve(0.01 * w, v, v, 1e-10)
    np.testing.assert_allclose(found, dense.solve(0.01 * w, v, v, 0.0), rtol=1e-7, atol=SAME)
    np.testing.assert_allclose(thin.rows(rows), dense.rows(rows), rtol=ALGEBRA, atol=MACHINE)
    for one, two in zip(thin.blocks(C, thin.weigh(v)), dense.blocks(C, dense.weigh(v)), strict=True):
        np.testing.assert_allclose(one, two, rtol=SAME, atol=MACHINE)


@pytest.mark.parametrize("rank", [None, 3])
def test_curves_on_an_accelerator_are_those_of_the_host(monkeypatch, rank):
    """There the same equations run on JAX arrays."""
    host = theory.curve(*cases.five(), rank=rank, examples=3)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    other = theory.curve(*cases.five(), rank=rank, examples=3)
    for name in ("oob_error", "posterior_variance", "self_check_error", "self_check_shift_error", "coverage"):
        np.testing.assert_allclose(other[name], host[name], rtol=EXACT, atol=EXACT, err_msg=name)


def test_the_bound_on_what_is_neglected_holds():
    law, rule = cases.diabetes(rows=80)
    n, _ = numbers_of(law, rule)
    u = np.full(80, 1.5)
    exact = Exact(n.K).respond(u).diagonal()
    for rank in (5, 20, 50):
        prior = responses.factorise(law, rule, rank)
        np.testing.assert_allclose(prior.E / responses.KEPT + np.sum(prior.F**2, axis=1), np.diagonal(n.K))
        low = prior.respond(u).diagonal()
        assert 0 < np.mean(np.abs(low - exact)) <= responses.variance_bound(prior, low, u)


def test_half_of_what_is_neglected_is_kept(monkeypatch):
    """Without it variances are too small, with all of it too large; with half they are closer than either."""
    law, rule = cases.diabetes(rows=200)
    n, _ = numbers_of(law, rule)
    u = np.full(200, 5.0)
    exact = np.mean(Exact(n.K).respond(u).diagonal())

    def off(kept):
        monkeypatch.setattr(responses, "KEPT", kept)
        return float(np.mean(responses.factorise(law, rule, 30).respond(u).diagonal()) / exact - 1)

    half = off(responses.KEPT)
    assert off(0.0) < -0.2
    assert off(1.0) > 0.2
    assert abs(half) < 0.01
