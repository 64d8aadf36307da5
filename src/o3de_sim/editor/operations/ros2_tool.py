"""The components of the ROS 2 Gems. They are looked for, not set: what they say is in the robot's prefab."""

from __future__ import annotations

from o3de_sim.editor import components
from o3de_sim.editor.operations.entity_tool import with_descendants
from o3de_sim.editor.session import EditorSession, GivenEntity

ROBOT = (
    "ROS2 Frame",
    "ROS2 Camera Sensor",
    "ROS2 Lidar 2D Sensor",
    "ROS2 Odometry Sensor",
    "ROS2 Robot Control",
)


def is_available(session: EditorSession) -> bool:
    """Return whether the project has the ROS 2 Gem."""
    return components.find_type(session.engine, ROBOT[0]) is not None


def missing_components(session: EditorSession, entity: GivenEntity) -> list[str]:
    """Return what neither the entity nor any below it has of what a robot needs here."""
    missing = list(ROBOT)
    for one in with_descendants(session, entity.id):
        missing = [name for name in missing if not components.has(session.engine, one, name)]
    return missing
