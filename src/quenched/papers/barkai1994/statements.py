r"""Every number and statement of the paper that can be checked, and the comparisons that decide each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr

from quenched import mixtures
from quenched.core.claims import Claim, above, agrees, apart, below, near
from quenched.core.figures import Figure, comparison
from quenched.papers.barkai1994 import minima, printed
from quenched.papers.barkai1994.figures import FIGURES, RULE, at_splitting

SAME = 1e-6
"""Energies closer than this are the same."""
CLOSED = 1e-6
"""Lines solved for numerically against closed forms."""
DIGIT = 0.005
"""Half of the last digit of a number printed to two."""
LITTLE = 4e-3
"""By how much in energy a minimum may lie below the annealed one, where the paper says none does."""


def claims(*, quick: bool = False, figures: Iterable[Figure] = ()) -> tuple[Claim, ...]:
    """Every number and statement of the paper that can be checked, ours beside it.

    Args:
        quick: smaller samples and fewer starts, as for the figures.
        figures: figures computed already, which need not be computed again.
    """
    known = {figure.key.split("/")[1]: figure for figure in figures}
    one, two, three, four = (known.get(name) or make(quick=quick) for name, make in FIGURES.items())
    many = _many_samples(quick=quick)
    return (
        *_phase_claims(one), *_error_claims(two), *_minima_claims(three, many), *_size_claims(),
        *_followed_claims(four, _crossed(quick=quick)), *_print_claims(),
    )  # fmt: skip


def _phase_claims(figure: Figure) -> list[Claim]:
    """Statements on figure 1."""
    lines = figure.data["lines"]
    alphas = lines.alpha.values
    ordered = lines.splitting_ordered_outcome.values == "converged"
    off1 = float(np.max(np.abs(lines.splitting_ordered.values - 1.5 * (1 + 2 / alphas))[ordered]))
    off2 = float(np.max(np.abs(lines.splitting_random.values - (1 + alphas**-0.5) ** 2)))
    law = mixtures.TwoGaussians(1.0)
    found = mixtures.curve(law, RULE, alpha=[1.0, 2.0, 3.0, 5.0], width=[0.3, 1.0, 9.0])
    names = np.unique(found.phase.values)
    random = found.where(found.phase == "random")
    least = float(random.stability.min())
    numbers = [mixtures.phase_lines(mixtures.TwoGaussians(u), alpha=a) for a, u in ((5.0, 1.0), (1.0, 2.0))]
    first, second = (float(one.splitting_ordered) for one in numbers)
    at, two = (float(one.replica_symmetry) for one in numbers)
    power = printed.overlap_of_chance()
    return [
        Claim("phases", "α_c = 4 u₀⁻⁴", "4 at u₀ = 1", f"{float(lines.alpha_c):.10f}", "saddle-point equations at vanishing splitting",
              near(float(lines.alpha_c), 4.0, within=CLOSED)),
        Claim("phases", "σ₁ = (1 + u₀²/2)(1 + 2/(α u₀²)), ordered splitting", "2.1 at (5, 1), 4.5 at (1, 2)",
              f"{first:.10f}, {second:.10f}; within {off1:.0e} at all α", "saddle-point equations, solved without the closed form",
              near(first, 2.1, within=CLOSED) & near(second, 4.5, within=CLOSED) & below(off1, CLOSED)),
        Claim("phases", "σ₂ = (1 + α^-1/2)², random splitting", "closed form", f"within {off2:.0e} at all α",
              "saddle-point equations, solved without the closed form", below(off2, CLOSED)),
        Claim("phases", "three phases: unsplit, ordered, random", "three", f"{', '.join(names)}; ordered and random meet from (4, 2.25) to "
              f"({float(lines.alpha_end):.4f} = 2π, 0)", "continuation of the line between them (replica-symmetric)",
              near(len(names), 3, within=0) & near(float(lines.alpha_end), 2 * np.pi, within=1e-3)),
        Claim("random phase", "r is of the order of 1/N", "N^-1", f"N^-{power.value:.2f} ± {power.stderr:.2f}",
              "largest eigenvector of samples at N = 50 and 400 (erratum B5)",
              near(power.value, 1.0, within=0.25, stderr=power.stderr, what="power of 1/N"),
              near(power.value, 0.5, within=0.25, stderr=power.stderr, what="power of 1/N")),
        Claim("conclusion", "a spin glass, with replica symmetry broken, in all of the random phase and at low σ of the ordered one", "conjecture",
              f"stability value at least {least:.2f} (> 1) in the random phase; broken below σ = {at:.4f} at (5, 1), {two:.4f} at (1, 2)",
              "de Almeida-Thouless value of the replica-symmetric solution; above 1 for every point of the random phase by an inequality",
              above(least, 1.0, what="least stability value") & above(at, 0.5) & above(two, 0.5)),
    ]  # fmt: skip


def _error_claims(figure: Figure) -> list[Claim]:
    """Statements on figure 2."""
    curve, proof = figure.data["theory"], figure.agreement["σ ≥ 1.5"]
    error = curve.error.values
    best, lowest = float(curve.width[np.argmin(error)]), float(error.min())
    law = mixtures.TwoGaussians(1.0)
    true = float(mixtures.curve(law, RULE, alpha=5.0, width=1.0).error)
    line = float(mixtures.phase_lines(law, alpha=5.0).ordered_random)
    beside = mixtures.curve(law, RULE, alpha=5.0, width=[line * (1 - 1e-4), line * (1 + 1e-4)])
    near_it = curve.sel(width=slice(2.0, None))
    ratio = (near_it.q / near_it.r**2).values
    split, far = at_splitting(5.0, 1.0), at_splitting(1.0, 2.0)
    clear = mixtures.curve(mixtures.TwoGaussians(2.0), RULE, alpha=1.0, width=np.linspace(2.6, 2.9, 31)).error
    width = printed.likeliest_width()
    random = mixtures.curve(law, RULE, alpha=[1.0, 5.0], width=[0.4, 0.8])
    N = 400
    counted = mixtures.measure(law, RULE, alpha=1.0, width=[1.0], size=N, runs=10, tests=4000, key=jax.random.key(8))
    there = float(counted.error[0]), float(counted.error_stderr[0])
    return [
        Claim("after eq. (5)", "the maximum-likelihood width is always σ₀", "σ = σ₀", f"{width:.4f} σ₀",
              "one sample at N = 1000; true to leading order in N, and the centres' own width is a control here", near(width, 1.0, within=0.01)),
        Claim("figure 2", "near the splitting q ∝ r², so that the error stays below 1/2", "q ∝ r²",
              f"q/r² = {ratio[0]:.3f} to {ratio[-1]:.3f}; error {split:.5f} at σ₁", "theory; cos²θ = 1/7, so q/r² = 14, at σ₁ in closed form",
              near(ratio[-1], 14.0, within=0.1, what="q/r²") & below(split, 0.45, what="error at σ₁")),
        Claim("random phase", "the error is 1/2 throughout the random phase", "1/2",
              f"{float(random.error.min()):.6f} in theory; {there[0]:.4f} ± {there[1]:.4f} of annealing at N = 400 (α = 1, u₀ = 1, σ = 1)",
              "theory at α = 1 and 5; annealed samples, whose overlap of order N^-1/2 lowers the error by as much",
              near(float(random.error.min()), 0.5, within=1e-6) & near(there[0], 0.5, within=N**-0.5, stderr=there[1], what="counted, within N^-1/2")),
        Claim("figure 2", "the error is not least at the true width but at a higher one", "higher",
              f"{true:.4f} at σ₀, {lowest:.4f} at {best:.3f}", "theory", above(best, 1.5, what="best width") & below(lowest - true, -0.01)),
        Claim("figure 2", "the least error is at the transition σ₁", "σ₁ = 2.1", f"{lowest:.5f} at σ = {best:.4f}, against {split:.5f} at 2.1",
              f"cos²θ grows below σ₁ at every α > α_c (erratum B7); clear at (1, 2): {float(clear.min()):.5f} at {float(clear.idxmin()):.2f}, {far:.5f} at 4.5",
              near(best, 2.1, within=0.05, what="best width"),
              near(best, 1.9952, within=0.01, what="best width") & above(split - lowest, 1e-4) & above(far - float(clear.min()), 1e-3)),
        Claim("figure 2", "random phase below σ = 0.90", "0.90", f"{line:.4f}, replica-symmetric",
              "two formulations of the theory (erratum B6); replica symmetry is broken there, and annealing does not see the line",
              near(line, 0.90, within=DIGIT, what="end of order"),
              near(line, 0.8936, within=5e-5, what="end of order") & below(float(beside.r[0]), 1e-6, what="r below") & above(float(beside.r[1]), 1e-4, what="r above")),
        Claim("figure 2", "theory (the paper shows no simulation here)", "-", f"annealing: p {proof.chance}, largest deviation "
              f"{proof.largest:.1f} standard errors beyond 1/N", "joint test at σ ≥ 1.5, where replica symmetry holds",
              agrees(proof), rests_on=comparison(figure, "σ ≥ 1.5"), own=True),
    ]  # fmt: skip


class Samples(NamedTuple):
    """Minima of several samples at α = 1, u₀ = 2, N = 500."""

    found: xr.Dataset
    share: dict[float, float]  # of samples with more than one minimum, over the width
    lower: np.ndarray  # how far some start ends below the annealed one at width 1


def _many_samples(*, quick: bool) -> Samples:
    found = minima.spectrum(
        mixtures.TwoGaussians(2.0), alpha=1.0, width=[1.0, 1.5, 2.5], size=500, starts=24 if quick else 60,
        runs=10, key=jax.random.key(7),
    )  # fmt: skip
    several = (found.minima > 1).mean("run")
    share = {float(w): float(s) for w, s in zip(found.width, several, strict=True)}
    one = found.sel(width=1.0)
    return Samples(found, share, (one.annealed_energy - one.energy.min("start")).values)


def _minima_claims(figure: Figure, many: Samples) -> list[Claim]:
    """Statements on figure 3."""
    dots, proof = figure.data["minima"], figure.agreement["1.6 ≤ σ ≤ 3.5"]
    minima = {float(w): int(n) for w, n in zip(dots.width, dots.minima, strict=True)}
    points, curve = figure.data["simulation"], figure.data["theory"]
    deep = float((points.r - curve.r).sel(width=0.4))
    spread = dots.r.std("start")
    narrow, wide = float(spread.sel(width=0.2)), float(spread.sel(width=1.3))
    runs, lower = len(many.lower), many.lower
    exceptions = int(np.sum(lower > SAME))
    share = {w: f"{n:.0%} at {w:g}" for w, n in many.share.items()}
    return [
        Claim("figure 3", "annealing agrees reasonably with the theory", "reasonable",
              f"p {proof.chance} beyond 1/N for 1.6 ≤ σ ≤ 3.5; r is {deep:+.3f} off at σ = 0.4, where replica symmetry is broken",
              "20 samples at N = 500", agrees(proof), rests_on=comparison(figure, "1.6 ≤ σ ≤ 3.5")),
        Claim("figure 3", "for σ ≥ 1.5 all starts converge to the same solution, below many minima appear", "onset at 1.5",
              f"samples with more than one minimum: {', '.join(share.values())}",
              f"{runs} samples at N = 500; the onset differs from sample to sample, about where replica symmetry breaks, 1.5515 (erratum B14). On the sample "
              "of the figure: " + ", ".join(f"{n} at {w:g}" for w, n in minima.items()),
              below(many.share[1.5], 0.0, what="share of samples with several minima at 1.5") & above(many.share[1.0], 1.0, what="at 1"),
              below(many.share[2.5], 0.1, what="at 2.5") & near(many.share[1.5], 0.5, within=0.4, what="at 1.5") & above(many.share[1.0], 0.9, what="at 1")),
        Claim("figure 3", "the onset of metastability is well below the splitting at 4.5", "1.5 < 4.5", f"{share[2.5]}",
              "the same samples", below(many.share[2.5], 0.2, what="share of samples with several minima at 2.5")),
        Claim("figure 3", "r varies considerably across the minima, especially at small σ", "considerably",
              f"standard deviation {narrow:.3f} at σ = 0.2, {wide:.3f} at 1.3", f"{dots.sizes['start']} random starts on one sample",
              above(narrow, 0.05, what="spread of r at 0.2") & above(narrow - wide, 0.02, what="and more than at 1.3")),
        Claim("figure 3", "the annealed solution is lower in energy than all other minima (N ≥ 500)", "always",
              f"in {exceptions} of {runs} samples some start ends lower at σ = 1, by up to {max(float(lower.max()), 0.0):.1e} in ε",
              "N = 500 (erratum B9)", below(exceptions, 0, what="samples with a lower minimum"),
              below(exceptions / runs, 0.6, what="share of samples") & below(float(lower.max()), LITTLE, what="how far below")),
    ]  # fmt: skip


def _size_claims() -> list[Claim]:
    """Statements on metastability at other sizes."""
    counts, random = {}, {}
    for size in (10, 20, 40):
        found = minima.spectrum(
            mixtures.TwoGaussians(2.0), alpha=1.0, width=0.5, size=size, starts=30, runs=10, key=jax.random.key(5)
        )
        counts[size] = float(found.minima.mean())
    for size in (200, 800):
        found = minima.spectrum(
            mixtures.TwoGaussians(1.0), alpha=1.0, width=[2.8, 3.6], size=size, starts=30, key=jax.random.key(6)
        ).isel(run=0)
        random[size] = [int(n) for n in found.minima]
    return [
        Claim("text", "for α < α_c and large N metastability appears already near the onset of the random phase", "near σ₂ = 4",
              "; ".join(f"N = {size}: {n} minima of 30 starts at σ = 2.8, {m} at 3.6" for size, (n, m) in random.items()),
              "α = 1, u₀ = 1: the onset moves up as N grows",
              above(random[800][0], 2, what="minima at N = 800, σ = 2.8") & above(random[800][0] - random[200][0], 1, what="more than at N = 200 by")),
        Claim("text", "significant metastability begins only for N ≥ 20", "N ≥ 20",
              ", ".join(f"{n:.1f} at N = {size}" for size, n in counts.items()) + " minima of 30 starts", "σ = 0.5, mean over 10 samples",
              above(counts[40] / counts[10], 2, what="minima at N = 40 over those at 10")),
    ]  # fmt: skip


def _crossed(*, quick: bool) -> tuple[int, int]:
    """Pairs of minima whose energies cross as the width falls from 0.7 to 0.35 on several samples, and all pairs."""
    path = minima.follow(
        mixtures.TwoGaussians(2.0), from_width=0.7, width=np.geomspace(0.35, 0.7, 10), alpha=1.0, size=500,
        starts=10 if quick else 20, runs=4 if quick else 10, key=jax.random.key(9),
    )  # fmt: skip
    energies = path.energy.transpose("run", "width", "start").values
    starts = energies.shape[2]
    return sum(crossings(one) for one in energies), len(energies) * starts * (starts - 1) // 2


def _followed_claims(figure: Figure, crossed: tuple[int, int]) -> list[Claim]:
    """Statements on figure 4."""
    path = figure.data["minima"]
    up, down = path.sel(width=path.width > 0.7), path.sel(width=path.width < 0.7)
    above_it = path.energy - path.annealed_energy
    starts, (many, pairs) = path.sizes["start"], crossed
    jumps_down, jumps_up, left = int(down.jump.sum()), int(up.jump.sum()), float(above_it[-1].max())
    return [
        Claim("figure 4", "minima vary smoothly as σ decreases", "smoothly", f"{jumps_down} jumps of {starts} minima", "a step that cannot be undone is a jump",
              below(jumps_down, 0, what="jumps"), below(jumps_down / starts, 0.2, what="jumps of a minimum")),
        Claim("figure 4", "as σ increases minima disappear and jump to others", "discontinuously",
              f"{jumps_up} jumps; at σ = {float(path.width[-1]):.1f} the energies are within {left:.0e}", "the same, upwards from σ = 0.7",
              above(jumps_up, 1, what="jumps") & below(left, 1e-5, what="energies at the end")),
        Claim("figure 4", "energies of two existing minima never cross as σ decreases (N ≥ 500)", "never",
              f"{many} of {pairs} pairs cross between σ = 0.7 and 0.35", "several samples at N = 500 (erratum B9)",
              below(many, 0, what="pairs that cross"), below(many / pairs, 0.2, what="share of pairs that cross")),
        Claim("figure 4, caption", "the upper line is the annealed solution", "upper",
              f"minima lie up to {float(above_it.max()):.1e} above it, and none more than {max(float(-above_it.min()), 0.0):.1e} below",
              "the text says lowest; the caption fits an axis of -E (erratum B8)",
              below(float(above_it.max()), SAME, what="highest minimum above it"), above(float(above_it.min()), -LITTLE, what="lowest minimum above it")),
    ]  # fmt: skip


def crossings(energies: np.ndarray) -> int:
    """Pairs of lines `[widths, lines]` whose order changes."""
    gaps = energies[:, :, None] - energies[:, None, :]
    sure = np.where(np.abs(gaps) > SAME, np.sign(gaps), 0)
    changed = (sure.max(axis=0) > 0) & (sure.min(axis=0) < 0)
    return int(np.triu(changed, 1).sum())


def _print_claims() -> list[Claim]:
    """Printed equations, each against the check that its erratum names."""
    lost, mean, chance = printed.lost_to_the_mean(), printed.centre_of_mass(), printed.error_of_chance()
    units, constant = printed.change_of_units(), printed.energy_left_out()
    return [
        Claim("equations (6), (8)", "the energy and the iteration of the splitting vector", "S as it is", "S with the mean taken away",
              f"to the letter {lost.printed:.0%} of 20 runs find the mean of the centres instead, with centred data {lost.centred:.0%} (erratum B1)",
              below(lost.printed, 0.1, what="runs lost to the mean"), below(lost.centred, 0.1, what="runs lost to the mean")),
        Claim("equation (7)", "Ū = S̄ for all σ and α", "S̄", "S̄ - m ΔU, m = mean of tanh, of order N^-1/2",
              f"EM to the end at N = 60: {mean.printed:.1e} away from S̄, {mean.used:.1e} from the other (erratum B2)",
              below(mean.printed, SAME, what="distance from S̄"), below(mean.used, SAME, what="distance")),
        Claim("equation (9)", "H(x) with dt/(2π)", f"error {chance.printed:.3f} without a direction", f"dt/√(2π): {chance.used:.3f}",
              f"counted with an arbitrary direction: {chance.counted:.4f} ± {chance.stderr:.4f} (erratum B3)",
              near(chance.counted, chance.printed, within=0.02, stderr=chance.stderr), near(chance.counted, chance.used, within=0.02, stderr=chance.stderr)),
        Claim("equation (10)", "q = σ₀ |ΔU|², r = u₀⁻¹ ΔU·ΔU⁰", "as printed", "q = |ΔU|²/σ₀, r = ΔU·ΔU⁰/(u₀σ₀)",
              f"order parameters have no unit: with data in a unit ten times smaller q changes by {units.printed:.3g} as printed, by {units.used:.3g} as used (erratum B4)",
              near(units.printed, 1.0, within=SAME, what="factor"), near(units.used, 1.0, within=SAME, what="factor")),
        Claim("equation (5)", "the energy to leading order", "-", "one more constant, P u₀²σ₀/2σ",
              f"left out for each example: {constant.measured:.3f} ± {constant.stderr:.3f}; the constant is {constant.term:.3f} (erratum B11)",
              near(constant.measured, 0.0, within=0.1, stderr=constant.stderr, what="left out"),
              near(constant.measured, constant.term, within=0.1, stderr=constant.stderr, what="left out") & apart(constant.term, 0.0, by=0.2)),
        Claim("text on figure 2", "\"For other values of α.\"", "sentence cut off", "σ₀ < σ_opt < σ₁ at every α tried",
              "the sentence is incomplete in the text at hand; theory (erratum B12)"),
    ]  # fmt: skip
