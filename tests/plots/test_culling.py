"""Leaving out geoms that are outside of the view, and a sky that is not seen, changes no pixel."""

import math

import mujoco
import numpy as np
import pytest
import trimesh
from house_runs import FIRST_EPISODES
from mesh_houses import two_rooms, write
from tabletop_drive import cup_episode, waypoints

from proctor.core.types import Pose2, Vector3
from proctor.exams.pick_place.actions import JointPosition
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.render.gl import drawing
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.mujoco.wheeled.world import World

RED = (0.9, 0.1, 0.1)


class WholeRender:
    """Draws all geoms and the sky by MuJoCo's own functions."""

    def __init__(self, model, data, *, mirrors=False):
        self.model, self.data = model, data
        with drawing():
            self.context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self.context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self.scene = mujoco.MjvScene(model, model.ngeom + 8)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = mirrors

    def render(self, camera_name, width, height):
        camera = mujoco.MjvCamera()
        camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, self.model.camera(camera_name).id
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            self.model, self.data, mujoco.MjvOption(), None, camera, everything, self.scene
        )
        rect = mujoco.MjrRect(0, 0, width, height)
        rgb, depth = np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)
        with drawing():
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
            mujoco.mjr_render(rect, self.scene, self.context)
            mujoco.mjr_readPixels(rgb, depth, rect, self.context)
        return rgb[::-1], depth


def assert_same_picture(renderer, whole, camera_name):
    """Compare colours and the depth buffer, and return how many geoms were drawn."""
    film = renderer._films[camera_name]
    groups = renderer._model.geom_group.copy()
    rgb = renderer.rgb(camera_name)
    expected, depth = whole.render(camera_name, film.rect.width, film.rect.height)
    assert np.array_equal(rgb, expected)
    assert np.array_equal(film.depth, depth)
    assert np.array_equal(renderer._model.geom_group, groups)
    return renderer._scene.ngeom


class Stage:
    """A world of boxes with a camera, and the whole picture beside it."""

    def __init__(self, *objects, width=160, height=120, fov_deg=60.0, **options):
        robot = standard_robot(camera=Camera(width=width, height=height, fov_deg=fov_deg))
        self.world = World(Scene(SceneConfig(scene_name="test", objects=list(objects))), robot, **options)
        self.camera = RgbdCamera(self.world)
        self.whole = WholeRender(self.world.model, self.world.data)

    def look(self, *pose):
        """Compare the picture from a pose; return how many geoms were drawn, and whether the sky was."""
        self.world.reset(Pose2(*pose), *[Pose2(1.0, 0.0, 0.0)] * (len(self.world.bodies) - 1))
        return self.compare()

    def compare(self):
        renderer = self.camera._renderer
        with self.camera._others_in_sight(self.world.body) as camera_name:
            drawn = assert_same_picture(renderer, self.whole, camera_name)
        return drawn, bool(renderer._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX])


def box(name, at, size, color=(0.8, 0.8, 0.8), **options):
    return SceneObject(name=name, translate=at, parts=[Part(shape="box", size=size, color=color)], **options)


@pytest.mark.parametrize("house", FIRST_EPISODES, ids=lambda house: house.scene_id)
def test_rooms_look_the_same(house):
    rng = np.random.default_rng(len(house.instruction))
    env = VLNEnv(width=224, height=160)
    env.reset(house)
    stage, world = env._stage, env._stage.world
    whole = WholeRender(world.model, world.data)
    path = [Vector3.of(point) for point in house.reference_path]
    drawn = []
    for index in rng.integers(len(path), size=8):
        world.reset(Pose2(path[index].x, path[index].y, rng.uniform(-math.pi, math.pi)))
        drawn.append(assert_same_picture(stage.camera._renderer, whole, world.body.camera_name))
    assert np.mean(drawn) < 0.75 * whole.scene.ngeom
    assert not stage.camera._renderer._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX]
    env.close()


@pytest.mark.parametrize("size", [(160, 120), (40, 240), (320, 32)], ids=str)
@pytest.mark.parametrize("fov_deg", [5.0, 60.0, 150.0])
def test_views_of_all_shapes_show_what_stands_at_their_edges(size, fov_deg):
    # Each of another colour: surfaces of one material are one geom.
    posts = [
        box(
            f"post{k}",
            (2 * math.cos(k / 3), 2 * math.sin(k / 3), 1.2),
            (0.05, 0.05, 2.4),
            (0.9, 0.05 * k, 0.1),
        )
        for k in range(19)
    ]
    stage = Stage(*posts, width=size[0], height=size[1], fov_deg=fov_deg)
    drawn = [stage.look(0.0, 0.0, k * 0.2618)[0] for k in range(24)]
    assert min(drawn) < stage.whole.scene.ngeom  # something is left out, and yet nothing is missing


@pytest.mark.parametrize("distance_m", [15.0, 19.0, 22.0, 27.0, 27.9, 28.1, 35.0, 39.9, 50.0])
def test_far_walls_and_the_sky_cover_each_other_as_before(distance_m):
    # MuJoCo's sky is nearer than the far clipping plane, and hides what is behind it.
    stage = Stage(box("wall", (distance_m, 0.0, 0.0), (0.1, 300.0, 300.0), RED))
    for yaw in (math.pi, 0.7, 0.3, 0.0):
        stage.look(0.0, 0.0, yaw)
    _, has_sky = stage.look(0.0, 0.0, 0.0)
    assert has_sky == (distance_m > 19.5)


