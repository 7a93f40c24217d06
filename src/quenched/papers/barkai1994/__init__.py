r"""Barkai & Sompolinsky, *Statistical mechanics of the maximum-likelihood density estimation* (1994).

Every figure computed again from our own theory and simulation, and every number or statement the paper prints with ours
beside it. `quick=True` takes smaller samples and fewer starts.
"""

from __future__ import annotations

from quenched.papers.barkai1994.figures import FIGURES
from quenched.papers.barkai1994.statements import claims

TITLE = "Statistical mechanics of the maximum-likelihood density estimation"
REFERENCE = "N. Barkai and H. Sompolinsky, Phys. Rev. E 50 (1994) 1766-1769"

__all__ = ["FIGURES", "REFERENCE", "TITLE", "claims"]
