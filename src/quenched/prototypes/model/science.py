"""Law and rule in numbers, and what the verbs of this science share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quenched.core import verbs
from quenched.core.types import InputError
from quenched.prototypes.model.costs import Cost
from quenched.prototypes.model.laws import Law
from quenched.prototypes.model.rules import LVQ21, Rule, Schedule


class Numbers(NamedTuple):
    """Law and rule as arrays: all that theory and simulation need. Rules of one shape share one compiled program."""

    p: Any  # [M] priors
    lam: Any  # [M] distances of the centres from the origin
    v: Any  # [M] variances
    gram: Any  # [M, M] B_m . B_n
    g: Any  # [K, M] strength of the update
    wrong: Any  # [K, M] 1 where prototype and cluster are of different classes
    rate: Any  # a number or a `Schedule`
    drift: Any  # of the centres
    decay: Any  # of the prototypes
    window: Any  # of LVQ2.1, or None


def numbers(law: Law, rule: Rule) -> Numbers:
    """Law and rule as arrays."""
    mix = law.mixture()
    S, sigma = np.asarray(rule.prototypes(law))[:, None], np.asarray(mix.labels)[None, :]
    wrong = (S != sigma).astype(float)
    rate = rule.rate if isinstance(rule.rate, Schedule) else rule.rate * np.ones(())
    drift, decay, window = mix.drift * np.ones(()), rule.weight_decay * np.ones(()), window_of(rule)
    window = None if window is None else window * np.ones(())
    g = rule.g(S, sigma) * np.ones(wrong.shape)
    return Numbers(mix.p, mix.lam, mix.v, mix.gram, g, wrong, rate, drift, decay, window)


def window_of(rule: Any) -> Any:
    """The window of LVQ2.1, where there is one."""
    return rule.window if isinstance(rule, LVQ21) else None


def forgets(law: Law, rule: Rule) -> bool:
    """Whether centres drift or prototypes decay."""
    return bool(np.any(np.asarray(law.mixture().drift) > 0) or np.any(np.asarray(rule.weight_decay) > 0))


def count(law: Law, rule: Rule | Cost) -> tuple[int, int]:
    """The numbers of prototypes and clusters."""
    return len(rule.prototypes(law)), len(law.mixture().labels)


def check_pair(law: Law, rule: Rule | Cost) -> None:
    """Check that dynamics are defined for this number of prototypes."""
    K, _ = count(law, rule)
    if K < 2 or (isinstance(rule, Rule) and rule.all_move and K != 2):
        raise InputError(f"There must be two prototypes or more (just two for LVQ2.1), but there are {K}.")


def online(rule: Rule | Cost) -> Rule:
    """Check that a rule is one with a theory: one that learns from an example at a time."""
    if not isinstance(rule, Rule):
        raise InputError("Argument `rule` must learn from one example at a time for a theory, as LVQ1(0.1) does, "
                         f"but {type(rule).__name__} was given, which minimises an energy of all rows: `measure` "
                         "(quenched simulate) simulates it, LVQClassifier (quenched classify) fits it.")  # fmt: skip
    return rule


def coordinates(law: Law, rule: Rule | Cost) -> dict[str, Any]:
    """Coordinates of the dimensions of the order parameters: labels where they are distinct, otherwise places."""
    found: dict[str, Any] = {}
    for dim, labels in (("prototype", rule.prototypes(law)), ("cluster", law.mixture().labels)):
        distinct = len(set(labels)) == len(labels)
        found[dim] = (dim, np.asarray(labels) if distinct else np.arange(len(labels)))
        found[f"{dim}_label"] = (dim, np.asarray(labels))
    return {**found, "prototype2": ("prototype2", found["prototype"][1])}


SCIENCE = verbs.Science(
    "prototypes",
    laws=(Law, "a law such as TwoClusters()"),
    rules=((Rule, Cost), "a rule such as LVQ1(0.1)"),
    reports={"R": ("prototype", "cluster"), "Q": ("prototype", "prototype2"), "error": ()},
    check=check_pair,
    coordinates=coordinates,
    labels={
        "alpha": r"examples per dimension, $\alpha$",
        "prior": "prior of class +1, $p_+$",
        "rate": r"learning rate, $\eta$",
        "error": r"generalisation error, $\epsilon_g$",
        "R": "overlap with the centres, $R$",
        "Q": "overlap among prototypes, $Q$",
        "growth": "growth rate of a deviation",
        "drift": r"drift of the centres, $\delta$",
        "weight_decay": r"weight decay, $\gamma$",
        "window": r"window, $\omega$",
        "stop": r"time of the lowest error, $\alpha^*$",
    },
)
"""What the verbs of this science share."""
