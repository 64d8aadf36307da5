"""Clients: they drive a robot that is on ROS 2."""
