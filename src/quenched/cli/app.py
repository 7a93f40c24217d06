"""The commands. Everything heavy is imported inside them, so that `quenched --help` answers at once."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quenched.cli.delivering import (
    REFUSED,
    Delivery,
    JsonOption,
    OutOption,
    PlotOption,
    QuietOption,
    Stop,
    console,
)
from quenched.cli.reading import ColumnsOption, DropCopiesOption, DropMissingOption, EncodingOption

if TYPE_CHECKING:
    import xarray as xr

app = typer.Typer(
    name="quenched", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich",
    help="The statistical mechanics of learning: theory, simulation and learner from one declaration.",
)  # fmt: skip

FREE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Commands that take controls: options they do not know belong to the science, whose help they print themselves."""

ScienceArgument = Annotated[str | None, typer.Argument(help="Which science, such as prototypes.", show_default=False)]
LawOption = Annotated[str | None, typer.Option("--law", help="The world, such as two-clusters.")]
RuleOption = Annotated[str | None, typer.Option("--rule", help="The student, such as lvq1, lvq+, lvq2.1 or vq.")]
StartOption = Annotated[
    str | None, typer.Option("--start", help="Where it begins, such as near-origin, or R=..;Q=.. in numbers.")
]
HelpOption = Annotated[bool, typer.Option("--help", help="Show this; with SCIENCE also its laws, rules and controls.")]
FolderOption = Annotated[Path | None, typer.Option("--folder", help="Keep finished pieces here; a later call goes on.")]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """The statistical mechanics of learning: theory, simulation and learner from one declaration."""
    if version:
        typer.echo(f"quenched {importlib.metadata.version('quenched')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(context_settings=FREE)
def curve(
    context: typer.Context,
    science: ScienceArgument = None,
    law: LawOption = None,
    rule: RuleOption = None,
    start: StartOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    help: HelpOption = False,
) -> None:
    """A learning curve in theory: no training, the limit of large systems.

    Any field of the law or the rule is an option, too: --prior 0.8 fixes it, --prior 0.5,0.8 or --rate 0.1:1:10 sweeps.

    Example: quenched curve prototypes --rule lvq1 --prior 0.8 --rate 0.2 --alpha 0:50:501 --plot curve.png
    """
    if help:
        return _help(context, science, "curve")
    from quenched.cli import options

    found = options.science(science)
    verb = found.package.curve
    extra = options.extra_options(context.args)
    one_law, one_rule, controls = options.declare(found, verb, law, rule, extra, _known(context))
    begin = options.start(found, start)
    delivery = Delivery(out, plot, json, quiet)
    delivery.check()
    with delivery.working(""), _status("theory", shown=not quiet):
        result = verb(one_law, one_rule, **options.start_of(verb, begin), **controls)
    return delivery.hand_over([result], result)


@app.command(context_settings=FREE)
def simulate(
    context: typer.Context,
    science: ScienceArgument = None,
    law: LawOption = None,
    rule: RuleOption = None,
    start: StartOption = None,
    size: Annotated[int, typer.Option(help="The dimension N.")] = 200,
    runs: Annotated[int, typer.Option(help="Independent runs.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    simulator: Annotated[str | None, typer.Option(help="How to simulate, such as chain.")] = None,
    allowance: Annotated[float | None, typer.Option(help="Deviation granted for finite size; by default 1/N.")] = None,
    workers: Annotated[int | None, typer.Option(help="Run in so many processes.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Run on the Dask cluster at this address.")] = None,
    folder: FolderOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    help: HelpOption = False,
) -> None:
    """A learning curve as an experiment: many runs of the learner on random data, compared with the theory.

    Example: quenched simulate prototypes --rule lvq1 --prior 0.8 --rate 0.2 --alpha 1,5,10 --size 200 --runs 100
    """
    if help:
        return _help(context, science, "measure")
    import jax

    from quenched.cli import options

    found = options.science(science)
    verb = found.package.measure
    extra = options.extra_options(context.args)
    one_law, one_rule, controls = options.declare(found, verb, law, rule, extra, _known(context))
    settings: dict[str, Any] = {"start": options.start(found, start)}
    if simulator is not None:
        settings["simulator"] = options.pick("--simulator", found.simulators, simulator)()
    settings |= {"executor": _executor(workers, scheduler), "folder": folder, "size": size, "runs": runs}
    delivery = Delivery(out, plot, json, quiet)
    delivery.check()
    with delivery.working("", folder):
        points = verb(one_law, one_rule, key=jax.random.key(seed), **settings, **controls)
        asked = (found.package, one_law, one_rule, settings["start"], controls)
        theory, sentence = _compare(*asked, points, allowance, smooth=plot is not None)
    return delivery.hand_over([*theory, points], points, sentence=sentence, agreement=sentence)


@app.command()
def forecast(
    data: Annotated[Path | None, typer.Argument(help="A CSV file; without it, scikit-learn's diabetes data.")] = None,
    target: Annotated[str | None, typer.Option(help="The column to be predicted.")] = None,
    columns: ColumnsOption = None,
    examples: Annotated[str | None, typer.Option(help="Sizes to forecast, such as 100,1000.")] = None,
    error: Annotated[list[str] | None, typer.Option(help="How many examples reach this error? Repeatable.")] = None,
    rmse: Annotated[list[str] | None, typer.Option(help="The same, in the target's own units.")] = None,
    check: Annotated[int, typer.Option(help="Tune anew on so many random subsets of each size, as a check.")] = 0,
    accuracy: Annotated[float, typer.Option(help="Relative standard error below the rows at hand.")] = 0.03,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    drop_missing: DropMissingOption = False,
    drop_copies: DropCopiesOption = False,
    encoding: EncodingOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """How good will a regression on this table be with n examples, how sure is that, and how many are needed?

    Errors are shares of the target's variance: 0 is perfect, 1 is no better than always answering the mean.

    Example: quenched forecast houses.csv --target price --examples 1000,5000 --rmse 20000 --plot forecast.png
    """
    from quenched.cli import forecasting

    how = {"drop_missing": drop_missing, "drop_copies": drop_copies, "encoding": encoding}
    table, called = forecasting.read(data, target, columns, **how)
    shown, sizes = forecasting.sizes(examples, len(table.inputs))
    wanted, draws = forecasting.aims(error, rmse, table.targets), forecasting.draws(check)
    delivery = Delivery(out, plot, json, quiet)
    delivery.check()
    import jax

    from quenched import processes

    delivery.notes(table.notes)
    with delivery.working(f"Learning from {called} ..."):
        result = processes.forecast(
            table.inputs, table.targets, examples=sizes, check=draws, accuracy=accuracy, key=jax.random.key(seed),
            names=table.names,
        )  # fmt: skip
    result = result.assign_attrs(data=called, target=str(table.target))
    show = functools.partial(forecasting.show, table=table, shown=shown, wanted=wanted, answer=processes.examples_for)
    answers = forecasting.needed(result, wanted, processes.examples_for)
    delivery.hand_over([result], result, show=show, notes=table.notes, wanted=answers)
    if refused := forecasting.refused(result, shown):
        raise Stop(refused, REFUSED)
    return


def _help(context: typer.Context, science: str | None, verb: str) -> None:
    """Help of a command and, if it is known, of the science."""
    typer.echo(context.get_help())
    if science is None:
        import quenched

        typer.echo(f"Sciences: {', '.join(quenched.SCIENCES)}. Their laws, rules and controls: "
                   f"quenched {context.info_name} SCIENCE --help")  # fmt: skip
        return None
    from quenched.cli import options, screen

    if science in options.TABLES:
        return typer.echo(f"The law of {science} is a table of data: use `{options.TABLES[science]}`.")
    found = options.science(science)
    return screen.explain(found, getattr(found.package, verb), console())


def _known(context: typer.Context) -> list[str]:
    """The options of a command, to guess what a mistyped one was meant to be."""
    return [str(parameter.name) for parameter in context.command.params if parameter.name not in ("science", "help")]


def _executor(workers: int | None, scheduler: str | None) -> Any:
    """Where to run."""
    import quenched

    if workers is not None and scheduler is not None:
        raise quenched.InputError("Options --workers and --scheduler must not both be given, but they are.")
    if scheduler is not None:
        return quenched.Dask(scheduler)
    return None if workers is None else quenched.Processes(workers)


def _compare(
    package: Any, law: Any, rule: Any, start: Any, controls: dict[str, Any], points: xr.Dataset,
    allowance: float | None, *, smooth: bool,
) -> tuple[list[xr.Dataset], str]:  # fmt: skip
    """The theory at the simulated points (and between, for a `smooth` line), and one sentence on their agreement."""
    import numpy as np

    import quenched
    from quenched.cli import options

    of_theory = options.verb_keywords(package.curve)
    only_measured = set(options.verb_keywords(package.measure)) - set(of_theory)
    wanted = {name: value for name, value in controls.items() if name not in only_measured}
    for name in of_theory:
        if smooth and np.ndim(wanted.get(name, 0)) == 1:
            wanted[name] = np.union1d(wanted[name], np.linspace(min(wanted[name]), max(wanted[name]), 101))
    try:
        theory = package.curve(law, rule, **options.start_of(package.curve, start, needed=False), **wanted)
        granted = 1 / int(points.attrs["size"]) if allowance is None else allowance
        first = {dim: 0 for dim in theory.dims if dim not in points.dims and theory[dim].dtype.kind == "U"}
        proof = quenched.agreement(theory.isel(first), points, allowance=granted)
        plain = max(float(abs(proof.z[name]).max()) for name in proof.z)
        return [theory], f"{proof}; without the allowance {plain:.2f} standard errors"
    except quenched.InputError as error:
        return [], f"not compared with the theory: {error}"


@contextlib.contextmanager
def _status(words: str, *, shown: bool) -> Iterator[None]:
    """A spinner on a terminal."""
    from rich.console import Console

    there = Console(stderr=True)
    with there.status(words) if shown and there.is_terminal else contextlib.nullcontext():
        yield
