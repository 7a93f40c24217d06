"""Families of curves: exact where a curve is a member, and free of scale."""

from __future__ import annotations

import numpy as np
import pytest

from quenched.forecasting import families

U = np.geomspace(1 / 64, 1, 30)
AHEAD = np.array([2.0, 4.0, 16.0])


@pytest.mark.parametrize("k", [5, 12, 40, 70, 100])
def test_a_member_of_a_family_is_continued_exactly(k):
    grid = families.grid()
    a, b = 0.3, 0.7 / grid.shapes(np.ones(1))[k, 0]
    curve = a + b * grid.shapes(U)[k]
    mean, sd = families.average(U, curve, 1e-4 * curve).predict(AHEAD)
    truth = a + b * grid.shapes(AHEAD)[k]
    own = grid.family[k]
    np.testing.assert_allclose(mean[own, 0], truth, rtol=0.01)
    assert np.all(sd[own, 0] < 0.02 * truth + 0.01)


def test_weights_are_a_distribution_and_least_squares_leave_no_gradient():
    draw = np.random.default_rng(0)
    curve = 0.2 + U**-0.4 * np.exp(0.03 * draw.standard_normal(len(U)))
    se = 0.03 * curve
    found = families.average(U, curve, se)
    family = families.grid().family
    for k in range(4):
        np.testing.assert_allclose(found.weight[family == k].sum(axis=0), 1.0)
    F = families.grid().shapes(U)
    for r, power in enumerate(families.RECENCIES):
        w = U**power / se**2
        free = (found.a[:, r] > 0) & (found.b[:, r] > 0)
        off = curve - found.a[:, r, None] - found.b[:, r, None] * F
        assert free.sum() > 10
        np.testing.assert_allclose((off * w).sum(axis=1)[free] / w.sum(), 0, atol=1e-8)
        np.testing.assert_allclose((off * F * w).sum(axis=1)[free] / (F * w).sum(axis=1)[free], 0, atol=1e-6)


def test_a_rising_curve_is_continued_flat():
    mean, _ = families.average(U, 1 + 0.5 * U, np.full(len(U), 0.01)).predict(AHEAD)
    assert np.all(np.diff(mean, axis=-1) <= 1e-12)
    assert np.all(mean <= 1.5)
