"""Worlds of other simulators as scene folders: one object for each model, its meshes as GLB files.

Readers of formats (`sdf_world`, and `mjcf_world` beside MuJoCo) describe models as geometries. Here they
become objects: all that is seen of a model is one mesh or parts, all that collides another mesh or parts.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import trimesh
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from scipy.ndimage import binary_dilation, binary_fill_holes, label
from scipy.spatial.transform import Rotation
from trimesh import creation

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.core.types import Array, Vector3
from proctor.maps.grid_map import LARGEST_CELLS, MARGIN_M
from proctor.robots.spec import standard_robot
from proctor.scenes.frames import Frame
from proctor.scenes.mesh_reader import pieces_of
from proctor.scenes.meshes import Y_UP_TO_Z_UP, Surface
from proctor.scenes.scene_config import SMALLEST_M, Light, Part, SceneConfig, SceneObject, save_scene
from proctor.scenes.scene_map import draw_hull
from proctor.scenes.solids import joined
from proctor.scenes.surface_grid import CELL_M, MAP_CELLS, SMALLEST_AREA_M2, cut, draw_triangles

Rgba = tuple[float, float, float, float]
GREY: Rgba = (0.7, 0.7, 0.7, 1.0)
MAX_TEXTURE_SIDE = 1024
FLOOR_MARGIN_M = 2.0
SUNK_M = 0.5
SMALLEST_FLOOR_M2 = 25.0
SCENE_FILE = "scene.json"


class WorldGeometry(NamedTuple):
    """A shape of a model."""

    kind: Literal["box", "cylinder", "sphere", "cone", "mesh"]  # a cone only for `surface_of_primitive`
    pose: Array  # (4, 4), in the model's frame
    size: tuple[float, float, float]  # full extents, or the scale of a mesh
    rgba: Rgba | None = None  # None: the mesh's own colours
    surfaces: tuple[Surface, ...] = ()  # of a mesh


class WorldModel(NamedTuple):
    """What becomes one object."""

    name: str
    pose: Array  # (4, 4), in the world
    visuals: list[WorldGeometry]
    collisions: list[WorldGeometry]


class ForeignWorld(NamedTuple):
    """A world as another simulator describes it."""

    name: str
    models: list[WorldModel]
    lights: list[Light]
    grounds_z: list[float]
    """The heights of its ground planes."""
    left_out: dict[str, list[str]]
    """What has no place in a scene, and the names of those that have it."""


class Imported(NamedTuple):
    """A scene folder that was written."""

    scene_path: Path
    scene: SceneConfig
    floor_z: float
    """What was at this height is now at 0."""
    size_m: Array
    """Along x and y."""
    is_too_large: bool
    """For a map, so that no robot can drive in it."""


def write_world(world: ForeignWorld, folder: Path, *, floor_z: float | None = None) -> Imported:
    """Write a world as a scene folder. The floor, by default its highest ground plane, is moved to z = 0."""
    if floor_z is None:
        floor_z = _floor_z(world)
    down = np.eye(4)
    down[2, 3] = -floor_z
    store = _MeshStore(folder)
    objects: list[SceneObject] = []
    names: set[str] = set()
    for model in world.models:
        if model.visuals or model.collisions:
            name = _unique(model.name or "model", names)
            objects.append(_object(model._replace(name=name, pose=down @ model.pose), store))
    has_house = any(item.collision == "surface" for item in objects)
    low, high = _extent(world, with_visuals=has_house)
    if has_house:
        objects.append(_floor(low, high, store, _unique("floor", names)))
    lights = [_moved_light(light, floor_z) for light in world.lights]
    scene = SceneConfig(scene_name=world.name, objects=objects, lights=lights)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_scene(scene, folder / SCENE_FILE)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None
    cells = (high - low + 2 * MARGIN_M) / (CELL_M * MAP_CELLS)
    return Imported(folder / SCENE_FILE, scene, floor_z, high - low, bool(cells.prod() > LARGEST_CELLS))


def pose_matrix(xyz: ArrayLike, rotation: ArrayLike | None = None) -> Array:
    """Return the (4, 4) matrix of a place and a rotation (3, 3)."""
    pose = np.eye(4)
    pose[:3, 3] = xyz
    if rotation is not None:
        pose[:3, :3] = rotation
    return pose


def capsule(pose: Array, width: float, length: float, rgba: Rgba | None) -> Iterator[WorldGeometry]:
    """Yield a cylinder along z and the balls at its ends."""
    yield WorldGeometry("cylinder", pose, (width, width, length), rgba)
    for end in (-length / 2, length / 2):
        yield WorldGeometry("sphere", pose @ pose_matrix((0.0, 0.0, end)), (width, width, width), rgba)


def _unique(name: str, names: set[str]) -> str:
    wanted, number = name, 2
    while name in names:
        name, number = f"{wanted}_{number}", number + 1
    names.add(name)
    return name


def make_light(
    name: str, *, is_sun: bool, pose: Array, direction: Array, diffuse: Array, intensity: float = 1.0
) -> Light:
    """Return a light whose brightness is that of its diffuse colour."""
    brightest = float(diffuse.max())
    red, green, blue = (diffuse / max(brightest, 1e-9)).tolist()
    return Light(
        name=name,
        type="directional" if is_sun else "point",
        translate=Vector3(*pose[:3, 3].tolist()),
        direction=Vector3(*direction.tolist()) if direction.any() else Vector3(0.0, 0.0, -1.0),
        color=(red, green, blue),
        intensity=brightest * intensity,
    )


def _moved_light(light: Light, floor_z: float) -> Light:
    x, y, z = light.translate.array().tolist()
    return msgspec.structs.replace(light, translate=Vector3(x, y, round(z - floor_z, 9)))


def _object(model: WorldModel, store: _MeshStore) -> SceneObject:
    """Return a model as an object: as parts where these can say it all, else as meshes."""
    placed = {"name": model.name, **_placed(model.pose)}
    visuals, collisions = model.visuals, model.collisions
    solid_parts = not any(geometry.kind == "mesh" for geometry in collisions)
    if solid_parts and not any(geometry.kind == "mesh" for geometry in visuals):
        return SceneObject(parts=_parts(visuals, collisions), **placed)
    seen = store.put(model.name, _surfaces(visuals)) if visuals else None
    if not collisions:
        return SceneObject(asset_path=seen, rigid_body_type="none", **placed)
    if solid_parts:
        return SceneObject(asset_path=seen, parts=_parts([], collisions), **placed)
    surfaces = _surfaces(collisions)
    bare = [surface._replace(rgba=GREY, image=None) for surface in surfaces]
    return SceneObject(
        asset_path=seen,
        collision_asset_path=store.put(f"{model.name}_collision", bare),
        collision="surface" if _needs_surface(surfaces, model.pose) else "hull",
        **placed,
    )


def _placed(pose: Array) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what looks straight up, where one of two angles is chosen as 0
        yaw, pitch, roll = Rotation.from_matrix(pose[:3, :3]).as_euler("ZYX", degrees=True)
    rotate = (round(float(angle), 9) + 0.0 for angle in (roll, pitch, yaw))  # never -0.0
    return {
        "translate": Vector3(*(round(float(place), 9) + 0.0 for place in pose[:3, 3])),
        "rotate": Vector3(*rotate),
    }


def _parts(visuals: list[WorldGeometry], collisions: list[WorldGeometry]) -> list[Part]:
    """Return shapes as parts. What only collides is transparent."""
    rest = list(collisions)
    parts = []
    for shape in visuals:
        twin = next((index for index, other in enumerate(rest) if _is_same(shape, other)), None)
        if twin is not None:
            del rest[twin]
        parts.append(_part(shape, shape.rgba or GREY, collision=twin is not None))
    return parts + [_part(shape, (*GREY[:3], 0.0), collision=True) for shape in rest]


def _is_same(shape: WorldGeometry, other: WorldGeometry) -> bool:
    same_size = np.allclose(shape.size, other.size, atol=1e-6)
    return shape.kind == other.kind and same_size and np.allclose(shape.pose, other.pose, atol=1e-6)


def _part(shape: WorldGeometry, rgba: Rgba, *, collision: bool) -> Part:
    size = Vector3(*(max(extent, SMALLEST_M) for extent in shape.size))
    color = rgba if rgba[3] < 1 else rgba[:3]
    kind: Any = shape.kind
    return Part(shape=kind, size=size, color=color, collision=collision, **_placed(shape.pose))


def _surfaces(geometries: list[WorldGeometry]) -> list[Surface]:
    found = []
    for geometry in geometries:
        for surface in geometry.surfaces or (surface_of_primitive(geometry),):
            size = np.array(geometry.size) if geometry.kind == "mesh" else np.ones(3)
            moved = Frame(size, geometry.pose[:3, :3], geometry.pose[:3, 3]).surface(surface)
            if size.prod() < 0:  # mirrored
                moved = moved._replace(faces=moved.faces[:, ::-1])
            if geometry.rgba is not None and moved.image is None:
                moved = moved._replace(rgba=geometry.rgba)
            found.append(moved)
    return found


def surface_of_primitive(geometry: WorldGeometry) -> Surface:
    """Return the surface of a box, cylinder, sphere or cone around its own origin."""
    width, depth, height = geometry.size
    if geometry.kind == "box":
        made = creation.box((width, depth, height))
    elif geometry.kind == "cylinder":
        made = creation.cylinder(width / 2, height, sections=32)
    elif geometry.kind == "cone":
        made = creation.cone(width / 2, height, sections=32)
        made.apply_translation((0, 0, -height / 2))
    else:
        made = creation.icosphere(subdivisions=3, radius=width / 2)
    corners = np.asarray(made.triangles).reshape(-1, 3)  # of faces that keep their own normals
    normals = np.repeat(np.asarray(made.face_normals), 3, axis=0)
    faces = np.arange(len(corners)).reshape(-1, 3)
    return Surface(corners, normals, np.zeros((len(corners), 2)), faces, geometry.rgba or GREY, None)


def _needs_surface(surfaces: list[Surface], pose: Array) -> bool:
    """Tell whether the hulls of a model's pieces would close floor that the model leaves free."""
    mesh = _trimesh(joined(surfaces))
    mesh.apply_transform(pose)
    try:
        pieces = pieces_of([mesh], Path("mesh"))
    except ValueError:  # of which there are thousands
        return True
    if len(pieces) > 100:  # which collide faster as their surface
        return True
    low = np.floor((mesh.bounds[0, :2]) / CELL_M) - 1
    cells = np.ceil(mesh.bounds[1, :2] / CELL_M) + 1 - low
    if not cells.prod() <= 4_000_000:  # larger than any piece of furniture
        return True
    columns, rows = cells.astype(int)
    band_m = standard_robot().height_band_m
    near = cut(np.asarray(mesh.triangles), 2, *band_m)
    walls = draw_triangles(near[..., :2] / CELL_M - low, rows, columns)
    holes, _ = label(binary_fill_holes(walls) & ~walls)
    is_room = np.bincount(holes.ravel()) * CELL_M**2 >= SMALLEST_AREA_M2
    solid = walls | ((holes > 0) & ~is_room[holes])
    hulls = np.zeros((rows, columns), dtype=bool)
    for points in pieces:
        draw_hull(points, band_m, hulls, CELL_M, low * CELL_M)
    filled = hulls & ~binary_dilation(solid, np.ones((3, 3)))
    return bool(filled.sum() * CELL_M**2 > 0.02)  # of free floor that the hulls may cover


