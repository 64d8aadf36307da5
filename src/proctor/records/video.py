"""The recorder `video`: an MP4 of what the agent sees, where it is on the map, and what it does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from proctor.agents.arrays import is_colour
from proctor.core.plain_text import plain
from proctor.core.types import Observation, Vector3
from proctor.exams.page import EpisodeMap, Page
from proctor.exams.results import EpisodeResult
from proctor.plots.figure import DARK, GREY, NO_FONT, PAPER, font_families
from proctor.plots.plan import Point
from proctor.records.episode_file import EpisodeFile, Subject
from proctor.records.mp4 import Mp4Writer

FPS = 10
HOLD_S = 1.5  # the last picture stays so long
MIN_HEIGHT_PX, MAX_HEIGHT_PX, MAX_WIDTH_PX = 240, 360, 960  # of the agent's picture: larger costs time
SIDE_SHARE = 0.8  # how wide the column with the map is, of the height beside it
MAX_COLUMN_SHARE = 0.6  # how much of that column further cameras may take
QUALITY = 25  # x264's constant rate factor: lower is better and larger
MAIN = ("rgb", "rgb_head")  # the picture that is shown large, if the agent has it
PATH, ROBOT, BUMP, GOAL = "#1c4fd8", "#1c4fd8", "#d62839", "#2b8a3e"
OBJECT = "#f08c00"
ROBOT_PX = 6
INSTRUCTION_LINES = 2
Rgb = NDArray[np.uint8]


class VideoFile(EpisodeFile):
    """Writes the video. A step lasts a tenth of a second."""

    suffix = ".mp4"

    def __init__(self, path: Path, subject: Subject) -> None:
        super().__init__(path, subject)
        self._page: type[Page] = resolve_name(subject.exam.page)
        self._film: _Film | None = None
        self._steps = 0
        self._action: Any = None

    def see(self, observation: Observation, state: Any) -> None:
        """Add a frame."""
        cameras = _cameras(observation)
        if self._film is None:
            self._film = _Film(self.path, self.subject, cameras, state)
        self._film.show(cameras, state)
        self._film.say(self._said(state), "bump" if getattr(state, "collision", False) else "")

    def step(self, action: Any, *, policy_s: float) -> None:
        """Take in what the next frame says."""
        del policy_s
        self._steps, self._action = self._steps + 1, action

    def _said(self, state: Any) -> str:
        if not self._steps:
            return "start"
        said = self._page.step_text(type(self.subject.exam), self._action, state)
        return f"{self._steps} · {said}"

    def end(self, result: EpisodeResult) -> None:
        """Say how it ended, for a moment."""
        if self._film is not None:
            verdict = self.subject.exam.verdict(self.subject.episode, result)
            self._film.say(verdict.sentence)
            self._film.hold()

    def close(self) -> None:
        """Complete the file; there is none if nothing was seen."""
        if self._film is not None:
            self._film.close()


def _cameras(observation: Observation) -> list[Rgb]:
    """Return the colour pictures that the agent sees, the main one first."""
    found = {name: value for name, value in observation.items() if is_colour(value)}
    names = sorted(found, key=lambda name: (name not in MAIN, name))
    return [found[name] for name in names]


class _Film:
    """The frames: cameras and map above the instruction and what is done. What stays is drawn once."""

    def __init__(self, path: Path, subject: Subject, cameras: Sequence[Rgb], state: Any) -> None:
        main_width, main_height = _main_size(cameras[0].shape[1::-1] if cameras else (4, 3))
        top_height = max(main_height, MIN_HEIGHT_PX)  # a panorama is less high
        scale, side_px = top_height / 480, _even(SIDE_SHARE * top_height)
        self._text_px, self._margin_px = max(12, round(18 * scale)), max(6, round(9 * scale))
        self._line_px, width = _even(1.4 * self._text_px), main_width + side_px
        font, text = _font_for(subject.instruction, self._text_px)
        lines = _wrapped(text, font, width - 2 * self._margin_px, INSTRUCTION_LINES)
        footer_px = _even((len(lines) + 1) * self._line_px + 2 * self._margin_px)
        side_boxes = _column([camera.shape[1::-1] for camera in cameras[1:]], main_width, top_height, side_px)
        main_box = _Box(0, (top_height - main_height) // 2, main_width, main_height)
        self._boxes = [main_box, *side_boxes] if cameras else []
        self._scalers = {box: _Scaler(box) for box in self._boxes}
        top = sum(box.height for box in side_boxes)
        map_box = _Box(main_width, top, side_px, top_height - top)
        page: type[Page] = resolve_name(subject.exam.page)
        self._map = _MapPanel(page.episode_map(subject.episode, state, width_px=side_px), map_box)
        size = width, top_height + footer_px
        self._writer = Mp4Writer(path, size, fps=FPS, preset="ultrafast", quality=QUALITY, threads=1)
        still = Image.new("RGB", size, PAPER)
        draw = ImageDraw.Draw(still)
        for index, line in enumerate(lines):
            at = self._margin_px, top_height + self._margin_px + index * self._line_px
            draw.text(at, line, fill=DARK, font=font)
        self._canvas = np.array(still)
        status_px = self._line_px + _even(self._margin_px)
        self._status_box = _Box(0, size[1] - status_px, width, status_px)

    def show(self, cameras: Sequence[Rgb], state: Any) -> None:
        """Put what the agent sees, and the map, into the next frame."""
        for camera, box in zip(cameras, self._boxes, strict=False):
            self._paste(self._scalers[box](camera), box)
        self._paste(self._map.after(state), self._map.box)

    def say(self, text: str, warning: str = "") -> None:
        """Write below what is going on, and add the frame."""
        font, text = _font_for(text, self._text_px)
        line = Image.new("RGB", (self._status_box.width, self._status_box.height), PAPER)
        draw = ImageDraw.Draw(line)
        draw.text((self._margin_px, 0), text, fill=GREY, font=font)
        if warning:
            right_px = self._margin_px + draw.textlength(f"{text}  ", font=font)
            draw.text((right_px, 0), warning, fill=BUMP, font=font)
        self._paste(line, self._status_box)
        self._writer.add(self._canvas)

    def hold(self) -> None:
        """Let the last frame stay for a while."""
        self._writer.add(self._canvas, after=round(HOLD_S * FPS))

    def _paste(self, picture: Rgb | Image.Image, box: _Box) -> None:
        self._canvas[box.top : box.top + box.height, box.left : box.left + box.width] = picture

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()


class _Scaler:
    """Brings pictures to the size of a box."""

    def __init__(self, box: _Box) -> None:
        self._box, self._reformatter = box, VideoReformatter()

    def __call__(self, picture: Rgb) -> Rgb:
        if picture.shape[:2] == (self._box.height, self._box.width):
            return picture
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        scaled = self._reformatter.reformat(frame, self._box.width, self._box.height)
        return np.asarray(scaled.to_ndarray(), np.uint8)


class _Box(NamedTuple):
    """A part of the frame, in pixels."""

    left: int
    top: int
    width: int
    height: int


class _MapPanel:
    """The map in its part of the frame, on which the path grows."""

    def __init__(self, episode_map: EpisodeMap, box: _Box) -> None:
        self._map = episode_map
        plan = episode_map.plan
        share = min(box.width / plan.image.width, box.height / plan.image.height, 1.0)
        size = max(1, int(share * plan.image.width)), max(1, int(share * plan.image.height))
        self._plan = plan._replace(
            image=plan.image.resize(size, Image.Resampling.LANCZOS),
            metres_per_pixel=plan.metres_per_pixel * plan.image.width / size[0],
        )
        left, top = box.left + (box.width - size[0]) // 2, box.top + (box.height - size[1]) // 2
        self.box = _Box(left, top, *size)
        if episode_map.goal is not None:
            radius_px = episode_map.goal_radius_m / self._plan.metres_per_pixel
            _draw_goal(ImageDraw.Draw(self._plan.image), self._pixel(episode_map.goal), radius_px)
        self._last: Point | None = None

    def after(self, state: Any) -> Image.Image:
        """Return the map as it is in a state that follows the last one."""
        place = getattr(state, self._map.place, None)
        if place is None:
            return self._plan.image
        at, draw = self._pixel(place), ImageDraw.Draw(self._plan.image)
        if self._last is not None:
            draw.line([self._last, at], fill=PATH, width=2)
        if getattr(state, "collision", False):
            _draw_disc(draw, at, 3, BUMP)
        self._last, moment = at, self._plan.image.copy()
        draw = ImageDraw.Draw(moment)
        object_at = getattr(state, self._map.object_place, None) if self._map.object_place else None
        if object_at is not None:
            _draw_disc(draw, self._pixel(object_at), 5, OBJECT, outline="white")
        is_robot = self._map.place == "position"  # a hand does not point where the robot does
        _draw_robot(draw, at, getattr(state, "yaw", None) if is_robot else None)
        return moment

    def _pixel(self, place: Any) -> Point:
        point = Vector3.of(place)
        return self._plan.pixel(point.x, point.y)


def _draw_goal(draw: ImageDraw.ImageDraw, at: Point, radius_px: float) -> None:
    _draw_disc(draw, at, 5, GOAL)
    if radius_px > 5:
        x, y = at
        draw.ellipse((x - radius_px, y - radius_px, x + radius_px, y + radius_px), outline=GOAL, width=2)


def _draw_robot(draw: ImageDraw.ImageDraw, at: Point, yaw: float | None) -> None:
    _draw_disc(draw, at, ROBOT_PX, ROBOT, outline="white")
    if yaw is not None:
        x, y = at
        angles = (yaw, yaw + 2.5, yaw - 2.5)
        corners = [
            (x + reach * math.cos(angle), y - reach * math.sin(angle))
            for angle, reach in zip(angles, (2.2 * ROBOT_PX, ROBOT_PX, ROBOT_PX), strict=True)
        ]
        draw.polygon(corners, fill=ROBOT)


def _draw_disc(
    draw: ImageDraw.ImageDraw, at: Point, radius_px: float, color: str, *, outline: str | None = None
) -> None:
    x, y = at
    box = (x - radius_px, y - radius_px, x + radius_px, y + radius_px)
    draw.ellipse(box, fill=color, outline=outline)


def _even(length_px: float) -> int:
    """Return the next even length below: films of this kind have no odd ones."""
    return max(2, 2 * int(length_px / 2))


def _main_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return how large the agent's picture is shown, with even sides."""
    width, height = size
    shown_px = min(max(height, MIN_HEIGHT_PX), MAX_HEIGHT_PX)
    scale = min(shown_px / height, MAX_WIDTH_PX / width)
    return _even(scale * width), _even(scale * height)


