"""The command line: right words give results, wrong ones one line and exit code 2, and nothing computed is lost."""

from __future__ import annotations

import functools
import importlib.machinery
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import quenched
from quenched import outliers, prototypes
from quenched.cli import digits, entry, options, screen
from quenched.core.types import InputError
from tests.conftest import UNREADABLE

CURVE = ["curve", "prototypes", "--rule", "lvq1", "--prior", "0.8", "--rate", "0.2"]
PLAIN = ["curve", "prototypes", "--rule", "vq", "--alpha", "1"]
SIMULATE = ["simulate", "prototypes", "--rule", "lvq1", "--prior", "0.8", "--rate", "0.2", "--alpha", "1,2"]
CHAIN = ["--size", "20", "--simulator", "chain", "--tests", "50", "--batch", "64"]
"""The program of all simulations with 32 runs or more, also in other processes."""


pytestmark = pytest.mark.usefixtures("own_cache")


def replaced(monkeypatch, verb, before):
    """Do something before a verb of the prototypes does its work."""
    true = getattr(prototypes, verb)

    @functools.wraps(true)
    def changed(*args, **keywords):
        before()
        return true(*args, **keywords)

    monkeypatch.setattr(prototypes, verb, changed)


# What is asked for


def test_help_and_version_answer_without_loading_anything_heavy():
    check = ("import sys; from quenched.cli import main; code = main(sys.argv[1:]);"
             "heavy = {'jax', 'numpy', 'xarray', 'matplotlib', 'pandas', 'scipy'} & set(sys.modules);"
             "sys.exit(code or str(heavy or ''))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", check, "--help"], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert all(name in done.stdout for name in ("curve", "simulate", "forecast", "reproduce", "demo"))


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "quenched", "frecast"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'forecast'?" in done.stderr


@pytest.mark.parametrize(
    ("used", "left_out"),
    [
        ("import quenched.cli.screen, quenched.cli.options; from quenched.prototypes import curve",
         {"scipy.stats", "sklearn", "matplotlib"}),
        ("from quenched.estimators import FieldDensity", {"quenched.outliers", "quenched.prototypes", "matplotlib"}),
    ],
)  # fmt: skip
def test_a_command_loads_what_it_needs_and_no_more(used, left_out):
    check = f"import sys; {used}; sys.exit(' '.join({left_out} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def test_help_is_as_wide_as_the_terminal(run, monkeypatch):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 300)
    _, out, _ = run("forecast", "--help")
    assert "always predicting the mean. A target of words, or of up to twenty whole numbers, is a class" in out


def test_version_and_no_words(run):
    code, out, _ = run("--version")
    assert code == 0
    assert re.fullmatch(r"quenched \d+\.\d+\.\d+\n", out)
    assert "Usage" in run()[1]


def test_help_of_a_science_explains_laws_rules_and_fields(run):
    code, out, _ = run("curve", "prototypes", "--help")
    assert code == 0
    for word in (
        "two-clusters",
        "--separation",
        "the share of class +1",
        "lvq-plus",
        "--rate",
        "--alpha",
        "near-origin",
    ):
        assert word in out
    assert "prototypes" in run("simulate", "--help")[1]


def test_curve_prints_saves_and_draws_what_the_library_gives(run, tmp_path):
    saved, drawn = tmp_path / "new" / "c.nc", tmp_path / "c.png"
    code, out, err = run(*CURVE, "--alpha", "0:10:11", "--variances", "1,0.25", "--out", saved, "--plot", drawn)
    assert (code, err) == (0, "")
    law = prototypes.TwoClusters(prior=0.8, variances=(1.0, 0.25))
    expected = prototypes.curve(law, prototypes.LVQ1(0.2), alpha=np.linspace(0, 10, 11))
    found = quenched.load(saved)
    np.testing.assert_allclose(found.R, expected.R, rtol=1e-12)
    assert found.attrs["law"] == expected.attrs["law"]
    assert drawn.read_bytes().startswith(b"\x89PNG")
    shown = re.search(r"^error +(.*)$", out, flags=re.MULTILINE).group(1).split()
    assert shown == [digits.number(x) for x in expected.error.values[[0, 2, 5, 7, 10]]]
    assert len(out.splitlines()) < 16


