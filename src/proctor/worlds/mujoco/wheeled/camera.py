"""The wheeled robot's RGB-D camera, and a view of a world from above with its ceiling cut away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.worlds.mujoco.contacts import Group
from proctor.worlds.mujoco.render.gl import drawing
from proctor.worlds.mujoco.render.renderer import Depth, DepthMetres, Renderer, Rgb, View
from proctor.worlds.mujoco.wheeled.robot_body import RobotBody
from proctor.worlds.mujoco.wheeled.world import World

NEAR_M = 1.0
"""The camera is so far above the cut."""
DEPTH_M = 50.0
"""How far below the cut things are still drawn."""


class RgbdCamera:
    """The cameras of a world's robots. Each sees the other robots, but not its own.

    A new world or a new robot in it needs a new camera; close the old one.
    """

    def __init__(self, world: World) -> None:
        spec = world.robot.camera
        self._world = world
        views = [
            View(body.camera_name, spec.width, spec.height, spec.near_m, spec.far_m)
            for body in world.bodies.values()
        ]
        # The walls of a house that is a mesh are often sheets, and seen from both sides.
        self._renderer = Renderer(world.model, world.data, *views, both_sides=world.house is not None)

    def render(self, body: RobotBody | None = None) -> tuple[Rgb, Depth]:
        """Return fresh arrays: rgb (H, W, 3) and depth in millimetres (H, W), 0 where there is no return."""
        with self._others_in_sight(body or self._world.body) as camera_name:
            return self._renderer.rgbd(camera_name)

    def render_metres(self, body: RobotBody) -> tuple[Rgb, DepthMetres]:
        """Return the same with depth in metres, and the farthest distance where there is no return."""
        with self._others_in_sight(body) as camera_name:
            return self._renderer.rgbd_metres(camera_name)

    def render_rgb(self, body: RobotBody) -> Rgb:
        """Return a fresh picture, and skip the conversion of depth."""
        with self._others_in_sight(body) as camera_name:
            return self._renderer.rgb(camera_name)

    @contextmanager
    def _others_in_sight(self, own: RobotBody) -> Iterator[str]:
        groups = self._world.model.geom_group
        others = [body.geom_id for body in self._world.bodies.values() if body is not own]
        groups[others] = Group.DRAWN_AND_SCANNED
        try:
            yield own.camera_name
        finally:
            groups[others] = Group.SCANNED

    def close(self) -> None:
        """Free the model's textures and meshes in OpenGL. May be called twice."""
        self._renderer.close()


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
    """Return a picture of a rectangle of the world, given by two corners, as it is now.

    What is higher than `below_m` is cut away.
    """
    width_m, height_m = high_xy[0] - low_xy[0], high_xy[1] - low_xy[1]
    width_px, height_px = size_px
    model, size = world.model, world.model.vis.global_
    camera_size = size.offwidth, size.offheight
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
    with drawing():
        size.offwidth, size.offheight = width_px, height_px  # read only while a context is made
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        size.offwidth, size.offheight = camera_size
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
        mujoco.mjr_render(rect, scene, context)
        mujoco.mjr_readPixels(rgb, depth, rect, context)
        context.free()
    return TopView(rgb[::-1].copy(), below_m - DEPTH_M * depth[::-1])
