"""Recorders: what writes an episode down in the formats of other programs, while it goes on."""
