"""What the paper says, ours beside it, and the numbers that decide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy import optimize, stats
from scipy.special import ndtr

from quenched import prototypes
from quenched.core.claims import Claim, above, agrees, apart, below, near
from quenched.core.figures import Figure, comparison
from quenched.papers.biehl2006.equations import equation_claims
from quenched.papers.biehl2006.figures import ALLOWANCE, FIGURES

LAW = prototypes.TwoClusters(prior=0.8, separation=1.0)
ALPHA = np.linspace(0, 50, 501)


def claims(*, quick: bool = False, figures: Iterable[Figure] = ()) -> tuple[Claim, ...]:
    """Every number and statement of the paper that can be checked, ours beside it.

    Args:
        quick: fewer runs, as for the figures.
        figures: figures computed already, which need not be computed again.
    """
    known = {figure.key.split("/")[1]: figure for figure in figures}
    fig2, left, right = (known.get(name) or FIGURES[name](quick=quick) for name in list(FIGURES)[1:])
    return (*_theory_claims(fig2, left), *_dynamics_claims(fig2, left), *_asymptotic_claims(right), *_optimum_claims(),
            *_quantisation_claims(), *equation_claims(fig2), *_open_claims(left))  # fmt: skip


def _theory_claims(fig2: Figure, left: Figure) -> list[Claim]:
    """Theory against simulation, and the limit of large dimension."""
    found = []
    for figure, where in ((fig2, "section 3, figure 2"), (left, "figure 3, left")):
        for name, one in figure.agreement.items():
            words = ("Monte Carlo at N = 200 is in excellent agreement with the theory", "excellent")
            words = words if figure is fig2 else (f"the learning curve of {name}", "theory alone")
            found.append(Claim(
                where, *words, f"p {one.chance}, largest deviation {one.largest:.1f} standard errors beyond {ALLOWANCE}",
                f"joint test over all overlaps and the error, {one.runs} runs", agrees(one),
                rests_on=comparison(figure, name), own=figure is not fig2))  # fmt: skip
    sizes = np.array([50, 200, 800])
    spread = []
    for size in sizes:
        points = prototypes.measure(
            LAW, prototypes.LVQ1(0.2), alpha=5.0, size=int(size), runs=400, key=jax.random.key(4),
            simulator=prototypes.Chain(), tests=1,
        )  # fmt: skip
        spread.append(float(points.R_run.sel(prototype=1, cluster=1).std("run", ddof=1)))
    slope = float(np.polyfit(np.log(sizes), np.log(spread), 1)[0])
    found.append(Claim(
        "section 3", "the overlaps are self-averaging: their spread over runs vanishes as N grows", "vanishes",
        f"spread of R₊₊ at α = 5 falls as N^{slope:.2f}", "400 runs at N = 50, 200, 800; N^-1/2 expected",
        near(slope, -0.5, within=0.1, what="exponent")))  # fmt: skip
    return found


def _dynamics_claims(fig2: Figure, left: Figure) -> list[Claim]:
    """Statements of section 4.1."""
    kappa = prototypes.escape_rate(LAW, prototypes.VQ(0.2))
    R, _ = prototypes.theory.unspecialised_overlaps(LAW, 0.2)
    lvq1 = fig2.data["theory"].error
    early = lvq1.sel(alpha=slice(0, 10))
    low = float(early.alpha.values[np.argmin(early.values)])
    after = lvq1.sel(alpha=slice(low, 50))
    start, vq = {name: left.data[f"{name} theory"].error for name in ("LVQ1", "VQ")}.values()
    passed = [float(one.alpha[np.argmax(one.values < 0.4)]) for one in (start, vq)]
    fallen = [0.5 - float(one.sel(alpha=10.0)) for one in (start, vq)]
    late = {}
    for prior in (0.5, 0.8):
        law = prototypes.TwoClusters(prior=prior, separation=1.0)
        rules = (prototypes.LVQ1(0.2), prototypes.LVQPlus(0.2))
        late[prior] = [float(prototypes.curve(law, rule, alpha=ALPHA).error[-1]) for rule in rules]
    gap = {prior: plus - one for prior, (one, plus) in late.items()}
    rises = prototypes.curve(LAW, prototypes.LVQ1(0.2), alpha=np.linspace(0, 200, 501), prior=[0.6, 0.8, 0.9],
                             separation=[0.5, 1.0, 1.5])  # fmt: skip
    rise = _rise(rises.error)
    by_prior, by_separation = rise.sel(separation=1.0).values, rise.sel(prior=0.8).values
    return [
        Claim("section 4.1", "VQ: a weakly repulsive fixed point in which all R are equal", "all R equal",
              f"R₊ₛ = R₋ₛ = λpₛ (equal prototypes, but R differs between clusters unless p₊ = p₋); it repels as exp({kappa:.3f} α)",
              "closed form and eigenvalue of the flow; p₊ = 0.8, λ = 1, η = 0.2",
              below(np.ptp(R), 0.01, what="spread of all R"),
              below(np.max(np.ptp(R, axis=0)), 1e-9, what="difference of the prototypes") & above(kappa, 0.0, what="κ")
              & below(kappa, 0.2 / 2, what="κ (weak: below η/2)")),
        Claim("section 4.1", "VQ: a very slow initial decrease of the error", "very slow",
              f"error 0.4 is passed at α = {passed[1]:.0f}, by LVQ1 at α = {passed[0]:.1f}",
              "theory, p₊ = 0.8, λ = 1, η = 0.2, start as in figure 3",
              above(passed[1] / passed[0], 10.0, what="ratio of the times")
              & below(fallen[1] / fallen[0], 0.1, what="ratio of what is gained by α = 10")),
        Claim("section 4.1", "LVQ1: fast initial decrease, then non-monotonic", "seen in figure 3",
              f"error {float(early.min()):.3f} at α = {low:.1f}, up to {float(after.max()):.3f}, then {float(lvq1[-1]):.3f} at α = 50",
              "theory, p₊ = 0.8, λ = 1, η = 0.2",
              below(lvq1.sel(alpha=1.0), 0.35, what="error at α = 1") & above(after.max() - early.min(), 0.01, what="rise")),
        Claim("section 4.1", "LVQ1: the non-monotonic behaviour is pronounced for very different priors", "pronounced",
              f"the error rises by {by_prior[0]:.4f}, {by_prior[1]:.4f}, {by_prior[2]:.4f} at p₊ = 0.6, 0.8, 0.9",
              "theory, λ = 1, η = 0.2, to α = 200", above(np.diff(by_prior).min(), 0.005, what="growth of the rise with p₊")),
        Claim("section 4.1", "LVQ1: and for strongly overlapping clusters", "small λ",
              f"the error rises by {by_separation[0]:.4f}, {by_separation[1]:.4f}, {by_separation[2]:.4f} at λ = 0.5, 1, 1.5: more for larger λ",
              "theory, p₊ = 0.8, η = 0.2, to α = 200 (erratum P22)", below(np.diff(by_separation).max(), 0.0, what="growth of the rise with λ"),
              above(np.diff(by_separation).min(), 0.002, what="growth of the rise with λ")),
        Claim("section 4.1", "LVQ+ is significantly worse than LVQ1 unless the priors are equal", "significantly larger",
              f"by {gap[0.8]:.3f} at p₊ = 0.8, by {gap[0.5]:.4f} at p₊ = 0.5", "theory at α = 50, λ = 1, η = 0.2",
              above(gap[0.8], 0.02, what="at p₊ = 0.8") & below(gap[0.5], 0.005, what="at p₊ = 0.5")),
    ]  # fmt: skip


def _rise(error: xr.DataArray) -> xr.DataArray:
    """By how much an error rises above a value that it had before, at most."""
    values = error.transpose(..., "alpha").values
    lowest = np.minimum.accumulate(values, axis=-1)
    return error.isel(alpha=0, drop=True).copy(data=np.max(values - lowest, axis=-1))


def _class_errors(state: xr.Dataset, separation: float) -> tuple[float, float]:
    """The share of each class on the wrong side of the boundary half-way between two prototypes, unit variance."""
    R, Q = state.R.values, state.Q.values
    norms, D = np.diagonal(Q), Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
    x = 2 * separation * (np.diagonal(R) - np.diagonal(R[::-1])) - (norms - norms[::-1])
    first, second = ndtr(-x / (2 * np.sqrt(D)))
    return float(first), float(second)


def _minmax(separation: float) -> float:
    """The lowest error of a flat boundary in the worst case of all priors, unit variance."""
    m = separation / np.sqrt(2)
    worst = lambda t: max(ndtr(t - m), ndtr(-m - t))  # noqa: E731
    found: Any = optimize.minimize_scalar(worst, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10})
    return float(found.fun)


def _asymptotic_claims(figure: Figure) -> list[Claim]:
    """Statements of section 4.2, at separation 1.2 as in figure 3 (right)."""
    lam = 1.2
    rest = {name: figure.data[name].sel(state="axis") for name in ("LVQ1", "LVQ+", "VQ")}
    prior = rest["LVQ1"].prior.values
    best = prototypes.optimum(prototypes.TwoClusters(separation=lam), prior=prior).error.values
    excess = rest["LVQ1"].error.values - best
    plus, vq = rest["LVQ+"].error.values, rest["VQ"].error.values
    middle = rest["LVQ+"].R.isel(prior=5).sum("prototype").values / 2
    half = int(np.argmin(np.abs(prior - 0.5)))
    extreme = prototypes.asymptote(prototypes.TwoClusters(1e-4, lam), prototypes.VQ(), small_rate=True).sel(
        state="axis"
    )
    wrong = {name: _class_errors(rest[name].isel(prior=5), lam) for name in ("LVQ+", "LVQ1")}
    exceeds = plus - np.minimum(prior, 1 - prior)
    bound = _minmax(lam)
    return [
        Claim("section 4.2", "LVQ1 is very close to optimal for all priors", "very close",
              f"excess at most {excess.max():.4f} (at p₊ = {min(prior[excess.argmax()], 1 - prior[excess.argmax()]):.2f})",
              f"small-rate rest state against the Bayes error, {prior.size} priors", below(excess.max(), 0.02, what="excess")),
        Claim("section 4.2", "LVQ+: the asymptotic error does not depend on the prior", "independent",
              f"{plus.min():.5f} to {plus.max():.5f}",
              "equal variances; with unequal ones the prototypes are independent of the prior, the error is not",
              below(np.ptp(plus), 1e-6, what="spread over priors")),
        Claim("figure 3", "LVQ+ can exceed min(p₊, p₋)", "can exceed",
              f"it does for p₊ or p₋ below {plus[0]:.3f}, by up to {exceeds.max():.3f}", "Φ(-λ/√2) against min(p₊, p₋)",
              above(exceeds.max(), 0.01, what="largest difference")),
        Claim("section 4.2", "LVQ+: prototypes symmetric about λ(B₊ + B₋)", "λ(B₊ + B₋)",
              f"their mid-point has overlaps {middle[0]:.3f}, {middle[1]:.3f} = λ/2: about λ(B₊ + B₋)/2",
              "small-rate rest state (erratum P17)", near(middle[0], lam, within=0.01, what="overlap of the mid-point"),
              near(middle[0], lam / 2, within=1e-6, what="overlap of the mid-point")
              & near(middle[1], lam / 2, within=1e-6, what="the other one")),
        Claim("section 4.2", "VQ: error 1/2 in the limits p₊ = 0 or 1", "1/2",
              f"{float(extreme.error):.4f} at p₊ = 0.0001, {vq[0]:.3f} at 0.02, {vq[half]:.3f} at 0.5",
              "small-rate rest state; the limit is approached slowly", near(extreme.error, 0.5, within=0.001, what="error at p₊ = 0.0001")),
        Claim("section 4.2", "VQ is optimal at equal priors", "optimal",
              f"excess {abs(vq[half] - best[half]):.0e} as η → 0", "true in the small-rate limit only",
              below(abs(vq[half] - best[half]), 1e-6, what="excess")),
        Claim("section 4.2", "LVQ+ is optimal in the minmax sense", "sup over priors",
              f"class errors {wrong['LVQ+'][0]:.5f} and {wrong['LVQ+'][1]:.5f}; the worst prior cannot do less harm than "
              f"{bound:.5f} to any flat boundary, and {max(wrong['LVQ1']):.5f} to LVQ1's (p₊ = {prior[5]:.2f} in training)",
              "class errors of the small-rate rest state against the best worst case of all flat boundaries",
              near(max(wrong["LVQ+"]), bound, within=1e-6, what="larger class error")
              & above(max(wrong["LVQ1"]) - bound, 0.01, what="LVQ1 above the bound")),
    ]  # fmt: skip


def _bayes(law: prototypes.TwoClusters, key: Any, size: int, examples: int) -> tuple[float, float, float]:
    """Counted errors of Bayes' rule and of the best plane, and the share of examples on which they differ."""
    X, y = law.sample(key, examples, size=size)
    p, v, lam = np.array([law.prior, 1 - law.prior]), np.array(law.variances), law.separation
    squares = np.sum(X**2, axis=1)
    far = [squares - 2 * lam * X[:, k] + lam**2 for k in range(2)]  # the centres lie in the first axes
    log = [np.log(p[k]) - size / 2 * np.log(v[k]) - far[k] / (2 * v[k]) for k in range(2)]
    bayes = np.where(log[0] > log[1], 1, -1)
    along, m = (X[:, 0] - X[:, 1]) / np.sqrt(2), lam / np.sqrt(2)
    wrong = lambda t: p[0] * ndtr((t - m) / np.sqrt(v[0])) + p[1] * ndtr((-m - t) / np.sqrt(v[1]))  # noqa: E731
    best: Any = optimize.minimize_scalar(wrong, bounds=(-5, 5), method="bounded", options={"xatol": 1e-12})
    plane = np.where(along > best.x, 1, -1)
    return float(np.mean(bayes != y)), float(np.mean(plane != y)), float(np.mean(bayes != plane))


