"""Robots as data: sizes, sensors, limits."""
