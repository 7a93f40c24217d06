r"""Where learning ends: rest states at finite rate, and all of them in the small-rate limit.

At finite rate the flow is followed to rest (`asymptote`). As $\eta \to 0$ with $\eta\alpha \to \infty$ the rest
states of two prototypes in two clusters can all be named: *axis* states, both prototypes on the line through the
centres, where the boundary $\theta$ solves one scalar equation; their image with labels swapped (VQ does not see
labels); and the *unspecialised* state, prototypes that differ only in directions without signal. Stability comes from
the eigenvalues of the flow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import optimize
from scipy.special import ndtr

from quenched.core import checks, controls, flow, results
from quenched.core.types import Array, InputError, Outcome, double
from quenched.prototypes.model import (
    LVQ1,
    ORDER_PARAMETERS,
    VQ,
    Law,
    Numbers,
    Rule,
    Schedule,
    Start,
    TwoClusters,
    coordinates,
    numbers,
    shape,
    start_of,
)
from quenched.prototypes.theory import dynamics

SCAN = np.sinh(np.linspace(-4.0, 4.0, 4002))
"""Boundaries tried, in units of the widest cluster; 0 is not among them, since it is exactly the root of LVQ+."""


def _pack(R: Array, Q: Array) -> tuple[Array, Array]:
    """Independent components: R, and the upper triangle of Q."""
    return R, Q[jnp.triu_indices(Q.shape[0])]


def _unpack(y: tuple[Array, Array]) -> tuple[Array, Array]:
    """The overlaps from their independent components."""
    R, upper = y
    K = R.shape[0]
    Q = jnp.zeros((K, K)).at[jnp.triu_indices(K)].set(upper)
    return R, Q + Q.T - jnp.diag(jnp.diagonal(Q))


def _finite_rate(t: Array, y: Any, n: Numbers) -> Any:
    return _pack(*dynamics.drift(n, n.rate, *_unpack(y), all_move=False))


def _small_rate(t: Array, y: Any, n: Numbers) -> Any:
    return _pack(*dynamics.drift(n, 1.0, *_unpack(y), all_move=False, noise=False))


_settle_finite = jax.jit(lambda n, y: flow.settle(_finite_rate, y, n))
_settle_small = jax.jit(lambda n, y: flow.settle(_small_rate, y, n, horizon=2e4))
_rest_small = jax.jit(lambda n, y: flow.rest_near(_small_rate, y, n))
_error = jax.jit(dynamics.error_of)


@double
def asymptote(
    law: Law, rule: Rule, *, small_rate: bool = False, start: Start | None = None, **sweep: Any
) -> xr.Dataset:
    r"""What is learned from unlimited examples.

    Args:
        law: the world.
        rule: the student, with a constant rate.
        small_rate: False: the state in which the flow at the rule's rate comes to rest. True: all rest states for
            $\eta \to 0$, $\eta\alpha \to \infty$ (two prototypes in `TwoClusters`), or the one that is reached from
            `start`.
        start: where the prototypes begin; `NearOrigin()` by default. With `small_rate` it is only for other worlds.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `R`, `Q`, `error`, `outcome`, and `growth` (the largest real part of the flow's eigenvalues: negative is
        stable). With `small_rate` in `TwoClusters` a dimension `state` lists the states `axis`, `other` (VQ: labels
        swapped; LVQ1: a second, unstable axis state) and `unspecialised`; one that does not exist has the outcome
        `absent`. What diverges has the outcome `diverged`.
    """
    shape(law, rule)
    start, small_rate = start_of(start), checks.flag("small_rate", small_rate)
    if isinstance(rule.rate, Schedule):
        raise InputError("Argument `rate` must be constant for an asymptote, but a schedule was given.")
    plan = controls.expand(law, rule, sweep)
    listed = small_rate and isinstance(law, TwoClusters) and len(rule.prototypes(law)) == 2 and not rule.all_move
    found = []
    for one_law, one_rule in zip(plan.laws, plan.rules, strict=True):
        if listed:
            found.append(_all_small_rate(one_law, one_rule))
        else:
            found.append([_follow(one_law, one_rule, start, small_rate)])
    values = {
        name: np.stack([np.stack([getattr(s, name) for s in states]) for states in found]) for name in Resting._fields
    }
    axes = {"state": np.array(STATES if listed else ("reached",))}
    result = results.assemble(
        values, plan, axes, ORDER_PARAMETERS, coordinates(law, rule),
        science="prototypes", source="theory", small_rate=int(small_rate),
    )  # fmt: skip
    return result if listed else result.isel(state=0, drop=True)


class Resting(NamedTuple):
    """One rest state in numbers."""

    R: np.ndarray
    Q: np.ndarray
    error: np.ndarray
    growth: np.ndarray
    outcome: np.ndarray


STATES = ("axis", "other", "unspecialised")


def _resting(law: Law, rule: Rule, rest: flow.Rest) -> Resting:
    R, Q = _unpack(rest.state)
    growth = np.asarray(rest.growth)
    return Resting(
        np.asarray(R), np.asarray(Q), np.asarray(_error(numbers(law, rule), R, Q)), growth, np.asarray(rest.outcome)
    )


def _absent(law: Law, rule: Rule) -> Resting:
    """A state that does not exist."""
    K, M = shape(law, rule)
    nan = np.asarray(np.nan)
    return Resting(np.full((K, M), np.nan), np.full((K, K), np.nan), nan, nan, np.asarray(int(Outcome.absent)))


def _follow(law: Law, rule: Rule, start: Start, small_rate: bool) -> Resting:
    """The rest state that a start leads to."""
    if rule.all_move:
        return _lvq21(law, rule)
    begin = _pack(*start.overlaps(*shape(law, rule)))
    return _resting(law, rule, (_settle_small if small_rate else _settle_finite)(numbers(law, rule), begin))


def _lvq21(law: Law, rule: Rule) -> Resting:
    r"""LVQ2.1 never rests: one prototype runs away as $e^{\eta|\gamma|\alpha}$, or both do if the priors are equal."""
    mix = law.mixture()
    sign = np.asarray(rule.table(law))[0]
    gamma = float(np.sum(np.asarray(mix.p) * sign))
    error = min((1 + gamma) / 2, (1 - gamma) / 2)
    if gamma == 0:  # both run away along B_+ - B_-, and the boundary between them stays where it is
        error = np.nan
        if isinstance(law, TwoClusters) and law.variances[0] == law.variances[1]:
            error = optimum(law)
    absent = _absent(law, rule)
    growth = np.asarray(float(rule.rate) * abs(gamma))
    return absent._replace(error=np.asarray(error), growth=growth, outcome=np.asarray(int(Outcome.diverged)))


def _all_small_rate(law: TwoClusters, rule: Rule) -> list[Resting]:
    """The axis state, its image with labels swapped, and the unspecialised state."""
    roots = axis_states(law, rule)
    found = [_rest_at(law, rule, R) for R in roots]
    stable = [s for s in found if s.growth < 0]
    axis = (stable or found or [_absent(law, rule)])[0]
    other, unspecialised = _absent(law, rule), _absent(law, rule)
    if isinstance(rule, VQ):
        other = _rest_at(law, rule, axis.R[::-1])
        unspecialised = _rest_at(law, rule, *unspecialised_overlaps(law, 0.0))
    elif len(found) > 1:
        other = next(s for s in found if s is not axis)
    if isinstance(rule, LVQ1) and law.prior != 0.5 and law.variances[0] == law.variances[1]:
        unspecialised = _rest_at(law, rule, *_unspecialised_lvq1(law))
    return [axis, other, unspecialised]


def _rest_at(law: Law, rule: Rule, R: np.ndarray, Q: np.ndarray | None = None) -> Resting:
    """The small-rate rest state at given overlaps; without Q, prototypes in the plane of the centres."""
    begin = _pack(jnp.asarray(R), jnp.asarray(R @ R.T if Q is None else Q))
    return _resting(law, rule, _rest_small(numbers(law, rule), begin))


def _unspecialised_lvq1(law: TwoClusters) -> tuple[np.ndarray, np.ndarray]:
    r"""LVQ1's unstable state off the axis: $R_{Ss} = \lambda s p_s/(p_+ - p_-)$, $D = 8v/\pi$."""
    p = np.array([law.prior, law.prior - 1])  # s p_s
    R = np.tile(float(law.separation) * p / p.sum(), (2, 1))
    return R, R @ R.T + 2 * law.variances[0] / np.pi * np.array([[1.0, -1.0], [-1.0, 1.0]])