def test_a_list_sweeps_and_what_diverges_is_said(run, tmp_path):
    saved = tmp_path / "c.nc"
    words = ("--rule", "lvq2.1", "--prior", "0.5,0.8", "--alpha", "0:1000:3", "--rate", "1", "--out", saved)
    code, out, _ = run("curve", "prototypes", *words)
    assert code == 0
    assert quenched.load(saved).error.dims == ("prior", "alpha")
    assert "not converged: diverged" in out


def test_simulate_prints_errors_and_the_agreement(run, tmp_path):
    saved = tmp_path / "s.nc"
    words = (*CHAIN, "--runs", 12, "--seed", 3, "--out", saved)
    code, out, err = run(*SIMULATE, "--start", "R=0,0/0,0;Q=0.01,0/0,0.01", *words)
    assert (code, err) == (0, "")
    points = quenched.load(saved)
    assert points.attrs["tests"] == 50
    assert json.loads(points.attrs["start"])["Q"] == [[0.01, 0], [0, 0.01]]
    assert digits.with_error(points.error.values[0], points.error_stderr.values[0]) in out
    assert re.search(r"theory and simulation (agree|DISAGREE): p (=|>) .*allowance 0\.05", out)


def test_a_theory_that_is_not_exact_says_so_and_a_phase_is_a_word(capsys):
    result = xr.Dataset(
        {
            "r": ("width", [0.9, 0.7, 0.0]),
            "stability": ("width", [np.inf, 0.2, 0.1]),
            "phase": ("width", ["ordered", "ordered", "unsplit"]),
            "residual": ("width", [0.0, 0.0, 0.0]),
            "outcome": ("width", ["converged"] * 3),
        },
        {"width": [1.0, 3.0, 5.0]},
    )
    screen.show(result, Console(width=120))
    out = capsys.readouterr().out
    assert out.split("phase")[1].split()[:3] == ["ordered", "ordered", "unsplit"]
    assert out.split("stability")[1].split()[0] == "inf"
    assert "stability above 1 at 1 of 3 points" in out
    assert "residual" not in out


def test_a_start_is_refused_where_the_theory_has_none(run):
    code, _, err = run("curve", "mixtures", "--alpha", "1", "--start", "annealed")
    assert code == 2
    assert "does not depend on the start" in err


def test_a_branch_is_chosen_by_name(run):
    words = ("curve", "outliers", "--rule", "hard-selection", "--alpha", "20")
    code, out, _ = run(*words, "--eta", "2,3", "--branch", "informed")
    assert code == 0
    assert "1.031" in out
    code, _, err = run(*words, "--branch", "informd")
    assert code == 2
    assert (
        "--branch must be one of: informed, overfit, trivial; but 'informd' was given (did you mean informed?)" in err
    )


def test_a_search_is_chosen_by_name():
    found = options.find_science("outliers")
    words = {"alpha": "2", "search": "iteration"}
    controls = options.declare(found, found.package.measure, None, "hard-selection", words, [])[2]
    assert controls == {"alpha": 2, "search": outliers.Iteration()}


def test_a_simulation_is_compared_with_the_first_branch(run):
    simulate = ("simulate", "outliers", "--rule", "hard-selection", "--alpha", "20", "--eta", "0,2")
    code, out, _ = run(*simulate, "--size", 20, "--runs", 10)
    assert code == 0
    assert "theory and simulation" in out


def test_too_few_runs_to_compare_are_still_printed(run):
    code, out, _ = run(*SIMULATE, *CHAIN, "--runs", 9)
    assert code == 0
    assert "not compared with the theory" in out


# Names and values


def test_names_of_rules():
    rules = options.find_science("prototypes").rules
    names = {"lvq1": "LVQ1", "LVQ1": "LVQ1", "lvq-plus": "LVQPlus", "lvq+": "LVQPlus", "lvq2.1": "LVQ21", "vq": "VQ"}
    assert {written: options.pick("--rule", rules, written).__name__ for written in names} == names


