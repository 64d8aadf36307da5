"""Objects that hold others: cups, bowls, plates, bottles, cans, trays and baskets."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.scenes.colors import PALETTE, STEEL, darker, lighter
from proctor.scenes.meshes import Surface
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import (
    Profile,
    board,
    box_solid,
    cylinder_solid,
    lathe,
    merged,
    round_wall,
    square_walls,
    tube,
    volume_m3,
)
from proctor.scenes.thing import Cavity, Solid, Thing

CERAMIC_KG_M3, FULL_CAN_KG_M3, HALF_FULL_KG_M3 = 2400.0, 1000.0, 600.0
WHITE = PALETTE["white"]
WALL_M = 0.003
"""Of a cup."""
WICKER_KG_M3, WOOD_KG_M3 = 250.0, 600.0
WEAVE_M, WEAVE_PIXELS = 0.032, 64
"""What the picture of a weave covers, and its size."""


def cup(size: Triple, color: Triple) -> Thing:
    """Return a cup with a handle towards +x."""
    return _with_handle("cup", size, color, lighter(color, 0.15), reach=0.36)


def mug(size: Triple, color: Triple) -> Thing:
    """Return a mug, white inside, with a larger handle towards +x."""
    return _with_handle("mug", size, color, WHITE, reach=0.45)


def _with_handle(kind: str, size: Triple, color: Triple, inside: Triple, *, reach: float) -> Thing:
    diameter, _, height = size
    radius, wall = diameter / 2, min(WALL_M, diameter / 12)
    edge = wall / 2
    outer: Profile = [
        (0.0, 0.0),
        (radius - 2 * edge, 0.0),
        (radius - 0.6 * edge, 0.6 * edge),
        (radius, 2 * edge),
        (radius, height - edge),
        (radius - edge, height),
    ]
    inner: Profile = [
        (radius - edge, height),
        (radius - wall, height - edge),
        (radius - wall, 3 * wall),
        (radius - 3 * wall, 1.4 * wall),
        (0.0, 1.4 * wall),
    ]
    drawn, solids = _handle(size, color, reach * diameter)
    return Thing(
        kind=kind,
        surfaces=merged([lathe(outer, color), drawn, lathe(inner, inside)]),
        # Full, as far as bumping goes: one cylinder is grasped fast and surely.
        solids=[cylinder_solid(diameter, height), *solids],
        mass_kg=volume_m3([*outer, *inner[1:]]) * CERAMIC_KG_M3,
        is_furniture=False,
    )


def _handle(size: Triple, color: Triple, reach_m: float) -> tuple[Surface, list[Solid]]:
    diameter, _, height = size
    start, thick = diameter / 2, min(0.008, diameter / 8)
    low, high = 0.22 * height, 0.82 * height
    # A corner's share of a superellipse: nearly a rectangle, as handles of mugs are.
    turn = np.linspace(-np.pi / 2, np.pi / 2, 13)
    out = np.abs(np.cos(turn)) ** 0.6 * (reach_m - thick / 2)
    up = np.sign(np.sin(turn)) * np.abs(np.sin(turn)) ** 0.8 * (high - low - thick) / 2
    path: Array = np.stack([start + out, np.zeros(13), (low + high) / 2 + up], axis=1)
    path[[0, -1], 0] -= WALL_M / 2  # into the wall, but not through it
    bar = box_solid((thick, thick, high - low), (start + reach_m - thick / 2, 0.0, low))
    arms = [
        box_solid((reach_m - thick, thick, thick), (start + (reach_m - thick) / 2, 0.0, z))
        for z in (low, high - thick)
    ]
    return tube(path, thick / 2, color), [bar, *arms]


def bowl(size: Triple, color: Triple) -> Thing:
    """Return a bowl that is really hollow."""
    diameter, _, height = size
    wall, floor = min(0.005, diameter / 30), min(0.007, height / 6)
    rim, foot = diameter / 2, 0.34 * diameter
    outer = [(0.0, 0.0), (foot - wall, 0.0), (foot, 0.0), *_curve((foot, wall / 2), (rim, height - wall / 2))]
    lip = [(rim, height - wall / 2), (rim - wall / 2, height), (rim - wall, height - wall / 2)]
    hollow = [*_curve((foot, floor), (rim - wall, height - wall / 2))[::-1], (0.0, floor)]
    walls = round_wall((foot, floor), (rim - wall, height), wall, 16)
    return Thing(
        kind="bowl",
        surfaces=[lathe([*outer, *lip[1:]], color), lathe(hollow, lighter(color, 0.2))],
        solids=[cylinder_solid(2 * foot, floor), *walls],
        mass_kg=volume_m3([*outer, *lip, *hollow[1:]]) * CERAMIC_KG_M3,
        is_furniture=False,
        cavity=Cavity(rim - wall, rim - wall, is_round=True, floor_z=floor, rim_z=height),
    )


def _curve(foot: tuple[float, float], rim: tuple[float, float]) -> list[tuple[float, float]]:
    """Return a wall that bulges a little, from the foot to the rim."""
    shares = np.linspace(0, 1, 6)
    bulge = 0.06 * (rim[0] - foot[0]) * np.sin(np.pi * shares)
    radii = foot[0] + shares * (rim[0] - foot[0]) + bulge
    heights = foot[1] + shares * (rim[1] - foot[1])
    return [(float(r), float(z)) for r, z in zip(radii, heights, strict=True)]


def plate(size: Triple, color: Triple) -> Thing:
    """Return a plate, flat within and raised at its rim."""
    diameter, _, height = size
    floor = min(0.005, height / 2)
    rim, flat, wall = diameter / 2, 0.32 * diameter, min(0.004, floor)
    outer = [
        (0.0, 0.0),
        (flat, 0.0),
        (rim, height - wall),
        (rim, height - wall / 3),
        (rim - wall / 2, height),
    ]
    hollow = [(rim - wall / 2, height), (flat + wall, floor + wall / 3), (flat, floor), (0.0, floor)]
    walls = round_wall((flat, floor), (rim - wall / 2, height), wall, 16)
    return Thing(
        kind="plate",
        surfaces=[lathe(outer, color), *_ringed(hollow, color)],
        solids=[cylinder_solid(2 * flat, floor), *walls],
        mass_kg=volume_m3([*outer, *hollow[1:]]) * CERAMIC_KG_M3,
        is_furniture=False,
        cavity=Cavity(rim - wall, rim - wall, is_round=True, floor_z=floor, rim_z=height),
    )


def _ringed(hollow: Profile, color: Triple) -> list[Surface]:
    """Return a plate's upper side: its middle is a little darker, else it could be a disc."""
    return [lathe(hollow[:2], color), lathe(hollow[1:], darker(color, 0.12))]


