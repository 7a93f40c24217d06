"""Options of commands that read a table."""

from __future__ import annotations

from typing import Annotated

import typer

ColumnsOption = Annotated[str | None, typer.Option(help="The columns that predict, such as a,b; or else all.")]
DropMissingOption = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows in which a value is missing; else they are refused.")
]
DropCopiesOption = Annotated[bool, typer.Option("--drop-copies", help="Leave out copies of earlier rows.")]
EncodingOption = Annotated[
    str | None, typer.Option(help="The encoding of the file, such as latin-1; by default UTF-8.")
]
