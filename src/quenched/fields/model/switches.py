r"""Binary hyperfields that switch a prior from place to place: edges without blur. [lemm1999, section 5.6]

Each place $x$ has a switch $b_x$, off or on, between two filters and their templates:
$$p(\phi, b) = \frac{1}{Z(b)}\, e^{-\frac12 (\phi - t_0, K_0 (\phi - t_0))
  - \frac12 \int dx\, [(1 - b_x) |\omega_{1,x}|^2 + b_x |\omega_{2,x}|^2]}\; p(b) ,
  \qquad \omega_{i,x} = (W_{i,x}, \phi - t_{i,x}) .$$
$K_0$ makes it proper whatever the switches are. $Z(b)$ is kept: it is what a switch costs beside its price. Beforehand
$$p(b) \propto e^{-\kappa \sum_x b_x - c\, N_d(b)} ,$$
with the number $N_d$ of neighbouring switches that differ: $\kappa$ is what one costs, and $c$ the coupling of Ising.
[eqs. (496) to (516), erratum F525]

`Jumps` are switches on the links between neighbours that cut the Laplacian, [eqs. (519) to (522)]; `Patches` switch
between two templates.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.families import link_rows
from quenched.fields.model.grid import Grid
from quenched.fields.model.hyperpriors import Hyperprior
from quenched.fields.model.operators import Filter, Operator
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.smoothness import Mass


class Switches(Gaussian):
    r"""A Gaussian prior with a switch at each of some places.

    `solve` takes all switches to be off; `locate` finds them.

    Attributes:
        common: $K_0$ with its template: a Gaussian prior that is proper.
        first: $W_1$ as a matrix `[switches, points]`: what is small where a switch is off.
        second: $W_2$, likewise: what is small where it is on.
        first_target: $(W_{1,x}, t_{1,x})$ for each switch; by default zero.
        second_target: $(W_{2,x}, t_{2,x})$ for each switch; by default zero.
        price: $\kappa$.
        coupling: $c$.
        pairs: which switches are neighbours `[pairs, 2]`.
        chain: whether the switches are the links of a line that cut it: then all sums over them are exact.
    """

    common: Gaussian = None  # pyright: ignore[reportAssignmentType]
    first: Any = None
    second: Any = None
    first_target: Any = None
    second_target: Any = None
    price: float = 0.0
    coupling: float = 0.0
    pairs: Any = None
    chain: bool = eqx.field(static=True, default=False)

    def __init__(
        self,
        common: Gaussian,
        first: Any,
        second: Any,
        first_target: Any = None,
        second_target: Any = None,
        price: float = 0.0,
        coupling: float = 0.0,
        pairs: Any = None,
        chain: bool = False,
    ):
        checks.kind("common", common, Gaussian, "a Gaussian prior")
        self.common = common
        size = common.grid.size
        for name, value in (("first", first), ("second", second)):
            W = checks.numbers(name, value)
            if W.ndim != 2 or W.shape[1] != size or W.shape != np.shape(first) or len(W) == 0:
                raise InputError(f"Argument `{name}` must be a matrix with {size} columns and a row for each switch, "
                                 f"but its shape is {W.shape}.")  # fmt: skip
            checks.finite(name, W)
            setattr(self, name, W)
        for name, value in (("first_target", first_target), ("second_target", second_target)):
            target = np.zeros(len(self.first)) if value is None else checks.numbers(name, value)
            if target.shape != (len(self.first),):
                raise InputError(f"Argument `{name}` must have one number for each of the {len(self.first)} switches, "
                                 f"but its shape is {target.shape}.")  # fmt: skip
            checks.finite(name, target)
            setattr(self, name, target)
        checks.finite("price", checks.number("price", price))
        checks.finite("coupling", checks.number("coupling", coupling))
        self.price, self.coupling = float(price), float(coupling)
        near = np.zeros((0, 2)) if pairs is None else checks.numbers("pairs", pairs)
        if (
            near.ndim != 2
            or near.shape[1] != 2
            or not np.all((near == np.rint(near)) & (near >= 0) & (near < len(self.first)))
        ):
            raise InputError(f"Argument `pairs` must be places of the {len(self.first)} switches, but it is not.")
        self.pairs = near.astype(int)
        self.chain = checks.flag("chain", chain)
        if len(common.operator.null_space()):
            raise InputError("Argument `common` must be proper, or the number of switches cannot be decided, but its "
                             "operator has a null space: add a Mass.")  # fmt: skip
        off = self.hold(np.zeros(len(self.first)))
        self.operator, self.mean = off.operator, off.mean

    def hold(self, switches: Any) -> Gaussian:
        """The Gaussian prior at given switches.

        Args:
            switches: for each 0 or 1, or a number between them, `[switches]`.
        """
        b = checks.numbers("switches", switches)
        if b.shape != (len(self.first),) or not np.all((b >= 0) & (b <= 1)):
            raise InputError(f"Argument `switches` must be {len(self.first)} numbers from 0 to 1, but {switches!r} was "
                             "given.")  # fmt: skip
        W = np.concatenate([np.sqrt(1 - b)[:, None] * self.first, np.sqrt(b)[:, None] * self.second])
        targets = np.concatenate([np.sqrt(1 - b) * self.first_target, np.sqrt(b) * self.second_target])
        K = self.common.operator + Filter(self.grid, W)
        if not np.any(targets) and not np.any(np.asarray(self.common.mean)):
            return Gaussian(K)
        push = self.common.operator.apply(np.asarray(self.common.mean)).ravel() + W.T @ targets
        return Gaussian(K, mean=np.linalg.solve(K.matrix, push).reshape(self.grid.shape))

    @property
    def grid(self) -> Grid:
        """That of the common part."""
        return self.common.operator.grid

    def price_of(self, switches: np.ndarray) -> float:
        r"""$\kappa \sum b + c N_d(b)$."""
        b = np.asarray(switches, float)
        differ = np.sum(np.abs(b[self.pairs[:, 0]] - b[self.pairs[:, 1]]))
        return float(self.price * b.sum() + self.coupling * differ)


class Jumps(Switches):
    r"""Smooth, except for jumps: each link between neighbours can be cut, $K = m + \lambda\, D^T (1 - b) D$.

    On a line all sums over the $2^{n-1}$ places of jumps are exact (`locate`), and `strength` and `mass` may be
    hyperpriors: then the evidence finds them.

    Attributes:
        strength: $\lambda$: without a jump the field changes by a variance of $1/\lambda$ per length; a number, or a
            hyperprior.
        mass: $m$: levels between jumps are independent, that of a segment of length $\ell$ has the variance
            $1/m\ell$ about the mean; a number, or a hyperprior.
        expected: how many jumps are expected beforehand.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> axis = fields.Axis(0, 1, points=40)
        >>> grid = fields.Grid(given=[axis])
        >>> y = np.where(axis.coordinates > 0.6, 1.0, 0.0) + 0.1 * np.cos(50 * axis.coordinates)
        >>> data = fields.GaussianData(axis.coordinates, y, 0.01)
        >>> found = fields.locate(fields.Problem(data, fields.Direct(grid), fields.Jumps(grid, 1.0, 1.0)))
        >>> np.flatnonzero(found.switches).tolist()
        [23]
    """

    strength: Any = None
    mass: Any = None
    expected: float = 1.0

    def __init__(
        self,
        grid: Grid,
        strength: Any = 1.0,
        mass: Any = 1.0,
        expected: float = 1.0,
        coupling: float = 0.0,
        mean: Any = 0.0,
        axes: Any = None,
    ):
        checks.kind("grid", grid, Grid, "a Grid")
        along = list(grid.axes) if axes is None else axes if isinstance(axes, (list, tuple)) else [axes]
        numbers = []
        for name, value in (("strength", strength), ("mass", mass)):
            number = value.middle if isinstance(value, Hyperprior) else checks.number(name, value)
            checks.positive(name, number)
            numbers.append(float(number))
        every = [link_rows(grid, axis)[0] for axis in along]
        W = np.concatenate(every)
        checks.inside("expected", checks.number("expected", expected), 0, len(W))
        p = float(expected) / len(W)
        super().__init__(Gaussian(Mass(grid, numbers[1]), mean=mean), np.sqrt(numbers[0]) * W, np.zeros(W.shape),
                         price=float(np.log1p(-p) - np.log(p)), coupling=coupling, pairs=_neighbours(every, grid),
                         chain=len(grid.axes) == 1 and len(W) == grid.size - 1)  # fmt: skip
        self.strength, self.mass, self.expected = strength, mass, float(expected)


class Patches(Switches):
    r"""Near one of two templates at each point, and smooth. [lemm1999, eqs. (500) to (513)]

    The energy is $\tfrac m2 \int |\phi - t_{b(x)}(x)|^2 + \tfrac12 (\phi, K_0 \phi)$.

    Attributes:
        expected: how often the template changes beforehand; it sets the coupling.
    """

    expected: float = 1.0

    def __init__(
        self, operator: Operator, first: Any, second: Any, mass: float = 1.0, expected: float = 1.0, mean: Any = None
    ):
        checks.kind("operator", operator, Operator, "an operator such as Laplacian(grid)")
        grid = operator.grid
        checks.positive("mass", checks.number("mass", mass))
        W = np.sqrt(float(mass)) * np.eye(grid.size)
        targets = [np.sqrt(float(mass)) * grid.check(name, t).ravel()
                   for name, t in (("first", first), ("second", second))]  # fmt: skip
        pairs = _points(grid)
        checks.inside("expected", checks.number("expected", expected), 0, len(pairs))
        p = float(expected) / len(pairs)
        common = Gaussian(operator + Mass(grid, 1e-9 * float(mass)), mean=mean)
        super().__init__(common, W, W, *targets, coupling=float(np.log1p(-p) - np.log(p)), pairs=pairs)
        self.expected = float(expected)


def _points(grid: Grid) -> np.ndarray:
    """Neighbours among the points of a grid, as flat places."""
    at = np.arange(grid.size).reshape(grid.shape)
    found = [np.stack([np.delete(at, -1, i).ravel(), np.delete(at, 0, i).ravel()], axis=1)
             for i in range(len(grid.axes))]  # fmt: skip
    return np.concatenate(found)


def _neighbours(every: list[np.ndarray], grid: Grid) -> np.ndarray:
    """Neighbours among links: next to each other on a line; side by side, so that edges are lines, in a plane."""
    if len(grid.axes) == 1:
        return np.stack([np.arange(len(every[0]) - 1), np.arange(1, len(every[0]))], axis=1)
    where = np.concatenate([_places(W, grid) for W in every])
    kinds = np.repeat(np.arange(len(every)), [len(W) for W in every])
    pairs = []
    for kind in range(len(every)):
        own = np.flatnonzero(kinds == kind)
        index = {tuple(where[i]): i for i in own}
        for i in own:
            for d in range(where.shape[1]):
                step = np.zeros(where.shape[1])
                step[d] = 1.0
                other = index.get(tuple(where[i] + step))
                if other is not None and where[i][d] % 1 == 0:  # across the link, not along it
                    pairs.append((i, other))
    return np.array(pairs, dtype=int).reshape(-1, 2)


def _places(W: np.ndarray, grid: Grid) -> np.ndarray:
    """The middle of each link, in steps of the grid."""
    at = np.stack(np.unravel_index(np.arange(grid.size), grid.shape), axis=1)
    return (W != 0) @ at / 2
