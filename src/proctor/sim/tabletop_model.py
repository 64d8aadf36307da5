"""Turns a pick-and-place episode into a MuJoCo model: a room, furniture, things, and a Stretch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.errors import UserError
from proctor.core.types import Array, Vector3
from proctor.episodes.pick_place import PickAndPlaceEpisode, SceneItem
from proctor.robots.stretch import CAMERAS, CameraConfig
from proctor.scenes.frames import Frame
from proctor.scenes.scene_config import Part
from proctor.scenes.textures import texture_image
from proctor.scenes.thing import Solid, Thing
from proctor.sim.look import Look
from proctor.sim.meshes import Painter
from proctor.sim.model import SHAPES, Group
from proctor.sim.stretch_model import BASE, FLOOR, GRIPPER, HAND_SITE, THING, stretch_spec

NEAR_M, FAR_M = 0.02, 10.0
ROOM_M, WALL_M = 6.0, 2.6
HEAD_TILT_RAD = math.radians(-35.0)
WRIST_MOUNT_IN_HAND = np.array([-0.15, 0.0, 0.075])
WRIST_TILT_RAD = math.radians(-12.0)
ZONE_COLOR = (0.25, 0.75, 0.35, 0.55)
ZONE_M = 0.001
SOLVED = {"solref": [0.01, 1.0], "solimp": [0.95, 0.99, 0.001, 0.5, 2.0]}


def build_tabletop(
    episode: PickAndPlaceEpisode, things: Mapping[str, Thing], look: Look, *, drawn: bool = True
) -> Any:
    """Return the MjModel of an episode. Movable things are bodies of their names, with free joints.

    Args:
        episode: What stands where.
        things: The episode's scene objects, by name.
        look: Materials, lights and the like.
        drawn: Whether there is anything to see.

    Raises:
        UserError: MuJoCo cannot build it.
    """
    spec = stretch_spec(drawn=drawn)
    _set_options(spec, episode)
    head, wrist = cameras_of(episode)
    _add_cameras(spec, head, wrist, look)
    visual = spec.visual
    visual.global_.offwidth, visual.global_.offheight = (
        max(head.width, wrist.width),
        max(head.height, wrist.height),
    )
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
        for item in episode.scene_objects:
            _add_thing(spec, item, things[item.name], look, drawn=drawn)
        if drawn:
            _add_room(spec, episode, look)
            _add_zone(spec, episode)
            _add_lights(spec, look)
        return spec.compile()
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"episode '{episode.episode_id}': MuJoCo cannot build it: {reason}") from None


def cameras_of(episode: PickAndPlaceEpisode) -> tuple[CameraConfig, CameraConfig]:
    """Return the head's and the wrist's camera: the episode's own, else the robot's."""
    own = episode.robot_config.camera_config or {}
    return own.get("head", CAMERAS["head"]), own.get("wrist", CAMERAS["wrist"])


def wxyz(xyzw: tuple[float, float, float, float]) -> Array:
    """Return a quaternion of an episode file in the order of the code."""
    x, y, z, w = np.asarray(xyzw) / math.hypot(*xyzw)
    return np.array([w, x, y, z])


def _set_options(spec: Any, episode: PickAndPlaceEpisode) -> None:
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
    turned = Rotation.from_rotvec(look.camera_turn_rad) * Rotation.from_quat(head.orientation)
    spec.body(BASE).add_camera(
        name="head",
        pos=np.array(head.position) + look.camera_shift_m,
        quat=(turned * along_arm).as_quat(scalar_first=True),
        fovy=head.fov,
    )
    hand = spec.site(HAND_SITE)
    mount = Rotation.from_quat(hand.quat, scalar_first=True)
    at = np.asarray(hand.pos) + mount.apply(WRIST_MOUNT_IN_HAND + np.array(wrist.position))
    ahead = _view(np.array([math.cos(WRIST_TILT_RAD), 0.0, math.sin(WRIST_TILT_RAD)]))
    spec.body(GRIPPER).add_camera(
        name="wrist",
        pos=at,
        quat=(mount * Rotation.from_quat(wrist.orientation) * ahead).as_quat(scalar_first=True),
        fovy=wrist.fov,
    )


def _view(forward: Array) -> Rotation:
    """Return how a camera is turned that looks this way with its top up. MuJoCo's look along -z, y up."""
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return Rotation.from_matrix(np.stack([right, np.cross(right, forward), -forward], axis=1))


