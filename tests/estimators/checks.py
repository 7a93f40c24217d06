"""scikit-learn's own checks, one test for each; those that cannot pass are expected to fail, with their reason.

Unlike with `parametrize_with_checks`, such a check must fail, and its failure costs no traceback.
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
            called = _failing(check, reasons[name]) if name in reasons else check
            cases.append(pytest.param(one, called, id=f"{type(estimator).__name__}-{name}"))
    return pytest.mark.parametrize(("estimator", "check"), cases)


def _failing(check: Callable[[Any], Any], reason: str) -> Callable[[Any], None]:
    """The check, which must fail."""

    def called(estimator: Any) -> None:
        try:
            check(estimator)
        except Exception:
            failed = True
        else:
            failed = False
        assert failed, f"this check passes now, but it was expected not to: {reason}"
        pytest.xfail(reason)

    return called
