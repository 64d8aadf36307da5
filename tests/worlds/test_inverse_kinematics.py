"""Poses of the hand become commands, in MuJoCo's own terms."""

import json
import math
from pathlib import Path

import mink
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from proctor.core.geometry import wrap_angle
from proctor.core.types import Pose2
from proctor.exams.pick_place.env import PickPlaceEnv, things_of
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.robots.stretch import CONTROLS
from proctor.robots.stretch_kinematics import (
    hand_in_world,
    hand_quaternion,
    reach_by_driving,
    reach_from,
)
from proctor.worlds.mujoco.tabletop.inverse_kinematics import HandSolver
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld, Touch

EPISODE = json.loads((Path(__file__).parents[1] / "data" / "stretch_pick_place_001.json").read_text("utf-8"))
ALONG_ARM = -math.pi / 2
STILL_RADPS = 0.005


def with_table(**setup):
    """Return the design documents' episode, the robot set up otherwise."""
    return PickAndPlaceEpisode(**EPISODE | {"robot_config": setup})


def alone(*, base=(0.0, 0.0, 0.0), joints=(0.0, 0.0, 0.0, 0.5, 0.2, 0.0, 0.0), nonholonomic=False):
    """Return a world with nothing but the robot."""
    setup = {"init_pose": {"base": base, "joint_positions": joints}, "nonholonomic": nonholonomic}
    world = TabletopWorld(PickAndPlaceEpisode("alone", robot_config=setup), {}, drawn=False)
    world.place()
    return world


def at_table(joints, base=(0.0, 0.0, 0.0)):
    episode = with_table(init_pose={"base": base, "joint_positions": joints})
    world = TabletopWorld(episode, things_of(episode), drawn=False)
    world.place()
    return world


def in_base(position, heading, base):
    """Return a pose in the world as one in `base_link`."""
    x, y = position[0] - base.x, position[1] - base.y
    cos, sin = math.cos(base.yaw), math.sin(base.yaw)
    turned = hand_quaternion(heading - base.yaw)
    return np.array([cos * x + sin * y, cos * y - sin * x, position[2], *turned])


def hand_of(world, controls):
    """Return where commands bring the hand."""
    x, y, yaw, *arm, _ = world._world_of(controls).tolist()
    return hand_in_world(Pose2(x, y, yaw), *arm)


def is_allowed(world, controls):
    return np.isfinite(controls).all() and world.command(controls) == []


def touches_furniture(world, controls):
    """Return whether the robot would be in furniture."""
    values = world._world_of(controls)
    data = world.data
    data.qpos[world._qpos_at[:9]] = [*values[:4], *[values[4] / 4] * 4, values[5]]
    mujoco.mj_forward(world.model, data)
    return bool(world.toucher.touch(data) & Touch.FURNITURE)


@pytest.mark.parametrize("start", [(0.0, 0.0, 0.0), (1.0, -2.0, 0.8)])
def test_what_can_be_reached_is_reached(start):
    rng = np.random.default_rng(3)
    for _ in range(6):
        joints = [0.0, 0.0, rng.uniform(-2, 2), *(rng.uniform(c.low, c.high) for c in CONTROLS[3:])]
        world = alone(base=start, joints=joints)
        solver, base = HandSolver(world), world.base_pose()
        for _ in range(5):
            wanted = (rng.uniform(c.low, c.high) for c in CONTROLS[3:6])
            ahead_m = rng.uniform(-0.3, 0.3)
            stood = Pose2(
                base.x + ahead_m * math.cos(base.yaw), base.y + ahead_m * math.sin(base.yaw), base.yaw
            )
            position, heading = hand_in_world(stood, *wanted)
            solution = solver.solve(in_base(position, heading, base), 0.02)
            assert solution.reached
            assert solution.position_error_m < 1e-3
            assert is_allowed(world, solution.controls)
            there, found = hand_of(world, solution.controls)
            assert np.linalg.norm(there - position) < 1e-3
            assert abs(wrap_angle(found - heading)) < 1e-2
            assert solution.controls[-1] == 0.02


def test_the_base_drives_but_neither_turns_nor_slides_without_need():
    world = alone(joints=(0.1, 0.2, 0.4, 0.5, 0.2, 0.0, 0.0))
    solver, base = HandSolver(world), world.base_pose()
    for ahead, arm, wrist in ((0.0, 0.2, 0.0), (0.2, 0.4, 1.2), (-0.3, 0.0, -1.5), (0.1, 0.02, 1.75)):
        stood = Pose2(base.x + ahead * math.cos(base.yaw), base.y + ahead * math.sin(base.yaw), base.yaw)
        position, heading = hand_in_world(stood, 0.7, arm, wrist)
        solution = solver.solve(in_base(position, heading, base), 0.0)
        driven = reach_by_driving(position, heading, base)
        expected = [driven.base.x, driven.base.y, driven.base.yaw, driven.lift_m, driven.arm_m]
        assert np.allclose(solution.controls[:5], expected, atol=2e-4)
        assert solution.controls[5] == pytest.approx(driven.wrist_yaw, abs=1e-3)


