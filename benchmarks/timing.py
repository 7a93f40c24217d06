"""How work is timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def cpu(work: Callable[[], Any], warm: int = 1) -> tuple[float, Any]:
    """Processor seconds, of all threads, of a call after `warm` others, and what it gave."""
    for _ in range(warm):
        work()
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result
