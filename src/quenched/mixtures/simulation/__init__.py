r"""The experiment: maximum-likelihood centres of finite samples, annealed or from random starts.

The error of a run is counted on fresh examples, not computed from the angle. The sign of the splitting vector means
nothing: $r$ is taken positive, and so is the side of its class. Above the first splitting the centres coincide, and the
error is that of an arbitrary direction. Not covered: more than two centres.
"""

from quenched.mixtures.simulation.measure import measure

__all__ = ["measure"]
