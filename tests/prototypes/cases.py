"""The two worlds of the check values, and the starts used with them."""

import numpy as np

from quenched import prototypes

A = prototypes.TwoClusters(prior=0.8, separation=1.0)
B = prototypes.TwoClusters(prior=0.6, separation=1.0, variances=(0.81, 0.25))
BROKEN = prototypes.Overlaps(R=[[0.3, 0.0], [0.0, 0.3]], Q=[[0.1, 0.0], [0.0, 0.1]])
THREE = prototypes.Overlaps(
    R=[[0.3, 0.0], [0.0, 0.2], [0.0, 0.1]], Q=[[0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]]
)
# A program is compiled for numbers of times (padded to 16, 128, 1024, ...) and of runs, not for their values, and most
# of a test is compilation. So curves have 501 times and simulations nine, here, in the pages and in the figures.

ALPHA = np.linspace(0, 50, 501)
TIMES = [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0]

CHAIN = {"runs": 100, "tests": 500, "simulator": prototypes.Chain()}
"""The simulation of the paper's figures in quick mode: at nine times the same program, at any `size`."""

SHORT_CHAIN = {"batch": 58, "tests": 1, "simulator": prototypes.Chain()}
"""That of the paper's claim of self-averaging: one time, and pieces of 58 runs."""
