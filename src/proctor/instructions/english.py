"""How instructions are said in English."""

from __future__ import annotations

from proctor.instructions.clauses import Cross, Enter, Forward, GoTo, Leave, Pass, Stay, StopAt, Toward, Turn
from proctor.instructions.grammar import Language, Pattern
from proctor.instructions.vocabulary import COLORS, ROOMS, THINGS

P = Pattern
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
LEFT_RIGHT = {"left": ("left",), "right": ("right",)}

NEXT = (StopAt, {"relation": "next to"})
FRONT = (StopAt, {"relation": "in front of"})
BETWEEN = (StopAt, {"relation": "between"})
DOOR = (Enter, {"via": "door"})
ARCH = (Enter, {"via": "archway"})
AHEAD = (Enter, {"side": "ahead"})
AHEAD_DOOR = (Enter, {"side": "ahead", "via": "door"})
AROUND = (Turn, {"direction": "around"})

TURNS = (
    P("turn {direction:hand}", Turn),
    P("turn to the {direction:hand}", Turn),
    P("make a {direction:hand} turn", Turn),
    P("take a {direction:hand}", Turn),
    P("go {direction:hand}", Turn),
    P("head {direction:hand}", Turn),
    P("bear {direction:slight}", Turn),
    P("turn slightly to the {direction:slight}", Turn),
    P("turn a little to the {direction:slight}", Turn),
    P("veer {direction:slight}", Turn),
    P("turn sharply to the {direction:sharp}", Turn),
    P("make a sharp {direction:sharp} turn", Turn),
    P("take a sharp {direction:sharp}", Turn),
    P("turn around", AROUND),
    P("turn back", AROUND),
    P("make a U-turn", AROUND),
    P("face the other way", AROUND),
)
MOVES = (
    P("walk about {distance_m:metres}", Forward),
    P("go forward about {distance_m:metres}", Forward),
    P("go straight for roughly {distance_m:metres}", Forward),
    P("continue straight for around {distance_m:metres}", Forward),
    P("walk straight ahead for about {distance_m:metres}", Forward),
    P("keep going for about {distance_m:metres}", Forward),
    P("walk towards {thing}", Toward),
    P("head towards {thing}", Toward),
    P("go in the direction of {thing}", Toward),
    P("make for {thing}", Toward),
)
ROOM_CHANGES = (
    P("leave {room}", Leave),
    P("walk out of {room}", Leave),
    P("exit {room}", Leave),
    P("go out of {room}", Leave),
    P("head out of {room}", Leave),
    P("go into {room}", Enter),
    P("enter {room}", Enter),
    P("walk into {room}", Enter),
    P("step into {room}", Enter),
    P("continue into {room}", Enter),
    P("go through the door into {room}", DOOR),
    P("take the door to {room}", DOOR),
    P("pass through the doorway into {room}", DOOR),
    P("use the door that leads to {room}", DOOR),
    P("go through the archway into {room}", ARCH),
    P("pass under the archway into {room}", ARCH),
    P("walk through the wide opening into {room}", ARCH),
    P("go through the archway on your {side:hand} into {room}", ARCH),
    P("turn {side:hand} through the archway into {room}", ARCH),
    P("go straight through the archway into {room}", (Enter, {"side": "ahead", "via": "archway"})),
    P("turn {side:hand} into {room}", Enter),
    P("go {side:hand} into {room}", Enter),
    P("take the door on your {side:hand} into {room}", DOOR),
    P("go through the door on the {side:hand} into {room}", DOOR),
    P("enter {room} through the door on your {side:hand}", DOOR),
    P("turn {side:hand} through the door into {room}", DOOR),
    P("go straight into {room}", AHEAD),
    P("go straight on into {room}", AHEAD),
    P("go through the door ahead into {room}", AHEAD_DOOR),
    P("walk straight through the door into {room}", AHEAD_DOOR),
    P("cross {room}", Cross),
    P("go through {room}", Cross),
    P("walk through {room}", Cross),
    P("pass through {room}", Cross),
    P("leave {0.room} and go into {1.room}", Leave, Enter),
    P("leave {0.room} for {1.room}", Leave, Enter),
    P("go from {0.room} into {1.room}", Leave, Enter),
    P("walk out of {0.room} into {1.room}", Leave, Enter),
    P("step out of {0.room} into {1.room}", Leave, Enter),
    P("leave {0.room} through the door to {1.room}", Leave, DOOR),
    P("walk out of {0.room} through the door into {1.room}", Leave, DOOR),
    P("leave {0.room} by the door on your {1.side:hand} and enter {1.room}", Leave, DOOR),
    P("go through {0.room} into {1.room}", Cross, Enter),
    P("cross {0.room} to get to {1.room}", Cross, Enter),
    P("walk through {0.room} and on into {1.room}", Cross, Enter),
    P("go through {0.room} and {1.room}", Cross, Cross),
    P("walk through {0.room}, then {1.room}", Cross, Cross),
    P("go through {0.room} and {1.room} to {2.room}", Cross, Cross, Enter),
)
PASSES = (
    P("pass {thing} on your {side:hand}", Pass),
    P("walk past {thing} on your {side:hand}", Pass),
    P("go past {thing} on the {side:hand}", Pass),
    P("keep {thing} on your {side:hand} as you pass", Pass),
    P("continue past {thing} on your {side:hand}", Pass),
    P("you will pass {thing} on your {side:hand}", Pass),
    P("you should pass {thing} on your {side:hand}", Pass),
    P("on your {side:hand} you will pass {thing}", Pass),
    P("pass {0.thing} on your {0.side:hand} and {1.thing} on your {1.side:hand}", Pass, Pass),
    P("go past {0.thing} on the {0.side:hand}, then {1.thing} on the {1.side:hand}", Pass, Pass),
)
STOPS = (
    P("go to {room}", GoTo),
    P("make your way to {room}", GoTo),
    P("head over to {room}", GoTo),
    P("find {room}", GoTo),
    P("stay in {room}", Stay),
    P("stay inside {room}", Stay),
    P("remain in {room}", Stay),
    P("stop next to {thing}", NEXT),
    P("stop beside {thing}", NEXT),
    P("stop by {thing}", NEXT),
    P("stop right next to {thing}", NEXT),
    P("come to a halt next to {thing}", NEXT),
    P("wait beside {thing}", NEXT),
    P("go up to {thing} and stop there", NEXT),
    P("stop as soon as you are next to {thing}", NEXT),
    P("your goal is right beside {thing}", NEXT),
    P("stop in front of {thing}", FRONT),
    P("come to a stop in front of {thing}", FRONT),
    P("wait in front of {thing}", FRONT),
    P("stop once you are in front of {thing}", FRONT),
    P("walk up to the front of {thing} and stop", FRONT),
    P("your goal is in front of {thing}", FRONT),
    P("stop between {thing} and {other}", BETWEEN),
    P("come to a halt between {thing} and {other}", BETWEEN),
    P("wait between {thing} and {other}", BETWEEN),
    P("find {1.thing} in {0.room} and stop next to it", GoTo, NEXT),
    P("go to {1.thing} in {0.room} and stop beside it", GoTo, NEXT),
    P("find {1.thing} in {0.room} and stop in front of it", GoTo, FRONT),
    P("go and stand in front of {1.thing} in {0.room}", GoTo, FRONT),
    P("without leaving {0.room}, go to {1.thing} and stop next to it", Stay, NEXT),
    P("without leaving {0.room}, stop in front of {1.thing}", Stay, FRONT),
    P("you are already in {0.room}: find {1.thing} and stop next to it", Stay, NEXT),
    P("you are already in {0.room}: find {1.thing} and stop in front of it", Stay, FRONT),
)

