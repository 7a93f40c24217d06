"""Theory against experiment: the informed branch where replica symmetry holds, and the printed formulas, which fail.

No allowance is made for finite size. Measured at N = 40 and 80 (2,000 and 1,000 runs), N times the deviation from the
theory is largest at alpha = 10, eta = 3, nearest to the instability: 0.8 in R, 1.6 in Delta, 0.4 in Phi; a third of it
or less elsewhere, except 0.6 at alpha = 5, eta = 2. At N = 500 that is below half a standard error of 40 runs.
"""

import functools

import jax
import numpy as np
import pytest

import quenched
from quenched.outliers import theory
from quenched.outliers.model import SCIENCE, Contaminated, Gibbs, HardSelection, SoftSelection
from quenched.outliers.simulation import measure
from quenched.papers.dietrich1998 import printed

LAW = Contaminated(gamma=10.0)
SOFT = {5.0: [0.0, 2.0, 2.4], 10.0: [0.0, 2.0, 3.0], 20.0: [0.0, 2.0, 3.0]}
VARIABLES = [*SCIENCE.reports, "selected"]


@pytest.fixture(scope="module")
def soft_theory():
    return theory.curve(LAW, SoftSelection(), alpha=[5.0, 10.0, 20.0], eta=[0.0, 2.0, 2.4, 3.0], branch="informed")


@functools.cache
def soft_runs(alpha):
    """From random starts; an independent sample for each alpha."""
    key = jax.random.key(int(alpha))
    return measure(LAW, SoftSelection(), alpha=alpha, size=500, runs=40, key=key, eta=SOFT[alpha])


@pytest.fixture(scope="module")
def hard_runs():
    """From the teacher, then flips of single examples."""
    key = jax.random.key(1998)
    return measure(LAW, HardSelection(), alpha=20.0, size=100, runs=100, key=key, eta=[0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("alpha", SOFT)
def test_soft_selection_does_what_the_theory_says(soft_theory, alpha):
    points = soft_runs(alpha)
    assert np.all(points.outcome == "converged")
    found = quenched.agreement(soft_theory.sel(alpha=alpha), points, variables=VARIABLES)
    assert found.passed, found


def test_the_theory_says_where_it_may_not_be_trusted(soft_theory):
    assert float(soft_theory.stability.sel(alpha=5.0, eta=3.0)) > 1
    for alpha, etas in SOFT.items():
        assert np.all(soft_theory.stability.sel(alpha=alpha, eta=etas) < 1)


def test_hard_selection_does_what_the_theory_says(hard_runs):
    curve = theory.curve(LAW, HardSelection(), alpha=20.0, eta=[0.0, 1.0, 2.0, 3.0], branch="informed")
    found = quenched.agreement(curve, hard_runs, variables=VARIABLES)
    assert found.passed, found


def rejected(points, eta, wrong):
    """Whether a theory with these numbers is refuted."""
    here = points[["Delta", "Delta_run", "Phi", "Phi_run"]].sel(eta=[eta])
    theory = here[["Delta", "Phi"]].assign({name: ("eta", [float(getattr(wrong, name))]) for name in ("Delta", "Phi")})
    return not quenched.agreement(theory, here).passed


def test_the_printed_soft_formula_is_rejected(double):
    """One Newton step in place of the envelope. [dietrich1998, eq. (A2), erratum E1]"""
    wrong = printed.soft_state(Contaminated(10.0, 2.4), SoftSelection(), 5.0)
    assert float(wrong.Delta) == pytest.approx(0.3733, abs=5e-4)
    assert rejected(soft_runs(5.0), 2.4, wrong)


def test_the_printed_hard_formula_is_rejected(hard_runs, double):
    """A factor 2 in the noise. [dietrich1998, eqs. (B3), (B4), erratum E5]"""
    wrong = printed.hard_state(Contaminated(10.0, 2.0), HardSelection(), 20.0)
    right = theory.curve(LAW, HardSelection(), alpha=20.0, eta=2.0, branch="informed")
    assert float(wrong.Phi) == pytest.approx(float(right.Phi) / np.sqrt(2), rel=0.01)
    assert rejected(hard_runs, 2.0, wrong)
    assert not rejected(hard_runs, 2.0, right)


def test_gibbs_learning_does_what_the_theory_says():
    """At the posterior's own temperature and at a higher one."""
    for temperature in (1.0, 2.0):
        rule = Gibbs(temperature=temperature)
        points = measure(LAW, rule, alpha=5.0, size=100, runs=40, key=jax.random.key(3), eta=[0.0, 1.0])
        found = quenched.agreement(theory.curve(LAW, rule, alpha=5.0, eta=[0.0, 1.0], branch="informed"), points)
        assert found.passed, found
