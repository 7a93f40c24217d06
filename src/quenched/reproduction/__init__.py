"""Papers computed again, step by step: which steps there are, who computes them, and what is kept of them.

A step is a figure of a paper, or its claims, which come after its figures. Steps run in this process or in several,
the longest first; each is kept in a folder as soon as it is done, so that the same command goes on after an
interruption. The simulations inside a step may run on a Dask cluster.

Files: `steps` names the steps, `keeping` writes and reads them, `running` computes them, `schedule` says how long it
will take, `demonstration` has the two figures of `quenched demo` that belong to no paper.
"""

from quenched.reproduction.running import Done, run
from quenched.reproduction.schedule import State, seconds_left
from quenched.reproduction.steps import DEMO, Step, demo, paper, papers, sections, steps

__all__ = ["DEMO", "Done", "State", "Step", "demo", "paper", "papers", "run", "seconds_left", "sections", "steps"]
