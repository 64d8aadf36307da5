"""Skills as a ROS 2 action: `navigate_to` for any ROS 2 client."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from plan_msgs.action import SkillExecution
from rclpy.clock import Clock, ClockType

from proctor.core.errors import ProctorError, SimulationError, UnknownName, UserError
from proctor.maps.failure import PluginFailure, Reason
from proctor.maps.grid_map import GridMap
from proctor.navigation.plugins import calling
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.skill.goal import MAX_TIMEOUT_S, NavigationGoal, asked_for
from proctor.navigation.tracking.mpc import PERIOD_S
from proctor.robots.robot import STILL
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.topic import BLIND_S, EARLY, WATCH_S, RobotClock
from proctor.worlds.ros2.robot.ros2_robot import topic_in
from proctor.worlds.ros2.skill.navigator import NavigatorOptions, RosNavigator, Views
from proctor.worlds.ros2.skill.planning_servers import End, GoalServer, PlanningServers, reason_of

MOST_SKILLS, MOST_PARAMS, LONGEST_KEY, LONGEST_VALUE = 100, 50, 60, 10_000
SILENCE_S = 5.0  # after so long without the robot's time, odometry or scans a goal fails


class SkillCall(NamedTuple):
    """One skill and what it is told."""

    skill: str
    goal: NavigationGoal


def _read_navigate_to(params: dict[str, Any]) -> NavigationGoal:
    asked = asked_for(params)
    if isinstance(asked, str):
        raise UserError(f"navigate_to: {asked}")
    return asked


SKILLS: Mapping[str, Callable[[dict[str, Any]], NavigationGoal]] = {"navigate_to": _read_navigate_to}
"""The skills there are, and what reads their parameters; UserError if they make no sense."""


def read_request(request: Any) -> list[SkillCall]:
    """Read a plan_msgs/SkillRequest; UserError says what would be right."""
    count = len(request.skill_list)
    if not 0 < count <= MOST_SKILLS:
        raise UserError(f"skill_list: expected 1 to {MOST_SKILLS} skills, found {count}")
    return [_read_call(call, f"skill_list[{index}]") for index, call in enumerate(request.skill_list)]


def _read_call(call: Any, place: str) -> SkillCall:
    if call.skill not in SKILLS:
        raise UnknownName("skill", _shown(call.skill), SKILLS)
    if len(call.params) > MOST_PARAMS:
        raise UserError(
            f"{place}.params: expected at most {MOST_PARAMS} parameters, found {len(call.params)}"
        )
    params: dict[str, Any] = {}
    for param in call.params:
        if len(param.key) > LONGEST_KEY:
            raise UserError(f"{place}: there is no parameter '{_shown(param.key)}'")
        if param.key in params:
            raise UserError(f"{place}: the parameter '{param.key}' is given twice")
        params[param.key] = _read_value(param.value, f"{place}: the parameter '{param.key}'")
    try:
        return SkillCall(call.skill, SKILLS[call.skill](params))
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    except RecursionError:  # to show a value that could just be read
        raise UserError(f"{place}: a value has too many brackets in brackets") from None


def _read_value(text: str, what: str) -> Any:
    if len(text) > LONGEST_VALUE:
        raise UserError(f"{what} has {len(text)} characters, expected at most {LONGEST_VALUE}")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:  # the latter for brackets in brackets in brackets
        raise UserError(
            f"{what} is not JSON: '{_shown(text)}' ({error}); expected a value such as [10, 20, 0] or 60.0"
        ) from None


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


class SkillGoal:
    """A goal that was accepted."""

    def __init__(self, handle: Any, calls: list[SkillCall], now_s: float) -> None:
        self.handle, self.calls, self.begun_s = handle, calls, now_s
        self.index = 0
        self.distance_m = math.nan  # to the goal of the skill, at the latest tick
        self.elapsed_s = 0.0  # of the skill, at the latest tick

    @property
    def call(self) -> SkillCall:
        """The skill that is under way."""
        return self.calls[self.index]

    def followed_by(self, call: SkillCall) -> SkillCall:
        """Return a skill that replaces the present one, so that its time counts from then on.

        The skill takes the same goal for the one that it pursues already, whose time goes on.
        """
        asked, pursued = call.goal, self.call.goal
        if (asked.position, asked.yaw) != (pursued.position, pursued.yaw):
            return call
        timeout_s = min(asked.timeout_s + self.elapsed_s, MAX_TIMEOUT_S)
        return call._replace(goal=msgspec.structs.replace(asked, timeout_s=timeout_s))


class SkillServer(RosNode):
    """Offers the action `skill_execution`, and beside it planning as actions and views for RViz.

    The control loop is driven by the robot's clock: at each of its ticks, at most 60 in a second of it, the
    skill goes on, the controller commands, and the client gets feedback. A new goal replaces the current one
    while the robot keeps moving; an invalid one is aborted with a message and changes nothing. Whatever the
    end of a goal, the robot is commanded to stop. A goal whose client has gone is pursued to its end. The
    robot's time, odometry or scans may be missing for `silence_timeout_s` of this machine's clock. Without a
    `client` it starts a planner of its own.
    """

    def __init__(
        self,
        grid: GridMap,
        *,
        namespace: str = "robot_0",
        options: NavigatorOptions | None = None,
        silence_timeout_s: float = SILENCE_S,
        client: PlanningClient | None = None,
        ros_args: Sequence[str] = (),
    ) -> None:
        if not 0 < silence_timeout_s < math.inf:
            raise UserError(f"expected a timeout of more than 0 s, found {silence_timeout_s}")
        options = options or NavigatorOptions()
        options.params.checked()
        topic_in(options.robot_namespace, "odom")  # raises before there is a node to close
        super().__init__("skill_server", namespace=namespace, ros_args=ros_args, starts=False)
        self._silence_s = silence_timeout_s
        self.robot_clock = RobotClock(self, self._on_time)
        self.navigator = RosNavigator(self, self.robot_clock, grid, options, client)
        self._goal: SkillGoal | None = None
        self._ticked_s, self._jumps = -math.inf, 0
        self._rests_until_s = -math.inf
        self._problem: str | None = None  # why the robot could not be driven at the latest tick
        self._problem_ticks = 0
        self._blind_until_s: float | None = None
        """While the robot stands because of that, until when at least; else None."""
        self._fine_s = self._watched_s = (
            time.monotonic()
        )  # when it could last be driven, and was looked after
        self._silent_s = 0.0  # since then, without the time in which this machine stalled
        self._is_ready, self._is_closed = False, False
        self._server = GoalServer(
            self, SkillExecution, "skill_execution", on_goal=self._take, on_cancel=self._cancel
        )
        self._planning = PlanningServers(self, self.navigator)
        self._views = Views(self, self.navigator)
        self.create_timer(WATCH_S, self._watch, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.start()

    @property
    def action_name(self) -> str:
        """The full name of the action."""
        return f"{self.get_namespace().rstrip('/')}/skill_execution"

    def wait_until_ready(self, timeout_s: float = 600.0) -> bool:
        """Wait until the planner is warm; its code is compiled once per machine, for half a minute."""
        return self.wait_until(lambda: self._is_ready, timeout_s)

    def close(self) -> None:
        """Stop the robot, abort the goal that is under way, and leave. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self.executor is not None:
                had_goal = self._goal is not None
                ended = self.executor.create_task(self._end_all)
                self.wait_until(lambda: ended.done() and not self._unsent(), 2.0)
                if had_goal:
                    # Results not received yet would be lost, and ROS 2 cannot tell.
                    self.wait_until(lambda: False, 0.2)
        except SimulationError:
            pass  # its thread has ended already
        finally:
            self.navigator.robot.close()
            super().close()
            self.navigator.close()

    def destroy_node(self) -> None:
        """Take the actions from the graph, too: rclpy would leave them there, deaf."""
        if self._is_closed:
            for server in (self._server, self._planning.paths, self._planning.trajectories):
                server.destroy()
        super().destroy_node()

    def _unsent(self) -> int:
        return self._server.unsent + self._planning.unsent

    def _end_all(self) -> None:
        if self._goal is not None:
            self._drop(Reason.CANCELLED, "the skill server was closed")
        self._planning.close()

    def _take(self, handle: Any) -> None:
        """Begin with a goal, in place of the present one if it makes sense."""
        try:
            calls = read_request(handle.request.skill_request)
        except UserError as error:
            result = SkillExecution.Result(
                status="failed", message=str(error), reason=Reason.INVALID_GOAL, final_distance=math.nan
            )
            self._server.finish(handle, "aborted", result)
            return
        if self._goal is not None:
            calls[0] = self._goal.followed_by(calls[0])
            gone = {"status": "failed", "message": "another goal took its place", "reason": Reason.CANCELLED}
            self._finish(self._goal, "aborted", gone)
        self._goal = SkillGoal(handle, calls, self.navigator.now_s())
        self._note_fine()

    def _cancel(self, handle: Any) -> None:
        """Stop the robot now; the goal ends when rclpy has taken note that it is to be cancelled."""
        if self._goal is not None and self._goal.handle.goal_id == handle.goal_id:
            self.navigator.navigate_to.cancel()
            self.navigator.robot.command(STILL)
            self.executor.create_task(self._end_cancelled, self._goal)

    def _end_cancelled(self, goal: SkillGoal) -> None:
        if goal is self._goal:
            result = {"status": "failed", "message": "cancelled", "reason": Reason.CANCELLED}
            self._end(goal, "aborted", result)

    def _on_time(self) -> None:
        """Go on by a tick if one is due."""
        now_s = self.navigator.now_s()
        if self.robot_clock.jumps != self._jumps:
            self._jumps = self.robot_clock.jumps
            self._begin_anew(now_s)
            return
        if self._problem is None:
            self._note_fine()
        if now_s - self._ticked_s < EARLY * PERIOD_S:
            return
        self._ticked_s = now_s
        self.navigator.look()
        if self._goal is not None:
            self._guarded_tick(self._goal)
        elif now_s < self._rests_until_s:
            self.navigator.robot.command(STILL)

    def _begin_anew(self, now_s: float) -> None:
        was_s, self._ticked_s, self._rests_until_s = self._ticked_s, -math.inf, -math.inf
        if self._goal is not None:
            what = f"the robot's time went back from {was_s:.1f} s to {now_s:.1f} s"
            self._drop(Reason.POSE_UNKNOWN, f"{what}: the simulator was reset or started anew")
        self.navigator.begin_anew()

    def _guarded_tick(self, goal: SkillGoal) -> None:
        """Let a tick pass, and the robot stop if anything goes wrong in it."""
        try:
            self._tick(goal)
        except ProctorError as error:
            self._drop(reason_of(error), str(error))
        except BaseException:
            self._stop()
            raise

    def _tick(self, goal: SkillGoal) -> None:
        """Let the skill go on and the controller command, or wait while the robot cannot be driven."""
        navigator = self.navigator
        self._problem = navigator.problem()
        self._problem_ticks = 0 if self._problem is None else self._problem_ticks + 1
        if 0 < self._problem_ticks < 3:  # ticks: when this machine stalls, the clock is heard first
            return
        if self._problem is not None:
            self._stand_blind()
        if self._blind_until_s is not None:
            if self._problem is not None or navigator.now_s() < self._blind_until_s:
                navigator.robot.command(STILL)
                why = "Coming to rest" if self._problem is None else f"Waiting: {self._problem}"
                self._tell(goal, {"status": "processing", "message": why})
                return
            self._blind_until_s = None
            navigator.navigate_to.resume()
        result = navigator.skills.execute_skill(goal.call.skill, goal=goal.call.goal)
        if result["status"] == "processing":
            navigator.control()
            self._tell(goal, result)
        elif result["status"] == "succeeded" and goal.index + 1 < len(goal.calls):
            goal.index += 1
        else:
            self._end(goal, "succeeded" if result["status"] == "succeeded" else "aborted", result)

    def _stand_blind(self) -> None:
        """Stand still at once, and not go on before the skill, too, reckons with a robot that stands."""
        if self._blind_until_s is None:
            limits = self.navigator.robot.spec.dynamics
            self._blind_until_s = self.navigator.now_s() + limits.v_max / limits.a_max
            self.navigator.navigate_to.pause()
            with suppress(PluginFailure), calling(self.navigator.controller):
                self.navigator.controller.stop()
        self.navigator.robot.command(STILL)

    def _note_fine(self) -> None:
        self._fine_s, self._silent_s = time.monotonic(), 0.0

    def _watch(self) -> None:
        """See whether the robot has fallen silent; runs by this machine's clock.

        A machine that stalls wakes up to this before it hears what came meanwhile: its own stall is no
        silence of the robot, though the robot drove blindly for so long.
        """
        self._is_ready = self.navigator.client.ready
        now_s = time.monotonic()
        self._silent_s += min(now_s - self._watched_s, 2 * WATCH_S)
        self._watched_s = now_s
        if self._goal is None:
            return
        if now_s - self._fine_s > BLIND_S and not self.robot_clock.is_simulated:
            self._stand_blind()
        if self._silent_s > self._silence_s:
            problem = self.navigator.problem() or self.robot_clock.diagnosis()
            self._drop(Reason.POSE_UNKNOWN, f"waited {self._silent_s:.1f} s: {problem}")

    def _drop(self, reason: Reason, message: str) -> None:
        """End the present goal for a reason of ours."""
        if self._goal is not None:
            result = {"status": "failed", "message": f"Navigation failed: {message}", "reason": reason}
            self._end(self._goal, "aborted", result)

    def _end(self, goal: SkillGoal, end: End, result: dict[str, Any]) -> None:
        self._stop()
        self._goal = self._blind_until_s = None
        # Standing is commanded for so long: a single message may be lost.
        self._rests_until_s = self.navigator.now_s() + 0.5
        self._finish(goal, end, result)

    def _finish(self, goal: SkillGoal, end: End, result: dict[str, Any]) -> None:
        distance_m = result.get("final_distance", goal.distance_m)
        message = SkillExecution.Result(
            status=result["status"],
            message=result["message"],
            reason=str(result.get("reason", "")),
            final_distance=math.nan if distance_m is None else float(distance_m),
            total_time=max(self.navigator.now_s() - goal.begun_s, 0.0),
        )
        self._server.finish(goal.handle, end, message)

    def _stop(self) -> None:
        self.navigator.navigate_to.reset()
        self.navigator.robot.command(STILL)

    def _tell(self, goal: SkillGoal, result: dict[str, Any]) -> None:
        distance_m, eta_s = result.get("distance_to_goal"), result.get("remaining_time")
        goal.distance_m = math.nan if distance_m is None else float(distance_m)
        goal.elapsed_s = float(result.get("elapsed_time", goal.elapsed_s))
        feedback = SkillExecution.Feedback(
            skill=goal.call.skill,
            state=self.navigator.skills.get_skill_state(goal.call.skill),
            status=result["status"],
            message=result["message"],
            progress=float(result.get("progress", math.nan)),
            distance_to_goal=goal.distance_m,
            velocity=list(self.navigator.robot.velocity()),
            eta=math.nan if eta_s is None else float(eta_s),
        )
        goal.handle.publish_feedback(feedback)
