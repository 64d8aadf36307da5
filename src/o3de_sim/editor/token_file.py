"""The token by which the agent knows its user's clients."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from o3de_sim.constants import TOKEN_FOLDER, TOKEN_VARIABLE

TOKEN_BYTES = 32


def given_token() -> str | None:
    """Return the token of the environment, if there is one."""
    return os.environ.get(TOKEN_VARIABLE) or None


class TokenFile:
    """A new token, in a file that only this user can read.

    Args:
        port: The agent's port, of which the file has its name.

    Raises:
        OSError: It cannot be written.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        folder = Path.home() / TOKEN_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        self.path = folder / f"token-{port}"
        new = folder / f".token-{port}-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="ascii") as file:
            file.write(self.token)
        new.replace(self.path)

    def remove(self) -> None:
        """Remove the file, if it is still this one."""
        try:
            if self.path.read_text(encoding="ascii") == self.token:
                self.path.unlink()
        except (OSError, ValueError):  # another agent's, or gone
            return
