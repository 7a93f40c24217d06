"""No verdict of any paper is written down: the sources are read for that. Pictures of papers leave nothing out."""

from pathlib import Path

import numpy as np
import pytest

from quenched import papers
from quenched.core.figures import Figure, Kind, Panel, Series
from tests.papers import claimed

SOURCES = sorted(path for folder in papers.__path__ for path in Path(folder).rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_verdicts_follow_from_numbers(path):
    claimed.check_source(path)


def test_every_paper_is_read():
    assert {path.parent.name for path in SOURCES} == {
        "papers", "reproduction", "barkai1994", "biehl2006", "dietrich1998", "lemm1999", "malzahn2002"
    }  # fmt: skip


@pytest.mark.parametrize(("high", "lines", "good"), [(2.0, 8, True), (0.5, 8, False), (2.0, 9, False)])
def test_data_outside_a_frame_and_crowds_of_lines_are_found(high, lines, good):
    x = np.array([0.0, 1.0])
    series = [Series(f"line {i}", Kind.theory, x, x) for i in range(lines)]
    figure = Figure("paper/figure_1", "", "", (Panel("", "", (*series, Series("", Kind.row, x, x)), ylim=(0, high)),))
    if good:
        claimed.check_panels([figure])
    else:
        with pytest.raises(AssertionError):
            claimed.check_panels([figure])
