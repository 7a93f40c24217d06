"""The view of an energy of one's own: a formula in the field of one example, and what a learner that minimises it does.

A formula is read, not run: only numbers, y and Q, the four operations, powers and a few functions may occur in it.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched import replica
from quenched.core.types import InputError, double
from quenched.explorer.answers import Answer, Knob, Spaced, State, evaluate, plain, turn, write

KNOBS = (
    Knob("alpha", "examples per dimension, at most", "α", 1.0, 50.0, 10.0, log=True),
    Knob("separation", "distance of the classes from the middle", "m", 0.2, 4.0, 1.5),
    Knob("ridge", "strength of the ridge", "λ", 0.01, 10.0, 1.0, log=True),
)
ENERGIES = {"logistic": "softplus(-y)", "hinge": "maximum(0, 1 - y)", "least squares": "(1 - y)**2 / 2",
            "smooth step": "1 - tanh(y)", "exponential": "exp(-y)"}  # fmt: skip
"""Formulas that are offered."""
FUNCTIONS: dict[str, tuple[int, Callable[..., Any], str]] = {
    "exp": (1, jnp.exp, "jnp.exp"), "log": (1, jnp.log, "jnp.log"), "sqrt": (1, jnp.sqrt, "jnp.sqrt"),
    "tanh": (1, jnp.tanh, "jnp.tanh"), "abs": (1, jnp.abs, "jnp.abs"), "cos": (1, jnp.cos, "jnp.cos"),
    "softplus": (1, jax.nn.softplus, "jax.nn.softplus"), "sigmoid": (1, jax.nn.sigmoid, "jax.nn.sigmoid"),
    "maximum": (2, jnp.maximum, "jnp.maximum"), "minimum": (2, jnp.minimum, "jnp.minimum"),
}  # fmt: skip
"""Functions of a formula: how many arguments they take, what they are, and their names in Python."""
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
KINKED = ("abs", "maximum", "minimum")
LONGEST = 120
"""Characters of a formula."""
LARGEST = 6.0
"""Of exponents, in absolute value."""
TRIED = (-8.0, -1.25, 0.5, 2.0, 8.0)
"""Fields at which is seen whether something is linear."""
SHOWN = np.linspace(-3.0, 3.0, 121)
"""Fields at which an energy is drawn."""
LOW, POINTS = 0.1, 61
"""The first sample size of a curve, and how many there are."""
TIE = 1e-9
"""Free energies that differ by less are those of mirror images, of which the one that sees the truth is shown."""
READINGS = ("cosine", "R", "Q", "free_energy", "stability")


class Energy(NamedTuple):
    """A formula that was read: the function, its Python and the fields at which it has a kink."""

    function: Callable[[Any, Any], Any]
    source: str
    kinks: tuple[float, ...]


class Formula(eqx.Module):
    """A formula that was checked, as a function."""

    text: str = eqx.field(static=True)

    def __call__(self, y: Any, Q: Any) -> Any:
        """The energy of one field."""
        return _value(_tree(self.text), {"y": y, "Q": Q})


class Ridge(eqx.Module):
    """The ridge, with its strength as a number that may change without another compilation."""

    strength: float

    def __call__(self, R: Any, Q: Any) -> Any:
        """Its part of what is minimised, over the dimension."""
        return 0.5 * self.strength * Q


def describe() -> dict[str, Any]:
    """What the page has to know."""
    return {"knobs": [vars(k) for k in KNOBS], "energies": ENERGIES, "functions": list(FUNCTIONS), "longest": LONGEST}


@functools.lru_cache(maxsize=64)
def read(formula: str) -> Energy:
    """Read a formula.

    Raises:
        InputError: for anything but an energy.
    """
    if not formula.strip() or len(formula) > LONGEST:
        raise InputError(f"An energy must have 1 to {LONGEST} characters, but it has {len(formula.strip())}.")
    try:
        tree = ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"An energy must be a formula such as softplus(-y), but {formula!r} is none.") from None
    _check(tree)
    source = f"lambda y, Q: {ast.unparse(_Named().visit(ast.parse(ast.unparse(tree))))}"
    function = Formula(ast.unparse(tree))
    try:
        function(0.5, 1.0)
        found = Energy(function, source, _kinks(tree))
        shape = draw(function)
    except ArithmeticError as error:
        raise InputError(f"An energy must have a value, but {formula!r} has none ({error}).") from None
    if not np.all(np.isfinite(shape)):
        bad = SHOWN[~np.isfinite(shape)][0]
        raise InputError(f"An energy must be finite, but {formula!r} is not at y = {bad:.3g}.")
    if np.ptp(shape) <= 1e-12 * np.abs(shape).max():
        raise InputError(f"An energy must depend on the field y, but {formula!r} does not.")
    return found


@double
def draw(function: Callable[[Any, Any], Any]) -> np.ndarray:
    """The values of an energy at the fields that are shown."""
    return np.broadcast_to(np.asarray(function(jnp.asarray(SHOWN), jnp.asarray(1.0)), float), SHOWN.shape)


def _check(node: ast.AST) -> None:
    """Check that a part of a formula is one that may occur."""
    match node:
        case ast.BinOp(left, ast.Pow(), right):
            signed = isinstance(right, ast.UnaryOp) and isinstance(right.op, (ast.USub, ast.UAdd))
            power: Any = right.operand if signed else right  # pyright: ignore[reportAttributeAccessIssue]
            if not (isinstance(power, ast.Constant) and _is_small(power.value)):
                raise InputError(f"An exponent must be a number from -{LARGEST:g} to {LARGEST:g}, but it is "
                                 f"{ast.unparse(right)}.")  # fmt: skip
            _check(left)
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right):
            _check(left)
            _check(right)
        case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
            _check(operand)
        case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS and len(arguments) == FUNCTIONS[name][0]:
            for one in arguments:
                _check(one)
        case ast.Name("y" | "Q"):
            pass
        case ast.Constant(value) if _is_number(value):
            pass
        case _:
            raise InputError(f"An energy must be made of y, Q, numbers, + - * / ** and {', '.join(FUNCTIONS)}, but "
                             f"it has {ast.unparse(node)!r}.")  # fmt: skip


def _is_small(value: Any) -> bool:
    return _is_number(value) and value <= LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@functools.lru_cache(maxsize=256)
def _tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _value(node: ast.expr, at: dict[str, Any]) -> Any:
    """The value of a part of a formula that was checked; whole numbers are real ones, which do not grow without end."""
    match node:
        case ast.BinOp(left, ast.Pow(), right):
            value = _value(left, at) ** ast.literal_eval(right)
            if isinstance(value, complex):
                raise ArithmeticError("root of a negative number")
            return value
        case ast.BinOp(left, op, right):
            return OPERATIONS[type(op)](_value(left, at), _value(right, at))
        case ast.UnaryOp(op, operand):
            return -_value(operand, at) if isinstance(op, ast.USub) else _value(operand, at)
        case ast.Call(ast.Name(name), arguments):
            return FUNCTIONS[name][1](*(_value(one, at) for one in arguments))
        case ast.Name(name):
            return at[name]
    return float(ast.literal_eval(node))


class _Named(ast.NodeTransformer):
    """Functions by their names in Python."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace the name of a function."""
        return ast.Name(FUNCTIONS[node.id][2] if node.id in FUNCTIONS else node.id)


