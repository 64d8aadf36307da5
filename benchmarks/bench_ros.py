"""Pictures over ROS 2: late, lost, and made into arrays. Needs `make ros`."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.rows import NotMeasured, Row

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-ros" / "bin" / "python"
DOMAIN = "77"
LATENCY_S = 10e-3
TRIALS = [("rgb8", "16UC1", 30, 60), ("rgba8", "32FC1", 30, 15), ("rgb8", "16UC1", 100, 15)]
"""Encodings of colour and depth, pairs of pictures in a second, seconds."""


def bench() -> Iterator[Row | NotMeasured]:
    if not PYTHON.exists():
        yield NotMeasured("ROS 2", "it is not installed; run: make ros", is_failure=False)
        return
    for colour, depth, hz, seconds in TRIALS:
        name = f"ROS 2: {colour} and {depth} at {hz} Hz"
        options = ["--hz", str(hz), "--frames", str(hz * seconds), "--encodings", colour, depth]
        try:
            found = _run("benchmarks.ros_pictures", *options)
        except subprocess.CalledProcessError as error:
            yield NotMeasured(name, str(error))
            continue
        yield Row(f"{name}, latency p95", found["p95_s"], LATENCY_S, 1.0)
        yield Row(f"{name}, lost", found["lost"], found["sent"], 0.0, "of")
    try:
        decoded = _run("benchmarks.ros_decoding")
    except subprocess.CalledProcessError as error:
        yield NotMeasured("ROS 2: decode", str(error))
        return
    for name, (ours, theirs) in decoded.items():
        # Pillow drops the fourth byte of a pixel in C, quicker than numpy can: 0.20 against 0.27 ms.
        yield Row(f"ROS 2: decode {name}", ours, theirs, 1.6 if name.startswith("rgba8") else 1.0)


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