def test_names_of_laws_and_the_default_law():
    laws = options.find_science("prototypes").laws
    assert list(laws) == ["two-clusters", "clusters"]
    assert options.pick("--law", laws, None) is prototypes.TwoClusters


def test_values():
    assert options.numbers("--x", "0.8") == 0.8
    assert options.numbers("--x", "-1e-3") == -0.001
    assert options.numbers("--x", "1,2,5") == [1, 2, 5]
    assert options.numbers("--x", "0:1:3") == [0, 0.5, 1]
    assert options.numbers("--x", "1,2/3,4") == [[1, 2], [3, 4]]


def test_fields_of_the_general_law_are_arrays_and_names_that_both_have_are_prefixed():
    words = ["--law-labels=1,-1,1", "--priors", "0.5,0.25,0.25", "--gram", "1,0,0/0,1,0/0,0,1", "--alpha", "1",
             "--rule-labels", "1,1,-1"]  # fmt: skip
    found = options.find_science("prototypes")
    extra = options.extra_options(words)
    law, rule, controls = options.declare(found, found.package.curve, "clusters", "vq", extra, [])
    assert (law.labels, rule.labels, controls) == ((1, -1, 1), (1, 1, -1), {"alpha": 1.0})
    np.testing.assert_array_equal(law.gram, np.eye(3))


def test_a_field_of_two_numbers_is_one_value_and_rows_sweep_it():
    found = options.find_science("prototypes")
    for text, swept in (("1,0.25", None), ("1,0.25/1,1", [[1, 0.25], [1, 1]])):
        law, _, controls = options.declare(
            found, found.package.curve, None, "vq", {"variances": text, "alpha": "1"}, []
        )
        assert law.variances == (1, 0.25)
        assert swept is None or controls["variances"].tolist() == swept


def test_starts():
    found = options.find_science("prototypes")
    assert isinstance(options.find_start(found, "near-origin"), prototypes.NearOrigin)
    assert options.find_start(found, "norm=0.5").norm == 0.5
    assert options.find_start(found, None) is None
    with pytest.raises(InputError, match=r"R=\.\.\.;Q=\.\.\."):
        options.find_start(found, "R=1")


# What goes wrong

