"""The robot's RGB-D camera: one render pass, colour and depth read together."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.sim.gl import shared_context
from proctor.sim.world import World


class RgbdCamera:
    """The camera of a world's robot.

    Args:
        world: The world. A new world needs a new camera; close the old one.

    Raises:
        MissingDependency: This machine cannot render.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._spec = world.robot.camera
        model, width, height = world.model, self._spec.width, self._spec.height
        self._gl = shared_context()
        self._gl.make_current()
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._scene = mujoco.MjvScene(model, model.ngeom + 8)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        if world.house is not None:  # whose walls are often sheets, and seen from both sides
            self._scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = 0
        self._option, self._view = mujoco.MjvOption(), mujoco.MjvCamera()
        self._view.type, self._view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, model.camera("camera").id
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._rgb = np.empty((height, width, 3), np.uint8)
        self._depth = np.empty((height, width), np.float32)
        self._in_range = np.empty((height, width), np.bool_)

    def render(self) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        """Return fresh arrays: rgb (H, W, 3) and depth in millimetres (H, W), 0 where there is no return."""
        world = self._world
        self._gl.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        mujoco.mjv_updateScene(
            world.model, world.data, self._option, None, self._view, mujoco.mjtCatBit.mjCAT_ALL, self._scene
        )
        mujoco.mjr_render(self._rect, self._scene, self._context)
        mujoco.mjr_readPixels(self._rgb, self._depth, self._rect, self._context)
        return self._rgb[::-1].copy(), self._millimetres()

    def close(self) -> None:
        """Free the model's textures and meshes in OpenGL. May be called twice."""
        self._gl.make_current()
        self._context.free()

    def _millimetres(self) -> NDArray[np.uint16]:
        """Turn the depth buffer, 1 at the near plane and 0 at the far one, into distances along the view."""
        near_mm, far_mm = 1000 * self._spec.near_m, 1000 * self._spec.far_m
        clip_mm = 1000 * float(self._world.model.vis.map.zfar)
        # 1/z runs linearly from 1/clip to 1/near, so z = scale / (buffer + offset). Passes over the picture
        # cost time; these are the fewest.
        scale = 1 / (1 / near_mm - 1 / clip_mm)
        depth = self._depth
        depth += np.float32(scale / clip_mm)
        np.divide(np.float32(scale), depth, out=depth)
        depth += np.float32(0.5)  # casting cuts off
        np.less_equal(depth, np.float32(far_mm), out=self._in_range)
        millimetres = depth[::-1].astype(np.uint16)
        millimetres *= self._in_range[::-1]
        return millimetres
