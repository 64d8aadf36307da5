"""Plain shapes: box, block, cylinder, ball."""

from __future__ import annotations

import math

import numpy as np

from proctor.scenes.boards import board
from proctor.scenes.colors import lighter
from proctor.scenes.lathe import disc, lathe
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import ball_solid, box_solid, cylinder_solid
from proctor.scenes.thing import Thing

CARDBOARD_BOX_KG_M3, WOOD_KG_M3, RUBBER_BALL_KG_M3 = 300.0, 700.0, 500.0


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
