"""COLLADA files (.dae), checked and reduced to what pycollada must read: triangles, places and materials.

pycollada leaves out a geometry or a node for any problem in or around it, such as a comment or a missing
material. Here, a broken material costs only its colour, and other problems are reported.
"""

from __future__ import annotations

import importlib
import io
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from proctor.scenes.mesh_files import check_part
from proctor.scenes.xml_file import relax_xml

NAMESPACE = "http://www.collada.org/2005/11/COLLADASchema"
SMALLEST_UNIT_M, LARGEST_UNIT_M = 1e-6, 1e6
SHAPES = ("asset", "library_geometries", "library_nodes", "library_visual_scenes", "scene")
MATERIALS = {"library_images": "images", "library_effects": "effects", "library_materials": "materials"}
"""Their lists in pycollada's document."""
MESH = ("source", "vertices", "triangles", "polylist", "polygons", "tristrips", "trifans")
TRANSFORMS = {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3, "lookat": 9}
"""How many numbers each has."""


def prepare_dae(file: Path, content: bytes, part: str | None = None) -> bytes:
    """Return a file without what makes pycollada leave out geometry.

    With `part`, it places only geometries of this name or in nodes of this name. Raises ValueError if its
    unit, its scene, a vertex or a place of a node is broken, or if it has no such part.
    """
    root = ET.fromstring(relax_xml(content))  # noqa: S314  (files with a DTD are refused before)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    unit = root.find("asset/unit")
    meter = unit.get("meter", "1") if unit is not None else "1"
    if not SMALLEST_UNIT_M <= _number(meter) <= LARGEST_UNIT_M:
        expected = f"metres from {SMALLEST_UNIT_M:g} to {LARGEST_UNIT_M:g}"
        raise ValueError(f"<unit>: expected {expected}, found '{meter[:80]}'")
    if root.find("scene/instance_visual_scene") is None:
        raise ValueError("expected <scene> with <instance_visual_scene> in it, found none")
    positions = {entry.get("source") for entry in root.iter("input") if entry.get("semantic") == "POSITION"}
    for source in root.iter("source"):  # pycollada would read 0 instead
        if f"#{source.get('id')}" in positions and "nan" in source.findtext("float_array", "").lower():
            raise ValueError(f"the vertices of <source id='{source.get('id')}'> are not finite numbers")
    materials = _readable_materials(root)
    root[:] = [*materials, *(library for library in root if library.tag in SHAPES)]
    for mesh in root.iter("mesh"):
        mesh[:] = [child for child in mesh if child.tag in MESH]
    known = {f"#{material.get('id')}" for library in materials for material in library.iter("material")}
    for technique in root.iter("technique_common"):
        technique[:] = [
            child for child in technique if child.tag != "instance_material" or child.get("target") in known
        ]
    found = _prepare_nodes(root, part)
    if part is not None:
        check_part(part, found, file)
    root.attrib = {"xmlns": NAMESPACE, "version": "1.4.1"}
    return bytes(ET.tostring(root))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _readable_materials(root: ET.Element) -> list[ET.Element]:
    """Return the libraries of materials, without the entries that pycollada cannot read."""
    collada: Any = importlib.import_module("collada")  # an optional package

    libraries = [library for library in root if library.tag in MATERIALS]
    document = ET.Element("COLLADA", {"xmlns": NAMESPACE, "version": "1.4.1"})
    document.extend(libraries)
    try:
        read = collada.Collada(io.BytesIO(ET.tostring(document)), ignore=[collada.DaeError])
    except (ValueError, TypeError, LookupError, AttributeError):  # of strange values
        return []
    for library in libraries:
        ids = {entry.id for entry in getattr(read, MATERIALS[library.tag])}
        library[:] = [entry for entry in library if entry.get("id") in ids]
    return libraries


def _prepare_nodes(root: ET.Element, part: str | None) -> set[str]:
    """Leave only nodes, their transforms and the geometries that they place; return the names of parts."""
    geometries = {
        f"#{geometry.get('id')}": geometry
        for geometry in root.iter("geometry")
        if geometry.find("mesh") is not None
    }
    inherited: dict[ET.Element, Any] = {}
    found: set[str] = set()

    def is_kept(node: ET.Element, child: ET.Element) -> bool:
        if child.tag != "instance_geometry":
            return child.tag in ("node", "instance_node", "skew", *TRANSFORMS)
        geometry = geometries.get(child.get("url", ""))
        if geometry is None:
            return False
        names = {inherited[node], node.get("id"), geometry.get("name"), geometry.get("id")} - {None}
        found.update(names)
        return part is None or part in names

    for node in root.iter("node"):
        # Gazebo gives a node without a name that of the node around it.
        inherited[node] = node.get("name", inherited.get(node))
        inherited.update((child, inherited[node]) for child in node if child.tag == "node")
        for child in node:
            _check_transform(child, f"<{child.tag}> of the node '{inherited[node] or node.get('id')}'")
        node[:] = [child for child in node if is_kept(node, child)]
    return found


def _check_transform(element: ET.Element, place: str) -> None:
    text, count = element.text or "", TRANSFORMS.get(element.tag)
    values = [_number(word) for word in text.split()]
    if count is not None and not (len(values) == count and all(map(math.isfinite, values))):
        raise ValueError(f"{place}: expected {count} finite numbers, found '{text.strip()[:80]}'")
