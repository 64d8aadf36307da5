"""`check-dataset` finds all that is odd at once, and its copies are repaired and complete."""

import gzip
import hashlib
import json
import math
import shutil
from contextlib import closing

import mesh_houses
import pytest
import vlnce_files

from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.core.registry import suite_path
from proctor.core.types import Vector3
from proctor.exams.checked_dataset import examine, write_fixed
from proctor.exams.datasets import check_before_run, load_dataset, save_dataset
from proctor.exams.vln import files as vln_files
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.vlnce_writer import save_vlnce
from proctor.worlds.mujoco.wheeled import env as vln
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.mujoco.wheeled.world import World


def findings(checked):
    return {item.kind: item for item in checked.findings.items}


def errors(checked):
    return {item.kind: item.count for item in checked.findings.items if item.severity == "error"}


@pytest.fixture
def files():
    return vlnce_files.r2r()


def reorder(record):
    x, y, z, w = record["start_rotation"]
    record["start_rotation"] = [w, x, y, z]


@pytest.mark.slow
def test_our_own_suite_has_no_findings():
    assert examine(suite_path("houses-v1")).findings.items == []


def test_some_episodes_of_our_own_suite_have_no_findings(tmp_path):
    save_dataset(load_dataset(suite_path("houses-v1")).episodes[::30], tmp_path / "episodes.json")
    assert examine(tmp_path / "episodes.json").findings.items == []


def test_a_clean_split_has_no_errors(tmp_path, files):
    checked = examine(vlnce_files.write_split(tmp_path, *files))
    assert errors(checked) == {}
    assert "R2R-CE v1-3" in findings(checked)["version"].text


def test_stairs_are_counted_as_what_a_filter_would_drop(tmp_path, files):
    document, gt = files
    climbing = {
        i
        for i, e in enumerate(document["episodes"])
        if gt[str(i + 1)]["locations"][-1][1] - e["start_position"][1] > 1
    }
    checked = examine(vlnce_files.write_split(tmp_path, document, gt))
    assert climbing
    assert checked.findings.filters["level-change"] == climbing
    flat = document["episodes"][next(iter(set(range(9)) - climbing))]
    gt[str(flat["episode_id"])]["locations"][5][1] += 0.4  # up and down again on the way
    checked = examine(vlnce_files.write_split(tmp_path, document, gt))
    assert len(checked.findings.filters["level-change"]) == len(climbing) + 1


def test_a_wxyz_file_is_repaired_and_its_copy_keeps_all_else(tmp_path, files):
    document, gt = files
    for record in document["episodes"]:
        reorder(record)
    checked = examine(vlnce_files.write_split(tmp_path, document, gt))
    assert errors(checked) == {"quaternion-order": 9}
    fixed = write_fixed(checked, tmp_path / "out" / "fixed.json.gz")
    copied = json.loads(gzip.decompress(fixed.file.read_bytes()))
    assert copied == vlnce_files.r2r()[0]
    assert (fixed.kept, fixed.dropped, fixed.changes) == (9, 0, 9)
    assert load_dataset(fixed.file).episodes[0].reference_path is not None
    assert len(json.loads(fixed.report.read_text())["changed"]) == 9


def test_every_mistake_of_a_file_is_found_in_one_go(tmp_path):
    document, gt = vlnce_files.r2r(60)
    records = document["episodes"]
    reorder(records[0])
    records[1]["start_rotation"] = [0.0, 2.0, 0.0, 0.0]
    records[2]["start_rotation"] = [0.1, 0.7, 0.1, 0.7]
    records[3]["start_position"] = [0.0, "1", 0.0]
    records[4]["start_position"][1] = float("nan")
    records[5]["episode_id"] = records[6]["episode_id"]
    records[7]["instruction"]["instruction_text"] = "  "
    records[8] = 3
    checked = examine(vlnce_files.write_split(tmp_path, document, gt))
    assert errors(checked) == {
        "quaternion-order": 1,
        "quaternion-length": 1,
        "quaternion-tilt": 1,
        "malformed": 1,
        "duplicate-id": 1,
        "empty-instruction": 1,
    } | {"malformed": errors(checked)["malformed"]}
    places = [place for item in checked.findings.items if item.kind == "malformed" for place in item.places]
    assert places == ["episodes[3].start_position[1]", "episodes[4].start_position[1]", "episodes[8]"]


