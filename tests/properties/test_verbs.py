"""Whatever numbers and objects a public verb gets: a result whose gaps say why they are there, or one sentence."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import quenched
from quenched.core import checks, system
from quenched.core.types import LONGEST, InputError
from tests.properties import common as properties
from tests.properties.verbs import CASES, verbs
from tests.properties.worlds import DECLARED, declarations


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What is written, is written here."""
    monkeypatch.chdir(tmp_path)


def test_every_public_verb_is_tried():
    assert sorted(verbs()) == sorted(CASES)
    for name, case in CASES.items():
        known = inspect.signature(verbs()[name]).parameters
        needed = {p for p, about in known.items() if about.kind in (about.POSITIONAL_OR_KEYWORD, about.KEYWORD_ONLY)}
        assert needed <= set(case.arguments), f"{name} has arguments that are never tried"


def test_every_public_class_is_tried():
    assert sorted(declarations()) == sorted(DECLARED)


@pytest.mark.parametrize("name", CASES)
def test_good_arguments_give_a_result_or_a_sentence(name):
    case = CASES[name]

    @properties.property_settings(6 if case.slim is None else case.few)
    @given(arguments=case.good())
    def tried(arguments):
        properties.answer(lambda: case.verb(**arguments))

    tried()


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_argument_gives_a_result_or_a_sentence(name):
    case = CASES[name]

    @properties.property_settings(8)
    @given(arguments=case.wrong())
    def tried(arguments):
        properties.answer(lambda: case.verb(**arguments))

    tried()


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_is_good_or_refused_with_a_sentence(name):
    cls, good = DECLARED[name]

    @properties.property_settings(8)
    @given(arguments=good, which=st.sampled_from(sorted(inspect.signature(cls).parameters)), value=properties.wrong)
    def tried(arguments, which, value):
        for given_arguments in (arguments, arguments | {which: value}):
            made = properties.answer(lambda given_arguments=given_arguments: cls(**given_arguments))
            if not isinstance(made, str) and dataclasses.is_dataclass(made):
                for field in dataclasses.fields(made):
                    found = getattr(made, field.name)
                    assert not isinstance(found, float) or math.isfinite(found), (field.name, found)

    if inspect.signature(cls).parameters:
        tried()


# What the oracle itself does


def test_a_gap_must_say_why_it_is_there():
    gap = xr.Dataset({"R": ("alpha", [1.0, np.nan])})
    with pytest.raises(AssertionError, match="does not say why"):
        properties.look(gap)
    properties.look(gap.assign(outcome=("alpha", ["converged", "diverged"])))
    with pytest.raises(AssertionError, match="does not say why"):
        properties.look(gap.assign(outcome=("alpha", ["diverged", "converged"])))
    with pytest.raises(AssertionError):
        properties.look((1.0, math.nan))


def test_an_error_must_be_a_sentence():
    for text in (
        "no",
        "Argument `x` must be\na number, but it is not.",
        "x" * (LONGEST + 1),
        "ValueError: wrong shape here",
    ):
        with pytest.raises(AssertionError):
            properties.said(ValueError(text))
    properties.said(InputError("Argument `x` must be a number, but 'a' was given."))


def test_a_sentence_stays_on_one_line_and_keeps_both_its_ends():
    text = str(InputError(f"Argument `x` must be one number, but {np.arange(1000.0).reshape(100, 10)} was given."))
    assert len(text) <= LONGEST
    assert "\n" not in text
    assert text.startswith("Argument `x` must be one number, but")
    assert text.endswith("was given.")


def test_no_agreement_with_an_allowance_that_is_no_number():
    case = CASES["agreement"]
    arguments = {"curve": quenched.agreement, "points": quenched.agreement}
    with pytest.raises(InputError, match="`curve` must be a dataset"):
        case.verb(**arguments)


@pytest.mark.parametrize("value", [10**400, 2**31, 1e300, math.inf])
def test_what_no_machine_holds_is_refused(value):
    with pytest.raises(InputError):
        checks.whole("size", value, least=1)
    with pytest.raises(InputError):
        checks.examples(value, 10, least=1)
    with pytest.raises(InputError, match="fit in memory"):
        system.require_memory("All runs", 1e300)
