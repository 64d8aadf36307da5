"""Runs of pick-and-place for the tests of reports, made up rather than simulated: how each ends is chosen."""

import hashlib
import json

import msgspec
import numpy as np

from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.results import PickPlaceRecord, PickPlaceResult
from proctor.exams.results import Fault, Timing

HAND, CUP, GOAL = np.array([0.15, -0.45, 0.95]), np.array([0.55, -0.75, 0.8]), np.array([0.85, -0.85, 0.8])
UP = np.array([0.0, 0.0, 1.0])
BOWL_RADIUS_M = 0.08
ENDINGS = (
    "success",
    "not_released",
    "left_target",
    "not_placed",
    "dropped",
    "not_lifted",
    "not_grasped",
    "never_reached",
    "knocked_down",
    "agent_fault",
    "evaluator_fault",
)
REACHED, GRASPED, LIFTED, PLACED, RELEASED, LAST = 40, 52, 68, 105, 112, 125


def episode_of(episode_id, *, target="position", text="Pick up the red cup and put it on the mark."):
    """An episode with a table, a cup, a bowl and a can; its target is a place, the bowl, or nothing."""
    location = {
        "position": {"type": "position", "position": list(GOAL), "radius": 0.1},
        "container": {"type": "container", "object_name": "bowl_blue"},
        None: None,
    }[target]
    return PickAndPlaceEpisode(
        episode_id=episode_id,
        scene_id="table_setup_001",
        task_goal={
            "target_object": {"name": "cup_red"},
            "target_location": location,
            "success_criteria": {"type": "place_at_location", "lift_height": 0.1, "place_tolerance": 0.05},
        },
        scene_objects=[
            {
                "name": "table",
                "shape": {"kind": "table", "color": "brown", "size": [1.2, 0.8, 0.8]},
                "position": [0.6, -0.9, 0.4],
                "static": True,
            },
            {
                "name": "cup_red",
                "shape": {"kind": "cup", "color": "red"},
                "position": list(CUP),
                "graspable": True,
            },
            {"name": "bowl_blue", "shape": {"kind": "bowl", "color": "blue"}, "position": list(GOAL)},
            {"name": "can", "shape": {"kind": "can", "color": "green"}, "position": [0.3, -1.05, 0.8]},
        ],
        instruction={"text": text},
        sim_params={"max_steps": 200},
    )


def result_of(episode, ending):
    """What an episode leaves behind that ends in this way."""
    stage = {
        "success": 5, "not_released": 4, "left_target": 4, "not_placed": 3, "dropped": 3, "not_lifted": 2,
        "not_grasped": 1, "agent_fault": 1,
    }.get(ending, 0)  # fmt: skip
    hand, cup, grip, phases, held = _paths(ending, stage)
    steps = [REACHED, GRASPED, LIFTED, PLACED]
    names = ("reached", "grasped", "lifted", "placed")
    stages = {
        name: step if stage > index else None
        for index, (name, step) in enumerate(zip(names, steps, strict=True))
    }
    stages["released"] = RELEASED if ending in ("success", "left_target") else None
    fault = None
    if ending.endswith("_fault"):
        side = ending.removesuffix("_fault")
        fault = Fault(
            side=side, kind="policy_exception" if side == "agent" else "env_lost", message="It broke."
        )
    location = episode.task_goal.target_location
    has_target = location is not None
    final_m = float(np.linalg.norm(cup[-1] - GOAL)) if has_target else 0.0
    if has_target and location.type == "container":  # nothing is left of the distance inside of the bowl
        final_m = max(0.0, final_m - BOWL_RADIUS_M)
    count, success = len(hand), ending == "success"
    bases = [(0.3 * min(step / REACHED, 1.0), 0.0, 0.0) for step in range(count)]
    return PickPlaceResult(
        episode_id=episode.episode_id,
        scene_id=episode.scene_id,
        instruction=episode.instruction.text,
        status="success" if success else "error" if fault else "failure",
        success=success,
        failure_reason=None if success else fault.kind if fault else "timeout",
        error=fault,
        final_distance_to_goal=final_m,
        steps=count - 1,
        collision_count=2,
        trajectory=[Vector3(*map(float, point)) for point in hand],
        headings=[0.0] * count,
        collision_steps=[20, 21],
        actions=[{"type": "joint_position", "qpos": [0.0] * 10}] * (count - 1),
        metrics={}
        if fault and fault.side == "evaluator"
        else {
            "success": float(success),
            "completion_rate": min(stage, 4) / 4,
            "trajectory_similarity": 0.8,
            "drops": float(ending == "dropped"),
            "final_distance_m": final_m,
            "hand_path_m": 1.3,
            "table_collisions": 2.0,
        },
        distance="euclidean",
        seed=0,
        pick_place=PickPlaceRecord(
            object_path=[tuple(map(float, point)) for point in cup],
            base_path=bases,
            gripper=grip,
            phases=phases,
            held=held,
            stages=stages,
            target=tuple(map(float, GOAL)) if has_target else None,
        ),
        timing=Timing(env_s=1.0, policy_s=0.1, evaluator_s=0.01, act_s=[0.001] * (count - 1)),
    )


