"""Functions that are compiled to machine code and run without Python's global lock.

Compiling takes half a minute, so the machine code is kept on disk. Numba would reuse it until that one file
changes, but it also contains functions and constants that the file imports. So the cache folder's name is a
digest of the file and of all our modules that it imports.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from proctor.core.array_cache import user_cache_folder

config: Any = numba.config
Function = TypeVar("Function", bound=Callable[..., Any])
PACKAGE = __name__.partition(".")[0]


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays, once per machine."""
    folder = _cache_root() / _digest(function.__module__)
    elsewhere = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # Read when the function is declared, not when it is compiled.
    try:
        machine_code: Any = numba.njit(cache=_is_writable(), nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = elsewhere
    return cast(Function, machine_code)


def _cache_root() -> Path:
    return Path(config.CACHE_DIR or user_cache_folder()) / "proctor" / "kernels"


@cache
def _is_writable() -> bool:
    try:
        _cache_root().mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(_cache_root(), os.W_OK)


@cache
def _digest(module: str) -> str:
    """Return a digest of a module's source and of all our modules that it imports, directly or not.

    Only loaded modules count: only loaded values get into machine code.
    """
    names, waiting = {module}, [module]
    while waiting:
        found = (_imports(waiting.pop()) & sys.modules.keys()) - names
        names |= found
        waiting += sorted(found)
    return hashlib.sha256(b"".join(_source(name) for name in sorted(names))).hexdigest()[:16]


@cache
def _imports(module: str) -> frozenset[str]:
    """Return the names in our package that a module imports when it is loaded, modules or what is in them."""
    names: set[str] = set()
    for statement in _run_at_import(ast.parse(_source(module))):
        if isinstance(statement, ast.Import):
            names.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            relative = "." * statement.level + (statement.module or "")
            origin = resolve_name(relative, sys.modules[module].__package__)
            names.add(origin)
            names.update(f"{origin}.{alias.name}" for alias in statement.names)
    return frozenset(name for name in names if name.partition(".")[0] == PACKAGE)


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a module that run when it is loaded, those in `if` and `try` included."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.expr, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(part, ast.If) and ast.unparse(part.test).endswith("TYPE_CHECKING"):
            continue
        yield part
        yield from _run_at_import(part)


@cache
def _source(module: str) -> bytes:
    return Path(str(sys.modules[module].__file__)).read_bytes()
