"""The potential of two particles that repel each other, from measured positions.

A thousand times two particles are put into an unknown well, and the position of one of them is measured. Each moves in
the well and in the mean field of the other (Hartree's approximation). Whoever leaves the interaction out takes the
repulsion for part of the well, which then looks too flat at its bottom.

    python examples/two_particles.py
"""

import jax
import numpy as np

from quenched import fields

axis = fields.Axis(-6, 6, points=81, name="y")
grid, y = fields.Grid(given=[axis]), axis.coordinates
both = fields.Hartree(lambda distance: 3 * np.exp(-(distance**2)), particles=2)
law = fields.TruePotential(grid, fields.Harmonic(frequency=1.0), both)
positions = law.sample(jax.random.key(0), 1000)
prior = fields.Gaussian(0.3 * fields.Laplacian(grid) + 0.001 * fields.Mass(grid), mean=y**2 / 2)

errors = {}
for name, state in {"with the interaction": both, "without": fields.Ground()}.items():
    problem = fields.Problem(fields.PositionData(positions, state), fields.Direct(grid), prior)
    off = fields.solve(problem).field - law.potential
    off = off - np.average(off, weights=law.density)  # positions do not see a constant
    errors[name] = float(np.sqrt(np.average(off**2, weights=law.density)))
    print(f"error of the potential {name}: {errors[name]:.2f}")
