"""An O3DE Editor as its Python bindings see it: as unforgiving as the real one, and without the engine."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from PIL import Image

from proctor.o3de.standin.az_values import AzEntityId, AzOutcome, AzValue, Placement
from proctor.o3de.standin.fake_azlmbr import PACKAGE, QT_HELPERS, BusHandler, modules_of
from proctor.o3de.standin.level import Entities, Entity, Level
from proctor.o3de.standin.project_files import AssetCatalog, load_entities, save_entities

SUCCESS, FILE_WRITE_ERROR, UNSUPPORTED_FORMAT = 1, 2, 4
FRAME_S = 1 / 60
TICK, EDITOR_EVENTS = "TickBus", "EditorEventBus"


class FrameCaptures:
    """Takes pictures of the viewport, which is grey here. Relative paths are in the project."""

    def __init__(self, project: Path) -> None:
        self.has_renderer = True  # without one (the null RHI) there are no pictures
        self._project = project
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Path] = {}

    def take(self, path: str) -> AzOutcome:
        """Order a picture."""
        if not self.has_renderer:
            return AzOutcome(error="Frame capture initialization failed. Frame capture not available.")
        number = next(self._numbers)
        self._waiting[number] = self._project / path
        return AzOutcome(number)

    def finish(self) -> list[tuple[int, int, str]]:
        """Write what was ordered, and return the number, the result and a word about each."""
        done = [(number, *_write(path)) for number, path in self._waiting.items()]
        self._waiting.clear()
        return done


def _write(path: Path) -> tuple[int, str]:
    if path.suffix.lower() not in (".png", ".ppm"):
        return UNSUPPORTED_FORMAT, f"cannot write {path.suffix}"
    try:
        Image.new("RGB", (64, 36), (128, 128, 128)).save(path)
    except OSError as error:
        return FILE_WRITE_ERROR, str(error)
    return SUCCESS, str(path)


class EditorHang(RuntimeError):
    """The real Editor would wait here without end."""


class FakeEditor:
    """Entities, levels and frames behind a fake `azlmbr`.

    Calls that the real Editor would not take return None, and are recorded in `unknown_calls`. Nothing
    happens by itself: every `frame` is somebody's call. `qt_helpers`: the gem QtForPython is enabled, which
    brings `azlmbr.qt_helpers`. `is_starting`: scripts run before the main window is there; the first frame
    announces it.
    """

    def __init__(self, project: Path, *, qt_helpers: bool = False, is_starting: bool = False) -> None:
        self.project = project
        self.assets = AssetCatalog(project)
        self.captures = FrameCaptures(project)
        self.has_focus = True
        self.unknown_calls: list[str] = []
        """What was refused, in the words of who called: a bus, an event, a number of arguments or a type."""
        self.corrupted = False
        """Whether somebody touched the properties of a wrapped component, which breaks the real Editor."""
        self.on_game_mode: Callable[[bool], None] = lambda is_on: None
        """Is told when game mode begins (True) and ends (False)."""
        self.game_transform: Callable[[str], Placement | None] = lambda name: None
        """Says where the body of this entity, or of this instance of a prefab, is in the running world."""
        self.is_in_game_mode = self.is_in_simulation_mode = False
        self.is_idle_enabled = not is_starting
        self.cvars: dict[str, str] = {}
        self.level: Level | None = None
        self.game: Entities = {}
        """In game mode: the entities of the game, which have other ids than those of the level."""
        self.prefabs_to_save: dict[Path, Entities] = {}
        self.frame_count = 0
        self.loop_callback: Callable[[], Any] | None = None
        """What QtForPython calls in each round of the event loop, focus or not."""
        self.handlers: list[BusHandler] = []  # those that are connected
        self._has_qt_helpers, self._is_starting = qt_helpers, is_starting
        self._is_in_tick = False
        self._wants_game_mode: bool | None = None
        self._next_level: Level | None = None
        self._batches = 0
        self._dirty: set[int] = set()

    @property
    def is_playing(self) -> bool:
        """Whether the level's own entities are switched off, as they are in both of these modes."""
        return self.is_in_game_mode or self.is_in_simulation_mode

    # Scripts

    @contextmanager
    def installed(self) -> Iterator[FakeEditor]:
        """Let `import azlmbr` find this Editor."""
        modules = modules_of(self)
        if not self._has_qt_helpers:
            del modules[QT_HELPERS]
        before = {name: sys.modules.pop(name) for name in _ours(sys.modules)}
        refused, AzValue.refused_ = AzValue.refused_, self.unknown_calls
        sys.modules.update(modules)
        try:
            yield self
        finally:
            for name in _ours(sys.modules):
                del sys.modules[name]
            sys.modules.update(before)
            AzValue.refused_ = refused

    def note(self, what: str) -> None:
        """Write down something that the real Editor would only warn of in its log."""
        self.unknown_calls.append(what)

    # Frames

    @property
    def ticks(self) -> bool:
        """Whether frames simulate anything: without focus they do not, unless the Editor is kept active."""
        return self.has_focus or self.cvars.get("ed_keepEditorActive", "0") != "0"

    def frame(self) -> None:
        """Run one round of the Editor's main loop."""
        if self._is_starting:
            self._is_starting, self.is_idle_enabled = False, True
            self.send(EDITOR_EVENTS, "NotifyEditorInitialized", ())
        if self.ticks:
            self._tick()
        if self.loop_callback is not None:
            self.loop_callback()

    def wait_frames(self, count: int) -> None:
        """Run frames from inside a script; EditorHang if they would never come."""
        if self._is_in_tick:
            raise EditorHang("idle_wait_frames under a tick: the tick that it waits for cannot come")
        if not (self.ticks and self.is_idle_enabled):
            raise EditorHang("idle_wait_frames without focus or before the start: no tick comes")
        for _ in range(count):
            self.frame()

    def send(self, bus: str, event: str, arguments: tuple[Any, ...], address: Any = None) -> None:
        """Call those who listen to an event."""
        for handler in list(self.handlers):
            if handler.bus_ == bus and handler.address_ == address and event in handler.callbacks_:
                handler.callbacks_[event](arguments)

    def _tick(self) -> None:
        self._is_in_tick = True
        try:
            self.frame_count += 1
            if self._next_level is not None:
                self.level, self._next_level = self._next_level, None
                self._batches, self._dirty = 0, set()
            if self._wants_game_mode is not None:
                self._switch_game_mode(self._wants_game_mode)
                self._wants_game_mode = None
            for number, result, info in self.captures.finish():
                self.send("FrameCaptureNotificationBus", "OnFrameCaptureFinished", (result, info), number)
            self.send(TICK, "OnTick", (FRAME_S, self.frame_count * FRAME_S))
        finally:
            self._is_in_tick = False

    # Levels

    @property
    def levels(self) -> Path:
        """The folder in which each level has one of its own."""
        return self.project / "Levels"

    def open(self, name: str, path: Path) -> None:
        """Load a level, which is open a frame later."""
        self._next_level = Level(name, template=load_entities(path))
        self._next_level.revert()

    def save(self) -> bool:
        """Write the level: what is recorded of it."""
        if self.level is None or self.is_playing:
            return False
        save_entities(
            self.levels / self.level.name / f"{self.level.name}.prefab", self.level.name, self.level.template
        )
        for path, entities in self.prefabs_to_save.items():
            save_entities(path, path.stem, entities)
        self.prefabs_to_save.clear()
        return True

    def want_game_mode(self, *, is_on: bool) -> None:
        """Ask for game mode, or for its end, which comes with the next tick."""
        if self.level is not None:
            self._wants_game_mode = is_on

    def switch_simulation_mode(self, *, is_on: bool) -> None:
        """Let the Editor's own physics run or stand, at once."""
        if is_on != self.is_in_simulation_mode and self.level is not None:
            self.is_in_simulation_mode = is_on
            self.level.revert()

    def _switch_game_mode(self, is_on: bool) -> None:  # noqa: FBT001
        if is_on == self.is_in_game_mode or self.level is None:
            return
        self.is_in_game_mode = is_on
        self.game = _renumbered(self.level.template) if is_on else {}
        if not is_on:
            self.level.revert()
        self.on_game_mode(is_on)

    # Edits

    def editable(self, entity: AzEntityId | None = None) -> Level | None:
        """Return the level if it, or one of its entities, can be edited now."""
        if self.level is None or self.is_playing:
            return None
        return self.level if entity is None or entity.number_ in self.level.live else None

    def live(self, entity: AzEntityId) -> Entity | None:
        """Return an entity of the level; in game mode they are not active, but there."""
        return None if self.level is None else self.level.live.get(entity.number_)

    def begin_batch(self) -> None:
        """Begin an undo batch, perhaps inside another."""
        self._batches += 1

    def end_batch(self) -> None:
        """End an undo batch. With the outermost, what is dirty is recorded."""
        if self._batches == 0:
            return
        self._batches -= 1
        if self._batches == 0 and self.level is not None:
            self.level.record(*self._dirty)
            self._dirty.clear()

    def mark_dirty(self, number: int) -> None:
        """Let an entity be recorded at the end of the batch; outside of one this does nothing."""
        if self._batches and not self.is_playing:
            self._dirty.add(number)


def _ours(names: dict[str, ModuleType]) -> list[str]:
    return [name for name in names if name == PACKAGE or name.startswith(f"{PACKAGE}.")]


def _renumbered(entities: Entities) -> Entities:
    """Return copies with other numbers."""
    copies = {number: entity.copied() for number, entity in entities.items()}
    numbers = {number: number ^ 0x5555 for number in entities}
    for number, entity in copies.items():
        entity.number = numbers[number]
        entity.parent = None if entity.parent is None else numbers.get(entity.parent)
    return {entity.number: entity for entity in copies.values()}
