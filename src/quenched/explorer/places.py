"""Where answers are computed: few at a time, the newest question of each reader first, the warm-up in between."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from quenched.explorer.kept import name_of

if TYPE_CHECKING:
    from quenched.explorer.answers import Answer, State, View

KEPT = 600
"""Answers that are kept: about a hundred kilobytes each."""
AT_ONCE = 2
"""Questions that are answered at the same time."""
PATIENCE = 0.05
"""Seconds between two looks whether somebody asks."""
FIRST = 2
"""Answers of the warm-up after which they are kept: the picture that is shown at first."""
CLIENTS = 200
"""Readers whose newest question is remembered."""


_heard = threading.local()


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """The warnings of this thread inside a block."""
    _heard.words = words = []
    try:
        yield words
    finally:
        _heard.words = None


def listen() -> None:
    """From now on, let warnings be heard by the thread that listens, each as often as it is given."""
    before = warnings.showwarning

    def show(message: Warning | str, *more: Any, **named: Any) -> None:
        words = getattr(_heard, "words", None)
        before(message, *more, **named) if words is None else words.append(" ".join(str(message).split()))

    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = show


class Stale(Exception):
    """A question whose reader has asked a newer one since."""


class Places:
    """The places at which views are computed.

    A reader asks in slots, such as the cut and the phase diagram of the map. Of each slot only the newest question
    counts: an older one that still waits is dropped.
    """

    def __init__(self, views: Mapping[str, View], growing: Collection[str] = ()):
        self.views, self.growing = views, growing
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._newest: collections.OrderedDict[tuple[str, str], int] = collections.OrderedDict()
        self._kept: collections.OrderedDict[str, Answer] = collections.OrderedDict()
        self._waiting = 0

    def answer(
        self, view: str, state: State, *, client: str = "", slot: str = "", serial: int = 0, patient: bool = False
    ) -> Answer:
        """The answer of a view.

        Args:
            view: its name.
            state: what is asked about.
            client: who asks.
            slot: for which part of the page.
            serial: the number of the question; of a lower number than the newest it is dropped.
            patient: whether it may wait until nobody else asks.

        Raises:
            Stale: if the same client has asked a newer question for the slot.
            InputError: if there is no answer.
        """
        key = name_of(view, state)
        self._note(client, slot, serial)
        with self._lock:
            if key in self._kept:  # pure, so that readers may share them
                self._kept.move_to_end(key)
                return self._kept[key]
        with self._queue(patient), self._places:
            self._check(client, slot, serial)
            with listening() as warned:
                found = self.views[view](state)
            found = dataclasses.replace(found, warned=tuple(dict.fromkeys(warned)))
        if view in self.growing:
            return found
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def _note(self, client: str, slot: str, serial: int) -> None:
        with self._lock:
            self._newest[client, slot] = max(serial, self._newest.pop((client, slot), serial))
            while len(self._newest) > CLIENTS:
                self._newest.popitem(last=False)

    def _check(self, client: str, slot: str, serial: int) -> None:
        with self._lock:
            if serial < self._newest.get((client, slot), serial):
                raise Stale

    @contextlib.contextmanager
    def _queue(self, patient: bool) -> Iterator[None]:
        """Count those who wait; a patient question lets them pass."""
        if patient:
            while self._waiting:
                time.sleep(PATIENCE)
            yield
            return
        with self._lock:
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1


class WarmUp:
    """First answers, computed in a thread of their own before anybody asks for them."""

    def __init__(self, places: Places, work: list[tuple[str, str, State]], keep: Callable[[dict[str, Answer]], None]):
        self.places, self.work, self.keep = places, work, keep
        self.done: list[str] = []
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="warm-up")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped = True

    def _run(self) -> None:
        answers: dict[str, Answer] = {}
        for words, view, state in self.work:
            if self._stopped:
                return
            with contextlib.suppress(Exception):  # whoever asks the same is told why it fails
                answers[name_of(view, state)] = self.places.answer(view, state, patient=True)
            self.done.append(words)
            if len(self.done) in (FIRST, len(self.work)):
                self.keep(answers)

    def state(self) -> dict[str, Any]:
        """What is ready, what is being computed, and how much is left."""
        k = len(self.done)
        now = self.work[k][0] if k < len(self.work) else ""
        return {"done": k, "of": len(self.work), "now": now, "ready": list(dict.fromkeys(self.done))}


def timed(work: Callable[[], Answer]) -> tuple[Answer, float, float]:
    """An answer, and the seconds and processor seconds of this thread that it took."""
    begun, spent = time.monotonic(), time.thread_time()
    found = work()
    return found, time.monotonic() - begun, time.thread_time() - spent