def test_the_base_slides_when_the_arm_is_too_short():
    world = alone()
    position, heading = reach_from(np.array([0.0, -1.1, 0.6]), ALONG_ARM, 0.0, 0.4).hand()
    solution = HandSolver(world).solve(in_base(position, heading, world.base_pose()), 0.0)
    assert solution.reached
    assert solution.controls[1] < -0.2


def test_a_nonholonomic_base_does_not_slide():
    world = alone(base=(0.3, 0.2, 0.5), nonholonomic=True)
    solver = HandSolver(world)
    for x, y in ((0.0, -1.1), (-0.3, -0.2), (0.4, -0.5)):
        solution = solver.solve(np.array([x, y, 0.6, *hand_quaternion(ALONG_ARM)]), 0.0)
        assert abs(solution.controls[1]) < 1e-9
    assert solution.reached


@pytest.mark.parametrize("heading", [-2.5, -0.4, 0.0])
@pytest.mark.parametrize("pitch_roll", [(0.0, 0.0), (1.0, 0.4), (math.pi / 2, 0.0), (-1.2, 2.0)])
def test_only_the_heading_of_an_orientation_counts(heading, pitch_roll):
    turned = Rotation.from_euler("ZYX", [heading, *pitch_roll]).as_quat(scalar_first=True)
    position = [-0.1, -0.5, 0.6]
    ours = HandSolver(alone()).solve(np.array([*position, *turned]), 0.0)
    projected = HandSolver(alone()).solve(np.array([*position, *hand_quaternion(heading)]), 0.0)
    assert ours.reached
    assert np.allclose(ours.controls, projected.controls, atol=1e-3)


def test_no_rotation_means_fingers_along_x():
    world = alone()
    solution = HandSolver(world).solve(np.array([0.1, -0.4, 0.6, 1.0, 0.0, 0.0, 0.0]), 0.0)
    assert solution.reached
    assert hand_of(world, solution.controls)[1] == pytest.approx(0.0, abs=1e-3)


def test_the_wrist_turns_the_long_way_where_the_short_one_is_barred():
    world = alone(joints=(0.0, 0.0, 0.0, 0.5, 0.2, 1.7, 0.0))
    position, heading = hand_in_world(world.base_pose(), 0.5, 0.2, -1.7)
    solution = HandSolver(world).solve(in_base(position, heading, world.base_pose()), 0.0)
    assert solution.reached
    assert np.allclose(solution.controls[:6], [0, 0, 0, 0.5, 0.2, -1.7], atol=1e-3)


@pytest.mark.parametrize(
    ("target", "left_m"),
    [
        ((-0.02, -0.6, 1.5), 1.5 - 1.1274),
        ((-0.02, -0.6, -0.5), 0.5274),
        ((2.0, -0.5, 0.6), 2.0 + 0.0214 - 0.5),
    ],
    ids=["too high", "too low", "too far for one command"],
)
def test_what_cannot_be_reached_is_approached(target, left_m):
    world = alone(nonholonomic=True)
    solution = HandSolver(world).solve(np.array([*target, *hand_quaternion(ALONG_ARM)]), 0.0)
    assert not solution.reached
    # Turning the base may bring the hand nearer than driving alone.
    assert 0.05 < solution.position_error_m < left_m + 1e-3
    assert is_allowed(world, solution.controls)
    there, _ = hand_of(world, solution.controls)
    assert np.linalg.norm(there - target) == pytest.approx(solution.position_error_m, abs=2e-3)


@pytest.mark.parametrize("target", [(-0.02, -0.6, 2.0), (2.0, 0.5, 0.6), (-1.0, -2.0, 0.6)])
def test_a_heading_is_kept_where_the_place_is_out_of_reach(target):
    world = alone()
    solution = HandSolver(world).solve(np.array([*target, *hand_quaternion(-1.0)]), 0.0)
    assert not solution.reached
    assert solution.angle_error_rad < 0.01
    assert hand_of(world, solution.controls)[1] == pytest.approx(-1.0, abs=0.01)


def test_the_base_turns_when_the_wrist_cannot():
    world = alone()
    position, heading = hand_in_world(world.base_pose(), 0.5, 0.2, 2.6)
    solution = HandSolver(world).solve(in_base(position, heading, world.base_pose()), 0.0)
    assert solution.reached
    there, found = hand_of(world, solution.controls)
    assert np.linalg.norm(there - position) < 1e-3
    assert abs(wrap_angle(found - heading)) < 1e-2
    assert solution.controls[2] > 0.7


