"""Claims of a paper, decided by numbers.

A claim carries the comparisons that decide it, and its verdict follows from them: `stands` compares what the paper
prints with what is computed here, `instead` does the same for the corrected statement. Nothing else sets a verdict.

| `stands`         | `instead`         | verdict       |
|------------------|-------------------|---------------|
| holds            | -                 | reproduced    |
| fails            | holds             | corrected     |
| fails            | none, or fails    | refuted       |
| none or undecided| -                 | not decidable |

What was corrected follows from the same comparisons, see `Claim.correction`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import re

from quenched.core.proof import NEARLY_ONE, PASSED, Agreement

SURE = 3.0
"""Standard errors between a value and a bound that decide a comparison."""


class Verdict(enum.Enum):
    """What became of a claim of a paper."""

    reproduced = "reproduced"
    corrected = "corrected"
    refuted = "refuted"
    not_decidable = "not decidable"


class Correction(enum.Enum):
    """What had to be corrected, the gravest first."""

    conclusion = "conclusion"
    number = "number"
    misprint = "misprint"


DEFINITIONS: dict[Verdict | Correction, str] = {
    Verdict.refuted: "the comparison decides against what is printed, and no corrected statement holds",
    Correction.conclusion: "a statement does not hold as printed; another one, given as ours, does",
    Correction.number: "a printed value is not the one we find; the corrected value is given",
    Correction.misprint: "a formula or a definition is wrong to the letter, by slip or derivation; ours passes the "
    "test that it fails",
    Verdict.not_decidable: "what is printed does not suffice for a test, or our error bars do not",
    Verdict.reproduced: "what is printed holds in our own computation",
}
"""Each verdict in one line, the gravest first."""
FORMULA = re.compile(r"(equations?|eqs?\.) ")
"""How the place of a formula begins."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A number and the interval in which it should lie."""

    value: float
    low: float
    high: float
    stderr: float = 0.0  # within three of them of an end the comparison is undecided
    inside: bool = True  # whether the number should lie inside the interval, or outside
    what: str = ""  # what the number is, in words
    probability: bool = False  # whether the number is a probability, which is never shown as 1

    def __post_init__(self) -> None:
        if any(math.isnan(number) for number in (self.value, self.low, self.high, self.stderr)):
            raise ValueError(f"A comparison needs numbers, but one is NaN: {self}.")

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None if the standard error is too large to say."""
        margin = SURE * self.stderr
        if self.low <= self.value - margin and self.value + margin <= self.high:
            return self.inside
        if self.value + margin < self.low or self.high < self.value - margin:
            return not self.inside
        return None

    def __str__(self) -> str:
        number = f"> {NEARLY_ONE}" if self.probability and self.value > NEARLY_ONE else f"{self.value:.4g}"
        value = f"{self.what + ' ' if self.what else ''}{number}"
        value += f" ± {self.stderr:.1g}" if self.stderr else ""
        if math.isinf(self.low):
            relation = f"{'below' if self.inside else 'above'} {self.high:.4g}"
        elif math.isinf(self.high):
            relation = f"{'above' if self.inside else 'below'} {self.low:.4g}"
        else:
            relation = f"{'between' if self.inside else 'outside'} {self.low:.4g} and {self.high:.4g}"
        answer = {True: "yes", False: "no", None: "undecided"}[self.holds]
        return f"{value} {relation}: {answer}"


@dataclasses.dataclass(frozen=True)
class Check:
    """Comparisons that must all hold; `a & b` joins two checks."""

    parts: tuple[Comparison, ...]

    def __and__(self, other: Check) -> Check:
        return Check((*self.parts, *other.parts))

    @property
    def holds(self) -> bool | None:
        """Whether all hold: false if one fails, None if none fails but one is undecided."""
        answers = [part.holds for part in self.parts]
        return False if False in answers else None if None in answers else True

    def __str__(self) -> str:
        return "; ".join(str(part) for part in self.parts)


def _check(value: float, low: float, high: float, stderr: float, what: str, *, inside: bool = True) -> Check:
    return Check((Comparison(float(value), float(low), float(high), float(stderr), inside, what),))


def below(value: float, bound: float, *, stderr: float = 0.0, what: str = "") -> Check:
    """Check that a number is at most `bound`.

    Examples:
        >>> below(0.2, 0.5).holds, below(0.6, 0.5).holds, below(0.4, 0.5, stderr=0.1).holds
        (True, False, None)
    """
    return _check(value, -math.inf, bound, stderr, what)


def above(value: float, bound: float, *, stderr: float = 0.0, what: str = "") -> Check:
    """Check that a number is at least `bound`."""
    return _check(value, bound, math.inf, stderr, what)


def near(value: float, target: float, *, within: float, stderr: float = 0.0, what: str = "") -> Check:
    """Check that a number differs from `target` by at most `within`.

    Examples:
        >>> print(near(0.2257, 0.2253, within=0.001, what="error"))
        error 0.2257 between 0.2243 and 0.2263: yes
    """
    return _check(value, target - within, target + within, stderr, what)


def apart(value: float, target: float, *, by: float, stderr: float = 0.0, what: str = "") -> Check:
    """Check that a number differs from `target` by more than `by`."""
    return _check(value, target - by, target + by, stderr, what, inside=False)


def agrees(agreement: Agreement) -> Check:
    """Check that a theory agrees with a simulation: the p-value of the comparison is above its threshold."""
    what = "p of theory against simulation"
    return Check((Comparison(agreement.p, PASSED, math.inf, what=what, probability=True),))


@dataclasses.dataclass(frozen=True)
class Claim:
    """A number or statement that a paper prints, and ours beside it."""

    where: str  # place in the paper
    statement: str  # what is claimed, in words
    printed: str  # what the paper prints
    ours: str  # what we get
    evidence: str  # how we know
    stands: Check | None = (
        None  # decides whether the statement stands as printed; None if the paper lacks what is needed
    )
    instead: Check | None = None  # decides whether the corrected statement in `ours` holds
    rests_on: str = ""  # the comparison of theory and simulation behind it, as `figures.comparison` names it
    own: bool = False  # whether it is a check of ours that the paper does not make

    @property
    def verdict(self) -> Verdict:
        """What the comparisons say; see the table at the top of this module."""
        answer = self.stands.holds if self.stands is not None else None
        if answer is None:
            return Verdict.not_decidable
        if answer:
            return Verdict.reproduced
        return Verdict.corrected if self.instead is not None and self.instead.holds else Verdict.refuted

    @property
    def correction(self) -> Correction | None:
        """What was corrected; None for other verdicts.

        A misprint, if two numbers, as printed and as corrected, went through one test, or if what fails is the value of
        a formula. A number, if everything that fails compares one with the value that is printed. Otherwise a
        conclusion.
        """
        if self.verdict is not Verdict.corrected or self.stands is None or self.instead is None:
            return None
        failing = [part for part in self.stands.parts if part.holds is False]
        bounds = [{(p.low, p.high, p.inside) for p in some} for some in (failing, self.instead.parts)]
        values = [{p.value for p in some} for some in (failing, self.instead.parts)]
        if bounds[0] <= bounds[1] and not values[0] & values[1]:
            return Correction.misprint
        if FORMULA.match(self.where) and all(part.inside for part in failing):
            return Correction.misprint
        printed = all(part.inside and math.isfinite(part.low) and math.isfinite(part.high) for part in failing)
        return Correction.number if printed else Correction.conclusion

    @property
    def checks(self) -> tuple[str, ...]:
        """The comparisons in words: the printed statement first, then ours."""
        pairs = (("as printed", self.stands), ("ours", self.instead))
        return tuple(f"{name}: {check}" for name, check in pairs if check is not None)
