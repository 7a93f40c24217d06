r"""The proof: does a theory agree with a simulation, in standard errors?

At every point $i$ (a control, a time, a component of an order parameter) the theory says $\theta_i$ and $n$ runs have
mean $m_i$ with standard error $s_i$. The deviation beyond a named finite-size allowance $a_i$ is
$t_i = \max(0, |m_i - \theta_i| - a_i)/s_i$, turned into a normal score $z_i$ (Student's distribution with $n - 1$
degrees of freedom). The joint test asks how often the largest $|z_i|$ of *these correlated* points would be as large
by chance: the null distribution is drawn with Gaussian weights on the runs themselves, which keeps every correlation.
Unlike Hotelling's $T^2$ this works with more points than runs, and is not upset by points that are functions of each
other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from quenched.core import checks
from quenched.core.types import InputError

DRAWS = 20_000
"""Draws of the null distribution: p-values are resolved to 5e-5."""
PASSED = 1e-4
"""Chance explains deviations whose p-value is above this."""
NEARLY_ONE = 0.99
"""A p-value above this is not told apart from 1."""
SMALLEST_P = 1e-4
"""Smaller p-values of a table are only said to be smaller: the law of a test is not known so far out."""
EXACT = 1e-9
"""Points without spread over runs (a common start) must agree to this."""


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The comparison of a theory with a simulation.

    Attributes:
        p: probability of a largest deviation this large, if the theory (within the allowance) is right.
        largest: the largest deviation in standard errors, beyond the allowance.
        where: the point at which it occurs, in words.
        points: how many points were compared.
        runs: how many runs.
        allowance: what was granted for finite size, absolute; the largest, if it differs from variable to variable.
        relative_allowance: what was granted relative to the theory.
        z: dataset of deviations per point, in standard errors, without any allowance.
        allowances: what was granted each variable, absolute.
        means: dataset of what the simulation gave at the points that were compared.
        caught: the smallest error of the theory at a single point, relative to its value there, that the test would
            have called a disagreement in half of all simulations; NaN where all theory values are 0.
        caught_where: the point at which it is smallest, in words.
    """

    p: float
    largest: float
    where: str
    points: int
    runs: int
    allowance: float
    relative_allowance: float
    z: xr.Dataset
    allowances: Mapping[str, float] = dataclasses.field(default_factory=dict)
    means: xr.Dataset = dataclasses.field(default_factory=xr.Dataset)
    caught: float = np.nan
    caught_where: str = ""

    @property
    def chance(self) -> str:
        """The p-value as it is said: "= 0.03", "> 0.99"; never 1, which no simulation shows."""
        return f"= {self.p:.2g}" if self.p <= NEARLY_ONE else f"> {NEARLY_ONE}"

    @property
    def deviation(self) -> float:
        """The largest deviation in standard errors, without any allowance."""
        return max((float(np.abs(self.z[name]).max()) for name in self.z), default=np.nan)

    @property
    def passed(self) -> bool:
        """Whether chance explains the deviations: p above 1e-4."""
        return self.p > PASSED

    def __str__(self) -> str:
        verdict = "agree" if self.passed else "DISAGREE"
        single = len(set(self.allowances.values())) < 2
        each = f"{self.allowance:g}" if single else ", ".join(f"{v:g} in {n}" for n, v in self.allowances.items())
        granted = f", allowance {each}" if self.allowance else ""
        granted += f", relative allowance {self.relative_allowance:g}" if self.relative_allowance else ""
        return (f"theory and simulation {verdict}: p {self.chance}; largest deviation {self.largest:.2f} standard "
                f"errors at {self.where} ({self.points} points, {self.runs} runs{granted})")  # fmt: skip


