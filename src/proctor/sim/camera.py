"""The wheeled robot's RGB-D camera."""

from __future__ import annotations

from proctor.sim.renderer import Depth, Renderer, Rgb, View
from proctor.sim.world import World


class RgbdCamera:
    """The camera of a world's robot.

    Args:
        world: The world. A new world needs a new camera; close the old one.

    Raises:
        MissingDependency: This machine cannot render.
    """

    def __init__(self, world: World) -> None:
        spec = world.robot.camera
        view = View("camera", spec.width, spec.height, spec.near_m, spec.far_m)
        # The walls of a house that is a mesh are often sheets, and seen from both sides.
        self._renderer = Renderer(world.model, world.data, view, both_sides=world.house is not None)

    def render(self) -> tuple[Rgb, Depth]:
        """Return fresh arrays: rgb (H, W, 3) and depth in millimetres (H, W), 0 where there is no return."""
        return self._renderer.rgbd("camera")

    def close(self) -> None:
        """Free the model's textures and meshes in OpenGL. May be called twice."""
        self._renderer.close()
