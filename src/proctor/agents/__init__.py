"""Agents that are served elsewhere: both ends of the wire."""
