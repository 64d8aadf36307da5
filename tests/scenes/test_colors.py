import msgspec
import numpy as np
import pytest
from color_words import color_word, color_words

from proctor.core.types import Pose2
from proctor.robots.spec import standard_robot
from proctor.scenes.colors import PALETTE, WOODS, darker, lighter
from proctor.scenes.houses import LIGHTS
from proctor.scenes.interiors import INTERIORS
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.world import World

BY_CATEGORY = {
    slot.piece.category: slot.piece
    for seed in range(3)
    for rules in INTERIORS.values()
    for rule in rules
    for slot in rule.make(np.random.default_rng(seed))
}


@pytest.mark.parametrize("word", PALETTE)
def test_a_colour_of_the_palette_has_its_own_word(word):
    assert color_word(PALETTE[word]) == word


@pytest.mark.parametrize("word", PALETTE)
def test_a_little_more_or_less_light_leaves_the_word(word):
    assert color_word(darker(PALETTE[word], 0.15)) == word
    assert color_word(lighter(PALETTE[word], 0.12)) == word


def test_woods_are_called_as_their_paint_says():
    assert color_words(np.array([paint.rgb for paint in WOODS])) == [paint.word for paint in WOODS]


def photograph(objects):
    """Return a picture from 0 to 1 and depths under the lights of our houses."""
    world = World(
        Scene(SceneConfig(scene_name="studio", objects=objects, lights=list(LIGHTS))), standard_robot()
    )
    world.reset(Pose2(0.0, 0.0, 0.28))
    camera = RgbdCamera(world)
    rgb, depth = camera.render()
    camera.close()
    return rgb / 255, depth


def seen(parts):
    """Return the pixels (N, 3) of a piece that stands before the camera, turned a little."""
    piece = SceneObject(name="piece", translate=(3.2, 0.9, 0.0), rotate=(0, 0, 180), parts=parts)
    (rgb, depth), (_, empty) = photograph([piece]), photograph([])
    return rgb[np.abs(depth - empty.astype(float)) > 15]


@pytest.mark.parametrize("category", sorted(name for name, piece in BY_CATEGORY.items() if piece.color))
def test_what_a_camera_sees_of_a_piece_has_the_colour_of_its_word(category):
    piece = BY_CATEGORY[category]
    white = [msgspec.structs.replace(part, color=(1.0, 1.0, 1.0), texture=None) for part in piece.parts]
    pixels, light = seen(piece.parts), seen(white)
    assert len(pixels) > 1000
    words = color_words(pixels / light)
    assert max({*words}, key=words.count) == piece.color, {w: words.count(w) for w in {*words}}
