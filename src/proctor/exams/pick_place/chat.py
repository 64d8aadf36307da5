"""Pick-and-place as chat models are told about it: hand targets, joint targets, waiting.

All coordinates are in one frame that does not move: that of the robot's base at the start, x ahead, y to the
left. A move is interpolated here, so that the model decides about places and not about control steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.agents.chat.faults import ChatFault, Unusable
from proctor.agents.chat.task import ChatTask, ChatTool, Decision, ToolCall
from proctor.core.answers import INVALID_ACTION
from proctor.core.geometry import pose_into, pose_out_of, wrap_angle
from proctor.core.types import Observation, Pose2
from proctor.robots.stretch import CONTROLS, GRIPPER_OPEN_M, controls_of_qpos
from proctor.robots.stretch_kinematics import FINGER_PITCH_RAD, hand_quaternion, heading_of

STRIDE_M, STRIDE_RAD = 0.02, 0.1
"""How far a straight move goes in one control step."""
STRAIGHT_M = 0.3
"""Longer moves are left to the robot, which finds a way around what stands in between."""
MOST_MOVE_STEPS = 40
SETTLE_STEPS = 5
"""At the end of a move: the joints lag behind."""
MOST_WAIT_STEPS = 40
LARGEST_M = 100.0
GRIPPER = {"open": GRIPPER_OPEN_M, "close": 0.0}
GRIPPER_SCHEMA = {
    "type": "string",
    "enum": [*GRIPPER, "keep"],
    "description": "What the gripper does at the end.",
}


class HandTarget(NamedTuple):
    """Where the hand should be, in the frame of the start."""

    x: float
    y: float
    z: float
    yaw: float
    gripper_m: float


class JointTarget(NamedTuple):
    """Where the seven controls should be."""

    controls: tuple[float, ...]


class PickPlaceChat(ChatTask):
    """The tools `move`, `set_joints` and `wait`. A reply holds one motion, and any waits."""

    template = Path(__file__).with_name("chat.md")
    moments: ClassVar[int] = 1
    actions_per_reply: ClassVar[int] = 60
    """Control steps: the model is asked again after them, though a motion may not be finished."""
    needs: ClassVar[tuple[str, ...]] = ("joints", "hand")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        robot = self.info.details.get("robot_config", {})
        self._start = Pose2(*robot.get("init_pose", {}).get("base", (0.0, 0.0, 0.0)))
        self._period_s: float = self.info.details.get("sim_params", {}).get("control_period", 0.1)
        self._gripper_m: float | None = None  # as it was last told
        self._last: HandTarget | JointTarget | None = None
        self._asked: HandTarget | None = None  # the target of the last move

    def tools(self) -> Sequence[ChatTool]:
        """Return the three tools."""
        place = {axis: {"type": "number", "description": "metres"} for axis in ("x", "y", "z")}
        yaw = {"type": "number", "description": "Heading of the fingers, radians; 0 is ahead at the start."}
        joints = {
            control.name: {
                "type": "number",
                "description": f"{control.low:g} to {control.high:g}; left out: as it is",
            }
            for control in CONTROLS[:-1]
        }
        steps = {"type": "integer", "minimum": 1, "maximum": MOST_WAIT_STEPS}
        return [
            ChatTool(
                name="move",
                description="Move the hand to a place, then set the gripper. The base drives by itself where "
                "the arm does not reach.",
                properties={**place, "yaw": yaw, "gripper": GRIPPER_SCHEMA},
            ),
            ChatTool(
                name="set_joints",
                description="Move the joints to positions (metres, radians), then set the gripper. Those of "
                "the base are relative to its start.",
                properties={**joints, "gripper": GRIPPER_SCHEMA},
                optional=(*joints, "gripper"),
            ),
            ChatTool(
                name="wait", description="Keep still for some control steps.", properties={"steps": steps}
            ),
        ]

    def robot(self) -> str:
        """Return frames, speeds and the hand's shape."""
        return (
            "All coordinates are metres and radians in one frame that does not move: its origin is on the "
            "floor under the robot's base at the start, x is ahead of the base, y to its left, z up. The arm "
            "reaches out to the right of the base. The fingers always point "
            f"{math.degrees(FINGER_PITCH_RAD):.0f} degrees down; the hand's position is between their pads. "
            f"Each finger opens by {GRIPPER_OPEN_M:g} m. A control step lasts {self._period_s:g} s. A move "
            f"of up to {STRAIGHT_M:g} m is a straight line, {STRIDE_M:g} m or {STRIDE_RAD:g} rad per step; "
            f"on a longer one the robot finds its own way for {MOST_MOVE_STEPS} steps. Then you are asked "
            "again."
        )

    def details(self) -> str:
        """Return the goal and the objects, in the frame of the start; nothing where they are withheld."""
        goal = self.info.details.get("task_goal")
        if goal is None:  # withheld
            return ""
        target, location = goal.get("target_object", {}), goal.get("target_location")
        criteria = goal.get("success_criteria", {})
        lines = [
            f"Pick up: {target.get('name', 'the object')}, and lift it by {criteria.get('lift_height')} m."
        ]
        if location is not None:
            name = location.get("object_name")
            where = f"{location.get('type')}{f' {name}' if name else ''}{self._at(location.get('position'))}"
            within = f"within {criteria.get('place_tolerance')} m"
            lines.append(f"Put it down: {where}, {within}, let go, and leave it at rest.")
        lines.append("Objects at the start (position: the middle of the bottom, of furniture the centre):")
        for item in self.info.details.get("scene_objects", []):
            shape = item.get("shape") or {}
            words = [str(shape[key]) for key in ("color", "kind") if shape.get(key)]
            if shape.get("size"):
                words.append(" x ".join(f"{side:g}" for side in shape["size"]) + " m")
            lines.append(f"- {item.get('name')} ({', '.join(words)}){self._at(item.get('position'))}")
        return "\n".join(lines)

    def state(self, observation: Observation) -> str:
        """Return where the hand and the base are, and how far the last move was from its target."""
        hand, base = self._hand(observation), _base(observation)
        controls = _controls(observation)
        joints = ", ".join(f"{c.name}={v:.3f}" for c, v in zip(CONTROLS, controls, strict=True))
        lines = [
            f"Hand: x={hand.x:.3f} y={hand.y:.3f} z={hand.z:.3f} yaw={hand.yaw:.2f}; "
            f"gripper open by {hand.gripper_m:.3f} m of {GRIPPER_OPEN_M:g}. "
            f"Base: x={base.x:.3f} y={base.y:.3f} yaw={base.yaw:.2f}.",
            f"Joints: {joints}.",
        ]
        if self._asked is not None:
            left_m = math.dist(hand[:3], self._asked[:3])
            left_rad = abs(wrap_angle(hand.yaw - self._asked.yaw))
            lines.append(f"Your last move is {left_m:.3f} m and {left_rad:.2f} rad from its target.")
        if isinstance(told := observation.get("object_info"), dict):
            lines += [f"{name}{self._at(place)}" for name, place in told.items() if place is not None]
        return "\n".join(lines)

    def pictures(self, observation: Observation) -> list[tuple[str, NDArray[np.uint8]]]:
        """Return what head and wrist see."""
        names = {"rgb_head": "head camera", "rgb_wrist": "wrist camera"}
        return [(text, observation[name]) for name, text in names.items() if name in observation]

    def decide(self, calls: Sequence[ToolCall], observation: Observation) -> Decision:
        """Return the control steps of a motion and of waits."""
        motions = {_named(call) for call in calls if call.name != "wait"}
        if len(motions) > 1:
            problem = f"one motion per reply, found {' and '.join(sorted(motions))[:300]}"
            raise Unusable(ChatFault.CONTRADICTION, problem)
        steps: list[Any] = []
        names: list[str] = []
        asked_before = self._asked
        try:
            for call in calls:
                if _named(call) in names and call.name != "wait":
                    continue  # the same motion twice
                steps += self._steps(call, observation, steps[-1] if steps else self._last)
                names.append(_named(call))
        except Unusable:
            self._asked = asked_before  # none of the calls is done
            raise
        return Decision(steps[: self.most_actions], names)

    def action(self, step: Any, observation: Observation) -> Any:
        """Return a message: where the hand should be as seen from the base where it is now, or the joints."""
        self._last = step
        if isinstance(step, JointTarget):
            self._gripper_m = step.controls[-1]
            return {"type": "joint_position", "qpos": list(step.controls)}
        self._gripper_m = step.gripper_m
        seen = pose_into(_base(observation), Pose2(step.x, step.y, step.yaw))
        pose = [seen.x, seen.y, step.z, *hand_quaternion(seen.yaw).tolist()]
        return {"type": "ee_pose_target", "ee_pose_target": pose, "gripper_action": step.gripper_m}

    def _steps(
        self, call: ToolCall, observation: Observation, last: HandTarget | JointTarget | None
    ) -> list[Any]:
        """Return the control steps of a call; `last` is the target before it, which a wait keeps."""
        if call.name == "wait":
            count = round(_number(call, "steps", 1.0))
            if not 1 <= count <= MOST_WAIT_STEPS:
                raise Unusable(INVALID_ACTION, f"wait: steps: expected 1 to {MOST_WAIT_STEPS}, found {count}")
            return [last or JointTarget(_controls(observation))] * count
        before_m = self._hand(observation).gripper_m if self._gripper_m is None else self._gripper_m
        word = call.arguments.get("gripper", "keep")
        if word not in GRIPPER_SCHEMA["enum"]:
            raise Unusable(INVALID_ACTION, f"gripper: expected open, close or keep, found {str(word)[:40]!r}")
        after_m = GRIPPER.get(word, before_m)
        travel_s = abs(after_m - before_m) / CONTROLS[-1].speed
        grip_steps = 0 if after_m == before_m else math.ceil(travel_s / self._period_s) + 2
        if call.name == "move":
            path = self._path(call, self._hand(observation), before_m)
            x, y, z, yaw = (_number(call, name) for name in ("x", "y", "z", "yaw"))
            self._asked = HandTarget(x, y, z, yaw, after_m)
            return [*path, *[path[-1]._replace(gripper_m=after_m)] * grip_steps]
        self._asked = None
        return (
            _joint_steps(call, _controls(observation), before_m, self._period_s)
            + [JointTarget((*_joints_of(call, _controls(observation))[:-1], after_m))] * grip_steps
        )

    def _path(self, call: ToolCall, hand: HandTarget, gripper_m: float) -> list[HandTarget]:
        """Return where the hand should be in each control step of a move."""
        x, y, z, yaw = (_number(call, name) for name in ("x", "y", "z", "yaw"))
        here, goal, turn = np.array(hand[:3]), np.array([x, y, z]), wrap_angle(yaw - hand.yaw)
        distance_m = float(np.linalg.norm(goal - here))
        if distance_m > STRAIGHT_M:
            return [HandTarget(x, y, z, yaw, gripper_m)] * MOST_MOVE_STEPS
        count = max(math.ceil(max(distance_m / STRIDE_M, abs(turn) / STRIDE_RAD)), 1)
        shares = [(step + 1) / count for step in range(count)] + [1.0] * SETTLE_STEPS
        places = [(here + share * (goal - here)).tolist() for share in shares]
        return [
            HandTarget(place[0], place[1], place[2], hand.yaw + share * turn, gripper_m)
            for share, place in zip(shares, places, strict=True)
        ]

    def _hand(self, observation: Observation) -> HandTarget:
        pose = np.asarray(observation["ee_pose"], float)
        hand = pose_out_of(_base(observation), Pose2(float(pose[0]), float(pose[1]), heading_of(pose[3:])))
        gripper_m = float(observation["gripper_state"])
        return HandTarget(hand.x, hand.y, float(pose[2]), wrap_angle(hand.yaw), gripper_m)

    def _at(self, position: Any) -> str:
        """Return where a place of the world is; nothing where it is withheld."""
        if position is None:
            return ""
        x, y, z = (float(value) for value in position)
        seen = pose_into(self._start, Pose2(x, y, 0.0))
        return f" at x={seen.x:.3f} y={seen.y:.3f} z={z:.3f}"


