"""R2R-CE and RxR-CE: what is in the files arrives, in our axes; what is wrong with them is said."""

import gzip
import json
import math

import msgspec
import numpy as np
import pytest
import vlnce_files
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import documents
from proctor.core.errors import InvalidFile, UserError
from proctor.core.geometry import distance, pose_after
from proctor.core.types import Action, Pose2, Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.vlnce import Extra, VlnceRecord, episode_of
from proctor.exams.vln.vlnce_writer import save_vlnce, to_vlnce, writing_notes


@pytest.fixture
def split(tmp_path):
    document, gt = vlnce_files.r2r()
    return vlnce_files.write_split(tmp_path, document, gt)


def changed(folder, change, *, gt=True, make=vlnce_files.r2r):
    document, truth = make()
    change(document["episodes"])
    return vlnce_files.write_split(folder, document, truth if gt else None)


def test_an_episode_arrives_whole_and_in_our_axes(split):
    document, gt = vlnce_files.r2r()
    record = document["episodes"][3]
    dataset = load_dataset(split)
    episode = dataset.episodes[3]
    x, y, z = record["start_position"]
    assert (dataset.format, len(dataset.episodes), dataset.notes) == ("r2r-ce", 9, [])
    assert episode.episode_id == str(record["episode_id"])
    assert episode.scene_id == "scene02Ab"
    assert episode.start_position == Vector3(x, -z, y)
    assert episode.instruction == record["instruction"]["instruction_text"]
    assert episode.success_threshold == 3.0
    assert episode.split == "val_unseen"
    assert len(episode.reference_path) == len(gt["4"]["locations"])
    assert episode.origin.scene_id == record["scene_id"]
    assert episode.origin.waypoints[-1] == episode.goal_position


@pytest.mark.parametrize(("make", "role"), [(vlnce_files.r2r, ""), (vlnce_files.rxr, "guide")])
def test_the_reference_actions_drive_along_the_reference_path(tmp_path, make, role):
    """Turns, axes and headings all have to be right for this."""
    for episode in load_dataset(vlnce_files.write_split(tmp_path, *make(), role=role)).episodes:
        pose = Pose2(episode.start_position.x, episode.start_position.y, episode.start_yaw)
        driven = [pose]
        for action in episode.reference_actions:
            pose = pose_after(action, pose)
            driven += [pose] if action is Action.FORWARD else []
        expected = [(point.x, point.y) for point in episode.reference_path]
        assert np.allclose([(p.x, p.y) for p in driven], expected, atol=1e-6)
        assert episode.reference_actions[-1] is Action.STOP


def test_rxr_has_languages_instruction_ids_and_turns_of_30_degrees(tmp_path):
    document, gt = vlnce_files.rxr()
    dataset = load_dataset(vlnce_files.write_split(tmp_path, document, gt, role="guide"))
    assert dataset.format == "rxr-ce"
    assert {episode.language for episode in dataset.episodes} == {"en-US", "en-IN", "hi-IN", "te-IN"}
    assert (
        dataset.episodes[0].origin.instruction_id == document["episodes"][0]["instruction"]["instruction_id"]
    )
    assert dataset.episodes[0].split == "val_unseen"
    turns = sum(action in (2, 3) for action in gt["1"]["actions"])
    assert sum(a in (Action.LEFT, Action.RIGHT) for a in dataset.episodes[0].reference_actions) == 2 * turns


def test_a_gt_with_other_turns_than_usual_is_noticed(tmp_path):
    document, gt = vlnce_files.rxr(60)
    for record in document["episodes"]:
        del record["instruction"]["instruction_id"]  # R2R by its looks
    dataset = load_dataset(vlnce_files.write_split(tmp_path, document, gt))
    turns = sum(action in (2, 3) for action in gt["1"]["actions"])
    assert dataset.format == "r2r-ce"
    assert sum(a in (Action.LEFT, Action.RIGHT) for a in dataset.episodes[0].reference_actions) == 2 * turns


def test_a_test_split_has_no_goals_and_says_so(tmp_path):
    document = vlnce_files.without_goals(vlnce_files.r2r()[0])
    dataset = load_dataset(vlnce_files.write_split(tmp_path, document, split="test"))
    assert all(episode.goal_position is None for episode in dataset.episodes)
    assert any("9 of 9 episodes have no goal" in note for note in dataset.notes)


def test_without_gt_no_reference_path_is_made_up(tmp_path):
    dataset = load_dataset(vlnce_files.write_split(tmp_path, vlnce_files.r2r()[0]))
    assert all(episode.reference_path is None for episode in dataset.episodes)
    assert any("nDTW, SDTW and CLS are not measured" in note for note in dataset.notes)


