"""The curve that falls back on draws, and tuning."""

import functools
import importlib

import jax
import numpy as np
import pytest
from tinygp import kernels

from benchmarks import worlds
from quenched.core.ensemble import Ensemble
from quenched.core.types import InputError
from quenched.processes import (
    Empirical,
    Evidence,
    GaussianProcess,
    PredictedError,
    curve,
    measure,
    theory,
    tune,
)
from quenched.processes.model import MEASURES
from quenched.processes.practice.curve import BLOCK, MOST_BLOCKS, Draws
from quenched.processes.theory import trust
from tests import programs
from tests.processes import cases

TRUSTED = 0.015
"""Largest deviation from honest draws where the self-check passed."""
SIZES = [25, 50, 100, 200, 400]
UNIT = 0.09
"""Three standard errors of a root mean square over 600 curves."""
RARE = np.array([20.0])


def low_noise():
    """Three real sets, 200 rows each, with the noise lowered on purpose."""
    diabetes, _ = cases.diabetes(rows=200)
    boston, abalone = cases.boston()[0], cases.abalone(200)[0]
    chosen = np.random.default_rng(3).permutation(506)[:200]
    standard = (np.asarray(boston.inputs) - boston.inputs.mean(axis=0)) / boston.inputs.std(axis=0)
    spread = np.asarray(abalone.inputs) / abalone.inputs.std(axis=0)
    return {
        "diabetes": (diabetes, GaussianProcess(kernels.ExpSquared(2.5), 0.02)),
        "boston": (
            Empirical(standard[chosen], boston.targets[chosen]),
            GaussianProcess(kernels.Matern32(4.0, distance=kernels.distance.L2Distance()), 0.01),
        ),
        "abalone": (Empirical(spread, abalone.targets), GaussianProcess(kernels.ExpSquared(1.5), 0.005)),
    }


@functools.cache
def honest(name):
    return measure(*low_noise()[name], examples=SIZES, runs=125, key=jax.random.key(7), variance=False)


@pytest.mark.parametrize("name", list(low_noise()))
@pytest.mark.parametrize("cheapest", [False, True])
def test_every_reported_size_may_be_trusted(name, cheapest):
    """Against 2,000 honest draws: within 3 of its own standard errors, or within 1.5% where the check passed."""
    law, rule = low_noise()[name]
    found = curve(law, rule, examples=SIZES, cheapest=cheapest, key=jax.random.key(8))
    truth = honest(name)
    assert int(truth.runs) * truth.attrs["draws"] == 2000
    for m in SIZES:
        one, two = found.sel(examples=m), truth.sel(examples=m)
        noise = float(np.hypot(one.oob_error_stderr, two.oob_error_stderr))
        allowed = TRUSTED * float(two.oob_error) if str(one.source.values) == "theory" else 0.0
        assert abs(float(one.oob_error - two.oob_error)) < allowed + 3 * noise, (m, str(one.source.values))
        if str(one.source.values) == "draws":
            assert float(one.oob_error_stderr) <= 0.03 * float(one.oob_error)
            assert int(one.draws) >= 64
    assert "draws" in found.source.values


def test_without_the_check_wrong_values_come_out(monkeypatch):
    for name in ("OOB_TOLERANCE", "VARIANCE_TOLERANCE"):
        monkeypatch.setattr(trust, name, 10.0)
    monkeypatch.setattr(trust, "SHIFT_TOLERANCES", (10.0, 10.0))
    worst = {}
    for name, (law, rule) in low_noise().items():
        found = curve(law, rule, examples=SIZES)
        assert set(found.source.values) == {"theory"}
        worst[name] = float(np.max(np.abs(found.oob_error / honest(name).oob_error - 1)))
    assert max(worst.values()) > 0.1, worst


# ---- when draws stop


