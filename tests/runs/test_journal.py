import json
import os

import msgspec
import pytest

from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Vector3
from proctor.exams.results import EpisodeResult, Fault
from proctor.exams.vln.exam import VlnExam
from proctor.runs.folder import trace_file
from proctor.runs.journal import Journal, read_finished

IDENTITY = {"policy": "oracle", "seed": 0}


def result(episode_id):
    return EpisodeResult(
        episode_id=episode_id,
        scene_id="s",
        instruction="",
        status="failure",
        success=False,
        failure_reason="timeout",
        error=None,
        final_distance_to_goal=1.0,
        steps=1,
        collision_count=0,
        trajectory=[Vector3(0, 0, 0), Vector3(0.25, 0, 0)],
        headings=[],
        collision_steps=[],
        actions=[1],
        metrics={"success": 0.0},
        distance="euclidean",
        seed=1,
    )


def append(journal, episode_id, trace=b""):
    journal.append(episode_id, msgspec.json.encode(result(episode_id)), trace)


def open_journal(folder, identity=IDENTITY):
    return Journal(folder, identity, {"python": "3"})


def test_finished_episodes_are_there_after_reopening(tmp_path):
    with open_journal(tmp_path / "run") as journal:
        append(journal, "a")
        append(journal, "b")
    finished = read_finished(tmp_path / "run", IDENTITY, VlnExam)
    assert list(finished) == ["a", "b"]
    assert finished["a"] == result("a")


@pytest.mark.parametrize("cut", [1, 5, 100])
def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path, cut):
    with open_journal(tmp_path) as journal:
        append(journal, "a")
        append(journal, "b")
    file = tmp_path / "episodes.jsonl"
    os.truncate(file, file.stat().st_size - cut)
    assert list(read_finished(tmp_path, IDENTITY, VlnExam)) == ["a"]
    with open_journal(tmp_path) as journal:
        append(journal, "c")
    assert [json.loads(line)["episode_id"] for line in file.read_text().splitlines()] == ["a", "c"]


def test_the_last_record_of_an_episode_wins_until_one_is_scored(tmp_path):
    fault = Fault(side="evaluator", kind="env_exception", message="it broke")
    records = [
        msgspec.structs.replace(result("a"), seed=7, status="error", failure_reason=fault.kind, error=fault),
        msgspec.structs.replace(result("a"), seed=8),
        msgspec.structs.replace(result("a"), seed=9),  # of a host that slept while others took over
    ]
    for record, seed in zip(records, (7, 8, 8), strict=True):
        with open_journal(tmp_path) as journal:
            journal.append("a", msgspec.json.encode(record))
        assert read_finished(tmp_path, IDENTITY, VlnExam)["a"].seed == seed


def test_a_folder_of_a_different_run_is_refused_and_left_alone(tmp_path):
    with open_journal(tmp_path) as journal:
        append(journal, "a")
    before = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    with pytest.raises(UserError, match="holds a different run: its policy is 'oracle', yours is 'random'"):
        read_finished(tmp_path, {"policy": "random", "seed": 0}, VlnExam)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == before


def test_a_run_that_was_faster_to_take_the_folder_is_noticed(tmp_path):
    other = {"policy": "random", "seed": 0}
    assert read_finished(tmp_path, IDENTITY, VlnExam) == {}
    with open_journal(tmp_path, other) as journal:
        append(journal, "a")
    with pytest.raises(UserError, match="holds a different run"):
        open_journal(tmp_path, IDENTITY)
    with open_journal(tmp_path, other) as journal:  # what was refused does not hold the folder
        append(journal, "b")


def test_what_a_run_leaves_that_was_killed_before_it_began_is_nothing(tmp_path):
    (tmp_path / ".manifest.json.1.tmp").write_text("{")
    (tmp_path / "episodes.jsonl").touch()
    assert read_finished(tmp_path, IDENTITY, VlnExam) == {}


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(UserError, match="is not empty and not a run"):
        read_finished(tmp_path, IDENTITY, VlnExam)
    assert [f.name for f in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_processes_cannot_write_the_same_run(tmp_path):
    with open_journal(tmp_path), pytest.raises(UserError, match="in use by another run"):
        open_journal(tmp_path)


def test_a_full_disk_is_told_and_loses_nothing(tmp_path):
    with open_journal(tmp_path) as journal:
        append(journal, "a")
        good = os.dup(journal._file)
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, journal._file)
        with pytest.raises(UserError, match="No space left on device; finished episodes are kept"):
            append(journal, "b")
        os.dup2(good, journal._file)
        os.close(good)
        os.close(full)
    assert list(read_finished(tmp_path, IDENTITY, VlnExam)) == ["a"]


def test_a_line_that_is_no_record_is_named(tmp_path):
    with open_journal(tmp_path) as journal:
        append(journal, "a")
    with (tmp_path / "episodes.jsonl").open("a") as stream:
        stream.write('{"episode_id": 3}\n')
    with pytest.raises(InvalidFile, match="line 2: not an episode record"):
        read_finished(tmp_path, IDENTITY, VlnExam)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*Not a directory"):
        open_journal(tmp_path / "file" / "run")


def test_the_trace_of_an_earlier_attempt_does_not_stay_with_a_later_one(tmp_path):
    with open_journal(tmp_path) as journal:
        append(journal, "a", b"what was done")
        assert trace_file(tmp_path, "a").read_bytes() == b"what was done"
        append(journal, "a")
    assert not trace_file(tmp_path, "a").exists()
