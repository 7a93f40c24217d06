r"""The figures, computed again from our own theory and simulation.

The printed theory has errors (E1, E5, E7 in `docs/errata.md`); where a figure depends on them, what the printed
equations give is drawn beside the corrected theory. All figures have γ = γ̃ = 10 unless they say otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched import outliers
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.core.proof import Agreement, agreement
from quenched.core.types import double
from quenched.outliers.theory.branches import follow
from quenched.outliers.theory.setting import Setting, numbers
from quenched.outliers.theory.state import THEORIES, read
from quenched.papers.dietrich1998 import printed
from quenched.papers.dietrich1998.onsets import onsets

COMPARED = {"R": 1.0, "Q": 1.0, "Delta": 2.0, "Phi": 0.4, "free_energy": 2.0}
"""What theory and simulation are compared by, each with its allowance times N. Measured at small N, N times the
deviation is at most 0.8 in R, 1.6 in Delta and 0.4 in Phi."""
LAW, SOFT, HARD, HEBB = (
    outliers.Contaminated(gamma=10.0),
    outliers.SoftSelection(),
    outliers.HardSelection(),
    outliers.Hebb(),
)
TEACHER = outliers.TeacherStart()
ALPHA = "examples per dimension, α"
ETA = "ln(outliers / informative), η"
BROKEN = "replica symmetry broken"
TO_FOLD = 1e-4
"""Distance of the last point of a branch from the fold where it ends, as a share of that between both folds."""
QUICK_SIZES = 16
"""Sample sizes along a line of theory in quick mode; half as many along a line of the phase diagram."""


def compare(curve: xr.Dataset, points: xr.Dataset, size: int, variables: Iterable[str] = COMPARED) -> Agreement:
    """A theory and a simulation of dimension `size`."""
    return agreement(
        curve, points, variables=list(variables), allowance={name: COMPARED[name] / size for name in variables}
    )


@functools.cache
def find_lines(rule: Any) -> xr.Dataset:
    """The lines of the phase diagram at α = 20, on which several figures and statements rest."""
    return outliers.transitions(LAW, rule, alpha=20.0)


def _key(key: Any, number: int) -> Any:
    return jax.random.key(number) if key is None else key


def _lines(label: str, curve: xr.Dataset, axis: str, name: str) -> Series:
    """A theory, dashed where replica symmetry is broken."""
    unstable = curve.stability.values > 1
    several = "branch" in curve.coords and curve.branch.dims == (axis,)  # the least one, which may be another at each
    state = curve.branch.values if several else None
    given = {"unstable": unstable, "dashes": BROKEN, "state": state}
    return Series(label, Kind.theory, curve[axis].values, curve[name].values, **given)


def _lowest(curve: xr.Dataset) -> xr.Dataset:
    """The branch of least free energy at each point."""
    return curve.isel(branch=curve.lowest.argmax("branch"))


def _points(label: str, points: xr.Dataset, axis: str, name: str) -> Series:
    return Series(label, Kind.simulation, points[axis].values, points[name].values, points[f"{name}_stderr"].values)


@double
def solve_printed(rule: Any, alpha: float, eta: float) -> dict[str, float]:
    """What the printed equations give on the informed branch."""
    hard = isinstance(rule, outliers.HardSelection)
    state = printed.hard_state if hard else printed.soft_state
    found = state(outliers.Contaminated(10.0, eta), rule, alpha)
    return {name: float(getattr(found, name)) for name in ("R", "Q", "Delta", "Phi")}


def figure_1(*, quick: bool = False, key: Any = None) -> Figure:
    """Soft selection against the Hebb rule."""
    measured = np.array([1.0, 2.0, 5.0, 10.0]) if quick else np.array([1.0, 2.0, 3.0, 5.0, 7.5, 10.0])
    alphas = np.union1d(np.geomspace(0.3, 12, QUICK_SIZES if quick else 30), measured)
    size, runs = (200, 20) if quick else (500, 100)
    series, proof, data = [], {}, {}
    for name, rule in (("soft selection", SOFT), ("Hebb rule", HEBB)):
        curve = outliers.curve(LAW, rule, alpha=alphas, branch="informed")
        points = outliers.measure(LAW, rule, alpha=measured, size=size, runs=runs, key=_key(key, 1))
        series += [_lines(name, curve, "alpha", "Delta"), _points(name, points, "alpha", "Delta")]
        proof[name] = compare(curve, points, size)
        data |= {f"{name}, theory": curve, f"{name}, simulation": points}
    floor = float(outliers.asymptote(LAW, HEBB).R - 1) ** 2
    series.append(Series("Hebb rule, α → ∞", Kind.reference, alphas[[0, -1]], np.array([floor, floor])))
    panel = Panel(ALPHA, "squared distance from the teacher, Δ", tuple(series), xlim=(0, 12.2), ylim=(0, 0.75))
    caption = (f"η = 0: half of the examples are outliers. Lines: theory. Points: mean over {runs} runs at N = {size} from random starts, "
               "bars one standard error (the paper shows standard deviations). The Hebb rule learns from all examples and never "
               f"comes below Δ = {floor:g}; soft selection finds the teacher.")  # fmt: skip
    return Figure("dietrich1998/figure_1", "Soft selection and the Hebb rule", caption, (panel,), data, proof)


def figure_2(*, quick: bool = False, key: Any = None) -> Figure:
    """The angle against the number of examples for few and many outliers."""
    measured = np.array([2.0, 5.0, 10.0, 20.0]) if quick else np.array([2.0, 5.0, 10.0, 20.0, 40.0])
    alphas = np.union1d(np.geomspace(1, 60, QUICK_SIZES if quick else 48), measured)
    size, runs = (200, 20) if quick else (500, 100)
    few = outliers.curve(LAW, SOFT, alpha=alphas, eta=0.0, branch="informed")
    many = _lowest(outliers.curve(LAW, SOFT, alpha=alphas, eta=4.0))
    points = outliers.measure(LAW, SOFT, alpha=measured, eta=0.0, size=size, runs=runs, key=_key(key, 2))
    series = (
        _lines("η = 0", few, "alpha", "Phi"), _points("η = 0", points, "alpha", "Phi"),
        _lines("η = 4, least free energy", many, "alpha", "Phi"),
    )  # fmt: skip
    panel = Panel(ALPHA, "angle over π, Φ", series, log="x")
    caption = (f"Points: mean over {runs} runs at N = {size}. At η = 4, with 1.8% of the examples informative, the state of least free energy "
               "changes from overfitted to informed as α grows (the text says: as η is varied, erratum E9). Around that jump "
               "replica symmetry is broken: dashed, an approximation.")  # fmt: skip
    late = points.sel(alpha=measured[measured >= 5])
    proof = {"η = 0, α ≥ 5": compare(few, late, size)}
    data = {"few outliers": few, "many outliers": many, "simulation": points}
    return Figure("dietrich1998/figure_2", "The error falls, and may fall suddenly", caption, (panel,), data, proof)


def figure_3(*, quick: bool = False, key: Any = None) -> Figure:
    """The order parameters over both controls, as cuts."""
    del key  # theory alone
    sizes = [2.0, 5.0, 10.0, 20.0, 50.0]
    curve = outliers.curve(LAW, SOFT, alpha=sizes, eta=np.linspace(0, 12, 61 if quick else 121))
    best = _lowest(curve)
    panels = []
    for name, label in (("R", "overlap with the teacher, R"), ("Q", "squared length, Q")):
        series = tuple(_lines(f"α = {a:g}", best.sel(alpha=a), "eta", name) for a in sizes)
        panels.append(Panel(ETA, label, series))
    caption = ("The relief of the paper as cuts at fixed α; at each point the state of least free energy. R falls first, at the transition from "
               "the informed to the overfitted state, Q at a much larger η, at that from the overfitted to the trivial state (erratum "
               "E10). Dashed: replica symmetry is broken, the numbers are approximations.")  # fmt: skip
    return Figure("dietrich1998/figure_3", "Overlap and length", caption, tuple(panels), {"theory": curve})


def _between_folds(first: float, last: float, number: int) -> np.ndarray:
    """Numbers between two folds, dense near them, where states change like a square root."""
    share = (1 - np.cos(np.linspace(0, np.pi, number))) / 2
    return first + (last - first) * np.clip(share, TO_FOLD, 1 - TO_FOLD)


def _against_eta(rule: Any, *, quick: bool, key: Any) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    """Theory, and simulations from random and from teacher starts, at α = 20 and N = 100."""
    etas = np.array([0.0, 1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0])
    lines = find_lines(rule)
    turns = _between_folds(float(lines.overfit_start), float(lines.informed_end), 12)  # where there are several states
    grid = functools.reduce(np.union1d, (np.linspace(0, 8, 61 if quick else 161), etas, turns))
    curve = outliers.curve(LAW, rule, alpha=20.0, eta=grid)
    given = {"alpha": 20.0, "eta": etas, "size": 100, "runs": 20 if quick else 100}
    random = outliers.measure(LAW, rule, start=outliers.RandomStart(), key=_key(key, 4), **given)
    teacher = outliers.measure(LAW, rule, start=TEACHER, key=_key(key, 4), **given)
    return curve, random, teacher


def _branches(curve: xr.Dataset, name: str) -> list[Series]:
    """All branches; that of least free energy has its own name."""
    found = [_lines("least free energy", _lowest(curve), "eta", name)]
    for branch in ("informed", "overfit"):
        one = curve.sel(branch=branch)
        there = one.outcome.values == "converged"
        other = there & ~one.lowest.values
        near = there & (
            other | np.append(other[1:], False) | np.append(False, other[:-1])
        )  # up to where it is the least
        for piece in np.split(np.arange(len(near)), np.flatnonzero(np.diff(near)) + 1):
            if other[piece].any():
                found.append(_lines(f"{branch}, not the least", one.isel(eta=piece), "eta", name))
    return found


@double
def _turn_back(rule: Any, name: str) -> Series:
    """The states between two branches, unstable, by which the curve turns from one into the other."""
    theory = THEORIES[type(rule)]
    theta = Setting(*map(np.float64, numbers(LAW, rule, 20.0)))
    curve = follow(theory, theta, (-15.0, 25.0), upwards=rule is HARD)
    arm = curve.arms[1] if rule is HARD else curve.arms[::-1][1]
    found = [(eta, read(theory, point, theta._replace(eta=np.float64(eta))))
             for eta in _between_folds(arm.control[0], arm.control[-1], 21) if (point := arm.find(eta))]  # fmt: skip
    y = np.array([float(getattr(state, name)) for _, state in found])
    return Series("unstable, between them", Kind.reference, np.array([eta for eta, _ in found]), y)


def figure_4(*, quick: bool = False, key: Any = None) -> Figure:
    """Soft selection against the share of outliers, and the finite-size scaling of its transition."""
    curve, random, teacher = _against_eta(SOFT, quick=quick, key=key)
    runs = random.sizes["run"]
    series = (*_branches(curve, "Phi"), _turn_back(SOFT, "Phi"), _points("random start", random, "eta", "Phi"),
              _points("teacher start", teacher, "eta", "Phi"))  # fmt: skip
    left = Panel(ETA, "angle over π, Φ", series, ylim=(0, 0.55))
    sizes = [10, 25, 50, 100] if quick else [10, 25, 50, 100, 1000]
    scaling = onsets(
        LAW, SOFT, alpha=20.0, sizes=sizes, eta=np.linspace(1.0, 5.0, 17), runs=40 if quick else 100, key=_key(key, 5),
    )  # fmt: skip
    lines = find_lines(SOFT)
    T1, first, last = (float(lines[name]) for name in ("informed_overfit", "overfit_start", "informed_end"))
    share, limit = 1 / (1 + np.exp(T1)), float(scaling.informative_limit)
    scaled = scaling.isel(size=np.isfinite(scaling.informative.values))  # an onset may lie outside the sweep
    x, y, error = 1 / scaled.size.values, scaled.informative.values, scaled.informative_stderr.values
    slope = np.sum(x * (y - limit) / error**2) / np.sum(x * x / error**2)  # of the weighted line through the limit
    right = Panel("inverse dimension, 1/N", "informative share at onset", (
        Series("onset: a tenth of the runs is lost", Kind.simulation, x, y, error),
        Series("straight line to N = ∞", Kind.reference, np.array([0, x.max()]), limit + slope * np.array([0, x.max()])),
        Series("theory, transition", Kind.mark, np.array([0.0]), np.array([share])),
    ), title="Finite-size scaling", xlim=(-0.003, x.max() * 1.05))  # fmt: skip
    caption = (f"α = 20. Left: mean over {runs} runs at N = 100. Three states exist for {first:.2f} < η < {last:.2f}; replica symmetry is broken "
               f"beyond η = {float(lines.replica_symmetry):.2f}, so the transition itself is an approximation. Right: the inset of the paper; an onset is where a tenth of the runs "
               f"has lost half of the overlap. Extrapolated to N = ∞: {limit:.4f} ± {float(scaling.informative_limit_stderr):.4f}; theory: "
               f"{share:.4f} (η = {T1:.3f}).")  # fmt: skip
    stable = teacher.sel(eta=[0.0, 1.0, 2.0, 3.0])
    proof = {"η ≤ 3, N = 100": compare(curve.sel(branch="informed"), stable, 100)}
    data = {"theory": curve, "random start": random, "teacher start": teacher, "scaling": scaling}
    return Figure(
        "dietrich1998/figure_4", "Soft selection and the share of outliers", caption, (left, right), data, proof
    )


def figure_5(*, quick: bool = False, key: Any = None) -> Figure:
    """Critical shares of outliers."""
    del key  # theory alone
    cusp = [5.4, 5.6]  # at which the overfitted state of soft selection begins
    alphas = np.union1d(np.geomspace(2, 60, QUICK_SIZES // 2 + 1 if quick else 30), cusp)
    soft, hard = (outliers.transitions(LAW, rule, alpha=alphas) for rule in (SOFT, HARD))
    panels = []
    for called, found in (("Soft selection", soft), ("Hard selection", hard)):
        last = found.overfit_trivial.fillna(found.informed_trivial)  # below the cusp informed and overfitted are one
        series = []
        for words, line in (("informed | overfitted", found.informed_overfit), ("to the trivial state", last)):
            there = np.isfinite(line.values)
            given = {"unstable": np.full(there.sum(), True), "dashes": BROKEN}
            series.append(Series(words, Kind.theory, alphas[there], line.values[there], **given))
        both = found.informed_overfit.notnull()
        for words, ends in (("informed and overfitted both exist between", (found.overfit_start, found.informed_end.where(both))),
                            ("the trivial state and another both exist between", (found.trivial_start, found.overfit_end.where(both, found.informed_end)))):  # fmt: skip
            for line in ends:
                there = np.isfinite(line.values)
                series.append(Series(words, Kind.reference, alphas[there], line.values[there]))
        if np.isfinite(found.replica_symmetry.values).any():
            series.append(Series("informed state stable below", Kind.theory, alphas, found.replica_symmetry.values))
        panels.append(Panel(ALPHA, "critical η", tuple(series), called, log="x"))
    caption = ("Values of η at which two states have the same free energy, and thin lines where states begin and end. The paper has one line "
               "for each method; with the corrected theory there are two (errata E5, E10, E11). All first-order lines lie where replica symmetry is "
               "broken and are drawn dashed; below the solid line the theory of the informed state is stable.")  # fmt: skip
    data = {"soft": soft, "hard": hard}
    return Figure("dietrich1998/figure_5", "Critical shares of outliers", caption, tuple(panels), data)


def figure_6(*, quick: bool = False, key: Any = None) -> Figure:
    """Hard selection against the share of outliers."""
    curve, random, teacher = _against_eta(HARD, quick=quick, key=key)
    etas = teacher.eta.values[teacher.eta.values <= 3.0]
    wrong = np.array([solve_printed(HARD, 20.0, float(eta))["Phi"] for eta in np.linspace(0, 3, 13)])
    series = (*_branches(curve, "Phi"), _turn_back(HARD, "Phi"), _points("random start", random, "eta", "Phi"), _points("teacher start", teacher, "eta", "Phi"),
              Series("informed, as printed (B4)", Kind.reference, np.linspace(0, 3, 13), wrong))  # fmt: skip
    panel = Panel(ETA, "angle over π, Φ", series, ylim=(0, 0.55))
    caption = (f"α = 20, N = 100, mean over {random.sizes['run']} runs of EM followed by an exact descent by single flips. Φ is the angle of the "
               "estimate ⟨J⟩ (erratum E8); where nothing is selected it is set to 1/2. For hard selection the replica-symmetric theory is never "
               "stable (dashed), yet close to the simulation from teacher starts up to η = 3. The grey line is what the printed equations "
               "give: too small by about √2 (erratum E5).")  # fmt: skip
    proof = {"η ≤ 3, N = 100": compare(curve.sel(branch="informed"), teacher.sel(eta=etas), 100)}
    data = {"theory": curve, "random start": random, "teacher start": teacher}
    return Figure("dietrich1998/figure_6", "Hard selection and the share of outliers", caption, (panel,), data, proof)


def _beyond(gamma: float, eta: float, alpha: int, size: int, *, runs: int, key: Any) -> xr.Dataset:
    """Hard EM in a world beyond the printed critical share, from the best vector along the teacher."""
    law = outliers.Contaminated(gamma, eta)
    start = outliers.TeacherStart(float(outliers.asymptote(law, HARD).R))
    return outliers.measure(law, HARD, alpha=float(alpha), size=size, runs=runs, start=start, key=key)


def figure_7(*, quick: bool = False, key: Any = None) -> Figure:
    """The critical share at unlimited examples, and why it is spurious."""
    gammas = np.unique(np.concatenate([np.geomspace(0.1, 10, 31 if quick else 91), [0.278, 0.2784]]))
    roots = np.array([printed.critical_fraction(gamma).eta for gamma in gammas])
    there = roots > 0
    left = Panel("inverse variance, γ", "η_c of eq. (B5)", (
        Series("largest root of (B5), as printed", Kind.theory, gammas, roots, unstable=np.full(roots.shape, True),
               dashes="spurious", state=there),  # no root below the jump
    ), title="What the printed equation gives", log="x", key=False)  # fmt: skip
    gain = np.array([
        -float(outliers.asymptote(outliers.Contaminated(g, eta), HARD).example_energy)
        for g, eta in zip(gammas[there], roots[there], strict=True)
    ])  # fmt: skip
    measured = [(0.2, 0.5, 1000, 20), (1.0, 5.0, 10_000, 20)] + ([] if quick else [(2.0, 6.5, 30_000, 10)])
    points = [_beyond(*one, runs=5 if quick else 10, key=_key(key, 7)) for one in measured]
    beyond = np.array([-float(p.free_energy) / alpha for p, (_, _, alpha, _) in zip(points, measured, strict=True)])
    error = np.array(
        [float(p.free_energy_stderr) / alpha for p, (_, _, alpha, _) in zip(points, measured, strict=True)]
    )
    right = Panel("inverse variance, γ", "energy gained, per example", (
        Series("α = ∞, at the η of the left panel", Kind.theory, gammas[there], gain),
        Series("EM at a larger η", Kind.simulation, np.array([g for g, *_ in measured]), beyond, error),
    ), title="Why it is spurious", log="xy")  # fmt: skip
    caption = ("Left: eq. (B5) to the letter reproduces the figure of the paper, with its jump at γ = 0.278. Right: (B5) is the square of an equation for "
               "R, and each of its roots has R < 0. At that very η the best overlap still gains energy over selecting nothing (per example), and hard EM started along the "
               f"teacher finds such states beyond it ({'; '.join(f'γ = {g:g}, η = {e:g}, α = {a}' for g, e, a, _ in measured)}). With unlimited examples there "
               "is no critical share of outliers (erratum E7).")  # fmt: skip
    data = {f"simulation {i}": p for i, p in enumerate(points)}
    return Figure("dietrich1998/figure_7", "A critical share that does not exist", caption, (left, right), data)


FIGURES = {
    "figure_1": figure_1, "figure_2": figure_2, "figure_3": figure_3, "figure_4": figure_4, "figure_5": figure_5,
    "figure_6": figure_6, "figure_7": figure_7,
}  # fmt: skip
