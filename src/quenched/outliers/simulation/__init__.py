r"""The experiment: EM, hard or soft, the Hebb rule and Gibbs learning on finite samples with outliers.

A run draws the noise of $P = \alpha N$ examples once. It serves at every `eta` of a sweep, and so does the start; the
informative examples of a larger `eta` are among those of a smaller. Differences along `eta` are then much more
accurate than the values. The student is the learner's own iteration.

The teacher is the first axis. A centre that died out has no angle: $\Phi = 1/2$. Not covered: other teachers' lengths,
students with a wrong `eta`.

Files: `runs` is one sample and what is done on it, `gibbs` draws from the posterior, `measuring` is `measure`.
"""

from quenched.outliers.simulation.measuring import measure

__all__ = ["measure"]
