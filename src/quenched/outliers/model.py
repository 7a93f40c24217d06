r"""The question: a world in which some examples are outliers, and students who select the others.

Setting: $P = \alpha N$ examples $\xi$ with labels $S = \pm 1$ in $N$ dimensions. A share $1/(1 + e^\eta)$ of them is
informative: $\xi$ is Gaussian about $S B/\sqrt N$ with variance $1/\gamma$ in each direction, $|B|^2 = N$. The others
are outliers: Gaussian about 0 with the same variance, and a label by the toss of a coin. Which is which is hidden. The
student is given $\eta$ and assumes an inverse variance $\tilde\gamma$ (matched: $\gamma$) and a Gaussian prior of unit
variance for each component of the estimate $J$ of $B$.

Order parameters: $R = J \cdot B/N$ and $Q = J \cdot J/N$; the errors are $\Delta = |J - B|^2/N = Q - 2R + 1$ and the
angle $\Phi = \arccos(R/\sqrt Q)/\pi$. The limit taken by the theory is $N \to \infty$ at fixed $\alpha$; the simulation
has finite $N$. Nothing here solves or trains. Not covered: a student with a wrong $\eta$.
"""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np

from quenched.core import checks, random, verbs
from quenched.core.types import InputError, Key, Real, double


class Law(checks.Declared):
    """A world with outliers."""


