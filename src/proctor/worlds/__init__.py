"""Worlds an agent can act in, behind one contract."""