def _floor_z(world: ForeignWorld) -> float:
    """Return the height of the ground, or of a floor at 0 that lies on a ground which was lowered for it."""
    ground_z = max(world.grounds_z, default=0.0)
    if not -SUNK_M <= ground_z < 0:
        return ground_z
    for model in world.models:
        for surface in _surfaces(model.collisions):
            corners = (surface.vertices @ model.pose[:3, :3].T + model.pose[:3, 3])[surface.faces]
            is_floor = (abs(corners[..., 2]) < 0.02).all(axis=1)
            first, second = np.diff(corners[is_floor][..., :2], axis=1).swapaxes(0, 1)
            if abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]).sum() / 2 > SMALLEST_FLOOR_M2:
                return 0.0
    return ground_z


def _extent(world: ForeignWorld, *, with_visuals: bool) -> tuple[Array, Array]:
    """Return the lowest and highest x and y of what collides, or of all, with a margin for a floor."""
    every = [
        surface.vertices @ model.pose[:2, :3].T + model.pose[:2, 3]
        for model in world.models
        for surface in _surfaces([*model.collisions, *(model.visuals if with_visuals else ())])
    ]
    points, margin_m = np.concatenate(every or [np.zeros((1, 2))]), FLOOR_MARGIN_M * with_visuals
    return points.min(axis=0) - margin_m, points.max(axis=0) + margin_m


