"""The page is whole, loads nothing, and shows every comparison and claim it is given, whatever the verdict."""

from __future__ import annotations

import base64
import dataclasses
import html.parser
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import quenched
from quenched.core.claims import DEFINITIONS, Claim, Verdict, below
from quenched.core.figures import Figure, Kind, Panel, Section, Series
from quenched.core.store import OutputError
from quenched.papers import report

X = np.array([1.0, 2.0, 3.0])


def pair(shift=0.0):
    """A theory, and a simulation of 40 runs around it (or off by `shift`)."""
    noise = np.random.default_rng(0).standard_normal((3, 40)) * 0.1
    runs = X[:, None] ** 2 + noise - noise.mean(axis=1, keepdims=True) + shift
    theory = xr.Dataset({"error": ("alpha", X**2)}, {"alpha": X}, {"format": 1})
    points = xr.Dataset({"error": ("alpha", runs.mean(1)), "error_run": (("alpha", "run"), runs)}, {"alpha": X})
    return theory, points


def figure(name="figure_2", shift=0.0, compared=True, caption="A caption."):
    theory, points = pair(shift)
    panel = Panel("time", "error", (Series("LVQ1", Kind.theory, X, X**2),))
    proof = {"LVQ1, p₊ = 0.8": quenched.agreement(theory, points, allowance=0.01)} if compared else {}
    return Figure(f"paper/{name}", f"Title of {name}", caption, (panel,), {"LVQ+ theory": theory}, proof)


def claim(verdict=Verdict.reproduced, statement="the error falls"):
    """A claim whose numbers give a verdict."""
    number = {Verdict.reproduced: 0.1, Verdict.not_decidable: None}.get(verdict, 0.4)
    stands = None if number is None else below(number, 0.3, what="error")
    instead = below(number, 0.5) if verdict is Verdict.corrected else None
    return Claim("section 3", statement, "0.2", "0.21", "counted", stands, instead)


def write(figures, claims, out, **more):
    """A report of one paper."""
    return report.write(
        [Section("paper", "The title", "The reference", tuple(figures), tuple(claims), **more)], out, title="The title"
    )


class Page(html.parser.HTMLParser):
    """What a browser would see: balance of tags, links, images, and the rows of tables as text."""

    VOID = ("meta", "img", "br", "link", "hr", "input")

    def __init__(self, path: Path):
        super().__init__()
        self.open, self.images, self.links, self.rows = [], [], [], []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "img":
            self.images.append(attrs["src"])
        if tag == "a":
            self.links.append(attrs["href"])
        if tag == "tr":
            self.rows.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "tr" in self.open:
            self.rows[-1] += f" {data.strip()}"


def test_the_page_is_whole_and_loads_nothing(tmp_path):
    path = write([figure()], [claim()], tmp_path)
    page = Page(path)
    assert path == tmp_path / "report.html"
    assert page.open == []
    assert "The title" in page.source
    assert "The reference" in page.source
    words = re.sub(r"base64,[^\"]*", "", page.source)
    assert not re.search(r"https?:|//[a-z]|<script|<link|@import|url\(", words)
    assert all(src.startswith("data:image/png;base64,") for src in page.images)


def test_the_embedded_picture_is_the_file_beside_it(tmp_path):
    page = Page(write([figure()], [], tmp_path))
    beside = (tmp_path / "paper-figure_2.png").read_bytes()
    assert beside.startswith(b"\x89PNG")
    assert base64.b64decode(page.images[0].partition(",")[2]) == beside


def test_links_lead_to_files_and_data_load_as_they_were(tmp_path):
    one = figure()
    page = Page(write([one], [], tmp_path))
    files = [link for link in page.links if not link.startswith("#")]
    assert len(files) == 3
    assert all((tmp_path / link).is_file() for link in files)
    assert all(f'id="{link[1:]}"' in page.source for link in page.links if link.startswith("#"))
    loaded = quenched.load(tmp_path / "paper-figure_2-LVQplus-theory.nc")
    xr.testing.assert_equal(loaded, one.data["LVQ+ theory"])


def test_every_comparison_is_a_row_and_in_the_json(tmp_path):
    figures = [figure("figure_1", compared=False), figure("figure_2"), figure("figure_3_left", shift=1.0)]
    assert [one.passed for f in figures for one in f.agreement.values()] == [True, False]
    page = Page(write(figures, [], tmp_path))
    third, second, first = page.rows[1:]  # what disagrees comes first
    assert "Figure 1" in first
    assert "nothing to compare" in first
    assert "LVQ1, p + = 0.8" in second  # its subscript is a formula
    assert "= 0.8 agree" in " ".join(second.split())  # the verdict comes first, so that it is seen on narrow screens
    assert "Figure 3 left" in third
    assert " disagree " in third
    assert "1 of 2 disagree" in page.source
    stored = json.loads((tmp_path / "agreement.json").read_text())["comparisons"]
    assert [(row["figure"], row["passed"]) for row in stored] == [
        ("paper/figure_2", True),
        ("paper/figure_3_left", False),
    ]
    exact = figures[2].agreement["LVQ1, p₊ = 0.8"]
    assert (stored[1]["p"], stored[1]["largest"]) == (exact.p, exact.largest)
    assert (stored[1]["points"], stored[1]["runs"], stored[1]["allowance"]) == (3, 40, 0.01)


