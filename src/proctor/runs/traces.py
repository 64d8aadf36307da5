"""Traces as files: columns, compressed, one file per episode in the folder `traces` of a run.

Everything that a score depends on is in them to the last bit, so that `proctor rescore` needs no simulator.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from proctor.core.errors import AgentFault, InvalidFile
from proctor.core.types import Usage
from proctor.exams.names import AnyExam
from proctor.exams.trace import AnyTrace, Trace

VERSION = 1
MAX_BYTES = 256 << 20  # of a trace, unpacked: a file of a megabyte can hold a gigabyte


class _TraceFile(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    version: int
    exam: str
    episode_id: str
    actions: list[Any]
    states: dict[str, list[Any]]
    latencies_s: list[float]
    charged_s: list[float] | UnsetType = UNSET
    simulated_s: float | UnsetType = UNSET
    usage: list[Usage | None] | UnsetType = UNSET  # only where the policy counts it


def encode_trace(exam: AnyExam, episode_id: str, trace: AnyTrace) -> bytes:
    """Return a trace as a file holds it."""
    rows = [msgspec.to_builtins(state) for state in trace.states]
    file = _TraceFile(
        format="proctor-trace",
        version=VERSION,
        exam=exam.name,
        episode_id=episode_id,
        actions=[exam.encode_action(action) for action in trace.actions],
        states={name: [row.get(name) for row in rows] for name in exam.state_type.__struct_fields__},
        latencies_s=trace.latencies_s,
        charged_s=trace.charged_s or UNSET,
        simulated_s=trace.simulated_s if trace.charged_s else UNSET,
        usage=trace.usage if any(trace.usage) else UNSET,
    )
    return zlib.compress(msgspec.msgpack.encode(file))


def decode_trace(exam: AnyExam, content: bytes, path: Path) -> AnyTrace:
    """Return the trace that a file holds."""
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(content, MAX_BYTES)
        if not unpacker.eof:
            raise InvalidFile(path, "not a whole trace: it was cut off, or is too large")
        file = msgspec.msgpack.decode(raw, type=_TraceFile)
    except (zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise InvalidFile(path, f"not a trace: {error}") from None
    if (file.format, file.version) != ("proctor-trace", VERSION):
        problem = f"a trace of version {file.version}; this Proctor reads version {VERSION}"
        raise InvalidFile(path, problem)
    if file.exam != exam.name:
        raise InvalidFile(path, f"a trace of the exam '{file.exam:.40}', expected '{exam.name}'")
    trace: AnyTrace = Trace()
    try:
        names = [name for name in exam.state_type.__struct_fields__ if name in file.states]
        columns = [file.states[name] for name in names]
        trace.states = [
            msgspec.convert(dict(zip(names, row, strict=True)), exam.state_type)
            for row in zip(*columns, strict=True)
        ]
        trace.actions = [exam.parse_action(action) for action in file.actions]
    except (msgspec.ValidationError, ValueError, AgentFault) as error:
        raise InvalidFile(path, f"not a trace of the exam '{exam.name}': {error}") from None
    trace.latencies_s = file.latencies_s
    trace.charged_s, trace.simulated_s = file.charged_s or [], file.simulated_s or 0.0
    trace.usage = file.usage or [None] * trace.steps
    if not len(trace.states) - 1 <= trace.steps <= len(trace.states):
        problem = f"expected a state for each of {trace.steps} actions, found {len(trace.states)}"
        raise InvalidFile(path, problem)
    return trace