BAD = {
    "unknown command": (["crave"], "crave"),
    "unknown option of the root": (["--polt"], "--polt"),
    "no science": (["curve", "--rule", "lvq1"], "SCIENCE must be one of: fields, mixtures, outliers, prototypes"),
    "unknown science": (["curve", "prototype"], "did you mean prototypes"),
    "no rule": (["curve", "prototypes", "--alpha", "1"], "--rule must be given, as one of: lvq1, lvq-plus, vq, lvq21"),
    "unknown rule": (["curve", "prototypes", "--rule", "lvq7"], "--rule must be one of"),
    "unknown law": ([*CURVE, "--law", "three-clusters"], "did you mean two-clusters"),
    "no alpha": (CURVE, "--alpha must be given"),
    "mistyped option": ([*CURVE, "--alpha", "1", "--seperation", "2"], "did you mean --separation"),
    "mistyped option of the command": ([*CURVE, "--alpha", "1", "--polt", "x.png"], "did you mean --plot"),
    "option without a value": ([*CURVE, "--alpha"], "--alpha must have a value"),
    "option twice": ([*CURVE, "--alpha", "1", "--alpha", "2"], "given twice"),
    "stray word": ([*CURVE, "--alpha", "1", "now"], "'now' was given"),
    "no number": ([*CURVE, "--alpha", "many"], "--alpha must be a number"),
    "half a range": ([*CURVE, "--alpha", "0:50"], "--alpha must be a number"),
    "range too long": ([*CURVE, "--alpha", "0:50:1000000000000"], "at most 1000000"),
    "ragged rows": ([*CURVE, "--alpha", "1", "--variances", "1,2/3"], "--variances must be"),
    "alpha falls": ([*CURVE, "--alpha", "2,1"], "`alpha` must increase"),
    "not finite": ([*CURVE, "--alpha", "nan"], "`alpha` must"),
    "prior beyond 1": ([*PLAIN, "--prior", "1.5"], "`prior` must lie strictly"),
    "three variances": ([*CURVE, "--alpha", "1", "--variances", "1,2,3"], "`variances` must be two numbers"),
    "whose labels": ([*PLAIN, "--law", "clusters", "--labels", "1,-1"], "--law-labels or --rule-labels"),
    "law without its fields": ([*PLAIN, "--law", "clusters"], "--priors must be given"),
    "unknown start": ([*CURVE, "--alpha", "1", "--start", "nowhere"], "--start must be one of: near-origin"),
    "start of another shape": ([*SIMULATE, "--start", "R=0,0;Q=1"], "shapes"),
    "out of another kind": ([*CURVE, "--alpha", "1", "--out", "x.txt"], "ends in .nc, .csv, .json"),
    "plot of another kind": ([*CURVE, "--alpha", "1", "--plot", "x.gif"], "ends in .png"),
    "size no number": ([*SIMULATE, "--size", "big"], "--size"),
    "size too small": ([*SIMULATE, "--size", "3"], "`size` must exceed"),
    "no runs": ([*SIMULATE, "--runs", "0"], "`runs` must be at least 1"),
    "no workers": ([*SIMULATE, "--workers", "0"], "`workers` must be at least 1"),
    "two executors": ([*SIMULATE, "--workers", "2", "--scheduler", "tcp://x:1"], "must not both"),
    "unknown simulator": ([*SIMULATE, "--simulator", "chian"], "did you mean chain"),
    "unknown paper": (["reproduce", "biehl2005"], "one of: barkai1994, dietrich1998, lemm1999, malzahn2002"),
    "the demonstration is no paper": (["reproduce", "demo"], "PAPER must be one of"),
    "figure of no paper": (["reproduce", "--figure", "3"], "--figure must come with a paper"),
    "no workers to reproduce": (["reproduce", "biehl2006", "--workers", "0"], "--workers"),
    "no cluster": (["reproduce", "biehl2006", "--scheduler", "nonsense"], "`client` must name a Dask scheduler"),
    "unknown figure": (["reproduce", "biehl2006", "--figure", "9"], "--figure must be one of: figure_1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(run, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, part = BAD[case]
    code, out, err = run(*words)
    assert code == 2
    assert part.lower() in err.lower()
    assert err.count("\n") == 1
    assert err.startswith("quenched: ")
    assert "Traceback" not in out + err
    assert [p.name for p in tmp_path.iterdir() if p.name != "cache"] == []


@pytest.mark.parametrize("command", ["curve", "simulate", "reproduce", "demo"])
def test_a_place_that_cannot_be_written_is_refused_before_computing(run, tmp_path, monkeypatch, command):
    for verb in ("curve", "measure"):
        replaced(monkeypatch, verb, lambda: pytest.fail("it was computed"))
    blocked = tmp_path / "file"
    blocked.write_text("")
    words = {
        "curve": [*CURVE, "--alpha", "1", "--out", blocked / "x.nc"],
        "simulate": [*SIMULATE, "--plot", blocked / "x.png"],
        "reproduce": ["reproduce", "biehl2006", "--figure", "2", "--out", blocked],
        "demo": ["demo", "--out", blocked],
    }
    code, _, err = run(*words[command])
    assert code == 2
    assert err.count("\n") == 1
    assert "must be writable, but it is not" in err


def test_a_place_that_is_lost_while_computing_does_not_lose_the_result(run, tmp_path, monkeypatch):
    place = tmp_path / "place"

    def lose():
        place.rmdir()
        place.write_text("")

    replaced(monkeypatch, "curve", lose)
    code, _, err = run(*CURVE, "--alpha", "0:10:11", "--out", place / "c.nc", "--plot", place / "c.png")
    assert code == 2
    assert err.count("\n") == 1
    kept = re.findall(r"the result was put in (\S+)\.(?= |$)", err.strip())
    assert len(kept) == 2
    assert quenched.load(kept[0]).sizes["alpha"] == 11
    assert (Path(kept[1]) / "c.png").is_file()


@pytest.mark.parametrize(("folder", "words"), [("pieces", "kept in .*pieces"), (None, "nothing was kept")])
def test_an_interrupt_is_one_line_that_says_what_is_kept(run, tmp_path, monkeypatch, folder, words):
    def interrupt():
        raise KeyboardInterrupt

    replaced(monkeypatch, "measure", interrupt)
    more = [] if folder is None else ["--folder", tmp_path / folder]
    code, _, err = run(*SIMULATE, *more)
    assert code == 130
    assert err.count("\n") == 1
    assert re.search(words, err)


@pytest.fixture
def heard():
    """Ctrl-C is heard here, even if a shell began these tests in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before or signal.SIG_DFL)


@pytest.mark.usefixtures("heard")
def test_an_interrupt_while_compiled_code_loads_waits_for_it(run, monkeypatch):
    """Compiled modules make an error of their own of it, and then the command would fail or go on."""

    class Slow(importlib.machinery.ExtensionFileLoader):
        def exec_module(self, module):
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            except KeyboardInterrupt:
                raise ImportError("not all of it") from None

    def load():
        Slow("slow", "slow.so").exec_module(pytest)
        time.sleep(10)
        raise AssertionError

    replaced(monkeypatch, "measure", load)
    code, _, err = run(*SIMULATE)
    assert code == 130
    assert err.count("\n") == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("heard")
def test_an_interrupt_lost_in_a_callback_comes_again(run, monkeypatch):
    class Lost:
        def __del__(self):
            raise KeyboardInterrupt

    def lose():
        Lost()
        time.sleep(10)
        raise AssertionError

    replaced(monkeypatch, "measure", lose)
    assert run(*SIMULATE)[0] == 130


def test_a_fault_of_ours_is_one_line_unless_a_traceback_is_asked_for(run, monkeypatch):
    def fault():
        raise ZeroDivisionError("no")

    replaced(monkeypatch, "curve", fault)
    code, _, err = run(*CURVE, "--alpha", "1")
    assert code == 1
    assert err == "quenched: ZeroDivisionError: no (set QUENCHED_TRACEBACK=1 to see where)\n"
    monkeypatch.setenv("QUENCHED_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run(*CURVE, "--alpha", "1")


def test_warnings_are_one_line(run, monkeypatch):
    import warnings

    monkeypatch.setattr(options, "find_science", lambda name: warnings.warn("beware", RuntimeWarning, stacklevel=1))
    with pytest.warns(RuntimeWarning):
        warnings.warn("pytest itself sees warnings", RuntimeWarning, stacklevel=1)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, _, err = run(*CURVE, "--alpha", "1")
    assert err.startswith("warning: beware\n")


def test_compiled_programs_are_kept_where_the_user_may_write(run, tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    run("--version")
    chosen = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    assert chosen.parent == tmp_path / "cache" / "quenched"
    assert chosen.is_dir()
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert run("--version")[0] == 0
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_compiled_programs_do_not_fill_the_disk(run, tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    run("--version")
    chosen = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    other = chosen.with_name("jax-another")  # of another processor, or of an older system
    other.mkdir()
    for age, place in enumerate([chosen / "a", chosen / "b", other / "c", chosen / "d"]):
        place.write_bytes(bytes(100))
        os.utime(place, (1e9 - age, 1e9 - age))
    os.utime(other / "c", (1e9 + 1, 1e9 - 2))  # read since
    monkeypatch.setattr(entry, "MOST_COMPILED", 250)
    run("--version")
    assert {path.name for path in chosen.parent.glob("*/*")} == {"a", "c"}


def test_ctrl_c_keeps_the_finished_pieces(tmp_path, launch):
    folder = tmp_path / "pieces"
    start = "import sys; from quenched.cli import main; sys.exit(main())"
    words = ["-W", f"ignore:{UNREADABLE}", "-c", start, *SIMULATE, *CHAIN, "--runs", "200001", "--folder", folder]
    process = launch(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < limit and not list(folder.glob("*.piece")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err.count("\n")) == ("", 1)
    assert f"kept in {folder}" in err
    assert list(folder.glob("*.piece"))
