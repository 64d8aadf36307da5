"""The one place that calls `azlmbr`, the Editor's Python bindings.

They never raise: an unknown event, a wrong number of arguments or a wrong type gives a warning in the
Editor's log and `None`. So whoever calls says here whether a value is due, and its absence is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast

from o3de_sim.errors import O3DEError

CAUSE = (
    "The Editor's log has a warning; the usual causes are an event that this engine does not have, "
    "an argument of another type, or an entity that is not there"
)
Values = tuple[float, ...]
Returns = Literal["value", "outcome", "nothing", "perhaps"]
Stop = Callable[[], None]
PERIOD_MS = 10
KEEP_ACTIVE = "ed_keepEditorActive"


def azlmbr_is_here() -> bool:
    """Return whether this is the Editor's Python, and not, say, an asset builder's."""
    try:
        import_module("azlmbr.legacy.general")
    except ImportError:
        return False
    return True


def on_each_tick(callback: Callable[[], object]) -> Stop:
    """Call back once in each frame, as long as frames pass; return what ends it."""
    return _handled("components", "TickBusHandler", "OnTick", callback)


def when_editor_is_ready(callback: Callable[[], object]) -> Stop:
    """Call back when the Editor has started; return what forgets it."""
    return _handled("editor", "EditorEventBusHandler", "NotifyEditorInitialized", callback)


def _handled(module: str, handler: str, event: str, callback: Callable[[], object]) -> Stop:
    bus_handler = getattr(import_module(f"azlmbr.{module}"), handler)()
    bus_handler.connect()
    bus_handler.add_callback(event, lambda _arguments: callback())
    return cast(Stop, bus_handler.disconnect)


class Engine:
    """The engine as the operations see it. It may only be called on the Editor's main thread."""

    def __init__(self) -> None:
        if not azlmbr_is_here():
            problem = (
                "there is no azlmbr here: this is not the Python of an O3DE Editor with EditorPythonBindings"
            )
            raise O3DEError("bad_state", problem)
        self._frames = 0
        self._stop_counting = on_each_tick(self._count_frame)

    def close(self) -> None:
        """Stop counting frames."""
        self._stop_counting()

    # What is asked of it

    def broadcast(self, bus: str, event: str, *arguments: Any, returns: Returns = "value") -> Any:
        """Ask everybody on a bus, such as `editor.ToolsApplicationRequestBus`.

        `returns` says what is due: a value, an `Outcome` whose value is taken out of it, nothing, or a value
        if somebody answers. It must be said, because an object returns None, with a warning, for an attribute
        that it does not have. O3DEError az_call_failed: a value is due and is missing, or an outcome is a
        failure.
        """
        answer = self._bus(bus)(_module("bus").Broadcast, event, *arguments)
        return _due(answer, returns, f"{bus} {event}")

    def event(self, bus: str, event: str, entity: Any, *arguments: Any, returns: Returns = "value") -> Any:
        """Ask one entity. As `broadcast`."""
        answer = self._bus(bus)(_module("bus").Event, event, entity, *arguments)
        return _due(answer, returns, f"{bus} {event}")

    def general(self, function: str, *arguments: Any, returns: Returns = "value") -> Any:
        """Call a function of `azlmbr.legacy.general`. As `broadcast`."""
        found = getattr(_module("legacy.general"), function, None)
        if found is None:
            raise O3DEError(
                "az_call_failed", f"azlmbr.legacy.general has no {function}; is this O3DE 24.09 or newer?"
            )
        answer = found(*arguments)
        return _due(answer, returns, f"general.{function}")

    def constant(self, module: str, name: str) -> Any:
        """Return a constant, such as `physics` `ShapeType_Box`."""
        return _due(getattr(_module(module), name, None), "value", f"azlmbr.{module}.{name}")

    # Values

    def vector(self, values: Iterable[float]) -> Any:
        """Return an `azlmbr.math.Vector3`."""
        return _module("math").Vector3(*map(float, values))

    def quaternion(self, xyzw: Iterable[float]) -> Any:
        """Return an `azlmbr.math.Quaternion`, whose parts are in the order x, y, z, w."""
        return _module("math").Quaternion(*map(float, xyzw))

    def color(self, rgb: Values) -> Any:
        """Return an opaque `azlmbr.math.Color`."""
        return _module("math").Color(*map(float, rgb), 1.0)

    def no_entity(self) -> Any:
        """Return the id of no entity, which as a parent means the level's root.

        Ids cannot be made from numbers: the engine then gives an invalid one without a word.
        """
        return _module("entity").EntityId()

    def game_entity_type(self) -> Any:
        """Return the kind of entity that components are looked up for."""
        return _due(_module("entity").EntityType().Game, "value", "entity.EntityType().Game")

    def search_filter(self, names: list[str]) -> Any:
        """Return a filter of names that are matched with their case."""
        found = _module("entity").SearchFilter()
        if names:
            found.names = names
        found.names_case_sensitive = True
        return found

    def asset_id(self, product_path: str) -> Any | None:
        """Return the id of a product of the Asset Processor, or None if there is none."""
        found = self.broadcast(
            "asset.AssetCatalogRequestBus",
            "GetAssetIdByPath",
            product_path,
            _module("math").Uuid(),
            False,  # noqa: FBT003  (buses know no keywords)
        )
        return found if found.is_valid() else None

    # Where and when it is

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return Path(_due(_module("paths").projectroot, "value", "paths.projectroot"))

    @property
    def engine_folder(self) -> Path:
        """The folder of the engine."""
        return Path(_due(_module("paths").engroot, "value", "paths.engroot"))

    @property
    def frame_count(self) -> int:
        """How many frames have passed since this was made."""
        return self._frames

    def keep_active(self) -> None:
        """Let frames pass also while the Editor has no focus."""
        self.general("set_cvar_integer", KEEP_ACTIVE, 1, returns="nothing")
        self.general("idle_enable", True, returns="nothing")  # noqa: FBT003  (it knows no keywords)

    def idle_wait_frames(self, frames: int) -> None:
        """Wait in a nested loop. Only for scripts: in a pump that hangs on ticks no tick would come."""
        self.general("idle_wait_frames", frames, returns="nothing")

    def on_frame_captured(self, capture: Any, callback: Callable[[bool, str], object]) -> Stop:
        """Call back with the result of a screenshot that was asked for; return what forgets it."""
        handler = _module("atom").FrameCaptureNotificationBusHandler()
        success = self.constant("atom", "FrameCaptureResult_Success")

        def finished(arguments: Any) -> None:
            callback(arguments[0] == success, str(arguments[1]) if len(arguments) > 1 else "")

        handler.connect(capture)
        handler.add_callback("OnFrameCaptureFinished", finished)
        return cast(Stop, handler.disconnect)

    def _count_frame(self) -> None:
        self._frames += 1

    def _bus(self, name: str) -> Any:
        module, _, bus = name.partition(".")
        found = getattr(_module(module), bus, None)
        if found is None:
            raise O3DEError(
                "az_call_failed", f"azlmbr.{module} has no {bus}; is its Gem enabled in the project?"
            )
        return found


