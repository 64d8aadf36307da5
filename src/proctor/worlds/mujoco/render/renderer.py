"""Pictures of a model through its cameras: one render pass each, colour and depth read together.

Geoms outside of the view are left out, and the sky is drawn only if there is a gap through which it shows.
Both save time and change no pixel.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.worlds.mujoco.contacts import Group
from proctor.worlds.mujoco.render.gl import drawing

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
    """Draws an MjModel. A new model needs a new renderer; close the old one.

    The model's offscreen buffer is made as large as the largest view. `reflecting` costs another pass.
    `both_sides` draws surfaces from behind, too.
    """

    def __init__(
        self, model: Any, data: Any, *views: View, reflecting: bool = False, both_sides: bool = False
    ) -> None:
        self._model, self._data = model, data
        buffer = model.vis.global_
        buffer.offwidth = max(view.width for view in views)
        buffer.offheight = max(view.height for view in views)
        with drawing():
            self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._scene = mujoco.MjvScene(model, model.ngeom + 8)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = int(reflecting)
        if both_sides:
            self._scene.flags[mujoco.mjtRndFlag.mjRND_CULL_FACE] = 0
        self._option = mujoco.MjvOption()
        self._films = {view.camera: _Film(model, view) for view in views}
        self._boxes: _Boxes | None = None  # at the first picture: before, nothing has its place
        # What a mirror shows may be outside of the view, and no depth tells whether it shows the sky.
        self._mirrors = bool((model.mat_reflectance > 0).any())

    def rgb(self, camera: str) -> Rgb:
        """Return a fresh picture (H, W, 3)."""
        return self._take(camera).rgb[::-1].copy()

    def rgbd(self, camera: str) -> tuple[Rgb, Depth]:
        """Return fresh arrays: rgb (H, W, 3) and depth in millimetres (H, W), 0 where there is no return."""
        film = self._take(camera)
        return film.rgb[::-1].copy(), film.millimetres()

    def rgbd_metres(self, camera: str) -> tuple[Rgb, DepthMetres]:
        """Return fresh arrays: rgb (H, W, 3) and depth in metres (H, W), `far_m` where there is no return."""
        film = self._take(camera)
        return film.rgb[::-1].copy(), film.metres()

    def close(self) -> None:
        """Free the model's textures and meshes in OpenGL. May be called twice."""
        with drawing():
            self._context.free()

    def _take(self, camera: str) -> _Film:
        """Take a picture, and return the film with it in its buffers."""
        film = self._films[camera]
        self._update_scene(film)
        sky = mujoco.mjtRndFlag.mjRND_SKYBOX
        self._scene.flags[sky] = film.has_sky or self._mirrors
        with drawing():
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
            self._render(film)
            # Most views either show some sky or none for many pictures: begin with what was right last.
            # The sky is a cylinder around the camera, at 0.7 of the far clipping distance but for its facets.
            film.has_sky = film.shows_farther_than(0.69 * self._scene.camera[0].frustum_far)
            if film.has_sky and not self._scene.flags[sky]:
                self._scene.flags[sky] = 1
                self._render(film)
        return film

    def _render(self, film: _Film) -> None:
        mujoco.mjr_render(film.rect, self._scene, self._context)
        mujoco.mjr_readPixels(film.rgb, film.depth, film.rect, self._context)

    def _geoms_outside(self, film: _Film) -> NDArray[np.int64]:
        if self._mirrors:
            return np.empty(0, np.int64)
        if self._boxes is None:
            self._boxes = _Boxes(self._model, self._data)
        self._boxes.update()
        return film.outside(self._boxes)

    def _update_scene(self, film: _Film) -> None:
        groups = self._model.geom_group
        hidden = self._geoms_outside(film)
        before = groups[hidden]
        groups[hidden] = Group.UNSEEN
        try:
            every = mujoco.mjtCatBit.mjCAT_ALL
            mujoco.mjv_updateScene(
                self._model, self._data, self._option, None, film.camera, every, self._scene
            )
        finally:
            groups[hidden] = before


