"""What mesh files collide as."""

import math

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from proctor.navigation.maps.grid_map import GridMap
from proctor.scenes.meshes import FLAT_M, convex_body, load_mesh_asset
from proctor.scenes.scene_config import SceneConfig, SceneObject

TILTED_SHEET = np.array([[1.0, -2.0, 0.0], [5.0, 2.0, 0.0], [5.0, 2.0, 2.0], [1.0, -2.0, 2.0]])


def test_a_solid_thing_is_its_convex_hull():
    ball = trimesh.creation.icosphere(radius=0.5)
    assert ConvexHull(convex_body(np.asarray(ball.vertices))).volume == pytest.approx(ball.volume)


@pytest.mark.parametrize(
    ("points", "volume_m3"),
    [
        (TILTED_SHEET, 2.0 * math.sqrt(32) * FLAT_M),
        (TILTED_SHEET[[0, 3]], 2.0 * FLAT_M**2),
        (TILTED_SHEET[:1], FLAT_M**3),
    ],
    ids=["a tilted sheet", "a rod", "a point"],
)
def test_what_has_no_volume_is_made_just_thick_enough(points, volume_m3):
    body = convex_body(points)
    assert ConvexHull(body).volume == pytest.approx(volume_m3)
    assert np.linalg.norm(body[:, None] - points, axis=2).min(axis=1).max() <= FLAT_M


def write_sheet(folder, size=1.0):
    sheet = trimesh.Trimesh(TILTED_SHEET * size, [[0, 1, 2], [0, 2, 3]])
    sheet.export(folder / "sheet.obj")
    return folder / "scene.json"


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_sheet_stands_in_the_map_where_it_is_and_stays_thin_at_any_scale(tmp_path, scale):
    scene_path = write_sheet(tmp_path, 1 / scale)
    sheet = SceneObject(name="sheet", asset_path="sheet.obj", scale=scale)
    grid = GridMap.from_scene(SceneConfig(scene_name="s", objects=[sheet]), scene_path)
    assert grid.clearance_at(3.0, 0.0) <= 0  # on it
    assert grid.clearance_at(1.5, 1.5) > 1.8  # inside of its bounding box, but far from it
    assert grid.occupied.sum() < 400


def test_triangles_that_share_no_corners_are_one_piece_where_they_touch(tmp_path):
    box = trimesh.creation.box()
    loose = trimesh.Trimesh(box.triangles.reshape(-1, 3), np.arange(36).reshape(-1, 3), process=False)
    loose.export(tmp_path / "box.glb")
    assert len(load_mesh_asset(tmp_path / "box.glb").pieces) == 1


def test_a_mesh_with_a_hole_is_read_as_it_is(tmp_path):
    box = trimesh.creation.box()
    box.update_faces(np.arange(len(box.faces)) > 1)
    box.export(tmp_path / "open.stl")
    (piece,) = load_mesh_asset(tmp_path / "open.stl").pieces
    assert len(piece) == 8


def test_a_mesh_file_that_was_replaced_is_read_anew(tmp_path):
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "a.stl")
    assert len(load_mesh_asset(tmp_path / "a.stl").pieces) == 1
    two = [trimesh.creation.box((1, 1, 1)), trimesh.creation.box((1, 1, 1)).apply_translation((3, 0, 0))]
    trimesh.util.concatenate(two).export(tmp_path / "a.stl")
    assert len(load_mesh_asset(tmp_path / "a.stl").pieces) == 2
