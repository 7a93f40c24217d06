r"""Dietrich & Opper, *Statistical mechanics of learning in the presence of outliers* (1998).

Every figure computed again from our own theory and simulation, and every number or statement the paper prints with ours
beside it. The printed theory has errors (`docs/errata.md`, E1 to E13). `quick=True` takes fewer and smaller runs.
"""

from __future__ import annotations

from quenched.papers.dietrich1998.figures import FIGURES
from quenched.papers.dietrich1998.statements import claims

TITLE = "Statistical mechanics of learning in the presence of outliers"
REFERENCE = "R. Dietrich and M. Opper, J. Phys. A 31 (1998) 9131; preprint of June 16, 1998"

__all__ = ["FIGURES", "REFERENCE", "TITLE", "claims"]
