"""How fast a mobile base may move, and how hard it may speed up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from proctor.core.errors import UserError, did_you_mean

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=100)]
Drive: TypeAlias = Literal["differential", "holonomic"]
"""A differential drive goes only where it looks; a holonomic one moves and turns as it likes."""


class Dynamics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a base. A holonomic one keeps `v_max` and `a_max` in every direction."""

    v_max: Positive = 1.0
    """Metres per second."""
    omega_max: Positive = 1.0
    """Radians per second."""
    a_max: Positive = 0.5
    """Metres per second squared, speeding up and braking."""
    alpha_max: Positive = 0.5
    """Radians per second squared."""
    drive: Drive = "differential"

    @classmethod
    def of(cls, limits: Dynamics | Mapping[str, Any]) -> Dynamics:
        """Take limits as they are, or as a dict such as `{"v_max": 1.0, "omega_max": 1.0}`."""
        if isinstance(limits, Dynamics):
            return limits
        known = cls.__struct_fields__
        for name in limits:
            if name not in known:
                hint = did_you_mean(str(name), known)
                raise UserError(f"unknown limit '{name}'{hint}; the limits are {', '.join(known)}")
        try:
            return msgspec.convert(dict(limits), cls, strict=True)
        except msgspec.ValidationError as error:
            raise UserError(f"robot dynamics: {error}") from None

    def stopping_distance_m(self, speed_mps: float) -> float:
        """Return how far the base goes until it stands."""
        return speed_mps * speed_mps / (2 * self.a_max)