@pytest.mark.parametrize("rotation", [[0, 0, 0, 0], [0, 1e300, 0, 0], [0.7, 0, 0.7, 0.01], [0.0, 0.05, 0, 0]])
def test_rotations_without_a_heading_are_repaired_or_dropped_but_never_copied(tmp_path, files, rotation):
    document, gt = files
    document["episodes"][0]["start_rotation"] = rotation
    checked = examine(vlnce_files.write_split(tmp_path, document, gt))
    assert sum(kind.startswith("quaternion") for kind in errors(checked))
    assert len(load_dataset(write_fixed(checked, tmp_path / "f.json").file).episodes) >= 8


def test_a_corrected_copy_loads_and_names_what_it_lacks(tmp_path, files):
    document, gt = files
    records = document["episodes"]
    records[3]["start_position"] = [0.0, "1", 0.0]
    records[2]["episode_id"] = records[1]["episode_id"]
    records[7]["instruction"]["instruction_text"] = ""
    checked = examine(vlnce_files.write_split(tmp_path, document, gt))
    fixed = write_fixed(checked, tmp_path / "fixed.json.gz")
    dataset = load_dataset(fixed.file)
    assert [e.episode_id for e in dataset.episodes] == ["1", "2", "2_2", "5", "6", "7", "9"]
    assert dataset.episodes[2].reference_path == dataset.episodes[1].reference_path
    report = json.loads(fixed.report.read_text())
    assert [(item["place"], item["episode_id"]) for item in report["dropped"]] == [
        ("episodes[3]", 4),
        ("episodes[7]", 8),
    ]
    assert "empty-instruction" in report["dropped"][1]["reason"]
    assert errors(examine(fixed.file)) == {}


def test_filters_drop_only_when_asked(tmp_path, files):
    document, gt = files
    checked = examine(vlnce_files.write_split(tmp_path, document, gt))
    stairs = len(checked.findings.filters["level-change"])
    assert write_fixed(checked, tmp_path / "a.json").kept == 9
    assert write_fixed(checked, tmp_path / "b.json", drop=["level-change"]).kept == 9 - stairs
    gt_copy = json.loads((tmp_path / "b_gt.json").read_text())
    assert len(gt_copy) == 9 - stairs
    with pytest.raises(UnknownName, match="did you mean 'level-change'"):
        write_fixed(checked, tmp_path / "c.json", drop=["level-chnge"])
    with pytest.raises(UserError, match=r"a.json exists already"):
        write_fixed(checked, tmp_path / "a.json")
    with pytest.raises(UserError, match="no episode would be left"):
        write_fixed(checked, tmp_path / "d.json", drop=["no-scene"])


def test_gt_of_another_version_missing_or_broken_is_a_finding(tmp_path, files):
    document, gt = files
    other, other_gt = vlnce_files.r2r(version="v1-2")
    for mine, theirs in zip(document["episodes"], other["episodes"], strict=True):
        mine["start_position"] = theirs["start_position"]
    path = vlnce_files.write_split(tmp_path, document, other_gt)
    checked = examine(path)
    assert errors(checked) == {"gt-version": 1}
    assert load_dataset(write_fixed(checked, tmp_path / "without.json").file).notes
    truth = path.with_name("val_unseen_gt.json.gz")
    truth.write_bytes(truth.read_bytes()[:90])
    assert errors(examine(path)) == {"gt-broken": 1}
    truth.unlink()
    assert findings(examine(path))["no-gt"].count == 9
    del gt["4"]
    gt["x"] = gt["1"]
    gt["2"]["forward_steps"] += 1
    found = findings(examine(vlnce_files.write_split(tmp_path / "b", vlnce_files.r2r()[0], gt)))
    assert (found["no-gt"].places, found["gt-extra"].places) == (["episodes[3]"], ["x"])
    assert found["gt-inconsistent"].places == ["2"]


