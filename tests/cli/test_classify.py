"""`quenched classify`: prototypes of a table beside class means, the learned metric, and sentences for bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import NearestCentroid

from quenched.cli import options

pytestmark = pytest.mark.usefixtures("own_cache")
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture
def data(tmp_path):
    """Flowers, with a column of words and one that never varies."""
    X, kind = load_iris(return_X_y=True)
    path = tmp_path / "flowers.csv"
    frame = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    frame.assign(where=np.where(np.arange(150) % 2, "hill", "shore"), one=1, name=NAMES[kind]).to_csv(path, index=False)
    return path


def test_classes_are_found_by_few_columns(run, data, tmp_path):
    out, picture = tmp_path / "rows.csv", tmp_path / "metric.png"
    code, said, err = run("classify", data, "--target", "name", "--out", out, "--plot", picture)
    assert code == 0
    assert "one" in err  # the column that never varies is left out, with a note
    assert "150 rows, 6 columns, 3 classes of name, 3 prototypes by GMLVQ" in " ".join(said.split())
    weights = said.split("weights of columns")[1].splitlines()[2:]
    assert {line.rsplit(maxsplit=1)[0].strip() for line in weights[:2]} == {"petal width", "petal length"}
    rows = pd.read_csv(out)
    assert rows["row"].tolist() == list(range(1, 151))
    right = np.mean(rows["class_given"] == rows["class_found"])
    assert right > 0.94
    assert f"GMLVQ     {right:.3f}" in said
    assert rows.probability[rows["class_given"] != rows["class_found"]].mean() < rows.probability.mean()
    assert picture.stat().st_size > 1000


def test_it_is_compared_with_class_means_and_the_largest_class(run, data):
    words = ("classify", data, "--target", "name", "--columns", "sepal length,sepal width", "--json", "--quiet")
    code, said, _ = run(*words, "--rule", "lvq2.1", "--prototypes", "2", "--seed", "3")
    assert code == 0
    found = json.loads(said)
    accuracy = dict(zip(found["coords"]["model"]["data"], found["data_vars"]["accuracy"]["data"], strict=True))
    assert list(accuracy) == ["LVQ21", "nearest class mean", "largest class"]
    X, y = load_iris(return_X_y=True)
    X = (X[:, :2] - X[:, :2].mean(axis=0)) / X[:, :2].std(axis=0)  # folds are balanced: their scales hardly differ
    parts = StratifiedKFold(5, shuffle=True, random_state=3)
    expected = cross_val_score(NearestCentroid(), X, NAMES[y], cv=parts)
    np.testing.assert_allclose(accuracy["nearest class mean"], expected, atol=1.01 / 30)
    np.testing.assert_allclose(accuracy["largest class"], 1 / 3)
    assert np.mean(accuracy["LVQ21"]) > 0.6
    assert np.shape(found["data_vars"]["prototype"]["data"]) == (6, 2)
    assert "relevance" not in found["data_vars"]


def test_prototypes_of_no_use_are_named_so(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame(rng.normal(size=(60, 12)) + 0.6 * y[:, None], columns=[f"x{i}" for i in range(12)])
    frame.assign(y=y).to_csv(tmp_path / "noise.csv", index=False)
    code, said, _ = run("classify", tmp_path / "noise.csv", "--target", "y", "--rule", "vq", "--prototypes", "5")
    assert code == 0
    assert "The nearest class mean is right more often" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Option --target must name the column to be predicted"),
        (("--target", "sepal length"), "'sepal length' must hold classes, but it has 35 different numbers"),
        (("--target", "name", "--rule", "glvq", "--plot", "x.png"), "a rule that learns a metric, as gmlvq does"),
        (("--target", "name", "--rule", "gmlqv"), "did you mean gmlvq?"),
        (("--target", "name", "--prototypes", "0"), "--prototypes must be at least 1"),
        (("--target", "name", "--prototypes", "41"), "class 'setosa' has 50 rows"),
        (("--target", "one"), "'one' must hold two classes or more"),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(run, data, words, sentence):
    code, said, err = run("classify", data, *words)
    assert (code, said) == (2, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_classes_of_few_rows_are_counted_as_they_are(run, tmp_path):
    path, rng = tmp_path / "rare.csv", np.random.default_rng(0)
    y = np.array(["a"] * 12 + ["b"] * 7 + ["c"])
    pd.DataFrame({"x": rng.normal(size=20) + 4.0 * (y == "b"), "y": y}).to_csv(path, index=False)
    code, said, err = run("classify", path, "--target", "y", "--json")
    assert (code, err) == (0, "")
    assert json.loads(said)["data_vars"]["found"]["data"][0][2] == 0  # no other row of its class to learn from
    y[12:19] = ["d", "e", "f", "g", "h", "i", "j"]
    pd.DataFrame({"x": rng.normal(size=20), "y": y}).to_csv(path, index=False)
    code, _, err = run("classify", path, "--target", "y")
    assert code == 2
    assert "must hold 5 rows of one class and 2 of another, but the largest have 12 and 1" in err


def test_classes_of_numbers_come_in_the_order_of_numbers(run, tmp_path):
    path, grade = tmp_path / "grades.csv", np.repeat([2, 9, 10, 11], 10)
    pd.DataFrame({"a": grade + np.linspace(0, 0.5, 40), "grade": grade}).to_csv(path, index=False)
    code, said, _ = run("classify", path, "--target", "grade", "--rule", "lvq1")
    assert code == 0
    assert "40 rows, 1 column, 4 classes" in " ".join(said.split())
    first = [line.split()[0] for line in said.splitlines() if line.strip()]
    assert [word for word in first if word.isdigit()] == ["2", "9", "10", "11"] * 2


def test_an_energy_has_a_name_and_no_theory(run):
    assert {"glvq", "gmlvq", "rslvq", "lvq1"} <= set(options.find_science("prototypes").rules)
    code, _, err = run("curve", "prototypes", "--rule", "glvq", "--alpha", "2")
    assert code == 2
    assert "LVQClassifier (quenched classify) fits it" in err
