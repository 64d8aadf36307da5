"""Functions that are compiled to machine code and run without Python's global lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays, once per machine: the result is kept on disk."""
    machine_code: Any = njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(Function, machine_code)
