"""Maps, free space and shortest paths."""
