"""What is added to the closures, the two totals, and whether a trusted answer may be believed."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from benchmarks import trust as attack
from benchmarks import worlds
from quenched.core import system
from quenched.core.types import InputError
from quenched.processes import (
    Cavity,
    Empirical,
    FixedTotal,
    GaussianProcess,
    PoissonTotal,
    Variational,
    curve,
    fit,
    measure,
    theory,
)
from quenched.processes.kernels import numbers_of
from quenched.processes.theory import crossings
from quenched.processes.theory.closures import counts_of
from quenched.processes.theory.responses import Exact
from quenched.processes.theory.state import solve
from tests.processes import cases

MEASURES = ("oob_error", "error", "posterior_variance")
PROMISE = np.array([attack.PROMISE[name] for name in MEASURES])


def world(K, y, noise):
    """A table without inputs and a process with a matrix for a kernel, in the units of the targets."""
    return Empirical(np.zeros(len(y)), y, 0.0, 1.0), GaussianProcess(K, noise)


# ---- what is added to the closure


def enumerated(K, y, s2, mu, most=7):
    """The exact averages over Poisson counts of a few rows, by enumeration."""
    counts = np.array(list(itertools.product(range(most + 1), repeat=len(y))))
    p = np.prod(stats.poisson.pmf(counts, mu), axis=1)
    return p @ worlds.trained(worlds.World("", K, y, s2), counts) / p.sum()


def test_to_leading_order_nothing_is_missing(double):
    """Five rows and every data set: as the noise grows, what is missing from the closure is all but added."""
    law, rule = cases.five()
    K, y = np.asarray(rule.kernel(law.inputs, law.inputs)), np.asarray(law.standard())
    left = []
    for s2 in (3.0, 10.0):
        found, response = solve(Exact(K), y, s2, counts_of(0.6), Cavity(), np.diagonal(K))
        after = crossings.add_walks(found, response.G, y, s2, counts_of(0.6))
        exact = enumerated(K, y, s2, 0.6)[[1, 2]]
        off = [np.array([float(x.error.mean()), float(x.g.mean())]) - exact for x in (found, after)]
        left.append(np.abs(off[1] / off[0]))
    assert np.all(np.diff(left, axis=0) < 0)
    assert np.all(left[-1] < [0.2, 0.02]), left


@pytest.mark.parametrize("total", [PoissonTotal(), FixedTotal()])
def test_identical_rows_are_averages_over_the_total(total):
    """With one value for all rows the posterior variance is that of a number with so many measurements."""
    N, m, s2 = 100, 80, 0.5
    K = np.ones((N, N)) + 1e-9 * np.eye(N)
    law, rule = world(K, np.random.default_rng(0).normal(size=N), s2)
    found = theory.curve(law, rule, examples=m, total=total)
    number = np.arange(200)
    poisson, fixed = stats.poisson.pmf(number, m) @ (1 / (1 + number / s2)), 1 / (1 + m / s2)
    assert poisson > 1.01 * fixed
    assert found.attrs["total"] == type(total).__name__
    # the total is taken back to second order in its fluctuation, which is 1/m
    exact = poisson if isinstance(total, PoissonTotal) else fixed
    assert float(found.posterior_variance) == pytest.approx(exact, rel=1e-3)


def test_slopes_of_the_walks_are_those_of_differences():
    law, rule = cases.five()
    n, _ = numbers_of(law, rule)
    counts = counts_of(0.6)
    found, response = solve(Exact(n.K), n.y, 0.2, counts, Cavity(), np.diagonal(n.K))
    b, draw = found.mean - n.y, np.random.default_rng(0)

    def value(G, g, b):
        walks = crossings._walks(G, g, 0.2, counts)
        return b @ (walks.Y @ b + walks.w * walks.change * b)

    point = response.G, found.g, b
    slopes = crossings._slopes(crossings._walks(*point[:2], 0.2, counts), *point)
    for k in range(3):
        way = draw.normal(size=point[k].shape) * np.abs(point[k])
        ends = [value(*(x + h * way if i == k else x for i, x in enumerate(point))) for h in (1e-5, -1e-5)]
        assert np.sum(slopes[k] * way) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_nodes_average_over_a_poisson_total():
    for m in (0.3, 2.0, 6.0, 200.0):
        sizes, weights = crossings.nodes(m)
        assert np.all(sizes >= 0)
        assert np.all(weights > 0)
        assert weights.sum() <= 1
        x, w = np.append(sizes, m), np.append(weights, 1 - weights.sum())
        for power in range(4 if m < 2 else 5):
            central = [1, 0, m, m, 3 * m**2 + m][power]
            assert w @ (x - m) ** power == pytest.approx(central, rel=1e-10, abs=1e-9)


def test_the_printed_closure_is_left_as_it_is(double):
    law, rule = cases.five()
    for total in (None, FixedTotal()):
        found = theory.curve(law, rule, examples=4, closure=Variational(), total=total)
        alone = theory.state(law, rule, 4.0, Variational())
        np.testing.assert_allclose(found.oob_error, alone.oob_error, rtol=1e-9)


def test_a_large_table_has_no_correction_but_the_total_is_looked_at(monkeypatch):
    K, y, noise = cases.bent()["diabetes"]
    law, rule = world(K, y, noise)
    monkeypatch.setattr(crossings, "LARGEST", 100)
    found = theory.curve(law, rule, examples=[10, 100])
    assert not found.trusted[0]
    assert abs(float(found.self_check_shift_variance[0])) > 0.1


# ---- worlds whose curves bend

# Out-of-bag error, error and posterior variance by honest draws, and their standard errors:
# `worlds.truth(worlds.World(name, *cases.bent()[name]), m, np.random.default_rng(0), 0.002, 3e10)`.
DRAWN = {
    ("40 columns", 20): ((0.5109, 0.4716, 0.5218), (0.00085, 0.00092, 0.00042)),
    ("40 columns", 40): ((0.1147, 0.09779, 0.1287), (0.00051, 0.00051, 0.00032)),
    ("40 columns", 50): ((0.02508, 0.02054, 0.03951), (0.00035, 0.00032, 0.00025)),
    ("diabetes", 10): ((2.258, 2.084, 1.403), (0.0044, 0.0042, 0.0027)),
    ("diabetes", 40): ((0.863, 0.7316, 0.04188), (0.0014, 0.0015, 7.8e-05)),
    ("diabetes", 100): ((0.7188, 0.5892, 0.01298), (0.00085, 0.0012, 2e-05)),
    ("Friedman", 6): ((1.005, 0.9559, 5.071), (0.002, 0.0019, 0.0037)),
    ("Friedman", 8): ((1.196, 1.119, 3.466), (0.0024, 0.0022, 0.0018)),
    ("Friedman", 10): ((1.365, 1.258, 2.201), (0.0027, 0.0025, 0.0026)),
    ("Friedman", 60): ((0.3924, 0.3234, 0.01159), (0.00051, 0.0006, 1.6e-05)),
    ("S-curve", 15): ((0.2603, 0.239, 0.5534), (0.00045, 0.00048, 0.00021)),
}


@pytest.mark.parametrize("name", list(cases.bent()))
def test_bent_curves_are_right_or_not_trusted(name):
    law, rule = world(*cases.bent()[name])
    sizes = [m for known, m in DRAWN if known == name]
    found = theory.curve(law, rule, examples=sizes)
    for m in sizes:
        mean, stderr = (np.array(x) for x in DRAWN[name, m])
        at = found.sel(examples=m)
        off = np.abs(np.array([float(at[measure]) for measure in MEASURES]) / mean - 1) - 3 * stderr / mean
        assert not bool(at.trusted) or np.all(off < PROMISE), (m, off)
    assert not found.trusted.all()
    if name == "diabetes":
        assert bool(found.trusted[-1])  # 100 examples for 10 dimensions


def test_trusted_sizes_of_random_worlds_are_right():
    """A little of `python -m benchmarks.trust`, live; some sizes are trusted, and none of them is off."""
    draw, seen = np.random.default_rng(4), []
    for table, kernel, length, noise in (("8 columns", "linear", 3.0, 0.3), ("quadratic", "Matern 5/2", 6.0, 0.5)):
        X, y = worlds.TABLES[table](draw, 120)
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        K = worlds.KERNELS[kernel](X, length) + 1e-10 * np.eye(120)
        seen += attack.judged(worlds.World(table, K, y, noise), kernel, np.array([10.0, 30.0, 100.0]), draw)
    assert sum(point.trusted for point in seen) >= 2
    assert not any(point.broken for point in seen), [point for point in seen if point.broken]


def test_the_attack_sees_a_broken_promise():
    good = attack.Point("", "linear", 10.0, 0.1, True, np.array([0.02, 0.0, 0.0]), np.array([0.002, 0.0, 0.0]))
    bad = good._replace(off=np.array([0.022, 0.0, 0.0]))
    assert not good.broken
    assert bad.broken
    assert not bad._replace(trusted=False).broken
    assert attack.row("all", [good, bad, bad._replace(trusted=False)])[-1] == "1"


# ---- memory


def test_what_does_not_fit_in_memory_is_refused_before_it_is_made(monkeypatch):
    x = np.linspace(0, 1, 3000)
    law, rule = Empirical(x, np.sin(6 * x)), GaussianProcess(_unasked, 0.1)
    monkeypatch.setattr(system, "available_memory", lambda: 1e8)
    key = jax.random.key(0)
    for ask in (
        lambda: curve(law, rule, examples=10),
        lambda: theory.curve(law, rule, examples=10),
        lambda: measure(law, rule, examples=10, runs=1, key=key),
        lambda: fit(rule, law),
    ):
        with pytest.raises(InputError, match="kernel matrices of 3000 rows must fit in memory"):
            ask()


def _unasked(*_):
    raise AssertionError
