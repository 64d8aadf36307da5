"""What furniture is finished with: another material, a top that mirrors."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.scenes.meshes import Surface
from proctor.scenes.scene_config import Texture
from proctor.scenes.textures import GRAINED, TILE_M, texture_image
from proctor.scenes.thing import Solid, Thing
from proctor.sim.contacts import Group
from proctor.sim.look import Look, Material, Shine
from proctor.sim.meshes import add_texture
from proctor.sim.room import Room

FITTING_SHARE = 0.1
"""What has less of the whole area is a fitting, such as a handle, and stays as it is."""
SHADES = (0.75, 1.25)
"""How much darker and brighter than the top other parts may be."""
MIRROR, MIRROR_M, EDGE_M, ABOVE_M = "#mirror", 0.001, 0.003, 1e-4
MIRROR_QUADS = 24
"""Light is computed at corners, so highlights are only seen on what has many."""
QUARTER_TURN = [0.5**0.5, 0.0, 0.0, 0.5**0.5]
RIGHT_AXIS, DOWN_AXIS = np.array([1, 0, 0]), np.array([2, 2, 1])


def covered(surfaces: list[Surface], material: Material) -> list[Surface]:
    """Return the surfaces of a piece of furniture in another material."""
    areas = [float(np.linalg.norm(_across(surface), axis=1).sum()) / 2 for surface in surfaces]
    top = max(surfaces, key=lambda surface: surface.vertices[:, 2].max())
    image = None if material.texture is None else texture_image(material.texture)
    finished = []
    for surface, area in zip(surfaces, areas, strict=True):
        if surface is not top and area < FITTING_SHARE * sum(areas):
            finished.append(surface)
            continue
        shade = np.clip(np.mean(surface.rgba[:3]) / max(1e-3, np.mean(top.rgba[:3])), *SHADES)
        red, green, blue = np.minimum(1.0, shade * np.array(material.color)).tolist()
        texcoords = surface.texcoords if material.texture is None else _texcoords(surface, material.texture)
        finished.append(surface._replace(image=image, texcoords=texcoords, rgba=(red, green, blue, 1.0)))
    return finished


def flat_top(thing: Thing) -> Solid | None:
    """Return the board that is the top of a piece of furniture, or None if that is not a level rectangle."""
    highest = max(thing.solids, key=lambda solid: float(solid.points[:, 2].max()))
    return highest if highest.shape == "box" and highest.rotation[2, 2] > 1 - 1e-6 else None


def add_top_mirror(spec: Any, body: Any, top: Solid, material: Material, shine: Shine) -> None:
    """Lay a sheet that mirrors onto the top of a piece of furniture that was `covered`.

    MuJoCo mirrors in the upper face of a box, of one box, and in no mesh.
    """
    size, quat = top.size[:2] - 2 * EDGE_M, [1.0, 0.0, 0.0, 0.0]
    if material.texture in GRAINED and size[1] > size[0]:
        size, quat = size[::-1], QUARTER_TURN  # the picture's rows lie along the box's x
    upper = top.translation + np.array([0.0, 0.0, top.size[2] / 2 + ABOVE_M])
    _add_mirror(spec, body, material, shine, size=size, upper=upper, quat=quat)


def add_floor_mirror(spec: Any, room: Room, look: Look) -> None:
    """Draw the floor of a room as one that mirrors."""
    size, upper = np.full(2, 2 * room.half_m), np.array([room.x, room.y, 0.0])
    _add_mirror(
        spec, spec.worldbody, look.floor, look.shine, size=size, upper=upper, quat=[1.0, 0.0, 0.0, 0.0]
    )


def _add_mirror(
    spec: Any, body: Any, material: Material, shine: Shine, *, size: Array, upper: Array, quat: list[float]
) -> None:
    made = spec.add_material(name=MIRROR, rgba=(*material.color, 1.0), **shine._asdict())
    if material.texture is not None:
        add_texture(spec, texture_image(material.texture), material.texture)
        made.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = material.texture
        made.texuniform, made.texrepeat = True, [2 / TILE_M[material.texture]] * 2
    spec.visual.quality.numquads = MIRROR_QUADS
    body.add_geom(
        name=MIRROR,
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[*size / 2, MIRROR_M / 2],
        pos=upper - [0.0, 0.0, MIRROR_M / 2],
        quat=quat,
        material=MIRROR,
        group=Group.DRAWN,
        contype=0,
        conaffinity=0,
        mass=0.0,
    )


def _across(surface: Surface) -> Array:
    """Return vectors across the triangles, as long as twice their areas."""
    a, b, c = (surface.vertices[surface.faces[:, corner]] for corner in range(3))
    return np.cross(b - a, c - a)


def _texcoords(surface: Surface, texture: Texture) -> Array:
    """Return texture coordinates that repeat by the metre, grain along what is long of most of the area."""
    axis = np.abs(surface.normals).argmax(axis=1)
    right, down = RIGHT_AXIS[axis], DOWN_AXIS[axis]
    if texture in GRAINED:
        turned = _is_longer_down(surface)[axis]
        right, down = np.where(turned, down, right), np.where(turned, right, down)
    every = np.arange(len(axis))
    points = surface.vertices
    return np.asarray(np.stack([points[every, right], -points[every, down]], axis=1) / TILE_M[texture])


def _is_longer_down(surface: Surface) -> NDArray[np.bool_]:
    """Tell for the faces that look along x, y and z whether most of their area is longer down than right."""
    across, corners = _across(surface), surface.vertices[surface.faces]
    extents = corners.max(axis=1) - corners.min(axis=1)
    lengths = np.zeros((3, 3))
    np.add.at(lengths, np.abs(across).argmax(axis=1), extents * np.linalg.norm(across, axis=1)[:, np.newaxis])
    every = np.arange(3)
    return np.asarray(lengths[every, DOWN_AXIS] > lengths[every, RIGHT_AXIS])