def bottle(size: Triple, color: Triple) -> Thing:
    """Return a bottle, half full: body, shoulder and neck, with a label and a cap."""
    diameter, _, height = size
    r, edge = diameter / 2, min(0.004, diameter / 10)
    body, neck_r, neck, cap = 0.62 * height, 0.2 * diameter, 0.8 * height, 0.91 * height
    label = [(r * 1.004, 0.16 * height), (r * 1.004, 0.48 * height)]
    skin: Profile = [(0.0, 0.0), (r - edge, 0.0), (r - edge / 3, edge / 3), (r, edge), (r, body)]
    turn = np.linspace(0, np.pi, 7)[1:]
    shoulder = [
        (float(neck_r + (r - neck_r) * (1 + np.cos(a)) / 2), float(body + (neck - body) * a / np.pi))
        for a in turn
    ]
    top = [(neck_r, cap)]
    lid_r = neck_r * 1.2
    lid: Profile = [
        (neck_r, cap),
        (lid_r, cap),
        (lid_r, height - edge / 2),
        (lid_r * 0.9, height),
        (0.0, height),
    ]
    return Thing(
        kind="bottle",
        surfaces=[
            lathe([*skin, *shoulder, *top], color),
            *_label(label, color),
            lathe(lid, _contrast(color)),
        ],
        solids=[
            cylinder_solid(diameter, body + 0.3 * (neck - body)),
            cylinder_solid(2 * lid_r, height - body, (0.0, 0.0, body)),
        ],
        mass_kg=volume_m3([*skin, *shoulder, *top, (0.0, cap)]) * HALF_FULL_KG_M3,
        is_furniture=False,
    )


