"""Our side of all comparisons. Each entry of `MODELS` makes ready: it imports, and gives the version and the work."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.tasks import PLACES, SIZES

Ready = tuple[str, Callable[[tuple, dict], Any]]
KERNEL = (1.12, 6.23, 0.469)
"""Amplitude, length and noise variance of the process on diabetes."""


def _ready(work: Callable[[tuple, dict], Any]) -> Ready:
    return f"quenched {version('quenched')}", work


def selection(**known: float) -> Ready:
    """Soft selection on rows and labels, gamma and eta known or estimated."""
    from quenched.outliers.learner import fit
    from quenched.outliers.model import SoftSelection

    def work(data: tuple, case: dict) -> np.ndarray:
        found = fit(SoftSelection(known.get("gamma")), data[:2], eta=known.get("eta"))
        return found.centres[1] - found.midpoint

    return _ready(work)


def annealed() -> Ready:
    """Two Gaussians by annealing."""
    from quenched.estimators import AnnealedMixture
    from quenched.mixtures import Spherical

    return _ready(lambda data, case: AnnealedMixture(widths=Spherical(), random_state=0).fit(data[0]).means_)


def lvq(rule: str, prototypes: int) -> Ready:
    """An LVQ classifier, fold by fold."""
    from quenched.estimators import LVQClassifier
    from quenched.prototypes.model import GLVQ, GMLVQ, LVQ1, LVQ21, RSLVQ, Interpolated

    careful = {"fallback": False, "rule": LVQ21(Interpolated((0.05, 0.0005), until=20)), "passes": 20, "window": 0.1}
    falling = {"fallback": False, "rule": LVQ1(Interpolated((0.1, 0.001), until=30))}
    plain = {"GLVQ": GLVQ, "GMLVQ": GMLVQ, "RSLVQ": RSLVQ, "LVQ21": LVQ21, "LVQ1, default rate": LVQ1}
    settings: dict[str, Any] = {"LVQ2.1": careful, "LVQ1": falling}.get(rule) or {"rule": plain[rule]()}

    def work(data: tuple, case: dict) -> list[np.ndarray]:
        parts = zip(data[::4], data[1::4], data[2::4], strict=True)
        make = lambda: LVQClassifier(prototypes_per_class=prototypes, random_state=0, **settings)  # noqa: E731
        return [make().fit(X, y).predict(unseen) for X, y, unseen in parts]

    return _ready(work)


def means() -> Ready:
    """The nearest class mean, by scikit-learn."""
    from sklearn.neighbors import NearestCentroid

    def work(data: tuple, case: dict) -> list[np.ndarray]:
        parts = zip(data[::4], data[1::4], data[2::4], strict=True)
        return [NearestCentroid().fit(X, y).predict(unseen) for X, y, unseen in parts]

    return _ready(work)


def theory() -> Ready:
    """The averages over samples of diabetes, without samples."""
    import jax
    import jax.numpy as jnp
    from tinygp import kernels

    from quenched import processes
    from quenched.processes.model import numbers
    from quenched.processes.theory.closures import Cavity, counts_of
    from quenched.processes.theory.responses import Exact
    from quenched.processes.theory.state import solve

    amplitude, length, noise = KERNEL
    rule = processes.GaussianProcess(amplitude**2 * kernels.ExpSquared(length), noise)

    @jax.jit
    def average(law: Any) -> Any:
        n = numbers(law, rule)
        prior = Exact(n.K)
        found, _ = solve(prior, n.y, n.s2, counts_of(jnp.asarray(1.0)), Cavity(), prior.diagonal())
        return jnp.mean((found.oob_mean - n.y) ** 2)

    def work(data: tuple, case: dict) -> np.ndarray:
        law, N = processes.Empirical(data[0], data[1]), len(data[1])
        if case["wanted"] == "out-of-bag error of the average":
            with jax.enable_x64(True):
                return np.array([float(average(law))])
        # So many draws hold the wanted number of different rows, on average.
        sizes = -N * np.log1p(-np.array(SIZES) / N) if case["wanted"] == "learning curve" else np.array([float(N)])
        return processes.theory.curve(law, rule, examples=sizes).oob_error.values

    return _ready(work)


def low_rank() -> Ready:
    """One size of a large table at low rank."""
    from tinygp import kernels

    from quenched import processes

    rule = processes.GaussianProcess(kernels.ExpSquared(2.0), 0.1)

    def work(data: tuple, case: dict) -> np.ndarray:
        law = processes.Empirical(data[0], data[1])
        found = processes.theory.curve(law, rule, examples=[float(len(data[1]))], rank=case["rank"])
        return found.oob_error.values

    return _ready(work)


def density() -> Ready:
    """The density of a column; the grid is its own choice but where the case gives one."""
    from quenched.estimators import FieldDensity

    return _ready(lambda data, case: FieldDensity(points=case.get("points")).fit(data[0]).pdf(PLACES))


MODELS: dict[str, Callable[[], Ready]] = {
    "SoftSelection": selection,
    "SoftSelection, gamma and eta known": lambda: selection(gamma=10.0, eta=0.0),
    "AnnealedMixture": annealed,
    "LVQClassifier, LVQ1, 1 per class": lambda: lvq("LVQ1", 1),
    "LVQClassifier, LVQ2.1, 1 per class": lambda: lvq("LVQ2.1", 1),
    "LVQClassifier, LVQ2.1, 5 per class": lambda: lvq("LVQ2.1", 5),
    **{
        f"LVQClassifier, {rule}, {count} per class": lambda rule=rule, count=count: lvq(rule, count)
        for rule in ("GLVQ", "GMLVQ", "RSLVQ", "LVQ21", "LVQ1, default rate")
        for count in (1, 3, 5)
    },
    "nearest class mean": means,
    "processes.theory": theory,
    "processes.theory, low rank": low_rank,
    "FieldDensity": density,
}
