"""A client of the skill server, and what it drives in: an empty room."""

import json

import numpy as np
from plan_msgs.action import SkillExecution
from plan_msgs.msg import SkillCall, SkillParameter, SkillRequest
from rclpy.action import ActionClient

from proctor.maps.grid_map import GridMap
from proctor.worlds.ros2.node.node import RosNode

PATIENCE_S = 30.0


def room(side_m=12.0, resolution_m=0.05):
    """Return the map of a square room around the origin."""
    cells = round(side_m / resolution_m)
    occupied = np.zeros((cells, cells), dtype=bool)
    occupied[[0, -1], :] = occupied[:, [0, -1]] = True
    return GridMap(occupied, resolution_m=resolution_m, origin_world=(-side_m / 2, -side_m / 2))


def skill_goal(*calls):
    """Return a goal of (skill, params) pairs; params that are no text become JSON."""
    skills = [
        SkillCall(
            skill=skill,
            params=[
                SkillParameter(key=key, value=value if isinstance(value, str) else json.dumps(value))
                for key, value in params.items()
            ],
        )
        for skill, params in calls
    ]
    return SkillExecution.Goal(skill_request=SkillRequest(skill_list=skills))


def navigate(x, y, **params):
    """Return a goal of the skill navigate_to."""
    return skill_goal(("navigate_to", {"goal_pos": [x, y, 0.0], **params}))


class Asked:
    """A goal on its way."""

    def __init__(self, client, action, goal):
        self._client, self.feedback = client, []
        sending = action.send_goal_async(goal, feedback_callback=lambda m: self.feedback.append(m.feedback))
        assert client.wait_until(sending.done, PATIENCE_S)
        self.handle = sending.result()
        self._result = self.handle.get_result_async()

    def wait_for(self, happened):
        """Wait until something holds for the newest feedback."""
        return self._client.wait_until(lambda: self.feedback and happened(self.feedback[-1]), PATIENCE_S)

    def cancel(self):
        """Ask for it to be cancelled, and return the answer."""
        future = self.handle.cancel_goal_async()
        assert self._client.wait_until(future.done, PATIENCE_S)
        return future.result()

    def end(self, timeout_s=PATIENCE_S):
        """Wait for the end, and return the status and the result."""
        assert self._client.wait_until(self._result.done, timeout_s), "no result came"
        return self._result.result().status, self._result.result().result


class Client(RosNode):
    """Asks for things that actions do."""

    def __init__(self, name="skill_client"):
        super().__init__(name)
        self._actions = {}

    def destroy_node(self):
        for action in self._actions.values():
            action.destroy()
        super().destroy_node()

    def ask(self, goal, name="/robot_0/skill_execution", kind=SkillExecution):
        """Send a goal."""
        if name not in self._actions:
            self._actions[name] = ActionClient(self, kind, name)
        assert self.wait_until(self._actions[name].server_is_ready, PATIENCE_S)
        return Asked(self, self._actions[name], goal)
