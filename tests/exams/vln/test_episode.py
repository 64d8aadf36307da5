"""Episodes in code take what the design documents write; files are checked strictly."""

import dataclasses
import json
from types import SimpleNamespace

import pytest

from proctor.core.types import Action, Vector3
from proctor.exams.vln.episode import Episode, Origin


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


def test_it_is_the_documents_dataclass():
    place, turn = {"x": 0.0, "y": 0.0, "z": 0.0}, {"x": 0, "y": 0, "z": 90}
    episode = Episode(
        "ep_001", "scene_001", place, turn, {"x": 5.0, "y": 0.0, "z": 3.0}, "Walk.", "s.json", 50
    )
    assert (episode.goal_position.x, episode.scene_config_path, episode.max_steps) == (5.0, "s.json", 50)
    told = dataclasses.asdict(episode)
    assert list(told)[:8] == [
        *("episode_id", "scene_id", "start_position", "start_rotation", "goal_position", "instruction"),
        *("scene_config_path", "max_steps"),
    ]
    assert told["start_position"] == place
    assert json.loads(json.dumps(told)) == told
    assert dataclasses.is_dataclass(Episode)
    assert dataclasses.replace(episode, max_steps=7).max_steps == 7
    assert [field.name for field in dataclasses.fields(Episode)] == list(told)


def test_a_dict_of_an_episode_is_that_episode_again():
    episode = Episode(
        episode_id="ep",
        reference_path=[Vector3(0, 0, 0), Vector3(1, 0, 0)],
        reference_actions=[Action.FORWARD, Action.STOP],
        origin=Origin(format="r2r-ce", scene_id="a.glb", waypoints=[Vector3(0, 0, 0)]),
    )
    assert Episode(**dataclasses.asdict(episode)) == episode


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
        ({"origin": {"format": "r2r"}}, "origin: "),
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
