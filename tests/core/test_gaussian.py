import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from quenched.core import gaussian
from tests import tolerances
from tests.programs import compiled

finite = st.floats(-6, 6)
orthant, bivariate_cdf = compiled(gaussian.orthant), compiled(gaussian.bivariate_cdf)
gradient = compiled(jax.grad(gaussian.bivariate_cdf, argnums=(0, 1, 2)))


def by_quadrature(h, k, rho):
    s = np.sqrt(1 - rho**2)
    kink = [x for x in ([k / rho] if rho else []) if -12 < x < h]
    value, _ = quad(
        lambda x: np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * ndtr((k - rho * x) / s),
        -12, h, points=kink or None, limit=400, epsabs=1e-13, epsrel=1e-12,
    )  # fmt: skip
    return value


@given(h=finite, k=finite, rho=st.floats(-0.999, 0.999))
@settings(max_examples=60, deadline=None)
def test_bivariate_equals_quadrature(h, k, rho):
    with jax.enable_x64(True):
        ours = float(bivariate_cdf(h, k, rho))
    assert ours == pytest.approx(by_quadrature(h, k, rho), abs=1e-11)


@pytest.mark.parametrize("rho", [-0.99, -0.3, 0.0, 0.5, 0.999])
def test_bivariate_at_the_origin_is_the_arcsine_law(double, rho):
    assert float(bivariate_cdf(0.0, 0.0, rho)) == pytest.approx(0.25 + np.arcsin(rho) / (2 * np.pi), abs=1e-15)


@pytest.mark.parametrize("argument", [0, 1, 2])
def test_bivariate_gradient(double, argument):
    at, step = np.array([0.2, -0.7, 0.4]), 1e-5
    up, down = at.copy(), at.copy()
    up[argument] += step
    down[argument] -= step
    slope = (float(bivariate_cdf(*up)) - float(bivariate_cdf(*down))) / (2 * step)
    assert float(gradient(*at)[argument]) == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_orthant_of_independent_variables_is_a_product(double, d):
    mean, sd = np.linspace(-0.6, 1.1, d), np.linspace(0.5, 2.0, d)
    assert float(orthant(mean, np.diag(sd**2))) == pytest.approx(
        float(np.prod(ndtr(mean / sd))), abs=tolerances.QUADRATURE
    )


@pytest.mark.parametrize("d", [3, 4])
def test_orthant_of_equal_correlation_is_a_single_integral(double, d):
    # y_i = mean_i + a t + b z_i with one common t: P = < prod Phi((mean_i + a t)/b) >
    mean, a, b = np.linspace(-0.5, 0.8, d), 0.9, 0.7
    cov = a**2 * np.ones((d, d)) + b**2 * np.eye(d)
    exact, _ = quad(
        lambda t: np.exp(-t * t / 2) / np.sqrt(2 * np.pi) * np.prod(ndtr((mean + a * t) / b)), -10, 10, epsabs=1e-13
    )
    assert float(orthant(mean, cov)) == pytest.approx(exact, abs=tolerances.QUADRATURE)


def test_orthants_of_all_signs_sum_to_one(double):
    cov = np.array([[1.0, 0.3, -0.2], [0.3, 2.0, 0.5], [-0.2, 0.5, 0.8]])
    mean = np.array([0.3, -0.2, 0.6])
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
    total = sum(float(orthant(s * mean, cov * np.outer(s, s))) for s in signs)
    assert total == pytest.approx(1.0, abs=tolerances.QUADRATURE)


def test_average_of_a_polynomial_is_exact(double):
    average = compiled(lambda mean, variance: gaussian.average(lambda x: x**4, mean, variance))
    assert float(average(0.5, 2.0)) == pytest.approx(0.5**4 + 6 * 0.5**2 * 2 + 3 * 4, rel=1e-13)
