"""The question: grid, operators, links, likelihoods and priors."""
