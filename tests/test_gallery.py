"""The gallery and the charts are of what the package and the results of benchmarks are now."""

import re

import numpy as np
import pytest
from matplotlib.image import imread

from benchmarks import charts, gallery
from quenched.papers.reproduction.steps import CLAIMS, paper, papers, steps

SHOWN = [step for step in steps(papers()) if step.name != CLAIMS]
CHEAP = ("biehl2006/figure_1", "lemm1999/figure_2", "lemm1999/figure_9", "lemm1999/figure_12", "lemm1999/figure_20")
"""Figures that take a tenth of a second, of several kinds."""
LARGEST = 60_000
"""Bytes of a picture."""


def sections():
    """The part of each figure on the pages, by its key."""
    found = {}
    for name in papers():
        text = (gallery.FOLDER / f"{name}.md").read_text(encoding="utf-8")
        for part in text.split("\n## ")[1:]:
            found[f"{name}/{part.splitlines()[0].lower().replace(' ', '_')}"] = f"## {part.rstrip()}"
    return found


def alike(one, two):
    """Hardly a pixel is another colour; single pixels at the edges of lines move with the fonts."""
    a, b = (np.asarray(imread(path), float)[..., :3] for path in (one, two))
    return a.shape == b.shape and np.mean(np.abs(a - b).max(axis=-1) > 64) < 0.002


def test_every_figure_is_in_the_gallery_with_a_small_picture():
    found, index = sections(), (gallery.FOLDER / "index.md").read_text(encoding="utf-8")
    assert list(found) == [str(step) for step in SHOWN]
    for key, text in found.items():
        assert gallery.file_of(key) in text
        assert gallery.file_of(key) in index
        assert gallery.code(key) in text
        assert (gallery.FOLDER / gallery.file_of(key)).stat().st_size < LARGEST
    assert {path.name for path in gallery.FOLDER.glob("*.webp")} == set(map(gallery.file_of, found))


def test_no_comparison_of_the_gallery_disagrees():
    text = "\n".join(sections().values())
    assert len(re.findall(r"p (?:above )?0\.\d+ \(\d+ points", text)) >= 15
    assert "they disagree" not in text


@pytest.mark.parametrize("key", CHEAP)
def test_a_figure_computed_now_is_that_of_the_gallery(key, tmp_path, monkeypatch):
    name, part = key.split("/")
    figure = paper(name).FIGURES[part](quick=True)
    assert gallery.entry(figure).rstrip() == sections()[key]
    gallery.picture(figure, tmp_path / "now.webp")
    assert alike(tmp_path / "now.webp", gallery.FOLDER / gallery.file_of(key))


def test_the_lines_of_the_gallery_run_and_draw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = gallery.code("lemm1999/figure_12")
    assert sum(bool(line) for line in code.splitlines()) == 5
    exec(code, {})
    assert (tmp_path / "figure_12.png").stat().st_size > 1000


@pytest.mark.parametrize("name", charts.CHARTS)
def test_a_chart_is_of_the_stored_results(name, tmp_path):
    charts.CHARTS[name]().savefig(tmp_path / "now.png")
    a, b = (np.asarray(imread(path)) for path in (tmp_path / "now.png", charts.IMAGES / f"{name}.png"))
    assert a.shape == b.shape
    assert np.mean(np.abs(a - b).max(axis=-1) > 0.25) < 0.002
