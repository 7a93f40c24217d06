"""Papers computed again: each step is kept and found again, whatever stops it, and a failure takes no other with it."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr

import quenched
from quenched import papers
from quenched.core import store
from quenched.core.claims import Claim, Verdict, apart, below
from quenched.core.ensemble import Processes, ensemble, place
from quenched.core.figures import Figure, Kind, Panel, Scale, Series
from quenched.papers import reproduction
from quenched.papers.reproduction import State, Step
from quenched.papers.reproduction.steps import _identity, decode, encode
from tests.conftest import CACHE

running = importlib.import_module("quenched.papers.reproduction.run")  # beside the function `run`

pytestmark = pytest.mark.usefixtures("own_cache")

PAPER = """
import time
import numpy as np, xarray as xr
from pathlib import Path
from quenched.core.claims import Claim, below
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.core.types import InputError
TITLE, REFERENCE = "A paper", "A journal"
NOT_BUILT = {"figure_5": "Nobody has built it."}
X = np.array([1.0, 2.0])

def figure(name, quick):
    with (Path(__file__).parent / "computed").open("a") as log:
        log.write(f"{name}\\n")
    panel = Panel("time", "error", (Series("LVQ1", Kind.theory, X, X),))
    data = {"theory": xr.Dataset({"error": ("alpha", X)}, {"alpha": X}, {"quick": int(quick)})}
    return Figure(f"fake2000/{name}", name, "A caption", (panel,), data)

def figure_3_left(*, quick=False):
    return figure("figure_3_left", quick)

def figure_3_right(*, quick=False):
    return figure("figure_3_right", quick)

def figure_30(*, quick=False):
    while (Path(__file__).parent / "wait").exists():
        time.sleep(0.05)
    return figure("figure_30", quick)

FIGURES = {f.__name__: f for f in (figure_3_left, figure_3_right, figure_30)}

def claims(*, quick=False, figures=()):
    given = ", ".join(one.key for one in figures)
    return (Claim("section 1", "the claim", "1", given, "seen", below(2.0, 1.0), below(2.0, 3.0)),)
