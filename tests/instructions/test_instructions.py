import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest

from proctor.core.types import Vector3
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.instruction_checker import check_instruction
from proctor.instructions.clauses import Cross, Enter, Forward, GoTo, Leave, Pass, StopAt, Turn
from proctor.instructions.phrasebook import LANGUAGES, read, say
from proctor.instructions.surroundings import Surroundings
from proctor.instructions.vocabulary import COLORS, ROOMS, THINGS
from proctor.instructions.writer import LEVELS, describe
from proctor.maps.grid_map import PLANNING_RADIUS_M
from proctor.scenes.houses import generate_house
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject

replace = msgspec.structs.replace


def block(name, category, room, at, size, *, color="", yaw_deg=0.0):
    part = Part(shape="box", size=size, translate=(0, 0, size[2] / 2))
    return SceneObject(
        name=name,
        category=category,
        room=room,
        color=color,
        translate=(*at, 0.0),
        rotate=(0, 0, yaw_deg),
        parts=[part],
    )


def floor(room, x0, y0, x1, y1):
    size, at = (x1 - x0, y1 - y0, 0.002), ((x0 + x1) / 2, (y0 + y1) / 2)
    return block(f"{room} floor", "floor", room, at, size)


def door(x, y):
    posts = [Part(shape="box", size=(0.2, 0.05, 2.0), translate=(0, dy, 1.0)) for dy in (-0.5, 0.5)]
    return SceneObject(name=f"door {x}", category="door", room="hall", translate=(x, y, 0), parts=posts)


def wall(x, y0, y1):
    return block(f"wall {x} {y0}", "wall", "hall", (x, (y0 + y1) / 2), (0.12, y1 - y0, 2.6))


# The bedroom lies in the west, the hall in the middle, the kitchen in the east; all doors are at y = 2.
SHELL = (
    *(floor("bedroom", 0, 0, 4, 4), floor("hall", 4, 0, 8, 4), floor("kitchen", 8, 0, 12, 4)),
    *(door(4, 2), door(8, 2), wall(4, 0, 1.5), wall(4, 2.5, 4), wall(8, 0, 1.5), wall(8, 2.5, 4)),
)
FRIDGE = block("fridge", "fridge", "kitchen", (11.6, 2), (0.7, 0.7, 1.8), color="white", yaw_deg=180)
SOFA = block("sofa", "sofa", "hall", (6, 3.4), (0.8, 1.8, 0.8), color="red", yaw_deg=270)
HOME = SceneConfig(scene_name="home", objects=[*SHELL, FRIDGE, SOFA])
WEST_TO_EAST = [(1, 2), (10.5, 2)]
RIGHT_WORDS = (
    "Leave the bedroom. Go into the hall and pass the red sofa on your left. Enter the kitchen. "
    "Stop in front of the fridge."
)


def way(corners):
    legs = [np.linspace(a, b, 40) for a, b in pairwise(corners)]
    return np.concatenate(legs)


def episode(path, text, *, yaw_deg=0.0, language="en", level=None):
    points = [Vector3(float(x), float(y), 0.0) for x, y in path]
    return Episode(
        start_position=points[0],
        start_rotation=Vector3(0.0, 0.0, yaw_deg),
        goal_position=points[-1],
        instruction=text,
        language=language,
        level=level,
        reference_path=points,
    )


def found(text, *, scene=HOME, corners=WEST_TO_EAST, **options):
    return [problem.kind for problem in check_instruction(scene, episode(way(corners), text, **options))]


