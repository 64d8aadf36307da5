import math

import msgspec
import numpy as np
import pytest

from proctor.core.types import Pose2
from proctor.instructions.sight import CameraSight
from proctor.instructions.surroundings import Surroundings
from proctor.robots.spec import standard_robot
from proctor.scenes.houses import generate_house
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.world import World

HUES = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "cyan": (0, 1, 1)}
GREY = (0.5, 0.5, 0.5)


def thing(name, at, size, *, shape="box", yaw_deg=0.0, color=GREY):
    part = Part(shape=shape, size=size, color=color)
    return SceneObject(
        name=name, category=name, room="hall", translate=at, rotate=(0, 0, yaw_deg), parts=[part]
    )


def look(*objects, pose=(0.0, 0.0, 0.0)):
    """Return the view with the names of things instead of their numbers."""
    scene = SceneConfig(scene_name="test", objects=list(objects))
    view = CameraSight(Surroundings.of(scene)).look(Pose2(*pose))
    shares = {objects[number].name: share for number, share in view.shares.items()}
    free = {objects[number].name: share for number, share in view.free_shares.items()}
    return shares, free, {objects[number].name for number in view.seen()}


def painted(scene, colors):
    """Return the scene in grey, but for the things that get one of the hues."""
    objects = []
    for number, item in enumerate(scene.objects):
        color = colors.get(number, GREY)
        parts = [
            msgspec.structs.replace(part, color=(*color, *part.color[3:]), texture=None)
            for part in item.parts
        ]
        objects.append(msgspec.structs.replace(item, parts=parts))
    return msgspec.structs.replace(scene, objects=objects)


def hue_shares(rgb):
    """Return the share of a picture that each hue fills, whatever the light."""
    levels = rgb.astype(int)
    bright = levels > 0.5 * levels.max(axis=2, keepdims=True)
    colorful = np.ptp(levels, axis=2) > 25
    return {
        name: float((colorful & (bright == np.array(hue)).all(axis=2)).mean()) for name, hue in HUES.items()
    }


@pytest.mark.parametrize("seed", [3, 8])
def test_sees_what_the_renderer_draws(seed):
    house = generate_house(seed)
    rng = np.random.default_rng(seed)
    scene, surroundings = house.scene, Surroundings.of(house.scene)
    room = house.rooms[1]
    numbers = [
        mark.number for mark in surroundings.landmarks if mark.room == room.name and mark.category != "shadow"
    ]
    chosen = dict(zip(rng.permutation(numbers).tolist(), HUES, strict=False))
    world = World(
        Scene(painted(scene, {number: HUES[name] for number, name in chosen.items()})), standard_robot()
    )
    camera, sight, compared = RgbdCamera(world), CameraSight(surroundings), 0
    for step in range(12):
        pose = Pose2(*room.floor.centre, step * math.tau / 12)
        world.reset(pose)
        drawn, view = hue_shares(camera.render()[0]), sight.look(pose)
        for number, name in chosen.items():
            assert view.shares.get(number, 0.0) == pytest.approx(drawn[name], abs=0.008, rel=0.06), (
                step,
                number,
            )
            compared += drawn[name] > 0.01
    camera.close()
    assert compared >= 6


@pytest.mark.parametrize("shape", ["box", "cylinder", "sphere"])
@pytest.mark.parametrize("yaw_deg", [0.0, 30.0])
def test_every_shape_has_its_size_in_the_picture(shape, yaw_deg):
    item = thing("it", (3, 0.4, 1.2), (0.8, 0.8, 0.8), shape=shape, yaw_deg=yaw_deg, color=(1, 0, 0))
    world = World(Scene(SceneConfig(scene_name="test", objects=[item])), standard_robot())
    camera = RgbdCamera(world)
    world.reset(Pose2(0.0, 0.0, 0.2))
    drawn = hue_shares(camera.render()[0])["red"]
    camera.close()
    assert look(item, pose=(0, 0, 0.2))[0]["it"] == pytest.approx(drawn, rel=0.08)


def test_what_is_behind_or_beside_is_not_in_the_picture():
    behind, beside = thing("behind", (-2, 0, 1), (0.5, 0.5, 1)), thing("beside", (0, 2, 1), (0.5, 0.5, 1))
    assert look(behind, beside)[0] == {}


def test_a_wall_hides_and_a_low_box_does_not():
    sofa = thing("sofa", (4, 0, 0.5), (1, 2, 1))
    wall, box = thing("wall", (2, 0, 1.3), (0.1, 6, 2.6)), thing("box", (2, 0, 0.1), (0.3, 0.3, 0.2))
    assert "sofa" not in look(sofa, wall)[0]
    assert "sofa" in look(sofa, box)[2]


def test_a_sliver_is_in_view_but_not_seen():
    sofa, wall = thing("sofa", (4, 0, 0.5), (1, 2, 1)), thing("wall", (2, -0.9, 1.3), (0.1, 2.5, 2.6))
    shares, free, seen = look(sofa, wall)
    assert 0 < free["sofa"] < 0.35
    assert shares["sofa"] > 0
    assert "sofa" not in seen


def test_a_thing_at_the_edge_of_the_picture_is_not_seen():
    wardrobe = thing("wardrobe", (2, 2.0, 1), (0.6, 1.2, 2))
    assert "wardrobe" not in look(wardrobe)[2]
    assert "wardrobe" in look(wardrobe, pose=(0, 0, 0.6))[2]


def test_far_small_things_are_not_seen():
    plant = thing("plant", (11, 0, 0.5), (0.4, 0.4, 0.9))
    assert "plant" not in look(plant)[2]
    assert "plant" in look(plant, pose=(7, 0, 0))[2]


def test_glass_hides_nothing():
    glass = SceneObject(
        name="glass",
        category="shower",
        room="hall",
        parts=[Part(shape="box", size=(0.02, 3, 2), translate=(2, 0, 1), color=(0.8, 0.9, 1.0, 0.3))],
    )
    assert "sofa" in look(thing("sofa", (4, 0, 0.5), (1, 2, 1)), glass)[2]
