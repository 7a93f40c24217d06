r"""The experiment: maximum-likelihood centres of finite samples, annealed or from random starts.

A run draws $P = \alpha N$ examples and minimises the energy of the splitting vector by the learner's own iteration.
`measure` gives the order parameters as an experiment; `spectrum` looks at all the minima that many random starts find
on one sample, beside the annealed one; `follow` takes such minima up and down in width and sees where they disappear.

The error of a run is counted on fresh examples, not computed from the angle. The sign of the splitting vector means
nothing: $r$ is taken positive, and so is the side of its class. Above the first splitting the vector dies out and the
error is that of an arbitrary direction. Not covered: more than two centres.

Files: `runs` is one sample and what is done on it, `measuring` is `measure`, `minima` is `spectrum` and `follow`.
"""

from quenched.mixtures.simulation.measuring import measure
from quenched.mixtures.simulation.minima import follow, spectrum

__all__ = ["follow", "measure", "spectrum"]
