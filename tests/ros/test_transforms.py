"""Frames of `/tf`: which names are the same, and how many are kept."""

from geometry_msgs.msg import TransformStamped
from tf2_msgs.msg import TFMessage

from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.robot.odometry import MOST_FRAMES, Transforms

PATIENCE_S = 20.0


def told(child, x, parent="map"):
    transform = TransformStamped(child_frame_id=child)
    transform.header.frame_id = parent
    transform.transform.translation.x = x
    return transform


def test_a_frame_with_a_slash_is_followed_also_when_no_more_frames_are_kept():
    with RosNode("robot") as robot, RosNode("listener") as listener:
        transforms = Transforms(listener)
        publisher = robot.create_publisher(TFMessage, "/tf", 10)
        many = TFMessage(transforms=[told(f"frame_{number}", 1.0) for number in range(MOST_FRAMES)])
        moved = TFMessage(transforms=[told("/frame_0", 2.0, "/map"), told("one_more", 3.0)])

        def heard(message, x):
            publisher.publish(message)  # again and again: what is sent before both have met is lost
            pose = transforms.pose_of("frame_0", "map")
            return pose is not None and pose.x == x

        assert listener.wait_until(lambda: heard(many, 1.0), PATIENCE_S)
        assert listener.wait_until(lambda: heard(moved, 2.0), PATIENCE_S)
        assert transforms.pose_of("/frame_0", "/map").x == 2.0
        assert transforms.pose_of("one_more", "map") is None
