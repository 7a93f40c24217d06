"""The documentation is true: its code runs and prints what it says, its pictures and errata are what they claim."""

import ast
import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import quenched
from quenched import cli, fields, mixtures, outliers, processes, prototypes
from quenched.cli.app import app
from tests.conftest import CACHE
from tests.programs import compiled
from tests.prototypes.test_errata import FELT

ROOT = Path(__file__).parents[1]
PAGES = {str(p.relative_to(ROOT)): p for p in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
LARGEST_PICTURE = 150_000


def blocks(page, language):
    """Code of a language, what it prints if the page says so, and its line. Included scripts have their own test."""
    text = PAGES[page].read_text()
    for found in FENCE.finditer(text):
        if found[1] == language and not found[2].startswith("--8<--"):
            yield found[2], found[3], text[: found.start(2)].count("\n")


def same_text(printed, said):
    """The same words, and numbers that round to the same within what other hardware may change."""
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (printed, said)]
    numbers = [np.array(NUMBER.findall(text), float) for text in (printed, said)]
    return words[0] == words[1] and np.allclose(*numbers, rtol=0.05, atol=0.01)


def same_picture(one, two):
    """Of one size, and hardly a pixel apart: one line or a few markers elsewhere are more."""
    a, b = (imread(path)[..., :3] for path in (one, two))
    return a.shape == b.shape and np.mean(np.abs(a - b).max(axis=-1) > 0.1) < 0.001


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "python"))])
def test_the_code_of_a_page_runs_and_gives_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))  # processes that a page starts find what is compiled
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
    names = {"__name__": "__main__"}
    for code, said, line in blocks(page, "python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, page, "exec"), names)  # the line of the page in tracebacks
        assert same_text(printed.getvalue(), said or ""), f"{page} says\n{said}\nbut it is\n{printed.getvalue()}"
    drawn = {path.name for path in tmp_path.glob("*.png")}
    shown = {Path(link).name for link in re.findall(r"\]\(([^)]*\.png)\)", PAGES[page].read_text())}
    assert drawn <= shown
    for name in drawn:
        assert same_picture(tmp_path / name, ROOT / "docs" / "images" / name), name


def test_the_readme_draws_its_own_picture():
    (code, *_), *_ = blocks("README.md", "python")
    assert 'savefig("learning_curve.png")' in code
    assert "](docs/images/learning_curve.png)" in PAGES["README.md"].read_text()


def test_pictures_are_small():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}
    assert max(sizes.values()) < LARGEST_PICTURE, sizes


def test_commands_exist_and_a_curve_is_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "COMPILATION_CACHE_DIR",
        "PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
        "PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES",
    ):
        monkeypatch.setenv(f"JAX_{name}", "")  # a command sets them; here that ends with the test
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    lines = [shlex.split(line) for page in PAGES for code, *_ in blocks(page, "sh") for line in code.splitlines()]
    called = [words[1:] for words in lines if words[0] == "quenched"]
    assert {words[0] for words in called} <= known
    curves = sorted({tuple(words) for words in called if words[0] == "curve"})  # pages may show the same one
    assert [cli.main(list(words)) for words in curves] == [0] * len(curves)
    assert (tmp_path / "curve.png").exists()


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("docs")])
def test_links_outside_the_site_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page].read_text()):
        assert "://" in link or (ROOT / link.split("#")[0]).exists(), f"{page} links to {link}"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_how_to_is_found_from_the_first_page(page):
    linked = {Path(link).name for link in re.findall(r"how-to/[\w-]+\.md", PAGES[page].read_text())}
    assert linked == {path.name for path in (ROOT / "docs" / "how-to").iterdir()}


QUESTIONS = ("forecast", "outliers", "learning-curves", "densities", "mixtures")  # one of each science


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_science_begins_with_a_question_a_few_lines_and_a_picture(name):
    text = PAGES[f"docs/how-to/{name}.md"].read_text()
    assert text.splitlines()[0].endswith("?")
    headings = ["How to read it", "Your own CSV", "When not to trust it", "Where the theory is"]
    assert [line[3:] for line in text.splitlines() if line[3:] in headings] == headings
    answer = text[: text.index("## ")]
    assert "](../images/" in answer
    (code, *_), *_ = blocks(f"docs/how-to/{name}.md", "python")
    assert 5 <= sum(bool(line.strip()) for line in code.splitlines()) <= 15


