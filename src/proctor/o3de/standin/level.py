"""A level: entities with components, twice: as they are seen in the Editor, and as they will be saved."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.documents import convert, read_json
from proctor.o3de.standin.az_values import Placement, default_of, from_json

COMPONENTS_FILE = Path(__file__).with_name("components.json")
_numbers = itertools.count(1)


class ComponentKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of component."""

    name: str  # as the Editor's menu has it; upper and lower case count
    type: str  # as prefab files have it, in `$type`
    properties: dict[str, str]  # paths of what can be set, with the type of each value
    source: str
    provides: list[str] = []
    requires: list[str] = []
    """Services that others on the entity must provide: without them it stays pending and does nothing."""
    incompatible: list[str] = []  # services that nobody before it may provide
    defaults: dict[str, Any] = {}
    wrapped: bool = False
    """Not a component of the Editor: to touch its properties from Python corrupts memory."""


class _ComponentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    components: list[ComponentKind]


@cache
def component_kinds() -> dict[str, ComponentKind]:
    """Return all of them by their names."""
    table = convert(read_json(COMPONENTS_FILE), _ComponentTable, COMPONENTS_FILE)
    return {kind.name: kind for kind in table.components}


@cache
def kinds_by_type() -> dict[str, ComponentKind]:
    """Return them by what prefab files call them."""
    return {kind.type: kind for kind in component_kinds().values()}


def new_number() -> int:
    """Return a number that no entity or component had, and that looks as random as the Editor's."""
    return next(_numbers) * 0x9E3779B97F4A7C15 % 2**64


@dataclass
class Component:
    """A component on an entity."""

    kind: ComponentKind
    properties: dict[str, Any]
    number: int = field(default_factory=new_number)

    @classmethod
    def new(cls, kind: ComponentKind) -> Component:
        """Return one with the engine's defaults."""
        properties = {path: default_of(type_) for path, type_ in kind.properties.items()}
        for path, value in kind.defaults.items():
            properties[path] = from_json(value, kind.properties[path])
        return cls(kind, properties)


@dataclass
class Entity:
    """An entity."""

    name: str
    parent: int | None = None  # none is the level itself
    placement: Placement = field(default_factory=Placement)  # in its parent
    components: list[Component] = field(default_factory=list)
    prefab: str | None = None  # of an instance: the prefab file, relative to the project
    number: int = field(default_factory=new_number)

    def copied(self) -> Entity:
        """Return another that is the same. The values of properties are never changed, but replaced."""
        components = [replace(item, properties=dict(item.properties)) for item in self.components]
        return replace(self, components=components)

    def active(self) -> list[Component]:
        """Return the components that work: those with all that they need."""
        provided: set[str] = set()
        compatible = []
        for component in self.components:
            if not provided & set(component.kind.incompatible):
                compatible.append(component)
                provided |= set(component.kind.provides)
        return [component for component in compatible if set(component.kind.requires) <= provided]

    def find(self, name: str) -> Component | None:
        """Return the first component of a kind, working or not."""
        return next((component for component in self.components if component.kind.name == name), None)

    def works(self, name: str) -> bool:
        """Return whether a component of a kind works on it."""
        return any(component.kind.name == name for component in self.active())


Entities = dict[int, Entity]


def world_placement(entities: Entities, entity: Entity) -> Placement:
    """Return where an entity is in the world."""
    if entity.parent is None or entity.parent not in entities:
        return entity.placement
    return world_placement(entities, entities[entity.parent]).of(entity.placement)


def place_below(entities: Entities, entity: Entity, placement: Placement) -> None:
    """Put an entity somewhere in the world, below the parent that it has."""
    if entity.parent is not None and entity.parent in entities:
        placement = world_placement(entities, entities[entity.parent]).inverse().of(placement)
    entity.placement = placement


def children(entities: Entities, number: int | None) -> list[Entity]:
    """Return those whose parent is this one; None is the level."""
    return [entity for entity in entities.values() if entity.parent == number]


def descendants(entities: Entities, number: int) -> Iterator[Entity]:
    """Return those below an entity: its children, then theirs, and so on."""
    waiting = deque([number])
    while waiting:
        for child in children(entities, waiting.popleft()):
            yield child
            waiting.append(child.number)


@dataclass
class Level:
    """The level that is open.

    Edits change `live`. Only what is done in an undo batch gets into `template`, which is what is saved and
    what game mode is made of.
    """

    name: str
    template: Entities = field(default_factory=dict)
    live: Entities = field(default_factory=dict)
    number: int = field(default_factory=new_number)
    """Of the level's own entity, which is the parent of all that have no other."""

    def record(self, *numbers: int) -> None:
        """Let the template be as the live entities are; those that are gone are gone there, too."""
        for number in numbers:
            if number in self.live:
                self.template[number] = self.live[number].copied()
            else:
                self.template.pop(number, None)

    def revert(self) -> None:
        """Forget what was not recorded."""
        self.live = {number: entity.copied() for number, entity in self.template.items()}
