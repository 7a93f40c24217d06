"""`quenched forecast --model`: classes and numbers, one model and several, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import quenched
from quenched import cli
from quenched.cli import models

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((120, 2))
NAMED = np.where(X[:, 0] + 0.6 * DRAW.standard_normal(120) > 0, "yes", "no")
PRICE = 100 + 10 * X[:, 0] + 5 * DRAW.standard_normal(120)


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """Runs a command on a table with a class and a number to predict, and returns the code and what it printed."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{a:.6f},{b:.6f},{word},{p:.4f}" for (a, b), word, p in zip(X, NAMED, PRICE, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,word,price", *rows]) + "\n")

    def run(*words):
        code = cli.main(["forecast", "table.csv", *words])
        said = capsys.readouterr()
        return code, " ".join(said.out.split()), " ".join(said.err.split())

    return run


def test_a_class_is_forecast_as_the_library_does(told, tmp_path):
    code, out, _ = told(
        "--target", "word", "--columns", "a,b", "--model", "logistic", "--out", "a.json", "--plot", "a.png"
    )
    assert code == 0
    assert "share of wrong classes on new rows" in out
    assert "A tenth less error than now" in out or "explain nothing" in out
    assert (tmp_path / "a.png").stat().st_size > 1000
    saved = json.dumps(json.loads((tmp_path / "a.json").read_text()))
    answer = quenched.forecast(models.build("logistic", True, 0), X.round(6), NAMED, random_state=0)
    assert f"{float(answer.error[-1]):.10g}"[:8] in saved


def test_several_models_stand_in_one_table_with_the_winner(told):
    code, out, _ = told("--target", "price", "--columns", "a,b", "--model", "ridge,knn")
    assert code == 0
    assert "ridge: Grade" in out
    assert "knn: Grade" in out
    found = {name: quenched.forecast(models.build(name, False, 0), X.round(6), PRICE.round(4), random_state=0)
             for name in ("ridge", "knn")}  # fmt: skip
    for times in (4, 10):
        best = min(found, key=lambda name: float(found[name].error.sel(examples=120 * times)))
        assert f"With {times} times the rows {best} has the lowest error" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "word", "--model", "gp,knn"), "must have numbers to predict"),
        (("--target", "price", "--model", "logistic"), "must have classes to predict, but price is a number"),
        (("--target", "word"), "these are classes: take --model forest"),
        (("--target", "price", "--model", "trees"), "must be one of"),
        (("--target", "price", "--model", "ridge", "--rmse", "3"), "must come with --model gp alone"),
    ],
)
def test_what_does_not_fit_is_a_sentence(told, words, said):
    code, _, err = told(*words)
    assert code == 2
    assert said in err


def test_logistic_regression_takes_numbers_for_classes_only_where_they_are():
    assert quenched.io.is_class(np.array([0, 1, 2]))
    assert not quenched.io.is_class(np.arange(50))
    assert not quenched.io.is_class(np.array(["1.5", "2.5"]))
    assert quenched.io.is_class(np.array(["a", "2.5"]))
    assert models.check(["ridge,knn", "ridge"]) == ["ridge", "knn"]
    assert models.check([]) == ["gp"]