def _pdf(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.square(x) / 2) / np.sqrt(2 * np.pi)


def _positions(n: Numbers, lam: float, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""$x_\pm(\theta)$: where the drift of each prototype vanishes when the boundary is at $\theta$, shape `[2, ...]`.

    $$x_S = \frac{\sum_k p_k g_{Sk} [m_k \Phi(t) + S\sqrt{v_k}\,\varphi(t)]}{\sum_k p_k g_{Sk} \Phi(t)},\quad
    t = S(m_k - \theta)/\sqrt{v_k}$$

    on the axis $(B_+ - B_-)/\sqrt2$ from the mid-point, $m_\pm = \pm\lambda/\sqrt2$. Also the denominators.
    """
    sd = np.sqrt(n.v)
    m = np.array([1.0, -1.0]) * lam / np.sqrt(2)
    S = np.array([1.0, -1.0]).reshape(2, *[1] * (np.ndim(theta) + 1))
    t = S * (m - np.asarray(theta)[..., None]) / sd
    weight = n.p * np.reshape(n.g, (2, *[1] * np.ndim(theta), 2))
    bottom = np.sum(weight * ndtr(t), axis=-1)
    top = np.sum(weight * (m * ndtr(t) + S * sd * _pdf(t)), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):  # a pole: not a solution, and recognised as such
        return top / bottom, bottom


@double
def axis_states(law: TwoClusters, rule: Rule) -> list[np.ndarray]:
    r"""All rest states on the line through the centres as $\eta \to 0$: overlaps `R` `[2, 2]`, attractive ones first.

    The boundary solves $\theta = (x_+(\theta) + x_-(\theta))/2$; sign changes at poles of $x_\pm$ are not solutions.
    """
    n, lam = jax.tree.map(np.asarray, numbers(law, rule)), float(law.separation)

    def mismatch(theta: Any) -> np.ndarray:
        return np.asarray(theta) - _positions(n, lam, np.asarray(theta, float))[0].mean(axis=0)

    grid = SCAN * np.sqrt(n.v.max())
    values = mismatch(grid)
    roots = []
    for i in np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0):
        bracket = optimize.root_scalar(lambda t: float(mismatch(t)), bracket=grid[i : i + 2], xtol=1e-15, rtol=1e-14)
        theta = float(bracket.root)
        x, bottom = _positions(n, lam, np.asarray(theta))
        if abs(float(mismatch(theta))) < 1e-8 * max(1.0, abs(theta)) and x[0] > x[1]:
            roots.append((bool(np.all(bottom > 0)), x))
    roots.sort(key=lambda root: not root[0])
    side = np.array([1.0, -1.0]) / np.sqrt(2)
    return [lam / 2 + x[:, None] * side for _, x in roots]


def unspecialised_overlaps(law: TwoClusters, rate: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Overlaps of the unspecialised state of VQ, in closed form.

    $$R_{Ss} = \lambda p_s,\quad \sqrt D = 2\bar\varphi + \sqrt{4\bar\varphi^2 + \eta\bar v},\quad
    \bar\varphi = \sum_s p_s\sqrt{v_s}/\sqrt{2\pi},\ \bar v = \sum_s p_s v_s$$

    where $D = |w_+ - w_-|^2$.
    """
    mix = law.mixture()
    p, v, lam = np.asarray(mix.p), np.asarray(mix.v), float(law.separation)
    edge, spread = np.sum(p * np.sqrt(v)) / np.sqrt(2 * np.pi), np.sum(p * v)
    D = (2 * edge + np.sqrt(4 * edge**2 + rate * spread)) ** 2
    R = np.tile(lam * p, (2, 1))
    common = lam**2 * np.sum(p**2) + rate * spread / 4  # mean of the entries of Q: (w_+ + w_-)^2 / 4
    return R, common + D / 4 * np.array([[1.0, -1.0], [-1.0, 1.0]])


@double
def escape_rate(law: TwoClusters, rule: Rule) -> float:
    r"""How fast VQ leaves the unspecialised state: small differences grow as $e^{\kappa\alpha}$.

    For $v_\pm = 1$ it is $\kappa = \eta\,[2\varphi_0(1 + 2\lambda^2 p_+p_-)/\sqrt D - \tfrac12]$ with
    $\varphi_0 = 1/\sqrt{2\pi}$, per unit of $\alpha$; in general the largest eigenvalue of the flow there among
    perturbations that are odd under the exchange of the prototypes. Negative: VQ never specialises from a small
    perturbation.
    """
    if not isinstance(law, TwoClusters) or not isinstance(rule, VQ) or isinstance(rule.rate, Schedule):
        raise InputError("The escape rate must be asked for `TwoClusters` and `VQ` with a constant rate, "
                         f"but {type(law).__name__} and {type(rule).__name__} were given.")  # fmt: skip
    R, Q = unspecialised_overlaps(law, float(rule.rate))
    n, sign = numbers(law, rule), np.array([1.0, -1.0])

    def odd(y: Array) -> Array:
        """Move the prototypes apart by y = (difference of R, difference of norms), return the drift of the same."""
        apart = jnp.asarray(R) + sign[:, None] * y[:2] / 2, jnp.asarray(Q) + jnp.diag(sign * y[2] / 2)
        dR, dQ = dynamics.drift(n, n.rate, *apart, all_move=False)
        return jnp.append(dR[0] - dR[1], dQ[0, 0] - dQ[1, 1])

    return float(np.max(np.linalg.eigvals(np.asarray(jax.jacfwd(odd)(jnp.zeros(3)))).real))


@double
def optimum(law: TwoClusters) -> float:
    r"""The lowest error of any flat boundary across the line through the centres.

    For $v_+ = v_-$ it is the Bayes error, $p_+\Phi(-d/2 - L/d) + p_-\Phi(-d/2 + L/d)$ with
    $d = \sqrt2\lambda/\sqrt v$, $L = \ln(p_+/p_-)$. For unequal variances the Bayes error itself goes to 0 as
    $N \to \infty$ (the length of an example tells its class), so the best flat boundary is the yardstick.
    """
    checks.kind("law", law, TwoClusters, "a TwoClusters law")
    p = np.array([float(law.prior), 1 - float(law.prior)])
    v = np.asarray(law.variances, float)
    m = np.array([1.0, -1.0]) * float(law.separation) / np.sqrt(2)
    # the densities p_s N(theta; m_s, v_s) are equal where this quadratic vanishes
    square = (1 / v[1] - 1 / v[0]) / 2
    linear = m[0] / v[0] - m[1] / v[1]
    constant = (m[1] ** 2 / v[1] - m[0] ** 2 / v[0]) / 2 + np.log(p[0] / p[1]) - np.log(v[0] / v[1]) / 2
    roots = np.roots([square, linear, constant]) if square else np.array([-constant / linear] if linear else [])
    theta = np.append(np.real(roots[np.abs(np.imag(roots)) < 1e-12]), [-np.inf, np.inf])
    sd = np.sqrt(v)
    errors = p[0] * ndtr((theta - m[0]) / sd[0]) + p[1] * ndtr((m[1] - theta) / sd[1])
    return float(np.min(errors))
