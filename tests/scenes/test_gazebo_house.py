"""A furnished house of Gazebo, 80 mesh models: imported by one command, mapped, and driven in."""

import json
import math

import mujoco
import numpy as np
import pytest
from gazebo_house import DEPTH_M, ROOM_M, ROOMS, WIDTH_M, blocks_of, models_of_house, write_house
from scipy import ndimage

from proctor import cli
from proctor.maps.grid_map import PLANNING_RADIUS_M
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene

HEIGHT_BAND_M = standard_robot().height_band_m
LAYERS_M = np.arange(HEIGHT_BAND_M[0] + 0.01, HEIGHT_BAND_M[1], 0.035)  # a table's top is 4 cm thick
REACH_M = 5.0
CELL_M = 0.05


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """The models, the imported scene and its map."""
    folder = tmp_path_factory.mktemp("gazebo")
    models = models_of_house()
    world_file = write_house(folder, models)
    assert cli.main(["import-world", str(world_file), "--out", str(folder / "house")]) == 0
    scene_path = folder / "house" / "scene.json"
    return models, scene_path, Scene.load(scene_path).map()


def lidar_map(blocks, rows, columns, origin):
    """Return the floor that a lidar of many layers sees free, in a world of boxes of its own."""
    spec = mujoco.MjSpec()
    for block in blocks:
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[block.half_x, block.half_y, (block.top - block.bottom) / 2],
            pos=[block.x, block.y, (block.top + block.bottom) / 2],
            quat=[math.cos(block.yaw / 2), 0, 0, math.sin(block.yaw / 2)],
        )
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    angles = np.arange(600) * math.tau / 600
    rays = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    steps = np.arange(0.0, REACH_M, 0.045)
    places = [
        ((column + 0.5) * ROOM_M + dx, (row + 0.5) * ROOM_M + dy)
        for column, row in ROOMS
        for dx, dy in ((0, 0), (0.55, 0.1), (-0.55, -0.1), (0.55, 1.2), (-0.55, -1.2))
    ]
    free = np.ones((rows, columns), dtype=bool)
    for height in LAYERS_M:
        seen, hit = np.zeros((2, rows, columns), dtype=bool)
        for x, y in places:
            if any(b.covers(x, y) and b.bottom < height < b.top for b in blocks):
                continue
            geoms, ranges = np.zeros(len(rays), np.int32), np.zeros(len(rays))
            at = np.array([x, y, height])
            mujoco.mj_multiRay(
                model, data, at, rays.ravel(), None, 1, -1, geoms, ranges, None, len(rays), 15.0
            )
            ranges[ranges < 0] = REACH_M
            flat = at[:2] + rays[:, None, :2] * steps[:, None]
            cells = ((flat - origin) // CELL_M).astype(int)[steps < ranges[:, None] - 0.005]
            ends = ((at[:2] + rays[:, :2] * (ranges[:, None] + 0.005) - origin) // CELL_M).astype(int)
            for mask, marks in ((seen, cells), (hit, ends[ranges < REACH_M])):
                inside = ((marks >= 0) & (marks < [columns, rows])).all(axis=1)
                mask[marks[inside, 1], marks[inside, 0]] = True
        free &= seen & ~hit
    return free


def reachable(free, grid):
    """Return the free cells that are connected with the middle of the first room."""
    labels, _ = ndimage.label(free)
    column, row = ((np.array([ROOM_M / 2, ROOM_M / 2]) - grid.origin_world) // CELL_M).astype(int)
    return labels == labels[row, column]


def test_it_is_one_object_for_each_model_and_a_floor(house):
    models, scene_path, _ = house
    objects = {item.name: item for item in Scene.load(scene_path).objects}
    assert len(models) == 80
    assert set(objects) == {model.name for model in models} | {"floor"}
    for model in models:
        item = objects[model.name]
        assert item.asset_path is not None
        if model.collision is None:
            assert item.rigid_body_type == "none"
        else:
            is_concave = model.name.startswith(("sofa", "inner_wall"))
            assert item.collision == ("surface" if is_concave else "hull"), model.name


def test_its_free_floor_is_that_of_a_lidar_map(house):
    models, _, grid = house
    rows, columns = grid.occupied.shape
    lidar = reachable(lidar_map(blocks_of(models), rows, columns, np.array(grid.origin_world)), grid)
    ours = reachable(~grid.occupied, grid)
    iou = (lidar & ours).sum() / (lidar | ours).sum()
    assert 60 < ours.sum() * CELL_M**2 < WIDTH_M * DEPTH_M
    assert iou >= 0.95, iou


def test_no_free_cell_lies_in_what_collides(house):
    models, _, grid = house
    rows, columns = np.nonzero(reachable(~grid.occupied, grid))
    x, y = (np.stack([columns, rows]) + 0.5) * CELL_M + np.array(grid.origin_world)[:, None]
    for block in blocks_of(models):
        if block.top > HEIGHT_BAND_M[0] and block.bottom < HEIGHT_BAND_M[1]:
            assert not block.covers(x, y).any()


def test_the_oracle_takes_ten_episodes_in_it(house, tmp_path):
    _, scene_path, grid = house
    rng = np.random.default_rng(1)
    middles = [((column + 0.5) * ROOM_M, (row + 0.5) * ROOM_M) for column, row in ROOMS]
    pairs = [rng.permutation(len(middles))[:2] for _ in range(10)]
    episodes = []
    for index, (first, last) in enumerate(pairs):
        start, goal = middles[first], middles[last]
        assert grid.shortest_path(start, goal, radius_m=PLANNING_RADIUS_M) is not None
        episodes.append(
            {
                "episode_id": f"drive_{index}",
                "scene_id": "house",
                "scene_config_path": str(scene_path),
                "start_position": {"x": start[0], "y": start[1], "z": 0},
                "start_rotation": {"x": 0, "y": 0, "z": 30 * index},
                "goal_position": {"x": goal[0], "y": goal[1], "z": 0},
                "instruction": "Go to the middle of the other room.",
                "success_threshold": 0.5,
            }
        )
    (tmp_path / "episodes.json").write_text(json.dumps({"episodes": episodes}))
    words = ["run", "--dataset", tmp_path / "episodes.json", "--policy", "oracle", "--out", tmp_path / "run"]
    words += ["--env-option", "width=64", "--env-option", "height=48"]
    assert cli.main([*map(str, words)]) == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [episode["status"] for episode in results["episodes"]] == ["success"] * 10
