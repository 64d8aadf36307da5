"""Worlds of Gazebo: SDF files and the models that they include, up to SDF 1.12.

Meshes are read as Gazebo reads them: whatever axis a mesh file calls up, its z is the world's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.types import Array
from proctor.scenes.mesh_files import MESH_SUFFIXES, folder_of_scene, missing_files
from proctor.scenes.meshes import Y_UP_TO_Z_UP, MeshFile, Surface
from proctor.scenes.scene_config import SMALLEST_M, Light
from proctor.scenes.sdf_files import SdfFiles
from proctor.scenes.sdf_frames import FrameScope, read_pose
from proctor.scenes.world_import import (
    ForeignWorld,
    Rgba,
    WorldGeometry,
    WorldModel,
    capsule,
    make_light,
    pose_matrix,
    surface_of_primitive,
)
from proctor.scenes.xml_file import XmlElement

MAX_MODELS = 20_000
MAX_DEPTH = 100
GROUND_M = 10.0
"""A level plane whose sides are shorter is an object, such as a shelf, and not the ground."""
THIN_M = 0.01
LEFT_OUT = {
    "joint": "joints, so what they join stands still",
    "plugin": "plugins",
    "sensor": "sensors",
    "actor": "actors",
    "population": "populations",
    "road": "roads",
    "projector": "projectors",
    "particle_emitter": "particle emitters",
}


def read_sdf(path: Path, *, models: Sequence[Path] = (), skip_missing: bool = False) -> ForeignWorld:
    """Read a world or a model of Gazebo. `models` are folders of models, besides those where Gazebo looks.

    Raises InvalidFile with file and line where the file, or one that it includes, is wrong, and for models
    and meshes that are missing, unless these are skipped.
    """
    reader = _SdfReader(path, models)
    reader.read(skip_missing=skip_missing)
    return ForeignWorld(path.stem, reader.models, reader.lights, reader.grounds_z(), dict(reader.left_out))


class _Link(NamedTuple):
    element: XmlElement
    model: FrameScope
    model_pose: Array
    """Of the model that it belongs to, in the outermost one."""
    is_static: bool


class _SdfReader:
    def __init__(self, path: Path, models: Sequence[Path]) -> None:
        self.path = path
        self.models: list[WorldModel] = []
        self.lights: list[Light] = []
        self.left_out: dict[str, list[str]] = defaultdict(list)
        self._visited = 0
        self._files = SdfFiles(path, models, self.left_out)
        self._grounds: list[tuple[float, float, str]] = []  # area, height and model of level planes
        self._seen: set[Path] = set()  # files of meshes whose textures were looked for
        self._surfaces: dict[tuple[Path, str, bool], tuple[Surface, ...]] = {}

    def read(self, *, skip_missing: bool) -> None:
        root = self._files.read(self.path)
        world = root.find("world") or root
        others = [other.name for other in root.all("world") if other is not world]
        if others:
            self.left_out[f"worlds other than '{world.name}', the first"] = others
        scope = self._scope(world, (self.path.resolve(),))
        if not skip_missing:
            self._files.refuse_missing()
        states = {item.name: item for state in world.all("state") for item in state.all("model")}
        for light in world.all("light"):
            self._add_light(light, scope.pose_of(light))
        for model in scope.models:
            pose = scope.pose_of(model)
            state = states.get(model.name)
            if state is not None and state.find("pose") is not None:  # a saved world holds where they are now
                pose = read_pose(state.find("pose"))
            self._add_model(model, pose)
        if not skip_missing:
            self._files.refuse_missing()
        if self._files.missing:
            self.left_out["models and meshes that are missing"] = list(self._files.missing)

    def grounds_z(self) -> list[float]:
        """Return the height of the largest ground plane, of equal ones the highest; note the others."""
        if not self._grounds:
            return []
        _, floor_z, _ = max(self._grounds)
        others = [name for _, z, name in self._grounds if z != floor_z]
        if others:
            self.left_out["ground planes other than the largest"] = others
        return [floor_z]

    def _scope(
        self, owner: XmlElement, files: tuple[Path, ...], include: XmlElement | None = None, depth: int = 0
    ) -> FrameScope:
        """Return a world or model with all models inside of it."""
        self._visited += 1
        if self._visited > MAX_MODELS or depth > MAX_DEPTH:
            raise owner.error(f"expected at most {MAX_MODELS} models, {MAX_DEPTH} inside of each other")
        name = owner.name or self.path.stem
        for element in (owner, *owner.all("link")):
            for child in element.children:
                if child.tag in LEFT_OUT:
                    self.left_out[LEFT_OUT[child.tag]].append(child.name or name)
        models = []
        for child in owner.all("model", "include"):
            if child.tag == "model":
                models.append(self._scope(child, files, depth=depth + 1))
            elif (found := self._files.included(child, files)) is not None:
                models.append(self._scope(found, (*files, found.file), child, depth + 1))
        return FrameScope(owner, include, models)

    def _add_model(self, model: FrameScope, pose: Array) -> None:
        shapes: dict[str, list[WorldGeometry]] = {"visual": [], "collision": []}
        links = list(self._links(model, np.eye(4)))
        for link in links:
            if link.element.tag == "light":
                self._add_light(link.element, pose @ link.model_pose)
                continue
            for child in link.element.all("light", "visual", "collision"):
                at = link.model_pose @ link.model.pose_of(child, link=link.element)
                if child.tag == "light":
                    self._add_light(child, pose @ at)
                else:
                    shapes[child.tag] += self._geometry(child, at, pose @ at, model.name)
        if any(shapes.values()):
            self.models.append(WorldModel(model.name, pose, shapes["visual"], shapes["collision"]))
            if not all(link.is_static for link in links):
                self.left_out["the motion of models that could move"].append(model.name)

    def _links(self, model: FrameScope, pose: Array, *, is_static: bool = False) -> Iterator[_Link]:
        """Yield the links of a model, and of those inside of it. `pose` is its own in the outermost model.

        A light that is included in place of a model is yielded itself.
        """
        if model.owner.tag == "light":
            yield _Link(model.owner, model, pose, is_static=True)
        is_static = is_static or model.is_static
        for link in model.owner.all("link"):
            yield _Link(link, model, pose, is_static)
        for nested in model.models:
            yield from self._links(nested, pose @ model.pose_of(nested), is_static=is_static)

    def _geometry(self, shape: XmlElement, at: Array, at_world: Array, name: str) -> Iterator[WorldGeometry]:
        """Yield a visual or collision as geometries in the frame of its model."""
        geometry, rgba = shape.find("geometry"), _color(shape)
        if geometry is None:
            self.left_out[f"{shape.tag}s without <geometry>"].append(name)
        for child in () if geometry is None else geometry.children:
            if child.tag == "mesh":
                yield from self._mesh(child, at, rgba, is_seen=shape.tag == "visual")
            elif child.tag == "plane":
                yield from self._plane(child, shape, (at, at_world), name)
            elif child.tag in _DIMENSIONS:
                yield from _primitive(child, at, rgba)
            elif child.tag != "empty":
                self.left_out[f"geometries of the kind {child.tag}"].append(name)

    def _plane(
        self, plane: XmlElement, shape: XmlElement, at: tuple[Array, Array], name: str
    ) -> Iterator[WorldGeometry]:
        """Note a large level plane as a ground, and yield another as a thin box under its surface.

        `at` is its pose in the model and in the world. Collisions without a size have no end in Gazebo.
        """
        normal = np.array(plane.numbers_of("normal", 3, default="0 0 1"))
        if not np.linalg.norm(normal) > 1e-9:
            raise plane.error("expected a <normal> other than 0")
        turn = pose_matrix(np.zeros(3), Rotation.align_vectors([normal], [[0, 0, 1]])[0].as_matrix())
        is_endless = plane.find("size") is None and shape.tag == "collision"
        width, depth = (np.inf, np.inf) if is_endless else plane.numbers_of("size", 2, least=0, default="1 1")
        if (at[1] @ turn)[2, 2] > 0.999 and min(width, depth) >= GROUND_M:
            if shape.tag == "collision":
                self._grounds.append((width * depth, float(at[1][2, 3]), name))
        elif is_endless:
            self.left_out["planes without an end that are not level"].append(name)
        else:
            under = turn @ pose_matrix((0.0, 0.0, -THIN_M / 2))
            yield WorldGeometry("box", at[0] @ under, (width, depth, THIN_M), _color(shape))

    def _mesh(
        self, mesh: XmlElement, at: Array, rgba: Rgba | None, *, is_seen: bool
    ) -> Iterator[WorldGeometry]:
        uri = mesh.find("uri")
        if uri is None:
            raise mesh.error("expected <uri> in it")
        file = self._files.find(uri, uri.text.strip())
        if file is None:
            return
        if not file.is_file() or file.suffix.lower() not in MESH_SUFFIXES:
            kinds = ", ".join(MESH_SUFFIXES)
            raise uri.error(f"'{uri.text.strip()[:200]}' is not a mesh file that can be read ({kinds})")
        scale = mesh.find("scale")
        size = scale.numbers(3, default="1 1 1") if scale is not None else (1.0, 1.0, 1.0)
        if scale is not None and 0 in size:
            raise scale.error(f"expected factors other than 0, found '{scale.text.strip()}'")
        part = mesh.text_of("submesh/name")
        try:
            surfaces = self._read_mesh(file, part, centred=mesh.is_set("submesh/center"))
            if is_seen and file not in self._seen:
                self._seen.add(file)
                for name in missing_files(file, folder_of_scene(file)):
                    self.left_out["textures and materials that are missing"].append(f"{name} of {file.name}")
        except ValueError as error:
            raise uri.error(str(error)) from None
        yield WorldGeometry("mesh", at, (size[0], size[1], size[2]), rgba if is_seen else None, surfaces)

    def _read_mesh(self, file: Path, part: str, *, centred: bool) -> tuple[Surface, ...]:
        key = (file, part, centred)
        if key not in self._surfaces:
            mesh = MeshFile(file, folder_of_scene(file), solid=False, part=part or None)
            surfaces = mesh.asset.drawn
            turn = Y_UP_TO_Z_UP[:3, :3] if mesh.is_turned else np.eye(3)
            every = np.concatenate([surface.vertices @ turn for surface in surfaces])
            middle = (every.min(axis=0) + every.max(axis=0)) / 2 if centred else np.zeros(3)
            self._surfaces[key] = tuple(
                surface._replace(vertices=surface.vertices @ turn - middle, normals=surface.normals @ turn)
                for surface in surfaces
            )
        return self._surfaces[key]

    def _add_light(self, light: XmlElement, pose: Array) -> None:
        kind = light.attributes.get("type", "point")
        if kind not in ("point", "directional", "spot"):
            raise light.error(f'expected type="point", "directional" or "spot", found "{kind}"')
        found, intensity = map(light.find, ("diffuse", "intensity"))
        ray = light.numbers_of("direction", 3, default="0 0 -1")
        self.lights.append(
            make_light(
                light.name or "light",
                is_sun=kind == "directional",
                pose=pose,
                direction=pose[:3, :3] @ np.array(ray),
                diffuse=np.ones(3) if found is None else np.array(_rgba(found)[:3]),
                intensity=1.0 if intensity is None else intensity.numbers(1, least=0)[0],
            )
        )


_DIMENSIONS = {
    "box": {"size": "1 1 1"},
    "sphere": {"radius": "1"},
    "cylinder": {"radius": "1", "length": "1"},
    "capsule": {"radius": "0.5", "length": "1"},
    "cone": {"radius": "1", "length": "1"},
    "ellipsoid": {"radii": "1 1 1"},
}
"""What the elements of primitives hold, and what they are if they are missing."""


def _primitive(element: XmlElement, at: Array, rgba: Rgba | None) -> Iterator[WorldGeometry]:
    given = _DIMENSIONS[element.tag].items()
    found = {key: element.numbers_of(key, len(text.split()), least=0, default=text) for key, text in given}
    width = 2 * found.get("radius", (0.0,))[0]
    length = found.get("length", (width,))[0]
    if element.tag == "capsule":
        yield from capsule(at, width, length, rgba)
    elif element.tag == "box":
        x, y, z = found["size"]
        yield WorldGeometry("box", at, (x, y, z), rgba)
    elif element.tag in ("sphere", "cylinder"):
        kind: Any = element.tag
        yield WorldGeometry(kind, at, (width, width, length), rgba)
    else:
        radii = found.get("radii", (width / 2, width / 2, length / 2))
        x, y, z = (max(2 * radius, SMALLEST_M) for radius in radii)
        unit = WorldGeometry("sphere" if "radii" in found else "cone", at, (1.0, 1.0, 1.0), rgba)
        yield WorldGeometry("mesh", at, (x, y, z), rgba, (surface_of_primitive(unit),))


def _color(shape: XmlElement) -> Rgba | None:
    """Return the colour that a visual's material gives, None if it gives none."""
    alpha = 1.0 - min(shape.numbers_of("transparency", 1, least=0, default="0")[0], 1.0)
    found = shape.find("material/diffuse")
    if found is not None and found.text.strip():
        red, green, blue, own_alpha = _rgba(found)
        return red, green, blue, alpha * own_alpha
    return None


def _rgba(element: XmlElement) -> Rgba:
    count = 3 if len(element.text.split()) == 3 else 4
    red, green, blue, *alpha = (
        min(value, 1.0) for value in element.numbers(count, least=0, default="1 1 1 1")
    )
    return red, green, blue, alpha[0] if alpha else 1.0