def test_an_episode_without_gt_among_others_is_counted(tmp_path):
    document, gt = vlnce_files.r2r()
    del gt["5"]
    dataset = load_dataset(vlnce_files.write_split(tmp_path, document, gt))
    assert dataset.episodes[4].reference_path is None
    assert "1 of 9 episodes have no gt" in dataset.notes[0]


def test_the_gt_of_another_version_is_refused_and_both_are_named(tmp_path):
    document, _ = vlnce_files.r2r(30, version="v1-3")
    other, gt = vlnce_files.r2r(30, version="v1-2")
    for mine, theirs in zip(document["episodes"], other["episodes"], strict=True):
        mine["start_position"] = theirs["start_position"]  # as in the real ones: only headings differ
    path = vlnce_files.write_split(tmp_path, document, gt)
    with pytest.raises(InvalidFile, match=r"episodes look like R2R-CE v1-3, this gt like v1-2") as caught:
        load_dataset(path)
    assert "val_unseen_gt.json.gz" in str(caught.value)


def test_the_gt_of_another_split_or_dataset_is_refused(tmp_path):
    document, gt = vlnce_files.r2r()
    path = vlnce_files.write_split(tmp_path, document, {f"x{key}": entry for key, entry in gt.items()})
    with pytest.raises(InvalidFile, match="none of its 9 entries"):
        load_dataset(path)
    path = vlnce_files.write_split(tmp_path, document, vlnce_files.r2r(seed=5)[1])
    with pytest.raises(InvalidFile, match="begin elsewhere"):
        load_dataset(path)


def test_a_few_first_moves_along_a_wall_are_no_reason_to_refuse(tmp_path):
    document, gt = vlnce_files.r2r(60)
    (x, _, z), second = gt["1"]["locations"][:2]
    second[0], second[2] = x + 0.25 * math.sin(1.0), z + 0.25 * math.cos(1.0)
    assert load_dataset(vlnce_files.write_split(tmp_path, document, gt)).notes == []


def test_wxyz_files_are_refused_with_a_remedy(tmp_path):
    def reorder(records):
        for record in records:
            x, y, z, w = record["start_rotation"]
            record["start_rotation"] = [w, x, y, z]

    with pytest.raises(InvalidFile, match=r"looks like wxyz \(9 of 9 .*check-dataset .* --fix OUT"):
        load_dataset(changed(tmp_path, reorder))


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        (
            "start_rotation",
            [0.5, 0.5, 0.5, 0.5],
            r"episodes\[2\]\.start_rotation: expected a rotation about the up",
        ),
        (
            "start_rotation",
            [0, 2.0, 0, 0],
            r"episodes\[2\]\.start_rotation: expected a quaternion of length 1",
        ),
        ("start_rotation", [0, 1, 0], r"episodes\[2\]\.start_rotation: Expected `array` of length 4"),
        ("start_position", [0, "1", 0], r"episodes\[2\]\.start_position\[1\]: Expected `float`, got `str`"),
        ("start_position", [0, 1e9, 0], r"episodes\[2\]: start_position: expected numbers within"),
        ("start_position", [0, float("nan"), 0], r"episodes\[2\]\.start_position\[1\]: nan is not allowed"),
        ("goals", [{"radius": 3.0}], r"episodes\[2\]\.goals\[0\]: .*missing.*`position`"),
        ("goals", [{"position": [0, 0, 0]}] * 2, r"episodes\[2\]: goals: expected one goal, found 2"),
        ("instruction", "go", r"episodes\[2\]\.instruction: Expected `object`, got `str`"),
        ("episode_id", None, r"episodes\[2\]\.episode_id"),
        ("episode_id", 1, r"episodes\[2\]\.episode_id: the id '1' is taken by episodes\[0\]"),
    ],
)
def test_each_mistake_is_named_with_its_place(tmp_path, key, value, complaint):
    path = changed(tmp_path, lambda records: records[2].update({key: value}), gt=False)
    with pytest.raises(InvalidFile, match=complaint) as caught:
        load_dataset(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"locations": []}, r"3\.locations: expected at least one point"),
        ({"locations": [[1, 2]]}, r"3\.locations\[0\]: Expected `array` of length 3"),
        ({"actions": [1, 9, 0]}, r"3\.actions: expected 0 to 5, found 9"),
    ],
)
def test_a_broken_gt_is_named_with_its_episode(tmp_path, change, complaint):
    document, gt = vlnce_files.r2r()
    path = vlnce_files.write_split(tmp_path, document, {**gt, "3": {**gt["3"], **change}})
    with pytest.raises(InvalidFile, match=complaint) as caught:
        load_dataset(path)
    assert "_gt.json.gz" in str(caught.value)