def test_agreement_is_not_claimed_where_nothing_was_compared(tmp_path):
    page = Page(write([figure(compared=False)], [], tmp_path))
    assert "nothing compared" in page.source
    assert "all 0 agree" not in page.source


def test_an_infinite_deviation_is_shown_and_stored(tmp_path):
    one = figure()
    off = {name: dataclasses.replace(a, largest=np.inf, p=0.0) for name, a in one.agreement.items()}
    page = Page(write([dataclasses.replace(one, agreement=off)], [], tmp_path))
    assert "∞ s.e." in page.rows[1]
    assert json.loads((tmp_path / "agreement.json").read_text())["comparisons"][0]["largest"] == "infinite"


def test_every_claim_is_shown_with_its_verdict(tmp_path):
    claims = [claim(v, f"statement {v.name}") for v in Verdict]
    page = Page(write([], claims, tmp_path))
    rows = [row for row in page.rows if "statement" in row]
    worst_first = [Verdict.refuted, Verdict.corrected, Verdict.not_decidable, Verdict.reproduced]
    for verdict, row in zip(worst_first, rows, strict=True):
        assert row.strip().endswith(verdict.value)
        assert "counted" in row
    assert "1 reproduced, 1 corrected (1 conclusion), 1 refuted, 1 not decidable" in page.source
    assert "as printed: error 0.4 below 0.3: no ours: 0.4 below 0.5: yes" in rows[1]
    stored = json.loads((tmp_path / "agreement.json").read_text())["claims"]["paper"]
    assert [one["verdict"] for one in stored] == [verdict.value for verdict in Verdict]
    assert stored[0]["checks"] == ["as printed: error 0.1 below 0.3: yes"]


def test_a_paper_without_a_chosen_verdict_says_so(tmp_path):
    page = Page(write([], [claim()], tmp_path))
    assert page.source.count('<p class="nothing">None has this verdict.</p>') == 1
    assert "#only-refuted:checked ~ * .claims:not(:has(tr.refuted)) .nothing" in page.source


def test_text_is_text_whatever_it_contains(tmp_path):
    page = Page(write([figure(caption="p < 0.5 & <script>x</script>")], [], tmp_path))
    assert "<script" not in page.source
    assert "p &lt; 0.5 &amp; &lt;script&gt;" in page.source


def test_a_report_that_cannot_be_written_is_put_elsewhere(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="could not be written") as caught:
        write([figure()], [claim()], tmp_path / "file")
    refuge = Path(re.search(r"put in (\S+)\.$", str(caught.value)).group(1))
    assert {"report.html", "agreement.json", "paper-figure_2.png"} <= {p.name for p in refuge.parent.iterdir()}


def test_a_disagreement_stands_beside_the_claims_that_rest_on_it(tmp_path):
    off = figure(shift=1.0)
    known = dataclasses.replace(claim(Verdict.refuted), rests_on="paper/figure_2: LVQ1, p₊ = 0.8", ours="off by one")
    bare = json.loads((write([off], [claim()], tmp_path / "bare").parent / "agreement.json").read_text())
    assert (bare["summary"]["disagreeing"], bare["summary"]["unexplained"]) == (1, 1)
    page = Page(write([off], [known, claim()], tmp_path / "known"))
    stored = json.loads((tmp_path / "known" / "agreement.json").read_text())
    assert stored["summary"]["unexplained"] == 0
    assert [one["ours"] for one in stored["comparisons"][0]["claims"]] == ["off by one"]
    assert "off by one" in page.rows[1]
    assert "no claim explains this" in (tmp_path / "bare" / "report.html").read_text()


def test_what_is_missing_is_named_with_the_reason(tmp_path):
    given = {"not_built": {"figure_5": "Too hard."}, "failed": {"claims": "It died."}}
    page = Page(write([figure()], [], tmp_path, **given))
    assert any("Figure 5" in row and "Too hard." in row for row in page.rows)
    assert any("Claims" in row and "It died." in row for row in page.rows)
    stored = json.loads((tmp_path / "agreement.json").read_text())
    assert stored["not_built"] == {"paper/figure_5": "Too hard."}
    assert stored["not_computed"] == {"paper/claims": "It died."}
    assert (stored["summary"]["not_built"], stored["summary"]["not_computed"]) == (1, 1)