def test_z_up_files_and_y_up_native_ones_are_suspected(tmp_path, files):
    document, _ = files
    for record in document["episodes"]:
        record["start_rotation"] = [0.0, 0.0, 0.6, 0.8]
    assert errors(examine(vlnce_files.write_split(tmp_path, document)))["up-axis"] == 9
    save_dataset([Episode(goal_position=Vector3(5, 0, 3), instruction="Go.")], tmp_path / "episodes.json")
    found = findings(examine(tmp_path / "episodes.json"))
    assert "is another axis up?" in found["up-axis"].text
    assert found["level-change"].count == 1


def test_equal_instructions_duplicates_and_starts_at_the_goal_are_found(tmp_path):
    def episode(name, x, words="Go there."):
        return Episode(episode_id=name, scene_id="s", goal_position=Vector3(x, 0, 0), instruction=words)

    episodes = [episode("a", 5), episode("b", 6, "go  there."), episode("c", 5), episode("d", 0.05, "Stay.")]
    save_dataset(episodes, tmp_path / "episodes.json")
    found = findings(examine(tmp_path / "episodes.json"))
    assert found["equal-instruction"].count == 3
    assert found["duplicate"].places == ["episodes[2]"]
    assert found["start-at-goal"].places == ["episodes[3]"]
    save_dataset([episodes[0], episodes[2]], tmp_path / "episodes.json")
    assert "equal-instruction" not in findings(examine(tmp_path / "episodes.json"))


def test_a_start_is_at_the_goal_by_the_distance_that_has_to_be_driven(tmp_path, files):
    document, gt = files
    for record, geodesic_m in zip(document["episodes"], (2.0, 5.0, None), strict=False):
        x, y, z = record["start_position"]
        record["goals"][0]["position"] = [x + 1.5, y, z]
        record["info"] = {"geodesic_distance": geodesic_m} if geodesic_m else {}
    found = findings(examine(vlnce_files.write_split(tmp_path, document, gt)))
    assert found["start-at-goal"].ids == ["1", "3"]


