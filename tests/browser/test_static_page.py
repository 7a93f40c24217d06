"""The page with sliders, opened as a file in Chromium: its numbers are those of the Python that it shows.

`make test-browser` runs this; without Chromium it is skipped with one sentence.
"""

import html
import random
import re
import subprocess

import numpy as np
import pytest

from benchmarks import static_page
from tests.browser.chromium import executable

EQUAL = 1e-6
"""Single precision of the page, relative where a number is above 1."""
GRIDS = static_page.kept()
LOOKED_AT = {"prototypes": ("alpha", static_page.TIME), "fields": ("y", static_page.AXIS.coordinates.tolist())}
"""The slider that only moves along a curve."""


def opened(address, folder):
    """The page at an address, as it is after its script has run."""
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-sync",
        "--no-first-run",
    )
    command = [executable(), *options, f"--user-data-dir={folder}", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def knobs(science, seed):
    """A random node for every slider of a science."""
    rng = random.Random(f"{science} {seed}")
    sliders = {knob["name"]: knob["values"] for knob in GRIDS[science]["knobs"]}
    name, values = LOOKED_AT.get(science, (None, None))
    return {one: rng.choice(each) for one, each in (sliders | ({name: values} if name else {})).items()}


def shown(page):
    """The numbers of the table, the words in it, and the Python of the page."""
    table = re.search(r'<div id="numbers".*?</table>', page, re.DOTALL)[0]
    rows = [
        re.findall(r"<td(?: data-value=\"([^\"]*)\")?>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)
    ]
    cells = {row[0][1]: [float(value) if value else word for value, word in row[1:]] for row in rows if row}
    return cells, html.unescape(re.search(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)[1])


def set_to(page):
    """What each slider says."""
    inputs = [dict(re.findall(r'([\w-]+)="([^"]*)"', tag)) for tag in re.findall(r"<input[^>]*>", page)]
    return {one["id"].removeprefix("knob-"): html.unescape(one["aria-valuetext"]) for one in inputs}


def computed(science, names, knobs):
    """The same numbers from what the Python of the page has left in its variables."""
    if science == "fields":
        k = int(np.argmin(np.abs(static_page.AXIS.coordinates - knobs["y"])))
        low, high = names["f"].laplace(names["problem"], names["fit"]).band()
        return {"density here": [names["fit"].density[k]], "band from": [low[k]], "band to": [high[k]]}
    curve = names["curve"]
    if science == "outliers":
        here = curve.isel(eta=0) if "eta" in curve.dims else curve
        here = here if "branch" in here.dims else here.expand_dims(branch=["informed"])
        return {str(b): [float(here[n].sel(branch=b)) for n in ("R", "Phi", "free_energy")] for b in here.branch.values}
    told = {"prototypes": {"error": "error"}, "mixtures": {"error": "error", "overlap r": "r", "norm q": "q"},
            "processes": {"error, all rows": "error", "error, rows left out": "oob_error"}}[science]  # fmt: skip
    found = {words: [float(np.squeeze(curve[name].values))] for words, name in told.items()}
    return found | ({"phase": [str(np.squeeze(curve.phase.values))]} if science == "mixtures" else {})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("science", GRIDS)
def test_every_number_is_what_the_python_of_the_page_gives(science, seed, tmp_path, capsys):
    chosen = knobs(science, seed)
    query = "&".join(f"{name}={value}" for name, value in chosen.items())
    page = opened(f"{static_page.PAGE.as_uri()}#{science}?{query}", tmp_path)
    for name, value in set_to(page).items():
        assert (value if isinstance(chosen[name], str) else float(value)) == chosen[name]
    cells, code = shown(page)
    names = {}
    exec(code, names)
    assert capsys.readouterr().out
    for words, expected in computed(science, names, chosen).items():
        found = next(cell for name, cell in cells.items() if name.removesuffix(" (least f)") == words)
        for one, value in zip(found, expected, strict=True):
            if isinstance(value, str):
                assert one.startswith(value), (query, words)
            elif np.isnan(value):
                assert one == "diverged" or np.isnan(one), (query, words)
            else:
                assert one == pytest.approx(value, rel=EQUAL, abs=EQUAL), (query, words)


def test_the_page_is_small_and_loads_nothing():
    text = static_page.PAGE.read_text(encoding="utf-8")
    assert len(text.encode()) < static_page.LARGEST
    assert not re.search(r"(?:src|href)=|@import|url\((?!#)|fetch\(|XMLHttpRequest", text.replace("url(#", ""))


def test_the_page_is_the_template_with_its_grids():
    before, after = static_page.TEMPLATE.read_text(encoding="utf-8").split("@GRIDS@")
    text = static_page.PAGE.read_text(encoding="utf-8")
    assert text.startswith(before)
    assert text.endswith(after)
