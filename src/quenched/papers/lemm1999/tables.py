r"""Tables 3, 5 and 6 of the paper: problems, stationarity equations and parameterisations, each computed.

The last row of table 3, inverse quantum mechanics, and table 4 are in `potentials`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from quenched.core.claims import Claim, below
from quenched.core.types import double
from quenched.fields.learner.solving import solve
from quenched.fields.model.components import ClassData, ClusterData, Components
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density, Direct, LogDensity, SquareRoot
from quenched.fields.model.parameters import Parametrised
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.papers.lemm1999.stationarity import over

POINTS = [(0, 2), (0, 3), (1, 5), (2, 1), (3, 4), (3, 4)]
"""Data of table 5, on a mesh of 4 x 7 points."""


def kinds_of_problems() -> dict[str, float]:
    """Table 3: how far energies of the data are from minus the logarithm of the likelihood, by the name of a problem."""
    random = np.random.default_rng(3)
    x, line = Axis(0, 4, points=5), Grid(given=[Axis(0, 4, points=5)])
    at, y, k = np.array([0, 1, 1, 3, 4]), random.normal(size=5), np.array([0, 2, 1, 1, 0])

    def prior(grid: Grid) -> Gaussian:
        return Gaussian(Mass(grid))

    found = {}
    plane = Grid(given=[x], over=[Axis(0, 6, points=7)])
    g = random.normal(size=plane.shape)
    log = g - np.asarray(special.logsumexp(g, axis=1, keepdims=True))  # the spacing is 1
    rows = [(i, j) for i, j in zip(at, (2, 3, 0, 6, 5), strict=True)]
    energy = Problem(DensityData(rows), Logits(plane), prior(plane)).expand_data(g)[0]
    found["density estimation"] = abs(energy + sum(log[i, j] for i, j in rows))
    classes = Grid(given=[x], over=[Components(3)])
    g = random.normal(size=classes.shape)
    energy = Problem(ClassData(points=at, labels=k), Logits(classes), prior(classes)).expand_data(g)[0]
    seen = Problem(DensityData(np.column_stack([at, k])), Logits(classes), prior(classes)).expand_data(g)[0]
    P = special.softmax(g, axis=1)
    found["classification"] = max(abs(energy + np.sum(np.log(P[at, k]))), abs(energy - seen))
    h = random.normal(size=5)
    energy = Problem(GaussianData(at, y, 0.3), Direct(line), prior(line)).expand_data(h)[0]
    found["regression"] = abs(energy + np.sum(stats.norm.logpdf(y, h[at], np.sqrt(0.3))))
    several = Grid(given=[x, Components(2)])
    h, shares = random.normal(size=several.shape), np.array([0.3, 0.7])
    data = ClusterData(points=at, targets=y, variance=0.3, portions=shares)
    energy = Problem(data, Direct(several), prior(several)).expand_data(h)[0]
    each = stats.norm.pdf(y[:, None], h[at], np.sqrt(0.3)) @ shares
    found["clustering"] = abs(energy + np.sum(np.log(each)))
    return {name: float(off) for name, off in found.items()}


def stationarity_left() -> dict[str, float]:
    r"""Table 5: what is left of each equation at the field that `solve` finds, per volume."""
    grid = Grid(given=[Axis(0, 3, points=4)], over=[Axis(0, 6, points=7)])
    data = DensityData(POINTS)
    K, found = 0.1 * Laplacian(grid) + Mass(grid, 0.02), {}
    N = np.asarray(data.prepared(grid).counts) / grid.cell
    for name, link in {"L(x, y)": LogDensity(grid), "P(x, y)": Density(grid), "√P": SquareRoot(grid)}.items():
        operator = 300 * K if name == "P(x, y)" else K  # no value at the bound P = 0
        fit = solve(Problem(data, link, Gaussian(operator)))
        phi, push = np.asarray(fit.field), np.asarray(operator.apply(np.asarray(fit.field)))
        P = {"L(x, y)": np.exp(phi), "P(x, y)": phi, "√P": phi**2}[name]
        slope = {"L(x, y)": P, "P(x, y)": np.ones_like(P), "√P": 2 * phi}[name]  # P'
        Lambda = over(grid, N - P / slope * push)
        general = slope / P * N - slope * Lambda
        printed = {"L(x, y)": N - P * Lambda, "P(x, y)": N / P - Lambda, "√P": 2 * N / phi - 2 * phi * Lambda}[name]
        found[name] = float(np.max(np.abs(push - printed)))
        found["φ(x, y)"] = max(found.get("φ(x, y)", 0.0), float(np.max(np.abs(push - general))))
    return found | _parameters_left(grid, data, K, N)


@double
def _parameters_left(grid: Grid, data: DensityData, K: Any, N: np.ndarray) -> dict[str, float]:
    """The two rows for parameters: a log-density that is always normalised, so that the multiplier drops out."""
    x, y = (np.asarray(one) for one in np.meshgrid(*(axis.coordinates for axis in grid.axes), indexing="ij"))

    def field(xi: Any) -> Any:
        return jax.nn.log_softmax(xi[0] * y + xi[1] * y**2 + xi[2] * x * y, axis=1)

    found, problem = {}, Problem(data, LogDensity(grid), Gaussian(K))
    for name, strength in (("ξ", 0.0), ("ξ, with a prior about ψ(ξ)", 3.0)):
        fit: Any = solve(
            Parametrised(field, problem, np.zeros(3), lambda xi, s=strength: 0.5 * s * jnp.sum((xi - 0.2) ** 2))
        )
        xi = np.asarray(fit.parameters)
        turned = np.asarray(jax.jacfwd(field)(jnp.asarray(xi))).reshape(-1, 3).T  # Φ', and P' = Φ' P for L
        L = np.asarray(field(jnp.asarray(xi)))
        left = grid.cell * turned @ (np.asarray(K.apply(L)) - N).ravel() + strength * (xi - 0.2)
        found[name] = float(np.max(np.abs(left)))
    return found


def parameterisations_left() -> dict[str, tuple[float, bool]]:
    """Table 6: the largest slope by the parameters at the end, by finite differences, and whether `solve` arrived."""
    axis = Axis(0, 1, points=8)
    grid = Grid(given=[axis, axis])
    x, y = (np.asarray(one) for one in np.meshgrid(axis.coordinates, axis.coordinates, indexing="ij"))
    random = np.random.default_rng(5)
    places = random.integers(8, size=(40, 2))
    at = axis.coordinates[places]
    targets = np.tanh(4 * at[:, 0] - 2) + at[:, 0] * at[:, 1] + 0.1 * random.normal(size=40)
    problem = Problem(GaussianData(at, targets, 0.01), Direct(grid), Gaussian(1e-3 * Laplacian(grid)))
    waves = np.stack([np.cos(np.pi * (a * x + b * y)) for a in range(3) for b in range(3)])
    z = np.stack([x, y], axis=-1)
    one = np.linspace(0.5, 1.5, 8)
    forms: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "linear ansatz": (lambda c: jnp.tensordot(c, waves, 1), np.zeros(9)),
        "linear model with interaction": (lambda c: c[0] + c[1] * x + c[2] * y + c[3] * x * y, np.zeros(4)),
        "mixture model": (_bumps(z), {"height": np.array([0.5, 1.0]), "at": np.array([[0.2, 0.4], [0.8, 0.6]])}),
        "additive model with interaction": (lambda c: c["x"][:, None] + c["y"] + c["xy"] * x * y, {"x": one, "y": one, "xy": np.zeros(())}),
        "product ansatz": (lambda c: c["x"][:, None] * c["y"], {"x": one, "y": one}),
        "decision trees": (lambda c: c[0] + c[1] * jax.nn.sigmoid((x - c[2]) / 0.1) * jax.nn.sigmoid((y - c[3]) / 0.1), np.array([0.0, 1.0, 0.5, 0.3])),
        "projection pursuit": (lambda c: jnp.polyval(c[2:], c[0] * x + c[1] * y), np.array([1.0, 0.3, 0.1, 1.0, 0.0])),
        "neural net (2 lay.)": (lambda c: jnp.tanh(z @ c["inner"] + c["bias"]) @ c["outer"], {"inner": np.array([[3.0, -1.0], [0.5, 2.0]]), "bias": np.array([-1.5, 0.5]), "outer": np.ones(2)}),
    }  # fmt: skip
    found = {}
    for name, (form, start) in forms.items():
        fit: Any = solve(Parametrised(form, problem, start, prior=_weak), tolerance=1e-9)
        found[name] = (_slope(form, problem, fit.parameters), bool(fit.converged))
    return found


def _bumps(z: np.ndarray) -> Callable[[Any], Any]:
    def sum_of_two(c: Any) -> Any:
        squares = jnp.sum((z[:, :, None] - c["at"]) ** 2, axis=-1)
        return jnp.exp(-squares / 0.18) @ c["height"]

    return sum_of_two


def _weak(parameters: Any) -> Any:
    return 0.5e-2 * sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(parameters))


@double
def _slope(form: Callable[[Any], Any], problem: Problem, parameters: Any) -> float:
    """The largest central difference of the energy over parameters, of those of the whole energy near it."""
    leaves, shape = jax.tree.flatten(parameters)
    flat = np.concatenate([np.ravel(leaf) for leaf in leaves]).astype(float)
    ends = np.cumsum([0, *(np.size(leaf) for leaf in leaves)])

    def energy(v: np.ndarray) -> float:
        parts = [
            jnp.asarray(v[a:b].reshape(np.shape(leaf))) for a, b, leaf in zip(ends, ends[1:], leaves, strict=False)
        ]
        tree = jax.tree.unflatten(shape, parts)
        return problem.expand(np.asarray(form(tree))).energy + float(_weak(tree))

    step = 1e-5
    return max(abs(energy(flat + step * unit) - energy(flat - step * unit)) / (2 * step) for unit in np.eye(len(flat)))


def table_claims() -> list[Claim]:
    """One for each row of tables 3, 5 and 6."""
    claims = []
    for name, off in kinds_of_problems().items():
        claims.append(Claim("Table 3", f"{name} is the problem type of its likelihood", "the negative log-likelihood", f"the same energy within {off:.0e}", "minus the logarithm of the likelihood, by SciPy", below(off, 1e-10, what="difference")))  # fmt: skip
    for name, left in stationarity_left().items():
        claims.append(Claim("Table 5", f"stationarity equation and multiplier of {name}", "0", f"{left:.0e}", "at the field that `solve` finds, on a mesh of 4 x 7 points", below(left, 1e-6, what="largest remainder")))  # fmt: skip
    for name, (left, arrived) in parameterisations_left().items():
        claims.append(Claim("Table 6", f"{name}: its parameters can be optimised", "to be optimised", f"slopes below {left:.0e}" if arrived else "not arrived", "finite differences at the end, forty values on a mesh of 8 x 8 points", below(left if arrived else np.inf, 1e-4, what="largest slope")))  # fmt: skip
    return claims
