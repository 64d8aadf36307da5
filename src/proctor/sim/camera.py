"""The wheeled robot's RGB-D camera."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proctor.sim.contacts import Group
from proctor.sim.renderer import Depth, DepthMetres, Renderer, Rgb, View
from proctor.sim.robot_body import RobotBody
from proctor.sim.world import World


class RgbdCamera:
    """The cameras of a world's robots. Each sees the other robots, but not its own.

    Args:
        world: The world. A new world or a new robot in it needs a new camera; close the old one.

    Raises:
        MissingDependency: This machine cannot render.
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
        """Return fresh arrays: rgb (H, W, 3) and depth in millimetres (H, W), 0 where there is no return.

        Args:
            body: Through whose camera, the first robot's if missing.
        """
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
