"""Commands for poses of the hand, while it follows a curve close above a table at 10 Hz.

Ours starts each time from where the robot is, goes on until the pose is met, and keeps clear of the table.
Theirs is mink alone: one step of one quadratic program, with the limits of the joints, and no furniture.
Where lift, arm, wrist and driving do, ours needs no such program; where they do not, it needs several.

Run it with `python -m benchmarks.bench_ik`.
"""

import math
import time

import mink
import numpy as np

from benchmarks.rows import Row
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.robots.stretch_kinematics import hand_quaternion
from proctor.scenes.things import make_thing
from proctor.worlds.mujoco.tabletop.inverse_kinematics import HandSolver
from proctor.worlds.mujoco.tabletop.stretch_model import ARM_JOINTS, FINGERS, HAND_SITE, stretch_spec
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld

PERIOD_S = 0.1
BUDGET_S = 2e-3
TABLE = {
    "name": "table",
    "position": [0.0, -0.75, 0.4],
    "static": True,
    "shape": {"kind": "table", "size": [1.2, 0.55, 0.8]},
}
LIFT_M = 0.806
"""With the pads 3 to 13 mm above the table."""


def bench() -> list[Row]:
    rows = []
    for how, arm_m, path, ticks, bar in (
        ("by the arm", 0.2, on_curve, 300, 1.5),
        ("beyond the arm", 0.52, outwards, 30, 6.0),
    ):
        ours_s, theirs_s = follow(arm_m, path, ticks)
        rows.append(Row(f"ik: a pose at 10 Hz, {how} (vs one bare mink step)", ours_s, theirs_s, bar))
        rows.append(Row(f"ik: a pose at 10 Hz, {how} (vs its budget)", ours_s, BUDGET_S, 1.0))
    return rows


def follow(arm_m, path, ticks) -> tuple[float, float]:
    """Return the median time of one pose, ours and theirs."""
    setup = {"init_pose": {"joint_positions": [0.0, 0.0, 0.0, LIFT_M, arm_m, 0.0, 0.0]}}
    episode = PickAndPlaceEpisode("curve", robot_config=setup, scene_objects=[TABLE])
    things = {item.name: make_thing(item, None) for item in episode.scene_objects}
    world = TabletopWorld(episode, things, drawn=False)
    world.place()
    solver, bare = HandSolver(world), Bare(arm_m)
    start = world.hand_pose_in_base()
    solver.solve(start, 0.0)  # builds its model
    ours_s, theirs_s = [], []
    for tick in range(ticks):
        target = path(start, tick * PERIOD_S)
        x, y, turn = world.controls()[:3]
        cos, sin = math.cos(turn), math.sin(turn)
        ahead, left = target[0] - x, target[1] - y
        heading = -math.pi / 2 + 0.4 * math.sin(0.5 * tick * PERIOD_S)
        pose = [
            cos * ahead + sin * left,
            cos * left - sin * ahead,
            target[2],
            *hand_quaternion(heading - turn),
        ]
        started_s = time.perf_counter()
        solution = solver.solve(np.array(pose), 0.0)
        ours_s.append(time.perf_counter() - started_s)
        assert solution.reached
        started_s = time.perf_counter()
        bare.step(np.array([*hand_quaternion(heading), *target]))
        theirs_s.append(time.perf_counter() - started_s)
        world.command(solution.controls)
        world.advance()
    return float(np.median(ours_s)), float(np.median(theirs_s))


def on_curve(start, time_s):
    """Return a place on a slow curve around the start: at most 8 cm/s."""
    turn = 0.5 * time_s
    away = [0.15 * math.sin(turn), -0.1 * (1 - math.cos(turn)), 0.005 * math.sin(0.7 * turn)]
    return start[:3] + np.array(away)


def outwards(start, time_s):
    """Return a place ever further out, so that the base has to slide."""
    return start[:3] + np.array([0.0, -0.1 * time_s, 0.0])


class Bare:
    """The robot alone in mink."""

    def __init__(self, arm_m: float) -> None:
        self.model = stretch_spec(drawn=False).compile()
        self.robot = mink.Configuration(self.model)
        q = self.robot.q
        q[self.model.joint("joint_lift").qposadr[0]] = LIFT_M
        for name in ARM_JOINTS:
            q[self.model.joint(name).qposadr[0]] = arm_m / 4
        self.robot.update(q)
        self.hand = mink.FrameTask(HAND_SITE, "site", position_cost=1.0, orientation_cost=1.0)
        self.tasks = [self.hand, mink.DampingTask(self.model, 1e-3)]
        self.limits = [mink.ConfigurationLimit(self.model)]
        fingers = [int(self.model.joint(name).dofadr[0]) for name in FINGERS]
        segments = mink.EqualityConstraintTask(self.model, 1.0, equalities=[0, 1, 2])
        self.constraints = [segments, mink.DofFreezingTask(self.model, fingers)]

    def step(self, wxyz_xyz) -> None:
        self.hand.set_target(mink.SE3(wxyz_xyz))
        velocity = mink.solve_ik(
            self.robot, self.tasks, PERIOD_S, "daqp", limits=self.limits, constraints=self.constraints
        )
        self.robot.integrate_inplace(velocity, PERIOD_S)


if __name__ == "__main__":
    for row in bench():
        ratio = row.ours / row.theirs
        print(f"{row.name}  {1e3 * row.ours:.3f} ms  {1e3 * row.theirs:.3f} ms  {ratio:.3f}")
