"""What the Editor does at calls about places, in edit mode and in game mode, and at a game's physics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proctor.o3de.standin.az_values import (
    EntityId,
    Placement,
    Quaternion,
    Transform,
    Vector3,
    quaternion_of_euler_xyz,
)
from proctor.o3de.standin.level import Entities, Entity, descendants, world_placement

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor

VALUES: dict[str, tuple[Callable[[Placement], Any], Callable[[Placement, Any], Placement]]] = {
    "Translation": (
        lambda at: Vector3(*at.translation),
        lambda at, to: at._replace(translation=to.triple_()),
    ),
    "RotationQuaternion": (
        lambda at: Quaternion(*at.rotation_xyzw),
        lambda at, to: at._replace(rotation_xyzw=to.quadruple_()),
    ),
    "Rotation": (  # in radians
        lambda at: Vector3(*at.euler_xyz_rad()),
        lambda at, to: at._replace(rotation_xyzw=quaternion_of_euler_xyz(to.triple_())),
    ),
    "TM": (Transform, lambda at, to: to.placement_),
    "UniformScale": (lambda at: at.scale, lambda at, to: at._replace(scale=float(to))),
}


def _whose(editor: FakeEditor, entity: EntityId) -> tuple[Entities, Entity] | None:
    """Return an active entity among its like: that of the game while it plays, else that of the level."""
    level = editor.level
    entities = editor.game if editor.is_playing or level is None else level.live
    return (entities, entities[entity.number_]) if entity.number_ in entities else None


def _world(editor: FakeEditor, entities: Entities, entity: Entity) -> Placement:
    """Return where an entity is. In the game, bodies move, and take those below them along."""
    if not editor.is_in_game_mode:
        return world_placement(entities, entity)
    told = editor.game_transform(_owner(entities, entity)) if _has_body(entity) else None
    if told is not None:
        return told
    if entity.parent is None or entity.parent not in entities:
        return entity.placement
    return _world(editor, entities, entities[entity.parent]).of(entity.placement)


def _owner(entities: Entities, entity: Entity) -> str:
    """Return the name of the prefab that an entity is in, or else its own."""
    above: Entity | None = entity
    while above is not None:
        if above.prefab is not None:
            return above.name
        above = None if above.parent is None else entities.get(above.parent)
    return entity.name


def _with_descendants(editor: FakeEditor, entity: EntityId) -> list[EntityId] | None:
    found = _whose(editor, entity)
    if found is None:
        return None
    numbers = [found[1].number, *(below.number for below in descendants(found[0], found[1].number))]
    return [EntityId.of_(number) for number in numbers]


def _getter(value: str, *, is_world: bool) -> Callable[[FakeEditor, EntityId], Any]:
    read = VALUES[value][0]

    def get(editor: FakeEditor, entity: EntityId) -> Any:
        found = _whose(editor, entity)
        if found is None:  # nobody answers
            return None
        return read(_world(editor, *found) if is_world else found[1].placement)

    return get


def _setter(value: str, *, is_world: bool) -> Callable[[FakeEditor, EntityId, Any], None]:
    change = VALUES[value][1]

    def set_(editor: FakeEditor, entity: EntityId, to: Any) -> None:
        found = _whose(editor, entity)
        if found is None or (editor.is_in_game_mode and _is_simulated(editor, found[1])):
            return  # physics puts a simulated body back at once
        entities, moved = found
        if not is_world:
            moved.placement = change(moved.placement, to)
            return
        placement = change(world_placement(entities, moved), to)
        if moved.parent is not None and moved.parent in entities:
            placement = world_placement(entities, entities[moved.parent]).inverse().of(placement)
        moved.placement = placement

    return set_


def _has_body(entity: Entity) -> bool:
    return any("PhysicsRigidBodyService" in component.kind.provides for component in entity.active())


def _is_simulated(editor: FakeEditor, entity: Entity) -> bool:
    return _has_body(entity) and entity.number not in editor.without_physics


def _body(editor: FakeEditor, entity: EntityId) -> Entity | None:
    """Return an entity that listens to this bus: one of the game with a body that can move."""
    found = editor.game.get(entity.number_)
    return found if found is not None and found.works("PhysX Dynamic Rigid Body") else None


def _enable_physics(editor: FakeEditor, entity: EntityId) -> None:
    if _body(editor, entity) is not None:
        editor.without_physics.discard(entity.number_)


def _disable_physics(editor: FakeEditor, entity: EntityId) -> None:
    if _body(editor, entity) is not None:
        editor.without_physics.add(entity.number_)


def _is_physics_enabled(editor: FakeEditor, entity: EntityId) -> bool | None:
    body = _body(editor, entity)
    return None if body is None else _is_simulated(editor, body)


BUS, BODY, SIMULATED = "TransformBus", "RigidBodyRequestBus", "SimulatedBodyComponentRequestBus"
NAMES = {
    f"{frame}{value}": (value, frame == "World")
    for frame in ("World", "Local")
    for value in VALUES
    if (frame, value) != ("World", "UniformScale")
}
CALL_HANDLERS: dict[tuple[str, str], Callable[..., Any]] = {
    **{(BUS, f"Get{name}"): _getter(value, is_world=is_world) for name, (value, is_world) in NAMES.items()},
    **{(BUS, f"Set{name}"): _setter(value, is_world=is_world) for name, (value, is_world) in NAMES.items()},
    (BUS, "GetEntityAndAllDescendants"): _with_descendants,
    **{(bus, "EnablePhysics"): _enable_physics for bus in (BODY, SIMULATED)},
    **{(bus, "DisablePhysics"): _disable_physics for bus in (BODY, SIMULATED)},
    (BODY, "IsPhysicsEnabled"): _is_physics_enabled,
    (BODY, "GetLinearVelocity"): lambda editor, entity: None if _body(editor, entity) is None else Vector3(),
    # These have no effect here: what moves in the embedded world are its robots.
    **{
        (BODY, name): lambda editor, entity, value: None
        for name in ("SetLinearVelocity", "SetAngularVelocity", "SetKinematic", "SetKinematicTarget")
    },
}
