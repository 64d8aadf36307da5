"""Pick-and-place attempts drawn by chance: states of all kinds, as an env would report them."""

import numpy as np

START, TARGET = (0.5, 0.0, 0.8), (0.7, 0.2, 0.8)
PHASES = ("reach", "grasp", "lift", "place")


def attempt(seed):
    """Return the fields of an episode, and the env's info after each step."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(0, 60))
    has_target, tells_more = rng.random() < 0.8, rng.random() < 0.7
    goal = {
        "target_object": {"name": "cup", "initial_position": list(START)},
        "success_criteria": {"lift_height": float(rng.uniform(0.05, 0.15)), "place_tolerance": 0.06},
    }
    if has_target:
        goal["target_location"] = {"type": "position", "position": list(TARGET)}
    fields = {"episode_id": f"chance_{seed}", "task_goal": goal}
    if rng.random() < 0.8:
        fields["reference_trajectory"] = _reference(rng)
    infos, position, qpos = [], np.array(START), rng.uniform(-0.1, 0.1, 10)
    for step in range(steps):
        towards = np.array(TARGET) + np.array([0.0, 0.0, 0.15 * (step < 0.7 * steps)])
        position = position + 0.15 * (towards - position) + rng.normal(0, 0.02, 3)
        qpos = qpos + rng.normal(0, 0.02, 10)
        info = _info(rng, position, qpos, has_target=has_target)
        info["time_s"] = 0.1 * (step + 1)
        if not tells_more:
            info = {key: value for key, value in info.items() if key not in TOLD_BY_SOME}
        infos.append(info)
    return fields, infos


TOLD_BY_SOME = (
    *("object_center", "object_in_target", "initial_object_position", "initial_object_z", "touched"),
    *("gripper_closed_below", "target_lift_height", "place_tolerance", "object_supported", "clamped"),
)


def _info(rng, position, qpos, *, has_target):
    held = bool(rng.random() < 0.6)
    distance_m = float(np.linalg.norm(position - TARGET))
    quaternion = rng.normal(size=4)
    return {
        "position": [*rng.normal(size=2).tolist(), 0.0],
        "yaw": float(rng.normal()),
        "phase": PHASES[int(rng.integers(4))],
        "gripper_state": float(rng.uniform(0.0, 0.04)),
        "gripper_closed_below": 0.03,
        "object_grasped": held,
        "object_position": position.copy(),
        "object_center": position + np.array([0.0, 0.0, 0.05]),
        "object_released": bool(rng.random() < 0.5),
        "object_supported": bool(rng.random() < 0.3),
        "object_in_target": distance_m < 0.06 if has_target else None,
        "target_distance": distance_m if has_target else None,
        "target_position": np.array(TARGET) if has_target else None,
        "initial_object_position": np.array(START) + 0.001,
        "initial_object_z": 0.801,
        "target_lift_height": 0.1,
        "place_tolerance": 0.06,
        "ee_position": position + rng.normal(0, 0.05, 3),
        "ee_pose": np.array([*rng.normal(size=3), *(quaternion / np.linalg.norm(quaternion))]),
        "qpos": qpos.copy(),
        "collision": bool(rng.random() < 0.2),
        "touched": {name: bool(rng.random() < 0.2) for name in ("furniture", "objects", "self")},
        "clamped": ["lift"] if rng.random() < 0.2 else [],
        "success": bool(rng.random() < 0.05),
    }


def _reference(rng):
    rows = int(rng.integers(1, 40))
    reference = {"qpos_sequence": np.cumsum(rng.normal(0, 0.02, (rows, 10)), axis=0).tolist()}
    if rng.random() < 0.7:
        reference["ee_pose_sequence"] = rng.normal(size=(rows, 7)).tolist()
    if rng.random() < 0.7:
        marks = sorted(rng.integers(0, rows, 4).tolist())
        names = ("grasp_start", "lift_complete", "place_start", "place_complete")
        reference["keypoints"] = dict(zip(names, marks, strict=True))
    return reference
