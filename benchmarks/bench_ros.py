"""Pictures over ROS 2: late, lost, and made into arrays. Needs `make ros`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-ros" / "bin" / "python"
DOMAIN = "77"
LATENCY_S = 10e-3
TRIALS = [("rgb8", "16UC1", 30, 60), ("rgba8", "32FC1", 30, 15), ("rgb8", "16UC1", 100, 15)]
"""Encodings of colour and depth, pairs of pictures in a second, seconds."""


def bench() -> list[Row]:
    if not PYTHON.exists():
        print("ROS 2 is not here: `make ros` brings it, and these lines with it", file=sys.stderr)
        return []
    rows = []
    for colour, depth, hz, seconds in TRIALS:
        options = ["--hz", str(hz), "--frames", str(hz * seconds), "--encodings", colour, depth]
        found = _run("benchmarks.ros_pictures", *options)
        name = f"{colour} and {depth} at {hz} Hz"
        rows += [
            Row(f"ROS 2: {name}, latency p95", found["p95_s"], LATENCY_S, 1.0),
            Row(f"ROS 2: {name}, lost", found["lost"], found["sent"], 0.0, "of"),
        ]
    for name, (ours, theirs) in _run("benchmarks.ros_decoding").items():
        rows.append(Row(f"ROS 2: decode {name}", ours, theirs, 1.0))
    return rows


def _run(module: str, *options: str) -> Any:
    """Return what a module prints that runs where ROS 2 is."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("LD_LIBRARY_PATH", "_ROS_WHEELS_BOOTSTRAP_COMPLETE")  # of another venv's ROS 2
    }
    environment |= {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": DOMAIN}
    command = [str(PYTHON), "-m", module, *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
