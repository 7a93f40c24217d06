import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.core import flow
from quenched.core.types import Outcome
from tests import tolerances
from tests.programs import compiled


def decay(t, y, rate):
    return -rate * y


def test_integrates_exponential_decay(double):
    times = jnp.linspace(0.0, 5.0, 6)
    path = compiled(lambda rate: flow.integrate(decay, jnp.array([2.0]), times, rate))(0.7)
    np.testing.assert_allclose(path.states[:, 0], 2 * np.exp(-0.7 * np.asarray(times)), rtol=tolerances.FLOW)
    assert np.all(path.outcome == Outcome.converged)


def test_divergence_is_an_outcome(double):
    path = compiled(lambda y: flow.integrate(lambda t, y, _: y, y, jnp.array([1.0, 100.0]), bound=1e6))(jnp.ones(1))
    assert path.outcome.tolist() == [Outcome.converged, Outcome.diverged]
    assert np.isfinite(path.states[0, 0])
    assert np.isnan(path.states[1, 0])


def test_running_out_of_steps_is_an_outcome(double):
    path = compiled(lambda y: flow.integrate(decay, y, jnp.array([1e3]), 1.0, max_steps=16))(jnp.ones(1))
    assert path.outcome.tolist() == [Outcome.stalled]


def test_gradient_through_a_flow(double):
    end = lambda rate: flow.integrate(decay, jnp.array([2.0]), jnp.array([3.0]), rate).states[0, 0]  # noqa: E731
    assert float(compiled(jax.grad(end))(0.7)) == pytest.approx(-6 * np.exp(-2.1), rel=tolerances.GRADIENT)


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
    path = compiled(lambda y: flow.integrate(field, y, jnp.asarray(times)))(jnp.array([2.0, 1.0]))
    np.testing.assert_allclose(host.states, path.states, atol=tolerances.MACHINE)
    assert np.all(host.outcome == Outcome.converged)


def test_the_host_marks_times_that_are_not_reached():
    gone = flow.follow(lambda t, y: y, np.ones(1), np.array([1.0, 100.0]), bound=1e6)
    assert gone.outcome.tolist() == [Outcome.converged, Outcome.diverged]
    assert np.isfinite(gone.states[:, 0]).tolist() == [True, False]
    assert flow.follow(lambda t, y: -y, np.ones(1), np.array([1e3]), max_steps=16).outcome.tolist() == [Outcome.stalled]
    lost = flow.follow(lambda t, y: np.nan * y, np.ones(1), np.array([1.0]))
    assert lost.outcome.tolist() == [Outcome.failed]
