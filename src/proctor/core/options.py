"""Options of envs, policies, exams and plug-ins: declared once, as the fields of a struct."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from proctor.core.documents import explain
from proctor.core.errors import UserError, did_you_mean

Options = TypeVar("Options", bound=msgspec.Struct)
Init = TypeVar("Init", bound=Callable[..., None])


def takes_options(kind: type[msgspec.Struct]) -> Callable[[Init], Init]:
    """Show the fields of a struct as the keyword arguments of a constructor that takes `**options`.

    The registry, which refuses options that a class does not have, and `help` look there.
    """

    def decorate(init: Any) -> Any:
        own = [each for each in inspect.signature(init).parameters.values() if each.kind != each.VAR_KEYWORD]
        init.__signature__ = inspect.Signature([*own, *inspect.signature(kind).parameters.values()])
        return init

    return decorate


def checked_options(
    kind: type[Options], given: Mapping[str, Any], owner: str = "", *, strict: bool = True
) -> Options:
    """Return options as their struct; raise a UserError for one that is unknown or makes no sense.

    `owner` is who has the options, for messages. If not `strict`, texts may stand for numbers.
    """
    known = kind.__struct_fields__
    for name in given:
        if name not in known:
            hint = did_you_mean(str(name), known)
            of_owner = f"the {owner} has" if owner else "there is"
            raise UserError(f"{of_owner} no option '{name}'{hint}; options: {', '.join(known) or 'none'}")
    try:
        return msgspec.convert(given, kind, strict=strict)
    except msgspec.ValidationError as error:
        place, problem = explain(error, given, kind)
        option = f"option {place.lstrip('.')}" if place else "options"
        raise UserError(f"{option} of the {owner}: {problem}" if owner else f"{option}: {problem}") from None
