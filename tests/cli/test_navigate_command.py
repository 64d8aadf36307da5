"""`proctor navigate` as a user meets it: real drives, files, exit codes, one message for each mistake."""

import json
import math
from pathlib import Path

import av
import numpy as np
import pytest
from drives import made_up_drive
from PIL import Image

from proctor import cli
from proctor.cli import navigate
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.navigation.skill.goal import NavigationGoal
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled import navigator as embedded

EPISODE = load_dataset(suite_path("houses-v1")).episodes[0]


def proctor(capsys, *words):
    try:
        code = cli.main(["navigate", *map(str, words)])
    except SystemExit as end:  # argparse
        code = end.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def scene(tmp_path):
    """A room from (-3, -2) to (3, 2) with a box in its middle."""
    boxes = [(-3, -2, 3, -1.9), (-3, 1.9, 3, 2), (-3, -2, -2.9, 2), (2.9, -2, 3, 2), (-0.3, -0.3, 0.3, 0.3)]
    objects = [
        SceneObject(
            name=f"box {index}",
            translate=((x0 + x1) / 2, (y0 + y1) / 2, 0.5),
            parts=[Part(shape="box", size=(x1 - x0, y1 - y0, 1))],
        )
        for index, (x0, y0, x1, y1) in enumerate(boxes)
    ]
    save_scene(SceneConfig(scene_name="room", objects=objects), tmp_path / "room.json")
    return tmp_path / "room.json"


def test_a_drive_is_told_plotted_filmed_and_written(capsys, scene, tmp_path):
    files = {name: tmp_path / f"drive{suffix}" for name, suffix in navigate.SUFFIXES.items()}
    outputs = [word for name, file in files.items() for word in (f"--{name}", file)]
    code, out, err = proctor(
        capsys, "--scene", scene, "--start", "-1.5,-.2,0", "--goal=1.5,0.1,1.57", *outputs
    )
    assert (code, err) == (0, "")
    for word in (
        "succeeded",
        "distance to goal",
        "cm in a straight line",
        "heading error",
        "planning",
        "recoveries",
        "driven",
    ):
        assert word in out
    document = json.loads(files["json"].read_text())
    assert document["status"] == "succeeded"
    assert document["message"] == "Navigation completed successfully"
    assert document["final_distance"] < 0.02
    assert 3 < document["total_time"] < 30
    assert document["start"] == [-1.5, -0.2, 0]
    assert document["goal"] == [1.5, 0.1, 1.57]
    assert {"planning", "smoothing"} < set(document["timings_s"])
    assert document["path"][0] == [-1.5, -0.2]
    assert math.dist(document["driven"][-1][1:3], [1.5, 0.1]) < 0.02
    assert all(math.hypot(x, y) > 0.3 + 0.15 for x, y in document["path"])
    with Image.open(files["plot"]) as plot:
        assert plot.width == 1600
    with av.open(str(files["video"])) as film:
        assert film.duration / 1e6 == pytest.approx(document["total_time"] + 1.5, abs=0.3)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        ["room.json", *(file.name for file in files.values())]
    )


def test_a_goal_in_a_thing_is_no_arrival_and_says_why(capsys, scene, tmp_path):
    file = tmp_path / "drive.json"
    plot = tmp_path / "drive.png"
    words = ("--scene", scene, "--start", "-1.5,0", "--goal", "0,0", "--json", file, "--plot", plot)
    code, out, err = proctor(capsys, *words)
    assert code == 1
    assert "goal_occupied" in out
    assert err.startswith("not arrived: goal_occupied: Navigation failed:")
    document = json.loads(file.read_text())
    assert document["status"] == "failed"
    assert document["reason"] == "goal_occupied"
    assert document["elapsed_time"] < 1
    assert document["path"] == []
    assert plot.stat().st_size > 10_000


def test_a_start_that_touches_something_is_refused(capsys, scene, tmp_path):
    file = tmp_path / "drive.json"
    code, out, err = proctor(capsys, "--scene", scene, "--start", "-0.4,0", "--goal", "1.5,0", "--json", file)
    assert (code, out) == (2, "")
    assert "the robot starts inside of 'box 4' at x=-0.4, y=0.0" in err
    assert not file.exists()


