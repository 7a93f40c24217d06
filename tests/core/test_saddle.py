"""Stationary points and branches, against systems solved in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from quenched.core import saddle
from quenched.core.saddle import Setting
from quenched.core.types import InputError, Outcome
from tests import tolerances
from tests.systems import magnets
from tests.systems.cubic import CUBIC, Numbers, moment

SOLVED = 1e-11
"""States and simple folds are solved to the rounding of their equations."""
BRANCH_POINT = 1e-8
"""At a bifurcation the equations are singular: rounding of 1e-16 moves the point by its square root."""
T = 0.5

fold = saddle.Landscape(equations=lambda x, p, _: x**2 + p)
circle = saddle.Landscape(equations=lambda x, p, _: x**2 + p**2 - 1)
line = saddle.Landscape(equations=lambda x, p, _: x - p)
on_axis = saddle.Landscape(equations=lambda x, p, _: MIX[:2, :2] @ (x - jnp.array([0.0, 1.0]) * jnp.sin(p)))
broken = saddle.Landscape(equations=lambda x, p, _: x * jnp.nan)
none = saddle.Landscape(equations=lambda x, p, _: x**2 + 1 + p**2)
MIX = np.array([[1.0, 0.4, -0.3], [0.2, 1.5, 0.5], [-0.6, 0.1, 0.8]])


def mixed(x, h, T):
    """The magnet in one of three directions that no axis shows; the others are harmonic and pulled by the field."""
    u = MIX @ x
    return magnets.curie_weiss(u[0], h, T) + 3 * (u[1] - h) ** 2 + 0.05 * (u[2] + u[1]) ** 2


three = saddle.Landscape(mixed)


@pytest.fixture(scope="module")
def loop():
    """The magnet's states as the field falls from one end to the other."""
    return saddle.follow(magnets.IN_FIELD, [1.0], Setting(0.5, T), "control", (-0.5, 0.5), upwards=False)


# branches


def test_magnet_through_both_spinodals(loop):
    assert loop.end is saddle.End.range
    assert loop.outcome is Outcome.converged
    np.testing.assert_allclose(magnets.field(loop.x[:, 0], T), loop.control, atol=SOLVED)
    assert loop.residual.max() < SOLVED
    assert loop.control[[0, -1]] == pytest.approx([0.5, -0.5], abs=1e-12)
    assert np.all(np.diff(loop.x[:, 0]) < 0)
    h, m = magnets.spinodal(T)
    assert not loop.bifurcations
    for mark, sign in zip(loop.folds, (1, -1), strict=True):
        assert mark.outcome is Outcome.converged
        assert mark.control == pytest.approx(sign * h, abs=SOLVED)
        assert mark.x[0] == pytest.approx(sign * m, abs=SOLVED)
        assert mark.residual < SOLVED
    unstable = np.abs(loop.x[:, 0]) < m - 1e-6
    np.testing.assert_array_equal(loop.unstable[unstable], 1)
    np.testing.assert_array_equal(loop.unstable[np.abs(loop.x[:, 0]) > m + 1e-6], 0)


def test_three_order_parameters_fold_where_the_magnet_does():
    begin = saddle.solve(three, Setting(0.5, T), np.linalg.solve(MIX, [1.0, 0.5, -0.5]))
    branch = saddle.follow(three, begin.x, Setting(0.5, T), "control", (-0.5, 0.5), upwards=False)
    u = branch.x @ MIX.T
    np.testing.assert_allclose(magnets.field(u[:, 0], T), branch.control, atol=1e-9)
    np.testing.assert_allclose(u[:, 1], branch.control, atol=1e-9)
    h, _ = magnets.spinodal(T)
    assert [mark.control for mark in branch.folds] == pytest.approx([h, -h], abs=1e-10)
    crossed = saddle.crossings(branch, branch)
    assert [mark.control for mark in crossed] == pytest.approx([0], abs=1e-9)


def scaled(m, h, args):
    T, unit = args
    return unit * magnets.curie_weiss(m, h, T)


