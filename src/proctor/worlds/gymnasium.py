"""The module that `gymnasium.make("proctor.worlds.gymnasium:proctor/VLN-v0")` imports, of any exam."""

from proctor.exams.pick_place.gymnasium import TabletopGym, make_tabletop
from proctor.exams.vln.gymnasium import ENV_ID, ProctorGym, make_vln, register

__all__ = ["ENV_ID", "ProctorGym", "TabletopGym", "make_tabletop", "make_vln", "register"]
