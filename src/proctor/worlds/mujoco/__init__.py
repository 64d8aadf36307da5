"""The embedded world. MuJoCo is imported here and nowhere else."""

from proctor.worlds.mujoco.render.gl import choose_backend

choose_backend()  # MuJoCo reads the choice when it is imported, which the modules beside this one do.