def test_right_words_have_no_problem():
    assert found(RIGHT_WORDS) == []
    assert found("离开卧室，进入门厅。经过左边的红色沙发，然后走进厨房。停在冰箱前面。", language="zh") == []


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("on your left", "on your right", "false"),
        ("red sofa", "blue sofa", "false"),
        ("red sofa", "armchair", "false"),
        ("Leave the bedroom", "Leave the study", "false"),
        ("Enter the kitchen", "Enter the bathroom", "false"),
        ("Enter the kitchen", "Turn left into the kitchen", "false"),
        ("Enter the kitchen", "Go through the archway into the kitchen", "false"),
        ("Leave the bedroom", "Turn left. Leave the bedroom", "false"),
        ("Leave the bedroom", "Turn around. Leave the bedroom", "false"),
        ("in front of the fridge", "in front of the sofa", "false"),
        ("Leave the bedroom", "Walk about 7 metres and leave the bedroom", "false"),
        (" Enter the kitchen.", "", "incomplete"),
        (" Stop in front of the fridge.", "", "incomplete"),
        ("fridge.", "fridge and dance.", "unreadable"),
    ],
)
def test_wrong_words_are_found(old, new, kind):
    assert old in RIGHT_WORDS
    assert kind in found(RIGHT_WORDS.replace(old, new))


def test_what_is_said_in_the_wrong_order_is_found():
    text = "Leave the bedroom. Go into the hall. Enter the kitchen. Pass the red sofa on your left."
    assert found(f"{text} Stop in front of the fridge.") == ["false"]


@pytest.mark.parametrize(("metres", "kinds"), [(3, []), (6, ["false"])])
def test_distances_are_measured_from_where_they_are_said(metres, kinds):
    text = f"Walk about {metres} metres and leave the bedroom. Go through the hall into the kitchen."
    assert found(f"{text} Stop in front of the fridge.") == kinds


@pytest.mark.parametrize(("metres", "kinds"), [(4, []), (2, ["false"])])
def test_what_follows_a_distance_happens_where_it_ends(metres, kinds):
    text = f"Leave the bedroom and go into the hall. Walk about {metres} metres. Enter the kitchen."
    assert found(f"{text} Stop in front of the fridge.") == kinds


@pytest.mark.parametrize(("side", "kinds"), [("right", []), ("left", ["false"])])
def test_a_door_lies_on_the_side_to_which_one_turns(side, kinds):
    text = f"Turn {side} through the door into the kitchen. Stop in front of the fridge."
    assert found(text, corners=[(7.4, 0.3), (7.4, 2), (10.5, 2)], yaw_deg=90.0, level="long") == kinds


@pytest.mark.parametrize(("side", "kinds"), [("right", []), ("left", ["false"])])
def test_the_first_turn_is_not_the_second(side, kinds):
    corners = [(1, 2), (4.5, 2), (4.5, 0.6), (7.2, 0.6), (7.2, 2), (10.5, 2)]
    text = f"Leave the bedroom, go into the hall and turn {side}. Enter the kitchen. Stop by the fridge."
    assert found(text.replace("by", "in front of"), corners=corners) == kinds


def test_a_start_turn_must_be_said_at_length():
    assert found(RIGHT_WORDS, yaw_deg=180.0, level="long") == ["incomplete"]
    assert found(f"Turn around. {RIGHT_WORDS}", yaw_deg=180.0, level="long") == []
    assert found(f"Turn left. {RIGHT_WORDS}", yaw_deg=180.0, level="long") == ["false"]
    assert found(f"Turn left. {RIGHT_WORDS}", yaw_deg=-90.0, level="long") == []


def test_a_second_thing_that_fits_is_found():
    twin = block("second fridge", "fridge", "kitchen", (8.8, 0.6), (0.7, 0.7, 1.8), color="white")
    scene = replace(HOME, objects=[*HOME.objects, twin])
    assert found("Go to the kitchen. Stop in front of the fridge.", scene=scene) == ["ambiguous"]
    assert found("Go to the kitchen. Stop in front of the white fridge.", scene=scene) == ["ambiguous"]


def test_a_colour_tells_two_things_apart():
    black = block("second fridge", "fridge", "kitchen", (8.8, 0.6), (0.7, 0.7, 1.8), color="black")
    scene = replace(HOME, objects=[*HOME.objects, black])
    assert found("Go to the kitchen. Stop in front of the fridge.", scene=scene) == ["ambiguous"]
    assert found("Go to the kitchen. Stop in front of the white fridge.", scene=scene) == []


