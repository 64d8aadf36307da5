"""The commands for public datasets, as a user meets them: what they print, write and return."""

import json

import pytest
import vlnce_files

from proctor import cli
from proctor.core.types import Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.vln.episode import Episode


@pytest.fixture
def split(tmp_path):
    return vlnce_files.write_split(tmp_path / "data", *vlnce_files.r2r())


@pytest.fixture
def proctor(capsys):
    def call(*words):
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), " ".join(captured.err.split())

    return call


def test_check_dataset_tells_findings_and_filters(proctor, split):
    code, out, _ = proctor("check-dataset", split.parent)
    assert code == 0
    assert "9 episodes, r2r-ce" in out
    assert "looks like R2R-CE v1-3" in out
    assert "A filter would drop, of 9 episodes:" in out
    assert "level-change 3" in out


def test_check_dataset_returns_1_for_errors_and_0_once_they_are_fixed(proctor, tmp_path):
    document, gt = vlnce_files.r2r()
    document["episodes"][1]["episode_id"] = 1
    path = vlnce_files.write_split(tmp_path, document, gt)
    code, out, _ = proctor("check-dataset", path)
    assert code == 1
    assert "duplicate-id: the id is taken" in out
    assert "episodes[1]" in out
    code, out, _ = proctor("check-dataset", path, "--fix", tmp_path / "fixed.json.gz")
    assert code == 0
    assert "9 episodes, 1 changes, 0 dropped" in out
    assert len(load_dataset(tmp_path / "fixed.json.gz").episodes) == 9


def test_check_dataset_lists_episodes_by_their_ids(proctor, tmp_path):
    document, gt = vlnce_files.r2r(30)
    for record in document["episodes"]:
        record["episode_id"] += 700
        record["instruction"]["instruction_text"] = ""
    path = vlnce_files.write_split(tmp_path, document, {str(int(key) + 700): gt[key] for key in gt})
    _, out, _ = proctor("check-dataset", path)
    told = out.partition("nothing is said (dropped by --fix)")[2]
    assert told.strip().startswith("701, 702, 703, ")
    assert "720 and 10 more (--all lists them)" in told
    _, out, _ = proctor("check-dataset", path, "--all")
    assert "729, 730" in out.partition("nothing is said")[2]


def test_what_is_printed_of_a_dataset_cannot_move_the_cursor(proctor, tmp_path):
    evil = "\x1b[2Jevil\u202e"
    episodes = [Episode(episode_id=evil, scene_id=evil, goal_position=Vector3(1, 0, 0)) for _ in range(2)]
    save_dataset(episodes, tmp_path / "episodes.json")
    (tmp_path / evil).mkdir()
    for words in (
        ["check-dataset", tmp_path],
        ["check-dataset", tmp_path / evil],
        ["report", tmp_path / evil],
    ):
        _, out, err = proctor(*words)
        assert "evil" in out + err
        assert not {"\x1b", "\u202e"} & set(out + err)


def test_check_dataset_returns_2_for_what_is_no_dataset(proctor, tmp_path, split):
    (tmp_path / "x.json").write_text("{")
    code, _, err = proctor("check-dataset", tmp_path / "x.json")
    assert code == 2
    assert "x.json: line 1, column 2: invalid JSON" in err
    code, _, err = proctor("check-dataset", split, "--drop", "level-change")
    assert code == 2
    assert "give --fix OUT as well" in err


def test_convert_goes_there_and_back_and_overwrites_nothing(proctor, tmp_path, split):
    code, out, _ = proctor("convert", split, tmp_path / "native.json")
    assert (code, out) == (0, f"9 episodes: {tmp_path / 'native.json'}")
    code, out, _ = proctor("convert", tmp_path / "native.json", tmp_path / "back.json.gz", "--to", "r2r-ce")
    assert code == 0
    assert "back.json.gz and" in out
    # Only the split is no longer known: it was in the name of the file.
    again = load_dataset(tmp_path / "back.json.gz").episodes
    before = load_dataset(split).episodes
    assert [e.reference_actions for e in again] == [e.reference_actions for e in before]
    assert [e.origin for e in again] == [e.origin for e in before]
    code, _, err = proctor("convert", split, tmp_path / "native.json")
    assert code == 2
    assert "exists already" in err


