"""A furnished house in Gazebo's layout, made of mesh models, and what its floor truly looks like."""

import math
from typing import NamedTuple

import numpy as np
import trimesh
from PIL import Image

ROOM_M, WALL_M, HEIGHT_M = 4.0, 0.1, 2.5
ROOMS = [(column, row) for row in range(2) for column in range(3)]
WIDTH_M, DEPTH_M = 3 * ROOM_M, 2 * ROOM_M
DOOR_M, LINTEL_M = 0.9, 2.0


class Block(NamedTuple):
    """An upright box that collides: its middle, half sizes, yaw, bottom and top in the world."""

    x: float
    y: float
    half_x: float
    half_y: float
    yaw: float
    bottom: float
    top: float

    def covers(self, x, y):
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        dx, dy = x - self.x, y - self.y
        return (abs(c * dx + s * dy) < self.half_x) & (abs(c * dy - s * dx) < self.half_y)


class Model(NamedTuple):
    """A model: what is seen, what collides (None: nothing), the boxes that it fills, and where it stands."""

    name: str
    visual: trimesh.Trimesh
    collision: trimesh.Trimesh | None
    boxes: list[tuple[tuple[float, float, float], tuple[float, float, float]]]
    pose: tuple[float, float, float, float]


def prism(outline, triangles, height, *, standing=False):
    """Return a closed prism over an outline (counter-clockwise); a standing one reaches along y."""
    low = np.column_stack([outline, np.zeros(len(outline))])
    high = low + np.array([0, 0, height])
    count = len(outline)
    sides = [(i, (i + 1) % count) for i in range(count)]
    faces = [tri[::-1] for tri in triangles] + [tuple(np.array(tri) + count) for tri in triangles]
    faces += [(a, b, b + count) for a, b in sides] + [(a, b + count, a + count) for a, b in sides]
    mesh = trimesh.Trimesh(np.concatenate([low, high]), faces, process=False)
    if standing:
        mesh.apply_transform(trimesh.transformations.rotation_matrix(math.pi / 2, [1, 0, 0]))
        mesh.apply_translation([0, height, 0])
    return mesh


def boxes_mesh(boxes):
    """Return boxes, each by two corners, as one mesh of several pieces."""
    parts = [
        trimesh.creation.box(np.subtract(high, low)).apply_translation(np.add(low, high) / 2)
        for low, high in boxes
    ]
    return trimesh.util.concatenate(parts)


def wall_with_door(length):
    """Return a wall in one piece along x, with an open door in its middle, and its boxes."""
    left, right = (length - DOOR_M) / 2, (length + DOOR_M) / 2
    outline = [
        (0, 0),
        (left, 0),
        (left, LINTEL_M),
        (right, LINTEL_M),
        (right, 0),
        (length, 0),
        (length, HEIGHT_M),
    ]
    outline.append((0, HEIGHT_M))
    triangles = [(0, 1, 2), (0, 2, 7), (2, 3, 7), (3, 6, 7), (3, 4, 5), (3, 5, 6)]
    mesh = prism(outline, triangles, WALL_M, standing=True)
    mesh.apply_translation([0, -WALL_M / 2, 0])
    half = WALL_M / 2
    boxes = [((0, -half, 0), (left, half, HEIGHT_M)), ((right, -half, 0), (length, half, HEIGHT_M))]
    return mesh, boxes


def corner_sofa(size, depth):
    """Return an L in one piece, whose hull would fill its inner corner, and its boxes."""
    outline = [(0, 0), (size, 0), (size, depth), (depth, depth), (depth, size), (0, size)]
    mesh = prism(outline, [(0, 1, 2), (0, 2, 3), (0, 3, 5), (3, 4, 5)], 0.7)
    return mesh, [((0, 0, 0), (size, depth, 0.7)), ((0, depth, 0), (depth, size, 0.7))]


def furniture(rng):
    """Return sets of furniture for the corners of rooms: (kind, boxes or mesh, where in the corner)."""
    width = 0.7 + 0.02 * rng.integers(6)
    table = [((0, 0, 0.68), (width, 0.5, 0.72))]
    table += [((x, y, 0), (x + 0.05, y + 0.05, 0.68)) for x in (0, width - 0.05) for y in (0, 0.45)]
    chair = [((0, 0, 0), (0.4, 0.4, 0.45)), ((0, 0.36, 0.45), (0.4, 0.4, 0.9))]
    shelf = [((0, 0, 0), (0.9, 0.3, 1.8))]
    cabinet = [((0, 0, 0), (0.5, 0.4, 0.6 + 0.02 * rng.integers(8)))]
    bed = [((0, 0, 0), (1.2, 0.95, 0.5))]
    stand = [((0, 0, 0), (0.35, 0.25, 0.4))]
    return [
        [("table", table, 0.1, 0.05), ("chair", chair, 0.1, 0.75), ("chair", chair, 0.7, 0.78)],
        [("sofa", corner_sofa(1.15, 0.45 + 0.01 * rng.integers(5)), 0.0, 0.0), ("stand", stand, 0.75, 0.8)],
        [("shelf", shelf, 0.05, 0.0), ("cabinet", cabinet, 0.0, 0.6)],
        [("bed", bed, 0.0, 0.0), ("stand", stand, 0.1, 1.0)],
    ]


