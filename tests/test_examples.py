"""The notebooks of `examples/`: every cell runs, what they say comes out, and nothing of a machine is in them."""

import contextlib
import io
import json
import re
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from benchmarks import notebooks
from tests.test_docs import same_text

FOLDER = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
LARGEST = 20_000  # bytes; a notebook with pictures in it would be a hundred times that


def cells(name, kind):
    book = json.loads((FOLDER / name).read_text())
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == kind]


def forecast_holds(names, printed):
    assert names["inside"] == dict.fromkeys((75, 300), True)
    assert names["answer"].attrs["grade"] == "A"
    assert names["measured"][300][0] < names["measured"][75][0]
    assert "measured error within the 80% band" in printed


def teacher_is_lost_at_one_place(names, printed):
    assert "theory and simulation agree" in printed
    lines, etas = names["lines"], names["etas"]
    assert lines.overfit_start < lines.informed_overfit < lines.informed_end
    for angles in (names["points"].Phi.values, names["told"], names["alone"]):
        assert angles[etas.index(2.0)] < 0.1
        first = next(eta for eta, angle in zip(etas, angles, strict=True) if angle > 0.3)
        assert abs(first - float(lines.informed_overfit)) <= 0.5  # the transition is rounded in 100 dimensions
        assert angles[etas.index(5.0)] > 0.4


def knowledge_helps_few_rows(names, printed):
    smooth, _, both = (float(value) for value in re.findall(r"wines (-\d+\.\d+)", printed))
    assert both > smooth
    assert all(fit.converged for fit in names["fits"].values())


CHECKS = {
    "density_and_prior.ipynb": knowledge_helps_few_rows,
    "forecast.ipynb": forecast_holds,
    "phase_transition.ipynb": teacher_is_lost_at_one_place,
}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_notebook_runs_draws_and_gives_what_it_says(name):
    printed, names = io.StringIO(), {"__name__": "__main__"}
    with matplotlib.rc_context({"backend": "Agg"}), contextlib.redirect_stdout(printed):
        for number, code in enumerate(cells(name, "code")):
            exec(compile(code, f"{name}, code cell {number + 1}", "exec"), names)
    CHECKS[name](names, printed.getvalue())
    page = (FOLDER.parent / "docs" / "notebooks" / name.replace("ipynb", "md")).read_text(encoding="utf-8")
    said = "".join(re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert same_text(printed.getvalue(), said), f"the page says\n{said}\nbut it is\n{printed.getvalue()}"
    drawn = [value for value in names.values() if isinstance(value, Figure)]
    assert drawn
    for figure in drawn:
        assert figure.axes[0].get_xlabel()
        assert all(axes.get_ylabel() for axes in figure.axes)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_page_of_a_notebook_has_its_cells_and_pictures(name):
    page = FOLDER.parent / "docs" / "notebooks" / name.replace("ipynb", "md")
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^```py\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL) == cells(name, "code")
    assert all(notebooks.linked(words) in text for words in cells(name, "markdown"))
    drawn = re.findall(r"\]\(([\w-]+\.webp)\)", text)
    assert len(drawn) == sum(code.splitlines()[-1] in ("picture", "figure") for code in cells(name, "code"))
    assert all((page.parent / picture).stat().st_size < 40_000 for picture in drawn)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_small_and_hold_nothing_of_a_machine(name):
    assert (FOLDER / name).stat().st_size < LARGEST
    book = json.loads((FOLDER / name).read_text())
    assert set(book["metadata"]) == {"kernelspec", "language_info"}
    assert set(book["metadata"]["language_info"]) == {"name"}
    for cell in book["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_the_readme_and_the_home_page_name_every_notebook():
    root = FOLDER.parent
    for page in (root / "README.md", root / "docs" / "index.md"):
        assert set(re.findall(r"(\w+\.ipynb)", page.read_text())) == set(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_pages_that_a_notebook_names_exist(name):
    named = re.findall(r"`(docs/[\w/-]+\.md)`", "\n".join(cells(name, "markdown")))
    assert named
    for page in named:
        assert (FOLDER.parent / page).exists(), page
