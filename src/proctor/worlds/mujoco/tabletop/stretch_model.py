"""The Stretch in MuJoCo: the maker's links, joints that are servos, pads that hold by friction.

The maker's collision meshes of the fingers do not hold anything under any solver setting: the cups on the
fingertips are cocked away from the closing line. One box pad per fingertip, facing the other, does.

The files come from the package `hello-robot-stretch-urdf`. Meshes that are too fine and inertias that are not
physical are replaced, which takes a while and is done once per user and version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import shutil
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from proctor.core.array_cache import user_cache_folder
from proctor.core.errors import MissingDependency, UserError, install_command
from proctor.core.types import Array
from proctor.robots.stretch import CONTROLS, GRIPPER_OPEN_M, JOINT_NAMES
from proctor.worlds.mujoco.contacts import Group

BASE, GRIPPER, HAND_SITE = "base_link", "link_gripper", "hand"
SIDES = ("left", "right")
FINGERS = tuple(f"joint_gripper_finger_{side}" for side in SIDES)
ARM_JOINTS = ("joint_arm_l3", "joint_arm_l2", "joint_arm_l1", "joint_arm_l0")
BASE_JOINTS = JOINT_NAMES[:3]

# Contact bits. Things meet things, the robot and the floor; the hand meets the robot's own body.
THING, HAND, BODY, FLOOR = 1, 4, 8, 16
HAND_LINKS = ("link_wrist_yaw", "link_gripper")
BODY_LINKS = ("base_link", "link_mast")
ARM_LINKS = ("link_lift", "link_arm_l4", "link_arm_l3", "link_arm_l2", "link_arm_l1", "link_arm_l0")

ARMATURES = {
    **dict(zip(BASE_JOINTS, (5.0, 5.0, 0.5), strict=True)),
    "joint_lift": 2.0,
    **dict.fromkeys(ARM_JOINTS, 0.2),
    "joint_wrist_yaw": 0.01,
    **dict.fromkeys(FINGERS, 0.002),
}
STIFFNESS = (20000.0, 20000.0, 4000.0, 20000.0, 8000.0, 30.0, 4000.0)
"""Of the servos of CONTROLS: newtons per metre, or newton metres per radian."""
STIFF = {"solref": [0.005, 1.0], "solimp": [0.99, 0.999, 0.001, 0.5, 2.0]}

FINGER_PLAY_M = 0.001
"""Beyond open and closed."""
LEVER_M = 0.18
"""A fingertip's travel for a radian of its joint."""
OPENING = (-0.06153, 5.5195, 1.0972)
"""The finger's angle is this polynomial of the pad's travel in metres, to 0.03 mm."""

PAD_HALF_M = (0.006, 0.018, 0.018)
PAD_AT = (-0.00357, 0.0, 0.01188)
PAD_TURNED = {
    "left": (0.63144, 0.63145, -0.31825, 0.31825),
    "right": (0.63143, 0.63143, -0.31827, 0.31827),
}
PAD = {
    "condim": 6,
    "friction": [1.0, 0.02, 0.001],
    "solref": [0.005, 1.0],
    "solimp": [0.95, 0.99, 0.001, 0.5, 2.0],
    "priority": 1,
}
FINGER_PITCH_RAD = math.radians(-30.0)
DARK, METAL, WHITE = (0.16, 0.16, 0.18, 1.0), (0.62, 0.64, 0.67, 1.0), (0.9, 0.91, 0.92, 1.0)
COLORS = {
    **dict.fromkeys(("base_link", "link_head", "link_head_pan", "link_head_tilt", "camera_link"), DARK),
    **dict.fromkeys(("link_right_wheel", "link_left_wheel", "caster_link", "laser"), DARK),
    **dict.fromkeys(("link_gripper_fingertip_left", "link_gripper_fingertip_right"), DARK),
    **dict.fromkeys(("link_mast", "link_arm_l4", "link_arm_l3", "link_arm_l2", "link_arm_l1"), METAL),
    **dict.fromkeys(("link_gripper_finger_left", "link_gripper_finger_right", "link_puller"), METAL),
}


