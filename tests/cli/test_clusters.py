"""`quenched clusters`: how many, each split with its p-value, and the rows with their clusters."""

import json

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def data(tmp_path):
    """Two clusters of 60 rows in two columns."""
    rows = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([[0.0, 0.0], [7.0, 7.0]], 60, axis=0)
    path = tmp_path / "two.csv"
    pd.DataFrame(rows, columns=["a", "b"]).to_csv(path, index=False)
    return path


def test_clusters_are_printed_written_and_drawn(run, data, tmp_path):
    labels, picture = tmp_path / "labels.csv", tmp_path / "tree.png"
    code, out, err = run("clusters", data, "--labels", labels, "--plot", picture)
    assert (code, err) == (0, "")
    assert "120 rows, 2 columns, 2 clusters" in " ".join(out.split())
    assert "yes" in out
    assert "below 0.0001" in out  # never 0: the clusters are far apart
    written = pd.read_csv(labels)
    assert list(written) == ["a", "b", "cluster"]
    assert written.cluster.nunique() == 2
    assert written.groupby("cluster").a.std().max() < 2
    assert picture.stat().st_size > 1000


def test_json_has_the_tree(run, data):
    code, out, _ = run("clusters", data, "--columns", "a", "--json", "--quiet")
    found = json.loads(out)
    assert code == 0
    assert found["data_vars"]["seen"]["data"][0] is True
    assert found["data_vars"]["p"]["data"][0] < 0.05


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--labels", "x.txt"), "must name a file that ends in .csv"),
        (("--columns", "a,c"), "c"),
        (("--level", "2"), "`level` must lie"),
    ],
)
def test_bad_options_raise_one_sentence(run, data, words, message):
    code, out, err = run("clusters", data, *words)
    assert code != 0
    assert out == ""
    assert message in " ".join(err.split())
