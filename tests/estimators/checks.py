"""scikit-learn's own checks, one test for each; those that cannot apply are named with their reason and not run.

`parametrize_with_checks` runs them too, and the tracebacks of their failures take longer than all other checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def each_check(*estimators: Any, expected: Callable[[Any], Mapping[str, str]]) -> Any:
    """Parametrise a test with `estimator` and `check`.

    Args:
        *estimators: what is checked.
        expected: the names of checks that an estimator cannot pass, and why.
    """
    cases = []
    for estimator in estimators:
        reasons = expected(estimator)
        for one, check in estimator_checks_generator(estimator):
            name = check.func.__name__
            marks = [pytest.mark.xfail(reason=reasons[name], run=False)] if name in reasons else []
            cases.append(pytest.param(one, check, marks=marks, id=f"{type(estimator).__name__}-{name}"))
    return pytest.mark.parametrize(("estimator", "check"), cases)
