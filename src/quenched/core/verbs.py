"""The front door of every science: a question is checked and swept once, and its answer assembled once.

A science declares a `Science`: its name, its laws and rules, and what it reports. A verb then has three lines:

    question = SCIENCE.ask(law, rule, sweep, alpha=alpha)        # checks, and the grid of all points
    values = question.map(function)                              # or arrays [points, alpha, ...], computed otherwise
    return question.answer(values)                               # in an experiment: question.measure(...)

The dimensions of a result are, in order: the swept controls as they were given, `alpha` or `examples`, those that a
variable has by itself, and `run`. One number in place of a list drops the dimension.

A control is a keyword: any field of the law or the rule; a scalar fixes it, a sequence sweeps it.
A control that every run passes through, as `eta` in outliers and `width` in mixtures, is a field of the law or the rule
that makes no new point: it becomes an axis, rising or falling, and the result has its values in the order given.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quenched.core import checks, results, system
from quenched.core.ensemble import Ensemble, OnHost, ensemble
from quenched.core.progress import track
from quenched.core.types import NOT_NUMBERS, InputError, Key, Outcome, as_numbers, outcome_names

if TYPE_CHECKING:
    import xarray as xr

Work = tuple[Callable[[Any, Any], Any] | OnHost, Sequence[Any]]
"""A run, as a function of a key and a point, and the points."""


@dataclasses.dataclass(frozen=True)
class Bayes:
    """The best that any student can do: the rule of an `optimum`."""


def _nothing(*_: Any) -> Any:
    return {}


@dataclasses.dataclass(frozen=True)
class Science:
    """What the verbs of a science have in common."""

    name: str  # that of the package
    laws: tuple[
        Any, str
    ]  # the classes of its laws, and how to describe them in an error: "a law such as TwoClusters()"
    rules: tuple[Any, str]
    reports: Mapping[
        str, tuple[str, ...]
    ]  # what theory and simulation both report, and the dimensions each has by itself
    check: Callable[[Any, Any], Any] = _nothing  # raises an error for a law and a rule that do not go together
    coordinates: Callable[[Any, Any], dict[str, Any]] = _nothing  # of the dimensions in `reports`, from law and rule
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)  # variable or control to words for an axis
    attrs: Mapping[str, str] = dataclasses.field(default_factory=dict)  # that every result has
    command: str = ""  # the command for data of one's own, where a law is a table that cannot be typed

    def ask(
        self,
        law: Any,  # the world
        rule: Any,  # the student, or `Bayes()`
        sweep: Mapping[str, Any],  # fields of the law or the rule; a number fixes one, a sequence sweeps it
        *,
        through: str | None = None,  # the field that every run passes through; it becomes the last axis
        falling: bool = False,  # whether it is passed through from its largest value to its least
        least: float = 0.0,  # value of each of `axes`
        most: float = np.inf,
        **axes: Any,  # increasing controls that are no fields, such as `alpha`; one number drops the dimension
    ) -> Question:
        """Check a question and expand its sweep."""
        self.check_pair(law, rule)
        for name, value in axes.items():
            system.require_memory(f"Argument `{name}`", 16.0 * np.size(value) if hasattr(value, "shape") else 0.0)
        arrays = {name: checks.increasing(name, value, least=least, most=most) for name, value in axes.items()}
        dropped = {name: False for name, value in axes.items() if np.ndim(value) == 0}  # whether the value goes, too
        swept, rest, places = [name for name in sweep if name not in axes], dict(sweep), None
        if through is not None:
            field, through = through, find(law, rule, sweep, through)
            given = rest.pop(through, value_of(law, rule, through))
            every = expand(law, rule, {through: given})
            values = np.array([float(value_of(*pair, field)) for pair in every.pairs])
            (law, rule), order = every.pairs[0], np.argsort(-values if falling else values, kind="stable")
            arrays, places = {**arrays, through: values[order]}, np.argsort(order)
            dropped |= {} if every.dims else {through: True}
        plan = expand(law, rule, rest)
        dims = [name for name in swept if name in plan.dims or (name == through and through not in dropped)]
        return Question(self, plan, arrays, tuple(dims), dropped, places)

    def check_pair(self, law: Any, rule: Any) -> None:
        """Check that law and rule belong to this science and go together."""
        checks.kind("law", law, *self.laws)
        if not isinstance(rule, Bayes):
            checks.kind("rule", rule, *self.rules)
            self.check(law, rule)


class Plan(NamedTuple):
    """All points of a sweep, in C order of `shape`."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, np.ndarray]  # one for each dimension
    laws: list[Any]
    rules: list[Any]

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """Law and rule of each point."""
        return list(zip(self.laws, self.rules, strict=True))


