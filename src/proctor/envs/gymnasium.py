"""The name under which `gymnasium.make("proctor.envs.gymnasium:proctor/VLN-v0")` finds navigation."""

from proctor.exams.vln.gymnasium import ENV_ID, ProctorGym, make_vln, register

__all__ = ["ENV_ID", "ProctorGym", "make_vln", "register"]
