"""Builds a scene file in the open level, with the meshes of its objects that the project has."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from o3de_sim.common.scene_file import ONE, CheckedLight, CheckedObject, CheckedScene, load_scene
from o3de_sim.constants import ENVIRONMENT, EXPORT_FOLDER, GROUND
from o3de_sim.editor.arguments import MAX_LIST, MAX_NAME, PATH, Collider, Unfit
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import Quaternion, Vector3, euler_to_quaternion, turn_from_y
from o3de_sim.o3de_api.interface.tools import EntityId
from o3de_sim.o3de_api.o3de_agent import O3DEAgent

Progress = Callable[[int, int, str], None]
"""Is told how many things are built, of how many, and what comes next."""

UPRIGHT = euler_to_quaternion([90, 0, 0])  # turns what is Y up to Z up
GROUND_M = 50.0  # how far the ground reaches at least, from the origin and from every object
THINNEST_M = 0.001  # of what is seen: the least that the engine scales a primitive to
LightType = Literal["point", "directional"]
SUN_EV, LAMP_LM = 4.0, 2000.0
"""What an intensity of 1 means: the engine's own sun, 40 lux, and a lamp as bright from 2 m away."""
EXPORTED = re.compile(rf"{EXPORT_FOLDER}/[^/]+/[a-z0-9_-]+-[0-9a-f]{{8}}\.gltf")
PLAIN = re.compile(r"[a-z0-9_]+( [a-z0-9_]+)*")
MAX_FILE_NAME = 48


@dataclass
class SceneReport:
    """What came of a scene."""

    scene_name: str
    entities: dict[str, EntityId] = field(default_factory=dict)
    """Of the objects, by their names."""
    lights: list[EntityId] = field(default_factory=list)
    ground: EntityId | None = None
    """None if a mesh brings its floors."""
    as_mesh: list[str] = field(default_factory=list)
    """Objects that look like a mesh of the project."""
    as_primitives: list[str] = field(default_factory=list)
    """Objects that look like plain boxes, cylinders and spheres: there is no exported mesh."""
    missing: list[str] = field(default_factory=list)
    """Objects that are not seen: their mesh is not in the project, or not processed yet."""
    notes: list[str] = field(default_factory=list)