STATEMENTS = ("you ", "on your ", "your goal ", "without ")
"""Phrases that begin so are sentences of their own."""
FIRST = ("", "", "", "", "", "", "first, ", "to begin, ")
NEXT_ONES = ("", "", "", "", "then ", "next, ", "now ", "after that, ", "from there, ")
LAST = ("", "", "finally, ", "at the end, ", "then ")
RESUMING = ("continue ", "keep going ")
"""Phrases that begin so go on with something: none of them comes first."""
JOINERS = (", ", ", then ", " and ", " and then ", ", and then ")

ENGLISH = Language(
    (*TURNS, *MOVES, *ROOM_CHANGES, *PASSES, *STOPS),
    {
        "room": {name: [f"the {form}" for form in word.en] for name, word in ROOMS.items()},
        "category": {name: word.en for name, word in THINGS.items()},
        "color": {name: word.en for name, word in COLORS.items()},
        "hand": LEFT_RIGHT,
        "slight": {"slightly left": ("left",), "slightly right": ("right",)},
        "sharp": {"sharply left": ("left",), "sharply right": ("right",)},
        "metres": {n: (f"{n} metres", f"{word} metres") for n, word in enumerate(NUMBERS[1:], start=2)},
    },
    thing=("the {category}", "the {color} {category}"),
)
