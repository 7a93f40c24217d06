"""Figures and claims of Malzahn and Opper."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from quenched import plots
from quenched.core.claims import Verdict
from quenched.core.figures import Figure, Kind
from quenched.core.types import InputError
from quenched.papers import malzahn2002
from quenched.papers.malzahn2002 import printed, sets, statements
from quenched.papers.malzahn2002.figures import BOSTON_PARTS
from tests.papers import claimed
from tests.tolerances import PRINTED


def verdicts(claims):
    """Verdicts by the first words of what is stated."""
    return {" ".join(claim.statement.split()[:4]): claim.verdict.name for claim in claims}


def figure_1_agrees_and_can_be_drawn(figure):
    assert set(figure.agreement) == {f"{part}, cavity closure, trusted sizes" for part in BOSTON_PARTS}
    assert all(one.passed for one in figure.agreement.values()), figure.agreement
    assert len(figure.panels) == 4
    assert all({s.kind for s in panel.series} == {Kind.theory, Kind.simulation} for panel in figure.panels)
    plots.draw(figure)


def claims_of_boston(figure):
    claims = [*statements.agreement_on_boston(figure), *statements.halves_of_boston(figure)]
    claimed.check([figure], claims)
    claims += statements.sampling(figure)
    claimed.check_numbers(claims)
    assert [claim.verdict.name for claim in claims] == [
        *["corrected"] * 2,
        *["reproduced"] * 6,
        "refuted",
        *["reproduced"] * 2,
        "refuted",
    ]
    paper = statements._off(figure, "all 506 rows", "the paper's closure", "posterior_variance", 506)
    assert paper.value - 1 == pytest.approx(-0.39, abs=0.03)
    error = [float(figure.data[f"{part}, simulation"].error.sel(examples=506)) for part in BOSTON_PARTS]
    assert error[1] < 0.5 * error[0] < error[2]


def test_boston():
    """In one test, so that the figure is made once."""
    figure = malzahn2002.figure_1(quick=True)
    figure_1_agrees_and_can_be_drawn(figure)
    claims_of_boston(figure)


def abalone(*, short=0.2, early=0.04, bar=0.0001, stderr=0.001):
    """A figure 2 with given numbers: how much too low subsets are at m = 4000 and 400, the range of variances."""
    m = np.array([400.0, 3800.0, 4000.0])
    true = {"posterior_variance": np.array([0.022, 0.0041, 0.004]), "error": np.array([0.46, 0.395, 0.39])}
    whole = {name: ("examples", value) for name, value in true.items()}
    whole |= {f"{name}_stderr": ("examples", np.full(3, stderr) * value) for name, value in true.items()}
    low = 1 - np.array([early, short, short])
    spread = {"posterior_variance": bar, "error": 0.04}
    data = {"whole set, simulation": xr.Dataset(whole, {"examples": m})}
    for rows, less in ((1000, 1.0), (2000, 0.5)):
        subsets = {
            n: (("subset", "examples"), np.stack([v * low, v * low + less * spread[n]])) for n, v in true.items()
        }
        data[f"{rows} random rows"] = xr.Dataset(subsets, {"examples": m})
    return Figure("malzahn2002/figure_2", "Abalone", "", (), data)


def rows(tail=3.0):
    """Leave-one-out errors that are Gaussian, or have a tail."""
    return np.random.default_rng(0).standard_t(tail, 4177)


@pytest.fixture(scope="module")
def heavy():
    return statements.HardRows(rows())


def test_other_numbers_of_abalone_give_other_verdicts(heavy):
    found = statements.subsets_of_abalone(abalone(), heavy)
    claimed.check_numbers(found)
    assert list(verdicts(found).values()) == ["reproduced", "corrected", "corrected", "reproduced", "reproduced"]
    words = "subsets lead to a"
    assert verdicts(statements.subsets_of_abalone(abalone(short=0.05), heavy))[words] == "reproduced"
    assert verdicts(statements.subsets_of_abalone(abalone(short=0.11, stderr=0.01), heavy))[words] == "not_decidable"
    assert (
        verdicts(statements.subsets_of_abalone(abalone(bar=0.01), heavy))["posterior variances of random"] == "refuted"
    )
    light = statements.HardRows(rows(1e6))
    assert light.quarter == pytest.approx(light.GAUSSIAN, abs=0.02)
    assert list(verdicts(statements.subsets_of_abalone(abalone(), light)).values())[-1] != "reproduced"


def test_printed_equations_and_arithmetic():
    claims = [*printed.equations(), *printed.arithmetic()]
    claimed.check_numbers(claims)
    assert [claim.verdict.name for claim in claims] == [*["corrected"] * 5, "reproduced", *["corrected"] * 2]
    few, distinct, share = printed.arithmetic()
    assert few.ours.startswith("2 ") or few.ours.startswith("3 ")
    assert "320." in distinct.ours
    assert share.ours == "0.239 and 0.479"


def test_what_is_enumerated_is_all():
    """The probabilities of the samples sum to 1, and without labels there is no error."""
    found = printed.enumerated(np.zeros(3))
    assert np.all(found.error == 0)
    alone = sum(np.exp(-0.8) * 0.8**k / np.prod(np.arange(1.0, k + 1)) for k in range(printed.MOST))
    assert alone == pytest.approx(1, abs=2e-8)


def test_what_the_paper_does_not_say_is_not_decidable():
    assert {claim.verdict for claim in statements.open_questions()} == {Verdict.not_decidable}


def test_no_verdict_is_written_down():
    for path in Path(malzahn2002.__file__).parent.glob("*.py"):
        claimed.check_source(path)


def test_boston_is_the_set_of_the_paper():
    found = sets.boston()
    assert (found.inputs.shape, found.target, len(found.names)) == ((506, 13), "MEDV", 13)
    halves = found.targets[:253], found.targets[253:]
    moments = [(part.mean(), part.var()) for part in (found.targets, *halves)]
    expected = [(22.532806, 84.419556), (24.3075, 69.2533), (20.7581, 93.2867)]
    np.testing.assert_allclose(moments, expected, rtol=PRINTED)
    assert found.inputs[0, found.names.index("LSTAT")] == 4.98
    assert len(np.unique(found.inputs, axis=0)) == 506


def test_abalone_is_the_set_of_the_paper():
    found = sets.abalone()
    assert (found.inputs.shape, found.target) == ((4177, 10), "Rings")
    assert found.names[:4] == ("Sex=M", "Sex=F", "Sex=I", "Length")
    assert found.inputs[:, :3].sum(axis=0).tolist() == [1528, 1307, 1342]
    np.testing.assert_allclose([found.targets.mean(), found.targets.var()], [9.933684, 10.392777], rtol=PRINTED)
    assert found.inputs[2].tolist() == [0, 1, 0, 0.53, 0.42, 0.135, 0.677, 0.2565, 0.1415, 0.21]


def test_without_their_packages_one_sentence_says_how_to_get_them(monkeypatch, tmp_path):
    for load in (sets.boston, sets.abalone):
        monkeypatch.setattr(sets.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(InputError, match=r"not installed: pip install 'quenched\[papers\]'"):
            load()
        other = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
        monkeypatch.setattr(sets.importlib.util, "find_spec", lambda name, other=other: other)
        with pytest.raises(InputError, match=r"another version, without data/"):
            load()
