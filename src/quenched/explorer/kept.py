"""First answers of an earlier start, shown at once while what computes them is still being imported.

They are kept for the very files of the package that gave them, and for the versions of the libraries below.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.resources
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy")
"""Libraries on whose versions numbers may depend."""


def name_of(view: str, state: Mapping[str, Any]) -> str:
    """A question as text: the same for 8 and 8.0, and in whatever order the state is given."""
    return json.dumps([view, _plain(state)], sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else value


def _identity() -> str:
    """What the answers depend on; file times stand for their content, which would take longer to read."""
    top = Path(str(importlib.resources.files("quenched")))
    files = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(top.rglob("*.py"))]
    versions = [importlib.metadata.version(name) for name in LIBRARIES]
    return hashlib.sha256(repr((files, versions)).encode()).hexdigest()


class Kept:
    """The answers in a file; without it, or with one of other code, there are none.

    Attributes:
        about: what the page has to know, None if that is not kept.
    """

    def __init__(self, path: Path):
        self.path, self.about, self._answers = path, None, {}
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["identity"] == _identity():
                self.about, self._answers = found["about"], dict(found["answers"])

    def find(self, view: str, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a question, if it is kept."""
        return self._answers.get(name_of(view, state))

    def write(self, about: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
        """Keep answers for the next start; where that is not possible, the next start is slower, and that is all."""
        text = json.dumps({"identity": _identity(), "about": about, "answers": answers}, allow_nan=False)
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self.path.parent, delete=False) as part:
                part.write(text)
            os.replace(part.name, self.path)
