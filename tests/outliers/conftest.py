"""Curves and lines that several files look at, computed once."""

import numpy as np
import pytest

from quenched import outliers

ETAS = np.array([-2.0, 0.0, 2.0, 3.0, 3.8, 3.9, 3.95, 4.2, 6.5, 9.0, 10.5, 20.0])


@pytest.fixture(scope="session")
def soft_lines():
    return outliers.transitions(outliers.Contaminated(10.0), outliers.SoftSelection(), alpha=[5.4, 5.6, 20.0])


@pytest.fixture(scope="session")
def hard_lines():
    return outliers.transitions(outliers.Contaminated(10.0), outliers.HardSelection(), alpha=[1.0, 20.0])


@pytest.fixture(scope="session")
def soft_curve():
    return outliers.curve(outliers.Contaminated(10.0), outliers.SoftSelection(), alpha=20.0, eta=ETAS)


@pytest.fixture(scope="session")
def hard_curve():
    return outliers.curve(outliers.Contaminated(10.0), outliers.HardSelection(), alpha=20.0, eta=ETAS)
