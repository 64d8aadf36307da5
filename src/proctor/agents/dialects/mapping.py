"""Between an exam and a policy server that knows only numbers: what it is sent, and what its rows mean.

The exam gives the defaults (`EpisodeInfo.dialects`), the user's mapping file overrides them.
"""

from __future__ import annotations

import abc
import math
from collections import deque
from collections.abc import Callable
from collections.abc import Mapping as Map
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from PIL import Image, ImageOps

from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import Dialect, encoding
from proctor.agents.dialects.packed_arrays import array_encoder, read_numbers
from proctor.agents.handshake import Handshake, last_line, one_line
from proctor.agents.messages import BadFrame, WireFault
from proctor.core.answers import NOT_FINITE, WRONG_LENGTH
from proctor.core.documents import convert, read_json
from proctor.core.errors import AgentFault, UserError, did_you_mean
from proctor.core.types import Array, EpisodeInfo, Observation, Outcome

T = TypeVar("T")
Kind: TypeAlias = Literal["index", "scores", "joint_position", "ee_pose_target"]
Entries: TypeAlias = Annotated[dict[str, str | dict[str, str | dict[str, str]]], msgspec.Meta(min_length=1)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=4096)]

INSTRUCTION = "instruction"  # the name of the instruction's text among the entries of an observation
INDEX_TOLERANCE = 1e-6  # how near to a whole number an action's number must be: networks count in floats


class ActionMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the numbers of a reply mean."""

    key: str = "actions"  # where in the reply they are
    kind: Kind | None = None  # None: the exam's default
    chunk: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """How many rows of a reply to execute before the server is asked again."""


class Mapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a mapping file. What is missing is the exam's default for the dialect."""

    observation: Entries | None = None  # the server's key -> our entry. A map in it is a map in what is sent.
    resize: dict[str, tuple[Pixels, Pixels]] | None = None
    """Our entry -> (height, width) to fit its picture into, padded with black. `{}`: no change."""
    action: ActionMapping = ActionMapping()

    def completed(self, dialect: str, info: EpisodeInfo) -> Mapping:
        """Return it with the exam's defaults filled in, or raise UserError if it does not fit the exam."""
        kinds = info.dialects.action_kinds
        if kinds and self.action.kind not in (None, *kinds):
            choices = " or ".join(f"'{kind}'" for kind in kinds)
            raise UserError(
                f"mapping: action.kind is '{self.action.kind}', but in {info.task} it must be {choices}"
            )
        defaults = info.dialects.observations.get(dialect)
        observation = self.observation or (defaults.entries if defaults else None)
        if observation is None:
            problem = f"the exam '{info.task}' has no defaults for {dialect}"
            raise UserError(f"mapping: expected the key 'observation', as {problem}")
        sources = set(_sources(observation))
        for name in self.resize or {}:
            if name not in sources:
                known = f"; 'observation' takes: {', '.join(sorted(sources))}"
                raise UserError(
                    f"mapping: unknown entry '{name}' in 'resize'{did_you_mean(name, sources)}{known}"
                )
        resize = self.resize if self.resize is not None else dict(defaults.resize if defaults else {})
        return replace(self, observation=observation, resize=resize)

    def payload(self, observation: Observation, instruction: str) -> dict[str, Any]:
        """Return an observation under the server's keys, or raise UserError if an entry is missing."""
        entries = {**observation, INSTRUCTION: instruction}
        return {key: self._filled(entries, source) for key, source in (self.observation or {}).items()}

    def _filled(self, entries: Map[str, Any], source: str | Map[str, Any]) -> Any:
        if isinstance(source, str):
            return self._value(entries, source)
        return {key: self._filled(entries, inner) for key, inner in source.items()}

    def _value(self, entries: Map[str, Any], name: str) -> Any:
        if name not in entries:
            known = f"; observations hold: {', '.join(sorted(entries))}"
            raise UserError(
                f"mapping: unknown entry '{name}' in 'observation'{did_you_mean(name, entries)}{known}"
            )
        value = entries[name]
        if isinstance(value, list | tuple):
            value = np.asarray(value)
        return fit(value, *self.resize[name]) if self.resize and name in self.resize else value