class HouseBuilder:
    """Collects models, and numbers them."""

    def __init__(self, seed):
        self.models = []
        self._rng = np.random.default_rng(seed)

    def add(self, kind, made, pose, *, solid=True):
        mesh, boxes = made if isinstance(made, tuple) else (boxes_mesh(made), made)
        # What is seen of furniture is finer than what collides.
        visual = mesh.copy() if kind in ("wall", "inner_wall") else mesh.subdivide()
        name = f"{kind}_{len(self.models):02d}"
        self.models.append(Model(name, visual, mesh if solid else None, boxes if solid else [], pose))

    def add_walls(self):
        half = WALL_M / 2
        for y in (0, DEPTH_M):
            self.add("wall", [((-half, -half, 0), (WIDTH_M + half, half, HEIGHT_M))], (0, y, 0, 0))
        for x in (0, WIDTH_M):
            self.add("wall", [((-half, half, 0), (half, DEPTH_M - half, HEIGHT_M))], (x, 0, 0, 0))
        for row in range(2):
            for x in (ROOM_M, 2 * ROOM_M):
                pose = (x, row * ROOM_M + half, 0, math.pi / 2)
                self.add("inner_wall", wall_with_door(ROOM_M - WALL_M), pose)
        for column in range(3):
            self.add("inner_wall", wall_with_door(ROOM_M - WALL_M), (column * ROOM_M + half, ROOM_M, 0, 0))

    def furnish(self, x, y):
        self.add("rug", [((-0.6, -0.6, 0), (0.6, 0.6, 0.01))], (x, y, 0.001, 0.2), solid=False)
        self.add("picture", [((-0.3, 0, 1.5), (0.3, 0.03, 1.9))], (x - 1.2, y + 1.9, 0, 0))
        for corner, pieces in enumerate(furniture(self._rng)):
            turn = corner * math.pi / 2
            c, s = math.cos(turn), math.sin(turn)
            for kind, made, along, across in pieces:
                dx, dy = along - 1.95, across - 1.95  # from the corner at the lower left, turned
                self.add(kind, made, (x + c * dx - s * dy, y + s * dx + c * dy, 0, turn))


def models_of_house(seed=0):
    """Return the 80 models of a house of six rooms."""
    house = HouseBuilder(seed)
    house.add_walls()
    for column, row in ROOMS:
        house.furnish((column + 0.5) * ROOM_M, (row + 0.5) * ROOM_M)
    for column in range(3):
        house.add("lamp", [((-0.1, -0.1, 2.2), (0.1, 0.1, 2.5))], ((column + 0.5) * ROOM_M, 2.0, 0, 0))
    return house.models


def blocks_of(models):
    """Return what collides, as boxes in the world."""
    blocks = []
    for model in models:
        x, y, z, yaw = model.pose
        c, s = math.cos(yaw), math.sin(yaw)
        for low, high in model.boxes:
            (mx, my, _), (hx, hy, _) = np.add(low, high) / 2, np.subtract(high, low) / 2
            blocks.append(
                Block(x + c * mx - s * my, y + s * mx + c * my, hx, hy, yaw, z + low[2], z + high[2])
            )
    return blocks


def write_house(folder, models):
    """Write models/ and worlds/house.world into a folder, and return the world's file."""
    includes = []
    for index, model in enumerate(models):
        home = folder / "models" / model.name
        (home / "meshes").mkdir(parents=True)
        suffix = "dae" if index % 2 else "obj"
        visual = model.visual.copy()
        if index % 4 == 0:  # an OBJ file, with its material and image beside it
            uv = visual.vertices[:, :2]
            picture = Image.fromarray(np.full((32, 32, 3), (90 + index, 60, 200 - index), np.uint8))
            visual.visual = trimesh.visual.TextureVisuals(uv=uv, image=picture)
        else:
            visual.visual.face_colors = (160, 90 + index, 60, 255)
        visual.export(home / "meshes" / f"visual.{suffix}")
        shapes = [("visual", f"visual.{suffix}")]
        if model.collision is not None:
            model.collision.export(home / "meshes" / "collision.stl")
            shapes.append(("collision", "collision.stl"))
        geometries = "".join(
            f"<{tag} name='{tag}'><geometry><mesh><uri>model://{model.name}/meshes/{file}</uri></mesh></geometry></{tag}>"
            for tag, file in shapes
        )
        (home / "model.config").write_text(
            f"<?xml version='1.0'?><model><name>{model.name}</name><sdf version='1.6'>model.sdf</sdf></model>"
        )
        (home / "model.sdf").write_text(
            f"<?xml version='1.0'?>\n<sdf version='1.6'><model name='{model.name}'>\n<static>true</static>\n"
            f"<link name='link'>{geometries}</link>\n</model>\n</sdf>\n"
        )
        x, y, z, yaw = model.pose
        includes.append(
            f"<include><uri>model://{model.name}</uri><pose>{x} {y} {z} 0 0 {yaw}</pose></include>"
        )
    (folder / "worlds").mkdir()
    file = folder / "worlds" / "house.world"
    file.write_text(
        "<?xml version='1.0'?>\n<sdf version='1.6'>\n<world name='house'>\n<include><uri>model://sun</uri></include>\n"
        "<include><uri>model://ground_plane</uri></include>\n" + "\n".join(includes) + "\n</world>\n</sdf>\n"
    )
    return file
