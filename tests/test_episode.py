"""Episodes in code take what the design documents write; files are checked strictly."""

from types import SimpleNamespace

import pytest

from proctor.core.types import Vector3
from proctor.episodes.vln import Episode


def test_positions_may_be_dicts_objects_or_vectors():
    episode = Episode(
        start_position={"x": 1, "y": 2, "z": 0},
        start_rotation=SimpleNamespace(x=0, y=0, z=90),
        goal_position=Vector3(3, 4, 0),
    )
    assert episode.start_position == Vector3(1.0, 2.0, 0.0)
    assert episode.start_rotation.z == 90.0
    assert episode.goal_position["y"] == 4


def test_the_executor_document_builds_an_episode_from_three_fields():
    episode = Episode(
        scene_config_path="...",
        start_position={"x": 0, "y": 0, "z": 0},
        goal_position={"x": 2, "y": 0, "z": 0},
    )
    assert episode.step_limit == 500
    assert episode.instruction == ""


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"max_steps": 0}, "max_steps: expected at least 1"),
        ({"goal_position": {"x": 1, "y": 2}}, "goal_position: expected the keys x, y and z"),
        ({"goal_position": {"x": float("nan"), "y": 2, "z": 0}}, "goal_position: expected finite numbers"),
        ({"start_position": (1, 2)}, "start_position: expected three numbers"),
        ({"goal_position": {"x": 1e300, "y": 0, "z": 0}}, "goal_position: expected numbers within"),
        ({"start_position": 7}, "start_position"),
        ({"episode_id": ""}, "episode_id: expected a name"),
        ({"success_threshold": 0.0}, "success_threshold: expected metres above 0"),
        ({"success_threshold": float("nan")}, "success_threshold: expected metres above 0"),
        ({"reference_path": []}, "reference_path: expected at least one point"),
    ],
)
def test_nonsense_is_refused_in_code_too(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        Episode(**fields)


def test_an_episode_cannot_be_changed_by_accident():
    with pytest.raises(AttributeError):
        Episode().goal_position = Vector3(1, 1, 1)


def test_a_vector_has_three_axes_only():
    with pytest.raises(KeyError):
        Vector3(1, 2, 3)["w"]
