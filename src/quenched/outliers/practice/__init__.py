"""Theory and learner together: where the theory says that a fit cannot tell outliers from the others."""

from quenched.outliers.practice.limits import Limit, find_limit

__all__ = ["Limit", "find_limit"]
