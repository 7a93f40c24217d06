"""`quenched forecast`: what a forecast says is said, in plain words; the forecast itself is made up, but for one."""

from __future__ import annotations

import re
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import quenched
from quenched import processes
from quenched.cli import digits, forecast, options, screen
from quenched.core.types import InputError
from tests.cli.forecasts import SCALE, TOO_FAR, answers, made_up

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def asked(monkeypatch):
    """The made-up forecast in place of the true one; gives the calls it gets, and takes what it shall answer."""
    calls = []

    def forecast(X, y, **keywords):
        calls.append({"X": X, "y": y, **keywords})
        return made_up(X, y, **keywords, **forecast.answer)

    forecast.answer = {}
    calls_and = type("Asked", (), {"calls": calls, "answer": forecast.answer})
    monkeypatch.setattr(processes, "forecast", forecast, raising=False)
    monkeypatch.setattr(processes, "examples_for", answers, raising=False)
    return calls_and


@pytest.fixture
def data(tmp_path):
    """A table of 80 rows: two numbers, a word, a constant, and a target of standard deviation 10."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 80))
    y = a + 0.5 * b
    y = 50 + SCALE * (y - y.mean()) / y.std()
    path = tmp_path / "houses.csv"
    lines = [f"{a[i]!r},{b[i]!r},{'uvw'[i % 3]},7,{y[i]!r}" for i in range(80)]
    path.write_text("\n".join(["a,b,kind,same,price", *lines]).replace("np.float64(", "").replace(")", "") + "\n")
    return path


def flat(text):
    return " ".join(text.split())


# What is asked for


def test_the_table_is_read_encoded_and_handed_on(run, data, asked):
    code, out, err = run("forecast", data, "--target", "price", "--check", 5, "--accuracy", 0.1, "--seed", 3)
    assert (code, err) == (0, "warning: Column 'same' is left out, because all its values are 7.\n")
    call = asked.calls[0]
    assert call["names"] == ("a", "b", "kind=u", "kind=v", "kind=w")
    assert (call["X"].shape, call["y"].shape) == ((80, 5), (80,))
    assert (call["check"], call["accuracy"], call["examples"]) == (5, 0.1, [10, 20, 40, 80, 160, 320, 800])
    assert "80 rows, 5 columns to predict price (mean 50, standard deviation 10)" in flat(out)
    assert "takes 46% of the target's variance for noise. Grade of the forecast: A." in flat(out)


def test_both_tables_have_the_numbers_of_the_forecast_with_units(run, data, asked):
    out = run("forecast", data, "--target", "price")[1]
    rows = [line.split() for line in out.splitlines()]
    now, ahead = (next(r for r in rows if r[:1] == [m] and "to" in r) for m in ("80", "320"))
    assert now[:6] == ["80", "(now)", "0.4000", "0.3805", "to", "0.4205"]
    assert ahead[:9] == ["320", "0.3000", "0.2742", "to", "0.3283", "5.477", "5.236", "to", "5.729"]
    assert ahead[9] == "-25.0%"
    assert ["800", "*"] in [r[:2] for r in rows]
    assert "by a power law" in out
    assert "RMSE is their square root in units of price" in flat(out)
    assert "leave-one-out 0.3600, on the rows themselves 0.3000" in flat(out)
    seen = [line.split()[:1] for line in out.split("hurt most")[0].splitlines()]
    assert all(seen.count([m]) == 1 for m in ("10", "20", "40", "80", "160"))  # one number for each size


def test_nothing_is_cut_off_on_a_narrow_terminal(data):
    table, called = forecast.read(data, "price", None)
    result = made_up(table.inputs, table.targets, check=9).assign_attrs(data=called)
    told = {}
    for width in (80, 100):
        file = StringIO()
        console = Console(file=file, width=width)
        forecast.show(result, console, table=table, shown=[80, 320], wanted=[])
        told[width] = file.getvalue()
        assert "…" not in told[width]
    assert "5.236 to 5.729" in told[100]
    assert "320  0.3000  0.2742 to 0.3283  5.477  -25.0%" in told[80]


def test_only_the_sizes_asked_for_are_shown_but_the_whole_curve_is_saved(run, data, asked, tmp_path):
    saved, drawn = tmp_path / "new" / "f.nc", tmp_path / "f.png"
    words = ("--examples", "100,2000,100", "--out", saved, "--plot", drawn)
    code, out, _ = run("forecast", data, "--target", "price", *words)
    assert code == 3
    ahead = out.split("Forecast:")[1].split("Errors are")[0]
    assert [line.split()[0] for line in ahead.splitlines() if " to " in line] == ["80", "100"]
    assert f"No forecast for 2,000 examples: {TOO_FAR}" in flat(out)
    found = quenched.load(saved)
    assert found["examples"].values.tolist() == [10, 20, 40, 80, 100, 160, 320, 800, 2000]
    assert (found.attrs["target"], found.attrs["data"]) == ("price", str(data))
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert "saved in" in out
    assert "drawn in" in out


def test_each_aim_gets_a_range(run, data, asked):
    out = flat(run("forecast", data, "--target", "price", "--error", "0.45", "--rmse", "6,7", "--rmse", "5")[1])
    said = "To reach error {} (RMSE {}) you need between 740 and 2,900 examples."
    assert "a tenth" not in out.lower()
    aims = ("0.45", "6.708"), ("0.36", "6"), ("0.49", "7"), ("0.25", "5")
    assert all(said.format(*aim) in out for aim in aims)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.21, "you need at least 740 examples; whether 800, as far as the forecast goes, are enough is open."),
        (0.6, "you need at most 35 examples: the 80 rows at hand are enough."),
        (0.22, "To reach error 0.22 (RMSE 4.69) the 80 rows at hand may be enough; whether 800, as far as the forecast "
               "goes, are enough is open."),
        (0.5, "To reach error 0.5 (RMSE 7.071) the 80 rows at hand may be enough; 90 examples are."),
        (0.8, "To reach error 0.8 (RMSE 8.944) the 80 rows at hand may be enough; 300 examples are."),
        (0.1, "Error 0.1 (RMSE 3.162) is out of reach: with 800 examples, as far as the forecast goes, it is 0.263, "
              "0.234 to 0.296 with 80% probability."),
        (1.5, "Error 1.5 (RMSE 12.25) is reached with 10 examples already."),
    ],
)  # fmt: skip
def test_an_aim_beyond_the_forecast_or_within_the_rows_is_said_to_be_so(run, data, asked, error, said):
    assert said in flat(run("forecast", data, "--target", "price", "--error", error)[1])


def test_without_an_aim_it_is_a_tenth_less_than_now(run, data, asked):
    for words in ((), ("--examples", "300")):  # now is known even where it is not shown
        out = flat(run("forecast", data, "--target", "price", *words)[1])
        assert ("A tenth less error than now (0.3600 instead of 0.4000) takes about 127 examples (80% interval 117 to "
                "145); 80 are at hand.") in out  # fmt: skip


def test_inputs_that_explain_nothing_are_the_headline(run, data, asked):
    asked.answer["explained"] = 0.01
    out = flat(run("forecast", data, "--target", "price")[1])
    assert "The inputs explain nothing of price that 80 rows could show: the error is 0.4000, where a constant" in out
    assert "tenth" not in out


def test_the_rows_that_hurt_most_are_numbered_as_in_the_file(run, data, asked):
    out = run("forecast", data, "--target", "price")[1]
    y = np.loadtxt(data, delimiter=",", skiprows=1, usecols=4)
    worst = int(np.argmax(np.abs(y - 50)))
    row = next(line.split() for line in out.splitlines() if re.match(rf" *{worst + 1} .*%", line))
    np.testing.assert_allclose([float(x) for x in row[1:4]], [y[worst], 50, y[worst] - 50], atol=0.05)  # as printed
    assert data.read_text().splitlines()[worst + 1].endswith(repr(float(y[worst])))


@pytest.mark.parametrize(
    ("differ", "words"),
    [((), "agrees with the forecast at every size"), ((20.0, 40.0), "DIFFERS from the forecast at 20, 40 examples")],
)
def test_a_check_stands_beside_it_and_says_whether_it_agrees(run, data, asked, differ, words):
    asked.answer["differ"] = differ
    out = run("forecast", data, "--target", "price", "--check", 9)[1]
    assert words in flat(out)
    table = out.split("Check:")[1]
    assert (table.count("agrees\n"), table.count("DIFFERS\n")) == (3 - len(differ), len(differ))
    assert f"{0.6 * (1.5 if differ else 1.01):.4f}  0.0050" in table


def test_shares_are_those_of_the_misses_shown(run, data, asked):
    out = run("forecast", data, "--target", "price")[1]
    rows = [line.split() for line in out.split("hurt most")[1].splitlines() if line.endswith("%")]
    miss, share = (np.array([float(row[k].rstrip("%")) for row in rows]) for k in (3, 4))
    y = np.loadtxt(data, delimiter=",", skiprows=1, usecols=4)
    np.testing.assert_allclose(share, 100 * miss**2 / np.sum((y - y.mean()) ** 2), atol=0.06)
    assert np.all(np.diff(share) <= 0)


def test_grades_and_reasons_are_said(run, data, asked):
    asked.answer |= {"grade": "rough", "reasons": "The backtest is off by 30%.\nFew rows."}
    out = flat(run("forecast", data, "--target", "price")[1])
    assert "Grade rough: take the forecast for a rough guide" in out
    assert "The backtest is off by 30%. Few rows." in out


def test_a_refusal_still_shows_what_was_computed(run, data, asked, tmp_path):
    asked.answer |= {"grade": "refused", "reasons": "Rows are copies.", "refuse": "Rows are copies."}
    code, out, _ = run("forecast", data, "--target", "price", "--plot", tmp_path / "f.png", "--out", tmp_path / "f.nc")
    assert code == 3
    assert "Grade refused: these data do not allow a forecast. Rows are copies." in flat(out)
    assert ["80", "0.3600", "6.000"] in [line.split() for line in out.splitlines()]
    assert "tenth" not in out
    assert quenched.load(tmp_path / "f.nc").attrs["grade"] == "refused"
    assert (tmp_path / "f.png").is_file()


def test_without_a_file_it_takes_the_diabetes_data_and_says_so(run, asked):
    code, out, _ = run("forecast")
    assert code == 0
    assert asked.calls[0]["X"].shape == (442, 10)
    assert "scikit-learn's diabetes data, because no file was given: 442 rows" in flat(out)


def test_help_lists_it_and_its_options(run):
    assert "forecast" in run("--help")[1]
    out = run("forecast", "--help")[1]
    for option in ("--target", "--columns", "--examples", "--error", "--rmse", "--check", "--accuracy", "--seed"):
        assert option in out


def test_from_end_to_end(run, data, tmp_path):
    saved, drawn = tmp_path / "f.nc", tmp_path / "f.png"
    words = ("--columns", "a,b,kind", "--examples", "40,200,2000", "--check", 4, "--out", saved, "--plot", drawn)
    code, out, err = run("forecast", data, "--target", "price", *words)
    assert (code, err.count("\n"), "No forecast for 2,000 examples" in err) == (3, 1, True)
    found = quenched.load(saved)
    assert digits.number(found.error.sel(examples=200)) in out
    assert f"{digits.number(found.check_error.sel(examples=40))}  " in out
    assert re.search(r"No forecast for 2,000 examples: \S", out)
    assert re.search(r"A tenth less error than now \(\S+ instead of \S+\) (takes about|is not)", flat(out))
    assert f"Grade {found.attrs['grade']}" in out
    assert drawn.read_bytes().startswith(b"\x89PNG")


# What goes wrong

BAD = {
    "no target": (["{}"], "--target must name the column to be predicted, but none was given; {} has the columns: a,"),
    "target without a file": (["--target", "y"], "must come with a file"),
    "no such target": (
        ["{}", "--target", "prize"],
        "'prize' must be in the table (did you mean price?), but there are only: a, b, kind",
    ),
    "no such column": (["{}", "--target", "price", "--columns", "a,z"], "'z' must be in the table"),
    "target of words": (["{}", "--target", "kind"], "'kind' of {} must be numbers"),
    "constant target": (["{}", "--target", "same"], "'same' of {} must vary"),
    "no file": (["nowhere.csv", "--target", "y"], "nowhere.csv is not there"),
    "size 0": (["{}", "--target", "price", "--examples", "0,5"], "--examples must be whole numbers from 1"),
    "negative size": (["{}", "--target", "price", "--examples", "-5"], "--examples must be whole numbers from 1"),
    "half a row": (["{}", "--target", "price", "--examples", "2.5"], "--examples must be whole numbers from 1"),
    "size no number": (["{}", "--target", "price", "--examples", "many"], "--examples must be a number"),
    "size infinite": (["{}", "--target", "price", "--examples", "inf"], "--examples must be finite"),
    "error 0": (["{}", "--target", "price", "--error", "0"], "--error must be positive"),
    "negative RMSE": (["{}", "--target", "price", "--rmse", "-1"], "--rmse must be positive"),
    "error no number": (["{}", "--target", "price", "--error", "low"], "--error must be a number"),
    "check no number": (["{}", "--target", "price", "--check", "some"], "--check"),
    "one draw": (["{}", "--target", "price", "--check", "1"], "--check must be 0 or at least 2"),
    "fewer than no draws": (["{}", "--target", "price", "--check", "-3"], "--check must be 0 or at least 2"),
    "unknown option": (["{}", "--traget", "price"], "--traget"),
    "out of another kind": (["{}", "--target", "price", "--out", "x.txt"], "ends in .nc, .csv, .json"),
    "plot of another kind": (["{}", "--target", "price", "--plot", "x.gif"], "ends in .png"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2_before_anything_is_computed(run, data, asked, case):
    words, part = BAD[case]
    code, _, err = run("forecast", *(word.format(data) for word in words))
    assert code == 2
    assert part.format(data) in err
    assert err.startswith("quenched: ")
    assert err.count("\n") == 1
    assert not asked.calls


def test_what_the_forecast_refuses_is_one_line(run, data, asked, monkeypatch):
    def refuse(X, y, **_):
        raise InputError("Argument `accuracy` must be positive, but -1 was given.")

    monkeypatch.setattr(processes, "forecast", refuse)
    code, _, err = run("forecast", data, "--target", "price", "--accuracy", "-1")
    assert (code, err.splitlines()[-1]) == (2, "quenched: Argument `accuracy` must be positive, but -1 was given.")


def test_four_rows_are_too_few(run, tmp_path, asked):
    path = tmp_path / "few.csv"
    path.write_text("a,y\n" + "".join(f"{i},{i * i}\n" for i in range(4)))
    code, _, err = run("forecast", path, "--target", "y")
    assert (code, "at least 5 rows, but it has 4" in err) == (2, True)


def test_a_place_that_is_lost_while_computing_loses_nothing(run, data, asked, tmp_path, monkeypatch):
    place = tmp_path / "place"
    true = processes.forecast

    def lose(X, y, **keywords):
        place.rmdir()
        place.write_text("")
        return true(X, y, **keywords)

    monkeypatch.setattr(processes, "forecast", lose)
    words = ("--out", place / "f.nc", "--plot", place / "f.png")
    code, out, err = run("forecast", data, "--target", "price", "--columns", "a,b", *words)
    assert code == 2
    assert "Grade A" in out
    kept = re.findall(r"the result was put in (\S+)\.(?= |$)", err.strip())
    assert quenched.load(kept[0]).sizes["point"] == 80
    assert len(kept) == 2


def test_a_fault_in_the_words_does_not_lose_the_file(run, data, asked, tmp_path, monkeypatch):
    monkeypatch.setattr(forecast, "_worst", lambda *_: 1 / 0)
    code, _, err = run("forecast", data, "--target", "price", "--out", tmp_path / "f.nc")
    assert (code, "ZeroDivisionError" in err) == (1, True)
    assert quenched.load(tmp_path / "f.nc").sizes["point"] == 80


# A science whose law is a table


@pytest.fixture
def joined(monkeypatch):
    monkeypatch.setattr(quenched, "SCIENCES", ("prototypes", "processes"))


@pytest.mark.parametrize("command", ["curve", "simulate"])
def test_words_cannot_give_a_table_and_one_sentence_points_to_forecast(run, joined, command):
    for words in ([], ["--rule", "gaussian-process", "--examples", "10"], ["--law", "empirical", "--noise", "0.1"]):
        code, _, err = run(command, "processes", *words)
        assert (code, err.count("\n")) == (2, 1)
        assert "use `quenched forecast DATA.csv --target COLUMN`" in err
    code, out, _ = run(command, "processes", "--help")
    assert (code, "Usage" in out, "quenched forecast DATA.csv" in flat(out)) == (0, True, True)


def test_laws_and_rules_of_a_table_can_be_looked_at(joined):
    found = options.find_science("processes")
    assert (list(found.laws), list(found.rules), found.starts) == (["empirical"], ["gaussian-process"], {})
    told = StringIO()
    for verb in (processes.curve, processes.measure):
        screen.explain(found, verb, Console(file=told, width=100))
    assert told.getvalue().count("--noise") == 2
    assert "--start" not in told.getvalue()
