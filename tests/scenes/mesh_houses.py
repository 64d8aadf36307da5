"""Houses as single meshes, for the tests of mesh scenes."""

import numpy as np
import trimesh
from PIL import Image

from proctor.core.geometry import quaternion_of_euler_deg, rotation_matrix

Y_UP = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
"""Turns the world's axes to Y up with -Z forward."""
WALL_U, FLOOR_U = 0.75, 0.25


def texture():
    """Return an image with a chequered red half for floors and a green half for the rest."""
    image = np.zeros((64, 128, 3), np.uint8)
    rows, columns = np.indices((64, 64)) // 8
    image[:, :64] = np.where(((rows + columns) % 2)[..., None], (220, 30, 30), (120, 10, 10))
    image[:, 64:] = (30, 160, 60)
    return Image.fromarray(image)


def box(low, high, *, floor=False):
    """Return a box between two corners, its upper face textured as a floor or as a wall."""
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    solid = trimesh.creation.box(high - low)
    solid.apply_translation((low + high) / 2)
    return painted(solid.triangles, floor=floor)


def painted(triangles, *, floor=False):
    corners = np.asarray(triangles, dtype=float).reshape(-1, 3)
    uv = np.tile([WALL_U, 0.5], (len(corners), 1))
    if floor:
        size = np.ptp(corners[:, :2], axis=0)
        uv = (corners[:, :2] - corners[:, :2].min(axis=0)) / size * [0.49, 0.98] + [0.005, 0.01]
    mesh = trimesh.Trimesh(corners, np.arange(len(corners)).reshape(-1, 3), process=False)
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=texture(), baseColorFactor=[255] * 4)
    mesh.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    return mesh


def walls(floor_z, *, ceiling=True, height=2.5):
    """Return the walls of two rooms of 4 m x 4 m, x from 0 to 8, with a door of 1 m in the wall at x = 4."""
    low, high = floor_z, floor_z + height
    parts = [
        box((-0.1, -0.1, low), (8.1, 0, high)),
        box((-0.1, 4, low), (8.1, 4.1, high)),
        box((-0.1, 0, low), (0, 4, high)),
        box((8, 0, low), (8.1, 4, high)),
        box((3.95, 0, low), (4.05, 1.5, high)),
        box((3.95, 2.5, low), (4.05, 4, high)),
        box((3.95, 1.5, low + 2.1), (4.05, 2.5, high)),
    ]
    return [*parts, box((-0.1, -0.1, high), (8.1, 4.1, high + 0.1))] if ceiling else parts


def two_rooms(floor_z=0.7, *more, ceiling=True):
    """Return the two rooms with a floor as one mesh."""
    floor = box((-0.1, -0.1, floor_z - 0.1), (8.1, 4.1, floor_z), floor=True)
    return trimesh.util.concatenate([floor, *walls(floor_z, ceiling=ceiling), *more])


def two_storeys():
    """Return two rooms above two rooms, floors at 0 and 2.8, with a hole of 2 m x 2 m in the upper one."""
    upper = [
        box((-0.1, -0.1, 2.6), (5, 4.1, 2.8), floor=True),
        box((7, -0.1, 2.6), (8.1, 4.1, 2.8), floor=True),
        box((5, -0.1, 2.6), (7, 1, 2.8), floor=True),
        box((5, 3, 2.6), (7, 4.1, 2.8), floor=True),
    ]
    return two_rooms(0.0, *upper, *walls(2.8), ceiling=False)


def mesh_of(scene):
    """Return the parts of a scene as one mesh."""
    pieces = []
    for item in scene.objects:
        rotation = rotation_matrix(quaternion_of_euler_deg(item.rotate))
        for part in item.parts:
            if part.shape == "box":
                piece = trimesh.creation.box()
            elif part.shape == "cylinder":
                piece = trimesh.creation.cylinder(radius=0.5, height=1.0)
            else:
                piece = trimesh.creation.icosphere(radius=0.5)
            turned = (
                piece.vertices * part.size.array() @ rotation_matrix(quaternion_of_euler_deg(part.rotate)).T
            )
            placed = (
                turned + part.translate.array()
            ) * item.scale.array() @ rotation.T + item.translate.array()
            pieces.append(trimesh.Trimesh(placed, piece.faces, process=False))
    return trimesh.util.concatenate(pieces)


def write(mesh, file, *, turn=None, scale=1.0):
    """Export a mesh, turned and scaled as its file shall have it."""
    mesh = mesh.copy()
    mesh.apply_transform(np.diag([scale, scale, scale, 1.0]))
    if turn is not None:
        mesh.apply_transform(turn)
    if file.suffix == ".gltf":
        for name, content in mesh.export(file_type="gltf").items():
            (file if name.endswith(".gltf") else file.with_name(name)).write_bytes(content)
    else:
        mesh.export(file)
    return file


DAE = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="meter" meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_images><image id="picture"><init_from>{image}</init_from></image></library_images>
<library_effects><effect id="effect"><profile_COMMON>
<newparam sid="surface"><surface type="2D"><init_from>picture</init_from></surface></newparam>
<newparam sid="sampler"><sampler2D><source>surface</source></sampler2D></newparam>
<technique sid="common"><lambert>
<diffuse><texture texture="sampler" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="material"><instance_effect url="#effect"/></material></library_materials>
<library_geometries><geometry id="geometry"><mesh>
<source id="at"><float_array id="at-array" count="{numbers}">{positions}</float_array>
<technique_common><accessor source="#at-array" count="{corners}" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
</accessor></technique_common></source>
<source id="uv"><float_array id="uv-array" count="{uv_numbers}">{uvs}</float_array>
<technique_common><accessor source="#uv-array" count="{corners}" stride="2">
<param name="S" type="float"/><param name="T" type="float"/></accessor></technique_common></source>
<vertices id="vertices"><input semantic="POSITION" source="#at"/></vertices>
<triangles count="{triangles}" material="symbol"><input semantic="VERTEX" source="#vertices" offset="0"/>
<input semantic="TEXCOORD" source="#uv" offset="0" set="0"/><p>{indices}</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="scene"><node id="node"><instance_geometry url="#geometry">
<bind_material><technique_common><instance_material symbol="symbol" target="#material">
<bind_vertex_input semantic="UV" input_semantic="TEXCOORD" input_set="0"/></instance_material>
</technique_common>
</bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#scene"/></scene>
</COLLADA>
"""


def write_dae(mesh, file, image):
    """Write a Z-up mesh as Collada with a texture of this name, which the exporter of trimesh leaves out."""

    def text(numbers):
        return " ".join(f"{number:g}" for number in np.ravel(numbers))

    corners = len(mesh.vertices)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        DAE.format(
            image=image,
            positions=text(mesh.vertices),
            uvs=text(mesh.visual.uv),
            indices=" ".join(map(str, np.ravel(mesh.faces))),
            corners=corners,
            numbers=3 * corners,
            uv_numbers=2 * corners,
            triangles=len(mesh.faces),
        )
    )
    return file
