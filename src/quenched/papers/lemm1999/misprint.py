"""An equation of the paper as it is printed and as it should read, decided by how far both are off."""

from __future__ import annotations

import dataclasses

from quenched.core.claims import Claim, below

EXACT, LATTICE = 1e-6, 0.02
"""How far an equation may be off that holds; and one of the continuum, on a lattice."""


@dataclasses.dataclass(frozen=True)
class Misprint:
    """An equation as it is printed and as it should read.

    Attributes:
        erratum: its row in the table of errata, such as F99.
        where: place in the paper.
        statement: what it says.
        printed: as printed.
        right: as it should read.
        check: the direct computation that decides.
        off: how far the printed equation is off.
        off_right: how far the right one is.
        within: how far an equation that holds may be off.
    """

    erratum: str
    where: str
    statement: str
    printed: str
    right: str
    check: str
    off: float
    off_right: float
    within: float = EXACT

    @property
    def claim(self) -> Claim:
        """The statement, decided by both numbers."""
        ours = f"{self.right}; the printed one is off by {self.off:.2g}, this one by {self.off_right:.0e}"
        return Claim(
            self.where,
            self.statement,
            self.printed,
            ours,
            f"{self.check} (erratum {self.erratum})",
            stands=below(self.off, self.within, what="the printed equation is off by"),
            instead=below(self.off_right, self.within, what="the corrected one by"),
        )
