"""How tests compile what is theirs to compile: pure functions, which users put into programs of their own.

Programs of the package are compiled as they are for users.
"""

import functools

import jax

from quenched.core.types import QUICK

QUICKEST = QUICK and QUICK | {"xla_backend_optimization_level": 0}
"""A fifth of the compiler's time; the program takes twice as long, which is nothing for a few points."""

compiled = functools.partial(jax.jit, compiler_options=QUICKEST)
"""`jax.jit` for functions of a test that are called from the host."""
