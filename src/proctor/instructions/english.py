"""How instructions are said in English."""

from __future__ import annotations

from typing import ClassVar

from proctor.instructions.grammar import Language, Table


class English(Language):
    """English, with American nouns and metres."""

    code = "en"
    phrases: ClassVar[dict[str, str]] = {
        "turn": "turn {direction:hand} | turn to the {direction:hand} | make a {direction:hand} turn | "
        "take a {direction:hand} | go {direction:hand} | head {direction:hand} | bear {direction:slight} | "
        "turn slightly to the {direction:slight} | turn a little to the {direction:slight} | "
        "veer {direction:slight} | turn sharply to the {direction:sharp} | "
        "make a sharp {direction:sharp} turn | take a sharp {direction:sharp}",
        "turn around": "turn around | turn back | make a U-turn | face the other way",
        "forward": "walk about {distance_m:metres} | go forward about {distance_m:metres} | "
        "go straight for roughly {distance_m:metres} | continue straight for around {distance_m:metres} | "
        "walk straight ahead for about {distance_m:metres} | keep going for about {distance_m:metres}",
        "toward": "walk towards {thing} | head towards {thing} | go in the direction of {thing} | "
        "make for {thing}",
        "leave": "leave {room} | walk out of {room} | exit {room} | go out of {room} | head out of {room}",
        "enter": "go into {room} | enter {room} | walk into {room} | step into {room} | "
        "continue into {room} | turn {side:hand} into {room} | go {side:hand} into {room}",
        "door": "go through the door into {room} | take the door to {room} | "
        "pass through the doorway into {room} | use the door that leads to {room} | "
        "take the door on your {side:hand} into {room} | "
        "go through the door on the {side:hand} into {room} | "
        "enter {room} through the door on your {side:hand} | turn {side:hand} through the door into {room}",
        "archway": "go through the archway into {room} | pass under the archway into {room} | "
        "walk through the wide opening into {room} | "
        "go through the archway on your {side:hand} into {room} | "
        "turn {side:hand} through the archway into {room}",
        "archway ahead": "go straight through the archway into {room}",
        "ahead": "go straight into {room} | go straight on into {room}",
        "door ahead": "go through the door ahead into {room} | walk straight through the door into {room}",
        "cross": "cross {room} | go through {room} | walk through {room} | pass through {room}",
        "leave, enter": "leave {0.room} and go into {1.room} | leave {0.room} for {1.room} | "
        "go from {0.room} into {1.room} | walk out of {0.room} into {1.room} | "
        "step out of {0.room} into {1.room}",
        "leave, door": "leave {0.room} through the door to {1.room} | "
        "walk out of {0.room} through the door into {1.room} | "
        "leave {0.room} by the door on your {1.side:hand} and enter {1.room}",
        "cross, enter": "go through {0.room} into {1.room} | cross {0.room} to get to {1.room} | "
        "walk through {0.room} and on into {1.room}",
        "cross, cross": "go through {0.room} and {1.room} | walk through {0.room}, then {1.room}",
        "cross, cross, enter": "go through {0.room} and {1.room} to {2.room}",
        "pass": "pass {thing} on your {side:hand} | walk past {thing} on your {side:hand} | "
        "go past {thing} on the {side:hand} | keep {thing} on your {side:hand} as you pass | "
        "continue past {thing} on your {side:hand} | you will pass {thing} on your {side:hand} | "
        "you should pass {thing} on your {side:hand} | on your {side:hand} you will pass {thing}",
        "pass, pass": "pass {0.thing} on your {0.side:hand} and {1.thing} on your {1.side:hand} | "
        "go past {0.thing} on the {0.side:hand}, then {1.thing} on the {1.side:hand}",
        "go to": "go to {room} | make your way to {room} | head over to {room} | find {room}",
        "stay": "stay in {room} | stay inside {room} | remain in {room}",
        "next to": "stop next to {thing} | stop beside {thing} | stop by {thing} | "
        "stop right next to {thing} | come to a halt next to {thing} | wait beside {thing} | "
        "go up to {thing} and stop there | stop as soon as you are next to {thing} | "
        "your goal is right beside {thing}",
        "in front of": "stop in front of {thing} | come to a stop in front of {thing} | "
        "wait in front of {thing} | stop once you are in front of {thing} | "
        "walk up to the front of {thing} and stop | your goal is in front of {thing}",
        "between": "stop between {thing} and {other} | come to a halt between {thing} and {other} | "
        "wait between {thing} and {other}",
        "go to, next to": "find {1.thing} in {0.room} and stop next to it | "
        "go to {1.thing} in {0.room} and stop beside it",
        "go to, in front of": "find {1.thing} in {0.room} and stop in front of it | "
        "go and stand in front of {1.thing} in {0.room}",
        "stay, next to": "without leaving {0.room}, go to {1.thing} and stop next to it | "
        "you are already in {0.room}: find {1.thing} and stop next to it",
        "stay, in front of": "without leaving {0.room}, stop in front of {1.thing} | "
        "you are already in {0.room}: find {1.thing} and stop in front of it",
    }
    tables: ClassVar[dict[str, Table]] = {"hand": {"left": ("left",), "right": ("right",)}}
    numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    metres, room, thing = "{} metres", "the {}", ("the {category}", "the {color} {category}")
    statements = ("you ", "on your ", "your goal ", "without ")
    first = ("", "", "", "", "", "", "first, ", "to begin, ")
    following = ("", "", "", "", "then ", "next, ", "now ", "after that, ", "from there, ")
    last = ("", "", "finally, ", "at the end, ", "then ")
    resuming = ("continue ", "keep going ")
    joiners = (", ", ", then ", " and ", " and then ", ", and then ")
    end, space = ".", " "
