"""Finding exams by their names, and what fits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from proctor.core.errors import UnknownName, UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.registry import load, names
from proctor.exams.exam import Exam

AnyExam: TypeAlias = Exam[Any, Any, Any]


def exam_named(name: str) -> type[AnyExam]:
    """Return the exam of this name; without a name the one of files that name none."""
    if not name:
        return _untagged_exam()
    found: type[AnyExam] = load("exam", name)
    if found.name != name:
        raise UserError(f"exam '{name}': the class {found.__qualname__} calls itself '{found.name}'")
    return found


def exam_names() -> list[str]:
    """Return the names of all exams that are installed."""
    return list(names("exam"))


def all_exams() -> Iterator[type[AnyExam]]:
    """Yield all exams that can be loaded; one that cannot must not keep others from being used."""
    for name in exam_names():
        try:
            yield exam_named(name)
        except UserError:
            continue


def exam_of_record(record: Mapping[str, Any]) -> type[AnyExam]:
    """Return the exam of an episode in a file, by its `task_type`, else by the keys that it has."""
    tag = record.get("task_type")
    if isinstance(tag, str):
        if tag not in names("exam"):
            raise UnknownName("exam", tag, names("exam"))
        return exam_named(tag)
    exams = sorted(all_exams(), key=lambda exam: exam.is_untagged)
    recognised = next((exam for exam in exams if exam.recognises(record)), None)
    return recognised or _untagged_exam()


def check_fit(exam: type[AnyExam], kind: str, name: str, found: type[Env] | type[Policy]) -> None:
    """Refuse an env or a policy (`kind`) that is for another exam.

    An exam says what fits it by its `envs` and `baselines`; else a class says it by its `tasks`.
    """
    if _claims(exam, kind, found):
        return
    others = list(found.tasks) or exams_with(kind, found)
    if not others or exam.name in others:
        return
    fitting = ", ".join(sorted(fitting_names(exam, kind)))
    raise UserError(
        f"{kind} '{name}' is for {' and '.join(others)}, and these episodes are of {exam.name}; "
        f"what fits: {fitting}"
    )


def fitting_names(exam: type[AnyExam], kind: str) -> list[str]:
    """Return the names of the envs or policies that fit an exam."""
    if kind == "policy":
        return [*names("policy"), *exam.baselines]
    claimed = {name for other in all_exams() for name in other.envs}
    return [name for name in names("env") if name in exam.envs or name not in claimed]


def all_baselines() -> dict[str, str]:
    """Return the policies that come with exams, for commands that do not know of which exam they are."""
    return {name: target for exam in all_exams() for name, target in exam.baselines.items()}


def exams_of(kind: str, name: str) -> list[str]:
    """Return the exams that claim an env or a baseline of this name; none if it is for any."""
    return [exam.name for exam in all_exams() if name in (exam.envs if kind == "env" else exam.baselines)]


def exams_with(kind: str, found: type) -> list[str]:
    """Return the exams that an env or a policy comes with; none if it is for any."""
    return [exam.name for exam in all_exams() if _claims(exam, kind, found)]


def _claims(exam: type[AnyExam], kind: str, found: type) -> bool:
    target = f"{found.__module__}:{found.__qualname__}"
    known = {name: names("env").get(name) for name in exam.envs} if kind == "env" else exam.baselines
    return target in known.values()


@cache
def _untagged_exam() -> type[AnyExam]:
    for exam in all_exams():
        if exam.is_untagged:
            return exam
    raise UserError("no exam is registered, as after an update of a checkout; run: pip install -e .")
