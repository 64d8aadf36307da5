"""Runs: the loop, the run folder, and what is computed from it."""
