"""The robot that an O3DE project needs: its components and settings, so that the exam is the same."""

from __future__ import annotations

from importlib import resources

from o3de_sim.constants import DEFAULT_PORT
from proctor.robots.wheeled import WheeledRobot


def robot_notes(robot: WheeledRobot) -> str:
    """Return the notes on a robot, as Markdown."""
    notes = resources.files(__package__).joinpath("robot.md").read_text(encoding="utf-8")
    camera, lidar = robot.camera, robot.lidar
    body_m = robot.height_m - robot.ground_clearance_m
    way = "up" if camera.pitch_deg > 0 else "down"
    return notes.format(
        lidar_z=lidar.height_m,
        camera_z=camera.height_m,
        camera_turn=90 - camera.pitch_deg,
        pitch=f", {abs(camera.pitch_deg):g}° {way}" if camera.pitch_deg else "",
        radius=robot.radius_m,
        body_height=body_m,
        body_z=robot.ground_clearance_m + body_m / 2,
        clearance=robot.ground_clearance_m,
        mass=robot.mass_kg,
        width=camera.width,
        height=camera.height,
        fov=camera.fov_deg,
        near=camera.near_m,
        far=camera.far_m,
        beams=lidar.beams,
        range_min=lidar.range_min_m,
        range_max=lidar.range_max_m,
        port=DEFAULT_PORT,
    )
