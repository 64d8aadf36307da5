"""Tries the agent's operations in the Editor that runs this, and writes how it went.

`Editor --project-path P --runpython .../o3de_sim/editor/selftest.py`; the record goes to the Editor's log,
and to `user/o3de_sim_selftest.json` in the project. It goes on after the script has returned, as frames pass.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from time import monotonic
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from o3de_sim.editor.azlmbr_calls import Engine, Stop, start_pump
from o3de_sim.editor.operation_table import Dispatcher
from o3de_sim.errors import O3DEError

LEVEL = "o3de_sim_selftest"
RECORD = "user/o3de_sim_selftest.json"
Record = list[dict[str, Any]]


def checks(dispatcher: Dispatcher) -> Generator[None, None, Record]:
    """Open a level of its own and try everything in it."""
    exists = yield from dispatcher.start("editor_tool.level_exists", {"name": LEVEL})
    op = "editor_tool.open_level" if exists else "editor_tool.create_level"
    yield from dispatcher.start(op, {"name": LEVEL})
    record: Record = yield from dispatcher.start("selftest", {})
    return record


class SelfTest:
    """Runs the checks one step at a time; calls `finished` when the record is written."""

    def __init__(self, engine: Engine, finished: Callable[[], object]) -> None:
        self._file = engine.project / RECORD
        self._finished = finished
        self._dispatcher = Dispatcher(engine)
        self._steps = checks(self._dispatcher)
        self._deadline = monotonic() + 300.0
        self._is_running = False

    def step(self) -> None:
        """Go on, if the last step is done."""
        if self._is_running:
            return
        self._is_running = True
        try:
            next(self._steps)
            if monotonic() > self._deadline:
                self._end([_failed(f"timeout: {self._dispatcher.why_late(self._dispatcher.frame_count)}")])
        except StopIteration as done:
            if done.value is not None:
                self._end(done.value)
        except O3DEError as error:
            self._end([_failed(f"{error.code}: {error.message}")])
        finally:
            self._is_running = False

    def _end(self, record: Record) -> None:
        self._finished()
        text = json.dumps({"checks": record, "ok": all(check["ok"] for check in record)}, indent=1)
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{text}\nwritten to {self._file}\n")


def _failed(detail: str) -> dict[str, Any]:
    return {"name": "selftest", "ok": False, "detail": detail}


def run() -> None:
    """Start the test. It goes on while the Editor runs."""
    engine = Engine()
    engine.keep_active()
    stops: list[Stop] = []

    def finished() -> None:
        for stop in stops:
            stop()
        engine.close()

    stops.append(start_pump(SelfTest(engine, finished).step))


if __name__ == "__main__":
    run()
