"""From words to declarations: the only place where strings name laws, rules, starts and simulators.

A science is found by what its package exports: laws are subclasses of its `model.Law`, rules of `model.Rule`, starts of
`model.Start`, simulators of `simulation.Simulator`. An option that no command knows is a control: a field of the law or
the rule, or a keyword of the verb. Values are `0.8`, lists `1,2,5`, ranges `0:50:501` (from, to, how many) and, for
fields with several numbers, rows `1,1/1,0.25`.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import quenched
from quenched.core.types import InputError, reals

LONGEST = 1_000_000
"""Values in one range."""

TABLES = {
    "fields": "quenched density DATA.csv --column COLUMN",
    "processes": "quenched forecast DATA.csv --target COLUMN",
}
"""Sciences whose law is a table of data, which words cannot give, and the command that reads one."""

SET_BY_COMMAND = ("size", "runs", "key", "start", "simulator", "executor", "folder")
"""Keywords of a verb that have options of their own."""


@dataclasses.dataclass(frozen=True)
class Science:
    """What a science exports, by the names used on the command line."""

    name: str
    package: ModuleType
    laws: dict[str, type]
    rules: dict[str, type]
    starts: dict[str, type]
    simulators: dict[str, type]


def science(name: str | None) -> Science:
    """Find a science whose law can be declared in words.

    Raises:
        InputError: if there is no such science, or its law is a table.
    """
    sciences = quenched.SCIENCES
    if name not in sciences:
        raise InputError(f"Argument SCIENCE must be one of: {', '.join(sciences)}; but {_given(name, sciences)}.")
    if name in TABLES:
        raise InputError(f"Argument SCIENCE must be one whose law can be said in options, but that of {name} is a "
                         f"table of data: use `{TABLES[name]}`.")  # fmt: skip
    return introspect(name)


def introspect(name: str) -> Science:
    """What a science exports."""
    package = importlib.import_module(f"quenched.{name}")
    model = importlib.import_module(f"quenched.{name}.model")
    simulation = importlib.import_module(f"quenched.{name}.simulation")
    kinds = (model, "Law"), (model, "Rule"), (model, "Start"), (simulation, "Simulator")
    return Science(name, package, *(_exported(package, getattr(home, kind, None)) for home, kind in kinds))


def _exported(package: ModuleType, base: type | None) -> dict[str, type]:
    """The classes a package exports below `base` that can be made, in the order in which they are written."""
    every = [getattr(package, name) for name in package.__all__]
    kinds = [c for c in every if base and isinstance(c, type) and issubclass(c, base) and c is not base]
    made = [c for c in kinds if not inspect.isabstract(c)]
    return {kebab(c.__name__): c for c in sorted(made, key=lambda c: (c.__module__, inspect.getsourcelines(c)[1]))}


def kebab(name: str) -> str:
    """A class name as it is typed: TwoClusters is two-clusters, LVQPlus is lvq-plus."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def pick(option: str, table: dict[str, type], name: str | None) -> type:
    """Choose a class by name; without a name, the only one that can be made without any argument.

    Raises:
        InputError: if there is no such name, or it is missing where there is a choice.
    """
    if name is None:
        complete = [c for c in table.values() if not _required(c)]
        if len(complete) == 1:
            return complete[0]
        raise InputError(f"Option {option} must be given, as one of: {', '.join(table)}.")
    plain = {_squeeze(known): c for known, c in table.items()}
    if _squeeze(name) not in plain:
        raise InputError(f"Option {option} must be one of: {', '.join(table)}; but {_given(name, table)}.")
    return plain[_squeeze(name)]


def _squeeze(name: str) -> str:
    """A name without what people write differently: lvq2.1 is LVQ21, lvq+ is LVQPlus."""
    return re.sub(r"[-_. ]", "", name.lower().replace("+", "plus"))


