"""ROS 2 in the engine."""

from __future__ import annotations

from o3de_sim.o3de_api.interface.tool import Tool


class Ros2Tool(Tool):
    """The operations `ros2_tool.*`."""

    def is_available(self) -> bool:
        """Return whether the project has the ROS 2 Gem."""
        return bool(self._call("ros2_tool.is_available", {}))

    def missing_components(self, entity: str) -> list[str]:
        """Return what a robot, this entity and all below it, lacks to sense and to drive."""
        return list(self._call("ros2_tool.missing_components", {"entity": entity}))