def stretch_spec(*, drawn: bool = True) -> Any:
    """Return an MjSpec with the robot at the world's origin, its joints as in JOINT_NAMES.

    Without its looks (`drawn`) a model is built in a fraction of the time.
    """
    return _stretch(prepared_urdf(), drawn=drawn).copy()  # hundred times faster than making it


@cache
def _stretch(urdf: Path, *, drawn: bool) -> Any:
    spec = mujoco.MjSpec.from_file(str(urdf))
    bodies = {body.name: body for body in spec.bodies}
    for body in spec.bodies:
        if body.name != "world":
            body.gravcomp = 1  # the real drives hold it without sagging
    for side in SIDES:
        tip = bodies[f"link_gripper_fingertip_{side}"]
        tip.fullinertia, tip.inertia = [np.nan] * 6, [8e-7] * 3
    _fix_joints(spec, bodies)
    _add_base_joints(bodies[BASE])
    for joint in spec.joints:
        joint.armature = ARMATURES[joint.name]
        if joint.name in FINGERS:  # what is too wide for the hand must not wedge it open
            joint.range = [finger_angle(-FINGER_PLAY_M), finger_angle(GRIPPER_OPEN_M + FINGER_PLAY_M)]
            joint.solref_limit, joint.solimp_limit = STIFF["solref"], STIFF["solimp"]
    _choose_geoms(spec, drawn=drawn)
    for side in SIDES:
        _add_pad(bodies, side)
    bodies[GRIPPER].add_site(name=HAND_SITE, **_hand_in_gripper(urdf))
    _couple(spec)
    _add_servos(spec)
    return spec


def finger_angle(opening_m: float) -> float:
    """Return the angle of the finger joints for a travel of one pad from closed."""
    return OPENING[0] + OPENING[1] * opening_m + OPENING[2] * opening_m**2


def opening_of(angle: float) -> float:
    """Return the travel of one pad from closed for an angle of the finger joints."""
    c, b, a = OPENING[0] - angle, OPENING[1], OPENING[2]
    return (-b + math.sqrt(max(0.0, b * b - 4 * a * c))) / (2 * a)


def grip_command(opening_m: float) -> float:
    """Return the gripper servo's set point for a travel of one pad from closed."""
    return LEVER_M * finger_angle(opening_m)


def _fix_joints(spec: Any, bodies: dict[str, Any]) -> None:
    """Remove the joints that nobody commands: the wheels', since the base glides, and the head's."""
    half = -math.pi / 4  # the head looks along the arm
    bodies["link_head_pan"].quat = _product(
        bodies["link_head_pan"].quat, np.array([math.cos(half), 0.0, 0.0, math.sin(half)])
    )
    for joint in list(spec.joints):
        if "wheel" in joint.name or "head" in joint.name:
            spec.delete(joint)


def _add_base_joints(base: Any) -> None:
    """Let the base glide. The slides come first, so that they lie along the axes of the world."""
    slide, hinge = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE
    kinds = ((slide, [1, 0, 0]), (slide, [0, 1, 0]), (hinge, [0, 0, 1]))
    for name, (kind, axis) in zip(BASE_JOINTS, kinds, strict=True):
        base.add_joint(name=name, type=kind, axis=axis)


def _choose_geoms(spec: Any, *, drawn: bool) -> None:
    """Keep what is seen, and of what collides only what can meet a thing."""
    for geom in list(spec.geoms):
        link = geom.parent.name
        is_drawn = geom.group == 1
        bits = _bits(link)
        if (is_drawn and not drawn) or (not is_drawn and bits is None):
            spec.delete(geom)
        elif is_drawn:
            geom.group, geom.contype, geom.conaffinity = Group.DRAWN, 0, 0
            geom.rgba = COLORS.get(link, WHITE)
        elif bits is not None:
            geom.group, (geom.contype, geom.conaffinity) = Group.UNSEEN, bits
            geom.name = f"#{link}"
    for body in list(spec.bodies):  # frames of the camera, which weigh nothing and take time
        if body.name.startswith("camera_") and body.name.endswith("_frame") and not body.bodies:
            spec.delete(body)
    used = {geom.meshname for geom in spec.geoms}
    for mesh in list(spec.meshes):
        if mesh.name not in used:
            spec.delete(mesh)


def _bits(link: str) -> tuple[int, int] | None:
    if link in HAND_LINKS:
        return HAND, THING
    if link in BODY_LINKS:
        return BODY, THING | HAND
    return (BODY, THING) if link in ARM_LINKS else None


