"""From words to a question: the only place where strings name laws, rules, starts and simulators.

Laws are the exported subclasses of a science's `model.Law`, rules of `model.Rule`, starts of `model.Start`, simulators
of `simulation.Simulator`. An option that is not the command's own is a control: a field of the law or the rule, or a
keyword of the verb. Values are `0.8`, lists `1,2,5`, ranges `0:50:501` (from, to, how many) and, for fields with
several numbers, rows `1,1/1,0.25`.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import typer
import xarray as xr

import quenched
from quenched.core.errors import InputError, meant
from quenched.core.types import real, reals

LONGEST = 1_000_000
"""Values in one range."""
SET_BY_COMMAND = ("size", "runs", "key", "start", "simulator", "executor", "folder")
"""Keywords of a verb that have options of their own."""


@dataclasses.dataclass(frozen=True)
class Science:
    """What a science exports, by the names used on the command line."""

    name: str
    package: ModuleType
    command: str
    laws: dict[str, type]
    rules: dict[str, type]
    starts: dict[str, type]
    simulators: dict[str, type]

    @property
    def start_forms(self) -> dict[str, str]:
        """The fields of each start, as they are typed."""
        fields = {name: dataclasses.fields(cls) for name, cls in self.starts.items()}
        return {name: ";".join(f"{f.name}=..." for f in some) for name, some in fields.items()}


def find_science(name: str | None) -> Science:
    """What a science exports."""
    _check_name("Argument SCIENCE", name, quenched.SCIENCES)
    package, model, simulation = (importlib.import_module(f"quenched.{name}{m}") for m in ("", ".model", ".simulation"))
    kinds = (model, "Law"), (model, "Start"), (simulation, "Simulator")
    laws, starts, simulators = (_exported(package, getattr(home, kind, None)) for home, kind in kinds)
    learned = (getattr(model, kind, None) for kind in ("Rule", "Cost"))  # a cost of all rows has no theory
    rules = {name: cls for base in learned for name, cls in _exported(package, base).items()}
    return Science(str(name), package, model.SCIENCE.command, laws, rules, starts, simulators)


def _exported(package: ModuleType, base: type | None) -> dict[str, type]:
    """The classes below `base` that a package exports and that can be instantiated, in the order of the source."""
    every = [getattr(package, name) for name in package.__all__]
    kinds = [c for c in every if base and isinstance(c, type) and issubclass(c, base) and c is not base]
    made = [c for c in kinds if not inspect.isabstract(c)]
    return {kebab(c.__name__): c for c in sorted(made, key=lambda c: (c.__module__, inspect.getsourcelines(c)[1]))}


def kebab(name: str) -> str:
    """A class name as it is typed: TwoClusters is two-clusters, LVQPlus is lvq-plus."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def pick(option: str, table: dict[str, type], name: str | None) -> type:
    """Choose a class by name; without a name, the only one that can be made without any argument."""
    if name is None:
        complete = [c for c in table.values() if not required(c)]
        if len(complete) == 1:
            return complete[0]
        raise InputError(f"Option {option} must be given, as one of: {', '.join(table)}.")
    plain = {known.replace("-", ""): c for known, c in table.items()}
    squeezed = re.sub(r"[-_. ]", "", name.lower().replace("+", "plus"))  # lvq2.1 is LVQ21, lvq+ is LVQPlus
    if squeezed not in plain:
        _check_name(f"Option {option}", name, table)
    return plain[squeezed]


def _check_name(what: str, name: str | None, known: Collection[str]) -> None:
    """Check that a name is known, and otherwise suggest the closest one."""
    if name is None or name not in known:
        given = "none was given" if name is None else f"{name!r} was given{meant(name.lower(), known)}"
        raise InputError(f"{what} must be one of: {', '.join(known)}; but {given}.")


def required(cls: type) -> list[str]:
    """Fields without a default."""
    empty = dataclasses.MISSING
    return [f.name for f in dataclasses.fields(cls) if f.default is empty and f.default_factory is empty]


