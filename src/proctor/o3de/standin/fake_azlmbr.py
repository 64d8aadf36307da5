"""A made-up `azlmbr`, generated from the table of calls. It never raises: what it does not know is None."""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from proctor.core.documents import convert, read_json
from proctor.o3de.standin import entity_calls, general_calls
from proctor.o3de.standin.az_values import VALUE_TYPES, AzValue, fits

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor


CALLS_FILE = Path(__file__).with_name("azlmbr_calls.json")
PACKAGE = "azlmbr"
QT_HELPERS = "azlmbr.qt_helpers"
CALL_HANDLERS: dict[tuple[str, str], Callable[..., Any]] = {
    **entity_calls.CALL_HANDLERS,
    **general_calls.CALL_HANDLERS,
}
"""What is done at a call, by its bus (or else its module) and its name; the first argument is the editor."""


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that can be called, made or read."""

    module: str
    bus: str | None
    kind: Literal["event", "broadcast", "function", "handler", "class", "constant"]
    name: str
    arguments: list[str]
    """Their types. The first one of an event is its address; a class takes none of them or all."""
    returns: str
    source: str  # where it was read
    members: list[str] = []  # what an object of a class has
    value: Any = None  # of a constant; those that differ from project to project have none
    address: str = "None"  # the type of what a handler connects to


class _CallTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    calls: list[Call]


@cache
def calls() -> tuple[Call, ...]:
    """Return all of them."""
    return tuple(convert(read_json(CALLS_FILE), _CallTable, CALLS_FILE).calls)


class EventType(enum.Enum):
    """`azlmbr.bus.Event` and `azlmbr.bus.Broadcast`."""

    EVENT = "event"
    BROADCAST = "broadcast"


class AzModule(ModuleType):
    """A module that has no AttributeError: what is not there can be called, and gives None."""

    def __init__(self, name: str, note: Callable[[str], None]) -> None:
        super().__init__(name)
        self.note_ = note

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.note_(f"{self.__name__}.{name}")
        return lambda *arguments: None


class BusHandler(AzValue):
    """`TickBusHandler()` and others: connected first, then given callbacks, which get one tuple each."""

    def __init__(self, editor: FakeEditor, bus: str, events: dict[str, Call]) -> None:
        self.editor_, self.bus_, self.events_ = editor, bus, events
        self.callbacks_: dict[str, Callable[[tuple[Any, ...]], Any]] = {}
        self.address_: Any = None

    def connect(self, address: Any = None) -> bool:
        """Begin to listen, without callbacks. A bus with addresses needs one."""
        wanted = next(iter(self.events_.values())).address
        if (address is None) != (wanted == "None") or (address is not None and not fits(address, wanted)):
            self.refused_.append(f"{self.bus_}Handler.connect({address!r})")
            return False
        self.disconnect()
        self.callbacks_, self.address_ = {}, address
        self.editor_.handlers.append(self)
        return True

    def add_callback(self, event: str, callback: Callable[[tuple[Any, ...]], Any]) -> bool:
        """Listen to an event. Only a connected handler can."""
        if event not in self.events_ or not self.is_connected():
            self.refused_.append(f"{self.bus_}Handler.add_callback({event!r})")
            return False
        self.callbacks_[event] = callback
        return True

    def is_connected(self) -> bool:
        """Return whether it listens."""
        return any(handler is self for handler in self.editor_.handlers)

    def disconnect(self) -> None:
        """Listen no more."""
        self.editor_.handlers[:] = [handler for handler in self.editor_.handlers if handler is not self]


def modules_of(editor: FakeEditor) -> dict[str, ModuleType]:
    """Return the modules of the table for an Editor, to be put into `sys.modules`."""
    made: dict[str, ModuleType] = {}

    def module(name: str) -> ModuleType:
        if name not in made:
            made[name] = AzModule(name, editor.note)
            outer, _, last = name.rpartition(".")
            if outer and name != QT_HELPERS:  # which is found by import alone, if at all
                setattr(module(outer), last, made[name])
        return made[name]

    module("azlmbr.bus").__dict__.update(Event=EventType.EVENT, Broadcast=EventType.BROADCAST)
    for call in calls():
        where = module(call.module)
        if call.bus is not None:
            if call.bus not in where.__dict__:
                _add_bus(editor, where, call.module, call.bus)
        else:
            setattr(where, call.name, _member(editor, call))
    return made


def _add_bus(editor: FakeEditor, where: ModuleType, module: str, bus: str) -> None:
    of_bus = [call for call in calls() if (call.module, call.bus) == (module, bus)]
    table = {(call.kind, call.name): call for call in of_bus}
    events = {call.name: call for call in of_bus if call.kind == "handler"}

    def send(kind: EventType, name: str, *arguments: Any) -> Any:
        call = table.get((kind.value, name))
        if call is None:
            editor.note(f"{bus}({kind.value}, {name!r})")
            return None
        return _call(editor, call, arguments)

    setattr(where, bus, send)
    if events:
        setattr(where, f"{bus}Handler", lambda: BusHandler(editor, bus, events))


def _member(editor: FakeEditor, call: Call) -> Any:
    if call.kind == "constant":
        return CALL_HANDLERS[call.module, call.name](editor) if call.value is None else call.value
    if call.kind == "function":
        return lambda *arguments: _call(editor, call, arguments)
    made = VALUE_TYPES[call.name]

    def make(*arguments: Any) -> Any:
        if arguments and not _match(arguments, call):
            editor.note(f"{call.name}{arguments!r}")
            return made()  # the real ones fall back to the default, too
        return made(*arguments)

    return make


def _call(editor: FakeEditor, call: Call, arguments: tuple[Any, ...]) -> Any:
    if not _match(arguments, call):
        given = ", ".join(type(argument).__name__ for argument in arguments)
        editor.note(f"{call.bus or call.module}.{call.name}({given}), expected ({', '.join(call.arguments)})")
        return None
    return CALL_HANDLERS[call.bus or call.module, call.name](editor, *arguments)


def _match(arguments: tuple[Any, ...], call: Call) -> bool:
    return len(arguments) == len(call.arguments) and all(map(fits, arguments, call.arguments))
