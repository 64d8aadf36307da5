"""The contract of a page: what an exam adds to the report, beyond scores, faults, times and notices.

A run never imports a page, so one may import what draws pictures. `Page` as it stands suits any exam.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from proctor.core.types import Array, Observation, Vector3
from proctor.exams.results import Verdict
from proctor.plots.figure import save_png
from proctor.plots.plan import Plan, grid_paper
from proctor.plots.trajectory import plot_trajectory

if TYPE_CHECKING:
    from proctor.exams.names import AnyExam

LONGEST_ACTION = 24
AROUND_M = 3.0  # what a map without a scene shows around start and goal


class KeyFrames(NamedTuple):
    """Pictures of one episode."""

    pictures: list[tuple[int, bytes]]
    """Number of steps done, and the JPEG."""
    source: Literal["recorded", "replayed", "none"]
    note: str = ""
    """What a reader must know about them."""
    film: Sequence[tuple[int, bytes]] = ()
    """The same of as many other recorded steps as there is room for, smaller, to be played with them."""


class Eye(NamedTuple):
    """How a world is looked at when recorded actions are done again in it. Its env has `looking`."""

    picture: Callable[[Observation], Array]
    """What of an observation is shown."""
    place: str
    """The entry of the ground truth that must be where the trajectory says."""
    options: Callable[[Mapping[str, Any], int], dict[str, Any]]
    """Turns the options of a run, and a width in pixels, into those of a world that has no other sensor."""


class EpisodeMap(NamedTuple):
    """An episode from above, on which a path can be drawn while it grows."""

    plan: Plan
    goal: Vector3 | None = None
    goal_radius_m: float = 0.0
    place: str = "position"
    """The field of the trace's states that says where the robot, or its hand, is."""
    object_place: str = ""
    """The field that says where an object is that moves, too."""


class JudgedEpisode(NamedTuple):
    """An episode of a run with its verdict."""

    run: int
    """Index of the run."""
    result: Any
    """The record, of the exam's own type."""
    episode: Any
    """What was asked; None if the dataset is gone."""
    verdict: Verdict


class ShownRun(Protocol):
    """What a page may know of a run."""

    @property
    def name(self) -> str:
        """What the page calls it."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What defines the run, as its manifest says."""


class Page:
    """What a report shows of the episodes of one exam. This one shows paths from above, actions and bumps."""

    scripts: ClassVar[tuple[str, ...]] = ()
    """Files in the folder `viewer` beside the module of the class. They fill the object EXAM of exam.js."""
    styles: ClassVar[tuple[str, ...]] = ()
    """Files of that folder, too."""
    scores: ClassVar[tuple[str, ...]] = ()
    """Names of the metrics that get a card; if empty, those that the table of a run shows."""
    titles: ClassVar[Mapping[str, str]] = {}
    """Names of metrics where there is room, such as `Success rate`; else their labels."""
    eyes: ClassVar[Mapping[str, Eye]] = {}
    """By the name of an env: how to take pictures in it of what was not recorded."""
    replayed_steps: ClassVar[int] = 900
    """How many steps are done again for pictures unless asked otherwise: some ten seconds of work."""

    def __init__(
        self, exam: type[AnyExam], judged: Sequence[JudgedEpisode], runs: Sequence[ShownRun]
    ) -> None:
        self.exam = exam
        self.runs = runs
        self.problems: list[str] = []
        """What a reader should know; complete after all episodes."""

    @classmethod
    def viewer_file(cls, name: str) -> str:
        """Return a script or style: of this class, or of the one from which it is inherited."""
        for each in cls.__mro__[:-1]:
            file = Path(inspect.getfile(each)).parent / "viewer" / name
            if file.is_file():
                return file.read_text("utf-8")
        raise FileNotFoundError(f"{cls.__module__}: there is no viewer/{name} beside it")

    @classmethod
    def episode_map(cls, episode: Any, state: Any, *, width_px: int) -> EpisodeMap:
        """Return the map of an episode that begins in this state; here it is empty floor."""
        goal = getattr(episode, "goal", None)
        start = getattr(state, "position", None)
        known = [Vector3.of(point) for point in (start, goal) if point is not None] or [Vector3(0, 0, 0)]
        low = min(p.x for p in known) - AROUND_M, min(p.y for p in known) - AROUND_M
        high = max(p.x for p in known) + AROUND_M, max(p.y for p in known) + AROUND_M
        return EpisodeMap(
            grid_paper(low, high, width_px=width_px), goal if isinstance(goal, Vector3) else None
        )

    def episode(self, judged: JudgedEpisode) -> dict[str, Any]:
        """Return what was asked: here the goal, if the episode has a point of this name."""
        goal = getattr(judged.episode, "goal", None)
        return {"goal": flat_cm([goal])} if isinstance(goal, Vector3) else {}

    def result(self, judged: JudgedEpisode) -> dict[str, Any]:
        """Return what was done."""
        return path_data(judged.result) | {"act": [self._action(each) for each in judged.result.actions]}

    def extras(self) -> dict[str, Any]:
        """Return what belongs to no single episode. Called after all episodes."""
        return {}

    def key_steps(self, judged: JudgedEpisode) -> list[int]:
        """Return the moments that tell an episode's story: start, where it went wrong, end, and between."""
        last, wrong = max(len(judged.result.trajectory) - 1, 0), judged.verdict.step
        if wrong >= last or wrong <= 0:
            return sorted({0, last // 3, 2 * last // 3, last})
        if wrong <= 3:
            return sorted({0, wrong, (wrong + last) // 2, last})
        return sorted({0, wrong // 2, wrong, last})

    def draw(self, judged: JudgedEpisode, file: Path, frames: Callable[[int], KeyFrames]) -> None:
        """Write the picture of one episode as a PNG; its folder is made if needed.

        `frames(width_px)` returns what the robot saw, in pictures of this width.
        """
        result = judged.result
        picture = plot_trajectory(
            None,
            driven=result.trajectory,
            collisions=result.collision_steps,
            title=f"{result.episode_id} · {judged.verdict.sentence}",
            caption=result.instruction,
        )
        save_png(picture, file)

    @classmethod
    def step_text(cls, exam: type[AnyExam], action: Any, state: Any) -> str:
        """Return in a few words what an action was, and where it led if the action does not say it."""
        del state
        return _action_text(exam, action)

    def _action(self, action: Any) -> str:
        return _action_text(self.exam, action)


def _action_text(exam: type[AnyExam], action: Any) -> str:
    names = exam.actions
    if isinstance(action, int) and not isinstance(action, bool) and 0 <= action < len(names):
        return names[action]
    text = action if isinstance(action, str) else json.dumps(action)
    return text if len(text) <= LONGEST_ACTION else f"{text[: LONGEST_ACTION - 1]}…"


def path_data(result: Any) -> dict[str, Any]:
    """Return the path of a record as the page's map reads it: centimetres, and degrees to the left."""
    return {
        "xy": steps_between(flat_cm(result.trajectory)),
        "yaw": [round(math.degrees(yaw)) for yaw in result.headings],
    }


def flat_cm(points: Iterable[Vector3]) -> list[int]:
    """Return x and y of points in turn, in centimetres."""
    return [round(100 * value) for point in points for value in (point.x, point.y)]


def steps_between(flat: list[int]) -> list[int]:
    """Return the first point, then from each point to the next: short numbers make a small file."""
    return flat[:2] + [after - before for before, after in zip(flat, flat[2:], strict=False)]