def _floor(low: Array, high: Array, store: _MeshStore, name: str) -> SceneObject:
    """Return an unseen floor under all models: what collides as its surface must bring a floor."""
    (left, bottom), (right, top) = low, high
    corners = np.array([[left, bottom, 0], [right, bottom, 0], [right, top, 0], [left, top, 0]])
    up, faces = np.tile([0.0, 0.0, 1.0], (4, 1)), np.array([[0, 1, 2], [0, 2, 3]])
    surface = Surface(corners, up, np.zeros((4, 2)), faces, GREY, None)
    return SceneObject(
        name=name, category="floor", collision_asset_path=store.put(name, [surface]), collision="surface"
    )


class _MeshStore:
    """Writes meshes below a scene's folder, equal ones once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] = set()
        self._paths: dict[bytes, str] = {}

    def put(self, name: str, surfaces: list[Surface]) -> str:
        """Write surfaces, Z up, as a GLB file, and return its path in the scene's folder."""
        digest = hashlib.sha256()
        for surface in surfaces:
            digest.update(repr((surface.rgba, surface.vertices.shape)).encode())
            for array in (surface.vertices, surface.faces, surface.texcoords, surface.image):
                digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        key = digest.digest()
        if key not in self._paths:
            stem = _unique(re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:80].strip(".") or "mesh", self._names)
            self._paths[key] = f"meshes/{stem}.glb"
            file = self._folder / self._paths[key]
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(file, _glb(surfaces))
            except OSError as error:
                raise UserError(f"{file}: cannot be written: {error.strerror}") from None
        return self._paths[key]


