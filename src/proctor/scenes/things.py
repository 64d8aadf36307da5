"""The things of a tabletop: made from a kind, a colour and a size, or read from a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Protocol

from proctor.core.errors import did_you_mean
from proctor.scenes.colors import PALETTE
from proctor.scenes.kinds import KINDS, check_kind, color_of, kind_and_color
from proctor.scenes.primitives import ball, block, box, cylinder
from proctor.scenes.shapes import Triple
from proctor.scenes.tables import counter, desk, shelf, stand, table
from proctor.scenes.thing import Thing
from proctor.scenes.thing_files import LARGEST_M, SMALLEST_M, file_in, thing_of_file
from proctor.scenes.trays import basket, tray
from proctor.scenes.vessels import bottle, bowl, can, cup, mug, plate

__all__ = ["KINDS", "Item", "Shape", "make_thing"]

LIGHTEST_KG = 0.05
"""What is lighter unless an episode says so, such as a small block, is taken to weigh this."""

MAKERS: dict[str, Callable[[Triple, Triple], Thing]] = {
    "ball": ball,
    "basket": basket,
    "block": block,
    "bottle": bottle,
    "bowl": bowl,
    "box": box,
    "can": can,
    "counter": counter,
    "cup": cup,
    "cylinder": cylinder,
    "desk": desk,
    "mug": mug,
    "plate": plate,
    "shelf": shelf,
    "stand": stand,
    "table": table,
    "tray": tray,
}


class Shape(Protocol):
    """What to make."""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""

    @property
    def color(self) -> str:
        """An English word, or empty."""

    @property
    def size(self) -> Triple | None:
        """Full extents in metres."""


class Item(Protocol):
    """What an episode says about a thing; see `proctor.exams.pick_place.episode.SceneItem`."""

    @property
    def name(self) -> str:
        """Its name in the episode."""

    @property
    def rotation(self) -> tuple[float, float, float, float]:
        """x, y, z, w."""

    @property
    def scale(self) -> Triple:
        """Factors along its axes."""

    @property
    def static(self) -> bool:
        """Whether it never moves."""

    @property
    def graspable(self) -> bool:
        """Whether it can be picked up."""

    @property
    def usd_path(self) -> str | None:
        """A file in the dataset's folder."""

    @property
    def shape(self) -> Shape | None:
        """What to make instead of reading a file."""

    @property
    def fallback(self) -> Shape | None:
        """What to make if there is no file."""

    @property
    def mass(self) -> float | None:
        """Kilograms."""


def make_thing(item: Item, folder: Path | None) -> Thing:
    """Return an episode's thing at its full size.

    The first of these that there is: its `shape`; the file `usd_path` in the folder; what the file's name
    asks for or, if no file is named, its own name, such as `cup_red`; its `fallback`.

    Args:
        item: What the episode says.
        folder: Where the dataset's files lie, which none of them may lead out of.

    Raises:
        ValueError: There is nothing to make it from, or it cannot be made so.
        MissingDependency: The reader for this file's format is not installed.
    """
    thing = _found(item, folder)
    mass_kg = max(thing.mass_kg, LIGHTEST_KG) if item.mass is None else item.mass
    return thing._replace(mass_kg=mass_kg, rolls=thing.rolls or _lies_on_its_side(thing, item.rotation))


def _found(item: Item, folder: Path | None) -> Thing:
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
    """Return what is made from a kind, its size times the scale."""
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
