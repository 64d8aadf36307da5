"""What the documentation shows works as it stands."""

import json
import math
import re
import textwrap
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pytest
import trimesh

from proctor.core.registry import build, suite_path
from proctor.core.types import EpisodeInfo
from proctor.exams.datasets import load_dataset
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.exam import details_of
from proctor.kernels.clearance import ClearanceField
from proctor.maps.grid_map import GridMap
from proctor.maps.map_files import save_map
from proctor.navigation.plugins import PathQuery, RecoverySituation
from proctor.robots.robot import Twist
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Texture
from proctor.scenes.tabletop_parts import InitPose, RobotSetup, SimParams
from vln_evaluator.evaluators import PickPlaceEvaluator, evaluate_vln

REPOSITORY = Path(__file__).parents[2]
PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").glob("*.md"))]


def blocks(page, language):
    text = (REPOSITORY / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_policy_of_the_docs_runs_without_a_fault(tmp_path, monkeypatch):
    (tmp_path / "my_agent.py").write_text(blocks("writing-a-policy.md", "python")[0])
    monkeypatch.syspath_prepend(tmp_path)
    agent = build("policy", "my_agent:Agent", {})
    results = evaluate_vln(REPOSITORY / "datasets" / "sample_r2r.json", env="embedded", policy=agent)
    assert results.summary.error_counts == {"agent": 0, "evaluator": 0}
    assert results.summary.metrics["path_length"].mean > 1
    assert results.summary.metrics["collision_rate"].mean < 0.2


def test_the_episode_and_the_scene_of_the_docs_load(tmp_path):
    episodes, pick, scene = blocks("formats.md", "json")
    (tmp_path / "scenes" / "meshes").mkdir(parents=True)
    trimesh.creation.box((0.4, 0.4, 0.9)).export(tmp_path / "scenes" / "meshes" / "chair.glb")
    (tmp_path / "episodes.json").write_text(episodes)
    (tmp_path / "scenes" / "scene_001.json").write_text(scene)
    (episode,) = load_dataset(tmp_path).episodes
    assert Scene.load(Path(episode.scene_config_path)).map().occupied.any()
    assert {part["name"] for part in json.loads(scene)["objects"]} == {"wall", "table", "chair", "ball"}
    (tmp_path / "pick.json").write_text(pick)
    (episode,) = load_dataset(tmp_path / "pick.json").episodes
    assert episode.support_name() == "bowl_blue"
    assert PickPlaceEnv(sensors=[]).check([episode]) == []


def test_the_episode_in_python_of_the_docs_can_be_made(capsys):
    (code,) = blocks("formats.md", "python")
    exec(compile(code, "formats.md", "exec"), {})
    assert capsys.readouterr().out == "5.0\n"


def test_episodes_and_textures_that_the_docs_name_exist():
    known = {episode.episode_id for episode in load_dataset(suite_path("houses-v1")).episodes}
    named = {name for page in PAGES for name in re.findall(r"house_\d+_\d+", page.read_text())}
    assert named
    assert named <= known
    formats = (REPOSITORY / "docs" / "formats.md").read_text()
    assert all(f"`{name}`" in formats for name in get_args(Texture))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere_and_nothing_is_left_to_fill_in(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target
    assert not re.search(r"^(BENCH|TABLE|TODO)$|INSTRUCTION|_TABLE|CARD_", text, re.MULTILINE)


def test_the_hand_of_the_docs_moves_without_a_fault(tmp_path, monkeypatch):
    code = next(block for block in blocks("writing-a-policy.md", "python") if "my_hand.py" in block)
    (tmp_path / "my_hand.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    episode = load_dataset(REPOSITORY / "tests" / "data" / "stretch_pick_place_001.json").episodes[0]
    short = msgspec.structs.replace(episode, sim_params=SimParams(max_steps=60))
    with PickPlaceEvaluator(PickPlaceEnv(), build("policy", "my_hand:Agent", {})) as evaluator:
        result = evaluator.evaluate_episode(short)
    assert result.error is None
    assert result.headings[-1] == pytest.approx(1.57, abs=0.01)


def test_the_formula_of_the_docs_finds_the_hand_in_base_link():
    code = next(block for block in blocks("pick-and-place.md", "python") if "def in_base_link" in block)
    names = {"math": math}
    exec(code, names)
    episode = load_dataset(REPOSITORY / "tests" / "data" / "stretch_pick_place_001.json").episodes[0]
    pose = InitPose(base=(0.3, -0.4, 0.7))
    episode = msgspec.structs.replace(episode, robot_config=RobotSetup(init_pose=pose))
    env = PickPlaceEnv(sensors=[])
    env.reset(msgspec.structs.replace(episode, scene_objects=[episode.item("cup_red")]))
    for _ in range(20):
        seen, *_ = env.step({"type": "joint_position", "qpos": [0.2, 0.1, 0.5, 0.7, 0.1, 0.3, 0.0]})
    told = EpisodeInfo(
        episode_id="", instruction="", max_steps=1, seed=0, details=details_of(episode, hide_goal=False)
    )
    found = names["in_base_link"](env.info()["ee_position"], seen, told)
    env.close()
    assert found == pytest.approx(seen["ee_pose"][:3], abs=1e-9)


def test_the_docs_plan_on_a_map_file(tmp_path, monkeypatch, capsys):
    code = next(block for block in blocks("navigate-to.md", "python") if "my_map.yaml" in block)
    occupied = np.zeros((60, 80), dtype=bool)
    occupied[[0, -1]] = occupied[:, [0, -1]] = occupied[25:35, 35:45] = True
    save_map(GridMap(occupied), tmp_path / "my_map.yaml")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "navigate-to.md", "exec"), {})
    planned, smoothed = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"3\.\d\d m over 2 corners, shortest: True", planned)
    assert re.fullmatch(r"\d\d+ points with yaw and curvature, 0\.2\d m from obstacles", smoothed)
    occupied[:, 40] = True
    save_map(GridMap(occupied), tmp_path / "my_map.yaml")
    with pytest.raises(SystemExit, match="no_path: there is no way from"):
        exec(compile(code, "navigate-to.md", "exec"), {})


