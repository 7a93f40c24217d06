r"""Lemm, *Bayesian Field Theory* (1999): chapters 2 to 6, and the density estimation of
section 7.4.

Every figure computed again, and every number or statement the paper prints there with ours beside it. The paper's data
are not available: 50 points of its true density are drawn with a fixed key. What it leaves open is chosen here and said
in the captions. `quick=True` tries fewer keys.
"""

from quenched.papers.lemm1999.figures import FIGURES
from quenched.papers.lemm1999.statements import claims

__all__ = ["FIGURES", "NOT_BUILT", "REFERENCE", "TITLE", "claims"]

TITLE = "Bayesian Field Theory: nonparametric approaches to density estimation, regression and inverse quantum problems"
REFERENCE = "J. C. Lemm, Bayesian Field Theory (1999)"

NOT_BUILT: dict[str, str] = {}
"""Figures of the paper that are not computed, and why."""