class Told(Draws):
    """Draws whose blocks are numbers of mean 1 that come from a generator."""

    def __init__(self, blocks):
        self._blocks = blocks

    def blocks(self, i, count):
        count = 4 * -(-count // 4)
        values = dict.fromkeys(MEASURES, self._blocks[None, :count, None])
        return Ensemble(values, np.zeros((1, count), bool), (), 0, 0, 0, 0)


@pytest.mark.parametrize(("spread", "skewed"), [(0.06, False), (0.12, False), (0.12, True)])
def test_deviations_of_draws_have_unit_variance(spread, skewed):
    """In units of the standard error that is reported, over many curves; blocks are normal, or their logarithms are."""
    draw = np.random.default_rng(0)
    width = np.sqrt(np.log1p(spread**2))
    z = []
    for _ in range(600):
        normal = draw.normal(size=MOST_BLOCKS)
        blocks = np.exp(width * normal - width**2 / 2) if skewed else 1 + spread * normal
        point = Told(blocks).draw(0, 0.03)
        z.append(float((point["oob_error"] - 1) / point["oob_error_stderr"]))
        assert int(point["draws"]) >= 16 * BLOCK.draws
    assert np.sqrt(np.mean(np.square(z))) == pytest.approx(1.0, abs=UNIT)


def test_draws_on_a_table_with_rare_large_targets():
    """Tables like that of yachts, whose error is that of a few rows: 24 curves, each against many honest draws."""
    z = []
    for seed in range(24):
        draw = np.random.default_rng(seed)
        X = np.column_stack([draw.choice(5, 40), draw.choice(8, 40)]).astype(float) + 0.05 * draw.normal(size=(40, 2))
        y = np.exp(X[:, 1]) * (1 + 0.1 * X[:, 0])
        K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 4) + 1e-8 * np.eye(40)
        law, rule = Empirical(X, y), GaussianProcess(K, 0.01)
        with jax.enable_x64(True):
            point = Draws(law, rule, RARE, jax.random.key(seed), None, None).draw(0, 0.1)
        known = worlds.World("", K, np.asarray(law.standard()), 0.01)
        truth = worlds.trained(known, worlds.poisson_counts(known, 20.0, 100, draw))[:, 0].reshape(100, -1).mean(axis=1)
        error = np.hypot(float(point["oob_error_stderr"]), truth.std(ddof=1) / 10)
        z.append((float(point["oob_error"]) - truth.mean()) / error)
    assert np.sqrt(np.mean(np.square(z))) < 1.25
    assert np.abs(z).max() < 4


def test_ample_noise_is_left_to_the_theory():
    law, rule = cases.diabetes(rows=200)
    found, alone = curve(law, rule, examples=[100, 200]), theory.curve(law, rule, examples=[100, 200])
    assert found.source.values.tolist() == ["theory", "theory"]
    np.testing.assert_array_equal(found.oob_error, alone.oob_error)
    np.testing.assert_array_equal(found.oob_error_stderr, 0.0)
    np.testing.assert_allclose(found.oob_rmse, alone.oob_rmse)


def test_what_did_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(importlib.import_module("quenched.processes.practice.curve"), "MOST_BLOCKS", 16)
    law, rule = low_noise()["boston"]
    found = curve(law, rule, examples=[25], accuracy=1e-4, key=jax.random.key(8))
    assert found.outcome.values.tolist() == ["stalled"]
    assert int(found.draws[0]) == 64
    assert np.isfinite(float(found.oob_error[0]))


def test_sweeps_and_bad_input():
    law, rule = cases.five()
    swept = curve(law, rule, examples=[2, 4], noise=[0.5, 1.0], key=jax.random.key(0))
    assert swept.oob_error.dims == ("noise", "examples")
    assert swept.source.dims == ("noise", "examples")
    with pytest.raises(InputError, match="positive"):
        curve(law, rule, examples=0)
    with pytest.raises(InputError, match="accuracy"):
        curve(law, rule, examples=3, accuracy=0.0)


# ---- tuning


def test_tuning_for_the_predicted_error_lowers_the_measured_one():
    law, _ = cases.diabetes(rows=80)
    start = GaussianProcess(1.0 * kernels.ExpSquared(3.0), 0.1)
    aimed, likely = tune(law, start, PredictedError(), steps=15), tune(law, start, Evidence(), steps=30)
    before, after, other = (
        float(measure(law, rule, examples=80, runs=16, key=jax.random.key(3), variance=False).oob_error)
        for rule in (start, aimed, likely)
    )
    assert after < 0.9 * before
    assert after < 1.02 * other
    with jax.enable_x64(True):
        state = programs.compiled(theory.state)
        predicted = [float(state(law, rule, 80.0).oob_error) for rule in (aimed, likely, start)]
    assert predicted == sorted(predicted)


def compiled(function):
    """What is compiled while a function runs."""
    with jax.log_compiles(True), pytest.MonkeyPatch.context() as patch:
        seen = []
        patch.setattr("jax._src.interpreters.pxla.logger.log", lambda level, text, *args: seen.append(text))
        function()
    return seen


def test_tuning_again_compiles_nothing():
    law, _ = cases.diabetes(rows=80)
    start = GaussianProcess(1.0 * kernels.ExpSquared(3.0), 0.3)
    tune(law, start, PredictedError(), steps=1)
    assert not compiled(lambda: tune(law, start, PredictedError(), steps=1))


def test_other_values_lengths_and_numbers_of_rows_compile_nothing():
    """A kernel that no other test has is compiled once."""

    def look(rows, sizes, shift):
        x = np.linspace(0.0, 5.0, rows)
        law = Empirical(x, np.cos(x), 0.1 + shift, 1.3 + shift)
        theory.curve(law, GaussianProcess(kernels.RationalQuadratic(alpha=1.7 + shift), 0.2 + shift), examples=sizes)

    assert compiled(lambda: look(23, [10, 20], 0.0))
    assert not compiled(lambda: look(23, [12], 0.1))
    assert not compiled(lambda: look(31, [5, 10, 30], 0.2))
