"""The registry of tables: its split, its rules, and the tables that need no other package."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import tables, trees
from benchmarks.environments import ENVIRONMENTS
from benchmarks.tables import BUNDLED, CLASSES, DENSITY, READERS, TABLES, Table


def made(monkeypatch, frame, target=None, tasks=(DENSITY,), drop=()):
    monkeypatch.setitem(READERS, "made", lambda place: frame)
    return Table("made up", "made", "", target, tasks, drop)


def test_the_halves_are_those_of_the_names_and_stay():
    halves = {name: TABLES[name].half for name in ("iris", "wine", "breast cancer", "digits", "diabetes", "pima")}
    assert halves == {"iris": "report", "wine": "development", "breast cancer": "development",
                      "digits": "development", "diabetes": "report", "pima": "development"}  # fmt: skip
    assert len(TABLES) >= 60
    for task in (CLASSES, tables.VALUES, DENSITY):
        both = [len(tables.tables(task, half)) for half in ("development", "report")]
        assert min(both) >= 12
        assert sum(both) == len(tables.tables(task))


def test_every_table_has_a_reader_and_its_package_an_environment():
    assert {table.source for table in TABLES.values()} <= set(READERS)
    assert set(READERS) - {BUNDLED} == set(ENVIRONMENTS["tables"].needs)
    assert all((table.target is None) == (table.tasks == (DENSITY,)) for table in TABLES.values())
    assert len({(table.source, table.place) for table in TABLES.values()}) == len(TABLES)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.source == BUNDLED])
def test_tables_are_finite(name):
    X, y = TABLES[name].arrays()
    assert np.all(np.isfinite(X))
    assert np.all(np.isfinite(y))
    assert len(X) == len(y) >= tables.FEWEST_ROWS
    assert np.all(np.ptp(X, axis=0) > 0)
    if CLASSES in TABLES[name].tasks:
        assert np.bincount(y).min() >= tables.FEWEST_OF_CLASS
    if DENSITY in TABLES[name].tasks:
        columns = TABLES[name].columns()
        assert tables.FEWEST_COLUMNS <= columns.shape[1] <= tables.MOST_COLUMNS
        assert np.all(np.isfinite(columns))


def test_tables_are_cleaned_by_rule(monkeypatch):
    rng, n = np.random.default_rng(0), 200
    frame = pd.DataFrame({"rownames": np.arange(n), "id": rng.normal(size=n), "x": rng.normal(size=n), "one": 1.0,
                          "each": [f"row {i}" for i in range(n)], "word": ["a", "b"] * (n // 2),
                          "y": ["u"] * 150 + ["v"] * 45 + ["rare"] * 5})  # fmt: skip
    frame.loc[3, "x"] = np.nan
    table = made(monkeypatch, frame, "y", (CLASSES,), ("id",))
    assert list(table.frame()) == ["x", "word", "y"]
    assert (len(table.frame()), len(table.frame(missing=True))) == (n - 1, n)
    X, y = table.arrays()
    assert X.shape == (n - 6, 2)
    assert set(X[:, 1]) == {0.0, 1.0}
    assert np.bincount(y).tolist() == [149, 45]


def test_densities_are_of_columns_that_have_one(monkeypatch):
    rng, n = np.random.default_rng(0), 400
    a, b = 2 * rng.normal(size=(2, n))
    frame = pd.DataFrame({"a": a, "rounded": np.round(b, 1), "sum": a + np.round(b, 1), "few": rng.integers(0, 9, n),
                          "mostly zero": np.maximum(rng.normal(size=n), 0), "c": rng.normal(size=n)})  # fmt: skip
    frame = pd.concat([frame, frame.iloc[:30]])
    columns = made(monkeypatch, frame).columns()
    assert list(columns) == ["a", "rounded", "c"]
    assert len(columns) == n
    spread = columns["rounded"].to_numpy() - np.round(b, 1)
    assert 0.045 < np.abs(spread).max() < 0.05
    assert len(np.unique(columns["rounded"])) == n


def test_the_page_shows_the_results_of_trees():
    known = json.loads(trees.RESULTS.read_text())
    assert list(known) == [table.name for table in tables.tables(DENSITY, "report") if table.name in known]
    text = trees.PAGE.read_text()
    assert trees.placed(text, trees.listing(known)) == text
    assert trees.wins({"a": {m: {"folds": [v]} for m, v in zip(trees.MODELS, (1.0, 0.5, 1.0, 0.0), strict=True)}}) == 1
