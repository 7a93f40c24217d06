"""NIFTy's side: a log-normal field with Poisson counts, by geometric variational inference."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.tasks import PLACES

BINS, ITERATIONS, SAMPLES = 256, 5, 4


def variational() -> tuple[str, Callable[[tuple, dict], Any]]:
    """Counts in bins; the log-density is a correlated field whose spectrum is inferred, too. Priors are not tuned."""
    import jax
    import jax.numpy as jnp
    import nifty.re as jft  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)

    class Expected(jft.Model):
        """Expected counts."""

        def __init__(self, field: Any, scale: float):
            self.field, self.scale = field, scale
            super().__init__(init=field.init)

        def __call__(self, x: Any) -> Any:
            return self.scale * jnp.exp(self.field(x))

    kept: dict[bytes, Any] = {}

    def prepared(rows: np.ndarray) -> tuple:
        """The model of these rows, with what it compiles; a second call with the same rows finds it again."""
        pad = 0.25 * np.ptp(rows)  # the field is periodic
        counts, edges = np.histogram(rows, BINS, (rows.min() - pad, rows.max() + pad))
        maker = jft.CorrelatedFieldMaker("field")
        maker.set_amplitude_total_offset(offset_mean=-3.0, offset_std=(2.0, 1.0))
        maker.add_fluctuations(
            BINS, distances=1 / BINS, fluctuations=(3.0, 1.5), loglogavgslope=(-4.0, 1.0), flexibility=(1.0, 0.5),
            asperity=(0.5, 0.25), prefix="x", non_parametric_kind="power",
        )  # fmt: skip
        expected = Expected(maker.finalize(), len(rows) * (edges[1] - edges[0]))
        likelihood = jft.Poissonian(jnp.asarray(counts)).amend(expected)
        return edges, expected, likelihood, jft.OptimizeVI(likelihood, ITERATIONS, linear_minimizer_jit=False)

    def work(data: tuple, case: dict) -> np.ndarray:
        rows = data[0]
        which = rows.tobytes()
        if which not in kept:
            kept[which] = prepared(rows)
        edges, expected, likelihood, optimise = kept[which]
        start, key = jax.random.split(jax.random.key(0))
        newton = {"name": None, "xtol": 1e-4, "cg_kwargs": {"name": None}}
        centre = jft.Samples(pos=0.1 * jft.Vector(likelihood.init(start)), samples=None, keys=None)
        samples, _ = optimise.run(
            centre, key, n_samples=SAMPLES, sample_mode="nonlinear_resample",
            draw_linear_kwargs={"cg_name": None, "cg_kwargs": {"absdelta": 1e-5 * BINS, "maxiter": 100}},
            nonlinearly_update_kwargs={"minimize_kwargs": {**newton, "maxiter": 5}},
            kl_kwargs={"minimize_kwargs": {**newton, "maxiter": 35}},
        )  # fmt: skip
        counts = np.mean([np.asarray(expected(s)) for s in samples], axis=0)
        middle, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
        return np.interp(PLACES, middle, counts / len(rows) / width, left=0.0, right=0.0)

    return f"NIFTy {version('nifty')}", work


MODELS = {"re, geoVI, 256 bins, 5 iterations": variational}
