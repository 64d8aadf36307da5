"""Things that are made: their size, weight and look, how they stand, how they are found by name."""

import math
import subprocess
import sys
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from proctor.scenes.kinds import KINDS, color_of, kind_and_color
from proctor.scenes.tabletop_parts import SceneItem, Shape
from proctor.scenes.things import MAKERS, make_thing

GRASPABLE = [name for name, kind in KINDS.items() if kind.is_graspable]
CONTAINERS = ["basket", "bowl", "plate", "tray"]
FURNITURE = ["counter", "desk", "shelf", "stand", "table"]
ON_ITS_SIDE = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))
GEOMS = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
}


def item(**parts):
    return SceneItem(**{"name": "thing", "position": (0.0, 0.0, 0.0)} | parts)


def made(kind, color="", size=None, **parts):
    return make_thing(item(shape=Shape(kind=kind, color=color, size=size), **parts), None)


def world_of(*placed):
    """Return the physics of things at heights above a plane, and a function that returns their poses."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.cone = 0.002, mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio, spec.option.noslip_iterations = 10, 3
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], friction=[0.8, 0.02, 0.001])
    for thing, at in placed:
        body = spec.worldbody.add_body(pos=at)
        body.add_freejoint()
        for solid in thing.solids:
            add_solid(spec, body, solid, thing)
    model = spec.compile()
    return model, mujoco.MjData(model)


def add_solid(spec, body, solid, thing):
    half = solid.size / 2
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, solid.rotation.ravel())
    options = {"friction": [0.8, 0.02, 0.001], "condim": 6 if thing.rolls else 4, "solref": [0.01, 1]}
    options["density"] = thing.mass_kg / sum(other.volume_m3 for other in thing.solids)
    if solid.shape == "hull":
        name = f"hull{len(spec.meshes)}"
        spec.add_mesh(name=name, uservert=solid.points.ravel())
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **options)
        return
    size = {"box": half, "cylinder": [half[0], half[2], 0], "sphere": [half[0], 0, 0]}[solid.shape]
    body.add_geom(type=GEOMS[solid.shape], size=size, pos=solid.translation, quat=quaternion, **options)


def settle(*placed, seconds=1.0):
    """Return where things are, (N, 3), and how far they have tilted, degrees."""
    model, data = world_of(*placed)
    mujoco.mj_step(model, data, nstep=round(seconds / 0.002))
    poses = data.qpos.reshape(-1, 7)
    tilts = np.degrees(np.arccos(np.clip(1 - 2 * (poses[:, 4] ** 2 + poses[:, 5] ** 2), -1, 1)))
    return poses[:, :3], tilts


@pytest.mark.parametrize("kind", KINDS)
def test_a_thing_has_its_kinds_size_about_its_origin(kind):
    thing, (depth, width, height) = made(kind), KINDS[kind].size_m
    bottom = -height / 2 if kind in FURNITURE else 0.0
    handle = thing.high[0] - depth / 2
    assert thing.kind == kind
    assert thing.is_furniture == (kind in FURNITURE)
    assert (thing.cavity is not None) == (kind in CONTAINERS)
    assert thing.low == pytest.approx([-depth / 2, -width / 2, bottom], abs=0.001)
    assert thing.high[1:] == pytest.approx([width / 2, bottom + height], abs=0.001)
    assert thing.low[2] == pytest.approx(bottom, abs=1e-9)
    assert thing.high[2] == pytest.approx(bottom + height, abs=1e-9)
    assert 0.015 < handle < 0.035 if kind in ("cup", "mug") else abs(handle) < 0.001


def test_every_kind_can_be_made():
    assert set(MAKERS) == set(KINDS)


def test_names_of_kinds_are_there_without_the_packages_that_meshes_need():
    code = "import sys, proctor.scenes.kinds; print([m for m in ('trimesh', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_light_looks_outwards_and_is_what_one_bumps_into(kind):
    thing = made(kind)
    assert sum(len(surface.faces) for surface in thing.surfaces) <= 1500
    drawn = np.concatenate([surface.vertices for surface in thing.surfaces])
    assert drawn.min(axis=0) == pytest.approx(thing.low, abs=0.003)
    assert drawn.max(axis=0) == pytest.approx(thing.high, abs=0.02 if kind in ("counter", "desk") else 0.003)
    for surface in thing.surfaces:
        assert np.linalg.norm(surface.normals, axis=1) == pytest.approx(1.0)
        a, b, c = np.moveaxis(surface.vertices[surface.faces], 1, 0)
        facing = np.cross(b - a, c - a)
        for corner in range(3):  # a triangle that looks the other way would not be seen
            assert ((facing * surface.normals[surface.faces[:, corner]]).sum(axis=1) > 0).all()


@pytest.mark.parametrize("kind", GRASPABLE)
def test_what_can_be_grasped_fits_the_gripper_and_weighs_what_a_hand_would_expect(kind):
    thing = made(kind)
    assert np.ptp(thing.points[:, 1]) <= 0.07 + 1e-9  # across a handle, if it has one
    assert 0.05 <= thing.mass_kg <= 0.6
    assert len(thing.solids) <= 4


@pytest.mark.parametrize("kind", [*GRASPABLE, *CONTAINERS])
def test_a_thing_that_is_put_down_stays_as_it_is(kind):
    (place,), (tilt_deg,) = settle((made(kind), (0, 0, 0.002)))
    assert place == pytest.approx([0, 0, 0], abs=0.0005)
    assert tilt_deg < 0.1


@pytest.mark.parametrize("kind", CONTAINERS)
def test_what_is_dropped_into_a_container_lies_on_its_floor(kind):
    container, block = made(kind), made("block")
    inside = container.cavity
    places, _ = settle((container, (0, 0, 0)), (block, (0.01, 0.0, inside.rim_z + 0.01)), seconds=1.5)
    offset = places[1] - places[0]
    assert offset[2] == pytest.approx(inside.floor_z, abs=0.001)
    assert np.hypot(*offset[:2]) < min(inside.half_x_m, inside.half_y_m)


@pytest.mark.parametrize("kind", ["bowl", "basket"])
def test_walls_hold_a_ball_back(kind):
    container, ball = made(kind), made("ball", size=(0.03, 0.03, 0.03))
    model, data = world_of((container, (0, 0, 0)), (ball, (0, 0, container.cavity.floor_z)))
    data.qvel[6:8] = 0.4
    mujoco.mj_step(model, data, nstep=1000)
    offset = data.qpos[7:9] - data.qpos[:2]
    assert 0.01 < np.hypot(*offset) < container.cavity.half_x_m
    assert data.qpos[9] < container.cavity.rim_z


def test_the_table_of_the_example_reaches_up_to_where_its_cup_stands():
    table, cup = (
        make_thing(item(usd_path="furniture/table.usd"), None),
        make_thing(item(name="cup_red"), None),
    )
    assert 0.4 + table.high[2] == pytest.approx(0.8)  # it is placed at z = 0.4
    places, tilts = settle((table, (0.5, 0.0, 0.4)), (cup, (0.5, 0.0, 0.8)))
    assert places[1] == pytest.approx([0.5, 0.0, 0.8], abs=0.001)
    assert tilts.max() < 0.1


def test_one_can_drive_beneath_a_table_between_its_legs():
    for yaw, clear_m in ((0.0, 0.4), (math.pi / 2, 1.0)):
        near = [solid for solid in made("table").solids if solid.points[:, 2].min() < 0]
        along = np.concatenate([solid.points[:, :2] @ [math.cos(yaw), math.sin(yaw)] for solid in near])
        assert np.abs(along).min() > clear_m / 2


def test_balls_roll_and_so_do_cylinders_that_lie():
    assert made("ball").rolls
    assert made("can", rotation=ON_ITS_SIDE).rolls
    assert not made("can").rolls
    assert not made("block", rotation=ON_ITS_SIDE).rolls


def test_size_scale_color_and_mass_are_the_episodes():
    thing = made("bowl", "blue", (0.2, 0.2, 0.05), scale=(0.5, 0.5, 2.0), mass=0.33)
    assert thing.high == pytest.approx([0.1 / 2, 0.1 / 2, 0.1], abs=0.001)
    assert thing.mass_kg == 0.33
    assert thing.surfaces[0].rgba == (*color_of("blue"), 1.0)


def test_a_small_block_is_not_too_light_to_be_simulated_unless_the_episode_says_so():
    assert made("block", size=(0.02, 0.02, 0.02)).mass_kg == 0.05
    assert made("block", size=(0.02, 0.02, 0.02), mass=0.01).mass_kg == 0.01


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("cup_red", ("cup", "red")),
        ("red_cup_2", ("cup", "red")),
        ("Table", ("table", "")),
        ("block-grey", ("block", "grey")),
        ("bowl gray", ("bowl", "gray")),
        ("cup_red_blue", None),
        ("cup_holder", None),
        ("teacup", None),
        ("cup_bowl", None),
        ("red", None),
        ("", None),
    ],
)
def test_names_say_what_is_to_be_made(name, asked):
    assert kind_and_color(name) == asked


def test_what_is_made_is_the_shape_then_what_a_name_says_then_the_fallback():
    stand_in = Shape(kind="can")
    both = item(name="bowl", usd_path="mug_red.usd", shape=Shape(kind="box"), fallback=stand_in)
    assert make_thing(both, None).kind == "box"
    by_file = make_thing(item(name="bowl", usd_path="objects/mug_red.usd", fallback=stand_in), None)
    assert by_file.kind == "mug"
    assert by_file.surfaces[0].rgba[:3] == color_of("red")
    assert "objects/mug_red.usd" in by_file.notes[0]
    fallen_back = make_thing(item(name="bowl", usd_path="x.usd", fallback=stand_in), None)
    assert fallen_back.kind == "can"
    assert "x.usd" in fallen_back.notes[0]
    assert make_thing(item(name="bowl"), None).notes == ()
    with pytest.raises(ValueError, match=r"no file 'x.usd'"):  # who names a file does not ask for a bowl
        make_thing(item(name="bowl", usd_path="x.usd"), None)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"shape": Shape(kind="cub")}, ["kind:", "'cub'", "did you mean 'cup'?", "bowl"]),
        ({"shape": Shape(kind="cup", color="bleu")}, ["color:", "'bleu'", "did you mean 'blue'?"]),
        ({"shape": Shape(kind="cup", size=(0.06, 0.07, 0.1))}, ["size:", "a cup is round", "0.07"]),
        ({"shape": Shape(kind="ball", size=(0.06, 0.06, 0.1))}, ["size:", "a ball is round"]),
        ({"shape": Shape(kind="cup"), "scale": (2.0, 1.0, 1.0)}, ["size:", "a cup is round"]),
        ({"shape": Shape(kind="box", size=(0.05, 0.05, 60.0))}, ["size:", "60.0", "0.005 to 5.0 m"]),
        ({"shape": Shape(kind="box", size=(0.05, 0.05, math.nan))}, ["size:", "nan"]),
        ({"shape": Shape(kind="box", size=(0.05, 0.05, -1.0))}, ["size:", "-1.0"]),
        ({"usd_path": "cub_red.usd"}, ["no file 'cub_red.usd'", "did you mean 'cup_red'?", "fallback"]),
        ({}, ["shape or a usd_path", "'thing'", "fallback"]),
    ],
)
def test_what_cannot_be_made_is_said_with_what_would_be_right(parts, words):
    with pytest.raises(ValueError, match=r".") as caught:
        make_thing(item(**parts), None)
    assert [word for word in words if word not in str(caught.value)] == []


def test_an_item_need_not_be_an_episodes():
    shape = SimpleNamespace(kind="cup", color="red", size=None)
    plain = SimpleNamespace(shape=shape, scale=(1.0, 1.0, 1.0), rotation=(0.0, 0.0, 0.0, 1.0), mass=None)
    assert make_thing(plain, None).kind == "cup"
