"""Tolerances that recur, each with its reason. None may grow to make a test pass.

A tolerance that only one file needs stands at the top of that file, under another name than these.
"""

MACHINE = 1e-12
"""Two ways of computing the same number in double precision, a few hundred operations apart."""

ALGEBRA = 1e-10
"""Two ways of the same linear algebra, or sums of about a thousand terms in another order."""

SAME = 1e-9
"""The same number by two routes, each with an iteration, a quadrature or some thousand steps in it."""

QUADRATURE = 1e-9
"""48-point Gauss-Legendre on a cut Gaussian, against an adaptive integrator."""

EXACT = 1e-8
"""An iterative solver against a closed form, or against another library."""

FLOW = 2e-7
"""Global error of the integrator at its default step accuracy of 1e-8."""

GRADIENT = 1e-6
"""Automatic against central finite differences, relative."""

PRINTED = 5e-6
"""Half a unit in the last of five printed digits after the point."""

DIGITS = 6e-6
"""The same, with the rounding of the number that is printed."""

FIXED_POINT = 5e-6
"""EM stops when it gains less than 1e-12 of the level, which is quadratic in the distance that is left."""

MINIMUM = 1e-5
"""One minimum reached from two starts."""

FINITE_SIZE = 0.004
"""Mean overlaps of 1,000 runs at N = 200 deviate from the N -> infinity theory by less, noise included."""

P_VALUE = 1e-4
"""A joint test below this is a disagreement; keys are fixed, so it does not fluctuate."""
