"""The answer as the dimension goes to infinity: flows, learning curves, rest states."""

from quenched.prototypes.theory.dynamics import State, curve, error, field, state

__all__ = ["State", "curve", "error", "field", "state"]