def test_what_cannot_be_seen_is_found():
    screen = block("screen", "wall", "hall", (6, 2.75), (3.8, 0.1, 2.6))
    scene = replace(HOME, objects=[*HOME.objects, screen])
    assert found(RIGHT_WORDS, scene=scene) == ["invisible"]


def test_what_cannot_be_checked_is_said():
    mesh = SceneObject(name="chair", asset_path="chair.glb")
    assert found(RIGHT_WORDS, scene=replace(HOME, objects=[*HOME.objects, mesh])) == ["unchecked"]
    bare = replace(episode(way(WEST_TO_EAST), RIGHT_WORDS), reference_path=None)
    assert [problem.kind for problem in check_instruction(HOME, bare)] == ["unchecked"]


def clauses_for(corners, level, *, scene=HOME, yaw=0.0, seed=0):
    return describe(scene, way(corners), yaw, level=level, rng=np.random.default_rng(seed))


def test_short_tells_only_the_goal():
    assert clauses_for(WEST_TO_EAST, "short")[:-1] == [GoTo("kitchen")]
    assert clauses_for([(9, 1), (10.5, 2)], "short")[-1].thing.category == "fridge"


def test_medium_names_the_rooms_in_order_and_long_says_more():
    told_in_all = {"medium": 0, "long": 0}
    for seed in range(5):
        medium, long = (
            clauses_for(WEST_TO_EAST, level, yaw=math.pi, seed=seed) for level in ("medium", "long")
        )
        told_in_all["medium"] += len(medium)
        told_in_all["long"] += len(long)
        for told in (medium, long):
            rooms = [clause.room for clause in told if isinstance(clause, Enter | Cross)]
            assert rooms == ["hall", "kitchen"]
            assert told[0] == Turn("around")
            assert isinstance(told[-1], StopAt)
    assert told_in_all["long"] > told_in_all["medium"]


def test_nothing_is_said_where_the_goal_cannot_be_told():
    assert clauses_for([(1, 2), (6, 1.2)], "long") is None  # the sofa is too far from there
    twin = block("second fridge", "fridge", "kitchen", (8.8, 0.6), (0.7, 0.7, 1.8), color="white")
    assert clauses_for(WEST_TO_EAST, "short", scene=replace(HOME, objects=[*HOME.objects, twin])) is None
    mesh = SceneObject(name="chair", asset_path="chair.glb")
    assert clauses_for(WEST_TO_EAST, "short", scene=replace(HOME, objects=[*HOME.objects, mesh])) is None


def test_words_that_nobody_knows_are_not_used():
    gadget = replace(FRIDGE, category="flux capacitor")
    assert clauses_for(WEST_TO_EAST, "short", scene=replace(HOME, objects=[*SHELL, SOFA, gadget])) is None
    odd = [replace(item, room="oubliette") if item.room == "kitchen" else item for item in HOME.objects]
    assert clauses_for(WEST_TO_EAST, "short", scene=replace(HOME, objects=odd)) is None


def test_the_same_seed_writes_the_same_words():
    written = [
        say(clauses_for(WEST_TO_EAST, "long", seed=7), "zh", np.random.default_rng(7)) for _ in range(2)
    ]
    assert written[0] == written[1]
    assert written[0].endswith("。")


def house_ways(seeds, count):
    """Yield surroundings, a path to some landmark and a heading."""
    for seed in seeds:
        house = generate_house(seed)
        grid, rng = Scene(house.scene).map(), np.random.default_rng(seed)
        surroundings = Surroundings.of(house.scene)
        marks = [mark for mark in surroundings.landmarks if mark.category in THINGS]
        for _ in range(count):
            room = house.rooms[rng.integers(len(house.rooms))].floor
            start = rng.uniform((room.x0, room.y0), (room.x1, room.y1)).round(3)
            mark = marks[rng.integers(len(marks))]
            front = np.array([math.cos(mark.front_yaw), math.sin(mark.front_yaw)])
            goal = (mark.centre + (np.ptp(mark.outline @ front) / 2 + rng.uniform(0.4, 0.7)) * front).round(3)
            if min(grid.clearance_at(*start), grid.clearance_at(*goal)) > 0.3:
                path = grid.shortest_path(start, goal, radius_m=PLANNING_RADIUS_M)
                if path is not None and len(path) > 1:
                    yield surroundings, path.round(3), float(15 * rng.integers(24)), rng


