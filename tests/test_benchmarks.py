"""The benchmarks' own arithmetic, on made-up measurements: nothing is timed here, and no peer is needed."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import __main__ as own
from benchmarks import compare, environments, page, peers, summary, tasks, worker
from benchmarks import outliers as selected
from benchmarks.compare import Comparison, Entry, Growth

ROOT = Path(__file__).parents[1]
CASE = {"N": 5, "P": 40}


def answers(error, seconds, calls=None):
    """A side that is off by `error` in the first coordinate, and takes some seconds, ten more at the first call."""
    seen = set()

    def ask(side, *, task, case, seed, model):
        if calls is not None:
            calls.append((seed, side))
        data, first = tasks.made(task, case, seed), (side, model) not in seen
        seen.add((side, model))
        answer = data[2] + error[side] * (1 + 0.1 * seed) * np.eye(case["N"])[0]
        spent = seconds[side] + 10 * first
        return {"cpu_s": spent, "version": f"{side} 1.0", "checksum": tasks.checksum(data), "answer": answer.tolist()}

    return ask


def outliers(count, **more):
    entries = (Entry("ours", "A"), Entry("peer", "B", "A", **more))
    return Comparison("outliers", "small", CASE, count, entries)


def test_sides_are_asked_in_turn_on_the_same_data_and_the_first_call_is_apart():
    calls = []
    ours, peer = compare.measured(outliers(2), answers({"ours": 0.1, "peer": 0.2}, {"ours": 1.0, "peer": 3.0}, calls))
    assert calls == [(0, "ours"), (0, "peer"), (0, "ours"), (0, "peer"), (1, "peer"), (1, "ours")]
    assert ours["cpu_s"] == [1.0, 1.0]
    assert ours["compile_s"] == peer["compile_s"] == 10.0
    np.testing.assert_allclose(np.ravel(peer["values"]), [0.2**2, 0.22**2])


def test_fewer_seeds_and_no_compilation_are_kept_apart():
    ask = answers({"ours": 0.1, "peer": 0.2}, {"ours": 1.0, "peer": 3.0})
    ours, peer = compare.measured(outliers(3, seeds=1, compiles=False), ask)
    assert (len(ours["values"]), len(peer["values"]), peer["compile_s"]) == (3, 1, None)
    assert "not measured" in summary.line(peer, {"A": ours})[5]
    assert "undecided by one run" in summary.line(peer, {"A": ours})[-1]


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ({"failed": "it could not be installed (no network)"}, "no network"),
        ({"cpu_s": 1.0, "version": "peer 1", "checksum": 0.0, "answer": [0.0] * 5}, "not those of the other sides"),
        ({"cpu_s": 1.0, "version": "peer 1", "checksum": None, "answer": [np.nan] * 5}, "not finite"),
    ],
)
def test_a_peer_that_fails_has_a_row_that_says_so(reply, sentence):
    fine = answers({"ours": 0.1}, {"ours": 1.0})

    def ask(side, **question):
        if side == "ours":
            return fine(side, **question)
        right = tasks.checksum(tasks.made(question["task"], question["case"], question["seed"]))
        return {**reply, "checksum": right} if reply.get("checksum", 0.0) is None else reply

    rows = compare.measured(outliers(2), ask)
    shown = summary.lines(rows)
    assert len(shown) == 2
    assert sentence in shown[1][3]
    assert all(len(line) == len(summary.HEADER) for line in shown)
    assert summary.better(rows) == []


def test_a_seed_that_fails_is_left_out_on_both_sides_and_said():
    fine = answers({"ours": 0.1, "peer": 0.1}, {"ours": 1.0, "peer": 1.0})

    def ask(side, **question):
        return {"failed": "no"} if (side, question["seed"]) == ("peer", 1) else fine(side, **question)

    ours, peer = compare.measured(outliers(3), ask)
    assert peer["values"][1] is None
    assert "2 runs, failed on 1" in summary.line(peer, {"A": ours})[3]
    assert summary.paired(peer, ours).gain == 0.0


def test_answers_without_a_known_truth_are_compared_with_a_long_run():
    def ask(side, *, task, case, seed, model):
        answer = {"long": [2.0], "A": [2.2], "B": [1.0]}[model]
        data = tasks.made(task, case, seed)
        return {"cpu_s": 1.0, "version": "x 1", "checksum": tasks.checksum(data), "answer": answer}

    entries = (Entry("ours", "A"), Entry("peer", "B", "A"))
    given = Comparison("processes", "small", {"wanted": "x"}, 2, entries, truth=Entry("peer", "long"))
    ours, peer = compare.measured(given, ask)
    np.testing.assert_allclose(np.ravel([ours["values"], peer["values"]]), [0.1, 0.1, 0.5, 0.5])
    broken = compare.measured(given, lambda side, **question: {"failed": "no memory"})
    assert [row["failed"] for row in broken] == ["no memory", "no memory"]


def row(values, seconds, against=None, higher=False, version="peer 1"):
    return {
        "topic": "fields", "case": "small", "side": "s", "model": "B" if against else "A", "against": against,
        "measure": "m", "higher_is_better": higher, "version": version, "values": [[v] for v in values],
        "cpu_s": seconds, "compile_s": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs", "higher", "words"),
    [
        ([1.0, 1.1, 0.9], [2.0, 2.1, 1.8], False, "more accurate"),
        ([2.0, 2.1, 1.8], [1.0, 1.1, 0.9], False, "less accurate"),
        ([1.0, 2.0, 3.0], [2.0, 2.0, 1.9], False, "as accurate"),
        ([0.9, 0.91, 0.92], [0.8, 0.82, 0.81], True, "more accurate"),
        ([0.8, 0.82, 0.81], [0.9, 0.91, 0.92], True, "less accurate"),
    ],
)
def test_who_is_more_accurate(ours, theirs, higher, words):
    pair = summary.paired(row(theirs, [1.0] * 3, "A", higher), row(ours, [1.0] * 3, higher=higher))
    assert pair.accuracy().startswith(words)


def test_ratios_are_ours_over_theirs():
    pair = summary.paired(row([2.0, 4.0], [4.0, 8.0], "A"), row([1.0, 2.2], [1.0, 2.0]))
    np.testing.assert_allclose([pair.ratio, pair.shown, pair.gain], [1.5 / 6, 3.2 / 6, 1.4])
    # The differences 1 - 2r and 2.2 - 4r, r = 3.2/6, are 1/15 apart on either side of zero.
    np.testing.assert_allclose(pair.spread, (1 / 15) / 3.0)
    assert "ratio of errors 0.533 ± 0.022" in pair.accuracy()
    assert summary.time_words(0.25) == "4.0 times faster"
    assert summary.time_words(0.004) == "250 times faster"
    assert summary.time_words(17.0) == "17 times slower"
    assert summary.time_words(1.05) == "as fast"


def test_a_peer_that_is_faster_or_more_accurate_is_named_with_a_reason():
    mine = row([1.0, 1.1, 0.9], [1.0] * 3)
    fast = row([3.0, 3.1, 3.2], [0.1] * 3, "A", version="KDEpy 1.1")
    good = {**row([0.5, 0.6, 0.5], [9.0] * 3, "A", version="suftware 1"), "model": "C"}
    poor = {**row([3.0, 3.1, 3.2], [9.0] * 3, "A", version="SciPy 1"), "model": "D"}
    one, two = summary.better([mine, fast, good, poor])
    assert "KDEpy" in one
    assert "10 times slower" in one
    assert summary.REASONS["fields", "KDEpy"] in one
    assert "suftware" in two
    assert "less accurate" in two


def test_the_exponent_of_a_power_law_is_found():
    growth = Growth("work", "outliers", "A", {"N": 5}, "P", (10, 20, 40), "2")
    waiting = []

    def ask(side, *, task, case, seed, model):
        waiting.append(case["P"])
        return {"cpu_s": 1e-3 * case["P"] ** 2 if waiting.count(case["P"]) > 1 else 99.0}

    found = compare.grown(growth, ask, repeats=1)
    assert waiting == [10, 10, 20, 20, 40, 40]
    assert summary.growth_line(found) == ("work", "P", "10", "40", "0.1 to 1.6", "2.00 ± 0.00", "2")
    lost = compare.grown(growth, lambda side, **question: {"failed": "no memory"})
    assert "no memory" in " ".join(summary.growth_line(lost))


def test_perfect_answers_are_judged_perfect():
    data = tasks.made("outliers", {"N": 20, "P": 50}, 0)
    assert tasks.centre_error(data[2], data, None) == [0.0]
    data = tasks.made("mixtures", {"N": 20, "P": 50, "length": 0.7}, 0)
    assert np.linalg.norm(data[1]) == pytest.approx(0.7)
    assert tasks.overlap(np.stack([data[1], -data[1]]), data, None) == pytest.approx([1.0])
    data = tasks.made("prototypes", {"table": "iris"}, 0)
    assert tasks.share_right([part.tolist() for part in data[3::4]], data, None) == [1.0] * 5
    assert tasks.deviation(np.array([1.0, 2.0]), (), [1.0, 4.0]) == [0.25]
    step = tasks.PLACES[1] - tasks.PLACES[0]
    rows = tasks.made("fields", {"rows": 200_000}, 0)[0]
    share, _ = np.histogram(rows, np.append(tasks.PLACES, tasks.PLACES[-1] + step) - step / 2)
    # Counts on 1,001 bins differ from the density by their noise alone: sum of p / (n step).
    assert tasks.squared_error(share / len(rows) / step, (), None)[0] == pytest.approx(1 / (len(rows) * step), rel=0.15)


def test_a_worker_times_the_work_and_survives_what_ends_a_process():
    fine, ends = (lambda data, case: data[2]), (lambda data, case: sys.exit(1))
    side = SimpleNamespace(MODELS={"fine": lambda: ("side 1", fine), "ends": lambda: ("side 1", ends)})
    question, ready = {"task": "outliers", "case": CASE, "seed": 3}, {}
    reply = worker.answered(side, ready, {**question, "model": "fine"})
    data = tasks.made("outliers", CASE, 3)
    assert reply["cpu_s"] >= 0
    assert reply["answer"] == data[2].tolist()
    assert reply["checksum"] == tasks.checksum(data) != tasks.checksum(tasks.made("outliers", CASE, 4))
    assert "SystemExit" in worker.answered(side, ready, {**question, "model": "ends"})["failed"]


def test_a_process_that_ends_is_a_sentence_and_is_started_again(tmp_path):
    python, starts = tmp_path / "python", tmp_path / "starts"
    python.write_text(f"#!/bin/sh\necho x >> {starts}\nread line\nexit 3\n")
    python.chmod(0o755)
    asked = worker.Worker(python, "ours")
    for count in (1, 2):
        assert "ended" in asked(task="outliers")["failed"]
        assert len(starts.read_text().split()) == count
    python.write_text("#!/bin/sh\nexit 3\n")
    asked._started().wait()  # nobody will read the question
    assert "ended" in asked(task="outliers")["failed"]


def test_a_peer_that_cannot_be_installed_is_a_sentence(monkeypatch, tmp_path):
    def refuse(command, **more):
        return subprocess.CompletedProcess(command, 1, "", "WARNING: x\nERROR: No matching distribution\nbye")

    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    monkeypatch.setattr(environments.subprocess, "run", refuse)
    sides = peers.Sides()
    for _ in range(2):
        assert "No matching distribution" in sides("nifty", task="fields", model="x")["failed"]
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    monkeypatch.setitem(environments.ENVIRONMENTS, "old", environments.Environment(("x",), "x", python=(2, 7)))
    assert "no python2.7" in sides("old", task="fields", model="x")["failed"]


def declared():
    return [comparison for topic in peers.TOPICS.values() for comparison in topic()]


def test_every_model_that_is_compared_exists_and_every_peer_has_its_counterpart():
    for comparison in declared():
        ours = {entry.model for entry in comparison.entries if entry.side == compare.OURS}
        for entry in (*comparison.entries, *filter(None, [comparison.truth])):
            assert entry.model in importlib.import_module(f"benchmarks.sides.{entry.side}").MODELS
            assert entry.side == compare.OURS or entry is comparison.truth or entry.against in ours
    for growth in peers.GROWTHS:
        assert growth.model in importlib.import_module("benchmarks.sides.ours").MODELS
        assert growth.sizes[-1] >= 8 * growth.sizes[0]


def test_a_section_is_replaced_and_nothing_else():
    marks, bodies = (page.PEERS, page.BENCHMARKS, page.FORECASTS, page.TRUST), ("one", "two", "three", "four")
    text = "\n\n".join(["by hand", *(f"{mark}\n\n{body}" for mark, body in zip(marks, bodies, strict=True))]) + "\n"
    for mark, old in zip(marks, bodies, strict=True):
        assert page.section(text, mark) == old
        assert page.replaced(text, mark, "new") == text.replace(old, "new")
    empty = page.replaced(text, page.PEERS, "")
    assert page.section(page.replaced(empty, page.PEERS, "one"), page.PEERS) == "one"
    assert page.replaced(empty, page.PEERS, "one") == text


def test_our_own_promises_are_written_between_their_marks(monkeypatch, tmp_path):
    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    cost, ratio = (
        {"work": "w", "cpu_s": 1.0, "each": "run", "compile_s": 2.0},
        {"ratio": "r", "value": 3.0, "promise": "p"},
    )
    monkeypatch.setattr(own, "PAGE", copy)
    monkeypatch.setattr(own.prototypes, "rows", lambda: [cost, ratio])
    monkeypatch.setattr(own.processes, "rows", lambda: iter([("of a curve", "1 s", "1", "2", "")]))
    monkeypatch.setattr(own.processes, "tuning", lambda: [("data",) * 7])
    monkeypatch.setattr(own.mixtures, "rows", lambda: iter([("of a mixture", "1 s", "1", "2", "")]))
    own.main()
    written = copy.read_text()
    assert "| of a curve |" in page.section(written, page.BENCHMARKS)
    for mark in (page.PEERS, page.FORECASTS, page.TRUST):
        assert page.section(written, mark) == page.section(page.PAGE.read_text(), mark)


def test_the_page_is_what_the_results_say():
    found = json.loads(peers.RESULTS.read_text())
    section = page.section(page.PAGE.read_text(), page.PEERS)
    assert section == summary.page_section(found).strip()
    assert "cores" in section
    assert f"| {' | '.join(summary.HEADER)} |" in section


def test_the_results_have_a_row_for_everything_that_is_compared():
    found = json.loads(peers.RESULTS.read_text())
    wanted = [(c.topic, c.title, e.side, e.model) for c in declared() for e in c.entries]
    assert [(r["topic"], r["case"], r["side"], r["model"]) for r in found["rows"]] == wanted
    assert {topic for topic, *_ in wanted} == {"outliers", "mixtures", "prototypes", "processes", "fields"}
    assert [(r["work"], r["along"], r["promised"]) for r in found["growth"]] == [
        (g.work, g.along, g.promised) for g in peers.GROWTHS
    ]
    assert peers.RESULTS.stat().st_size < 60_000
    assert not re.search(r"/(home|work|root|tmp|usr|opt)\b", peers.RESULTS.read_text())


def test_every_peer_that_was_measured_has_a_reason_ready():
    for found in json.loads(peers.RESULTS.read_text())["rows"]:
        assert (
            found["against"] is None or "failed" in found or (found["topic"], summary.package(found)) in summary.REASONS
        )


def test_there_is_one_command():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^bench-peers: \S+\n\t\$\(BIN\)/python -m benchmarks\.peers$", makefile, re.MULTILINE)
    assert "bench-peers" in re.search(r"^\.PHONY:.*$", makefile, re.MULTILINE)[0]
    with pytest.raises(SystemExit, match="must be among outliers"):
        peers.main(["astrology"])


def test_a_loss_of_the_bound_itself_is_not_more_than_it():
    """Eighteen of 1200 answers: 0.015, whatever is lost in the sum of ten means."""
    lost = [2, 1, 1, 7, 0, 1, 2, 1, 1, 2]
    found = [{"table": "A", "world": "clean", "quenched": (90 - one) / 120, "plain": 90 / 120} for one in lost]
    assert "On 0 of 1 " in selected.harmed(found)
    found[0]["quenched"] -= 1 / 120
    assert "On 1 of 1 " in selected.harmed(found)
