"""FieldDensity of many columns, a tree of fields: what it finds, that it is a density, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from scipy import stats
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import quenched
from quenched.estimators import FieldDensity
from quenched.fields.practice.tree import Trees
from tests.tolerances import EXACT


def chain(n, seed=0):
    """a -> b -> c, and d by itself; b bends with a."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.sin(2 * a) + 0.3 * rng.normal(size=n)
    c = np.exp(0.5 * b + 0.3 * rng.normal(size=n))
    return np.column_stack([a, b, c, rng.gamma(3.0, size=n)])


X = chain(300)


@pytest.fixture(scope="module")
def model():
    return FieldDensity().fit(X)


@pytest.fixture(scope="module")
def mixed():
    a, b, _, d = X.T
    rng = np.random.default_rng(1)
    word = np.where(rng.random(300) < 1 / (1 + np.exp(-6 * b)), "up", "down")
    again = np.where(rng.random(300) < 0.9, word, np.where(word == "up", "down", "up"))
    frame = pd.DataFrame({"a": a, "word": word, "again": again, "e": d + 4 * (again == "up")})
    return frame, FieldDensity().fit(frame)


def test_the_tree_is_that_of_the_world(model):
    assert len(model.shares_) == 1
    parents = {int(edge["column"]): int(edge["parent"]) for edge in model.tree_}
    pairs = {frozenset(pair) for pair in parents.items() if pair[1] >= 0}
    assert {frozenset((0, 1)), frozenset((1, 2))} <= pairs
    assert parents[3] == -1
    assert model.tree_["gain"].min() == 0
    told = model.describe()
    assert "column 3 stands alone" in told.attrs["summary"]
    assert "bits" in told.attrs["summary"]
    assert str(told["parent"].sel(column="column 3").item()) == ""
    assert "field" in told["kind"].to_numpy()
    assert not hasattr(model, "grid_")
    frames = [box for box in quenched.plot(told).axes[0].patches if isinstance(box, Rectangle)]
    assert pairs == {frozenset((box.get_x() + 0.5, box.get_y() + 0.5)) for box in frames}


def test_dependence_is_worth_its_bits(model):
    fresh = chain(400, seed=1)
    alone = sum(FieldDensity().fit(x).score(y) for x, y in zip(X.T, fresh.T, strict=True))
    a, b, c, d = fresh.T
    truth = -0.5 * a**2 - 0.5 * ((b - np.sin(2 * a)) / 0.3) ** 2 - 0.5 * ((np.log(c) - 0.5 * b) / 0.3) ** 2
    truth = truth - 1.5 * np.log(2 * np.pi) - 2 * np.log(0.3) - np.log(c) + 2 * np.log(d) - d - np.log(2)
    assert alone + 1 < model.score(fresh) < truth.mean() + 0.02
    assert model.score(fresh) > truth.mean() - 0.35


def test_it_integrates_to_one():
    two = FieldDensity(tree=True, bounds=[(None, None), (0, None)]).fit(X[:, [1, 2]])
    a, b = np.linspace(-4, 4, 500), np.linspace(-0.5, 12, 900)
    P = two.pdf(np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1))
    np.testing.assert_allclose(P.sum() * (a[1] - a[0]) * (b[1] - b[0]), 1.0, atol=2e-3)
    assert P[:, b < 0].max() == 0
    assert two.score_samples([[0.0, -1.0]]) == -np.inf


def test_samples_have_its_density(model):
    drawn = model.sample(4000, random_state=0)
    assert drawn.shape == (4000, 4)
    np.testing.assert_array_equal(model.sample(5, random_state=3), model.sample(5, random_state=3))
    order = [np.quantile(columns, [0.1, 0.5, 0.9], axis=0) for columns in (drawn, X)]
    np.testing.assert_allclose(order[0], order[1], atol=0.3)
    one = Trees([model._fitted.forests[0]], np.ones(1), 0.0, np.zeros(4))
    other = FieldDensity(tree=True).fit(drawn[:300])._fitted
    ratio = np.exp(other.log_density(drawn) - one.log_density(drawn))  # of two densities: its mean is one
    np.testing.assert_allclose(ratio.mean(), 1.0, atol=3 * ratio.std() / np.sqrt(len(ratio)))


def test_bands_are_around_the_density(model):
    low, high = model.credible_band(X[:20], level=0.9)
    assert np.all((low < model.pdf(X[:20])) & (model.pdf(X[:20]) < high))
    narrow = model.credible_band(X[:20], level=0.5)
    assert np.all((low < narrow[0]) & (narrow[1] < high))
    assert model.pdf(X[:6].reshape(2, 3, 4)).shape == (2, 3)


def test_weights_order_and_units_do_not_matter(model):
    few = X[:30]
    weights = np.tile([1.0, 2.0], 15)
    first = FieldDensity().fit(few, sample_weight=weights)
    same = FieldDensity().fit(np.repeat(few, weights.astype(int), axis=0)[::-1])
    np.testing.assert_allclose(first.score_samples(few), same.score_samples(few), rtol=1e-6)
    moved = FieldDensity().fit(8 * few + 16, sample_weight=weights)
    np.testing.assert_allclose(moved.score_samples(8 * few + 16), first.score_samples(few) - 4 * np.log(8), rtol=1e-5)
    zero = FieldDensity().fit(X[:40], sample_weight=np.append(weights, np.zeros(10)))
    np.testing.assert_allclose(zero.score_samples(few), first.score_samples(few), rtol=EXACT)


