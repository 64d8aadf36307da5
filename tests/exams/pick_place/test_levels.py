"""Levels of generalisation: they change what is seen, each by what it adds, and nothing that is felt."""

import math
from itertools import permutations

import mujoco
import numpy as np
import pytest
from color_words import color_word
from scipy.spatial.transform import Rotation

from proctor.exams.pick_place.env import PickPlaceEnv, things_of
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.scenes.colors import PALETTE, oklab
from proctor.scenes.textures import TILE_M
from proctor.scenes.things import make_thing
from proctor.worlds.mujoco.render.renderer import Renderer, View
from proctor.worlds.mujoco.tabletop.look import (
    CONTRAST,
    HEAD_SHIFT_M,
    HEAD_TURN_RAD,
    PLAIN,
    TABLE_MATERIALS,
    WRIST_SHIFT_M,
    WRIST_TURN_RAD,
    Bump,
    Look,
    Material,
    Shine,
    color_of,
    contrast,
    look_of,
)
from proctor.worlds.mujoco.tabletop.room import MARGIN_M, RINGS, covered, flat_top, room_around
from proctor.worlds.mujoco.tabletop.stretch_model import HAND_SITE
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld
from proctor.worlds.mujoco.tabletop.tabletop_model import FAR_M, NEAR_M

BASE = (0.0, 0.02, math.pi / 2)
AROUND_THE_CUP = (0.0, 0.0, 0.0, 0.823, *[0.151 / 4] * 4, 0.0, 0.04)
"""The hand stands around the cup, ready to close."""


def episode(*, table=None, objects=(), location=None, base=BASE, joints=AROUND_THE_CUP):
    table = table or {"kind": "table", "size": [0.55, 1.2, 0.8]}
    return PickAndPlaceEpisode(
        episode_id="levels",
        robot_config={"init_pose": {"base": base, "joint_positions": joints}},
        task_goal={
            "target_object": {"name": "cup"},
            "target_location": location
            or {"type": "position", "position": [0.65, 0.25, 0.8], "radius": 0.08},
        },
        scene_objects=[
            {"name": "support", "shape": table, "position": [0.5, 0.0, 0.4], "static": True},
            {"name": "cup", "shape": {"kind": "cup", "color": "red"}, "position": [0.5, 0.0, 0.8]},
            *objects,
        ],
        instruction={"text": "Pick up the red cup and put it onto the mark"},
    )


BOWL = {"name": "bowl", "shape": {"kind": "bowl", "color": "blue"}, "position": [0.6, -0.3, 0.8]}
INTO_THE_BOWL = {"type": "container", "position": [0.6, -0.3, 0.8], "object_name": "bowl"}


def world_of(episode, look):
    world = TabletopWorld(episode, things_of(episode), look=look)
    world.place()
    return world


def picture(world, camera="head", *, size=(320, 240), reflecting=True):
    """Return rgb and depth in millimetres, as integers that can be subtracted."""
    view = View(camera, *size, NEAR_M, FAR_M)
    renderer = Renderer(world.model, world.data, view, reflecting=reflecting)
    rgb, depth = renderer.rgbd(camera)
    renderer.close()
    return rgb.astype(np.int64), depth.astype(np.int64)


# What is drawn at random


@pytest.mark.parametrize("seed", range(5))
def test_a_level_differs_from_the_one_below_by_what_it_adds(seed):
    stored, materials, cameras, lights = (look_of(level, seed, "e1") for level in range(4))
    assert stored == PLAIN
    assert all(getattr(materials, part) != getattr(PLAIN, part) for part in ("floor", "walls", "furniture"))
    assert materials._replace(floor=PLAIN.floor, walls=PLAIN.walls, furniture=None) == PLAIN
    assert cameras.head != Bump() != cameras.wrist
    assert cameras._replace(head=Bump(), wrist=Bump()) == materials
    assert all(getattr(lights, part) != getattr(PLAIN, part) for part in ("lights", "ambient", "shine"))
    assert lights._replace(lights=PLAIN.lights, ambient=PLAIN.ambient, shine=Shine()) == cameras


