"""Which function is this? A description of code and data that is the same in every process and tomorrow.

A piece on disk may be used again only if the same function made it. Its name is not enough: a function is
also its bytecode, its defaults and closure, and whatever of the user's own code and constants it reaches
through its globals. Bytecode rather than source text: it is what runs (a file may have been edited since it
was imported), lambdas and functions typed at a prompt have it too, and a changed comment changes nothing.
Installed packages are trusted by name. What cannot be described is never taken for the same as anything.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import pickle
import sys
import types
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_SKIPPED = {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "_abc_impl",
            "__dataclass_fields__", "__dataclass_params__", "__slotnames__"}  # fmt: skip
"""Attributes of a class that say nothing of what it does; the last appears when an object is first pickled."""


def digest(*values: Any) -> str:
    """The SHA-256 digest of descriptions, in hexadecimal."""
    return hashlib.sha256("\n".join(describe(value) for value in values).encode()).hexdigest()


def describe(value: Any) -> str:
    """Describe code or data exactly (floats and arrays by their bytes) and stably (no addresses)."""
    return _describe(value, {})


def _describe(value: Any, seen: dict[int, Any]) -> str:
    match value:
        case enum.Enum():
            return f"enum {_name(type(value))}.{value.name}"
        case float():
            return f"float {float(value).hex()}"
        case None | bool() | int() | str() | bytes() | complex() | slice() | range() | types.EllipsisType():
            return f"{type(value).__name__} {value!r}"
        case np.ndarray() | np.generic() | jax.Array():
            return _array(value, seen)
        case tuple() | list():
            return f"{_name(type(value))} {_many(value, seen)}"
        case set() | frozenset():
            return f"set {sorted(_describe(v, seen) for v in value)}"
        case dict():
            return f"dict {sorted((_describe(k, seen), _describe(v, seen)) for k, v in value.items())}"
        case _:
            return _code_or_object(value, seen)


def _code_or_object(value: Any, seen: dict[int, Any]) -> str:
    match value:
        case functools.partial():
            return f"partial {_many((value.func, value.args, value.keywords), seen)}"
        case types.FunctionType():
            return _function(value, seen)
        case types.MethodType():
            return f"method {_many((value.__func__, value.__self__), seen)}"
        case staticmethod() | classmethod():
            return f"{type(value).__name__} {_describe(value.__func__, seen)}"
        case property():
            return f"property {_describe(value.fget, seen)}"
        case functools.cached_property():
            return f"cached property {_describe(value.func, seen)}"
        case type():
            return _class(value, seen)
        case types.ModuleType():
            return f"module {value.__name__}"
        case types.CodeType():
            return _code(value, seen)
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
        return f"object {_many((type(value), fields), seen)}"
    if hasattr(value, "__wrapped__"):  # jax.jit, jax.custom_jvp and their like
        rules = [getattr(value, rule, None) for rule in ("jvp", "fwd", "bwd")]
        return f"{_name(type(value))} {_many((value.__wrapped__, rules), seen)}"
    return _pickled(value)


def _many(values: Iterable[Any], seen: dict[int, Any]) -> str:
    return "(" + ", ".join(_describe(v, seen) for v in values) + ")"


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _array(value: Any, seen: dict[int, Any]) -> str:
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return f"key {jax.random.key_impl(value)} {_describe(jax.random.key_data(value), seen)}"
    array = np.asarray(value)
    if array.dtype.hasobject:  # its bytes are addresses
        return f"array {array.shape} {_many(array.ravel().tolist(), seen)}"
    return f"array {array.dtype.str} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _pickled(value: Any) -> str:
    try:
        return f"pickle {hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()}"
    except Exception:  # whatever an object's own pickling raises: it has no description
        return f"unknown {uuid.uuid4()}"


@functools.cache
def _installed(module: str) -> bool:
    """Whether a module is part of Python or of an installed package, whose code changes with its version."""
    root = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return root in sys.stdlib_module_names or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _code(code: types.CodeType, seen: dict[int, Any]) -> str:
    return f"code {code.co_code.hex()} {code.co_names} {_many(code.co_consts, seen)}"


def _words(code: types.CodeType) -> set[str]:
    """Every global and attribute that a piece of code, or code inside it, mentions."""
    inner = (_words(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*inner)


def _reached(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The user's own globals that a function mentions, directly or as `module.name`."""
    words, found = sorted(_words(function.__code__)), []
    for word in words:
        value = function.__globals__.get(word, None)
        if isinstance(value, types.ModuleType):
            inside = [] if _installed(value.__name__) else [w for w in words if w in vars(value)]
            found += [(f"{value.__name__}.{w}", vars(value)[w]) for w in inside]
        elif value is not None:
            found.append((word, value))
    return found


def _function(function: types.FunctionType, seen: dict[int, Any]) -> str:
    name = _name(function)
    if id(function) in seen or _installed(function.__module__ or ""):
        return f"function {name}"
    seen[id(function)] = function
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            cells.append(None)
    parts = (function.__code__, function.__defaults__, function.__kwdefaults__, cells, _reached(function))
    return f"function {name} {_many(parts, seen)}"


def _class(cls: type, seen: dict[int, Any]) -> str:
    name = _name(cls)
    if id(cls) in seen or _installed(cls.__module__):
        return f"class {name}"
    seen[id(cls)] = cls
    members = [(k, v) for k, v in sorted(vars(cls).items()) if k not in _SKIPPED]
    return f"class {name} {_many((cls.__bases__, members), seen)}"