def test_a_start_behind_a_wall_is_not_at_the_goal(tmp_path):
    wall = {"name": "wall", "translate": [0.5, 0, 1], "parts": [{"shape": "box", "size": [0.1, 8, 2]}]}
    vlnce_files.write(tmp_path / "scenes" / "s.json", {"scene_name": "s", "objects": [wall]})
    goals = {"behind": Vector3(1, 0, 0), "before": Vector3(-1, 0, 0)}
    episodes = [
        Episode(episode_id=name, scene_id="s", goal_position=goal, instruction=name, success_threshold=3.0)
        for name, goal in goals.items()
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    assert findings(examine(tmp_path / "episodes.json"))["start-at-goal"].ids == ["before"]


def test_changes_of_level_are_found_from_the_waypoints_where_there_is_no_gt(tmp_path, files):
    document, _ = files
    path = document["episodes"][4]["reference_path"]
    path[1] = [path[1][0], path[1][1] + 1.0, path[1][2]]  # up and down again
    flat = [
        record["goals"][0]["position"][1] == record["start_position"][1] for record in document["episodes"]
    ]
    expected = sorted({"5", *(str(index + 1) for index, is_flat in enumerate(flat) if not is_flat)}, key=int)
    found = findings(examine(vlnce_files.write_split(tmp_path, document)))
    assert flat[4]
    assert found["level-change"].ids == expected


def test_a_native_file_that_the_loader_refuses_is_repaired(tmp_path):
    good = {
        "episode_id": "a",
        "scene_id": "s",
        "start_position": {"x": 0, "y": 0, "z": 0},
        "start_rotation": {"x": 0, "y": 0, "z": 0},
        "goal_position": {"x": 3, "y": 0, "z": 0},
        "instruction": "Go.",
    }
    records = [good, {**good, "episode_id": 7, "instruction": "Go 7."}, {**good, "instruction": "Go a."}]
    records += [
        {**good, "episode_id": "d", "max_steps": 0},
        {k: v for k, v in good.items() if k != "scene_id"},
    ]
    path = tmp_path / "episodes.json"
    path.write_text(json.dumps({"episodes": records, "version": 1}))
    checked = examine(path)
    assert set(errors(checked)) == {"unknown-key", "id-type", "malformed", "duplicate-id"}
    places = [place for item in checked.findings.items if item.kind == "malformed" for place in item.places]
    assert places == ["episodes[3].max_steps", "episodes[4]"]
    fixed = write_fixed(checked, tmp_path / "fixed.json")
    assert [e.episode_id for e in load_dataset(fixed.file).episodes] == ["a", "7", "a_2"]


def test_a_changed_byte_in_a_frozen_exam_is_found(tmp_path):
    save_dataset([Episode(instruction="Go.", goal_position=Vector3(3, 0, 0))], tmp_path / "episodes.json")
    digest = hashlib.sha256((tmp_path / "episodes.json").read_bytes()).hexdigest()
    (tmp_path / "checksums.json").write_text(json.dumps({"episodes.json": digest}))
    assert "frozen" not in findings(examine(tmp_path))
    changed = (tmp_path / "episodes.json").read_text().replace("Go.", "No.")
    (tmp_path / "episodes.json").write_text(changed)
    assert "has changed since the exam was frozen" in findings(examine(tmp_path))["frozen"].text


@pytest.fixture
def room(tmp_path):
    """A closed room of 4 m x 4 m with a cupboard, and episodes in and out of it."""
    walls = [
        ((2, 0), (0.1, 4)),
        ((-2, 0), (0.1, 4)),
        ((0, 2), (4, 0.1)),
        ((0, -2), (4, 0.1)),
        ((1, 1), (0.6, 0.6)),
    ]
    objects = [
        {"name": f"box{i}", "translate": [x, y, 0.5], "parts": [{"shape": "box", "size": [w, d, 1.0]}]}
        for i, ((x, y), (w, d)) in enumerate(walls)
    ]
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes" / "room.json").write_text(json.dumps({"scene_name": "room", "objects": objects}))
    goals = {"in": (-1, -1), "cupboard": (1, 1), "behind_the_wall": (2.4, 0), "far": (50, 0)}
    episodes = [
        Episode(episode_id=k, scene_id="room", goal_position=Vector3(*xy, 0), instruction=k)
        for k, xy in goals.items()
    ]
    episodes.append(Episode(episode_id="lost", scene_id="x", goal_position=Vector3(1, 0, 0), instruction="x"))
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path


def test_goals_in_things_beyond_the_map_and_out_of_reach_are_found(room):
    checked = examine(room)
    assert checked.findings.filters["off-map"] == {1, 3}
    assert checked.findings.filters["unreachable"] == {2}
    assert checked.findings.filters["no-scene"] == {4}
    fixed = write_fixed(checked, room / "elsewhere" / "fixed.json", drop=["no-scene"])
    (left,) = load_dataset(fixed.file).episodes
    assert left.episode_id == "in"
    assert left.scene_config_path == str(room / "scenes" / "room.json")


def test_one_world_shows_all_starts_of_a_scene_that_are_blocked(room, monkeypatch):
    built = []
    monkeypatch.setattr(vln, "World", lambda *given, **options: built.append(1) or World(*given, **options))
    xs = [-1.5, 1.85, -1.2, 1.9, -0.9, 1.86]  # the wall at 2 m is closer than the robot's radius, but free
    episodes = [
        Episode(
            episode_id=str(k),
            scene_id="room",
            start_position=Vector3(x, 0, 0),
            goal_position=Vector3(-1, -1, 0),
        )
        for k, x in enumerate(xs)
    ]
    save_dataset(episodes, room / "episodes.json")
    assert examine(room).findings.filters["start-blocked"] == {1, 3, 5}
    assert len(built) == 1


def test_the_ends_of_an_episode_are_checked_each_on_its_floor(tmp_path):
    mesh_houses.write(mesh_houses.two_storeys(), tmp_path / "house.glb", turn=mesh_houses.Y_UP)
    start = Vector3(1, 1, 2.8)
    goals = {"same": (2, 3, 2.8), "below": (2, 3, 0), "hole": (6, 2, 2.8), "wall": (4, 1, 2.8)}
    episodes = [
        Episode(
            episode_id=k, scene_id="house", start_position=start, goal_position=Vector3(*xyz), instruction=k
        )
        for k, xyz in goals.items()
    ]
    save_vlnce(episodes, tmp_path / "val_seen.json.gz", "r2r-ce")
    checked = examine(tmp_path / "val_seen.json.gz", scenes=tmp_path)
    assert checked.findings.filters["unreachable"] == {1}
    assert checked.findings.filters["off-map"] == {2, 3}


def test_a_scenes_folder_without_the_scenes_is_an_error_that_names_them(room, tmp_path):
    (tmp_path / "other").mkdir()
    found = findings(examine(room, scenes=tmp_path / "other"))["no-scene"]
    assert (found.severity, found.text, found.count) == ("error", "no file for 1 scenes: x", 1)


def test_each_scene_is_looked_for_once_however_many_episodes_are_in_it(tmp_path, monkeypatch):
    looked_for = []

    def find(folder, scene_id, **_):
        looked_for.append((folder.name, scene_id))

    monkeypatch.setattr(vln_files, "find_scene", find)
    document, gt = vlnce_files.r2r(episodes=9)
    vlnce_files.write_split(tmp_path, document, gt)
    (tmp_path / "mp3d").mkdir()
    examine(tmp_path / "val_unseen", scenes=tmp_path / "mp3d")
    scenes = {episode["scene_id"] for episode in document["episodes"]}
    folders = ["scenes", "val_unseen", "mp3d"]
    assert sorted(looked_for) == sorted((folder, scene) for folder in folders for scene in scenes)


def test_what_is_no_dataset_at_all_is_refused(tmp_path):
    for content in ("{", "[]", '{"episodes": []}', '{"episodes": 3}'):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(InvalidFile):
            examine(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"actions": [0]}, "missing required field `locations`"),
        ({"locations": [], "actions": [0]}, "expected at least one point"),
        ({"locations": [[0, 0, 0]], "actions": [9]}, "expected 0 to 5, found 9"),
        ({"locations": [[float("nan"), 0, 0]], "actions": [0]}, "NaN is not allowed"),
    ],
)
def test_a_broken_gt_entry_costs_only_itself(tmp_path, files, entry, problem):
    document, gt = files
    gt["4"], gt["6"] = entry, entry
    path = vlnce_files.write_split(tmp_path, document, gt)
    with pytest.raises(InvalidFile, match=r"4.*2 of 9 entries are broken, this is the first; .*--fix"):
        load_dataset(path)
    checked = examine(path)
    assert errors(checked) == {"gt-broken": 2}
    assert problem in findings(checked)["gt-broken"].text
    fixed = write_fixed(checked, tmp_path / "new" / "val_unseen.json.gz")
    without = [e.episode_id for e in load_dataset(fixed.file).episodes if e.reference_path is None]
    assert without == ["4", "6"]


