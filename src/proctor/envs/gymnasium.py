"""The earlier name of `proctor.worlds.gymnasium`, for `gymnasium.make("proctor.envs.gymnasium:...")`."""

from proctor.worlds import gymnasium

__all__ = ["gymnasium"]
