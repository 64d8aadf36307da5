"""The settings of Fast DDS with which pictures are not lost."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""The names in Fast DDS 2 and 3."""
FILE = Path(__file__).with_name("fastdds.xml")


def use_profile() -> None:
    """Let Fast DDS read our profile, unless the user has one. Comes before the process's first context."""
    if not any(os.environ.get(variable) for variable in VARIABLES):
        os.environ.update(dict.fromkeys(VARIABLES, str(FILE)))
