"""How instructions are said in Chinese."""

from __future__ import annotations

from proctor.instructions.clauses import Cross, Enter, Forward, GoTo, Leave, Pass, Stay, StopAt, Toward, Turn
from proctor.instructions.grammar import Language, Pattern
from proctor.instructions.vocabulary import COLORS, ROOMS, THINGS

P = Pattern
NUMBERS = "一两三四五六七八九十"

NEXT = (StopAt, {"relation": "next to"})
FRONT = (StopAt, {"relation": "in front of"})
BETWEEN = (StopAt, {"relation": "between"})
DOOR = (Enter, {"via": "door"})
ARCH = (Enter, {"via": "archway"})
AHEAD = (Enter, {"side": "ahead"})
AHEAD_DOOR = (Enter, {"side": "ahead", "via": "door"})
AROUND = (Turn, {"direction": "around"})

TURNS = (
    P("{direction:hand}转", Turn),
    P("向{direction:hand}转", Turn),
    P("往{direction:hand}拐", Turn),
    P("向{direction:hand}拐", Turn),
    P("{direction:hand}拐", Turn),
    P("往{direction:hand}边走", Turn),
    P("稍微向{direction:slight}转", Turn),
    P("略微{direction:slight}转", Turn),
    P("向{direction:slight}前方走", Turn),
    P("稍稍往{direction:slight}偏一点", Turn),
    P("向{direction:sharp}后方转身", Turn),
    P("向{direction:sharp}后方转", Turn),
    P("往{direction:sharp}后方转", Turn),
    P("掉头", AROUND),
    P("转过身来", AROUND),
    P("向后转", AROUND),
    P("原地转身", AROUND),
)
MOVES = (
    P("向前走大约{distance_m:metres}", Forward),
    P("往前走{distance_m:metres}左右", Forward),
    P("直走约{distance_m:metres}", Forward),
    P("直行{distance_m:metres}左右", Forward),
    P("一直走大概{distance_m:metres}", Forward),
    P("沿直线走大约{distance_m:metres}", Forward),
    P("朝{thing}走", Toward),
    P("朝着{thing}的方向走", Toward),
    P("往{thing}那边走", Toward),
    P("向{thing}走去", Toward),
)
ROOM_CHANGES = (
    P("离开{room}", Leave),
    P("走出{room}", Leave),
    P("从{room}出来", Leave),
    P("出了{room}", Leave),
    P("从{room}里走出去", Leave),
    P("进入{room}", Enter),
    P("走进{room}", Enter),
    P("来到{room}", Enter),
    P("走到{room}里", Enter),
    P("进到{room}", Enter),
    P("穿过门进入{room}", DOOR),
    P("从门口走进{room}", DOOR),
    P("穿过通往{room}的门", DOOR),
    P("通过房门来到{room}", DOOR),
    P("穿过拱门进入{room}", ARCH),
    P("从拱门走进{room}", ARCH),
    P("穿过宽敞的门洞来到{room}", ARCH),
    P("穿过{side:aside}的拱门进入{room}", ARCH),
    P("{side:hand}转穿过拱门走进{room}", ARCH),
    P("穿过正前方的拱门进入{room}", (Enter, {"side": "ahead", "via": "archway"})),
    P("{side:hand}转进入{room}", Enter),
    P("向{side:hand}拐进{room}", Enter),
    P("往{side:hand}走进{room}", Enter),
    P("从{side:aside}的门进入{room}", DOOR),
    P("穿过{side:aside}的门走进{room}", DOOR),
    P("走{side:aside}那扇门进{room}", DOOR),
    P("{side:hand}转穿过门进入{room}", DOOR),
    P("直走进入{room}", AHEAD),
    P("一直往前走进{room}", AHEAD),
    P("穿过正前方的门进入{room}", AHEAD_DOOR),
    P("从前面的门直接走进{room}", AHEAD_DOOR),
    P("穿过{room}", Cross),
    P("走过{room}", Cross),
    P("经过{room}", Cross),
    P("横穿{room}", Cross),
    P("从{0.room}走到{1.room}", Leave, Enter),
    P("从{0.room}出来进入{1.room}", Leave, Enter),
    P("离开{0.room}来到{1.room}", Leave, Enter),
    P("走出{0.room}进入{1.room}", Leave, Enter),
    P("从{0.room}的门出去，来到{1.room}", Leave, DOOR),
    P("走出{0.room}的门进入{1.room}", Leave, DOOR),
    P("从{1.side:aside}的门离开{0.room}进入{1.room}", Leave, DOOR),
    P("穿过{0.room}进入{1.room}", Cross, Enter),
    P("经过{0.room}走到{1.room}", Cross, Enter),
    P("穿过{0.room}来到{1.room}", Cross, Enter),
    P("依次穿过{0.room}和{1.room}", Cross, Cross),
    P("经过{0.room}和{1.room}", Cross, Cross),
    P("依次穿过{0.room}和{1.room}来到{2.room}", Cross, Cross, Enter),
)
PASSES = (
    P("经过{side:aside}的{thing}", Pass),
    P("路过{side:aside}的{thing}", Pass),
    P("走过{side:aside}的{thing}", Pass),
    P("从{side:aside}的{thing}旁边走过", Pass),
    P("沿途{side:aside}会经过{thing}", Pass),
    P("你会经过{side:aside}的{thing}", Pass),
    P("继续往前走，经过{side:aside}的{thing}", Pass),
    P("先后经过{0.side:aside}的{0.thing}和{1.side:aside}的{1.thing}", Pass, Pass),
    P("路过{0.side:aside}的{0.thing}，再路过{1.side:aside}的{1.thing}", Pass, Pass),
)
STOPS = (
    P("去{room}", GoTo),
    P("前往{room}", GoTo),
    P("到{room}去", GoTo),
    P("找到{room}", GoTo),
    P("就待在{room}里", Stay),
    P("不要离开{room}", Stay),
    P("留在{room}", Stay),
    P("在{thing}旁边停下", NEXT),
    P("停在{thing}旁边", NEXT),
    P("走到{thing}旁边停下来", NEXT),
    P("在{thing}边上停住", NEXT),
    P("到{thing}旁边就停", NEXT),
    P("在{thing}旁等候", NEXT),
    P("终点就在{thing}旁边", NEXT),
    P("停在{thing}前面", FRONT),
    P("在{thing}前面停下", FRONT),
    P("走到{thing}正前方停下", FRONT),
    P("在{thing}跟前停住", FRONT),
    P("到{thing}前面就停", FRONT),
    P("终点就在{thing}前面", FRONT),
    P("停在{thing}和{other}之间", BETWEEN),
    P("在{thing}与{other}中间停下", BETWEEN),
    P("走到{thing}和{other}之间停住", BETWEEN),
    P("到{0.room}的{1.thing}旁边停下", GoTo, NEXT),
    P("去{0.room}找到{1.thing}，停在它旁边", GoTo, NEXT),
    P("到{0.room}的{1.thing}前面停下", GoTo, FRONT),
    P("去{0.room}找到{1.thing}，停在它前面", GoTo, FRONT),
    P("不用离开{0.room}，走到{1.thing}旁边停下", Stay, NEXT),
    P("不用离开{0.room}，走到{1.thing}前面停下", Stay, FRONT),
    P("你已经在{0.room}里，找到{1.thing}并停在它旁边", Stay, NEXT),
    P("你已经在{0.room}里，找到{1.thing}并停在它前面", Stay, FRONT),
)

