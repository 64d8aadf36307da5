"""Send a robot on ROS 2 somewhere with the action `skill_execution`, and print how far it is.

In three terminals of the repository, after `make ros`:

    .venv-ros/bin/proctor sim-host --suite houses-v1 --episode house_64959_0
    .venv-ros/bin/proctor skill-server --suite houses-v1 --episode house_64959_0 --robot-namespace ""
    .venv-ros/bin/python examples/ros2/navigate.py X Y [YAW] [--action NAME]

The server prints a goal to try. Ctrl-C cancels the goal.
"""

import argparse
import json
import math
import sys

import rclpy
from plan_msgs.action import SkillExecution
from plan_msgs.msg import SkillCall, SkillParameter, SkillRequest
from rclpy.action import ActionClient

ACTION = "/robot_0/skill_execution"
FEEDBACKS_PER_LINE = 60


def goal_of(x: float, y: float, yaw: float | None = None, timeout: float = 60.0) -> SkillExecution.Goal:
    """Return the goal message: values are JSON."""
    params = {"goal_pos": [x, y, 0.0], "timeout": timeout}
    if yaw is not None:
        params["goal_quat"] = [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]
    told = [SkillParameter(key=key, value=json.dumps(value)) for key, value in params.items()]
    call = SkillCall(skill="navigate_to", params=told)
    return SkillExecution.Goal(skill_request=SkillRequest(skill_list=[call]))


class Printer:
    """Prints the feedback once in a second of the robot's clock, and whenever the message is another one."""

    def __init__(self) -> None:
        self._count, self._message = 0, ""

    def __call__(self, message: SkillExecution.Impl.FeedbackMessage) -> None:
        """Take a feedback."""
        told = message.feedback
        if told.message != self._message or self._count % FEEDBACKS_PER_LINE == 0:
            speed = math.hypot(*told.velocity[:2])
            numbers = f"{told.progress:3.0f} %, {told.distance_to_goal:5.2f} m to go, {speed:.2f} m/s"
            print(f"{told.state:<22} {numbers}  {told.message}")
        self._count, self._message = self._count + 1, told.message


def main() -> None:
    """Send the goal of the command line and wait for its end."""
    parser = argparse.ArgumentParser(description="Send a robot somewhere with the action skill_execution.")
    parser.add_argument("x", type=float, help="in the map, in metres")
    parser.add_argument("y", type=float, help="in the map, in metres")
    parser.add_argument("yaw", type=float, nargs="?", help="in radians (default: any)")
    parser.add_argument("--action", default=ACTION, metavar="NAME", help=f"of the server (default: {ACTION})")
    asked = parser.parse_args()
    goal = goal_of(asked.x, asked.y, asked.yaw)
    rclpy.init()
    node = rclpy.create_node("navigate_example")
    client = ActionClient(node, SkillExecution, asked.action)
    if not client.wait_for_server(timeout_sec=10.0):
        sys.exit(f"nobody offers {asked.action}: is proctor skill-server running?")
    sending = client.send_goal_async(goal, feedback_callback=Printer())
    rclpy.spin_until_future_complete(node, sending)
    result = sending.result().get_result_async()
    try:
        rclpy.spin_until_future_complete(node, result)
    except KeyboardInterrupt:
        rclpy.spin_until_future_complete(node, sending.result().cancel_goal_async())
        rclpy.spin_until_future_complete(node, result)
    end = result.result().result
    print(f"{end.status}: {end.message} {end.reason}")
    print(f"{100 * end.final_distance:.1f} cm from the goal after {end.total_time:.1f} s")
    rclpy.shutdown()


if __name__ == "__main__":
    main()