@double
def _kinks(tree: ast.expr) -> tuple[float, ...]:
    """The fields at which a formula has a kink; they are found where what meets there is linear in the field."""
    found = set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINKED):
            continue
        first, *rest = node.args
        difference = Formula(ast.unparse(ast.BinOp(first, ast.Sub(), rest[0]) if rest else first))
        at, again = (np.array([float(difference(y, Q)) for y in TRIED]) for Q in (1.0, 2.0))
        slope = (at[-1] - at[0]) / (TRIED[-1] - TRIED[0])
        line = at[0] + slope * (np.array(TRIED) - TRIED[0])
        if slope == 0 or not np.allclose([at, again], line, rtol=0, atol=1e-9 * np.abs(line).max()):
            raise InputError(f"What meets in {ast.unparse(node)!r} must be linear in y, but it is not.")
        found.add(float(TRIED[0] - at[0] / slope) + 0.0)
    return tuple(sorted(found))


def asked(state: State) -> Energy:
    """The energy that is asked about."""
    formula = state.get("formula", ENERGIES["logistic"])
    if not isinstance(formula, str):
        raise InputError(f"An energy must be a formula such as softplus(-y), but {formula!r} was given.")
    return read(formula)


def declare(found: Energy, at: Mapping[str, float]) -> str:
    """The lines of Python that declare the problem."""
    kinks = f", kinks={write(found.kinks)}" if found.kinks else ""
    return ("import jax, jax.numpy as jnp, numpy as np\nfrom quenched import replica\n"
            f"problem = replica.Problem({found.source}, replica.Classes(means={at['separation']!r}),\n"
            f"                          lambda R, Q: 0.5 * {at['ridge']!r} * Q{kinks})")  # fmt: skip


def energy(state: State) -> Answer:
    """What a learner does that minimises an energy of one's own, over the number of examples."""
    found, at = asked(state), turn(KNOBS, state.get("knobs", {}))
    problem = replica.Problem(found.function, replica.Classes(means=at["separation"]), Ridge(at["ridge"]),
                              kinks=found.kinks)  # fmt: skip
    alpha = Spaced(LOW, at["alpha"], POINTS, log=True)
    curve: Any = replica.curve(problem, alpha=evaluate(alpha), branches=True)
    if not curve.sizes["branch"]:
        raise InputError(f"The theory must have a state to be followed, but it found none up to α = {at['alpha']:g}.")
    script = (f"{declare(found, at)}\ncurve = replica.curve(problem, alpha={write(alpha)}, branches=True)\n"
              f"least = curve.free_energy <= curve.free_energy.min('branch') + {TIE!r}\n"
              "print(curve.cosine.where(least).max('branch').values)")  # fmt: skip
    level = np.where(curve["outcome"].values.astype(str) == "converged", curve["free_energy"].values, np.inf)
    least = np.isfinite(level) & (level <= level.min(axis=1, keepdims=True) + TIE)
    best = np.argmax(np.where(least, curve["cosine"].values, -np.inf), axis=1)[:, None]
    there = np.take_along_axis(least, best, 1)[:, 0]
    of = {name: np.take_along_axis(curve[name].values, best, 1)[:, 0] for name in READINGS}
    readings = {name: plain(np.where(there, values, np.nan)) for name, values in of.items()}
    return Answer({"x": plain(curve["alpha"].values), "broken": plain(there & ~(of["stability"] <= 1)),
                   "lost": sorted({str(o) for o in curve["outcome"].values[~there].ravel()}),
                   "field": plain(SHOWN), "energy": plain(draw(found.function))} | readings, script, curve)  # fmt: skip
