"""Faults as people would say them. The results name each by one stable word."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.agents.chat.faults import ChatFault
from proctor.agents.messages import WireFault
from proctor.core.answers import INVALID_ACTION, NOT_FINITE, UNSTABLE_PHYSICS, WRONG_LENGTH
from proctor.exams.results import Fault, Verdict

WORDS: dict[str, str] = {
    WireFault.UNREACHABLE: "nobody answered at its address",
    WireFault.UNAVAILABLE: "it could not take an episode at that time",
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
    ChatFault.REFUSAL: "the model declined to answer",
    ChatFault.NO_ACTION: "a reply without an action",
    ChatFault.CONTRADICTION: "tool calls that contradict each other",
    ChatFault.TRUNCATED: "a reply that was cut off",
    ChatFault.TOO_LARGE: "a reply above the size limit",
    ChatFault.TIMEOUT: "a reply that began but did not end in time",
    ChatFault.UNKNOWN_TOOL: "a call of a tool that does not exist",
    ChatFault.BAD_ARGUMENTS: "a tool call with unusable arguments",
    ChatFault.DECISION_LIMIT: "all decisions of the episode were used up",
    ChatFault.UNREACHABLE: "the model's server did not answer",
    ChatFault.OVERLOADED: "the model's server was overloaded",
    ChatFault.KEY_REFUSED: "the model's server refused the key",
    ChatFault.NO_CREDIT: "the account has no credit left",
    ChatFault.REQUEST_REFUSED: "the model's server refused the request",
    ChatFault.UNREADABLE: "what answered does not speak a model's API",
    INVALID_ACTION: "an action that does not exist",
    WRONG_LENGTH: "an action with too few or too many numbers",
    NOT_FINITE: "an action with NaN or infinity in it",
    UNSTABLE_PHYSICS: "the physics broke under its commands",
    "policy_exception": "the agent raised an error",
    "policy_lost": "the agent's process died or hung",
    "worker_killed": "its process was killed from outside",
    "wrong_result": "its process sent the result of another episode",
    "no_prediction": "no prediction for the episode",
    "nothing_to_replay": "nothing to replay in the episode",
    "env_exception": "the world raised an error",
    "env_lost": "the process died or hung in the world's turn",
    "evaluator_exception": "the evaluator raised an error",
    "host_lost": "the processes that had taken it were lost",
    "node_lost": "the Ray workers that had taken it were lost",
    "evaluator_lost": "the evaluator's process died or hung",
}


def fault_words(kind: str) -> str:
    """Return what a kind of fault means; of one that is not known here, its own words."""
    return WORDS.get(kind, kind.replace("_", " "))


UNSCORED = {
    "evaluator": ("evaluator_fault", "The evaluator failed after {steps}, so nothing is scored"),
    "unavailable": ("unavailable", "The agent was not available, so nothing is scored"),
    "unknown": ("unknown_fault", "Who is to blame is not known after {steps}, so nothing is scored"),
}
"""By the side of a fault: how an episode is classed that is not scored, and what is said about it."""
UNSCORED_CLASSES = [kind for kind, _ in UNSCORED.values()]
LOSSES = {
    "evaluator": "to evaluator faults",
    "unavailable": "because the agent was unavailable",
    "unknown": "for unknown reasons",
}


def fault_verdict(fault: Fault, steps: int) -> Verdict:
    """Return the verdict on an episode that broke off after some steps."""
    line = fault_line(fault)
    if fault.side in UNSCORED:
        kind, text = UNSCORED[fault.side]
        return Verdict(kind, steps, f"{text.format(steps=counted(steps, 'step'))}: {line}")
    text = f"The agent failed at step {steps + 1} ({fault_words(fault.kind)}): {line}"
    return Verdict("agent_fault", steps, text)


def counted(number: int, noun: str) -> str:
    """Return `1 step` or `2 steps`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def loss_text(unscored: Mapping[str, int], total: int) -> str:
    """Say how many episodes do not count, and why; nothing if all do. Takes `Summary.unscored`."""
    if not unscored:
        return ""
    lost = f"{sum(unscored.values())} of {total} episodes lost"
    if len(unscored) == 1:
        return f"{lost} {LOSSES[next(iter(unscored))]} and left out"
    parts = [f"{count} {LOSSES[side]}" for side, count in unscored.items()]
    return f"{lost} and left out: {', '.join(parts)}"


def fault_line(fault: Fault) -> str:
    """Return a fault's message in one line: where a traceback was given, its last."""
    lines = fault.message.strip().splitlines() or [""]
    return lines[-1] if lines[0].startswith(("Traceback", "File ")) else lines[0]