def test_a_look_is_chosen_by_seed_and_episode():
    assert look_of(3, 7, "e1") == look_of(3, 7, "e1")
    looks = [look_of(3, seed, name) for seed in range(8) for name in ("e1", "e2", "1e")]
    for part in ("floor", "walls", "furniture", "head", "wrist", "lights", "ambient", "shine"):
        assert len({getattr(look, part) for look in looks}) == len(looks), part


def test_what_must_be_seen_decides_about_the_furniture_and_nothing_else():
    pairs = [[look_of(3, seed, "e1", [PALETTE[word]]) for word in ("red", "white")] for seed in range(20)]
    assert any(on_red.furniture != on_white.furniture for on_red, on_white in pairs)
    for on_red, on_white in pairs:
        assert on_red._replace(furniture=None) == on_white._replace(furniture=None)


def test_cameras_are_bumped_up_to_their_bounds_in_all_directions():
    looks = [look_of(2, seed, "e1") for seed in range(300)]
    for camera, shift_m, turn_rad in (
        ("head", HEAD_SHIFT_M, HEAD_TURN_RAD),
        ("wrist", WRIST_SHIFT_M, WRIST_TURN_RAD),
    ):
        for vectors, most in (
            (np.array([getattr(look, camera).shift_m for look in looks]), shift_m),
            (np.array([getattr(look, camera).turn_rad for look in looks]), turn_rad),
        ):
            lengths = np.linalg.norm(vectors, axis=1)
            assert 0.95 * most < lengths.max() <= most
            assert (np.abs(vectors.mean(axis=0)) < 0.1 * most).all()
            assert (vectors.std(axis=0) > 0.2 * most).all()


def test_no_lights_leave_a_room_dark_or_burn_it_out():
    for seed in range(200):
        look = look_of(3, seed, "e1")
        above = [light for light in look.lights if light.direction.z < 0]
        assert 1 <= len(above) <= 3
        assert all(math.hypot(light.direction.x, light.direction.y) < 0.9 for light in above)
        assert min(look.ambient) > 0.35
        assert 0.7 < min(look.ambient) + sum(light.intensity for light in above) < 1.0
        assert min(channel for light in above for channel in light.color) > 0.7


@pytest.mark.parametrize("word", PALETTE)
def test_what_is_to_be_picked_up_is_told_from_the_furniture(word):
    found = {look_of(1, seed, "e1", [PALETTE[word]]).furniture for seed in range(30)}
    assert min(contrast(material, PALETTE[word]) for material in found) >= CONTRAST
    assert len({material.texture for material in found}) >= 2  # and not always on the same


def test_what_it_is_put_into_is_told_from_the_furniture_too():
    for pair in permutations(PALETTE.values(), 2):
        material = look_of(1, 0, "e1", pair).furniture
        assert min(contrast(material, color) for color in pair) > 0.1


def test_contrast_knows_that_sides_of_things_are_darker_than_table_tops():
    assert contrast(Material(None, (0.6, 0.6, 0.6)), (0.6, 0.6, 0.6)) == pytest.approx(0, abs=1e-6)
    assert contrast(Material(None, (0.6, 0.6, 0.6)), (0.8, 0.8, 0.8)) < 0.05
    assert contrast(Material(None, (0.8, 0.8, 0.8)), (0.4, 0.4, 0.4)) > 0.2
    assert contrast(Material(None, (1.0, 1.0, 1.0)), (0.0, 0.0, 0.0)) == pytest.approx(1, abs=1e-3)


def test_the_mark_has_a_rim_that_is_seen_on_every_table():
    rims = oklab(np.array([color for _, _, color in RINGS[:2]]))
    for material in TABLE_MATERIALS:
        assert np.linalg.norm(rims - oklab(np.array(material.color)), axis=1).max() > 0.35, material


