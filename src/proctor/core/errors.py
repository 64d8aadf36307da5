"""Errors, one class per decision the caller can take.

`UserError` and its children are printed without a traceback and end a command with exit code 2.
`AgentFault` ends an episode and counts against the agent. What else escapes from an episode is the fault
of the side whose turn it was (`evaluation/episode_log.py` decides).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from proctor.core.distribution import install_command


class ProctorError(Exception):
    """Root of all errors raised on purpose."""


class UserError(ProctorError):
    """Something the user asked for cannot be done as asked."""


class InvalidFile(UserError):
    """A file is not what it should be.

    Args:
        file: The file.
        problem: What was found and what would be right.
        place: Where in the file: `line 3, column 7` or `episodes[3].goal_position.x`.
    """

    def __init__(self, file: Path | str, problem: str, *, place: str = "") -> None:
        self.file, self.problem, self.place = file, problem, place
        super().__init__(f"{file}: {place}: {problem}" if place else f"{file}: {problem}")


MOST_NAMES = 25
"""Of more names than these, only some are listed."""
NAMES_SHOWN = 5


class UnknownName(UserError):
    """A name that nothing answers to.

    Args:
        kind: Of what.
        name: What was asked for.
        available: What there is. Of many names only the nearest are listed.
        hint: What else could be done, as a clause.
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
    **dict.fromkeys(
        ("daqp", "fast_simplification", "mink", "mujoco", "numba", "qpsolvers", "scipy", "trimesh"), "sim"
    ),
    **dict.fromkeys(("av", "matplotlib", "ompl", "toppra", "yaml"), "nav"),
    "gymnasium": "gym",
    "pxr": "usd",
}
"""Packages that only some parts of Proctor need, and the extra that brings them."""
ROS_PACKAGES = ("plan_msgs", "simulation_interfaces", "tf2_msgs")
"""Message packages that a ROS 2 may lack."""


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
    """The agent broke the rules of the exam.

    Args:
        kind: A short stable word for the results, such as `invalid_action`.
        message: What happened, for people.
    """

    kind = "agent_fault"
    """Of a subclass whose constructor does not call this one."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = str(kind)
        super().__init__(message)


class AgentUnavailable(AgentFault):
    """The agent is not there at present: its server or API cannot be reached, or is overloaded.

    Before the agent's first action of an episode that is nobody's fault: the episode is not scored, and
    tried again later. After it the agent has broken off, and is at fault.

    Args:
        message: What happened, for people.
        kind: A short stable word for the results.
    """

    def __init__(self, message: str, *, kind: str = "agent_unavailable") -> None:
        super().__init__(kind, message)


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
