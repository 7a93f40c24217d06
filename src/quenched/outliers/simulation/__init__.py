r"""The experiment: EM, hard or soft, the Hebb rule and Gibbs learning on finite samples with outliers.

A run draws the noise of $P = \alpha N$ examples once. It serves at every `eta` of a sweep, and so does the start; the
informative examples of a larger `eta` are among those of a smaller. Differences along `eta` are then much more
accurate than the values. The student is the learner's own: what `measure` gives is what `fit` finds on the same sample
from the same start.

The teacher is the first axis. A centre that died out has no angle: $\Phi = 1/2$. Not covered: other teachers' lengths,
students with a wrong `eta`.

Files: `measure` is one sample and what is done with it, `gibbs` draws from the posterior.
"""

from quenched.outliers.simulation.measure import measure

__all__ = ["measure"]
