"""`proctor export-o3de`, and what it writes beside the scenes."""

import json
import math

import numpy as np
import pytest
import trimesh

from proctor import cli
from proctor.o3de_export.project import export_scenes
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene


def write_scene(folder):
    box = SceneObject(name="box", parts=[Part(shape="box", size=(1.0, 1.0, 1.0))])
    save_scene(SceneConfig(scene_name="scene", objects=[box]), folder / "original.json")
    return folder / "original.json"


# The project


def test_files_of_the_owner_are_left_alone_and_spoken_of(tmp_path):
    project, path = tmp_path / "project", write_scene(tmp_path)
    own = {
        "Editor/Scripts/bootstrap.py": "print('mine')\n",
        "Assets/Models/robot/robot.prefab": "{}",
        "project.json": "{}",
        "Registry/assimp_settings.setreg": json.dumps(
            {"O3DE": {"Preferences": {"SceneAPI": {"AssImpReadRootTransform": True}}}}
        ),
    }
    for name, text in own.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    notes = "\n".join(export_scenes([path], project).notes)
    assert {name: (project / name).read_text() for name in own} == own
    assert "add the line import o3de_sim.editor.bootstrap" in notes
    assert "robot.prefab is your own" in notes
    assert "Registry/assimp_settings.setreg sets AssImpReadRootTransform" in notes
    (settings,) = (project / "Assets/Proctor/scene").glob("box-*.gltf.assetinfo")
    (group,) = json.loads(settings.read_text())["values"]
    name = settings.name.removesuffix(".gltf.assetinfo")
    assert group["nodeSelectionList"]["selectedNodes"] == ["z_up", f"z_up.{name}"]
    (rule,) = group["rules"]["rules"]
    assert (rule["useAdvancedData"], rule["rotation"]) == (True, [0, 0, 1, 0])  # x, y, z, w
    (project / "Editor/Scripts/bootstrap.py").write_text("import o3de_sim.editor.bootstrap\n")
    (project / "Registry/assimp_settings.setreg").write_text("{}")
    notes = "\n".join(export_scenes([path], project).notes)
    assert "bootstrap" not in notes
    assert "AssImp" not in notes
    assert not settings.exists()


def test_an_older_bootstrap_of_ours_is_renewed(tmp_path):
    path = write_scene(tmp_path)
    export_scenes([path], tmp_path / "project")
    bootstrap = tmp_path / "project/Editor/Scripts/bootstrap.py"
    ours = bootstrap.read_bytes()
    bootstrap.write_bytes(ours + b"# an older version\n")
    export_scenes([path], tmp_path / "project")
    assert bootstrap.read_bytes() == ours


def test_the_editor_gets_its_agent_without_what_python_leaves_behind(tmp_path):
    export_scenes([write_scene(tmp_path)], tmp_path / "project")
    scripts = tmp_path / "project/Editor/Scripts"
    assert (scripts / "o3de_sim/editor/start_agent.py").is_file()
    assert not list(scripts.rglob("__pycache__"))
    assert "o3de_sim" in (scripts / "bootstrap.py").read_text()


def test_the_robots_numbers_are_those_of_the_exam(tmp_path):
    robot = standard_robot(radius_m=0.23, camera=Camera(width=320, height=200, fov_deg=71.0, pitch_deg=-20.0))
    export_scenes([write_scene(tmp_path)], tmp_path / "project", robot=robot)
    notes = (tmp_path / "project/Assets/Models/robot/ROBOT.md").read_text()
    assert "0.23 m" in notes
    assert "71°" in notes
    assert "20° down" in notes
    prefab = json.loads((tmp_path / "project/Assets/Models/robot/robot.prefab").read_text())
    entities = {entity["Name"]: entity["Components"] for entity in prefab["Entities"].values()}
    base = entities["base_link"]
    assert base["EditorColliderComponent"]["ShapeConfiguration"]["Cylinder"]["Radius"] == 0.23
    assert base["ROS2RobotControlComponent"]["m_template"]["SubscriberConfiguration"]["Topic"] == "cmd_vel"
    ids = [own["Id"] for entity in entities.values() for own in entity.values()]
    assert len(set(ids)) == len(ids)
    x, y, z = entities["camera"]["TransformComponent"]["Transform Data"]["Rotate"]
    turned = trimesh.transformations.euler_matrix(*np.radians([x, y, z]), axes="rxyz")[:3, :3]
    down = math.radians(20.0)
    assert turned[:, 2] == pytest.approx([math.cos(down), 0.0, -math.sin(down)])  # where it looks
    assert turned[:, 0] == pytest.approx([0.0, -1.0, 0.0])  # its right


# The command


def command(*arguments):
    return cli.main(["export-o3de", *map(str, arguments)])


def test_the_command_it_offers_can_be_pasted(tmp_path, capsys):
    write_scene(tmp_path)
    place = {"x": 0, "y": 0, "z": 0}
    walk = {
        "episode_id": "a",
        "scene_id": "scene",
        "scene_config_path": "original.json",
        "start_position": {**place, "x": 3},
    }
    (tmp_path / "walks.json").write_text(
        json.dumps(
            {"episodes": [{**walk, "start_rotation": place, "goal_position": place, "instruction": "go"}]}
        )
    )
    assert command("--dataset", tmp_path / "walks.json", "--out", tmp_path / "my project") == 0
    assert f"--dataset '{tmp_path}/my project/episodes.json'" in capsys.readouterr().out


def test_the_command_ends_with_what_it_wrote(tmp_path, capsys):
    assert command("--scene", write_scene(tmp_path), "--out", tmp_path / "project") == 0
    shown = capsys.readouterr().out
    assert "Assets/Proctor/textures" not in shown
    assert "Assets/Proctor/*/*.gltf" in shown
    assert "has no project.json" in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--suite", "houses-v2"], "houses-v1"),
        (["--suite", "tabletop-v1"], "expected episodes of the task vln"),
        (["--dataset", "gone"], "gone"),
        (["--scene", "gone.json"], "gone.json"),
    ],
)
def test_what_cannot_be_exported_is_said(tmp_path, capsys, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    assert command(*arguments, "--out", "project") == 2
    assert complaint in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("out", ["file", "file/deeper"])
def test_a_folder_that_cannot_be_one_is_refused(tmp_path, capsys, out):
    (tmp_path / "file").write_text("")
    assert command("--scene", write_scene(tmp_path), "--out", tmp_path / out) == 2
    assert "file" in capsys.readouterr().err


def test_episodes_without_a_scene_are_refused_with_their_place(tmp_path, capsys):
    (tmp_path / "episodes.json").write_text(
        json.dumps(
            {
                "episodes": [
                    {
                        "episode_id": "a",
                        "scene_id": "nowhere",
                        "start_position": {"x": 0, "y": 0, "z": 0},
                        "start_rotation": {"x": 0, "y": 0, "z": 0},
                        "goal_position": {"x": 1, "y": 0, "z": 0},
                        "instruction": "Go.",
                    }
                ]
            }
        )
    )
    assert command("--dataset", tmp_path, "--out", tmp_path / "project") == 2
    assert "episodes[0]: the scene 'nowhere' has no file" in " ".join(capsys.readouterr().err.split())
