"""What commands leave behind for other programs: JSON, CSV, exit codes, and silence."""

from __future__ import annotations

import functools
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

import quenched
from quenched import processes, prototypes
from quenched.cli import digits, screen
from tests.cli.test_forecast import answers, made_up

pytestmark = pytest.mark.usefixtures("own_cache")

CURVE = ("curve", "prototypes", "--rule", "lvq1", "--prior", "0.8", "--rate", "0.2,0.4", "--alpha", "0,1,2")


@pytest.fixture
def curve(monkeypatch):
    """A made-up curve in place of the true one."""
    draw = np.random.default_rng(0)
    dims, classes = ("rate", "alpha"), [1, -1]
    made = xr.Dataset(
        {
            "R": ((*dims, "prototype", "cluster"), draw.normal(size=(2, 3, 2, 2))),
            "error": (dims, draw.uniform(size=(2, 3))),
            "error_run": ((*dims, "run"), draw.uniform(size=(2, 3, 4))),
            "outcome": (dims, np.full((2, 3), "converged")),
        },
        {"rate": [0.2, 0.4], "alpha": [0.0, 1.0, 2.0], "prototype": classes, "cluster": classes},
        {"rule": "LVQ1", "size": 8},
    )
    for verb in ("curve", "measure"):
        monkeypatch.setattr(prototypes, verb, functools.wraps(getattr(prototypes, verb))(lambda *_, **__: made))
    return made


@pytest.fixture
def table(tmp_path):
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.normal(size=80), "b": draw.normal(size=80)})
    frame["y"] = 50 + 10 * frame.a + frame.b
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def forecast(monkeypatch):
    """A made-up forecast in place of the true one, which takes what it shall answer."""
    answer: dict = {}
    monkeypatch.setattr(processes, "forecast", lambda X, y, **keywords: made_up(X, y, **keywords, **answer))
    monkeypatch.setattr(processes, "examples_for", answers)
    return answer


def test_json_is_all_that_is_printed_and_has_everything(run, tmp_path, curve):
    code, out, err = run(*CURVE, "--json", "--out", tmp_path / "c.nc")
    assert code == 0
    said, saved = json.loads(out), quenched.load(tmp_path / "c.nc")
    assert "saved in" in err
    np.testing.assert_array_equal(said["data_vars"]["error"]["data"], saved["error"])
    np.testing.assert_array_equal(said["data_vars"]["R"]["data"], saved["R"])
    assert said["coords"]["alpha"]["data"] == [0, 1, 2]
    assert said["attrs"]["rule"] == saved.attrs["rule"]
    assert run(*CURVE, "--out", tmp_path / "c.json")[0] == 0
    assert json.loads((tmp_path / "c.json").read_text()) == said


def test_csv_has_a_row_for_each_point_and_a_column_for_each_component(run, tmp_path, curve):
    assert run(*CURVE, "--out", tmp_path / "c.csv")[0] == 0
    found = pd.read_csv(tmp_path / "c.csv")
    assert found.columns[:2].tolist() == ["rate", "alpha"]
    assert found.alpha.tolist() == [0, 1, 2, 0, 1, 2]
    np.testing.assert_allclose(found.error, curve.error.values.ravel())
    np.testing.assert_allclose(found["R[1,-1]"], curve.R.sel(prototype=1, cluster=-1).values.ravel())
    assert not [name for name in found if name.endswith("_run")]


def test_a_forecast_for_other_programs(run, table, tmp_path, forecast):
    words = ("forecast", table, "--target", "y", "--error", "0.45", "--error", "0.1", "--examples", "80,320")
    code, out, err = run(*words, "--json", "--out", tmp_path / "f.csv")
    assert (code, "saved in" in err) == (0, True)
    said = json.loads(out)
    assert said["wanted"][0] == {"error": 0.45, "examples_low": 743.0, "examples_high": 2871.0}
    assert "must be another" in said["wanted"][1]["sentence"]
    assert said["attrs"]["grade"] == "A"
    found = pd.read_csv(tmp_path / "f.csv")
    assert found.examples.tolist() == [10, 20, 40, 80, 160, 320, 800]
    assert {"error", "error_low", "error_high", "gain", "rmse", "refused"} <= {*found.columns}
    assert "leave_one_out" not in found


def test_what_is_not_a_number_is_null(run, table, forecast):
    forecast["refuse"] = "Rows are copies."
    code, out, _ = run("forecast", table, "--target", "y", "--json")
    assert code == 3
    assert json.loads(out)["data_vars"]["error"]["data"] == [None] * 7


def test_quiet_says_nothing_but_errors(run, table, tmp_path, forecast, curve):
    frame = pd.read_csv(table)
    frame["same"] = 7
    frame.to_csv(table, index=False)
    words = ("forecast", table, "--target", "y")
    assert "warning: Column 'same' is left out" in run(*words)[2]
    places = ("--out", tmp_path / "f.nc", "--plot", tmp_path / "f.png")
    assert run(*words, "--quiet", *places) == (0, "", "")
    assert (tmp_path / "f.nc").is_file()
    assert (tmp_path / "f.png").is_file()
    code, out, err = run(*words, "--quiet", "--json")
    assert (code, err, json.loads(out)["attrs"]["rows"]) == (0, "", 80)
    code, out, err = run("forecast", table, "--target", "z", "--quiet")
    assert (code, out, err.startswith("quenched: Column 'z'")) == (2, "", True)
    assert run(*CURVE, "--quiet") == (0, "", "")
    simulated = ("--rule", "lvq1", "--size", "20", "--runs", "4", "--alpha", "1")
    assert run("simulate", "prototypes", *simulated, "--quiet") == (0, "", "")
    assert run("density", table, "--column", "a", "--quiet") == (0, "", "")


