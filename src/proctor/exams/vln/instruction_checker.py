"""Checks an instruction against the scene and the path that it describes, clause by clause.

The words themselves are read, and every clause is derived anew: where on the way is it true, can the thing be
seen from there, could another thing be meant? Then the clauses must be true in the order in which they are
said, and nothing that matters may be missing. `reworded` finds another wording that passes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import UserError
from proctor.exams.path_distance import scene_of
from proctor.exams.vln.episode import Episode
from proctor.instructions.claims import DOOR_TURN_REACH_M, FALSE, TURN_REACH_M, Claims, ClauseFinding, Fault
from proctor.instructions.clauses import Clause, Cross, Enter, Forward, GoTo, StopAt, Turn
from proctor.instructions.phrasebook import LANGUAGES, Unreadable, read, say
from proctor.instructions.surroundings import Surroundings
from proctor.instructions.way import Way
from proctor.instructions.writer import Level, describe
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig

Mask: TypeAlias = NDArray[np.bool_]
ProblemKind: TypeAlias = Literal["unreadable", "unchecked", "incomplete"] | Fault

FORWARD_MISS_M = 0.7
FORWARD_RAD = math.radians(25)
CLEAR_BEND_RAD, CLEAR_START_RAD, CLEAR_DOOR_RAD = (math.radians(degrees) for degrees in (80, 35, 72))
"""A long instruction must say turns from these angles on."""
COVERED_M = 1.0
TRIES = 20
"""To reword an instruction, with the same clauses, and then with other ones."""


class Problem(NamedTuple):
    """Something wrong with an instruction."""

    kind: ProblemKind
    message: str
    clause: Clause | None = None


class _ClearTurn(NamedTuple):
    """A turn that must be said, by which kind of clause, and between which points of the way."""

    at: int
    angle: float
    kind: type[Turn] | type[Enter]
    before_m: float
    after_m: float


def check_instruction(scene: SceneConfig | Surroundings, episode: Episode) -> list[Problem]:
    """Return the problems of an episode's instruction; nothing if it is right."""
    surroundings = scene if isinstance(scene, Surroundings) else Surroundings.of(scene)
    if episode.reference_path is None or len(episode.reference_path) < 2:
        return [Problem("unchecked", f"episode '{episode.episode_id}' has no reference path")]
    if surroundings.has_meshes:
        return [Problem("unchecked", "the scene has meshes, whose shape it does not tell")]
    try:
        clauses = read(episode.instruction, episode.language)
    except Unreadable as error:
        return [Problem("unreadable", str(error))]
    path_xy = np.array([(point.x, point.y) for point in episode.reference_path])
    way = Way(surroundings, path_xy, episode.start_yaw)
    return _Checker(way, clauses, is_long=episode.level == "long").problems()


