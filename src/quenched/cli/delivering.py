"""What every command that computes does with its result: print it, save it, draw it, or be quiet about it."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import xarray as xr

PICTURES = (".png", ".pdf", ".svg")
FILES = (".nc", ".csv", ".json")
"""Endings of files for a result."""

OutOption = Annotated[
    Path | None, typer.Option("--out", help="Save the result: FILE.nc or .json with everything, .csv as a table.")
]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Draw the result: FILE.png, .pdf or .svg.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print errors only, and JSON if asked for.")]


class Stop(Exception):
    """The command ends here, with a line to say and an exit code."""

    def __init__(self, line: str, code: int):
        super().__init__(line)
        self.code = code


REFUSED = 3
"""The exit code where an answer was refused."""


@dataclasses.dataclass(frozen=True)
class Delivery:
    """Where a result goes.

    Attributes:
        out: a file for it.
        plot: a file for its picture.
        json: whether it is printed as JSON rather than in words.
        quiet: whether nothing is said but errors.
    """

    out: Path | None
    plot: Path | None
    json: bool = False
    quiet: bool = False

    def check(self) -> None:
        """Refuse what cannot be written before anything is computed.

        Raises:
            InputError: for files of another kind.
            OutputError: for folders that cannot be written.
        """
        from quenched import io
        from quenched.core.types import InputError

        for option, path, endings in (("--out", self.out, FILES), ("--plot", self.plot, PICTURES)):
            if path is None:
                continue
            if path.suffix.lower() not in endings:
                raise InputError(
                    f"Option {option} must name a file that ends in {', '.join(endings)}, but {path} was given."
                )
            if path.is_dir():
                raise InputError(f"The file {path} must be writable, but it is a folder.")
            io.writable_folder(path.parent)

    @contextlib.contextmanager
    def working(self, words: str, folder: Path | None = None) -> Iterator[None]:
        """Say what is being done, while somebody is watching, and on an interrupt what is kept.

        Args:
            words: what is being done; empty for nothing to say.
            folder: where finished pieces are kept.
        """
        from quenched.core import progress

        with contextlib.ExitStack() as stack:
            if self.quiet:
                warnings.simplefilter("ignore")
                stack.enter_context(progress.hidden())
            elif words and sys.stderr.isatty():
                print(words, file=sys.stderr, flush=True)
            stack.enter_context(interrupts(folder))
            yield

    def notes(self, lines: Sequence[str]) -> None:
        """Say what was done to the data."""
        for line in lines if not self.quiet else ():
            typer.echo(f"warning: {line}", err=True)

    def tell(self, line: str) -> None:
        """Say a line that is not part of the result."""
        from quenched.core.types import printable

        if not self.quiet:
            typer.echo(printable(line), err=self.json)

    def hand_over(
        self,
        drawn: list[Any],
        result: xr.Dataset,
        *,
        sentence: str = "",
        show: Callable[..., None] | None = None,
        **more: Any,
    ) -> None:
        """Save, print and draw; each is tried, whatever becomes of the others.

        Args:
            drawn: what the picture shows.
            result: what is saved and printed.
            sentence: a line below it.
            show: what prints it in words.
            **more: further entries of JSON.

        Raises:
            OutputError: if a file could not be written; the sentence says where it was put instead.
        """
        import quenched
        from quenched import io
        from quenched.cli import screen
        from quenched.core.results import OutputError

        lost: list[str] = []
        saved = None
        if self.out is not None:
            try:
                saved = self._save(result, more)
            except OutputError as error:
                lost.append(str(error))
        if self.json:
            typer.echo(io.as_json(result, **more))
        elif not self.quiet:
            (show or screen.show)(result, console=console())
        for line in filter(None, [sentence, saved and f"saved in {saved}"]):
            self.tell(line)
        if self.plot is not None:
            try:
                picture, name = quenched.plot(*drawn), self.plot.name
                io.write_into(self.plot.parent, lambda folder: picture.savefig(folder / name))
                self.tell(f"drawn in {self.plot}")
            except OutputError as error:
                lost.append(str(error))
        if lost:
            raise OutputError(" ".join(lost))

    def _save(self, result: xr.Dataset, more: dict[str, Any]) -> Path:
        """Write the file of the result."""
        import quenched
        from quenched import io

        assert self.out is not None
        kind, name = self.out.suffix.lower(), self.out.name
        if kind == ".nc":
            return quenched.save(result, self.out)
        write: Callable[[Path], Path] = (
            (lambda folder: io.write_csv(result, folder / name))
            if kind == ".csv"
            else (lambda folder: io.write_json(result, folder / name, **more))
        )
        return io.write_into(self.out.parent, write)


def console() -> Any:
    """Standard output, wide enough for a table when it is not a terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 100)


@contextlib.contextmanager
def interrupts(folder: Path | None) -> Iterator[None]:
    """Say on an interrupt what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"finished pieces are kept in {folder}: the same command goes on there" if folder else "nothing was kept"
        raise Stop(f"Interrupted; {kept}.", 130) from None
