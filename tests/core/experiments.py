"""Experiments for `ensemble`, shared by its tests and those of its folder: one compiled program serves most of them."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.ensemble import Ensemble, ensemble

KEY = jax.random.key(7)
POINTS = [{"scale": 1.0, "shift": 0.5}, {"scale": 2.0, "shift": -1.0}, {"scale": 0.1, "shift": 1e-3}]


class Law(eqx.Module):
    scale: Any
    name: str = eqx.field(static=True, default="normal")


def smooth(key, point, *, size=20):
    x = point["scale"] * jax.random.normal(key, (size,)) + point["shift"]
    return {"mean": jnp.mean(x), "waves": jnp.sin(x[:3])}


def raises_above(key, point):
    def refuse(x, limit):
        if x > limit:
            raise ValueError("too large for me")
        return x

    x = jax.random.uniform(key)
    return {"x": jax.pure_callback(refuse, jax.ShapeDtypeStruct((), x.dtype), x, point, vmap_method="sequential")}


run = functools.partial(ensemble, smooth, KEY)
"""The usual experiment, with the usual key."""


def same(one: Ensemble, other: Ensemble) -> bool:
    """Equal to the last bit, NaN included."""
    leaves = zip(jax.tree.leaves(one.values), jax.tree.leaves(other.values), strict=True)
    return all(a.tobytes() == b.tobytes() for a, b in leaves) and bool(np.array_equal(one.failed, other.failed))


def pieces(folder) -> list:
    return sorted(folder.glob("*.piece"))
