"""The benchmark of the store runs, and what it measures is found."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "stores.py"


def step(**asked: Any) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), "--step", json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_our_store_is_filled_and_served_in_processes_of_their_own(tmp_path: Path) -> None:
    asked = {"name": "everthread", "home": str(tmp_path), "layout": [2, 50], "repeats": 3, "scopes": 2}
    filled = step(step="fill", **asked)
    assert filled.keys() == {"per_second", "bytes_per_record"}
    served = step(step="serve", **asked)
    assert served.keys() == {"cold", "warm", "vector_recall", "rss_mb"}
    assert served["vector_recall"] >= 0.9