def _base(observation: Observation) -> Pose2:
    """Return where the base is, in the frame of its start."""
    x, y, yaw = (float(value) for value in observation["qpos"][:3])
    return Pose2(x, y, yaw)


def _controls(observation: Observation) -> tuple[float, ...]:
    return controls_of_qpos(tuple(float(value) for value in observation["qpos"]))


def _joints_of(call: ToolCall, present: tuple[float, ...]) -> tuple[float, ...]:
    return (
        *(_number(call, c.name, now) for c, now in zip(CONTROLS[:-1], present, strict=False)),
        present[-1],
    )


def _joint_steps(
    call: ToolCall, present: tuple[float, ...], gripper_m: float, period_s: float
) -> list[JointTarget]:
    """Command the target for as long as the slowest joint needs."""
    target = _joints_of(call, present)
    slowest_s = max(abs(goal - now) / c.speed for goal, now, c in zip(target, present, CONTROLS, strict=True))
    count = min(math.ceil(slowest_s / period_s), MOST_MOVE_STEPS) + SETTLE_STEPS
    return [JointTarget((*target[:-1], gripper_m))] * count


def _named(call: ToolCall) -> str:
    arguments = [
        f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}"
        for name, value in call.arguments.items()
        if name != "note"
    ]
    return f"{call.name}({', '.join(arguments)})"[:300]


def _number(call: ToolCall, name: str, default: float | None = None) -> float:
    value: Any = call.arguments.get(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= LARGEST_M:  # nor NaN
        problem = f"{call.name}: {name}: expected a number within ±{LARGEST_M:g}, found {str(value)[:40]!r}"
        raise Unusable(INVALID_ACTION, problem)
    return float(value)
