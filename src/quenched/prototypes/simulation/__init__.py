"""The experiment: prototypes trained on examples drawn one by one, many times over."""

from quenched.prototypes.simulation.measure import measure
from quenched.prototypes.simulation.simulators import Chain, Direct, Simulator

__all__ = ["Chain", "Direct", "Simulator", "measure"]