def _optimum_claims() -> list[Claim]:
    """The best decision boundary."""
    equal, unequal = prototypes.TwoClusters(0.7, 1.2), prototypes.TwoClusters(0.6, 1.0, (0.81, 0.25))
    same = _bayes(equal, jax.random.key(5), 50, 20_000)
    other = _bayes(unequal, jax.random.key(6), 50, 20_000)
    best = float(prototypes.optimum(equal).error)
    stderr = np.sqrt(best * (1 - best) / 20_000)
    return [
        Claim("section 4.2", "the best decision boundary is a plane orthogonal to B₊ − B₋", "a plane",
              f"Bayes' rule errs on {same[0]:.4f} of fresh examples, the best plane on {same[1]:.4f}, as computed ({best:.4f})",
              "20,000 examples in 50 dimensions, p₊ = 0.7, λ = 1.2, equal variances",
              below(same[2], 1e-3, what="share decided otherwise") & near(same[0], best, within=4 * stderr, what="counted error")),
        Claim("section 4.2 with the variances of the appendix", "the same for clusters of unequal variances", "a plane",
              f"Bayes' rule errs on {other[0]:.4f}, the best plane on {other[1]:.4f}: the length of an example tells its class",
              "20,000 examples in 50 dimensions, p₊ = 0.6, λ = 1, v = 0.81 and 0.25",
              below(other[2], 1e-3, what="share decided otherwise"), above(other[1] - other[0], 0.05, what="excess of the best plane")),
    ]  # fmt: skip