def extra_options(words: Sequence[str]) -> dict[str, str]:
    """Pairs of `--name value` or `--name=value`, by name with underscores."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        name, equals, value = (word := rest.pop(0)).partition("=")
        if not re.fullmatch(r"--[A-Za-z]\w*(-\w+)*", name):
            raise InputError(f"Options must be given as `--name value`, but {word!r} was given.")
        if not equals:
            if not rest or re.match(r"--[A-Za-z]", rest[0]):
                raise InputError(f"Option {name} must have a value, but none was given.")
            value = rest.pop(0)
        key = name[2:].replace("-", "_")
        if key in found:
            raise InputError(f"Option {name} must be given once, but it was given twice.")
        found[key] = value
    return found


def numbers(option: str, text: str) -> Any:
    """A number, a list for `1,2,5` or `0:50:501`, a list of lists for `1,1/1,0.25`."""

    def read(item: str) -> list[float]:
        if ":" not in item:
            return [float(item)]
        low, high, count = item.split(":")
        if not 2 <= int(count) <= LONGEST:
            raise ValueError(count)
        return np.linspace(float(low), float(high), int(count)).tolist()

    try:
        rows = [[x for item in row.split(",") for x in read(item)] for row in text.split("/")]
        if len({len(row) for row in rows}) > 1:
            raise ValueError("rows of different lengths")
    except ValueError:
        raise InputError(f"Option {option} must be a number, a list such as 1,2,5 or a range such as 0:50:501 "
                         f"(from, to, how many, at most {LONGEST}), but {text!r} was given.") from None  # fmt: skip
    return rows if "/" in text else rows[0] if re.search("[,:]", text) else rows[0][0]


def find_start(found: Science, text: str | None) -> Any:
    """A start by name (`near-origin`) or by its fields (`R=0,0/0,0;Q=1,0/0,1`)."""
    if text is None:
        return None
    if "=" not in text:
        return pick("--start", {k: c for k, c in found.starts.items() if not required(c)}, text)()
    pairs = [pair.split("=", 1) for pair in text.split(";") if "=" in pair]
    values = {name.strip(): numbers("--start", value) for name, value in pairs}
    for cls in found.starts.values():
        if set(required(cls)) <= set(values) <= {f.name for f in dataclasses.fields(cls)}:
            return cls(**values)
    forms = ", ".join(found.start_forms.values())
    raise InputError(f"Option --start must be a name or one of: {forms}; but {text!r} was given.")


def executor(workers: int | None, scheduler: str | None) -> Any:
    """Where to run."""
    if workers is not None and scheduler is not None:
        raise InputError("Options --workers and --scheduler must not both be given, but they are.")
    if scheduler is not None:
        return quenched.Dask(scheduler)
    return None if workers is None else quenched.Processes(workers)


@dataclasses.dataclass(frozen=True)
class Question:
    """What a command asks of a science."""

    science: Science
    law: Any
    rule: Any
    start: Any
    controls: dict[str, Any]

    @classmethod
    def parse(
        cls, context: typer.Context, verb: str, *, science: str | None, law: str | None, rule: str | None,
        start: str | None,
    ) -> Question:  # fmt: skip
        """Make law, rule, start and controls from the words of a command."""
        found = find_science(science)
        if found.command:
            raise InputError("Argument SCIENCE must be one whose law can be given by options, but the law of "
                             f"{science} is a table of data: use `{found.command}`.")  # fmt: skip
        own = [str(one.name) for one in context.command.params if one.name not in ("science", "help")]
        world, student, controls = declare(
            found, getattr(found.package, verb), law, rule, extra_options(context.args), own
        )
        return cls(found, world, student, find_start(found, start), controls)

    def curve(self, controls: dict[str, Any] | None = None) -> xr.Dataset:
        """The theory, at the controls of the question or at others."""
        verb = self.science.package.curve
        starts = "start" in inspect.signature(verb).parameters
        if self.start is not None and not starts and controls is None:
            raise InputError("Option --start must not be given here, but it is: this theory does not depend on the "
                             "start.")  # fmt: skip
        begin = {"start": self.start} if starts else {}
        return verb(self.law, self.rule, **begin, **(self.controls if controls is None else controls))

    def measure(self, simulator: str | None, **settings: Any) -> xr.Dataset:
        """The simulation."""
        if simulator is not None:
            settings["simulator"] = pick("--simulator", self.science.simulators, simulator)()
        return self.science.package.measure(self.law, self.rule, start=self.start, **settings, **self.controls)

    def compare(self, points: xr.Dataset, allowance: float | None, *, smooth: bool) -> tuple[list[xr.Dataset], str]:
        """The theory at the simulated points (and between, if `smooth`), and a sentence on their agreement."""
        package = self.science.package
        of_theory = verb_keywords(package.curve)
        only_measured = set(verb_keywords(package.measure)) - set(of_theory)
        wanted = {name: value for name, value in self.controls.items() if name not in only_measured}
        for name in of_theory:
            if smooth and np.ndim(wanted.get(name, 0)) == 1:
                wanted[name] = np.union1d(wanted[name], np.linspace(min(wanted[name]), max(wanted[name]), 101))
        try:
            theory = self.curve(wanted)
            granted = 1 / int(points.attrs["size"]) if allowance is None else allowance
            first = {dim: 0 for dim in theory.dims if dim not in points.dims and theory[dim].dtype.kind == "U"}
            found = quenched.agreement(theory.isel(first), points, allowance=granted)
            plain = max(float(abs(found.z[name]).max()) for name in found.z)
            return [theory], f"{found}; without the allowance {plain:.2f} standard errors"
        except InputError as error:
            return [], f"not compared with the theory: {error}"


def declare(
    found: Science, verb: Callable[..., Any], law: str | None, rule: str | None, extra: dict[str, str],
    known: Sequence[str],
) -> tuple[Any, Any, dict[str, Any]]:  # fmt: skip
    """Make law, rule and the controls of a verb from options."""
    owners = {"law": pick("--law", found.laws, law), "rule": pick("--rule", found.rules, rule)}
    keywords = verb_keywords(verb)
    fixed: dict[str, dict[str, Any]] = {"law": {}, "rule": {}}
    controls: dict[str, Any] = {}
    for name, text in extra.items():
        if name in keywords:
            controls[name] = _keyword(found, name, text)
            continue
        owner, field = _owner(owners, name, [*keywords, *known])
        fixed[owner][field], swept = _split(owners[owner], field, name, numbers(_option(name), text))
        if swept is not None:
            controls[name] = swept
    for name, keyword in keywords.items():
        if keyword.default is keyword.empty and name not in controls:
            raise InputError(f"Option {_option(name)} must be given, for example {_option(name)} 0:50:501.")
    return _make(owners["law"], fixed["law"]), _make(owners["rule"], fixed["rule"]), controls


def verb_keywords(verb: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keywords of a verb that are controls."""
    every = inspect.signature(verb).parameters.values()
    return {p.name: p for p in every if p.kind is p.KEYWORD_ONLY and p.name not in SET_BY_COMMAND}


