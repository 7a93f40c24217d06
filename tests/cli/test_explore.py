"""The explorer without a browser: it begins at once, answers its own page only, and refuses in one sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import http.client
import importlib.resources
import json
import re
import signal
import socket
import subprocess
import time
import urllib.parse
import webbrowser

import numpy as np
import pytest

from quenched import cli, explorer
from quenched.cli import app
from quenched.core import progress
from quenched.explorer import energies, kept
from quenched.explorer import server as serving

PROGRAM = ("-c", "import sys; from quenched.cli import main; sys.exit(main())", "explore", "--no-browser")
SOON = 2.0
"""Seconds until the address is printed."""
OUTSIDE = re.compile(r"(?:https?:)?//[\w-]+\.[\w.-]+")
"""Addresses; the name of the SVG namespace is one, and nothing is loaded from there."""
NAMESPACE = "http://www.w3.org"
TABLE = "a,b,kind\n" + "".join(f"{i},{(7 * i) % 23},{'uv'[i % 2]}\n" for i in range(40))
RAGGED = "a,b\n1,2\n1,2,3\n"


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a request got."""

    status: int
    kind: str
    body: bytes
    headers: http.client.HTTPMessage

    @property
    def told(self):
        return json.loads(self.body)

    @property
    def sentence(self):
        """The refusal: one line, and no traceback."""
        line = self.told["refused"]
        assert line.endswith((".", "?")), line
        assert "\n" not in line
        assert "Traceback" not in line
        assert "Error:" not in line
        return line


class Page:
    """A server in this process, asked as its page asks."""

    def __init__(self, papers):
        self.server = explorer.start(port=0, papers=papers, warm=False)
        self.host, self.port = self.server.server_address[:2]

    def request(self, method, path, body=None, **headers):
        with contextlib.closing(http.client.HTTPConnection(self.host, self.port, timeout=120)) as line:
            line.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            reply = line.getresponse()
            return Asked(reply.status, reply.headers.get_content_type(), reply.read(), reply.headers)

    def ask(self, view, **state):
        return self.request("POST", "/ask", json.dumps({"view": view, "state": state}), Content_Type="application/json")

    def drop(self, name, text):
        body = text.encode() if isinstance(text, str) else text
        return self.request("POST", f"/table?name={urllib.parse.quote(name)}", body, Content_Type="text/csv")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with progress.hidden():
        found = Page(tmp_path_factory.mktemp("papers"))
        yield found
        found.server.shutdown()
        found.server.server_close()


# The command


@pytest.mark.usefixtures("own_cache")
def test_the_address_is_printed_at_once_and_an_interrupt_ends_it_quietly(launch):
    begun = time.monotonic()
    process = launch(*PROGRAM, "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    taken = time.monotonic() - begun
    address = re.fullmatch(r"The explorer is at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends it\)\.\n", line)
    assert taken < SOON
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=30)) as told:
        told.request("GET", "/")
        assert b"<title>quenched explorer</title>" in told.getresponse().read()
    assert time.monotonic() - begun < 2 * SOON  # the page does not wait for what takes seconds to import
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_port_that_is_taken_is_one_sentence(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, err = run("explore", "--no-browser", "--port", port)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"quenched: The explorer must have a free address, but 127\.0\.0\.1:{port} cannot .*\.\n", err)
    assert len(err.splitlines()) == 1


def test_without_a_port_the_next_free_one_is_taken(monkeypatch, tmp_path):
    with socket.socket() as taken, progress.hidden():
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(serving, "FIRST_PORT", taken.getsockname()[1])
        server = explorer.start(papers=tmp_path, warm=False)
        server.shutdown()
        server.server_close()
    assert taken.fileno() == -1
    assert 0 < server.server_address[1] - serving.FIRST_PORT < serving.PORTS


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_other_machines_are_let_in_only_with_a_warning(run, monkeypatch, host, warned):
    def close(server):
        assert server.desk.about
        server.shutdown()
        server.server_close()

    monkeypatch.setattr(explorer, "start", functools.partial(explorer.start, warm=False))
    monkeypatch.setattr(explorer, "wait", close)
    with progress.hidden():
        code, out, err = run("explore", "--no-browser", "--host", host, "--port", 0)
    assert code == 0
    assert out.startswith("The explorer is at http://")
    assert ("there is no password" in err) == warned