def _quantisation(state: xr.Dataset, prior: float, separation: float) -> float:
    """The quantisation error (2) of two prototypes less that of a prototype at the origin, unit variance."""
    R, Q, p = state.R.values, state.Q.values, np.array([prior, 1 - prior])
    norms, D = np.diagonal(Q), Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
    u = (2 * separation * (R - R[::-1]) - (norms - norms[::-1])[:, None]) / (2 * np.sqrt(D))
    h = (norms - Q[0, 1])[:, None] / np.sqrt(D) * stats.norm.pdf(u) + separation * R * ndtr(u)
    return float(np.sum(p * (norms[:, None] / 2 * ndtr(u) - h)))


def _quantisation_claims() -> list[Claim]:
    """What VQ minimises."""
    prior, lam = 0.7, 1.2
    law, start = prototypes.TwoClusters(prior, lam), prototypes.Overlaps([[0.3, 0.0], [0.0, 0.3]], 0.1 * np.eye(2))
    rates = [0.4, 0.2, 0.1, 0.05]
    found = prototypes.asymptote(law, prototypes.VQ(), start=start, rate=rates)
    limit = prototypes.asymptote(law, prototypes.VQ(), small_rate=True).sel(state="axis")
    errors = np.array([_quantisation(one, prior, lam) for one in [*(found.sel(rate=r) for r in rates), limit]])

    def of(place: np.ndarray) -> float:
        R = place.reshape(2, 2)
        state = xr.Dataset({"R": (("prototype", "cluster"), R), "Q": (("prototype", "prototype2"), R @ R.T)})
        return _quantisation(state, prior, lam)

    least = float(optimize.minimize(of, limit.R.values.ravel() + np.array([0.3, -0.2, 0.1, 0.2]), tol=1e-10).fun)
    return [
        Claim("sections 2.1 and 4.2", "VQ minimises the quantisation error as η → 0 and ηα → ∞", "minimised",
              f"{', '.join(f'{e:.4f}' for e in errors[:-1])} at rest for η = 0.4, 0.2, 0.1, 0.05, {errors[-1]:.5f} in the limit; "
              f"the minimum is {least:.5f}",
              "p₊ = 0.7, λ = 1.2; minimised over the places of the prototypes, less the error of a prototype at the origin",
              below(np.diff(errors).max(), 0.0, what="change towards smaller rates") & near(errors[-1], least, within=1e-6, what="limit")),
    ]  # fmt: skip


