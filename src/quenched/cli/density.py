"""The command `quenched density`; what it reads and says is in `describing`, imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quenched.cli.app import OutOption, PlotOption, _check_outputs, _deliver, _interrupts, _step, app


@app.command()
def density(
    data: Annotated[Path | None, typer.Argument(help="A CSV file; without it, petal lengths of irises.")] = None,
    column: Annotated[str | None, typer.Option(help="The column whose density is asked for.")] = None,
    given: Annotated[str | None, typer.Option(help="The column that the density shall hang on.")] = None,
    out: OutOption = None,
    plot: PlotOption = None,
) -> None:
    """How is a column of a table distributed, how sure is that, and how does it hang on another column?

    The density is smooth; how smooth, the data decide. Bands and intervals hold 90% of the probability.

    Example: quenched density houses.csv --column price --given area --plot price.png
    """
    from quenched.cli import describing

    table, called = describing.read(data, column, given)
    _check_outputs(out, plot)
    _step(f"Learning from {called} ...")
    with _interrupts(None):
        result = describing.describe(table).assign_attrs(data=called)
    return _deliver([result], result, out, plot, show=describing.show)
