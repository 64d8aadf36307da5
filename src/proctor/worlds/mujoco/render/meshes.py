"""The surfaces of one body, merged into one drawn mesh per material.

MuJoCo draws its own boxes with hundreds of triangles each and cannot repeat a texture by the metre on all
their faces. Merged meshes with texture coordinates of our own do both better, with few draw calls.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.scenes.frames import Frame
from proctor.scenes.meshes import Surface
from proctor.scenes.part_surfaces import surfaces_of_parts
from proctor.scenes.scene_config import Part
from proctor.scenes.solids import joined

SMALLEST_AREA_M2 = 1e-9  # MuJoCo takes no smaller meshes


class Painter:
    """Collects the surfaces of one body; adds textures, materials and meshes to the MjSpec."""

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._parts: list[tuple[Part, Frame]] = []
        self._surfaces: dict[tuple[int, tuple[float, ...]], list[Surface]] = defaultdict(list)

    def add_part(self, part: Part, frame: Frame) -> None:
        """Draw a primitive."""
        self._parts.append((part, frame))

    def add_surface(self, surface: Surface) -> None:
        """Draw a surface together with all others of its material, those with the same image array."""
        self._surfaces[id(surface.image), surface.rgba].append(surface)

    def draw_parts(self, body: Any, group: int) -> None:
        """Put all that was collected into the body."""
        drawings: list[tuple[Surface, str | None]] = [*surfaces_of_parts(self._parts)]
        drawings += [(joined(alike), f"image{image}") for (image, _), alike in self._surfaces.items()]
        # Small things first: they stand in front of walls and floors, whose hidden pixels then cost nothing.
        for surface, image_name in sorted(drawings, key=lambda drawing: drawing[0].area_m2()):
            self.draw(surface, body, group, image_name=image_name)

    def draw(self, surface: Surface, body: Any, group: int, *, image_name: str | None = None) -> None:
        """Put a surface in the frame of an MjsBody into it. Surfaces share an image by its name."""
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
    if surface.area_m2() < SMALLEST_AREA_M2:
        return False
    # A mesh has four vertices, even if it needs three.
    every = np.arange(max(len(vertices), 4)) % len(vertices)
    # MuJoCo copies number by number, and the numbers of a memoryview twice as fast as those of an array.
    spec.add_mesh(
        name=name,
        uservert=vertices[every].ravel().data,
        usernormal=surface.normals[every].ravel().data,
        usertexcoord=surface.texcoords[every].ravel().data,
        userface=faces.ravel().data,
        # Surfaces carry no mass, and open ones have no volume to compute it from.
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
    )
    return True


def add_shell_geom(body: Any, name: str, group: int, **options: Any) -> None:
    """Put a mesh that collides with nothing into a body."""
    kind = mujoco.mjtGeom.mjGEOM_MESH
    body.add_geom(type=kind, meshname=name, group=group, contype=0, conaffinity=0, mass=0.0, **options)
