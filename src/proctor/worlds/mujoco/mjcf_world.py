"""Worlds of MuJoCo: MJCF files, compiled by MuJoCo and described as models for `proctor import-world`."""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from proctor.core.errors import InvalidFile
from proctor.core.types import Array
from proctor.scenes.meshes import Surface
from proctor.scenes.scene_config import Light
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
from proctor.scenes.xml_file import XmlElement, read_xml

DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
ASSET_FOLDERS = ("meshdir", "texturedir", "assetdir")
MAX_COPIES = 10_000
"""Elements that <replicate> may make: MuJoCo takes 5 s for these, and 300 s for five times as many."""


def read_mjcf(path: Path, *, models: Sequence[Path] = ()) -> ForeignWorld:
    """Read a scene of MuJoCo as it stands at the start.

    The files that it names must lie in its own folder or in one of `models`. Raises InvalidFile if one does
    not, or if MuJoCo cannot compile it.
    """
    folders = [folder.resolve() for folder in (path.parent, *models)]
    root = read_xml(path)
    if root.tag != "mujoco":
        raise root.error("expected <mujoco>: not a scene of MuJoCo")
    try:
        _SceneCheck(folders).count(path)
    except RecursionError:
        raise root.error("too many files that include each other") from None
    warn = mujoco.get_mju_user_warning()
    # MuJoCo itself would print its warnings, and write them to a file in the user's folder.
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        model = mujoco.MjSpec.from_file(str(path.absolute())).compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
    except ValueError as error:
        raise InvalidFile(path, f"MuJoCo cannot build it: {' '.join(str(error).split())}") from None
    finally:
        mujoco.set_mju_user_warning(warn)
    numbers = np.hstack([data.geom_xpos, data.geom_xmat, model.geom_size])
    for geom in np.flatnonzero(~np.isfinite(numbers).all(axis=1)):
        name = model.geom(geom).name or f"geom {geom}"
        raise InvalidFile(path, f"place or size of '{name}' are not finite numbers")
    return _MjcfReader(model, data).world(path.stem)


