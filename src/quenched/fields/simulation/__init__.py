"""The experiment: repeated data sets from a true density or function, each learned, with error bars."""

from quenched.fields.simulation.measure import measure

__all__ = ["measure"]
