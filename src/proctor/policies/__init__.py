"""Agents that come with Proctor."""
