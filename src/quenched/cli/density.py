"""The command `quenched density`; what it reads and says is in `describing`, imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quenched.cli.app import app
from quenched.cli.delivering import Delivery, JsonOption, OutOption, PlotOption, QuietOption
from quenched.cli.reading import DropCopiesOption, DropMissingOption, EncodingOption


@app.command()
def density(
    data: Annotated[Path | None, typer.Argument(help="A CSV file; without it, petal lengths of irises.")] = None,
    column: Annotated[str | None, typer.Option(help="The column whose density is asked for.")] = None,
    given: Annotated[str | None, typer.Option(help="The column that the density shall hang on.")] = None,
    bounds: Annotated[
        str | None,
        typer.Option(help="Where values end: LOW,HIGH; either may be left out."),
    ] = None,
    drop_missing: DropMissingOption = False,
    drop_copies: DropCopiesOption = False,
    encoding: EncodingOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """How is a column of a table distributed, how sure is that, and how does it hang on another column?

    The density is smooth; how smooth, the data decide. Bands and intervals hold 90% of the probability.

    Example: quenched density houses.csv --column price --given area --plot price.png
    """
    from quenched.cli import describing

    how = {"drop_missing": drop_missing, "drop_copies": drop_copies, "encoding": encoding}
    table, called = describing.read(data, column, given, **how)
    ends = describing.ends(bounds, given)
    delivery = Delivery(out, plot, json, quiet)
    delivery.check()
    delivery.notes(table.notes)
    with delivery.working(f"Learning from {called} ..."):
        result = describing.describe(table, ends).assign_attrs(data=called)
    return delivery.hand_over([result], result, show=describing.show, notes=table.notes)
