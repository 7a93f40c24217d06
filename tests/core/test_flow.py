import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.core import fixed_point, flow
from quenched.core.types import Outcome
from tests import tolerances


def decay(t, y, rate):
    return -rate * y


def test_integrates_exponential_decay(double):
    times = jnp.linspace(0.0, 5.0, 6)
    path = jax.jit(lambda rate: flow.integrate(decay, jnp.array([2.0]), times, rate))(0.7)
    np.testing.assert_allclose(path.states[:, 0], 2 * np.exp(-0.7 * np.asarray(times)), rtol=tolerances.FLOW)
    assert np.all(path.outcome == Outcome.converged)


def test_divergence_is_an_outcome(double):
    path = jax.jit(lambda y: flow.integrate(lambda t, y, _: y, y, jnp.array([1.0, 100.0]), bound=1e6))(jnp.ones(1))
    assert path.outcome.tolist() == [Outcome.converged, Outcome.diverged]
    assert np.isfinite(path.states[0, 0])
    assert np.isnan(path.states[1, 0])


def test_running_out_of_steps_is_an_outcome(double):
    path = jax.jit(lambda y: flow.integrate(decay, y, jnp.array([1e3]), 1.0, max_steps=16))(jnp.ones(1))
    assert path.outcome.tolist() == [Outcome.stalled]


def test_gradient_through_a_flow(double):
    end = lambda rate: flow.integrate(decay, jnp.array([2.0]), jnp.array([3.0]), rate).states[0, 0]  # noqa: E731
    assert float(jax.jit(jax.grad(end))(0.7)) == pytest.approx(-6 * np.exp(-2.1), rel=tolerances.GRADIENT)


def test_settle_finds_rest_and_its_stability(double):
    # dx = 1 - x^2: rests at 1 with eigenvalue -2
    rest = flow.settle(lambda x: 1 - x**2, lambda x: (1 - x**2, np.diag(-2 * x)), np.array([0.1]))
    assert float(rest.state[0]) == pytest.approx(1.0, abs=1e-12)
    assert rest.growth == pytest.approx(-2.0, abs=1e-9)
    assert int(rest.outcome) == Outcome.converged


def test_settle_reports_divergence(double):
    rest = flow.settle(lambda x: x, lambda x: (x, np.eye(1)), np.array([0.1]), bound=1e3)
    assert rest.outcome == Outcome.diverged


def test_settle_leaves_a_rest_state_that_repels_unless_it_begins_on_the_way_into_it():
    """dx = x - x^3, dy = -y: a saddle at 0, which attracts only x = 0, and rest states at x = 1 and -1."""
    field = lambda z: np.array([z[0] - z[0] ** 3, -z[1]])  # noqa: E731
    linear = lambda z: (field(z), np.diag([1 - 3 * z[0] ** 2, -1.0]))  # noqa: E731
    for x, end in ((0.0, 0.0), (1e-7, 1.0), (-1e-7, -1.0)):
        rest = flow.settle(field, linear, np.array([x, 1.0]))
        np.testing.assert_allclose(rest.state, [end, 0.0], atol=1e-12)
        assert (rest.growth < 0) == (end != 0)


def test_the_host_takes_the_same_steps_as_the_compiled_program(double):
    times = np.array([0.0, 0.5, 3.0, 5.0])
    host = flow.follow(lambda t, y: np.array([-y[0] * y[1], np.sin(t) * y[0] - y[1]]), np.array([2.0, 1.0]), times)
    field = lambda t, y, _: jnp.stack([-y[0] * y[1], jnp.sin(t) * y[0] - y[1]])  # noqa: E731
    path = jax.jit(lambda y: flow.integrate(field, y, jnp.asarray(times)))(jnp.array([2.0, 1.0]))
    np.testing.assert_allclose(host.states, path.states, atol=tolerances.MACHINE)
    assert np.all(host.outcome == Outcome.converged)


def test_the_host_marks_times_that_are_not_reached():
    gone = flow.follow(lambda t, y: y, np.ones(1), np.array([1.0, 100.0]), bound=1e6)
    assert gone.outcome.tolist() == [Outcome.converged, Outcome.diverged]
    assert np.isfinite(gone.states[:, 0]).tolist() == [True, False]
    assert flow.follow(lambda t, y: -y, np.ones(1), np.array([1e3]), max_steps=16).outcome.tolist() == [Outcome.stalled]
    lost = flow.follow(lambda t, y: np.nan * y, np.ones(1), np.array([1.0]))
    assert lost.outcome.tolist() == [Outcome.failed]


@pytest.mark.parametrize("newton", [True, False])
def test_root_and_its_implicit_derivative(double, newton):
    solve = lambda a: fixed_point.root(lambda x, a: x**2 - a, jnp.array(1.0), a, newton=newton).value  # noqa: E731
    assert float(solve(2.0)) == pytest.approx(np.sqrt(2), abs=1e-12)
    assert float(jax.grad(solve)(2.0)) == pytest.approx(1 / (2 * np.sqrt(2)), rel=1e-9)


def test_root_that_does_not_exist_is_marked(double):
    found = fixed_point.root(lambda x, _: x**2 + 1.0, jnp.array(0.7), max_steps=50)
    assert int(found.outcome) != Outcome.converged
    assert float(found.residual) >= 1.0


def test_damped_fixed_point(double):
    # x <- -1.5 x + 1 diverges undamped; the fixed point is 0.4
    update = lambda x, _: 1 - 1.5 * x  # noqa: E731
    assert float(fixed_point.fixed_point(update, jnp.array(0.0), damping=0.5).value) == pytest.approx(0.4, abs=1e-10)
    assert int(fixed_point.fixed_point(update, jnp.array(0.0), max_steps=50).outcome) != Outcome.converged


def test_second_derivatives_of_three_equations(double):
    """x^3 = a, y = b x^2, z = x y + b: derivatives of a root that was found elsewhere."""

    def system(x, args):
        a, b = args
        return jnp.stack([x[0] ** 3 - a, x[1] - b * x[0] ** 2, x[2] - x[0] * x[1] - b]), jnp.stack([x[2] * x[0]])

    def value(args):
        a, b = jax.lax.stop_gradient(args)
        x = jnp.stack([jnp.cbrt(a), b * jnp.cbrt(a) ** 2, a * b + b])
        return fixed_point.implicit(system, (x, jnp.stack([x[2] * x[0]])), args)[3]  # b (a + 1) a^(1/3)

    a, b = 2.0, 0.7
    hessian = jax.jit(jax.hessian(value))(jnp.array([a, b]))
    by_b = 4 / 3 * a ** (1 / 3) + a ** (-2 / 3) / 3
    expected = [[b * (4 / 9 * a ** (-2 / 3) - 2 / 9 * a ** (-5 / 3)), by_b], [by_b, 0]]
    np.testing.assert_allclose(hessian, expected, atol=1e-12)