in_other_units = saddle.Landscape(scaled)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_the_unit_of_the_free_energy_does_not_matter(unit):
    args = (T, unit)
    branch = saddle.follow(in_other_units, [1.0], Setting(0.5, args), "control", (-0.5, 0.5), upwards=False)
    h, _ = magnets.spinodal(T)
    assert [mark.control for mark in branch.folds] == pytest.approx([h, -h], abs=SOLVED)
    assert [mark.control for mark in saddle.crossings(branch, branch)] == pytest.approx([0], abs=SOLVED)
    assert saddle.solve(in_other_units, Setting(0.05, args), [0.9]).unstable == 0


def test_equations_that_hold_on_one_side_only():
    # x = p ln x has a number for x > 0; p = x / ln x is least at x = e, where p = e
    half = saddle.Landscape(equations=lambda x, p, _: x - p * jnp.log(x))
    large, small = (saddle.solve(half, Setting(3.0), [start]).x[0] for start in (5.0, 1.5))
    np.testing.assert_allclose([x / np.log(x) for x in (large, small)], 3, rtol=SOLVED)
    branch = saddle.follow(half, [large], Setting(3.0), "control", (0.0, 3.0), upwards=False)
    assert branch.folds[0].control == pytest.approx(np.e, abs=SOLVED)
    assert branch.x[-1, 0] == pytest.approx(small, abs=SOLVED)


def test_magnet_splits_at_its_critical_temperature():
    trunk = saddle.follow(magnets.IN_TEMPERATURE, [0.0], Setting(0.5, 0.0), "control", (0.5, 1.5))
    assert not trunk.folds
    (mark,) = trunk.bifurcations
    assert mark.control == pytest.approx(1, abs=BRANCH_POINT)
    assert mark.residual < BRANCH_POINT
    np.testing.assert_array_equal(trunk.unstable, np.where(trunk.control < 1, 1, 0))
    # along the arms themselves the control turns at the same point, and that is no spinodal
    m = 0.9575040240772687  # m = tanh 2m
    whole = saddle.follow(magnets.IN_TEMPERATURE, [m], Setting(0.5, 0.0), "control", (0.5, 1.5))
    assert not whole.folds
    assert [mark.control for mark in whole.bifurcations] == pytest.approx([1], abs=BRANCH_POINT)
    off = np.abs(whole.x[:, 0]) > 1e-6  # at the tip itself any field will do
    np.testing.assert_allclose(magnets.field(whole.x[off, 0], whole.control[off]), 0, atol=tolerances.ALGEBRA)
    assert whole.x[-1, 0] == pytest.approx(-m, abs=tolerances.SAME)


def pulled(x, T, _):
    m, y = x
    return magnets.curie_weiss(m, 0.0, T) + (y - jnp.sin(3 * T) - m**2 - m**3) ** 2 / 2


pulled_magnet = saddle.Landscape(pulled)


def test_a_bifurcation_is_exact_however_long_the_steps():
    # the second order parameter only follows, y = sin 3T + m^2 + m^3, so the magnet still splits at T = 1
    m = 0.9575040240772687  # m = tanh 2m
    branch = saddle.follow(pulled_magnet, [m, np.sin(1.5) + m**2 + m**3], Setting(0.5), "control", (0.5, 1.5), step=0.1)
    (mark,) = branch.bifurcations
    assert mark.control == pytest.approx(1, abs=BRANCH_POINT)
    assert mark.x == pytest.approx([0, np.sin(3)], abs=1e-6)
    assert not branch.folds


def turned(x, T, _):
    m, y = MIX[:2, :2] @ x
    return magnets.curie_weiss(m, 0.0, T) + (y - 2 * T) ** 2 / 2


