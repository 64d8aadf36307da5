"""What people look at after a run."""
