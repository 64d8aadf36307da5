"""The episodes of tabletop exams: what is where, what the robot is told, and what counts."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import msgspec
import numpy as np

from proctor.core.types import Array, Pose2
from proctor.exams.pick_place.env import things_of
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.robots.stretch import qpos_of_controls
from proctor.robots.stretch_kinematics import hand_in_world
from proctor.scenes.tabletop_parts import (
    InitPose,
    Instruction,
    RobotSetup,
    SuccessCriteria,
    TargetLocation,
    TargetObject,
    TaskGoal,
)
from proctor.suites.tabletop_scenes import GAP_M, PlacedItem, Repertoire, SceneDraft
from proctor.worlds.mujoco.tabletop.clearance import Clearance

SEEN = Repertoire(("table", "desk", "counter"), ("cup", "box", "block", "can", "bottle"), ("bowl", "tray"))
UNSEEN = Repertoire(("shelf", "stand"), ("mug", "cylinder", "ball"), ("basket", "plate"))
GOALS = ("container", "position", "surface", "container", "lift", "position", "surface", "container")
"""Taken in turn."""
NONHOLONOMIC_SHARE, BACK_SHARE = 0.25, 0.25
MOVED_M = 0.15
"""A target position is at least this far from where the object stood."""
FLAT = ("plate", "tray")
TRIES = 40


class TaskDraft(NamedTuple):
    """What an episode will be about."""

    target: PlacedItem
    location: TargetLocation | None
    words: str


class TabletopExam:
    """Sets tabletop episodes of a split from a repertoire; clutter may be of any kind."""

    def __init__(self, split: str, repertoire: Repertoire, rng: np.random.Generator) -> None:
        self._split, self._repertoire, self._rng = split, repertoire, rng

    def episode(self, index: int) -> PickAndPlaceEpisode:
        """Return an episode that nobody has tried yet."""
        while True:
            found = self._attempt(index)
            if found is not None:
                return found

    def _attempt(self, index: int) -> PickAndPlaceEpisode | None:
        rng, goal = self._rng, GOALS[index % len(GOALS)]
        scene = SceneDraft(rng)
        main = scene.add_furniture(self._any(self._repertoire.furniture), np.zeros(2), self._yaw())
        draft = self._draft(scene, main, goal)
        if draft is None:
            return None
        around = (*SEEN.objects, *UNSEEN.objects, *SEEN.containers)
        for _ in range(int(rng.integers(5 + 1))):
            self._add_clutter(scene, main, draft, self._any(around))
        types = ("place_at_location", "place_at_location", "grasp_and_lift")
        kind = "grasp_and_lift" if draft.location is None else types[index % 3]
        episode = PickAndPlaceEpisode(
            episode_id=f"{self._split}_{index:03d}",
            scene_id=f"{main.kind}_{index:03d}",
            task_goal=TaskGoal(
                target_object=TargetObject(
                    name=draft.target.item.name, initial_position=draft.target.item.position
                ),
                target_location=draft.location,
                success_criteria=SuccessCriteria(type=kind),  # type: ignore[arg-type]
            ),
            scene_objects=scene.items,
            instruction=Instruction(text=draft.words, tokens=re.findall(r"[a-z0-9]+", draft.words.lower())),
            split=self._split,
        )
        return self._with_robot(episode, np.array(draft.target.item.position))

    def _draft(self, scene: SceneDraft, main: PlacedItem, goal: str) -> TaskDraft | None:
        """Add what the episode is about: a thing, and where it shall go; None if there is no room."""
        target = scene.add_thing(self._any(self._repertoire.objects), main)
        if target is None:
            return None
        it = f"the {target.color} {target.kind}"
        if goal == "lift":
            return TaskDraft(target, None, self._any((f"Pick up {it}.", f"Lift {it} and hold it.")))
        places = {"position": self._position, "container": self._container, "surface": self._surface}
        place = places[goal](scene, main, it)
        return None if place is None else TaskDraft(target, *place)

    def _position(self, scene: SceneDraft, main: PlacedItem, it: str) -> tuple[TargetLocation, str] | None:
        target = scene.placed[-1]
        spot = scene.free_spot(main, target.radius_m)
        if spot is None or math.dist(spot[:2], target.item.position[:2]) < MOVED_M:
            return None
        words = (f"Pick up {it} and place it at the target location.", f"Move {it} to the marked spot.")
        radius_m = round(float(self._rng.uniform(0.05, 0.1)), 3)
        return TargetLocation(position=spot, radius=radius_m), self._any(words)

    def _container(self, scene: SceneDraft, main: PlacedItem, it: str) -> tuple[TargetLocation, str] | None:
        kind = self._any(self._repertoire.containers)
        holder = scene.add_thing(kind, main, graspable=False)
        if holder is None:
            return None
        name, position = holder.item.name, holder.item.position
        location = TargetLocation(type="container", position=position, object_name=name)
        there = f"{'on' if kind in FLAT else 'in'} the {holder.color} {kind}"
        return location, self._any((f"Pick up {it} and put it {there}.", f"Put {it} {there}."))

    def _surface(self, scene: SceneDraft, main: PlacedItem, it: str) -> tuple[TargetLocation, str]:
        """Let the object go to another piece of furniture, or back onto its own."""
        rng = self._rng
        if rng.random() < BACK_SHARE:
            support, words = main, f"Lift {it}, then put it back on the {main.kind}."
        else:
            kind = self._any([kind for kind in (*SEEN.furniture, *UNSEEN.furniture) if kind != main.kind])
            bearing, gap_m = float(rng.uniform(-math.pi, math.pi)), float(rng.uniform(0.05, 0.5))
            support = scene.add_furniture_beside(main, kind, bearing=bearing, gap_m=gap_m, yaw=self._yaw())
            words = f"Take {it} from the {main.kind} and put it on the {support.kind}."
        return TargetLocation(type="surface", object_name=support.item.name), words

    def _add_clutter(self, scene: SceneDraft, main: PlacedItem, draft: TaskDraft, kind: str) -> None:
        """Add a thing that does not matter, unless it would lie where the object shall go."""
        near = np.array(draft.target.item.position) if self._rng.random() < 0.5 else None
        if kind in SEEN.containers and any(placed.kind == kind for placed in scene.placed):
            return
        added = scene.add_thing(kind, main, near=near, graspable=kind not in SEEN.containers)
        location = draft.location
        if added is None or location is None or location.position is None:
            return
        apart_m = added.radius_m + draft.target.radius_m + GAP_M
        if math.dist(added.item.position, location.position) < apart_m:
            scene.placed.pop()

    def _with_robot(self, episode: PickAndPlaceEpisode, target: Array) -> PickAndPlaceEpisode | None:
        """Return the episode with a robot that stands free, some way off; None if there is no such place."""
        rng = self._rng
        clearance = Clearance(episode, things_of(episode))
        nonholonomic = bool(rng.random() < NONHOLONOMIC_SHARE)
        for _ in range(TRIES):
            # From the middle of the furniture's edge, roughly, to the robot.
            bearing, far_m = rng.uniform(-math.pi, math.pi), rng.uniform(*(0.5, 1.35))
            base = (
                round(float(target[0] + far_m * math.cos(bearing)), 3),
                round(float(target[1] + far_m * math.sin(bearing)), 3),
                round(float(rng.uniform(-math.pi, math.pi)), 3),
            )
            lift_m = round(float(rng.uniform(0.3, 0.9)), 2)
            arm_m, wrist_yaw = float(rng.choice([0.0, 0.1])), float(rng.choice([0.0, 0.0, 0.5, -0.5]))
            hand, _ = hand_in_world(Pose2(*base), lift_m, arm_m, wrist_yaw)
            gaps = clearance.gaps(np.array([*base, lift_m, arm_m, wrist_yaw, 0.0]))
            if min(gaps.robot_m, gaps.grip_m) > 0.035 and np.linalg.norm(hand - target) > 0.35:
                joints = qpos_of_controls((0.0, 0.0, 0.0, lift_m, arm_m, wrist_yaw, 0.0))
                pose = InitPose(base=base, joint_positions=tuple(round(joint, 3) for joint in joints))
                setup = RobotSetup(init_pose=pose, nonholonomic=nonholonomic)
                return msgspec.structs.replace(episode, robot_config=setup)
        return None

    def _any(self, choices: tuple[str, ...] | list[str]) -> str:
        return str(self._rng.choice(choices))

    def _yaw(self) -> float:
        return math.radians(15.0 * int(self._rng.integers(24)))
