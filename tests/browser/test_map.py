"""The map in Chromium: the dot, the states below it, and the lines of Python that give the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from quenched import outliers
from tests.browser.pages import EQUAL, SETTLED, asked, knob, listen, query, same, turn, values


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
    page.wait("window.answers.some((one) => one.view === 'cut' && one.answer.ends.informed)")
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
    page.wait(SETTLED)
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
    page.wait("document.querySelectorAll('text.region').length === 3")
    page("window.answers.length = 0")
    turn(page, "separation", 1.2)
    page.wait("window.answers.some((one) => one.view === 'lines')")
    answer, names = asked(page, "lines")
    assert capsys.readouterr().out
    lines = names["lines"]
    for column, alpha in zip(answer["columns"], lines.alpha.values, strict=True):
        known = lines.sel(alpha=alpha)
        walls = {known[name].item() for name in ("splitting_ordered", "splitting_random", "ordered_random")}
        assert column["x"] == alpha
        known_walls = [wall for wall in walls if np.isfinite(wall)]
        assert all(min(abs(value - wall) for wall in known_walls) < EQUAL for value, *_ in column["walls"])


def test_a_knob_beyond_its_ends_is_refused_in_the_page(visit):
    page = visit("map?system=mixtures")
    page.wait(SETTLED)
    turn(page, "alpha", 9999)
    page.wait("document.querySelector('[data-problems] .refusal')")
    assert page.text("[data-problems] .refusal") == "Knob alpha must lie between 0.2 and 50, but 9999 was given."
    turn(page, "alpha", 8)
    page.wait(SETTLED)
    assert page.text("[data-problems]") == ""


@pytest.mark.parametrize("system", ["mixtures", "lvq2.1"])
def test_every_knob_is_turned_to_both_ends_on_the_page(visit, system):
    page = visit(query("map", system=system))
    listen(page)
    page.wait(SETTLED)
    knobs = page(f"fetch('/about').then((reply) => reply.json()).then((about) => about.systems[{system!r}].knobs)")
    for one in knobs:
        for end in ("low", "high"):
            page("window.answers.length = 0")
            turn(page, one["name"], one[end])
            page.wait("window.answers.length")
            page.wait("!document.querySelector('[data-status]').textContent.includes('computing')")
            assert page("window.answers.every((one) => !one.answer.fault)")
            shown = page.text("[data-values]") or page.text(".refusal")
            assert shown, (one["name"], end)
        turn(page, one["name"], one["value"])
