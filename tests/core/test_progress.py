"""What is said of long work: a bar on a terminal, a line now and then elsewhere, nothing where nobody wants it."""

import re
import time

import pytest

from quenched.core import progress


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(progress, "PAUSE", 0.05)


def wait_for_lines(capsys, count):
    """Lines on standard error, as soon as there are so many."""
    text, until = "", time.monotonic() + 20
    while text.count("\n") < count and time.monotonic() < until:
        time.sleep(0.01)
        text += capsys.readouterr().err
    return text.splitlines()


def test_lines_come_while_a_single_step_takes_long(capsys):
    with progress.progress("work", 7) as advance:
        advance(3)
        lines = wait_for_lines(capsys, 2)
        with progress.progress("work inside", 2):
            more = wait_for_lines(capsys, 1)
    assert all(re.fullmatch(r"work: 3 of 7, \d+ s", line) for line in lines + more)
    capsys.readouterr()
    time.sleep(0.15)
    assert capsys.readouterr() == ("", "")  # silent when the work is done


def test_words_of_the_owner_are_said(capsys):
    with progress.estimated("report") as update:
        update(0.5, "half of it")
        assert re.fullmatch(r"report: half of it, \d+ s", wait_for_lines(capsys, 1)[0])


def test_short_work_says_nothing(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 60.0)
    assert list(progress.track([1, 2], "short")) == [1, 2]
    assert capsys.readouterr() == ("", "")


def test_silence(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_silent", False)
    progress.say("First.")
    progress.silence()
    progress.say("Second.")
    with progress.progress("work", 2):
        time.sleep(0.15)
    assert capsys.readouterr().err == "First.\n"
