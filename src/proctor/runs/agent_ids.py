"""The ids that agents are told instead of the stored ones.

A stored id can say which scene an episode is in, and a public one which answer is right. An agent is told a
hash of it, keyed by a secret that each run draws once and keeps in its folder: a resumed run gives the same
ids, another run gives others, and no result depends on them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from pathlib import Path

from proctor.core.documents import write_atomically
from proctor.core.errors import InvalidFile, UserError

KEY_FILE = "agent_ids.key"  # in a run directory; only its owner may read it
REMEDY = "delete it, and agents are told other ids from then on"


def draw_key() -> str:
    """Return a new secret."""
    return secrets.token_hex(32)


def agent_id(key: str, stored_id: str) -> str:
    """Return what an agent is told instead of an episode's stored id: 32 hexadecimal digits."""
    return hmac.new(key.encode(), stored_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def key_of_run(folder: Path) -> str:
    """Return the secret of a run directory, or a new one if it has none yet, as those of older versions."""
    file = folder / KEY_FILE
    try:
        found = file.read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return draw_key()
    except OSError as error:
        raise InvalidFile(file, f"cannot be read: {error.strerror}") from None
    except UnicodeError as error:
        raise InvalidFile(file, f"cannot be read: {error}; {REMEDY}") from None
    if not re.fullmatch(r"[0-9a-f]{64}", found):
        raise InvalidFile(file, f"expected 64 hexadecimal digits, found {len(found)} characters; {REMEDY}")
    return found


def keep_key(folder: Path, key: str) -> None:
    """Write the secret of a run into its locked directory; refuse if another run put its own there."""
    file = folder / KEY_FILE
    if not file.exists():
        try:
            write_atomically(file, f"{key}\n".encode(), mode=0o600)
        except OSError as error:
            raise UserError(f"cannot write {file}: {error.strerror}") from error
    elif key_of_run(folder) != key:
        raise UserError(f"{folder} was begun by another run in the meantime; give the same command again")
