"""Policies."""

from proctor.core.interfaces import Policy
from proctor.policies.scripted import MockPolicy

__all__ = ["MockPolicy", "Policy"]