class BasicSceneBuilder:
    """Puts the objects, lights and ground of a scene into the open level.

    Each object is an entity at the object's pose, with its body and colliders; what is seen is below it. No
    entity gets a name in `taken`, such as the robot's.
    """

    def __init__(
        self, agent: O3DEAgent, progress: Progress | None = None, *, taken: Collection[str] = ()
    ) -> None:
        self._agent = agent
        self._progress = progress
        self._taken = taken

    def build_scene(self, config: Mapping[str, Any] | str | Path) -> SceneReport:
        """Build a scene, given as the content of a scene file, or as its path.

        InvalidScene: nothing was built. O3DEError: the engine failed at an object, which the message names.
        """
        scene = load_scene(config)
        meshes = find_meshes(self._agent, scene)
        report = SceneReport(scene.scene_name, notes=list(scene.notes))
        steps: list[tuple[str, Callable[[], None]]] = []
        if not any(item.collision == "surface" for item in scene.objects):
            steps.append((GROUND, partial(self._add_ground, scene, report)))
        steps += [
            (item.name, partial(self._add_object, item, meshes.get(item.name), report))
            for item in scene.objects
        ]
        steps += [(light.name, partial(self._add_light, light, report)) for light in scene.lights]
        for index, (name, step) in enumerate(steps):
            if self._progress is not None:
                self._progress(index, len(steps), name)
            try:
                step()
            except O3DEError as error:
                raise O3DEError(error.code, f"'{name}' cannot be built: {error.message}") from None
        _note_looks(report)
        return report

    def _add_object(self, item: CheckedObject, mesh: Mesh | None, report: SceneReport) -> None:
        turn = euler_to_quaternion(item.rotate)
        entity = self._agent.entity_tool.create(entity_name(item.name, self._taken), item.translate)
        report.entities[item.name] = entity
        if any(item.rotate):
            self._agent.tc.set_rotation(entity, turn)
        seen = entity
        if mesh is not None:
            seen = self._add_mesh(item, mesh, entity, turn)
            report.as_mesh.append(item.name)
            if mesh.lies_down:
                report.notes.append(f"'{item.name}' shows {mesh.path}, turned by 90° about x: glTF is Y up")
        elif item.parts:
            self._add_primitives(item, entity, turn)
            report.as_primitives.append(item.name)
        else:
            report.missing.append(item.name)
        if item.rigid_body_type == "none":
            return
        if item.collision == "surface":
            self._add_surface(item, mesh, seen)
        else:
            self._add_body(item, entity, self._colliders(item, mesh, report))

    def _add_mesh(self, item: CheckedObject, mesh: Mesh, entity: EntityId, turn: Quaternion) -> EntityId:
        """Hang a mesh below an object: turned and scaled as its file needs it, and the colliders do not."""
        scale = item.scale
        if mesh.lies_down:
            turn, scale = turn * UPRIGHT, Vector3(scale.x, scale.z, scale.y)
        elif scale == ONE:
            self._agent.render_tool.add_mesh(entity, asset_path=mesh.path)
            return entity
        child = self._agent.entity_tool.create(entity_name(f"{item.name} mesh"), item.translate, entity)
        self._agent.tc.set_pose(child, item.translate, turn)
        if scale != ONE:
            self._agent.tc.set_scale(child, scale.x if len(set(scale)) == 1 else scale)
        self._agent.render_tool.add_mesh(child, asset_path=mesh.path)
        return child

    def _add_primitives(self, item: CheckedObject, entity: EntityId, turn: Quaternion) -> None:
        for index, part in enumerate(item.parts):
            place = item.translate + turn.rotate(part.translate.scaled(item.scale))
            child = self._agent.entity_tool.create(entity_name(f"{item.name} part {index}"), place, entity)
            self._agent.tc.set_pose(child, place, turn * euler_to_quaternion(part.rotate))
            size = [max(extent, THINNEST_M) for extent in part.size.scaled(item.scale)]
            self._agent.tc.set_scale(child, size)
            self._agent.render_tool.add_mesh(child, primitive=part.shape)

    def _colliders(self, item: CheckedObject, mesh: Mesh | None, report: SceneReport) -> list[Collider]:
        """Return what an object collides as, in its own frame and in metres."""
        if item.parts:
            return [
                Collider(
                    part.shape,
                    part.size.scaled(item.scale),
                    part.translate.scaled(item.scale),
                    euler_to_quaternion(part.rotate),
                )
                for part in item.parts
                if part.collision
            ]
        if mesh is None:
            report.notes.append(f"'{item.name}' does not collide: its mesh {item.asset_path} is missing")
            return []
        try:
            box = self._agent.asset_tool.bounds(mesh.path)
        except O3DEError as error:
            if error.code in ("connection", "timeout"):
                raise
            report.notes.append(f"'{item.name}' does not collide: its size is not known ({error.message})")
            return []
        centre, size = (box.low + box.high) * 0.5, box.high - box.low
        if mesh.is_y_up:
            centre, size = UPRIGHT.rotate(centre), Vector3(size.x, size.z, size.y)
        size = Vector3(*(max(extent, THINNEST_M) for extent in size.scaled(item.scale)))
        return [Collider("box", size, centre.scaled(item.scale))]

    def _add_body(self, item: CheckedObject, entity: EntityId, colliders: list[Collider]) -> None:
        if not colliders or item.rigid_body_type == "none":
            return
        mass = item.mass
        if mass is None and item.rigid_body_type == "dynamic":
            # In kg/m³; the engine's own guess would be 1000.
            mass = 300.0 * sum(map(_volume_m3, colliders))
        is_static = item.rigid_body_type == "static"
        self._agent.pc.add_rigid_body(entity, item.rigid_body_type, None if is_static else mass)
        for start in range(0, len(colliders), MAX_LIST):
            self._agent.pc.add_colliders(entity, colliders[start : start + MAX_LIST])

    def _add_surface(self, item: CheckedObject, mesh: Mesh | None, entity: EntityId) -> None:
        """Let a house collide as its triangles. Without them it has no floor: that is an error."""
        if mesh is None:
            problem = f"the project has no processed mesh {item.asset_path}; proctor export-o3de writes one"
            raise O3DEError("not_found", problem)
        self._agent.pc.add_rigid_body(entity, "static")
        self._agent.pc.add_mesh_collider(entity, mesh.path)

    def _add_ground(self, scene: CheckedScene, report: SceneReport) -> None:
        places = [item.translate for item in scene.objects]
        low = [min([0.0, *(place[axis] for place in map(list, places))]) - GROUND_M for axis in (0, 1)]
        high = [max([0.0, *(place[axis] for place in map(list, places))]) + GROUND_M for axis in (0, 1)]
        centre = Vector3((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, -0.5)
        size = Vector3(high[0] - low[0], high[1] - low[1], 1.0)
        entity = self._agent.entity_tool.create(GROUND, centre)
        child = self._agent.entity_tool.create(f"{GROUND} mesh", centre, entity)
        self._agent.tc.set_scale(child, size)
        self._agent.render_tool.add_mesh(child, primitive="box")
        self._agent.pc.add_rigid_body(entity, "static")
        self._agent.pc.add_colliders(entity, [Collider("box", size)])
        report.ground = entity

    def _add_light(self, light: CheckedLight, report: SceneReport) -> None:
        if light.intensity == 0:
            return
        entity = self._agent.entity_tool.create(entity_name(light.name, self._taken), light.translate)
        report.lights.append(entity)
        if light.type == "directional":
            self._agent.tc.set_rotation(entity, turn_from_y(light.direction))
        intensity = to_engine(light.type, light.intensity)
        self._agent.render_tool.add_light(entity, light.type, light.color, intensity)


def _note_looks(report: SceneReport) -> None:
    if report.as_primitives:
        count = len(report.as_primitives)
        report.notes.append(
            f"{count} of {len(report.entities)} objects are plain primitives without colours and textures: "
            "the project has no exported mesh of them (proctor export-o3de), or it is not processed yet"
        )
    if report.missing:
        names = ", ".join(f"'{name}'" for name in report.missing[:5])
        more = f" and {len(report.missing) - 5} more" if len(report.missing) > 5 else ""
        report.notes.append(f"not seen, because the project has no processed mesh of it: {names}{more}")


def _volume_m3(collider: Collider) -> float:
    box = math.prod(collider.size)
    return box * {"box": 1.0, "cylinder": math.pi / 4, "sphere": math.pi / 6}[collider.shape]


def entity_name(name: str, taken: Collection[str] = ()) -> str:
    """Return an object's name as the engine accepts it, different from names by which others are found."""
    printable = "".join(letter if letter.isprintable() else "_" for letter in name)[:MAX_NAME] or "object"
    return f"{printable} of the scene" if printable in (GROUND, ENVIRONMENT, *taken) else printable


def to_engine(type_: LightType, intensity: float) -> float:
    """Return the EV100 (illuminance) of a directional light, or the lumen of a point light."""
    if type_ == "point":
        return LAMP_LM * intensity
    return max(SUN_EV + math.log2(intensity), 0.0)


def from_engine(type_: LightType, value: float) -> float:
    """Return the intensity that `to_engine` made a value of."""
    return value / LAMP_LM if type_ == "point" else float(2.0 ** (value - SUN_EV))


# Where meshes are in a project


def scene_folder(scene_name: str) -> str:
    """Return the folder of a scene, relative to the project's."""
    return f"{EXPORT_FOLDER}/{file_name(scene_name)}"


def mesh_path(scene_name: str, item: CheckedObject) -> str:
    """Return the glTF file of an object, relative to the project's folder.

    Its name tells how the object looks, so that one that was changed is not shown as it was before. How
    textures lie on parts depends on where the object is.
    """
    look = item.asset_path or (item.parts, item.translate, item.rotate, item.scale, item.rigid_body_type)
    return f"{scene_folder(scene_name)}/{file_name(item.name)}-{_mark(repr(look))}.gltf"


def is_exported(path: str) -> bool:
    """Return whether a file of the project is one that `mesh_path` names."""
    return EXPORTED.fullmatch(path) is not None


def file_name(name: str) -> str:
    """Return a name as a file's name, without suffix: different for different names, on any file system.

    The engine's products are all lower case, so names that differ only in it must differ otherwise, too.
    `hall floor` is `hall-floor`; what holds other than small letters, digits, spaces and underscores gets a
    mark that tells it from its likes.
    """
    if PLAIN.fullmatch(name) and len(name) <= MAX_FILE_NAME:
        return name.replace(" ", "-")
    words = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:MAX_FILE_NAME]
    return f"{words or 'object'}-{_mark(name)}"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


