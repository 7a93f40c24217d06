"""The systems of the map: which knobs they have, what is asked of the verbs, and what is read from the answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from quenched import mixtures, outliers, prototypes
from quenched.core.types import InputError
from quenched.explorer.answers import Knob, Spaced, State, choose, turn

POINTS = 60
"""Steps of a cut through a phase diagram."""


@dataclasses.dataclass(frozen=True)
class System:
    """A science, a student, and the knobs of both.

    Attributes:
        words: what it is, in words.
        science: the package with its verbs.
        knobs: all of them; the first is the horizontal one of the map, the second the vertical one.
        ask: law and rule at values of the knobs.
        readings: order parameters of the theory and words for them; the first is shown at first.
        columns: how many sample sizes the map has, and how many of them are asked for at once.
        start: where simulations begin, if not where they do by default.
    """

    words: str
    science: Any
    knobs: tuple[Knob, ...]
    ask: Callable[[dict[str, float]], tuple[Any, Any]]
    readings: dict[str, str]
    columns: tuple[int, int] = (0, 0)
    start: Any = None
    about: str = ""

    @property
    def package(self) -> str:
        """The name of the science."""
        return self.science.__name__.rpartition(".")[2]

    def describe(self) -> dict[str, Any]:
        """What the page has to know."""
        about = ("words", "readings", "columns", "about")
        return {name: getattr(self, name) for name in about} | {"knobs": [dataclasses.asdict(k) for k in self.knobs]}

    def spaced(self, knob: Knob, count: int, also: tuple[float, ...] = ()) -> Spaced:
        """Values of a knob from end to end."""
        return Spaced(knob.low, knob.high, count, knob.log, also)


ALPHA = "examples per dimension"
ETA = Knob("eta", "outliers per informative example, logarithm", "η", -2.0, 12.0, 3.0)
GAMMA = Knob("gamma", "how narrow the clusters are", "γ", 1.0, 50.0, 10.0, log=True)
SELECTED = {"R": "overlap with the teacher, R", "Q": "squared length, Q", "Delta": "distance from the teacher, Δ",
            "Phi": "angle with the teacher over π, Φ", "selected": "share selected",
            "free_energy": "free energy, f"}  # fmt: skip


def _outliers(words: str, rule: Callable[[dict[str, float]], Any], *more: Knob, start: Any = None) -> System:
    """Outliers with one way of selecting."""
    alpha = Knob("alpha", ALPHA, "α", 0.5, 100.0, 20.0, log=True)
    about = ("Some examples are informative, the others are outliers with random labels. The student is told how many, "
             "and selects.")  # fmt: skip
    return System(words, outliers, (alpha, ETA, GAMMA, *more),
                  lambda at: (outliers.Contaminated(at["gamma"], at["eta"]), rule(at)), SELECTED, (25, 1), start,
                  about)  # fmt: skip


def _prototypes(words: str, rule: Callable[[float], Any]) -> System:
    """A rule of learning vector quantisation."""
    knobs = (
        Knob("alpha", ALPHA, "α", 1.0, 500.0, 50.0, log=True),
        Knob("rate", "learning rate", "η", 0.01, 2.0, 0.2, log=True),
        Knob("prior", "share of the first class", "p₊", 0.05, 0.95, 0.8),
        Knob("separation", "separation of the clusters", "λ", 0.1, 4.0, 1.0),
        Knob("variance", "variance of the first cluster", "v₊", 0.1, 4.0, 1.0, log=True),
        Knob("variance2", "variance of the second cluster", "v₋", 0.1, 4.0, 1.0, log=True),
    )

    def ask(at: dict[str, float]) -> tuple[Any, Any]:
        law = prototypes.TwoClusters(at["prior"], at["separation"], (at["variance"], at["variance2"]))
        return law, rule(at["rate"])

    return System(words, prototypes, knobs, ask, {"error": "generalisation error", "R": "overlaps with the centres, R",
                                                  "Q": "lengths and overlap of the prototypes, Q"},
                  about="Two prototypes are moved by one example after another.")  # fmt: skip


SYSTEMS: dict[str, System] = {
    "mixtures": System(
        "Mixtures: two Gaussians by maximum likelihood", mixtures,
        (Knob("alpha", ALPHA, "α", 0.2, 50.0, 8.0, log=True), Knob("width", "width, a variance", "σ", 0.05, 5.0, 1.0),
         Knob("separation", "separation of the clusters", "u₀", 0.2, 3.0, 1.0)),
        lambda at: (mixtures.TwoGaussians(at["separation"]), mixtures.MaximumLikelihood(at["width"])),
        {"r": "overlap with the true splitting, r", "q": "squared length of the splitting, q",
         "error": "generalisation error, ε", "free_energy": "free energy, f"}, (61, 61),
        about="Unlabelled examples come from two clusters; the student explains them by two Gaussians of a given "
              "width.",
    ),
    "soft": _outliers("Outliers: soft selection", lambda at: outliers.SoftSelection()),
    "hard": _outliers("Outliers: hard selection", lambda at: outliers.HardSelection(), start=outliers.TeacherStart()),
    "gibbs": _outliers("Outliers: Gibbs learning", lambda at: outliers.Gibbs(temperature=at["temperature"]),
                       Knob("temperature", "temperature", "T", 0.1, 3.0, 1.0, log=True)),
    "lvq1": _prototypes("Prototypes: LVQ1", prototypes.LVQ1),
    "lvq+": _prototypes("Prototypes: LVQ+", prototypes.LVQPlus),
    "vq": _prototypes("Prototypes: VQ", prototypes.VQ),
    "lvq2.1": _prototypes("Prototypes: LVQ2.1", prototypes.LVQ21),
}  # fmt: skip
"""All systems, by their names in the address of the page."""
OWN = "energy"
"""The name of the one system that is not here, because it is known only when its formula is."""

PRESETS = [
    {"words": "barkai1994, figure 1", "system": "mixtures", "knobs": {"alpha": 8.0, "width": 1.0, "separation": 1.0}},
    {"words": "barkai1994, figure 2", "system": "mixtures", "knobs": {"alpha": 5.0, "width": 1.5, "separation": 1.0}},
    {"words": "dietrich1998, figure 3", "system": "soft", "knobs": {"alpha": 20.0, "eta": 3.0, "gamma": 10.0}},
    {"words": "dietrich1998, figure 4", "system": "hard", "knobs": {"alpha": 20.0, "eta": 3.7, "gamma": 10.0}},
    {"words": "biehl2006, figure 2", "system": "lvq1", "knobs": {"prior": 0.8, "separation": 1.0, "rate": 0.2}},
    {"words": "biehl2006, figure 3", "system": "lvq+", "knobs": {"prior": 0.8, "separation": 1.0, "rate": 0.2}},
]
"""Settings of figures in the papers."""


def find(state: State) -> tuple[System, dict[str, float]]:
    """The system that is asked about, and the values of its knobs."""
    system = SYSTEMS[choose(state, "system", list(SYSTEMS))]
    return system, turn(system.knobs, state.get("knobs", {}))


def require_map(system: System) -> None:
    """Check that a system has a phase diagram."""
    if not system.columns[0]:
        raise InputError(f"{system.words} must have a phase diagram to be cut, but it has learning curves only.")
