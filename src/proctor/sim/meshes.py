"""What is drawn: the surfaces of one body, merged into one mesh per material.

MuJoCo draws its own boxes with hundreds of triangles each and cannot repeat a texture by the metre on all
their faces. Merged meshes with texture coordinates of our own do both better, with few draw calls.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np
import trimesh
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.scenes.frames import Frame
from proctor.scenes.meshes import Surface
from proctor.scenes.scene_config import Part, Texture
from proctor.scenes.textures import GRAINED, TILE_M, texture_image

Rgba = tuple[float, float, float, float]
ROUND_SIDES = 24
SMALLEST_AREA_M2 = 1e-9  # MuJoCo takes no smaller meshes

# For faces that look along x, y and z: which axes run right and down in the texture.
RIGHT_AXIS = np.array([1, 0, 0])
DOWN_AXIS = np.array([2, 2, 1])


class Painter:
    """Collects the surfaces of one body.

    Args:
        spec: The model that textures, materials and meshes are added to.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._triangles: dict[tuple[Texture | None, Rgba], list[tuple[Array, Array, Array]]] = defaultdict(
            list
        )

    def add_part(self, part: Part, frame: Frame) -> None:
        """Draw a primitive."""
        template = _template(part.shape)
        vertices = frame.points(template.corners)
        normals = template.normals @ frame.rotation.T
        texcoords = np.zeros((len(vertices), 2))
        if part.texture is not None:
            # Measured from the body's origin, so that the pieces of one wall continue each other's pattern.
            along_axes = vertices @ frame.rotation
            texcoords = _metric_texcoords(along_axes, template.facing, frame.size, part.texture)
        red, green, blue, *alpha = part.color
        rgba = (red, green, blue, alpha[0] if alpha else 1.0)
        self._triangles[part.texture, rgba].append((vertices, normals, texcoords))

    def draw_parts(self, body: Any, group: int) -> None:
        """Put all parts collected into the body."""
        drawings = {
            material: [np.concatenate(arrays) for arrays in zip(*pieces, strict=True)]
            for material, pieces in self._triangles.items()
        }
        # Small things first: they stand in front of walls and floors, whose hidden pixels then cost nothing.
        for (texture, rgba), arrays in sorted(drawings.items(), key=lambda drawing: _area_m2(drawing[1][0])):
            vertices, normals, texcoords = arrays
            image = None if texture is None else texture_image(texture)
            faces = np.arange(len(vertices)).reshape(-1, 3)
            surface = Surface(vertices, normals, texcoords, faces, rgba, image)
            self.draw(surface, body, group, image_name=texture)

    def draw(self, surface: Surface, body: Any, group: int, *, image_name: str | None = None) -> None:
        """Put one surface into the body.

        Args:
            surface: Vertices in the body's frame.
            body: An MjsBody.
            group: The geom group.
            image_name: Surfaces with the same image share it by this name.
        """
        spec, name = self._spec, f"surface{len(self._spec.meshes)}"
        if not add_shell(spec, name, surface):
            return
        material = spec.add_material(name=name, rgba=surface.rgba, specular=0.0, shininess=0.0)
        if surface.image is not None:
            add_texture(spec, surface.image, image_name or name)
            material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = image_name or name
        add_shell_geom(body, name, group, material=name)


def add_texture(spec: Any, image: NDArray[np.uint8], name: str) -> None:
    """Add a picture by a name, unless it is there."""
    if spec.texture(name) is None:
        rows, columns, channels = image.shape
        texture = spec.add_texture(
            name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, width=columns, height=rows, nchannel=channels
        )
        texture.data = image.tobytes()


def add_shell(spec: Any, name: str, surface: Surface) -> bool:
    """Add a surface as a mesh, and tell whether it was large enough to be one."""
    vertices, faces = surface.vertices, surface.faces
    if _area_m2(vertices[faces].reshape(-1, 3)) < SMALLEST_AREA_M2:
        return False
    # A mesh has four vertices, even if it needs three.
    every = np.arange(max(len(vertices), 4)) % len(vertices)
    spec.add_mesh(
        name=name,
        uservert=vertices[every].ravel(),
        usernormal=surface.normals[every].ravel(),
        usertexcoord=surface.texcoords[every].ravel(),
        userface=faces.ravel(),
        # Surfaces carry no mass, and open ones have no volume to compute it from.
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
    )
    return True


def add_shell_geom(body: Any, name: str, group: int, **options: Any) -> None:
    """Put a mesh that collides with nothing into a body."""
    kind = mujoco.mjtGeom.mjGEOM_MESH
    body.add_geom(type=kind, meshname=name, group=group, contype=0, conaffinity=0, mass=0.0, **options)


class _Template(NamedTuple):
    corners: Array  # (3 * faces, 3), of a shape of size 1
    normals: Array  # (3 * faces, 3)
    facing: NDArray[np.int64]  # (3 * faces,): the axis that the triangle looks along


@cache
def _template(shape: str) -> _Template:
    if shape == "box":
        mesh = trimesh.creation.box()
    elif shape == "cylinder":
        mesh = trimesh.creation.cylinder(radius=0.5, height=1.0, sections=ROUND_SIDES)
    else:
        mesh = trimesh.creation.uv_sphere(radius=0.5, count=(ROUND_SIDES // 3, ROUND_SIDES * 2 // 3))
    mesh = mesh.smooth_shaded
    return _Template(
        mesh.triangles.reshape(-1, 3),
        mesh.vertex_normals[mesh.faces].reshape(-1, 3),
        np.repeat(np.abs(mesh.face_normals).argmax(axis=1), 3),
    )


def _area_m2(corners: Array) -> float:
    a, b, c = corners[::3], corners[1::3], corners[2::3]
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)


def _metric_texcoords(points: Array, facing: NDArray[np.int64], size: Array, texture: Texture) -> Array:
    """Return texture coordinates that repeat by the metre on every face."""
    right, down = RIGHT_AXIS[facing], DOWN_AXIS[facing]
    if texture in GRAINED:
        turned = size[down] > size[right]
        right, down = np.where(turned, down, right), np.where(turned, right, down)
    index = np.arange(len(points))
    return np.asarray(np.stack([points[index, right], -points[index, down]], axis=1) / TILE_M[texture])
