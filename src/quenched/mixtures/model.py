r"""The question: a world of two Gaussians, and a student who estimates its density by maximum likelihood.

Setting: $P = \alpha N$ examples in $N$ dimensions come, without labels, from two Gaussians of variance $\sigma_0 = 1$
with orthogonal centres $U_{1,2}$ of length $u_0$ (the separation). The student explains them by two Gaussians of a
variance $\sigma$ of its own choice (the width) at $\bar U \pm \Delta U$; he makes the likelihood of the centres
maximal at that width.

Order parameters: $q = |\Delta U|^2$ and $r = \Delta U \cdot \Delta U_0 / u_0$ with $\Delta U_0 = (U_1 - U_2)/2$; the
error is the probability that a new example is assigned to the wrong centre. The limit taken by the theory is
$N \to \infty$ at fixed $\alpha$; the simulation has finite $N$. All widths are variances in units of $\sigma_0$.
Nothing here solves or trains. Not covered: unequal weights or widths of the true Gaussians.
"""

from __future__ import annotations

import abc
import functools

import numpy as np

from quenched.core import checks, random, verbs
from quenched.core.types import Array, Key, Real, double


class Law(checks.Declared):
    """A world of Gaussians."""

    @abc.abstractmethod
    def centres(self, size: int) -> Array | np.ndarray:
        """The true centres `[2, size]`."""

    @double
    def sample(self, key: Key, examples: int, *, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw a data set.

        Args:
            key: a JAX key.
            examples: how many examples.
            size: their dimension $N$, at least 2. The centres lie in the first two axes.

        Returns:
            The examples `[examples, size]` and the classes they came from, +1 or -1 `[examples]`.
        """
        examples = checks.whole("examples", examples, least=1)
        size = checks.whole("size", size, least=2)
        S, s = draw(self, key, examples, size)
        return S, s.astype(int)


class TwoGaussians(Law):
    r"""Two Gaussians of unit variance and equal weight, the world of the paper.

    $$P_0(S) = \tfrac12 \mathcal N(S;\, U_1, I_N) + \tfrac12 \mathcal N(S;\, U_2, I_N),
    \qquad U_1 \cdot U_2 = 0, \quad |U_1| = |U_2| = u_0$$

    so the centres lie $\sqrt2\, u_0$ apart. [barkai1994, eq. (1)]

    Attributes:
        separation: $u_0$, the length of both centres, in standard deviations.

    Examples:
        >>> from quenched import mixtures
        >>> law = mixtures.TwoGaussians(separation=2.0)
    """

    separation: Real = checks.declare(1.0)

    def centres(self, size: int) -> Array | np.ndarray:
        """$u_0$ times the first two unit vectors."""
        return self.separation * np.eye(2, size)


class Rule(checks.Declared):
    """A student of the law's examples."""


class MaximumLikelihood(Rule):
    r"""Two Gaussians of a given width, with centres of maximum likelihood.

    $$P(S) = \tfrac12 \mathcal N(S;\, \bar U + \Delta U, \sigma I_N)
    + \tfrac12 \mathcal N(S;\, \bar U - \Delta U, \sigma I_N)$$

    [barkai1994, eqs. (3), (4)]

    Attributes:
        width: $\sigma$, the variance of both Gaussians, in units of the true one.

    Examples:
        >>> from quenched import mixtures
        >>> rule = mixtures.MaximumLikelihood(width=1.5)
    """

    width: Real = checks.declare(1.0)


class Spherical(checks.Declared):
    r"""Gaussians on real data whose centres, weights and widths are all of maximum likelihood; one width each.

    $$P(x) = \sum_k w_k\, \mathcal N(x;\, c_k, v_k I_N)$$

    Attributes:
        least: the smallest width, as a share of the mean variance of a feature; it keeps a Gaussian that has closed in
            on equal rows from becoming infinitely likely.
        fewest: every Gaussian must describe more rows than this, or the mixture wins only where all others have such a
            Gaussian, too; by default 2.5, for `Full` the columns and 1.5 more. With 0 the likelihood alone decides.
        equal_weights: all $w_k$ equal, as in the paper.
        common: one width for all Gaussians. In many dimensions few rows tell widths apart badly.
    """

    least: Real = checks.declare(1e-6)
    fewest: Real | None = checks.declare(None, checks.not_negative)
    equal_weights: bool = False
    common: bool = False

    def __check_init__(self):
        checks.flag("equal_weights", self.equal_weights)
        checks.flag("common", self.common)


class Diagonal(Spherical):
    r"""Like `Spherical` with a width for each feature: $\mathcal N(x;\, c_k, \mathrm{diag}\, v_k)$.

    Attributes:
        least: the smallest width, as a share of the variance of its feature.
        fewest: rows that every Gaussian must describe, as in `Spherical`.
        equal_weights: all weights equal.
        common: the same widths for all Gaussians.
    """


class Full(Spherical):
    r"""Like `Spherical` with a covariance matrix: $\mathcal N(x;\, c_k, \Sigma_k)$.

    Attributes:
        least: the smallest eigenvalue of a covariance matrix, where each feature has variance 1.
        fewest: rows that every Gaussian must describe, as in `Spherical`.
        equal_weights: all weights equal.
        common: the same covariance matrix for all Gaussians ("tied").
    """


class Start(checks.Declared):
    """Where the centres begin."""


class Annealed(Start):
    """Deterministic annealing: the width falls in small steps, each beginning where the last one ended.

    Attributes:
        from_width: the first width; by default that at which the first cluster splits.
        step: the largest share by which the width falls in one step, in (0, 1).
        noise: length of a random vector that is added to the unit vector along which a cluster splits.
    """

    from_width: Real | None = checks.declare(None)
    step: Real = checks.declare(0.05, functools.partial(checks.inside, low=0, high=1))
    noise: Real = checks.declare(1e-3, checks.not_negative)


class RandomStart(Start):
    """Centres in random directions from the mean (two centres on opposite sides of it), anew at each width.

    Attributes:
        scale: their distance from the mean.
    """

    scale: Real = checks.declare(1.0)


SCIENCE = verbs.Science(
    "mixtures",
    laws=(Law, "a law such as TwoGaussians()"),
    rules=(MaximumLikelihood, "MaximumLikelihood(width)"),
    reports={"r": (), "q": (), "error": (), "energy": (), "free_energy": ()},
    labels={
        "alpha": r"examples per dimension, $\alpha$",
        "width": r"width, $\sigma$ (a variance)",
        "error": r"generalisation error, $\epsilon_g$",
        "r": "overlap with the true splitting, $r$",
        "q": "squared length of the splitting, $q$",
        "energy": r"energy of an example, $\epsilon$",
        "free_energy": "free energy, $f$",
    },
)
r"""What the verbs share. `energy` is that of an example,
$\epsilon = |\Delta U|^2/2\sigma - \langle \ln\cosh(\Delta U \cdot (S - \bar S)/\sigma) \rangle$, and `free_energy`
that over $N$, $\alpha \epsilon$."""


def draw(law: Law, key: Key, examples: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples `[examples, size]` and the classes they came from."""
    which, noise = random.split(key)
    s, U = random.signs(which, examples), np.asarray(law.centres(size))
    return np.where(s[:, None] > 0, U[0], U[1]) + random.normals(noise, examples, size), s