def test_the_colour_of_a_thing_is_the_one_of_most_of_it():
    things = things_of(episode(objects=[BOWL]))
    assert color_word(color_of(things["cup"])) == "red"
    assert color_word(color_of(things["bowl"])) == "blue"


# What is felt


def test_all_levels_have_the_same_physics_to_the_last_bit():
    states = {}
    for sensors, level, seed in (((), 0, 0), (("rgb_wrist",), 0, 0), (("rgb_wrist",), 3, 1), ((), 3, 2)):
        env = PickPlaceEnv(sensors=sensors, level=level, level_seed=seed)
        env.reset(episode(objects=[BOWL]))
        closed = [0.0, 0.0, 0.0, 0.823, 0.151, 0.0, 0.0]
        lifted = [0.0, 0.0, 0.0, 0.9, 0.151, 0.0, 0.0]
        for command in (*[closed] * 12, *[lifted] * 8):
            env.step({"type": "joint_position", "qpos": command})
        assert env.info()["object_grasped"]  # so that contacts have been at work
        data = env._world.data
        states[sensors, level] = data.qpos.tobytes() + data.qvel.tobytes()
        env.close()
    assert len(set(states.values())) == 1


# What is seen


def test_materials_and_lights_change_the_picture_and_only_the_camera_changes_the_depth():
    scene = episode(joints=(0.0, 0.0, 0.0, 1.0, *[0.0] * 6))
    pictures = [picture(world_of(scene, look_of(level, 3, "e1"))) for level in range(4)]
    (rgb0, depth0), (rgb1, depth1), (_, depth2), (rgb3, depth3) = pictures
    assert np.abs(rgb1 - rgb0).mean() > 10
    assert np.array_equal(depth1, depth0)
    assert (np.abs(depth2 - depth1) > 20).mean() > 0.3
    rgb2 = pictures[2][0]
    assert np.abs(rgb3 - rgb2).mean() > 5
    assert np.abs(depth3 - depth2).max() <= 1  # a sheet that mirrors lies on the table


def test_cameras_are_where_the_look_says():
    straight, bumped = (world_of(episode(), look) for look in (PLAIN, look_of(2, 1, "e1")))
    head, wrist = look_of(2, 1, "e1")[3:5]
    hand = straight.data.site(HAND_SITE).xmat.reshape(3, 3)
    base = straight.data.body("base_link").xmat.reshape(3, 3)
    for camera, frame, bump in (("head", base, head), ("wrist", hand, wrist)):
        before, after = straight.data.camera(camera), bumped.data.camera(camera)
        assert frame.T @ (after.xpos - before.xpos) == pytest.approx(bump.shift_m, abs=1e-9)
        turn = frame.T @ after.xmat.reshape(3, 3) @ before.xmat.reshape(3, 3).T @ frame
        assert Rotation.from_matrix(turn).as_rotvec() == pytest.approx(bump.turn_rad, abs=1e-9)


def test_the_env_draws_what_its_options_say():
    scene = episode(objects=[BOWL], location=INTO_THE_BOWL)

    def first(**options):
        env = PickPlaceEnv(sensors=("rgb_head",), **options)
        rgb = env.reset(scene)["rgb_head"]
        env.close()
        return rgb

    assert np.array_equal(first(level=3, level_seed=1), first(level=3, level_seed=1))
    assert not np.array_equal(first(level=3, level_seed=1), first(level=3, level_seed=2))
    assert np.array_equal(first(level=0, level_seed=1), first(level=0, level_seed=2))
    env = PickPlaceEnv(sensors=("rgb_head",), level=3, level_seed=1)
    rgb = env.reset(scene)["rgb_head"]
    assert np.array_equal(rgb, picture(env._world, size=(640, 480))[0])
    assert not np.array_equal(rgb, picture(env._world, size=(640, 480), reflecting=False)[0])
    env.close()
    things = things_of(scene)
    look = PickPlaceEnv(sensors=(), level=1, level_seed=4)._look(scene, things)
    assert look == look_of(1, 4, "levels", [color_of(things["cup"]), color_of(things["bowl"])])