def test_one_command_moves_a_turned_base_no_further_than_it_may():
    world = alone(joints=(0.1, -0.1, 0.8, 0.5, 0.2, 0.0, 0.0))
    target, base = np.array([3.0, 0.0, 0.6]), world.base_pose()
    solution = HandSolver(world).solve(in_base(target, 0.8 + ALONG_ARM, base), 0.0)
    there, _ = hand_of(world, solution.controls)
    assert np.abs(solution.controls[:2] - [0.1, -0.1]).max() <= 0.5
    assert solution.controls[0] == pytest.approx(0.6)
    assert np.linalg.norm(there - target) == pytest.approx(solution.position_error_m, abs=1e-3)


@pytest.mark.parametrize("nonholonomic", [False, True])
def test_wild_targets_give_commands_that_can_be_done(nonholonomic):
    rng = np.random.default_rng(0)
    world = alone(nonholonomic=nonholonomic)
    solver = HandSolver(world)
    down = Rotation.from_euler("y", math.pi / 2).as_quat(scalar_first=True)
    targets = [(1e6, -1e6, 1e6, *down), (1e308, 1e308, -1e308, *-down), (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)]
    targets += [
        (*10.0 ** rng.uniform(-9, 9, 3) * rng.choice([-1, 1], 3), *rng.normal(size=4)) for _ in range(20)
    ]
    for target in targets:
        solution = solver.solve(np.array(target), rng.uniform(-1, 1))
        assert is_allowed(world, solution.controls)
        assert math.isfinite(solution.position_error_m)
        assert math.isfinite(solution.angle_error_rad)


def test_no_solution_is_no_motion(monkeypatch):
    def fail(*_, **__):
        raise mink.NoSolutionFound("daqp")

    world = alone()
    monkeypatch.setattr(mink, "solve_ik", fail)
    solution = HandSolver(world).solve(np.array([0.1, -0.5, 0.8, 1.0, 0.0, 0.0, 0.0]), 0.01)
    assert not solution.reached
    assert np.allclose(solution.controls[:6], world.controls()[:6], atol=1e-9)


@pytest.mark.parametrize("z", [0.80, 0.78, 0.60])
def test_a_hand_above_a_table_stays_above_it(z):
    world = at_table((0.0, 0.0, 0.0, 0.9, 0.1, 0.0, 0.04), base=(0.0, 0.0, math.pi / 2))
    solution = HandSolver(world).solve(np.array([-0.02, -0.5, z, *hand_quaternion(ALONG_ARM)]), 0.04)
    assert not solution.reached
    there, _ = hand_of(world, solution.controls)
    assert 0.82 < there[2] < 0.83, "as near as the pads' lower corners allow"
    assert not touches_furniture(world, solution.controls)


def test_the_mast_stays_out_of_the_table():
    world = at_table((0.0, 0.0, 0.0, 1.0, 0.0, 1.57, 0.04))
    solution = HandSolver(world).solve(np.array([0.5, 0.0, 0.9, 1.0, 0.0, 0.0, 0.0]), 0.04)
    driven = reach_by_driving(np.array([0.5, 0.0, 0.9]), 0.0, world.base_pose())
    assert solution.reached
    assert not touches_furniture(world, solution.controls)
    assert touches_furniture(world, np.array([driven.base.x, 0.0, 0.0, 0.9, 0.0, 1.57, 0.04]))


def test_the_hand_stays_out_of_the_base():
    world = alone(joints=(0.0, 0.0, 0.0, 0.5, 0.0, 1.5, 0.0))
    solution = HandSolver(world).solve(np.array([0.05, -0.12, 0.1, *hand_quaternion(math.pi - 0.2)]), 0.0)
    values = world._world_of(solution.controls)
    world.data.qpos[world._qpos_at[:9]] = [*values[:4], *[values[4] / 4] * 4, values[5]]
    mujoco.mj_forward(world.model, world.data)
    assert not world.toucher.touch(world.data) & Touch.SELF


def test_the_same_state_gives_the_same_answer():
    target = np.array([0.5, 0.0, 0.9, 1.0, 0.0, 0.0, 0.0])
    joints = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.04)
    first, second = (HandSolver(at_table(joints)).solve(target, 0.0) for _ in range(2))
    assert first.controls.tobytes() == second.controls.tobytes()
    assert first[1:] == second[1:]


