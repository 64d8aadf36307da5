"""The planner as the control loop sees it: a process that is asked and need not be waited for."""

from __future__ import annotations

import importlib.util
import time
import weakref

from proctor.core.errors import missing_extra
from proctor.core.types import Array
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.failure import NavigationFailure
from proctor.navigation.planner import PLANNERS, planner_name
from proctor.navigation.process.link import PlanningLink
from proctor.navigation.process.requests import (
    Call,
    CancelCall,
    FailureAnswer,
    MapLayout,
    PathAnswer,
    PathCall,
    PathRequest,
    Ready,
    Reply,
    Result,
    TrajectoryCall,
    TrajectoryRequest,
)


class PlanningClient:
    """Plans in a process of its own, so that no plan ever delays the caller.

    At most one request is under way. A newer one takes its place, and the older one's reply never comes.
    A process that died is replaced at the next request; the process ends with the caller's, also if that
    is killed.
    """

    def __init__(self) -> None:
        self._link: PlanningLink | None = None
        self._closing: weakref.finalize[[], PlanningClient] | None = None
        self._ready = False
        self._last_id = 0
        self._awaited: int | None = None
        self._reply: Reply | None = None
        self._map: tuple[int, ClearanceField] | None = None  # the version and the map of the last request
        self._map_serial = 0

    def start(self) -> None:
        """Start the process, if it does not run yet. It warms up by itself: see `ready`."""
        self._started()

    @property
    def ready(self) -> bool:
        """Whether the process has compiled what it needs, so that a plan takes no longer than it must."""
        self._receive()
        return self._ready

    @property
    def busy(self) -> bool:
        """Whether a request is under way, or its reply has not been taken."""
        return self._awaited is not None or self._reply is not None

    @property
    def latest_id(self) -> int:
        """The id of the latest request, for those who share the planner; 0 if there was none."""
        return self._last_id

    @property
    def pid(self) -> int | None:
        """The id of the process, if there is one."""
        return None if self._link is None else self._link.pid

    def submit_path(self, field: ClearanceField, map_version: int, request: PathRequest) -> int:
        """Ask for a path and return the id that the reply will have.

        The map is sent once per version. Its array must not be written to before the reply. Raises
        UnknownName, or MissingDependency if the planner's package is not installed.
        """
        if "ompl" in PLANNERS[planner_name(request.planner)]:
            _require("ompl", f"The planner '{request.planner}'")
        if self._map is None or not _is_same(self._map, (map_version, field)):
            self._map, self._map_serial = (map_version, field), self._map_serial + 1
        rows, columns = field.cells.shape
        layout = MapLayout(
            self._map_serial, rows, columns, field.resolution_m, field.origin_x, field.origin_y
        )
        return self._submit(PathCall(self._last_id + 1, layout, request), field.cells)

    def submit_trajectory(self, request: TrajectoryRequest) -> int:
        """Ask for a trajectory and return its reply's id; UserError if the path is too long to send."""
        if request.timing == "toppra":
            _require("toppra", "The timing 'toppra'")
        return self._submit(TrajectoryCall(self._last_id + 1, request))

    def poll(self) -> Reply | None:
        """Return the reply if it has come; never blocks. PLANNER_LOST is the failure of a dead process."""
        self._receive()
        reply, self._reply = self._reply, None
        return reply

    def wait(self, timeout_s: float) -> bool:
        """Block until `poll` will return a reply, and tell whether it will."""
        deadline_s = time.monotonic() + timeout_s
        self._receive()
        while self._awaited is not None and self._link is not None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                break
            self._link.wait(left_s)
            self._receive()
        return self._reply is not None

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Block until the process is warm, or is found to be dead, and tell whether it is `ready`."""
        deadline_s = time.monotonic() + timeout_s
        while not self.ready and self._link is not None and (left_s := deadline_s - time.monotonic()) > 0:
            self._link.wait(left_s)
        return self._ready

    def cancel(self) -> None:
        """Give up the request that is under way, if there is one; its reply never comes."""
        if self._awaited is not None and self._link is not None:
            self._link.send(CancelCall(self._awaited))
        self._awaited = self._reply = None

    def close(self) -> None:
        """End the process. Closing twice is fine, and so is a request after it: it starts a new one."""
        self._awaited = self._reply = None
        self._drop_link()

    def __enter__(self) -> PlanningClient:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> PlanningLink:
        self._receive()
        if self._link is None:
            self._link = PlanningLink()
            self._closing = weakref.finalize(self, self._link.close)  # also when the interpreter ends
        return self._link

    def _submit(self, call: Call, cells: Array | None = None) -> int:
        self._started().send(call, map_serial=0 if cells is None else self._map_serial, cells=cells)
        self._last_id = self._awaited = call.id
        self._reply = None
        return call.id

    def _receive(self) -> None:
        """Take in what has come, and notice if the process is gone."""
        if self._link is None:
            return
        end = self._link.end()  # before receiving, so that what was said last is heard
        for answer in self._link.receive():
            if isinstance(answer, Ready):
                self._ready = True
            elif answer.id == self._awaited:
                self._awaited, self._reply = None, _reply(answer)
        if end is None:
            return
        if self._awaited is not None:
            self._reply = Reply(self._awaited, end)
            self._awaited = None
        self._drop_link()

    def _drop_link(self) -> None:
        self._ready = False
        self._link = None
        if self._closing is not None:
            self._closing()
            self._closing = None


def _is_same(one: tuple[int, ClearanceField], other: tuple[int, ClearanceField]) -> bool:
    """Tell whether two versions of a map are the same, by the identity of their arrays."""
    return one[0] == other[0] and one[1].cells is other[1].cells and one[1][1:] == other[1][1:]


def _require(package: str, what: str) -> None:
    """Raise MissingDependency if a package is not installed, without importing it."""
    if importlib.util.find_spec(package) is None:
        raise missing_extra(what, ModuleNotFoundError(name=package)) or ModuleNotFoundError(name=package)


def _reply(answer: Result) -> Reply:
    if isinstance(answer, FailureAnswer):
        return Reply(answer.id, NavigationFailure(answer.reason, answer.message))
    if isinstance(answer, PathAnswer):
        return Reply(answer.id, answer.path)
    return Reply(answer.id, answer.trajectory, answer.took_s)
