"""Closing envs and policies. What they raise becomes a warning; no result is lost by it."""

from __future__ import annotations

from proctor.core.interfaces import Env, Policy
from proctor.runs.episode_log import error_text
from proctor.runs.forks import no_forks


def close_problems(*items: Env | Policy) -> list[str]:
    """Close each of them, whatever the others do, and return a sentence for each that raised."""
    problems = []
    for item in items:
        try:
            with no_forks():
                item.close()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  as in an episode, whatever it is
            kind = "policy" if isinstance(item, Policy) else "env"
            problems.append(f"close() of the {kind} {type(item).__name__} failed: {error_text(error)}")
    return problems
