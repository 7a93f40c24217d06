"""One side of a comparison in a process of its own, asked for one model on one data set at a time.

`python -m benchmarks.worker SIDE` reads a question on each line and answers with processor seconds, of all threads, and
with what the model found. Linear algebra and XLA have one thread each, so that no side gains from more. Making the data
and importing packages is outside the time.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
SINGLE = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    **dict.fromkeys(("NPROC", "PJRT_NPROC"), "1"),  # threads of XLA
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "MPLBACKEND": "Agg",
}
PATIENCE = 1500.0
"""Wall seconds after which a question is given up."""


class Worker:
    """The caller's end: starts the process when it is first asked, and again if it has ended.

    Args:
        python: an interpreter with the packages of the side.
        side: a module of `benchmarks.sides`.
    """

    def __init__(self, python: str | Path, side: str):
        self.python, self.side = python, side
        self._process: subprocess.Popen | None = None

    def __call__(self, **question: Any) -> dict[str, Any]:
        """The answer; one with `failed` is a sentence that says why there is none."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            with selectors.DefaultSelector() as ready:
                ready.register(process.stdout, selectors.EVENT_READ)
                line = process.stdout.readline() if ready.select(PATIENCE) else None
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        self.close()
        return {"failed": "the process ended without a word" if line == "" else f"no answer in {PATIENCE:.0f} s"}

    def _started(self) -> subprocess.Popen:
        if self._process is None:
            self._process = subprocess.Popen(
                [self.python, "-m", "benchmarks.worker", self.side], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, cwd=HOME, env={**os.environ, **SINGLE},
            )  # fmt: skip
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def answered(side: Any, ready: dict[str, Any], question: dict[str, Any]) -> dict[str, Any]:
    """Make the data, get the model ready, and time it."""
    from benchmarks import tasks

    try:
        name, case = question["model"], question["case"]
        data = tasks.made(question["task"], case, question["seed"])
        if name not in ready:
            ready[name] = side.MODELS[name]()
        version, work = ready[name]
        begin = time.process_time()
        found = work(data, case)
        seconds = time.process_time() - begin
    except (Exception, SystemExit) as error:  # suftware ends the process where it fails
        words = " ".join(str(error).split()) or type(error).__name__
        return {"failed": f"{type(error).__name__}: {words}"[:200]}
    answer = [part.tolist() for part in found] if isinstance(found, list) else found.tolist()
    return {"cpu_s": seconds, "version": version, "checksum": tasks.checksum(data), "answer": answer}


def main() -> None:
    """Answer until nobody asks."""
    warnings.simplefilter("ignore")
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is not an answer
    side, ready = importlib.import_module(f"benchmarks.sides.{sys.argv[1]}"), {}
    for line in sys.stdin:
        print(json.dumps(answered(side, ready, json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main()
