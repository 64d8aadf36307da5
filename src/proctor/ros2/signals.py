"""What a simulated robot publishes, how often, and in which encodings."""

from __future__ import annotations

import math

import msgspec

from proctor.core.errors import UserError, did_you_mean
from proctor.sim.mobile_base import TICK_S

TICKS_PER_S = round(1 / TICK_S)
RGB_ENCODINGS = ("rgb8", "rgba8", "bgr8")
DEPTH_ENCODINGS = ("16UC1", "32FC1")


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """Of all robots of a simulator."""

    camera_hz: float
    """In simulated time; 0 for no camera."""
    scan_hz: float
    rgb_encoding: str
    depth_encoding: str
    cmd_vel_timeout_s: float | None
    """Simulated seconds after which a robot that hears no command stops."""

    def checked(self) -> Signals:
        """Return this, if it makes sense.

        Raises:
            UserError: It does not.
        """
        for what, rate_hz in (("pictures", self.camera_hz), ("scans", self.scan_hz)):
            if not 0 <= rate_hz <= TICKS_PER_S:
                raise UserError(f"expected 0 to {TICKS_PER_S} {what} in a second, found {rate_hz}")
        for encoding, known in (
            (self.rgb_encoding, RGB_ENCODINGS),
            (self.depth_encoding, DEPTH_ENCODINGS),
        ):
            if encoding not in known:
                hint = did_you_mean(encoding, known)
                raise UserError(f"unknown encoding '{encoding}'{hint}; expected {' or '.join(known)}")
        timeout_s = self.cmd_vel_timeout_s
        if timeout_s is not None and not (timeout_s > 0 and math.isfinite(timeout_s)):
            raise UserError(f"expected a timeout of commands above 0 s, found {timeout_s}")
        return self


def is_due(ticks: int, rate_hz: float) -> bool:
    """Tell whether something that happens at this rate happens in this tick."""
    return math.floor(ticks * rate_hz / TICKS_PER_S) > math.floor((ticks - 1) * rate_hz / TICKS_PER_S)
