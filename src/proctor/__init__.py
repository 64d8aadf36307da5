"""Proctor gives embodied agents their exam: a world, an instruction, a robot, and an honest score."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.runs.evaluate import close, evaluate

__version__ = "0.1.0"
__all__ = ["__version__", "close", "evaluate"]


def __getattr__(name: str) -> Any:
    """Import `evaluate` and `close` when they are used: `import proctor` costs nothing."""
    if name in ("close", "evaluate"):
        from pkgutil import resolve_name  # noqa: PLC0415

        return resolve_name(f"proctor.runs.evaluate:{name}")
    raise AttributeError(f"module 'proctor' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