def test_a_host_that_is_not_ours_and_a_port_that_is_none_are_refused(run):
    code, _, err = run("explore", "--no-browser", "--host", "192.0.2.1")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert run("explore", "--port", "70000")[0] == 2


class Graphical(webbrowser.BackgroundBrowser):
    def __init__(self):
        super().__init__("graphical")
        self.opened = []

    def open(self, url, new=0, autoraise=True):
        self.opened.append(url)
        return True


def test_a_browser_is_opened_unless_it_would_take_over_the_terminal(monkeypatch):
    graphical = Graphical()
    monkeypatch.setattr(webbrowser, "get", lambda: graphical)
    assert explorer.browse("http://127.0.0.1:1/")
    assert graphical.opened == ["http://127.0.0.1:1/"]
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("lynx"))
    monkeypatch.setattr(webbrowser.GenericBrowser, "open", lambda *_: True)
    assert not explorer.browse("http://127.0.0.1:1/")

    def none():
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    assert not explorer.browse("http://127.0.0.1:1/")


def test_help_says_what_it_is():
    assert "explore" in {one.name or one.callback.__name__ for one in app.app.registered_commands}
    assert cli.main(["explore", "--help"]) == 0


# The page


def test_the_page_and_all_its_files_are_served(page):
    for path, (_, kind) in serving.PAGE.items():
        found = page.request("GET", path)
        assert (found.status, found.kind) == (200, kind)
        assert found.body


def test_every_file_of_the_page_is_served_and_none_names_another_place():
    folder = importlib.resources.files("quenched.explorer").joinpath("page")
    names = {one.name for one in folder.iterdir()}
    assert names == {name for name, _ in serving.PAGE.values()}
    for name in names:
        text = folder.joinpath(name).read_text(encoding="utf-8")
        assert [one for one in OUTSIDE.findall(text) if one != NAMESPACE] == []
        assert "@import" not in text


def test_the_browser_is_told_to_load_nothing_from_elsewhere(page):
    policy = page.request("GET", "/").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert OUTSIDE.search(policy) is None


def test_what_the_page_has_to_know_names_every_system_with_its_knobs(page):
    about = page.request("GET", "/about").told
    assert {"mixtures", "soft", "lvq1"} <= set(about["systems"])
    for one in about["systems"].values():
        assert all(knob["low"] < knob["high"] and knob["words"] and knob["symbol"] for knob in one["knobs"])


def test_first_answers_are_kept_for_the_very_code_that_gave_them(tmp_path, monkeypatch):
    path = tmp_path / "explorer.json"
    kept.Kept(path).write(
        {"version": "x"}, {kept.name_of("cut", {"system": "soft", "knobs": {"alpha": 8}}): {"y": [1]}}
    )
    again = kept.Kept(path)
    assert again.about == {"version": "x"}
    assert again.find("cut", {"knobs": {"alpha": 8.0}, "system": "soft"}) == {"y": [1]}
    assert again.find("cut", {"knobs": {"alpha": 9}, "system": "soft"}) is None
    monkeypatch.setattr(kept, "_identity", lambda: "other code")
    assert kept.Kept(path).about is None
    path.write_text("{")
    assert kept.Kept(path).about is None


def test_a_kept_answer_is_given_before_the_sciences_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    question = {"system": "soft", "knobs": {"alpha": 20}}
    kept.Kept(tmp_path / "quenched" / "explorer.json").write({"kept": 1}, {kept.name_of("cut", question): {"y": [1]}})
    monkeypatch.setattr(serving.Server, "_load", lambda *_: None)
    with progress.hidden():
        early = Page(tmp_path)
    assert early.request("GET", "/about").told == {"kept": 1}
    assert early.request("GET", "/ready").told == serving.LOADING
    assert early.ask("cut", **question).told["y"] == [1]
    early.server.shutdown()
    early.server.server_close()


# Who may ask


def test_another_page_in_the_same_browser_cannot_ask(page):
    for headers in ({"Origin": "http://elsewhere.example"}, {"Host": f"elsewhere.example:{page.port}"},
                    {"Sec_Fetch_Site": "cross-site"}):  # fmt: skip
        found = page.request("GET", "/about", **headers)
        assert found.status == 403
        assert found.sentence


