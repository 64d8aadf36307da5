"""A wheeled robot in a house: physics, camera, scanner; the env `embedded` and `navigate_to` in it."""
