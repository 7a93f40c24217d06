"""The commands `quenched reproduce` and `quenched demo`; what they compute is in `quenched.reproduction`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quenched.cli.app import _executor, app
from quenched.cli.delivering import Stop, console, interrupts

if TYPE_CHECKING:
    from quenched.reproduction import Done, State, Step

PaperArgument = Annotated[
    str | None, typer.Argument(help="Which paper, such as biehl2006; without it, all.", show_default=False)
]
FigureOption = Annotated[
    list[str] | None, typer.Option("--figure", help="Only this figure, such as 3; may be repeated.")
]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Compute so many figures at a time; by default one for each core.")
]

EVERYTHING = "Five papers on the statistical mechanics of learning, computed again"
DEMONSTRATION = "quenched: theory, simulation and learner from one declaration"


@app.command()
def reproduce(
    paper: PaperArgument = None,
    figure: FigureOption = None,
    full: Annotated[bool, typer.Option("--full/--quick", help="The paper's own sizes, or fewer runs.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the report; by default the paper's name.")] = None,
    workers: WorkersOption = None,
    scheduler: Annotated[str | None, typer.Option(help="Run simulations on the Dask cluster at this address.")] = None,
) -> None:
    """Compute papers again: their figures, and every statement with ours beside it, as one HTML report.

    What is done is kept in the folder: after an interruption the same command goes on.
    """
    from quenched import reproduction
    from quenched.core.types import InputError

    if figure and paper is None:
        raise InputError("Option --figure must come with a paper, but none was given: quenched reproduce PAPER "
                         f"--figure {figure[0]}, with PAPER one of: {', '.join(reproduction.papers())}.")  # fmt: skip
    steps = reproduction.steps([paper] if paper else reproduction.papers(), figure or ())
    title = reproduction.paper(paper).TITLE if paper else EVERYTHING
    _reproduce(steps, not full, out or Path(paper or "reproduction"), workers, scheduler, title, complete=not figure)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("quenched-demo"),
    workers: WorkersOption = None,
) -> None:
    """What this is, in two minutes: a forecast and a density on data, and a figure of each paper."""
    from quenched import reproduction

    _reproduce(reproduction.demo(), True, out, workers, None, DEMONSTRATION, complete=False)


def _reproduce(
    steps: list[Step], quick: bool, out: Path, workers: int | None, scheduler: str | None, title: str, *, complete: bool
) -> None:
    """Compute steps, write the report, and say where it is in the last line."""
    from quenched import io, report, reproduction
    from quenched.cli import screen
    from quenched.core.progress import estimated

    executor = _cluster(scheduler)
    io.writable_folder(out)
    count = workers or len(os.sched_getaffinity(0))
    with interrupts(out), estimated("reproducing") as tell:
        done = reproduction.run(
            steps, quick=quick, folder=out, workers=count, executor=executor, watch=_Watch(tell),
        )  # fmt: skip
    _refuse(done)
    sections = reproduction.sections(done, complete=complete)
    page = report.write(sections, out, title=title, quick=quick)
    screen.agreement_table(sections, console())
    for step, one in done.items():
        if one.value is None:
            typer.echo(f"warning: {step} was not computed: {one.sentence}", err=True)
    typer.echo(str(page.resolve()))
    if faults := [str(step) for step, one in done.items() if one.fault]:
        raise Stop(f"{len(faults)} of {len(done)} steps failed, the report says why: {', '.join(faults)}.", 1)


def _refuse(done: dict[Step, Done]) -> None:
    """One sentence instead of a report, if nothing at all could be computed for want of something here."""
    from quenched.core.types import InputError

    if all(one.value is None and not one.fault for one in done.values()):
        raise InputError(next(one.sentence for one in done.values()))


def _cluster(scheduler: str | None) -> Any:
    """A cluster that answers."""
    executor = _executor(None, scheduler)
    if executor is not None:
        with executor.connected():
            pass
    return executor


class _Watch:
    """Says once how long it will take, and then on a terminal how far it is."""

    def __init__(self, tell: Any):
        self.tell, self.said = tell, False

    def __call__(self, state: State) -> None:
        from quenched.reproduction import seconds_left

        left = [step for step in state.every if step not in state.finished]
        words = _duration(seconds_left(state))
        words = f"{'at least' if state.unknown() else 'about'} {words}"
        if left and not self.said:
            kept = f", {len(state.finished)} kept from before" if state.finished else ""
            processes = f"{state.workers} processes" if state.workers > 1 else "one process"
            typer.echo(f"{len(left)} steps in {processes}{kept}: {words}.", err=True)
            self.said = True
        self.tell(state.share(), f"{words} left; now {', '.join(map(str, state.running))}")


def _duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