class _Checker:
    def __init__(self, way: Way, clauses: list[Clause], *, is_long: bool) -> None:
        self._way, self._clauses, self._is_long = way, clauses, is_long

    def problems(self) -> list[Problem]:
        """Return what is wrong with single clauses, their order, and what is missing."""
        claims = Claims(self._way)
        findings = [claims.find(clause) for clause in self._clauses]
        wrong = [
            Problem(finding.fault, finding.message, clause)
            for clause, finding in zip(self._clauses, findings, strict=True)
            if finding.fault is not None
        ]
        wrong += self._missing_rooms_and_stop()
        if any(problem.kind == FALSE for problem in wrong):
            return wrong  # the order of what is not true means nothing
        places = self._places(findings)
        out_of_order = next((number for number, mask in enumerate(places) if not mask.any()), None)
        if out_of_order is not None:
            clause = self._clauses[out_of_order]
            return [*wrong, Problem(FALSE, "not here: it does not follow what was said before", clause)]
        return [*wrong, *(self._missing_turns(places) if self._is_long else [])]

    def _places(self, findings: list[ClauseFinding]) -> list[Mask]:
        """Return for every clause where it can be true, given all clauses before it."""
        way = self._way
        reached: Mask = np.zeros(way.count, dtype=bool)
        reached[0] = True
        places, within = [], way.count
        for clause, finding in zip(self._clauses, findings, strict=True):
            if isinstance(clause, Forward):
                reached = self._ahead(reached, clause.distance_m)
                # What is said after a distance happens where that distance ends, give or take this.
                within = way.steps(0.6)
            else:
                allowed = _later(reached, within)
                if isinstance(clause, Turn) and clause.direction != "around":
                    allowed &= self._without_other_turn(reached, clause)
                reached = finding.mask & allowed
                within = way.count
            places.append(reached)
        return places

    def _without_other_turn(self, reached: Mask, turn: Turn) -> Mask:
        """Return where one may turn without having turned clearly to the other side since the last clause."""
        way = self._way
        others = [index for index, angle in self._noticed_turns() if not _turns_to(turn, angle)]
        allowed: Mask = np.ones(way.count, dtype=bool)
        for other in others:
            # Beyond the other turn only what is said beyond it, too, may be meant.
            behind: Mask = np.zeros(way.count, dtype=bool)
            behind[other:] = True
            allowed &= ~behind | _later(reached & behind, way.count)
        return allowed

    def _noticed_turns(self) -> list[tuple[int, float]]:
        """Return where nobody would overlook a turn, and how far it goes."""
        way = self._way
        turns = [(1, way.start_turn)] if isinstance(self._clauses[0], Turn) else []
        turns += [(crossing.at + 1, crossing.out_of) for crossing in way.crossings]
        turns += [(index, float(way.turns[index])) for index in self._clear_bends()]
        return [(index, angle) for index, angle in turns if abs(angle) >= math.radians(60)]

    def _ahead(self, starts: Mask, distance_m: int) -> Mask:
        """Return where one may be after going straight for about a distance."""
        way = self._way
        low, high = way.steps(distance_m - FORWARD_MISS_M), way.steps(distance_m + FORWARD_MISS_M)
        found: Mask = np.zeros(way.count, dtype=bool)
        for start in (int(index) for index in np.flatnonzero(starts)):
            for end in range(start + max(1, low), min(start + high, way.count - 1) + 1):
                if not found[end] and way.is_straight(start, end, FORWARD_RAD):
                    found[end] = True
        return found

    def _missing_rooms_and_stop(self) -> list[Problem]:
        problems = []
        stops = [isinstance(clause, StopAt) for clause in self._clauses]
        if stops.count(True) != 1 or not stops[-1]:
            problems.append(Problem("incomplete", "expected one place to stop, said last"))
        entered = [crossing.entered for crossing in self._way.crossings]
        said = [clause.room for clause in self._clauses if isinstance(clause, Enter | Cross)]
        goal = [clause.room for clause in self._clauses if isinstance(clause, GoTo)]
        if (goal != entered[-1:]) if goal else (said != entered):
            problems.append(Problem("incomplete", f"the way leads into {entered}, said is {said or goal}"))
        return problems

    def _missing_turns(self, places: list[Mask]) -> list[Problem]:
        """Return clear turns of the way about which nothing is said."""
        way, problems = self._way, []
        for turn in self._clear_turns():
            low, high = max(0, turn.at - way.steps(turn.before_m)), turn.at + way.steps(turn.after_m) + 1
            said = any(
                isinstance(clause, turn.kind) and _turns_to(clause, turn.angle) and mask[low:high].any()
                for clause, mask in zip(self._clauses, places, strict=True)
            )
            if not said:
                at_m, degrees = turn.at * way.spacing_m, math.degrees(turn.angle)
                problems.append(Problem("incomplete", f"nothing is said of {degrees:.0f}° at {at_m:.1f} m"))
        return problems

    def _clear_turns(self) -> list[_ClearTurn]:
        """Return the turns that must be said: at the start, into and out of doors, and in rooms."""
        way = self._way
        turns = []
        if abs(way.start_turn) >= CLEAR_START_RAD:
            turns.append(_ClearTurn(0, way.start_turn, Turn, 0.0, TURN_REACH_M))
        turns += [
            _ClearTurn(index, float(way.turns[index]), Turn, COVERED_M, COVERED_M)
            for index in self._clear_bends()
        ]
        for crossing, following in zip_longest(way.crossings, way.crossings[1:]):
            if abs(crossing.into) >= CLEAR_DOOR_RAD:
                turns.append(_ClearTurn(crossing.at, crossing.into, Enter, 0.0, 0.0))
            left_m = (way.count - 1 - crossing.at) * way.spacing_m
            same = following is not None and following.into * crossing.out_of > 0
            if following is not None and same:
                left_m = (following.at - crossing.at) * way.spacing_m - 1.0  # else the next door says it
            if abs(crossing.out_of) >= CLEAR_DOOR_RAD and left_m >= 1.5:
                turns.append(_ClearTurn(crossing.at, crossing.out_of, Turn, 0.0, DOOR_TURN_REACH_M))
        return turns

    def _clear_bends(self) -> list[int]:
        """Return the sharpest point of every clear bend in the middle of a room."""
        way = self._way
        # Bends this near to the start, the goal or a door need not be said as such.
        margin = way.steps(1.0)
        sharp = np.abs(way.turns) >= CLEAR_BEND_RAD
        for crossing in way.crossings:
            sharp[max(0, crossing.at - margin) : crossing.at + margin + 1] = False
        sharp[:margin] = False
        sharp[way.count - margin :] = False
        edges = np.flatnonzero(np.diff(np.concatenate([[0], sharp.astype(np.int8), [0]])))
        runs = list(pairwise(edges.tolist()))[::2]
        return [start + int(np.abs(way.turns[start:end]).argmax()) for start, end in runs]


