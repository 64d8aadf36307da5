"""What agents are called: by `proctor run --name`, or else by their policies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from proctor.core.addresses import address_label, is_address
from proctor.core.errors import UserError
from proctor.core.plain_text import plain

LONGEST_NAME = 60


def names_of(policies: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Return the given name of each policy; an empty one where none was given.

    Raises:
        UserError: There are not as many names as policies, or one cannot be a name.
    """
    unique = list(dict.fromkeys(policies))
    if given and len(given) != len(unique):
        raise UserError(f"--name: expected {len(unique)}, one for each policy, found {len(given)}")
    for name in given:
        if not folder_label(name) or plain(name) != name or len(name) > LONGEST_NAME:
            raise UserError(
                f"--name: expected 1 to {LONGEST_NAME} printable characters, a letter or digit among them, "
                f"found {name!r:.80}"
            )
    if len(set(given)) != len(given):
        raise UserError(f"--name: expected different names, found {' '.join(given)}")
    return dict(zip(unique, given or [""] * len(unique), strict=True))


def folder_of(policy: str, name: str) -> str:
    """Return the name of an agent's folder."""
    if name:
        return folder_label(name)
    if is_address(policy):
        return address_label(policy)
    file, _, class_ = policy.partition(":")
    if file.endswith(".py"):
        policy = f"{Path(file).stem}:{class_}".rstrip(":")
    return policy.replace(":", ".").replace("/", "_")


def folder_label(name: str) -> str:
    """Return a name for a folder; empty if nothing of the name can be in one."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._-")
