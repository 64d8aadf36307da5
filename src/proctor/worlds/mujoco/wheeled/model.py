"""Turns a scene and a robot into a MuJoCo model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import ConvexHull

from proctor.core.errors import InvalidFile
from proctor.core.types import Array, Vector3
from proctor.robots.spec import RobotSpec
from proctor.scenes.frames import Frame, frame_of, placed_parts
from proctor.scenes.meshes import convex_body
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Light, Part, SceneObject
from proctor.scenes.solids import joined
from proctor.scenes.surface_grid import CELL_M, FloorGrid, Mask
from proctor.scenes.thing import FILLED
from proctor.worlds.mujoco.contacts import FLOOR, SOLID, Group
from proctor.worlds.mujoco.render.meshes import Painter, add_shell, add_shell_geom
from proctor.worlds.mujoco.wheeled.robot_body import add_robot

TIMESTEP_S = 0.01
DENSITY_KG_M3 = 300.0
MAX_LIGHTS = 7  # of OpenGL's eight, one is the headlight
# From above and from below: without them all sides of a thing have one brightness.
DAYLIGHT = (
    Light(type="directional", direction=Vector3(0.45, 0.3, -0.85), intensity=0.2),
    Light(type="directional", direction=Vector3(0.1, 0.2, 1.0), intensity=0.35),
)

ROBOT = "robot"
SLICE, SLICE_M = "#slice", 0.02
SCANNED = "#scanned"

SHAPES = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
}


def build_model(
    scene: Scene,
    robot: RobotSpec,
    *,
    floor_z: float = 0.0,
    drawn: bool = True,
    timestep_s: float = TIMESTEP_S,
    robots: Sequence[str] = (ROBOT,),
) -> tuple[Any, Any]:
    """Return the MjModel of a scene with robots, all alike, and the MjSpec to add and remove robots.

    Geoms that collide are called `<object>#<number>`. The robots stand at `floor_z`, one of the floors of a
    house that is a mesh. Without `drawn`, surfaces that are only seen are left out: they take most of the
    time to prepare. Raises InvalidFile if an object cannot be built.
    """
    builder = _Builder(scene, robot, floor_z, drawn, robots)
    builder.spec.option.timestep = timestep_s
    return builder.model(), builder.spec


@dataclass
class _Builder:
    scene: Scene
    robot: RobotSpec
    floor_z: float
    drawn: bool
    robot_names: Sequence[str]

    def __post_init__(self) -> None:
        self.house = self.scene.house(self.robot.height_band_m)
        self.is_lit = False  # by its own textures
        self.spec = mujoco.MjSpec()
        self.painter = Painter(self.spec)
        self.painters = [self.painter]  # kept, since textures are called by the ids of their images

    def model(self) -> Any:
        self._set_options()
        self._add_sky_and_ground()
        for name in self.robot_names:
            add_robot(self.spec, name, self.robot, floor_z=self.floor_z)
        for index, item in enumerate(self.scene.objects):
            place = f"objects[{index}]"
            try:
                self._add_object(item)
            except ValueError as error:  # such as a name that MuJoCo has given away
                raise self._invalid(f"MuJoCo cannot build it: {error}", place) from None
        self._add_house()
        if self.drawn:
            self.painter.draw_parts(self.spec.worldbody, Group.DRAWN)
        self._add_lights()
        try:
            return self.spec.compile()
        except ValueError as error:
            raise self._invalid(f"MuJoCo cannot build it: {error}") from None

    def _invalid(self, problem: str, place: str = "") -> InvalidFile:
        return InvalidFile(self.scene.file or self.scene.config.scene_name, problem, place=place)

    def _set_options(self) -> None:
        spec, camera = self.spec, self.robot.camera
        # A world that blows up must be noticed, not quietly started anew.
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
        visual = spec.visual
        visual.global_.offwidth, visual.global_.offheight = camera.width, camera.height
        visual.quality.offsamples = 0  # resolving samples costs more than the whole picture
        visual.quality.shadowsize = 0
        # Clipping planes are multiples of the extent, which otherwise depends on the scene.
        spec.stat.extent = 1.0
        # In millimetres, 16 bits hold no more than 65 m.
        visual.map.znear, visual.map.zfar = camera.near_m, min(2 * camera.far_m, 65.0)

    def _add_sky_and_ground(self) -> None:
        spec = self.spec
        spec.add_texture(
            name="sky",
            type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
            rgb1=[0.95, 0.97, 1.0],
            rgb2=[0.55, 0.72, 0.92],
            width=32,
            height=192,
        )
        # A plane collides infinitely, whatever its size. Its tiles take long to make, and longer to draw.
        spec.worldbody.add_geom(
            name="floor#",
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[1, 1, 1],
            pos=[0, 0, self.floor_z],
            group=Group.UNSEEN,
            contype=FLOOR,
            conaffinity=FLOOR,
        )
        # Drawn a little lower than it is, so that the floors of rooms, which may lie at 0, win.
        ground = Part(shape="box", size=Vector3(200, 200, 1), color=(0.55, 0.6, 0.5))
        below = 0.0 if self.house is None else self.house.lowest_z
        at = np.array([0, 0, below - 0.502])
        self.painter.add_part(ground, Frame(np.array([200, 200, 1]), np.eye(3), at))

    def _add_lights(self) -> None:
        headlight = self.spec.visual.headlight
        headlight.ambient, headlight.diffuse, headlight.specular = [0.62] * 3, [0.2] * 3, [0.0] * 3
        most = 0.6
        if self.is_lit and not self.scene.config.lights:
            headlight.ambient = [0.8] * 3  # beside the light in the textures
            headlight.diffuse = [0.1] * 3
            most = 0.25
        lights = sorted(self.scene.config.lights, key=lambda light: -light.intensity)[:MAX_LIGHTS] or DAYLIGHT
        # Without shadows every lamp shines into every room: dimmed together, so that nothing is washed out.
        share = min(1.0, most / max(1e-9, sum(light.intensity for light in lights)))
        kinds = mujoco.mjtLightType  # the renderer knows no point lights, but spots that shine all around
        for light in lights:
            self.spec.worldbody.add_light(
                type=kinds.mjLIGHT_DIRECTIONAL if light.type == "directional" else kinds.mjLIGHT_SPOT,
                cutoff=180.0,
                exponent=0.0,
                pos=light.translate.array(),
                dir=light.direction.array(),
                diffuse=share * light.intensity * np.array(light.color),
                specular=[0, 0, 0],
                castshadow=False,
            )

    def _add_object(self, item: SceneObject) -> None:
        frame = frame_of(item)
        body, painter = self.spec.worldbody, self.painter
        if item.rigid_body_type in ("dynamic", "kinematic"):
            body = body.add_body(
                name=item.name, pos=frame.translation, quat=quaternion_of_matrix(frame.rotation)
            )
            if item.rigid_body_type == "dynamic":
                body.add_freejoint()
            else:
                body.mocap = True  # stands still until `World.place` moves it
            frame = Frame(frame.size, np.eye(3), np.zeros(3))
            painter = Painter(self.spec)
            self.painters.append(painter)
        if item.collision == "surface":
            if self.drawn:
                self._draw_house(item, frame)
        elif item.solid_mesh_path is None:
            placed = placed_parts(item, frame)
            if item.asset_path is not None:
                self._draw_mesh(item, frame, painter)
            else:
                for part, at in placed:
                    painter.add_part(part, at)
            self._add_parts(item, body, placed)
        else:
            self._add_mesh(item, body, frame, painter)
        if painter is not self.painter and self.drawn:
            painter.draw_parts(body, Group.DRAWN)

    def _add_parts(self, item: SceneObject, body: Any, placed: Sequence[tuple[Part, Frame]]) -> None:
        if item.rigid_body_type == "none":
            return
        volume_m3 = sum(FILLED[part.shape] * float(at.size.prod()) for part, at in placed if part.collision)
        for index, (part, at) in enumerate(placed):
            if part.collision:
                half = at.size / 2
                body.add_geom(
                    type=SHAPES[part.shape],
                    size=[half[0], half[2], 0] if part.shape == "cylinder" else half,
                    pos=at.translation,
                    quat=quaternion_of_matrix(at.rotation),
                    **self._solid(item, index, Group.SCANNED, volume_m3),
                )

    def _add_mesh(self, item: SceneObject, body: Any, frame: Frame, painter: Painter) -> None:
        asset = self.scene.solid_mesh(item).asset
        if item.collision_asset_path is None:
            for surface in asset.surfaces:
                self.painter.draw(frame.surface(surface), body, Group.DRAWN_AND_SCANNED)
        else:
            self._draw_mesh(item, frame, painter)
            name = f"{item.name}{SCANNED}"
            if add_shell(self.spec, name, frame.surface(joined(asset.surfaces))):
                add_shell_geom(body, name, Group.SCANNED)
        bodies = [convex_body(points * frame.size) for points in asset.pieces]
        hulls = [corners @ frame.rotation.T + frame.translation for corners in bodies]
        volume_m3 = sum(float(ConvexHull(hull).volume) for hull in hulls)
        for index, hull in enumerate(hulls):
            name = f"{item.name}#{index}"
            self.spec.add_mesh(
                name=name, uservert=hull.ravel(), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
            )
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_MESH,
                meshname=name,
                **self._solid(item, index, Group.UNSEEN, volume_m3),
            )

    def _draw_mesh(self, item: SceneObject, frame: Frame, painter: Painter) -> None:
        """Draw a mesh that nothing bumps into and no lidar sees, since there are parts for that."""
        if not self.drawn or item.asset_path is None:
            return
        for surface in self.scene.mesh(item).asset.drawn:
            painter.add_surface(frame.surface(surface))

    def _draw_house(self, item: SceneObject, frame: Frame) -> None:
        """Draw a house. What it collides as depends on all of its meshes, and comes later."""
        if item.asset_path is None:
            return
        surfaces = self.scene.mesh(item).surfaces
        for surface in surfaces:
            self.painter.draw(frame.surface(surface), self.spec.worldbody, Group.DRAWN)
        # Textures of scans hold the light of the day they were taken.
        pictured = sum(len(surface.faces) for surface in surfaces if surface.image is not None)
        self.is_lit |= 2 * pictured > sum(len(surface.faces) for surface in surfaces)

    def _add_house(self) -> None:
        """Put the floor of a house that the robot stands on, as boxes to bump into and slices to scan."""
        if self.house is None:
            return
        robot, body = self.robot, self.spec.worldbody
        half_m = robot.height_m / 2
        boxes = boxes_of_floor(self.house.grid(self.floor_z), self.house.owners(self.floor_z))
        for index, box in enumerate(boxes):
            low, high = np.array(box.low_world), np.array(box.high_world)
            body.add_geom(
                name=f"{'#the end of the floor' if box.is_void else self.house.names[box.owner]}#{index}",
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=[*(high - low) / 2, half_m],
                pos=[*(high + low) / 2, self.floor_z + half_m],
                group=Group.UNSEEN,
                contype=SOLID,
                conaffinity=SOLID,
            )
        # The lidar never leaves its plane: it sees little of the house, and that quicker in small pieces.
        lidar_z = self.floor_z + robot.lidar.height_m
        for index, surface in enumerate(self.house.slices(lidar_z - SLICE_M, lidar_z + SLICE_M)):
            if add_shell(self.spec, f"{SLICE}{index}", surface):
                add_shell_geom(body, f"{SLICE}{index}", Group.SCANNED)

    def _solid(self, item: SceneObject, index: int, group: Group, volume_m3: float) -> dict[str, Any]:
        """Return what all colliding geoms have in common."""
        bits = SOLID | FLOOR if item.rigid_body_type == "dynamic" else SOLID
        density = DENSITY_KG_M3 if item.mass is None else item.mass / volume_m3
        return {
            "name": f"{item.name}#{index}",
            "group": group,
            "contype": bits,
            "conaffinity": bits,
            "density": density,
        }


def quaternion_of_matrix(rotation: Array) -> Array:
    """Return the wxyz quaternion of a rotation matrix."""
    wxyz = np.empty(4)
    mujoco.mju_mat2Quat(wxyz, rotation.ravel())
    return wxyz


class Box(NamedTuple):
    """A rectangle on the floor."""

    low_world: tuple[float, float]
    high_world: tuple[float, float]
    is_void: bool
    """It stands where there is no floor, and not for a thing."""
    owner: int = 0
    """The mesh that it stands for, of several."""


def boxes_of_floor(grid: FloorGrid | None, owners: NDArray[np.int32] | None = None) -> list[Box]:
    """Return boxes that cover the blocked cells of a floor as far as a robot can come near them.

    They overlap, and reach into other blocked cells where that makes them larger, but never into free ones,
    nor into those of another mesh, if `owners` says to which mesh each obstacle cell belongs.
    """
    if grid is None:
        return []
    blocked = grid.blocked
    # Cells further than this from where a robot can be need no box.
    near_free = ndimage.binary_dilation(~blocked, np.ones((3, 3)), iterations=2)
    origin_x, origin_y = grid.origin_world
    boxes = []
    for is_void, owner, cells in _kinds_of_cells(grid, owners):
        wanted = cells & near_free
        reach = blocked
        if owners is not None and not is_void:
            reach = blocked & (~grid.obstacle | (owners == owner))
        for row, column in np.argwhere(wanted).tolist():
            if wanted[row, column]:
                wide, high = _grow(reach, row, column), _grow(reach.T, column, row)
                bottom, top, left, right = max(wide, (*high[2:], *high[:2]), key=_size)
                wanted[bottom:top, left:right] = False
                low_world = (origin_x + left * CELL_M, origin_y + bottom * CELL_M)
                high_world = (origin_x + right * CELL_M, origin_y + top * CELL_M)
                boxes.append(Box(low_world, high_world, is_void, owner))
    return boxes


def _kinds_of_cells(grid: FloorGrid, owners: NDArray[np.int32] | None) -> Iterator[tuple[bool, int, Mask]]:
    """Yield the cells that boxes are made of: whether there is no floor, of which mesh, and where."""
    if owners is None:
        yield False, 0, grid.obstacle
    else:
        for owner in np.unique(owners[grid.obstacle]).tolist():
            yield False, owner, grid.obstacle & (owners == owner)
    yield True, 0, grid.void & ~grid.obstacle


def _size(rectangle: tuple[int, int, int, int]) -> int:
    bottom, top, left, right = rectangle
    return (top - bottom) * (right - left)


def _grow(blocked: Mask, row: int, column: int) -> tuple[int, int, int, int]:
    """Return the blocked rectangle around a cell that is first as wide, then as high as possible."""
    left, right = _run(blocked[row, :], column)
    bottom, top = _run(np.asarray(blocked[:, left:right].all(axis=1)), row)
    return bottom, top, left, right


def _run(line: Mask, at: int) -> tuple[int, int]:
    """Return the range of set cells around one of them."""
    free = np.flatnonzero(~line)
    after = int(np.searchsorted(free, at))
    first = int(free[after - 1]) + 1 if after else 0
    return first, int(free[after]) if after < len(free) else len(line)
