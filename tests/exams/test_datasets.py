import hashlib
import json
from collections import Counter

import pytest

from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.vln.episode import Episode


def record(**changes):
    episode = {
        "episode_id": "ep_001",
        "scene_id": "scene_001",
        "start_position": {"x": 0.0, "y": 0.0, "z": 0.0},
        "start_rotation": {"x": 0, "y": 0, "z": 0},
        "goal_position": {"x": 5.0, "y": 0.0, "z": 3.0},
        "instruction": "Walk straight and turn left...",
        "max_steps": 50,
    }
    return {key: value for key, value in (episode | changes).items() if value is not ...}


def write(folder, *records, **top):
    path = folder / "episodes.json"
    path.write_text(json.dumps({"episodes": list(records), **top}))
    return path


def test_the_documents_own_example_loads(tmp_path):
    example = record(scene_config_path="configs/scene_001.json")
    (episode,) = load_dataset(write(tmp_path, example)).episodes
    assert episode.goal_position == Vector3(5.0, 0.0, 3.0)
    assert episode.scene_config_path == str(tmp_path / "configs" / "scene_001.json")


def test_a_scene_beside_the_dataset_is_found_by_its_id(tmp_path):
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes" / "scene_001.json").write_text("{}")
    (episode,) = load_dataset(write(tmp_path, record())).episodes
    assert episode.scene_config_path == str(tmp_path / "scenes" / "scene_001.json")


@pytest.mark.parametrize("mesh", ["kitchen.glb", "scenes/kitchen.glb", "scenes/kitchen/kitchen.obj"])
def test_a_mesh_beside_the_dataset_is_found_by_its_id(tmp_path, mesh):
    (tmp_path / mesh).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mesh).write_bytes(b"")
    # The dataset has the scene's name, too, and is none.
    (tmp_path / "kitchen.json").write_text(json.dumps({"episodes": [record(scene_id="kitchen")]}))
    (episode,) = load_dataset(tmp_path / "kitchen.json").episodes
    assert episode.scene_config_path == str((tmp_path / mesh).resolve())


def test_without_any_scene_file_the_path_stays_empty(tmp_path):
    (episode,) = load_dataset(write(tmp_path, record())).episodes
    assert episode.scene_config_path is None


def test_a_folder_with_episodes_is_a_dataset(tmp_path):
    write(tmp_path, record())
    assert len(load_dataset(tmp_path).episodes) == 1


def test_what_was_written_reads_back_equal(tmp_path):
    episodes = [
        Episode(episode_id="start at the origin, no words", scene_id=""),
        Episode(episode_id="a", scene_id="s", instruction="Go.", success_threshold=1.0, split="val"),
        Episode(
            episode_id="b",
            scene_id="s",
            instruction="走到沙发旁边。",
            language="zh",
            reference_path=[Vector3(0, 0, 0), Vector3(1, 0, 0)],
            reference_actions=[Action.FORWARD, Action.STOP],
        ),
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    assert load_dataset(tmp_path / "episodes.json").episodes == episodes


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"instruction": ...}, r"episodes\[1\]: the key 'instruction' is missing"),
        ({"instructoin": "x"}, r"unknown key 'instructoin'; did you mean 'instruction'"),
        (
            {"goal_position": {"x": "5", "y": 0, "z": 0}},
            r"episodes\[1\]\.goal_position\.x: Expected `float`, got `str`",
        ),
        ({"goal_position": {"x": 5, "y": 0}}, r"episodes\[1\]\.goal_position: .*missing.*`z`"),
        ({"goal_position": {"x": 5, "y": 0, "z": 0, "w": 1}}, "unknown key 'w'"),
        (
            {"goal_position": [5, 0, 0]},
            r"episodes\[1\]\.goal_position: Expected .*, got `array`",
        ),
        ({"goal_position": {"x": True, "y": 0, "z": 0}}, r"goal_position\.x: Expected `float`, got `bool`"),
        ({"max_steps": 0}, r"episodes\[1\]\.max_steps: expected at least 1, found 0"),
        ({"max_steps": 1.5}, r"episodes\[1\]\.max_steps"),
        ({"episode_id": "ep_001"}, r"episodes\[1\]\.episode_id: the id 'ep_001' is taken by episodes\[0\]"),
        ({"episode_id": 7}, r"episodes\[1\]\.episode_id: Expected `str`, got `int`"),
        ({"scene_config_path": "a\0b"}, r"episodes\[1\]\.scene_config_path: no name of a file"),
        ({"scene_id": "a" * 5000}, r"episodes\[1\]\.scene_config_path: no name of a file"),
        ({"reference_actions": [4]}, r"episodes\[1\]\.reference_actions\[0\]: Invalid enum value 4"),
    ],
)
def test_each_mistake_is_named_with_its_place(tmp_path, changes, complaint):
    path = write(tmp_path, record(), record(**({"episode_id": "ep_002"} | changes)))
    with pytest.raises(InvalidFile, match=complaint) as caught:
        load_dataset(path)
    assert str(path) in str(caught.value)


