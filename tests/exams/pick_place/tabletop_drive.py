"""A real pick-and-place episode for the tests of reports: waypoints of the joints, driven in the world."""

import numpy as np

from proctor.core.types import Vector3
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.results import PickPlaceRecord, PickPlaceResult

CUP, GOAL = (0.35, -0.72, 0.8), (0.6, -0.8, 0.8)
OPEN, SHUT = 0.04, 0.0
LIFT, ARM, HIGH = 0.83, 0.4, 1.0


def cup_episode(episode_id="pick_real"):
    """A cup on a table at the robot's right, to be put on a mark a little further ahead."""
    return PickAndPlaceEpisode(
        episode_id=episode_id,
        task_goal={
            "target_object": {"name": "cup_red"},
            "target_location": {"type": "position", "position": list(GOAL), "radius": 0.1},
            "success_criteria": {"type": "place_at_location"},
        },
        scene_objects=[
            {
                "name": "table",
                "shape": {"kind": "table", "color": "brown", "size": [1.2, 0.6, 0.8]},
                "position": [0.45, -0.85, 0.4],
                "static": True,
            },
            {
                "name": "cup_red",
                "shape": {"kind": "cup", "color": "red"},
                "position": list(CUP),
                "graspable": True,
            },
            {"name": "bowl_blue", "shape": {"kind": "bowl", "color": "blue"}, "position": [0.1, -0.85, 0.8]},
        ],
        robot_config={"init_pose": {"joint_positions": [0.0, 0.0, 0.0, 0.9, 0.0, 0.0, 0.04]}},
        instruction={"text": "Pick up the red cup and put it on the mark."},
        sim_params={"max_steps": 300},
    )


def waypoints():
    """Base x, lift, arm and gripper, and for how many steps each is commanded."""
    x, ahead = CUP[0] + 0.021, GOAL[0] + 0.021
    far = ARM - (GOAL[1] - CUP[1])
    return [
        (x, 0.9, 0.0, OPEN, 30),
        (x, LIFT, 0.05, OPEN, 10),
        (x, LIFT, ARM, OPEN, 25),
        (x, LIFT, ARM, SHUT, 14),
        (x, HIGH, ARM, SHUT, 22),
        (ahead, HIGH, far, SHUT, 28),
        (ahead, LIFT + 0.004, far, SHUT, 22),
        (ahead, LIFT + 0.004, far, OPEN, 12),
        (ahead, LIFT + 0.004, 0.1, OPEN, 30),
    ]


def drive(episode, *, sensors=()):
    """Do it, and return the episode's record as a run keeps it."""
    env = PickPlaceEnv(sensors=sensors)
    env.reset(episode)
    infos, actions = [env.info()], []
    for x, lift, arm, gripper, count in waypoints():
        for _ in range(count):
            action = {"type": "joint_position", "qpos": [x, 0.0, 0.0, lift, arm, 0.0, gripper]}
            _, _, done, info = env.step(action)
            infos.append(info)
            actions.append(action)
            if done:
                break
        if infos[-1]["success"]:
            break
    env.close()
    return result_of(episode, infos, actions)


def result_of(episode, infos, actions):
    """Put what the world said into a record."""
    held = [bool(info["object_grasped"]) for info in infos]
    aloft = [info["object_position"][2] > info["initial_object_z"] + 0.1 for info in infos]
    placed = [bool(info["object_in_target"]) for info in infos]
    reached = [info["phase"] != "reach" for info in infos]
    lifted = _first(np.logical_and(held, aloft))
    success = bool(infos[-1]["success"])
    return PickPlaceResult(
        episode_id=episode.episode_id,
        scene_id=episode.scene_id,
        instruction=episode.instruction.text,
        status="success" if success else "failure",
        success=success,
        failure_reason=None if success else "timeout",
        error=None,
        final_distance_to_goal=float(infos[-1]["target_distance"]),
        steps=len(actions),
        collision_count=int(infos[-1]["collision_count"]),
        trajectory=[Vector3(*map(float, info["ee_position"])) for info in infos],
        headings=[float(info["yaw"]) for info in infos],
        collision_steps=[info["step"] for info in infos if info["collision"]],
        actions=actions,
        metrics={"success": float(success), "completion_rate": 1.0},
        distance="euclidean",
        seed=0,
        pick_place=PickPlaceRecord(
            object_path=[tuple(map(float, info["object_position"])) for info in infos],
            base_path=[(info["position"].x, info["position"].y, float(info["yaw"])) for info in infos],
            gripper=[float(info["gripper_state"]) for info in infos],
            phases=[info["phase"] for info in infos],
            held=held,
            stages={
                "reached": _first(reached),
                "grasped": _first(held),
                "lifted": lifted,
                "placed": lifted and _first(placed, lifted),
                "released": None,
            },
            target=tuple(map(float, infos[-1]["target_position"])),
        ),
    )


def _first(flags, begin=0):
    found = [step for step, flag in enumerate(flags) if flag and step >= begin]
    return found[0] if found else None
