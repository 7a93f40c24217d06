"""The two worlds of the check values, and the starts used with them."""

import numpy as np

from quenched import prototypes

A = prototypes.TwoClusters(prior=0.8, separation=1.0)
B = prototypes.TwoClusters(prior=0.6, separation=1.0, variances=(0.81, 0.25))
BROKEN = prototypes.Overlaps(R=[[0.3, 0.0], [0.0, 0.3]], Q=[[0.1, 0.0], [0.0, 0.1]])
THREE = prototypes.Overlaps(
    R=[[0.3, 0.0], [0.0, 0.2], [0.0, 0.1]], Q=[[0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]]
)
ALPHA = np.arange(51.0)
TIMES = [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0]

CHAIN = {"runs": 100, "tests": 500, "simulator": prototypes.Chain()}
"""The simulation of the paper's figures in quick mode."""

SHORT_CHAIN = {"batch": 1000, "tests": 1, "simulator": prototypes.Chain()}
"""That of the paper's claim of self-averaging."""
