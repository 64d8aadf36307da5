"""The tools that not every engine has: simulation and ROS 2."""
