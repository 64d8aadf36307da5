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
_NAME = "(?:token|secret|password|passphrase|credentials|authorization|api_?key|(?<![a-z0-9])(?:auth|key))"
SECRET_OPTION = re.compile(f"{_NAME}$", re.IGNORECASE)
"""The end of the names of options: `hf_token` and `api_key`, not `max_tokens`, `key_env` or `monkey`."""
SECRET_WORD = re.compile(rf"({_NAME}[\"']?\s*[=:]\s*[\"']?).+", re.IGNORECASE | re.DOTALL)
"""Such a name in a command line, and what follows it to the end of the word."""


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


def secret_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that are secret, or have something secret in them."""
    return [name for name, value in options.items() if hide_secrets({name: value}) != {name: value}]


def hide_secrets(value: Any) -> Any:
    """Return options with short checksums in place of secrets, so that other secrets are noticed."""
    if isinstance(value, Mapping):
        return {
            name: _hidden(each) if SECRET_OPTION.search(str(name)) else hide_secrets(each)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        hidden = [hide_secrets(each) for each in value]
        return value if hidden == list(value) else hidden
    return value


def _hidden(value: Any) -> str:
    return f"(hidden, {hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:4]})"


def hide_secret_words(words: Iterable[str]) -> list[str]:
    """Return words of a command line cut off before the first secret, also one in JSON or in shell."""
    return [SECRET_WORD.sub(r"\1...", word) for word in words]
