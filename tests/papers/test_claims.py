"""No verdict of any paper is written down: the sources are read for that."""

from pathlib import Path

import pytest

from quenched import papers
from tests.papers import claimed

SOURCES = sorted(path for folder in papers.__path__ for path in Path(folder).rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_verdicts_follow_from_numbers(path):
    claimed.check_source(path)


def test_every_paper_is_read():
    assert {path.parent.name for path in SOURCES} == {
        "papers", "reproduction", "barkai1994", "biehl2006", "dietrich1998", "lemm1999", "malzahn2002"
    }  # fmt: skip
