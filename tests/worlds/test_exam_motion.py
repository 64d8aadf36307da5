"""Moves without physics lead to the same bits as moves with it, and are made only where nothing is near."""

import math

import msgspec
import mujoco
import numpy as np
import pytest
from house_runs import FIRST_EPISODES
from mesh_houses import two_rooms, write

from proctor.core.interfaces import TRUTH
from proctor.core.types import Action, EpisodeInfo, Pose2
from proctor.exams.vln.oracle import OraclePolicy
from proctor.robots.robot import STILL, Twist
from proctor.robots.spec import Lidar, standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.env import ExamMotion, VLNEnv
from proctor.worlds.mujoco.wheeled.robot import FreeBase, MujocoRobot, can_be_free
from proctor.worlds.mujoco.wheeled.world import World

SPEEDS = {"linear_speed_mps": 0.1, "angular_speed_radps": 0.3, "collision_threshold_m": 0.2}
MOVES = [Action.FORWARD, Action.LEFT, Action.RIGHT]


def box(name, x, y, size=(0.4, 0.4, 1.0), **options):
    part = Part(shape="box", size=size, translate=(0.0, 0.0, size[2] / 2))
    return SceneObject(name=name, translate=(x, y, 0.0), parts=[part], **options)


def world_of(*objects, robot=None, pose=(0.0, 0.0, 0.0)):
    world = World(Scene(SceneConfig(scene_name="test", objects=list(objects))), robot or standard_robot())
    world.reset(Pose2(*pose))
    return world


def motion_in(world, **options):
    return ExamMotion(world, **SPEEDS | options)


@pytest.fixture
def free_moves(monkeypatch):
    """The time of each world when a move without physics ended in it."""
    ends, finish = [], FreeBase.finish

    def counted(base):
        finish(base)
        ends.append(base.time_s)

    monkeypatch.setattr(FreeBase, "finish", counted)
    return ends


def assert_same_state(world, physics):
    """The whole state, and what follows from it: contacts, and where the camera is."""
    ours, theirs = world.data, physics.data
    assert ours.qpos.tolist() == theirs.qpos.tolist()
    assert ours.time == theirs.time
    assert ours.ctrl.tolist() == theirs.ctrl.tolist()
    assert ours.qvel == pytest.approx(theirs.qvel, abs=1e-15, rel=0)  # at rest, it is noise
    assert ours.ncon == theirs.ncon
    assert ours.cam_xpos.tolist() == theirs.cam_xpos.tolist()


def drive_both(make_world, actions, **options):
    """Drive two equal worlds, one by physics alone, and compare them after each move."""
    world, physics = make_world(), make_world()
    motion, motion_by_physics = motion_in(world, **options), motion_in(physics, **options)
    motion_by_physics.free_base = None
    for action in actions:
        assert motion.execute(action) == motion_by_physics.execute(action)
        assert_same_state(world, physics)
        assert motion.robot.odometry()[1].x == motion_by_physics.robot.odometry()[1].x
    return world


def random_actions(count, seed=0):
    return [MOVES[k] for k in np.random.default_rng(seed).choice(3, count, p=[0.6, 0.2, 0.2])]


def oracle_of(episode):
    policy = OraclePolicy()
    policy.reset(
        EpisodeInfo(episode_id="", instruction="", max_steps=500, seed=0, task="vln", episode=episode)
    )
    return policy


@pytest.mark.parametrize("how", ["oracle", "random"])
@pytest.mark.parametrize("house", FIRST_EPISODES, ids=lambda house: house.scene_id)
def test_all_houses_are_driven_alike_with_and_without_physics(house, how, free_moves):
    env, by_physics = VLNEnv(sensors=["odom"]), VLNEnv(sensors=["odom"])
    env.reset(house)
    by_physics.reset(house)
    by_physics._stage.motion.free_base = None
    policy, walk = oracle_of(house), iter(random_actions(40, seed=len(house.scene_id)))
    done, steps = False, 0
    while not done and steps < 40:
        action = policy.act({TRUTH: by_physics.info()}) if how == "oracle" else next(walk)
        (seen, _, done, info), (_, _, _, expected) = env.step(action), by_physics.step(action)
        steps += 1
        assert info["trajectory"] == expected["trajectory"]
        assert info["yaw"] == expected["yaw"]
        assert info["collision"] == expected["collision"]
        assert_same_state(env._stage.world, by_physics._stage.world)
        assert seen["odom"] == env._stage.motion.robot.odometry()[1]
    assert len(free_moves) > (0.9 if how == "oracle" else 0.1) * steps