def test_a_nan_coordinate_is_named_with_its_place(tmp_path):
    path = tmp_path / "episodes.json"
    path.write_text(json.dumps({"episodes": [record(goal_position={"x": float("nan"), "y": 0, "z": 0})]}))
    with pytest.raises(InvalidFile, match=r"episodes\[0\]\.goal_position\.x: nan is not allowed"):
        load_dataset(path)


@pytest.mark.parametrize("content", ["[]", '{"episodes": {}}', '{"episode": []}', "3"])
def test_a_document_of_another_shape_is_refused(tmp_path, content):
    path = tmp_path / "episodes.json"
    path.write_text(content)
    with pytest.raises(InvalidFile, match=r"expected \{.episodes"):
        load_dataset(path)


def test_an_empty_dataset_and_an_unknown_top_key_are_refused(tmp_path):
    with pytest.raises(InvalidFile, match="expected at least one episode"):
        load_dataset(write(tmp_path))
    with pytest.raises(InvalidFile, match="unknown key 'episods'"):
        load_dataset(write(tmp_path, record(), episods=[]))


def test_a_frozen_exam_that_was_changed_is_refused(tmp_path):
    path = write(tmp_path, record())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "checksums.json").write_text(json.dumps({"episodes.json": digest}))
    assert len(load_dataset(path).episodes) == 1
    write(tmp_path, record(max_steps=51))
    with pytest.raises(InvalidFile, match=r"episodes.json: has changed since the exam was frozen"):
        load_dataset(path)
    (tmp_path / "checksums.json").unlink()
    assert len(load_dataset(path).episodes) == 1


def test_a_sample_has_all_scenes_and_all_levels(tmp_path):
    names = [(f"s{scene}", level) for scene in range(6) for level in ("short", "medium", "long")]
    records = [record(episode_id=f"{s}_{level}", scene_id=s, level=level) for s, level in names]
    chosen = load_dataset(write(tmp_path, *records)).select(count=6)
    assert len({e.scene_id for e in chosen}) == 6
    assert Counter(e.level for e in chosen) == {"short": 2, "medium": 2, "long": 2}


def test_selection_by_count_and_by_id(tmp_path):
    dataset = load_dataset(write(tmp_path, record(), record(episode_id="ep_002")))
    assert [e.episode_id for e in dataset.select(count=1)] == ["ep_001"]
    assert [e.episode_id for e in dataset.select(episode_id="ep_002")] == ["ep_002"]
    assert len(dataset.select()) == 2
    with pytest.raises(UnknownName, match="did you mean 'ep_002'"):
        dataset.select(episode_id="ep_0002")
    with pytest.raises(UserError, match="at least 1 episode"):
        dataset.select(count=0)


def test_a_few_episodes_are_taken_from_all_scenes_and_not_only_their_first_ones(tmp_path):
    records = [record(episode_id=f"{scene}{n}", scene_id=scene) for scene in "abcd" for n in range(3)]
    dataset = load_dataset(write(tmp_path, *records))
    ids = {count: [e.episode_id for e in dataset.select(count=count)] for count in (1, 2, 4, 5, 12, 99)}
    assert ids[2] == ["a0", "c2"]
    assert ids[4] == ["a0", "b1", "c2", "d0"]
    assert len({*ids[5]}) == 5
    assert ids[12] == ids[99] == [r["episode_id"] for r in records]


def test_a_split_is_chosen_by_name(tmp_path):
    path = write(tmp_path, record(split="seen"), record(episode_id="ep_002", split="unseen"))
    assert [e.episode_id for e in load_dataset(path).select(split="unseen")] == ["ep_002"]
    with pytest.raises(UnknownName, match="unknown split 'unsen'; did you mean 'unseen'"):
        load_dataset(path).select(split="unsen")
