r"""The question: which world the prototypes live in, and by which rule they learn.

Setting: examples $\xi \in \mathbb{R}^N$ come one at a time from $M$ spherical Gaussian clusters with centres
$\lambda_k B_k$, priors $p_k$ and variances $v_k$; $K$ prototypes $w_S$ with labels compete for each example.
The winner (the nearest prototype) moves by $w_S \leftarrow w_S + (\eta/N)\, g(S, \sigma)\, (\xi - w_S)$, where $g$
is the rule: what a prototype of label $S$ does with an example of label $\sigma$.

Order parameters: $R_{Sm} = w_S \cdot B_m$ and $Q_{ST} = w_S \cdot w_T$; time is $\alpha$ = examples / $N$.
The limit taken by the theory is $N \to \infty$ at fixed $\alpha$; the simulation has finite $N$.
Nothing here solves or trains. Not covered: clusters that are not spherical, and windows of LVQ2.1.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, system, verbs
from quenched.core.types import Array, InputError, Key, Real, double, is_traced, label_tuple, real, real_tuple, reals


class Mixture(NamedTuple):
    """A law in numbers: what theory and simulation read of it."""

    p: Any  # [M] priors
    lam: Any  # [M] distances of the centres from the origin
    v: Any  # [M] variances
    gram: Any  # [M, M] B_m . B_n
    labels: tuple[int, ...]  # [M] class of each cluster


class Law(checks.Declared):
    """A world of Gaussian clusters. `TwoClusters` is the paper's, `Clusters` the general one."""

    @abc.abstractmethod
    def mixture(self) -> Mixture:
        """The law in numbers."""

    @double
    def sample(self, key: Key, examples: int, *, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw a data set.

        Args:
            key: a JAX key.
            examples: how many examples.
            size: their dimension $N$, at least the number of clusters. The centres lie in the first axes.

        Returns:
            The examples `[examples, size]` and their labels `[examples]`.
        """
        m = self.mixture()
        examples = checks.whole("examples", examples, least=1)
        size = checks.whole("size", size, least=len(m.labels))
        system.require_memory("The examples", 8.0 * examples * size)
        k, xi = _sample(self, jax.random.split(checks.key(key), examples), size)
        return np.asarray(xi), np.asarray(m.labels)[np.asarray(k)]


class TwoClusters(Law):
    r"""Two clusters with orthonormal directions, the world of the paper.

    $$P(\xi) = \sum_{\sigma=\pm1} p_\sigma\, \mathcal N(\xi;\, \lambda B_\sigma,\, v_\sigma I_N)$$

    Attributes:
        prior: $p_+$, the share of class +1.
        separation: $\lambda$, the distance of both centres from the origin.
        variances: $(v_+, v_-)$.

    Examples:
        >>> from quenched import prototypes
        >>> law = prototypes.TwoClusters(prior=0.8, separation=1.0)
    """

    prior: Real = checks.declare(0.5, functools.partial(checks.inside, low=0, high=1))
    separation: Real = checks.declare(1.0, checks.not_negative)
    variances: tuple[Real, Real] = eqx.field(converter=real_tuple, default=(1.0, 1.0))

    def __check_init__(self):
        checks.positive("variances", self.variances)
        if len(self.variances) != 2:
            raise InputError(f"Argument `variances` must be two numbers, but {self.variances} was given.")

    def mixture(self) -> Mixture:
        """The law in numbers; cluster 0 is class +1, cluster 1 is class -1."""
        first, second = np.eye(2)  # products with arrays of NumPy serve numbers and what JAX traces alike
        p, v = self.prior * first + (1 - self.prior) * second, self.variances[0] * first + self.variances[1] * second
        return Mixture(p, self.separation * np.ones(2), v, np.eye(2), (1, -1))


class Clusters(Law):
    r"""$M$ clusters with any arrangement of centres $\lambda_k B_k$.

    Attributes:
        priors: $p_k$, positive, summing to 1.
        labels: the class of each cluster (several clusters may share one).
        separations: $\lambda_k$, one number each; default 1.
        variances: $v_k$; default 1.
        gram: $B_m \cdot B_n$; default orthonormal. Any positive semi-definite matrix will do.
    """

    priors: Any = eqx.field(converter=reals)
    labels: tuple[int, ...] = eqx.field(converter=lambda s: label_tuple(s) or (), static=True)
    separations: Any = eqx.field(converter=reals, default=None)
    variances: Any = eqx.field(converter=reals, default=None)
    gram: Any = eqx.field(converter=reals, default=None)

    def __check_init__(self):
        M = len(self.labels)
        for name, check in (
            ("priors", checks.positive), ("separations", checks.not_negative), ("variances", checks.positive)
        ):  # fmt: skip
            value: Any = getattr(self, name)
            if name == "priors" or value is not None:
                if np.shape(value) != (M,):
                    raise InputError(f"Argument `{name}` must have one number for each of the {M} labels, "
                                     f"but its shape is {np.shape(value)}.")  # fmt: skip
                check(name, value)
        if not is_traced(self.priors) and abs(float(np.sum(self.priors)) - 1) > 1e-9:
            raise InputError(f"Argument `priors` must sum to 1, but it sums to {float(np.sum(self.priors)):g}.")
        if self.gram is not None and not is_traced(self.gram):
            gram = np.asarray(self.gram)
            if gram.shape != (M, M) or not np.allclose(gram, gram.T) or np.linalg.eigvalsh(gram)[0] < -1e-9:
                raise InputError(f"Argument `gram` must be a symmetric positive semi-definite {M} x {M} matrix, "
                                 f"but {gram.tolist()} was given.")  # fmt: skip

    def mixture(self) -> Mixture:
        """The law in numbers."""
        ones, gram = np.ones(len(self.labels)), np.eye(len(self.labels))
        lam, v = (ones if x is None else x for x in (self.separations, self.variances))
        return Mixture(self.priors, lam, v, gram if self.gram is None else self.gram, self.labels)


def draw(key: Key, mix: Mixture | Numbers, centres: Array) -> tuple[Array, Array]:
    """One example: its cluster, and the vector around the `centres` `[M, axes]`."""
    which, noise = jax.random.split(key)
    k = jnp.minimum(jnp.sum(jax.random.uniform(which) > jnp.cumsum(mix.p)), mix.p.shape[0] - 1)
    return k, centres[k] + jnp.sqrt(mix.v[k]) * jax.random.normal(noise, centres.shape[1:])


def place_centres(mix: Mixture | Numbers, axes: int) -> Array:
    r"""The centres $\lambda_k B_k$, shape `[M, axes]`: they lie in the first axes."""
    M = mix.p.shape[0]
    return jnp.zeros((M, axes)).at[:, :M].set(mix.lam[:, None] * frame(mix.gram))


@functools.partial(jax.jit, static_argnames="size")
def _sample(law: Law, keys: Key, size: int) -> tuple[Array, Array]:
    mix = law.mixture()
    return jax.vmap(lambda key: draw(key, mix, place_centres(mix, size)))(keys)


def frame(gram: Array) -> Array:
    """The vectors $B_m$ as rows in $M$ orthonormal axes: the symmetric square root of their Gram matrix."""
    values, vectors = jnp.linalg.eigh(gram)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T


class Schedule(checks.Declared):
    r"""A learning rate that changes with time: $\eta(\alpha)$."""

    @abc.abstractmethod
    def __call__(self, alpha: Real) -> Array:
        r"""The rate at time $\alpha$."""


class Decay(Schedule):
    r"""$\eta(\alpha) = \eta_0 / (1 + \alpha/\tau)$.

    Attributes:
        initial: $\eta_0$.
        time: $\tau$.
    """

    initial: Real = checks.declare(dataclasses.MISSING)
    time: Real = checks.declare(dataclasses.MISSING)

    def __call__(self, alpha: Real) -> Array:
        r"""The rate at time $\alpha$."""
        return jnp.asarray(self.initial / (1 + alpha / self.time))


class Interpolated(Schedule):
    r"""Rates at equally spaced times from 0 to `until`, joined by straight lines, constant afterwards.

    Attributes:
        rates: the values.
        until: the last time.
    """

    rates: Any = eqx.field(converter=reals)
    until: Real = checks.declare(dataclasses.MISSING)

    def __check_init__(self):
        checks.positive("rates", self.rates)
        if np.ndim(self.rates) != 1 or np.shape(self.rates)[0] < 2:
            raise InputError(f"Argument `rates` must be two numbers or more, but {self.rates} was given.")

    def __call__(self, alpha: Real) -> Array:
        r"""The rate at time $\alpha$."""
        rates = jnp.asarray(self.rates)
        return jnp.interp(jnp.asarray(alpha), jnp.linspace(0.0, self.until, rates.shape[0]), rates)


class Rule(eqx.Module):
    r"""How prototypes learn. To add a rule, subclass and say `g`:

        class Cautious(prototypes.Rule):
            def g(self, S, sigma):
                return jnp.where(S == sigma, 1.0, -0.5)

    Attributes:
        rate: $\eta$, a number or a `Schedule`.
        labels: the label of each prototype; default one for each class of the law.
    """

    rate: Any = eqx.field(converter=real, default=0.1)
    labels: tuple[int, ...] | None = eqx.field(converter=label_tuple, static=True, default=None)
    all_move: ClassVar[bool] = False

    def __check_init__(self):
        if not isinstance(self.rate, Schedule):
            checks.positive("rate", self.rate)
        if self.labels is not None and len(self.labels) < 2:
            raise InputError(f"Argument `labels` must name at least two prototypes, but {self.labels} was given.")

    @abc.abstractmethod
    def g(self, S: Any, sigma: Any) -> Any:
        """The sign and strength with which a prototype of label `S` moves towards an example of label `sigma`."""

    def prototypes(self, law: Law) -> tuple[int, ...]:
        """The labels of the prototypes in this world."""
        return tuple(dict.fromkeys(law.mixture().labels)) if self.labels is None else self.labels


class LVQ1(Rule):
    r"""Kohonen's rule: the winner moves towards its own class and away from others, $g = S\sigma$."""

    def g(self, S: Any, sigma: Any) -> Any:
        """+1 for the own class, -1 otherwise."""
        return 2.0 * (S == sigma) - 1.0


class LVQPlus(Rule):
    r"""The winner learns from its own class only, $g = \Theta(S\sigma)$."""

    def g(self, S: Any, sigma: Any) -> Any:
        """1 for the own class, 0 otherwise."""
        return 1.0 * (S == sigma)


class VQ(Rule):
    r"""Unsupervised vector quantisation: the winner moves towards every example, $g = 1$."""

    def g(self, S: Any, sigma: Any) -> Any:
        """1 whatever the labels."""
        return np.ones(np.broadcast_shapes(np.shape(S), np.shape(sigma)))


class LVQ21(Rule):
    r"""LVQ2.1 without a window: both prototypes move at every example, $g = S\sigma$. Two prototypes only."""

    all_move: ClassVar[bool] = True

    def __check_init__(self):
        if self.labels is not None and len(self.labels) != 2:
            raise InputError(f"Argument `labels` of LVQ21 must name two prototypes, but {self.labels} was given.")

    def g(self, S: Any, sigma: Any) -> Any:
        """+1 for the own class, -1 otherwise."""
        return 2.0 * (S == sigma) - 1.0


class Numbers(NamedTuple):
    """Law and rule as arrays: all that theory and simulation need. Rules of one shape share one compiled program."""

    p: Any  # [M] priors
    lam: Any  # [M] distances of the centres from the origin
    v: Any  # [M] variances
    gram: Any  # [M, M] B_m . B_n
    g: Any  # [K, M] strength of the update
    wrong: Any  # [K, M] 1 where prototype and cluster are of different classes
    rate: Any  # a number or a `Schedule`


def numbers(law: Law, rule: Rule) -> Numbers:
    """Law and rule as arrays."""
    mix = law.mixture()
    S, sigma = np.asarray(rule.prototypes(law))[:, None], np.asarray(mix.labels)[None, :]
    wrong = (S != sigma).astype(float)
    rate = rule.rate if isinstance(rule.rate, Schedule) else rule.rate * np.ones(())
    return Numbers(mix.p, mix.lam, mix.v, mix.gram, rule.g(S, sigma) * np.ones(wrong.shape), wrong, rate)


def rate_at(rate: Any, alpha: Real) -> Array:
    r"""The learning rate at time $\alpha$."""
    return rate(alpha) if isinstance(rate, Schedule) else jnp.asarray(rate)


def count(law: Law, rule: Rule) -> tuple[int, int]:
    """The numbers of prototypes and clusters."""
    return len(rule.prototypes(law)), len(law.mixture().labels)


def check_pair(law: Law, rule: Rule) -> None:
    """Check that dynamics are defined for this number of prototypes."""
    K, _ = count(law, rule)
    if K < 2 or (rule.all_move and K != 2):
        raise InputError(f"There must be two prototypes or more (just two for LVQ2.1), but there are {K}.")


def coordinates(law: Law, rule: Rule) -> dict[str, Any]:
    """Coordinates of the dimensions of the order parameters: labels where they are distinct, otherwise places."""
    found: dict[str, Any] = {}
    for dim, labels in (("prototype", rule.prototypes(law)), ("cluster", law.mixture().labels)):
        distinct = len(set(labels)) == len(labels)
        found[dim] = (dim, np.asarray(labels) if distinct else np.arange(len(labels)))
        found[f"{dim}_label"] = (dim, np.asarray(labels))
    return {**found, "prototype2": ("prototype2", found["prototype"][1])}


SCIENCE = verbs.Science(
    "prototypes",
    laws=(Law, "a law such as TwoClusters()"),
    rules=(Rule, "a rule such as LVQ1(0.1)"),
    reports={"R": ("prototype", "cluster"), "Q": ("prototype", "prototype2"), "error": ()},
    check=check_pair,
    coordinates=coordinates,
    labels={
        "alpha": r"examples per dimension, $\alpha$",
        "prior": "prior of class +1, $p_+$",
        "rate": r"learning rate, $\eta$",
        "error": r"generalisation error, $\epsilon_g$",
        "R": "overlap with the centres, $R$",
        "Q": "overlap among prototypes, $Q$",
        "growth": "growth rate of a deviation",
    },
)
"""What the verbs of this science share."""


class Start(checks.Declared):
    """Where the prototypes stand before the first example."""

    @abc.abstractmethod
    def overlaps(self, prototypes: int, clusters: int) -> tuple[Any, Any]:
        """`R` of shape `[K, M]` and `Q` of shape `[K, K]`."""


class NearOrigin(Start):
    """Orthogonal to each other and to the centres, of squared length `norm`: no prior knowledge.

    Attributes:
        norm: $Q_{SS}$, not zero (prototypes that coincide have no winner).
    """

    norm: Real = checks.declare(1e-4)

    def overlaps(self, prototypes: int, clusters: int) -> tuple[Any, Any]:
        """`R` = 0, `Q` = `norm` times the identity."""
        return np.zeros((prototypes, clusters)), self.norm * np.eye(prototypes)


class Overlaps(Start):
    """Given overlaps.

    Attributes:
        R: $w_S . B_m$, shape `[K, M]`.
        Q: $w_S . w_T$, shape `[K, K]`, symmetric.
    """

    R: Any = eqx.field(converter=reals)
    Q: Any = eqx.field(converter=reals)

    def __check_init__(self):
        checks.finite("R", self.R)
        checks.finite("Q", self.Q)
        K = np.shape(self.R)[0] if np.ndim(self.R) == 2 else -1
        if np.shape(self.Q) != (K, K):
            raise InputError(f"Arguments `R` and `Q` must have shapes [K, M] and [K, K], "
                             f"but they are {np.shape(self.R)} and {np.shape(self.Q)}.")  # fmt: skip

    def overlaps(self, prototypes: int, clusters: int) -> tuple[Any, Any]:
        """`R` and `Q` as given, if they have the asked shape."""
        if np.shape(self.R) != (prototypes, clusters):
            raise InputError(f"Argument `start` must have R of shape {(prototypes, clusters)}, "
                             f"but it has {np.shape(self.R)}.")  # fmt: skip
        return self.R, self.Q


def start_of(start: Any) -> Start:
    """The start that was asked for, by default `NearOrigin()`."""
    start = NearOrigin() if start is None else start
    checks.kind("start", start, Start, "a start such as NearOrigin()")
    return start
