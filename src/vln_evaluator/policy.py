"""Policies."""

from proctor.core.interfaces import Policy
from proctor.policies.scripted import MockPolicy
from proctor.policies.websocket import WebSocketPolicy

__all__ = ["MockPolicy", "Policy", "WebSocketPolicy"]
