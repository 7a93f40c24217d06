"""Mathematics without scripts: what stands between dollar signs becomes MathML when the site is built.

Browsers draw MathML by themselves, so a page needs no script and no font from the network. Without the converter
(`latex2mathml`) the source stays, in the font of code: readable, and the build still passes.
"""

from __future__ import annotations

import html
import re
from typing import Any

try:
    from latex2mathml.converter import convert
except ImportError:
    convert = None

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def _inline(found: re.Match[str]) -> str:
    tex = " ".join(html.unescape(found[1]).split())
    return f"<code>{html.escape(tex)}</code>" if convert is None else convert(tex)


def _block(found: re.Match[str]) -> str:
    tex = " ".join(html.unescape(found[1]).split())
    return (
        f"<pre>{html.escape(tex)}</pre>"
        if convert is None
        else f'<div class="math">{convert(tex, display="block")}</div>'
    )


def on_page_content(content: str, **_: Any) -> str:
    """Replace the mathematics of a page (called by mkdocs)."""
    return INLINE.sub(_inline, BLOCK.sub(_block, content))
