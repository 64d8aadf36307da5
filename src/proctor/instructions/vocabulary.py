"""The nouns and adjectives of instructions, in English and Chinese.

What is missing here is not spoken of: a scene may hold anything, but an instruction uses only known words.
"""

from __future__ import annotations

from typing import NamedTuple


class Word(NamedTuple):
    """A noun: its English names, its Chinese names, and the Chinese measure word."""

    en: tuple[str, ...]
    zh: tuple[str, ...]
    measure: str = "个"
    has_front: bool = False


THINGS: dict[str, Word] = {
    "armchair": Word(("armchair",), ("扶手椅", "单人沙发"), "张", has_front=True),
    "bathtub": Word(("bathtub", "tub"), ("浴缸",), has_front=True),
    "bed": Word(("bed",), ("床",), "张"),
    "bookshelf": Word(("bookshelf", "bookcase"), ("书架",), has_front=True),
    "chair": Word(("chair",), ("椅子",), "把"),
    "coat rack": Word(("coat rack",), ("衣帽架", "挂衣架"), has_front=True),
    "coffee table": Word(("coffee table",), ("茶几",), "张"),
    "counter": Word(("kitchen counter", "counter"), ("橱柜", "操作台"), has_front=True),
    "desk": Word(("desk",), ("书桌",), "张", has_front=True),
    "dining table": Word(("dining table",), ("餐桌",), "张"),
    "floor lamp": Word(("floor lamp", "standing lamp"), ("落地灯",), "盏"),
    "fridge": Word(("fridge", "refrigerator"), ("冰箱",), "台", has_front=True),
    "front door": Word(("front door",), ("大门", "入户门"), "扇", has_front=True),
    "mirror": Word(("mirror",), ("镜子",), "面", has_front=True),
    "nightstand": Word(("nightstand", "bedside table"), ("床头柜",)),
    "office chair": Word(("office chair", "desk chair"), ("办公椅", "转椅"), "把"),
    "picture": Word(("picture", "painting"), ("挂画",), "幅", has_front=True),
    "plant": Word(("plant", "potted plant"), ("盆栽", "绿植"), "盆"),
    "sideboard": Word(("sideboard",), ("边柜",), has_front=True),
    "sink": Word(("sink",), ("水池",), has_front=True),
    "sofa": Word(("sofa", "couch"), ("沙发",), "张", has_front=True),
    "stove": Word(("stove", "cooker"), ("炉灶", "灶台"), has_front=True),
    "toilet": Word(("toilet",), ("马桶",), has_front=True),
    "TV": Word(("TV", "television"), ("电视", "电视机"), "台", has_front=True),
    "wardrobe": Word(("wardrobe",), ("衣柜",), has_front=True),
    "aquarium": Word(("aquarium", "fish tank"), ("鱼缸",), has_front=True),
    "bar stool": Word(("bar stool",), ("吧凳",)),
    "bench": Word(("bench",), ("长凳",), "条"),
    "cardboard box": Word(("cardboard box",), ("纸箱",)),
    "clock": Word(("wall clock", "clock"), ("挂钟",)),
    "crib": Word(("crib", "cot"), ("婴儿床",), "张"),
    "dresser": Word(("dresser", "chest of drawers"), ("斗柜", "五斗柜"), has_front=True),
    "dumbbell rack": Word(("dumbbell rack",), ("哑铃架",), has_front=True),
    "exercise bike": Word(("exercise bike", "stationary bike"), ("健身车",), "辆"),
    "fireplace": Word(("fireplace",), ("壁炉",), has_front=True),
    "grandfather clock": Word(("grandfather clock",), ("落地钟",), has_front=True),
    "ironing board": Word(("ironing board",), ("熨衣板",), "块"),
    "kitchen island": Word(("kitchen island",), ("岛台", "中岛")),
    "laundry basket": Word(("laundry basket",), ("洗衣篮", "脏衣篓")),
    "piano": Word(("piano",), ("钢琴",), "架", has_front=True),
    "shelf": Word(("shelf", "storage shelf"), ("置物架", "货架"), has_front=True),
    "shoe cabinet": Word(("shoe cabinet",), ("鞋柜",), has_front=True),
    "shower": Word(("shower", "shower cabin"), ("淋浴间",), has_front=True),
    "stool": Word(("stool",), ("凳子",)),
    "towel rail": Word(("towel rail", "towel rack"), ("毛巾架",)),
    "toy chest": Word(("toy chest", "toy box"), ("玩具箱",)),
    "treadmill": Word(("treadmill",), ("跑步机",), "台"),
    "washing machine": Word(("washing machine",), ("洗衣机",), "台", has_front=True),
    "weight bench": Word(("weight bench",), ("卧推凳", "举重床"), "张"),
    "wine rack": Word(("wine rack",), ("酒架",), has_front=True),
}

ROOMS: dict[str, Word] = {
    "bathroom": Word(("bathroom",), ("卫生间", "浴室")),
    "bedroom": Word(("bedroom",), ("卧室",)),
    "dining room": Word(("dining room",), ("餐厅",)),
    "guest room": Word(("guest room",), ("客房",)),
    "hall": Word(("hall", "entrance hall"), ("门厅",)),
    "corridor": Word(("corridor",), ("走廊", "过道")),
    "gym": Word(("gym", "home gym"), ("健身房",)),
    "laundry room": Word(("laundry room",), ("洗衣房",)),
    "library": Word(("library",), ("图书室", "藏书室")),
    "nursery": Word(("nursery",), ("婴儿房",)),
    "pantry": Word(("pantry",), ("食品储藏室",)),
    "storage room": Word(("storage room", "storeroom"), ("储藏室", "杂物间")),
    "kitchen": Word(("kitchen",), ("厨房",)),
    "living room": Word(("living room",), ("客厅",)),
    "study": Word(("study",), ("书房",)),
}

COLORS: dict[str, Word] = {
    "beige": Word(("beige",), ("米色",)),
    "black": Word(("black",), ("黑色",)),
    "blue": Word(("blue",), ("蓝色",)),
    "brown": Word(("brown",), ("棕色", "褐色")),
    "grey": Word(("grey",), ("灰色",)),
    "green": Word(("green",), ("绿色",)),
    "orange": Word(("orange",), ("橙色",)),
    "pink": Word(("pink",), ("粉色",)),
    "purple": Word(("purple",), ("紫色",)),
    "red": Word(("red",), ("红色",)),
    "turquoise": Word(("turquoise",), ("青绿色",)),
    "white": Word(("white",), ("白色",)),
    "yellow": Word(("yellow",), ("黄色",)),
}

FRONTED = frozenset(name for name, word in THINGS.items() if word.has_front)
"""Things with a front, in front of which one can stand."""
HUNG = frozenset({"clock", "mirror", "picture", "towel rail"})
"""Things on walls: nobody stands next to them."""
