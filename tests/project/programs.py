"""Imports what is run by hand, so that a name that moved is noticed. `test_examples.py` runs the examples."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PEERS = {"casadi", "do_mpc", "dtaidistance", "fastdtw", "pybullet"}
"""What `make bench` installs to measure against. mypy checks the files that import it."""
ROS_FILES = [
    *sorted(REPOSITORY.glob("benchmarks/ros_*.py")),
    *sorted(REPOSITORY.glob("examples/ros2/*.py")),
]
FILES = [
    path
    for folder in ("benchmarks", "scripts")
    for path in sorted((REPOSITORY / folder).glob("*.py"))
    if path not in ROS_FILES
]
IMPORT = """
import importlib, runpy, sys, traceback
from pathlib import Path
peers, *paths = sys.argv[1:]
failed = 0
for path in map(Path, paths):
    try:
        if path.parent.name == "benchmarks":
            importlib.import_module(f"benchmarks.{path.stem}")
        else:
            runpy.run_path(str(path), run_name="imported")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name.partition(".")[0] in peers.split(","):
            continue
        print(path)
        traceback.print_exc()
        failed += 1
sys.exit(failed)
"""


def import_failures(paths):
    """Import all files in one other process; return those that fail, and write why to stderr."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, ",".join(PEERS), *map(str, paths)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    failed = done.stdout.splitlines()
    assert done.returncode == len(failed), "the imports ended early"
    return failed