def _column(sizes: Sequence[tuple[int, int]], left: int, whole_px: int, side_px: int) -> list[_Box]:
    """Return where further pictures are shown: below each other, in the upper part beside the main one."""
    boxes, top = [], 0
    for width, height in sizes:
        tall_px = _even(side_px * height / width)
        if top + tall_px > MAX_COLUMN_SHARE * whole_px:
            break
        boxes.append(_Box(left, top, side_px, tall_px))
        top += tall_px
    return boxes


@cache
def _fonts(size_px: int) -> list[tuple[Any, ImageFont.FreeTypeFont]]:
    """Return the fonts of this machine, with what tells which letters each has."""
    files = [findfont(FontProperties(family=family)) for family in font_families()]
    return [(get_font(file), ImageFont.truetype(file, size_px)) for file in files]


def _font_for(text: str, size_px: int) -> tuple[ImageFont.FreeTypeFont, str]:
    """Return the font that has the letters of a text, and the text; if none has, that it is left out."""
    text = " ".join(plain(text).split())
    for letters, font in _fonts(size_px):
        if all(letters.get_char_index(ord(letter)) for letter in set(text)):
            return font, text
    return _fonts(size_px)[0][1], NO_FONT


def _wrapped(text: str, font: ImageFont.FreeTypeFont, wide_px: float, most: int) -> list[str]:
    """Break a text into lines: after a space, else between any two letters, as in Chinese."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < most:
        count = len(rest)
        while count > 1 and font.getlength(rest[:count].rstrip()) > wide_px:
            count = min(count - 1, int(count * wide_px / font.getlength(rest[:count])) + 1)
        if count < len(rest) and " " in rest[: count + 1]:
            count = rest[: count + 1].rindex(" ") + 1
        lines.append(rest[:count].rstrip())
        rest = rest[count:].lstrip()
    while rest and lines[-1] and font.getlength(f"{lines[-1]} …") > wide_px:
        lines[-1] = lines[-1][:-1].rstrip()
    return [*lines[:-1], f"{lines[-1]} …"] if rest else lines