def _given(name: str | None, known: Any) -> str:
    """What was given, and what may have been meant."""
    if name is None:
        return "none was given"
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f"{name!r} was given" + (f" (did you mean {close[0]}?)" if close else "")


def extra_options(words: Sequence[str]) -> dict[str, str]:
    """Pairs of `--name value` or `--name=value`, by name with underscores.

    Raises:
        InputError: for words that are no such pairs.
    """
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
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
    """A number, a list for `1,2,5` or `0:50:501`, a list of lists for `1,1/1,0.25`.

    Raises:
        InputError: for other text.
    """
    try:
        rows = [[x for item in row.split(",") for x in _range(item)] for row in text.split("/")]
        if len({len(row) for row in rows}) > 1:
            raise ValueError("rows of different lengths")
    except ValueError:
        raise InputError(f"Option {option} must be a number, a list such as 1,2,5 or a range such as 0:50:501 "
                         f"(from, to, how many, at most {LONGEST}), but {text!r} was given.") from None  # fmt: skip
    if "/" in text:
        return rows
    return rows[0] if re.search("[,:]", text) else rows[0][0]


def _range(text: str) -> list[float]:
    """One number, or the numbers of a range."""
    parts = text.split(":")
    if len(parts) == 1:
        return [float(text)]
    low, high, count = parts
    if not 2 <= int(count) <= LONGEST:
        raise ValueError(count)
    return np.linspace(float(low), float(high), int(count)).tolist()


def declare(
    found: Science,
    verb: Callable[..., Any],
    law: str | None,
    rule: str | None,
    extra: dict[str, str],
    known: Sequence[str],
) -> tuple[Any, Any, dict[str, Any]]:
    """Make law, rule and the controls of a verb from options.

    Args:
        found: the science.
        verb: `curve` or `measure`.
        law: name of the law.
        rule: name of the rule.
        extra: options that the command does not know.
        known: options that it knows, to guess what was meant.

    Raises:
        InputError: for an option that nobody has, or a value that its owner refuses.
    """
    owners = {"law": pick("--law", found.laws, law), "rule": pick("--rule", found.rules, rule)}
    keywords = verb_keywords(verb)
    fixed: dict[str, dict[str, Any]] = {"law": {}, "rule": {}}
    controls: dict[str, Any] = {}
    for name, text in extra.items():
        if name in keywords:
            controls[name] = _keyword(found, name, str(keywords[name].annotation), text)
            continue
        owner, field = _owner(owners, name, [*keywords, *known])
        single, swept = _split(owners[owner], field, name, numbers(_option(name), text))
        fixed[owner][field] = single
        if swept is not None:
            controls[name] = swept
    for name, keyword in keywords.items():
        if keyword.default is keyword.empty and name not in controls:
            raise InputError(f"Option {_option(name)} must be given, for example {_option(name)} 0:50:501.")
    return _make("law", owners, fixed), _make("rule", owners, fixed), controls


