"""A scene with all that is made of it: meshes, floors, maps and distances.

`Scene.load` is the one place that reads scene files. It returns the same object as long as the content of the
scene file and of its meshes is the same, so whatever is made of a scene can be cached by the object.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from threading import RLock

import msgspec

from proctor.core.documents import read_packed, unpack
from proctor.core.errors import InvalidFile, UserError
from proctor.core.interfaces import DistanceFn
from proctor.core.types import Vector3
from proctor.core.watched_file import WatchedFile
from proctor.maps.grid_map import GridMap
from proctor.robots.spec import standard_robot
from proctor.scenes.frames import frame_of
from proctor.scenes.geodesics import geodesic_on, has_path
from proctor.scenes.mesh_files import MESH_SUFFIXES, folder_of_scene, missing_notes
from proctor.scenes.mesh_house import MeshHouse
from proctor.scenes.meshes import MeshFile, find_frame
from proctor.scenes.scene_config import SceneConfig, SceneObject, asset_file, parse_scene
from proctor.scenes.scene_map import draw_map

MAX_SCENES = 128  # a generated house takes 0.4 MB
MAX_BYTES = 2**29
"""Of meshes and maps of all loaded scenes. The latest keeps its own, whatever their size."""

_LOADED: OrderedDict[Path, Scene] = OrderedDict()  # the longest unused first
_LOCK = RLock()
_REACHABLE: dict[tuple[str, Vector3, Vector3], bool] = {}
"""By digest, start and goal: asked twice for each episode of a dataset, which may have more scenes."""


class Scene:
    """A world as data. `file` is needed if objects have meshes, which are found beside it."""

    def __init__(self, config: SceneConfig, file: Path | None = None) -> None:
        self.config, self.file = config, file
        self._files: list[WatchedFile] = []  # the scene file; meshes watch themselves
        self._meshes: dict[str, MeshFile] = {}  # by the paths that objects give; links may share a file
        self._houses: dict[tuple[float, float], MeshHouse | None] = {}
        self._maps: dict[tuple[float, tuple[float, float]], GridMap] = {}
        if file is not None:
            self._find_meshes(file)

    @classmethod
    def load(cls, file: Path) -> Scene:
        """Read and check a scene file, or a mesh file that is a whole house, once per process and content."""
        with _LOCK:
            is_latest = bool(_LOADED) and next(reversed(_LOADED)) == file
            scene = _LOADED.pop(file, None)
            if scene is not None and scene.has_changed():
                scene.release()
                scene = None
            scene = _LOADED[file] = scene or cls._read(file)
            if not is_latest:
                _limit_memory()
            return scene

    @classmethod
    def _read(cls, file: Path) -> Scene:
        if file.suffix.lower() in MESH_SUFFIXES:
            return cls._of_mesh(file)
        watched = WatchedFile(file)
        scene = cls(parse_scene(unpack(watched.note(read_packed(file)), file), file), file)
        scene._files.append(watched)
        for mesh_path, place in scene._mesh_places():
            if not scene._meshes[mesh_path].path.is_file():
                raise InvalidFile(file, f"'{mesh_path}' does not exist", place=place)
        return scene

    @classmethod
    def _of_mesh(cls, file: Path) -> Scene:
        """Return the scene that one would write for a mesh: what it leaves open is found out."""
        if not file.is_file():
            raise InvalidFile(file, "no such file")
        mesh = MeshFile(file, folder_of_scene(file), invalid=partial(InvalidFile, file))
        try:
            frame = find_frame(mesh)
            house = SceneObject(
                name=file.stem,
                asset_path=file.name,
                rotate=Vector3(frame.rotate_x_deg, 0.0, 0.0),
                scale=Vector3(frame.scale, frame.scale, frame.scale),
                collision="surface",
            )
        except ValueError as error:
            raise InvalidFile(file, str(error)) from None
        scene = cls(SceneConfig(scene_name=file.stem, objects=[house], notes=frame.notes))
        scene.file, scene._meshes[file.name] = file, mesh
        return scene

    def _find_meshes(self, file: Path) -> None:
        root, by_file = folder_of_scene(file), dict[Path, MeshFile]()
        solid = {asset_file(file, str(i.solid_mesh_path)) for i in self.objects if collides_as_hulls(i)}
        for mesh_path, place in self._mesh_places():
            if mesh_path not in self._meshes:
                path, invalid = asset_file(file, mesh_path), partial(InvalidFile, file, place=place)
                mesh = MeshFile(path, root, solid=path in solid, invalid=invalid)
                self._meshes[mesh_path] = by_file.setdefault(path, mesh)

    def _mesh_places(self) -> Iterator[tuple[str, str]]:
        """Return the mesh files that objects name, and where in the scene file they do."""
        for index, item in enumerate(self.objects):
            for key in ("asset_path", "collision_asset_path"):
                if (mesh_path := getattr(item, key)) is not None:
                    yield mesh_path, f"objects[{index}].{key}"

    @property
    def objects(self) -> list[SceneObject]:
        """All objects in their order."""
        return self.config.objects

    @cached_property
    def digest(self) -> str:
        """A hash of the content: of what the scene file says, and of the mesh files that it names."""
        digest = hashlib.sha256(msgspec.json.encode(self.config))
        for _, mesh in sorted(self._meshes.items()):
            digest.update(bytes.fromhex(mesh.digest))
        return digest.hexdigest()

    def with_objects(self, objects: list[SceneObject]) -> Scene:
        """Return this scene with other objects, which use the same meshes."""
        other = Scene(msgspec.structs.replace(self.config, objects=objects))
        other.file, other._meshes = self.file, self._meshes
        return other

    def mesh(self, item: SceneObject) -> MeshFile:
        """Return the mesh that an object is drawn from."""
        return self._mesh(item, item.asset_path)

    def solid_mesh(self, item: SceneObject) -> MeshFile:
        """Return the mesh that an object is bumped into, scanned and mapped from."""
        return self._mesh(item, item.solid_mesh_path)

    def _mesh(self, item: SceneObject, mesh_path: str | None) -> MeshFile:
        if self.file is None:
            raise UserError(f"object '{item.name}' has a mesh: its scene's file must be given, too")
        return self._meshes[str(mesh_path)]

    def mesh_files(self) -> list[Path]:
        """Return the mesh files of all objects, in their order."""
        return [self._meshes[mesh_path].path for mesh_path, _ in self._mesh_places()]

    def missing_file_notes(self) -> list[str]:
        """Return a sentence for each mesh that is drawn and names images or materials that are not there."""
        meshes = dict.fromkeys(self.mesh(item) for item in self.objects if item.asset_path is not None)
        return [note for mesh in meshes for note in missing_notes(mesh.path, mesh.root)]

    def house(self, height_band_m: tuple[float, float] | None = None) -> MeshHouse | None:
        """Return the house that the `surface` objects make up, None if there are none.

        What reaches into the height band above a floor (by default the standard base's) blocks the robot.
        """
        band_m = height_band_m or standard_robot().height_band_m
        if band_m not in self._houses:
            placed = [item for item in self.objects if item.collision == "surface"]
            meshes = {item.name: frame_of(item).points(self.solid_mesh(item).triangles()) for item in placed}
            try:
                self._houses[band_m] = MeshHouse(meshes, band_m) if placed else None
            except ValueError as error:
                raise InvalidFile(str(self.file), str(error)) from None
        return self._houses[band_m]

    def floor_near(self, at: Vector3 | float | None = None) -> float:
        """Return the height of the floor that a point or a height lies on: 0, unless the scene is a mesh.

        None means the lowest floor.
        """
        house = self.house()
        return 0.0 if house is None else house.floor_near(at)

    def map(
        self, floor_z: float | None = None, *, height_band_m: tuple[float, float] | None = None
    ) -> GridMap:
        """Return the map of what a robot can bump into, in cells of 0.05 m.

        `floor_z` is a height that `floor_near` returned, by default the lowest. Only what reaches into the
        height band above it (by default the standard base's) is an obstacle. Raises UserError if the scene
        is too large for a map.
        """
        band_m = height_band_m or standard_robot().height_band_m
        key = (self.floor_near() if floor_z is None else floor_z, band_m)
        if key not in self._maps:
            self._maps[key] = draw_map(self, *key)
        return self._maps[key]

    def map_at(self, at: Vector3 | float | None) -> GridMap:
        """Return the map of the floor that a point or a height lies on."""
        return self.map(self.floor_near(at))

    def geodesic(self, start: Vector3, goal: Vector3) -> DistanceFn | None:
        """Return the length of shortest paths on the map; None where it does not connect start and goal."""
        grid = self._map_of_both(start, goal)
        return None if grid is None else geodesic_on(grid, start, goal)

    def is_reachable(self, start: Vector3, goal: Vector3) -> bool:
        """Tell whether a robot on wheels can get from start to goal, as far as a map can tell."""
        key = (self.digest, start, goal)
        if key not in _REACHABLE:
            grid = self._map_of_both(start, goal)
            _REACHABLE[key] = grid is not None and has_path(grid, start, goal)
        return _REACHABLE[key]

    def _map_of_both(self, start: Vector3, goal: Vector3) -> GridMap | None:
        """Return the map that shows both start and goal, None if they lie on different floors."""
        floor_z = self.floor_near(start)
        if floor_z != self.floor_near(goal):
            return None
        return self.map(floor_z).covering((start.x, start.y), (goal.x, goal.y))

    def size_bytes(self) -> int:
        """Return how much memory meshes, houses and maps take."""
        houses = [house.size_bytes() for house in self._houses.values() if house is not None]
        maps = [grid.size_bytes() for grid in self._maps.values()]
        return sum(houses + maps + [mesh.size_bytes() for mesh in set(self._meshes.values())])

    def forget_searches(self) -> None:
        """Free the memory of what was searched on its maps."""
        self._maps = {key: grid.without_searches() for key, grid in self._maps.items()}

    def release(self) -> None:
        """Free the memory of meshes, houses and maps; they are made again if somebody asks for them."""
        self._houses, self._maps = {}, {}
        for mesh in self._meshes.values():
            mesh.release()

    def has_changed(self) -> bool:
        """Tell whether the scene file or a mesh has another content than when it was read."""
        return any(file.has_changed() for file in {*self._files, *self._meshes.values()})


def collides_as_hulls(item: SceneObject) -> bool:
    """Tell whether an object is a mesh that collides as the convex hulls of its pieces."""
    return item.solid_mesh_path is not None and item.collision == "hull"


def _limit_memory() -> None:
    while len(_LOADED) > MAX_SCENES:
        _LOADED.popitem(last=False)[1].release()
    used_bytes = 0
    for index, scene in enumerate(reversed(_LOADED.values())):
        if index == 8:  # what was searched on the maps takes ten times the memory of the maps
            scene.forget_searches()
        used_bytes += scene.size_bytes()
        if index and used_bytes > MAX_BYTES:
            scene.release()
