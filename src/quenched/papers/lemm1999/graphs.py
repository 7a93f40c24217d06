r"""The model as a drawing: which variable depends on which, and where predictions lie between states of Nature.

Both drawings are derived. Nodes and arrows of figure 1 are those of a declared `Problem`, $p(x, y, h) = \prod_i
p(y_i|x_i, h)\, p(x_i)\, p(h)$: a pair for each row it was given, one hidden field, and the axes it is conditioned on.
Places of figure 2 are densities over three values, and its path is the predictive density while rows come in.
[lemm1999, eqs. (2), (27)]
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy import spatial, special

from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.fields.model.components import Components
from quenched.fields.model.grid import Axis, Grid, Periodic
from quenched.fields.model.laws import TrueDensity
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct, LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.papers.lemm1999.examples import TWO, roughness

GIVEN, SEEN, HIDDEN = "given, x", "seen, y", "hidden, h"
"""What a node is."""
STATES = ((0.8, 0.1, 0.1), (0.12, 0.76, 0.12), (0.1, 0.2, 0.7), (0.42, 0.08, 0.5))
"""Four states of Nature: probabilities of three values. The paper states none."""
TRUTH, ROWS = 1, 6
"""Which of them is true, and how many rows are drawn from it."""
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where a density is drawn that is certain of one value."""


def rows_of(problem: Problem) -> np.ndarray:
    """How often each different row of a problem was seen."""
    data: Any = problem.likelihood
    if hasattr(data, "counts"):
        return np.asarray(data.counts)[np.asarray(data.counts) > 0]
    weights = getattr(data, "weights", None)
    rows = len(data.targets if hasattr(data, "targets") else data.kernel)
    return np.broadcast_to(np.asarray(1.0 if weights is None else weights), (rows,))


def graph(problem: Problem) -> xr.Dataset:
    """The directed graph of a declared problem.

    Args:
        problem: likelihood x link x prior.

    Returns:
        `name`, `role`, `across` and `up` of each `node`, and `source` and `target`, numbers of nodes, of each `arrow`.
    """
    often, given = rows_of(problem), bool(problem.grid.given) or isinstance(problem.link, Direct)
    n = len(often)
    nodes = [("h", HIDDEN, (n - 1) / 2, 0.0)]
    arrows = []
    for i, count in enumerate(often):
        label = f"$y_{{{i + 1}}}$" + (f" x{count:g}" if count != 1 else "")
        nodes.append((label, SEEN, float(i), 1.0))
        seen = len(nodes) - 1
        arrows.append((0, seen))
        if given:
            nodes.append((f"$x_{{{i + 1}}}$", GIVEN, float(i), 2.0))
            arrows.append((seen + 1, seen))
    name, role, across, up = zip(*nodes, strict=True)
    source, target = zip(*arrows, strict=True)
    return xr.Dataset(
        {"name": ("node", list(name)), "role": ("node", list(role)), "across": ("node", list(across)),
         "up": ("node", list(up)), "source": ("arrow", list(source)), "target": ("arrow", list(target))},
        attrs={"link": type(problem.link).__name__, "likelihood": type(problem.likelihood).__name__},
    )  # fmt: skip


def show_graph(drawn: xr.Dataset, title: str) -> Panel:
    """Nodes and arrows as a panel."""
    at = np.stack([drawn.across.values, drawn.up.values], axis=1)
    arrows = Series("acts on", Kind.arrow, *at[drawn.source.values].T, ends=at[drawn.target.values])
    series = [arrows]
    for role in (GIVEN, SEEN, HIDDEN):
        mine = drawn.role.values == role
        if mine.any():
            series.append(Series(role, Kind.node, *at[mine].T, names=drawn.name.values[mine]))
    return Panel("", "", tuple(series), title=title, frame=False, key=False)


