"""What holds for the claims of every paper."""

from quenched.core.figures import Verdict, comparison


def check(figures, claims):
    """Every comparison of theory and simulation has a claim that rests on it, refuted if and only if it fails."""
    found = {comparison(figure, name): one for figure in figures for name, one in figure.agreement.items()}
    resting = [claim for claim in claims if claim.rests_on]
    assert {claim.rests_on for claim in resting} == set(found)
    for claim in resting:
        assert (claim.verdict is Verdict.refuted) == (not found[claim.rests_on].passed), claim
