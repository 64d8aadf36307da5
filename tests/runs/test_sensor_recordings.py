"""Recordings of all that the sensors said: nothing of it is lost, and the disk is not filled."""

import os
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from running import run

from proctor import cli
from proctor.core.errors import InvalidFile
from proctor.core.interfaces import Policy
from proctor.core.types import Pose2, Scan
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.recorder import Recorders, RecordingConfig
from proctor.runs.recordings import encode_sensors, read_recording, read_sensors, recording_folder
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mock import MockEnv

TESTS = Path(__file__).parent
PAGE = TESTS.parents[1] / "docs" / "recordings.md"
SEEN: list[dict] = []
"""Copies of what `Watcher` saw in this process."""
ODD = {
    "depth": np.array([[0, 1, 65535], [7, 500, 20000]], np.uint16),
    "thermal": np.array([0.1, -0.0, np.inf, -np.inf, np.nan, 1e-45], np.float32),
    "payload": np.array([0x7FF8000000000123, 0xFFF0000000000001], np.uint64).view(np.float64),
    "qpos": np.random.default_rng(0).normal(size=10),
    "turned": np.asfortranarray(np.arange(12.0).reshape(3, 4))[::2],
    "swapped": np.arange(5, dtype=">i4"),
    "touches": np.array([True, False]),
    "phase": np.array([1 + 2j], np.complex64),
    "nothing": np.zeros((0, 3)),
    "file": np.array([1.5]),
    "gripper_state": 0.1 + 0.2,
    "count": 3,
    "is_moving": True,
    "heat": np.float32(0.1),
    "scan": Scan(np.array([0.1, np.inf, np.nan]), -np.pi, 0.1, 0.05, 12.0),
    "odom": Pose2(0.1, -0.0, 1e-300),
}
LEFT_OUT = {
    "rgb": np.zeros((4, 6, 3), np.uint8),
    "instruction": {"text": "Go."},
    "name": "robot",
    "objects": np.array([{}], object),
    "words": np.array(["a"]),
    "huge": 10**40,
    "half a pair \ud800": 1.0,
}


class Watcher(Policy):
    """Keeps copies of what it sees, then overwrites it."""

    def reset(self, episode_info):
        self.steps = 0

    def act(self, observation):
        SEEN.append({name: copied(value) for name, value in observation.items()})
        for value in observation.values():
            array = value.ranges if isinstance(value, Scan) else value
            if isinstance(array, np.ndarray):
                array[...] = 0
        self.steps += 1
        return 0 if self.steps == 4 else self.steps


class Hissing(MockEnv):
    """Has a sensor whose readings cannot be made smaller: 8 kB a step."""

    def reset(self, episode):
        self.random = np.random.default_rng(0)
        return super().reset(episode) | self.reading()

    def step(self, action):
        observation, *rest = super().step(action)
        return observation | self.reading(), *rest

    def reading(self):
        return {"noise": self.random.random(1000)}


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))
    SEEN.clear()


@pytest.fixture
def room(tmp_path):
    wall = SceneObject(name="wall", parts=[Part(shape="box", size=(0.1, 2, 2), translate=(3, 0, 1))])
    save_scene(SceneConfig(scene_name="s", objects=[wall]), tmp_path / "s.json")
    return dataset(tmp_path, scene_config_path=str(tmp_path / "s.json"))


def dataset(folder, ids=("ep_0", "ep_1"), **fields):
    episodes = [
        Episode(
            episode_id=name, scene_id="s", goal_position=(1, 0, 0), instruction="Go.", max_steps=9, **fields
        )
        for name in ids
    ]
    save_dataset(episodes, folder / "episodes.json")
    return folder / "episodes.json"


def copied(value):
    if isinstance(value, Scan):
        return value._replace(ranges=value.ranges.copy())
    return value.copy() if isinstance(value, np.ndarray) else value


def shown_in_the_docs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "read_sensors(" in block]
    return code


def bits(value):
    """Return all that there is to an entry of an observation, so that NaN equals itself and 0 not -0."""
    if isinstance(value, Scan):
        return "scan", *map(bits, value)
    if isinstance(value, Pose2):
        return "pose", *map(bits, msgspec.structs.astuple(value))
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


def execute(path, out, *, env="test_sensor_recordings:Hissing", recording=None, **env_options):
    job = RunJob(env=env, policy="test_sensor_recordings:Watcher", env_options=env_options)
    return run(RunConfig(job=job, dataset=path, recording=recording), out, lambda _: None)


def test_every_bit_of_every_kind_of_reading_comes_back(tmp_path):
    (tmp_path / "00000.npz").write_bytes(encode_sensors(ODD | LEFT_OUT))
    read = read_sensors(tmp_path / "00000.npz")
    assert {name: bits(value) for name, value in read.items()} == {
        name: bits(value) for name, value in ODD.items()
    }
    assert isinstance(read["gripper_state"], float)
    with np.load(tmp_path / "00000.npz") as archive:  # numpy alone can read it, too
        assert (archive["depth"] == ODD["depth"]).all()
        assert archive["scan.angle_min"] == -np.pi


