"""Worlds of Gazebo: SDF files and the models that they include, up to SDF 1.12.

Meshes are read as Gazebo reads them: whatever axis a mesh file calls up, its z is the world's.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.errors import InvalidFile, did_you_mean
from proctor.core.types import Array, Vector3
from proctor.scenes.mesh_files import MESH_SUFFIXES, folder_of_scene
from proctor.scenes.meshes import Y_UP_TO_Z_UP, MeshFile, Surface
from proctor.scenes.scene_config import Light
from proctor.scenes.world_import import (
    ForeignWorld,
    Rgba,
    WorldGeometry,
    WorldModel,
    capsule,
    make_light,
    pose_matrix,
)
from proctor.scenes.xml_file import XmlElement, read_xml

RESOURCE_PATHS = (
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "GAZEBO_MODEL_PATH",
    "GAZEBO_RESOURCE_PATH",
)
MAX_MODELS = 20_000
LEFT_OUT = {
    "joint": "joints: what they join stands still",
    "plugin": "plugins",
    "sensor": "sensors",
    "actor": "actors",
    "population": "populations",
    "road": "roads",
    "projector": "projectors",
    "particle_emitter": "particle emitters",
}
BUILT_IN = ("sun", "ground_plane")


def read_sdf(path: Path, *, models: Sequence[Path] = ()) -> ForeignWorld:
    """Read a world or a model of Gazebo. `models` are folders of models, besides those where Gazebo looks.

    Raises InvalidFile with file and line where the file, or one that it includes, is wrong.
    """
    reader = _SdfReader(path, models)
    reader.read()
    return ForeignWorld(path.stem, reader.models, reader.lights, reader.grounds_z, dict(reader.left_out))


class FrameScope:
    """The names that a pose can be relative to inside of one world or model: its children of these tags."""

    def __init__(
        self,
        owner: XmlElement,
        tags: Sequence[str],
        *,
        name_of: Callable[[XmlElement], str] = lambda element: element.name,
    ) -> None:
        self._named = {name_of(child): child for child in owner.all(*tags)}

    def frame_of(self, element: XmlElement) -> str | None:
        """Return the name of the frame that the pose of an element is relative to, if it names one."""
        pose = element.find("pose")
        attributes = {} if pose is None else pose.attributes
        named = (
            attributes.get("relative_to") or attributes.get("frame") or element.attributes.get("attached_to")
        )
        return named or None

    def pose_of(self, element: XmlElement, waiting: tuple[str, ...] = ()) -> Array:
        """Return the (4, 4) pose of an element in the frame of the world, model or link that it stands in."""
        pose, frame = element.find("pose"), self.frame_of(element)
        own = np.eye(4) if pose is None else _matrix(pose)
        if frame is None or frame in ("world", "__model__", "__root__"):
            return own
        if frame in waiting:
            raise element.error(f"relative_to: '{frame}' depends on itself: {' -> '.join((*waiting, frame))}")
        if frame not in self._named:
            known = ", ".join(sorted(filter(None, self._named))[:10]) or "none"
            raise element.error(f"relative_to: no frame '{frame}' beside it, found {known}")
        return self.pose_of(self._named[frame], (*waiting, frame)) @ own


def _matrix(pose: XmlElement) -> Array:
    if pose.attributes.get("rotation_format") == "quat_xyzw":
        x, y, z, *quaternion = pose.numbers(7, default="0 0 0 0 0 0 1")
        if not np.linalg.norm(quaternion) > 1e-9:
            raise pose.error(f"expected a quaternion other than 0, found '{pose.text.strip()}'")
        return pose_matrix((x, y, z), Rotation.from_quat(quaternion).as_matrix())
    x, y, z, *angles = pose.numbers(6, default="0 0 0 0 0 0")
    degrees = pose.attributes.get("degrees", "").lower() in ("1", "true")
    return pose_matrix((x, y, z), Rotation.from_euler("xyz", angles, degrees=degrees).as_matrix())


class _Link(NamedTuple):
    element: XmlElement
    model_pose: Array
    """Of the model that it belongs to, in the outermost one."""
    frames: FrameScope
    is_static: bool

    def pose_of(self, child: XmlElement) -> Array:
        """Return the pose of a visual, a collision or a light in the outermost model."""
        in_model = self.frames.pose_of(child)
        is_relative = self.frames.frame_of(child) is not None
        return self.model_pose @ (in_model if is_relative else self.frames.pose_of(self.element) @ in_model)


class _SdfReader:
    def __init__(self, path: Path, models: Sequence[Path]) -> None:
        self.path = path
        self.models: list[WorldModel] = []
        self.lights: list[Light] = []
        self.grounds_z: list[float] = []
        self.left_out: dict[str, list[str]] = defaultdict(list)
        self._visited = 0
        self._folders = _model_folders(path.resolve().parent, models)
        self._surfaces: dict[tuple[Path, str, bool], tuple[Surface, ...]] = {}

    def read(self) -> None:
        root = read_xml(self.path)
        if root.tag != "sdf":
            raise root.error("expected <sdf>: not a world of Gazebo")
        world = root.find("world") or root
        self._note_left_out(world, world.name or self.path.stem)
        frames = FrameScope(world, ("model", "include", "frame", "light"), name_of=_name_of)
        states = {item.name: item for state in world.all("state") for item in state.all("model")}
        for element in world.all("model", "include", "light"):
            pose = frames.pose_of(element)
            state = states.get(_name_of(element))
            if state is not None and state.find("pose") is not None:  # a saved world holds where they are now
                pose = FrameScope(state, ()).pose_of(state)
            if element.tag == "light":
                self._add_light(element, pose)
            else:
                self._add_model(element, pose)

    def _add_model(self, element: XmlElement, pose: Array) -> None:
        name = _name_of(element)
        shapes: dict[str, list[WorldGeometry]] = {"visual": [], "collision": []}
        links = list(self._links(element, np.eye(4), (self.path.resolve(),)))
        for link in links:
            for child in link.element.all("light", "visual", "collision"):
                at = link.pose_of(child)
                if child.tag == "light":
                    self._add_light(child, pose @ at)
                else:
                    shapes[child.tag] += self._geometry(child, at, pose @ at, name)
        if any(shapes.values()):
            self.models.append(WorldModel(name, pose, shapes["visual"], shapes["collision"]))
            if not all(link.is_static for link in links):
                self.left_out["models that can move: they stand still"].append(name)

    def _links(
        self, element: XmlElement, pose: Array, files: tuple[Path, ...], *, is_static: bool = False
    ) -> Iterator[_Link]:
        """Yield the links of a model, and of those inside of it. `pose` is its own in the outermost model."""
        self._visited += 1
        if self._visited > MAX_MODELS:
            raise element.error(f"expected at most {MAX_MODELS} models")
        is_static = is_static or element.is_set("static")
        if element.tag == "include":
            found = self._included(element, files)
            if found is not None:
                own = np.eye(4) if element.find("pose") is not None else FrameScope(found, ()).pose_of(found)
                inner = (*files, found.file.resolve())
                yield from self._links(found, pose @ own, inner, is_static=is_static)
            return
        self._note_left_out(element, element.name)
        frames = FrameScope(element, ("link", "model", "include", "frame", "joint"), name_of=_name_of)
        for link in element.all("link"):
            self._note_left_out(link, element.name)
            yield _Link(link, pose, frames, is_static)
        for nested in element.all("model", "include"):
            yield from self._links(nested, pose @ frames.pose_of(nested), files, is_static=is_static)

    def _note_left_out(self, element: XmlElement, name: str) -> None:
        for child in element.children:
            if child.tag in LEFT_OUT:
                self.left_out[LEFT_OUT[child.tag]].append(child.name or name)

    def _included(self, element: XmlElement, files: tuple[Path, ...]) -> XmlElement | None:
        """Return the model that an <include> names; None for what comes with Gazebo and has no model."""
        uri = element.text_of("uri")
        name = uri.rstrip("/").rpartition("/")[2]
        folder = self._find(element, uri, built_in=name in BUILT_IN)
        if folder is None:
            if name == "sun":
                self.lights.append(Light(name="sun", type="directional", direction=Vector3(-0.5, 0.1, -0.9)))
            else:
                self.grounds_z.append(0.0)
            return None
        file = folder / _file_of_model(folder) if folder.is_dir() else folder
        if file.resolve() in files:
            chain = " includes ".join(f"'{each.parent.name}/{each.name}'" for each in (*files, file))
            raise element.error(f"a cycle: {chain}")
        root = read_xml(file)
        model = root.find("model") if root.tag == "sdf" else None
        if model is None and root.find("light") is not None:
            self._add_light(root.find("light") or root, FrameScope(element, ()).pose_of(element))
            return None
        if model is None:
            raise InvalidFile(file, "expected <sdf> with a <model> in it", place=f"line {root.line}")
        return model

    def _find(self, element: XmlElement, uri: str, *, built_in: bool = False) -> Path | None:
        """Return the file or folder of an address, which must lie in a folder that models may lie in."""
        if not uri or "\0" in uri or len(uri) > 1024:
            raise element.error(f"expected <uri> with an address such as model://NAME, found '{uri[:80]}'")
        scheme, _, rest = uri.partition("://")
        if scheme in ("http", "https"):
            raise element.error(
                f"'{uri[:200]}' is not on this machine: download it, and name its folder by --models"
            )
        path = unquote(rest or uri)
        is_relative = not rest or scheme == "file"
        roots = [element.file.resolve().parent, *self._folders] if is_relative else self._folders
        outside = False
        for root in roots:
            found = (root / path).resolve()
            if found.exists():
                if any(found.is_relative_to(folder) for folder in self._folders):
                    return found
                outside = True
        if outside:
            raise element.error(f"'{uri}' lies outside of the folders of models: name its folder by --models")
        if built_in:
            return None
        models = {each.name for folder in self._folders for each in folder.iterdir() if each.is_dir()}
        searched = ", ".join(map(str, self._folders))
        hint = did_you_mean(path.partition("/")[0], models)
        raise element.error(f"'{uri}' was not found{hint}; looked in {searched} (--models DIR adds a folder)")

    def _geometry(self, shape: XmlElement, at: Array, at_world: Array, name: str) -> Iterator[WorldGeometry]:
        """Yield a visual or collision as geometries in the frame of its model."""
        geometry = shape.find("geometry")
        if geometry is None:
            raise shape.error("expected <geometry> in it")
        rgba = _color(shape)
        for child in geometry.children:
            if child.tag == "mesh":
                yield self._mesh(child, at, rgba, is_seen=shape.tag == "visual")
            elif child.tag == "plane":
                self._add_plane(child, shape, at_world, name)
            elif child.tag in _PRIMITIVES:
                yield from _primitive(child, at, rgba)
            elif child.tag != "empty":
                self.left_out[f"geometries of the kind {child.tag}"].append(name)

    def _add_plane(self, plane: XmlElement, shape: XmlElement, at_world: Array, name: str) -> None:
        up = at_world[:3, :3] @ np.array(plane.numbers_of("normal", 3, default="0 0 1"))
        if up[2] < 0.999 * np.linalg.norm(up):
            self.left_out["planes that are not level"].append(name)
        elif shape.tag == "collision":
            self.grounds_z.append(float(at_world[2, 3]))

    def _mesh(self, mesh: XmlElement, at: Array, rgba: Rgba | None, *, is_seen: bool) -> WorldGeometry:
        uri = mesh.find("uri")
        if uri is None:
            raise mesh.error("expected <uri> in it")
        file = self._find(uri, uri.text.strip())
        if file is None or not file.is_file() or file.suffix.lower() not in MESH_SUFFIXES:
            kinds = ", ".join(MESH_SUFFIXES)
            raise uri.error(f"'{uri.text.strip()[:200]}' is not a mesh file that can be read ({kinds})")
        scale = mesh.find("scale")
        size = scale.numbers(3, default="1 1 1") if scale is not None else (1.0, 1.0, 1.0)
        if scale is not None and 0 in size:
            raise scale.error(f"expected factors other than 0, found '{scale.text.strip()}'")
        part = mesh.text_of("submesh/name")
        try:
            surfaces = self._read_mesh(file, part, centred=mesh.is_set("submesh/center"))
        except ValueError as error:
            raise uri.error(str(error)) from None
        return WorldGeometry("mesh", at, (size[0], size[1], size[2]), rgba if is_seen else None, surfaces)

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


def _name_of(element: XmlElement) -> str:
    """Return the name of a model, or the one that an <include> gives to its model."""
    if element.tag != "include":
        return element.name
    return element.text_of("name") or element.text_of("uri").rstrip("/").rpartition("/")[2]


def _file_of_model(folder: Path) -> str:
    """Return the name of a model's SDF file: the newest that its model.config names, or model.sdf."""
    config = folder / "model.config"
    if not config.is_file():
        return "model.sdf"
    files = read_xml(config).all("sdf")
    newest = max(files, key=lambda file: _version(file.attributes.get("version", "")), default=None)
    name = "model.sdf" if newest is None else newest.text.strip()
    if not name or Path(name).name != name:
        raise InvalidFile(config, f"expected <sdf> with the name of a file beside it, found '{name[:80]}'")
    return name


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split(".") if part.isdecimal() and len(part) < 5]