def test_a_refused_answer_has_an_exit_code_of_its_own(run, table, forecast):
    words = ("forecast", table, "--target", "y")
    assert run(*words, "--examples", "100")[0] == 0
    code, out, err = run(*words, "--examples", "100,2000")
    assert (code, err) == (
        3,
        "quenched: No forecast for 2,000 examples: A forecast reaches at most 10 times the rows.\n",
    )
    assert "Grade A" in out
    forecast |= {"refuse": "Rows are copies.", "grade": "refused"}
    code, out, err = run(*words)
    assert (code, err) == (3, "quenched: No forecast: Rows are copies.\n")
    assert "Grade refused" in out
    assert run(*words, "--quiet") == (3, "", "quenched: No forecast: Rows are copies.\n")


def test_gaps_copies_and_encodings_are_options_of_both_commands(run, tmp_path, forecast):
    rows = "".join(f"{i % 40},{'' if i == 4 else i % 40 * 2},{i % 40 * 3}\n" for i in range(60))
    path = tmp_path / "data.csv"
    path.write_bytes(("größe,b,y\n" + rows).encode("latin-1"))
    for words in (("forecast", path, "--target", "y"), ("density", path, "--column", "b")):
        code, _, err = run(*words)
        assert (code, "give its encoding, such as latin-1" in err) == (2, True)
        code, _, err = run(*words, "--encoding", "latin-1")
        assert (code, "column 'b' lacks 1 of 60 values (row 5)" in err) == (2, True)
        code, out, err = run(*words, "--encoding", "latin-1", "--drop-missing", "--drop-copies")
        assert code in (0, 3)
        assert "1 of 60 rows are left out, because values are missing in: b (1)" in err
        assert "19 of 59 rows are left out, because they are copies" in err
        assert "40 rows" in " ".join(out.split())
    code, out, _ = run("density", path, "--encoding", "latin-1")
    assert code == 2
    for command in ("forecast", "density"):
        code, _, err = run(command, "--drop-missing")
        assert (code, "must come with a file" in err) == (2, True)


def test_the_rows_that_hurt_most_keep_their_numbers_when_others_are_left_out(run, table, forecast):
    frame = pd.read_csv(table)
    frame.loc[:9, "a"] = np.nan
    frame.to_csv(table, index=False)
    out = run("forecast", table, "--target", "y", "--drop-missing")[1]
    worst = int(np.argmax(np.abs(frame.y[10:] - frame.y[10:].mean()))) + 10
    first = out.split("The rows that hurt most")[1].splitlines()[2].split()
    assert first[0] == str(worst + 1)


def test_nothing_in_a_table_moves_the_terminal(run, tmp_path, forecast):
    path = tmp_path / "da\x1bta.csv"
    draw = np.random.default_rng(0)
    lines = [f"{x:.3f},{'uv'[i % 2]}\x1b[1m,{y:.3f}" for i, (x, y) in enumerate(draw.normal(size=(60, 2)))]
    path.write_text("\n".join(['"a\x1b[31m",w,"y\x1b]0;title\x07"', *lines]) + "\n")
    for words in (
        ("forecast", path, "--target", "y\x1b]0;title\x07"),
        ("forecast", path, "--target", "a\x1b[31m", "--columns", "w"),
        ("forecast", path, "--target", "z\x1b"),
        ("forecast", path),
        ("density", path, "--column", "a\x1b[31m", "--plot", tmp_path / "p\x1b.png"),
        ("density", path, "--column", "w"),
        ("curve", "proto\x1btypes"),
    ):
        _, out, err = run(*words)
        assert out + err
        assert all(line.isprintable() for line in (out + err).splitlines()), words


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0010123, 0.0000321, "0.001012 ± 0.000032"),
        (0.5, 0.01, "0.500 ± 0.010"),
        (0.5, 0.0, "0.5000 ± 0"),
        (0.5, np.nan, "0.5000 ± ?"),
        (0.5, np.inf, "0.5000 ± ?"),
        (12345.6, 1.5, "12,345.6 ± 1.5"),
        (0.0, 0.02, "0.000 ± 0.020"),
        (1e-12, 1e-13, "1.000e-12 ± 1.0e-13"),
        (1e200, 1e198, "1.000e+200 ± 1.0e+198"),
    ],
)
def test_a_standard_error_has_two_digits(value, error, text):
    assert digits.with_error(value, error) == text


def test_numbers_have_significant_digits():
    for value, text in ((0.00101, "0.001010"), (1e-5, "1.000e-05"), (0.3, "0.3000"), (12.3456, "12.35"),
                        (1e200, "1.000e+200"), (99999.7, "100,000"), (-0.25, "-0.2500"), (0, "0")):  # fmt: skip
        assert digits.number(value) == text
    assert digits.alike(1e-200)(2.5e-200, "+") == "+2.5e-200"


def test_small_numbers_keep_their_digits_on_the_screen(capsys):
    result = xr.Dataset({"error": ("alpha", [0.00101]), "error_stderr": ("alpha", [0.00003])}, {"alpha": [1.0]})
    screen.show(result, Console(width=100))
    assert "0.001010 ± 0.000030" in capsys.readouterr().out
