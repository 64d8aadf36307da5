"""Datasets of pick-and-place: one task each, found again, written back, known by their files."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pick_place_records import CUP, load, record, write

from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.exams.datasets import CHECKSUMS, episodes_of, load_dataset, save_dataset, scenes_digest
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.vln.episode import Episode
from proctor.scenes.tabletop_parts import (
    ReferenceTrajectory,
    SceneItem,
    Shape,
    SuccessCriteria,
    TargetLocation,
    TargetObject,
    TaskGoal,
)

WALK = {
    "episode_id": "walk",
    "scene_id": "s",
    "start_position": {"x": 0, "y": 0, "z": 0},
    "start_rotation": {"x": 0, "y": 0, "z": 0},
    "goal_position": {"x": 1, "y": 0, "z": 0},
    "instruction": "Go.",
}


@pytest.mark.parametrize("records", [(record(), WALK), (WALK, record())])
def test_a_file_holds_one_task(tmp_path, records):
    with pytest.raises(
        InvalidFile, match=r"episodes\[[01]\]: a file holds one task: expected pick_and_place"
    ):
        load(tmp_path, *records)
    with pytest.raises(UserError, match="expected episodes of one task, found pick_and_place and vln"):
        save_dataset([PickAndPlaceEpisode("a"), Episode()], tmp_path / "mixed.json")


def test_navigation_is_as_it_was(tmp_path):
    dataset = load(tmp_path, WALK)
    assert (dataset.task, Episode.task, type(dataset.episodes[0])) == ("vln", "vln", Episode)
    assert load(tmp_path, WALK | {"task_type": "vln"}).episodes == dataset.episodes
    with pytest.raises(
        InvalidFile, match=r"episodes\[0\]\.task_type: unknown exam 'vnl'; did you mean 'vln'"
    ):
        load(tmp_path, WALK | {"task_type": "vnl"})
    about = WALK | {"instruction": 'Say "task_goal" and "task_type" and stop.'}
    assert load(tmp_path, about).task == "vln"


def test_a_dataset_is_asked_for_one_task_only(tmp_path):
    dataset = load(tmp_path, record())
    assert episodes_of(dataset, PickAndPlaceEpisode) == dataset.episodes
    with pytest.raises(UserError, match="expected episodes of the task vln, found pick_and_place"):
        episodes_of(dataset, Episode)


def test_other_shapes_of_file_are_refused(tmp_path):
    with pytest.raises(InvalidFile, match="unknown key 'epsiodes'; did you mean 'episodes'"):
        load(tmp_path, record(), epsiodes=[])
    with pytest.raises(InvalidFile, match=r"episodes\[1\]\.episode_id: the id 'stretch_.*' is taken by epi"):
        load(tmp_path, record(), record())
    path = tmp_path / "list.json"
    path.write_text(json.dumps([record(), record()]))
    with pytest.raises(InvalidFile, match=r"\[1\]\.episode_id: the id .* is taken by \[0\]"):
        load_dataset(path)
    path.write_text(json.dumps([record(), 7]))
    with pytest.raises(InvalidFile, match=r"\[1\]: Expected `object`, got `int`"):
        load_dataset(path)
    path.write_text("[]")
    with pytest.raises(InvalidFile, match="expected"):
        load_dataset(path)


def test_episodes_are_selected_by_split_id_and_scene(tmp_path):
    records = [
        record(episode_id=f"{scene}{index}", scene_id=scene, split="val" if index else "train")
        for scene in "ab"
        for index in range(3)
    ]
    dataset = load(tmp_path, *records)
    assert [e.episode_id for e in dataset.select(split="train")] == ["a0", "b0"]
    assert {e.scene_id for e in dataset.select(count=2)} == {"a", "b"}
    assert dataset.select(episode_id="b2")[0].episode_id == "b2"
    with pytest.raises(UnknownName, match="unknown split 'valid'; did you mean 'val'"):
        dataset.select(split="valid")


def test_a_frozen_exam_is_refused_when_it_has_changed(tmp_path):
    path = write(tmp_path, record())
    (tmp_path / CHECKSUMS).write_text(json.dumps({path.name: hashlib.sha256(path.read_bytes()).hexdigest()}))
    assert load_dataset(tmp_path).task == "pick_and_place"
    write(tmp_path, record(task_goal__success_criteria__place_tolerance=0.5))
    with pytest.raises(InvalidFile, match="has changed since the exam was frozen"):
        load_dataset(tmp_path)


def test_assets_lie_beside_the_dataset_or_where_it_says(tmp_path):
    def assets(scenes=None, **changes):
        return load_dataset(write(tmp_path, record(**changes)), scenes=scenes).episodes[0].assets_path

    other = tmp_path / "other"
    other.mkdir()
    assert assets() == str(tmp_path)
    assert assets(assets_path="things") == str(tmp_path / "things")
    assert assets(scenes=other) == str(other)


def test_a_changed_mesh_is_another_run(tmp_path):
    episodes = load(tmp_path, record()).episodes
    nothing = scenes_digest(PickPlaceExam, episodes)
    mesh = tmp_path / "objects" / "cup_red.usd"
    mesh.parent.mkdir()
    mesh.write_bytes(b"a cup")
    cup = scenes_digest(PickPlaceExam, episodes)
    mesh.write_bytes(b"another cup")
    assert len({nothing, cup, scenes_digest(PickPlaceExam, episodes)}) == 3
    assert scenes_digest(PickPlaceExam, load(tmp_path, record(scene_objects=[CUP])).episodes) == nothing


def test_what_a_mesh_consists_of_counts_too(tmp_path):
    episodes = load(tmp_path, record(scene_objects__0__usd_path="table.obj")).episodes
    (tmp_path / "table.obj").write_text("mtllib table.mtl\n")
    (tmp_path / "table.mtl").write_text("Kd 1 0 0")
    before = scenes_digest(PickPlaceExam, episodes)
    (tmp_path / "table.mtl").write_text("Kd 0 1 0")
    assert scenes_digest(PickPlaceExam, episodes) != before


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    episodes = load(inside, record(scene_objects__0__usd_path="table.obj")).episodes
    nothing = scenes_digest(PickPlaceExam, episodes)
    (tmp_path / "secret.obj").write_text("v 0 0 0")
    (inside / "table.obj").symlink_to(tmp_path / "secret.obj")
    assert scenes_digest(PickPlaceExam, episodes) == nothing


def test_a_copy_elsewhere_still_finds_its_things(tmp_path):
    episodes = load(tmp_path, record()).episodes
    for path in (tmp_path / "copy.json", tmp_path / "deep" / "er" / "copy.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_dataset(episodes, path)
        assert load_dataset(path).episodes == episodes
    (written,) = json.loads((tmp_path / "copy.json").read_text())["episodes"]
    assert "assets_path" not in written
    assert list(written)[:4] == ["episode_id", "task_type", "scene_id", "task_goal"]


coordinates = st.floats(-100, 100).map(lambda value: value + 0.0)
triples = st.tuples(coordinates, coordinates, coordinates)
names = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=20)
shapes = st.builds(Shape, kind=names, color=names, size=st.none() | st.just((0.1, 0.2, 0.3)))


@st.composite
def episodes(draw):
    others = draw(st.lists(names.map("x{}".format), unique=True, max_size=4))
    things = [
        SceneItem(
            name=name,
            position=draw(triples),
            static=draw(st.booleans()),
            usd_path=draw(st.none() | names),
            shape=draw(st.none() | shapes),
            fallback=draw(st.none() | shapes),
            mass=draw(st.none() | st.floats(0.01, 10)),
            friction=draw(st.floats(0, 10)),
        )
        for name in others
    ]
    cup = SceneItem(name="cup", position=draw(triples), graspable=True)
    types = ["position"] + (["container", "surface"] if others else [])
    type_ = draw(st.sampled_from(types))
    location = TargetLocation(
        type=type_,
        position=draw(triples),
        radius=draw(st.floats(0.01, 1)),
        object_name=None if type_ == "position" else draw(st.sampled_from(others)),
    )
    rows = draw(st.lists(st.tuples(*[st.floats(-3, 3)] * draw(st.sampled_from([7, 10]))), max_size=3))
    reference = ReferenceTrajectory(qpos_sequence=rows, keypoints={"end": len(rows) - 1}) if rows else None
    return PickAndPlaceEpisode(
        draw(names),
        scene_id=draw(names),
        robot_config={"init_pose": {"base": (0.0, 1.0, draw(st.floats(-3, 3)))}, "nonholonomic": True},
        task_goal=TaskGoal(
            target_object=TargetObject(name="cup"),
            target_location=draw(st.none() | st.just(location)),
            success_criteria=SuccessCriteria(lift_height=draw(st.floats(0.01, 1))),
        ),
        scene_objects=draw(st.permutations([cup, *things])),
        instruction={"text": draw(st.text(max_size=40)), "tokens": draw(st.none() | st.lists(names))},
        reference_trajectory=reference,
        sim_params={"max_steps": draw(st.integers(1, 1000)), "physics_engine": draw(st.none() | names)},
        language=draw(st.sampled_from(["en", "zh"])),
        split=draw(st.none() | names),
    )


@settings(max_examples=60)
@given(st.lists(episodes(), min_size=1, max_size=3, unique_by=lambda e: e.episode_id))
def test_what_was_written_reads_back_equal(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("written") / "episodes.json"
    save_dataset(written, path)
    dataset = load_dataset(path)
    assert {episode.assets_path for episode in dataset.episodes} == {str(path.parent)}
    again = path.with_name("again.json")
    save_dataset(dataset.episodes, again)
    assert again.read_bytes() == path.read_bytes()
    read = [PickAndPlaceEpisode(**without_assets(episode)) for episode in dataset.episodes]
    assert read == written


def without_assets(episode):
    return {key: getattr(episode, key) for key in episode.__struct_fields__ if key != "assets_path"}


ODD = [
    None,
    True,
    0,
    -1,
    10**400,
    1e300,
    1e-300,
    "",
    "#",
    "a\0b",
    "\u202e",
    [],
    [[]],
    {},
    {"name": "x"},
    [1, 2, 3],
]


def places_in(value):
    """Return the keys that lead to every part of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [()] + [(key, *rest) for key, part in inner for rest in places_in(part)]


def test_whatever_stands_in_a_file_it_is_read_or_refused(tmp_path):
    path = tmp_path / "odd.json"
    reference = {
        "qpos_sequence": [[0.0] * 7],
        "ee_pose_sequence": [[0, 0, 0, 1, 0, 0, 0]],
        "keypoints": {"a": 0},
    }
    full = record(reference_trajectory=reference, assets_path="x", split="val")
    full["scene_objects"][0]["shape"] = {"kind": "table", "size": [1, 1, 1]}
    read, messages = 0, []
    for *keys, last in filter(None, places_in(full)):
        for odd in ODD:
            changed = json.loads(json.dumps(full))
            part = changed
            for key in keys:
                part = part[key]
            part[last] = odd
            path.write_text(json.dumps(changed))
            try:
                read += len(load_dataset(path).episodes)
            except InvalidFile as error:
                messages.append(str(error))
    assert read
    assert all(message.startswith(f"{path}: ") and "$" not in message for message in messages)
