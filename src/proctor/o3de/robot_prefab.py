"""The robot as a prefab of O3DE: a start for the project's own, by the names that the engine serialises."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from proctor.robots.spec import Camera, Lidar, RobotSpec

ROBOT_PREFAB = "Assets/Models/robot/robot.prefab"  # where it is in a project
TRANSFORM = "{27F1E1A1-8D9D-4C3B-BD3A-AFB9762449C0} TransformComponent"
ENTITY_PARTS = (
    "EditorDisabledCompositionComponent",
    "EditorEntityIconComponent",
    "EditorEntitySortComponent",
    "EditorInspectorComponent",
    "EditorLockComponent",
    "EditorOnlyEntityComponent",
    "EditorPendingCompositionComponent",
    "EditorVisibilityComponent",
)
"""What every entity has in the Editor."""
SENSOR_QOS = {"Reliability": 2, "Durability": 2, "Depth": 5}
"""Best effort and volatile, by the numbers of rmw."""
CYLINDER, SUBDIVISION = 3, 64
SENSOR_HZ, ODOMETRY_HZ = 10.0, 60.0
Components = dict[str, dict[str, Any]]


def robot_prefab(robot: RobotSpec) -> bytes:
    """Return the prefab of a robot as the file's content."""
    base, scan, camera = (_entity_id(name) for name in ("base_link", "base_scan", "camera"))
    document = {
        "ContainerEntity": _entity("ContainerEntity", "robot", "", {"EditorPrefabComponent": {}}, [base]),
        "Entities": {
            base: _entity(base, "base_link", "ContainerEntity", _base(robot), [scan, camera]),
            scan: _entity(
                scan,
                "base_scan",
                base,
                _frame("base_scan") | _lidar(robot.lidar, excluded=base),
                translate=[0.0, 0.0, robot.lidar.height_m],
            ),
            camera: _entity(
                camera,
                "camera",
                base,
                _frame("camera") | _camera(robot.camera),
                translate=[0.0, 0.0, robot.camera.height_m],
                # The sensor looks along z, its x to the right; the engine turns about x, then y, then z.
                rotate=[0.0, 90.0 - robot.camera.pitch_deg, -90.0],
            ),
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=4) + b"\n"


def _base(robot: RobotSpec) -> Components:
    height_m = robot.height_m - robot.ground_clearance_m
    middle_m = robot.ground_clearance_m + height_m / 2
    return {
        **_frame("base_link", {"Namespace Strategy": 1}),  # an empty one
        "EditorRigidBodyComponent": {
            "Configuration": {
                "entityId": "",
                "Linear damping": 0.0,
                "Angular damping": 0.0,
                "Sleep threshold": 0.0,
                "Gravity Enabled": False,
                "Compute Mass": False,
                "Mass": robot.mass_kg,
                "Lock Linear Z": True,
                "Lock Angular X": True,
                "Lock Angular Y": True,
            }
        },
        "EditorColliderComponent": {
            "ColliderConfiguration": {
                "Position": [0.0, 0.0, middle_m],
                "MaterialSlots": {"Slots": [{"Name": "Entire object"}]},
            },
            "ShapeConfiguration": {
                "ShapeType": CYLINDER,
                "Cylinder": {"Subdivision": SUBDIVISION, "Height": height_m, "Radius": robot.radius_m},
            },
        },
        **_wrapped(
            "ROS2OdometrySensorComponent",
            {"SensorConfiguration": _sensor(ODOMETRY_HZ, {"nav_msgs::msg::Odometry": "odom"})},
        ),
        **_wrapped(
            "ROS2RobotControlComponent", {"SubscriberConfiguration": {"Topic": "cmd_vel", "QoS": SENSOR_QOS}}
        ),
        **_wrapped("RigidBodyTwistControlComponent", {"Config": {"PhysicalApi": 0}}),  # sets velocities
    }


def _lidar(lidar: Lidar, *, excluded: str) -> Components:
    parameters = {
        "Name": "CustomLidar2D",
        "Layers": 1,
        "Points per layer": lidar.beams,
        "Min horizontal angle": -180.0,
        "Max horizontal angle": 180.0,
        "Min vertical angle": 0.0,
        "Max vertical angle": 0.0,
        "Min range": lidar.range_min_m,
        "Max range": lidar.range_max_m,
        "Enable Noise": False,
    }
    configuration = {
        "lidarModelName": "CustomLidar2D",
        "lidarImplementation": "Scene Queries",
        "LidarParameters": parameters,
        "ExcludedEntities": [excluded],
        "PointsAtMax": False,
    }
    sensor = _sensor(SENSOR_HZ, {"sensor_msgs::msg::LaserScan": "scan"})
    return _wrapped(
        "ROS2Lidar2DSensorComponent",
        {"SensorConfiguration": sensor, "lidarCore": {"lidarConfiguration": configuration}},
    )


def _camera(camera: Camera) -> Components:
    image, info = "sensor_msgs::msg::Image", "sensor_msgs::msg::CameraInfo"
    topics = {
        "Color Image": (image, "rgb"),
        "Depth Image": (image, "depth"),
        "Color Camera Info": (info, "color_camera_info"),
        "Depth Camera Info": (info, "depth_camera_info"),
    }
    publishers = {name: _topic(kind, topic) for name, (kind, topic) in topics.items()}
    return {
        "ROS2CameraSensorEditorComponent": {
            "CameraSensorConfig": {
                "VerticalFieldOfViewDeg": camera.fov_deg,
                "Width": camera.width,
                "Height": camera.height,
                "Depth": True,
                "Color": True,
                "ClipNear": camera.near_m,
                "ClipFar": camera.far_m,
            },
            "SensorConfig": {"Frequency (HZ)": SENSOR_HZ, "Publishers": publishers},
        }
    }


def _sensor(frequency_hz: float, topics: dict[str, str]) -> dict[str, Any]:
    """Return the settings of a sensor whose publishers are called by their message types."""
    publishers = {kind: _topic(kind, topic) for kind, topic in topics.items()}
    return {"Visualize": False, "Frequency (HZ)": frequency_hz, "Publishers": publishers}


def _topic(kind: str, topic: str) -> dict[str, Any]:
    return {"Type": kind, "Topic": topic, "QoS": SENSOR_QOS}


def _frame(name: str, namespace: dict[str, Any] | None = None) -> Components:
    configuration: dict[str, Any] = {"Frame Name": name}
    if namespace is not None:
        configuration = {"Namespace Configuration": namespace} | configuration
    return {"ROS2FrameEditorComponent": {"ROS2FrameConfiguration": configuration}}


def _wrapped(kind: str, settings: dict[str, Any]) -> Components:
    """Return a component that has no editor's part of its own."""
    return {kind: {"$type": "GenericComponentWrapper", "m_template": {"$type": kind, **settings}}}


def _entity(
    entity_id: str,
    name: str,
    parent: str,
    components: Components,
    children: list[str] | None = None,
    *,
    translate: list[float] | None = None,
    rotate: list[float] | None = None,
) -> dict[str, Any]:
    settings: Components = {kind: {} for kind in ENTITY_PARTS} | components
    if children:
        settings["EditorEntitySortComponent"] = {"Child Entity Order": children}
    place = {key: value for key, value in (("Translate", translate), ("Rotate", rotate)) if value is not None}
    settings["TransformComponent"] = {"$type": TRANSFORM, "Parent Entity": parent} | (
        {"Transform Data": place} if place else {}
    )
    return {
        "Id": entity_id,
        "Name": name,
        "Components": {
            kind: {"$type": own.get("$type", kind), "Id": _number(f"{name}.{kind}")} | own
            for kind, own in sorted(settings.items())
        },
    }


def _entity_id(name: str) -> str:
    return f"Entity_[{_number(name) % 10**13}]"


def _number(name: str) -> int:
    """Return a number that is always the same for a name, and hardly ever for another."""
    return int.from_bytes(hashlib.sha256(f"proctor robot {name}".encode()).digest()[:8], "big")