def _add_pad(bodies: dict[str, Any], side: str) -> None:
    """Give a finger a slim body and its tip a pad."""
    box, sign = mujoco.mjtGeom.mjGEOM_BOX, 1 if side == "left" else -1
    common = {"type": box, "group": Group.UNSEEN, "contype": HAND, "conaffinity": THING, "mass": 0.0}
    bodies[f"link_gripper_finger_{side}"].add_geom(
        name=f"#finger_{side}",
        size=[0.05, 0.006, 0.0065],
        pos=[sign * 0.115, sign * 0.016, 0.0],
        friction=[0.4, 0.005, 0.0001],
        **common,
    )
    bodies[f"link_gripper_fingertip_{side}"].add_geom(
        name=f"#pad_{side}", size=PAD_HALF_M, pos=PAD_AT, quat=PAD_TURNED[side], **PAD, **common
    )


def _hand_in_gripper(urdf: Path) -> dict[str, Array]:
    """Return where the hand's frame is: between the pads, x along the fingers, y to the left, z up."""
    model = mujoco.MjSpec.from_file(str(urdf)).compile()
    data = mujoco.MjData(model)
    for finger in FINGERS:
        data.joint(finger).qpos[0] = 0.05  # where the hand's frame lies between the pads
    mujoco.mj_kinematics(model, data)
    pads = []
    for side in SIDES:
        tip = data.body(f"link_gripper_fingertip_{side}")
        pads.append(tip.xpos + tip.xmat.reshape(3, 3) @ PAD_AT)
    gripper = data.body(GRIPPER)
    turned = gripper.xmat.reshape(3, 3)
    # With the wrist at 0 the fingers point along -y of the base, and down.
    forward = np.array([0.0, -math.cos(FINGER_PITCH_RAD), math.sin(FINGER_PITCH_RAD)])
    left = np.array([1.0, 0.0, 0.0])
    axes = np.stack([forward, left, np.cross(forward, left)], axis=1)
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, (turned.T @ axes).ravel())
    return {"pos": turned.T @ (np.mean(pads, axis=0) - gripper.xpos), "quat": quat}


def _couple(spec: Any) -> None:
    """Let the arm's segments stretch alike, and the fingers close alike."""
    pairs = [(segment, ARM_JOINTS[0]) for segment in ARM_JOINTS[1:]] + [(FINGERS[1], FINGERS[0])]
    for follower, leader in pairs:
        equality = spec.add_equality(
            type=mujoco.mjtEq.mjEQ_JOINT, name1=follower, name2=leader, objtype=mujoco.mjtObj.mjOBJ_JOINT
        )
        equality.data[:5] = [0.0, 1.0, 0.0, 0.0, 0.0]
        equality.solref, equality.solimp = STIFF["solref"], STIFF["solimp"]


def _add_servos(spec: Any) -> None:
    """Add a position servo for each of CONTROLS, in their order."""
    arm, grip = spec.add_tendon(name="arm"), spec.add_tendon(name="gripper")
    for joint in ARM_JOINTS:
        arm.wrap_joint(joint, 1.0)
    for joint in FINGERS:
        grip.wrap_joint(joint, LEVER_M / 2)
    joints = (*BASE_JOINTS, "joint_lift", "arm", "joint_wrist_yaw", "gripper")
    for control, target, stiffness in zip(CONTROLS, joints, STIFFNESS, strict=True):
        of_tendon = target in ("arm", "gripper")
        servo = spec.add_actuator(
            name=control.name,
            target=target,
            trntype=mujoco.mjtTrn.mjTRN_TENDON if of_tendon else mujoco.mjtTrn.mjTRN_JOINT,
            forcerange=[-control.force, control.force],
        )
        servo.set_to_position(kp=stiffness, dampratio=1.0)


def _product(first: Array, second: Array) -> Array:
    product = np.empty(4)
    mujoco.mju_mulQuat(product, np.asarray(first, float), second)
    return product


