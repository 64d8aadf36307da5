"""Grids: what is free, how far the next obstacle is, and the shortest paths."""
