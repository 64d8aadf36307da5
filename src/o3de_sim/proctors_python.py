"""What to use instead of Proctor's simulator in the Python of O3DE's Editor."""

from __future__ import annotations

import sys

SIMULATOR_MODES = (
    "O3DESimulator and O3DEEnv work with mode 'socket' in Proctor's own Python, beside the Editor; scripts "
    "inside the Editor, whose Python 3.10 cannot import Proctor, use O3DEAgent(mode='peb') of "
    "o3de_sim.o3de_api.o3de_agent"
)


def require_proctors_python(version: tuple[int, ...] = sys.version_info[:2]) -> None:
    """Raise ImportError in the Editor's Python, where Proctor's imports would fail one after the other."""
    if version < (3, 11):
        found = ".".join(map(str, version))
        raise ImportError(f"Proctor needs Python 3.11 or newer, found {found}. {SIMULATOR_MODES}")
