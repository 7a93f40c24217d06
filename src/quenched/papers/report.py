"""One self-contained HTML page from figures, claims and agreement, and the same as files beside it.

The page opens from disk and prints; it loads nothing from anywhere. It shows every comparison and every claim that
it is given, whatever the verdict, and names what is missing.
"""

from __future__ import annotations

import base64
import collections
import html
import importlib.metadata
import io as streams
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quenched import plots
from quenched.core import store
from quenched.core.claims import DEFINITIONS, Claim, Correction, Verdict
from quenched.core.figures import Figure, Kind, Section, comparison
from quenched.core.proof import Agreement
from quenched.core.results import save, version
from quenched.papers import errata, notation

PAGE = "report.html"
"""Name of the page in its folder."""
FORMAT = 4
"""Number of the format of `agreement.json`."""

MACHINERY = ("jax", "numpy", "scipy")
GRAVITY = tuple(DEFINITIONS)
"""Verdicts as they are shown, the gravest first; what was corrected stands for "corrected"."""
SAME = 1e-9
"""A drawn point and a compared one are the same if their means differ by less, relative to their size."""
REMS_PER_INCH = 5.8
"""Width of a picture on the page."""


def write(sections: Iterable[Section], out: str | os.PathLike[str], *, title: str, quick: bool = False) -> Path:
    """Write a report into a folder.

    Besides `report.html` the folder gets `agreement.json`, each figure as PNG and its data as netCDF.

    Args:
        sections: papers computed again, in the order in which they are shown.
        out: the folder.
        title: the headline.
        quick: whether fewer runs were made than the papers made.

    Returns:
        The path of the page.

    Raises:
        OutputError: if the folder cannot be written; the report then lies in a temporary folder the sentence names.
    """
    sections = list(sections)
    return store.write_into(out, lambda folder: _write(folder, sections, title, quick))


