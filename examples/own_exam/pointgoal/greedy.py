"""A baseline that turns towards the goal and drives, and never looks."""

import math

from proctor.core.geometry import pose_after, wrap_angle
from proctor.core.interfaces import Policy
from proctor.core.types import STEP_M, TURN_RAD, Action, EpisodeInfo, Observation, Pose2


class GreedyPolicy(Policy):
    """Uses the odometry if it is shown, else counts its own actions, which a collision spoils."""

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the goal."""
        self.goal = episode_info.details["goal"]
        self.pose = Pose2(0.0, 0.0, 0.0)

    def act(self, observation: Observation) -> Action:
        """Turn towards the goal, drive, and stop where another step would lead past it."""
        odom = observation.get("odom", self.pose)
        pose = Pose2(odom["x"], odom["y"], odom["yaw"])
        ahead, left = self.goal["x"] - pose.x, self.goal["y"] - pose.y
        turn_rad = wrap_angle(math.atan2(left, ahead) - pose.yaw)
        if math.hypot(ahead, left) <= STEP_M / 2:
            action = Action.STOP
        elif abs(turn_rad) <= TURN_RAD / 2:
            action = Action.FORWARD
        else:
            action = Action.LEFT if turn_rad > 0 else Action.RIGHT
        self.pose = pose_after(action, pose)
        return action
