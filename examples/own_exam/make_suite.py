"""Write the suite: in 12 houses of houses-v1, from the first episode's start to the goal furthest from it."""

from itertools import groupby
from pathlib import Path

import msgspec
from pointgoal.exam import PointGoalEpisode, PointGoalExam

from proctor.core.geometry import distance
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset

houses = groupby(load_dataset(suite_path("houses-v1")).episodes, key=lambda episode: episode.scene_id)
episodes = [
    PointGoalEpisode(
        episode_id=f"{scene_id}_point",
        scene_id=scene_id,
        start_position=own[0].start_position,
        start_rotation=own[0].start_rotation,
        goal=max((e.goal for e in own), key=lambda goal: distance(own[0].start_position, goal)),
    )
    for scene_id, own in ((scene_id, list(group)) for scene_id, group in houses)
][:12]
suite = Path(__file__).parent / "pointgoal" / "suite"
document = msgspec.json.encode(PointGoalExam.document(episodes, suite))
(suite / "episodes.json").write_bytes(msgspec.json.format(document) + b"\n")
