"""Where versions 1 and 2 of simulation_interfaces differ: a ROS 2 may have either."""

from __future__ import annotations

from typing import Any


def resource_of(message: Any, field_of_version_2: str) -> Any:
    """Return what holds `uri`: a field of the message in version 2 of the interfaces, itself in version 1."""
    return getattr(message, field_of_version_2, message)
