"""The commands, with everything heavy imported inside them, so that `quenched --help` answers at once."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from quenched.cli.delivery import REFUSED, Delivery, Stop, console
from quenched.core import progress
from quenched.io.files import check_file

app = typer.Typer(
    name="quenched", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich",
    help="The statistical mechanics of learning: theory, simulation and learner from one declaration.",
)  # fmt: skip

FREE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Commands that take controls: unknown options belong to the science, whose help these commands print."""

BREAK = re.compile(r"(?<!\n)\n(?!\n)")
"""The end of a line inside a paragraph of a docstring: help has the width of the terminal."""

Argument, Option = typer.Argument, typer.Option
HelpOption = Annotated[
    bool, Option("--help", help="Show this message; with SCIENCE also its laws, rules and controls.")
]
SeedOption = Annotated[int, Option(help="Seed of the random numbers.")]
SchedulerOption = Annotated[str | None, Option(help="Run simulations on the Dask cluster at this address.")]
WorkersOption = Annotated[
    int | None, Option(min=1, help="Number of figures computed in parallel; by default one per core.")
]


@dataclasses.dataclass(frozen=True)
class Words:
    """What a question to a science consists of, beside its controls."""

    science: Annotated[str | None, Argument(help="The science, such as prototypes.", show_default=False)] = None
    law: Annotated[str | None, Option(help="The world, such as two-clusters.")] = None
    rule: Annotated[str | None, Option(help="The student, such as lvq1, lvq+, lvq2.1 or vq.")] = None
    start: Annotated[str | None, Option(help="The initial state, such as near-origin, or R=..;Q=.. in numbers.")] = None


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a table is read."""

    drop_missing: Annotated[bool, Option("--drop-missing", help="Drop rows with missing values (else an error).")] = (
        False
    )
    drop_copies: Annotated[bool, Option("--drop-copies", help="Drop rows that repeat earlier ones.")] = False
    encoding: Annotated[str | None, Option(help="Encoding of the file, such as latin-1; by default UTF-8.")] = None


def command(**settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command; a parameter whose type is a dataclass stands for the fields of it, each an option."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        types, parameters = typing.get_type_hints(function, include_extras=True), []
        groups: dict[str, Any] = {name: kind for name, kind in types.items() if dataclasses.is_dataclass(kind)}
        for one in inspect.signature(function).parameters.values():
            if one.name not in groups:
                parameters.append(one.replace(annotation=types[one.name]))
                continue
            fields = typing.get_type_hints(groups[one.name], include_extras=True)
            defaults = {field.name: field.default for field in dataclasses.fields(groups[one.name])}
            parameters += [one.replace(name=k, annotation=v, default=defaults[k]) for k, v in fields.items()]

        @functools.wraps(function)
        def run(**given: Any) -> None:
            made = {name: kind(**{f.name: given.pop(f.name) for f in dataclasses.fields(kind)})
                    for name, kind in groups.items()}  # fmt: skip
            if given.get("data") is not None:
                check_file(given["data"])
            delivery = made.get("delivery")
            spinning = delivery and not delivery.quiet and not given.get("help")
            with progress.waiting("Loading ...") if spinning else contextlib.nullcontext():
                function(**given, **made)

        run.__doc__ = BREAK.sub(" ", inspect.getdoc(function) or "")
        run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return app.command(**settings)(run)

    return register


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context, version: Annotated[bool, Option("--version", help="Show the version and exit.")] = False
) -> None:
    """The statistical mechanics of learning: theory, simulation and learner from one declaration."""
    if version:
        typer.echo(f"quenched {importlib.metadata.version('quenched')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@command(context_settings=FREE)
def curve(context: typer.Context, words: Words, *, delivery: Delivery, help: HelpOption = False) -> None:
    """Learning curve from theory: no training, in the limit of large systems.

    Every field of the law or the rule is an option: --prior 0.8 sets it, --prior 0.5,0.8 or --rate 0.1:1:10 sweeps it.

    Example: quenched curve prototypes --rule lvq1 --prior 0.8 --rate 0.2 --alpha 0:50:501 --plot curve.png
    """
    if help:
        return _help(context, words.science, "curve")
    from quenched.cli.options import Question

    asked = Question.parse(context, "curve", **dataclasses.asdict(words))
    with delivery.working("Solving the theory ..."):
        result = asked.curve()
    return delivery.hand_over(result)


@command(context_settings=FREE)
def simulate(
    context: typer.Context,
    words: Words,
    *,
    size: Annotated[int, Option(help="The dimension N.")] = 200,
    runs: Annotated[int, Option(help="Number of independent runs.")] = 100,
    seed: SeedOption = 0,
    simulator: Annotated[str | None, Option(help="The simulator, such as chain.")] = None,
    allowance: Annotated[float | None, Option(help="Deviation allowed for finite size; by default 1/N.")] = None,
    workers: Annotated[int | None, Option(help="Number of processes.")] = None,
    scheduler: SchedulerOption = None,
    folder: Annotated[Path | None, Option(help="Keep finished pieces here, to resume later.")] = None,
    delivery: Delivery,
    help: HelpOption = False,
) -> None:
    """Learning curve from simulation: many runs of the learner on random data, compared with the theory.

    Example: quenched simulate prototypes --rule lvq1 --prior 0.8 --rate 0.2 --alpha 1,5,10 --size 200 --runs 100
    """
    if help:
        return _help(context, words.science, "measure")
    import jax

    from quenched.cli.options import Question, executor

    asked = Question.parse(context, "measure", **dataclasses.asdict(words))
    settings: dict[str, Any] = {"executor": executor(workers, scheduler), "folder": folder, "size": size, "runs": runs}
    with delivery.working("Compiling the simulation ...", folder=folder):
        points = asked.measure(simulator, key=jax.random.key(seed), **settings)
        theory, sentence = asked.compare(points, allowance, smooth=delivery.plot is not None)
    return delivery.hand_over(points, *theory, sentence=sentence, agreement=sentence)


@command()
def forecast(
    data: Annotated[Path | None, Argument(help="A CSV file; by default scikit-learn's diabetes data.")] = None,
    *,
    target: Annotated[str | None, Option(help="The column to predict.")] = None,
    columns: Annotated[str | None, Option(help="The columns to predict from, such as a,b; by default all.")] = None,
    examples: Annotated[str | None, Option(help="Training set sizes to forecast, such as 100,1000.")] = None,
    error: Annotated[list[str] | None, Option(help="How many examples reach this error? Repeatable.")] = None,
    rmse: Annotated[list[str] | None, Option(help="The same in the units of the target.")] = None,
    check: Annotated[int, Option(help="As a check, tune again on this many random subsets of each size.")] = 0,
    accuracy: Annotated[
        float, Option(help="Relative standard error of what is measured below the number of rows.")
    ] = 0.03,
    model: Annotated[
        list[str] | None,
        Option(help="What learns: gp (the default), ridge, logistic, knn, svm, forest, boosting or mlp. Repeatable."),
    ] = None,
    seed: SeedOption = 0,
    reading: Reading,
    delivery: Delivery,
) -> None:
    """How good will a model of this table be with n examples, how certain is that, and how many are needed?

    Errors are shares of the target's variance: 0 is perfect, 1 is no better than always predicting the mean. A target
    of words, or of up to twenty whole numbers, is a class for all models but gp, and the error a share of wrong rows.

    Example: quenched forecast houses.csv --target price --examples 1000,5000 --rmse 20000 --plot forecast.png
    """
    import jax

    from quenched import processes
    from quenched.cli import forecast, models
    from quenched.core.types import InputError

    chosen = models.check(model or [])
    if chosen != [models.GP]:
        if error or rmse or check:
            raise InputError(
                "Options --error, --rmse and --check must come with --model gp alone, but others were given."
            )
        table, called, classes = models.read(data, target, columns, chosen, **dataclasses.asdict(reading))
        shown, sizes = forecast.sizes(examples, len(table.inputs))
        with delivery.working(f"Learning from {called} ...", notes=table.notes):
            result, found = models.run(table, classes, chosen, sizes, seed)
        show = functools.partial(models.show, table=table, called=called, found=found, shown=shown)
        delivery.hand_over(result.assign_attrs(data=called), show=show, notes=table.notes)
        if all(one.attrs["grade"] == "refused" for one in found.values()):
            raise Stop(f"No forecast: {next(iter(found.values())).attrs['reasons'].splitlines()[0]}", REFUSED)
        return
    table, called = forecast.read(data, target, columns, **dataclasses.asdict(reading))
    shown, sizes = forecast.sizes(examples, len(table.inputs))
    wanted = forecast.aims(error, rmse, table.targets)
    if check < 0 or check == 1:
        raise InputError(f"Option --check must be 0 or at least 2, to have an error bar, but {check} was given.")
    with delivery.working(f"Learning from {called} ...", notes=table.notes):
        result = processes.forecast(
            table.inputs, table.targets, examples=sizes, check=check, accuracy=accuracy, key=jax.random.key(seed),
            names=table.names,
        )  # fmt: skip
    result = result.assign_attrs(data=called, target=str(table.target))
    show = functools.partial(forecast.show, table=table, shown=shown, wanted=wanted)
    delivery.hand_over(result, show=show, notes=table.notes, wanted=forecast.needed(result, wanted))
    if refused := forecast.refused(result, shown):
        raise Stop(refused, REFUSED)


@command()
def density(
    data: Annotated[Path | None, Argument(help="A CSV file; by default petal lengths of irises.")] = None,
    *,
    column: Annotated[str | None, Option(help="Estimate the density of this column.")] = None,
    given: Annotated[str | None, Option(help="Condition on this column.")] = None,
    bounds: Annotated[str | None, Option(help="Limits of the values: LOW,HIGH; either may be omitted.")] = None,
    reading: Reading,
    delivery: Delivery,
) -> None:
    """How is a column of a table distributed, how certain is that, and how does it depend on another column?

    The density is smooth, and the data decide how smooth. Bands and intervals contain 90% of the probability.

    Example: quenched density houses.csv --column price --given area --plot price.png
    """
    from quenched.cli import density

    table, called = density.read(data, column, given, **dataclasses.asdict(reading))
    ends = density.ends(bounds, given)
    with delivery.working(f"Learning from {called} ...", notes=table.notes):
        result = density.describe(table, ends).assign_attrs(data=called)
    return delivery.hand_over(result, show=density.show, notes=table.notes)


@command()
def potential(
    data: Annotated[Path | None, Argument(help="A CSV file; by default positions drawn in a double well.")] = None,
    *,
    column: Annotated[str | None, Option(help="The column with the measured positions.")] = None,
    state: Annotated[str, Option(help="State in which they were measured: ground, or the number of a level.")] = (
        "ground"
    ),
    temperature: Annotated[float | None, Option(help="Temperature of a canonical ensemble, as an energy.")] = None,
    mass: Annotated[float, Option(help="Mass of the particle.")] = 1.0,
    hbar: Annotated[float, Option(help="Planck's constant in the units of the data.")] = 1.0,
    bounds: Annotated[str | None, Option(help="Ends of the box: LOW,HIGH; either may be omitted.")] = None,
    periodic: Annotated[bool, Option("--periodic", help="The particle is on a ring from LOW to HIGH.")] = False,
    symmetric: Annotated[bool, Option("--symmetric", help="The potential is even about the middle.")] = False,
    reading: Reading,
    delivery: Delivery,
) -> None:
    """In which potential were these positions of a quantum particle measured, and how certain is that?

    The potential is smooth, and the data decide how smooth. Bands contain 90% of the probability.

    Example: quenched potential positions.csv --column y --temperature 0.5 --plot potential.png
    """
    from quenched.cli import density, potential

    table, called = potential.read(data, column, **dataclasses.asdict(reading))
    settings = {"state": potential.state_of(state), "temperature": potential.number("temperature", temperature),
                "mass": potential.number("mass", mass), "hbar": potential.number("hbar", hbar),
                "bounds": density.ends(bounds, None), "periodic": periodic, "symmetric": symmetric}  # fmt: skip
    with delivery.working(f"Learning from {called} ...", notes=table.notes):
        result = potential.describe(table, **settings).assign_attrs(data=called)
    return delivery.hand_over(result, show=potential.show, notes=table.notes)


@command()
def outliers(
    data: Annotated[Path | None, Argument(help="A CSV file.", show_default=False)] = None,
    *,
    target: Annotated[str | None, Option(help="The column to predict: classes or numbers.")] = None,
    columns: Annotated[str | None, Option(help="The columns to predict from, such as a,b; by default all.")] = None,
    seed: SeedOption = 0,
    reading: Reading,
    delivery: Delivery,
) -> None:
    """Which rows of this table are doubtful, how probably, and how many are there?

    A target of words or of few different numbers is a class. --out FILE.csv has all rows, the most doubtful first.

    Example: quenched outliers patients.csv --target diagnosis --out doubtful.csv --plot doubtful.png
    """
    from quenched.cli import doubtful

    table, called, classes = doubtful.read(data, target, columns, **dataclasses.asdict(reading))
    with delivery.working(f"Learning from {called} ...", notes=table.notes):
        result = doubtful.judge(table, classes=classes, seed=seed).assign_attrs(data=called)
    return delivery.hand_over(result, show=doubtful.show, notes=table.notes)


@command()
def classify(
    data: Annotated[Path | None, Argument(help="A CSV file.", show_default=False)] = None,
    *,
    target: Annotated[str | None, Option(help="The column with the classes.")] = None,
    columns: Annotated[str | None, Option(help="The columns to predict from, such as a,b; by default all.")] = None,
    rule: Annotated[str, Option(help="How prototypes learn: gmlvq, glvq, rslvq, lvq1, lvq+ or lvq2.1.")] = "gmlvq",
    prototypes: Annotated[int, Option(help="Prototypes for each class.")] = 1,
    seed: SeedOption = 0,
    reading: Reading,
    delivery: Delivery,
) -> None:
    """Which class does a row belong to, judged by the nearest of a few typical ones, and which columns matter?

    Columns are measured in standard deviations. Rows held out show how often the class is right, beside the nearest
    class mean and the largest class. --out FILE.csv has all rows with the class found.

    Example: quenched classify wines.csv --target cultivar --plot metric.png
    """
    from quenched.cli import classify

    chosen = classify.rule_of(rule, drawn=delivery.plot is not None)
    table, called = classify.read(data, target, columns, prototypes, **dataclasses.asdict(reading))
    with delivery.working(f"Learning from {called} ...", notes=table.notes):
        result = classify.judge(table, chosen, prototypes, seed).assign_attrs(data=called)
    return delivery.hand_over(result, show=classify.show, notes=table.notes)


@command()
def clusters(
    data: Annotated[Path | None, Argument(help="A CSV file; by default scikit-learn's wine data.")] = None,
    *,
    columns: Annotated[
        str | None, Option(help="The columns to cluster by, such as a,b; by default all numbers.")
    ] = None,
    labels: Annotated[Path | None, Option(help="Write the rows with their clusters to this file, FILE.csv.")] = None,
    level: Annotated[float, Option(help="The p-value below which a split is real.")] = 0.05,
    seed: SeedOption = 0,
    reading: Reading,
    delivery: Delivery,
) -> None:
    """Does this table fall into clusters, into how many, and how certain is each split?

    A cluster may be skewed or long; it has one peak.

    Example: quenched clusters penguins.csv --labels labelled.csv --plot tree.png
    """
    from quenched.cli import clusters
    from quenched.core.types import InputError

    table, called = clusters.read(data, columns, **dataclasses.asdict(reading))
    if labels is not None and labels.suffix.lower() != ".csv":
        raise InputError(f"Option --labels must name a file that ends in .csv, but {labels} was given.")
    with delivery.working(f"Looking for clusters in {called} ...", notes=table.notes):
        found = clusters.find(table, level, seed)
    delivery.hand_over(
        found.splits.assign_attrs(data=called), show=functools.partial(clusters.show, found=found, table=table)
    )
    if labels is not None:
        clusters.write(labels, table, found)


@command()
def reproduce(
    paper: Annotated[
        str | None, Argument(help="The paper, such as biehl2006; by default all.", show_default=False)
    ] = None,
    figure: Annotated[list[str] | None, Option(help="Only this figure, such as 3; may be repeated.")] = None,
    full: Annotated[bool, Option("--full/--quick", help="Sizes of the paper, or fewer runs.")] = False,
    out: Annotated[Path | None, Option(help="Folder of the report; by default the name of the paper.")] = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
) -> None:
    """Reproduce papers: an HTML report with their figures, and with every claim beside our value.

    Finished steps are kept in the folder: after an interruption the same command resumes.
    """
    with progress.waiting("Loading ..."):
        from quenched.cli import reproduction

        reproduction.reproduce(paper, figure or [], out, quick=not full, workers=workers, scheduler=scheduler)


@command()
def demo(
    out: Annotated[Path, Option(help="Folder of the report.")] = Path("quenched-demo"), workers: WorkersOption = None
) -> None:
    """See it work in two minutes: a forecast and a density from data, and a figure of each paper."""
    with progress.waiting("Loading ..."):
        from quenched.cli import reproduction

        reproduction.demo(out, workers=workers)


@command()
def explore(
    port: Annotated[
        int | None, Option(min=0, max=65535, help="Port; by default the first free one from 8421 on.")
    ] = None,
    host: Annotated[str, Option(help="Address to listen at; any but this one lets other machines in.")] = "127.0.0.1",
    papers: Annotated[Path | None, Option(help="Folder of a reproduction, whose claims are shown.")] = None,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """A page in your browser: phase diagrams, simulations, your tables, priors and the papers.

    Example: quenched explore
    """
    from quenched import explorer

    with progress.hidden():
        server = explorer.start(host, port, papers=papers)
        typer.echo(f"The explorer is at {server.address} (Ctrl-C ends it).")
        if not explorer.is_here(host):
            typer.echo(f"warning: Whoever can reach {host} can use it: there is no password, and what is asked runs on "
                       "this machine.", err=True)  # fmt: skip
        if browser and not explorer.browse(server.address):
            typer.echo("Open that address in a browser.")
        explorer.wait(server)


def _help(context: typer.Context, science: str | None, verb: str) -> None:
    """Print the help of a command and, if a science is named, of the science."""
    typer.echo(context.get_help())
    if science is None:
        import quenched

        return typer.echo(f"Sciences: {', '.join(quenched.SCIENCES)}. Their laws, rules and controls: "
                          f"quenched {context.info_name} SCIENCE --help")  # fmt: skip
    with progress.waiting("Loading ..."):
        from quenched.cli import options, screen

        found = options.find_science(science)
    if found.command:
        return typer.echo(f"The law of {science} is a table of data: use `{found.command}`.")
    return screen.explain(found, getattr(found.package, verb), console())