"""
FIGURES = ["figure_3_left", "figure_3_right", "figure_30"]


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder with a paper of its own."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "fake2000.py").write_text(PAPER)
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, "quenched.papers.fake2000", raising=False)
    return folder


def computed(shelf):
    return (shelf / "computed").read_text().split()


@pytest.fixture
def again(run, tmp_path):
    """Reproduce the paper, in this process."""
    return lambda *words: run("reproduce", "fake2000", "--workers", "1", "--out", tmp_path / "r", *words)


# The command


def test_it_writes_the_report_and_says_where_in_the_last_line(again, shelf, tmp_path):
    code, out, err = again("--figure", "3")
    assert code == 0
    page = Path(out.splitlines()[-1])
    assert page == tmp_path / "r" / "report.html"
    assert {p.name for p in page.parent.glob("*.png")} == {"fake2000-figure_3_left.png", "fake2000-figure_3_right.png"}
    assert "the claim" not in page.read_text()
    assert "Nobody has built it" not in page.read_text()
    assert quenched.load(page.parent / "fake2000-figure_3_left-theory.nc").attrs["quick"] == 1
    assert err == "2 steps in one process: at least 5 s.\n"


def test_all_of_it_in_full(again, shelf, tmp_path):
    code, out, _ = again("--full")
    assert code == 0
    assert len(list((tmp_path / "r").glob("*.png"))) == 3
    page = Path(out.splitlines()[-1]).read_text()
    assert "Nobody has built it" in page
    assert ", ".join(f"fake2000/{name}" for name in FIGURES) in page  # claims get every figure
    assert quenched.load(tmp_path / "r" / "fake2000-figure_30-theory.nc").attrs["quick"] == 0


def test_a_second_call_computes_nothing_and_says_the_same(again, shelf, tmp_path):
    _, first, _ = again()
    page = (tmp_path / "r" / "report.html").read_text()
    _, second, err = again()
    assert computed(shelf) == FIGURES
    assert (first, err) == (second, "")
    assert (tmp_path / "r" / "report.html").read_text() == page
    again("--full")
    assert computed(shelf) == FIGURES * 2  # a quick step is not a full one


def test_other_code_computes_again(again, shelf, monkeypatch):
    again()
    (shelf / "fake2000.py").write_text(PAPER + "\n# changed")
    monkeypatch.delitem(sys.modules, "quenched.papers.fake2000")
    again()
    assert computed(shelf) == FIGURES * 2


def test_a_damaged_step_is_computed_again(again, shelf, tmp_path):
    again("--figure", "30")
    step = tmp_path / "r" / "steps" / "quick" / "fake2000-figure_30.json"
    whole = step.read_bytes()
    trap = b"cos\nsystem\n(S'touch " + str(tmp_path / "executed").encode() + b"'\ntR."
    known = _identity(Step("fake2000", "figure_30"), quick=True)
    bad = [whole[:-20], whole[:90] + b"X" + whole[91:], b"{}", trap]
    bad += [store.seal(text, known) for text in (b"[" * 100_000, b'{"value": 1e400}', b"\xff", trap)]
    for content in bad:
        step.write_bytes(content)
        found = reproduction.run([Step("fake2000", "figure_30")], quick=True, folder=tmp_path / "r")
        assert [one.value.key for one in found.values()] == ["fake2000/figure_30"]
        assert step.read_bytes()[:200] == whole[:200]
    assert computed(shelf) == ["figure_30"] * (1 + len(bad))
    assert not (tmp_path / "executed").exists()


def test_a_missing_package_leaves_the_other_steps_and_is_named(again, shelf, monkeypatch):
    fake = importlib.import_module("quenched.papers.fake2000")

    def lacking():
        raise quenched.InputError("The data must come with a package, but it is not installed.")

    monkeypatch.setattr(fake, "FIGURES", {**fake.FIGURES, "figure_30": lacking})
    code, out, err = again()
    assert code == 0
    assert "warning: fake2000/figure_30 was not computed: The data must come with a package" in err
    assert "The data must come with a package" in Path(out.splitlines()[-1]).read_text()
    code, out, err = again("--figure", "30")  # nothing else was asked for
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "quenched: The data must come with a package, but it is not installed."


def test_a_fault_of_ours_loses_nothing_and_is_exit_code_1(again, shelf, tmp_path, monkeypatch):
    fake = importlib.import_module("quenched.papers.fake2000")
    monkeypatch.setattr(fake, "FIGURES", {"figure_1": lambda: 1 / 0, "figure_30": fake.figure_30})
    code, _, err = again()
    assert code == 1
    assert "1 of 3 steps failed, the report says why: fake2000/figure_1" in err
    assert "Traceback" not in err
    assert "ZeroDivisionError: division by zero" in (tmp_path / "r" / "report.html").read_text()
    assert json.loads((tmp_path / "r" / "agreement.json").read_text())["summary"]["not_computed"] == 1


def test_a_report_that_loses_its_place_is_put_elsewhere(again, shelf, tmp_path, monkeypatch):
    fake = importlib.import_module("quenched.papers.fake2000")

    def lose():
        shutil.rmtree(tmp_path / "r")
        (tmp_path / "r").write_text("")
        return fake.figure("figure_30", True)

    monkeypatch.setattr(fake, "FIGURES", {"figure_30": lose})
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = again("--figure", "30")
    assert code == 2
    assert err.splitlines()[-2].startswith("warning: fake2000/figure_30 is in the report, but it could not be kept")
    refuge = Path(err.strip().rpartition("put in ")[2].rstrip("."))
    assert (refuge.name, refuge.is_file()) == ("report.html", True)


def test_a_step_that_cannot_be_kept_is_said_and_the_remains_of_killed_ones_go(again, shelf, tmp_path, monkeypatch):
    left = tmp_path / "r" / "steps" / "quick" / f".x-abcdefgh{store.PART}"
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, (1, 1))

    monkeypatch.setattr(store.Store, "write", lambda *_: "No space left on device")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = again("--figure", "30")
    assert code == 0
    assert "warning: fake2000/figure_30 is in the report, but it could not be kept in" in err
    assert not left.exists()


def test_a_killed_reproduction_goes_on(again, shelf, tmp_path, launch):
    (shelf / "wait").touch()
    script = tmp_path / "again.py"
    script.write_text(f"""