class _SceneCheck:
    """Checks the files that a scene names, and how many elements it makes, before MuJoCo reads any."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._models: set[Path] = set()

    def count(self, path: Path) -> int:
        """Return how many elements MuJoCo makes of a scene; refuse files elsewhere and too many copies."""
        root, attached = self._with_includes(path, path.parent, {path.resolve()}), 1
        every = list(_every(root))
        dirs = {"", *(each.attributes.get(key, "") for each in every for key in ASSET_FOLDERS)}
        for element in every:
            for key, name in element.attributes.items():
                if key in ASSET_FOLDERS:
                    self._place(element, path.parent, name)
                elif key == "file" and element.tag == "model":
                    attached = max(attached, self.count(self._scene(element, path.parent, self._models)))
                elif key.startswith("file") and element.tag != "include":
                    for folder in dirs:
                        self._place(element, path.parent, folder, name)
                        self._place(element, path.parent, folder, re.split(r"[/\\]", name)[-1])  # strippath
        return _count(root, attached)

    def _with_includes(self, path: Path, base: Path, files: set[Path]) -> XmlElement:
        root = read_xml(path)
        for element in list(_every(root)):
            if element.tag == "include" and "file" in element.attributes:
                inner = self._with_includes(self._scene(element, base, files), base, files)
                element.children = inner.children
        return root

    def _scene(self, element: XmlElement, base: Path, files: set[Path]) -> Path:
        """Return the scene that an element names, beside its own file or in `base`; add it to the files."""
        name = element.attributes["file"]
        places = [self._place(element, folder, name) for folder in (element.file.parent, base)]
        place = next(filter(os.path.isfile, places), places[-1])
        if place.resolve() in files:
            raise element.error(f"'{name[:200]}' is named a second time, or includes itself")
        files.add(place.resolve())
        return place

    def _place(self, element: XmlElement, base: Path, *names: str) -> Path:
        place = base.joinpath(*(name.replace("\\", "/") for name in names))  # as MuJoCo reads them
        for found in (place.resolve(), Path(os.path.normpath(place)).resolve()):
            if not any(found.is_relative_to(folder) for folder in self._folders):
                problem = (
                    f"'{names[-1][:200]}' lies outside of {self._folders[0]}: name its folder by --models"
                )
                raise element.error(problem)
        return place


def _every(element: XmlElement) -> Iterator[XmlElement]:
    yield element
    for child in element.children:
        yield from _every(child)


def _count(element: XmlElement, attached: int) -> int:
    """Return how many elements MuJoCo makes of one; `attached` of an <attach>."""
    inside = sum(_count(child, attached) for child in element.children)
    if element.tag == "attach":
        return attached
    count = element.attributes.get("count", "1")
    words = count.split()
    if len(words) > 3 or not all(re.fullmatch(r"\+?[0-9]{1,9}", word) for word in words):
        raise element.error(f"expected a count of at most 9 digits, found '{count[:80]}'")
    copies = math.prod(map(int, words)) * (inside if element.tag == "replicate" else inside + 1)
    if copies > max(inside + 1, MAX_COPIES):
        problem = f"count='{count[:80]}': expected at most {MAX_COPIES} elements, found {copies}"
        raise element.error(problem)
    return copies


class _MjcfReader:
    def __init__(self, model: Any, data: Any) -> None:
        self._model, self._data = model, data
        self._grounds_z: list[float] = []
        self._left_out: dict[str, list[str]] = defaultdict(list)

    def world(self, name: str) -> ForeignWorld:
        model = self._model
        found: dict[str, WorldModel] = {}
        for geom in range(model.ngeom):
            root = int(model.body_rootid[model.geom_bodyid[geom]])
            owner = (
                (model.body(root).name or f"body {root}")
                if root
                else (model.geom(geom).name or f"geom {geom}")
            )
            pose = pose_matrix(self._data.xpos[root], self._data.xmat[root].reshape(3, 3))
            into = found.setdefault(owner, WorldModel(owner, pose, [], []))
            inverse = np.asarray(np.linalg.inv(pose), dtype=float)
            for shape in self._geometry(geom, owner, inverse):
                # MuJoCo's viewer shows the groups 0, 1 and 2: those above hold what only collides.
                if model.geom_group[geom] < 3 and (shape.rgba is None or shape.rgba[3] > 0):
                    into.visuals.append(shape)
                if model.geom_contype[geom] or model.geom_conaffinity[geom]:
                    into.collisions.append(shape)
        for body in range(1, model.nbody):
            if model.body_dofnum[body] or model.body_mocapid[body] >= 0:
                kind = "the motion of bodies that could move"
                self._left_out[kind].append(model.body(body).name or f"body {body}")
        for kind, count in (("actuators", model.nu), ("flexes", model.nflex), ("skins", model.nskin)):
            if count:
                self._left_out[kind] = [str(count)]
        return ForeignWorld(name, [*found.values()], self._lights(), self._grounds_z, dict(self._left_out))

    def _geometry(self, geom: int, owner: str, world_to_model: Array) -> Iterator[WorldGeometry]:
        model, kinds = self._model, mujoco.mjtGeom
        kind = kinds(int(model.geom_type[geom]))
        at_world = pose_matrix(self._data.geom_xpos[geom], self._data.geom_xmat[geom].reshape(3, 3))
        at, rgba = world_to_model @ at_world, self._rgba(geom)
        x, y, z = (2 * model.geom_size[geom]).tolist()
        if kind == kinds.mjGEOM_PLANE:
            if at_world[2, 2] > 0.999:
                self._grounds_z.append(float(at_world[2, 3]))
            else:
                self._left_out["planes that are not level"].append(owner)
        elif kind == kinds.mjGEOM_BOX:
            yield WorldGeometry("box", at, (x, y, z), rgba)
        elif kind == kinds.mjGEOM_CYLINDER:
            yield WorldGeometry("cylinder", at, (x, x, y), rgba)
        elif kind == kinds.mjGEOM_CAPSULE:
            yield from capsule(at, x, y, rgba)
        elif kind == kinds.mjGEOM_SPHERE:
            yield WorldGeometry("sphere", at, (x, x, x), rgba)
        elif kind == kinds.mjGEOM_ELLIPSOID:
            ball = surface_of_primitive(WorldGeometry("sphere", at, (1.0, 1.0, 1.0), rgba))
            yield WorldGeometry("mesh", at, (x, y, z), rgba, (ball,))
        elif kind == kinds.mjGEOM_MESH:
            yield WorldGeometry("mesh", at, (1.0, 1.0, 1.0), rgba, (self._mesh(geom, rgba),))
        else:
            self._left_out[f"geoms of the kind {kind.name.removeprefix('mjGEOM_').lower()}"].append(owner)

    def _rgba(self, geom: int) -> Rgba:
        model, material = self._model, int(self._model.geom_matid[geom])
        own = tuple(map(float, model.geom_rgba[geom]))
        rgba = own if material < 0 or not np.allclose(own, DEFAULT_RGBA) else model.mat_rgba[material]
        red, green, blue, alpha = (round(float(np.clip(channel, 0, 1)), 4) for channel in rgba)
        return red, green, blue, alpha

    def _mesh(self, geom: int, rgba: Rgba) -> Surface:
        model, mesh = self._model, int(self._model.geom_dataid[geom])
        faces = slice(model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh])

        def corners(values: Array, starts: Array, index: Array) -> Array:
            return np.asarray(values[int(starts[mesh]) + index[faces].ravel()], dtype=float)

        vertices = corners(model.mesh_vert, model.mesh_vertadr, model.mesh_face)
        normals = corners(model.mesh_normal, model.mesh_normaladr, model.mesh_facenormal)
        image, texcoords = None, np.zeros((len(vertices), 2))
        material = int(model.geom_matid[geom])
        texture = int(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB]) if material >= 0 else -1
        is_flat = texture >= 0 and model.tex_type[texture] == mujoco.mjtTexture.mjTEXTURE_2D
        if is_flat and model.mesh_texcoordadr[mesh] >= 0:
            texcoords = corners(model.mesh_texcoord, model.mesh_texcoordadr, model.mesh_facetexcoord)
            height, width, channels = (
                int(a[texture]) for a in (model.tex_height, model.tex_width, model.tex_nchannel)
            )
            start = int(model.tex_adr[texture])
            pixels = model.tex_data[start : start + height * width * channels].reshape(
                height, width, channels
            )
            image = np.array(pixels[..., :3] if channels >= 3 else np.repeat(pixels[..., :1], 3, axis=2))
        return Surface(vertices, normals, texcoords, np.arange(len(vertices)).reshape(-1, 3), rgba, image)

    def _lights(self) -> list[Light]:
        model, data = self._model, self._data
        return [
            make_light(
                model.light(index).name or f"light {index}",
                is_sun=bool(model.light_type[index] == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL),
                pose=pose_matrix(data.light_xpos[index]),
                direction=data.light_xdir[index],
                diffuse=np.clip(model.light_diffuse[index].astype(float), 0, 1).round(4),
            )
            for index in range(model.nlight)
        ]