def _glb(surfaces: list[Surface]) -> bytes:
    alike: dict[Any, list[Surface]] = defaultdict(list)
    for surface in surfaces:
        alike[id(surface.image), surface.rgba].append(surface)
    scene = trimesh.Scene()
    for group in alike.values():
        mesh = _trimesh(joined(group))
        mesh.apply_transform(np.linalg.inv(Y_UP_TO_Z_UP))
        scene.add_geometry(mesh)
    content: bytes = scene.export(file_type="glb", include_normals=True)  # type: ignore[no-untyped-call]
    return content


def _trimesh(surface: Surface) -> Any:
    visual: Any = trimesh.visual
    linear = [_linear(channel) for channel in surface.rgba[:3]]
    material = visual.material.PBRMaterial(
        baseColorFactor=np.array([*linear, surface.rgba[3]]),
        baseColorTexture=None if surface.image is None else _photo(surface.image),
        metallicFactor=0.0,
        roughnessFactor=1.0,
        alphaMode="BLEND" if surface.rgba[3] < 1 else "OPAQUE",
        doubleSided=True,
    )
    uv = np.array([0, 1]) + surface.texcoords * [1, -1]
    return trimesh.Trimesh(
        surface.vertices,
        surface.faces,
        vertex_normals=surface.normals,
        visual=visual.TextureVisuals(uv=uv, material=material),
        process=False,
    )


def _photo(image: NDArray[np.uint8]) -> Image.Image:
    photo = Image.fromarray(image)
    photo.thumbnail((MAX_TEXTURE_SIDE, MAX_TEXTURE_SIDE))
    photo.format = "JPEG"  # tells trimesh how to write it: a PNG takes ten times as long to read
    return photo


def _linear(shown: float) -> float:
    """Return a channel as glTF has it, in linear light."""
    return shown / 12.92 if shown <= 0.04045 else math.pow((shown + 0.055) / 1.055, 2.4)
