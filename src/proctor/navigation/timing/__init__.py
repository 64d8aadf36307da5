"""Saying when to be where along a way."""
