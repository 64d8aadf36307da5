"""A person's controls of hand and base: what a key does, and that they suffice to pick and place."""

import math

import numpy as np
import pytest

from proctor.core.geometry import pose_into, pose_out_of
from proctor.core.registry import suite_path
from proctor.core.types import EpisodeInfo, Pose2
from proctor.exams.datasets import load_dataset
from proctor.exams.pick_place.actions import parse_manipulation_action
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.hand_controls import BASE_MOVES, HAND_MOVES, SLIDERS, HandControls

INFO = EpisodeInfo(episode_id="", instruction="", max_steps=500, seed=0)


class Person:
    """Presses keys in the world, and knows where things are: a person would see it."""

    def __init__(self, index):
        self.episode = load_dataset(suite_path("tabletop-v1")).episodes[index]
        self.env, self.controls, self.is_done, self.steps = PickPlaceEnv(sensors=[]), HandControls(), False, 0
        self.observation = self.env.reset(self.episode)
        self.controls.begin(INFO, self.observation)

    @property
    def truth(self):
        return self.env.info()

    def press(self, name, value=None):
        self.controls.press(name, value)
        while not self.is_done and (action := self.controls.action(self.observation)) is not None:
            assert parse_manipulation_action(action) == action
            self.observation, _, self.is_done, _ = self.env.step(action)
            self.steps += 1

    def seen(self, point):
        """Return how far to the right, away and up a point of the world is, in centimetres."""
        start = Pose2(*self.episode.robot_config.init_pose.base)
        base = pose_out_of(start, Pose2(*map(float, self.observation["qpos"][:3])))
        pose = pose_into(base, Pose2(float(point[0]), float(point[1]), 0.0))
        return -100 * pose.x, -100 * pose.y, 100 * float(point[2])

    def hand_from_start(self):
        """Return the hand in centimetres to the right, away and up, seen from where the robot started."""
        x, y, z = self.observation["ee_pose"][:3].tolist()
        pose = pose_out_of(Pose2(*map(float, self.observation["qpos"][:3])), Pose2(x, y, 0.0))
        return np.array([-100 * pose.x, -100 * pose.y, 100 * z])

    def face(self, name):
        """Turn the robot until something is ahead, in the direction of the arm."""
        while abs(left := math.atan2(-self.seen(self.truth[name])[0], self.seen(self.truth[name])[1])) > 0.15:
            self.press("base_turn_left" if left > 0 else "base_turn_right")
        self.press("wait")

    def reach(self, name, short_cm=0.0):
        for _ in range(3):  # the base drives meanwhile
            self.press("to_right", self.seen(self.truth[name])[0])
            self.press("to_away", self.seen(self.truth[name])[1] - short_cm)


@pytest.mark.parametrize("index", [4, 5])  # only to be lifted, and to be put elsewhere; both behind the robot
def test_an_object_is_picked_and_placed_with_keys_and_sliders(index):
    person = Person(index)
    person.press("up")
    person.face("object_position")
    person.press("open")
    person.press("to_height", person.seen(person.truth["object_position"])[2] + 20)
    person.press("to_turn", 0.0)
    person.reach("object_position", short_cm=10.0)
    person.press("to_height", person.seen(person.truth["object_position"])[2] + 4)
    person.press("to_away", person.seen(person.truth["object_position"])[1])
    person.press("wait")
    person.press("close")
    person.press("wait")
    for _ in range(8):
        person.press("up")
    if person.truth["target_position"] is not None:
        person.reach("target_position")
        person.press("to_height", person.seen(person.truth["target_position"])[2] + 6)
        person.press("wait")
        person.press("open")
        person.press("up")
    for _ in range(8):
        person.press("wait")
    assert person.truth["success"]
    assert person.is_done
    assert person.steps < 350  # of 500


@pytest.mark.parametrize(
    ("name", "moved_cm"),
    [
        ("up", (0, 0, 2)),
        ("away", (0, 2, 0)),
        ("nearer", (0, -2, 0)),
        ("right", (2, 0, 0)),
        ("left", (-2, 0, 0)),
    ],
)
def test_a_key_moves_the_hand_as_the_picture_has_it(name, moved_cm):
    person = Person(4)
    person.press("to_away", 55.0)  # room to come nearer
    person.press("wait")
    base, before = np.array(person.observation["qpos"][:2]), person.hand_from_start()
    person.press(name)
    for _ in range(4):
        person.press("wait")
    assert person.hand_from_start() - before == pytest.approx(moved_cm, abs=0.3)
    assert name in ("left", "right") or np.abs(person.observation["qpos"][:2] - base).max() < 0.01


def test_the_gripper_keeps_its_command_while_the_base_is_driven():
    person = Person(4)
    person.press("to_opening", 2.0)
    person.press("base_right")
    for _ in range(4):
        person.press("base_turn_left")
    person.press("wait")
    assert 100 * person.observation["gripper_state"] == pytest.approx(2.0, abs=0.1)
    assert person.observation["qpos"][2] > 0.3


def test_keys_stay_within_the_limits_of_sliders():
    person = Person(4)
    for _ in range(60):
        person.press("up")
    slider = next(each for each in HandControls.sliders if each.name == "to_height")
    assert person.controls.values()["to_height"] <= slider.high + 1
    person.press("down")
    person.press("wait")
    assert person.hand_from_start()[2] < slider.high - 0.5  # at once: no way back to make up for


def test_every_button_and_slider_does_something():
    buttons = [button.name for button in HandControls.buttons]
    assert sorted(buttons) == sorted({**HAND_MOVES, **BASE_MOVES})
    assert [slider.name for slider in HandControls.sliders] == list(SLIDERS)
    keys = [key for button in HandControls.buttons for key in button.keys]
    assert len(keys) == len(set(keys))
    places = [button.place for button in HandControls.buttons]
    assert len(places) == len(set(places))