def test_a_gt_of_another_file_is_neither_overwritten_nor_taken_for_its_own(proctor, tmp_path, split):
    other = tmp_path / "new_gt.json.gz"
    other.write_bytes(b"of another file")
    code, _, err = proctor("convert", split, tmp_path / "new.json", "--to", "r2r-ce")
    assert (code, other.read_bytes()) == (2, b"of another file")
    assert "new_gt.json.gz exists already" in err


def test_converted_scene_paths_hold_from_the_new_folder(proctor, tmp_path, split):
    (tmp_path / "mp3d").mkdir()
    (tmp_path / "mp3d" / "scene01Ab.glb").write_bytes(b"glTF")
    proctor("convert", split, tmp_path / "new" / "native.json", "--scenes", tmp_path / "mp3d")
    written = json.loads((tmp_path / "new" / "native.json").read_text())["episodes"]
    assert written[0]["scene_config_path"] == "../mp3d/scene01Ab.glb"
    episode = load_dataset(tmp_path / "new" / "native.json").episodes[0]
    assert episode.scene_config_path == str(tmp_path / "mp3d" / "scene01Ab.glb")


@pytest.fixture
def run_folder(tmp_path, proctor, split):
    out = tmp_path / "run"
    words = ("--policy", "replay", "--env", "mock", "--out", out)
    assert proctor("run", "--dataset", split, *words)[0] == 0
    return out


def test_a_run_becomes_predictions_that_score_as_the_run_did(proctor, tmp_path, split, run_folder):
    code, out, _ = proctor("predictions", run_folder, "--out", tmp_path / "p.json")
    assert code == 0
    assert "9 episodes in the format of R2R" in out
    code, out, _ = proctor("score", tmp_path / "p.json", "--dataset", split, "--out", tmp_path / "scored")
    assert code == 0
    assert "straight-line distance" in out
    assert "not comparable with those by path distance" in out
    driven, scored = (
        json.loads((folder / "results.json").read_text())["summary"]["metrics"]
        for folder in (run_folder, tmp_path / "scored")
    )
    for name in (
        "success",
        "spl",
        "ndtw",
        "cls",
        "path_length",
        "navigation_error",
        "oracle_success",
        "steps",
    ):
        assert scored[name]["mean"] == pytest.approx(driven[name]["mean"], abs=1e-6), name


def test_an_episode_without_a_prediction_gets_none(proctor, tmp_path, split, run_folder):
    proctor("predictions", run_folder, "--out", tmp_path / "p.json")
    given = json.loads((tmp_path / "p.json").read_text())
    kept = {key: given[key] for key in ("1", "2")}
    (tmp_path / "two.json").write_text(json.dumps(kept))
    proctor("score", tmp_path / "two.json", "--dataset", split, "--out", tmp_path / "scored")
    code, out, _ = proctor("predictions", tmp_path / "scored", "--out", tmp_path / "again.json")
    assert code == 0
    assert "7 episodes had no prediction when they were scored and are not in it, first '3'" in out
    again = json.loads((tmp_path / "again.json").read_text())
    assert again.keys() == kept.keys()
    assert [state["position"] for state in again["1"]] == [
        pytest.approx(state["position"]) for state in kept["1"]
    ]


def test_headings_that_rxr_predictions_do_not_hold_are_not_made_up(proctor, tmp_path):
    path = vlnce_files.write_split(tmp_path / "rxr", *vlnce_files.rxr(), role="guide")
    proctor("run", "--dataset", path, "--policy", "forward", "--env", "mock", "--out", tmp_path / "run")
    proctor("predictions", tmp_path / "run", "--out", tmp_path / "p.jsonl")
    proctor("score", tmp_path / "p.jsonl", "--dataset", path, "--out", tmp_path / "scored")
    words = ("--format", "r2r", "--out", tmp_path / "p.json")
    code, _, err = proctor("predictions", tmp_path / "scored", *words)
    assert code == 2
    assert "no headings are recorded" in err


def test_a_run_of_rxr_becomes_lines(proctor, tmp_path):
    path = vlnce_files.write_split(tmp_path / "rxr", *vlnce_files.rxr(), role="guide")
    proctor("run", "--dataset", path, "--policy", "forward", "--env", "mock", "--out", tmp_path / "run")
    code, out, _ = proctor("predictions", tmp_path / "run", "--out", tmp_path / "p.jsonl")
    assert code == 0
    assert "8 episodes in the format of RXR" in out
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [line["instruction_id"] for line in lines] == [9900 + 10 * n for n in range(1, 9)]