def test_the_plugins_of_the_docs_drive_a_robot_around_a_wall(tmp_path, monkeypatch, proctor):
    own, patrol = (
        next(block for block in blocks("navigate-to.md", "python") if f"class {name}(" in block)
        for name in ("BreadthFirst", "Near")
    )
    (tmp_path / "my_navigation.py").write_text(own)
    (tmp_path / "patrol.py").write_text(patrol)
    occupied = np.zeros((60, 80), dtype=bool)
    occupied[[0, -1]] = occupied[:, [0, -1]] = occupied[:40, 38:42] = True
    save_map(GridMap(occupied), tmp_path / "my_map.yaml")
    monkeypatch.chdir(tmp_path)
    places = ("--map", "my_map.yaml", "--start", "0.6,0.6", "--goal", "3.4,0.6", "--json", "drive.json")
    plugins = ("--planner", "my_navigation.py:BreadthFirst", "--controller", "my_navigation.py:Pursuit")
    code, _, told = proctor("navigate", *places, *plugins)
    assert code == 0, told
    drive = json.loads(Path("drive.json").read_bytes())
    assert len(drive["raw_path"]) > 50
    assert (drive["replans"], drive["recoveries"]) == (0, 0)
    assert drive["final_distance"] < 0.05
    code, _, told = proctor("navigate", *places, "--goal-checker", "patrol.py:Near")
    assert code == 0, told
    assert 0.4 < json.loads(Path("drive.json").read_bytes())["final_distance"] < 0.5


def test_the_fields_of_what_plugins_get_are_all_in_the_docs():
    text = (REPOSITORY / "docs" / "navigate-to.md").read_text()
    shown = text.partition("### What they get")[2].partition("### Options and names")[0]
    kinds = (PathQuery, ClearanceField, RecoverySituation, Twist)
    fields = {name for kind in kinds for name in kind._fields} - {"deadline_s"}  # it is left_s
    assert [name for name in fields if f"`{name}`" not in shown and f"`{name}[" not in shown] == []


def test_the_exam_of_the_docs_is_the_one_of_the_examples(tmp_path):
    own = REPOSITORY / "examples" / "own_exam"
    sources = "\n".join(path.read_text() for path in sorted([*own.rglob("*.py"), own / "pyproject.toml"]))
    shown = [*blocks("writing-an-exam.md", "python"), *blocks("writing-an-exam.md", "toml")]
    assert len(shown) > 10
    inside = [textwrap.indent(block, "    ") for block in shown]  # methods are shown without their class
    pairs = zip(shown, inside, strict=True)
    assert [block for block, method in pairs if block not in sources and method not in sources] == []
    (episodes,) = blocks("writing-an-exam.md", "json")
    stored = json.loads((own / "pointgoal" / "suite" / "episodes.json").read_text())["episodes"][0]
    (shown_episode,) = json.loads(episodes)["episodes"]
    assert shown_episode.keys() == stored.keys()
