"""The privileged expert for pick-and-place, and the planning behind it."""
