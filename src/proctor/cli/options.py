"""Options of policies and envs, as commands take them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.core.errors import UserError


def find_modules_here() -> None:
    """Let `module:Class` name a module of the current folder, as `python -m` does."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def read_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Return KEY=VALUE pairs as a dict; values are JSON where they can be, else text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UserError(f"expected KEY=VALUE, found '{pair}'")
        try:
            options[key] = json.loads(text)
        except json.JSONDecodeError:
            options[key] = text
    return options
