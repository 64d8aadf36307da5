"""XML files of strangers, read whole: every element knows its file and line, and DTDs are refused.

Without a DTD there are no entities of the file's own, so nothing can be expanded or fetched.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from proctor.core.documents import read_bytes
from proctor.core.errors import InvalidFile

MAX_BYTES = 2**26
MAX_DEPTH = 100
MAX_ELEMENTS = 1_000_000
FARTHEST = 1e6
"""Numbers beyond this are not metres, radians or factors of a world that a robot drives in."""

COMMENT = re.compile(rb"<!--(.*?)(-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)", re.DOTALL)
LATE_DECLARATION = re.compile(rb"\A(\xef\xbb\xbf)?((?>\s+|<!--.*?-->)++)(<\?xml\s.*?\?>)", re.DOTALL)


class XmlElement:
    """An element with its place in the file."""

    def __init__(self, file: Path, tag: str, attributes: dict[str, str], line: int) -> None:
        self.file, self.tag, self.attributes, self.line = file, tag, attributes, line
        self.text = ""
        self.children: list[XmlElement] = []

    @property
    def name(self) -> str:
        """The attribute `name`, empty if it is missing."""
        return self.attributes.get("name", "")

    def all(self, *tags: str) -> Iterator[XmlElement]:
        """Yield the direct children with one of these tags, in the order of the file."""
        return (child for child in self.children if child.tag in tags)

    def find(self, path: str) -> XmlElement | None:
        """Return the first element on a path of tags such as `geometry/box/size`, None if there is none."""
        found: XmlElement | None = self
        for tag in path.split("/"):
            found = next(found.all(tag), None) if found is not None else None
        return found

    def text_of(self, path: str) -> str:
        """Return the text of the element on a path, empty if there is none."""
        found = self.find(path)
        return "" if found is None else found.text.strip()

    def is_set(self, path: str) -> bool:
        """Tell whether the element on a path says `true` or `1`."""
        return self.text_of(path).lower() in ("1", "true")

    def error(self, problem: str) -> InvalidFile:
        """Return an error that says where this element stands."""
        return InvalidFile(self.file, problem, place=f"line {self.line}, <{self.tag}>")

    def numbers(self, count: int, *, least: float = -FARTHEST, default: str = "") -> tuple[float, ...]:
        """Return the numbers in its text; raise InvalidFile if they are not as many, finite and in range."""
        text = self.text.strip() or default
        try:
            values = tuple(map(float, text.split()))
        except ValueError:
            values = ()
        if len(values) != count or not all(math.isfinite(value) for value in values):
            expected = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f"expected {expected}, found '{text[:80]}'")
        if not all(least <= value <= FARTHEST for value in values):
            raise self.error(f"expected numbers from {least:g} to {FARTHEST:g}, found '{text[:80]}'")
        return values

    def numbers_of(
        self, path: str, count: int, *, least: float = -FARTHEST, default: str = ""
    ) -> tuple[float, ...]:
        """Return the numbers of the element on a path, which may be missing if there is a default."""
        found = self.find(path)
        if found is not None:
            return found.numbers(count, least=least, default=default)
        if not default:
            raise self.error(f"expected <{path}> in it")
        return tuple(map(float, default.split()))


def relax_xml(raw: bytes) -> bytes:
    """Return XML without what Gazebo reads and the standard forbids; line numbers stay.

    That is `--` inside of a comment, and a declaration `<?xml ...?>` after blanks or comments.
    """
    return COMMENT.sub(_without_dashes, LATE_DECLARATION.sub(rb"\1\3\2", raw))


def _without_dashes(found: re.Match[bytes]) -> bytes:
    is_comment = found[1] is not None
    return b"<!--" + found[1].replace(b"-", b" ") + found[2] if is_comment else found[0]


def read_xml(path: Path) -> XmlElement:
    """Read a file and return its root; InvalidFile if it is not XML, holds a DTD or is too large."""
    raw = read_bytes(path)
    if len(raw) > MAX_BYTES:
        raise InvalidFile(path, f"has {len(raw)} bytes, expected at most {MAX_BYTES}")
    parser = expat.ParserCreate()
    parser.buffer_text = True
    open_elements: list[XmlElement] = []
    root: list[XmlElement] = []
    count = 0

    def invalid(problem: str) -> InvalidFile:
        return InvalidFile(path, problem, place=f"line {parser.CurrentLineNumber}")

    def refuse_dtd(*_: Any) -> None:
        raise invalid("<!DOCTYPE is not read: remove it, and write what its entities stand for")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(open_elements) >= MAX_DEPTH or count > MAX_ELEMENTS:
            raise invalid(f"expected at most {MAX_ELEMENTS} elements, {MAX_DEPTH} deep")
        element = XmlElement(path, tag, attributes, parser.CurrentLineNumber)
        (open_elements[-1].children if open_elements else root).append(element)
        open_elements.append(element)

    def add_text(text: str) -> None:
        if open_elements:
            open_elements[-1].text += text

    parser.StartDoctypeDeclHandler = refuse_dtd
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    parser.CharacterDataHandler = add_text
    try:
        parser.Parse(relax_xml(raw), True)  # noqa: FBT003  (expat takes it by place)
    except expat.ExpatError as error:
        problem = f"invalid XML: {expat.ErrorString(error.code)}"
        raise InvalidFile(path, problem, place=f"line {error.lineno}, column {error.offset + 1}") from None
    except (LookupError, ValueError) as error:  # of an encoding that is unknown, or has several bytes
        raise invalid(f"invalid XML: {error}") from None
    return root[0]
