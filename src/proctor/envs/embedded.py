"""The earlier name of `proctor.worlds.mujoco.wheeled.env`."""

from proctor.worlds.mujoco.wheeled.env import VLNEnv

__all__ = ["VLNEnv"]
