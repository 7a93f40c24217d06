"""Which columns matter: exact weights, and what is found among ten and twenty columns."""

import numpy as np
import pytest

from quenched.core.types import InputError
from quenched.fields.model.families import LengthScale
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.practice.columns import POINTS, _axes, _Design, screen
from tests import tolerances


def table(rows, columns, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.uniform(size=(rows, columns))
    return X, np.sin(6 * X[:, 2]) + 8 * (X[:, 1] - 0.5) ** 2 + 0.5 * draw.normal(size=rows)


def test_weights_are_those_of_dense_gaussians():
    X, y = table(30, 3)
    y = y - y.mean()
    used, ratio = (0, 2), 3.0
    design = _Design(_axes(X), X, y, 0.4)
    _, _, left, log_det = design.solve(used, ratio)
    unit = Grid(given=[Axis(0, 1, points=POINTS)])
    C = np.linalg.inv(unit.cell * LengthScale(unit).prior({"length": 0.4, "variance": 1.0}).operator.matrix)
    kept = design.modes @ design.modes.T
    np.testing.assert_allclose(kept, C, atol=2e-3)  # the modes that are left out
    S = [grid.interpolation(column).toarray() for grid, column in zip(_axes(X), X.T, strict=True)]
    S = [part - part.mean(axis=0) for part in S]
    cov = np.eye(30) + ratio * sum(S[j] @ kept @ S[j].T for j in used)
    assert log_det == pytest.approx(np.linalg.slogdet(cov)[1], abs=tolerances.SAME)
    assert left == pytest.approx(y @ np.linalg.solve(cov, y), rel=tolerances.SAME)


def test_two_of_six_columns_are_found_and_how_they_matter():
    X, y = table(90, 6)
    found = screen(X, y)
    assert set(np.flatnonzero(found.probability > 0.5)) == {1, 2}
    assert found.probability[[1, 2]].min() > 0.95
    assert found.probability[[0, 3, 4, 5]].max() < 0.5
    truth = np.sin(6 * X[:, 2]) + 8 * (X[:, 1] - 0.5) ** 2
    assert np.mean((found.predict(X) - truth) ** 2) < 0.06
    assert found.noise == pytest.approx(0.25, rel=0.4)
    assert found.combinations.use.values[0].tolist() == [False, True, True, False, False, False]
    assert float(found.combinations.share.sum()) > 0.98


def test_twenty_columns_are_sampled():
    X, y = table(120, 20)
    found = screen(X, y)
    assert set(np.flatnonzero(found.probability > 0.5)) == {1, 2}


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.zeros((5, 2)), np.arange(5.0), "vary in every column"),
        (np.arange(10.0).reshape(5, 2), np.zeros(5), "`y` must vary"),
        (np.arange(10.0).reshape(5, 2), np.zeros(4), "value for each"),
        (np.full((5, 2), np.nan), np.arange(5.0), "finite"),
    ],
)
def test_bad_tables_are_refused(X, y, match):
    with pytest.raises(InputError, match=match):
        screen(X, y)
