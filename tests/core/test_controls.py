import equinox as eqx
import numpy as np
import pytest

from quenched.core import checks, verbs
from quenched.core.types import InputError, real, real_tuple


class World(eqx.Module):
    gamma: float = eqx.field(converter=real, default=1.0)
    size: float = eqx.field(converter=real, default=2.0)
    pair: tuple = eqx.field(converter=real_tuple, default=(1.0, 1.0))

    def __check_init__(self):
        checks.positive("size", self.size)


class Student(eqx.Module):
    gamma: float = eqx.field(converter=real, default=3.0)
    rate: float = eqx.field(converter=real, default=0.1)


def test_scalars_fix_and_sequences_sweep_in_c_order():
    plan = verbs.expand(World(), Student(), {"size": [1.0, 2.0], "rate": np.array([0.1, 0.2, 0.3]), "law_gamma": 7})
    assert plan.dims == ("size", "rate")
    assert plan.shape == (2, 3)
    assert [w.size for w in plan.laws] == [1, 1, 1, 2, 2, 2]
    assert [s.rate for s in plan.rules] == [0.1, 0.2, 0.3] * 2
    assert {w.gamma for w in plan.laws} == {7.0}
    assert {s.gamma for s in plan.rules} == {3.0}


def test_a_tuple_field_sweeps_only_as_rows():
    assert verbs.expand(World(), Student(), {"pair": (1, 2)}).dims == ()
    plan = verbs.expand(World(), Student(), {"pair": [[1, 2], [3, 4]]})
    assert plan.dims == ("pair",)
    assert [w.pair for w in plan.laws] == [(1.0, 2.0), (3.0, 4.0)]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"gamma": 1.0}, "law and rule both have it"),
        ({"colour": 1.0}, "must be a field of the law or the rule"),
        ({"rate": [[0.1]]}, "one value or a non-empty sequence"),
        ({"rate": []}, "one value or a non-empty sequence"),
        ({"rate": [0.1, "x"]}, "must be numbers"),
        ({"size": [1.0, -1.0]}, "`size` must be positive"),
    ],
)
def test_bad_controls_get_a_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence):
        verbs.expand(World(), Student(), given)
