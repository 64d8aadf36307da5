"""`proctor import-world` and `look` as a user meets them, and what `navigate` takes of other worlds."""

import json

import numpy as np
import pytest
from PIL import Image

from proctor import cli
from proctor.cli import look
from proctor.maps.grid_map import GridMap
from proctor.scenes.scene import Scene

BOX = "<geometry><box><size>{} {} 1</size></box></geometry>"
WALLS = [(0, 2, 6.2, 0.2), (0, -2, 6.2, 0.2), (3, 0, 0.2, 4), (-3, 0, 0.2, 4), (0, 0.5, 0.4, 0.4)]
ROWS = ["." * 12] * 8


def proctor(capsys, *words):
    try:
        code = cli.main([*map(str, words)])
    except SystemExit as end:  # argparse
        code = end.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def world(tmp_path):
    """A room from (-3, -2) to (3, 2) with a box in it, as a world of Gazebo."""
    models = ""
    for index, (x, y, width, depth) in enumerate(WALLS):
        shapes = "".join(
            f"<{tag} name='s'>{BOX.format(width, depth)}</{tag}>" for tag in ("visual", "collision")
        )
        pose = f"<pose>{x} {y} 0.5 0 0 0</pose>"
        static = "<static>1</static>" if index else ""
        models += f"<model name='box_{index}'>{static}{pose}<link name='l'>{shapes}</link></model>\n"
    (tmp_path / "room.world").write_text(f"<sdf version='1.6'><world name='x'>{models}</world></sdf>")
    return tmp_path / "room.world"


@pytest.fixture
def map_file(tmp_path):
    rows = "\n".join(ROWS)
    (tmp_path / "field.map").write_text(f"type octile\nheight 8\nwidth 12\nmap\n{rows}\n")
    (tmp_path / "field.map.scen").write_text("version 1\n0\tfield.map\t12\t8\t1\t1\t10\t6\t11.07\n")
    return tmp_path / "field.map"


def test_a_world_becomes_a_scene_that_is_looked_at_and_driven_in(capsys, world, tmp_path):
    code, out, err = proctor(capsys, "import-world", world, "--out", tmp_path / "room")
    scene = tmp_path / "room" / "scene.json"
    assert (code, err) == (0, "")
    assert f"5 objects (collide as parts: 5) and 0 lights: {scene}" in out
    assert "left out: the motion of models that could move (box_0)" in out
    assert f"proctor look {scene}" in out
    assert len(Scene.load(scene).objects) == 5
    code, out, err = proctor(capsys, "look", scene, "--out", tmp_path / "pictures")
    assert (code, err) == (0, "")
    for what in ("view", "plan", "map"):
        file = tmp_path / "pictures" / f"room_{what}.png"
        assert f"{what}: {file}" in out
        with Image.open(file) as image:
            assert min(image.size) > 300
            assert np.asarray(image.convert("L")).std() > 10
    code, out, err = proctor(capsys, "navigate", "--scene", scene, "--start", "-2,0", "--goal", "2,0.5")
    assert (code, err) == (0, "")
    assert "succeeded" in out


def test_a_world_is_driven_in_as_it_is(capsys, world, tmp_path):
    words = ("--start", "-2,0", "--goal", "2,0.5", "--json", tmp_path / "drive.json")
    code, _, err = proctor(capsys, "navigate", "--scene", world, *words)
    assert (code, err) == (0, "")
    path = np.array(json.loads((tmp_path / "drive.json").read_text())["path"])
    assert np.hypot(path[:, 0], path[:, 1] - 0.5).min() > 0.3  # around the box


def test_models_of_a_world_are_named_or_skipped(capsys, world, tmp_path):
    world.write_text(world.read_text().replace("</world>", "<include><uri>model://b</uri></include></world>"))
    drive = ("--start", "-2,0", "--goal", "-1,0")
    for words in (("look", world, "--out", tmp_path), ("navigate", "--scene", world, *drive)):
        code, _, err = proctor(capsys, *words)
        assert (code, "not found: 'model://b'" in err) == (2, True)
        code, out, _ = proctor(capsys, *words, "--skip-missing")
        assert (code, "left out: models and meshes that are missing (model://b)" in out) == (0, True)
    (tmp_path / "more" / "b").mkdir(parents=True)
    (tmp_path / "more" / "b" / "model.sdf").write_text("<sdf version='1.6'><model name='b'/></sdf>")
    for words in (("look", world, "--out", tmp_path), ("navigate", "--scene", world, *drive)):
        assert proctor(capsys, *words, "--models", tmp_path / "more")[0] == 0


def test_a_world_that_is_too_large_is_told_at_once_and_by_its_own_name(capsys, tmp_path):
    box = f"<collision name='c'>{BOX.format(5000, 5)}</collision>"
    model = f"<model name='a'><static>1</static><link name='l'>{box}</link></model>"
    file = tmp_path / "large.world"
    file.write_text(f"<sdf version='1.6'><world name='x'>{model}</world></sdf>")
    code, out, _ = proctor(capsys, "import-world", file, "--out", tmp_path / "large")
    assert (code, "warning: it reaches over 5000 m x 5 m, too much for a map" in out) == (0, True)
    assert "1 object (collide as parts: 1) and 0 lights" in out
    code, _, err = proctor(capsys, "look", file, "--out", tmp_path)
    assert (code, f"{file}: its objects reach over" in err) == (2, True)


