"""The view of the papers: their claims with verdicts, and the knobs that belong to each."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

from quenched.core.claims import Claim, Verdict
from quenched.core.store import Store
from quenched.core.types import InputError
from quenched.explorer.answers import Answer, State, choose
from quenched.explorer.systems import SYSTEMS
from quenched.papers import reproduction
from quenched.papers.reproduction.run import costs
from quenched.papers.reproduction.steps import CLAIMS, Step, read

SYMBOLS = {
    "barkai1994": {"u₀": "separation", "σ": "width", "α": "alpha"},
    "dietrich1998": {"γ": "gamma", "η": "eta", "α": "alpha"},
    "biehl2006": {"p₊": "prior", "λ": "separation", "η": "rate", "α": "alpha"},
}
"""The symbols of the papers, and the knobs that stand for them."""
STUDENTS = {
    "barkai1994": {"mixtures": ""}, "dietrich1998": {"hard": "hard", "gibbs": "gibbs", "soft": ""},
    "biehl2006": {"lvq2.1": "lvq2.1", "lvq+": "lvq+", "lvq1": "lvq1", "vq": "vq"},
}  # fmt: skip
"""The system that a claim is about, and the word in its text that says so; with no word, any."""
NUMBER = r"(-?\d+(?:\.\d+)?)(?![\d.]*\s*(?:,\s*\d|to\b|…))"
"""A single number: lists and ranges set no knob."""


def knobs_of(paper: str, claim: Claim) -> dict[str, Any] | None:
    """The system and the knobs that the text of a claim names; None if it names none."""
    if paper not in SYMBOLS:
        return None
    text = " ".join((claim.where, claim.statement, claim.printed, claim.ours, claim.evidence))
    system = next((name for name, word in STUDENTS[paper].items() if word in text.lower()), None)
    if system is None:
        return None
    ends = {knob.name: (knob.low, knob.high) for knob in SYSTEMS[system].knobs}
    found = {}
    for symbol, name in SYMBOLS[paper].items():
        match = re.search(rf"(?<!\w){re.escape(symbol)} = {NUMBER}", text)
        if match and name in ends and ends[name][0] <= float(match[1]) <= ends[name][1]:
            found[name] = float(match[1])
    return {"system": system, "knobs": found} if found else None


class Papers:
    """The claims of all papers, as they are kept in a folder; what is missing is computed in other processes."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._lock = threading.Lock()
        self._running: dict[str, dict[str, Any]] = {}

    def claims(self, state: State) -> Answer:
        """The claims of a paper, or how long it takes to decide them."""
        name = choose(state, "paper", reproduction.papers())
        module = reproduction.paper(name)
        about = {"paper": name, "title": module.TITLE, "reference": module.REFERENCE}
        with self._lock:
            running = dict(self._running.get(name, {}))
        for quick in (False, True):
            kept = (
                read(Store.open(self._steps(quick)), Step(name, CLAIMS), quick=quick)
                if self._steps(quick).is_dir()
                else None
            )
            if kept is not None:
                every = [self._row(name, claim) for claim in kept["value"]]
                return Answer(about | {"claims": every, "verdicts": [v.value for v in Verdict], "quick": quick})
        known = costs(quick=True)
        seconds = sum(known.get(str(step), 0.0) for step in reproduction.steps([name]))
        return Answer(about | {"claims": None, "seconds": round(seconds), "running": running})

    def decide(self, state: State) -> Answer:
        """Begin to decide the claims of a paper, unless that is being done."""
        name = choose(state, "paper", reproduction.papers())
        with self._lock:
            busy = [other for other, one in self._running.items() if one.get("busy")]
            if busy and busy != [name]:
                raise InputError(f"One paper is computed at a time, but {busy[0]} is being computed.")
            if not busy:
                self._running[name] = {"busy": True, "share": 0.0, "left": None, "sentence": ""}
                threading.Thread(target=self._compute, args=(name,), daemon=True, name=f"papers {name}").start()
            return Answer({"running": dict(self._running[name])})

    def _compute(self, name: str) -> None:
        """Compute the steps of a paper."""

        def watch(one: Any) -> None:
            with self._lock:
                self._running[name] |= {"share": one.share(), "left": one.seconds_left()}

        sentence = ""
        try:
            done = reproduction.run(reproduction.steps([name]), quick=True, folder=self.folder,
                                    workers=max(2, os.cpu_count() or 1), watch=watch)  # fmt: skip
            sentence = next((one.sentence for one in done.values() if one.value is None), "")
        except Exception as error:  # told to whoever asked
            sentence = str(error)
        with self._lock:
            self._running[name] = {"busy": False, "share": 1.0, "left": 0.0, "sentence": sentence}

    def _steps(self, quick: bool) -> Path:
        return self.folder / "steps" / ("quick" if quick else "full")

    @staticmethod
    def _row(paper: str, claim: Claim) -> dict[str, Any]:
        return {
            "where": claim.where, "statement": claim.statement, "printed": claim.printed, "ours": claim.ours,
            "evidence": claim.evidence, "verdict": claim.verdict.value, "checks": list(claim.checks),
            "knobs": knobs_of(paper, claim),
        }  # fmt: skip
