"""The experiment: processes trained on random data sets, with repeats and without."""

from quenched.processes.simulation.measure import LatinHypercube, Plain, Simulator, measure

__all__ = ["LatinHypercube", "Plain", "Simulator", "measure"]
