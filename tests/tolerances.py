"""Tolerances, each with its reason. None may grow to make a test pass."""

DIGITS = 6e-6
"""Check values are printed to five digits after the point."""

MACHINE = 1e-12
"""Two ways of computing the same number in double precision, a few hundred operations apart."""

QUADRATURE = 1e-9
"""48-point Gauss-Legendre on a cut Gaussian, against an adaptive integrator."""

FLOW = 2e-7
"""Global error of the integrator at its default step accuracy of 1e-8."""

GRADIENT = 1e-6
"""Automatic against central finite differences, relative."""

FINITE_SIZE = 0.004
"""Mean overlaps of 1,000 runs at N = 200 deviate from the N -> infinity theory by less, noise included."""

P_VALUE = 1e-4
"""A joint test below this is a disagreement; keys are fixed, so it does not fluctuate."""
