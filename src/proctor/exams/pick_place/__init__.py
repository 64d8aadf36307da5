"""Pick-and-place with a Stretch."""
