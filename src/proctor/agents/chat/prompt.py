"""Prompt templates, and pictures as a model gets them.

A template is a text file with the parts `## system` and `## user`. Names in braces stand for what changes
from decision to decision; `{pictures}` stands on a line of its own. A line is left out if nothing remains of
it, because its names have nothing to say.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from proctor.core.documents import read_bytes
from proctor.core.errors import InvalidFile, did_you_mean

NAMES = {
    "instruction": "the text of the instruction",
    "language": "its language, such as en",
    "robot": "what is true of the robot and its camera",
    "details": "what else the exam tells every agent",
    "state": "what the robot senses beside pictures",
    "history": "what was decided so far, with the notes",
    "pictures": "the pictures, each with a label; on a line of its own in the user part",
    "step": "the number of the next action",
    "max_steps": "how many actions an episode has",
    "decision": "the number of this decision",
    "max_decisions": "how many decisions there can be",
    "actions_per_reply": "how many actions a reply may hold",
}
"""What can stand in braces."""
PICTURES = "{pictures}"
PARTS = ("system", "user")
TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
MAX_TEMPLATE_CHARACTERS = 100_000


class Picture(NamedTuple):
    """A picture, as it is sent."""

    base64: str
    sha256: str
    media_type: str = "image/jpeg"

    @property
    def mark(self) -> str:
        """What stands for it in records of requests."""
        return f"$picture:{self.sha256}"


Part = str | Picture
"""A piece of a message."""


def encode_picture(pixels: NDArray[Any], longest_side: int, quality: int) -> Picture:
    """Encode a picture as JPEG, made smaller if it is larger than this; never larger."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    scale = longest_side / max(image.size)
    if scale < 1:
        image = image.resize([max(1, round(side * scale)) for side in image.size], Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    jpeg = stream.getvalue()
    return Picture(base64.b64encode(jpeg).decode(), hashlib.sha256(jpeg).hexdigest())


class Template(NamedTuple):
    """A prompt, checked: each name in braces is known."""

    file: Path
    system: tuple[str, ...]
    """Lines."""
    user: tuple[str, ...]

    @property
    def shows_pictures(self) -> bool:
        """Whether the model is shown anything."""
        return PICTURES in self.user

    def render(
        self, values: Mapping[str, str], pictures: Sequence[tuple[str, Picture]]
    ) -> tuple[str, list[Part]]:
        """Return the text of the system, and the user's message in parts."""
        before, after = list(self.user), []
        if self.shows_pictures:
            place = self.user.index(PICTURES)
            before, after = list(self.user[:place]), list(self.user[place + 1 :])
        parts: list[Part] = [_filled(before, values)]
        for label, picture in pictures if self.shows_pictures else ():
            parts += [label, picture]
        parts.append(_filled(after, values))
        return _filled(self.system, values), [part for part in _joined(parts) if part]


def load_template(file: Path) -> Template:
    """Read a template; raise InvalidFile, with the line, if it is not one."""
    try:
        text = read_bytes(file).decode()
    except UnicodeDecodeError:
        raise InvalidFile(file, "expected text in UTF-8") from None
    if len(text) > MAX_TEMPLATE_CHARACTERS:
        raise InvalidFile(file, f"expected at most {MAX_TEMPLATE_CHARACTERS} characters, found {len(text)}")
    found: dict[str, list[str]] = {}
    part = ""
    for number, line in enumerate(text.splitlines(), 1):
        place = f"line {number}"
        if heading := re.fullmatch(r"##\s+(\w+)\s*", line):
            part = heading[1]
            if part not in PARTS or part in found:
                problem = "stands twice" if part in found else f"is not {' or '.join(PARTS)}"
                raise InvalidFile(file, f"the part '{part}' {problem}", place=place)
            found[part] = []
        elif part:
            _check_line(line, file, place, part)
            found[part].append(line.rstrip())
        elif line.strip():
            raise InvalidFile(file, "expected '## system' or '## user' before the first text", place=place)
    if not "".join(found.get("user", [])).strip():
        problem = "expected a part '## user' with what the model is told at each decision, found none"
        raise InvalidFile(file, f"{problem}; {_known_names()}")
    return Template(file, _stripped(found.get("system", [])), _stripped(found["user"]))


def _check_line(line: str, file: Path, place: str, part: str) -> None:
    for token in TOKEN.finditer(line):
        if token[0] in ("{{", "}}"):
            continue
        if token[1] is None:
            problem = f"a single '{token[0]}'; to write a brace, double it"
            raise InvalidFile(file, problem, place=place)
        if token[1] not in NAMES:
            what = f"unknown name '{{{token[1]}}}'" if token[1] else "no name between the braces '{}'"
            hint = did_you_mean(token[1], NAMES)
            raise InvalidFile(
                file, f"{what}{hint}; {_known_names()}; to write a brace, double it", place=place
            )
        if token[0] == PICTURES and (line.strip() != PICTURES or part != "user"):
            problem = f"expected {PICTURES} on a line of its own in the part '## user'"
            raise InvalidFile(file, problem, place=place)


def _known_names() -> str:
    return f"known names: {', '.join(NAMES)}"


def _stripped(lines: list[str]) -> tuple[str, ...]:
    """Drop empty lines at both ends, and blanks around `{pictures}`."""
    text = "\n".join(line.strip() if line.strip() == PICTURES else line for line in lines).strip()
    return tuple(text.splitlines())


def _filled(lines: Sequence[str], values: Mapping[str, str]) -> str:
    filled = []
    for line in lines:
        text = TOKEN.sub(lambda token: token[0][0] if token[1] is None else values[token[1]], line)
        if text.strip() or not line.strip():
            filled.append(text)
    return "\n".join(filled).strip()


def _joined(parts: Sequence[Part]) -> Iterator[Part]:
    """Join texts that follow each other."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text = f"{text}\n{part}".strip()
            continue
        yield text
        yield part
        text = ""
    yield text