class Contaminated(Law):
    r"""Two Gaussian clusters, and outliers between them with random labels; the world of the paper.

    $$P(\xi, S) = \frac{1}{2(1 + e^{-\eta})} \Big[ \mathcal N(\xi;\, 0, \tfrac1\gamma I_N)
    + e^{-\eta}\, \mathcal N(\xi;\, S B/\sqrt N, \tfrac1\gamma I_N) \Big], \qquad |B|^2 = N$$

    [dietrich1998, eqs. (1), (2)]

    Attributes:
        gamma: $\gamma$, the inverse variance of each component of an example.
        eta: $\eta$, the logarithm of the number of outliers for each informative example.

    Examples:
        >>> from quenched import outliers
        >>> law = outliers.Contaminated(gamma=10.0, eta=2.0)
        >>> round(float(law.informative), 3)
        0.119
    """

    gamma: Real = checks.declare(10.0)
    eta: Real = checks.declare(0.0, checks.finite)

    @property
    def informative(self) -> Real:
        r"""The share of informative examples, $1/(1 + e^\eta)$."""
        if isinstance(self.eta, jax.Array):
            return jax.nn.sigmoid(-self.eta)
        return 1 / (1 + np.exp(np.minimum(self.eta, 700.0)))

    @double
    def sample(self, key: Key, examples: int, *, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw a data set.

        Args:
            key: a JAX key. At another `eta` the same key gives the same noise and labels, and the informative
                examples of the larger `eta` are among those of the smaller.
            examples: how many examples.
            size: their dimension $N$. The teacher $B/\\sqrt N$ is the first axis.

        Returns:
            The examples `[examples, size]`, their labels, +1 or -1, and whether each is informative.
        """
        examples = checks.whole("examples", examples, least=1)
        size = checks.whole("size", size, least=1)
        noise, S, u = draw(self, key, examples, size)
        X, S, V = noise, S.astype(int), u < self.informative
        X[:, 0] += V
        return X * S[:, None], S, V


class Rule(checks.Declared):
    r"""A student of the law's examples.

    Attributes:
        gamma: $\tilde\gamma$, the inverse variance that is assumed; None is the law's.
    """

    gamma: Real | None = checks.declare(None)


class SoftSelection(Rule):
    r"""The most probable vector: every example counts as much as it is probably informative.

    $$\mathcal H(J) = \tfrac12 |J|^2 - \sum_\mu \ln(1 + e^{h_\mu}), \qquad
    h_\mu = \tilde\gamma\, S^\mu \xi^\mu \cdot J/\sqrt N - \tilde\gamma |J|^2/2N - \eta$$

    [dietrich1998, eqs. (7), (24), (25)]
    """


class HardSelection(Rule):
    r"""The most probable selection $V^\mu \in \{0, 1\}$, and the mean vector given it.

    $$\mathcal H_h(V) = -\frac{|b|^2}{2a} + \frac N2 \ln a + \eta \sum_\mu V^\mu, \qquad
    a = 1 + \frac{\tilde\gamma}{N} \sum_\mu V^\mu, \quad
    b = \frac{\tilde\gamma}{\sqrt N} \sum_\mu V^\mu S^\mu \xi^\mu, \quad J = b/a$$

    [dietrich1998, eqs. (10), (27) to (29)]
    """


class Hebb(Rule):
    r"""No selection: $J = \sum_\mu S^\mu \xi^\mu / (\sqrt N (\alpha + 1/\tilde\gamma))$.

    [dietrich1998, eq. (26)]
    """


class Gibbs(Rule):
    r"""A vector drawn at random with probability $\propto e^{-\mathcal H(J)/T}$, $\mathcal H$ that of `SoftSelection`.

    At $T = 1$ it is drawn from the posterior. [dietrich1998, eqs. (16), (A1)]

    Attributes:
        temperature: $T = 1/\beta$.
    """

    temperature: Real = checks.declare(1.0)


class Start(checks.Declared):
    """Where the vector begins."""


class RandomStart(Start):
    r"""A random direction.

    Attributes:
        scale: the length $|J|/\sqrt N$ at the start.
    """

    scale: Real = checks.declare(1.0)


class TeacherStart(Start):
    r"""The teacher $B$ itself: the way to stay on the informed branch where a random start loses it.

    Attributes:
        scale: the length $|J|/\sqrt N$ at the start; the teacher's own is 1.
    """

    scale: Real = checks.declare(1.0)


class CarriedStart(Start):
    """At the lowest `eta` by another start, then from each `eta` to the next, on the same noise.

    Attributes:
        first: the start at the lowest `eta`.
    """

    first: RandomStart | TeacherStart = eqx.field(default_factory=TeacherStart)

    def __check_init__(self):
        if not isinstance(self.first, (RandomStart, TeacherStart)):
            raise InputError(f"Argument `first` must be RandomStart() or TeacherStart(), but {self.first!r} was given.")


class Search(eqx.Module):
    """How hard selection looks for the best selection."""


class Iteration(Search):
    """EM alone, which ends at one of very many selections."""


class Flips(Search):
    """EM, then flips of single examples until none lowers the energy."""


SCIENCE = verbs.Science(
    "outliers",
    laws=(Contaminated, "Contaminated(gamma, eta)"),
    rules=((SoftSelection, HardSelection, Hebb, Gibbs), "SoftSelection(), HardSelection(), Hebb() or Gibbs()"),
    reports={"R": (), "Q": (), "Delta": (), "Phi": (), "free_energy": ()},
    labels={
        "alpha": r"examples per dimension, $\alpha$",
        "eta": r"$\ln$(outliers / informative examples), $\eta$",
        "R": "overlap with the teacher, $R$",
        "Q": "squared length, $Q$",
        "Delta": r"squared distance from the teacher, $\Delta$",
        "Phi": r"angle with the teacher over $\pi$, $\Phi$",
        "selected": "share of examples selected",
        "free_energy": "energy over the dimension, $f$",
    },
)
"""What theory and simulation have in common. `free_energy` is the least energy over $N$, up to a constant that depends
on the data only: $\\mathcal H/N$ as it stands in the rule's docstring."""


def gamma_of(law: Contaminated, rule: Rule) -> Real:
    r"""The student's $\tilde\gamma$."""
    return law.gamma if rule.gamma is None else rule.gamma


def draw(law: Contaminated, key: Key, examples: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise `[examples, size]`, labels, and numbers between 0 and 1 that lie below `law.informative` if informative.

    An informative example times its label is the noise plus the teacher, which is axis 0.
    """
    noise, labels, hidden = random.split(key, 3)
    g = random.normals(noise, examples, size) / np.sqrt(float(law.gamma))
    return g, random.signs(labels, examples), random.uniforms(hidden, examples)
