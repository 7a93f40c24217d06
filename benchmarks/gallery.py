"""The gallery: every figure of the papers as this package computes it, its deviation, and five lines that draw it.

Run `quenched reproduce --out FOLDER`, then `python -m benchmarks.gallery FOLDER`: it draws every figure from there (and
computes what is missing) and writes `docs/gallery`, a page for each paper and one with all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from quenched.core.figures import Figure
from quenched.core.proof import Agreement
from quenched.papers.report import figure_name
from quenched.papers.reproduction.run import run
from quenched.papers.reproduction.steps import CLAIMS, paper, papers, steps
from quenched.plots.drawing import draw

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "gallery"
PIXELS = 800
"""Width of a picture."""
INDEX = """\
# Gallery

Every figure of the papers that stand behind this package, computed again by its own theory and simulation. Each has its
deviation and the lines of Python that compute and draw it; [errata](../errata.md) lists what the papers misprint.
`quenched reproduce` makes all of them, with every claim of the papers beside our value, in one report.
"""


def picture(figure: Figure, path: Path) -> None:
    """Draw a figure as a small picture."""
    drawn = draw(figure, title=False)
    drawn.savefig(path, dpi=PIXELS / drawn.get_figwidth(), pil_kwargs={"quality": 82, "method": 6})


def deviation(proof: Agreement) -> str:
    """What a comparison of theory and simulation found, in words."""
    p = "above 0.99" if proof.p > 0.99 else f"{proof.p:.2g}"
    granted = f", beyond an allowance of {proof.allowance:.3g}" if proof.allowance else ""
    return (f"largest deviation {proof.largest:.2f} standard errors{granted}, p {p} ({proof.points} points, {proof.runs} "
            f"runs){'' if proof.passed else ': **they disagree**'}")  # fmt: skip


def code(key: str) -> str:
    """Five lines that compute and draw a figure."""
    name, part = key.split("/")
    return (f'import quenched\nfrom quenched.papers import {name}\n\nfigure = {name}.FIGURES["{part}"](quick=True)\n'
            f'print(*figure.agreement.values(), sep="\\n")\nquenched.plot(figure).savefig("{part}.png")\n')  # fmt: skip


def file_of(key: str) -> str:
    """The name of a picture."""
    return f"{key.replace('/', '-')}.webp"


def entry(figure: Figure) -> str:
    """A figure on the page of its paper."""
    found = [f"* {name}: {deviation(proof)}" for name, proof in figure.agreement.items()]
    compared = (
        "Theory against simulation:\n\n" + "\n".join(found) if found else "No simulation is compared in this figure."
    )
    return (f"## {figure_name(figure.key)}\n\n[![{figure.title}]({file_of(figure.key)}){{ loading=lazy }}]({file_of(figure.key)})\n\n**{figure.title}.** "
            f"{escaped(figure.caption)}\n\n{compared}\n\n```py\n{code(figure.key)}```\n")  # fmt: skip


def escaped(text: str) -> str:
    """Captions are plain text: what Markdown would take for its own is kept as it is."""
    return text.replace("_", "\\_").replace("*", "\\*").replace("<", "&lt;").replace("|", "\\|")


def write(figures: dict[str, list[Figure]]) -> None:
    """All pages, from the figures of each paper."""
    FOLDER.mkdir(exist_ok=True)
    index = [INDEX]
    for name, own in figures.items():
        module = paper(name)
        body = "\n".join(entry(figure) for figure in own)
        (FOLDER / f"{name}.md").write_text(f"# {module.TITLE}\n\n{module.REFERENCE}\n\n{body}", encoding="utf-8")
        cells = [
            f"* [![{one.title}]({file_of(one.key)}){{ loading=lazy }}<br>{figure_name(one.key)}: {one.title}]({name}.md#{figure_name(one.key).lower().replace(' ', '-')})"
            for one in own
        ]
        index.append(
            f'## {module.TITLE}\n\n{module.REFERENCE}\n\n<div class="gallery" markdown>\n\n'
            + "\n".join(cells)
            + "\n\n</div>\n"
        )
    (FOLDER / "index.md").write_text("\n".join(index), encoding="utf-8")


def main(folder: Path) -> None:
    figures: dict[str, list[Figure]] = {}
    wanted = [step for step in steps(papers()) if step.name != CLAIMS]
    for step, done in run(wanted, quick=True, folder=folder).items():
        if not isinstance(done.value, Figure):
            raise SystemExit(f"{step}: {done.sentence}")
        figures.setdefault(step.paper, []).append(done.value)
        FOLDER.mkdir(exist_ok=True)
        picture(done.value, FOLDER / file_of(done.value.key))
    write(figures)
    print(sum(map(len, figures.values())), "figures,", sum(p.stat().st_size for p in FOLDER.iterdir()) // 1000, "kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
