"""`quenched outliers`: the doubtful rows of a file, their share, and what is refused in one sentence."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

import quenched
from quenched.cli import doubtful, main

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def files(tmp_path):
    """Flowers of which every fifth has a wrong name, and patients of whom every fifth has a wrong value."""
    X, kind = load_iris(return_X_y=True)
    wrong = np.arange(len(kind)) % 5 == 0
    names = np.array(["setosa", "versicolor", "virginica"])[np.where(wrong, (kind + 1) % 3, kind)]
    pd.DataFrame(X, columns=list("abcd")).assign(name=names).to_csv(tmp_path / "flowers.csv", index=False)
    X, y = load_diabetes(return_X_y=True)
    y = np.where(np.arange(len(y)) % 5 == 0, y + 600, y)
    pd.DataFrame(X, columns=list("abcdefghij")).assign(y=y).to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path


def call(*words):
    return main([str(word) for word in words])


def test_wrong_rows_come_first(files):
    for name, target, classes, least in (("flowers", "name", True, 0.85), ("patients", "y", False, 1.0)):
        table, _, found = doubtful.read(files / f"{name}.csv", target, None)
        assert found == classes
        result = doubtful.judge(table, classes=classes, seed=0)
        count = int(np.ceil(len(table.inputs) / 5))
        first = result.row.values[: count // 2]
        assert np.mean((first - 1) % 5 == 0) >= least
        assert result.attrs["outlier_fraction_low"] <= 0.2 <= result.attrs["outlier_fraction_high"]
        assert quenched.plot(result).axes[0].get_xlabel() == "rows, the most doubtful first"


def test_the_command_prints_saves_and_draws(files, capsys):
    out, picture = files / "doubtful.csv", files / "doubtful.png"
    code = call("outliers", files / "patients.csv", "--target", "y", "--out", out, "--plot", picture)
    said = capsys.readouterr().out
    assert code == 0
    assert "Share of outliers: 20%" in said
    assert len(pd.read_csv(out)) == 442
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Argument DATA must name a file"),
        (("flowers.csv",), "Option --target must name the column to be predicted"),
        (("flowers.csv", "--target", "colour"), "colour"),
    ],
)
def test_errors_are_one_sentence(files, words, sentence, capsys):
    assert call("outliers", *(files / one if one.endswith(".csv") else one for one in words)) != 0
    said = capsys.readouterr()
    assert sentence in said.err
    assert len(said.err.strip().splitlines()) == 1
