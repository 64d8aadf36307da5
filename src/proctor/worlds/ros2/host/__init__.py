"""Servers: the embedded world acts as a robot on ROS 2."""
