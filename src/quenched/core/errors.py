"""The errors that users read, and text made fit for a terminal. It imports nothing heavy, so that a command that is
wrong says so at once.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

LONGEST = 400
"""Longest sentence; the middle of a longer one, which repeats its input, is left out."""


def printable(text: str) -> str:
    r"""Text from outside, such as a column's name, without characters that control a terminal."""
    if text.isprintable():
        return text
    plain = (c if c.isprintable() else " " if unicodedata.category(c) == "Zs" else ascii(c)[1:-1] for c in text)
    return "".join(plain)


def reason(error: BaseException) -> str:
    """Why a file failed, without its path."""
    return getattr(error, "strerror", None) or str(error)


def meant(name: str, known: Iterable[str], *, like: float = 0.6) -> str:
    """A question about the closest of the known names, if one is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=like)
    return f" (did you mean {printable(close[0])}?)" if close else ""


class InputError(ValueError):
    """Bad input, in one sentence on one line: "Argument `x` must ..., but ..."."""

    def __init__(self, sentence: str):
        line = printable(" ".join(sentence.split()))
        half = (LONGEST - 5) // 2
        super().__init__(line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}")


class OutputError(OSError):
    """The wanted place cannot be written; the message tells where the result was put instead."""


class ClusterError(RuntimeError):
    """A cluster cannot go on; the message tells what is kept."""