def _add_thing(spec: Any, item: SceneItem, thing: Thing, look: Look, *, drawn: bool) -> None:
    if spec.body(item.name) is not None:
        raise ValueError(f"'{item.name}' is a part of the robot or the world: call the object otherwise")
    quat = wxyz(item.rotation)
    body = spec.worldbody.add_body(name=item.name, pos=item.position, quat=quat)
    if not item.static:
        body.add_freejoint()
    mass_kg = thing.mass_kg if item.mass is None else item.mass
    volume_m3 = sum(solid.volume_m3 for solid in thing.solids)
    for index, solid in enumerate(thing.solids):
        name = f"{item.name}#{index}"
        body.add_geom(
            name=name,
            mass=mass_kg * solid.volume_m3 / volume_m3,
            group=Group.UNSEEN,
            contype=THING,
            conaffinity=THING,
            condim=6 if thing.rolls else 4,
            friction=[item.friction, 0.005, 0.0001],
            **_geometry(spec, name, solid),
            **SOLVED,
        )
    if drawn:
        painter = Painter(spec)
        for surface in thing.surfaces:
            if thing.is_furniture and look.furniture is not None:
                material = look.furniture
                image = None if material.texture is None else texture_image(material.texture)
                surface = surface._replace(image=image, rgba=(*material.color, 1.0))  # noqa: PLW2901
            shared = None if surface.image is None else f"image{id(surface.image)}"
            painter.draw(surface, body, Group.DRAWN, image_name=shared)


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


def _add_room(spec: Any, episode: PickAndPlaceEpisode, look: Look) -> None:
    """Draw a floor and four walls around the middle of it all."""
    places = [item.position[:2] for item in episode.scene_objects] + [episode.robot_config.init_pose.base[:2]]
    x, y = np.mean([np.min(places, axis=0), np.max(places, axis=0)], axis=0)
    painter = Painter(spec)

    def draw(size: tuple[float, float, float], at: tuple[float, float, float], is_floor: bool) -> None:  # noqa: FBT001
        material = look.floor if is_floor else look.walls
        part = Part(shape="box", size=Vector3(*size), color=material.color, texture=material.texture)
        painter.add_part(part, Frame(np.array(size), np.eye(3), np.array(at)))

    draw((ROOM_M, ROOM_M, 0.02), (x, y, -0.01), is_floor=True)
    half = ROOM_M / 2
    for side in (-1, 1):
        draw((0.02, ROOM_M, WALL_M), (x + side * half, y, WALL_M / 2), is_floor=False)
        draw((ROOM_M, 0.02, WALL_M), (x, y + side * half, WALL_M / 2), is_floor=False)
    painter.draw_parts(spec.worldbody, Group.DRAWN)


def _add_zone(spec: Any, episode: PickAndPlaceEpisode) -> None:
    """Show where the object should go, as a disc, unless a container or a surface shows it."""
    location = episode.task_goal.target_location
    if location is not None and location.type == "position" and location.position is not None:
        spec.worldbody.add_geom(
            name="#zone",
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[location.radius, ZONE_M / 2, 0.0],
            pos=np.add(location.position, [0.0, 0.0, ZONE_M / 2]),
            rgba=ZONE_COLOR,
            group=Group.DRAWN,
            contype=0,
            conaffinity=0,
        )


def _add_lights(spec: Any, look: Look) -> None:
    headlight = spec.visual.headlight
    headlight.ambient, headlight.diffuse, headlight.specular = [look.ambient] * 3, [0.2] * 3, [0.0] * 3
    for light in look.lights:
        directional = light.type == "directional"
        kind = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL if directional else mujoco.mjtLightType.mjLIGHT_SPOT
        spec.worldbody.add_light(
            type=kind,
            cutoff=180.0,
            exponent=0.0,
            pos=light.translate.array(),
            dir=light.direction.array(),
            diffuse=light.intensity * np.array(light.color),
            specular=[0.0] * 3,
            castshadow=False,
        )
