"""O3DE as a world to be examined in."""
