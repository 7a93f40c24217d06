r"""The question: which world the prototypes live in, and by which rule they learn.

Setting: examples $\xi \in \mathbb{R}^N$ come one at a time from $M$ spherical Gaussian clusters with centres
$\lambda_k B_k$, priors $p_k$ and variances $v_k$; $K$ prototypes $w_S$ with labels compete for each example.
The winner (the nearest prototype) moves by $w_S \leftarrow w_S + (\eta/N)\, g(S, \sigma)\, (\xi - w_S)$, where $g$
is the rule: what a prototype of label $S$ does with an example of label $\sigma$. The directions $B_k$ may turn in
time, and the prototypes may decay towards the origin.

Order parameters: $R_{Sm} = w_S \cdot B_m$ and $Q_{ST} = w_S \cdot w_T$; time is $\alpha$ = examples / $N$.
The limit taken by the theory is $N \to \infty$ at fixed $\alpha$; the simulation has finite $N$.

Rules of another kind minimise an energy of all rows (`costs`); they have a learner and a simulation, and no theory.
Nothing here solves or trains. Not covered: clusters that are not spherical.
"""

from quenched.prototypes.model.costs import GLVQ, GMLVQ, RSLVQ, Cost
from quenched.prototypes.model.laws import (
    Clusters,
    Law,
    Mixture,
    TwoClusters,
    check_drift,
    draw,
    frame,
    place_centres,
    turn,
)
from quenched.prototypes.model.rules import (
    LVQ1,
    LVQ21,
    VQ,
    Decay,
    Interpolated,
    LVQPlus,
    Rule,
    Schedule,
    rate_at,
)
from quenched.prototypes.model.science import (
    SCIENCE,
    Numbers,
    check_pair,
    coordinates,
    count,
    forgets,
    numbers,
    online,
    window_of,
)
from quenched.prototypes.model.starts import NearOrigin, Overlaps, Start, start_of

__all__ = [
    "GLVQ", "GMLVQ", "LVQ1", "LVQ21", "RSLVQ", "SCIENCE", "VQ", "Clusters", "Cost", "Decay", "Interpolated", "LVQPlus",
    "Law", "Mixture", "NearOrigin", "Numbers", "Overlaps", "Rule", "Schedule", "Start", "TwoClusters", "check_drift",
    "check_pair", "coordinates", "count", "draw", "forgets", "frame", "numbers", "online", "place_centres", "rate_at",
    "start_of", "turn", "window_of",
]  # fmt: skip
