"""The objects of a tabletop: made from a kind, a colour and a size, or read from a file.

Furniture turns its back to -x, and its origin is its centre.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np

from proctor.core.errors import did_you_mean
from proctor.scenes.colors import PALETTE, STEEL, darker, lighter
from proctor.scenes.kinds import KINDS, check_kind, color_of, kind_and_color
from proctor.scenes.meshes import Surface
from proctor.scenes.pieces import BLACK, GREY
from proctor.scenes.scene_config import Texture
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import ball_solid, board, box_solid, cylinder_solid, disc, lathe, merged, moved
from proctor.scenes.tabletop_parts import SceneItem
from proctor.scenes.thing import Solid, Thing
from proctor.scenes.thing_files import LARGEST_M, SMALLEST_M, file_in, thing_of_file
from proctor.scenes.vessels import basket, bottle, bowl, can, cup, mug, plate, tray

FURNITURE_KG_M3 = 600.0
CARDBOARD_BOX_KG_M3, WOOD_KG_M3, RUBBER_BALL_KG_M3 = 300.0, 700.0, 500.0
LIGHTEST_KG = 0.05
"""What is lighter unless an episode says so, such as a small block, is taken to weigh this."""


class Joinery:
    """Boards put together from the floor up."""

    def __init__(self, kind: str, height_m: float) -> None:
        self.kind, self.height_m = kind, height_m
        self.surfaces: list[Surface] = []
        self.solids: list[Solid] = []

    def add(
        self, size: Triple, at: Triple, color: Triple, texture: Texture | None = "wood", *, solid: bool = True
    ) -> None:
        """Add a board whose bottom stands at `at`; what is not solid is only looked at."""
        self.surfaces.append(board(size, at, color, texture))
        if solid:
            self.solids.append(box_solid(size, at))

    def thing(self) -> Thing:
        """Return the piece of furniture, its centre at the origin."""
        shift = np.array([0.0, 0.0, -self.height_m / 2])
        return Thing(
            kind=self.kind,
            surfaces=[moved(surface, shift) for surface in merged(self.surfaces)],
            solids=[
                solid._replace(translation=solid.translation + shift, points=solid.points + shift)
                for solid in self.solids
            ],
            mass_kg=sum(solid.volume_m3 for solid in self.solids) * FURNITURE_KG_M3,
            is_furniture=True,
        )


def table(size: Triple, color: Triple) -> Thing:
    """Return a wooden table on four legs, free to drive beneath where it is wide enough."""
    depth, width, height = size
    made, thick, leg = Joinery("table", height), min(0.035, height / 4), min(0.05, depth / 5, width / 5)
    made.add((depth, width, thick), (0.0, 0.0, height - thick), color)
    x, y = depth / 2 - 0.6 * leg, width / 2 - 0.6 * leg
    for i in (-1, 1):
        for j in (-1, 1):
            made.add((leg, leg, height - thick), (i * x, j * y, 0.0), color)
    return made.thing()


def desk(size: Triple, color: Triple) -> Thing:
    """Return a desk: steel legs at its left, drawers at its right."""
    depth, width, height = size
    made, thick, leg = Joinery("desk", height), min(0.03, height / 4), min(0.04, depth / 6, width / 6)
    made.add((depth, width, thick), (0.0, 0.0, height - thick), color)
    below = height - thick
    for side in (-1, 1):
        made.add((leg, leg, below), (side * (depth / 2 - leg), width / 2 - leg, 0.0), STEEL.rgb, None)
    chest = min(0.4, width / 3)
    y = -width / 2 + chest / 2 + 0.02 * width
    made.add((0.9 * depth, chest, below), (0.0, y, 0.0), darker(color, 0.12))
    _fronts(made, (0.45 * depth, y), chest, (0.03, below), lighter(color, 0.1), rows=3)
    return made.thing()


def counter(size: Triple, color: Triple) -> Thing:
    """Return a kitchen counter: doors below a stone top, on a base that stands back."""
    depth, width, height = size
    made, thick, base = Joinery("counter", height), min(0.04, height / 5), 0.1 * height
    made.add((depth, width, thick), (0.0, 0.0, height - thick), darker(GREY, 0.1), "marble")
    made.add((0.8 * depth, 0.98 * width, base), (-0.05 * depth, 0.0, 0.0), BLACK, None)
    made.add((0.92 * depth, 0.98 * width, height - thick - base), (-0.02 * depth, 0.0, base), color, "wood")
    x, doors = 0.44 * depth, max(1, round(width / 0.5))
    for index in range(doors):
        y = ((index + 0.5) / doors - 0.5) * 0.98 * width
        _fronts(made, (x, y), 0.98 * width / doors, (base, height - thick), lighter(color, 0.12))
    return made.thing()


def shelf(size: Triple, color: Triple) -> Thing:
    """Return an open shelf of three boards between two sides; its top can be used, too."""
    depth, width, height = size
    made, thick = Joinery("shelf", height), min(0.025, height / 8, width / 8)
    inner = width - 2 * thick
    for side in (-1, 1):
        made.add((depth, thick, height - thick), (0.0, side * (width - thick) / 2, 0.0), color)
    made.add((depth, width, thick), (0.0, 0.0, height - thick), color)
    for share in (0.06, 0.5):
        made.add((depth, inner, thick), (0.0, 0.0, share * (height - thick)), lighter(color, 0.1))
    made.add((0.3 * thick, inner, height - thick), (-depth / 2 + 0.15 * thick, 0.0, 0.0), darker(color, 0.25))
    return made.thing()


def stand(size: Triple, color: Triple) -> Thing:
    """Return a small round table on one foot."""
    diameter, _, height = size
    thick, foot = min(0.025, height / 6), min(0.02, height / 6)
    shift = (0.0, 0.0, -height / 2)
    parts = [
        (diameter, thick, height - thick),
        (0.12 * diameter, height - thick - foot, foot),
        (0.6 * diameter, foot, 0.0),
    ]
    tones = (color, STEEL.rgb, darker(color, 0.3))
    surfaces = [
        moved(lathe(disc(wide, high, bottom), tone, 40), shift)
        for (wide, high, bottom), tone in zip(parts, tones, strict=True)
    ]
    solids = [cylinder_solid(wide, high, (0.0, 0.0, bottom - height / 2)) for wide, high, bottom in parts]
    mass_kg = sum(solid.volume_m3 for solid in solids) * FURNITURE_KG_M3
    return Thing("stand", surfaces, solids, mass_kg, is_furniture=True)


def _fronts(
    made: Joinery,
    at: tuple[float, float],
    width_m: float,
    heights: tuple[float, float],
    color: Triple,
    *,
    rows: int = 1,
) -> None:
    """Add a door, or drawers, with their handles; they are only looked at."""
    (x, y), (low, high) = at, heights
    step_m = (high - low) / rows
    for row in range(rows):
        z = low + (row + 0.06) * step_m
        made.add((0.012, 0.94 * width_m, 0.88 * step_m), (x + 0.006, y, z), color, solid=False)
        handle = (0.012, 0.3 * width_m, 0.012)
        made.add(handle, (x + 0.018, y, low + (row + 0.8) * step_m), STEEL.rgb, None, solid=False)


def box(size: Triple, color: Triple) -> Thing:
    """Return a cardboard box, closed with a strip of tape."""
    depth, width, height = size
    tape = board((depth + 0.0006, 0.22 * width, height + 0.0003), (0.0, 0.0, 0.0), lighter(color, 0.45))
    surfaces = [board(size, (0.0, 0.0, 0.0), color), tape]
    mass_kg = math.prod(size) * CARDBOARD_BOX_KG_M3
    return Thing("box", surfaces, [box_solid(size)], mass_kg, is_furniture=False)


def block(size: Triple, color: Triple) -> Thing:
    """Return a wooden block."""
    surfaces = [board(size, (0.0, 0.0, 0.0), color, "wood", bevel_m=0.003)]
    return Thing("block", surfaces, [box_solid(size)], math.prod(size) * WOOD_KG_M3, is_furniture=False)


def cylinder(size: Triple, color: Triple) -> Thing:
    """Return a wooden cylinder."""
    diameter, _, height = size
    return Thing(
        kind="cylinder",
        surfaces=[lathe(disc(diameter, height), color)],
        solids=[cylinder_solid(diameter, height)],
        mass_kg=math.pi / 4 * diameter**2 * height * WOOD_KG_M3,
        is_furniture=False,
    )


def ball(size: Triple, color: Triple) -> Thing:
    """Return a rubber ball."""
    radius = size[0] / 2
    angles = np.linspace(0, math.pi, 17)
    profile = [(radius * math.sin(angle), radius * (1 - math.cos(angle))) for angle in angles]
    profile[0], profile[-1] = (0.0, 0.0), (0.0, 2 * radius)
    return Thing(
        kind="ball",
        surfaces=[lathe(profile, color)],
        solids=[ball_solid(2 * radius)],
        mass_kg=4 / 3 * math.pi * radius**3 * RUBBER_BALL_KG_M3,
        is_furniture=False,
        rolls=True,
    )


MAKERS: dict[str, Callable[[Triple, Triple], Thing]] = {
    **{maker.__name__: maker for maker in (ball, block, box, cylinder, counter, desk, shelf, stand, table)},
    **{maker.__name__: maker for maker in (basket, bottle, bowl, can, cup, mug, plate, tray)},
}


def make_thing(item: SceneItem, folder: Path | None) -> Thing:
    """Return an episode's object at its full size. Its files may not lead out of the dataset's folder.

    The first of these that there is: its `shape`; the file `usd_path` in the folder; what the file's name
    asks for or, if no file is named, its own name, such as `cup_red`; its `fallback`. ValueError if none is.
    """
    thing = _found(item, folder)
    mass_kg = max(thing.mass_kg, LIGHTEST_KG) if item.mass is None else item.mass
    return thing._replace(mass_kg=mass_kg, rolls=thing.rolls or _lies_on_its_side(thing, item.rotation))


def _found(item: SceneItem, folder: Path | None) -> Thing:
    if item.shape is not None:
        return _made(item.shape.kind, item.shape.color, item.shape.size, item.scale)
    name, missing = item.name, ""
    if item.usd_path is not None:
        file = file_in(folder, item.usd_path)
        if file is not None and folder is not None:
            is_furniture = item.static and not item.graspable
            return thing_of_file(file, folder, item.scale, is_furniture=is_furniture)
        name = PurePosixPath(item.usd_path.replace("\\", "/")).stem
        missing = f"there is no file '{item.usd_path}'" + (f" in {folder}" if folder else "")
    asked = kind_and_color(name)
    if asked is not None:
        thing = _made(*asked, None, item.scale)
        note = f"{missing}: a {thing.kind} made by '{name}' stands in for it"
        return thing._replace(notes=(note,) if missing else ())
    if item.fallback is not None:
        thing = _made(item.fallback.kind, item.fallback.color, item.fallback.size, item.scale)
        return thing._replace(notes=(f"{missing or 'no file'}: its fallback, a {thing.kind}, stands in",))
    known = [*KINDS, *(f"{kind}_{color}" for kind in KINDS for color in PALETTE)]
    hint = did_you_mean(name, known)
    raise ValueError(
        f"{missing or 'expected a shape or a usd_path'}, and nothing can be made by the name "
        f"{name[:40]!r} (known kinds: {', '.join(sorted(KINDS))}){hint}. "
        'Put the file there, or allow a stand-in such as "fallback": {"kind": "box"}'
    )


def _made(kind: str, color: str, size: Triple | None, scale: Triple) -> Thing:
    check_kind(kind)
    known = KINDS[kind]
    depth, width, height = (a * b for a, b in zip(size or known.size_m, scale, strict=True))
    if not all(SMALLEST_M <= extent <= LARGEST_M for extent in (depth, width, height)):  # nor is NaN
        raise ValueError(
            f"size: expected {SMALLEST_M} to {LARGEST_M} m, found {[depth, width, height]} for a {kind}"
        )
    if known.is_round and not math.isclose(depth, width, rel_tol=1e-6):
        raise ValueError(f"size: a {kind} is round: expected equal x and y, found {[depth, width, height]}")
    if kind == "ball" and not math.isclose(depth, height, rel_tol=1e-6):
        raise ValueError(f"size: a ball is round: expected x, y and z equal, found {[depth, width, height]}")
    return MAKERS[kind]((depth, width, height), color_of(color or known.color))


def _lies_on_its_side(thing: Thing, rotation: tuple[float, float, float, float]) -> bool:
    """Tell whether a cylinder has been laid down, so that it can roll. The rotation is x, y, z, w."""
    x, y, _, _ = rotation
    upright = 1 - 2 * (x * x + y * y)  # the z axis' own z
    return abs(upright) < math.cos(math.pi / 4) and any(solid.shape == "cylinder" for solid in thing.solids)
