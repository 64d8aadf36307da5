"""Faults as people would say them. The results name each by one stable word."""

from __future__ import annotations

from proctor.core.actions import INVALID, NOT_FINITE, UNSTABLE, WRONG_LENGTH
from proctor.core.results import Fault
from proctor.protocol.faults import WireFault

WORDS: dict[str, str] = {
    WireFault.UNREACHABLE: "nobody answered at its address",
    WireFault.MISMATCH: "it speaks another protocol or version",
    WireFault.DISCONNECTED: "the connection ended in the middle of an episode",
    WireFault.ACTION_TIMEOUT: "no reply within the time for an action",
    WireFault.SLOW_REPLY: "a reply began in time but did not end in time",
    WireFault.EPISODE_BUDGET: "all actions together took longer than an episode may",
    WireFault.MALFORMED: "a message that cannot be decoded",
    WireFault.TOO_BIG: "a message above the size limit",
    WireFault.TOO_DEEP: "a message nested too deep",
    WireFault.WRONG_FRAME: "text where binary is due, or binary where text is",
    WireFault.WRONG_MESSAGE: "another message than the one that was due",
    WireFault.WRONG_SESSION: "a reply of another session",
    WireFault.STALE_REPLY: "a reply to an earlier request",
    WireFault.UNASKED: "a message that nobody had asked for",
    WireFault.AGENT_ERROR: "the agent said that it had failed",
    INVALID: "an action that does not exist",
    WRONG_LENGTH: "an action with too few or too many numbers",
    NOT_FINITE: "an action with NaN or infinity in it",
    UNSTABLE: "the physics broke under its commands",
    "policy_exception": "the agent raised an error",
    "policy_lost": "the agent's process died or hung",
    "no_prediction": "no prediction for the episode",
    "nothing_to_replay": "nothing to replay in the episode",
    "env_exception": "the world raised an error",
    "env_lost": "the process died or hung in the world's turn",
    "evaluator_exception": "the evaluator raised an error",
    "evaluator_lost": "the evaluator's process died or hung",
}


def fault_words(kind: str) -> str:
    """Return what a kind of fault means; of one that is not known here, its own words."""
    return WORDS.get(kind, kind.replace("_", " "))


def fault_line(fault: Fault) -> str:
    """Return a fault's message in one line: where a traceback was given, its last."""
    lines = fault.message.strip().splitlines() or [""]
    return lines[-1] if lines[0].startswith(("Traceback", "File ")) else lines[0]