class Hand:
    """Commands the hand by poses alone, as an agent would that knows where things are."""

    def __init__(self, episode):
        self.env = PickPlaceEnv(sensors=[])
        self.observation = self.env.reset(episode)
        self.info = self.env.info()
        self.done = False

    def step(self, pose, opening_m):
        action = {"type": "ee_pose_target", "ee_pose_target": pose.tolist(), "gripper_action": opening_m}
        self.observation, _, self.done, self.info = self.env.step(action)

    def pose(self, position, heading):
        return in_base(position, heading, self.env._world.base_pose())

    def go(self, position, heading, opening_m, most_steps=90):
        """Send one pose until the hand is there and still."""
        pose = self.pose(position, heading)
        for step in range(most_steps):
            self.step(pose, opening_m)
            is_still = np.abs(self.observation["qvel"]).max() < STILL_RADPS
            is_there = np.linalg.norm(self.info["ee_position"] - position) < 2e-3
            if self.done or (step > 3 and is_still and is_there):
                return


def test_the_documents_own_action_leads_over_the_table():
    hand = Hand(PickAndPlaceEpisode(**EPISODE))
    pose = np.array([0.5, 0.0, 0.9, 1.0, 0.0, 0.0, 0.0])
    assert hand.info["ee_position"][2] < 0.6, "below the table top"
    for _ in range(60):
        hand.step(pose, 0.04)
    # In the base frame of the first command: sent again, it means the same place.
    assert np.linalg.norm(hand.info["ee_position"] - pose[:3]) < 1e-3
    assert hand.info["ik"]["reached"]
    assert hand.info["collision_count"] == 0


def test_after_another_command_a_pose_is_meant_anew():
    hand = Hand(PickAndPlaceEpisode(**EPISODE))
    pose = hand.observation["ee_pose"] + [0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    for _ in range(20):
        hand.step(pose, 0.0)
    first = hand.info["ee_position"]
    hand.env.step({"type": "joint_position", "qpos": hand.observation["qpos"].tolist()})
    for _ in range(20):
        hand.step(pose, 0.0)
    assert np.allclose(hand.info["ee_position"] - first, [0.1, 0.0, 0.0], atol=2e-3)


def test_a_straight_line_is_followed():
    hand = Hand(with_table(init_pose={"base": (-0.6, 0.0, 0.3)}))
    here, heading = hand.info["ee_position"], 0.3 + ALONG_ARM
    there = here + np.array([0.15, -0.1, 0.1])
    off_m, behind_m = [], []
    for part in np.linspace(0.0, 1.0, 41)[1:]:
        wanted = here + part * (there - here)
        hand.step(hand.pose(wanted, heading), 0.0)
        assert hand.info["ik"]["reached"]
        off_m.append(distance_to_line(hand.info["ee_position"], here, there))
        behind_m.append(np.linalg.norm(hand.info["ee_position"] - wanted))
    hand.go(there, heading, 0.0, most_steps=10)
    assert max(off_m) < 3e-3
    assert max(behind_m) < 5e-3, "at 5 cm/s"
    assert np.linalg.norm(hand.info["ee_position"] - there) < 1e-3


def distance_to_line(point, start, end):
    along = (end - start) / np.linalg.norm(end - start)
    return float(np.linalg.norm(np.cross(point - start, along)))


def test_poses_alone_pick_and_place():
    hand = Hand(PickAndPlaceEpisode(**EPISODE))
    center, goal = hand.info["object_center"], hand.info["target_position"]
    grasp = center - hand.info["object_position"]
    above = np.array([0.0, 0.0, 0.15])
    down = goal + grasp + [0.0, 0.0, 0.004]
    legs = [(center + above, 0.04), (center, 0.04), (center, 0.0), (center + above, 0.0)]
    legs += [(down + above, 0.0), (down, 0.0), (down, 0.04), (down + above, 0.04), (down + above, 0.04)]
    for position, opening_m in legs:
        if not hand.done:
            hand.go(position, 0.0, opening_m)
    assert hand.info["success"]
    assert not hand.info["object_grasped"]
    assert hand.info["collision_count"] == 0


def test_a_pose_that_trembles_is_still_the_same_place():
    # A target to which the base has to drive: taken anew at every step it would recede for ever.
    env = PickPlaceEnv(sensors=[])
    env.reset(
        PickAndPlaceEpisode(
            "drive",
            task_goal={"target_object": {"name": "cup"}},
            scene_objects=[
                {"name": "cup", "position": [3.0, 3.0, 0.0], "graspable": True, "shape": {"kind": "cup"}},
            ],
        )
    )
    for step in range(80):
        pose = [0.7 + 1e-5 * (step % 7), -0.5, 0.8, 1.0, 0.0, 0.0, 0.0]
        *_, info = env.step({"type": "ee_pose_target", "ee_pose_target": pose, "gripper_action": 0.04})
    env.close()
    assert info["ik"]["reached"]
    assert info["ee_position"] == pytest.approx([0.7, -0.5, 0.8], abs=0.01)