def expand(law: Any, rule: Any, controls: dict[str, Any]) -> Plan:
    """The grid of all combinations of controls; a name that law and rule both have is `law_name` or `rule_name`."""
    parts: list[tuple[str, str, list[Any]]] = []
    coords: dict[str, np.ndarray] = {}
    for name, value in controls.items():
        owner, field = find_owner(law, rule, name)
        values = _sequence(name, value, inner=np.ndim(value_of(law, rule, name)))
        if values is not None:
            coords[name] = np.asarray(values) if isinstance(values[0], float) else np.arange(len(values))
        parts.append((owner, field, [value] if values is None else values))
    laws, rules = [], []
    for combination in itertools.product(*(values for *_, values in parts)):
        changes: dict[str, dict[str, Any]] = {"law": {}, "rule": {}}
        for (owner, field, _), value in zip(parts, combination, strict=True):
            changes[owner][field] = value
        laws.append(dataclasses.replace(law, **changes["law"]))
        rules.append(dataclasses.replace(rule, **changes["rule"]))
    return Plan(tuple(coords), tuple(map(len, coords.values())), coords, laws, rules)


def value_of(law: Any, rule: Any, name: str) -> Any:
    """The value of a control in a law and a rule."""
    owner, field = find_owner(law, rule, name)
    return getattr(law if owner == "law" else rule, field)


def find(law: Any, rule: Any, given: Iterable[str], name: str) -> str:
    """The name among those given that means the same control, with a prefix or without; otherwise the name itself."""
    wanted = find_owner(law, rule, name)
    return next((one for one in given if find_owner(law, rule, one) == wanted), name)


def find_owner(law: Any, rule: Any, name: str) -> tuple[str, str]:
    """Whether a control belongs to the law or the rule, and its field."""
    of_law, of_rule = ([field.name for field in dataclasses.fields(declared)] for declared in (law, rule))
    for prefix, of in (("law_", of_law), ("rule_", of_rule)):
        if name.startswith(prefix) and name.removeprefix(prefix) in of:
            return prefix.removesuffix("_"), name.removeprefix(prefix)
    if name in of_law and name in of_rule:
        raise InputError(f"Argument `{name}` must say whose it is, but law and rule both have it: "
                         f"give `law_{name}` or `rule_{name}`.")  # fmt: skip
    if name not in of_law and name not in of_rule:
        known = ", ".join(f"`{n}`" for n in dict.fromkeys([*of_law, *of_rule]))
        raise InputError(f"Argument `{name}` must be a field of the law or the rule, but those are {known}.")
    return ("law", name) if name in of_law else ("rule", name)


def _sequence(name: str, value: Any, *, inner: int) -> list[Any] | None:
    """The values of a swept control, or None for a fixed one. `inner` is the number of axes of one value."""
    if isinstance(value, (str, bytes)) or callable(value) or value is None:
        return None
    if isinstance(value, (list, tuple)) and value and all(callable(v) for v in value):
        return list(value)  # a sweep over objects, such as schedules
    try:
        array = as_numbers(value)
    except NOT_NUMBERS:
        raise InputError(f"Argument `{name}` must be numbers, but {value!r} was given.") from None
    if array.ndim == inner:
        return None
    if array.ndim != inner + 1 or array.shape[0] == 0:
        raise InputError(f"Argument `{name}` must be one value or a non-empty sequence of values, "
                         f"but its shape is {array.shape}.")  # fmt: skip
    return [v if inner else float(v) for v in array]


