"""What the page of `proctor play` shows, as one message, and the run of a person that it is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec
from msgspec.structs import replace

from proctor.contestants.play_score import PlayScore
from proctor.contestants.seat import Seat, SeatTurn
from proctor.exams.controls import Controls
from proctor.runs.plan import RunPlan


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
