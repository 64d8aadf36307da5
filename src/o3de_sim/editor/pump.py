"""Who calls the agent again and again, on the Editor's main thread."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from o3de_sim.editor.azlmbr_calls import Stop, loop_callback_slot, on_each_tick

PERIOD_MS = 10
QT_CORE = ("PySide6.QtCore", "PySide2.QtCore")


def start_pump(callback: Callable[[], object]) -> Stop:
    """Have something called often, as long as the Editor lives.

    A timer of Qt runs also while the Editor has no focus. Without PySide there is the loop callback of the
    Gem QtForPython, and without that the tick of each frame, which stands still when frames do.

    Args:
        callback: What to call. It must return soon.

    Returns:
        What ends it.
    """
    for name in QT_CORE:
        try:
            core = import_module(name)
        except ImportError:
            continue
        if core.QCoreApplication.instance() is not None:
            return _start_timer(core, callback)
    try:
        helpers = loop_callback_slot()
    except ImportError:
        return on_each_tick(callback)
    helpers.set_loop_callback(callback)

    def stop() -> None:
        helpers.clear_loop_callback()

    return stop


def _start_timer(core: Any, callback: Callable[[], object]) -> Stop:
    timer = core.QTimer(core.QCoreApplication.instance())
    timer.setInterval(PERIOD_MS)
    timer.timeout.connect(callback)
    timer.start()

    def stop() -> None:
        timer.stop()

    return stop