def _keyword(found: Science, name: str, text: str) -> Any:
    """The value of a keyword of a verb: numbers, or a member or subclass of the exported class of that name."""
    kind = getattr(found.package, name.title(), None)
    if isinstance(kind, enum.EnumType):
        _check_name(f"Option {_option(name)}", text, kind.__members__)
        return kind[text]
    if isinstance(kind, type):
        return pick(_option(name), _exported(found.package, kind), text)()
    value = numbers(_option(name), text)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _owner(owners: dict[str, type], name: str, others: Sequence[str]) -> tuple[str, str]:
    """Whether an option is a field of the law or of the rule, and its name there."""
    every = [(owner, f.name) for owner, cls in owners.items() for f in dataclasses.fields(cls)]
    having = [(owner, field) for owner, field in every if name in (field, f"{owner}_{field}")]
    if len(having) == 1:
        return having[0]
    if having:
        raise InputError(f"Option {_option(name)} must name its owner, but law and rule both have it: give "
                         f"--law-{name} or --rule-{name}.")  # fmt: skip
    known = [_option(n) for n in dict.fromkeys([*others, *sorted({field for _, field in every})])]
    whose = " and ".join(kebab(cls.__name__) for cls in owners.values())
    raise InputError(f"Option {_option(name)} must be one that {whose} have, but it is not"
                     f"{meant(_option(name), known)}: {', '.join(known)}.")  # fmt: skip


def _split(cls: type, field: str, name: str, value: Any) -> tuple[Any, Any]:
    """The value with which to declare, and the values to sweep (None: it is not swept)."""
    declared = next(f for f in dataclasses.fields(cls) if f.name == field)
    depth, converter = np.ndim(value), declared.metadata.get("converter")
    if converter is reals:  # an array, which is never swept from here
        return (value if depth else [value]), None
    axes = 0 if converter is real else 1
    if depth <= axes:
        return ([value] if depth < axes else value), None
    if depth > axes + 1 or declared.metadata.get("static"):
        raise InputError(f"Option {_option(name)} must be {'one list' if axes else 'a number or a list'} "
                         "of numbers, but it has more.")  # fmt: skip
    return value[0], (np.asarray(value) if axes else value)


def _make(cls: type, fields: dict[str, Any]) -> Any:
    """Declare a law or a rule."""
    if missing := [name for name in required(cls) if name not in fields]:
        raise InputError(f"Option {_option(missing[0])} must be given, because {kebab(cls.__name__)} has no default "
                         "for it.")  # fmt: skip
    return cls(**fields)
