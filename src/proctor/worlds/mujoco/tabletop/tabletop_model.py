"""Turns a pick-and-place episode into a MuJoCo model: a room, furniture, things, and a Stretch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.errors import UserError
from proctor.core.types import Array
from proctor.robots.stretch import CameraConfig
from proctor.scenes.tabletop_parts import SceneItem, TabletopSetup, cameras_of
from proctor.scenes.thing import Solid, Thing
from proctor.worlds.mujoco.contacts import Group
from proctor.worlds.mujoco.render.meshes import Painter
from proctor.worlds.mujoco.tabletop.look import Look
from proctor.worlds.mujoco.tabletop.room import (
    add_floor_mirror,
    add_lights,
    add_room,
    add_top_mirror,
    add_zone,
    covered,
    flat_top,
    room_around,
)
from proctor.worlds.mujoco.tabletop.stretch_model import BASE, FLOOR, GRIPPER, HAND_SITE, THING, stretch_spec
from proctor.worlds.mujoco.wheeled.model import SHAPES

NEAR_M, FAR_M = 0.02, 10.0
HEAD_TILT_RAD = math.radians(-35.0)
WRIST_MOUNT_IN_HAND = np.array([-0.15, 0.0, 0.075])
WRIST_TILT_RAD = math.radians(-12.0)
OVERVIEW, OVERVIEW_FOV_DEG = "overview", 42.0
OVERVIEW_LOOKS_AT_M, OVERVIEW_AWAY_M = 0.68, (1.7, 1.45, 0.95)
"""The height it looks at; ahead of the middle between base and object, to its left and above it."""
SOLVED = {"solref": [0.01, 1.0], "solimp": [0.95, 0.99, 0.001, 0.5, 2.0]}


def build_tabletop(
    episode: TabletopSetup, things: Mapping[str, Thing], look: Look, *, drawn: bool = True
) -> Any:
    """Return the MjModel of an episode. Movable objects are bodies of their names, with free joints."""
    spec = stretch_spec(drawn=drawn)
    _set_options(spec, episode)
    head, wrist = cameras_of(episode)
    _add_cameras(spec, head, wrist, look)
    _add_overview(spec, episode)
    spec.worldbody.add_geom(
        name="#floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[1, 1, 1],
        group=Group.UNSEEN,
        contype=FLOOR,
        conaffinity=THING,
        **SOLVED,
    )
    try:
        bodies = {item.name: _add_thing(spec, item, things[item.name]) for item in episode.scene_objects}
        if drawn:
            mirrored = _mirrored(episode, things, look)
            for name, body in bodies.items():
                _draw_thing(spec, body, things[name], look, mirrors=name == mirrored)
            _draw_room(spec, episode, look, mirrored)
        return spec.compile()
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"episode '{episode.episode_id}': MuJoCo cannot build it: {reason}") from None


def wxyz(xyzw: tuple[float, float, float, float]) -> Array:
    """Return a quaternion of an episode file in the order of the code."""
    x, y, z, w = np.asarray(xyzw) / math.hypot(*xyzw)
    return np.array([w, x, y, z])


def _set_options(spec: Any, episode: TabletopSetup) -> None:
    option, params = spec.option, episode.sim_params
    option.timestep = params.set_point_s / params.physics_steps_per_set_point
    option.gravity = params.gravity
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    # What was measured to hold things for a minute without creep, and to let them go.
    option.cone, option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    option.noslip_iterations, option.iterations, option.tolerance = 3, 100, 1e-8
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    visual = spec.visual
    visual.quality.offsamples = visual.quality.shadowsize = 0
    spec.stat.extent = 1.0
    visual.map.znear, visual.map.zfar = NEAR_M, 2 * FAR_M


def _add_cameras(spec: Any, head: CameraConfig, wrist: CameraConfig, look: Look) -> None:
    along_arm = _view(np.array([0.0, -math.cos(HEAD_TILT_RAD), math.sin(HEAD_TILT_RAD)]))
    turned = Rotation.from_rotvec(look.head.turn_rad) * Rotation.from_quat(head.orientation)
    spec.body(BASE).add_camera(
        name="head",
        pos=np.array(head.position) + look.head.shift_m,
        quat=(turned * along_arm).as_quat(scalar_first=True),
        fovy=head.fov,
    )
    hand = spec.site(HAND_SITE)
    mount = Rotation.from_quat(hand.quat, scalar_first=True)
    at = np.asarray(hand.pos) + mount.apply(WRIST_MOUNT_IN_HAND + wrist.position + look.wrist.shift_m)
    ahead = _view(np.array([math.cos(WRIST_TILT_RAD), 0.0, math.sin(WRIST_TILT_RAD)]))
    turned = Rotation.from_rotvec(look.wrist.turn_rad) * Rotation.from_quat(wrist.orientation)
    spec.body(GRIPPER).add_camera(
        name="wrist",
        pos=at,
        quat=(mount * turned * ahead).as_quat(scalar_first=True),
        fovy=wrist.fov,
    )


def _add_overview(spec: Any, episode: TabletopSetup) -> None:
    """Add a camera that sees robot and table together. No agent looks through it."""
    base = np.array([*episode.robot_config.init_pose.base[:2], 0.0])
    target = episode.task_goal.target_object
    there = np.array(episode.item(target.name).position) if target else base + np.array([0.5, 0.0, 0.8])
    ahead = (there - base)[:2] / max(1e-6, np.linalg.norm((there - base)[:2]))
    left = np.array([-ahead[1], ahead[0]])
    middle = np.array([*(base + there)[:2] / 2, OVERVIEW_LOOKS_AT_M])
    away = np.array([*(OVERVIEW_AWAY_M[0] * ahead + OVERVIEW_AWAY_M[1] * left), OVERVIEW_AWAY_M[2]])
    spec.worldbody.add_camera(
        name=OVERVIEW,
        pos=middle + away,
        quat=_view(-away / np.linalg.norm(away)).as_quat(scalar_first=True),
        fovy=OVERVIEW_FOV_DEG,
    )


def _view(forward: Array) -> Rotation:
    """Return how a camera is turned that looks this way with its top up. MuJoCo's look along -z, y up."""
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return Rotation.from_matrix(np.stack([right, np.cross(right, forward), -forward], axis=1))