def can(size: Triple, color: Triple) -> Thing:
    """Return a full drinks can: steel ends, a printed side."""
    diameter, _, height = size
    r, neck = diameter / 2, 0.88 * diameter / 2
    low, high, edge = 0.045 * height, 0.93 * height, 0.03 * diameter
    bottom: Profile = [(0.0, edge), (0.75 * r, edge), (0.8 * r, 0.0), (neck, 0.0), (r, low)]
    side: Profile = [(r, low), (r, high)]
    top: Profile = [
        (r, high), (neck, height - edge), (neck, height), (neck - edge, height),
        (neck - 1.4 * edge, height - edge), (0.0, height - edge),
    ]  # fmt: skip
    band = [(r * 1.004, 0.36 * height), (r * 1.004, 0.6 * height)]
    return Thing(
        kind="can",
        surfaces=[
            *merged([lathe(bottom, STEEL.rgb), lathe(top, STEEL.rgb)]),
            lathe(side, color),
            *_label(band, color),
        ],
        solids=[cylinder_solid(diameter, height)],
        mass_kg=volume_m3([*bottom, *side[1:], *top[1:]]) * FULL_CAN_KG_M3,
        is_furniture=False,
    )


def _label(band: Profile, color: Triple) -> list[Surface]:
    """Return a light label with a stripe of the thing's colour."""
    (r, low), (_, high) = band
    stripe = [low + share * (high - low) for share in (0.0, 0.7, 0.85, 1.0)]
    paper = [lathe([(r, stripe[i]), (r, stripe[i + 1])], _contrast(color)) for i in (0, 2)]
    return [*merged(paper), lathe([(r, stripe[1]), (r, stripe[2])], darker(color, 0.35))]


def _contrast(color: Triple) -> Triple:
    return WHITE if sum(color) < 2.2 else darker(PALETTE["grey"], 0.3)


def tray(size: Triple, color: Triple) -> Thing:
    """Return a tray with low walls."""
    solids, inside = square_walls(size, min(0.006, size[2] / 4))
    tones = (lighter(color, 0.08), *(darker(color, 0.25),) * 4)
    surfaces = [
        board(
            solid.size, tuple(solid.translation - [0.0, 0.0, solid.size[2] / 2]), tone, "wood", bevel_m=0.001
        )
        for solid, tone in zip(solids, tones, strict=True)
    ]
    mass_kg = sum(solid.volume_m3 for solid in solids) * WOOD_KG_M3
    return Thing("tray", merged(surfaces), solids, mass_kg, is_furniture=False, cavity=inside)


def basket(size: Triple, color: Triple) -> Thing:
    """Return a woven basket with a rim."""
    wall, rim = min(0.008, size[2] / 6), min(0.012, size[2] / 6)
    solids, inside = square_walls(size, wall)
    surfaces = []
    for solid in solids:
        x, y, z = solid.translation
        depth, width, height = solid.size
        is_wall = height > wall
        at = (float(x), float(y), float(z - height / 2))
        woven = board((depth, width, height - rim * is_wall), at, color)
        surfaces.append(woven._replace(image=_weave(), texcoords=woven.texcoords / WEAVE_M))
        if is_wall:
            top = (at[0], at[1], size[2] - rim)
            surfaces.append(board((depth, width, rim), top, darker(color, 0.35), bevel_m=0.003))
    mass_kg = sum(solid.volume_m3 for solid in solids) * WICKER_KG_M3
    return Thing("basket", merged(surfaces), solids, mass_kg, is_furniture=False, cavity=inside)


@cache
def _weave() -> NDArray[np.uint8]:
    """Return strands that go over and under each other, to be tinted."""
    strand = WEAVE_PIXELS // 2
    across = np.sin(np.pi * (np.arange(strand) + 0.5) / strand)  # the roundness of one strand
    lying = 0.45 + 0.55 * across[:, None] * np.sqrt(across[None, :])
    standing = 0.8 * lying.T
    shades = np.block([[lying, standing], [standing, lying]])
    return np.repeat((255 * shades).astype(np.uint8)[:, :, None], 3, axis=2)
