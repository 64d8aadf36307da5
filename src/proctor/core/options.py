"""Options of envs, policies, exams and plug-ins: declared once, as the fields of a struct.

What is secret of them is decided here, too, by their names.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from proctor.core.documents import explain
from proctor.core.errors import UserError, did_you_mean

Options = TypeVar("Options", bound=msgspec.Struct)
Init = TypeVar("Init", bound=Callable[..., None])
SECRET_OPTION = re.compile(r"(token|secret|password|api_?key|(^|_)key)$", re.IGNORECASE)
"""In the names of options: `hf_token` and `api_key`, not `max_tokens`, `key_env` or `monkey`."""


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


def secret_options(names: Iterable[str]) -> list[str]:
    """Return those of these options whose values are shown and written nowhere."""
    return [name for name in names if SECRET_OPTION.search(name)]


def hide_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with short checksums in place of secrets, so that other secrets are noticed."""
    secret = secret_options(options)
    return {name: _hidden(value) if name in secret else value for name, value in options.items()}


def _hidden(value: Any) -> str:
    return f"(hidden, {hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:4]})"


def hide_secret_words(words: Iterable[str]) -> list[str]:
    """Return words of a command line without the secrets in `NAME=VALUE` and `--FLAG=NAME=VALUE`."""
    shown = []
    for word in words:
        found = re.match(r"((?:--[\w-]+=)?([\w.-]+)=).", word)
        shown.append(f"{found[1]}..." if found and secret_options([found[2]]) else word)
    return shown
