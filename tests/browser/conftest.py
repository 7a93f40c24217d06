"""The explorer, begun as a reader begins it, and a browser to look at it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

import pytest

from quenched.core.claims import Claim, above, below
from quenched.core.store import Store
from quenched.papers.reproduction.steps import CLAIMS, Step, write
from tests.browser.chromium import Chromium
from tests.conftest import CACHE

COLD = 300.0
"""Seconds until the first answer, on a machine that does other things too."""
PROGRAM = (
    "-c",
    "import sys; from quenched.cli import main; sys.exit(main())",
    "explore",
    "--no-browser",
    "--port",
    "0",
)


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def address(papers, tmp_path_factory):
    """The explorer, begun as a reader begins it."""
    cache = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "JAX_COMPILATION_CACHE_DIR": str(CACHE)}
    command = [sys.executable, *PROGRAM, "--papers", str(papers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | cache) as process:
        found = re.search(r"http://\S+/", process.stdout.readline())[0]
        wait_until_ready(found)
        yield found
        process.terminate()


def wait_until_ready(address):
    """Wait for the first of the first answers: a busy machine may take minutes to compile it."""
    until = time.monotonic() + COLD
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{address}ready", timeout=COLD) as reply:
            if json.loads(reply.read())["done"]:
                return
        time.sleep(0.1)
    raise TimeoutError("The explorer has no first answer.")


@pytest.fixture(scope="session")
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
