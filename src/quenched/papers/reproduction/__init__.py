"""Papers computed again, step by step.

A step is a figure of a paper, or its claims, which come after its figures. Steps run in this process or in several,
the longest first; each is kept in a folder as soon as it is done, so that the same command goes on after an
interruption. The simulations inside a step may run on a Dask cluster.

Files: `steps` lists the steps and keeps them on disk, `run` computes them and estimates the time, `demonstration` has the
two figures of `quenched demo` that belong to no paper.
"""

from quenched.papers.reproduction.run import Done, State, run
from quenched.papers.reproduction.steps import DEMO, Step, demo, paper, papers, sections, steps

__all__ = ["DEMO", "Done", "State", "Step", "demo", "paper", "papers", "run", "sections", "steps"]
