"""What holds for the figures and claims of every paper."""

import ast
import dataclasses
from pathlib import Path

import numpy as np

from quenched.core.claims import Check, Verdict
from quenched.core.figures import Kind, comparison
from quenched.plots.legends import MOST_LINES

COMPARISONS = ("below", "above", "near", "apart")
DATA = (Kind.simulation, Kind.cloud, Kind.row, Kind.mark)


def check_panels(figures):
    """No data lie outside their frame, and no panel has more lines than can be told apart."""
    for figure in figures:
        for panel in figure.panels:
            names = {series.label for series in panel.series if series.kind is Kind.theory}
            assert len(names) <= MOST_LINES, figure.key
            for series in (series for series in panel.series if series.kind in DATA):
                for values, ends in ((series.x, panel.xlim), (series.y, panel.ylim)):
                    there = np.asarray(values, float)[np.isfinite(np.asarray(values, float))]
                    assert ends is None or np.all((there >= ends[0]) & (there <= ends[1])), (figure.key, series.label)


def check(figures, claims):
    """Every comparison of theory and simulation has a claim that rests on it, refuted if and only if it fails."""
    check_panels(figures)
    found = {comparison(figure, name): one for figure in figures for name, one in figure.agreement.items()}
    resting = [claim for claim in claims if claim.rests_on]
    assert {claim.rests_on for claim in resting} == set(found)
    for claim in resting:
        assert (claim.verdict is Verdict.refuted) == (not found[claim.rests_on].passed), claim


def moved(part):
    """A comparison with its number moved to the other side of its bound."""
    span = 1 + abs(part.value) + 3 * part.stderr
    ends = [end for end in (part.low, part.high) if abs(end) < float("inf")]
    within = sum(ends) / len(ends) if len(ends) == 2 else ends[0] + (span if part.high == float("inf") else -span)
    beyond = part.high + span if part.high < float("inf") else part.low - span
    return dataclasses.replace(part, value=within if part.holds != part.inside else beyond)


def turned(check):
    """A check with other numbers, such that it fails if it held and holds if it failed."""
    parts = [moved(part) if part.holds is check.holds else part for part in check.parts]
    if check.holds is True:
        parts[1:] = check.parts[1:]
    return Check(tuple(dataclasses.replace(part, stderr=0.0) for part in parts))


def check_numbers(claims):
    """Other numbers, another verdict: nothing else decides. What cannot be decided says why."""
    for claim in claims:
        if claim.stands is None:
            assert claim.verdict is Verdict.not_decidable, claim
            assert claim.evidence, claim
            continue
        assert dataclasses.replace(claim, stands=turned(claim.stands)).verdict is not claim.verdict, claim
        if claim.verdict is Verdict.corrected:
            assert dataclasses.replace(claim, instead=turned(claim.instead)).verdict is Verdict.refuted, claim


def check_source(path: Path):
    """No claim is given a verdict, and no comparison is given its number as a constant."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "Verdict", f"{where} writes a verdict down"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in COMPARISONS:
            names = [part for part in ast.walk(node.args[0]) if isinstance(part, (ast.Name, ast.Call))]
            assert names, f"{where} compares a constant"
