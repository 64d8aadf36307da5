"""What a policy says of itself: what it has used, and what was exchanged with its agent.

Both are checked here, once. What was used is put into words here as well.
"""

from __future__ import annotations

import gzip
import math
from typing import Any

import msgspec

from proctor.core.errors import AgentFault
from proctor.core.interfaces import Policy
from proctor.core.types import Usage
from proctor.exams.record_check import LARGEST_NUMBER

MAX_TRANSCRIPT_BYTES = 64 << 20  # of an episode, compressed


def read_usage(policy: Policy) -> Usage | None:
    """Return what a policy has used since the last call; an AgentFault if what it says cannot be."""
    usage: Any = policy.usage()
    return None if usage is None else checked_usage(usage)


def checked_usage(usage: Any) -> Usage:
    """Return a usage whose numbers can be counted and written; an AgentFault if it has others."""
    if not isinstance(usage, Usage):
        found = type(usage).__name__
        raise AgentFault("invalid_usage", f"usage() returned {found}, expected a Usage or None")
    for name, value in msgspec.structs.asdict(usage).items():
        if name == "cost_usd" and value is None:
            continue
        kinds, expected = ((int, float), "a number") if name == "cost_usd" else ((int,), "an int")
        if type(value) not in kinds or not (math.isfinite(value) and 0 <= value <= LARGEST_NUMBER):
            raise AgentFault(
                "invalid_usage",
                f"usage().{name}: expected {expected} from 0 to {LARGEST_NUMBER:.0e}, found {value!r:.40}",
            )
    return usage


def transcript_of(policy: Policy) -> bytes:
    """Return a policy's transcript of the episode, as its file holds it; too long a one is cut off."""
    transcript: Any = policy.transcript()
    if not isinstance(transcript, bytes):
        found = type(transcript).__name__
        return transcript_note(f"{type(policy).__name__}.transcript() returned {found}, expected bytes")
    return transcript[:MAX_TRANSCRIPT_BYTES]


def transcript_note(text: str) -> bytes:
    """Return a transcript that only says why there is none."""
    return gzip.compress(msgspec.json.encode({"kind": "note", "text": text}) + b"\n", mtime=0)


def usage_text(usage: Usage) -> str:
    """Return what was used in words: `31 decisions, 62k tokens in (40 % cached), 3k out, $0.21`."""
    decided = f"{usage.decisions} decision{'s' * (usage.decisions != 1)}"
    repaired = f", {usage.repairs} repaired" if usage.repairs else ""
    return f"{decided}{repaired}, {tokens_text(usage)}"


def tokens_text(usage: Usage) -> str:
    """Return the tokens and their cost in words."""
    share = cached_text(usage)
    cached = f" ({share} cached)" if share else ""
    cost = "" if usage.cost_usd is None else f", {dollars(usage.cost_usd)}"
    return f"{count_text(usage.input_tokens)} tokens in{cached}, {count_text(usage.output_tokens)} out{cost}"


def cached_text(usage: Usage) -> str:
    """Return the share of the input that was cached, `40 %`; nothing if none was."""
    share = usage.cached_tokens / usage.input_tokens if usage.input_tokens else 0.0
    return f"{share:.0%}".replace("%", " %") if share else ""


def count_text(count: int) -> str:
    """Return a count in few digits: `950`, `3.1k`, `62k`, `1.2M`."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.{int(count < 10 * size)}f}{unit}"
    return str(count)


def dollars(amount: float) -> str:
    """Return an amount of money: to the cent, or with two digits if it is less."""
    return f"${amount:.2f}" if amount >= 0.0995 or amount == 0 else f"${amount:.2g}"
