"""What the page of `proctor play` shows, and what a person can do there.

The run asks the seat for actions in the main thread. Another thread watches the seat and keeps what the page
shows; threads of connections wait for a newer view, and answer the seat when a button is pressed. Everything
is kept here and nothing in the browser, so a page that is loaded again shows the same.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pkgutil import resolve_name
from typing import Literal

import msgspec
from msgspec.structs import replace

from proctor.agents.arrays import colour_pictures, encode_picture
from proctor.contestants.play_score import EpisodeScore, PlayScore
from proctor.contestants.seat import HumanSeat, Seat, SeatTurn, StaleTurn
from proctor.core.errors import UserError
from proctor.core.types import Observation
from proctor.exams.controls import Controls
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult
from proctor.runs.ledger import Progress
from proctor.runs.plan import RunPlan
from proctor.runs.run import RunReport

WATCH_INTERVAL_S = 1.0
log = logging.getLogger("proctor.play")


class PlaySummary(msgspec.Struct, frozen=True, kw_only=True):
    """A person's finished run."""

    successes: int
    scored: int
    episodes: list[bool | None]
    """Whether each episode succeeded; None for one that is not scored."""
    command: str
    """The command that shows more."""


class PlayView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows. Its pictures follow it in the message."""

    phase: Literal["name", "wait", "play", "score", "done", "taken"]
    """`taken`: another browser has the session."""
    player: str = ""
    problem: str = ""
    """Why a name was refused."""
    episode: int = 0
    """Counts from 1."""
    episodes: int = 0
    turn: int = 0
    """The number that an answer must name."""
    is_open: bool = False
    """Whether the turn can be answered; else steps of the last press are still being done."""
    step: int = 0
    max_steps: int = 0
    instruction: str = ""
    language: str = ""
    values: dict[str, float] = {}
    """Where the sliders stand."""
    score: PlayScore | None = None
    summary: PlaySummary | None = None
    sizes: list[int] = []
    """The bytes of each picture."""

    def pack(self, pictures: list[bytes]) -> bytes:
        """Return the message: the length of the JSON in 4 bytes, the JSON, the picture files."""
        sized = replace(self, sizes=[len(picture) for picture in pictures])
        head = msgspec.json.encode(sized)
        return b"".join((len(head).to_bytes(4, "big"), head, *pictures))


@dataclass
class PlayerRun:
    """The run of one person, as far as it has come. Whoever changes it holds the session's lock."""

    player: str
    plan: RunPlan
    seat: Seat
    controls: Controls
    done: set[str]
    """Ids of finished episodes."""
    turn: SeatTurn | None = None
    pictures: list[bytes] = field(default_factory=list)
    """Of the present turn."""
    frames: dict[int, bytes] = field(default_factory=dict)
    """The first picture of each turn of the episode, by the number of steps done."""
    answered: int = 0
    """The number of the last turn that was answered."""
    ended: int = 0
    """How many episodes ended since the run began or went on."""
    scores: dict[int, tuple[PlayScore, list[bytes]]] = field(default_factory=dict)
    """Of these episodes, counted from 1, with their maps."""
    acknowledged: int = 0
    """How many scores the person has left with "next"."""
    summary: PlaySummary | None = None

    def view(self) -> tuple[PlayView, list[bytes]]:
        """Return what the page shows, and its pictures: scores first, then the summary or the next turn."""
        shown = PlayView(phase="wait", player=self.player, episodes=len(self.plan.episodes))
        if self.acknowledged < self.ended:
            number = self.acknowledged + 1
            shown = replace(shown, episode=len(self.plan.kept) + number)
            if number not in self.scores:
                return shown, []
            score, pictures = self.scores[number]
            return replace(shown, phase="score", score=score), pictures
        if self.summary is not None:
            return replace(shown, phase="done", summary=self.summary), []
        turn = self.turn
        if turn is None or turn.outcome is not None:
            return shown, []
        shown = replace(
            shown,
            phase="play",
            episode=len(self.plan.kept) + self.ended + 1,
            turn=turn.number,
            is_open=turn.number > self.answered,
            step=turn.step,
            max_steps=turn.info.max_steps,
            instruction=turn.info.instruction,
            language=turn.info.language,
            values=self.controls.values(),
        )
        return shown, self.pictures


