"""What a project needs for the stand-in: a robot to spawn, and a level to begin with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from o3de_sim.constants import GROUND
from proctor.core.documents import write_atomically
from proctor.o3de.standin.az_values import AssetId, Vector3
from proctor.o3de.standin.component_table import component_kinds
from proctor.o3de.standin.level import Component, Entity
from proctor.o3de.standin.prefab_files import save_entities

ROBOT_PREFAB = "Assets/Models/robot/robot.prefab"
ROBOT_PRODUCT = "assets/models/robot/robot.spawnable"
FIRST_LEVEL = "scene_001"
GROUND_SIZE_M = (100.0, 100.0, 1.0)


def prepare_project(project: Path) -> None:
    """Write what is missing. What is there stays."""
    robot = project / ROBOT_PREFAB
    if not robot.exists():
        robot.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(robot, json.dumps(_robot(), indent=1).encode() + b"\n")
    level = project / "Levels" / FIRST_LEVEL / f"{FIRST_LEVEL}.prefab"
    if not level.exists():
        ground = _ground()
        save_entities(level, FIRST_LEVEL, {ground.number: ground})


def _robot() -> dict[str, Any]:
    """Return a prefab as the Editor writes them: sensors and control are wrapped, frames are not."""
    frame = {"$type": "ROS2FrameEditorComponent", "Namespace Configuration": {"Namespace Strategy": 1}}
    camera = {"$type": "ROS2CameraSensorEditorComponent"}
    base: list[dict[str, Any]] = [
        frame,
        {"$type": "EditorRigidBodyComponent"},
        _wrapped("ROS2OdometrySensorComponent"),
        _wrapped("ROS2RobotControlComponent", SubscriberConfiguration={"Topic": "cmd_vel"}),
        _wrapped("RigidBodyTwistControlComponent"),
    ]
    entities: dict[str, list[dict[str, Any]]] = {
        "base_link": base,
        "base_scan": [{"$type": "ROS2FrameEditorComponent"}, _wrapped("ROS2Lidar2DSensorComponent")],
        "camera": [{"$type": "ROS2FrameEditorComponent"}, camera],
    }
    return {
        "ContainerEntity": {"Id": "ContainerEntity", "Name": "robot"},
        "Entities": {
            f"Entity_[{name}]": {
                "Id": f"Entity_[{name}]",
                "Name": name,
                "Parent Entity": "ContainerEntity" if name == "base_link" else "Entity_[base_link]",
                "Components": {f"Component_[{index}]": item for index, item in enumerate(components)},
            }
            for name, components in entities.items()
        },
    }


def _wrapped(type_: str, **properties: Any) -> dict[str, Any]:
    return {"$type": "GenericComponentWrapper", "m_template": {"$type": type_, **properties}}


def _ground() -> Entity:
    body, collider, mesh, scale = (
        Component.new(component_kinds()[name])
        for name in ("PhysX Static Rigid Body", "PhysX Primitive Collider", "Mesh", "Non-uniform Scale")
    )
    box = AssetId(product="objects/_primitives/_box_1x1.fbx.azmodel")
    mesh.properties["Controller|Configuration|Model Asset"] = box
    scale.properties["Non-uniform Scale"] = Vector3(*GROUND_SIZE_M)
    ground = Entity(GROUND, components=[body, collider, mesh, scale])
    ground.placement = ground.placement._replace(translation=(0.0, 0.0, -0.5))
    return ground