class _Boxes:
    """Boxes around all geoms, along the axes of the world. Of what never moves, they are computed once."""

    def __init__(self, model: Any, data: Any) -> None:
        self._model, self.data = model, data
        self.middles, self.halves = np.empty((model.ngeom, 3)), np.empty((model.ngeom, 3))
        self._compute(np.arange(model.ngeom))
        self.halves[model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)] = 1e6
        self._moving = np.flatnonzero(model.body_weldid[model.geom_bodyid])

    def update(self) -> None:
        """Follow what has moved."""
        if len(self._moving):
            self._compute(self._moving)

    def _compute(self, geoms: NDArray[np.int64]) -> None:
        turns, boxes = self.data.geom_xmat[geoms].reshape(-1, 3, 3), self._model.geom_aabb[geoms]
        self.middles[geoms] = self.data.geom_xpos[geoms] + np.einsum("nij,nj->ni", turns, boxes[:, :3])
        self.halves[geoms] = np.einsum("nij,nj->ni", np.abs(turns), boxes[:, 3:]) + 1e-3  # rounding


class _Film:
    """The buffers of one view."""

    def __init__(self, model: Any, view: View) -> None:
        self._view, self._clip_m = view, float(model.vis.map.zfar)
        self.camera = mujoco.MjvCamera()
        self.camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self.camera.fixedcamid = model.camera(view.camera).id
        self.rect = mujoco.MjrRect(0, 0, view.width, view.height)
        up = math.tan(math.radians(model.cam_fovy[self.camera.fixedcamid]) / 2)
        right = up * view.width / view.height
        # Normals of the sides of the view and of the plane behind it, outwards, in the camera's frame.
        self._sides = np.array([[1, 0, right], [-1, 0, right], [0, 1, up], [0, -1, up], [0, 0, 1.0]])
        self._corner_cosine = 1 / math.hypot(1, up, right)
        self.has_sky = False
        """Whether the sky was seen in the last picture."""
        self.rgb = np.empty((view.height, view.width, 3), np.uint8)
        self.depth = np.empty((view.height, view.width), np.float32)
        self._in_range = np.empty((view.height, view.width), np.bool_)

    def outside(self, boxes: _Boxes) -> NDArray[np.int64]:
        """Return the geoms whose boxes are outside of the view."""
        camera, data = self.camera.fixedcamid, boxes.data
        sides = self._sides @ data.cam_xmat[camera].reshape(3, 3).T
        is_outside = (boxes.middles - data.cam_xpos[camera]) @ sides.T > boxes.halves @ np.abs(sides).T
        return np.flatnonzero(is_outside.any(axis=1))

    def shows_farther_than(self, distance_m: float) -> bool:
        """Tell whether anything that is seen may be farther from the camera than this."""
        depth_m = distance_m * self._corner_cosine
        near, clip = self._view.near_m, self._clip_m
        return bool(self.depth.min() < (1 / depth_m - 1 / clip) / (1 / near - 1 / clip))

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
        """Turn the depth buffer, 1 at the near plane and 0 at the far one, into distances, in place."""
        near, clip = unit * self._view.near_m, unit * self._clip_m
        # 1/z runs linearly from 1/clip to 1/near, so z = scale / (buffer + offset). Passes over the picture
        # cost time; these are the fewest.
        scale = 1 / (1 / near - 1 / clip)
        depth = self.depth
        depth += np.float32(scale / clip)
        np.divide(np.float32(scale), depth, out=depth)
        return depth


def calibration_of(model: Any, camera_name: str, width: int, height: int) -> dict[str, Any]:
    """Return pinhole intrinsics in pixels, and the mount: `Env.cameras` says what the entries mean."""
    camera = model.camera(camera_name)
    focal_px = height / 2 / math.tan(math.radians(float(camera.fovy[0])) / 2)
    optical = np.empty(4)
    # MuJoCo's cameras look along -z with y up, optical frames along z with y down.
    mujoco.mju_mulQuat(optical, camera.quat, np.array([0.0, 1.0, 0.0, 0.0]))
    return {
        "width": width,
        "height": height,
        "fx": focal_px,
        "fy": focal_px,
        "cx": width / 2,
        "cy": height / 2,
        "frame": model.body(int(camera.bodyid[0])).name,
        "position": camera.pos.tolist(),
        "rotation": optical.tolist(),
    }
