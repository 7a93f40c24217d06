"""Accuracy and cost of LVQ on the digits: ours beside sklvq, in one run, on the same folds.

The task: scikit-learn's digits, standardised on each training fold, five stratified folds (shuffled, seed 0);
accuracy is the mean over the folds, seconds are the processor time of all threads for five fits and five
predictions. Both sides run in a process of their own with one linear-algebra thread. Compilation, paid once for
a shape, has its own column. Settings of both sides come from a small search on this data set; those of LVQ2.1
reach the same accuracy on folds with other seeds.

sklvq needs an old scikit-learn, so it lives in an environment of its own under `.benchmarks/sklvq`, made with pip
at the first run. Its rows: the solver of its documentation, its fastest solver, and the most accurate setting found.

Run `python -m benchmarks.lvq_digits`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
PEER_HOME = HOME / ".benchmarks" / "sklvq"
PEER_NEEDS = ["sklvq", "scikit-learn<1.6"]
COLUMNS = ("side", "model", "prototypes_per_class", "accuracy", "cpu_s", "compile_s")

TASK = """
import json, time, warnings
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

warnings.simplefilter("ignore")
X, y = load_digits(return_X_y=True)
folds = []
for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
    scale = StandardScaler().fit(X[train])
    folds.append((scale.transform(X[train]), y[train], scale.transform(X[test]), y[test]))

def seconds(work):
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result

def five(make):
    return [make().fit(x, c).score(x_test, c_test) for x, c, x_test, c_test in folds]

def measure(side, model, prototypes_per_class, make):
    cold, _ = seconds(lambda: make().fit(*folds[0][:2]))
    warm, _ = seconds(lambda: make().fit(*folds[0][:2]))
    cpu, scores = seconds(lambda: five(make))
    row = dict(side=side, model=model, prototypes_per_class=prototypes_per_class,
               accuracy=float(np.mean(scores)), cpu_s=cpu, compile_s=max(cold - warm, 0.0))
    print(json.dumps(row), flush=True)
"""

OURS = """
from quenched.estimators import LVQClassifier
from quenched.prototypes.model import LVQ21, Interpolated

for k in (1, 10, 30):
    measure("quenched", "LVQ1, defaults", k, lambda: LVQClassifier(prototypes_per_class=k, random_state=0))
rule = LVQ21(Interpolated((0.05, 0.0005), until=20))
measure("quenched", "LVQ2.1, window 0.1, 20 passes", 5,
        lambda: LVQClassifier(rule, prototypes_per_class=5, passes=20, window=0.1, random_state=0))
"""

PEER = """
from sklvq import GLVQ

steepest = dict(solver_type="steepest-gradient-descent", solver_params={"max_runs": 20})
sigmoid = dict(solver_type="lbfgs", activation_type="sigmoid", activation_params={"beta": 2})
for model, k, settings in (("GLVQ, steepest descent, 20 runs", 1, steepest),
                           ("GLVQ, lbfgs", 1, dict(solver_type="lbfgs")),
                           ("GLVQ, lbfgs, sigmoid", 5, sigmoid)):
    measure("sklvq", model, k, lambda: GLVQ(prototype_n_per_class=k, random_state=0, **settings))
"""


def run(python: str | Path, script: str) -> list[dict]:
    """The rows that a script prints, one thread each for linear algebra."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [python, "-c", TASK + script], capture_output=True, text=True, cwd=HOME, env={**os.environ, **single}
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return [json.loads(line) for line in done.stdout.splitlines()]


def peer_python() -> Path:
    """The interpreter of the peer's environment, made where there is none."""
    python = PEER_HOME / "bin" / "python"
    if python.exists() and subprocess.run([python, "-c", "import sklvq"], capture_output=True).returncode == 0:
        return python
    base = sys.executable if sys.version_info[:2] == (3, 11) else shutil.which("python3.11")
    if base is None:
        raise RuntimeError("no python3.11 on this machine")
    subprocess.run([base, "-m", "venv", "--clear", PEER_HOME], check=True, capture_output=True)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER_NEEDS], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["pip failed"])[-1])
    return python


def rows() -> list[dict]:
    """Measured rows of both sides; a peer that is not there has one row that says why."""
    ours = run(sys.executable, OURS)
    try:
        python = peer_python()
    except (RuntimeError, subprocess.CalledProcessError, OSError) as error:
        return [*ours, {"side": "sklvq", "model": f"peer could not be installed: {error}"}]
    try:
        return [*ours, *run(python, PEER)]
    except RuntimeError as error:
        return [*ours, {"side": "sklvq", "model": f"peer could not be run: {error}"}]


def main() -> None:
    """Print the table."""
    print("{:9} {:32} {:>10} {:>9} {:>8} {:>10}".format("side", "model", "per class", "accuracy", "cpu s", "compile s"))
    for row in rows():
        side, model, *numbers = (row.get(column) for column in COLUMNS)
        if None in numbers:
            print(f"{side:9} {model}")
        else:
            print("{:9} {:32} {:10d} {:9.4f} {:8.2f} {:10.2f}".format(side, model, *numbers))


if __name__ == "__main__":
    main()