@pytest.fixture
def map_file(tmp_path):
    """A map of 4 m x 3 m with walls and a box in its middle, turned by 90° around (2, 1), as a PNG image."""
    shades = np.full((60, 80), 254, np.uint8)
    shades[[0, -1]] = shades[:, [0, -1]] = shades[25:35, 35:45] = 0
    shades[1:10, 1:10] = 205
    (tmp_path / "maps").mkdir()
    Image.fromarray(shades).save(tmp_path / "maps" / "room.png")
    (tmp_path / "maps" / "room.yaml").write_text(
        f"image: room.png\nresolution: 0.05\norigin: [2, 1, {math.pi / 2}]\nnegate: 0\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )
    return tmp_path / "maps" / "room.yaml"


def test_a_drive_on_a_map_is_told_plotted_and_filmed(capsys, map_file, tmp_path):
    files = {name: tmp_path / f"drive{suffix}" for name, suffix in navigate.SUFFIXES.items()}
    outputs = [word for name, file in files.items() for word in (f"--{name}", file)]
    # Turned, the map reaches from -1 to 2 along x and from 1 to 5 along y.
    code, out, err = proctor(capsys, "--map", map_file, "--start", "0.5,1.5", "--goal", "0.5,4.4", *outputs)
    assert (code, err) == (0, "")
    assert "succeeded" in out
    document = json.loads(files["json"].read_text())
    assert document["final_distance"] < 0.02
    box = np.abs(np.array(document["driven"])[:, 1:3] - (0.5, 3.0)).max(axis=1)
    assert box.min() > 0.25 + 0.16  # around the box, not through it
    with Image.open(files["plot"]) as plot:
        assert plot.width == 1600
        assert len(plot.getcolors(1 << 24)) > 100
    assert files["video"].stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--start", "0.5,1.5", "--goal", "5,3"),
            "--goal: 5,3 is outside of the map MAP, which has x from -1.00 to",
        ),
        (("--start", "3,1.5", "--goal", "0.5,3"), "--start: 3,1.5 is outside of the map"),
        (
            ("--start", "0.5,3", "--goal", "0.5,4"),
            "the robot starts inside of 'the map's walls' at x=0.5, y=3.0",
        ),
        (("--start", "0.5,1.5"), "--map needs both --start X,Y[,YAW] and --goal"),
        (
            ("--start", "0.5,1.5", "--goal", "0.5,4", "--episode", "a"),
            "--episode is for --suite and --dataset",
        ),
    ],
)
def test_mistakes_on_a_map_are_told(capsys, map_file, words, message):
    code, _, err = proctor(capsys, "--map", map_file, *words)
    assert code == 2
    assert message.replace("MAP", str(map_file)) in err


def test_a_map_without_its_image_is_told(capsys, map_file):
    map_file.with_suffix(".png").unlink()
    code, _, err = proctor(capsys, "--map", map_file, "--start", "0.5,1.5", "--goal", "0.5,4")
    assert code == 2
    assert f"{map_file.with_suffix('.png')}: no such file" in err


class Stopped(Exception):
    """Nothing is to be driven after this."""


@pytest.fixture
def asked(monkeypatch):
    """What the navigator would have been asked to do."""
    seen = {}

    class Navigator:
        def __init__(self, path, start, **options):
            seen.update({"start": start, "path": path} | options)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            seen["closed"] = True

        def wait_until_ready(self):
            seen["warm"] = True

        def navigate(self, goal, *, on_tick):
            seen["goal"] = goal
            raise Stopped

    monkeypatch.setattr(embedded, "EmbeddedNavigator", Navigator)
    return seen


@pytest.mark.parametrize("start", ["--start -1,2,-0.5", "--start=-1,2,-0.5", "--start -1.0,2.,-.5"])
@pytest.mark.parametrize("goal", ["--goal -.5,-2", "--goal=-.5,-2"])
def test_numbers_below_zero_need_no_trick(capsys, asked, scene, start, goal):
    with pytest.raises(Stopped):
        proctor(capsys, "--scene", scene, *start.split(), *goal.split(), "--timeout", "7")
    assert (asked["start"].x, asked["start"].y, asked["start"].yaw) == (-1, 2, -0.5)
    assert asked["goal"] == NavigationGoal((-0.5, -2, 0), None, 7)
    assert asked["closed"]


def test_an_episode_gives_scene_start_and_goal_unless_told_otherwise(capsys, asked):
    words = ("--suite", "houses-v1", "--episode", EPISODE.episode_id)
    with pytest.raises(Stopped):
        proctor(capsys, *words, "--planner", "ompl:RRTstar", "--seed", 4)
    assert asked["path"] == Path(EPISODE.scene_config_path)
    assert asked["scene"] is None
    assert asked["grid"] is None
    assert (asked["start"].x, asked["start"].yaw) == (EPISODE.start_position.x, EPISODE.start_yaw)
    assert asked["goal"].position == (EPISODE.goal.x, EPISODE.goal.y, 0)
    assert (asked["params"].planner, asked["params"].seed) == ("rrt_star", 4)
    with pytest.raises(Stopped):
        proctor(capsys, *words, "--goal", f"1,2,{math.pi}")
    assert asked["start"].x == EPISODE.start_position.x
    assert asked["goal"].position == (1, 2, 0)
    assert asked["goal"].yaw == pytest.approx(math.pi)


@pytest.mark.parametrize(("words", "occupied"), [((), 376), (("--unknown", "occupied"), 376 + 81)])
def test_unknown_cells_of_a_map_are_free_or_occupied(capsys, asked, map_file, words, occupied):
    with pytest.raises(Stopped):
        proctor(capsys, "--map", map_file, "--start", "0.5,1.5", "--goal", "0.5,4", *words)
    assert np.count_nonzero(asked["grid"].occupied) == occupied
    assert asked["scene"].objects[0].name == "the map's walls"


