"""The packages of other harnesses, each in a venv of its own, call Proctor's exams."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from same_actions import DRIVING, REACHING, STEPS, own_results, short_suite

REPOSITORY = Path(__file__).parents[2]
HERE = Path(__file__).parent
ROWS = {"houses-v1": [[action] for action in DRIVING], "tabletop-v1": REACHING}
LEROBOT_PYTHON = Path.home() / ".pyenv/versions/3.12.1/bin/python"
"""LeRobot 0.6 needs Python 3.12. With an older one pip finds the last version for that."""


def make_venv(folder, package, python=sys.executable):
    """Install Proctor and a package into a venv, and return a function that runs a file in it."""
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True, timeout=120)
    source = folder / "source"  # a copy: a build leaves things behind
    shutil.copytree(REPOSITORY / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    pip = [folder / "venv/bin/pip", "install", "-q", "--no-cache-dir"]
    subprocess.run([*pip, f"{source}[gym]", package], check=True, timeout=1800, capture_output=True)

    def run(file, *words):
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [folder / "venv/bin/python", HERE / file, *map(str, words)]
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="module")
def vla_eval(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vla-eval")
    yield make_venv(folder, "vla-eval>=0.8")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def lerobot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lerobot")
    python = LEROBOT_PYTHON if LEROBOT_PYTHON.is_file() else sys.executable
    yield make_venv(folder, "lerobot[dataset]", python)
    shutil.rmtree(folder)  # with torch and its CUDA, 6 GB


@pytest.mark.slow
@pytest.mark.parametrize("suite", ROWS)
def test_vla_eval_gets_our_scores_and_its_agents_no_goal(vla_eval, suite, tmp_path):
    file = short_suite(suite, tmp_path)
    found = vla_eval("vla_eval_trial.py", file, json.dumps(ROWS[suite]))
    own, tasks = own_results(file), found["result"]["tasks"]
    assert [len(task["episodes"]) for task in tasks] == [1, 1]
    for task, mine in zip(tasks, own, strict=True):
        metrics = task["episodes"][0]["metrics"]
        assert metrics.pop("status") == mine.status
        assert metrics.pop("failure_reason") == (mine.failure_reason or "")
        assert metrics == {**mine.metrics, "success": mine.success}
        assert task["episodes"][0]["steps"] == STEPS
    assert found["heard"]["tasks"] == [{"name": f"episode_000{n}", "episode_idx": 0} for n in range(2)]
    keys = {json.dumps(entry) for entry in found["heard"]["keys"]}
    pictures = {"head": [480, 640, 3]} | ({"wrist": [240, 320, 3]} if suite == "tabletop-v1" else {})
    states = ["states"] if suite == "tabletop-v1" else []
    assert keys == {json.dumps([["images", *states, "task_description"], pictures])}


@pytest.mark.slow
@pytest.mark.parametrize("suite", ROWS)
def test_lerobot_rolls_a_policy_out_on_our_suite(lerobot, suite, tmp_path):
    file = short_suite(suite, tmp_path)
    env = tmp_path / "env.py"
    env.write_text(
        "from functools import partial\n"
        "from proctor.integrations.lerobot import make_env\n"
        f"make_env = partial(make_env, suite={str(file)!r})\n"
    )
    rows = np.eye(4)[DRIVING].tolist() if suite == "houses-v1" else REACHING
    found = lerobot("lerobot_trial.py", env, json.dumps(rows))
    own = own_results(file)
    first, second = found["rollouts"]
    assert first == second, "the same seeds are the same episodes"
    assert [any(steps) for steps in first["success"]] == [episode.success for episode in own]
    assert [steps.index(True) + 1 for steps in first["done"]] == [episode.steps for episode in own]
    assert found["seen"]["task"] == [episode.instruction for episode in own]
    keys = {"observation.image", "task"}
    if suite == "tabletop-v1":
        keys = {"observation.images.head", "observation.images.wrist", "observation.state", "task"}
    assert found["seen"].keys() == keys
