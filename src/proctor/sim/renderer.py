"""Pictures of a model through its cameras: one render pass each, colour and depth read together."""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.sim.gl import shared_context

Rgb = NDArray[np.uint8]
Depth = NDArray[np.uint16]
DepthMetres = NDArray[np.float32]


class View(NamedTuple):
    """A camera of the model and the picture it takes."""

    camera: str
    width: int
    height: int
    near_m: float
    far_m: float
    """Beyond this, depth is 0: no return."""


class Renderer:
    """Draws a model. A new model needs a new renderer; close the old one.

    Args:
        model: An MjModel. Its offscreen buffer is made as large as the largest view.
        data: Its MjData.
        views: What to draw.
        reflecting: Whether shiny surfaces mirror, which costs another pass.
        both_sides: Whether surfaces are seen from behind, too.

    Raises:
        MissingDependency: This machine cannot render.
    """

    def __init__(
        self, model: Any, data: Any, *views: View, reflecting: bool = False, both_sides: bool = False
    ) -> None:
        self._model, self._data = model, data
        self._gl = shared_context()
        self._gl.make_current()
        buffer = model.vis.global_
        buffer.offwidth = max(view.width for view in views)
        buffer.offheight = max(view.height for view in views)
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._scene = mujoco.MjvScene(model, model.ngeom + 8)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = int(reflecting)
        if both_sides:
            self._scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = 0
        self._option = mujoco.MjvOption()
        self._films = {view.camera: _Film(model, view) for view in views}

    def rgb(self, camera: str) -> Rgb:
        """Return a fresh picture (H, W, 3)."""
        film = self._films[camera]
        self._draw(film)
        mujoco.mjr_readPixels(film.rgb, None, film.rect, self._context)
        return film.rgb[::-1].copy()

    def rgbd(self, camera: str) -> tuple[Rgb, Depth]:
        """Return fresh arrays: rgb (H, W, 3) and depth in millimetres (H, W), 0 where there is no return."""
        film = self._films[camera]
        self._draw(film)
        mujoco.mjr_readPixels(film.rgb, film.depth, film.rect, self._context)
        return film.rgb[::-1].copy(), film.millimetres()

    def rgbd_metres(self, camera: str) -> tuple[Rgb, DepthMetres]:
        """Return fresh arrays: rgb (H, W, 3) and depth in metres (H, W), `far_m` where there is no return."""
        film = self._films[camera]
        self._draw(film)
        mujoco.mjr_readPixels(film.rgb, film.depth, film.rect, self._context)
        return film.rgb[::-1].copy(), film.metres()

    def close(self) -> None:
        """Free the model's textures and meshes in OpenGL. May be called twice."""
        self._gl.make_current()
        self._context.free()

    def _draw(self, film: _Film) -> None:
        self._gl.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        every = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, self._data, self._option, None, film.camera, every, self._scene)
        mujoco.mjr_render(film.rect, self._scene, self._context)


class _Film:
    """The buffers of one view."""

    def __init__(self, model: Any, view: View) -> None:
        self._view, self._clip_m = view, float(model.vis.map.zfar)
        self.camera = mujoco.MjvCamera()
        self.camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self.camera.fixedcamid = model.camera(view.camera).id
        self.rect = mujoco.MjrRect(0, 0, view.width, view.height)
        self.rgb = np.empty((view.height, view.width, 3), np.uint8)
        self.depth = np.empty((view.height, view.width), np.float32)
        self._in_range = np.empty((view.height, view.width), np.bool_)

    def millimetres(self) -> Depth:
        """Return the distances along the view in whole millimetres, 0 beyond the view's end."""
        far_mm, depth_mm = 1000 * self._view.far_m, self._distances(1000.0)
        depth_mm += np.float32(0.5)  # casting cuts off
        np.less_equal(depth_mm, np.float32(far_mm), out=self._in_range)
        millimetres = depth_mm[::-1].astype(np.uint16)
        millimetres *= self._in_range[::-1]
        return millimetres

    def metres(self) -> DepthMetres:
        """Return the distances along the view in metres, at most those of the view's end."""
        return np.minimum(self._distances(1.0)[::-1], np.float32(self._view.far_m))

    def _distances(self, unit: float) -> NDArray[np.float32]:
        """Turn the depth buffer, 1 at the near plane and 0 at the far one, into distances, in place.

        Args:
            unit: What a metre is to be.
        """
        near, clip = unit * self._view.near_m, unit * self._clip_m
        # 1/z runs linearly from 1/clip to 1/near, so z = scale / (buffer + offset). Passes over the picture
        # cost time; these are the fewest.
        scale = 1 / (1 / near - 1 / clip)
        depth = self.depth
        depth += np.float32(scale / clip)
        np.divide(np.float32(scale), depth, out=depth)
        return depth
