"""Reading the transcript of an episode: what an agent was asked, what it replied, what came of it.

A policy writes it, in the format of `docs/cost-and-transcripts.md`. It may be torn, cut off or hostile: what
can be read is read, within bounds, and `problems` says what cannot.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

MAX_LINE_BYTES = 16 << 20
MAX_UNPACKED_BYTES = 256 << 20
"""A file of a megabyte can hold a gigabyte."""
MAX_STEP = 10**6

Step = Annotated[int, Meta(ge=0, le=MAX_STEP)]
Seconds = Annotated[float, Meta(ge=0, le=1e6)]


class RecordedPicture(msgspec.Struct, frozen=True, tag="picture", tag_field="kind"):
    """A picture that was sent, once, before its first use."""

    sha256: str
    data: str  # base64
    media_type: str = ""


class RecordedRequest(msgspec.Struct, frozen=True, tag="request", tag_field="kind"):
    """What was asked before a step, counted from 0."""

    step: Step
    body: msgspec.Raw = msgspec.Raw(b"null")


class RecordedReply(msgspec.Struct, frozen=True, tag="reply", tag_field="kind"):
    """What came back."""

    step: Step
    status: int = 0
    seconds: Seconds = 0.0
    body: Any = None


class RecordedDecision(msgspec.Struct, frozen=True, tag="decision", tag_field="kind"):
    """What came of a reply."""

    step: Step
    actions: list[Any] = []
    note: str = ""
    prompt: str = ""  # the text that the agent was given
    reply: str = ""  # what it said, for people
    pictures: list[str] = []  # sha256 of each that it was shown
    attempts: int = 1  # how many replies it took
    seconds: Seconds = 0.0  # how long all of them took


class Note(msgspec.Struct, frozen=True, tag="note", tag_field="kind"):
    """Why there is no more."""

    text: str


Line = RecordedPicture | RecordedRequest | RecordedReply | RecordedDecision | Note


class Transcript:
    """The decisions of an episode in order, their pictures by sha256, and what could not be read."""

    def __init__(self, path: Path) -> None:
        self.decisions: list[RecordedDecision] = []
        self.pictures: dict[str, RecordedPicture] = {}
        self.problems: list[str] = []
        self._replies: list[RecordedReply] = []  # to the present step, without a decision so far
        self._request = RecordedRequest(step=0)
        for line in self._lines(path):
            self._add(line)
        self._end_step()

    def _lines(self, path: Path) -> Iterator[Line]:
        """Yield what can be read; of lines that cannot be, say how many and why the first one."""
        unread, first, known = 0, "", msgspec.json.Decoder(Line)
        for number, content in enumerate(self._raw_lines(path), 1):
            try:
                yield known.decode(content)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if "Invalid value" in str(error) and "$.kind" in str(error):
                    continue  # of a later version
                unread, first = unread + 1, first or f"line {number}: {error}"
        if unread:
            self.problems.append(f"{unread} line{'s' * (unread > 1)} could not be read; the first is {first}")

    def _raw_lines(self, path: Path) -> Iterator[bytes]:
        """Yield whole lines until the end, or until something is wrong."""
        left = MAX_UNPACKED_BYTES
        try:
            with gzip.open(path) as stream:
                while content := stream.readline(min(MAX_LINE_BYTES, left) + 1):
                    left -= len(content)
                    if len(content) > MAX_LINE_BYTES or left < 0:
                        self.problems.append("it is read only in part: a line, or the whole, is too long")
                        return
                    yield content
        except (OSError, EOFError, zlib.error) as error:  # BadGzipFile is an OSError
            self.problems.append(f"it is read only in part: {error}")

    def _add(self, line: Line) -> None:
        if isinstance(line, RecordedPicture):
            self.pictures.setdefault(line.sha256, line)
        elif isinstance(line, Note):
            self.problems.append(line.text)
        elif isinstance(line, RecordedRequest):
            if self._replies and line.step != self._replies[0].step:
                self._end_step()
            self._request = line
        elif isinstance(line, RecordedReply):
            self._replies.append(line)
        else:
            self.decisions.append(
                msgspec.structs.replace(
                    line,
                    attempts=max(1, len(self._replies)),
                    seconds=sum(reply.seconds for reply in self._replies),
                )
            )
            self._replies = []

    def _end_step(self) -> None:
        """Make replies that led to no action a decision without any: they are what an agent failed by."""
        if self._replies:
            said = "\n\n".join(_text(reply.body) for reply in self._replies)
            status = self._replies[-1].status
            decision = RecordedDecision(
                step=self._replies[0].step,
                note=f"No action came of this (HTTP status {status}).",
                prompt=_text(bytes(self._request.body).decode("utf-8", "replace")),
                reply=said,
            )
            self._add(decision)


def _text(body: Any) -> str:
    if isinstance(body, str):
        return body
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