def test_a_step_that_ends_on_a_bifurcation():
    # the disordered state m = 0, y = 2T is a straight line, and steps grow as 0.025, 0.0375, ... up to 0.1: five of
    # them from here end at T = 1, where slopes leave the tangent open
    direction = np.linalg.solve(MIX[:2, :2], [0.0, 2.0])
    begin = 1 - 0.1 * (0.25 + 0.375 + 0.5625 + 0.84375 + 1) / np.sqrt(1 + direction @ direction)
    branch = saddle.follow(saddle.Landscape(turned), begin * direction, Setting(begin), "control", (0.5, 1.5), step=0.1)
    assert np.abs(branch.control - 1).min() < 1e-12
    assert [mark.control for mark in branch.bifurcations] == pytest.approx([1], abs=BRANCH_POINT)
    np.testing.assert_allclose(branch.x, np.outer(branch.control, direction), atol=1e-9)


def test_long_steps_do_not_leap_from_one_state_to_the_other():
    branch = saddle.follow(magnets.IN_FIELD, [1.0], Setting(5.0, 0.2), "control", (-5.0, 5.0), upwards=False, step=0.2)
    h, _ = magnets.spinodal(0.2)
    assert [mark.control for mark in branch.folds] == pytest.approx([h, -h], abs=SOLVED)


def test_an_imperfect_bifurcation_is_not_leapt_over():
    # in a small field the unstable state turns back with the negative one where h = T artanh m - m, m^2 = 1 - T;
    # the positive branch passes within a hundredth of a step
    h = 1e-6
    edge = brentq(lambda T: h + magnets.spinodal(T)[0], 0.9, 1.0, xtol=1e-15)
    branch = saddle.follow(magnets.IN_TEMPERATURE, [-h], Setting(0.5, h), "control", (0.5, 1.5))
    assert not branch.bifurcations
    assert [mark.control for mark in branch.folds] == pytest.approx([edge], abs=SOLVED)
    assert branch.control[-1] == pytest.approx(0.5, abs=1e-12)
    assert branch.x[-1, 0] < -0.9


@pytest.mark.parametrize("b", [0.5, 1.3])
def test_landau_first_order_transition(b):
    flat = saddle.follow(magnets.LANDAU, [0.0], Setting(-0.3, b), "control", (-0.3, 1.0))
    assert [mark.control for mark in flat.bifurcations] == pytest.approx([0], abs=BRANCH_POINT)
    ordered = saddle.follow(magnets.LANDAU, [2 / (3 * b)], Setting(2 / (9 * b), b), "control", (-0.3, 1.0))
    assert [mark.control for mark in ordered.bifurcations] == pytest.approx([0], abs=BRANCH_POINT)
    (spinodal,) = ordered.folds
    assert spinodal.control == pytest.approx(1 / (4 * b), abs=SOLVED)
    assert spinodal.x[0] == pytest.approx(1 / (2 * b), abs=tolerances.SAME)
    whole = saddle.follow(magnets.LANDAU, [1.2 / b], Setting(-0.24 / b, b), "control", (-0.24 / b, 1.0))
    (transition,) = saddle.crossings(whole.arms[0], flat)
    assert transition.outcome is Outcome.converged
    assert transition.control == pytest.approx(2 / (9 * b), abs=SOLVED)
    assert transition.x[:, 0] == pytest.approx([2 / (3 * b), 0], abs=tolerances.SAME)
    assert transition.residual < SOLVED


def test_the_state_of_an_arm_at_a_control(loop):
    upper, middle, lower = loop.arms
    assert all(np.all(np.diff(arm.control) > 0) for arm in loop.arms)
    for arm, sign in ((upper, 1), (lower, -1)):
        state = arm.find(0.05)
        assert magnets.field(state.x[0], T) == pytest.approx(0.05, abs=SOLVED)
        assert np.sign(state.x[0]) == sign
        assert (state.control, state.unstable) == (0.05, 0)
    assert middle.find(0.0).x[0] == pytest.approx(0, abs=SOLVED)
    assert upper.find(-0.4) is None
    with pytest.raises(InputError, match="arm"):
        loop.find(0.0)


def test_crossing_of_a_loop_with_itself(loop):
    (mark,) = saddle.crossings(loop, loop)
    assert mark.control == pytest.approx(0, abs=SOLVED)
    assert mark.x[0, 0] == pytest.approx(-mark.x[1, 0], abs=SOLVED)