class PlaySession:
    """One exam at one page, for one person after the other.

    The methods that `play` calls belong to the main thread; all others may be called from any.
    """

    def __init__(self, exam: type[AnyExam]) -> None:
        if not exam.controls:
            raise UserError(
                f"people cannot take the exam {exam.name}: it has no controls. "
                "Its author can add a class that inherits Controls, and name it in Exam.controls"
            )
        self.exam = exam
        self.controls: type[Controls] = resolve_name(exam.controls)
        self._changed = threading.Condition()
        self._version = 1
        self._run: PlayerRun | None = None
        self._wanted = self._problem = ""
        self._holder = ""
        self._clients: Counter[str] = Counter()

    # The main thread

    def wait_for_name(self) -> str:
        """Wait until somebody has entered a name."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted)
            return self._wanted

    def refuse_name(self, problem: str) -> None:
        """Say why there is no run for the name that was entered, and ask again."""
        with self._changed:
            self._run, self._wanted, self._problem = None, "", problem
            self._touch()

    def begin(self, player: str, plan: RunPlan) -> Seat:
        """Begin a person's run, or go on with it; return its policy."""
        run = PlayerRun(player, plan, HumanSeat(), self.controls(), done=set(plan.kept))
        with self._changed:
            self._run, self._wanted, self._problem = run, "", ""
            self._touch()
        threading.Thread(target=self._watch, args=(run,), daemon=True).start()
        return run.seat

    def on_progress(self, progress: Progress) -> None:
        """Show the score of an episode that has ended."""
        run = self._run
        if run is None:
            return
        for result in [each for each in progress.finished if each.episode_id not in run.done]:
            with self._changed:
                run.done.add(result.episode_id)
                run.ended += 1
                self._touch()
            # The picture takes a second, in which the next episode is made ready.
            work = partial(self._add_score, run, run.ended, result, run.frames)
            threading.Thread(target=work, daemon=True).start()

    def finish(self, report: RunReport) -> None:
        """Show the summary, after the last score."""
        run = self._run
        if run is None:
            return
        episodes = report.results.episodes
        with self._changed:
            run.summary = PlaySummary(
                successes=report.results.success_count,
                scored=sum(result.is_scored for result in episodes),
                episodes=[result.success if result.is_scored else None for result in episodes],
                command=f"proctor report {shlex.quote(str(run.plan.out))}",
            )
            self._touch()

    def _watch(self, run: PlayerRun) -> None:
        """Keep the last turn of the seat with its pictures, and do what is left of a press."""
        try:
            self._follow(run)
        except BaseException:
            run.seat.close()  # else the run would wait for ever
            raise

    def _follow(self, run: PlayerRun) -> None:
        number = 0
        while not run.seat.is_closed:
            turn = run.seat.wait(number, WATCH_INTERVAL_S)
            if turn is None:
                continue
            number = turn.number
            pictures = self._encode(turn.observation)
            with self._changed:
                run.turn, run.pictures = turn, pictures
                if turn.outcome is None and turn.step == 0:
                    run.frames = {}
                    run.controls.begin(turn.info, turn.observation)
                elif turn.outcome is None:
                    self._do_step(run, turn)
                if pictures:
                    run.frames[turn.step] = pictures[0]
                self._touch()

    def _encode(self, observation: Observation) -> list[bytes]:
        found = colour_pictures(observation)
        shown = self.controls.pictures or found
        return [encode_picture(found[name], "jpeg") for name in shown if name in found]

    def _add_score(
        self, run: PlayerRun, number: int, result: EpisodeResult, frames: dict[int, bytes]
    ) -> None:
        made = EpisodeScore(run.plan, result, frames)
        score = made.score(number)
        with self._changed:
            run.scores[number] = score, []
            self._touch()
        pictures = made.pictures()
        with self._changed:
            run.scores[number] = score, pictures
            self._touch()

    # Connections

    def enter(self, client: str) -> None:
        """Let a browser in. It gets the session if nobody is there, or if it had it before."""
        with self._changed:
            if not self._clients[self._holder]:
                self._holder = client
            self._clients[client] += 1
            self._touch()

    def leave(self, client: str) -> None:
        """Let a browser go. If it had the session, another one that is there gets it."""
        with self._changed:
            self._clients[client] -= 1
            self._clients += Counter()  # only those who are there
            if self._clients and self._holder not in self._clients:
                self._holder = next(iter(self._clients))
            self._touch()

    def take_over(self, client: str) -> None:
        """Give the session to another browser."""
        with self._changed:
            self._holder = client
            self._touch()

    def wait(self, client: str, after: int, timeout_s: float) -> tuple[int, PlayView, list[bytes]] | None:
        """Return the first view with a version above `after` and its pictures; None if none comes in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._version > after, timeout_s):
                return None
            view, pictures = (
                self._view() if client == self._holder else (PlayView(phase="taken"), list[bytes]())
            )
            return self._version, view, pictures

    def enter_name(self, client: str, name: str) -> None:
        """Begin as this person, where the page asks for a name."""
        with self._changed:
            if client == self._holder and self._view()[0].phase == "name":
                self._wanted, self._problem = name.strip(), ""
                self._touch()

    def press(self, client: str, turn: int, name: str, value: float | None) -> None:
        """Do what a button or a slider means, if it belongs to the present turn.

        Raises:
            ValueError: There is no such button or slider, or the value is not within its limits.
        """
        limits = {slider.name: (slider.low, slider.high) for slider in self.controls.sliders}
        if name in limits:
            low, high = limits[name]
            if value is None or not low <= value <= high:
                raise ValueError(f"{name}: expected a value from {low:g} to {high:g}, found {value}")
        elif name not in [button.name for button in self.controls.buttons]:
            raise ValueError(f"there is no button '{name}'")
        with self._changed:
            run = self._run_at(client, turn)
            if run is not None and run.turn is not None:
                run.seat.begin()
                run.controls.press(name, value)
                self._do_step(run, run.turn)
                self._touch()

    def give_up(self, client: str, turn: int) -> None:
        """End the episode as a failure."""
        with self._changed:
            run = self._run_at(client, turn)
            if run is not None:
                run.answered = turn
                with suppress(StaleTurn):
                    run.seat.give_up(turn, "the person gave up")
                self._touch()

    def leave_score(self, client: str, number: int) -> None:
        """Go on after the score of this number."""
        with self._changed:
            run = self._run
            if client == self._holder and run is not None and number == run.acknowledged + 1 <= run.ended:
                run.acknowledged = number
                self._touch()

    def leave_summary(self, client: str) -> None:
        """Let the next person enter a name."""
        with self._changed:
            if client == self._holder and self._view()[0].phase == "done":
                self._run = None
                self._touch()

    def _touch(self) -> None:
        self._version += 1
        self._changed.notify_all()

    def _run_at(self, client: str, turn: int) -> PlayerRun | None:
        """Return the run if it waits for an answer to this turn, from this browser."""
        view, _ = self._view()
        return self._run if client == self._holder and view.is_open and view.turn == turn else None

    def _do_step(self, run: PlayerRun, turn: SeatTurn) -> None:
        action = run.controls.action(turn.observation)
        if action is not None:
            run.answered = turn.number
            with suppress(StaleTurn):  # the run is being closed
                run.seat.answer(turn.number, action)

    def _view(self) -> tuple[PlayView, list[bytes]]:
        if self._run is None:
            return PlayView(phase="wait" if self._wanted else "name", problem=self._problem), []
        return self._run.view()
