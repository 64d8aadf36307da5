"""Recorders by name: they write beside the run, within its budget, and change nothing in it."""

import errno
import json
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from test_recorder import FRAMES, STEPS, _importable, execute, make_dataset  # noqa: F401

from proctor import cli
from proctor.records.episode_file import EpisodeFile
from proctor.runs import recorder_thread
from proctor.runs.recorder import Recorders, RecordingConfig
from proctor.runs.recordings import budgeted_files, read_recording, recording_folder

PAGE = Path(__file__).parents[2] / "docs" / "recordings.md"
SLATE = RecordingConfig(recorders=("test_recorder_thread:Slate",))


class Slate(EpisodeFile):
    """Writes a line for each call."""

    suffix = ".jsonl"

    def __init__(self, path, subject):
        super().__init__(path, subject)
        self.stream = path.open("w")
        self.write(["begin", subject.instruction, subject.episode.episode_id, subject.exam.name])

    def write(self, row):
        self.stream.write(json.dumps(row) + "\n")
        self.stream.flush()

    def see(self, observation, state):
        at = None if state is None else [state.position.x, state.position.y]
        self.write(["see", int(observation["rgb"].mean()), at])

    def step(self, action, *, policy_s):
        self.write(["step", action, policy_s > 0])

    def end(self, result):
        self.write(["end", result.status, result.steps])

    def close(self):
        self.stream.close()


class Heavy(Slate):
    """Writes 10 kB for each picture."""

    def see(self, observation, state):
        self.write("x" * 10_000)


class Broken(Slate):
    """Has a mistake that shows after three steps."""

    def step(self, action, *, policy_s):
        super().step(action, policy_s=policy_s)
        self.steps = getattr(self, "steps", 0) + 1
        assert self.steps < 3, "the pencil broke"


class Full(Slate):
    """Writes on a disk without room."""

    def end(self, result):
        raise OSError(errno.ENOSPC, "No space left on device")


class Forgetful(Slate):
    """Opens a file that is not there."""

    def end(self, result):
        Path("/nowhere/at/all").read_text()


class Hanging(Slate):
    """Never comes back from its third step."""

    def step(self, action, *, policy_s):
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 3:
            threading.Event().wait()


class Missing(Slate):
    """Has no pencil."""

    def __init__(self, path, subject):
        raise LookupError("no pencil")


def with_recorders(*names, **options):
    return RecordingConfig(recorders=tuple(f"test_recorder_thread:{name}" for name in names), **options)


def written(folder, episode_id, name="test_recorder_thread_Slate"):
    file = recording_folder(folder, episode_id) / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_recorder_is_shown_all_of_an_episode_in_order(tmp_path):
    report = execute(tmp_path, recording=SLATE)
    assert report.recorded.files == 6
    for result in report.results.episodes:
        begin, *rows, end = written(tmp_path / "run", result.episode_id)
        assert begin == ["begin", result.instruction, result.episode_id, "vln"]
        assert [row[0] for row in rows] == ["see", *["step", "see"] * 10]
        assert [row[1] for row in rows if row[0] == "see"] == [5 * step for step in range(11)]
        assert [row[1:] for row in rows if row[0] == "step"] == [[action, True] for action in result.actions]
        places = [[round(value, 4) for value in row[2]] for row in rows if row[0] == "see"]
        assert places == [[round(point.x, 4), round(point.y, 4)] for point in result.trajectory]
        assert end == ["end", "failure", 10]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("recorders", [("Slate", "Heavy"), ("Slate", "Broken", "Missing"), ("Full",)])
def test_results_do_not_depend_on_recorders(tmp_path, workers, recorders):
    execute(tmp_path, "plain", policy="Walker", recording=None)
    execute(tmp_path, policy="Walker", workers=workers, recording=with_recorders(*recorders))
    for file in ("results.json", "manifest.json"):
        plain, recorded = (json.loads((tmp_path / out / file).read_text()) for out in ("plain", "run"))
        assert plain == recorded


def test_a_recorder_that_fails_loses_its_file_and_no_other(tmp_path):
    report = execute(tmp_path, recording=with_recorders("Broken", "Slate", "Missing", "Forgetful"))
    assert (report.recorded.files, report.recorded.files_failed) == (6, 18)
    folder = recording_folder(tmp_path / "run", "ep_1")
    names = sorted(file.name for file in folder.iterdir())
    assert names == [
        *("steps.jsonl", "test_recorder_thread_Broken.error.txt"),
        "test_recorder_thread_Forgetful.error.txt",
        *("test_recorder_thread_Missing.error.txt", "test_recorder_thread_Slate.jsonl"),
    ]
    assert "the pencil broke" in (folder / "test_recorder_thread_Broken.error.txt").read_text()
    assert "no pencil" in (folder / "test_recorder_thread_Missing.error.txt").read_text()
    assert len(written(tmp_path / "run", "ep_1")) == 23


def test_files_end_where_the_budget_does_and_that_is_told(tmp_path):
    report = execute(tmp_path, recording=with_recorders("Heavy", frames_budget_bytes=250_000))
    sizes = [found.st_size for found in budgeted_files(tmp_path / "run")]
    assert 250_000 < sum(sizes) < 300_000  # by what was under way when it was spent
    assert len(sizes) == 3
    assert report.recorded.episodes_cut == 4
    assert report.recorded.size_bytes - sum(sizes) == sum(
        file.stat().st_size for file in (tmp_path / "run").rglob("steps.jsonl")
    )
    for result in report.results.episodes:
        assert len(read_recording(tmp_path / "run", result.episode_id).steps) == 10