def test_a_world_of_nothing_says_what_was_left_out(capsys, tmp_path):
    file = tmp_path / "empty.world"
    file.write_text("<sdf version='1.6'><world name='x'><actor name='a'/></world></sdf>")
    code, _, err = proctor(capsys, "import-world", file)
    (tmp_path / "x.xml").write_text("<mujoco/>")
    assert (
        "is for worlds of Gazebo" in proctor(capsys, "import-world", tmp_path / "x.xml", "--skip-missing")[2]
    )
    problem = "holds nothing that could be seen or bumped into; left out: actors (a)"
    assert (code, err.strip()) == (2, f"error: {file}: {problem}")


def test_a_scenario_of_a_map_is_driven(capsys, map_file, tmp_path):
    words = ("--scenario", f"{map_file}.scen:1", "--json", tmp_path / "drive.json")
    code, out, err = proctor(capsys, "navigate", "--map", map_file, *words)
    assert (code, err) == (0, "")
    assert "Scenario in line 2: 5.54 m on the grid of its cells" in out
    drive = json.loads((tmp_path / "drive.json").read_text())
    assert drive["start"][:2] == [0.75, 3.25]
    assert drive["goal"][:2] == [5.25, 0.75]


def test_a_map_and_a_scene_of_a_suite_are_looked_at(capsys, map_file, tmp_path):
    code, out, _ = proctor(capsys, "look", map_file, "--at", "1,1,0.5", "--out", tmp_path)
    assert code == 0
    assert sorted(file.name for file in tmp_path.glob("*.png")) == ["field_map.png", "field_view.png"]
    assert "plan" not in out
    code, _, _ = proctor(capsys, "look", "house_64959", "--out", tmp_path)
    assert code == 0
    assert (tmp_path / "house_64959_plan.png").is_file()


def test_a_place_is_where_the_picture_is_taken(capsys, world, tmp_path):
    for name, place in (("near", "1,0,0"), ("far", "-2,0,0")):
        assert proctor(capsys, "look", world, "--at", place, "--out", tmp_path / name)[0] == 0
    near, far = (
        np.asarray(Image.open(tmp_path / name / "room_view.png")).astype(int) for name in ("near", "far")
    )
    assert np.abs(near - far).mean() > 1


def house_on_a_lawn(door_cells):
    """Return a house of 6 x 4 m with a door to the east, on a floor of 16 x 10 m that has an end."""
    occupied = np.zeros((100, 160), dtype=bool)
    occupied[30:70, 50:110] = True
    occupied[32:68, 52:108] = False
    occupied[50 : 50 + door_cells, 100:110] = False
    outside = np.ones_like(occupied)
    outside[5:-5, 5:-5] = False
    return GridMap(occupied | outside, resolution_m=0.1, ends=True, outside=outside)


@pytest.mark.parametrize("door_cells", [0, 8, 12])
def test_the_default_place_is_in_the_house_whose_door_is_open(door_cells):
    pose = look._pose(house_on_a_lawn(door_cells), None)
    assert 6.5 < pose.x < 9.5
    assert pose.y == pytest.approx(5.0, abs=0.2)


def test_where_there_is_no_room_the_default_place_looks_at_the_objects():
    occupied = np.zeros((120, 120), dtype=bool)
    occupied[60:64, 60:64] = True
    pose = look._pose(GridMap(occupied, resolution_m=0.1), None)
    to_object = np.array([6.2 - pose.x, 6.2 - pose.y])
    assert np.hypot(*to_object) == pytest.approx(3.0, abs=0.3)
    assert to_object @ (np.cos(pose.yaw), np.sin(pose.yaw)) == pytest.approx(np.hypot(*to_object), abs=0.05)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import-world", "FOLDER/none.world"), "none.world: no such file"),
        (
            ("import-world", "FOLDER/house.blend"),
            "house.blend: expected a world, a name that ends with .world",
        ),
        (("import-world", "WORLD", "--models", "FOLDER/none"), "--models: FOLDER/none is not a folder"),
        (("import-world", "WORLD", "--out", "WORLD"), "--out: WORLD is taken"),
        (
            ("import-world", "WORLD", "--out", "FOLDER/out", "--floor", "nan"),
            "--floor: expected a height within",
        ),
        (("look", "house_64959", "--skip-missing"), "--models and --skip-missing are for worlds (.world"),
        (
            ("navigate", "--map", "MAP", "--start", "1,1", "--goal", "2,2", "--models", "FOLDER"),
            "--models and --skip-missing are for --scene with a world",
        ),
        (("look", "house_6495"), "unknown scene 'house_6495'; did you mean 'house_64959'?"),
        (("look", "FOLDER/none.json"), "none.json: no such file"),
        (("look", "WORLD", "--at", "1"), "--at: expected X,Y or X,Y,YAW"),
        (("look", "WORLD", "--out", "WORLD/x"), "--out: WORLD/x cannot be made"),
        (("navigate", "--map", "MAP", "--scenario", "FOLDER/none.scen"), "none.scen: no such file"),
        (("navigate", "--map", "MAP"), "--map needs both --start"),
        (
            ("navigate", "--map", "MAP", "--start", "1,1", "--goal", "2,2", "--cell", "0"),
            "--cell: expected 0.05",
        ),
        (
            ("navigate", "--scene", "WORLD", "--start", "1,1", "--goal", "2,2", "--scenario", "x.scen"),
            "--scenario is for --map with a .map file of MovingAI",
        ),
    ],
)
def test_each_mistake_has_one_message(capsys, world, map_file, tmp_path, words, message):
    def real(text):
        return (
            text.replace("FOLDER", str(tmp_path)).replace("WORLD", str(world)).replace("MAP", str(map_file))
        )

    code, _, err = proctor(capsys, *map(real, words))
    assert code == 2
    assert real(message) in " ".join(err.split())
    assert "Traceback" not in err