def _later(reached: Mask, within: int) -> Mask:
    """Return the points that lie at or behind one that was reached, at most so many points behind."""
    indices = np.arange(len(reached))
    last = np.maximum.accumulate(np.where(reached, indices, -len(reached) - within - 1))
    later: Mask = indices - last <= within
    return later


def _turns_to(clause: Clause, angle: float) -> bool:
    """Tell whether a clause tells one to turn to that side."""
    side = clause.direction if isinstance(clause, Turn) else clause.side if isinstance(clause, Enter) else ""
    if side == "around":
        return abs(angle) > math.radians(120)
    return side.endswith("left" if angle > 0 else "right")


def reworded(episode: Episode, seed: int) -> str:
    """Return another wording that the checker accepts; a UserError if there is none."""
    problem, scene = _problem(episode), scene_of(episode)
    if problem is None and scene is None:
        problem = "it has no scene file, which the instruction writer needs"
    elif problem is None and scene is not None:
        surroundings = _surroundings(scene)
        if surroundings.has_meshes:
            problem = "its scene has meshes, which the instruction writer cannot describe"
        else:
            for text in _wordings(episode, surroundings, seed):
                asked = msgspec.structs.replace(episode, instruction=text)
                if text != episode.instruction and not check_instruction(surroundings, asked):
                    return text
            problem = "the instruction writer finds no other words for its path"
    raise UserError(f"episode '{episode.episode_id}': {problem}")


def _problem(episode: Episode) -> str | None:
    if episode.language not in LANGUAGES:
        return f"its language is {episode.language}; the instruction writer knows {' and '.join(LANGUAGES)}"
    if episode.reference_path is None or len(episode.reference_path) < 2:
        return "it has no reference path, which the instruction writer needs"
    return None


def _wordings(episode: Episode, surroundings: Surroundings, seed: int) -> Iterator[str]:
    """Yield the same clauses in other words, then other clauses about the same path."""
    digest = hashlib.sha256(f"{seed}/{episode.episode_id}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    try:
        clauses = read(episode.instruction, episode.language)
        yield from (say(clauses, episode.language, rng) for _ in range(TRIES))
    except Unreadable:
        pass
    level: Level = episode.level or "medium"
    path_xy = np.array([(point.x, point.y) for point in episode.reference_path or ()])
    for _ in range(TRIES):
        described = describe(surroundings, path_xy, episode.start_yaw, level=level, rng=rng)
        if described is not None:
            yield say(described, episode.language, rng)


@lru_cache(maxsize=8)
def _surroundings(scene: Scene) -> Surroundings:
    return Surroundings.of(scene.config)