def errata():
    """Rows of the table: id, where, printed, used, why, deciding test."""
    rows = [line.strip("| \n").split(" | ") for line in PAGES["docs/errata.md"].read_text().splitlines()]
    return {row[0]: row for row in rows if re.fullmatch(r"[PMBEF]\d+", row[0])}


def functions_in(path):
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_erratum_has_a_row_and_every_row_a_test_that_exists():
    rows = errata()
    counts = {"P": 22, "M": 11, "B": 14, "E": 13}
    numbered = [f"{paper}{i + 1}" for paper, count in counts.items() for i in range(count)]
    others = [name for name in rows if name[0] != "F"]  # those of lemm1999 are numbers of equations and figures
    assert others == numbered
    assert len(rows) == len(numbered) + 63
    for name, row in rows.items():
        assert len(row) == 6, row
        if row[5] == "notation only":
            assert name in ("P2", "P20", "M3", "B13", "E3", "E4", "E9", "E12")
            continue
        path, test, case = re.fullmatch(r"`(tests/\S+\.py)::(test_\w+)(?:\[(\d+)\])?`", row[5]).groups()
        assert test in functions_in(path), row[5]
        if case:
            assert f"P{case}" == name
            assert int(case) in FELT
    assert {f"P{number}" for number in FELT} == {name for name, row in rows.items() if "put_back" in row[5]}


def test_every_citation_of_an_erratum_has_its_row():
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        for words in re.findall(r"errat(?:um|a) ([PMBEF]\d+(?:(?:,| to| and) [PMBEF]\d+)*)", path.read_text()):
            cited |= set(re.findall(r"[PMBEF]\d+", words))
    assert cited
    assert cited <= set(errata())


def test_every_public_name_is_in_the_reference():
    text = "\n".join(path.read_text() for page, path in PAGES.items() if page.startswith("docs/api/"))
    named = {line.rpartition(".")[2] for line in re.findall(r"^::: (\S+)", text, re.MULTILINE)}
    for home in (quenched, prototypes, processes, mixtures, outliers, fields):
        public = {name for name in home.__all__ if callable(getattr(home, name))}
        assert public <= named, public - named


def test_the_best_rate_is_found_and_the_simulation_confirms_it(tmp_path, capsys):
    script = importlib.util.spec_from_file_location("best_rate", ROOT / "examples" / "best_rate.py")
    best_rate = importlib.util.module_from_spec(script)
    script.loader.exec_module(best_rate)
    best_rate.error_and_slope = compiled(best_rate.error_and_slope.__wrapped__)
    result = best_rate.main(tmp_path)
    usual, constant, schedule = result.theory
    assert usual > constant > schedule > float(prototypes.optimum(best_rate.LAW).error)
    np.testing.assert_allclose(result.theory, [0.22366, 0.19182, 0.18400], atol=2e-5)
    assert result.rates[1, 0] == pytest.approx(0.849, abs=0.005)
    assert np.all(np.diff(result.rates[2]) < 0)
    for better, worse in ((1, 0), (2, 1)):
        gain, stderr = result.gain(better, worse)
        assert gain > 5 * stderr
        assert gain == pytest.approx(result.theory[worse] - result.theory[better], abs=4 * stderr)
    assert quenched.agreement(result.curve, result.points, variables=["error"], allowance=0.004).passed
    assert same_picture(tmp_path / "best_rate.png", ROOT / "docs" / "images" / "best_rate.png")
    assert "standard errors" in capsys.readouterr().out
    said = re.findall(r"\| (0\.\d{4}) \| (0\.\d{4}) ± (0\.\d{4}) \|", PAGES["docs/how-to/best-rate.md"].read_text())
    np.testing.assert_allclose(
        np.array(said, float), np.transpose([result.theory, result.measured, result.stderr]), atol=3e-4
    )


def test_the_site_builds_strictly_and_loads_nothing_from_the_network(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "site").rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//", text), path
        assert not re.search(r"<link[^>]+href=\"(?:https?:)?//", text), path
        assert 'class="arithmatex"' not in text, path