def test_the_front_page_counts_every_paper(tmp_path):
    one = Section("one2000", "First paper", "", (figure("figure_1"), figure("figure_2", shift=1.0)), (claim(),))
    two = Section("two2001", "Second paper", "", (figure("figure_3", compared=False),), (claim(Verdict.corrected),) * 2)
    page = Page(report.write([one, two], tmp_path, title="Both", quick=True))
    first, second = [row for row in page.rows if "First paper" in row or "Second paper" in row]
    assert "1 of 2 agree" in first
    assert "1 reproduced" in first
    assert "nothing to compare" in second
    assert "2 corrected" in second
    assert {"#one2000", "#two2001"} <= set(page.links)
    stored = json.loads((tmp_path / "agreement.json").read_text())
    assert stored["mode"] == "quick"
    assert stored["summary"]["claims"] == {"reproduced": 1, "corrected": 2}
    assert stored["summary"]["figures"] == 3


def test_checks_of_our_own_are_no_claims_of_the_paper(tmp_path):
    ours = dataclasses.replace(claim(statement="a check that the paper does not make"), own=True)
    page = Page(write([], [claim(), ours], tmp_path))
    assert "<b>1 claim</b>" in page.source
    assert "besides 1 check of our own" in page.source
    before, _, after = page.source.partition("Checks of our own, which the paper does not make")
    assert "a check that the paper does not make" in after
    assert "a check that the paper does not make" not in before
    stored = json.loads((tmp_path / "agreement.json").read_text())
    assert (stored["summary"]["claims"], stored["summary"]["own_checks"]) == ({"reproduced": 1}, 1)


def test_every_verdict_is_defined_in_a_line_and_can_be_chosen(tmp_path):
    page = Page(write([], [claim()], tmp_path))
    for kind, words in DEFINITIONS.items():
        slug = kind.value.replace(" ", "-")
        assert words in page.source
        assert len(words) < 120
        assert f'id="only-{slug}"' in page.source
        assert f"#only-{slug}:checked ~ * tr.claim:not(.{slug})" in page.source
    assert 'class="claim reproduced"' in page.source


def test_the_page_says_which_drawn_points_were_not_tested(tmp_path):
    one, (_, points) = figure(), pair()
    y = np.append(points.error.values, 20.0)
    shown = Series("LVQ1", Kind.simulation, np.append(X, 4.0), y, np.full(4, 0.1))
    one = dataclasses.replace(one, panels=(dataclasses.replace(one.panels[0], series=(shown,)),))
    page = Page(write([one], [], tmp_path))
    assert "1 of 4 drawn points of simulations lie outside and are not tested" in page.source
    summary = json.loads((tmp_path / "agreement.json").read_text())["summary"]
    assert (summary["points_drawn"], summary["points_tested"]) == (4, 3)


def test_beside_p_stands_what_the_test_can_see(tmp_path):
    page = Page(write([figure()], [], tmp_path))
    stored = json.loads((tmp_path / "agreement.json").read_text())["comparisons"][0]
    assert " > 0.99 " in page.rows[1]
    assert stored["p"] > 0.99
    assert f"{100 * stored['smallest_error_caught']:.2g}%" in page.rows[1]
    assert f"{stored['largest_without_allowance']:.2f} s.e." in page.rows[1]


def test_a_claim_leads_to_its_errata_and_they_to_their_tests(tmp_path):
    citing = dataclasses.replace(claim(), evidence="by counting (errata P3 to P5)")
    page = Page(write([], [citing], tmp_path))
    assert {"#erratum-P3", "#erratum-P4", "#erratum-P5"} <= set(page.links)
    (row,) = [row for row in page.rows if row.strip().startswith("P3 ")]
    assert "tests/prototypes/test_errata.py::test_a_misprint_put_back_is_rejected[3]" in row
    assert "β<sub>l</sub>" in page.source


def test_pictures_are_described_and_formulas_are_formulas(tmp_path):
    page = Page(write([figure(caption="R₊₊ falls as N^-1/2 with √(c/α), p < 0.5 in `a<b`")], [], tmp_path))
    assert 'alt="error over time: line LVQ1 rises from 1 to 9."' in page.source
    for formula in ("<msub><mi>R</mi><mtext>++</mtext></msub>", "<msqrt>", "p &lt; 0.5 in <code>a&lt;b</code>",
                    "<msup><mi>N</mi><mrow><mo>−</mo><mn>1</mn><mo>/</mo><mn>2</mn></mrow></msup>"):  # fmt: skip
        assert formula in page.source