PACKAGE, MODULE = "hello-robot-stretch-urdf", "stretch_urdf"
URDF = Path("RE2V0") / "stretch_description_RE2V0_tool_stretch_gripper.urdf"
PREPARED = "stretch.urdf"
MOST_FACES = 1500
"""Of a link that is drawn. The maker's base has 200,000."""
CELLS, CLUSTERED_FACES = 100, 5000
"""Across a mesh that must be clustered, and of what comes out; with fewer the base is full of holes."""


@cache
def prepared_urdf() -> Path:
    """Return the URDF with its meshes beside it, prepared by this process, an earlier one or another."""
    source = _maker_urdf()
    told = f"{version(PACKAGE)} {MOST_FACES} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
    name = f"stretch-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    for root in _cache_roots():
        ready = root / name
        if (ready / PREPARED).is_file():
            return ready / PREPARED
        try:
            root.mkdir(parents=True, exist_ok=True)
            building = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root))
        except OSError:
            continue
        try:
            _prepare(source, building)
            _publish(building, ready)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return ready / PREPARED
    roots = ", ".join(map(str, _cache_roots()))
    raise UserError(f"cannot write the robot's prepared meshes to any of {roots}; set XDG_CACHE_HOME")


def _maker_urdf() -> Path:
    found = importlib.util.find_spec(MODULE)
    if found is None or found.origin is None:
        remedy = f"Install it with: {install_command('sim')}"
        raise MissingDependency(f"the Stretch robot (package {PACKAGE})", remedy)
    return Path(found.origin).parent / URDF


def _cache_roots() -> Iterator[Path]:
    yield user_cache_folder() / "proctor"
    yield Path(tempfile.gettempdir()) / f"proctor-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _publish(building: Path, ready: Path) -> None:
    """Give a finished folder its name. Who comes second finds it there, complete, and is content."""
    try:
        building.rename(ready)
    except OSError:
        if not (ready / PREPARED).is_file():
            raise


def _prepare(source: Path, folder: Path) -> None:
    """Write the URDF and its meshes, those that are drawn with few faces."""
    robot = ET.fromstring(source.read_text("utf-8"))  # noqa: S314  (the maker's file, as installed)
    names: dict[str, str] = {}
    for mesh in robot.iter("mesh"):
        file = mesh.get("filename", "")
        if file not in names:
            names[file] = f"{Path(file).stem}.stl"
            _simplified(source.parent / file).export(folder / names[file])
        mesh.set("filename", names[file])
    for inertia in robot.iter("inertia"):
        _repair(inertia)
    options = ET.SubElement(robot, "mujoco")
    compiler = {"discardvisual": "false", "strippath": "false", "fusestatic": "false"}
    ET.SubElement(options, "compiler", compiler | {"balanceinertia": "true"})
    (folder / PREPARED).write_text(ET.tostring(robot, encoding="unicode"), encoding="utf-8")


def _simplified(file: Path) -> Any:
    import trimesh  # noqa: PLC0415  (takes 0.2 s, and not needed when the files are prepared)

    mesh: Any = trimesh.load(file, force="mesh")
    if len(mesh.faces) <= MOST_FACES:
        return mesh
    simple = mesh.simplify_quadric_decimation(face_count=MOST_FACES)
    if len(simple.faces) > 2 * MOST_FACES:  # hundreds of screws, none of which can be simplified further
        simple = _clustered(mesh).simplify_quadric_decimation(face_count=CLUSTERED_FACES)
    return simple


def _clustered(mesh: Any) -> Any:
    """Return the mesh with all vertices of a small cell made one."""
    import trimesh  # noqa: PLC0415  (see `_simplified`)

    cells = np.round(mesh.vertices * (CELLS / mesh.extents.max()))
    _, index = np.unique(cells, axis=0, return_inverse=True)
    index = index.ravel()
    counts = np.bincount(index)
    middles = np.stack([np.bincount(index, axis) / counts for axis in mesh.vertices.T], axis=1)
    faces = index[mesh.faces]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)[1]
    return trimesh.Trimesh(middles, faces[first])


def _repair(inertia: ET.Element) -> None:
    """Replace an inertia that no body can have. All links with one are small parts."""
    xx, xy, xz, yy, yz, zz = (
        float(inertia.get(key, 0)) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    if np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).min() < 1e-7:
        for key in list(inertia.attrib):
            inertia.set(key, "1e-05" if key in ("ixx", "iyy", "izz") else "0")
