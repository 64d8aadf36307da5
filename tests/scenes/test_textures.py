from typing import get_args

import numpy as np
import pytest

from proctor.scenes.scene_config import Texture
from proctor.scenes.textures import PIXELS, TILE_M, texture_image

COLORFUL = ("books", "painting", "landscape")


@pytest.mark.parametrize("name", get_args(Texture))
def test_every_texture_is_a_seamless_picture(name):
    image = texture_image(name)
    assert image.shape == (PIXELS, PIXELS, 3)
    assert image.dtype == np.uint8
    assert image.mean() > (60 if name in COLORFUL else 180)
    assert TILE_M[name] > 0
    rows, columns = image[:, :, 0].astype(float), image[:, :, 0].T.astype(float)
    for lines in (columns,) if name == "landscape" else (rows, columns):
        inside = np.abs(np.diff(lines, axis=0)).mean(axis=1)
        seam = np.abs(lines[0] - lines[-1]).mean()
        assert seam <= inside.max() + 1


@pytest.mark.parametrize("name", get_args(Texture))
def test_a_texture_is_not_a_plain_colour_and_stays_the_same(name, tmp_path, monkeypatch):
    image = texture_image(name)
    assert image.std() > 2
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in ("painted", "read from the file"):
        texture_image.cache_clear()
        assert (texture_image(name) == image).all()
