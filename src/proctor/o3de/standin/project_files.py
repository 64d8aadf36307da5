"""What a project needs for the stand-in: a robot to spawn, and a level to begin with."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from o3de_sim.constants import GROUND
from proctor.core.documents import write_atomically
from proctor.o3de.standin.az_values import AssetId, Vector3
from proctor.o3de.standin.component_table import component_kinds
from proctor.o3de.standin.level import Component, Entity
from proctor.o3de.standin.prefab_files import save_entities
from proctor.o3de_export.project import ROBOT_PREFAB
from proctor.o3de_export.robot_prefab import robot_prefab
from proctor.robots.wheeled import WheeledRobot

ROBOT_PRODUCT = str(PurePosixPath(ROBOT_PREFAB.lower()).with_suffix(".spawnable"))
FIRST_LEVEL = "scene_001"
GROUND_SIZE_M = (100.0, 100.0, 1.0)


def prepare_project(project: Path) -> None:
    """Write what is missing. What is there stays."""
    robot = project / ROBOT_PREFAB
    if not robot.exists():
        robot.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(robot, robot_prefab(WheeledRobot()))
    level = project / "Levels" / FIRST_LEVEL / f"{FIRST_LEVEL}.prefab"
    if not level.exists():
        ground = _ground()
        save_entities(level, FIRST_LEVEL, {ground.number: ground})


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
