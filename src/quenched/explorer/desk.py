"""The desk: what answers the questions of the page. Importing it takes seconds, so that the server does so later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import threadpoolctl

from quenched.explorer.claims import Papers
from quenched.explorer.kept import Kept
from quenched.explorer.places import Places, WarmUp
from quenched.explorer.shelf import Shelf
from quenched.explorer.views import GROWING, describe, views, warm_up


class Desk:
    """The views of one server, and the places at which they are computed."""

    def __init__(self, shelf: Shelf, papers: Path, kept: Kept, *, warm: bool):
        threadpoolctl.threadpool_limits(1, user_api="blas")  # matrices are small, and several readers may ask at once
        self.views = views(shelf, Papers(papers))
        self.places = Places(self.views, GROWING)
        self.about: dict[str, Any] = describe()
        self.warm_up = WarmUp(self.places, warm_up(), lambda found: kept.write(
            self.about, {question: answer.told for question, answer in found.items()}
        ))  # fmt: skip
        if warm:
            self.warm_up.start()
