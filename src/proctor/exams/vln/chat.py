"""Navigation by instructions as chat models are told about it."""

from __future__ import annotations

from pathlib import Path

from proctor.exams.driving_chat import DrivingChat


class VlnChat(DrivingChat):
    """Drives by the four actions, and is told to follow the instruction part by part."""

    template = Path(__file__).with_name("chat.md")