def _open_claims(left: Figure) -> list[Claim]:
    """What the print does not settle."""
    count, total = 240, 400
    chance = {p: float(stats.binom.sf(count - 1, total, p)) for p in (0.4, 0.6)}
    still = prototypes.curve(LAW, prototypes.VQ(0.2), alpha=ALPHA).error
    moving = float(left.data["VQ theory"].error[-1])
    return [
        Claim("figure 1", "p₋ = 0.6 with 240 of 400 points in class +1", "p₊ = 0.4",
              f"so many have probability {chance[0.4]:.0e} at p₊ = 0.4 and {chance[0.6]:.2f} at 0.6: p₊ = 0.6, or the classes are swapped",
              "counting (erratum P19)", above(chance[0.4], 1e-3, what="probability at p₊ = 0.4"),
              above(chance[0.6], 1e-3, what="probability at p₊ = 0.6") & apart(chance[0.6], chance[0.4], by=0.1, what="probability at p₊ = 0.6")),
        Claim("figure 3", "learning curve of VQ", "prior and start not stated",
              f"chosen here: p₊ = 0.8, R₊₊ = R₋₋ = 0.001, error {moving:.3f} at α = 200; from R = 0 it is {float(still.min()):.3f} for ever",
              "the start decides when VQ specialises, and the paper does not say it (erratum P21)"),
    ]  # fmt: skip
