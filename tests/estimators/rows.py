"""Tables that tests of the fields' estimators share."""

import numpy as np


def waves(n, seed=0, noise=0.2):
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 3, n)
    return x[:, None], np.sin(4 * x) + noise * draw.normal(size=n)


def growing(n, seed=0):
    """Noise that grows with x; its interval is known."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 1, n)
    return x[:, None], np.sin(5 * x) + (0.1 + 0.6 * x) * draw.normal(size=n)


def whole_values(seed):
    """Few rows with values 0, 1 and 2, nearly on one function: what it leaves of them is 1e-10."""
    draw = np.random.RandomState(seed)
    return draw.randn(15, 10)[:, :1], draw.randint(0, 3, 15).astype(float), draw.randint(0, 5, 15)