def test_clusters_are_trees_of_their_own():
    rng = np.random.default_rng(0)
    near = rng.multivariate_normal([0, 0, 0, 0], np.eye(4) + 0.9 * (1 - np.eye(4)), 150)
    far = rng.multivariate_normal([9, -9, 9, 0], np.eye(4), 100)
    model = FieldDensity().fit(np.concatenate([near, far]))
    np.testing.assert_allclose(np.sort(model.shares_), [0.4, 0.6], atol=0.02)
    assert "A cluster of" in model.describe().attrs["summary"]
    gains = [model.tree_["gain"][model.tree_["cluster"] == k].sum() for k in np.argsort(model.shares_)]
    assert gains[0] < 5 < 100 < gains[1]


def test_words_and_numbers(mixed):
    frame, model = mixed
    parents = {int(edge["column"]): int(edge["parent"]) for edge in model.tree_}
    pairs = {frozenset(pair) for pair in parents.items() if pair[1] >= 0}
    assert pairs == {frozenset((0, 1)), frozenset((1, 2)), frozenset((2, 3))}
    drawn = model.sample(3000, random_state=0)
    assert list(drawn.columns) == list(frame.columns)
    both = [pd.crosstab(table["word"], table["again"], normalize=True).to_numpy() for table in (drawn, frame)]
    np.testing.assert_allclose(*both, atol=0.05)
    shift = [table.groupby("again")["e"].mean().diff().iloc[-1] for table in (drawn, frame)]
    np.testing.assert_allclose(*shift, atol=0.3)
    total = sum(np.exp(model.score_samples(frame.head(9).assign(word=w, again=g)))
                for w in ("up", "down") for g in ("up", "down"))  # fmt: skip
    np.testing.assert_allclose(
        total, np.exp(FieldDensity(tree=True).fit(frame[["a", "e"]]).score_samples(frame[["a", "e"]].head(9))), rtol=0.6
    )
    low, high = model.credible_band(frame.head())
    assert np.all(low < high)


def test_rounded_values_are_spread():
    model = FieldDensity().fit(np.round(X, 1))
    np.testing.assert_allclose(model.rounding_, 0.1)
    assert abs(model.score(chain(400, seed=1)) - FieldDensity().fit(X).score(chain(400, seed=1))) < 0.1


@pytest.mark.parametrize("name", ["check_estimators_dtypes", "check_dtype_object", "check_fit2d_1sample"])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks_with_many_columns(name):
    estimator, check = next(
        pair for pair in estimator_checks_generator(FieldDensity()) if pair[1].func.__name__ == name
    )
    check(estimator)


FRAME = pd.DataFrame({"a": X[:40, 0], "word": ["u", "v"] * 20})


@pytest.mark.parametrize("image", [lambda x: 32 + 1.8 * x, np.exp, np.sin])
def test_a_function_of_another_column_is_known_on_new_rows(image):
    draw = np.random.default_rng(0)
    rows, new = (np.column_stack([x, image(x[:, 0])]) for x in (draw.normal(size=(n, 3)) for n in (250, 200)))
    model = FieldDensity().fit(rows)
    alone = stats.norm.logpdf(new[:, :3]).sum(axis=1).mean()  # of the first three columns
    assert model.score(rows) > model.log_evidence_ / len(rows)
    assert model.score(new) > alone + 4


BAD = {
    "points": (FieldDensity(points=30), X, "`points` must be None for a tree"),
    "order": (FieldDensity(order=2), X, "`order` must be None for a tree"),
    "extend": (FieldDensity(extend=True), X, "`extend` must be False for a tree"),
    "tree": (FieldDensity(tree="yes"), X, "`tree` must be"),
    "no tree": (FieldDensity(tree=False), X, "one, two or three columns, but it has 4"),
    "constant": (FieldDensity(), np.ones((9, 4)), "at least two different values"),
    "outside": (FieldDensity(bounds=[(0, None)] + [(None, None)] * 3), X, "column 0 holds -.*, beyond 0"),
    "names": (FieldDensity(), FRAME.assign(word=[f"row {i}" for i in range(40)]).iloc[:1], "different words"),
    "gaps": (FieldDensity(), FRAME.assign(word=["u", None] * 20), "must have a value everywhere"),
    "nan": (FieldDensity(), FRAME.assign(a=np.nan), "`X` must be finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    estimator, table, sentence = BAD[name]
    with pytest.raises(ValueError, match=sentence):
        clone(estimator).fit(table)


def test_bad_questions_are_refused(model, mixed):
    with pytest.raises(ValueError, match="which has no grid"):
        model.credible_band()
    with pytest.raises(ValueError, match="4 coordinates in its last dimension"):
        model.pdf([1.0, 2.0])
    with pytest.raises(ValueError, match="one, two or three columns"):
        FieldDensity().partial_fit(X)
    frame, words = mixed
    with pytest.raises(ValueError, match="'sideways' is new"):
        words.score_samples(frame.head().assign(word="sideways"))
    with pytest.raises(ValueError, match="must be a data frame with the columns"):
        words.score_samples(frame.to_numpy())
