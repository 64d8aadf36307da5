"""A level: entities with components, twice: as they are seen in the Editor, and as they will be saved."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.o3de.standin.az_transform import Placement
from proctor.o3de.standin.az_types import default_of, from_json
from proctor.o3de.standin.component_table import ComponentKind

_numbers = itertools.count(1)


def new_number() -> int:
    """Return a number that no entity or component had, and that looks as random as the Editor's."""
    return next(_numbers) * 0x9E3779B97F4A7C15 % 2**64


@dataclass
class Component:
    """A component on an entity."""

    kind: ComponentKind
    properties: dict[str, Any]
    number: int = field(default_factory=new_number)
    is_enabled: bool = True

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
    parent: int | None = None
    """None is the level itself."""
    placement: Placement = field(default_factory=Placement)
    """In its parent."""
    components: list[Component] = field(default_factory=list)
    prefab: str | None = None
    """Of an instance: the prefab file, relative to the project."""
    number: int = field(default_factory=new_number)

    def copied(self) -> Entity:
        """Return another that is the same. The values of properties are never changed, but replaced."""
        components = [replace(item, properties=dict(item.properties)) for item in self.components]
        return replace(self, components=components)

    def active(self) -> list[Component]:
        """Return the components that work: not disabled, and with all that they need."""
        provided: set[str] = set()
        compatible = []
        for component in self.components:
            if component.is_enabled and not provided & set(component.kind.incompatible):
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
