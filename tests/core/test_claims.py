"""The verdict of a claim follows from its comparisons and from nothing else."""

import dataclasses
import math

import numpy as np
import pytest

from quenched.core.claims import Check, Claim, Comparison, Correction, Verdict, above, agrees, apart, below, near
from quenched.core.proof import agreement
from tests.core.test_proof import experiment, theory
from tests.papers import claimed

YES, NO, UNSURE = below(1.0, 2.0), below(3.0, 2.0), below(1.9, 2.0, stderr=0.1)


def claim(stands=None, instead=None):
    return Claim("section 1", "the error falls", "falls", "0.2", "counted", stands, instead)


@pytest.mark.parametrize(
    ("stands", "instead", "verdict"),
    [
        (YES, None, Verdict.reproduced),
        (YES, NO, Verdict.reproduced),
        (NO, YES, Verdict.corrected),
        (NO, None, Verdict.refuted),
        (NO, NO, Verdict.refuted),
        (NO, UNSURE, Verdict.refuted),
        (None, None, Verdict.not_decidable),
        (None, YES, Verdict.not_decidable),
        (UNSURE, YES, Verdict.not_decidable),
        (YES & NO, YES, Verdict.corrected),
        (YES & UNSURE, None, Verdict.not_decidable),
        (NO & UNSURE, None, Verdict.refuted),
    ],
)
def test_the_verdict_follows_from_the_comparisons(stands, instead, verdict):
    assert claim(stands, instead).verdict is verdict


def test_a_verdict_cannot_be_written_down():
    with pytest.raises(TypeError):
        Claim("section 1", "the error falls", "falls", "0.2", "counted", verdict=Verdict.reproduced)
    with pytest.raises(AttributeError):
        claim(YES).verdict = Verdict.refuted


@pytest.mark.parametrize("number", np.linspace(-2, 2, 9))
def test_comparisons_are_what_they_are_called(number):
    assert below(number, 0.5).holds is bool(number <= 0.5)
    assert above(number, 0.5).holds is bool(number >= 0.5)
    assert near(number, 0.5, within=0.75).holds is bool(abs(number - 0.5) <= 0.75)
    assert apart(number, 0.5, by=0.75).holds is bool(abs(number - 0.5) > 0.75)


def test_a_value_near_its_bound_is_undecided():
    for check in (below, above):
        assert check(0.0, 0.29, stderr=0.1).holds is None
        assert check(0.0, -0.29, stderr=0.1).holds is None
    assert near(0.0, 0.0, within=0.2, stderr=0.1).holds is None
    assert near(0.0, 0.0, within=0.4, stderr=0.1).holds is True
    assert apart(1.0, 0.0, by=0.4, stderr=0.1).holds is True


def test_a_comparison_of_nan_is_an_error():
    for numbers in ((math.nan, 0, 1), (0, math.nan, 1), (0, 0, math.nan), (0, 0, 1, math.nan)):
        with pytest.raises(ValueError, match="NaN"):
            Comparison(*numbers)


def test_a_comparison_is_read_as_a_sentence():
    words = str(Check((*below(0.25, 1, what="error").parts, *apart(2, 1, by=0.5, stderr=0.01).parts)))
    assert words == "error 0.25 below 1: yes; 2 ± 0.01 outside 0.5 and 1.5: yes"
    assert claim(NO, YES).checks == ("as printed: 3 below 2: no", "ours: 1 below 2: yes")


def test_a_theory_agrees_as_its_p_value_says():
    points = experiment(3)
    for bias in (0.0, 0.1):
        one = agreement(theory(bias=bias), points)
        assert agrees(one).holds is one.passed
        assert claim(agrees(one)).verdict is (Verdict.reproduced if one.passed else Verdict.refuted)
    assert not one.passed


@pytest.mark.parametrize("check", [YES, NO, YES & NO, NO & NO, YES & YES, near(1, 1, within=2), apart(1, 1, by=2)])
def test_other_numbers_give_another_verdict(check):
    one = claim(check, YES)
    claimed.check_numbers([one])
    assert claimed.turned(check).holds is not check.holds


def test_what_is_written_down_is_found(tmp_path):
    source = tmp_path / "paper.py"
    for text in ("Claim(Verdict.refuted)", "below(0.3, 1)", "near(1 / 3, x, within=1)"):
        source.write_text(text)
        with pytest.raises(AssertionError):
            claimed.check_source(source)
    source.write_text("Claim(below(found[0], 1) & near(error(2.0), 1, within=0.1))")
    claimed.check_source(source)


PLACES = {
    "two formulas through one test": ("section 2", below(0.3, 1e-6), below(1e-9, 1e-6), Correction.misprint),
    "the value of a formula": ("equation (9)", near(0.5, 0.2, within=0.02), below(0.5, 0.6), Correction.misprint),
    "a printed number": ("figure 2", near(1.99, 2.1, within=0.05), near(1.99, 2.0, within=0.05), Correction.number),
    "a direction": ("section 4", below(0.01, 0.0), above(0.01, 0.002), Correction.conclusion),
    "a dependence that is none": ("equation (30)", apart(0.0, 0.0, by=1e-6), below(0.0, 1e-6), Correction.conclusion),
    "a number and a direction": (
        "figure 5",
        near(0.2, 0.9, within=0.1) & below(0.7, 0.5),
        above(0.7, 0.6),
        Correction.conclusion,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PLACES)
def test_what_was_corrected_follows_from_the_comparison_that_fails(case):
    where, stands, instead, kind = PLACES[case]
    made = dataclasses.replace(claim(stands, instead), where=where)
    assert made.correction is kind
    assert dataclasses.replace(made, instead=None).correction is None  # refuted
    assert dataclasses.replace(made, stands=instead).correction is None  # reproduced