def test_a_robot_between_obstacles_leans_slides_and_turns_away_as_by_physics(free_moves):
    walls = [
        box("north", 0.0, 0.75, (3.0, 0.1, 1.0)),
        box("south", 0.0, -0.75, (3.0, 0.1, 1.0)),
        box("post", 0.9, 0.1),
    ]
    world = drive_both(lambda: world_of(*walls), random_actions(250))
    assert 20 < len(free_moves) < 240
    assert world.time_s > 100


@pytest.mark.parametrize(
    "options",
    [
        {"linear_speed_mps": 5.0},
        {"linear_speed_mps": 1.0, "angular_speed_radps": 10.0},
        {"linear_speed_mps": 0.005, "angular_speed_radps": 0.05},
        {"collision_threshold_m": 0.0},
        {"collision_threshold_m": 0.6},
    ],
    ids=str,
)
def test_other_speeds_and_thresholds_change_nothing(options, free_moves):
    obstacles = [box("post", 1.2, 0.0), box("crate", -0.8, 0.6), box("shelf", 0.2, -1.0)]
    drive_both(lambda: world_of(*obstacles), random_actions(60), **options)
    assert free_moves


@pytest.mark.parametrize("radius_m", [0.08, 0.4])
def test_robots_of_other_sizes_change_nothing(radius_m, free_moves):
    robot = standard_robot(radius_m=radius_m, mass_kg=5.0, drive_force_n=3.0, drive_torque_nm=0.05)
    obstacles = [box("post", 1.2, 0.0), box("crate", -1.0, 0.9)]
    drive_both(lambda: world_of(*obstacles, robot=robot), random_actions(80))
    assert free_moves


@pytest.mark.parametrize("yaw", [0.0, 1.234e-5, -3e-7, math.pi, 700.0])
def test_rounding_errors_are_those_of_physics_even_where_the_heading_is_almost_0(yaw, free_moves):
    drive_both(lambda: world_of(pose=(1.3, 2.7, yaw)), [Action.FORWARD] * 6 + random_actions(20))
    assert len(free_moves) == 26


def test_a_robot_that_still_rolls_is_moved_by_physics():
    # Turning while it rolls on, it would end a bit elsewhere: terms that cancel out to rounding are left out.
    world = world_of()
    robot = MujocoRobot(world)
    robot.command(Twist(vx=0.3))
    robot.wait(0.2)
    assert not FreeBase(world).try_start(0.01)
    robot.command(STILL)
    robot.wait(0.2)
    assert FreeBase(world).try_start(0.01)


def test_a_robot_that_starts_in_contact_is_moved_by_physics(free_moves):
    drive_both(lambda: world_of(box("post", 0.36, 0.0)), [Action.FORWARD, Action.LEFT, Action.FORWARD])
    assert not free_moves


@pytest.mark.parametrize("kind", ["dynamic", "kinematic"])
def test_where_something_else_can_move_physics_does_all(kind):
    assert can_be_free(world_of(box("crate", 3.0, 0.0)))
    assert not can_be_free(world_of(box("crate", 3.0, 0.0, rigid_body_type=kind)))


def test_where_the_scanner_sees_what_the_robot_passes_below_physics_does_all():
    robot = standard_robot(height_m=0.3, lidar=Lidar(height_m=0.6))
    assert not can_be_free(world_of(box("crate", 3.0, 0.0), robot=robot))


def test_two_robots_and_houses_that_are_meshes_are_left_to_physics(tmp_path):
    scene = SceneConfig(scene_name="test", objects=[])
    assert not can_be_free(World(Scene(scene), standard_robot(), robots=("robot", "other")))
    write(two_rooms(), tmp_path / "house.obj")
    house = SceneObject(name="house", asset_path="house.obj", collision="surface", rigid_body_type="static")
    scene = SceneConfig(scene_name="test", objects=[house])
    assert not can_be_free(
        World(Scene(scene, tmp_path / "scene.json"), standard_robot(), floor_z=0.7, drawn=False)
    )


