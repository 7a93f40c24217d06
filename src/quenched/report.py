"""One self-contained HTML page from figures, claims and agreement, and the same as files beside it.

The page opens from disk and prints; it loads nothing from anywhere. It shows every comparison and every claim that
it is given, whatever the verdict.
"""

from __future__ import annotations

import base64
import collections
import importlib.metadata
import io as streams
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from quenched import io, plots
from quenched.core.figures import Claim, Figure, Verdict
from quenched.core.proof import Agreement
from quenched.core.results import save, version

PAGE = "report.html"
"""Name of the page in its folder."""

ABOUT = (
    "Figures and checkable statements of the paper, computed again: the theory as equations in the limit of large "
    "systems, without any training, and the simulation as training runs on random data, with error bars. The two "
    "share the declaration of the problem but no equation and no algorithm, so their agreement is evidence."
)

MACHINERY = ("jax", "numpy", "scipy")
REMS_PER_INCH = 5.8
"""Width of a picture on the page."""


def write(
    figures: Iterable[Figure],
    claims: Iterable[Claim],
    out: str | os.PathLike[str],
    *,
    title: str,
    reference: str = "",
    about: str = ABOUT,
) -> Path:
    """Write the report of a paper into a folder.

    Besides `report.html` the folder gets `agreement.json`, each figure as PNG and its data as netCDF.

    Args:
        figures: the figures, in the order in which they are shown.
        claims: the claims; none leaves their table out.
        out: the folder.
        title: the headline.
        reference: the paper.
        about: what this is, in a few sentences.

    Returns:
        The path of the page.

    Raises:
        OutputError: if the folder cannot be written; the report then lies in a temporary folder the sentence names.
    """
    figures, claims = list(figures), list(claims)
    return io.write_into(out, lambda folder: _write(folder, figures, claims, title, reference, about))


def _write(folder: Path, figures: list[Figure], claims: list[Claim], title: str, reference: str, about: str) -> Path:
    """Write all files, the page last, so that a page never lacks what it links to."""
    import jinja2

    shown = [_save_figure(folder, figure) for figure in figures]
    text = json.dumps(agreements(figures), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "agreement.json").write_text(text + "\n", encoding="utf-8")
    loader = jinja2.PackageLoader("quenched", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    compared = [one for figure in figures for one in figure.agreement.values()]
    verdicts = collections.Counter(claim.verdict for claim in claims)
    page = environment.get_template("report.html").render(
        title=title,
        reference=reference,
        about=about,
        figures=shown,
        rows=[row for figure in figures for row in _rows(figure)],
        comparisons=len(compared),
        disagreeing=sum(not one.passed for one in compared),
        claims=claims,
        refuted=verdicts[Verdict.refuted],
        counts=", ".join(f"{verdicts[v]} {v.value}" for v in Verdict if verdicts[v]),
        version=version(),
        machinery=", ".join(f"{name} {importlib.metadata.version(name)}" for name in MACHINERY),
        example=next((name for figure in shown for name in figure["data"].values()), "figure.nc"),
    )
    target = folder / PAGE
    target.write_text(page, encoding="utf-8")
    return target


def agreements(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """Every comparison of theory and simulation as plain data, as `agreement.json` has it.

    An infinite deviation (a point without any spread that is off) is the text "infinite", since JSON has no infinity.
    """
    return [
        {
            "figure": figure.key,
            "comparison": name,
            "p": one.p,
            "largest": one.largest if math.isfinite(one.largest) else "infinite",
            "where": one.where,
            "points": one.points,
            "runs": one.runs,
            "allowance": one.allowance,
            "relative_allowance": one.relative_allowance,
            "passed": one.passed,
        }
        for figure in figures
        for name, one in figure.agreement.items()
    ]


def figure_name(key: str) -> str:
    """A figure's key in words: "biehl2006/figure_3_left" is "Figure 3 left"."""
    return key.rpartition("/")[2].replace("_", " ").capitalize()


def allowance_words(one: Agreement) -> str:
    """What was granted for finite size, in words."""
    absolute = f"{one.allowance:g}" if one.allowance else ""
    relative = f"{100 * one.relative_allowance:g} %" if one.relative_allowance else ""
    return " + ".join(filter(None, [absolute, relative])) or "none"


def _rows(figure: Figure) -> list[dict[str, Any]]:
    """The rows of a figure in the first table; one that says so if there was nothing to compare."""
    name = figure_name(figure.key)
    rows = [
        {
            "compared": True,
            "figure": name,
            "comparison": comparison,
            "p": f"{one.p:.2g}",
            "largest": f"{one.largest:.2f}" if math.isfinite(one.largest) else "∞",
            "where": one.where,
            "points": one.points,
            "runs": one.runs,
            "allowance": allowance_words(one),
            "passed": one.passed,
        }
        for comparison, one in figure.agreement.items()
    ]
    return rows or [{"compared": False, "figure": name}]


def _save_figure(folder: Path, figure: Figure) -> dict[str, Any]:
    """Save picture and data of a figure, and give what the page needs of it."""
    file = _file_name(figure.key)
    picture = plots.draw(figure, title=False)
    stream = streams.BytesIO()
    picture.savefig(stream, format="png")
    (folder / f"{file}.png").write_bytes(stream.getvalue())
    data = {name: f"{file}-{_file_name(name)}.nc" for name in figure.data}
    for name, result in figure.data.items():
        save(result, folder / data[name])
    return {
        "name": figure_name(figure.key),
        "title": figure.title,
        "caption": figure.caption,
        "file": file,
        "data": data,
        "image": base64.b64encode(stream.getvalue()).decode("ascii"),
        "width": f"{REMS_PER_INCH * picture.get_figwidth():.1f}",
    }


def _file_name(words: str) -> str:
    """Words as a file name that every system takes; a plus sign stays a word."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", words.replace("+", "plus")).strip("-")
