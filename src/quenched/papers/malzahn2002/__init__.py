r"""Malzahn & Opper, *Learning curves and bootstrap estimates for inference with Gaussian processes* (2002).

Both figures computed again on the paper's data, Boston housing and Abalone, and every statement that can be checked
with ours beside it. The data come from packages of the extra `papers` and are not part of this one. `quick=True` takes
fewer sizes, draws and subsets, and a low-rank kernel for the larger set.

What the paper leaves open is chosen here and said in the captions: targets are standardised with mean and standard
deviation of the whole set, and halves keep the units of the whole.
"""

from quenched.papers.malzahn2002.figures import (
    FIGURES,
    abalone_law,
    abalone_rule,
    boston_law,
    boston_rule,
    figure_1,
    figure_2,
)
from quenched.papers.malzahn2002.statements import claims

__all__ = [
    "FIGURES",
    "REFERENCE",
    "TITLE",
    "abalone_law",
    "abalone_rule",
    "boston_law",
    "boston_rule",
    "claims",
    "figure_1",
    "figure_2",
]

TITLE = "Learning curves and bootstrap estimates for inference with Gaussian processes: a statistical mechanics study"
REFERENCE = "D. Malzahn and M. Opper, Complexity 8 (2003) 57-63; preprint of May 27, 2002"