def test_gaps_are_the_distances_that_mujoco_measures_pair_by_pair():
    shapes = [
        Part(shape="box", size=(0.5, 0.3, 1.0), translate=(1.0, 0.2, 0.5), rotate=(0.0, 0.0, 30.0)),
        Part(shape="cylinder", size=(0.4, 0.4, 0.8), translate=(-0.7, 0.5, 0.4)),
        Part(shape="sphere", size=(0.6, 0.6, 0.6), translate=(0.1, -0.9, 0.5)),
        Part(shape="box", size=(1.0, 1.0, 0.1), translate=(0.0, 0.0, 1.4)),  # above the robot
    ]
    world = world_of(SceneObject(name="shapes", parts=shapes))
    base, reach_m = FreeBase(world), 0.3
    model, data, robot = world.model, mujoco.MjData(world.model), world.body.geom_id
    solid = [k for k in range(model.ngeom) if model.geom_contype[k] & 1 and k != robot]
    rng = np.random.default_rng(3)
    found = []
    for x, y in rng.uniform(-1.5, 1.5, (200, 2)):
        data.qpos[:2] = x, y
        mujoco.mj_kinematics(model, data)
        nearest_m = min(mujoco.mj_geomDistance(model, data, robot, k, reach_m, None) for k in solid)
        gap_m = base.measure_gap_m(x, y, reach_m=reach_m)
        if nearest_m > 0:
            assert gap_m == pytest.approx(nearest_m, abs=1e-4)
        else:
            assert gap_m <= 0
        found.append(gap_m)
    assert sum(gap <= 0 for gap in found) > 10
    assert sum(0 < gap < reach_m for gap in found) > 10
    assert max(found) == reach_m
    assert not model.geom_margin.any()
    assert not model.body_margin.any()


def test_a_collision_ends_an_episode_as_by_physics():
    episode = FIRST_EPISODES[0]
    ends = []
    for by_physics in (False, True):
        env = VLNEnv(sensors=["odom"], end_on_collision=True)
        env.reset(msgspec.structs.replace(episode, max_steps=200))
        if by_physics:
            env._stage.motion.free_base = None
        done = False
        while not done:
            _, _, done, info = env.step(Action.FORWARD)
        ends.append((info["step"], info["trajectory"], info["collision"]))
    assert ends[0] == ends[1]
    assert ends[0][2]


def test_a_move_that_is_given_up_leaves_no_trace():
    world = world_of(box("post", 0.5, 0.0))
    motion = motion_in(world)
    before = world.data.qpos.tolist(), world.data.qvel.tolist(), world.time_s, vars(motion.robot).copy()
    assert motion._do_freely(Action.FORWARD, lambda: motion._executor.execute(Action.FORWARD)) is None
    assert (world.data.qpos.tolist(), world.data.qvel.tolist(), world.time_s, vars(motion.robot)) == before
    assert motion._do_freely(Action.LEFT, lambda: motion._executor.execute(Action.LEFT)) is not None
    assert world.pose().yaw == pytest.approx(math.radians(15), abs=1e-3)


@pytest.mark.parametrize("keep", [True, False])
def test_thinking_time_passes_alike_with_and_without_physics(free_moves, keep):
    world, physics = (world_of(box("wall", 1.45, 0.0)) for _ in range(2))
    motion, motion_by_physics = motion_in(world), motion_in(physics)
    motion_by_physics.free_base = None
    bumps = []
    for action in (Action.LEFT, Action.RIGHT, Action.FORWARD, Action.FORWARD, Action.FORWARD):
        motion.execute(action)
        motion_by_physics.execute(action)
        bumps.append(motion.wait(1.23, keep=keep))
        assert bumps[-1] == motion_by_physics.wait(1.23, keep=keep)
        assert_same_state(world, physics)
    assert len(free_moves) > 4
    assert any(bumps) == keep


def test_the_robot_keeps_its_speed_for_as_long_as_the_agent_thinks():
    world = world_of()
    motion = motion_in(world)
    motion.execute(Action.FORWARD)
    x, time_s = world.pose().x, world.time_s
    motion.wait(1.0, keep=True)
    assert world.pose().x - x == pytest.approx(0.1, abs=1e-3)
    assert world.time_s - time_s == pytest.approx(1.0, abs=0.1)
    motion.execute(Action.LEFT)
    yaw = world.pose().yaw
    motion.wait(0.5, keep=True)
    assert world.pose().yaw - yaw == pytest.approx(0.15, abs=1e-3)
    pose, time_s = world.pose(), world.time_s
    motion.wait(0.5, keep=False)
    assert world.pose() == pose
    assert world.time_s - time_s == pytest.approx(0.5)


def test_a_collision_ends_the_command_that_a_thinking_agent_keeps():
    world = world_of(box("wall", 1.0, 0.0))  # its near side is 0.8 m ahead
    motion = motion_in(world)
    assert not motion.execute(Action.FORWARD).collided
    time_s = world.time_s
    assert motion.wait(10.0, keep=True)
    assert 0.55 < world.pose().x < 0.65
    assert world.time_s - time_s == pytest.approx(10.0, abs=0.1)
    assert motion.execute(Action.FORWARD).collided
    assert not motion.wait(10.0, keep=True)  # nothing has told it to drive since it bumped
    motion.reset()
    assert not motion.wait(1.0, keep=True)