def _write(folder: Path, sections: list[Section], title: str, quick: bool) -> Path:
    """Write all files, the page last, so that a page never lacks what it links to."""
    import jinja2
    from markupsafe import Markup

    proof = agreements(sections, quick=quick)
    store.write(
        folder / "agreement.json", json.dumps(proof, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )  # fmt: skip
    shown = [_section(folder, section) for section in sections]
    loader = jinja2.PackageLoader("quenched.papers", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["mathematics"] = lambda text: Markup(notation.mathematics(str(text)))
    environment.filters["marked_up"] = lambda text: Markup(_keep_scripts(text))
    pictures = [figure for section in shown for figure in section["figures"]]
    page = environment.get_template("report.html").render(
        title=title,
        quick=quick,
        sections=shown,
        summary=proof["summary"],
        definitions=[(_slug(kind), _label(kind), words) for kind, words in DEFINITIONS.items()],
        errata=_cited(sections),
        counts=_counts([claim for section in sections for claim in section.claims if not claim.own]),
        version=version(),
        machinery=", ".join(f"{name} {importlib.metadata.version(name)}" for name in MACHINERY),
        example=next((name for figure in pictures for name in figure["data"].values()), "figure.nc"),
    )
    target = folder / PAGE
    store.write(target, page)
    return target


def agreements(sections: Sequence[Section], *, quick: bool = False) -> dict[str, Any]:
    """Every comparison of theory and simulation as plain data, as `agreement.json` has it.

    An infinite deviation (a point without any spread that is off) is the text "infinite", since JSON has no infinity.
    With each comparison stand the claims that rest on it: they explain what it means, above all if it fails.
    """
    compared = [one for section in sections for one in _compared(section)]
    claims = [claim for section in sections for claim in section.claims if not claim.own]
    verdicts = collections.Counter(claim.verdict.value for claim in claims)
    corrections = collections.Counter(claim.correction.value for claim in claims if claim.correction)
    drawn, tested = np.sum([[0, 0], *(_drawn(figure) for section in sections for figure in section.figures)], axis=0)
    failing = [one for one in compared if not one["passed"]]
    return {
        "format": FORMAT,
        "version": version(),
        "mode": "quick" if quick else "full",
        "summary": {
            "comparisons": len(compared),
            "disagreeing": len(failing),
            "unexplained": sum(not one["claims"] for one in failing),
            "figures": sum(len(section.figures) for section in sections),
            "not_built": sum(len(section.not_built) for section in sections),
            "not_computed": sum(len(section.failed) for section in sections),
            "claims": {v.value: verdicts[v.value] for v in Verdict if verdicts[v.value]},
            "corrections": {c.value: corrections[c.value] for c in Correction if corrections[c.value]},
            "own_checks": sum(claim.own for section in sections for claim in section.claims),
            "points_drawn": int(drawn),
            "points_tested": int(tested),
        },
        "comparisons": compared,
        "claims": {section.key: [_told(claim) for claim in section.claims] for section in sections},
        "not_built": {f"{s.key}/{name}": why for s in sections for name, why in s.not_built.items()},
        "not_computed": {f"{s.key}/{name}": why for s in sections for name, why in s.failed.items()},
    }


def _told(claim: Claim) -> dict[str, Any]:
    """A claim as plain data, with the comparisons of numbers that decide it."""
    words = {name: getattr(claim, name) for name in ("where", "statement", "printed", "ours", "evidence")}
    correction = claim.correction.value if claim.correction else ""
    also = {"correction": correction, "own": claim.own, "errata": errata.cited(claim.evidence)}
    return {**words, "checks": list(claim.checks), "verdict": claim.verdict.value, **also}


def _compared(section: Section) -> list[dict[str, Any]]:
    """The comparisons of a section, and the claims that rest on each."""
    resting: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for claim in section.claims:
        resting[claim.rests_on].append(_told(claim))
    return [
        {
            "figure": figure.key,
            "comparison": name,
            "p": one.p,
            "largest": one.largest if math.isfinite(one.largest) else "infinite",
            "largest_without_allowance": one.deviation if math.isfinite(one.deviation) else None,
            "smallest_error_caught": one.caught if math.isfinite(one.caught) else None,
            "smallest_error_caught_at": one.caught_where,
            "where": one.where,
            "points": one.points,
            "runs": one.runs,
            "allowance": one.allowance,
            "allowances": dict(one.allowances),
            "relative_allowance": one.relative_allowance,
            "passed": one.passed,
            "claims": resting[comparison(figure, name)],
        }
        for figure in section.figures
        for name, one in figure.agreement.items()
    ]


def figure_name(key: str) -> str:
    """A figure's key in words: "biehl2006/figure_3_left" is "Figure 3 left"."""
    return key.rpartition("/")[2].replace("_", " ").capitalize()


def allowance_words(one: Agreement) -> str:
    """What was granted for finite size, in words."""
    several = len(set(one.allowances.values())) > 1
    each = ", ".join(f"{value:g} in {name}" for name, value in one.allowances.items())
    absolute = "" if not one.allowance else each if several else f"{one.allowance:g}"
    relative = f"{100 * one.relative_allowance:g}%" if one.relative_allowance else ""
    return " + ".join(filter(None, [absolute, relative])) or "none"


def _section(folder: Path, section: Section) -> dict[str, Any]:
    """What the page needs of a section; its pictures and data are saved."""
    compared = [one for figure in section.figures for one in figure.agreement.values()]
    claims = [claim for claim in section.claims if not claim.own]
    rows = [row for figure in section.figures for row in _rows(section, figure)]
    return {
        "key": section.key,
        "title": section.title,
        "reference": section.reference,
        "figures": [_save_figure(folder, figure) for figure in section.figures],
        "rows": sorted(rows, key=lambda row: row["passed"]),
        "alone": ", ".join(figure_name(figure.key) for figure in section.figures if not figure.agreement),
        "comparisons": len(compared),
        "disagreeing": sum(not one.passed for one in compared),
        "least": min(compared, key=lambda one: one.p).chance.removeprefix("= ") if compared else "",
        "claims": sorted((_claim(claim) for claim in claims), key=lambda one: one["gravity"]),
        "own": [_claim(claim) for claim in section.claims if claim.own],
        "counts": _counts(claims),
        "not_built": {figure_name(name): why for name, why in section.not_built.items()},
        "failed": {figure_name(name): why for name, why in section.failed.items()},
    }


def _kind(claim: Claim) -> Verdict | Correction:
    """The verdict of a claim, or what was corrected."""
    return claim.correction or claim.verdict


def _slug(kind: Verdict | Correction) -> str:
    return kind.value.replace(" ", "-")


def _label(kind: Verdict | Correction) -> str:
    return f"{kind.value} corrected" if isinstance(kind, Correction) else kind.value


def _claim(claim: Claim) -> dict[str, Any]:
    """What the page needs of a claim."""
    kind = _kind(claim)
    words = {name: getattr(claim, name) for name in ("where", "statement", "printed", "ours", "evidence", "checks")}
    gravity = GRAVITY.index(kind)
    return {
        **words,
        "kind": _slug(kind),
        "label": _label(kind),
        "gravity": gravity,
        "errata": errata.cited(claim.evidence),
    }


def _counts(claims: Sequence[Claim]) -> str:
    """How many claims have each verdict, in words."""
    verdicts = collections.Counter(claim.verdict for claim in claims)
    corrections = {verdict: collections.Counter() for verdict in verdicts}
    for claim in claims:
        corrections[claim.verdict][claim.correction] += 1
    return ", ".join(
        f"{verdicts[verdict]} {verdict.value}" + _count_corrections(corrections[verdict])
        for verdict in Verdict
        if verdicts[verdict]
    )


def _count_corrections(counted: Mapping[Correction | None, int]) -> str:
    """How many claims were corrected in which way, in brackets; nothing where none was."""
    which = [f"{counted[c]} {c.value}{'s' * (counted[c] > 1)}" for c in Correction if counted[c]]
    return f" ({', '.join(which)})" if which else ""


def _cited(sections: Sequence[Section]) -> list[errata.Erratum]:
    """The errata that the claims cite, in the order of their table."""
    keys = {key for section in sections for claim in section.claims for key in errata.cited(claim.evidence)}
    return [one for key, one in errata.every().items() if key in keys]


def _keep_scripts(text: str) -> str:
    """Text with the subscripts and superscripts of HTML, and nothing else of it; code is set as such."""
    plain = html.escape(re.sub(r"<a [^>]*></a>", "", text))
    plain = re.sub(r"&lt;(/?su[bp])&gt;", r"<\1>", plain)
    plain = re.sub(r"\[([A-Z]\d+)\]\(#[a-z]\d+\)", r"\1", plain)
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", plain)


def _drawn(figure: Figure) -> tuple[int, int]:
    """How many points of simulations a figure shows, and how many of them its comparisons contain."""
    compared = [np.ravel(one.means[name].values) for one in figure.agreement.values() for name in one.means]
    means = np.concatenate([np.zeros(0), *compared])
    shown = [np.asarray(s.y, float) for panel in figure.panels for s in panel.series if s.kind is Kind.simulation]
    y = np.concatenate([np.zeros(0), *shown])
    y = y[np.isfinite(y)]
    near = np.abs(y[:, None] - means) <= SAME * np.maximum(np.abs(means), SAME)
    return len(y), int(near.any(axis=1).sum())


def _rows(section: Section, figure: Figure) -> list[dict[str, Any]]:
    """The rows of a figure in the table of comparisons."""
    return [
        {
            "figure": figure_name(figure.key),
            "file": _file_name(figure.key),
            "comparison": words,
            "p": one.chance.removeprefix("= "),
            "plain": f"{one.deviation:.2f}" if math.isfinite(one.deviation) else "∞",
            "caught": f"{one.caught:.2g}" if one.caught >= 1 else f"{100 * one.caught:.2g}%" if one.caught > 0 else "",
            "caught_where": one.caught_where,
            "largest": f"{one.largest:.2f}" if math.isfinite(one.largest) else "∞",
            "where": one.where,
            "points": one.points,
            "runs": one.runs,
            "allowance": allowance_words(one),
            "passed": one.passed,
            "claims": [claim for claim in section.claims if claim.rests_on == comparison(figure, words)],
        }
        for words, one in figure.agreement.items()
    ]


def _save_figure(folder: Path, figure: Figure) -> dict[str, Any]:
    """Save picture and data of a figure, and give what the page needs of it."""
    file = _file_name(figure.key)
    picture = plots.draw(figure, title=False)
    stream = streams.BytesIO()
    picture.savefig(stream, format="png")
    store.write(folder / f"{file}.png", stream.getvalue())
    data = {name: f"{file}-{_file_name(name)}.nc" for name in figure.data}
    for name, result in figure.data.items():
        save(result, folder / data[name])
    return {
        "name": figure_name(figure.key),
        "title": figure.title,
        "caption": figure.caption,
        "alt": plots.describe(figure),
        "file": file,
        "data": data,
        "image": base64.b64encode(stream.getvalue()).decode("ascii"),
        "width": f"{REMS_PER_INCH * picture.get_figwidth():.1f}",
    }


def _file_name(words: str) -> str:
    """Words as a file name that every system takes; a plus sign stays a word."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", words.replace("+", "plus")).strip("-")
