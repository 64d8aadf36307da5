"""Closed-loop motion over any robot that has odometry and takes velocities."""