def test_a_few_gts_that_begin_elsewhere_are_named_and_not_taken_for_stairs(tmp_path):
    document, gt = vlnce_files.r2r(40)
    clean = findings(examine(vlnce_files.write_split(tmp_path / "clean", document, gt)))
    gt["5"]["locations"] = [[x, y + 7, z] for x, y, z in gt["5"]["locations"]]
    path = vlnce_files.write_split(tmp_path, document, gt)
    checked = examine(path)
    assert findings(checked)["gt-mismatch"].places == ["5"]
    assert "reference-end" not in findings(checked)
    assert findings(checked)["level-change"].count == clean["level-change"].count
    assert any("1 of 40 episodes begins elsewhere" in note for note in load_dataset(path).notes)
    fixed = write_fixed(checked, tmp_path / "new" / "val_unseen.json.gz")
    assert "gt-mismatch" not in findings(examine(fixed.file))


def test_nan_is_called_nan_and_blanks_of_no_width_say_nothing(tmp_path, files):
    document, gt = files
    document["episodes"][1]["start_position"][0] = float("nan")
    document["episodes"][2]["instruction"]["instruction_text"] = " \u200b\u2060\n"
    found = findings(examine(vlnce_files.write_split(tmp_path, document, gt)))
    assert found["malformed"].text == "NaN is not allowed, expected a finite number"
    assert found["malformed"].places == ["episodes[1].start_position[0]"]
    assert found["empty-instruction"].places == ["episodes[2]"]


