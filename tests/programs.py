"""How tests compile what is theirs to compile: pure functions, which users put into programs of their own."""

import functools

import jax

from quenched.core.types import QUICK

compiled = functools.partial(jax.jit, compiler_options=QUICK)
"""`jax.jit` for functions that a test calls from the host, compiled as the package compiles its own such programs."""
