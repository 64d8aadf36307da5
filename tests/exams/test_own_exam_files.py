"""Files of an exam that somebody else wrote: read, checked and written without code of its own."""

import json
import re

import pytest
from fetch_exam import FetchEpisode, FetchExam

from proctor.cli import main
from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.core.registry import BUILT_IN
from proctor.exams.checked_dataset import examine, write_fixed
from proctor.exams.datasets import check_before_run, episodes_of, load_dataset, save_dataset
from proctor.exams.vln.episode import Episode


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(BUILT_IN["exam"], "fetch", "fetch_exam:FetchExam")


def record(**changes):
    given = {"task_type": "fetch", "episode_id": "a", "weight_kg": 1.0} | changes
    return {key: value for key, value in given.items() if value is not ...}


def write(folder, *records, **top):
    path = folder / "episodes.json"
    path.write_text(json.dumps({"episodes": list(records), **top}))
    return path


def test_the_task_type_of_any_episode_tells_the_exam(tmp_path):
    dataset = load_dataset(write(tmp_path, record(task_type=...), record(episode_id="b", split="val")))
    assert (dataset.exam, dataset.task, dataset.format) == (FetchExam, "fetch", "native")
    assert dataset.episodes == [FetchEpisode("a", 1.0), FetchEpisode("b", 1.0, split="val")]
    with pytest.raises(UserError, match="expected episodes of the task vln, found fetch"):
        episodes_of(dataset, Episode)


def test_what_was_written_reads_back_equal(tmp_path):
    episodes = [FetchEpisode("a", 1.0), FetchEpisode("b", 2.5, instruction="Fetch the box.")]
    save_dataset(episodes, tmp_path / "new.json.gz")
    assert load_dataset(tmp_path / "new.json.gz").episodes == episodes
    with pytest.raises(UserError, match="expected episodes of one task, found fetch and vln"):
        save_dataset([*episodes, Episode()], tmp_path / "mixed.json")
    with pytest.raises(UserError, match="exam that is installed, found dict"):
        save_dataset([{}], tmp_path / "none.json")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"weight_kg": ...}, "episodes[1]: the key 'weight_kg' is missing"),
        ({"wieght_kg": 1}, "episodes[1]: unknown key 'wieght_kg'; did you mean 'weight_kg'?"),
        ({"weight_kg": "1"}, "episodes[1].weight_kg: Expected `float`, got `str`"),
        ({"weight_kg": float("inf")}, "episodes[1].weight_kg: inf is not allowed"),
        ({"task_type": "fetsch"}, "episodes[1].task_type: expected 'fetch', found 'fetsch'; did you mean"),
        (
            {"task_type": "vln"},
            "episodes[1]: a file holds one task: expected fetch as in other episodes, found",
        ),
        ({"task_type": 3}, "episodes[1]: unknown key 'task_type'"),
        ({"episode_id": "a"}, "episodes[1].episode_id: the id 'a' is taken by episodes[0]"),
    ],
)
def test_each_mistake_is_named_with_its_place(tmp_path, changes, complaint):
    path = write(tmp_path, record(), record(**({"episode_id": "b"} | changes)))
    with pytest.raises(InvalidFile, match=re.escape(f"{path}: {complaint}")):
        load_dataset(path)


def test_an_exam_that_is_not_there_is_named_wherever_the_episode_stands(tmp_path):
    path = tmp_path / "x.json"
    for document, place in (
        ([record(task_type="fetsch")], "[0].task_type"),
        (record(task_type="fetsch"), "task_type"),
    ):
        path.write_text(json.dumps(document))
        complaint = f"{path}: {place}: unknown exam 'fetsch'; did you mean 'fetch'?"
        with pytest.raises(InvalidFile, match=re.escape(complaint)):
            load_dataset(path)


def test_all_mistakes_are_found_at_once_and_a_copy_is_without_them(tmp_path):
    records = [
        record(),
        record(episode_id=7),
        record(weight_kg=20),
        record(episode_id="lead", weight_kg=500),
        record(episode_id="c", weight_kg="1"),
        record(episode_id="d", weight_kg=...),
    ]
    checked = examine(write(tmp_path, *records, version=1))
    told = {item.kind: (item.severity, item.places) for item in checked.findings.items}
    assert told == {
        "unknown-key": ("error", ["version"]),
        "id-type": ("error", ["episodes[1]"]),
        "duplicate-id": ("error", ["episodes[2]"]),
        "malformed": ("error", ["episodes[5]"]),
        "heavy": ("note", ["episodes[2]", "episodes[3]"]),
        "too-heavy": ("error", ["episodes[3]"]),
        "no-split": ("note", ["episodes"]),
    }
    assert next(i.places for i in checked.findings.items if i.kind == "malformed") == [
        "episodes[4].weight_kg"
    ]
    fixed = write_fixed(checked, tmp_path / "fixed.json")
    assert [e.episode_id for e in load_dataset(fixed.file).episodes] == ["a", "7", "a_2"]
    light = write_fixed(checked, tmp_path / "light.json", drop=["heavy"])
    assert [e.episode_id for e in load_dataset(light.file).episodes] == ["a", "7"]
    with pytest.raises(UnknownName, match="unknown filter 'heavier'; did you mean 'heavy'"):
        write_fixed(checked, tmp_path / "x.json", drop=["heavier"])


def test_before_a_run_errors_are_raised_and_the_rest_is_told(tmp_path):
    light, heavy = record(), record(episode_id="lead", weight_kg=500)
    dataset = load_dataset(write(tmp_path, light, heavy))
    with pytest.raises(InvalidFile, match=r"episodes\.json: episodes\[1\]: nobody can lift it"):
        check_before_run(FetchExam(), dataset, dataset.episodes, needs_scene=False)
    told = ["1 of 2 are heavy", "there are no splits"]
    # What is done already cannot keep the rest from being run.
    left = dataset.episodes[:1]
    assert check_before_run(FetchExam(), dataset, dataset.episodes, needs_scene=False, left=left) == told
    assert check_before_run(FetchExam(), dataset, left, needs_scene=False) == ["there are no splits"]


def test_the_commands_take_it_or_say_why_not(tmp_path, capsys):
    source = write(tmp_path, record(), record(episode_id="b", weight_kg=20))
    assert main(["check-dataset", str(source)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "2 episodes, native" in out
    assert "heavy 1 more than 10 kg" in out
    assert main(["convert", str(source), str(tmp_path / "copy.json")]) == 0
    assert load_dataset(tmp_path / "copy.json").episodes == load_dataset(source).episodes
    capsys.readouterr()
    assert main(["convert", str(source), str(tmp_path / "other.json"), "--to", "r2r-ce"]) == 2
    assert "expected episodes of the task vln, found fetch" in capsys.readouterr().err
    assert main(["convert", str(source), str(tmp_path / "other.json"), "--to", "r2r"]) == 2
    assert (
        "unknown format 'r2r'; did you mean 'r2r-ce'?; available: native, r2r-ce" in capsys.readouterr().err
    )
    assert not (tmp_path / "other.json").exists()