@pytest.mark.parametrize("which", ["val_unseen.json.gz", "val_unseen_gt.json.gz"])
def test_a_cut_or_broken_or_huge_gz_is_refused(split, monkeypatch, which):
    file = split.parent / which
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidFile, match=rf"{which}: the gzip file ends too early"):
        load_dataset(split)
    file.write_bytes(whole[:-8] + b"\0\0\0\0" + whole[-4:])
    with pytest.raises(InvalidFile, match=rf"{which}: a broken gzip file"):
        load_dataset(split)
    file.write_bytes(gzip.decompress(whole))
    with pytest.raises(InvalidFile, match=rf"{which}: not a gzip file, though its name"):
        load_dataset(split)
    file.write_bytes(gzip.compress(b" " * 2**22))
    monkeypatch.setattr(documents, "MAX_BYTES", 2**20)
    with pytest.raises(InvalidFile, match=rf"{which}: has more than 1 MiB"):
        load_dataset(split)


def test_several_gzip_members_and_no_gzip_at_all_are_read(tmp_path, split):
    raw = gzip.decompress(split.read_bytes())
    split.write_bytes(gzip.compress(raw[:500]) + gzip.compress(raw[500:]))
    assert len(load_dataset(split).episodes) == 9
    (tmp_path / "plain.json").write_bytes(raw)
    assert load_dataset(tmp_path / "plain.json").format == "r2r-ce"


def test_a_folder_stands_for_its_only_episodes_else_all_are_listed(tmp_path, split):
    assert load_dataset(split.parent).path == split
    assert load_dataset(tmp_path).path == split
    document, gt = vlnce_files.rxr()
    for role in ("guide", "follower"):
        vlnce_files.write_split(tmp_path / "rxr", document, gt, role=role)
    with pytest.raises(
        InvalidFile, match=r"give one of them: val_unseen_follower.json.gz, val_unseen_guide.json"
    ):
        load_dataset(tmp_path / "rxr" / "val_unseen")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidFile, match="holds no episodes"):
        load_dataset(tmp_path / "empty")
    with pytest.raises(InvalidFile, match="looks like a gt file"):
        load_dataset(split.with_name("val_unseen_gt.json.gz"))


def test_scenes_are_looked_for_in_the_given_folder(tmp_path, split):
    (tmp_path / "mp3d" / "scene01Ab").mkdir(parents=True)
    mesh = tmp_path / "mp3d" / "scene01Ab" / "scene01Ab.glb"
    mesh.write_bytes(b"glTF")
    found = {e.scene_id: e.scene_config_path for e in load_dataset(split, scenes=tmp_path / "mp3d").episodes}
    assert found == {"scene01Ab": str(mesh), "scene02Ab": None, "scene03Ab": None}
    with pytest.raises(UserError, match=r"--scenes: .* is not a directory"):
        load_dataset(split, scenes=mesh)


def test_the_digest_is_of_the_gt_as_well(tmp_path):
    document, gt = vlnce_files.r2r()
    first = load_dataset(vlnce_files.write_split(tmp_path, document, gt)).digest
    gt["1"]["locations"].append(gt["1"]["locations"][-1])
    assert load_dataset(vlnce_files.write_split(tmp_path, document, gt)).digest != first


@pytest.mark.parametrize(
    ("make", "role", "format_"), [(vlnce_files.r2r, "", "r2r-ce"), (vlnce_files.rxr, "guide", "rxr-ce")]
)
def test_to_native_and_back_loses_nothing_that_is_used(tmp_path, make, role, format_):
    document, gt = make(30)
    save_dataset(
        load_dataset(vlnce_files.write_split(tmp_path, document, gt, role=role)).episodes, tmp_path / "n.json"
    )
    save_vlnce(load_dataset(tmp_path / "n.json").episodes, tmp_path / "back.json.gz", format_)
    back = json.loads(gzip.decompress((tmp_path / "back.json.gz").read_bytes()))["episodes"]
    for was, now in zip(document["episodes"], back, strict=True):
        assert {k: was[k] for k in ("episode_id", "trajectory_id", "scene_id", "info")} == {
            k: now[k] for k in ("episode_id", "trajectory_id", "scene_id", "info")
        }
        assert was["instruction"]["instruction_text"] == now["instruction"]["instruction_text"]
        assert was["instruction"].get("instruction_id") == now["instruction"].get("instruction_id")
        for key in ("start_position", "start_rotation", "reference_path"):
            assert np.allclose(was[key], now[key], rtol=0, atol=1e-6)
        assert np.allclose(was["goals"][0]["position"], now["goals"][0]["position"], rtol=0, atol=1e-6)
        assert now["goals"][0]["radius"] == 3.0
    truth = json.loads(gzip.decompress((tmp_path / "back_gt.json.gz").read_bytes()))
    for key, entry in gt.items():
        assert np.allclose(entry["locations"], truth[key]["locations"], rtol=0, atol=1e-6)
        assert truth[key]["actions"] == [a for a in entry["actions"] if a < 4]
        assert truth[key]["forward_steps"] == entry["forward_steps"]


