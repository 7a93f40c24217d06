"""What `quenched reproduce` and `quenched demo` do: compute steps, write the report, print the agreement."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from quenched.cli import options, screen
from quenched.cli.delivery import Stop, console, interrupts
from quenched.core.progress import estimated, settle, wait_for
from quenched.core.store import writable_folder
from quenched.core.types import InputError
from quenched.papers import report
from quenched.papers import reproduction as papers
from quenched.papers.reproduction import State, Step

EVERYTHING = "Five papers on the statistical mechanics of learning, computed again"
DEMONSTRATION = "quenched: theory, simulation and learner from one declaration"


def reproduce(
    paper: str | None, figures: Sequence[str], out: Path | None, *, quick: bool, workers: int | None,
    scheduler: str | None,
) -> None:  # fmt: skip
    """Compute a paper again, or all of them; or some figures of one."""
    if figures and paper is None:
        raise InputError("Option --figure must come with a paper, but none was given: quenched reproduce PAPER "
                         f"--figure {figures[0]}, with PAPER one of: {', '.join(papers.papers())}.")  # fmt: skip
    steps = papers.steps([paper] if paper else papers.papers(), figures)
    title = papers.paper(paper).TITLE if paper else EVERYTHING
    _compute(steps, quick, out or Path(paper or "reproduction"), workers, scheduler, title, complete=not figures)


def demo(out: Path, *, workers: int | None) -> None:
    """Compute the demonstration."""
    _compute(papers.demo(), True, out, workers, None, DEMONSTRATION, complete=False)


def _compute(
    steps: list[Step], quick: bool, out: Path, workers: int | None, scheduler: str | None, title: str, *, complete: bool
) -> None:
    """Compute steps, write the report, and print its place in the last line."""
    executor = options.executor(None, scheduler) if scheduler else None
    if executor is not None:
        with executor.connected():  # an error now rather than in the first step
            pass
    writable_folder(out)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # not on macOS
    with interrupts(out), estimated("reproducing") as tell:
        watch = _announce_once(tell)
        done = papers.run(steps, quick=quick, folder=out, workers=workers or cores, executor=executor, watch=watch)
    if all(one.value is None and not one.fault for one in done.values()):  # something is missing: no report
        raise InputError(next(one.sentence for one in done.values()))
    sections = papers.sections(done, complete=complete)
    wait_for("Writing the report ...")
    page = report.write(sections, out, title=title, quick=quick)
    settle()
    screen.agreement_table(sections, console())
    for step, one in done.items():
        if one.value is None:
            typer.echo(f"warning: {step} was not computed: {one.sentence}", err=True)
    typer.echo(str(page.resolve()))
    if faults := [str(step) for step, one in done.items() if one.fault]:
        raise Stop(f"{len(faults)} of {len(done)} steps failed, the report says why: {', '.join(faults)}.", 1)


def _announce_once(tell: Callable[[float, str], None]) -> Callable[[State], None]:
    """Print an estimate of the time once, and on a terminal a bar with what is left."""
    said = False

    def watch(state: State) -> None:
        nonlocal said
        left = [step for step in state.every if step not in state.finished]
        words = f"{'at least' if state.unknown() else 'about'} {_duration(state.seconds_left())}"
        if left and not said:
            kept = f", {len(state.finished)} kept from before" if state.finished else ""
            processes = f"{state.workers} processes" if state.workers > 1 else "one process"
            typer.echo(f"{len(left)} steps in {processes}{kept}: {words}.", err=True)
            said = True
        now = f"; now {', '.join(map(str, state.running))}" if state.running else ""
        tell(state.share(), f"{words} left{now}")

    return watch


def _duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
