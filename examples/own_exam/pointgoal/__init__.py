"""Point-goal navigation: drive to a point that is given relative to the start, and stop there."""
