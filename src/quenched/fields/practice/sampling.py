r"""Draws from posteriors by samplers, with the evidence that they can be trusted.

`NUTS` is the no-U-turn sampler of blackjax, in the coordinates of Laplace's Gaussian (see
`quenched.fields.practice.target`): that is its start and its preconditioner, and in regression with Gaussian noise its
answer. Chains begin at independent draws from that Gaussian, under different alternatives if there are some. Draws
count as converged only if the rank-normalised split R-hat of the field at every point and of the energy is at most
`RHAT`, effective sample sizes of bulk and tails are at least `SIZE` for each chain, and no trajectory diverged.
[hoffman2014; vehtari2021]

Hyperparameters and alternatives are summed over, exactly on their grid, while the field moves, and are drawn
given the field afterwards: there is no funnel. That helps chains across strengths; it does not take them from one
template to another, if the posterior has several maxima. R-hat then says so, and `Tempered` is the method.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import chains as diagnostics
from quenched.core import checks, results
from quenched.core.random import normals, split, uniforms
from quenched.core.system import load_extra
from quenched.core.types import QUICK, Array, Key, Outcome, double, outcome_names
from quenched.fields.model.problem import Problem
from quenched.fields.practice.posteriors import PosteriorDraws
from quenched.fields.practice.settings import Setting
from quenched.fields.practice.target import Target, Whitened, approximate, open_settings, whiten

RHAT, SIZE = 1.01, 100
"""The largest R-hat, and the least effective sample size for each chain, of draws that can be trusted. [vehtari2021]"""
BLOCK = 50
"""Draws of one call of the compiled program: their number is no part of it."""
DRAWS, CHAINS, LONGER = 400, 4, 3
"""For a calibration: draws of each chain at first, chains, and how often they are repeated at most, with twice
as many draws or shorter steps."""
LIKELY = 1e-3
"""Alternatives with a smaller share are no start of a chain."""


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What a sampler did.

    Attributes:
        z: coordinates of the draws `[chains, draws, m]`.
        energy: of each draw `[chains, draws]`.
        divergences: trajectories that left the posterior.
        sizes: effective sample sizes of each chain that cap those of the draws, or None.
        facts: numbers of the method, as variables of the result.
    """

    z: np.ndarray
    energy: np.ndarray
    divergences: int
    sizes: np.ndarray | None = None
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)


