"""The tools by which an agent takes an exam over MCP: what they take, what they answer, what they refuse.

Nothing in here knows the protocol. A call is done to its end once it has arrived, whatever becomes of the
client: a repeated request then finds another step than it expects, and is refused.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from proctor.agents.arrays import encode_picture
from proctor.agents.chat.faults import ChatFault, Unusable
from proctor.agents.chat.task import ChatTask, ToolCall, load_task
from proctor.contestants.mcp_requests import (
    MAX_ACTIONS,
    BeginEpisode,
    CheckPictures,
    ConfirmPictures,
    Move,
    Observe,
    Schema,
    Stop,
    message_tool,
    read_request,
    tool_schemas,
)
from proctor.contestants.seat import McpSeat, SeatTurn, StaleTurn
from proctor.core.errors import AgentFault, did_you_mean
from proctor.core.types import EpisodeInfo, Observation
from proctor.exams.names import AnyExam

WAIT_S = 50.0
"""How long a call waits for the world, or for another call. Clients give up after 60 s by default."""
DEPTH_RANGE_M = 10.0
CODE_LETTERS = "ACEFHKLMNPRTXY"  # none looks like another one


class Refused(Exception):
    """A call that was not carried out. The text tells the agent why, and what to do."""


class ToolReply(NamedTuple):
    """The answer to a call."""

    report: dict[str, Any]
    pictures: list[bytes]  # JPEG files, in the order of `report["pictures"]`


class Sitting:
    """An episode that an agent has begun."""

    def __init__(self, turn: SeatTurn, task: ChatTask, left_after: int) -> None:
        self.handle = secrets.token_hex(8)
        self.turn, self.task = turn, task
        self.left_after = left_after  # how many episodes come after it
        self.last_action: Any = None
        self.is_over = False


class ExamTools:
    """Answers calls from any thread, one at a time; the run waits for actions at the seat."""

    def __init__(self, seat: McpSeat, exam: AnyExam) -> None:
        self._seat, self._exam = seat, exam
        blank = EpisodeInfo(
            episode_id="",
            instruction="",
            max_steps=0,
            seed=0,
            task=exam.name,
            actions=exam.actions,
            chat=exam.chat,
        )
        self._moves = {tool.name: tool for tool in self._task_of(blank).tools()}
        self._messages = message_tool(exam)
        self._moves.setdefault("act", self._messages)
        self._lock = threading.Lock()
        self._sitting: Sitting | None = None
        self._answered = 0  # the number of the last turn that was answered
        self._total = self._finished = 0
        self._word = ""
        self._is_confirmed = not seat.check_pictures
        self.end_told = threading.Event()
        """Set once the agent has asked for another episode, and been told that the exam is over."""

    def note_progress(self, total: int, finished: int) -> None:
        """Take in how far the run is. Called between episodes, by the thread of the run."""
        self._total, self._finished = total, finished

    def schemas(self) -> dict[str, Schema]:
        """Return the description and the arguments of each tool."""
        return tool_schemas(self._moves.values(), check_pictures=self._seat.check_pictures)

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolReply:
        """Carry out a call; Refused if it cannot be."""
        known = self.schemas()
        if name not in known:
            raise Refused(
                f"unknown tool '{name[:60]}'{did_you_mean(name[:60], known)}; tools: {', '.join(known)}"
            )
        tool = self._moves.get(name)
        try:
            request, own = read_request(name, arguments, tool)
        except ValueError as error:
            raise Refused(f"{name}: {error}. Nothing was done.") from None
        if not self._lock.acquire(timeout=WAIT_S):
            raise Refused("another call is still under way; calls are done one after the other")
        try:
            if isinstance(request, Move):
                return self._move(request, ToolCall(name, own))
            reply: ToolReply = getattr(self, f"_{name}")(request)
            return reply
        except StaleTurn:  # the time of the episode ran out at this moment
            raise Refused(self._over_text()) from None
        finally:
            self._lock.release()

    # The tools

    def _begin_episode(self, _: BeginEpisode) -> ToolReply:
        if not self._is_confirmed:
            raise Refused("call check_pictures first: this exam wants to know whether you see pictures")
        sitting = self._present()
        if sitting is None:
            turn = self._next_episode()
            sitting = Sitting(turn, self._task_of(turn.info), self._total - self._finished - 1)
            self._sitting = sitting
            self._seat.begin()
        elif sitting.turn.step:
            left_s = self._seat.seconds_left()
            raise Refused(
                f"an episode is under way, at step {sitting.turn.step}: act in it by its handle, or end it "
                f"with stop. One episode at a time; if its agent is gone, it ends in {left_s or 0:.0f} s."
            )
        info, task = sitting.turn.info, sitting.task
        told = {"instruction": info.instruction, "language": info.language}
        more = {name: text for name, text in (("robot", task.robot()), ("details", task.details())) if text}
        return self._reply(sitting, {**told, **more, "episodes_after_this": sitting.left_after})

    def _observe(self, request: Observe) -> ToolReply:
        return self._reply(self._of(request.episode))

    def _move(self, request: Move, call: ToolCall) -> ToolReply:
        sitting = self._of(request.episode)
        step = sitting.turn.step
        if request.expect_step != step:
            raise Refused(
                f"nothing was done: the episode is at step {step}, and expect_step is {request.expect_step}. "
                f"Call observe to see where the robot is, or send expect_step {step}."
            )
        is_message = self._moves[call.name] is self._messages
        deadline_s = time.monotonic() + WAIT_S
        try:
            for action in self._messages_of(call) if is_message else self._decide(sitting, call):
                self._exam.parse_action(action)
                self._do(sitting, action)
                if sitting.is_over or time.monotonic() > deadline_s:
                    break
        except (AgentFault, Unusable) as fault:
            done = sitting.turn.step - step
            raise Refused(f"{f'{done} steps were' if done else 'nothing was'} done: {fault}") from None
        return self._reply(sitting, {"actions_done": sitting.turn.step - step})

    def _decide(self, sitting: Sitting, call: ToolCall) -> Iterator[Any]:
        """Yield the actions that a call means. Each is made when its turn has come."""
        steps = sitting.task.decide([call], sitting.turn.observation).steps
        if not steps:
            raise Unusable(ChatFault.NO_ACTION, "expected at least one action, found none")
        for step in steps:
            yield sitting.task.action(step, sitting.turn.observation)

    def _messages_of(self, call: ToolCall) -> Sequence[Any]:
        """Return the actions of a call that gives them as messages, all of them checked."""
        actions = call.arguments["actions"]
        if not isinstance(actions, list) or not 1 <= len(actions) <= MAX_ACTIONS:
            raise Unusable(ChatFault.BAD_ARGUMENTS, f"actions: expected a list of 1 to {MAX_ACTIONS}")
        for index, action in enumerate(actions):
            try:
                self._exam.parse_action(action)
            except AgentFault as fault:
                raise Unusable(fault.kind, f"actions[{index}]: {fault}") from None
        return actions

    def _stop(self, request: Stop) -> ToolReply:
        sitting = self._of(request.episode)
        deadline_s = time.monotonic() + WAIT_S
        while not sitting.is_over:
            if time.monotonic() > deadline_s:
                return self._reply(sitting, {"next": "the robot stays as it is; call stop again to go on"})
            try:
                action = self._exam.idle_action(sitting.turn.observation, sitting.last_action)
            except NotImplementedError:
                self._answered = sitting.turn.number
                self._seat.give_up(sitting.turn.number, "the agent called stop")
                self._see(sitting)
            else:
                self._do(sitting, action)
        return self._reply(sitting)

    def _check_pictures(self, _: CheckPictures) -> ToolReply:
        self._word = "".join(secrets.choice(CODE_LETTERS) for _ in range(6))
        image = Image.new("RGB", (320, 120), "white")
        font = ImageFont.load_default(60)
        ImageDraw.Draw(image).text((160, 60), self._word, "black", font, anchor="mm")
        report = {"next": "call confirm_pictures with the word in the picture"}
        return ToolReply(report, [encode_picture(np.asarray(image), "jpeg")])

    def _confirm_pictures(self, request: ConfirmPictures) -> ToolReply:
        word, self._word = self._word, ""
        if not word:
            raise Refused("there is no word to confirm: call check_pictures first")
        if request.word.strip().upper() != word:
            raise Refused("that is not the word in the picture; call check_pictures for another one")
        self._is_confirmed = True
        return ToolReply({"confirmed": True, "next": "call begin_episode"}, [])

    # Episodes

    def _task_of(self, info: EpisodeInfo) -> ChatTask:
        task = load_task(info, None)
        task.most_actions = max(task.most_actions, MAX_ACTIONS)
        return task

    def _next_episode(self) -> SeatTurn:
        number = self._answered
        while not self._seat.is_closed:
            turn = self._seat.wait(number, WAIT_S)
            if turn is None:
                break
            if turn.outcome is None:
                return turn
            number = turn.number
        if not self._seat.is_closed:
            raise Refused("the next episode is being prepared; call begin_episode again")
        self.end_told.set()
        if self._finished < self._total:
            raise Refused(f"the evaluator has stopped after {self._finished} of {self._total} episodes")
        raise Refused(f"the exam is over: all {self._total} episodes are done")

    def _present(self) -> Sitting | None:
        """Return the episode that is under way, as it is now; None if there is none."""
        sitting = self._sitting
        if sitting is not None and not sitting.is_over:
            self._see(sitting)
        return None if sitting is None or sitting.is_over else sitting

    def _of(self, handle: str) -> Sitting:
        """Return the episode that is under way, if this is its handle."""
        if self._sitting is None:
            raise Refused("no episode has begun: call begin_episode, and use the handle that it returns")
        if not secrets.compare_digest(handle.encode(errors="replace"), self._sitting.handle.encode()):
            raise Refused(
                "this is not the handle of the episode under way: use the `episode` of the last begin_episode"
            )
        sitting = self._present()
        if sitting is None:
            raise Refused(self._over_text())
        return sitting

    def _over_text(self) -> str:
        sitting = self._sitting
        if sitting is not None and sitting.left_after == 0 and sitting.turn.step:
            return "the episode is over, and so is the exam: it was the last one"
        return "the episode is over: call begin_episode for the next one"

    def _do(self, sitting: Sitting, action: Any) -> None:
        self._answered = sitting.turn.number
        self._seat.answer(sitting.turn.number, action)
        sitting.last_action = action
        self._see(sitting)

    def _see(self, sitting: Sitting) -> None:
        """Wait until the robot has done what it was told, and take in what it sees then."""
        turn = self._seat.wait(max(self._answered, sitting.turn.number - 1), WAIT_S)
        if turn is None and not self._seat.is_closed:
            raise Refused("the robot is still moving; call observe to see where it is")
        # The end of an episode may already be followed by the next one.
        is_same = turn is not None and turn.info is sitting.turn.info and turn.outcome is None
        sitting.is_over = not is_same or self._seat.is_closed
        if turn is not None and turn.info is sitting.turn.info:
            sitting.turn = turn
        elif self._answered == sitting.turn.number:
            sitting.turn = sitting.turn._replace(step=sitting.turn.step + 1)

    # What the agent is told

    def _reply(self, sitting: Sitting, more: Mapping[str, Any] | None = None) -> ToolReply:
        turn, left_s = sitting.turn, self._seat.seconds_left()
        report: dict[str, Any] = {"episode": sitting.handle, **(more or {}), "step": turn.step}
        if sitting.is_over:
            return ToolReply({**report, "done": True, "next": self._over_text()}, [])
        report["steps_left"] = turn.info.max_steps - turn.step
        if left_s is not None:
            report["seconds_left"] = math.floor(left_s)
        report["done"] = False
        if state := sitting.task.state(turn.observation):
            report["state"] = state
        shown = sitting.task.pictures(turn.observation)
        if self._seat.show_depth:
            shown += depth_pictures(turn.observation)
        labels = [label or "camera" for label, _ in shown]
        return ToolReply({**report, "pictures": labels}, [encode_picture(item, "jpeg") for _, item in shown])


def depth_pictures(observation: Observation) -> list[tuple[str, NDArray[np.uint8]]]:
    """Return depth as grey pictures: 0 stays black, 1 mm is dark grey."""
    label = f"(black: nothing measured, dark: near, white: {DEPTH_RANGE_M:g} m and more)"
    found = []
    for name, value in observation.items():
        if isinstance(value, np.ndarray) and value.dtype == np.uint16 and value.ndim == 2:
            shade = 40 + np.minimum(value / (1000 * DEPTH_RANGE_M), 1.0) * 215
            grey = np.where(value > 0, shade, 0).astype(np.uint8)
            found.append((f"{name} {label}", np.repeat(grey[:, :, None], 3, axis=2)))
    return found
