"""The errata of the papers, read from their page in the documentation, which every wheel carries."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

PAGES = (Path(__file__).with_name("errata.md"), Path(__file__).parents[3] / "docs" / "errata.md")
"""Where the page is: beside this file in a wheel, in the documentation in the repository."""
ROW = re.compile(r"^\| ([PMBEF]\d+) \| (.*) \|$", re.MULTILINE)
CITED = re.compile(r"\b([PMBEF])(\d+)(?: to [PMBEF](\d+))?\b")
WORDS = re.compile(r"\(errat(?:um|a) [^)]*\)")
"""How a text cites."""


class Erratum(NamedTuple):
    """A mistake in print; texts may have subscripts and superscripts of HTML."""

    key: str  # such as "P7"
    where: str
    printed: str
    used: str
    why: str
    test: str  # that decides


@functools.cache
def every() -> dict[str, Erratum]:
    """All errata by key; none where the page is not at hand."""
    page = next((path for path in PAGES if path.is_file()), None)
    found = ROW.findall(page.read_text(encoding="utf-8")) if page else []
    rows = [(key, [cell.replace(r"\|", "|").strip() for cell in re.split(r" \| ", rest)]) for key, rest in found]
    return {key: Erratum(key, *cells) for key, cells in rows if len(cells) == 5}


def cited(text: str) -> list[str]:
    """The keys that a text cites, as in "(errata P9 to P15)"."""
    keys = []
    for part in WORDS.findall(text):
        for letter, first, last in CITED.findall(part):
            keys += [f"{letter}{i}" for i in range(int(first), int(last or first) + 1)]
    return list(dict.fromkeys(keys))
