"""Drawing results: the only package that imports matplotlib. It computes nothing.

A theory is a line, dashed where it is unstable; a simulation is points with bars of one standard error; both have the
colour of the quantity they describe. What did not converge is marked by a cross and named in the legend.
Files: `choice` makes panels of datasets, `panels` of a forecast or a density and `trees` of an annealing; `drawing`
draws them.
"""

from quenched.plots.drawing import draw, plot

__all__ = ["draw", "plot"]
