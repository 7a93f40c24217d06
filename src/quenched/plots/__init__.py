"""Drawing results: the only room that knows matplotlib. It computes nothing.

A theory is a line, dashed where it is unstable; a simulation is points with bars of one standard error; both have the
colour of the quantity they describe. What did not converge is marked by a cross and named in the legend.
Files: `choice` says what to draw of datasets, `forecasts` what of a forecast, `densities` what of a density, `trees`
what of an annealing, `drawing` draws it.
"""

from quenched.plots.drawing import draw, plot

__all__ = ["draw", "plot"]
