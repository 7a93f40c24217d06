"""Controls are keywords: any field of the law or the rule, a scalar fixes it, a sequence sweeps it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from quenched.core.types import NOT_NUMBERS, InputError, as_numbers


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
    for name, declared in (("law", law), ("rule", rule)):
        if not dataclasses.is_dataclass(declared) or isinstance(declared, type):
            raise InputError(f"Argument `{name}` must be a declared {name}, but {declared!r} was given.")
    fixed: dict[str, dict[str, Any]] = {"law": {}, "rule": {}}
    swept: list[tuple[str, str, str, list[Any]]] = []
    for name, value in controls.items():
        owner, field = find_owner(law, rule, name)
        declared = law if owner == "law" else rule
        values = _sequence(name, value, inner=np.ndim(getattr(declared, field)))
        if values is None:
            fixed[owner][field] = value
        else:
            swept.append((name, owner, field, values))
    laws, rules = [], []
    for combination in itertools.product(*(values for *_, values in swept)):
        changes = {"law": dict(fixed["law"]), "rule": dict(fixed["rule"])}
        for (_, owner, field, _), value in zip(swept, combination, strict=True):
            changes[owner][field] = value
        laws.append(dataclasses.replace(law, **changes["law"]))
        rules.append(dataclasses.replace(rule, **changes["rule"]))
    dims = tuple(name for name, *_ in swept)
    coords = {name: _coordinate(values) for name, _, _, values in swept}
    return Plan(dims, tuple(len(values) for *_, values in swept), coords, laws, rules)


def fields(declared: Any) -> dict[str, Any]:
    """Names and values of the fields of a law or a rule."""
    return {f.name: getattr(declared, f.name) for f in dataclasses.fields(declared)}


def value(law: Any, rule: Any, name: str) -> Any:
    """The value of a control in a law and a rule."""
    owner, field = find_owner(law, rule, name)
    return getattr(law if owner == "law" else rule, field)


def find(law: Any, rule: Any, given: Iterable[str], name: str) -> str:
    """The name among those given that means the same control, with a prefix or without; otherwise the name itself."""
    wanted = find_owner(law, rule, name)
    return next((one for one in given if find_owner(law, rule, one) == wanted), name)


def find_owner(law: Any, rule: Any, name: str) -> tuple[str, str]:
    """Whether a control belongs to the law or the rule, and its field."""
    of_law, of_rule = fields(law), fields(rule)
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


def _coordinate(values: list[Any]) -> np.ndarray:
    """The coordinate of a swept control: its numbers, or their place for values that are not single numbers."""
    scalar = all(isinstance(v, float) for v in values)
    return np.asarray(values) if scalar else np.arange(len(values))