def test_only_questions_and_the_page_have_an_address(page):
    assert page.request("GET", "/../server.py").status == 404
    assert page.request("POST", "/", "{}", Content_Type="application/json").status == 404
    assert page.request("POST", "/ask", "{}", Content_Type="text/plain").status == 415
    assert page.request("POST", "/ask", "{", Content_Type="application/json").status == 400
    assert page.request("POST", "/ask", "[]", Content_Type="application/json").status == 400
    assert page.ask("nonsense").status == 400


def test_what_is_refused_does_not_smuggle_another_question_behind_it(page):
    inner = f"GET /save?view=flow&state={{}} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n"
    heads = [
        "POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://elsewhere.example\r\n",
        "POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: text/plain\r\n",
        "POST /nothing HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n",
    ]
    for head in heads:
        told = send(page, f"{head.format(port=page.port)}Content-Length: {len(inner)}\r\n\r\n{inner}")
        assert told.count(b"HTTP/1.1 ") == 1, head
        assert b"HTTP/1.1 4" in told


@pytest.mark.parametrize("length", ["-5", "\u00b2", "9" * 5000, "x", ""])
def test_a_length_that_is_none_is_refused(page, length):
    told = send(page, f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {length}\r\n\r\n")  # fmt: skip
    assert told.startswith(b"HTTP/1.1 411 ")


def test_a_table_that_ends_early_is_not_kept(page):
    told = send(page, f"POST /table?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Type: text/csv\r\n"
                "Content-Length: 1000\r\n\r\na,b\n1,2\n")  # fmt: skip
    assert told.startswith(b"HTTP/1.1 400 ")
    assert b"it ends after 8." in told


def test_a_reader_who_leaves_in_the_middle_stops_nothing(page, capsys):
    body = json.dumps({"view": "cut", "state": {"system": "mixtures", "knobs": {"alpha": 3.25}}})
    with socket.create_connection((page.host, page.port)) as line:
        line.sendall(f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n{body}".encode())  # fmt: skip
    assert page.ask("cut", system="mixtures", knobs={"alpha": 3.25}).told["x"] == 3.25
    assert capsys.readouterr().err == ""


def test_an_address_begins_no_work_that_lasts(page):
    state = urllib.parse.quote(json.dumps({"paper": "lemm1999"}))
    assert "must be a dataset" in page.request("GET", f"/save?view=decide&state={state}").sentence
    assert page.ask("claims", paper="lemm1999").told["running"] == {}


def send(page, words):
    """What the server answers to some bytes, until it closes the line."""
    with socket.create_connection((page.host, page.port), timeout=20) as line:
        line.sendall(words.encode("latin-1"))
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(2**16), b""))


# Tables that are dropped


def test_a_table_that_is_too_large_is_refused_before_it_is_read(page):
    with contextlib.closing(http.client.HTTPConnection(page.host, page.port, timeout=30)) as told:
        told.putrequest("POST", "/table?name=large.csv")
        told.putheader("Content-Type", "text/csv")
        told.putheader("Content-Length", str(serving.MOST_BYTES + 1))
        told.endheaders()  # and nothing more
        reply = told.getresponse()
        assert reply.status == 413
        assert "at most 20,971,520 bytes" in json.loads(reply.read())["refused"]


def test_a_question_that_is_too_large_is_refused(page):
    assert page.ask("cut", system="x" * serving.MOST_QUESTION).status == 413


@pytest.mark.parametrize("name", ["data.txt", "", "..", ".csv", "data.csv.exe"])
def test_only_csv_files_are_taken(page, name):
    assert ".csv" in page.drop(name, TABLE).sentence


