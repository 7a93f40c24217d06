"""What the steps of a reproduction cost, for the estimate of `quenched reproduce`.

Run `quenched reproduce --out FOLDER` (and `--full`, and `quenched demo --out FOLDER`) on an idle machine, then
`python -m benchmarks.reproduction FOLDER`: it reads the processor seconds that the kept steps carry and writes
`src/quenched/reproduction/costs.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from quenched.reproduction import keeping, schedule


def main(folder: Path) -> None:
    known = json.loads(schedule.COSTS.read_text())
    for form in ("quick", "full"):
        for path in sorted((folder / "steps" / form).glob("*.json")):
            seconds = keeping.contents(path)["processor"]
            known[form][path.stem.replace("-", "/", 1)] = round(max(seconds, 0.1), 1)
    schedule.COSTS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    for form, costs in known.items():
        print(f"{form}: {len(costs)} steps, {sum(costs.values()):.0f} processor seconds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
