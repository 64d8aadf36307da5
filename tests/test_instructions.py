from itertools import pairwise

import numpy as np
import pytest

from proctor.scenes.floor_plan import Door, FloorPlan, Rect, Room
from proctor.scenes.houses import House
from proctor.scenes.instructions import landmark_at, rooms_along, write_instruction
from proctor.scenes.placement import Furnishing, Volume
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject

PLAN = FloorPlan(
    Rect(0, 0, 12, 4),
    (Room("hall", Rect(4, 0, 8, 4)), Room("bedroom", Rect(0, 0, 4, 4)), Room("kitchen", Rect(8, 0, 12, 4))),
    (Door(4, 2, "y", 1.0, ("hall", "bedroom")), Door(8, 2, "y", 1.0, ("hall", "kitchen"))),
)


def furnishing(category, room, rect, *, landmark=True, name=None):
    item = SceneObject(
        name=name or f"{room} {category}",
        category=category,
        room=room,
        parts=[Part(shape="box", size=(1, 1, 1))],
    )
    return Furnishing(item, Volume(rect, 0.0, 1.0), landmark)


def house(*furniture):
    return House(0, PLAN, furniture, SceneConfig(scene_name="test"))


FRIDGE = furnishing("fridge", "kitchen", Rect(11, 0, 12, 1))


def way(*corners):
    points = [np.linspace(a, b, 40) for a, b in pairwise(corners)]
    return np.concatenate(points)


def test_names_the_rooms_in_the_order_of_the_way():
    path = way((1, 2), (10.5, 2), (10.5, 0.5))
    assert rooms_along(PLAN, path) == ["bedroom", "hall", "kitchen"]
    assert rooms_along(PLAN, path[::-1]) == ["kitchen", "hall", "bedroom"]


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ((1, 2), "Leave the bedroom, go through the hall into the kitchen and stop next to the fridge."),
        ((5, 2), "Leave the hall, go into the kitchen and stop next to the fridge."),
        ((9, 2), "Stay in the kitchen and stop next to the fridge."),
    ],
)
def test_says_where_to_go_and_what_to_stop_at(start, sentence):
    assert write_instruction(house(FRIDGE), way(start, (10.5, 2), (10.5, 0.5))) == sentence


def test_lists_all_rooms_on_a_long_way():
    path = way((1, 2), (10, 2), (6, 2), (10.5, 2), (10.5, 0.5))
    assert "through the hall, the kitchen and the hall into the kitchen" in write_instruction(
        house(FRIDGE), path
    )


def test_further_off_means_near_instead_of_next_to():
    assert write_instruction(house(FRIDGE), way((9, 2), (9.8, 0.5))).endswith("stop near the fridge.")


def test_has_no_words_for_a_goal_far_from_everything():
    assert write_instruction(house(FRIDGE), way((9, 2), (9.0, 3.5))) is None


def test_names_nothing_that_is_there_twice():
    plant = furnishing("plant", "kitchen", Rect(10, 0, 10.4, 0.4))
    twin = furnishing("plant", "kitchen", Rect(8.2, 3, 8.6, 3.4), name="other plant")
    assert landmark_at(house(FRIDGE, plant), 10.5, 0.5) is plant
    assert landmark_at(house(FRIDGE, plant, twin), 10.5, 0.5) is FRIDGE


def test_names_nothing_that_is_nearer_behind_a_wall():
    here = furnishing("sink", "kitchen", Rect(9.5, 0, 10, 1))
    behind = furnishing("sink", "hall", Rect(7.5, 0, 7.9, 1))
    assert landmark_at(house(here), 8.5, 0.5) is here
    assert landmark_at(house(here, behind), 8.5, 0.5) is None
    assert landmark_at(house(behind), 8.5, 0.5) is None


def test_names_no_rug():
    assert (
        landmark_at(house(furnishing("rug", "kitchen", Rect(9, 1, 10, 2), landmark=False)), 9.5, 1.5) is None
    )
