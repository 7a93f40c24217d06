"""The explorer in Chromium: what is touched moves, what is said is so, and the lines of Python give the same numbers.

`make test-browser` runs this; without Chromium it is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

from quenched import mixtures, outliers
from quenched.core.claims import Claim, above, below
from quenched.core.store import Store
from quenched.explorer.systems import SYSTEMS
from quenched.papers import reproduction
from quenched.papers.reproduction.steps import CLAIMS, Step, write
from tests.browser.chromium import Chromium
from tests.conftest import CACHE

EQUAL = 1e-9
"""How nearly the lines of Python give what the page shows."""
PROGRAM = (
    "-c",
    "import sys; from quenched.cli import main; sys.exit(main())",
    "explore",
    "--no-browser",
    "--port",
    "0",
)
SETTLED = "document.querySelector('[data-status]').textContent === 'exact'"
ROWS = 120
"""Of the table that is dropped."""
SLOW, QUICK = 3.0, 0.1
"""Seconds of a processor in which a knob answers once it is warm; the quick ones are learning curves and densities."""


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """A folder in which the claims of a paper are decided."""
    folder = tmp_path_factory.mktemp("papers")
    claims = (
        Claim("figure 2", "At η = 0.2, p₊ = 0.8 and λ = 1 the error of lvq1 falls.", "falls", "it does", "theory",
              below(0.1, 0.2)),
        Claim("p. 7", "The error rises again.", "rises", "it does not", "theory", above(0.1, 0.2)),
        Claim("p. 8", "Nobody can tell.", "who knows", "not we", "none"),
    )  # fmt: skip
    store = Store.open(folder / "steps" / "quick")
    assert not write(store, Step("biehl2006", CLAIMS), {"value": claims, "processor": 1.0}, quick=True)
    return folder


@pytest.fixture(scope="module")
def address(papers, tmp_path_factory):
    """The explorer, begun as a reader begins it."""
    cache = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "JAX_COMPILATION_CACHE_DIR": str(CACHE)}
    command = [sys.executable, *PROGRAM, "--papers", str(papers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | cache) as process:
        yield re.search(r"http://\S+/", process.stdout.readline())[0]
        process.terminate()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Chromium(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture
def visit(browser, address):
    """Open the explorer at a state; at the end nothing may have failed, and nothing come from elsewhere."""
    with contextlib.ExitStack() as pages:
        opened = []

        def go(state, **window):
            opened.append(pages.enter_context(browser.page(f"{address}#{state}", **window)))
            return opened[-1]

        yield go
        for page in opened:
            assert page.faults() == []
            assert [url for url in page.requests() if not url.startswith((address, "blob:", "data:"))] == []


def query(tab, **state):
    return tab + "?" + "&".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in state.items())


def asked(page, view):
    """The newest answer to a question of the page, and the names that its lines of Python leave."""
    found = page(f"window.answers.findLast((one) => one.view === {view!r})")
    assert found["answer"].get("refused") is None
    names = {}
    exec(found["answer"]["script"], names)
    return found["answer"], names


def listen(page):
    """Keep what the server answers, so that it can be compared; the page does not know."""
    page("""(() => {
      window.answers = [];
      const before = window.fetch;
      window.fetch = async (...given) => {
        const reply = await before(...given);
        if (given[0] === "/ask") reply.clone().json().then((answer) =>
          window.answers.push({ view: JSON.parse(given[1].body).view, answer }));
        return reply;
      };
    })()""")


def same(found, expected):
    """Whether numbers of the page, null where there are none, are those of Python."""
    found = np.array([np.nan if v is None else v for v in np.ravel(np.array(found, dtype=object))], float)
    np.testing.assert_allclose(found, np.ravel(np.asarray(expected, float)), rtol=EQUAL, atol=EQUAL)


def values(page):
    """The table of values at the dot."""
    return page("Object.fromEntries([...document.querySelectorAll('[data-value]')].map((cell) => "
                "[cell.dataset.value, cell.title === '' ? null : Number(cell.title)]))")  # fmt: skip


def knob(page, name):
    return float(page(f"document.querySelector('input[type=number][data-knob={name}]').value"))


def turn(page, name, value):
    """Type a value into a knob."""
    page(f"(() => {{ const box = document.querySelector('input[type=number][data-knob={name}]'); box.value = {value}; "
         "box.dispatchEvent(new Event('change')); })()")  # fmt: skip


# The map


def test_the_dot_is_dragged_and_the_knobs_follow(visit):
    page = visit("map?system=mixtures")
    page.wait(SETTLED)
    page.wait("document.querySelectorAll('[aria-label=\"Phase diagram\"] path').length > 20")
    before = knob(page, "alpha"), knob(page, "width"), values(page)
    page.drag("[data-mark]", 60, -40)
    page.wait("document.querySelector('[data-status]').textContent === 'interpolated'")
    shown = knob(page, "alpha"), knob(page, "width")
    assert shown[0] > before[0]
    assert shown[1] > before[1]
    page.release("[data-mark]")
    page.wait(SETTLED)
    assert knob(page, "alpha") == pytest.approx(shown[0], rel=0.05)
    assert values(page) != before[2]
    assert json.loads(page("new URLSearchParams(location.hash.split('?')[1]).get('knobs')"))["alpha"] == knob(
        page, "alpha"
    )


def test_arrow_keys_move_the_dot(visit):
    page = visit("map?system=mixtures")
    page.wait(SETTLED)
    before = knob(page, "width")
    page("document.querySelector('[data-mark]').focus()")
    page.press("ArrowUp")
    page.wait(f"Number(document.querySelector('input[type=number][data-knob=width]').value) > {before}")
    page.wait(SETTLED)
    assert page("document.activeElement.dataset.mark") == "dot"


def test_the_cut_shows_every_state_and_its_python_gives_the_same(visit, capsys):
    page = visit("map")
    listen(page)
    page.wait(SETTLED)
    page("location.hash = '" + query("map", system="soft", knobs={"alpha": 100, "eta": 4.8, "gamma": 10}) + "'")
    page.wait("document.querySelector('[data-value$=\".R\"]')")
    page.wait(SETTLED)
    answer, names = asked(page, "cut")
    assert capsys.readouterr().out
    here = names["curve"].sel(eta=4.8)
    for cell, value in values(page).items():
        branch, _, name = cell.partition(".")
        same(value, here[name].sel(branch=branch))
    for branch, one in answer["branches"].items():
        state = names["curve"].sel(branch=branch)
        same(one["R"], state.R.where(state.outcome == "converged"))
    assert {"informed", "overfit"} <= set(answer["branches"])
    ends = outliers.transitions(names["law"], names["rule"], alpha=100)
    same(answer["ends"]["informed"], ends.informed_end)
    same(answer["ends"]["overfit"], [ends.overfit_start, ends.overfit_end])
    ticks = '[aria-label="Cut through the dot"] svg[role=img] line[stroke-width="2"].s1'
    assert page(f"document.querySelectorAll({ticks!r}).length") == 2
    cut = '[aria-label^="overlap with the teacher"] path.line'
    assert page(f"document.querySelectorAll('{cut}').length") >= 2
    page("(() => { const pick = document.querySelector('[aria-label=\"Order parameter\"]'); pick.value = 'Q'; "
         "pick.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait("document.querySelector('[aria-label^=\"squared length\"] path.line')")


def test_the_ball_stays_in_its_well_and_says_so(visit):
    ball = "document.querySelector('[data-ball]').textContent"
    page = visit(query("map", system="soft", knobs={"alpha": 100, "eta": 3, "gamma": 10}))
    page.wait(f"{ball}.includes('in the informed state')")
    both = next(eta for eta in (4.95, 4.9, 4.85, 4.8) if coexisting(page, eta))
    assert "stays in the informed state" in page(ball)
    turn(page, "eta", 8)
    page.wait(f"{ball}.includes('informed state has ended')")
    turn(page, "eta", both)
    page.wait(SETTLED)
    assert "informed" not in page(ball).split("although")[0]


def coexisting(page, eta):
    """Whether the ball is in a state that has not the least free energy at a value of the knob."""
    turn(page, "eta", eta)
    page.wait(f"location.hash.includes('%22eta%22%3A{eta:g}%2C')")
    page.wait(SETTLED)
    return "stays in" in page.text("[data-ball]")


def test_curves_of_prototypes_and_what_has_no_answer(visit, capsys):
    page = visit("map?system=lvq2.1")
    listen(page)
    page.wait(SETTLED)
    turn(page, "rate", 0.5)
    page.wait("window.answers.length")
    page.wait(SETTLED)
    answer, names = asked(page, "flow")
    assert capsys.readouterr().out
    same(answer["error"], names["curve"].error)
    turn(page, "alpha", 500)
    turn(page, "rate", 2)
    page.wait("document.body.innerText.includes('The curve ends early: diverged')")


def test_where_a_learning_curve_ends_is_said_after_it(visit, capsys):
    page = visit("map?system=lvq1")
    listen(page)
    turn(page, "rate", 0.35)
    page.wait("window.answers.some((one) => one.view === 'rest')")
    page.wait("Number.isFinite(Number(document.querySelector('[data-end]').textContent))")
    names = {}
    exec(page("document.querySelector('[data-script=flow]').textContent"), names)
    same(page("window.answers.findLast((one) => one.view === 'rest').answer.end"), names["end"].error)
    same(values(page)["error"], names["curve"].error[-1])
    assert capsys.readouterr().out


def test_an_energy_of_ones_own_has_a_map(visit, capsys):
    page = visit(query("map", system="energy", formula="maximum(0, 1 - y)"))
    listen(page)
    page.wait(SETTLED)
    page.wait("[...document.querySelectorAll('text.region')].some((one) => one.textContent === 'informed')")
    page("(() => { const box = document.querySelector('[data-formula]'); box.value = '1 - tanh(y)'; "
         "box.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait("window.answers.some((one) => one.view === 'cut' && one.answer.script?.includes('tanh'))")
    page.wait(SETTLED)
    answer, names = asked(page, "cut")
    assert capsys.readouterr().out
    for name in ("cosine", "free_energy"):
        same(answer["branches"]["informed"][name], names["curve"][name].isel(branch=0))
    here = names["curve"].sel(means=knob(page, "separation")).isel(branch=0)
    same(values(page)["informed.Q"], here.Q)
    assert "1+-+tanh" in page("location.hash")
    page("(() => { const box = document.querySelector('[data-formula]'); box.value = 'open(y)'; "
         "box.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait("document.querySelector('[data-problems] .refusal')")
    assert "but it has 'open(y)'" in page.text("[data-problems] .refusal")


def test_the_phase_diagram_is_what_its_python_gives(visit, capsys):
    page = visit("map?system=mixtures")
    listen(page)
    page.wait("window.answers?.some((one) => one.view === 'lines') || performance.now() > 3000 && "
              "document.querySelectorAll('text.region').length === 3")  # fmt: skip
    turn(page, "separation", 1.2)
    page.wait("window.answers.some((one) => one.view === 'lines')")
    answer, names = asked(page, "lines")
    assert capsys.readouterr().out
    lines = names["lines"]
    for column, alpha in zip(answer["columns"], lines.alpha.values, strict=True):
        known = lines.sel(alpha=alpha)
        walls = {known[name].item() for name in ("splitting_ordered", "splitting_random", "ordered_random")}
        assert column["x"] == alpha
        assert all(min(abs(value - wall) for wall in walls) < EQUAL for value, *_ in column["walls"])


def test_a_knob_beyond_its_ends_is_refused_in_the_page(visit):
    page = visit("map?system=mixtures")
    page.wait(SETTLED)
    turn(page, "alpha", 9999)
    page.wait("document.querySelector('[data-problems] .refusal')")
    assert page.text("[data-problems] .refusal") == "Knob alpha must lie between 0.2 and 50, but 9999 was given."
    turn(page, "alpha", 8)
    page.wait(SETTLED)
    assert page.text("[data-problems]") == ""


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
            asked = state | {"knobs": {one["name"]: one[end]}}
            ask(address, view, **asked)  # now it is warm
            near = one[end] * (1.001 if end == "low" else 0.999) + (1e-9 if one[end] == 0 else 0.0)
            answer = ask(address, view, **state, knobs={one["name"]: near})  # another question: answers are kept
            assert "fault" not in answer
            spent[one["name"], end] = answer.get("spent", {}).get("processor", 0.0)
            assert answer.get("refused") or answer["script"]
    late = {where: seconds for where, seconds in spent.items() if seconds > limit}
    assert not late


@pytest.mark.parametrize("system", ["mixtures", "lvq2.1"])
def test_every_knob_is_turned_to_both_ends_on_the_page(visit, system):
    page = visit(query("map", system=system))
    listen(page)
    page.wait(SETTLED)
    knobs = page(f"fetch('/about').then((reply) => reply.json()).then((about) => about.systems[{system!r}].knobs)")
    for knob in knobs:
        for end in ("low", "high"):
            page("window.answers.length = 0")
            turn(page, knob["name"], knob[end])
            page.wait("window.answers.length")
            page.wait("!document.querySelector('[data-status]').textContent.includes('computing')")
            assert page("window.answers.every((one) => !one.answer.fault)")
            shown = page.text("[data-values]") or page.text(".refusal")
            assert shown, (knob["name"], end)
        turn(page, knob["name"], knob["value"])


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
    page.wait(SETTLED)
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