def test_an_observation_without_readings_leaves_no_file(tmp_path):
    assert encode_sensors(LEFT_OUT) == b""
    recorders = Recorders(tmp_path, RecordingConfig(sensors=True), 1)
    with recorders.recorder(0).episode("a") as episode:
        for observation in (ODD, LEFT_OUT, ["no mapping"], ODD):
            episode.see(observation)
    assert [file.stem for file in read_recording(tmp_path, "a").sensors] == ["00000", "00003"]
    assert recorders.total().sensors == 2


def test_what_the_robot_sensed_in_its_world_comes_back(room, tmp_path, monkeypatch, capsys):
    sensors = ["rgb", "depth", "scan", "odom"]
    words = ["--env-option", "width=32", "--env-option", "height=24"]
    words += ["--env-option", f"sensors={msgspec.json.encode(sensors).decode()}"]
    words += ["--policy", "test_sensor_recordings:Watcher", "--out", str(tmp_path / "run")]
    assert cli.main(["run", "--dataset", str(room), *words, "--save-steps", "full"]) == 0
    for number, name in enumerate(("ep_0", "ep_1")):
        recording = read_recording(tmp_path / "run", name)
        assert len(recording.sensors) == len(recording.steps) + 1 == 5
        assert recording.frames == []
        seen = SEEN[4 * number : 4 * number + 4]
        for path, observation in zip(recording.sensors, seen, strict=False):
            read = read_sensors(path)
            assert set(read) == {"depth", "scan", "odom"}
            assert all(bits(read[key]) == bits(observation[key]) for key in read)
            assert read["depth"].dtype == np.uint16
    monkeypatch.chdir(tmp_path)
    code = shown_in_the_docs().replace("runs/my_agent", "run").replace("house_64959_1", "ep_0")
    capsys.readouterr()
    exec(compile(code, PAGE.name, "exec"), {})
    assert re.match(r"\d+ mm to what is nearest\n\d", capsys.readouterr().out)


def test_results_do_not_depend_on_it_and_the_budget_holds(tmp_path):
    path = dataset(tmp_path)
    execute(path, tmp_path / "plain")
    budget = RecordingConfig(sensors=True, frames_budget_bytes=40_000)
    report = execute(path, tmp_path / "full", recording=budget)
    plain, full = tmp_path / "plain" / "results.json", tmp_path / "full" / "results.json"
    assert plain.read_bytes() == full.read_bytes()
    sizes = [file.stat().st_size for file in (tmp_path / "full").rglob("*.npz")]
    assert 30_000 < sum(sizes) <= 40_000
    assert (report.recorded.sensors, report.recorded.frames_left_out) == (len(sizes), 10 - len(sizes))
    assert [len(read_recording(tmp_path / "full", name).steps) for name in ("ep_0", "ep_1")] == [4, 4]


def test_what_an_earlier_call_has_left_counts_against_the_budget(tmp_path):
    path, out = dataset(tmp_path), tmp_path / "run"
    execute(path, out, recording=RecordingConfig(sensors=True))
    lines = (out / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (out / "episodes.jsonl").write_bytes(lines[0])
    left_bytes = sum(file.stat().st_size for file in recording_folder(out, "ep_0").rglob("*.npz"))
    budget = RecordingConfig(sensors=True, frames_budget_bytes=left_bytes + 1000)
    report = execute(path, out, recording=budget)
    assert (report.recorded.sensors, report.recorded.frames_left_out) == (0, 5)


def test_the_command_says_what_was_recorded_and_left_out(tmp_path, capsys):
    path = dataset(tmp_path)
    words = ["run", "--dataset", str(path), "--policy", "forward", "--env", "test_sensor_recordings:Hissing"]
    words += ["--out", str(tmp_path / "run"), "--save-steps", "full", "--frames-budget-mb", "0.05"]
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    assert re.search(
        r"recorded 2 episodes with 0 frames and the sensors of \d steps in .* \(0\.\d MB\)", text
    )
    assert "frames and sensors were left out: the budget is spent (--frames-budget-mb)" in text
    with pytest.raises(SystemExit):
        cli.main([*words[:-3], "all"])
    assert "choose from" in capsys.readouterr().err


WHOLE = encode_sensors(ODD)
OVERWRITTEN = WHOLE[:100] + b"x" * 50 + WHOLE[150:]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"\x93NUMPY\x01\x00", WHOLE[:-30], OVERWRITTEN])
def test_a_file_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "00000.npz").write_bytes(content)
    with pytest.raises(InvalidFile, match="not a recording of sensors"):
        read_sensors(tmp_path / "00000.npz")


def test_a_file_that_explodes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("proctor.runs.recordings.MAX_SENSOR_BYTES", 10_000)
    (tmp_path / "00000.npz").write_bytes(encode_sensors({"zeros": np.zeros(10_000)}))
    with pytest.raises(InvalidFile, match="bytes unpacked; expected at most 10000"):
        read_sensors(tmp_path / "00000.npz")


def test_what_was_not_written_to_its_end_is_not_there(tmp_path):
    recorders = Recorders(tmp_path, RecordingConfig(sensors=True), 1)
    with recorders.recorder(0).episode("a") as episode:
        episode.see(ODD)
    folder = recording_folder(tmp_path, "a") / "sensors"
    (folder / ".00001.npz.tmp").write_bytes(b"half")
    assert [file.name for file in read_recording(tmp_path, "a").sensors] == ["00000.npz"]