_PRIMITIVES = ("box", "cylinder", "sphere", "capsule")


def _primitive(element: XmlElement, at: Array, rgba: Rgba | None) -> Iterator[WorldGeometry]:
    if element.tag == "box":
        x, y, z = element.numbers_of("size", 3, least=0)
        yield WorldGeometry("box", at, (x, y, z), rgba)
        return
    width = 2 * element.numbers_of("radius", 1, least=0)[0]
    if element.tag == "sphere":
        yield WorldGeometry("sphere", at, (width, width, width), rgba)
        return
    length = element.numbers_of("length", 1, least=0)[0]
    if element.tag == "capsule":
        yield from capsule(at, width, length, rgba)
    else:
        yield WorldGeometry("cylinder", at, (width, width, length), rgba)


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


def _model_folders(folder: Path, given: Sequence[Path]) -> list[Path]:
    """Return the folders that models and meshes of a world in a folder may lie in: no other is ever read."""
    found = [*given, folder / "models", folder, folder.parent / "models"]
    if (folder / "model.config").is_file() or (folder.parent / "package.xml").is_file():
        found.append(folder.parent)  # of models, or a package of ROS
    paths = [os.environ.get(name, "").split(os.pathsep) for name in RESOURCE_PATHS]
    found += [Path(part) for parts in paths for part in parts if part]
    return [place.resolve() for place in dict.fromkeys(found) if place.is_dir()]