def test_predictions_of_what_is_no_run_are_refused(proctor, tmp_path):
    code, _, err = proctor("predictions", tmp_path, "--out", tmp_path / "p.json")
    assert code == 2
    assert "not a run folder" in err


def test_results_of_others_stand_beside_ours(proctor, tmp_path, run_folder):
    stats = tmp_path / "stats_ckpt_1_val_unseen.json"
    stats.write_text('{"success": 0.314, "spl": 0.28, "distance_to_goal": 7.1}')
    code, out, _ = proctor("results", run_folder, stats)
    assert code == 0
    assert "? 31 - 0.28 - - 7.1 -" in out
    assert "as the file says; not measured here" in out


def test_a_run_without_goals_or_scenes_is_refused_before_it_starts(proctor, tmp_path, split):
    hidden = vlnce_files.without_goals(vlnce_files.r2r()[0])
    test = vlnce_files.write_split(tmp_path / "data", hidden, split="test")
    words = ("--policy", "forward", "--out", tmp_path / "run")
    code, _, err = proctor("run", "--dataset", test, "--env", "mock", *words)
    assert code == 2
    assert "9 of 9 episodes have no goal" in err
    code, _, err = proctor("run", "--dataset", split, *words)
    assert code == 2
    assert "give --scenes DIR with the scenes of r2r-ce" in err
    code, _, err = proctor("run", "--dataset", split, "--scenes", tmp_path / "data", *words)
    assert code == 2
    assert "lacks 3 scenes of 9 episodes: scene01Ab, scene02Ab, scene03Ab" in err
    assert not (tmp_path / "run").exists()


def test_r2r_episodes_run_in_the_embedded_world_when_their_scenes_are_given(proctor, tmp_path):
    episode = Episode(
        episode_id="1",
        scene_id="mp3d/room/room.glb",
        goal_position=Vector3(1.0, 0, 0),
        instruction="Go ahead.",
        success_threshold=0.5,
    )
    save_dataset([episode], tmp_path / "native.json")
    proctor("convert", tmp_path / "native.json", tmp_path / "val_seen.json.gz", "--to", "r2r-ce")
    (tmp_path / "mp3d").mkdir()
    wall = {"name": "wall", "translate": [0, 2, 0.5], "parts": [{"shape": "box", "size": [4, 0.1, 1]}]}
    (tmp_path / "mp3d" / "room.json").write_text(json.dumps({"scene_name": "room", "objects": [wall]}))
    words = ("--policy", "oracle", "--out", tmp_path / "run", "--split", "val_seen")
    code, _, _ = proctor(
        "run", "--dataset", tmp_path / "val_seen.json.gz", "--scenes", tmp_path / "mp3d", *words
    )
    assert code == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["summary"]["success_rate"] == 1.0
    assert results["summary"]["distance"] == "geodesic"


def test_check_dataset_cannot_write_a_copy_everywhere(proctor, split, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = proctor("check-dataset", split, "--fix", tmp_path / "file" / "z.json")
    assert code == 2
    assert "cannot write to" in err


def test_check_dataset_writes_no_copy_of_what_is_unreadable(proctor, tmp_path):
    document, _ = vlnce_files.r2r()
    for record in document["episodes"]:
        record["start_rotation"] = [0.0, 0.0, 0.6, 0.8]
    path = vlnce_files.write_split(tmp_path, document)
    code, out, _ = proctor("check-dataset", path, "--fix", tmp_path / "new.json")
    assert code == 1
    assert "No copy is written: z is up in it" in out
    assert not (tmp_path / "new.json").exists()


def test_predictions_overwrite_nothing_and_need_an_episode(proctor, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "manifest.json").write_text('{"identity": {}}')
    (run / "episodes.jsonl").write_text("")
    code, _, err = proctor("predictions", run, "--out", tmp_path / "p.json")
    assert code == 2
    assert "no episode is finished" in err
    (tmp_path / "p.json").write_text("mine")
    code, _, err = proctor("predictions", run, "--out", tmp_path / "p.json")
    assert code == 2
    assert "p.json exists already" in err
    assert (tmp_path / "p.json").read_text() == "mine"
