"""calibrate: right posteriors pass, wrong ones do not, and what cannot be drawn is refused."""

import dataclasses

import jax
import numpy as np
import pytest

import quenched
from quenched import fields as f
from quenched.core.types import InputError
from quenched.fields.practice.settings import settings_of
from tests import tolerances

AXIS = f.Axis(0, 1, points=10)
LINE, OVER = f.Grid(given=[AXIS]), f.Grid(over=[AXIS])
TWO = f.Grid(given=[f.Axis(0, 1, points=6)], over=[f.Components(2)])
ROWS = np.linspace(0, 1, 20)


def _operator(grid, strength=1.0):
    return strength * (0.3 * f.Laplacian(grid, grid.axes[0]) + f.Mass(grid))


def _regression(prior=None):
    return f.Problem(f.GaussianData(ROWS, 0 * ROWS, 0.3), f.Direct(LINE), prior or f.Gaussian(_operator(LINE)))


def _density(link=f.Logits, prior=None):
    return f.Problem(f.DensityData(ROWS), link(OVER), prior or f.Gaussian(0.3 * _operator(OVER)))


def _classes():
    return f.Problem(f.ClassData(ROWS, np.arange(20) % 2), f.Logits(TWO), f.Gaussian(_operator(TWO)))


@dataclasses.dataclass(frozen=True)
class _Wrong(f.PosteriorDraws):
    """Laplace's draws, made wrong."""

    wide: float = 1.0
    shift: float = 0.0
    strength: float = 1.0

    def draw(self, problem, key, count):
        if self.strength != 1:
            prior = f.Gaussian(self.strength * problem.prior.operator, mean=problem.prior.mean)
            problem = f.Problem(problem.likelihood, problem.link, prior)
        fields, outcome = f.LaplaceDraws().draw(problem, key, count)
        mean = f.solve(problem).field
        return mean + self.shift + self.wide * (fields - mean), outcome


def _p(problem, runs=150, **options):
    return float(quenched.calibrate(problem, key=jax.random.key(2), runs=runs, **options).p_value)


def test_regression_is_exact():
    assert _p(_regression()) > 1e-3


@pytest.mark.parametrize("wrong", [_Wrong(wide=0.5**0.5), _Wrong(shift=0.3), _Wrong(strength=0.25)])
def test_wrong_posteriors_are_found(wrong):
    assert _p(_regression(), method=wrong) < 1e-3


def test_alternatives_and_hyperparameters_are_drawn_too():
    either = f.Gaussian(_operator(LINE), mean=1.0) | f.Gaussian(_operator(LINE, 4.0), mean=-1.0)
    assert _p(_regression(either), runs=40) > 1e-3
    open_strength = f.Strength(_operator(LINE), hyperprior=f.LogFlat(0.1, 10.0))
    result = quenched.calibrate(_regression(open_strength), key=jax.random.key(0), runs=10)
    assert result.p_value > 1e-3
    assert result.quantity.values[-1] == "hyperparameter"


def test_data_are_drawn_from_the_field():
    from quenched.fields.practice.calibrating import redraw

    field = np.sin(5 * AXIS.coordinates)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 300)
        problem = _density()
        mean = np.mean([redraw(problem, field, key).likelihood.counts for key in keys], axis=0)
        expected = 20 * problem.density(field) * OVER.weights
        assert np.all(np.abs(mean - expected) < 5 * np.sqrt(expected / 300))
        regression = _regression()
        targets = np.mean([redraw(regression, field, key).likelihood.targets for key in keys], axis=0)
        assert np.all(np.abs(targets - regression.likelihood.design @ field) < 5 * np.sqrt(0.3 / 300))


def test_rounding_turns_neither_truths_nor_draws(monkeypatch):
    """Levels of classes are degenerate: any eigenvectors of them are as good, and other ones must change nothing."""
    grid = f.Grid(given=[f.Axis(0, 1, points=6)], over=[f.Components(3)])
    data = f.ClassData(ROWS, np.arange(20) % 3)
    found, eigh = [], np.linalg.eigh

    def turned(a):
        values, vectors = eigh(a)
        vectors = vectors.copy()
        for i in range(len(values) - 1):
            if values[i + 1] - values[i] < 1e-9 * values[-1]:
                vectors[:, i : i + 2] = vectors[:, i : i + 2] @ np.array([[0.6, -0.8], [0.8, 0.6]])
        return values, -vectors

    for function in (eigh, turned):
        monkeypatch.setattr(np.linalg, "eigh", function)
        problem = f.Problem(data, f.Logits(grid), f.Gaussian(_operator(grid)))
        with jax.enable_x64(True):
            (one,) = settings_of(problem)
            drawn, _ = f.LaplaceDraws().draw(problem, jax.random.key(1), 5)
            found.append((one.field(jax.random.key(0)), drawn))
    for first, second in zip(*found, strict=True):
        np.testing.assert_allclose(first, second, atol=tolerances.SAME)


def test_own_quantities_are_ranked_and_the_picture_is_drawn():
    result = quenched.calibrate(
        _regression(), key=jax.random.key(0), runs=20, quantities={"largest": lambda field: field.max()}
    )
    assert "largest" in result.quantity.values
    assert quenched.plot(result).axes


@pytest.mark.parametrize(
    ("subject", "options", "sentence"),
    [
        (_regression(), {"runs": 1}, "`runs` must"),
        (_regression(), {"key": None}, "`key` must"),
        (_regression(), {"method": "laplace"}, "`method` must"),
        (_regression(), {"quantities": [1]}, "`quantities` must"),
        ("a word", {}, "`subject` must"),
        (_regression(f.Gaussian(f.Laplacian(LINE))), {}, "add a Mass"),
        (_density(f.LogDensity), {}, "link Logits"),
        (_density(f.SquareRoot), {}, "link without constraints"),
        (f.Problem(f.DensityData(None, None, np.zeros(10)), f.Logits(OVER), f.Gaussian(_operator(OVER))), {},
         "must have data"),
        (_regression(f.Strength(_operator(LINE), hyperprior=f.Power(1.0))), {}, "hyperprior that is proper"),
    ],
)  # fmt: skip
def test_bad_input_is_said_in_a_sentence(subject, options, sentence):
    with pytest.raises(InputError, match=sentence):
        quenched.calibrate(subject, **{"key": jax.random.key(0), "runs": 5} | options)