def test_a_disk_without_room_costs_the_recording_and_gives_its_room_back(tmp_path):
    report = execute(tmp_path, recording=with_recorders("Full"))
    assert (report.recorded.episodes, report.recorded.episodes_lost) == (0, 6)
    assert report.recorded.problem == "No space left on device"
    assert report.recorded.size_bytes == 0
    assert [*(tmp_path / "run" / "recordings").iterdir()] == []


@pytest.mark.parametrize("calls", [4, 50])  # fewer than may wait, and more
def test_a_recorder_that_never_returns_is_not_waited_for(tmp_path, monkeypatch, calls):
    monkeypatch.setattr(recorder_thread, "PATIENCE_S", 1.0)
    recorders = Recorders(tmp_path, with_recorders("Hanging"), 1)
    with recorders.recorder(0).episode("ep", SubjectOf("ep")) as episode:
        for _ in range(calls):
            episode.see({"rgb": np.zeros((4, 4, 3), np.uint8)}, None)
            episode.step(1, {}, policy_s=0.0, env_s=0.0)
    assert (recorders.total().files, recorders.total().files_failed) == (0, 1)
    assert len(read_recording(tmp_path, "ep").steps) == calls
    text = (recording_folder(tmp_path, "ep") / "test_recorder_thread_Hanging.error.txt").read_text()
    assert "did not return for 1 s" in text


def test_a_recorder_in_a_file_is_named_after_it(tmp_path):
    (tmp_path / "own").mkdir()
    file = tmp_path / "own" / "diary.py"
    file.write_text("from test_recorder_thread import Slate\n\n\nclass Diary(Slate):\n    pass\n")
    execute(tmp_path, recording=RecordingConfig(recorders=(f"{file}:Diary",)))
    assert (recording_folder(tmp_path / "run", "ep_1") / "diary.py_Diary.jsonl").is_file()


def test_the_recorder_of_the_docs_keeps_its_diary(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "class Diary" in block]
    (tmp_path / "my_recorder.py").write_text(code)
    recorder = f"{tmp_path / 'my_recorder.py'}:Diary"
    report = execute(tmp_path, recording=RecordingConfig(recorders=(recorder,)))
    assert report.recorded.files == 6
    lines = (recording_folder(tmp_path / "run", "ep_1") / "my_recorder.py_Diary.txt").read_text().splitlines()
    assert lines[:2] == ["ep_1", "at 0.00, 0.00"]
    assert lines[2].startswith("action 2, after 0.")
    assert lines[-1] == "failure"


def test_what_an_env_draws_over_is_recorded_as_it_was(tmp_path):
    recorder = Recorders(tmp_path, SLATE, 1).recorder(0)
    picture = np.full((4, 4, 3), 7, np.uint8)
    subject = SubjectOf("ep")
    with recorder.episode("ep", subject) as episode:
        for shade in range(50):
            picture[:] = shade
            episode.see({"rgb": picture}, None)
            picture[:] = 255
    assert [row[1] for row in written(tmp_path, "ep") if row[0] == "see"] == list(range(50))


class SubjectOf:
    """What `Slate` asks of a subject."""

    def __init__(self, episode_id):
        self.instruction, self.episode_id, self.name = "go", episode_id, "vln"
        self.episode = self.exam = self


def test_a_process_that_slept_does_not_complete_what_another_writes(tmp_path):
    def recorded():
        return Recorders(tmp_path, SLATE, 1).recorder(0).episode("ep", SubjectOf("ep"))

    picture = {"rgb": np.zeros((4, 4, 3), np.uint8)}
    with recorded() as sleeper:
        sleeper.see(picture, None)
        with recorded() as other:
            other.see(picture, None)
            other.see(picture, None)
            sleeper.see(picture, None)
            sleeper.close()
    assert [row[0] for row in written(tmp_path, "ep")] == ["begin", "see", "see"]
    names = sorted(file.name for file in recording_folder(tmp_path, "ep").iterdir())
    assert names == ["steps.jsonl", "test_recorder_thread_Slate.jsonl"]


def test_the_command_takes_several_and_says_what_they_wrote(tmp_path, capsys):
    dataset = make_dataset(tmp_path)
    words = ["run", "--dataset", str(dataset), "--policy", "test_recorder:Scribbler", "--env"]
    words += ["test_recorder:Noisy", "--out", str(tmp_path / "run"), "--record"]
    assert cli.main([*words, "test_recorder_thread:Slate,test_recorder_thread:Broken"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "recorded 6 episodes with 0 frames and 6 files of recorders in" in told
    assert "6 files could not be written by their recorders: the reasons are in" in told
    words[words.index("--out") + 1] = str(tmp_path / "second")
    assert cli.main([*words, "test_recorder_thread:Slate", "--frames-budget-mb", "0"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "recorded 6 episodes with 0 frames in" in told
    assert (
        "the files of 6 episodes end early or are missing: the budget is spent (--frames-budget-mb)" in told
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("vidoe", "unknown recorder 'vidoe'; did you mean 'video'?"),
        ("video,,nonsense:X", "there is no module 'nonsense'"),
        ("test_recorder:Walker", "must be a class that inherits proctor.records.episode_file.EpisodeFile"),
    ],
)
def test_a_recorder_that_is_not_there_is_refused_before_anything_begins(tmp_path, capsys, name, problem):
    dataset = make_dataset(tmp_path)
    words = ["run", "--dataset", str(dataset), "--policy", "forward", "--env", "mock"]
    assert cli.main([*words, "--out", str(tmp_path / "run"), "--record", name]) == 2
    assert problem in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()
