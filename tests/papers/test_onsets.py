"""Finite-size scaling of the transition of outliers."""

import jax
import numpy as np
import pytest

from quenched.core.types import InputError
from quenched.outliers import Contaminated, SoftSelection
from quenched.papers.dietrich1998 import onsets as scaling
from quenched.papers.dietrich1998.onsets import onsets

LAW, KEY = Contaminated(gamma=10.0, eta=1.0), jax.random.key(1998)


def test_an_onset_is_where_a_tenth_have_lost_the_teacher():
    etas, R = np.array([0.0, 1.0, 2.0, 3.0]), np.ones((4, 20))
    R[2, :1] = R[3, :5] = 0.1  # shares 0, 0, 0.05, 0.25
    assert scaling._onset(R, etas) == pytest.approx(2.25)
    assert np.isnan(scaling._onset(R[:3], etas[:3]))
    x = np.array([0.1, 0.05, 0.01])
    limit, error = scaling._limit(x, 3 - 2 * x, np.full(3, 0.1))
    assert limit == pytest.approx(3.0)
    assert error == pytest.approx(0.1 * np.sqrt(1 / 3 + x.mean() ** 2 / np.sum((x - x.mean()) ** 2)))


def test_onsets_of_several_sizes_and_their_limit():
    given = {"alpha": 10.0, "eta": np.arange(0.0, 5.1), "runs": 20, "key": KEY}
    found = onsets(LAW, SoftSelection(), sizes=[6, 12], **given)
    assert found.eta.dims == ("size",)
    assert np.all(found.outcome == "converged")
    assert np.all((found.eta > 0) & (found.eta < 5))
    np.testing.assert_allclose(found.informative, 1 / (1 + np.exp(found.eta)))
    one, two = found.eta.values
    assert float(found.eta_limit) == pytest.approx(2 * two - one)  # a line in 1/N through two points
    with pytest.raises(InputError, match="`runs` must be at least 20"):
        onsets(LAW, SoftSelection(), sizes=[6], **given | {"runs": 5})
    with pytest.raises(InputError, match="`eta` must be at least two"):
        onsets(LAW, SoftSelection(), sizes=[6], **given | {"eta": 1.0})