def _module(name: str) -> Any:
    """Return a module, which may be missing if the Gem that fills it is not enabled."""
    try:
        return import_module(f"azlmbr.{name}")
    except ImportError:
        problem = f"there is no azlmbr.{name}; is its Gem enabled in the project?"
        raise O3DEError("az_call_failed", problem) from None


def _due(answer: Any, returns: Returns, call: str) -> Any:
    if returns == "nothing":
        return None
    if returns == "perhaps":
        return answer
    if answer is None:
        raise O3DEError("az_call_failed", f"{call} gave nothing. {CAUSE}")
    if returns == "value":
        return answer
    if not answer.IsSuccess():
        raise O3DEError("az_call_failed", f"{call} failed: {answer.GetError()}")
    return answer.GetValue()


def start_pump(callback: Callable[[], object]) -> Stop:
    """Call a function often, as long as the Editor lives; return what ends it. It must return soon.

    A timer of Qt runs also while the Editor has no focus. Without PySide there is the loop callback of the
    Gem QtForPython, and without that the tick of each frame, which stands still when frames do.
    """
    for name in ("PySide6.QtCore", "PySide2.QtCore"):
        try:
            core = import_module(name)
        except ImportError:
            continue
        application = core.QCoreApplication.instance()
        if application is not None:
            timer = core.QTimer(application)
            timer.setInterval(PERIOD_MS)
            timer.timeout.connect(callback)
            timer.start()
            return cast(Stop, timer.stop)
    try:
        helpers = import_module("azlmbr.qt_helpers")
    except ImportError:
        return on_each_tick(callback)
    if helpers.loop_is_running():  # somebody else has its one callback
        return on_each_tick(callback)
    helpers.set_loop_callback(callback)
    return cast(Stop, helpers.clear_loop_callback)
