"""Whatever words and files the command line gets: exit code 0, or 2 or 3 and one line; never a traceback."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tinygp import kernels

from quenched import cli, processes
from tests.properties import common as properties

pytestmark = pytest.mark.usefixtures("own_cache")

TYPED = ["", "nan", "inf", "-inf", "-1", "0", "1e400", "1e300", "1e-300", "0.5", "1", "2,1", "1,2", "1,1", "0:1",
         "0:1:3", "0:1:0", "0:1:-1", "1:0:3", "0:1:1e9", "0:nan:3", ",", ";", "1;2", "[1]", "(1,2)", "1j", "True",
         "None", "--", "-", "=", "R=1;Q=1", "near-origin", "lvq1", "vq", "two-clusters", "🙂", "a\nb", "%s", "{}",
         "../..", "words", "/dev/null"]  # fmt: skip
WORDS = st.one_of(st.sampled_from(TYPED), st.text(max_size=6).filter(lambda text: "\x00" not in text))
"""What people type."""
NAMES = ("--rate", "--prior", "--separation", "--variances", "--alpha", "--rule", "--law", "--start", "--labels",
         "--what", "--norm", "--width", "--eta", "--gamma", "--law-gamma")  # fmt: skip
SCIENCES = ("prototypes", "prototypes", "mixtures", "outliers", "fields", "processes", "nonsense", "")


def told(*words: str) -> int:
    """Run a command and look at its manners."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), properties.in_time():
        code = cli.main(list(words))
    lines = err.getvalue().splitlines()
    assert code in (0, 2, 3), (code, err.getvalue())
    assert "Traceback" not in err.getvalue() + out.getvalue()
    ours = [line for line in lines if line.startswith("quenched: ")]
    assert len(ours) == (code != 0), lines
    assert not ours or lines[-1] == ours[0]
    assert all(len(line) > 10 for line in ours)
    return code


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What is written, is written here."""
    monkeypatch.chdir(tmp_path)


def options(names: tuple[str, ...], values: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """Some options with values."""
    pairs = st.lists(st.tuples(st.sampled_from(names), values), max_size=3)
    return pairs.map(lambda found: [word for pair in found for word in pair])


@properties.property_settings(20)
@given(science=st.sampled_from(SCIENCES), words=options(NAMES, WORDS))
def test_curve(science, words):
    # Curves of other sciences are dear: there a size that is none says enough.
    safe = ["--rule", "lvq1", "--alpha", "1"] if science == "prototypes" else ["--alpha", "none"]
    told("curve", science, *safe, *words)
    told("curve", science, *words, *(() if science == "prototypes" else safe))


SIMULATED = (
    "--size",
    "--runs",
    "--seed",
    "--simulator",
    "--allowance",
    "--workers",
    "--scheduler",
    "--folder",
    "--tests",
    "--batch",
    "--out",
    "--plot",
    "--alpha",
    "--rate",
)
CHEAP = st.sampled_from(
    ["", "nan", "-1", "0", "1e400", "words", "1,2", "None", "99999999999999999999", "0.5", "/dev/null/x", "x.txt"]
)


@properties.property_settings(20)
@given(words=options(SIMULATED, CHEAP))
def test_simulate(words):
    told("simulate", "prototypes", "--rule", "vq", "--size", "20", "--runs", "4", "--alpha", "1", *words)


@properties.property_settings(8)
@given(
    words=st.lists(WORDS, max_size=3),
    command=st.sampled_from(["reproduce", "nothing", "", "--nothing", "curve", "demo"]),
)
def test_any_words(command, words):
    wrong = {"reproduce": ["--figure", "no such figure", "no such paper"], "demo": ["--workers", "none"]}
    told(command, *wrong.get(command, []), *words)


# Files


def rows(count: int = 30) -> str:
    """A table as text."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=count)
    lines = [",".join(f"{value:.4f}" for value in (*x, target)) for x, target in zip(X, y, strict=True)]
    return "\n".join(["a,b,c,y", *lines]) + "\n"


