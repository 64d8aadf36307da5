"""Where commands print, and how they end."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.console import Console

from proctor.core.options import hide_secret_words
from proctor.core.plain_text import plain

DONE, TOO_MANY_FAULTS, USER_ERROR, UNAVAILABLE, OVER_BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Terminal(Console):
    """A console on which no text of others, such as an episode's id, can move the cursor or hide a line."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, with the control characters of texts written out."""
        super().print(*(plain(item) if isinstance(item, str) else item for item in objects), **options)

    def say(self, *lines: str) -> None:
        """Print lines as they are: without markup, and not broken where the terminal ends."""
        for line in lines:
            self.print(line, markup=False, soft_wrap=True)


console = Terminal(highlight=False, emoji=False)  # `agents:eyes:` is a name
errors = Terminal(stderr=True, highlight=False, emoji=False)


def say_error(error: Exception) -> None:
    """Print what the user did wrong."""
    errors.print("[red]error:[/red]", end=" ")
    errors.say(str(error))


def command_text(words: Sequence[str]) -> str:
    """Return a command as people can give it again, but for the values of secret options."""
    return shlex.join(["proctor", *hide_secret_words(words)])


@contextmanager
def noted_signals(stop: Callable[[], None] = lambda: None) -> Iterator[list[int]]:
    """Yield a list of the signals that came. The first calls `stop`, a second ends the process at once.

    A handler must not take a lock, as `Event.set` does: the thread that it interrupts may hold it.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.signal(number, signal.SIG_DFL)
        stop()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code_after(signals: Sequence[int]) -> int:
    """Return the exit code of a command that runs until a signal comes."""
    if signal.SIGINT in signals:
        errors.print("interrupted")
        return INTERRUPTED
    return DONE


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that it gives back what it holds: schedulers send it."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # None if it was not set by Python
