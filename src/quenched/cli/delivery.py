"""What every command that computes does with its result: print, save and draw it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quenched.core.errors import printable

if TYPE_CHECKING:
    import xarray as xr

ENDINGS = {"out": (".nc", ".csv", ".json"), "plot": (".png", ".pdf", ".svg")}
"""Endings of files for a result and for a picture."""
REFUSED = 3
"""The exit code where no answer can be given."""


class Stop(Exception):
    """Ends a command with a line on standard error and an exit code."""

    def __init__(self, line: str, code: int):
        super().__init__(line)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Delivery:
    """Where a result goes; its fields are options of a command."""

    out: Annotated[Path | None, typer.Option(help="Save the result: FILE.nc or .json (all of it) or .csv.")] = None
    plot: Annotated[Path | None, typer.Option(help="Draw the result: FILE.png, .pdf or .svg.")] = None
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors, and JSON with --json.")] = False

    def _check(self) -> None:
        """Check that the files can be written."""
        from quenched.core import store
        from quenched.core.types import InputError

        chosen = {option: path for option in ENDINGS if (path := getattr(self, option)) is not None}
        for option, path in chosen.items():
            if path.suffix.lower() not in ENDINGS[option]:
                endings = ", ".join(ENDINGS[option])
                raise InputError(f"Option --{option} must name a file that ends in {endings}, but {path} was given.")
            if path.is_dir():
                raise InputError(f"The file {path} must be writable, but it is a folder.")
            store.writable_folder(path.parent)

    @contextlib.contextmanager
    def working(self, words: str, *, notes: Sequence[str] = (), folder: Path | None = None) -> Iterator[None]:
        """Check the files; print warnings, what is being done (on a terminal) and, on an interrupt, what is kept."""
        self._check()
        from quenched.core import progress

        for line in notes if not self.quiet else ():
            typer.echo(f"warning: {line}", err=True)
        with interrupts(folder), progress.hidden() if self.quiet else contextlib.nullcontext():
            if self.quiet:
                warnings.simplefilter("ignore")
            progress.wait_for(words)
            yield

    def hand_over(
        self, result: xr.Dataset, *besides: xr.Dataset, sentence: str = "", show: Callable[..., None] | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Save, print and draw (with what is drawn `besides`); each is tried, even if the others fail."""
        from quenched import io
        from quenched.cli import screen
        from quenched.core import progress, store

        lost: list[str] = []

        def attempt(work: Callable[[], str]) -> str:
            try:
                return work()
            except store.OutputError as error:
                lost.append(str(error))
                return ""

        def tell(line: str) -> None:
            if line and not self.quiet:
                tell_line(line, err=self.json)

        saved = attempt(lambda: self._save(result, more))
        progress.settle()
        if self.json:
            typer.echo(io.as_json(result, **more))
        elif not self.quiet:
            (show or screen.show)(result, console=console())
        tell(sentence)
        tell(saved)
        tell(attempt(lambda: self._draw(*besides, result)))
        if lost:
            raise store.OutputError(" ".join(lost))

    def _save(self, result: xr.Dataset, more: dict[str, Any]) -> str:
        """Write the file of the result, and return a line with its place."""
        import quenched
        from quenched import io
        from quenched.core import store

        if self.out is None:
            return ""
        kind, name = self.out.suffix.lower(), self.out.name
        if kind == ".nc":
            return f"saved in {quenched.save(result, self.out)}"
        write = io.write_csv if kind == ".csv" else functools.partial(io.write_json, **more)
        return f"saved in {store.write_into(self.out.parent, lambda folder: write(result, folder / name))}"

    def _draw(self, *results: xr.Dataset) -> str:
        """Write the picture, and return a line with its place."""
        import quenched
        from quenched.core import store

        if self.plot is None:
            return ""
        picture, name = quenched.plot(*results), self.plot.name
        store.write_into(self.plot.parent, lambda folder: picture.savefig(folder / name))
        return f"drawn in {self.plot}"


def console(*, err: bool = False) -> Any:
    """Standard output, wide enough for a table when it is not a terminal; or standard error."""
    from rich.console import Console

    return Console(stderr=err, width=None if (sys.stderr if err else sys.stdout).isatty() else 100)


def tell_line(line: str, *, err: bool = False) -> None:
    """Print a sentence: between words it wraps at the width of a terminal; a file gets it as one line."""
    from quenched.cli.screen import coloured

    there = console(err=err)
    there.print(coloured(printable(line)), soft_wrap=not there.is_terminal, highlight=False)


@contextlib.contextmanager
def interrupts(folder: Path | None) -> Iterator[None]:
    """On an interrupt, stop with a line on what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"finished pieces are kept in {folder}: the same command goes on there" if folder else "nothing was kept"
        raise Stop(f"Interrupted; {kept}.", 130) from None
