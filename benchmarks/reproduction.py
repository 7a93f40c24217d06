"""What the steps of a reproduction cost, for the estimate of `quenched reproduce`.

Run `quenched reproduce --out FOLDER` (and `--full`, and `quenched demo --out FOLDER`) on an idle machine, then
`python -m benchmarks.reproduction FOLDER`: it reads the processor seconds that the kept steps carry and writes
`src/quenched/papers/reproduction/costs.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from quenched.core.store import Store
from quenched.papers.reproduction import Step
from quenched.papers.reproduction.run import COSTS
from quenched.papers.reproduction.steps import read


def main(folder: Path) -> None:
    known = json.loads(COSTS.read_text())
    for form in ("quick", "full"):
        store = Store.open(folder / "steps" / form)
        for path in sorted(store.folder.glob("*.json")):
            step = Step(*path.stem.split("-", 1))
            if kept := read(store, step, quick=form == "quick"):  # steps of other code are left out
                known[form][str(step)] = round(max(kept["processor"], 0.1), 1)
    COSTS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    for form, costs in known.items():
        print(f"{form}: {len(costs)} steps, {sum(costs.values()):.0f} processor seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