class Sampler(PosteriorDraws):
    """A sampler of posteriors in whitened coordinates."""

    pooled = True  # whether coordinates are those of all alternatives together

    @abc.abstractmethod
    def run(self, posterior: Whitened, key: Key, draws: int, chains: int) -> Run:
        """Draw coordinates.

        Args:
            posterior: from which.
            key: of all draws.
            draws: of each chain.
            chains: that know nothing of each other.
        """

    def careful(self) -> Sampler:
        """The same with shorter steps, for another attempt after trajectories have diverged."""
        return self

    def draw(self, problem: Problem, key: Key, count: int) -> tuple[np.ndarray, Outcome]:
        """See `PosteriorDraws`: as many draws as it takes, of which some are kept, evenly spaced."""
        fields, _, outcome = self.draw_among([Setting(problem, 1.0, None)], key, count)
        return fields, outcome

    def draw_among(self, settings: list[Setting], key: Key, count: int) -> tuple[np.ndarray, np.ndarray, Outcome]:
        """See `PosteriorDraws`: all settings together."""
        fields, at, outcome, _ = self.draw_from(whiten(approximate(settings), pooled=self.pooled), key, count)
        return fields, at, outcome

    def draw_from(
        self, posterior: Whitened, key: Key, count: int, *, energy: bool = True
    ) -> tuple[np.ndarray, np.ndarray, Outcome, Run]:
        """Fields, their settings, whether they can be trusted, and the run: repeated with more draws or care if not.

        Args:
            posterior: from which.
            key: of all draws.
            count: how many fields are returned.
            energy: whether the draws of the energy, which are the least independent ones, are judged as well.
        """
        each, sampler, attempt = max(DRAWS, -(-count // CHAINS)), self, 0
        while True:
            run = sampler.run(posterior, jax.random.fold_in(key, attempt), each, CHAINS)
            outcome = outcome_of(diagnose(posterior, run, energy=energy))
            if outcome is Outcome.converged or attempt == LONGER:
                break
            attempt += 1
            if outcome is Outcome.diverged:
                sampler = sampler.careful()
            else:
                each *= 2
        fields, at = _assigned(posterior, run.z, jax.random.fold_in(key, LONGER + 1))
        order = np.swapaxes(np.arange(fields.shape[0] * fields.shape[1]).reshape(fields.shape[:2]), 0, 1).ravel()
        kept = order[np.linspace(0, len(order) - 1, count).astype(int)]
        shape = posterior.gaussians.problem.grid.shape
        return fields.reshape(-1, *shape)[kept], at.ravel()[kept], outcome, run


@dataclasses.dataclass(frozen=True)
class NUTS(Sampler):
    """The no-U-turn sampler, begun at Laplace's Gaussian and preconditioned by it.

    Attributes:
        warmup: draws of each chain that find the step, and are dropped.
        acceptance: the mean acceptance to which the step is set.
        doublings: of a trajectory, at most.

    Examples:
        >>> from quenched import fields
        >>> method = fields.NUTS(acceptance=0.9)
    """

    warmup: int = 200
    acceptance: float = 0.8
    doublings: int = 8

    def __post_init__(self):
        checks.whole("warmup", self.warmup, least=1)
        checks.inside("acceptance", checks.number("acceptance", self.acceptance), 0, 1)
        checks.whole("doublings", self.doublings, least=1)

    def careful(self) -> NUTS:
        """See `Sampler`."""
        return dataclasses.replace(self, acceptance=(1 + self.acceptance) / 2)

    def run(self, posterior: Whitened, key: Key, draws: int, chains: int) -> Run:
        """See `Sampler`."""
        require_sampler()
        start, moves = split(key, 2)
        z = jnp.asarray(starts(posterior, start, chains))
        m = z.shape[1]
        state = _begin(posterior.target, z, 0.5 * m**-0.25)
        found, target = [], float(self.acceptance)
        warm = -(-self.warmup // BLOCK)
        for block in range(warm + -(-draws // BLOCK)):
            keys = jax.random.fold_in(moves, block)
            state, out = _advance(posterior.target, state, keys, target, block < warm, self.doublings)
            if block >= warm:
                found.append([np.asarray(part) for part in out])
        z, energy, divergent, accepted, leaps = (np.concatenate(part)[:draws] for part in zip(*found, strict=True))
        facts = {"step": float(np.exp(state[1].log_step_size_avg)), "acceptance": float(accepted.mean()),
                 "leaps": float(leaps.mean())}  # fmt: skip
        return Run(np.swapaxes(z, 0, 1), np.swapaxes(energy, 0, 1), int(divergent.sum()), None, facts)


def require_sampler() -> Any:
    """blackjax, or a sentence."""
    return load_extra("blackjax", extra="sampling", purpose="Posterior sampling")


def starts(posterior: Whitened, key: Key, chains: int) -> np.ndarray:
    """Coordinates of independent draws, from Laplace's Gaussians under the most probable alternatives in turn."""
    gaussians = posterior.gaussians
    if len(gaussians.settings) == 1:
        return normals(key, chains, len(posterior.roots))
    likely = np.argsort(-gaussians.shares, kind="stable")[: int(np.sum(gaussians.shares > LIKELY))]
    fields = []
    for c in range(chains):
        j = int(likely[c % len(likely)])
        roots = gaussians.roots[j]
        fields.append(gaussians.fields[j] + normals(jax.random.fold_in(key, c), len(roots)) @ roots)
    return posterior.coordinates(np.array(fields))


def _adaptation(acceptance: Any) -> Any:
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return dual_averaging_adaptation(acceptance)


@functools.partial(jax.jit, compiler_options=QUICK)
def _begin(target: Target, z: Array, step: Any) -> Any:
    """States of chains at some places, and of the search for the step."""
    from blackjax.mcmc import hmc

    log = lambda x: -target.energy(x)  # noqa: E731
    return jax.vmap(lambda x: hmc.init(x, log))(z), _adaptation(0.8)[0](step)


@functools.partial(jax.jit, static_argnames=("doublings",), compiler_options=QUICK)
def _advance(target: Target, state: Any, key: Key, acceptance: Any, adapting: Any, doublings: int) -> Any:
    """One block: places, energies, divergences, acceptance and leaps of all chains `[draws, chains, ...]`."""
    from blackjax.mcmc import nuts

    kernel: Any = nuts.build_kernel()
    _, update, _ = _adaptation(acceptance)
    log = lambda x: -target.energy(x)  # noqa: E731

    def move(carry: Any, key: Key) -> Any:
        chains, search = carry
        m = chains.position.shape[1]
        step = jnp.exp(jnp.where(adapting, search.log_step_size, search.log_step_size_avg))
        keys = jax.random.split(key, len(chains.position))
        chains, info = jax.vmap(lambda k, one: kernel(k, one, log, step, jnp.ones(m), doublings))(keys, chains)
        rate = jnp.nan_to_num(info.acceptance_rate)
        after = update(search, jnp.mean(rate))
        search = jax.tree.map(lambda new, old: jnp.where(adapting, new, old), after, search)
        out = chains.position, -chains.logdensity, info.is_divergent, rate, info.num_integration_steps
        return (chains, search), out

    return jax.lax.scan(move, state, jax.random.split(key, BLOCK))


def diagnose(posterior: Whitened, run: Run, *, energy: bool = True) -> dict[str, Any]:
    """R-hat and effective sample sizes of the field at each point and of the energy, and divergences."""
    chains, draws = run.energy.shape
    if not np.all(np.isfinite(run.z)) or not np.all(np.isfinite(run.energy)):
        count = len(posterior.mean)
        return {"rhat": np.full(count + 1, np.nan), "bulk": np.zeros(count + 1), "tail": np.zeros(count + 1),
                "divergences": run.divergences, "chains": chains}  # fmt: skip
    fields = posterior.fields(run.z).reshape(chains, draws, -1)
    each = seen_by_data(posterior, fields)
    if energy:
        each = np.concatenate([each, run.energy[..., None]], axis=-1)
    cap = np.inf if run.sizes is None else float(np.sum(run.sizes))
    return {"rhat": diagnostics.split_rhat(each), "bulk": np.minimum(diagnostics.bulk_size(each), cap),
            "tail": np.minimum(diagnostics.tail_size(each), cap), "divergences": run.divergences,
            "chains": chains}  # fmt: skip


def seen_by_data(posterior: Whitened, fields: np.ndarray) -> np.ndarray:
    """Fields `[..., points]` as they are reported: log-densities are normalised, others are as they are."""
    link, grid = posterior.gaussians.problem.link, posterior.gaussians.problem.grid
    if not link.exponential or link.linear:
        return fields
    g = fields.reshape(-1, *grid.blocks)
    log_weights = np.log(np.broadcast_to(grid.weights, grid.shape).reshape(grid.blocks)[:1])
    top = g.max(axis=2, keepdims=True)
    return (g - top - np.log(np.sum(np.exp(g - top + log_weights), axis=2, keepdims=True))).reshape(fields.shape)


def outcome_of(found: dict[str, Any]) -> Outcome:
    """Converged only if nothing speaks against it."""
    if not np.all(np.isfinite(found["rhat"])):
        return Outcome.failed
    if found["divergences"]:
        return Outcome.diverged
    enough = min(found["bulk"].min(), found["tail"].min()) >= SIZE * found["chains"]
    return Outcome.converged if enough and found["rhat"].max() <= RHAT else Outcome.stalled


def _assigned(posterior: Whitened, z: np.ndarray, key: Key) -> tuple[np.ndarray, np.ndarray]:
    """Fields as they are reported, flattened, and the setting of each, drawn given the field."""
    flat = posterior.fields(z).reshape(*z.shape[:-1], -1)
    fields, many = seen_by_data(posterior, flat), len(posterior.gaussians.settings)
    if many == 1:
        return fields, np.zeros(z.shape[:-1], dtype=int)
    a = np.asarray(_responsibilities(posterior.target, jnp.asarray(z.reshape(-1, z.shape[-1]))))
    u = uniforms(key, len(a))
    at = np.minimum(np.sum(np.cumsum(a, axis=1) < u[:, None], axis=1), many - 1)
    return fields, at.reshape(z.shape[:-1])


@functools.partial(jax.jit, compiler_options=QUICK)
def _responsibilities(target: Target, z: Array) -> Array:
    """The probability of each setting given the field `[draws, settings]`."""
    prior: Any = target.prior
    return jax.vmap(lambda x: jax.nn.softmax(prior.log_weights - prior.energies(target.about(x))))(z)


def verdict_of(found: dict[str, Any], outcome: Outcome, draws: int) -> str:
    """The diagnosis as a sentence."""
    chains, divergences = found["chains"], found["divergences"]
    if outcome is Outcome.failed:
        return "the draws are NOT to be trusted: some are not finite"
    numbers = (f"R-hat is at most {found['rhat'].max():.3f}, effective sample sizes are at least "
               f"{found['bulk'].min():.0f} in the bulk and {found['tail'].min():.0f} in the tails of {chains * draws} "
               f"draws in {chains} chains")  # fmt: skip
    if divergences:
        return f"the draws are NOT to be trusted: {divergences} trajectories diverged; {numbers}"
    return f"the chains agree: {numbers}" if outcome is Outcome.converged else (
        f"the draws are NOT to be trusted: chains disagree, or are too short; {numbers}")  # fmt: skip


@double
def sample(
    problem: Problem, *, key: Any, draws: int = 1000, chains: int = 4, method: Sampler | None = None
) -> xr.Dataset:
    r"""Draw fields from the posterior of a problem.

    Args:
        problem: likelihood x link x prior, on a grid of moderate size: up to a few hundred points. Its prior may have
            alternatives, `a | b`, or a hyperparameter, `Hyper`, which are drawn with the field.
        key: a JAX key.
        draws: of each chain, at least 4.
        chains: at least 2, begun at independent places.
        method: `NUTS()`, the default, or `Tempered()` for alternatives that leave several maxima.

    Returns:
        `field` over `chain`, `draw` and the axes of the grid (log-densities are normalised; under `Logits` it is $g$);
        `density` of densities; `energy`; `alternative` and `hyperparameter` where they are open. `rhat`, `bulk_size`
        and `tail_size` over the axes, those of the energy as `energy_rhat` and so on; `divergences`. `outcome`
        is "converged" only if all of them allow it, and the attribute `verdict` says why as a sentence.

    Raises:
        InputError: for a posterior of other than free fields, an improper hyperprior, or other bad input.

    Examples:
        >>> import jax
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=12)])
        >>> prior = fields.Gaussian(0.1 * fields.Laplacian(grid))
        >>> problem = fields.Problem(fields.DensityData([0.2, 0.3, 0.4]), fields.LogDensity(grid), prior)
        >>> found = fields.sample(problem, key=jax.random.key(0), draws=500)
        >>> found.field.dims, str(found.outcome.values)
        (('chain', 'draw', 'axis_0'), 'converged')
    """
    checks.kind("problem", problem, Problem, "a Problem")
    key = checks.key(key)
    draws, chains = checks.whole("draws", draws, least=4), checks.whole("chains", chains, least=2)
    method = NUTS() if method is None else method
    checks.kind("method", method, Sampler, "a sampler such as NUTS()")
    settings = open_settings(problem)
    posterior = whiten(approximate(settings), pooled=method.pooled)
    moves, after = split(key, 2)
    run = method.run(posterior, moves, draws, chains)
    return _gather(posterior, run, after, method, {"seed": results.seed(key)})


def axes_of(problem: Problem) -> dict[str, np.ndarray]:
    """Names and coordinates of the axes of the grid."""
    found: dict[str, np.ndarray] = {}
    for i, axis in enumerate(problem.grid.axes):
        plain = axis.name and axis.name not in found and axis.name not in ("chain", "draw")
        found[axis.name if plain else f"axis_{i}"] = axis.coordinates
    return found


def _gather(posterior: Whitened, run: Run, key: Key, method: Sampler, facts: dict[str, Any]) -> xr.Dataset:
    """The result."""
    problem, settings = posterior.gaussians.problem, posterior.gaussians.settings
    chains, draws = run.energy.shape
    found = diagnose(posterior, run)
    outcome = outcome_of(found)
    fields, at = _assigned(posterior, run.z, key)
    axes, each, shape = axes_of(problem), ("chain", "draw"), problem.grid.shape
    data: dict[str, Any] = {"field": ((*each, *axes), fields.reshape(chains, draws, *shape)),
                            "energy": (each, run.energy)}  # fmt: skip
    if problem.link.exponential:
        logs = fields if not problem.link.linear else _normalised(posterior, fields)
        data["density"] = ((*each, *axes), np.exp(logs).reshape(chains, draws, *shape))
    if len(settings) > 1:
        theta = np.array([np.nan if one.theta is None else one.theta for one in settings])
        known = np.all(np.isfinite(theta))
        data["hyperparameter" if known else "alternative"] = (each, theta[at] if known else at)
    for name, values in (("rhat", found["rhat"]), ("bulk_size", found["bulk"]), ("tail_size", found["tail"])):
        data[name] = (tuple(axes), values[:-1].reshape(shape))
        data[f"energy_{name}"] = ((), values[-1])
    data |= {"divergences": ((), run.divergences), "outcome": ((), outcome_names(np.array(outcome)))}
    data |= {name: value if isinstance(value, tuple) else ((), value) for name, value in run.facts.items()}
    about = results.provenance(
        "fields", source="posterior draws", method=results.describe(method), problem=type(problem.likelihood).__name__,
        link=type(problem.link).__name__, rows=problem.likelihood.total, verdict=verdict_of(found, outcome, draws),
        **facts,
    )  # fmt: skip
    return xr.Dataset(data, {"chain": np.arange(chains), "draw": np.arange(draws)} | axes, about)


def _normalised(posterior: Whitened, fields: np.ndarray) -> np.ndarray:
    """Log-densities of logits."""
    grid = posterior.gaussians.problem.grid
    flat = fields.reshape(-1, *grid.shape)
    return np.array([one - posterior.gaussians.problem.log_integral(one) for one in flat]).reshape(fields.shape)