def _paths(ending, stage):
    """Return where hand and cup were, how far the gripper was open, the phases, and who held what."""
    grip_at = CUP + UP * 0.05
    above = UP * 0.18
    keys = {0: HAND, REACHED: grip_at, GRASPED: grip_at, LIFTED: grip_at + above}
    keys |= {
        PLACED - 12: GOAL + above,
        PLACED: GOAL + UP * 0.06,
        RELEASED: GOAL + UP * 0.06,
        LAST: GOAL + UP * 0.2,
    }
    at = np.arange(LAST + 1)
    hand = np.stack(
        [np.interp(at, list(keys), [point[axis] for point in keys.values()]) for axis in range(3)], axis=1
    )
    grip = np.interp(at, [0, REACHED, GRASPED, PLACED, RELEASED], [0.04, 0.04, 0.018, 0.018, 0.04])
    held = (at >= GRASPED) & (at < RELEASED)
    _spoil(ending, stage, hand, grip, held)
    cup = _cup(ending, hand, held)
    last = {"agent_fault": 60, "evaluator_fault": 3}.get(ending, LAST) + 1
    phases = _phases(stage)[:last]
    return hand[:last], cup[:last], grip[:last].tolist(), phases, held[:last].tolist()


def _spoil(ending, stage, hand, grip, held):
    """Let hand and gripper do something else from some step on."""
    grip_at = CUP + UP * 0.05
    if stage == 0:
        hand[20:] = hand[20] + (np.arange(LAST - 19)[:, None] % 7) * 0.001
        held[:] = False
    elif ending in ("not_grasped", "agent_fault"):
        hand[GRASPED:], grip[GRASPED:], held[:] = grip_at, 0.002, False
    elif ending == "not_lifted":
        hand[GRASPED + 6 :] = hand[GRASPED + 6]
    elif ending == "not_placed":
        hand[85:], grip[85:], held[85:] = hand[85], 0.018, True
    elif ending == "not_released":
        hand[PLACED:], grip[PLACED:], held[PLACED:] = hand[PLACED], 0.018, True
    elif ending == "dropped":
        held[85:], grip[85:] = False, 0.04


def _cup(ending, hand, held):
    """Return where the cup was: where it stood, with the hand while held, on the floor if it fell."""
    cup = np.tile(CUP, (LAST + 1, 1))
    for step in range(1, LAST + 1):
        moved = hand[step] - hand[step - 1] if held[step] and held[step - 1] else 0.0
        cup[step] = cup[step - 1] + moved
        if not held[step] and held[step - 1]:
            cup[step:, 2] = 0.8
            break
        cup[step:] = cup[step]
    if ending == "dropped":
        cup[88:] = [0.7, -0.4, 0.0]
    if ending == "left_target":
        cup[118:, 0] += np.minimum(np.arange(LAST - 117) * 0.04, 0.2)
    if ending == "knocked_down":
        cup[30:] = [0.5, -0.4, 0.0]
    return cup


def _phases(stage):
    edges = [(0, "reach"), (REACHED, "grasp"), (GRASPED, "lift"), (LIFTED, "place")][: min(stage, 3) + 1]
    return [[name for edge, name in edges if edge <= step][-1] for step in range(LAST + 1)]


def write_run(folder, endings, *, policy="expert", dataset=None, **identity):
    """Write a run whose episodes end like this, and the dataset beside it unless there is one."""
    targets = ("position", "container", None)
    episodes = [episode_of(f"pick_{index:03d}", target=targets[index % 2]) for index in range(len(endings))]
    folder.mkdir(parents=True)
    dataset = dataset or folder.parent / f"{folder.name}_episodes.json"
    if not dataset.exists():
        save_dataset(episodes, dataset)
    results = [result_of(episode, ending) for episode, ending in zip(episodes, endings, strict=True)]
    (folder / "episodes.jsonl").write_bytes(b"".join(msgspec.json.encode(r) + b"\n" for r in results))
    known = {
        "task": "pick_and_place",
        "dataset": "tabletop-test",
        "dataset_sha256": hashlib.sha256(dataset.read_bytes()).hexdigest(),
        "episodes": len(endings),
        "policy": policy,
        "env": "tabletop",
        "seed": 0,
        "privileged": policy == "expert",
        "proctor": "0",
    }
    manifest = {"identity": known | identity, "source": {"dataset": str(dataset)}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
