"""Planning as ROS 2 actions: `compute_path_to_pose` and `generate_trajectory`."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from plan_msgs.action import ComputePathToPose, GenerateTrajectory
from rclpy.action import ActionServer, CancelResponse
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration

from proctor.core.errors import ProctorError, SimulationError, UserError
from proctor.core.types import Pose2
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import RobotMotion
from proctor.navigation.planner import planner_name
from proctor.navigation.process.plan import PlanAnswer, PlanRequest
from proctor.navigation.skill.planning import GRACE_S, START_UP_S, eased
from proctor.robots.dynamics import Dynamics
from proctor.worlds.ros2.node.convert import pose2
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.robot.odometry import MAP_FRAME
from proctor.worlds.ros2.skill.navigator import RosNavigator
from proctor.worlds.ros2.skill.path_messages import (
    directions_of,
    path_message,
    path_of,
    points_of,
    trajectory_messages,
)

End = Literal["succeeded", "aborted"]
MOST_JOBS = 16
ReadGoal = Callable[[Any], tuple[PlanRequest, Callable[[PlanAnswer], Any]]]
"""Returns what to ask the planner for a goal, and how to make the message of its answer."""


class GoalServer(ActionServer):
    """Accepts goals and leaves it to others to end them.

    rclpy gives each goal a coroutine, and an executor that has one does nothing but look at it, over and
    over, until it is done. Here a goal is executing from the moment it is accepted until `finish`, and in
    between nothing runs but what others do in their callbacks. `on_goal` gets each goal's handle: all goals
    are accepted, so that an invalid one gets a message. `on_cancel` gets the handle of a goal to cancel, and
    must see that it is finished.
    """

    def __init__(
        self,
        node: RosNode,
        action_type: Any,
        name: str,
        *,
        on_goal: Callable[[Any], None],
        on_cancel: Callable[[Any], None],
    ) -> None:
        self._on_goal, self._on_cancel = on_goal, on_cancel
        self.unsent = 0  # goals that are finished, but whose results are not on their way yet
        super().__init__(
            node,
            action_type,
            name,
            execute_callback=_never,
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
        )

    def notify_execute(self, goal_handle: Any, execute_callback: Callable[[Any], Any] | None) -> None:
        """Let a goal be executed; without a callback that is whatever happens until `finish`."""
        if execute_callback is not None:
            super().notify_execute(goal_handle, execute_callback)

    def finish(self, goal_handle: Any, end: End, result: Any) -> None:
        """End a goal and send its result. One that was to be cancelled and did not succeed is `canceled`."""
        if end == "succeeded":
            goal_handle.succeed()
        elif goal_handle.is_cancel_requested:
            goal_handle.canceled()
        else:
            goal_handle.abort()
        self.unsent += 1
        self.notify_execute(goal_handle, lambda _: self._sent(result))

    def _sent(self, result: Any) -> Any:
        self.unsent -= 1
        return result

    def _begin(self, goal_handle: Any) -> None:
        goal_handle.execute()
        self._on_goal(goal_handle)

    def _cancel(self, goal_handle: Any) -> CancelResponse:
        self._on_cancel(goal_handle)
        return CancelResponse.ACCEPT


def reason_of(error: ProctorError) -> Reason:
    """Return the `reason` that a client gets for an error."""
    if isinstance(error, NavigationFailure):
        return error.reason
    return Reason.POSE_UNKNOWN if isinstance(error, SimulationError) else Reason.INVALID_GOAL


def _never(goal_handle: Any) -> None:
    """Stand where rclpy wants a function."""
    raise AssertionError(f"goal {goal_handle.goal_id} was executed by rclpy")


class Job(NamedTuple):
    """A goal of one of the actions."""

    server: GoalServer
    handle: Any
    request: PlanRequest
    result: Callable[[PlanAnswer], Any]  # returns the message of a path or a trajectory
    failed: Callable[[str, str], Any]  # returns the message of a failure, from its reason and what happened


class PlanningServers:
    """Offers a navigator's planner and map as actions.

    There is one planner, and the running skill comes first: when it asks for a plan, what the planner does
    for others begins again afterwards. Jobs are done one after the other. The answers are looked for by this
    machine's clock, so that plans can also be made while the robot's time stands still.
    """

    def __init__(self, node: RosNode, navigator: RosNavigator) -> None:
        self._navigator, self._client = navigator, navigator.client
        self._jobs: deque[Job] = deque()  # the first one is under way
        self._request_id: int | None = None
        self._deadline_s = 0.0
        self._timer = node.create_timer(0.005, self._poll, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._timer.cancel()
        self.paths = self._server(node, ComputePathToPose, "compute_path_to_pose", self._path_job)
        self.trajectories = self._server(
            node, GenerateTrajectory, "generate_trajectory", self._trajectory_job
        )

    def close(self) -> None:
        """Abort all that is asked for."""
        while self._jobs:
            self._fail(self._jobs[0], Reason.CANCELLED, "the server was closed")

    @property
    def unsent(self) -> int:
        """Goals that are finished, but whose results are not on their way yet."""
        return self.paths.unsent + self.trajectories.unsent

    def _server(self, node: RosNode, action: Any, name: str, read: ReadGoal) -> GoalServer:
        def failed(reason: str, message: str) -> Any:
            return action.Result(status="failed", message=message, reason=reason)

        server = GoalServer(
            node,
            action,
            name,
            on_goal=lambda handle: self._take(handle, server, read, failed),
            on_cancel=lambda handle: node.executor.create_task(self._drop, handle),
        )
        return server

    def _take(
        self, handle: Any, server: GoalServer, read: ReadGoal, failed: Callable[[str, str], Any]
    ) -> None:
        """Put a goal into the queue, or abort it if it is invalid."""
        try:
            if len(self._jobs) >= MOST_JOBS:
                raise UserError(f"{MOST_JOBS} plans are asked for already; try again later")
            request, result = read(handle.request)
        except ProctorError as error:
            server.finish(handle, "aborted", failed(reason_of(error), str(error)))
            return
        self._jobs.append(Job(server, handle, request, result, failed))
        self._timer.reset()

    def _path_job(self, goal: Any) -> tuple[PlanRequest, Callable[[PlanAnswer], Any]]:
        navigator, params = self._navigator, self._navigator.params
        planner = planner_name(goal.planner_id or params.planner)
        to = _pose_in_map(goal.goal, "goal")
        start = _pose_in_map(goal.start, "start") if goal.use_start else navigator.robot.pose()
        request = PlanRequest(
            start=RobotMotion(start.x, start.y, start.yaw),
            goal_xy=(to.x, to.y),
            planner=planner,
            planner_options=params.planner_options if planner == params.planner else {},
            radius_m=params.radius_m,
            margin_m=params.margin_m,
            dynamics=eased(navigator.robot.spec.dynamics),
            timing=None,
            timeout_s=params.planning_timeout_s,
            seed=params.seed,
        )

        def result(answer: PlanAnswer) -> Any:
            path = answer.found_path()
            message = ComputePathToPose.Result(
                status="success", message=f"a path of {path.length_m:.2f} m was found"
            )
            yaws, now_s = directions_of(path), navigator.now_s()
            message.path = path_message(path.points, yaws, frame=MAP_FRAME, time_s=now_s, goal_yaw=to.yaw)
            message.planning_time = Duration(seconds=sum(answer.timings_s.values())).to_msg()
            return message

        return request, result

    def _trajectory_job(self, goal: Any) -> tuple[PlanRequest, Callable[[PlanAnswer], Any]]:
        points = points_of(goal.path)
        first, last = (pose2(pose.pose) for pose in (goal.path.poses[0], goal.path.poses[-1]))
        request = PlanRequest(
            path=path_of(points),
            start=RobotMotion(first.x, first.y, self._start_yaw(first)),
            goal_yaw=last.yaw if goal.keep_final_heading else None,
            dynamics=eased(limits_of(goal.dynamics, self._navigator.robot.spec.dynamics)),
            timing=self._navigator.params.timing,
        )

        def result(answer: PlanAnswer) -> Any:
            trajectory = answer.found_trajectory()
            duration_s = trajectory.duration_s
            return GenerateTrajectory.Result(
                status="success",
                message=f"a trajectory of {duration_s:.1f} s was made",
                trajectory=trajectory_messages(trajectory),
                duration=duration_s,
            )

        return request, result

    def _start_yaw(self, first: Pose2) -> float:
        """Return with which heading a path is begun: the robot's if it stands there, else the path's."""
        robot = self._navigator.robot.pose_at(self._navigator.now_s())
        # Metres: it is the robot that is to drive the path.
        if robot is not None and math.dist((robot.x, robot.y), (first.x, first.y)) <= 0.2:
            return robot.yaw
        return first.yaw

    def _poll(self) -> None:
        """Ask the planner for the next thing, or see whether it has answered."""
        if not self._jobs:
            self._timer.cancel()
            return
        job = self._jobs[0]
        if self._request_id is None or self._client.latest_id != self._request_id:
            if not self._client.busy:  # else the skill waits for an answer
                self._submit(job)
        elif (answer := self._client.poll()) is not None:
            self._answer(job, answer)
        elif time.monotonic() > self._deadline_s:
            self._client.cancel()
            self._fail(job, Reason.PLANNING_TIMEOUT, "no plan came in time")

    def _submit(self, job: Job) -> None:
        starting_s = 0.0 if self._client.ready else START_UP_S
        self._deadline_s = time.monotonic() + self._navigator.params.planning_timeout_s + GRACE_S + starting_s
        navigator = self._navigator
        field = None if job.request.path is not None else navigator.field()
        try:
            self._request_id = self._client.submit(job.request, field, navigator.live_map.version)
        except ProctorError as error:
            self._fail(job, reason_of(error), str(error))

    def _answer(self, job: Job, answer: PlanAnswer) -> None:
        if answer.failure is not None:
            self._fail(job, answer.failure.reason, str(answer.failure))
        else:
            self._next()
            job.server.finish(job.handle, "succeeded", job.result(answer))

    def _fail(self, job: Job, reason: str, message: str) -> None:
        self._next()
        job.server.finish(job.handle, "aborted", job.failed(reason, message))

    def _next(self) -> None:
        self._jobs.popleft()
        self._request_id = None

    def _drop(self, handle: Any) -> None:
        for index, job in enumerate(self._jobs):
            if job.handle.goal_id == handle.goal_id:
                if index == 0 and self._request_id == self._client.latest_id:
                    self._client.cancel()
                    self._request_id = None
                del self._jobs[index]
                job.server.finish(handle, "aborted", job.failed(Reason.CANCELLED, "cancelled"))
                return


def _pose_in_map(stamped: Any, what: str) -> Pose2:
    """Return a pose of a message; UserError if it is in another frame, or not finite."""
    frame = stamped.header.frame_id.removeprefix("/")
    if frame not in ("", MAP_FRAME):
        raise UserError(f"{what}: expected a pose in the frame '{MAP_FRAME}', found '{frame}'")
    pose = pose2(stamped.pose)
    if not math.isfinite(pose.x + pose.y + pose.yaw):
        raise UserError(f"{what}: expected finite numbers, found {pose}")
    return pose


def limits_of(message: Any, own: Dynamics) -> Dynamics:
    """Return the limits of a plan_msgs/Dynamics; those it leaves out are the robot's own."""
    told = {name: getattr(message, name) or getattr(own, name) for name in Dynamics.__struct_fields__}
    return Dynamics.of(told)
