"""The commands, with everything heavy imported inside them, so that `quenched --help` answers at once."""

from __future__ import annotations

import functools
import importlib.metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from quenched.cli.delivery import REFUSED, Delivery, Stop, console

app = typer.Typer(
    name="quenched", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich",
    help="The statistical mechanics of learning: theory, simulation and learner from one declaration.",
)  # fmt: skip

FREE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Commands that take controls: unknown options belong to the science, whose help these commands print."""

Option = typer.Option
OutOption = Annotated[Path | None, Option("--out", help="Save the result: FILE.nc or .json (all of it) or .csv.")]
PlotOption = Annotated[Path | None, Option("--plot", help="Draw the result: FILE.png, .pdf or .svg.")]
JsonOption = Annotated[bool, Option("--json", help="Print the result as JSON, and nothing else.")]
QuietOption = Annotated[bool, Option("--quiet", help="Print only errors, and JSON with --json.")]
SeedOption = Annotated[int, Option(help="Seed of the random numbers.")]

ScienceArgument = Annotated[str | None, typer.Argument(help="The science, such as prototypes.", show_default=False)]
LawOption = Annotated[str | None, Option("--law", help="The world, such as two-clusters.")]
RuleOption = Annotated[str | None, Option("--rule", help="The student, such as lvq1, lvq+, lvq2.1 or vq.")]
StartOption = Annotated[
    str | None, Option("--start", help="The initial state, such as near-origin, or R=..;Q=.. in numbers.")
]
HelpOption = Annotated[
    bool, Option("--help", help="Show this message; with SCIENCE also its laws, rules and controls.")
]
SchedulerOption = Annotated[str | None, Option(help="Run simulations on the Dask cluster at this address.")]

DropMissingOption = Annotated[bool, Option("--drop-missing", help="Drop rows with missing values (else an error).")]
DropCopiesOption = Annotated[bool, Option("--drop-copies", help="Drop rows that repeat earlier ones.")]
EncodingOption = Annotated[str | None, Option(help="Encoding of the file, such as latin-1; by default UTF-8.")]

FigureOption = Annotated[list[str] | None, Option("--figure", help="Only this figure, such as 3; may be repeated.")]
PaperArgument = Annotated[
    str | None, typer.Argument(help="The paper, such as biehl2006; by default all.", show_default=False)
]
WorkersOption = Annotated[
    int | None, Option(min=1, help="Number of figures computed in parallel; by default one per core.")
]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context, version: Annotated[bool, Option("--version", help="Show the version and exit.")] = False
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
    """Learning curve from theory: no training, in the limit of large systems.

    Every field of the law or the rule is an option: --prior 0.8 sets it, --prior 0.5,0.8 or --rate 0.1:1:10 sweeps it.

    Example: quenched curve prototypes --rule lvq1 --prior 0.8 --rate 0.2 --alpha 0:50:501 --plot curve.png
    """
    if help:
        return _help(context, science, "curve")
    from quenched.cli.question import Question

    asked = Question.parse(context, science, "curve", law, rule, start)
    delivery = Delivery(out, plot, json, quiet)
    with delivery.working(), delivery.spinner("theory"):
        result = asked.curve()
    return delivery.hand_over([result], result)


@app.command(context_settings=FREE)
def simulate(
    context: typer.Context,
    science: ScienceArgument = None,
    law: LawOption = None,
    rule: RuleOption = None,
    start: StartOption = None,
    size: Annotated[int, Option(help="The dimension N.")] = 200,
    runs: Annotated[int, Option(help="Number of independent runs.")] = 100,
    seed: SeedOption = 0,
    simulator: Annotated[str | None, Option(help="The simulator, such as chain.")] = None,
    allowance: Annotated[float | None, Option(help="Deviation allowed for finite size; by default 1/N.")] = None,
    workers: Annotated[int | None, Option(help="Number of processes.")] = None,
    scheduler: SchedulerOption = None,
    folder: Annotated[Path | None, Option("--folder", help="Keep finished pieces here, to resume later.")] = None,
    out: OutOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    help: HelpOption = False,
) -> None:
    """Learning curve from simulation: many runs of the learner on random data, compared with the theory.

    Example: quenched simulate prototypes --rule lvq1 --prior 0.8 --rate 0.2 --alpha 1,5,10 --size 200 --runs 100
    """
    if help:
        return _help(context, science, "measure")
    import jax

    from quenched.cli import options
    from quenched.cli.question import Question

    asked = Question.parse(context, science, "measure", law, rule, start)
    settings: dict[str, Any] = asked.simulator(simulator)
    settings |= {"executor": options.executor(workers, scheduler), "folder": folder, "size": size, "runs": runs}
    delivery = Delivery(out, plot, json, quiet)
    with delivery.working(folder=folder):
        points = asked.measure(key=jax.random.key(seed), **settings)
        theory, sentence = asked.compare(points, allowance, smooth=plot is not None)
    return delivery.hand_over([*theory, points], points, sentence=sentence, agreement=sentence)


@app.command()
def forecast(
    data: Annotated[Path | None, typer.Argument(help="A CSV file; by default scikit-learn's diabetes data.")] = None,
    target: Annotated[str | None, Option(help="The column to predict.")] = None,
    columns: Annotated[str | None, Option(help="The columns to predict from, such as a,b; by default all.")] = None,
    examples: Annotated[str | None, Option(help="Training set sizes to forecast, such as 100,1000.")] = None,
    error: Annotated[list[str] | None, Option(help="How many examples reach this error? Repeatable.")] = None,
    rmse: Annotated[list[str] | None, Option(help="The same in the units of the target.")] = None,
    check: Annotated[int, Option(help="As a check, tune again on this many random subsets of each size.")] = 0,
    accuracy: Annotated[float, Option(help="Relative standard error below the number of rows.")] = 0.03,
    seed: SeedOption = 0,
    drop_missing: DropMissingOption = False,
    drop_copies: DropCopiesOption = False,
    encoding: EncodingOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """How good will a regression on this table be with n examples, how certain is that, and how many are needed?

    Errors are shares of the target's variance: 0 is perfect, 1 is no better than always predicting the mean.

    Example: quenched forecast houses.csv --target price --examples 1000,5000 --rmse 20000 --plot forecast.png
    """
    from quenched.cli import forecast

    how = {"drop_missing": drop_missing, "drop_copies": drop_copies, "encoding": encoding}
    table, called = forecast.read(data, target, columns, **how)
    shown, sizes = forecast.sizes(examples, len(table.inputs))
    wanted, draws = forecast.aims(error, rmse, table.targets), forecast.draws(check)
    delivery = Delivery(out, plot, json, quiet)
    import jax

    from quenched import processes

    delivery.warn(table.notes)
    with delivery.working(f"Learning from {called} ..."):
        result = processes.forecast(
            table.inputs, table.targets, examples=sizes, check=draws, accuracy=accuracy, key=jax.random.key(seed),
            names=table.names,
        )  # fmt: skip
    result = result.assign_attrs(data=called, target=str(table.target))
    show = functools.partial(forecast.show, table=table, shown=shown, wanted=wanted)
    delivery.hand_over([result], result, show=show, notes=table.notes, wanted=forecast.needed(result, wanted))
    if refused := forecast.refused(result, shown):
        raise Stop(refused, REFUSED)


@app.command()
def density(
    data: Annotated[Path | None, typer.Argument(help="A CSV file; by default petal lengths of irises.")] = None,
    column: Annotated[str | None, Option(help="Estimate the density of this column.")] = None,
    given: Annotated[str | None, Option(help="Condition on this column.")] = None,
    bounds: Annotated[str | None, Option(help="Limits of the values: LOW,HIGH; either may be omitted.")] = None,
    drop_missing: DropMissingOption = False,
    drop_copies: DropCopiesOption = False,
    encoding: EncodingOption = None,
    out: OutOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """How is a column of a table distributed, how certain is that, and how does it depend on another column?

    The density is smooth, and the data decide how smooth. Bands and intervals contain 90% of the probability.

    Example: quenched density houses.csv --column price --given area --plot price.png
    """
    from quenched.cli import density

    how = {"drop_missing": drop_missing, "drop_copies": drop_copies, "encoding": encoding}
    table, called = density.read(data, column, given, **how)
    ends = density.ends(bounds, given)
    delivery = Delivery(out, plot, json, quiet)
    delivery.warn(table.notes)
    with delivery.working(f"Learning from {called} ..."):
        result = density.describe(table, ends).assign_attrs(data=called)
    return delivery.hand_over([result], result, show=density.show, notes=table.notes)


@app.command()
def reproduce(
    paper: PaperArgument = None,
    figure: FigureOption = None,
    full: Annotated[bool, Option("--full/--quick", help="Sizes of the paper, or fewer runs.")] = False,
    out: Annotated[Path | None, Option(help="Folder of the report; by default the name of the paper.")] = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
) -> None:
    """Reproduce papers: an HTML report with their figures, and with every claim beside our value.

    Finished steps are kept in the folder: after an interruption the same command resumes.
    """
    from quenched.cli import reproduction

    reproduction.reproduce(paper, figure or [], out, quick=not full, workers=workers, scheduler=scheduler)


@app.command()
def demo(
    out: Annotated[Path, Option(help="Folder of the report.")] = Path("quenched-demo"), workers: WorkersOption = None
) -> None:
    """See it work in two minutes: a forecast and a density from data, and a figure of each paper."""
    from quenched.cli import reproduction

    reproduction.demo(out, workers=workers)


def _help(context: typer.Context, science: str | None, verb: str) -> None:
    """Print the help of a command and, if a science is named, of the science."""
    typer.echo(context.get_help())
    if science is None:
        import quenched

        return typer.echo(f"Sciences: {', '.join(quenched.SCIENCES)}. Their laws, rules and controls: "
                          f"quenched {context.info_name} SCIENCE --help")  # fmt: skip
    from quenched.cli import options, screen

    found = options.introspect(science)
    if found.command:
        return typer.echo(f"The law of {science} is a table of data: use `{found.command}`.")
    return screen.explain(found, getattr(found.package, verb), console())