IN_ROOM = ("--scene", "SCENE", "--start", "0,1", "--goal", "2,1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*IN_ROOM, "--planner", "rrtstar"), "unknown planner 'rrtstar'; did you mean 'rrt_star'?"),
        ((*IN_ROOM, "--planner", "PRM"), "unknown planner 'PRM'; did you mean 'prm'?"),
        ((*IN_ROOM, "--goal", "1"), "--goal: expected X,Y or X,Y,YAW such as 1.5,-2,1.57, found '1'"),
        ((*IN_ROOM, "--goal", "1,2,3,4"), "--goal: expected X,Y or X,Y,YAW"),
        ((*IN_ROOM, "--start", "1,two"), "--start: expected X,Y or X,Y,YAW"),
        ((*IN_ROOM, "--start", "1,nan"), "--start: expected finite numbers within ±10000000, found '1,nan'"),
        ((*IN_ROOM, "--goal", "1e8,0"), "--goal: expected finite numbers within ±10000000"),
        ((*IN_ROOM, "--timeout", "0"), "--timeout: expected seconds above 0"),
        ((*IN_ROOM, "--timeout", "nan"), "--timeout: expected seconds above 0"),
        ((*IN_ROOM, "--timeout", "inf"), "--timeout: expected seconds above 0"),
        ((*IN_ROOM, "--seed", "-1"), "--seed: expected a number from 0 to"),
        ((*IN_ROOM, "--episode", "house_1"), "--episode is for --suite and --dataset"),
        ((*IN_ROOM, "--plot", "drive.pdf"), "--plot: expected a file name that ends with .png"),
        ((*IN_ROOM, "--plot", "/no/such/folder/x.png"), "--plot: cannot write to /no/such/folder: No such"),
        ((*IN_ROOM, "--json", "/proc/x.json"), "--json: cannot write to /proc:"),
        ((*IN_ROOM, "--video", "FOLDER"), "is a folder, expected the name of a file"),
        (("--scene", "SCENE", "--start", "0,1"), "--scene needs both --start X,Y[,YAW] and --goal"),
        (("--scene", "/no/scene.json", *IN_ROOM[2:]), "/no/scene.json: no such file"),
        (("--scene", __file__, *IN_ROOM[2:]), "invalid JSON"),
        (("--suite", "houses-v1"), "need --episode ID"),
        (("--suite", "houses-v2", "--episode", "a"), "unknown suite 'houses-v2'; did you mean 'houses-v1'?"),
        (("--suite", "houses-v1", "--episode", "house_0"), "unknown episode 'house_0'"),
        (("--suite", "tabletop-v1", "--episode", "a"), "expected episodes of the task vln"),
        (("--start", "0,1"), "one of the arguments --suite --dataset --scene --map is required"),
        ((*IN_ROOM, "--unknown", "free"), "--unknown is for --map"),
        (("--map", "/no/map.yaml", *IN_ROOM[2:]), "/no/map.yaml: no such file"),
        (("--map", __file__, *IN_ROOM[2:]), "expected a name that ends with .yaml, .yml, .npz or .map"),
        ((*IN_ROOM, "--gaol", "0,1"), "did you mean '--goal'?"),
    ],
)
def test_a_mistake_is_told_before_anything_is_driven(
    capsys, asked, scene, tmp_path, monkeypatch, words, message
):
    (tmp_path / "folder.mp4").mkdir()
    named = {"SCENE": scene, "FOLDER": tmp_path / "folder.mp4"}
    words = [str(named.get(word, word)) for word in words]
    monkeypatch.setattr("sys.argv", ["proctor", "navigate", *words])
    code, _, err = proctor(capsys, *words)
    assert code == 2
    assert message in err
    assert not asked


def test_two_outputs_do_not_share_a_file(capsys, asked, scene, tmp_path, monkeypatch):
    monkeypatch.setattr(navigate, "SUFFIXES", {"plot": ".png", "json": ".png"})
    words = ("--plot", tmp_path / "x.png", "--json", tmp_path / "." / "x.png")
    code, _, err = proctor(capsys, "--scene", scene, *IN_ROOM[2:], *words)
    assert code == 2
    assert "give each file its own name" in err


def test_a_full_disk_is_told(capsys, asked, scene, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedded.EmbeddedNavigator, "navigate", lambda *_, **__: made_up_drive())
    monkeypatch.setattr(navigate, "write_atomically", full)
    code, _, err = proctor(
        capsys, "--scene", scene, "--start", "-1,1", "--goal", "0,0", "--json", tmp_path / "x.json"
    )
    assert code == 2
    assert f"cannot write {tmp_path / 'x.json'}: No space left on device" in err


def test_ctrl_c_promises_nothing(capsys, asked, scene, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded.EmbeddedNavigator, "navigate", interrupted)
    code, _, err = proctor(capsys, "--scene", scene, *IN_ROOM[2:])
    assert (code, err) == (130, "interrupted\n")
    assert asked["closed"]