def test_branches_that_do_not_cross():
    warm = saddle.follow(magnets.IN_FIELD, [0.9], Setting(0.1, T), "control", (0.1, 0.5))
    again = saddle.follow(magnets.IN_FIELD, [0.9], Setting(0.1, T), "control", (0.1, 0.5), step=0.013)
    assert saddle.crossings(warm, warm) == saddle.crossings(warm, again) == ()
    cold = saddle.follow(magnets.IN_FIELD, [-0.9], Setting(-0.5, T), "control", (-0.5, 0.0))
    assert saddle.crossings(warm, cold) == ()


def stability(point):
    """Infinite inside the spinodals, as a replica stability is."""
    m = point.x[0]
    return 0.1 / (m**2 - 1 + T) if m**2 > 1 - T else np.inf


def test_locate_a_value_along_a_branch(loop):
    (mark,) = saddle.locate(loop, lambda point: point.x[0], 0.6)
    assert mark.control == pytest.approx(magnets.field(0.6, T), abs=SOLVED)
    assert mark.residual < SOLVED
    first, second = saddle.locate(loop, stability, 1.0)
    assert first.x[0] == pytest.approx(np.sqrt(0.6), abs=SOLVED)
    assert second.x[0] == pytest.approx(-np.sqrt(0.6), abs=SOLVED)
    (jump,) = saddle.locate(loop, lambda point: 1.0 if point.x[0] > 0.3 else -1.0)
    assert jump.outcome is Outcome.failed
    assert saddle.locate(loop, lambda point: point.x[0], 2.0) == ()
    f = loop.find(0.3).free_energy if not loop.folds else loop.arms[0].find(0.3).free_energy
    assert saddle.locate(loop, "free_energy", f)[0].control == pytest.approx(0.3, abs=SOLVED)


def test_readings_stand_beside_the_states():
    branch = saddle.follow(CUBIC, [1.0, 1.0, 1.0], Numbers(1.0, 0.5), "a", (1.0, 3.0))
    a = branch.control
    np.testing.assert_allclose(branch.readings.m, moment(a, 0.5), rtol=SOLVED)
    (mark,) = saddle.locate(branch, "m", 1.0)
    assert mark.readings.m == pytest.approx(1, abs=SOLVED)
    both = saddle.follow(CUBIC, [1.0, 2.0, 2.0], Numbers(1.0, 1.0), "a,b", (1.0, 2.0))
    np.testing.assert_allclose(both.readings.m, moment(both.control, both.control), rtol=SOLVED)


# how a branch ends


def test_fold_normal_form():
    branch = saddle.follow(fold, [1.0], Setting(-1.0), "control", (-1.0, 1.0))
    np.testing.assert_allclose(branch.x[:, 0] ** 2, -branch.control, atol=SOLVED)
    assert [branch.folds[0].control, *branch.folds[0].x] == pytest.approx([0, 0], abs=SOLVED)
    assert branch.x[-1, 0] == pytest.approx(-1, abs=SOLVED)
    assert np.isnan(branch.free_energy).all()


@pytest.mark.parametrize("upwards", [True, False])
def test_circle_closes(upwards):
    branch = saddle.follow(circle, [1.0], Setting(0.0), "control", (-2.0, 2.0), upwards=upwards)
    assert branch.end is saddle.End.closed
    assert sorted(mark.control for mark in branch.folds) == pytest.approx([-1, 1], abs=SOLVED)
    np.testing.assert_allclose(branch.x[[0, -1], 0], 1, atol=1e-9)


def test_a_branch_leaves_its_box():
    branch = saddle.follow(line, [0.0], Setting(0.0), "control", (-1.0, 1.0), low=-0.3, high=0.5)
    assert branch.end is saddle.End.box
    assert branch.x[-1, 0] == pytest.approx(0.5, abs=1e-12)
    assert branch.control[-1] == pytest.approx(0.5, abs=1e-12)
    # a branch may run along an edge, and one that starts on a bound and leaves it has ended
    for low, high in ((0, 1), (-1, 0)):
        along = saddle.follow(on_axis, [0.0, 0.0], Setting(0.0), "control", (0.0, 1.0), low=[low, -1], high=[high, 2])
        assert along.end is saddle.End.range
        assert along.control[-1] == pytest.approx(1, abs=1e-12)
    at_once = saddle.follow(line, [1.0], Setting(1.0), "control", (-1.0, 1.0))
    assert at_once.end is saddle.End.range
    assert len(at_once.control) == 1


