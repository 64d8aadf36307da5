"""How instructions are said in Chinese."""

from __future__ import annotations

from typing import ClassVar

from proctor.instructions.grammar import Language, Table


class Chinese(Language):
    """Chinese, with measure words."""

    code = "zh"
    phrases: ClassVar[dict[str, str]] = {
        "turn": "{direction:hand}转 | 向{direction:hand}转 | 往{direction:hand}拐 | 向{direction:hand}拐 | "
        "{direction:hand}拐 | 往{direction:hand}边走 | 稍微向{direction:slight}转 | "
        "略微{direction:slight}转 | 向{direction:slight}前方走 | 稍稍往{direction:slight}偏一点 | "
        "向{direction:sharp}后方转身 | 向{direction:sharp}后方转 | 往{direction:sharp}后方转",
        "turn around": "掉头 | 转过身来 | 向后转 | 原地转身",
        "forward": "向前走大约{distance_m:metres} | 往前走{distance_m:metres}左右 | "
        "直走约{distance_m:metres} | 直行{distance_m:metres}左右 | 一直走大概{distance_m:metres} | "
        "沿直线走大约{distance_m:metres}",
        "toward": "朝{thing}走 | 朝着{thing}的方向走 | 往{thing}那边走 | 向{thing}走去",
        "leave": "离开{room} | 走出{room} | 从{room}出来 | 出了{room} | 从{room}里走出去",
        "enter": "进入{room} | 走进{room} | 来到{room} | 走到{room}里 | 进到{room} | "
        "{side:hand}转进入{room} | 向{side:hand}拐进{room} | 往{side:hand}走进{room}",
        "door": "穿过门进入{room} | 从门口走进{room} | 穿过通往{room}的门 | 通过房门来到{room} | "
        "从{side:aside}的门进入{room} | 穿过{side:aside}的门走进{room} | 走{side:aside}那扇门进{room} | "
        "{side:hand}转穿过门进入{room}",
        "archway": "穿过拱门进入{room} | 从拱门走进{room} | 穿过宽敞的门洞来到{room} | "
        "穿过{side:aside}的拱门进入{room} | {side:hand}转穿过拱门走进{room}",
        "archway ahead": "穿过正前方的拱门进入{room}",
        "ahead": "直走进入{room} | 一直往前走进{room}",
        "door ahead": "穿过正前方的门进入{room} | 从前面的门直接走进{room}",
        "cross": "穿过{room} | 走过{room} | 经过{room} | 横穿{room}",
        "leave, enter": "从{0.room}走到{1.room} | 从{0.room}出来进入{1.room} | 离开{0.room}来到{1.room} | "
        "走出{0.room}进入{1.room}",
        "leave, door": "从{0.room}的门出去，来到{1.room} | 走出{0.room}的门进入{1.room} | "
        "从{1.side:aside}的门离开{0.room}进入{1.room}",
        "cross, enter": "穿过{0.room}进入{1.room} | 经过{0.room}走到{1.room} | 穿过{0.room}来到{1.room}",
        "cross, cross": "依次穿过{0.room}和{1.room} | 经过{0.room}和{1.room}",
        "cross, cross, enter": "依次穿过{0.room}和{1.room}来到{2.room}",
        "pass": "经过{side:aside}的{thing} | 路过{side:aside}的{thing} | 走过{side:aside}的{thing} | "
        "从{side:aside}的{thing}旁边走过 | 沿途{side:aside}会经过{thing} | 你会经过{side:aside}的{thing} | "
        "继续往前走，经过{side:aside}的{thing}",
        "pass, pass": "先后经过{0.side:aside}的{0.thing}和{1.side:aside}的{1.thing} | "
        "路过{0.side:aside}的{0.thing}，再路过{1.side:aside}的{1.thing}",
        "go to": "去{room} | 前往{room} | 到{room}去 | 找到{room}",
        "stay": "就待在{room}里 | 不要离开{room} | 留在{room}",
        "next to": "在{thing}旁边停下 | 停在{thing}旁边 | 走到{thing}旁边停下来 | 在{thing}边上停住 | "
        "到{thing}旁边就停 | 在{thing}旁等候 | 终点就在{thing}旁边",
        "in front of": "停在{thing}前面 | 在{thing}前面停下 | 走到{thing}正前方停下 | 在{thing}跟前停住 | "
        "到{thing}前面就停 | 终点就在{thing}前面",
        "between": "停在{thing}和{other}之间 | 在{thing}与{other}中间停下 | 走到{thing}和{other}之间停住",
        "go to, next to": "到{0.room}的{1.thing}旁边停下 | 去{0.room}找到{1.thing}，停在它旁边",
        "go to, in front of": "到{0.room}的{1.thing}前面停下 | 去{0.room}找到{1.thing}，停在它前面",
        "stay, next to": "不用离开{0.room}，走到{1.thing}旁边停下 | "
        "你已经在{0.room}里，找到{1.thing}并停在它旁边",
        "stay, in front of": "不用离开{0.room}，走到{1.thing}前面停下 | "
        "你已经在{0.room}里，找到{1.thing}并停在它前面",
    }
    tables: ClassVar[dict[str, Table]] = {
        "hand": {"left": ("左",), "right": ("右",)},
        "aside": {"left": ("左边", "左侧", "左手边"), "right": ("右边", "右侧", "右手边")},
    }
    numbers = tuple("一两三四五六七八九十")
    metres, room = "{}米", "{}"
    thing = (
        *("{category}", "{color}的{category}", "{color}{category}"),
        *("那{measure}{color}{category}", "那{measure}{color}的{category}"),
    )
    statements = ("你会", "终点", "沿途", "你已经", "不用离开", "就待在")
    first = ("", "", "", "", "首先", "先")
    following = ("", "", "", "然后", "接着", "接下来", "随后", "之后")
    last = ("", "", "最后", "最后")
    resuming = ("继续",)
    joiners = ("，", "，", "，然后", "，接着", "，再")
    end, space = "。", ""
