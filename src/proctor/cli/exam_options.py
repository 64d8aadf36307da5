"""The options of exams as flags of a command: each exam brings its own."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

import msgspec

from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.exams.names import AnyExam


class _Flag(NamedTuple):
    name: str  # as it is typed: `--hide-goal`
    field: str
    help: str
    metavar: str
    is_switch: bool


def add_exam_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all exams that are installed, in a group for each."""
    from proctor.exams.names import all_exams

    taken: set[str] = set()
    for exam in all_exams():
        flags = [flag for flag in _flags(exam) if flag.name not in taken]
        taken.update(flag.name for flag in flags)
        if not flags:
            continue
        group = parser.add_argument_group(f"{exam.title or exam.name} only")
        for flag in flags:
            if flag.is_switch:
                group.add_argument(flag.name, action="store_true", default=None, help=flag.help)
            else:
                group.add_argument(flag.name, metavar=flag.metavar, help=flag.help)


def exam_options(arguments: argparse.Namespace, exam: type[AnyExam]) -> dict[str, Any]:
    """Return the options that were given for an exam."""
    from proctor.exams.names import all_exams
    from proctor.runs.job import read_exam_options

    own = {flag.name: flag for flag in _flags(exam)}
    for other in all_exams():
        for flag in _flags(other):
            if flag.name not in own and _given(arguments, flag.name) is not None:
                raise UserError(
                    f"{flag.name} is for {other.name}, and these episodes are of {exam.name}; leave it out"
                )
    given = {flag.field: _given(arguments, flag.name) for flag in own.values()}
    given = {field: value for field, value in given.items() if value is not None}
    for flag in own.values():  # one by one, so that the message can name the flag
        if flag.field in given:
            _check_value(exam, flag, given[flag.field])
    checked = read_exam_options(exam, given)
    return {field: getattr(checked, field) for field in given}


def _check_value(exam: type[AnyExam], flag: _Flag, value: Any) -> None:
    types = {field.name: field.type for field in msgspec.structs.fields(exam.options_type)}
    try:
        msgspec.convert(value, types[flag.field], strict=False)
    except msgspec.ValidationError as error:
        raise UserError(f"{flag.name}: {error}, found '{value}'") from None


def _given(arguments: argparse.Namespace, flag: str) -> Any:
    return getattr(arguments, flag.removeprefix("--").replace("-", "_"), None)


def _flags(exam: type[AnyExam]) -> Iterator[_Flag]:
    for field in msgspec.structs.fields(exam.options_type):
        kind, meta = field.type, msgspec.Meta()
        if (
            get_origin(kind) is not None
            and get_args(kind)[1:]
            and isinstance(get_args(kind)[1], msgspec.Meta)
        ):
            kind, meta = get_args(kind)[:2]
        extra = meta.extra or {}
        yield _Flag(
            name=extra.get("flag", f"--{field.encode_name.replace('_', '-')}"),
            field=field.name,
            help=meta.description or "",
            metavar=extra.get("metavar", field.name.upper()),
            is_switch=kind is bool,
        )
