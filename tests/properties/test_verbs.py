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
from quenched.core.types import LONGEST, InputError, label_tuple, real, real_tuple, reals
from tests.properties import arguments
from tests.properties import common as properties
from tests.properties.arguments import FEW, called, declarations, verbs

VERBS, CLASSES = verbs(), declarations()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What is written, is written here."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", VERBS)
def test_good_arguments_give_a_result_or_a_sentence(name):
    @properties.property_settings(FEW.get(name, 5))
    @given(found=arguments.good(name, VERBS[name]))
    def tried(found):
        properties.answer(lambda: called(VERBS[name], found))

    tried()


@pytest.mark.parametrize("name", [name for name, verb in VERBS.items() if inspect.signature(verb).parameters])
def test_a_wrong_argument_gives_a_result_or_a_sentence(name):
    @properties.property_settings(8)
    @given(found=arguments.wrong(name, VERBS[name]))
    def tried(found):
        properties.answer(lambda: called(VERBS[name], found))

    tried()


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if inspect.signature(cls).parameters])
def test_a_declaration_is_good_or_refused_with_a_sentence(name):
    cls = CLASSES[name]
    fields = sorted(inspect.signature(cls).parameters)

    @properties.property_settings(8)
    @given(found=arguments.good(name, cls), which=st.sampled_from(fields), value=properties.wrong)
    def tried(found, which, value):
        for given_arguments in (found, found | {which: value}):
            made = properties.answer(lambda given_arguments=given_arguments: cls(**given_arguments))
            if not isinstance(made, str) and dataclasses.is_dataclass(made):
                for field in dataclasses.fields(made):
                    number = getattr(made, field.name)
                    assert not isinstance(number, float) or math.isfinite(number), (field.name, number)

    tried()


CONVERTERS = {
    "number": lambda value: checks.number("x", value),
    "numbers": lambda value: checks.numbers("x", value),
    "finite": lambda value: checks.finite("x", value),
    "positive": lambda value: checks.positive("x", value),
    "not negative": lambda value: checks.not_negative("x", value),
    "inside": lambda value: checks.inside("x", value, 0, 1),
    "whole": lambda value: checks.whole("x", value, least=1),
    "examples": lambda value: checks.examples(value, 10, least=1),
    "increasing": lambda value: checks.increasing("x", value),
    "key": checks.key,
    "flag": lambda value: checks.flag("x", value),
    "names": lambda value: checks.names("x", value),
    "path": lambda value: checks.path("x", value),
    "table": lambda value: checks.table(value, None),
    "weights": lambda value: checks.table(np.eye(3), value),
    "real": real,
    "reals": reals,
    "tuple": real_tuple,
    "labels": label_tuple,
}


@pytest.mark.parametrize("name", CONVERTERS)
def test_a_converter_takes_a_value_or_gives_a_sentence(name):
    good = 0
    for value in properties.WRONG:
        try:
            CONVERTERS[name](value)
            good += 1
        except InputError as error:
            properties.said(error)
    assert good < len(properties.WRONG)


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
    broken = "Argument `x` must be\na number, but it is not."
    for text in ("no", broken, "x" * (LONGEST + 1), "ValueError: wrong shape here"):
        with pytest.raises(AssertionError):
            properties.said(ValueError(text))
    properties.said(InputError("Argument `x` must be a number, but 'a' was given."))


def test_a_sentence_stays_on_one_line_and_keeps_both_its_ends():
    text = str(InputError(f"Argument `x` must be one number, but {np.arange(1000.0).reshape(100, 10)} was given."))
    assert len(text) <= LONGEST
    assert "\n" not in text
    assert text.startswith("Argument `x` must be one number, but")
    assert text.endswith("was given.")


def test_agreement_is_of_datasets():
    with pytest.raises(InputError, match="`curve` must be a dataset"):
        quenched.agreement(quenched.agreement, quenched.agreement)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [10**400, 2**31, 1e300, math.inf])
def test_what_no_machine_holds_is_refused(value):
    with pytest.raises(InputError):
        checks.whole("size", value, least=1)
    with pytest.raises(InputError):
        checks.examples(value, 10, least=1)
    with pytest.raises(InputError, match="fit in memory"):
        system.require_memory("All runs", 1e300)