@dataclass(frozen=True)
class Mesh:
    """A mesh in the project."""

    path: str  # relative to the project's folder
    is_exported: bool  # it is written so that the engine shows it upright

    @property
    def is_y_up(self) -> bool:
        """Whether its own axes have y upwards."""
        return self.path.lower().endswith((".gltf", ".glb"))  # Y up by definition

    @property
    def lies_down(self) -> bool:
        """Whether the engine, which takes the numbers of a file as they are, shows it lying on its back."""
        return self.is_y_up and not self.is_exported


def find_meshes(agent: O3DEAgent, scene: CheckedScene) -> dict[str, Mesh]:
    """Return the mesh of each object that has one in the project, by the object's name.

    An exported mesh goes before the object's own, which is looked for beside it, then in the project.
    """
    candidates = {item.name: _candidates(scene, item) for item in scene.objects}
    paths = sorted({path for some in candidates.values() for path in some})
    there: set[str] = set()
    for start in range(0, len(paths), MAX_LIST):
        asked = paths[start : start + MAX_LIST]
        there |= {
            path for path, is_there in zip(asked, agent.asset_tool.exists(asked), strict=True) if is_there
        }
    found = {name: [path for path in some if path in there] for name, some in candidates.items()}
    return {name: Mesh(paths[0], is_exported=is_exported(paths[0])) for name, paths in found.items() if paths}


def _candidates(scene: CheckedScene, item: CheckedObject) -> list[str]:
    paths = [mesh_path(scene.scene_name, item)]
    if item.asset_path is not None:
        own = str(PurePosixPath(item.asset_path.replace("\\", "/")))
        paths += [f"{scene_folder(scene.scene_name)}/{own}", own]
    return [path for path in paths if _is_path(path)]


def _is_path(path: str) -> bool:
    try:
        PATH.check(path)
    except Unfit:  # of a name that no file in a project has
        return False
    return True