def declared() -> dict[str, Problem]:
    """A density of two points, as in figures 13 to 17, and a regression of four."""
    K = roughness(Periodic(), lambda_2=0.025)
    axis = Axis(0, 20, points=21)
    line = Grid(given=[axis])
    prior = Gaussian(0.5 * Laplacian(line) + Mass(line, 0.2), mean=0.1 * axis.coordinates)
    data = GaussianData([2, 5, 10, 17], [1, -0.5, 1, 2])
    return {
        "density of two points": Problem(DensityData(TWO), LogDensity(K.grid), Gaussian(K)),
        "regression of four": Problem(data, Direct(line), prior),
    }


def figure_1(*, quick: bool = False, key: Any = None) -> Figure:
    """The directed graph of a declared problem."""
    del quick, key  # nothing random
    drawn = {name: graph(problem) for name, problem in declared().items()}
    panels = tuple(show_graph(one, name) for name, one in drawn.items())
    caption = ("The factorisation p(x, y, h) = ∏ p(y_i|x_i, h) p(x_i) p(h), read off two declared problems: a pair of nodes for each row, one hidden field. "
               + "; ".join(f"{name}: {one.sizes['node']} nodes and {one.sizes['arrow']} arrows" for name, one in drawn.items()) + ".")  # fmt: skip
    return Figure("lemm1999/figure_1", "The model as a graph", caption, panels, drawn)


def predictions(states: Any, truth: int, *, rows: int, key: Any) -> xr.Dataset:
    """Posterior probabilities of states and the predictive density while rows come in.

    Args:
        states: probabilities of three values, one row for each state.
        truth: which state is true.
        rows: how many are drawn.
        key: a JAX key.

    Returns:
        `probability` of each `state` and `predictive` of each `value` over `examples`; `states` themselves.
    """
    P = np.asarray(states, float)
    grid = Grid(over=[Components(P.shape[1], "y")])
    drawn = TrueDensity(grid, P[truth]).sample(key, rows)
    link, energies = LogDensity(grid), np.zeros((rows + 1, len(P)))
    for i, point in enumerate(drawn):
        data = DensityData(point[None]).prepared(grid)
        with jax.enable_x64(True):
            energies[i + 1] = [float(data.energy(link, np.log(state))) for state in P]
    p = special.softmax(-np.cumsum(energies, axis=0), axis=1)
    return xr.Dataset(
        {"probability": (("examples", "state"), p), "predictive": (("examples", "value"), p @ P),
         "states": (("state", "value"), P)},
        {"examples": np.arange(rows + 1)}, {"truth": truth},
    )  # fmt: skip


def figure_2(*, quick: bool = False, key: Any = None) -> Figure:
    """The predictive density between the states of Nature."""
    del quick  # one path
    found = predictions(STATES, TRUTH, rows=ROWS, key=jax.random.key(7) if key is None else key)
    places, path = found.states.values @ CORNERS, found.predictive.values @ CORNERS
    hull = spatial.ConvexHull(places).vertices
    edge, all_of_them = places[np.append(hull, hull[0])], CORNERS[[0, 1, 2, 0]]
    names = np.array([f"$h_{{{i + 1}}}$" for i in range(len(places))])
    is_true = np.arange(len(places)) == TRUTH
    series = (
        Series("all densities of three values", Kind.reference, *all_of_them.T),
        Series("their convex hull", Kind.reference, *edge.T),
        Series("p(y|x, f) during learning", Kind.theory, *path.T),
        Series(f"p(y|x, f) after {ROWS} rows", Kind.mark, *path[-1:].T),
        Series("states of Nature", Kind.node, *places[~is_true].T, names=names[~is_true]),
        Series("the true one", Kind.node, *places[is_true].T, names=names[is_true]),
    )
    panel = Panel("", "", series, frame=False, equal=True, key=False)
    caption = (f"Densities of three values in a triangle whose corners are certainties. Four states of Nature (the paper states none), equally probable at first, and {ROWS} rows of the true one: "
               f"its posterior probability is {float(found.probability[-1, TRUTH]):.2f} in the end.")  # fmt: skip
    return Figure("lemm1999/figure_2", "A prediction between states of Nature", caption, (panel,), {"path": found})