def test_the_sky_is_drawn_through_windows_and_glass():
    wall = [
        box("left", (2.0, 3.0, 2.0), (0.1, 4.0, 8.0)),
        box("right", (2.0, -3.0, 2.0), (0.1, 4.0, 8.0)),
        box("above", (2.0, 0.0, 4.0), (0.1, 2.0, 4.0)),
        box("below", (2.0, 0.0, 0.0), (0.1, 2.0, 2.0)),
    ]
    pane = box("pane", (2.0, 0.0, 1.5), (0.02, 2.0, 1.0), (0.7, 0.8, 0.9, 0.3))
    shutter = box("shutter", (2.5, 0.0, 1.5), (0.1, 2.5, 2.0))
    assert Stage(*wall).look(0.0, 0.0, 0.0)[1]
    assert Stage(*wall, pane).look(0.0, 0.0, 0.0)[1]
    assert not Stage(*wall, pane, shutter).look(0.0, 0.0, 0.0)[1]


def test_a_robot_that_goes_in_and_out_sees_the_sky_only_outside():
    room = [
        box(f"wall{k}", (x, y, 1.5), size)
        for k, (x, y, size) in enumerate(
            [(2.0, 0.0, (0.1, 4.0, 3.0)), (0.0, 2.0, (4.0, 0.1, 3.0)), (0.0, -2.0, (4.0, 0.1, 3.0))]
        )
    ]
    stage = Stage(*room, box("ceiling", (0.0, 0.0, 3.0), (4.2, 4.2, 0.1)))
    seen = [stage.look(0.0, 0.0, yaw)[1] for yaw in (0.0, math.pi, math.pi, 0.0, 0.0, math.pi)]
    # The first picture after the sky is gone is drawn with it for nothing.
    assert seen == [False, True, True, True, False, True]


@pytest.mark.parametrize("kind", ["dynamic", "kinematic"])
def test_what_moves_is_followed_into_the_view(kind):
    crate = box("crate", (3.0, 0.0, 6.0), (0.5, 0.5, 0.5), RED, rigid_body_type=kind)
    stage = Stage(crate)
    drawn = [stage.look(0.0, 0.0, 0.0)[0]]
    for step in range(60):
        if kind == "kinematic":
            stage.world.data.mocap_pos[0, 2] = 6.0 - 0.1 * step
        for _ in range(2):
            stage.world.advance()
        drawn.append(stage.compare()[0])
    assert min(drawn) == drawn[0] < max(drawn)


def test_robots_see_each_other_as_before():
    stage = Stage(robots=("robot", "other"))
    seen = [stage.look(0.0, 0.0, yaw)[0] for yaw in (0.0, math.pi)]
    assert seen[0] == seen[1] + 1


def test_meshes_that_are_houses_or_objects_look_the_same(tmp_path):
    write(two_rooms(0.0), tmp_path / "house.obj")
    trimesh.creation.torus(0.5, 0.1).export(tmp_path / "ring.stl")
    ring = {"name": "ring", "asset_path": "ring.stl", "scale": (1.0, 0.5, 2.0), "rotate": (50.0, 20.0, 10.0)}
    objects = [
        SceneObject(name="house", asset_path="house.obj", collision="surface", rigid_body_type="static"),
        SceneObject(**ring, translate=(1.0, 0.5, 1.2), rigid_body_type="static"),
    ]
    robot = standard_robot(camera=Camera(width=96, height=72))
    world = World(Scene(SceneConfig(scene_name="test", objects=objects), tmp_path / "scene.json"), robot)
    camera = RgbdCamera(world)
    whole = WholeRender(world.model, world.data)
    whole.scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = 0
    drawn = set()
    for k in range(24):
        world.reset(Pose2(0.3 * (k % 5), 0.2 * (k % 3), k * 0.2618))
        drawn.add(assert_same_picture(camera._renderer, whole, world.body.camera_name))
    assert len(drawn) > 1


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_tabletops_look_the_same_through_both_cameras(level):
    env = PickPlaceEnv(level=level, level_seed=5)
    env.reset(cup_episode())
    world, renderer = env._world, env._renderer
    whole = WholeRender(world.model, world.data, mirrors=level == 3)
    rng = np.random.default_rng(level)
    drawn = []
    for _ in range(12):
        reached = world.model.jnt_range[:, 1]
        world.data.qpos[: len(reached)] += rng.normal(0.0, 0.15, len(reached))
        mujoco.mj_forward(world.model, world.data)
        drawn += [assert_same_picture(renderer, whole, camera) for camera in ("head", "wrist")]
    assert (np.mean(drawn) < 0.8 * whole.scene.ngeom) == (level < 3)
    env.close()


def test_what_the_hand_carries_looks_the_same():
    env = PickPlaceEnv(sensors=["rgb_head", "rgb_wrist"])
    env.reset(cup_episode())
    whole = WholeRender(env._world.model, env._world.data)
    commands = (
        (x, 0.0, 0.0, lift, arm, 0.0, grip) for x, lift, arm, grip, steps in waypoints() for _ in range(steps)
    )
    done, steps = False, 0
    while not done:
        env.looking = steps % 6 == 0
        _, _, done, _ = env.step(JointPosition(next(commands)))
        steps += 1
        if env.looking:
            for camera in ("head", "wrist"):
                assert_same_picture(env._renderer, whole, camera)
    assert steps > 150
    env.close()