def verb_keywords(verb: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keywords of a verb that are controls."""
    every = inspect.signature(verb).parameters.values()
    return {p.name: p for p in every if p.kind is p.KEYWORD_ONLY and p.name not in SET_BY_COMMAND}


def _keyword(found: Science, name: str, annotation: str, text: str) -> Any:
    """The value of a keyword of a verb: numbers, or one of an enumeration that the science exports."""
    for word in re.findall(r"\w+", annotation):
        kind = getattr(found.package, word, None)
        if isinstance(kind, enum.EnumType):
            if text not in kind.__members__:
                known = kind.__members__
                raise InputError(
                    f"Option {_option(name)} must be one of: {', '.join(known)}; but {_given(text, known)}."
                )
            return kind[text]
    value = numbers(_option(name), text)
    return _whole(value) if "int" in annotation else value


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _whole(value: Any) -> Any:
    """A whole number as an int, for arguments that count; others are refused where they are used."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _owner(owners: dict[str, type], name: str, others: Sequence[str]) -> tuple[str, str]:
    """Whose field an option is."""
    fields = {owner: {f.name for f in dataclasses.fields(cls)} for owner, cls in owners.items()}
    for owner in owners:
        if name.startswith(f"{owner}_") and name.removeprefix(f"{owner}_") in fields[owner]:
            return owner, name.removeprefix(f"{owner}_")
    having = [owner for owner in owners if name in fields[owner]]
    if len(having) == 1:
        return having[0], name
    if having:
        raise InputError(f"Option {_option(name)} must say whose it is, but law and rule both have it: give "
                         f"--law-{name} or --rule-{name}.")  # fmt: skip
    known = [_option(n) for n in dict.fromkeys([*others, *sorted(fields["law"] | fields["rule"])])]
    close = difflib.get_close_matches(_option(name), known, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    whose = f"{kebab(owners['law'].__name__)} and {kebab(owners['rule'].__name__)}"
    raise InputError(f"Option {_option(name)} must be one that {whose} have, but it is not{meant}: {', '.join(known)}.")


def _split(cls: type, field: str, name: str, value: Any) -> tuple[Any, Any]:
    """The value with which to declare, and the values to sweep (None: it is not swept)."""
    declared = next(f for f in dataclasses.fields(cls) if f.name == field)
    depth = np.ndim(value)
    if declared.metadata.get("converter") is reals:  # an array, which is never swept from here
        return (value if depth else [value]), None
    axes = 1 if "tuple" in str(declared.type) else 0
    if depth <= axes:
        return ([value] if depth < axes else value), None
    if depth > axes + 1 or declared.metadata.get("static"):
        raise InputError(f"Option {_option(name)} must be {'one list' if axes else 'a number or a list'} "
                         "of numbers, but it has more.")  # fmt: skip
    return value[0], (np.asarray(value) if axes else value)


def _make(owner: str, owners: dict[str, type], fixed: dict[str, dict[str, Any]]) -> Any:
    """Declare the law or the rule."""
    missing = [name for name in _required(owners[owner]) if name not in fixed[owner]]
    if missing:
        name = kebab(owners[owner].__name__)
        raise InputError(f"Option {_option(missing[0])} must be given, because {name} has no default for it.")
    return owners[owner](**fixed[owner])


def _required(cls: type) -> list[str]:
    """Fields without a default."""
    empty = dataclasses.MISSING
    return [f.name for f in dataclasses.fields(cls) if f.default is empty and f.default_factory is empty]


def start(found: Science, text: str | None) -> Any:
    """A start by name (`near-origin`) or by its fields (`R=0,0/0,0;Q=1,0/0,1`).

    Raises:
        InputError: if there is no such start, or it refuses the values.
    """
    if text is None:
        return None
    if "=" not in text:
        cls = pick("--start", {k: c for k, c in found.starts.items() if not _required(c)}, text)
        return cls()
    pairs = dict(pair.split("=", 1) for pair in text.split(";") if "=" in pair)
    values = {name.strip(): numbers("--start", value) for name, value in pairs.items()}
    for cls in found.starts.values():
        if set(_required(cls)) <= set(values) <= {f.name for f in dataclasses.fields(cls)}:
            return cls(**values)
    forms = [";".join(f"{f.name}=..." for f in dataclasses.fields(c)) for c in found.starts.values()]
    raise InputError(f"Option --start must be a name or one of: {', '.join(forms)}; but {text!r} was given.")


def start_of(verb: Callable[..., Any], begin: Any, *, needed: bool = True) -> dict[str, Any]:
    """The start as a keyword, for a verb that has one.

    Args:
        verb: `curve` or `measure`.
        begin: the start, or None.
        needed: whether the user gave it for this verb.

    Raises:
        InputError: if it was given for a verb that has none.
    """
    if "start" in inspect.signature(verb).parameters:
        return {"start": begin}
    if needed and begin is not None:
        raise InputError("Option --start must not be given here, but it is: this theory does not depend on the start.")
    return {}