NUMBERS = st.floats(-1e4, 1e4)
POINTS = st.tuples(NUMBERS, NUMBERS, NUMBERS)


@given(POINTS, POINTS, st.floats(-math.pi, math.pi), st.text(max_size=20), st.integers(0, 10**9))
def test_any_episode_comes_back_exactly_to_a_micrometre(start, goal, half_rad, text, number):
    rotation = (0.0, math.sin(half_rad), 0.0, math.cos(half_rad))
    record = {
        "episode_id": number,
        "scene_id": "mp3d/a/a.glb",
        "start_position": start,
        "start_rotation": rotation,
        "goals": [{"position": goal, "radius": 3.0}],
        "instruction": {"instruction_text": text},
    }
    typed = documents.convert(record, VlnceRecord, "memory")
    (back,) = to_vlnce(
        [episode_of(typed, None, Extra(), format_="r2r-ce", turn_deg=15, split=None)], "r2r-ce"
    )["episodes"]
    assert np.allclose(back["start_position"], start, rtol=0, atol=1e-6)
    assert np.allclose(back["goals"][0]["position"], goal, rtol=0, atol=1e-6)
    assert np.allclose(back["start_rotation"], rotation, rtol=0, atol=1e-6)
    assert back["episode_id"] == number
    assert back["instruction"]["instruction_text"] == text


def test_native_episodes_can_be_written_as_r2r(tmp_path):
    episode = Episode(
        episode_id="ep_1",
        scene_id="house",
        start_rotation=Vector3(0, 0, 30),
        goal_position=Vector3(1, 1, 0),
        instruction="Go.",
        reference_path=[Vector3(0, 0, 0), Vector3(0.25 * math.sqrt(0.5), 0.25 * math.sqrt(0.5), 0)],
        reference_actions=[Action.LEFT, Action.FORWARD, Action.STOP],
    )
    save_vlnce([episode], tmp_path / "e.json", "r2r-ce")
    (back,) = load_dataset(tmp_path / "e.json").episodes
    assert back.start_yaw == pytest.approx(math.radians(30))
    assert distance(back.goal_position, episode.goal_position) == 0
    assert (back.episode_id, back.scene_id, back.reference_actions) == (
        "ep_1",
        "house",
        episode.reference_actions,
    )
    elsewhere = msgspec.structs.replace(episode, reference_path=[Vector3(0, 0, 0), Vector3(0.25, 0, 0)])
    save_vlnce([elsewhere], tmp_path / "e.json", "r2r-ce")
    (back,) = load_dataset(tmp_path / "e.json").episodes
    assert (back.reference_path, back.reference_actions) == (
        elsewhere.reference_path,
        elsewhere.reference_actions,
    )
    with pytest.raises(UserError, match="no instruction id, which RxR-CE needs"):
        save_vlnce([episode], tmp_path / "x.json", "rxr-ce")
    tilted = Episode(start_rotation=Vector3(10, 0, 0))
    with pytest.raises(UserError, match="starts tilted"):
        save_vlnce([tilted], tmp_path / "x.json", "r2r-ce")


def test_a_native_exam_is_the_same_after_a_way_there_and_back(tmp_path):
    full = Episode(
        episode_id="a",
        scene_id="house",
        goal_position=Vector3(1, 2, 0),
        instruction="往前走。",
        max_steps=77,
        success_threshold=0.5,
        reference_actions=[Action.LEFT, Action.STOP],
        language="zh",
        level="short",
        split="val_seen",
    )
    bare = Episode(episode_id="b", scene_id="house", goal_position=Vector3(1, 0, 0), instruction="Go.")
    save_vlnce([full, bare], tmp_path / "e.json", "r2r-ce")
    document = json.loads((tmp_path / "e.json").read_text())
    assert [record["goals"][0]["radius"] for record in document["episodes"]] == [0.5, 0.2]
    assert "proctor" not in document["episodes"][0]  # VLN-CE's reader would fail on an unknown key there
    assert load_dataset(tmp_path / "e.json").episodes == [full, bare]
    notes = writing_notes([full, bare], "r2r-ce")
    assert notes[0].startswith("1 of 2 episodes have no success_threshold: written as radius 0.2 m")
    assert notes[1].startswith("2 of 2 episodes have step limits")


def test_trajectory_ids_keep_their_type(tmp_path):
    document, gt = vlnce_files.rxr()
    for index, record in enumerate(document["episodes"]):
        record["trajectory_id"] = index
    episodes = load_dataset(vlnce_files.write_split(tmp_path, document, gt, role="guide")).episodes
    save_dataset(episodes, tmp_path / "n.json")
    back = to_vlnce(load_dataset(tmp_path / "n.json").episodes, "rxr-ce")["episodes"]
    assert [record["trajectory_id"] for record in back] == list(range(8))
