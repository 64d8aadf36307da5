"""Proctor gives embodied agents their exam: a world, an instruction, a robot, and an honest score."""

__version__ = "0.1.0"
