"""Edits that stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from o3de_sim.editor.azlmbr_calls import Engine


@contextmanager
def undo_batch(engine: Engine, label: str, entity_id: Any) -> Iterator[None]:
    """Record what is done to an entity inside.

    Without it a change of a transform is seen in the viewport and lost when the level is saved or played,
    because those take the prefab's template, and only what is dirty within a batch is written there.
    """
    engine.broadcast("editor.ToolsApplicationRequestBus", "BeginUndoBatch", label, returns="nothing")
    try:
        engine.broadcast("editor.ToolsApplicationRequestBus", "AddDirtyEntity", entity_id, returns="nothing")
        yield
    finally:
        engine.broadcast("editor.ToolsApplicationRequestBus", "EndUndoBatch", returns="nothing")
