"""What runs inside the Editor."""
