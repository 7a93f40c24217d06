r"""Biehl, Ghosh & Hammer, *Learning Vector Quantization: The Dynamics of Winner-Takes-All Algorithms* (2006).

Every figure computed again from our own theory and simulation, and every number or statement the paper prints with ours
beside it. `quick=True` takes fewer runs of the `Chain`; otherwise the paper's own sizes with the `Direct` simulator.

What the paper leaves open is chosen here and said in the captions: the prior and the start of VQ in figure 3 (left).
"""

from quenched.papers.biehl2006.claims import claims
from quenched.papers.biehl2006.figures import FIGURES

__all__ = ["FIGURES", "REFERENCE", "TITLE", "claims"]

TITLE = "Learning Vector Quantization: The Dynamics of Winner-Takes-All Algorithms"
REFERENCE = "M. Biehl, A. Ghosh and B. Hammer, Neurocomputing 69 (2006) 660-670"
