"""The robot as a prefab of O3DE: a start for the project's own, by the names that the engine serialises.

What its entities have is in `robot_components.json.template`, in which `$name` is a value of the robot.
There, Namespace Strategy 1 is an empty namespace, ShapeType 3 a cylinder, and PhysicalApi 0 sets velocities.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from proctor.robots.spec import RobotSpec

ROBOT_PREFAB = "Assets/Models/robot/robot.prefab"  # where it is in a project
TRANSFORM = "{27F1E1A1-8D9D-4C3B-BD3A-AFB9762449C0} TransformComponent"
ENTITY_PARTS = (
    "EditorDisabledCompositionComponent",
    "EditorEntityIconComponent",
    "EditorEntitySortComponent",
    "EditorInspectorComponent",
    "EditorLockComponent",
    "EditorOnlyEntityComponent",
    "EditorPendingCompositionComponent",
    "EditorVisibilityComponent",
)
"""What every entity has in the Editor."""
SENSOR_QOS = {"Reliability": 2, "Durability": 2, "Depth": 5}
"""Best effort and volatile, by the numbers of rmw."""


def robot_prefab(robot: RobotSpec) -> bytes:
    """Return the prefab of a robot as the file's content."""
    base, scan, camera = (_entity_id(name) for name in ("base_link", "base_scan", "camera"))
    components = _components(robot, base)
    scan_place = {"Translate": [0.0, 0.0, robot.lidar.height_m]}
    camera_place = {
        "Translate": [0.0, 0.0, robot.camera.height_m],
        # The sensor looks along z, its x to the right; the engine turns about x, then y, then z.
        "Rotate": [0.0, 90.0 - robot.camera.pitch_deg, -90.0],
    }
    document = {
        "ContainerEntity": _entity("ContainerEntity", "robot", "", {"EditorPrefabComponent": {}}, [base]),
        "Entities": {
            base: _entity(base, "base_link", "ContainerEntity", components["base_link"], [scan, camera]),
            scan: _entity(scan, "base_scan", base, components["base_scan"], place=scan_place),
            camera: _entity(camera, "camera", base, components["camera"], place=camera_place),
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=4) + b"\n"


def _components(robot: RobotSpec, base_link: str) -> dict[str, dict[str, Any]]:
    height_m = robot.height_m - robot.ground_clearance_m
    values = {
        **{"mass_kg": robot.mass_kg, "radius_m": robot.radius_m, "height_m": height_m},
        "middle_m": robot.ground_clearance_m + height_m / 2,
        **{name: getattr(robot.lidar, name) for name in ("beams", "range_min_m", "range_max_m")},
        **{name: getattr(robot.camera, name) for name in ("fov_deg", "width", "height", "near_m", "far_m")},
        **{"base_link": base_link, "sensor_qos": SENSOR_QOS},
    }
    template = Template(
        Path(__file__).with_name("robot_components.json.template").read_text(encoding="utf-8")
    )
    written = {name: msgspec.json.encode(value).decode() for name, value in values.items()}
    return msgspec.json.decode(template.substitute(written), type=dict[str, dict[str, Any]])


def _entity(
    entity_id: str,
    name: str,
    parent: str,
    components: dict[str, Any],
    children: list[str] | None = None,
    *,
    place: dict[str, list[float]] | None = None,
) -> dict[str, Any]:
    settings: dict[str, Any] = {kind: {} for kind in ENTITY_PARTS} | components
    if children:
        settings["EditorEntitySortComponent"] = {"Child Entity Order": children}
    settings["TransformComponent"] = {"$type": TRANSFORM, "Parent Entity": parent} | (
        {"Transform Data": place} if place else {}
    )
    return {
        "Id": entity_id,
        "Name": name,
        "Components": {
            kind: {"$type": own.get("$type", kind), "Id": _number(f"{name}.{kind}")} | own
            for kind, own in sorted(settings.items())
        },
    }


def _entity_id(name: str) -> str:
    return f"Entity_[{_number(name) % 10**13}]"


def _number(name: str) -> int:
    """Return a number that is always the same for a name, and hardly ever for another."""
    return int.from_bytes(hashlib.sha256(f"proctor robot {name}".encode()).digest()[:8], "big")
