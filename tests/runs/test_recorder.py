"""Recordings: what they hold, what they never do."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from running import finished, run

from proctor import cli
from proctor.core.errors import InvalidFile
from proctor.core.interfaces import Policy
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.recorder import Count, Recorders, RecordingConfig
from proctor.runs.recordings import Recording, StepRecord, read_recording, recording_folder
from proctor.worlds.mock import MockEnv

TESTS = Path(__file__).parent
STEPS, FRAMES = RecordingConfig(), RecordingConfig(frames=True)
ODD_IDS = [
    "ep",
    "EP",
    "../../x",
    "/etc/x",
    "a/b",
    "a_b",
    "a b",
    ".",
    "..",
    "走廊",
    "x" * 3000,
    "x" * 3001,
    "a.b",
    "-",
]


class Counting(MockEnv):
    """Shows how many steps have been taken as a shade of grey, and bumps into something at every third."""

    def reset(self, episode):
        super().reset(episode)
        self.steps = 0
        return self.view()

    def step(self, action):
        _, reward, done, info = super().step(action)
        self.steps += 1
        return self.view(), reward, done, info | {"collision": self.steps % 3 == 0}

    def view(self):
        return {"rgb": np.full((48, 64, 3), 5 * self.steps, np.uint8)}


class Blind(Counting):
    """Shows no picture, or nothing that is one."""

    def view(self):
        odd = [{}, {"rgb": None}, {"rgb": np.zeros((4, 4))}, {"rgb": np.zeros((0, 4, 3), np.uint8)}]
        return odd[self.steps % len(odd)]


class Noisy(Counting):
    """Shows what compresses badly: some 4 kB a frame."""

    def view(self):
        return {"rgb": np.random.default_rng(self.steps).integers(0, 256, (48, 64, 3)).astype(np.uint8)}


class Scribbler(Policy):
    """Draws on what it sees; goes ahead and turns by turns, then stops."""

    def reset(self, episode_info):
        self.calls = 0

    def act(self, observation):
        observation["rgb"][:] = 255
        self.calls += 1
        return 0 if self.calls == 10 else 1 + self.calls % 2


class Walker(Scribbler):
    """Goes ahead and turns without looking; dies in one episode, breaks in another."""

    def reset(self, episode_info):
        super().reset(episode_info)
        self.episode_id = episode_info.instruction

    def act(self, observation):
        if self.calls == 4 and self.episode_id == "ep_2":
            raise RuntimeError("lost")
        return super().act({"rgb": np.zeros(1)})


class Deadly(Walker):
    """Takes its process down in one episode."""

    def act(self, observation):
        if self.calls == 4 and self.episode_id == "ep_3":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().act(observation)


class Faulty(Counting):
    """Breaks in the fifth step of one episode, as long as a file says so."""

    def __init__(self, switch):
        super().__init__()
        self.switch = Path(switch)

    def step(self, action):
        if self.steps == 4 and self.switch.exists():
            raise OSError("the renderer crashed")
        return super().step(action)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))


def make_dataset(folder, ids=("ep_0", "ep_1", "ep_2", "ep_3", "ep_4", "ep_5")):
    episodes = [
        Episode(episode_id=name, scene_id="s", goal_position=Vector3(1, 0, 0), instruction=name, max_steps=20)
        for name in ids
    ]
    save_dataset(episodes, folder / "episodes.json")
    return folder / "episodes.json"


def execute(folder, out="run", *, env="Counting", policy="Scribbler", workers=1, recording=FRAMES, **options):
    if not (folder / "episodes.json").exists():
        make_dataset(folder)
    job = RunJob(env=f"test_recorder:{env}", policy=f"test_recorder:{policy}", **options)
    config = RunConfig(job=job, dataset=folder / "episodes.json", workers=workers, recording=recording)
    return run(config, folder / out, lambda _: None)


def test_steps_say_what_the_results_say(tmp_path):
    report = execute(tmp_path, recording=STEPS)
    assert report.recorded.episodes == 6
    for result in report.results.episodes:
        recording = read_recording(tmp_path / "run", result.episode_id)
        assert [step.step for step in recording.steps] == list(range(1, 11))
        assert [step.action for step in recording.steps] == result.actions
        assert (
            [step.step for step in recording.steps if step.collision] == result.collision_steps == [3, 6, 9]
        )
        for step, point, yaw in zip(recording.steps, result.trajectory[1:], result.headings[1:], strict=True):
            assert (step.x, step.y, step.z, step.yaw) == pytest.approx(
                (point.x, point.y, point.z, yaw), abs=1e-5
            )
        assert recording.steps[-1].distance_to_goal == pytest.approx(result.final_distance_to_goal, abs=1e-5)
        assert all(step.policy_ms > 0 and step.env_ms > 0 for step in recording.steps)
        assert recording.frames == []


def test_the_times_of_the_steps_are_those_of_the_journal(tmp_path):
    execute(tmp_path, recording=STEPS)
    shares = []
    for episode_id, result in finished(tmp_path / "run").items():
        steps = read_recording(tmp_path / "run", episode_id).steps
        assert sum(step.policy_ms for step in steps) <= 1000 * result.timing.policy_s + 0.02
        assert sum(step.env_ms for step in steps) <= 1000 * result.timing.env_s + 0.02
        shares.append(sum(step.env_ms for step in steps) / (1000 * result.timing.env_s))
    assert max(shares) > 0.3  # the rest is the reset, which takes long if the machine is busy just then


def test_frame_k_is_what_the_agent_saw_at_point_k(tmp_path):
    execute(tmp_path)
    recording = read_recording(tmp_path / "run", "ep_3")
    assert [frame.name for frame in recording.frames] == [f"{k:05}.jpg" for k in range(11)]
    for k, frame in enumerate(recording.frames):
        with Image.open(frame) as image:
            assert np.abs(np.asarray(image).astype(int) - 5 * k).max() <= 2


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_recording(tmp_path, workers):
    execute(tmp_path, "plain", policy="Walker", recording=None)
    report = execute(tmp_path, "recorded", policy="Walker", workers=workers)
    plain, recorded = tmp_path / "plain", tmp_path / "recorded"
    assert (plain / "results.json").read_bytes() == (recorded / "results.json").read_bytes()
    assert json.loads((plain / "manifest.json").read_text()) == json.loads(
        (recorded / "manifest.json").read_text()
    )
    assert not (plain / "recordings").exists()
    files = [file for file in (recorded / "recordings").rglob("*") if file.is_file()]
    assert report.recorded.episodes == 6
    assert report.recorded.frames == sum(file.suffix == ".jpg" for file in files) == 5 * 11 + 5
    assert report.recorded.size_bytes == sum(file.stat().st_size for file in files)


def test_an_agent_that_breaks_off_leaves_what_there_was(tmp_path):
    execute(tmp_path, policy="Walker")
    recording = read_recording(tmp_path / "run", "ep_2")
    assert len(recording.steps) == 4
    assert len(recording.frames) == 5


def test_a_process_that_dies_leaves_what_there_was(tmp_path):
    report = execute(tmp_path, policy="Deadly", workers=2)
    recording = read_recording(tmp_path / "run", "ep_3")
    assert [step.step for step in recording.steps] == [1, 2, 3, 4]
    assert len(recording.frames) == 5
    assert report.recorded.episodes == 5


def test_an_env_without_pictures_is_recorded_without_frames(tmp_path):
    report = execute(tmp_path, env="Blind", policy="Walker")
    assert report.recorded.frames == report.recorded.frames_left_out == 0
    assert len(read_recording(tmp_path / "run", "ep_0").steps) == 10
    assert report.results.summary.error_counts["evaluator"] == 0


def test_any_id_has_a_folder_of_its_own_inside_of_the_run(tmp_path):
    make_dataset(tmp_path, ODD_IDS)
    names = [recording_folder(tmp_path / "run", name) for name in ODD_IDS]
    assert len({str(name).lower() for name in names}) == len(ODD_IDS)
    assert {name.parent for name in names} == {tmp_path / "run" / "recordings"}
    before = sorted(tmp_path.parent.iterdir())
    report = execute(tmp_path)
    assert report.recorded.episodes == len(ODD_IDS)
    assert len(list((tmp_path / "run" / "recordings").iterdir())) == len(ODD_IDS)
    assert sorted(tmp_path.parent.iterdir()) == before
    for name in ODD_IDS:
        assert len(read_recording(tmp_path / "run", name).frames) == 11


@pytest.mark.parametrize("workers", [1, 2])
def test_frames_stay_within_their_budget_and_what_is_left_out_is_told(tmp_path, workers):
    budget = RecordingConfig(frames=True, frames_budget_bytes=100_000)
    report = execute(tmp_path, env="Noisy", workers=workers, recording=budget)
    sizes = [file.stat().st_size for file in (tmp_path / "run").rglob("*.jpg")]
    assert max(sizes) < 6000
    assert 94_000 < sum(sizes) <= 100_000 + (workers - 1) * 6000
    assert report.recorded.frames == len(sizes)
    assert report.recorded.frames_left_out == 66 - len(sizes)
    for result in report.results.episodes:
        recording = read_recording(tmp_path / "run", result.episode_id)
        assert len(recording.steps) == 10
        assert [int(frame.stem) for frame in recording.frames] == list(range(len(recording.frames)))


def test_the_budget_is_that_of_the_run_and_not_of_a_call(tmp_path):
    execute(tmp_path, env="Noisy")
    journal = tmp_path / "run" / "episodes.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    budget_bytes = sum(file.stat().st_size for file in (tmp_path / "run").rglob("*.jpg")) - 1000
    report = execute(
        tmp_path, env="Noisy", recording=RecordingConfig(frames=True, frames_budget_bytes=budget_bytes)
    )
    assert (report.recorded.frames, report.recorded.frames_left_out) == (10, 1)
    assert sum(file.stat().st_size for file in (tmp_path / "run").rglob("*.jpg")) <= budget_bytes


def test_recorders_share_a_budget_and_each_counts_in_a_row_of_its_own(tmp_path):
    recorders = Recorders(tmp_path, RecordingConfig(frames=True, frames_budget_bytes=5000), 2)
    first, second = recorders.recorder(0), recorders.recorder(1)
    view = Noisy.view(SimpleNamespace(steps=1))
    for recorder, name in ((first, "a"), (second, "b"), (first, "a")):  # one frame fits
        with recorder.episode(name) as episode:
            episode.see(view)
            episode.step(1, {}, policy_s=0.001, env_s=0.002)
    assert recorders.total()[:2] == (3, 1)
    assert recorders.total().frames_left_out == 2
    assert recorders._counts[Count.EPISODES] == 2
    assert recorders._counts[len(Count) + Count.EPISODES] == 1
    (step,) = read_recording(tmp_path, "a").steps
    assert (step.x, step.yaw, step.collision, step.policy_ms, step.env_ms) == (None, None, None, 1.0, 2.0)
    assert read_recording(tmp_path, "a").frames == []  # done again, when the budget was spent


def test_frames_keep_their_numbers_where_an_observation_has_no_picture(tmp_path):
    recorder = Recorders(tmp_path, RecordingConfig(frames=True), 1).recorder(0)
    view = Noisy.view(SimpleNamespace(steps=1))
    with recorder.episode("a") as episode:
        for observation in (view, {}, view):
            episode.see(observation)
    assert [file.stem for file in read_recording(tmp_path, "a").frames] == ["00000", "00002"]


def test_what_a_killed_run_has_left_is_overwritten(tmp_path):
    make_dataset(tmp_path)
    folder = recording_folder(tmp_path / "run", "ep_1")
    execute(tmp_path)
    lines = (tmp_path / "run" / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"ep_1"' not in line]
    (tmp_path / "run" / "episodes.jsonl").write_bytes(b"".join(kept))
    (folder / "frames" / "00099.jpg").write_bytes(b"old")
    (folder / "steps.jsonl").write_bytes(b'{"step": 1, "act')
    report = execute(tmp_path)
    assert report.done_before == 5
    assert report.recorded.episodes == 1
    assert report.unrecorded == 0
    recording = read_recording(tmp_path / "run", "ep_1")
    assert len(recording.frames) == 11
    assert len(recording.steps) == 10


def test_a_process_that_slept_leaves_alone_what_another_recorded_instead(tmp_path):
    def recorded(recorders):
        return recorders.recorder(0).episode("ep")

    picture = {"rgb": np.zeros((8, 8, 3), np.uint8)}
    with recorded(asleep := Recorders(tmp_path, FRAMES, 1)) as sleeper:
        sleeper.see(picture)
        with recorded(awake := Recorders(tmp_path, FRAMES, 1)) as other:
            other.see(picture)
            other.step(1, {}, policy_s=0.0, env_s=0.0)
            sleeper.step(0, {}, policy_s=0.0, env_s=0.0)
            sleeper.see(picture)
    assert [step.action for step in read_recording(tmp_path, "ep").steps] == [1]
    assert len(read_recording(tmp_path, "ep").frames) == 1
    assert (asleep.total().episodes, asleep.total().frames, asleep.total().size_bytes) == (0, 0, 0)
    assert (awake.total().episodes, awake.total().frames) == (1, 1)


def test_an_episode_done_again_without_recording_keeps_no_old_one(tmp_path):
    switch = tmp_path / "switch"
    switch.touch()
    execute(tmp_path, env="Faulty", env_options={"switch": str(switch)})
    assert read_recording(tmp_path / "run", "ep_0") is not None
    switch.unlink()
    execute(tmp_path, env="Faulty", env_options={"switch": str(switch)}, recording=None)
    assert read_recording(tmp_path / "run", "ep_0") is None


def test_episodes_done_before_are_counted_as_not_recorded(tmp_path):
    execute(tmp_path, recording=None)
    report = execute(tmp_path)
    assert report.unrecorded == 6
    assert report.recorded.episodes == 0


def test_a_folder_that_cannot_be_made_costs_the_recordings_only(tmp_path):
    execute(tmp_path, "plain", recording=None)
    (tmp_path / "run").mkdir()
    execute(tmp_path, recording=None)
    (tmp_path / "run" / "episodes.jsonl").write_bytes(b"")
    (tmp_path / "run" / "recordings").write_text("in the way")
    report = execute(tmp_path)
    assert (report.recorded.episodes, report.recorded.episodes_lost) == (0, 6)
    assert report.recorded.problem == "Not a directory"
    assert (tmp_path / "run/results.json").read_bytes() == (tmp_path / "plain/results.json").read_bytes()


def test_a_full_disk_costs_the_recordings_only_and_gives_their_room_back(tmp_path):
    make_dataset(tmp_path)
    code = (
        "import sys, test_recorder, numpy as np; from proctor.cli import main;"
        "test_recorder.Noisy.view = lambda self: {'rgb': np.random.default_rng(self.steps).integers("
        "0, 256, (400 if self.steps == 5 else 20, 400, 3)).astype(np.uint8)};"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [
        *(sys.executable, "-c", code, "run", "--dataset", str(tmp_path / "episodes.json")),
        *("--env", "test_recorder:Noisy", "--policy", "test_recorder:Scribbler", "--out"),
    ]
    subprocess.run([*command, str(tmp_path / "plain")], capture_output=True, check=True)
    files = [file for file in (tmp_path / "plain").iterdir() if file.is_file()]
    room = 2 * max(file.stat().st_size for file in files)  # for all but the large frame
    done = subprocess.run(
        [*command, str(tmp_path / "full"), "--save-frames"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the recordings of 6 episodes were lost: File too large" in done.stdout
    assert list((tmp_path / "full" / "recordings").iterdir()) == []
    assert (tmp_path / "full/results.json").read_bytes() == (tmp_path / "plain/results.json").read_bytes()


def test_the_command_tells_how_much_it_wrote(tmp_path, capsys):
    make_dataset(tmp_path)
    words = ["run", "--dataset", str(tmp_path / "episodes.json"), "--policy", "test_recorder:Scribbler"]
    words += ["--env", "test_recorder:Noisy", "--out", str(tmp_path / "run"), "--save-frames"]
    assert cli.main([*words, "--frames-budget-mb", "0.1"]) == 0
    text = capsys.readouterr().out
    assert "recorded 6 episodes with" in text
    assert "(0.1 MB)" in text
    assert "frames were left out: the budget is spent (--frames-budget-mb)" in text
    assert cli.main([*words, "--frames-budget-mb", "-1"]) == 2
    assert "expected megabytes from 0 up, found -1" in capsys.readouterr().err


def test_save_steps_alone_saves_no_frames(tmp_path):
    make_dataset(tmp_path)
    words = ["run", "--dataset", str(tmp_path / "episodes.json"), "--policy", "forward", "--env", "mock"]
    assert cli.main([*words, "--out", str(tmp_path / "run"), "--save-steps"]) == 0
    recording = read_recording(tmp_path / "run", "ep_0")
    assert recording.steps
    assert recording.frames == []


def test_reading_copes_with_a_torn_line_and_refuses_nonsense(tmp_path):
    execute(tmp_path, recording=STEPS)
    path = recording_folder(tmp_path / "run", "ep_0") / "steps.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert len(read_recording(tmp_path / "run", "ep_0").steps) == 9
    path.write_bytes(whole + b'{"step": "many"}\n')
    with pytest.raises(InvalidFile, match="line 11"):
        read_recording(tmp_path / "run", "ep_0")
    assert read_recording(tmp_path / "run", "ep_99") is None
    assert read_recording(tmp_path / "nowhere", "ep_0") is None


def test_latencies_are_summed_up():
    steps = [
        StepRecord(
            step=i,
            action=1,
            x=0,
            y=0,
            z=0,
            yaw=0,
            collision=False,
            distance_to_goal=None,
            policy_ms=i,
            env_ms=0,
        )
        for i in range(1, 102)
    ]
    assert Recording(steps, []).policy_ms(50, 95) == [51.0, 96.0]
    assert Recording([], []).policy_ms(50) == []


def test_large_pictures_are_saved_smaller(tmp_path, monkeypatch):
    monkeypatch.setattr(Counting, "view", lambda self: {"rgb": np.zeros((900, 1600, 3), np.uint8)})
    make_dataset(tmp_path, ["ep_0"])
    execute(tmp_path)
    with Image.open(read_recording(tmp_path / "run", "ep_0").frames[0]) as frame:
        assert frame.size == (1024, 576)