@pytest.mark.parametrize("text", [RAGGED, "", "a,b\n", "a,a\n1,2\n", b"a,b\n1,\xff\n", "\x00\x01\x02", "a\nx\n"])
def test_a_wrong_table_gets_the_sentence_of_the_command_line(page, run, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "wrong.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    code, _, err = run("density", "wrong.csv", "--column", "a")
    word = page.drop("wrong.csv", text).told["table"]
    assert code == 2
    assert err == f"quenched: {page.ask('density', table=word, column='a').sentence}\n"
    found = page.ask("table", table=word)
    assert "frame" in found.told or found.sentence


def test_columns_and_targets_that_are_not_there_are_refused(page):
    word = page.drop("good.csv", TABLE).told["table"]
    assert "there" in page.ask("density", table=word, column="missing").sentence
    assert page.ask("forecast", table=word, target="missing").sentence
    assert page.ask("doubtful", table=word, target="missing").sentence
    assert page.ask("forecast", table=word, target="b", model="oracle").sentence
    assert page.ask("density", table="iris", column="missing").sentence
    assert "dropped again" in page.ask("density", table="never", column="a").sentence


# Knobs


@pytest.mark.parametrize("value", [1e9, -1, 10**400, float("nan"), float("inf"), "8", True, None, [1], {"a": 1}])
def test_values_that_a_knob_cannot_have_are_refused(page, value):
    assert page.ask("cut", system="mixtures", knobs={"alpha": value}).sentence.startswith("Knob alpha must")


@pytest.mark.parametrize("value", ["nonsense", 5, True, ["mixtures"], {"a": 1}])
@pytest.mark.parametrize(
    ("view", "name"),
    [("cut", "system"), ("lines", "columns"), ("flow", "system"), ("trial", "system"), ("trial", "size"),
     ("trial", "runs"), ("table", "table"), ("density", "table"), ("forecast", "table"), ("doubtful", "table"),
     ("clusters", "table"), ("field", "kind"), ("field", "points"), ("field", "knobs"), ("field", "order"),
     ("field", "shape"), ("well", "points"), ("well", "knobs"), ("well", "example"), ("claims", "paper"),
     ("decide", "paper")],
)  # fmt: skip
def test_choices_that_do_not_exist_are_refused_and_are_no_fault(page, view, name, value, capsys):
    assert page.ask(view, **{name: value}).sentence
    assert capsys.readouterr().err == ""


# An energy of one's own


@pytest.mark.parametrize(
    "formula",
    ["", " ", "y +", "import os", "__import__('os')", "().__class__", "y.real", "exp", "exp(y, y)", "z", "y[0]",
     "lambda: y", "y if Q else 1", "y**Q", "y**99", "exp(y=1)", "1/0", "(((9**6)**6)**6)**6", "1e400*y", "'y'", "True",
     "y" * 121, "abs(y**2)", "maximum(y, Q)", "(" * 60 + "y" + ")" * 59, "y and Q", "0x", "y;Q", 5,
     None, ["y"], "-y**4", "log(y)", "y**-6", "y**~2", "y**-7", "(-1)**0.5*y", "abs((-1)**0.5)*y", "5", "0*y", "Q",
     "maximum(abs(y), 1)", "abs(abs(y))", "y/Q", "y**True"],
)  # fmt: skip
def test_only_formulas_are_energies(page, formula, capsys):
    assert page.ask("energy", formula=formula).sentence
    assert capsys.readouterr().err == ""


def test_a_learner_without_a_convex_energy_is_shown_in_its_best_state(page):
    found = page.ask("energy", formula="-tanh(y)**2", knobs={"alpha": 10, "separation": 1.5}).told
    assert found["cosine"][-1] > 0.5


def test_the_map_of_an_energy_names_its_regions_and_breaks(page):
    asked = {"system": "energy", "formula": "1 - tanh(y)", "knobs": {"ridge": 0.02}}
    column = page.ask("lines", columns=[12], **asked).told["columns"][0]
    assert (column["only"], column["walls"], column["spinodals"]) == ("informed", [], {})
    low, high = column["broken"][0]
    cut = page.ask("cut", system="energy", formula="1 - tanh(y)", knobs={"ridge": 0.02, "alpha": column["x"]}).told
    stability = np.array(cut["branches"]["informed"]["stability"], float)  # null where it is infinite
    holds = [y for y, one in zip(cut["y"], stability, strict=True) if one <= 1]
    assert low == cut["y"][0]
    assert high < min(holds)
    assert page.ask("lines", columns=[17], **asked).sentence


def test_a_formula_is_the_function_that_it_says_with_its_kinks():
    found = energies.read("maximum(0, 1 - y)**2 / 2 + abs(2*y + 1) + softplus(-y)")
    assert found.kinks == (-0.5, 1.0)
    assert found.source == "lambda y, Q: jnp.maximum(0, 1 - y) ** 2 / 2 + jnp.abs(2 * y + 1) + jax.nn.softplus(-y)"
    for y in (-2.0, 0.3, 4.0):
        expected = max(0.0, 1 - y) ** 2 / 2 + abs(2 * y + 1) + np.log1p(np.exp(-y))
        assert float(found.function(y, 1.0)) == pytest.approx(expected, rel=1e-5)
