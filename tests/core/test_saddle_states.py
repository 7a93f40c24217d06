"""A state as a pure function with its derivatives, and on the host, against systems solved in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.core import saddle
from quenched.core.saddle import Setting
from quenched.core.saddle.state import solve_linear
from quenched.core.types import InputError, Outcome
from tests import tolerances
from tests.programs import compiled
from tests.systems import magnets
from tests.systems.cubic import CUBIC, Numbers, moment

SOLVED = 1e-11
"""States are solved to the rounding of their equations."""
T = 0.5
fold = saddle.Landscape(equations=lambda x, p, _: x**2 + p)
broken = saddle.Landscape(equations=lambda x, p, _: x * jnp.nan)
none = saddle.Landscape(equations=lambda x, p, _: x**2 + 1 + p**2)


def test_a_state_and_its_first_and_second_derivatives(double):
    """m = a^(1/3) b^2 (a + 1), also where the derivatives pass through a landmark, in `vmap` and in reverse."""

    def m(a, b):
        return saddle.state(CUBIC, Numbers(a, b), jnp.full(3, 0.5)).readings.m

    a, b = 1.7, 0.6
    exact = moment(a, b)
    by_a = b**2 * (4 / 3 * a ** (1 / 3) + a ** (-2 / 3) / 3)
    by_aa = b**2 * (4 / 9 * a ** (-2 / 3) - 2 / 9 * a ** (-5 / 3))
    value, slopes = compiled(jax.value_and_grad(m, (0, 1)))(a, b)
    np.testing.assert_allclose([value, *slopes], [exact, by_a, 2 * exact / b], rtol=tolerances.ALGEBRA)
    bends = compiled(jax.hessian(m, (0, 1)))(a, b)
    np.testing.assert_allclose(
        bends, [[by_aa, 2 * by_a / b], [2 * by_a / b, 2 * exact / b**2]], rtol=tolerances.ALGEBRA
    )
    many = compiled(jax.vmap(m, (0, None)))(jnp.array([a, 8.0]), b)
    np.testing.assert_allclose(many, [exact, 2 * b**2 * 9], rtol=tolerances.ALGEBRA)


def test_the_state_on_the_host_is_the_compiled_one(double):
    theta = Numbers(1.7, 0.6)
    host, compiled = saddle.solve(CUBIC, theta, np.full(3, 0.5)), saddle.state(CUBIC, theta, np.full(3, 0.5))
    assert (host.outcome, int(compiled.outcome)) == (Outcome.converged, Outcome.converged)
    np.testing.assert_allclose(host.x, compiled.x, rtol=SOLVED)
    np.testing.assert_allclose(host.readings.m, compiled.readings.m, rtol=SOLVED)


def test_implicit_derivatives_of_a_magnet(double):
    def state(h, T):
        return saddle.state(magnets.IN_FIELD, Setting(h, T), jnp.array([0.9])).x[0]

    m, slopes = compiled(jax.value_and_grad(state, (0, 1)))(0.05, T)
    expected = magnets.susceptibility(m, T)
    np.testing.assert_allclose(slopes, [expected, -np.arctanh(m) * expected], rtol=tolerances.ALGEBRA)


def test_of_several_starts_the_least_free_energy(double):
    found = saddle.state(magnets.IN_FIELD, Setting(-0.05, T), jnp.array([[0.9], [-0.9], [0.0]]))
    assert float(found.x[0]) < -0.9
    assert int(found.outcome) == Outcome.converged


def test_where_there_is_no_state_the_outcome_tells(double):
    assert int(saddle.state(none, Setting(0.0), jnp.array([0.3])).outcome) == Outcome.failed
    assert saddle.solve(none, Setting(0.0), [0.3]).outcome is Outcome.failed
    assert saddle.solve(broken, Setting(0.0), [0.3]).outcome is Outcome.failed


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_linear_equations_without_lapack(double, d):
    rng = np.random.default_rng(d)
    A, b = rng.normal(size=(d, d)), rng.normal(size=d)
    A[0, 0] = A[0, 0] if d < 2 else 0.0  # a pivot is needed
    np.testing.assert_allclose(compiled(solve_linear)(A, b), np.linalg.solve(A, b), rtol=SOLVED)


def test_states_need_double_precision():
    with pytest.raises(InputError, match="double precision"):
        saddle.state(fold, Setting(-1.0), jnp.ones(1))
