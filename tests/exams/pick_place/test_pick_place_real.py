"""The document's own episode as an exam in the embedded world: told, served, recorded, always the same."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from proctor import cli
from proctor.agents.server import PolicyServer
from proctor.core.interfaces import Policy
from proctor.exams.datasets import load_dataset
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.robots.stretch import SENSORS
from proctor.runs.recordings import read_recording
from vln_evaluator.evaluators import PickPlaceEvaluator

EXAMPLE = Path(__file__).parents[2] / "data" / "stretch_pick_place_001.json"
STEPS = 4


class Lookout(Policy):
    """Keeps what it is told and shown, and lifts the arm."""

    told, shown = [], []  # of the class: a server makes its own objects

    def reset(self, episode_info):
        self.told.append(episode_info)

    def act(self, observation):
        self.shown.append(observation)
        return {"type": "joint_position", "qpos": observation["qpos"] + np.eye(10)[3] * 0.05}


@pytest.fixture
def dataset(tmp_path):
    """Write the example twice, cut to a few steps."""
    record = json.loads(EXAMPLE.read_text())
    record["sim_params"]["max_steps"] = STEPS
    path = tmp_path / "tables" / "episodes.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"episodes": [record, {**record, "episode_id": "again"}]}))
    return path


def run(dataset, out, *words, policy="random"):
    command = ("run", "--dataset", dataset, "--policy", policy, "--out", dataset.parent / out, *words)
    assert cli.main([str(word) for word in command]) == 0
    return dataset.parent / out


def test_runs_are_the_same_to_the_last_bit_with_one_and_two_workers(dataset):
    one, two = run(dataset, "one", "--save-frames"), run(dataset, "two", "--workers", "2")
    assert (one / "results.json").read_bytes() == (two / "results.json").read_bytes()
    results = json.loads((one / "results.json").read_text())
    first, second = results["episodes"]
    assert (first["steps"], first["failure_reason"]) == (STEPS, "timeout")
    assert first["actions"] != second["actions"]
    assert first["pick_place"]["object_path"] == second["pick_place"]["object_path"]
    assert len(first["pick_place"]["object_path"]) == STEPS + 1
    assert first["pick_place"]["target"] == [0.7, 0.2, 0.8]
    manifest = json.loads((one / "manifest.json").read_text())["identity"]
    assert (manifest["task"], manifest["env"]) == ("pick_and_place", "tabletop")
    recording = read_recording(one, "again")
    assert len(recording.frames) == STEPS + 1
    with Image.open(recording.frames[0]) as picture:
        assert picture.size == (640, 480)
        assert np.std(np.asarray(picture)) > 10  # there is something to see


def test_what_is_told_and_shown_is_what_the_robot_has():
    Lookout.told.clear()
    Lookout.shown.clear()
    episode = load_dataset(EXAMPLE).episodes[0]
    episode = msgspec.structs.replace(episode, sim_params={"max_steps": 1})
    with PickPlaceEvaluator(PickPlaceEnv(object_info=True), Lookout()) as evaluator:
        result = evaluator.evaluate_episode(episode)
    assert result.error is None, result.error
    (told,), (shown,) = Lookout.told, Lookout.shown
    for name in ("rgb_head", "rgb_wrist", "depth_head"):
        facts = getattr(SENSORS, name)
        assert told.sensors[name].shape[:2] == shown[name].shape[:2] == (facts["height"], facts["width"])
    assert told.sensors["qpos"].shape == (SENSORS.joint_positions["dim"],)
    assert told.sensors["qvel"].shape == (SENSORS.joint_velocities["dim"],)
    assert told.sensors["ee_pose"].shape == (SENSORS.ee_pose["dim"],)
    low, high = SENSORS.gripper_state["range"]
    assert low <= shown["gripper_state"] + 1e-6 <= high
    assert shown["instruction"] == {"text": told.instruction, "language": "en"}
    assert shown["object_info"]["target_object_position"] == pytest.approx([0.5, 0.0, 0.8], abs=1e-3)
    assert told.details["task_goal"]["target_location"]["position"] == [0.7, 0.2, 0.8]


def test_a_served_agent_sees_and_scores_the_same(dataset):
    Lookout.shown.clear()
    here = run(dataset, "here", "--episodes", "1", "--hide-goal", policy=f"{__name__}:Lookout")
    seen_here = list(Lookout.shown)
    Lookout.shown.clear()
    with PolicyServer(Lookout, port=0) as server:
        there = run(dataset, "there", "--episodes", "1", "--hide-goal", policy=server.url)
    assert (here / "results.json").read_bytes() == (there / "results.json").read_bytes()
    assert len(seen_here) == len(Lookout.shown) == STEPS
    for ours, theirs in zip(seen_here, Lookout.shown, strict=True):
        assert ours.keys() == theirs.keys()
        for name in ("rgb_head", "rgb_wrist", "depth_head", "qpos", "qvel", "ee_pose", "gripper_state"):
            assert np.array_equal(ours[name], theirs[name]), name
    assert "position" not in Lookout.told[-1].details["task_goal"]["target_location"]