def test_a_file_with_z_up_is_not_repaired_episode_by_episode(tmp_path, files):
    document, _ = files
    for index, record in enumerate(document["episodes"]):
        half = math.radians(30 * index) / 2
        record["start_rotation"] = [0.0, 0.0, math.sin(half), math.cos(half)]  # 0° and 180° among them
    checked = examine(vlnce_files.write_split(tmp_path, document))
    assert errors(checked) == {"up-axis": 9}
    with pytest.raises(UserError, match="z is up in it"):
        write_fixed(checked, tmp_path / "new.json")
    assert not (tmp_path / "new.json").exists()


def exam_in_scenes(folder):
    """Write a native exam whose six episodes are each good, or bad in another way."""
    box = {"name": "box", "translate": [3, 0, 0.5], "parts": [{"shape": "box", "size": [1, 1, 1]}]}
    corners = [
        {"name": f"post{x}", "translate": [x, x, 0.5], "parts": [{"shape": "box", "size": [0.1, 0.1, 1]}]}
        for x in (-4, 6)
    ]
    scene = {"scene_name": "good", "objects": [box, *corners]}
    vlnce_files.write(folder / "scenes" / "good.json", scene)
    vlnce_files.write(folder / "scenes" / "broken.json", {"scene_name": "broken", "objects": 3})
    places = [("good", 0), ("good", 2.4), ("good", 3), ("broken", 0), ("missing", 0), ("good", 1)]
    episodes = [
        Episode(
            episode_id=f"e{i}",
            scene_id=scene,
            start_position=(x, 0, 0),
            goal_position=(0, 2, 0),
            instruction="Go.",
        )
        for i, (scene, x) in enumerate(places)
    ]
    save_dataset(episodes, folder / "episodes.json")
    return folder / "episodes.json"


def test_a_corrected_copy_is_one_that_the_embedded_world_runs(tmp_path):
    checked = examine(exam_in_scenes(tmp_path))
    assert errors(checked) == {"no-scene": 1, "scene": 1, "off-map": 1, "start-blocked": 1}
    assert checked.findings.filters["scene"] == {3}
    assert checked.findings.filters["start-blocked"] == {1}
    fixed = write_fixed(checked, tmp_path / "new" / "episodes.json")
    dataset = load_dataset(fixed.file)
    assert [episode.episode_id for episode in dataset.episodes] == ["e0", "e5"]
    assert errors(examine(fixed.file)) == {}
    assert check_before_run(VlnExam(), dataset, dataset.episodes, needs_scene=True) == []
    with closing(VLNEnv(sensors=[])) as env:
        env.check(dataset.episodes)


def test_episodes_without_any_scene_are_only_worth_a_warning(tmp_path):
    path = exam_in_scenes(tmp_path)
    shutil.rmtree(tmp_path / "scenes")
    assert errors(examine(path)) == {}
    assert findings(examine(path))["no-scene"].severity == "warning"


def test_a_file_that_a_frozen_exam_lacks_is_missing_and_has_not_changed(tmp_path):
    path = exam_in_scenes(tmp_path)
    (tmp_path / "checksums.json").write_text('{"scenes/gone.json": "00"}')
    with pytest.raises(InvalidFile, match=r"gone.json: is missing, though .*checksums.json names it"):
        load_dataset(path)
    assert "is missing" in findings(examine(path))["frozen"].text