@dataclasses.dataclass(frozen=True)
class Question:
    """A checked question: all points of the sweep, and the axes that each of them has."""

    science: Science
    plan: Plan  # the points, each a law and a rule
    axes: dict[str, np.ndarray]  # controls that are not points, increasing unless the one passed through is falling
    dims: tuple[str, ...]  # names of the swept controls, in the order given
    _dropped: dict[str, bool]
    _places: np.ndarray | None  # of the last axis, as its values were given

    def map(self, function: Callable[..., Any], label: str = "theory") -> dict[str, np.ndarray]:
        """Evaluate a function at each point and each value of the first axis: arrays `[points, first axis, ...]`.

        It takes a law, a rule and a value of the first axis, if there is one, to a dictionary or named tuple.
        """
        first = next(iter(self.axes.values()), None)
        every = [(*pair, *rest) for pair in self.plan.pairs for rest in ([()] if first is None else first[:, None])]
        found = [function(*one) for one in track(every, label)]
        rows = [one if isinstance(one, Mapping) else one._asdict() for one in found]
        shape = (len(self.plan.laws), *([] if first is None else [len(first)]))
        joined = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
        return {name: value.reshape(*shape, *value.shape[1:]) for name, value in joined.items()}

    def answer(
        self,
        values: Mapping[str, Any],  # [points, *axes of the question, *axes, *dims of the variable]; outcomes as codes
        *,
        axes: Mapping[str, Any] | None = None,  # further dimensions that all variables have, such as `branch`
        dims: Mapping[str, tuple[str, ...]] | None = None,  # of variables, beside those that the science declares
        source: str = "theory",  # where the numbers come from
        **attrs: Any,  # further attributes; a start or another declared object is described by its fields
    ) -> xr.Dataset:
        """Name the dimensions of arrays and describe where they come from."""
        further = {name: np.asarray(value) for name, value in (axes or {}).items()}
        own = {**self.science.reports, **(dims or {})}
        named = {}
        for name, value in values.items():
            array = self._as_points(np.asarray(value))
            array = outcome_names(array) if name.endswith("outcome") and array.dtype.kind in "iuf" else array
            named[name] = ((*self.plan.dims, *self.axes, *further, *own.get(name, ())), array)
        return self._finish(self._dataset(named, further, source, attrs))

    def measure(
        self,
        work: Work | Sequence[Work],
        *,
        key: Key,
        runs: int,
        batch: int | None,
        executor: Any,
        folder: Any,
        label: str,
        vectorized: bool = False,
        finish: Callable[[Ensemble], Ensemble] | None = None,
        dims: Mapping[str, tuple[str, ...]] | None = None,
        **attrs: Any,
    ) -> xr.Dataset:
        """Run an experiment many times, as `ensemble` does: mean, standard error, and the runs themselves.

        The work is a run and its points; or a list of these, one for each value of the first axis, where the shape of
        the data depends on it. A run returns arrays `[*axes of the question, *dimensions of the variable]`, without the
        first axis if there is a list. An array `stalled` marks where it was not finished. `finish` is a function of all
        runs that adds or changes variables.
        """
        key = checks.key(key)
        own, axes = {**self.science.reports, **(dims or {})}, dict(self.axes)
        every: Any = [work] if isinstance(work, tuple) else work
        first = None if isinstance(work, tuple) else next(iter(axes))
        values = None if first is None else axes.pop(first)
        attrs |= {"seed": results.seed(key)}
        parts = []
        for run, points in every:
            done = ensemble(
                run, key, points, runs=runs, batch=batch, vectorized=vectorized, executor=executor, folder=folder,
                label=label,
            )  # fmt: skip
            parts.append(self._runs(done if finish is None else finish(done), axes, own, attrs))
        if first is None:
            return self._finish(parts[0])
        import xarray as xr

        along: Any = xr.Variable(first, values)
        return self._finish(xr.concat(parts, along, data_vars="all", combine_attrs="override"))

    def _runs(
        self, done: Ensemble, axes: dict[str, Any], own: Mapping[str, tuple[str, ...]], attrs: dict[str, Any]
    ) -> xr.Dataset:
        """The dataset of one ensemble. Runs that failed are kept but take no part in the averages."""
        named: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
        for name, value in done.values.items():
            if name != "stalled":
                dims = (*self.plan.dims, *axes, *own.get(name, ()))
                named[name] = (dims, self._as_points(done.mean(name)))
                named[f"{name}_stderr"] = (dims, self._as_points(done.stderr(name)))
                named[f"{name}_run"] = ((*dims, "run"), self._as_points(np.moveaxis(value, 1, -1)))
        stalled = np.any(np.asarray(done.values.get("stalled", np.zeros(done.failed.shape))) > 0, axis=1)
        lost = done.failed.all(axis=1).reshape(-1, *(1,) * (stalled.ndim - 1))
        codes = np.where(lost, Outcome.failed, np.where(stalled, Outcome.stalled, Outcome.converged))
        named["runs"] = (self.plan.dims, self._as_points((~done.failed).sum(axis=1)))
        named["failed"] = (self.plan.dims, self._as_points(done.failed.sum(axis=1)))
        along = (*self.plan.dims, *tuple(axes)[: stalled.ndim - 1])
        named["outcome"] = (along, self._as_points(outcome_names(codes)))
        messages = {"messages": "; ".join(done.messages)} if done.messages else {}
        return self._dataset(named, {}, "simulation", attrs | messages)

    def _as_points(self, array: np.ndarray) -> np.ndarray:
        """An array with the axes of the sweep in place of that of the points."""
        return array.reshape((*self.plan.shape, *array.shape[1:]))

    def _dataset(self, named: dict[str, Any], axes: dict[str, Any], source: str, attrs: dict[str, Any]) -> xr.Dataset:
        """A dataset with the coordinates that its variables need and the attributes that all results have."""
        import xarray as xr  # takes half a second: only who asks waits for it

        law, rule = self.plan.pairs[0]
        used = {dim for dims, _ in named.values() for dim in dims}
        every = {name: (name, value) for name, value in {**self.plan.coords, **self.axes, **axes}.items()}
        every |= {} if isinstance(rule, Bayes) else self.science.coordinates(law, rule)
        coords = {name: value for name, value in every.items() if value[0] in used}
        about = results.provenance(self.science.name, law=law, rule=rule, source=source, sweep=" ".join(self.dims))
        about |= {**self.science.attrs, **attrs}
        plain = {k: results.describe(v) if dataclasses.is_dataclass(v) else v for k, v in about.items()}
        result = xr.Dataset(named, coords, plain)
        for name, words in self.science.labels.items():
            if name in result.variables:
                result[name].attrs["long_name"] = words
        if "along" in attrs:
            result.attrs["along_name"] = self.science.labels.get(attrs["along"], attrs["along"])
        return result

    def _finish(self, result: xr.Dataset) -> xr.Dataset:
        """Put the axes in the order of the result, and drop those for which one number was given."""
        if self._places is not None:
            result = result.isel({tuple(self.axes)[-1]: self._places})
        for name, gone in self._dropped.items():
            result = result.isel({name: 0}, drop=gone)
        return result.transpose(*self.dims, ...)