TEXT = rows()
DAMAGES = {
    "none": lambda t: t,
    "mark": lambda t: b"\xef\xbb\xbf" + t,
    "windows": lambda t: t.replace(b"\n", b"\r\n"),
    "old mac": lambda t: t.replace(b"\n", b"\r"),
    "semicolons": lambda t: t.replace(b",", b";"),
    "decimal commas": lambda t: t.replace(b",", b";").replace(b".", b","),
    "tabs": lambda t: t.replace(b",", b"\t"),
    "spaces": lambda t: t.replace(b",", b" "),
    "empty": lambda t: b"",
    "blank": lambda t: b"\n\n \n",
    "names only": lambda t: t.split(b"\n")[0],
    "no names": lambda t: t.split(b"\n", 1)[1],
    "same names": lambda t: t.replace(b"a,b,c,y", b"a,a,y,y"),
    "numbers for names": lambda t: t.replace(b"a,b,c,y", b"1,2,3,y"),
    "missing": lambda t: t.replace(b"1.", b"", 1).replace(b"0.", b",", 1),
    "gap": lambda t: t.replace(b"-0.", b"NA", 3),
    "word": lambda t: t.replace(b"0.1", b"word", 1),
    "infinite": lambda t: t.replace(b"0.1", b"1e999", 1),
    "long row": lambda t: t + b"1,2,3,4,5,6\n",
    "short row": lambda t: t + b"1,2\n",
    "long field": lambda t: t + b"9" * 200_000 + b",1,2,3\n",
    "long word": lambda t: t + b"x" * 200_000 + b",1,2,3\n",
    "quote": lambda t: t.replace(b",", b',"', 1),
    "nul": lambda t: t.replace(b",", b"\x00", 2),
    "binary": lambda t: bytes(range(256)) * 8,
    "latin": lambda t: t.replace(b"a,b", "ä,b".encode("latin-1")),
    "wide": lambda t: t.decode().encode("utf-16"),
    "few": lambda t: b"\n".join(t.split(b"\n")[:4]),
    "constant": lambda t: b"a,b,c,y\n" + b"1,2,3,4\n" * 30,
    "same rows": lambda t: b"a,b,c,y\n" + b"1,2,3,4\n2,1,3,5\n" * 15,
    "large": lambda t: t.replace(b"\n0.", b"\n1e200", 3),
    "huge": lambda t: re.sub(rb"(?<=,)(-?\d\.\d+)\n", rb"\1e200\n", t),
    "tiny": lambda t: re.sub(rb"(?<=,)(-?\d\.\d+)\n", rb"\1e-200\n", t),
    "many digits": lambda t: t + b"9" * 400 + b",1,2,3\n",
    "escape": lambda t: t.replace(b"a,b,c", b"a\x1b[31m,b\x07,c"),
    "dollars": lambda t: t.replace(b"a,b,c", b"a$_$,$b,c$"),
    "percents": lambda t: t.replace(b",", b"%,"),
    "dates": lambda t: t.replace(b"\n0.", b"\n2024-01-0"),
    "quoted commas": lambda t: re.sub(rb"(?<=\n)(-?\d)\.(\d+)", rb'"\1,\2"', t),
    "tar": lambda t: t[:257].ljust(257, b"0") + b"ustar" + t,
}


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """The bytes of a table that something happened to, and its ending."""
    content = DAMAGES[draw(st.sampled_from(sorted(DAMAGES)))](TEXT.encode())
    if draw(st.booleans()) and content:
        for place, byte in draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=3)):
            content = content[:place] + bytes([byte]) + content[place + 1 :]
    if draw(st.integers(0, 3)) == 0:
        content = content[: draw(st.integers(0, len(content)))]
    return draw(st.sampled_from([".csv", ".csv", ".csv", ".gz", ".zip", ".txt"])), content


def test_every_damage_is_met_by_a_sentence_or_an_answer(monkeypatch):
    _fast(monkeypatch)
    for name, damage in DAMAGES.items():
        Path("table.csv").write_bytes(damage(TEXT.encode()))
        code = told("forecast", "table.csv", "--target", "y", "--examples", "15,30,60")
        assert (code != 2) <= (name not in ("empty", "blank", "semicolons", "tabs", "binary", "word", "nul")), name


def _fast(monkeypatch):
    """Without tuning, which takes long and does not depend on the file."""
    rule = processes.GaussianProcess(kernels.ExpSquared(2.0), noise=0.1)
    monkeypatch.setattr(processes, "forecast", functools.partial(processes.forecast, rule=rule, tune=False))


@pytest.mark.parametrize("command", ["forecast", "density", "potential"])
@properties.property_settings(8)
@given(
    file=damaged(),
    words=options(
        ("--target", "--columns", "--examples", "--error", "--column", "--given", "--seed", "--bounds", "--encoding"),
        WORDS,
    ),
)
def test_a_damaged_table(command, file, words):
    ending, content = file
    Path(f"table{ending}").write_bytes(content)
    column = "--target" if command == "forecast" else "--column"
    with pytest.MonkeyPatch.context() as patched:
        _fast(patched)
        told(command, f"table{ending}", column, "y")
        told(command, f"table{ending}", *words)


@pytest.mark.parametrize("ending", [".zip", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("content", [b"", b"not packed at all", TEXT.encode()])
def test_a_packed_table_that_is_none(ending, content):
    Path(f"table{ending}").write_bytes(content)
    assert told("forecast", f"table{ending}", "--target", "y") == 2
    assert told("density", f"table{ending}") == 2
    assert told("density", f"table{ending}", "--column", "y") == 2
