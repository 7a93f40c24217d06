"""The question: grid, operators, links, likelihoods and priors."""

from quenched.fields.model.laws import SCIENCE

__all__ = ["SCIENCE"]
