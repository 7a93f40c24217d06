"""The explorer in Chromium: what is touched moves, what is said is so, and the lines of Python give the same numbers.

`make test-browser` runs this; without Chromium it is skipped.
"""

from __future__ import annotations

import json
import re
import urllib.request

import numpy as np
import pytest

from quenched import mixtures
from quenched.explorer.systems import SYSTEMS
from quenched.papers import reproduction
from tests.browser.pages import SETTLED, asked, knob, listen, query, same, turn, values

ROWS = 120
"""Of the table that is dropped."""
SLOW, QUICK = 3.0, 0.1
"""Seconds of a processor in which a knob answers once it is warm; the quick ones are learning curves and densities."""


def ask(address, view, **state):
    """An answer, asked for without a page."""
    body = json.dumps({"view": view, "state": state}).encode()
    request = urllib.request.Request(f"{address}ask", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.loads(reply.read())


def knobs_of(address, what):
    """The view, the state and the knobs of something that is turned, and the seconds that it has."""
    with urllib.request.urlopen(f"{address}about", timeout=120) as reply:
        about = json.loads(reply.read())
    if what in about["systems"]:
        one = about["systems"][what]
        map_ = one["columns"][0] > 0
        return "cut" if map_ else "flow", {"system": what}, one["knobs"], SLOW if map_ else QUICK
    if what == "formula":
        return "energy", {}, about["energies"]["knobs"], SLOW
    if what == "well":
        return "well", {"example": "double well"}, about["priors"]["well_knobs"], SLOW
    points = [[2.0, 1.0], [5.0, -0.5]] if what == "values" else [[2.0], [5.0], [7.0]]
    return "field", {"kind": what, "points": points, "symmetric": True}, about["priors"]["knobs"], QUICK


@pytest.mark.parametrize("what", [*SYSTEMS, "energy", "formula", "values", "density", "well"])
def test_every_knob_answers_or_refuses_in_time_at_both_ends(address, what):
    view, state, knobs, limit = knobs_of(address, what)
    spent = {}
    for one in knobs:
        for end in ("low", "high"):
            near = one[end] * (1.001 if end == "low" else 0.999) + (1e-9 if one[end] == 0 else 0.0)
            for value in (one[end], near):  # the second time it is warm, and another question: answers are kept
                answer = ask(address, view, **state, knobs={one["name"]: value})
                assert "fault" not in answer
                assert answer.get("refused") or answer["script"]
                spent[one["name"], end] = answer.get("spent", {}).get("processor", 0.0)
                if spent[one["name"], end] <= limit:
                    break
    late = {where: seconds for where, seconds in spent.items() if seconds > limit}
    assert not late


# Run it


def test_runs_stream_in_and_the_p_value_with_them(visit, capsys):
    page = visit("run?system=vq")
    listen(page)
    page.wait("document.querySelectorAll('[aria-label^=\"error:\"] path.line, svg path.line').length")  # the theory
    page.click("[data-run]")
    page.wait("document.querySelector('[data-runs]').textContent === '10'")
    assert re.fullmatch(r"> 0\.99|< 0\.0001|0\.\d+|1", page.text("[data-chance]"))
    page.wait("Number(document.querySelector('[data-runs]').textContent) >= 20")
    page.click("[data-run]")
    page.wait("document.querySelector('[data-run]').textContent === 'Run'")
    answer, names = asked(page, "trial")
    assert f"p = {answer['rounded']['p']:.2g}"[:6] in capsys.readouterr().out
    same(answer["shown"]["error"]["mean"], names["points"].error)
    same(answer["shown"]["error"]["error"], names["points"].error_stderr)
    same(answer["shown"]["error"]["theory"], names["curve"].error)


# Your table


@pytest.fixture
def dropped(tmp_path):
    """A table with two clusters, a line with noise, and one row that is not on it."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-4, 1, ROWS // 2), rng.normal(4, 1, ROWS // 2)])
    y = 2 * x + rng.normal(size=ROWS)
    y[7] = 60.0
    lines = ["x,z,y", *(f"{a:.6f},{b:.6f},{c:.6f}" for a, b, c in zip(x, rng.normal(size=ROWS), y, strict=True))]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_is_dropped_and_everything_is_told(visit, dropped, monkeypatch, capsys):
    page = visit("table")
    listen(page)
    page.wait("document.querySelector('[data-file]')")
    page.choose_file("[data-file]", dropped)
    for part in ("density", "forecast", "clusters", "doubtful"):
        page.wait(f"document.querySelector('[data-part={part}] [data-copy]')?.offsetParent")
    monkeypatch.chdir(dropped.parent)
    answer, names = asked(page, "density")
    same(answer["density"], names["found"].density)
    same(answer["low"], names["found"].density_low)
    answer, names = asked(page, "forecast")
    same(answer["error"], names["found"].error)
    answer, names = asked(page, "clusters")
    assert answer["count"] == names["found"].count == 2
    answer, names = asked(page, "doubtful")
    same(answer["probability"], np.sort(names["model"].outlier_probability_)[::-1][: len(answer["probability"])])
    assert capsys.readouterr().out
    assert answer["rows"][0] == 8  # the row that is not on the line, counted from 1
    page.click("tr.pick")
    page.wait("document.querySelector('[data-row]').innerText.includes('Row 8')")
    page.click("[data-half]")
    page.wait("document.querySelector('[data-note=forecast]').textContent.includes('the truth is')")
    state = page("location.hash")
    assert "half=true" in state


@pytest.mark.usefixtures("own_cache")
def test_a_table_that_is_wrong_is_refused_in_the_words_of_the_command_line(visit, run, tmp_path, monkeypatch):
    path = tmp_path / "wrong.csv"
    path.write_text("a,b\n1,2\n1,2,3\n")
    monkeypatch.chdir(tmp_path)
    told = run("density", path.name, "--column", "a")[2]
    page = visit("table")
    page.wait("document.querySelector('[data-drop]')")
    page(f"(() => {{ const held = new DataTransfer(), text = {path.read_text()!r}; "
         f"held.items.add(new File([text], {path.name!r})); "
         "document.querySelector('[data-drop]').dispatchEvent(new DragEvent('drop', { dataTransfer: held })); "
         "})()")  # fmt: skip
    page.wait("document.querySelector('.refusal')")
    assert told == f"quenched: {page.text('.refusal')}\n"


# Your energy


def test_a_formula_is_an_energy_and_its_theory_follows(visit, capsys):
    page = visit("energy")
    listen(page)
    page.wait("document.querySelector('[data-copy=energy]').offsetParent")
    page("(() => { const box = document.querySelector('[data-formula]'); box.value = 'maximum(0, 1 - y)'; "
         "box.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait("document.querySelector('[data-script=energy]').textContent.includes('jnp.maximum(0, 1 - y)')")
    assert page("document.querySelector('[data-energy=hinge]').getAttribute('aria-pressed')") == "true"
    answer, names = asked(page, "energy")
    assert capsys.readouterr().out
    for name in ("cosine", "stability"):
        same(answer[name], names["curve"][name])
    page("(() => { const box = document.querySelector('[data-formula]'); box.value = 'open(y)'; "
         "box.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait("document.querySelector('[data-problems] .refusal')")
    assert "but it has 'open(y)'" in page.text("[data-problems] .refusal")


# Priors


def test_priors_are_combined_in_words_and_the_field_moves(visit, capsys):
    page = visit("priors")
    listen(page)
    page.wait("document.querySelector('[data-words]').textContent === 'smooth'")
    points = "document.querySelectorAll('[data-panel=priors] svg.drag circle').length"
    before = page(points)
    page.click("[data-panel=priors] svg.drag")
    page.wait(f"{points} === {before + 1}")
    page.click("[data-prior=periodic]")
    for name, shape in (("shape", "bump"), ("other", "wave")):
        page(f"(() => {{ const pick = document.querySelector('[data-prior={name}]'); pick.value = {shape!r}; "
             "pick.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait("document.querySelector('[data-words]').textContent === 'smooth & periodic & near (bump | wave)'")
    answer, names = asked(page, "field")
    assert capsys.readouterr().out
    same(answer["mean"], names["found"].mean)
    same(answer["probabilities"], names["found"].probabilities)


def test_positions_go_in_and_a_potential_comes_out(visit, capsys):
    page = visit("priors")
    listen(page)
    page.wait("document.querySelector('[data-words]').textContent")
    page.click("[data-kind=well]")
    page.wait("document.querySelector('[data-words]').textContent.startsWith('200 positions')")
    answer, names = asked(page, "well")
    assert capsys.readouterr().out
    same(answer["all"]["potential"], names["model"].potential_)


# Papers


def test_claims_are_filtered_by_verdict_and_set_the_knobs(visit):
    page = visit("papers?paper=biehl2006")
    page.wait("document.querySelectorAll('.claim').length === 3")
    assert page("document.querySelector('.claim .verdict').textContent") == "refuted"  # the gravest first
    page.click("[data-verdict=reproduced]")
    page.wait("document.querySelectorAll('.claim').length === 1")
    page.click("[data-knobs]")
    page.wait(SETTLED)
    assert (knob(page, "rate"), knob(page, "prior"), knob(page, "separation")) == (0.2, 0.8, 1.0)


def test_a_paper_that_is_not_decided_says_how_long_that_takes(visit):
    other = next(name for name in reproduction.papers() if name != "biehl2006")
    page = visit(f"papers?paper={other}")
    page.wait("document.querySelector('[data-decide]')")
    assert re.search(r"takes about \d+ minute", page.text("[data-panel=papers]"))


# The page as a whole


@pytest.mark.parametrize("tab", ["map", "run", "table", "energy", "priors", "papers"])
def test_every_tab_fits_a_phone_and_names_what_can_be_touched(visit, tab):
    page = visit(tab + ("?table=iris" if tab == "table" else ""), width=390, height=844, dark=True)
    page.wait("document.querySelector('[data-panel] h1')")
    page.wait("document.querySelectorAll('[data-panel] svg path, .claim, .empty').length")
    assert page("document.documentElement.scrollWidth") <= 390
    assert page("document.documentElement.dataset.theme") == "dark"
    touched = "[...document.querySelectorAll('button, select, input, a')].filter((e) => e.offsetParent)"
    named = "e.getAttribute('aria-label') || e.innerText || e.labels?.length"
    assert page(f"{touched}.filter((e) => !({named})).map((e) => e.outerHTML)") == []


@pytest.mark.parametrize(
    ("state", "settled"),
    [("map", SETTLED), ("run", "document.querySelector('[data-panel=run] svg path.line')"),
     ("priors", "document.querySelector('[data-words]').textContent.includes('symmetric')")],
)  # fmt: skip
def test_an_address_brings_back_its_state(visit, state, settled):
    given = {"map": {"system": "hard", "knobs": {"alpha": 12.5, "eta": 2.5, "gamma": 8}, "reading": "Q"},
             "run": {"system": "lvq+", "knobs": {"alpha": 20, "rate": 0.3, "prior": 0.7}, "size": 200},
             "priors": {"kind": "density", "points": [[1.5], [2.5], [8]], "symmetric": "true", "order": "bend"},
            }[state]  # fmt: skip
    page = visit(query(state, **given))
    page.wait(settled)
    again = visit(page("location.hash").removeprefix("#"))
    again.wait(settled)
    kept = ("JSON.stringify([...document.querySelectorAll('main input, main select')].map((e) => "
            "e.type === 'checkbox' ? e.checked : e.value))")  # fmt: skip
    assert page(kept) == again(kept)
    assert page("location.hash") == again("location.hash")
    if state == "map":
        assert knob(again, "alpha") == 12.5
        assert again("document.querySelector('[aria-label=\"Order parameter\"]').value") == "Q"


def test_what_is_copied_is_what_is_shown(visit):
    page = visit("map?system=lvq1")
    page.wait("Number.isFinite(Number(document.querySelector('[data-end]').textContent))")
    page.click("[data-copy=flow]")
    page.wait("document.getElementById('toast')?.textContent === 'Copied as Python'")
    assert page("navigator.clipboard.readText()") == page("document.querySelector('[data-script=flow]').textContent")


def test_two_readers_at_once_do_not_mix(visit):
    one, two = visit("map?system=mixtures"), visit("map?system=lvq1")
    one.wait(SETTLED)
    two.wait(SETTLED)
    for k in range(3):
        turn(one, "width", 0.5 + k)
        turn(two, "rate", 0.1 + k / 10)
    one.wait(SETTLED)
    two.wait(SETTLED)
    assert knob(one, "width") == 2.5
    assert knob(two, "rate") == 0.3
    assert set(values(two)) == {"error"}
    law, rule = mixtures.TwoGaussians(), mixtures.MaximumLikelihood(2.5)
    here = mixtures.curve(law, rule, alpha=knob(one, "alpha"))
    same(values(one)[f"{here.phase.item()}.q"], here.q)


def test_the_theme_is_chosen_and_kept(visit):
    page = visit("map?system=lvq1")
    page.wait(SETTLED)
    page.click("#theme")
    assert page("document.documentElement.dataset.theme") == "dark"
    page.open(page("location.href"))
    page.wait(SETTLED)
    assert page("document.documentElement.dataset.theme") == "dark"


def test_a_picture_is_saved_as_it_is_seen(visit):
    page = visit("map?system=lvq1")
    page.wait(SETTLED)
    page("(() => { const before = URL.createObjectURL; window.saved = []; URL.createObjectURL = (blob) => { "
         "window.saved.push(blob); return before(blob); }; })()")  # fmt: skip
    page.click("[data-png=flow]")
    page.wait("window.saved.some((blob) => blob.type === 'image/png' && blob.size > 5000)")


def test_a_result_is_saved_as_netcdf(visit):
    page = visit("map?system=lvq1")
    page.wait(SETTLED)
    kind = page("fetch('/save?view=flow&state=' + encodeURIComponent(JSON.stringify({system: 'lvq1', knobs: {}})))"
                ".then((reply) => reply.headers.get('Content-Type'))")  # fmt: skip
    assert kind == "application/x-netcdf"
