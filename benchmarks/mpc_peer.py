"""do-mpc set up for the problem of our controller: the same horizon, weights and bounds, no obstacles."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from proctor.core.types import Array
from proctor.kernels.tracking import STAGE_S
from proctor.navigation.tracking import drive_models as ours

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # About parts of do-mpc that are not used.
    import casadi
    import do_mpc

STAGES = 30


class Peer:
    """do-mpc's controller.

    Args:
        drive: "differential" or "holonomic".
        limits: As robots give them.
    """

    def __init__(self, drive: str, limits: dict[str, float]) -> None:
        axes = ("ahead", "turn") if drive == "differential" else ("vx", "vy", "turn")
        model = model_of(axes)
        self._controller = controller = do_mpc.controller.MPC(model)
        controller.settings.n_horizon, controller.settings.t_step = STAGES, STAGE_S
        controller.settings.store_full_solution = False
        controller.settings.supress_ipopt_output()
        state, effort = model.aux["state_cost"], model.aux["input_cost"]
        controller.set_objective(mterm=ours.LAST_STAGE * state, lterm=state + effort)
        for name in axes:
            speed = limits["omega_max" if name == "turn" else "v_max"]
            change = limits["alpha_max" if name == "turn" else "a_max"]
            controller.bounds["upper", "_x", name] = speed
            controller.bounds["lower", "_x", name] = -0.2 * speed if name == "ahead" else -speed
            controller.bounds["upper", "_u", f"to_{name}"] = change
            controller.bounds["lower", "_u", f"to_{name}"] = -change
        if drive == "holonomic":
            controller.set_nl_cons("speed", model.aux["speed"], limits["v_max"] ** 2)
            controller.set_nl_cons("push", model.aux["push"], limits["a_max"] ** 2)
        self._template = controller.get_tvp_template()
        controller.set_tvp_fun(lambda _: self._template)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What inputs cost is part of the objective here.
            controller.setup()
        self._is_new = True

    def look(self, targets: Array, wanted: Array) -> None:
        """Give it the reference: (31, states) and (31, inputs)."""
        for stage in range(STAGES + 1):
            self._template["_tvp", stage, "target"] = targets[stage]
            self._template["_tvp", stage, "wanted"] = wanted[stage]

    def solve(self, state: Array) -> Array:
        """Return the inputs."""
        if self._is_new:
            self._controller.x0 = state
            self._controller.set_initial_guess()
            self._is_new = False
        return np.asarray(self._controller.make_step(state)).ravel()


def model_of(axes: tuple[str, ...]) -> Any:
    """Return the model of a drive that accelerates along these axes."""
    model = do_mpc.model.Model("discrete")
    x, y, yaw = (model.set_variable("_x", name) for name in ("x", "y", "yaw"))
    speeds = [model.set_variable("_x", name) for name in axes]
    inputs = [model.set_variable("_u", f"to_{name}") for name in axes]
    target = model.set_variable("_tvp", "target", (3 + len(axes), 1))
    wanted = model.set_variable("_tvp", "wanted", (len(axes), 1))
    h = STAGE_S
    steps = [h * (speed + h / 2 * change) for speed, change in zip(speeds, inputs, strict=True)]
    input_weights = [ours.ACCELERATION] * (len(axes) - 1) + [ours.TURN_ACCELERATION]
    speed_weights = [ours.SPEED] * (len(axes) - 1) + [ours.TURN_RATE]
    if len(axes) == 2:
        heading = yaw + h / 2 * (speeds[1] + h / 4 * inputs[1])
        steps = [steps[0] * casadi.cos(heading), steps[0] * casadi.sin(heading), steps[1]]
    else:
        model.set_expression("speed", speeds[0] ** 2 + speeds[1] ** 2)
        model.set_expression("push", inputs[0] ** 2 + inputs[1] ** 2)
    for name, here, step in zip(("x", "y", "yaw"), (x, y, yaw), steps, strict=True):
        model.set_rhs(name, here + step)
    for name, speed, change in zip(axes, speeds, inputs, strict=True):
        model.set_rhs(name, speed + h * change)
    weights = [ours.POSITION, ours.POSITION, ours.HEADING, *speed_weights]
    states = [x, y, yaw, *speeds]
    model.set_expression("state_cost", sum(w * (states[i] - target[i]) ** 2 for i, w in enumerate(weights)))
    model.set_expression(
        "input_cost", sum(w * (inputs[i] - wanted[i]) ** 2 for i, w in enumerate(input_weights))
    )
    model.setup()
    return model
