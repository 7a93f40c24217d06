"""Mathematics of plain sentences as MathML: `R₊₊`, `N^-1/2`, `√(c/α)` become formulas; everything else stays text.

Figures and claims are plain data that also terminals print, so they have no TeX. Browsers draw MathML by themselves.
"""

from __future__ import annotations

import html
import re
import unicodedata

LETTER = "[A-Za-zΑ-Ωα-ωϑϕϵ∂ℓ][\u0300-\u036f]?"
LOW, HIGH = "[₀-ₜᵢᵣᵤᵥⱼ]+", "[⁰¹²³⁴-ⁿ]+"
RAISED = r"\^(?:\([^()]*\)|-?\d+(?:\.\d+)?(?:/\d+)?(?!\d)|[A-Za-zα-ω](?![A-Za-z]))"
TERM = re.compile(
    rf"√\((?P<root>[^()]*)\)|√(?P<short>{LETTER}|\d+)"
    rf"|(?<![A-Za-z\d^])(?P<base>{LETTER}|\d+(?:\.\d+)?)"
    rf"(?:(?P<low>{LOW})?(?P<high>{HIGH}|{RAISED})|(?P<only>{LOW})|(?![A-Za-z\d]))"
)
"""A root, or a letter or a number with what stands below and above it."""
GREEK = re.compile("[Α-Ωα-ωϑϕϵ]")
SIGNS = r"[+−]{2,}"
PIECE = re.compile(rf"{SIGNS}|\d+(?:\.\d+)?|[^\W\d_][\u0300-\u036f]?|\S")
"""Two signs are the name of an element, not a sum of sums: browsers would put spaces between them."""
CODE = re.compile("`([^`]+)`")


def mathematics(text: str) -> str:
    """A sentence as HTML, its formulas as MathML, and what stands between backticks as code."""
    words = CODE.split(text)
    return "".join(f"<code>{html.escape(one)}</code>" if i % 2 else _set(one) for i, one in enumerate(words))


def _set(text: str) -> str:
    """Words without code."""
    parts, end = [], 0
    for found in TERM.finditer(text):
        formula = _formula(found)
        if formula:
            parts += [html.escape(text[end : found.start()]), f"<math>{formula}</math>"]
            end = found.end()
    return "".join(parts) + html.escape(text[end:])


def _formula(found: re.Match[str]) -> str:
    """A term in MathML; nothing for words and plain numbers."""
    inside = found["root"] or found["short"]
    if inside:
        return f"<msqrt>{_row(inside)}</msqrt>"
    base, low, high = found["base"], found["low"] or found["only"], found["high"]
    if not (low or high or GREEK.match(base)):
        return ""
    below = _row(unicodedata.normalize("NFKC", low)) if low else ""
    above = _row(unicodedata.normalize("NFKC", high).lstrip("^").strip("()")) if high else ""
    name = _row(base)
    if below and above:
        return f"<msubsup>{name}{below}{above}</msubsup>"
    return f"<msub>{name}{below}</msub>" if below else f"<msup>{name}{above}</msup>" if above else name


def _row(text: str) -> str:
    """Letters, numbers and signs in a row."""
    pieces = []
    for piece in PIECE.findall(text.replace("-", "−")):
        tag = "mn" if piece[0].isdigit() else "mi" if piece[0].isalpha() else "mo" if len(piece) == 1 else "mtext"
        pieces.append(f"<{tag}>{html.escape(piece)}</{tag}>")
    return pieces[0] if len(pieces) == 1 else f"<mrow>{''.join(pieces)}</mrow>"