STATEMENTS = ("你会", "终点", "沿途", "你已经", "不用离开", "就待在")
FIRST = ("", "", "", "", "首先", "先")
NEXT_ONES = ("", "", "", "然后", "接着", "接下来", "随后", "之后")
LAST = ("", "", "最后", "最后")
RESUMING = ("继续",)
JOINERS = ("，", "，", "，然后", "，接着", "，再")

CHINESE = Language(
    (*TURNS, *MOVES, *ROOM_CHANGES, *PASSES, *STOPS),
    {
        "room": {name: word.zh for name, word in ROOMS.items()},
        "category": {name: word.zh for name, word in THINGS.items()},
        "color": {name: word.zh for name, word in COLORS.items()},
        "hand": {"left": ("左",), "right": ("右",)},
        "aside": {"left": ("左边", "左侧", "左手边"), "right": ("右边", "右侧", "右手边")},
        "slight": {"slightly left": ("左",), "slightly right": ("右",)},
        "sharp": {"sharply left": ("左",), "sharply right": ("右",)},
        "metres": {n: (f"{n}米", f"{word}米") for n, word in enumerate(NUMBERS[1:], start=2)},
    },
    thing=(
        "{category}",
        "{color}的{category}",
        "{color}{category}",
        "那{measure}{color}{category}",
        "那{measure}{color}的{category}",
    ),
    measures={name: word.measure for name, word in THINGS.items()},
)
