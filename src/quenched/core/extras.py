"""Packages that only some users need."""

from __future__ import annotations

import importlib
from types import ModuleType

from quenched.core.types import InputError


def load_extra(name: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a package that an extra installs.

    Args:
        name: the package.
        extra: the extra of quenched that installs it.
        purpose: what needs it, as the subject of a sentence.

    Raises:
        InputError: if it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise InputError(f"{purpose} needs the package {name}, which is not installed: "
                         f"pip install 'quenched[{extra}]'.") from None  # fmt: skip
