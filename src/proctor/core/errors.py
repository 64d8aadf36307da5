"""Errors, one class per decision the caller can take.

`UserError` and its children are printed without a traceback and end a command with exit code 2.
`AgentFault` ends an episode and counts against the agent. What else escapes from an episode is the fault
of the side whose turn it was (`runs/turns.py` decides).
"""

from __future__ import annotations

import difflib
import inspect
import socket
import traceback
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any

DISTRIBUTION = "proctor-eval"  # the name under which pip knows Proctor: on PyPI, `proctor` is another project
UPDATE_COMMAND = f"pip install -U {DISTRIBUTION}"
LEAVE_OUT = "`proctor check-dataset PATH --scenes DIR --fix OUT` leaves such episodes out"
"""The remedy where episodes of a dataset cannot be done."""
LONGEST_CHAIN = 10
"""Of errors that caused each other: client libraries wrap what the socket raised several times."""


class ProctorError(Exception):
    """Root of all errors raised on purpose."""


class UserError(ProctorError):
    """Something the user asked for cannot be done as asked."""


class InvalidFile(UserError):
    """A file is not what it should be. `place` is `line 3, column 7` or `episodes[3].goal.x`."""

    def __init__(self, file: Path | str, problem: str, *, place: str = "") -> None:
        self.file, self.problem, self.place = file, problem, place
        super().__init__(f"{file}: {place}: {problem}" if place else f"{file}: {problem}")


MOST_NAMES = 25  # of more names than these, only some are listed
NAMES_SHOWN = 5


class UnknownName(UserError):
    """A name that nothing answers to. Of many available names only the nearest are listed.

    `hint` is a clause that says what else could be done.
    """

    def __init__(self, kind: str, name: str, available: Iterable[str], *, hint: str = "") -> None:
        names = sorted(available)
        listed = f"available: {', '.join(names)}"
        if len(names) > MOST_NAMES:
            near = difflib.get_close_matches(name, names, n=NAMES_SHOWN)
            what = f"the nearest of {len(names)}" if near else f"some of {len(names)}"
            listed = f"{what}: {', '.join(near or names[:NAMES_SHOWN])}"
        parts = [f"unknown {kind} '{name}'{did_you_mean(name, names)}", listed, *([hint] if hint else [])]
        super().__init__("; ".join(parts))


class MissingDependency(UserError):
    """An optional package or system is not there."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} is not available here. {remedy}")


EXTRAS = {
    package: extra
    for extra, packages in {
        "sim": "daqp fast_simplification matplotlib mink mujoco numba qpsolvers scipy trimesh",
        "nav": "ompl toppra yaml",
        "video": "av",
        "gym": "gymnasium",
        "chat": "httpx",
        "mcp": "anyio mcp starlette uvicorn",
        "ray": "ray",
        "usd": "pxr",
    }.items()
    for package in packages.split()
}
"""Packages that only some parts of Proctor need, and the extra that brings them."""
ROS_PACKAGES = ("plan_msgs", "simulation_interfaces", "tf2_msgs")  # message packages that a ROS 2 may lack


def install_command(extra: str) -> str:
    """Return the command that installs Proctor with one of its extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing_extra(what: str, error: ModuleNotFoundError) -> MissingDependency | None:
    """Return what to tell about a package that an extra would have brought, or None if it is another one."""
    package = (error.name or "").partition(".")[0]
    if package in ROS_PACKAGES:
        build = "cd ros2_ws && colcon build && source install/setup.bash"
        return MissingDependency(what, f"It needs the ROS 2 package {package}. In a checkout run: {build}")
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    run = f"{install_command(extra)}, or in a checkout pip install -e '.[{extra}]'"
    return MissingDependency(what, f"It needs {error.name}. Run: {run}")


class AgentFault(ProctorError):
    """The agent broke the rules of the exam. `kind` is a short stable word, such as `invalid_action`."""

    kind = "agent_fault"  # of a subclass whose constructor does not call this one

    def __init__(self, kind: str, message: str) -> None:
        self.kind = str(kind)
        super().__init__(message)


class AgentUnavailable(AgentFault):
    """The agent is not there at present: its server or API cannot be reached, or is overloaded.

    Before the agent's first action of an episode that is nobody's fault: the episode is not scored, and
    tried again later. After it the agent has broken off, and is at fault. `is_outage` says that a model's API
    failed, which is nobody's fault at any time; only Proctor's own clients are believed that.
    """

    def __init__(self, message: str, *, kind: str = "agent_unavailable", is_outage: bool = False) -> None:
        super().__init__(kind, message)
        self.is_outage = is_outage


class EvaluatorError(ProctorError):
    """Something of the evaluator's own failed, such as encoding a message for a served agent.

    Raised by the code of a policy it is the agent's fault, as any other error is.
    """


class SimulationError(ProctorError):
    """The world broke: a fault of the evaluator, not of the agent."""


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` when a candidate is close to the word in any case, else nothing."""
    names = {name.lower(): name for name in candidates}
    close = difflib.get_close_matches(word.lower(), list(names), n=1)
    return f"; did you mean '{names[close[0]]}'?" if close else ""


def failed_at(error: BaseException, file: str | None) -> str:
    """Return `failed (agent.py, line 3): ValueError: ...`, the last line of a file that an error came by."""
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
    place = f" ({Path(str(file)).name}, line {lines[-1]})" if lines else ""
    return f"failed{place}: {type(error).__name__}: {error}"


def is_busy_status(status: int) -> bool:
    """Tell whether an HTTP status means that a server cannot answer at present: 429, or one from 500 up."""
    return status == 429 or 500 <= status <= 599


def is_unavailability(error: BaseException) -> bool:
    """Tell whether an error means that an agent's server or API cannot be reached or is overloaded.

    That is `AgentUnavailable`, a connection that is refused or breaks, and an HTTP status of 429 or 5xx as
    the errors of urllib, requests, httpx and the clients of model APIs carry it.
    """
    if isinstance(error, ProctorError):
        return isinstance(error, AgentUnavailable)
    found: BaseException | None = error
    for _ in range(LONGEST_CHAIN):
        if found is None or not isinstance(found, Exception):
            return False
        if isinstance(found, ConnectionError | socket.gaierror | AgentUnavailable):
            return True
        if any(is_busy_status(status) for status in _statuses(found)):
            return True
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return False


def _statuses(error: Exception) -> list[int]:
    """Return the HTTP statuses of an error, without running its code: a property may raise."""
    holders: list[Any] = [error, inspect.getattr_static(error, "response", None)]
    names = ("status_code", "status", "code")
    values = [inspect.getattr_static(holder, name, None) for holder in holders for name in names]
    return [value for value in values if type(value) in (int, HTTPStatus)]