@pytest.fixture(scope="module")
def told():
    """Return surroundings, path, heading, level and clauses of ways through houses."""
    found = []
    for surroundings, path, yaw_deg, rng in house_ways((11, 12, 13), 36):
        for level in LEVELS:
            clauses = describe(surroundings, path, math.radians(yaw_deg), level=level, rng=rng)
            if clauses is not None:
                found.append((surroundings, path, yaw_deg, level, clauses))
    assert len(found) > 30
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_clause_about_houses_is_true(told, language):
    rng = np.random.default_rng(0)
    for surroundings, path, yaw_deg, level, clauses in told:
        text = say(clauses, language, rng)
        asked = episode(path, text, yaw_deg=yaw_deg, language=language, level=level)
        assert check_instruction(surroundings, asked) == [], text


def test_nobody_is_told_to_turn_twice_on_the_spot(told):
    pairs = [pair for *_, clauses in told for pair in pairwise(clauses)]
    assert not [pair for pair in pairs if all(isinstance(clause, Turn) for clause in pair)]


def test_more_is_said_than_where_to_stop(told):
    assert min(len(clauses) for *_, clauses in told) >= 2


def swapped(word):
    return word.replace("left", "#").replace("right", "left").replace("#", "right")


def mutants(clauses, rng):
    """Yield instructions with one clause made wrong."""

    def other(words, word):
        options = [option for option in sorted(words) if option != word]
        return options[rng.integers(len(options))]

    for index, clause in enumerate(clauses):
        changed = []
        if isinstance(clause, Turn) and clause.direction != "around":
            changed.append(replace(clause, direction=swapped(clause.direction)))
        if isinstance(clause, Pass) or (isinstance(clause, Enter) and clause.side in ("left", "right")):
            changed.append(replace(clause, side=swapped(clause.side)))
        if isinstance(clause, Forward):
            changed.append(
                replace(clause, distance_m=clause.distance_m + (3 if clause.distance_m < 6 else -3))
            )
        if isinstance(clause, Leave | Enter | Cross | GoTo):
            changed.append(replace(clause, room=other(ROOMS, clause.room)))
        if isinstance(clause, Pass | StopAt):
            changed.append(
                replace(clause, thing=replace(clause.thing, category=other(THINGS, clause.thing.category)))
            )
            if clause.thing.color:
                changed.append(
                    replace(clause, thing=replace(clause.thing, color=other(COLORS, clause.thing.color)))
                )
        yield from ([*clauses[:index], wrong, *clauses[index + 1 :]] for wrong in changed)
        if isinstance(clause, Enter | Cross | GoTo | StopAt) and len(clauses) > 1:
            yield [*clauses[:index], *clauses[index + 1 :]]


def test_nearly_every_wrong_clause_is_caught(told):
    rng = np.random.default_rng(5)
    caught = []
    for surroundings, path, yaw_deg, level, clauses in told[::2]:
        for wrong in mutants(clauses, rng):
            asked = episode(path, say(wrong, "en", rng), yaw_deg=yaw_deg, level=level)
            caught.append(bool(check_instruction(surroundings, asked)))
    assert len(caught) > 80
    assert sum(caught) / len(caught) > 0.95


def test_stored_words_are_checked_and_not_hidden_clauses(told):
    surroundings, path, yaw_deg, level, clauses = next(item for item in told if item[3] == "long")
    text = say(clauses, "en", np.random.default_rng(0))
    assert read(text, "en") == clauses
    asked = episode(path, f"{text} Turn around.", yaw_deg=yaw_deg, level=level)
    assert check_instruction(surroundings, asked)
