"""Drawing results: the only package that imports matplotlib. It computes nothing.

A theory is a line, dashed where it is unstable; a simulation is points with bars of one standard error; both have the
colour of the quantity they describe. What did not converge is marked by a cross and named in the legend.
Files: `choice` makes panels of datasets, `panels` those of a forecast, a density and an annealing, `phases` that of a
phase diagram; `drawing` draws, by `series` one line or set of points, with `legends` and a `frame`; `animation` moves
pictures, `words` describes them; `display` has the shape of scikit-learn's displays.
"""

from quenched.plots.animation import Animation
from quenched.plots.display import ForecastDisplay
from quenched.plots.drawing import describe, draw, plot

__all__ = ["Animation", "ForecastDisplay", "describe", "draw", "plot"]