def load_mapping(path: Path) -> Mapping:
    """Read a mapping file, or raise InvalidFile."""
    return convert(read_json(path), Mapping, path)


def fit(pixels: Any, height: int, width: int) -> NDArray[Any]:
    """Scale a picture to fit a size without changing its proportions, and pad it with zeros."""
    if not (isinstance(pixels, np.ndarray) and pixels.ndim in (2, 3)):
        raise UserError("mapping: 'resize' is for pictures only")
    # Between two depths there may be nothing: only colours are mixed.
    method = Image.Resampling.BILINEAR if pixels.ndim == 3 else Image.Resampling.NEAREST
    return np.asarray(ImageOps.pad(Image.fromarray(pixels), (width, height), method))


def _sources(observation: Map[str, Any]) -> list[str]:
    found = [_sources(value) if isinstance(value, dict) else [value] for value in observation.values()]
    return [name for names in found for name in names]


class RowTranslator:
    """Translates observations to a server's keys, and rows of numbers to answers that the exam parses.

    A reply may hold a chunk: several rows, to be executed one after the other. The server is asked again
    after as many of them as the mapping says. The dialect's defaults are used for what the mapping leaves
    out.
    """

    def __init__(self, dialect: str, mapping: Mapping | None) -> None:
        self._dialect, self._given = dialect, mapping or Mapping()
        self._mapping = self._given
        self._info = EpisodeInfo(episode_id="", instruction="", max_steps=0, seed=0)
        self._rows: deque[Array] = deque()

    def begin(self, info: EpisodeInfo) -> None:
        """Start an episode: forget the last chunk. Raises UserError if the mapping does not fit the exam."""
        self._mapping, self._info = self._given.completed(self._dialect, info), info
        self._rows.clear()

    @property
    def action_key(self) -> str:
        """Where in a reply the numbers are; `actions` unless the mapping file says otherwise."""
        return self._mapping.action.key

    def payload(self, observation: Observation) -> dict[str, Any]:
        """Return an observation under the server's keys."""
        return self._mapping.payload(observation, self._info.instruction)

    def queued_answer(self) -> Any | None:
        """Return the next answer of the last chunk, or None if the server must be asked."""
        return self._answer(self._rows.popleft()) if self._rows else None

    def entry_of(self, reply: Map[str, T]) -> T:
        """Return the entry of a reply that holds the numbers."""
        if self.action_key not in reply:
            found = one_line(", ".join(sorted(map(str, reply))) or "nothing")
            hint = "'action.key' in the mapping says where to look"
            problem = f"the reply has no '{self.action_key}', only {found}; {hint}"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
        return reply[self.action_key]

    def first_answer(self, reply: Map[str, msgspec.Raw]) -> Any:
        """Read a reply, queue its rows and return the answer of the first one."""
        packed = self.entry_of(reply)
        try:
            return self.first_of_rows(read_numbers(packed))
        except BadFrame as error:
            raise AgentFault(error.kind, f"{self.action_key}: {error}") from None

    def first_of_rows(self, numbers: Array) -> Any:
        """Queue a row of numbers, or several, and return the answer of the first one."""
        key, rows = self._mapping.action.key, np.atleast_2d(numbers)
        if rows.ndim > 2 or not rows.size:
            problem = f"{key}: expected one row of numbers or several, found shape {numbers.shape}"
            raise AgentFault(WRONG_LENGTH, problem)
        self._rows.extend(rows[: self._mapping.action.chunk])
        return self._answer(self._rows.popleft())

    def _answer(self, row: Array) -> Any:
        kind = self._mapping.action.kind or self._info.dialects.default_kind or self._kind_by_length(row)
        if kind == "index":
            return self._index(row)
        if kind == "scores":
            return self._best(row)
        if kind == "joint_position":
            return {"type": kind, "qpos": row.tolist()}
        *pose, opening = row.tolist()
        return {"type": "ee_pose_target", "ee_pose_target": pose, "gripper_action": opening}

    def _kind_by_length(self, row: Array) -> str:
        kinds = self._info.dialects.action_kinds
        for kind, lengths in kinds.items():
            if len(row) in lengths:
                return kind
        expected = " or ".join(f"{' or '.join(map(str, kinds[kind]))} ({kind})" for kind in kinds)
        problem = f"expected {expected or 'the key action.kind in the mapping'}; found {len(row)} numbers"
        raise AgentFault(WRONG_LENGTH, problem)

    def _index(self, row: Array) -> Any:
        """Return an action's number, as an integer if it is one. The exam refuses what is not an action."""
        if len(row) > 1 and len(row) in self._info.dialects.action_kinds.get("scores", ()):
            hint = "if these are scores, set 'action.kind' in the mapping to 'scores'"
            raise AgentFault(
                WRONG_LENGTH, f"expected the number of an action, found {len(row)} numbers; {hint}"
            )
        if len(row) != 1:
            expected = "the number of an action (several actions are an array of shape (n, 1))"
            raise AgentFault(WRONG_LENGTH, f"expected {expected}; found {len(row)} numbers")
        number = float(row[0])
        is_whole = math.isfinite(number) and abs(number - round(number)) <= INDEX_TOLERANCE
        return round(number) if is_whole else number

    def _best(self, row: Array) -> int:
        """Return the index of the largest score. Minus infinity may stand for what is forbidden."""
        lengths = self._info.dialects.action_kinds.get("scores", (len(row),))
        if len(row) not in lengths:
            expected = f"one score for each of the {' or '.join(map(str, lengths))} actions"
            raise AgentFault(WRONG_LENGTH, f"expected {expected}; found {len(row)} numbers")
        if np.isnan(row).any():
            raise AgentFault(NOT_FINITE, f"expected scores, found NaN: {row.tolist()!s:.100}")
        return int(np.argmax(row))


