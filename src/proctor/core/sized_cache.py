"""A cache of function results that is limited by their size: houses differ a thousandfold in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

Args = ParamSpec("Args")
Result = TypeVar("Result")


def sized_cache(
    max_bytes: int, size_bytes: Callable[[Result], int]
) -> Callable[[Callable[Args, Result]], Callable[Args, Result]]:
    """Cache the results of a function until those that were used since then exceed a total size.

    The latest result stays whatever its size. Arguments must be hashable.
    """

    def decorate(function: Callable[Args, Result]) -> Callable[Args, Result]:
        cached: OrderedDict[object, tuple[Result, int]] = OrderedDict()  # the longest unused first
        lock = Lock()

        @wraps(function)
        def call(*args: Args.args, **kwargs: Args.kwargs) -> Result:
            key = (args, tuple(sorted(kwargs.items())))
            with lock:
                if key in cached:
                    cached.move_to_end(key)
                    return cached[key][0]
            result = function(*args, **kwargs)
            with lock:
                cached[key] = (result, size_bytes(result))
                while len(cached) > 1 and sum(size for _, size in cached.values()) > max_bytes:
                    cached.popitem(last=False)
            return result

        return call

    return decorate
