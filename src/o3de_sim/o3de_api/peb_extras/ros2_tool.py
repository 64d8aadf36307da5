"""ROS 2 in the engine, without an agent in hand."""

from __future__ import annotations

from o3de_sim.o3de_api.peb_extras.default_agent import lent_agent


def is_available() -> bool:
    """Return whether the project has the ROS 2 Gem."""
    with lent_agent() as agent:
        return agent.ros2_tool.is_available()


def missing_components(entity: str) -> list[str]:
    """Return what a robot, this entity and all below it, lacks to sense and to drive."""
    with lent_agent() as agent:
        return agent.ros2_tool.missing_components(entity)