def test_no_level_repaints_the_things_to_be_moved():
    scene = episode(objects=[BOWL])

    def paints(look):
        model = world_of(scene, look).model
        return {
            name: [
                (
                    model.mat_rgba[model.geom_matid[geom]].tolist(),
                    model.mat_texid[model.geom_matid[geom]].max(),
                )
                for geom in range(model.ngeom)
                if model.geom_bodyid[geom] == model.body(name).id and model.geom_matid[geom] >= 0
            ]
            for name in ("cup", "bowl", "support")
        }

    stored = paints(PLAIN)
    for seed in range(3):
        other = paints(look_of(3, seed, "e1"))
        assert [rgba for rgba, _ in other["cup"]] == [rgba for rgba, _ in stored["cup"]]
        assert [rgba for rgba, _ in other["bowl"]] == [rgba for rgba, _ in stored["bowl"]]
        assert other["support"] != stored["support"]


@pytest.mark.parametrize("seed", range(3))
def test_a_red_cup_looks_red_in_every_light(seed):
    look = look_of(3, seed, "e1", [PALETTE["red"]])
    scene = episode(joints=(0.0, 0.0, 0.0, 1.0, *[0.0] * 6))
    world = world_of(scene, look)
    with_cup, _ = picture(world)
    address = world.model.body("cup").jntadr[0]
    world.data.qpos[world.model.jnt_qposadr[address] + 2] += 50.0
    mujoco.mj_forward(world.model, world.data)
    without, _ = picture(world)
    changed = np.abs(with_cup - without).sum(axis=2) > 150  # its mirror image changes less
    assert changed.sum() > 50
    assert color_word(np.median(with_cup[changed], axis=0) / 255) == "red"


MIRROR = Look(furniture=Material("wood", (0.45, 0.27, 0.15)), shine=Shine(0.3, 0.3, 0.5))


def test_a_flat_table_top_mirrors_what_stands_on_it():
    world = world_of(episode(joints=(0.0, 0.0, 0.0, 1.0, *[0.0] * 6)), MIRROR)
    shown, _ = picture(world)
    plain, _ = picture(world, reflecting=False)
    assert (np.abs(shown - plain).max(axis=2) > 8).mean() > 0.1
    mirror = world.model.geom("#mirror")
    assert mirror.bodyid[0] == world.model.body("support").id
    assert mirror.contype[0] == mirror.conaffinity[0] == 0


def test_around_a_round_table_the_floor_mirrors():
    round_table = {"kind": "stand", "size": [0.7, 0.7, 0.8]}
    world = world_of(episode(table=round_table), MIRROR)
    assert world.model.geom("#mirror").bodyid[0] == 0
    mat = world_of(episode(table=round_table), MIRROR._replace(shine=Shine()))
    assert mat.model.ngeom == world.model.ngeom  # the mirror is the floor, not a second one
    shown, _ = picture(world)
    plain, _ = picture(world, reflecting=False)
    assert (np.abs(shown - plain).max(axis=2) > 8).mean() > 0.05


def test_a_mat_world_has_no_mirror():
    model = world_of(episode(), look_of(2, 0, "e1")).model
    assert "#mirror" not in [model.geom(index).name for index in range(model.ngeom)]