def agreement(
    curve: xr.Dataset,
    points: xr.Dataset,
    *,
    variables: Sequence[str] | str | None = None,
    allowance: float | Mapping[str, float] = 0.0,
    relative_allowance: float = 0.0,
) -> Agreement:
    """Compare a theory with a simulation.

    Args:
        curve: the theory; it must contain every control value of `points`. It may also be another simulation with
            its runs: then both have errors, and the test is for two samples.
        points: the simulation, with its runs.
        variables: which to compare; by default all that both have.
        allowance: absolute deviation granted because the simulation is finite; one for all variables, or one for
            each by its name. An angle that is small needs less than a length of order one.
        relative_allowance: the same, relative to the theory.

    Returns:
        An `Agreement`; `.passed`, `.p` and `.z` say it, and it prints as a sentence.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> import quenched
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(prior=0.8), prototypes.LVQ1(rate=0.2)
        >>> curve = prototypes.curve(law, rule, alpha=np.linspace(0, 50, 501))
        >>> points = prototypes.measure(law, rule, alpha=[1, 5], size=20, runs=20, key=jax.random.key(0))
        >>> quenched.agreement(curve, points, allowance=1 / 20).passed
        True
    """
    for name, value in (("curve", curve), ("points", points)):
        checks.kind(name, value, xr.Dataset, "a dataset")
    checks.not_negative("relative_allowance", checks.number("relative_allowance", relative_allowance))
    names = _common(curve, points, checks.names("variables", variables))
    allowances = _allowances(allowance, names)
    theory = _align(curve, points)
    sides = [_stacked(points, names)]
    if all(f"{name}_run" in theory for name in names):
        sides.append(_stacked(theory, names))
        expected = sides[1].mean(axis=0)
    else:
        _check_exact(theory, names)
        expected = np.concatenate([_values(theory, points, name) for name in names])
    if not np.all(np.isfinite(expected)):
        raise InputError("The theory must be finite at every simulated point, but it is not (see its `outcome`).")
    mean = sides[0].mean(axis=0)
    stderr = np.sqrt(sum(side.var(axis=0, ddof=1) / len(side) for side in sides))
    moves = stderr > EXACT * np.maximum(1.0, np.abs(expected))
    gap = np.abs(mean - expected)
    sizes = [points[name].size for name in names]
    granted = np.repeat([allowances[name] for name in names], sizes)
    excess = np.maximum(0.0, gap - granted - relative_allowance * np.abs(expected))
    runs = min(len(side) for side in sides)
    t = np.where(moves, excess / np.where(moves, stderr, 1.0), np.where(excess > EXACT, np.inf, 0.0))
    z = np.where(np.isinf(t), np.inf, -ndtri(np.maximum(stdtr(runs - 1, -t), 1e-300)))
    worst = int(np.argmax(z))
    p, critical = _judge(float(z[worst]), sides, stderr, moves)
    unseen = granted + relative_allowance * np.abs(expected) - stdtrit(runs - 1, ndtr(-critical)) * stderr
    caught = np.where(moves & (expected != 0), unseen / np.abs(np.where(expected != 0, expected, 1.0)), np.inf)
    least = int(np.argmin(caught))
    parts = np.split((mean - expected) / np.where(moves, stderr, np.inf), np.cumsum(sizes)[:-1])
    plain = {n: points[n].copy(data=part.reshape(points[n].shape)) for n, part in zip(names, parts, strict=True)}
    means = {n: points[n].copy(data=part.reshape(points[n].shape))
             for n, part in zip(names, np.split(mean, np.cumsum(sizes)[:-1]), strict=True)}  # fmt: skip
    return Agreement(
        p=p,
        largest=float(t[worst]),
        where=_place(points, names, worst),
        points=z.size,
        runs=runs,
        allowance=max(allowances.values()),
        relative_allowance=relative_allowance,
        z=xr.Dataset(plain),
        allowances=allowances,
        means=xr.Dataset(means),
        caught=float(caught[least]) if np.isfinite(caught[least]) else np.nan,
        caught_where=_place(points, names, least) if np.isfinite(caught[least]) else "",
    )


def _allowances(given: float | Mapping[str, float], names: list[str]) -> dict[str, float]:
    """What is granted each variable."""
    if not isinstance(given, Mapping):
        given = dict.fromkeys(names, given)
    if set(given) != set(names):
        wanted, there = ", ".join(names), ", ".join(map(str, given))
        raise InputError(
            f"Argument `allowance` must be one number, or one for each of {wanted}, but it is for {there}."
        )
    for value in given.values():
        checks.not_negative("allowance", checks.number("allowance", value))
    return {name: float(given[name]) for name in names}