def test_too_many_points_is_an_outcome():
    branch = saddle.follow(line, [0.0], Setting(0.0), "control", (-1.0, 1.0), max_points=5)
    assert (branch.end, branch.outcome) == (saddle.End.steps, Outcome.stalled)
    assert len(branch.control) == 5


def test_no_state_is_an_outcome():
    for landscape, start in ((broken, 0.3), (none, 0.3)):
        branch = saddle.follow(landscape, [start], Setting(0.0), "control", (-1.0, 1.0))
        assert (branch.end, branch.outcome) == (saddle.End.lost, Outcome.failed)
        assert branch.x.tolist() == [[start]]


def test_a_start_where_slopes_vanish_is_no_state():
    # x^2 = p - 1/2 has no state at p = 0, and at x = 0 Newton's method knows no way
    shifted = saddle.Landscape(equations=lambda x, p, _: x**2 - p + 0.5)
    branch = saddle.follow(shifted, [0.0], Setting(0.0), "control", (-1.0, 1.0))
    assert (branch.end, branch.outcome) == (saddle.End.lost, Outcome.failed)
    assert branch.residual.tolist() == [0.5]


def test_a_branch_that_stops_existing_is_lost():
    # x = sqrt(p) for the equations x - sqrt(p): no number below p = 0
    root = saddle.Landscape(equations=lambda x, p, _: x - jnp.sqrt(p))
    branch = saddle.follow(root, [1.0], Setting(1.0), "control", (-1.0, 1.0), upwards=False)
    assert (branch.end, branch.outcome) == (saddle.End.lost, Outcome.failed)
    assert len(branch.control) > 10
    assert branch.control[-1] == pytest.approx(0, abs=1e-3)


# bad input


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("`limits`", lambda: saddle.follow(line, [0.0], Setting(0.0), "control", (1.0, 1.0))),
        ("`limits`", lambda: saddle.follow(line, [0.0], Setting(0.0), "control", (np.nan, 1.0))),
        ("`control`", lambda: saddle.follow(line, [0.0], Setting(2.0), "control", (-1.0, 1.0))),
        ("`start` must be finite", lambda: saddle.follow(line, [np.nan], Setting(0.0), "control", (-1.0, 1.0))),
        ("`start` must lie in the box", lambda: saddle.follow(
            line, [0.0], Setting(0.0), "control", (-1.0, 1.0), low=0.5, high=1.0)),
        ("`low`", lambda: saddle.follow(line, [0.0], Setting(0.0), "control", (-1.0, 1.0), low=1.0, high=-1.0)),
        ("`step`", lambda: saddle.follow(line, [0.0], Setting(0.0), "control", (-1.0, 1.0), step=0.0)),
        ("`max_points`", lambda: saddle.follow(line, [0.0], Setting(0.0), "control", (-1.0, 1.0), max_points=0)),
        ("`free_energy`", lambda: saddle.Landscape()),
        ("`free_energy` must return one number", lambda: saddle.solve(saddle.Landscape(
            lambda x, c, _: x), Setting(), [0.0])),
        ("`equations` must return", lambda: saddle.follow(saddle.Landscape(
            equations=lambda x, c, _: x[0]), [0.0], Setting(0.0), "control", (-1.0, 1.0))),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(sentence, call):
    with pytest.raises(InputError, match=sentence) as error:
        call()
    assert str(error.value).count(".") >= 1
    assert "\n" not in str(error.value)


def test_crossings_need_a_free_energy(loop):
    with pytest.raises(InputError, match="`b` must be a branch of a free energy"):
        saddle.crossings(loop, saddle.follow(fold, [1.0], Setting(-1.0), "control", (-1.0, 1.0)))
