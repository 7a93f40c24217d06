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

from typing import Any

import equinox as eqx
import jax
import numpy as np

from quenched.core import checks, random, verbs
from quenched.core.types import InputError, Key, Real, double, is_traced


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


class Covariance(checks.Declared):
    """The shape of classes in a table."""


class Spherical(Covariance):
    """Every class has the same variance in each direction, as in the paper."""


class Shrunk(Covariance):
    r"""Every class has a covariance matrix, shrunk as far as its rows call for.

    Attributes:
        common: whether all classes have the same one.
    """

    common: bool = eqx.field(default=True, static=True)

    def __check_init__(self):
        super().__check_init__()
        checks.flag("common", self.common)


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


def _share(name: str, value: Any) -> None:
    """Check that a share is at least 0 and below one half."""
    if not is_traced(value) and not 0 <= checks.number(name, value) < 0.5:
        raise InputError(f"Argument `{name}` must be at least 0 and below 0.5, but {value} was given.")


class ModelLaw(checks.Declared):
    """A world for selection around a model."""


class WrongLabels(ModelLaw):
    r"""Two Gaussian clusters with some labels flipped.

    $\xi = S m B/\sqrt N + $ noise of unit variance in each direction, $|B|^2 = N$, and the label is $S$ but for a share
    of the examples, where it is $-S$.

    Attributes:
        separation: $m$.
        share: of flipped labels, below one half.
    """

    separation: Real = checks.declare(1.0)
    share: Real = checks.declare(0.2, _share)

    @double
    def sample(self, key: Key, examples: int, *, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Examples `[examples, size]`, labels as given, and whether each is right; the teacher is the first axis."""
        X, S, u = _examples(key, examples, size)
        X[:, 0] += float(self.separation) * S
        right = u >= float(self.share)
        return X, np.where(right, S, -S), right


class WrongTargets(ModelLaw):
    r"""A linear teacher, and targets with two kinds of noise.

    $y = \xi \cdot B/\sqrt N + $ noise, $\xi$ of unit variance in each direction, $|B|^2 = N$. The noise has the
    variance $\sigma^2$, or for a share of the examples $\sigma^2 + \tau^2$.

    Attributes:
        noise: $\sigma$.
        spread: $\tau$.
        share: of the outliers, below one half.
    """

    noise: Real = checks.declare(0.2)
    spread: Real = checks.declare(3.0)
    share: Real = checks.declare(0.2, _share)

    @double
    def sample(self, key: Key, examples: int, *, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Examples `[examples, size]`, targets, and whether each is right; the teacher is the first axis."""
        inputs, noise = jax.random.split(key)
        X, _, u = _examples(inputs, examples, size)
        g = random.normals(noise, examples, 2)
        right = u >= float(self.share)
        return X, X[:, 0] + float(self.noise) * g[:, 0] + np.where(right, 0.0, float(self.spread) * g[:, 1]), right


def _examples(key: Key, examples: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard Gaussian rows, signs, and numbers between 0 and 1."""
    examples = checks.whole("examples", examples, least=1)
    size = checks.whole("size", size, least=1)
    noise, labels, hidden = random.split(key, 3)
    S = random.signs(labels, examples).astype(int)
    return np.array(random.normals(noise, examples, size)), S, random.uniforms(hidden, examples)


class ModelRule(checks.Declared):
    """A student that selects examples around a model; `selection` is how: `SoftSelection()`, `HardSelection()`, or
    `Hebb()`, to which every example counts."""

    def __check_init__(self):
        super().__check_init__()
        selection = getattr(self, "selection", None)
        checks.kind(
            "selection", selection, (SoftSelection, HardSelection, Hebb), "SoftSelection(), HardSelection() or Hebb()"
        )


class SelectedLogistic(ModelRule):
    r"""Logistic regression without intercept, with a background for wrong labels.

    $$\mathcal H(J) = \tfrac\lambda2 |J|^2 - \sum_\mu \ln(1 + e^{h_\mu}) \ \text{(soft)} \quad \text{or} \quad
    - \sum_\mu \max(h_\mu, 0) \ \text{(hard)}, \qquad h = \ln \frac{1}{1 + e^{-u}} - \ln \tau$$

    with the field $u = S \xi \cdot J/\sqrt N$ and the probability $\tau$ of the label at which an example counts half:
    $f/(1 - 2f)$ to soft selection, $f$ to hard selection. Without selection, $\mathcal H = \tfrac\lambda2 |J|^2 +
    \sum \ln(1 + e^{-u})$. Theory and simulation agree for soft selection and without; with hard selection replica
    symmetry is broken (`stability` is infinite) and where the learner ends depends on where it begins.

    Attributes:
        ridge: $\lambda$.
        outlier_fraction: $f$, the share of wrong labels that is assumed.
        selection: how examples are selected.
    """

    ridge: Real = checks.declare(1.0)
    outlier_fraction: Real = checks.declare(0.2, _share)
    selection: Rule = eqx.field(default_factory=SoftSelection)


class SelectedSquares(ModelRule):
    r"""Least squares without intercept, with a background for wrong targets; hard selection is trimmed least squares.

    $$\mathcal H(J) = \tfrac\lambda2 |J|^2 - \sum_\mu \ln(1 + e^{h_\mu}) \ \text{(soft)} \quad \text{or} \quad
    - \sum_\mu \max(h_\mu, 0) \ \text{(hard)}, \qquad h = \frac{c^2 - r^2}{2 s^2}$$

    with the residual $r = \xi \cdot J/\sqrt N - y$. Without selection, $\mathcal H = \tfrac\lambda2 |J|^2 +
    \sum r^2/2s^2$.

    Attributes:
        ridge: $\lambda$.
        cut: $c$, the residual at which an example counts half.
        noise: $s$, the standard deviation of informative residuals that is assumed.
        selection: how examples are selected.
    """

    ridge: Real = checks.declare(0.1)
    cut: Real = checks.declare(1.0)
    noise: Real = checks.declare(0.3)
    selection: Rule = eqx.field(default_factory=SoftSelection)


def _check_model(law: ModelLaw, rule: ModelRule) -> None:
    """Check that a law and a rule go together."""
    wanted = SelectedLogistic if isinstance(law, WrongLabels) else SelectedSquares
    if not isinstance(rule, wanted):
        raise InputError(
            f"Argument `rule` must be {wanted.__name__}() with {type(law).__name__}(), but {rule!r} was given."
        )


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


MODELS = verbs.Science(
    "outliers",
    laws=((WrongLabels, WrongTargets), "WrongLabels() or WrongTargets()"),
    rules=((SelectedLogistic, SelectedSquares), "SelectedLogistic() or SelectedSquares()"),
    reports=SCIENCE.reports,
    check=_check_model,
    labels={**SCIENCE.labels, "share": "share of outliers", "ridge": r"ridge, $\lambda$"},
)
"""The same for selection around a model: the energy is that of the rule's docstring, over $N$."""


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
