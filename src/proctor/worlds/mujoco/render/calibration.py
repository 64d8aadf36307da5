"""The calibration of a simulated camera, as agents may be told it."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np


def calibration_of(model: Any, camera_name: str, width: int, height: int) -> dict[str, Any]:
    """Return pinhole intrinsics in pixels, and the mount: `Env.cameras` says what the entries mean."""
    camera = model.camera(camera_name)
    focal_px = height / 2 / math.tan(math.radians(float(camera.fovy[0])) / 2)
    optical = np.empty(4)
    # MuJoCo's cameras look along -z with y up, optical frames along z with y down.
    mujoco.mju_mulQuat(optical, camera.quat, np.array([0.0, 1.0, 0.0, 0.0]))
    return {
        "width": width,
        "height": height,
        "fx": focal_px,
        "fy": focal_px,
        "cx": width / 2,
        "cy": height / 2,
        "frame": model.body(int(camera.bodyid[0])).name,
        "position": camera.pos.tolist(),
        "rotation": optical.tolist(),
    }