def _add_thing(spec: Any, item: SceneItem, thing: Thing) -> Any:
    """Add what is felt of a thing, and return its body."""
    if spec.body(item.name) is not None:
        raise ValueError(f"'{item.name}' is a part of the robot or the world: call the object otherwise")
    quat = wxyz(item.rotation)
    body = spec.worldbody.add_body(name=item.name, pos=item.position, quat=quat)
    if not item.static:
        body.add_freejoint()
    volume_m3 = sum(solid.volume_m3 for solid in thing.solids)
    for index, solid in enumerate(thing.solids):
        name = f"{item.name}#{index}"
        body.add_geom(
            name=name,
            mass=thing.mass_kg * solid.volume_m3 / volume_m3,
            group=Group.UNSEEN,
            contype=THING,
            conaffinity=THING,
            condim=6 if thing.rolls else 4,
            friction=[item.friction, 0.005, 0.0001],
            **_geometry(spec, name, solid),
            **SOLVED,
        )
    return body


def _draw_thing(spec: Any, body: Any, thing: Thing, look: Look, *, mirrors: bool) -> None:
    painter, surfaces = Painter(spec), thing.surfaces
    if thing.is_furniture and look.furniture is not None:
        surfaces = covered(surfaces, look.furniture)
    for surface in surfaces:
        shared = None if surface.image is None else f"image{id(surface.image)}"
        painter.draw(surface, body, Group.DRAWN, image_name=shared)
    top = flat_top(thing)
    if mirrors and top is not None and look.furniture is not None:
        add_top_mirror(spec, body, top, look.furniture, look.shine)


def _mirrored(episode: TabletopSetup, things: Mapping[str, Thing], look: Look) -> str | None:
    """Return the furniture whose top mirrors: of those with a flat one, the nearest to the object."""
    if look.shine.reflectance <= 0 or look.furniture is None:
        return None
    at = np.array(episode.item(episode.target_name).position[:2])
    far = {
        item.name: float(np.linalg.norm(at - item.position[:2]))
        for item in episode.scene_objects
        if things[item.name].is_furniture and flat_top(things[item.name]) is not None
    }
    return min(far, key=far.__getitem__, default=None)


def _geometry(spec: Any, name: str, solid: Solid) -> dict[str, Any]:
    if solid.shape == "hull":
        inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        spec.add_mesh(name=name, uservert=solid.points.ravel(), inertia=inertia)
        return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": name}
    half = solid.size / 2
    return {
        "type": SHAPES[solid.shape],
        "size": [half[0], half[2], 0.0] if solid.shape == "cylinder" else half,
        "pos": solid.translation,
        "quat": Rotation.from_matrix(solid.rotation).as_quat(scalar_first=True),
    }


def _draw_room(spec: Any, episode: TabletopSetup, look: Look, mirrored: str | None) -> None:
    """Draw all that is not a thing: the room, its lights and the mark where the object should go."""
    places = [item.position[:2] for item in episode.scene_objects] + [episode.robot_config.init_pose.base[:2]]
    room = room_around(np.array(places))
    mirrors = look.shine.reflectance > 0 and mirrored is None
    add_room(spec, room, look, with_floor=not mirrors)
    if mirrors:
        add_floor_mirror(spec, room, look)
    add_lights(spec, look)
    location = episode.task_goal.target_location
    # A container or a surface shows itself.
    if location is not None and location.type == "position" and location.position is not None:
        add_zone(spec, np.array(location.position), location.radius)
