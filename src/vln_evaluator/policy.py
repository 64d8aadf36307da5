"""Policies."""

from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.interfaces import Policy
from proctor.exams.baselines import MockPolicy

__all__ = ["MockPolicy", "Policy", "WebSocketPolicy"]
