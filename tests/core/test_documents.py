"""Broken JSON is refused with file and place."""

import gzip
import os
import tracemalloc
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from proctor.core import documents
from proctor.core.documents import convert, decode, parse_json, read_json, write_atomically, write_json
from proctor.core.errors import InvalidFile


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    width: int = 1
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    color: Literal["red", "blue"] | None = None


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    items: list[Inner]
    named: dict[str, Inner] = {}


def write(folder: Path, text: str) -> Path:
    path = folder / "document.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1, column 1: empty file"),
        ('{"a": 1,\n "b": }', "line 2, column 7: invalid JSON"),
        ('{"a": {"b": [1, NaN]}}', "a.b[1]: nan is not allowed"),
        ('{"a": -Infinity}', "a: -inf is not allowed"),
        ('{"a": 1e999}', "a: inf is not allowed"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        (r'{"a": ["x", "\ud800"]}', "a[1]: half of a surrogate pair"),
        ('{"a": 1' + "0" * 5000 + "}", "cannot be read: Exceeds the limit"),
        ('{"a": [1, {"b": 1e999}]}', "a[1].b: inf is not allowed"),
        ("[" * 70 + "]" * 70, "nested deeper than 64 levels"),
        ("[" * 65 + "1" + "]" * 65, "nested deeper than 64 levels"),
        ("[" * 200_000, "nested deeper than 64 levels"),
    ],
)
def test_what_json_leaves_open_is_refused_with_its_place(tmp_path, text, complaint):
    path = write(tmp_path, text)
    with pytest.raises(InvalidFile) as caught:
        read_json(path)
    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)


def test_a_missing_file_and_a_folder_and_binary_data_are_user_errors(tmp_path):
    with pytest.raises(InvalidFile, match="no such file"):
        read_json(tmp_path / "nowhere.json")
    with pytest.raises(InvalidFile, match="cannot be read: Is a directory"):
        read_json(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    for endless in (tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(InvalidFile, match=f"{endless}: not a regular file"):
            read_json(endless)
    (tmp_path / "binary.json").write_bytes(b'{"a": "\xff\xfe"}')
    with pytest.raises(InvalidFile, match="not UTF-8 text"):
        read_json(tmp_path / "binary.json")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(tmp_path / "bom.json") == [1]


def test_a_gzip_bomb_is_never_unpacked_whole(tmp_path, monkeypatch):
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 2**26))
    monkeypatch.setattr(documents, "MAX_BYTES", 2**20)
    tracemalloc.start()
    with pytest.raises(InvalidFile, match="has more than 1 MiB"):
        read_json(tmp_path / "bomb.json.gz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def test_what_is_written_packed_reads_back_and_has_the_same_bytes(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        write_json(tmp_path / name, {"a": [1, "é"]})
    assert read_json(tmp_path / "a.json.gz") == {"a": [1, "é"]}
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


@pytest.mark.parametrize("raw", [b'{"items": [{"width": NaN}]}', b'{"items": [', b"\xff", b""])
def test_typed_decoding_complains_as_precisely_as_reading(tmp_path, raw):
    with pytest.raises(InvalidFile) as slow:
        parse_json(raw, tmp_path)
    with pytest.raises(InvalidFile) as fast:
        decode(raw, Outer, tmp_path)
    assert str(slow.value) == str(fast.value)


def test_typed_decoding_names_the_place(tmp_path):
    with pytest.raises(InvalidFile, match=r"items\[1\]\.width: Expected `int`, got `str`"):
        decode(b'\xef\xbb\xbf{"items": [{}, {"width": "3"}]}', Outer, tmp_path)


def test_a_misspelt_key_gets_a_suggestion_and_its_place(tmp_path):
    with pytest.raises(InvalidFile) as caught:
        convert({"items": [{}, {"widht": 3}]}, Outer, tmp_path / "f.json")
    assert "f.json: items[1]: unknown key 'widht'; did you mean 'width'?" in str(caught.value)


def test_a_wrong_type_names_what_was_expected_and_found(tmp_path):
    with pytest.raises(InvalidFile, match=r"items\[0\]\.width: Expected `int`, got `str`"):
        convert({"items": [{"width": "3"}]}, Outer, tmp_path / "f.json")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"items": [{}, {"share": -0.5}]}, "items[1].share: Expected `float` >= 0.0, found -0.5"),
        ({"items": [], "named": {"a": {"share": 2}}}, "named[...].share: Expected `float` <= 1.0"),
        (
            {"items": [{"color": "gray"}]},
            "items[0].color: Invalid enum value 'gray', expected 'blue' or 'red'",
        ),
        (
            {"items": [], "named": {"a": {"color": "gray"}}},
            "named[...].color: Invalid enum value 'gray', expected 'blue' or 'red'",
        ),
    ],
)
def test_what_was_found_and_what_is_allowed_is_said(tmp_path, document, problem):
    for read in (
        lambda: convert(document, Outer, tmp_path),
        lambda: decode(msgspec.json.encode(document), Outer, tmp_path),
    ):
        with pytest.raises(InvalidFile) as caught:
            read()
        assert str(caught.value) == f"{tmp_path}: {problem}"


def test_writing_replaces_the_file_whole_and_leaves_nothing_else_behind(tmp_path):
    path = write(tmp_path, "old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [item.name for item in tmp_path.iterdir()] == ["document.json"]


def test_a_write_that_fails_keeps_the_old_content(tmp_path):
    path = write(tmp_path, "old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["document.json"]
