"""The skill `navigate_to`: plan a path, time it, follow it, watch it, arrive."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from proctor.core.errors import SimulationError
from proctor.core.types import Pose2
from proctor.maps.failure import NavigationFailure, PluginFailure, Reason
from proctor.maps.live_map import LiveMap
from proctor.navigation.path import RobotMotion, Trajectory
from proctor.navigation.plugins import Controller
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.skill.checkers import SETTLE_S
from proctor.navigation.skill.goal import NavigationGoal, asked_for
from proctor.navigation.skill.mission import Mission, SavedMission, failed, processing, standing, succeeded
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.pilot import Course, Departure, Lookout, Pilot, Purpose, Sight
from proctor.navigation.skill.planning import Planning
from proctor.navigation.skill.recoveries import WayOut
from proctor.navigation.skill.states import OVER, TERMINAL, TRANSITIONS, Event, Result, SkillState
from proctor.robots.robot import Robot

LATE_S = 0.05  # a plan that begins in motion and comes later than this is of no use


class NavigateTo:
    """Brings a robot to a goal, one tick at a time; no tick ever waits.

    The controller runs beside it, at each tick of the clock. This skill gives it trajectories, watches
    the result, and stops the robot whatever the end.
    """

    name = "navigate_to"

    def __init__(
        self,
        robot: Robot,
        controller: Controller,
        world_map: LiveMap,
        client: PlanningClient,
        now_s: Callable[[], float],
        params: NavigationParams | None = None,
    ) -> None:
        self.params = (params or NavigationParams()).checked()
        self.state = SkillState.IDLE
        self.data: dict[str, Any] = {}
        self._pilot = Pilot(robot, controller, now_s)
        self.planning = Planning(client, self.params, world_map, self._pilot)
        """What was planned for the latest goal."""
        self._now_s = now_s
        self._lookout = Lookout(self._pilot, world_map, self.params)
        self._way_out = WayOut(world_map, self.params, self._pilot)
        self._mission: Mission | None = None
        self._asked: NavigationGoal | str | None = None  # what callers want, or what is wrong about it
        self._departure = Departure(RobotMotion(0.0, 0.0, 0.0), 0.0)
        self._result: Result = {}
        self._message = ""

    def tick(self, **params: Any) -> Result:
        """Go on by one tick; return `status`, `message`, and the fields of the feedback or the result.

        `params` are `goal_pos` [x, y, z], `goal_quat` [qx, qy, qz, qw] or None, `timeout` in seconds, or a
        `goal` that was read from them before: a NavigationGoal. Without any, the present goal stands; another
        one takes its place while the robot keeps moving.
        """
        asked = asked_for(params) if params else None
        if asked is not None and self._mission is not None and self._mission.takes(asked):
            self._asked = asked
        self.planning.tick += 1
        if self.state in TERMINAL:
            return self._report()
        try:
            return self._next_feedback(asked)
        except BaseException:
            self.reset()
            raise

    def _next_feedback(self, asked: NavigationGoal | str | None) -> Result:
        try:
            if self.state is SkillState.IDLE or (asked is not None and asked != self._asked):
                self._begin(asked or "goal_pos is missing")
            elif self._mission is None or not self._mission.is_paused:
                self._advance()
            return self._feedback()
        except NavigationFailure as failure:
            return self._fail(failure)
        except SimulationError as error:
            return self._fail(NavigationFailure(Reason.POSE_UNKNOWN, str(error)))

    def control(self) -> None:
        """Let the controller command the robot: called at each tick of the clock.

        If the controller fails, the navigation ends as FAILED; the next tick returns the result.
        Raises SimulationError if the robot's pose is not known.
        """
        with self._ending_on_failure():
            self._pilot.control()

    def target(self) -> list[float] | None:
        """Return where the robot is to be now, [x, y, yaw], if it has a course."""
        return self._pilot.target()

    def cancel(self) -> None:
        """Stop the robot at once; the next tick returns the result."""
        if self.state not in OVER:
            self._fail(NavigationFailure(Reason.CANCELLED, "cancelled"))

    def pause(self) -> None:
        """Come to rest, and let no time count."""
        if self._mission is not None and not self._mission.is_paused and self.state not in OVER:
            self._mission.pause(self._now_s())
            self.planning.cancel()
            with self._ending_on_failure():
                self._pilot.brake()

    def resume(self) -> None:
        """Go on from where the robot has come to rest."""
        if self._mission is not None and self._mission.is_paused and self.state not in OVER:
            with self._ending_on_failure():
                self._mission.resume(self._now_s())
                self.replan()

    def replan(self) -> None:
        """Find the way anew from where the robot is going."""
        if self.state not in (SkillState.INITIALIZING, *OVER):
            with self._ending_on_failure():
                self._plan_anew("Replanning")

    def reset(self) -> None:
        """Stop at once and forget everything."""
        self.planning.cancel()
        self._stop()
        self._mission = self._asked = None
        self.data.clear()
        self.state = SkillState.IDLE

    def saved(self) -> dict[str, Any]:
        """Return what is needed to go on later, as JSON can hold it."""
        if self._mission is None or self.state in OVER:
            saved = SavedMission(self.state, result=self._result if self.state in TERMINAL else {})
        else:
            saved = self._mission.saved(self.state, self._now_s())
        return dict(msgspec.to_builtins(saved))

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Pursue a goal that was saved: the path is planned anew from where the robot is."""
        kept = SavedMission.of(saved)
        self.reset()
        self._result = kept.result
        self.state = kept.state if kept.state in OVER else SkillState.INITIALIZING
        if kept.goal is not None:
            self._asked = kept.goal
            self._mission = Mission(kept.goal, self.params, self._pilot.robot.pose(), self._now_s())
            self._mission.take_up(kept, self._now_s())

    def _advance(self) -> None:
        if self.state is SkillState.INITIALIZING:
            self._initialize()
            return
        self._pursued.check_time(self._now_s())
        sight = self._lookout.look()
        if sight is Sight.TOUCHED:
            self._collide()
        elif sight is Sight.BLOCKED_NEAR or (
            sight is Sight.BLOCKED and self._pursued.may_detour(self.state, self._now_s())
        ):
            self._detour(sight)
        elif self.state is SkillState.PATH_PLANNING:
            self._plan_path()
        elif self.state is SkillState.TRAJECTORY_GENERATION:
            self._time_path()
        elif self.state is SkillState.EXECUTING:
            self._execute()

    def _initialize(self) -> None:
        if isinstance(self._asked, str):
            raise NavigationFailure(Reason.INVALID_GOAL, self._asked)
        self.data |= self._pursued.data(self._pilot.robot.pose())
        self._lookout.begin()
        self._go(Event.LOCATED)
        self._ask_path("Planning path")

    def _plan_path(self) -> None:
        try:
            path = self.planning.path()
        except NavigationFailure as failure:
            if failure.reason is Reason.PLUGIN_FAILED:
                raise
            self._recover(failure)
            return
        if path is None:
            if self._message == "Planning path":
                self._message = "Planning in progress"
            return
        self.data["raw_path"] = [[*point, 0.0] for point in path.raw.tolist()]
        self.data["path"] = self.data["smoothed_path"] = [[*point, 0.0] for point in path.points.tolist()]
        self._go(Event.PATH_FOUND, "Path planning succeeded")

    def _time_path(self) -> None:
        departure = self._departure
        try:
            trajectory = self.planning.trajectory()
        except NavigationFailure:
            if not departure.is_moving:
                raise
            self._rest_and_plan()
            return
        if trajectory is None:
            self._message = "Generating trajectory"
            return
        now_s = self._now_s()
        if departure.is_moving and now_s - departure.begins_s > LATE_S:
            self._rest_and_plan()
            return
        self.data["trajectory"] = trajectory
        begun_s = departure.begins_s if departure.is_moving else max(departure.begins_s, now_s)
        self._pilot.follow(
            Course(trajectory=trajectory, begun_s=begun_s, purpose="goal", path=self.planning.paths[-1])
        )
        self._pursued.watch_anew()
        self._go(Event.TIMED, "Trajectory generated")

    def _execute(self) -> None:
        mission, course = self._pursued, self._pilot.course
        if course is None:
            self.replan()
            return
        pose, now_s = self._pilot.robot.pose(), self._now_s()
        overtime_s = now_s - course.ends_s
        error_m = self._pilot.tracking_error_m(pose)
        if course.purpose != "goal":
            if overtime_s >= 0:
                self.replan()
            return
        self._message = "Navigating to goal"
        if mission.has_arrived(self._pilot, pose, overtime_s):
            self._arrive(pose)
        elif error_m > self.params.tracking_error_m:
            self._pilot.stop()
            mission.count(Reason.TRACKING_ERROR, f"{error_m:.2f} m from the trajectory")
            self._plan_anew("Off the trajectory, replanning")
        elif overtime_s > SETTLE_S:
            self._pilot.stop()
            mission.count_refusal(pose)
            self._plan_anew("Not at the goal, replanning")
        elif (problem := mission.find_problem(pose, now_s)) is not None:
            self._pilot.brake()
            mission.count(Reason.NO_PROGRESS, problem)
            self._plan_anew("No progress, replanning")

    def _collide(self) -> None:
        """Back off from what was bumped into, after which the path is planned anew around it."""
        motion = self._pilot.motion()
        direction_rad = motion.sideways if motion.v >= 0 else math.pi
        self._pilot.stop()
        self._lookout.mark_bump(direction_rad)
        self._pursued.count(Reason.COLLISION, "collision")
        self._departure = self._pilot.departure(self.params.lead_s)
        trajectory = self._way_out.back_off(self._pilot.robot.pose(), direction_rad)
        self._recover_by(trajectory, "Collision detected, replanning")

    def _detour(self, sight: Sight) -> None:
        """Find a way around something on the course, in motion if there is time for that."""
        if sight is Sight.BLOCKED_NEAR:
            self._pilot.brake()
        if self._pursued.count_detour(self._now_s()):
            self._departure = self._pilot.departure(self.params.lead_s)
            self._recover(NavigationFailure(Reason.BLOCKED, "something stays in the way"))
        else:
            self._plan_anew("Something is in the way, replanning")

    def _recover(self, failure: NavigationFailure) -> None:
        """Try something that may open a path, and plan again; NavigationFailure if nothing is left to try."""
        if self._departure.is_moving:
            self._rest_and_plan()
            return
        self._recover_by(*self._way_out.find(failure, self._pursued, self._departure.pose))

    def _recover_by(self, trajectory: Trajectory, message: str) -> None:
        self._pursued.count_recovery()
        self._take_shortcut(trajectory, "recovery", message)

    def _take_shortcut(self, trajectory: Trajectory, purpose: Purpose, message: str) -> None:
        """Go to EXECUTING with a course that needed no planner."""
        begun_s = max(self._now_s(), self._departure.begins_s)
        self._pilot.follow(Course(trajectory=trajectory, begun_s=begun_s, purpose=purpose))
        if self.state is SkillState.EXECUTING:
            self._go(Event.REPLAN)
        if self.state is SkillState.PATH_PLANNING:
            self._go(Event.PATH_FOUND)
        self._go(Event.TIMED, message)

    @property
    def _pursued(self) -> Mission:
        if self._mission is None:
            raise SimulationError(f"navigate_to is in {self.state} without a goal")
        return self._mission

    def _begin(self, asked: NavigationGoal | str) -> None:
        """Turn to another goal; until there is a course to it, the present one is kept, if it is free."""
        if self._lookout.look() in (Sight.TOUCHED, Sight.BLOCKED_NEAR):
            self._pilot.brake()
        before, self._asked = self._mission, asked
        self.planning.begin()
        self.data.clear()
        self._mission = None
        self._go(Event.REQUESTED, "Initializing navigation")
        if isinstance(asked, NavigationGoal):
            self._mission = Mission(asked, self.params, self._pilot.robot.pose(), self._now_s())
            if before is not None and before.is_paused:
                self._mission.pause(self._now_s())

    def _ask_path(self, message: str) -> None:
        self._message = message
        self._departure = self._pilot.departure(self.params.lead_s)
        goal = self._pursued.goal
        if not self._departure.is_moving and goal.distance_m(self._departure.pose) < 0.01:  # nothing to drive
            trajectory = self._departure.turn_to(goal.yaw, self._pilot.dynamics)
            self._take_shortcut(trajectory, "goal", "Navigating to goal")
            return
        self.planning.ask(self._departure, goal)

    def _plan_anew(self, message: str) -> None:
        self._go(Event.REPLAN)
        self._ask_path(message)

    def _rest_and_plan(self) -> None:
        """Plan from rest what cannot be planned in motion."""
        self._pilot.brake()
        self._plan_anew("Planning from rest")

    def _go(self, event: Event, message: str | None = None) -> None:
        self.state = TRANSITIONS[self.state, event]
        self._message = self._message if message is None else message

    def _arrive(self, pose: Pose2) -> None:
        self._pilot.stop()
        mission = self._pursued
        self._go(Event.ARRIVED, "Reached goal")
        self._result = succeeded(
            mission.goal.distance_m(pose),
            mission.goal.yaw_error_rad(pose),
            mission.elapsed_s(self._now_s()),
            **self._counts(),
        )

    def _fail(self, failure: NavigationFailure) -> Result:
        self.planning.cancel()
        self._stop()
        self._go(Event.FAILED, f"Navigation failed: {failure}")
        distance_m, elapsed_s = None, 0.0
        if self._mission is not None:
            elapsed_s = self._mission.elapsed_s(self._now_s())
            with suppress(SimulationError):  # where not even the pose is known
                distance_m = self._mission.goal.distance_m(self._pilot.robot.pose())
        self._result = failed(failure, distance_m, elapsed_s, **self._counts())
        return self._feedback()

    @contextmanager
    def _ending_on_failure(self) -> Iterator[None]:
        try:
            yield
        except NavigationFailure as failure:
            self._fail(failure)

    def _stop(self) -> None:
        with suppress(PluginFailure):  # the failure that led here is the one to report
            self._pilot.stop()

    def _counts(self) -> dict[str, int]:
        recoveries = 0 if self._mission is None else self._mission.recoveries
        return {"replans": max(len(self.planning.paths) - 1, 0), "recoveries": recoveries}

    def _report(self) -> Result:
        """Return the result, once, and be ready for the next goal."""
        result = self._result
        self._go(Event.REPORTED)
        self._mission = self._asked = None
        self.data.clear()
        return result

    def _feedback(self) -> Result:
        """Return where the navigation stands."""
        if self._mission is None or self.state in TERMINAL:
            progress = 0 if self._mission is None else self._mission.progress
            progress = 100 if self.state is SkillState.SUCCEEDED else progress
            result = self._result if self.state in TERMINAL else {}
            return standing(self._message, result, state=str(self.state), progress=progress)
        fields = self._mission.feedback(self._pilot) | self._counts()
        message = "Paused" if self._mission.is_paused else self._message
        return processing(message, state=str(self.state), **fields)
