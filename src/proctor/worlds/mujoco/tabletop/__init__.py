"""A Stretch at a table: physics, looks, inverse kinematics."""
