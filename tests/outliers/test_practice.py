"""Where a fit lies in the phase diagram."""

import jax
import numpy as np
import pytest

from quenched import outliers
from quenched.outliers import learner
from quenched.outliers.practice import find_limit

GAMMA, SIZE = 10.0, 30


@pytest.mark.parametrize("rule", [outliers.SoftSelection(), outliers.HardSelection()])
def test_the_limit_is_the_transition_of_the_world_that_was_drawn(rule):
    """Of a fit to many rows, whose gamma and lengths are nearly the law's; another unit of length changes nothing."""
    X, S, _ = outliers.Contaminated(gamma=GAMMA, eta=0.0).sample(jax.random.key(0), 100 * SIZE, size=SIZE)
    lost = []
    for scale in (1.0, 8.0):
        fitted = learner.fit_classes(rule, (scale * X, S), spread=1.0)
        place = find_limit(rule, fitted, 20.0 * SIZE, 0.5)
        assert place.alpha == 20.0
        assert place.gamma == pytest.approx(GAMMA, rel=0.1)
        assert place.eta == 0.0
        assert not place.passed
        lost.append(place.lost)
    assert lost[0] == pytest.approx(lost[1], rel=1e-3)
    lines = outliers.transitions(outliers.Contaminated(gamma=place.gamma), rule, alpha=20.0)
    first = min(float(lines.informed_overfit), float(lines.informed_end))
    assert lost[1] == pytest.approx(first, rel=1e-6)
    assert find_limit(rule, fitted, 20.0 * SIZE, 1.0).passed
    beyond = find_limit(rule, fitted, 20.0 * SIZE, 1 / (1 + np.exp(-first - 0.01)))
    assert beyond.passed
    assert beyond.share == pytest.approx(1 / (1 + np.exp(-first)))