def test_the_mark_is_seen_on_every_kind_of_table():
    marked = episode(joints=(0.0, 0.0, 0.0, 1.0, *[0.0] * 6))
    bare = episode(
        joints=(0.0, 0.0, 0.0, 1.0, *[0.0] * 6), location={"type": "surface", "object_name": "support"}
    )
    for material in (Material(None, RINGS[2][2]), TABLE_MATERIALS[0], Material(None, (0.95, 0.95, 0.95))):
        look = PLAIN._replace(furniture=material)
        with_mark, _ = picture(world_of(marked, look))
        without, _ = picture(world_of(bare, look))
        assert (np.abs(with_mark - without).max(axis=2) > 60).sum() > 60, material


# Materials on furniture


@pytest.mark.parametrize("kind", ["table", "desk", "counter", "shelf", "stand"])
def test_furniture_is_covered_but_for_its_fittings(kind):
    thing = make_thing(_Item(kind), None)
    material = Material("marble", (0.5, 0.4, 0.3))
    surfaces = covered(thing.surfaces, material)
    assert len(surfaces) == len(thing.surfaces)
    highest = max(range(len(surfaces)), key=lambda index: surfaces[index].vertices[:, 2].max())
    assert surfaces[highest].rgba == (0.5, 0.4, 0.3, 1.0)
    for before, after in zip(thing.surfaces, surfaces, strict=True):
        assert np.array_equal(before.vertices, after.vertices)
        if after.image is not before.image:
            flat = np.abs(after.normals[:, 2]) > 0.99
            spans = np.ptp(after.vertices[flat, :2], axis=0), np.ptp(after.texcoords[flat], axis=0)
            assert spans[1] * TILE_M["marble"] == pytest.approx(spans[0])
    assert (flat_top(thing) is None) == (kind == "stand")
    if kind in ("desk", "counter"):
        assert any(after is before for before, after in zip(thing.surfaces, surfaces, strict=True))


def test_grain_runs_along_the_table():
    (surface,) = covered(make_thing(_Item("table"), None).surfaces, Material("wood", (0.5, 0.4, 0.3)))
    top = surface.vertices[:, 2] > surface.vertices[:, 2].max() - 1e-6
    across, along = np.ptp(surface.vertices[top, :2], axis=0)
    assert across < along
    assert np.ptp(surface.texcoords[top], axis=0) == pytest.approx((along, across))


class _Item:
    rotation, scale, static, graspable = (0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0), True, False
    usd_path = shape = fallback = mass = None

    def __init__(self, name):
        self.name = name


# The room and the view of all


def test_the_room_leaves_space_around_everything():
    places = np.array([[0.0, 0.0], [4.0, 1.0], [-3.0, 0.5]])
    for some in (places[:1], places):
        x, y, half = room_around(some)
        assert (np.abs(some - [x, y]).max(axis=0) + MARGIN_M <= half + 1e-9).all()
        assert half >= 3


@pytest.mark.parametrize("yaw", [0.0, 1.6, -2.5])
def test_the_overview_sees_robot_and_object(yaw):
    world = world_of(episode(base=(0.0, 0.0, yaw), joints=(0.0, 0.0, 0.0, 1.0, *[0.0] * 6)), PLAIN)
    model, data = world.model, world.data
    camera = model.camera("overview").id
    axes, at = data.cam_xmat[camera].reshape(3, 3), data.cam_xpos[camera]
    tallest = data.body("link_head_tilt").xpos
    for point in (data.body("cup").xpos, data.body("base_link").xpos, tallest):
        x, y, z = axes.T @ (point - at)
        half = math.tan(math.radians(model.cam_fovy[camera] / 2))
        assert z < 0
        assert max(abs(y / z), abs(x / z) * 3 / 4) < 0.95 * half
    rgb, _ = picture(world, "overview", size=(960, 720))
    assert rgb.shape == (720, 960, 3)
    assert rgb.std() > 20


def test_a_renderer_makes_its_buffer_as_large_as_it_must_be():
    world = world_of(episode(), PLAIN)
    for size in ((960, 720), (320, 240)):
        picture(world, "overview", size=size)
        buffer = world.model.vis.global_
        assert (buffer.offwidth, buffer.offheight) == size
