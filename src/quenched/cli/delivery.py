"""What every command that computes does with its result: print, save and draw it."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import xarray as xr

PICTURES = (".png", ".pdf", ".svg")
FILES = (".nc", ".csv", ".json")
"""Endings of files for a result."""
REFUSED = 3
"""The exit code where no answer can be given."""


class Stop(Exception):
    """Ends a command with a line on standard error and an exit code."""

    def __init__(self, line: str, code: int):
        super().__init__(line)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Delivery:
    """Where a result goes; checked before anything is computed."""

    out: Path | None
    plot: Path | None
    json: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        from quenched.core import store
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
            store.writable_folder(path.parent)

    @contextlib.contextmanager
    def working(self, words: str = "", *, folder: Path | None = None) -> Iterator[None]:
        """Print on a terminal what is being done and, on an interrupt, what is kept in `folder`."""
        from quenched.core import progress

        with interrupts(folder), progress.hidden() if self.quiet else contextlib.nullcontext():
            if self.quiet:
                warnings.simplefilter("ignore")
            elif words and sys.stderr.isatty():
                print(words, file=sys.stderr, flush=True)
            yield

    def spinner(self, words: str) -> contextlib.AbstractContextManager[Any]:
        """A spinner on a terminal."""
        from rich.console import Console

        there = Console(stderr=True)
        return there.status(words) if there.is_terminal and not self.quiet else contextlib.nullcontext()

    def warn(self, lines: Sequence[str]) -> None:
        """Print warnings, such as changes made to the data."""
        for line in lines if not self.quiet else ():
            typer.echo(f"warning: {line}", err=True)

    def tell(self, line: str) -> None:
        """Print a line that is not part of the result."""
        from quenched.core.types import printable

        if line and not self.quiet:
            typer.echo(printable(line), err=self.json)

    def hand_over(
        self, drawn: list[Any], result: xr.Dataset, *, sentence: str = "", show: Callable[..., None] | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Save, print and draw; each is tried, even if the others fail."""
        import quenched
        from quenched import io
        from quenched.cli import screen
        from quenched.core import store

        lost: list[str] = []

        @contextlib.contextmanager
        def trying() -> Iterator[None]:
            try:
                yield
            except store.OutputError as error:
                lost.append(str(error))

        saved = ""
        with trying():
            saved = self._save(result, more)
        if self.json:
            typer.echo(io.as_json(result, **more))
        elif not self.quiet:
            (show or screen.show)(result, console=console())
        self.tell(sentence)
        self.tell(saved)
        with trying():
            if self.plot is not None:
                picture, name = quenched.plot(*drawn), self.plot.name
                store.write_into(self.plot.parent, lambda folder: picture.savefig(folder / name))
                self.tell(f"drawn in {self.plot}")
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
            place = quenched.save(result, self.out)
        elif kind == ".csv":
            place = store.write_into(self.out.parent, lambda folder: io.write_csv(result, folder / name))
        else:
            place = store.write_into(self.out.parent, lambda folder: io.write_json(result, folder / name, **more))
        return f"saved in {place}"


def console() -> Any:
    """Standard output, wide enough for a table when it is not a terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 100)


@contextlib.contextmanager
def interrupts(folder: Path | None) -> Iterator[None]:
    """On an interrupt, stop with a line on what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"finished pieces are kept in {folder}: the same command goes on there" if folder else "nothing was kept"
        raise Stop(f"Interrupted; {kept}.", 130) from None
