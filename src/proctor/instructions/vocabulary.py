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


THINGS: dict[str, Word] = {
    "armchair": Word(("armchair",), ("扶手椅", "单人沙发"), "把"),
    "bathtub": Word(("bathtub", "tub"), ("浴缸",)),
    "bed": Word(("bed",), ("床",), "张"),
    "bookshelf": Word(("bookshelf", "bookcase"), ("书架",)),
    "chair": Word(("chair",), ("椅子",), "把"),
    "coat rack": Word(("coat rack",), ("衣帽架", "挂衣架")),
    "coffee table": Word(("coffee table",), ("茶几",), "张"),
    "counter": Word(("kitchen counter", "counter"), ("橱柜", "操作台")),
    "desk": Word(("desk",), ("书桌",), "张"),
    "dining table": Word(("dining table",), ("餐桌",), "张"),
    "floor lamp": Word(("floor lamp", "standing lamp"), ("落地灯",), "盏"),
    "fridge": Word(("fridge", "refrigerator"), ("冰箱",), "台"),
    "front door": Word(("front door",), ("大门", "入户门"), "扇"),
    "mirror": Word(("mirror",), ("镜子",), "面"),
    "nightstand": Word(("nightstand", "bedside table"), ("床头柜",)),
    "office chair": Word(("office chair", "desk chair"), ("办公椅", "转椅"), "把"),
    "picture": Word(("picture", "painting"), ("挂画",), "幅"),
    "plant": Word(("plant", "potted plant"), ("盆栽", "绿植"), "盆"),
    "sideboard": Word(("sideboard",), ("边柜",)),
    "sink": Word(("sink",), ("水池",)),
    "sofa": Word(("sofa", "couch"), ("沙发",), "张"),
    "stove": Word(("stove", "cooker"), ("炉灶", "灶台")),
    "toilet": Word(("toilet",), ("马桶",)),
    "TV": Word(("TV", "television"), ("电视", "电视机"), "台"),
    "wardrobe": Word(("wardrobe", "closet"), ("衣柜",)),
}

ROOMS: dict[str, Word] = {
    "bathroom": Word(("bathroom",), ("卫生间", "浴室")),
    "bedroom": Word(("bedroom",), ("卧室",)),
    "dining room": Word(("dining room",), ("餐厅",)),
    "guest room": Word(("guest room",), ("客房",)),
    "hall": Word(("hall", "hallway"), ("门厅", "过厅")),
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

FRONTED = frozenset(
    {
        "armchair",
        "bathtub",
        "bookshelf",
        "coat rack",
        "counter",
        "desk",
        "fridge",
        "front door",
        "mirror",
        "picture",
        "sideboard",
        "sink",
        "sofa",
        "stove",
        "toilet",
        "TV",
        "wardrobe",
    }
)
"""Things with a front, in front of which one can stand."""
