"""Worlds: Gaussian clusters at rest, or with directions that turn in time."""

from __future__ import annotations

import abc
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, system
from quenched.core.types import Array, InputError, Key, Real, double, is_traced, label_tuple, real_tuple, reals


class Mixture(NamedTuple):
    """A law in numbers: what theory and simulation read of it."""

    p: Any  # [M] priors
    lam: Any  # [M] distances of the centres from the origin
    v: Any  # [M] variances
    gram: Any  # [M, M] B_m . B_n
    labels: tuple[int, ...]  # [M] class of each cluster
    drift: Any = 0.0  # how fast the directions of the centres turn


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
            size: their dimension $N$, at least the number of clusters. The centres lie in the first axes, and
                with a drift start from there: each example is drawn after they have moved.

        Returns:
            The examples `[examples, size]` and their labels `[examples]`.
        """
        m = self.mixture()
        examples = checks.whole("examples", examples, least=1)
        size = checks.whole("size", size, least=len(m.labels))
        system.require_memory("The examples", 8.0 * examples * size)
        keys = jax.random.split(checks.key(key), examples)
        check_drift(m.drift, size)
        k, xi = (_sample_drifting if np.any(np.asarray(m.drift) > 0) else _sample)(self, keys, size)
        return np.asarray(xi), np.asarray(m.labels)[np.asarray(k)]


class TwoClusters(Law):
    r"""Two clusters with orthonormal directions, the world of the paper.

    $$P(\xi) = \sum_{\sigma=\pm1} p_\sigma\, \mathcal N(\xi;\, \lambda B_\sigma,\, v_\sigma I_N)$$

    Attributes:
        prior: $p_+$, the share of class +1.
        separation: $\lambda$, the distance of both centres from the origin.
        variances: $(v_+, v_-)$.
        drift: $\delta$, how fast the directions turn: $B(\alpha) \cdot B(\alpha') = e^{-\delta|\alpha - \alpha'|}$ on
            average; see `turn`.

    Examples:
        >>> from quenched import prototypes
        >>> law = prototypes.TwoClusters(prior=0.8, separation=1.0)
    """

    prior: Real = checks.declare(0.5, functools.partial(checks.inside, low=0, high=1))
    separation: Real = checks.declare(1.0, checks.not_negative)
    variances: tuple[Real, Real] = eqx.field(converter=real_tuple, default=(1.0, 1.0))
    drift: Real = checks.declare(0.0, checks.not_negative)

    def __check_init__(self):
        checks.positive("variances", self.variances)
        if len(self.variances) != 2:
            raise InputError(f"Argument `variances` must be two numbers, but {self.variances} was given.")

    def mixture(self) -> Mixture:
        """The law in numbers; cluster 0 is class +1, cluster 1 is class -1."""
        first, second = np.eye(2)  # products with arrays of NumPy serve numbers and what JAX traces alike
        p, v = self.prior * first + (1 - self.prior) * second, self.variances[0] * first + self.variances[1] * second
        return Mixture(p, self.separation * np.ones(2), v, np.eye(2), (1, -1), self.drift)


class Clusters(Law):
    r"""$M$ clusters with any arrangement of centres $\lambda_k B_k$.

    Attributes:
        priors: $p_k$, positive, summing to 1.
        labels: the class of each cluster (several clusters may share one).
        separations: $\lambda_k$, one number each; default 1.
        variances: $v_k$; default 1.
        gram: $B_m \cdot B_n$; default orthonormal. Any positive semi-definite matrix will do.
        drift: $\delta$, how fast the directions turn, all by the same angle to each other; as in `TwoClusters`.
    """

    priors: Any = eqx.field(converter=reals)
    labels: tuple[int, ...] = eqx.field(converter=lambda s: label_tuple(s) or (), static=True)
    separations: Any = eqx.field(converter=reals, default=None)
    variances: Any = eqx.field(converter=reals, default=None)
    gram: Any = eqx.field(converter=reals, default=None)
    drift: Real = checks.declare(0.0, checks.not_negative)

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
        return Mixture(self.priors, lam, v, gram if self.gram is None else self.gram, self.labels, self.drift)


def draw(key: Key, mix: Any, centres: Array) -> tuple[Array, Array]:
    """One example: its cluster, and the vector around the `centres` `[M, axes]`."""
    which, noise = jax.random.split(key)
    k = jnp.minimum(jnp.sum(jax.random.uniform(which) > jnp.cumsum(mix.p)), mix.p.shape[0] - 1)
    return k, centres[k] + jnp.sqrt(mix.v[k]) * jax.random.normal(noise, centres.shape[1:])


def place_centres(mix: Any, axes: int) -> Array:
    r"""The centres $\lambda_k B_k$, shape `[M, axes]`: they lie in the first axes."""
    M = mix.p.shape[0]
    return jnp.zeros((M, axes)).at[:, :M].set(mix.lam[:, None] * frame(mix.gram))


def turn(axes: Array, noise: Array, drift: Real, size: Real) -> Array:
    r"""Orthonormal axes `[M, N]` of the centres after one step of a drift, from Gaussian `noise` of the same shape.

    $$E \leftarrow (\tfrac32 I - \tfrac12 E' E'^T)\, E',\quad E' = E + \sqrt{2\delta}\, G / N$$

    The first factor makes the axes orthonormal again, to $O(1/N^2)$ and without errors that add up. A step turns each
    axis to $e \cdot e' = 1 - \delta/N$, so over a time $\alpha$ it keeps the overlap $e^{-\delta\alpha}$.
    """
    moved = axes + jnp.sqrt(2.0 * drift) / size * noise
    return 1.5 * moved - 0.5 * (moved @ moved.T) @ moved


def check_drift(drift: Any, size: float, name: str = "drift") -> None:
    """Check that a step of the drift (or of weight decay) is small."""
    if not is_traced(drift) and np.any(np.asarray(drift) > size / 10):
        raise InputError(f"Argument `{name}` must not exceed a tenth of the dimension, but it is {np.max(drift):g} "
                         f"and the dimension {size:g}.")  # fmt: skip


@functools.partial(jax.jit, static_argnames="size")
def _sample(law: Law, keys: Key, size: int) -> tuple[Array, Array]:
    mix = law.mixture()
    return jax.vmap(lambda key: draw(key, mix, place_centres(mix, size)))(keys)


@functools.partial(jax.jit, static_argnames="size")
def _sample_drifting(law: Law, keys: Key, size: int) -> tuple[Array, Array]:
    mix = law.mixture()
    M = mix.p.shape[0]

    def step(axes: Array, key: Key) -> tuple[Array, tuple[Array, Array]]:
        turning, drawing = jax.random.split(key)
        axes = turn(axes, jax.random.normal(turning, axes.shape), mix.drift, size)
        return axes, draw(drawing, mix, mix.lam[:, None] * (frame(mix.gram) @ axes))

    return jax.lax.scan(step, jnp.eye(M, size), keys)[1]


def frame(gram: Array) -> Array:
    """The vectors $B_m$ as rows in $M$ orthonormal axes: the symmetric square root of their Gram matrix."""
    values, vectors = jnp.linalg.eigh(gram)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T
