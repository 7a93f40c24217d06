"""The two worlds of the check values, and the starts used with them."""

from quenched import prototypes

A = prototypes.TwoClusters(prior=0.8, separation=1.0)
B = prototypes.TwoClusters(prior=0.6, separation=1.0, variances=(0.81, 0.25))
BROKEN = prototypes.Overlaps(R=[[0.3, 0.0], [0.0, 0.3]], Q=[[0.1, 0.0], [0.0, 0.1]])
THREE = prototypes.Overlaps(
    R=[[0.3, 0.0], [0.0, 0.2], [0.0, 0.1]], Q=[[0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]]
)
TIMES = [1.0, 2.0, 5.0, 10.0, 20.0, 35.0, 50.0]
