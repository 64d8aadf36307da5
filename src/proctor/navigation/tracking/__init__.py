"""Following a trajectory."""
