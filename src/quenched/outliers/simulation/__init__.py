r"""The experiment: EM, hard or soft, the Hebb rule and Gibbs learning on finite samples with outliers.

The noise of the $P = \alpha N$ examples of a run serves at every `eta` of a sweep, and so does the start; the
informative examples of a larger `eta` are among those of a smaller. Differences along `eta` are then much more accurate
than the values. The teacher is the first axis. A centre that died out has no angle: $\Phi = 1/2$.
"""

from quenched.outliers.simulation.measure import measure

__all__ = ["measure"]