class RowDialect(Dialect):
    """The protocol of a policy server that answers with rows of numbers, in msgpack.

    A subclass writes and reads the messages. By default there are no episodes, and no handshake.
    """

    write_array: ClassVar[Callable[[NDArray[Any]], dict[Any, Any]]]
    """How the server wants arrays: one of the functions of `packed_arrays.py`."""

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self._translator = RowTranslator(self.name, mapping)
        self._encoder = array_encoder(type(self).write_array)

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return False: the user names the dialect, or the scheme of the address does."""
        del handshake
        return False

    @classmethod
    def open(
        cls, connection: Connection, handshake: Handshake, mapping: Mapping | None, deadline_s: float
    ) -> Self:
        """Make the dialect, and let it finish the handshake."""
        dialect = super().open(connection, handshake, mapping, deadline_s)
        dialect._shake_hands(handshake, deadline_s)  # noqa: SLF001  (of this class)
        return dialect

    def _shake_hands(self, handshake: Handshake, deadline_s: float) -> None:
        """Finish the handshake; AgentFault if the server speaks something else."""

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Keep the instruction, and forget the last chunk."""
        del deadline_s
        self._translator.begin(info)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Return the next answer of the last chunk, or ask the server for a new one."""
        answer = self._translator.queued_answer()
        return self._ask_server(observation, deadline_s) if answer is None else answer

    @abc.abstractmethod
    def _ask_server(self, observation: Observation, deadline_s: float) -> Any:
        """Send an observation, and return the first answer of the reply's chunk."""

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Do nothing: many servers do not know of episodes."""

    def _encoded(self, message: Any) -> bytes:
        with encoding():
            return self._encoder.encode(message)

    def _exchange(self, message: Any, deadline_s: float) -> bytes:
        """Send a message and return the reply, which must be binary."""
        reply = self.connection.exchange(self._encoded(message), deadline_s)
        if isinstance(reply, str):
            problem = f"expected a binary frame, found text: {last_line(reply)}"
            raise AgentFault(WireFault.WRONG_FRAME, problem)
        return reply

    def _resized(self, info: EpisodeInfo, resize: dict[str, tuple[int, int]]) -> EpisodeInfo:
        """Return an episode in which pictures get other sizes by default."""
        defaults = info.dialects
        if self.name not in defaults.observations:
            return info
        sent = replace(defaults.observations[self.name], resize=resize)
        observations = {**defaults.observations, self.name: sent}
        return replace(info, dialects=replace(defaults, observations=observations))
