"""A world from above, as a map would show it: parallel rays, and the ceiling cut away."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.sim.gl import shared_context
from proctor.sim.world import World

NEAR_M = 1.0
"""The camera is so far above the cut."""
DEPTH_M = 50.0
"""How far below the cut things are still drawn."""


class TopView(NamedTuple):
    """A rectangle of the world, seen from above; +y is up."""

    rgb: NDArray[np.uint8]  # (H, W, 3)
    height_m: NDArray[np.float32]  # (H, W), of what is seen, in the world frame


def render_from_above(
    world: World,
    low_xy: tuple[float, float],
    high_xy: tuple[float, float],
    *,
    size_px: tuple[int, int],
    below_m: float,
) -> TopView:
    """Return a picture of a rectangle of the world as it is now.

    Args:
        world: The world.
        low_xy: The rectangle's lower left corner in the world frame.
        high_xy: Its upper right corner.
        size_px: Width and height of the picture.
        below_m: What is higher than this is cut away.

    Raises:
        MissingDependency: This machine cannot render.
    """
    width_m, height_m = high_xy[0] - low_xy[0], high_xy[1] - low_xy[1]
    width_px, height_px = size_px
    gl = shared_context()
    gl.make_current()
    model, size = world.model, world.model.vis.global_
    camera_size = size.offwidth, size.offheight
    size.offwidth, size.offheight = width_px, height_px  # read only while a context is made
    context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    size.offwidth, size.offheight = camera_size
    scene = mujoco.MjvScene(model, model.ngeom + 8)
    scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
    scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
    scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = 0
    everything = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(model, world.data, mujoco.MjvOption(), None, mujoco.MjvCamera(), everything, scene)
    for camera in scene.camera:  # one for each eye
        camera.pos = (low_xy[0] + high_xy[0]) / 2, (low_xy[1] + high_xy[1]) / 2, below_m + NEAR_M
        camera.forward, camera.up = (0, 0, -1), (0, 1, 0)
        camera.orthographic = 1
        camera.frustum_center, camera.frustum_width = 0.0, width_m / 2
        camera.frustum_bottom, camera.frustum_top = -height_m / 2, height_m / 2
        camera.frustum_near, camera.frustum_far = NEAR_M, NEAR_M + DEPTH_M
    rgb, depth = np.empty((height_px, width_px, 3), np.uint8), np.empty((height_px, width_px), np.float32)
    rect = mujoco.MjrRect(0, 0, width_px, height_px)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
    mujoco.mjr_render(rect, scene, context)
    mujoco.mjr_readPixels(rgb, depth, rect, context)
    context.free()
    return TopView(rgb[::-1].copy(), below_m - DEPTH_M * depth[::-1])