def _judge(worst: float, sides: list[np.ndarray], stderr: np.ndarray, moves: np.ndarray) -> tuple[float, float]:
    """P(largest |z| >= worst) under the null, with the runs' own correlations; and the z at which it is too small."""
    if not moves.any():
        return (1.0 if worst <= 0 else 0.0), 0.0
    bound = min(1.0, 2 * moves.sum() * ndtr(-worst))  # Bonferroni: resolves p below 1 / DRAWS
    critical = -float(ndtri(PASSED / (2 * moves.sum())))
    if bound < 1 / DRAWS:
        return float(bound), critical
    rng = np.random.default_rng(0)
    residuals = [(side - side.mean(axis=0))[:, moves] / (len(side) * stderr[moves]) for side in sides]
    residuals = [r * np.sqrt(len(r) / (len(r) - 1)) for r in residuals]
    residuals = [np.linalg.qr(r, mode="r") for r in residuals]  # the same covariance in as few rows as it needs
    largest = []
    for _ in range(DRAWS // 1000):
        draw = sum(rng.standard_normal((1000, len(r))) @ r for r in residuals)
        largest.append(np.max(np.abs(draw), axis=1))
    drawn = np.sort(np.concatenate(largest))
    exceeded = len(drawn) - int(np.searchsorted(drawn, worst))
    allowed = int(PASSED * (1 + DRAWS)) - 1  # so many draws may be as large where the test rejects
    return float(min(bound, (1 + exceeded) / (1 + DRAWS))), min(critical, float(drawn[-1 - allowed]))


def _common(curve: xr.Dataset, points: xr.Dataset, variables: Sequence[str] | None) -> list[str]:
    """The variables to compare."""
    both = [str(n) for n in points.data_vars if f"{n}_run" in points and n in curve]
    names = both if variables is None else list(variables)
    missing = [n for n in names if n not in both]
    if missing or not names:
        raise InputError(f"Argument `variables` must name what theory and simulation share, but {missing or 'nothing'} "
                         f"is not among {both}.")  # fmt: skip
    return names


def _align(curve: xr.Dataset, points: xr.Dataset) -> xr.Dataset:
    """The theory at the controls of the simulation."""
    for dim in points.dims:
        if dim == "run" or dim not in curve.coords or dim not in points.coords:
            continue
        wanted = points[dim].values
        if dim not in curve.dims:
            curve = curve.expand_dims(dim)
        have = curve[dim].values
        if have.dtype.kind in "fi":
            place = np.abs(have[None, :] - wanted[:, None]).argmin(axis=1)
            off = np.abs(have[place] - wanted) > 1e-9 * np.maximum(1, np.abs(wanted))
        else:
            place = np.array([int(np.argmax(have == w)) for w in wanted])
            off = have[place] != wanted
        if off.any():
            raise InputError(f"Argument `curve` must contain every point of the simulation, but it has no {dim} = "
                             f"{wanted[off][0]}.")  # fmt: skip
        curve = curve.isel({dim: place})
    return curve


def _check_exact(theory: xr.Dataset, names: list[str]) -> None:
    """Check that what is compared as a theory has no errors of its own."""
    for name in names:
        if f"{name}_stderr" in theory and np.any(theory[f"{name}_stderr"].values > 0):
            raise InputError(
                f"Argument `curve` must be a theory, or a simulation with its runs, but {name} has standard errors and "
                "no runs: choose points where it is theory (see its `source`)."
            )


def _values(theory: xr.Dataset, points: xr.Dataset, name: str) -> np.ndarray:
    """One variable of the theory, flat, in the order of the simulation's."""
    surplus = [str(dim) for dim in theory[name].dims if dim not in points[name].dims]
    if surplus:
        raise InputError(f"Argument `curve` must have the dimensions of the simulation, but {name} has {surplus} "
                         "besides: choose one of its values.")  # fmt: skip
    return theory[name].broadcast_like(points[name]).transpose(*points[name].dims).values.reshape(-1)


def _stacked(points: xr.Dataset, names: list[str]) -> np.ndarray:
    """All runs `[runs, points]`; runs that failed anywhere are left out."""
    each = [points[f"{n}_run"].transpose("run", *points[n].dims).values.reshape(points.sizes["run"], -1) for n in names]
    runs = np.concatenate(each, axis=1)
    runs = runs[np.all(np.isfinite(runs), axis=1)]
    if len(runs) < 10:
        raise InputError(f"Argument `points` must have at least 10 good runs, but it has {len(runs)}.")
    return runs


def _place(points: xr.Dataset, names: list[str], index: int) -> str:
    """The point with a given flat index, in words."""
    begins = np.cumsum([0, *(points[name].size for name in names)])
    k = int(np.searchsorted(begins, index, side="right")) - 1
    variable = points[names[k]]
    where = zip(variable.dims, np.unravel_index(index - begins[k], variable.shape), strict=True)
    spot = [f"{d} = {variable[d].values[i]:g}" if d in variable.coords else f"{d} {i}" for d, i in where]
    return f"{names[k]} ({', '.join(spot)})" if spot else names[k]