import sys
from quenched import cli, papers
papers.__path__.append({str(shelf)!r})
sys.exit(cli.main(["reproduce", "fake2000", "--full", "--workers", "1", "--out", {str(tmp_path / "r")!r}]))
""")
    first = launch(script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kept = tmp_path / "r" / "steps" / "full" / "fake2000-figure_3_right.json"
    deadline = time.monotonic() + 60
    while not kept.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert kept.exists()
    first.kill()
    first.wait()
    assert not (tmp_path / "r" / "report.html").exists()
    (shelf / "wait").unlink()
    code, _, err = again("--full")
    assert (code, "2 kept from before" in err) == (0, True)
    assert computed(shelf) == FIGURES
    assert "the claim" in (tmp_path / "r" / "report.html").read_text()


# Steps, and where they run


def test_the_same_numbers_in_one_process_and_in_two(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))
    steps = [Step("demo", "density"), Step("lemm1999", "figure_18")]
    seen = []
    one = reproduction.run(steps, quick=True, folder=tmp_path / "one")
    two = reproduction.run(
        steps, quick=True, folder=tmp_path / "two", workers=2, watch=lambda s: seen.append(len(s.running))
    )
    assert list(one) == list(two) == steps
    assert all(done.value is not None for done in one.values()), one
    assert max(seen) == 2
    for step in steps:
        texts = [encode(done[step].value) for done in (one, two)]
        assert texts[0] == texts[1], step


def test_a_worker_that_dies_fails_its_step_alone_and_claims_wait(monkeypatch, tmp_path):
    order = []

    class Pool:
        def submit(self, function, task):
            from concurrent.futures import Future
            from concurrent.futures.process import BrokenProcessPool

            order.append(str(task.step))
            future: Future = Future()
            if task.step.name == "figure_2":
                future.set_exception(BrokenProcessPool())
            else:
                future.set_result(reproduction.Done((), seconds=1.0))
            return future

    import contextlib

    monkeypatch.setattr(running, "pool", lambda workers: contextlib.nullcontext(Pool()))
    steps = reproduction.steps(["biehl2006"])
    done = reproduction.run(steps, quick=True, folder=tmp_path, workers=2)
    assert order[-1] == "biehl2006/claims"
    assert [str(step) for step, one in done.items() if one.fault] == ["biehl2006/figure_2"]
    assert "memory" in done[Step("biehl2006", "figure_2")].sentence


def test_simulations_of_a_step_go_where_they_are_sent(tmp_path):
    def throw(key, point):
        return {"x": point["scale"] * jax.random.normal(key)}

    points, sent = [{"scale": 1.0}], []

    @dataclasses.dataclass(frozen=True)
    class Spy(Processes):
        def run(self, program, pieces):
            sent.append(len(pieces))
            yield from quenched.Local().run(program, pieces)

    with place(Spy(1), tmp_path):
        first = ensemble(throw, jax.random.key(0), points, runs=4)
        ensemble(throw, jax.random.key(0), points, runs=4, executor=quenched.Local(), folder=tmp_path / "own")
    after = ensemble(throw, jax.random.key(0), points, runs=4)
    assert sent == [1]
    assert len(list(tmp_path.glob("*.piece"))) == 1
    assert len(list((tmp_path / "own").glob("*.piece"))) == 1
    assert after.computed == 1
    assert np.array_equal(first.values["x"], after.values["x"])


def test_every_paper_has_steps_and_the_demonstration_shows_each():
    assert reproduction.papers() == ["barkai1994", "dietrich1998", "lemm1999", "malzahn2002", "biehl2006"]
    for name in reproduction.papers():
        module = reproduction.paper(name)
        assert reproduction.steps([name])[-1] == Step(name, "claims")
        assert not set(module.FIGURES) & set(getattr(module, "NOT_BUILT", {}))
    shown = reproduction.demo()
    assert {step.paper for step in shown} == {"demo", *reproduction.papers()}
    assert all(step.name in reproduction.paper(step.paper).FIGURES for step in shown)


def test_every_figure_of_the_paper_on_fields_is_built_or_named():
    module = reproduction.paper("lemm1999")
    numbers = {int(name.split("_")[1]) for name in [*module.FIGURES, *module.NOT_BUILT]}
    assert numbers == set(range(1, 29))


# Time


def test_time_is_that_of_the_longest_worker_and_learns_how_fast_this_machine_is(monkeypatch, tmp_path):
    known = {"a2000/figure_1": 30.0, "a2000/figure_2": 10.0, "a2000/claims": 15.0, "b2001/figure_1": 20.0}
    monkeypatch.setattr(running, "costs", lambda *, quick: known)
    steps = [Step(*name.split("/")) for name in known]
    state = State(steps, True, 2)
    assert state.seconds_left() == pytest.approx(45.0)  # 30 | 10 + 20, then claims
    assert dataclasses.replace(state, workers=1).seconds_left() == pytest.approx(75.0)
    state.finished[steps[0]] = 60.0  # twice as slow
    assert state.expected(steps[1]) == pytest.approx(20.0)
    assert state.share() == pytest.approx(30 / 75)
    assert state.seconds_left() == pytest.approx(2 * (10 + 15))  # beside 20
    state.running[steps[3]] = time.monotonic() - 10.0
    assert state.seconds_left() == pytest.approx(50.0, abs=0.5)
    assert state.unknown() == []
    assert State([*steps, Step("c", "figure_1")], True, 1).unknown() == [Step("c", "figure_1")]


def test_the_longest_begin_first(monkeypatch, tmp_path):
    costs = {"biehl2006/figure_1": 30.0, "biehl2006/figure_2": 10.0, "biehl2006/claims": 15.0, "demo/density": 20.0}
    monkeypatch.setattr(running, "costs", lambda *, quick: costs)
    order = []
    monkeypatch.setattr(running, "compute", lambda task: order.append(str(task.step)) or reproduction.Done(None))
    reproduction.run([Step(*name.split("/")) for name in costs], quick=True, folder=tmp_path)
    assert order == ["biehl2006/figure_1", "biehl2006/figure_2", "demo/density", "biehl2006/claims"]


def test_every_quick_step_has_been_measured():
    every = {*map(str, reproduction.steps(reproduction.papers())), *map(str, reproduction.demo())}
    assert set(running.costs(quick=True)) == every
    assert set(running.costs(quick=False)) <= every  # of others the estimate says "at least"
    for quick in (True, False):
        assert all(seconds > 0 for seconds in running.costs(quick=quick).values())


# Keeping


def test_a_figure_and_its_claims_are_kept_as_they_are():
    data = xr.Dataset(
        {"error": ("alpha", np.array([1.0, np.nan])), "phase": ("alpha", np.array(["a", "b"], dtype=object))},
        {"alpha": [0.5, 1.5], "branch": "informed"},
        {"law": "{}", "size": np.int64(3), "spread": np.inf},
    )
    series = Series("a", Kind.band, np.arange(3.0), np.ones(3), low=np.zeros(3), high=np.full(3, np.inf))
    proof = quenched.Agreement(0.5, np.inf, "x", 3, 4, 0.1, 0.0, data[["error"]])
    figure = Figure(
        "p/figure_1", "t", "c", (Panel("x", "y", (series,), right=Scale("s"), xlim=(0, 1)),), {"d": data}, {"q": proof}
    )
    claims = (Claim("w", "s", "p", "o", "e", below(1, 2) & apart(3, 1, by=1, stderr=0.1, what="x"), rests_on="r"),)
    text = encode((figure, claims))
    back, stated = decode(text)
    assert stated == claims
    assert stated[0].verdict is Verdict.reproduced
    assert encode((back, stated)) == text
    xr.testing.assert_identical(back.data["d"], data.assign(phase=data.phase.astype(str)))
    assert back.panels[0].series[0].high.tolist() == [np.inf] * 3
    assert (back.panels[0].xlim, back.panels[0].right) == ((0, 1), Scale("s"))
    assert (back.agreement["q"].largest, back.agreement["q"].passed) == (np.inf, True)
    assert isinstance(back.panels[0].series[0].kind, Kind)
    with pytest.raises(TypeError, match="cannot be kept"):
        encode(object())
