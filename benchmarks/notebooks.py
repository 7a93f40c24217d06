"""The notebooks of `examples/` as pages of the site, with what their cells print and draw.

`python -m benchmarks.notebooks` runs them and writes `docs/notebooks`; `tests/test_examples.py` runs every cell, too, and
compares what it prints with the page.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "notebooks"
PIXELS = 800
"""Width of a picture."""


def run(code: str, names: dict, where: str) -> tuple[str, object]:
    """Run a cell; return what it prints, and the value of an expression at its end."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    return printed.getvalue(), value


def linked(text: str) -> str:
    """Pages that a notebook names, as links."""
    return re.sub(r"`docs/([\w/-]+\.md)`", lambda found: f"[{found[1].split('/')[-1][:-3]}](../{found[1]})", text)


def render(path: Path) -> str:
    """A notebook as a page; its pictures are drawn beside it."""
    names: dict = {"__name__": "__main__"}
    parts = []
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(linked(source))
            continue
        parts.append(f"```py\n{source}\n```")
        printed, value = run(source, names, f"{path.name}, cell {number}")
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
        if isinstance(value, Figure):
            name = f"{path.stem}-{number}.webp"
            value.savefig(PAGES / name, dpi=PIXELS / value.get_figwidth(), pil_kwargs={"quality": 82, "method": 6})
            parts.append(
                f"![Picture of the cell above: {value.axes[0].get_ylabel()} against {value.axes[0].get_xlabel()}]({name})"
            )
    parts.insert(1, f"*`examples/{path.name}` in the repository, as it runs there.*")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    PAGES.mkdir(exist_ok=True)
    matplotlib.use("Agg")
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        (PAGES / f"{path.stem}.md").write_text(render(path), encoding="utf-8")
        print(path.stem)


if __name__ == "__main__":
    main()
