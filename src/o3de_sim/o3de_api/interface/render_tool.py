"""What is seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from o3de_sim.o3de_api.interface.tool import Tool

Primitive = Literal["box", "sphere", "cylinder", "plane"]


class RenderTool(Tool):
    """The operations `render_tool.*`."""

    def add_mesh(
        self, entity: str, asset_path: str | None = None, primitive: Primitive | None = None
    ) -> None:
        """Let an entity look like a mesh of the project, or like one of the engine's of 1 m extent."""
        args = {"entity": entity, "asset_path": asset_path, "primitive": primitive}
        self._call("render_tool.add_mesh", args)

    def add_light(
        self,
        entity: str,
        type: Literal["point", "directional"],  # noqa: A002 - as files call it
        color: Sequence[float] = (1.0, 1.0, 1.0),
        intensity: float | None = None,
    ) -> None:
        """Let an entity shine, in red, green and blue from 0 to 1, a directional light along its +y.

        The intensity of a directional light is in EV100 (illuminance), that of a point in lumen.
        """
        args = {"entity": entity, "type": type, "color": list(color), "intensity": intensity}
        self._call("render_tool.add_light", args)

    def screenshot(self, path: str, timeout_s: float | None = None) -> str:
        """Save what the viewport shows, as PNG or PPM in the project's user folder; return the whole path."""
        return str(self._call("render_tool.screenshot", {"path": path}, timeout_s))
