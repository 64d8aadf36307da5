"""Worlds as data: one JSON format, and generators that write it."""
