"""An episode of pick-and-place as one picture: what the head saw, and where the hand went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from msgspec import UNSET
from PIL import Image, ImageDraw

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.hand_views import PHASE_COLORS, Paths, draw_phase_line, draw_view
from proctor.exams.pick_place.moments import Moment, moments_of
from proctor.exams.pick_place.tabletop_views import shapes_of, side_of
from proctor.exams.pick_place.verdict import diagnose_pick_place
from proctor.exams.results import EpisodeResult
from proctor.plots.fonts import plain_font
from proctor.plots.frame import DARK, GREY, MARGIN_PX, LegendEntry, legend_block, text_block
from proctor.plots.marks import Point, draw_bump, draw_dashes, draw_goal
from proctor.plots.plan import PAPER
from proctor.report.key_frames import KeyFrames

WIDTH_PX, COLUMNS, GAP_PX = 1800, 3, 12
FRAME_PX = (WIDTH_PX - 2 * MARGIN_PX - (COLUMNS - 1) * GAP_PX) // COLUMNS
"""How wide a picture of the head is shown."""
TITLE_PX, LINE_PX, LABEL_PX, BAND_PX = 30, 20, 19, 36
VIEW_HEIGHT_PX = 560
NOTE_PX = 16
SOURCES = {
    "recorded": "The head's camera, recorded during the run.",
    "replayed": "The head's camera and, in the corner, the wrist's; drawn again from the recorded actions.",
    "none": "",
}
EMPTY = (232, 233, 230)


def film_strip(
    result: EpisodeResult, episode: PickAndPlaceEpisode | None, frames: KeyFrames, *, policy: str = ""
) -> Image.Image:
    """Draw an episode: pictures of the head with step, phase and time; below them the path of the hand.

    Args:
        result: What happened.
        episode: What was asked; None if the dataset is gone.
        frames: What the head saw.
        policy: Who did it.

    Raises:
        UserError: The run kept no paths of this episode.
    """
    record = result.pick_place
    if record is UNSET or not record.object_path or not result.trajectory:
        raise UserError(f"episode '{result.episode_id}' never began: there is nothing to draw")
    diagnosis = diagnose_pick_place(result, episode)
    side = side_of(record)
    shapes = shapes_of(episode, side)[0] if episode is not None else []
    moments = moments_of(result, record, diagnosis.step)
    paths = Paths(result, record, episode, side, shapes, moments)
    inner_px = WIDTH_PX - 2 * MARGIN_PX
    outcome = "success" if result.success else diagnosis.kind.replace("_", " ")
    told = " · ".join(filter(None, (result.episode_id, policy, outcome)))
    blocks = [
        text_block(result.instruction or result.episode_id, TITLE_PX, inner_px, most_lines=2),
        text_block(f"{told}: {diagnosis.sentence}", LINE_PX, inner_px, most_lines=2),
        _film(paths, frames),
        text_block(frames.note or SOURCES[frames.source], NOTE_PX, inner_px, most_lines=2),
        _views(paths),
        legend_block(_legend(paths), inner_px),
    ]
    sheet = Image.new("RGB", (WIDTH_PX, sum(block.height for block in blocks) + 2 * MARGIN_PX), PAPER)
    y = MARGIN_PX // 2
    for block in blocks:
        sheet.paste(block, (MARGIN_PX, y))
        y += block.height
    return sheet


def save_film_strip(
    result: EpisodeResult,
    episode: PickAndPlaceEpisode | None,
    frames: KeyFrames,
    path: Path,
    *,
    policy: str = "",
) -> None:
    """Write the picture of a finished episode as a PNG; its folder is made if needed.

    Raises:
        UserError: The run kept no paths of this episode.
    """
    image = film_strip(result, episode, frames, policy=policy)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = BytesIO()
    image.save(content, format="PNG")
    write_atomically(path, content.getvalue())


def _film(paths: Paths, frames: KeyFrames) -> Image.Image:
    """Return the pictures from left to right, in rows, each with a band below that says when it was."""
    pictures = {step: Image.open(BytesIO(content)) for step, content in frames.pictures}
    moments = [moment for moment in paths.moments if moment.step in pictures] if pictures else paths.moments
    ratio = next((image.height / image.width for image in pictures.values()), 0.75)
    high_px = round(FRAME_PX * ratio) if pictures else 0
    rows = -(-len(moments) // COLUMNS)
    block = Image.new("RGB", (WIDTH_PX - 2 * MARGIN_PX, rows * (high_px + BAND_PX + GAP_PX)), PAPER)
    for index, moment in enumerate(moments):
        left = (index % COLUMNS) * (FRAME_PX + GAP_PX)
        top = (index // COLUMNS) * (high_px + BAND_PX + GAP_PX)
        if moment.step in pictures:
            block.paste(
                pictures[moment.step].resize((FRAME_PX, high_px), Image.Resampling.LANCZOS), (left, top)
            )
        _band(ImageDraw.Draw(block), (left, top + high_px), moment, paths)
    return block


def _band(draw: ImageDraw.ImageDraw, at: tuple[int, int], moment: Moment, paths: Paths) -> None:
    left, top = at
    phase = paths.record.phases[moment.step]
    draw.rectangle((left, top, left + FRAME_PX - 1, top + BAND_PX - 1), fill=EMPTY)
    draw.rectangle((left, top, left + 9, top + BAND_PX - 1), fill=PHASE_COLORS[phase])
    middle, font = top + BAND_PX / 2, plain_font(LABEL_PX)
    label = moment.label.capitalize() or "…"
    draw.text((left + 20, middle), label, fill=DARK, font=font, anchor="lm", stroke_width=0.4)
    period_s = paths.episode.sim_params.control_period if paths.episode is not None else None
    parts = [f"step {moment.step}", f"phase {phase}"] + (
        [] if period_s is None else [f"{moment.step * period_s:.1f} s"]
    )
    draw.text(
        (left + FRAME_PX - 12, middle),
        "  ·  ".join(parts),
        fill=GREY,
        font=plain_font(LABEL_PX - 2),
        anchor="rm",
    )


def _views(paths: Paths) -> Image.Image:
    inner_px = WIDTH_PX - 2 * MARGIN_PX
    wide_px = (inner_px - GAP_PX) // 2
    block = Image.new("RGB", (inner_px, VIEW_HEIGHT_PX + BAND_PX), PAPER)
    draw, font = ImageDraw.Draw(block), plain_font(LABEL_PX)
    titles = ("From above: x to the right, y up", f"From the side: {paths.side.label}")
    for index, title in enumerate(titles):
        left = index * (wide_px + GAP_PX)
        draw.text((left, BAND_PX / 2), title, fill=DARK, font=font, anchor="lm")
        view = draw_view(paths, "side" if index else "top", (wide_px, VIEW_HEIGHT_PX))
        block.paste(view, (left, BAND_PX))
    return block


def _legend(paths: Paths) -> list[LegendEntry]:
    def line(phase: str, draw: ImageDraw.ImageDraw, at: Point, half: float) -> None:
        points = [(at[0] + half * share, at[1]) for share in (-1.0, 0.7)]
        draw_phase_line(draw, points, [phase, phase], half / 5)

    def dashes(draw: ImageDraw.ImageDraw, at: Point, half: float) -> None:
        draw_dashes(draw, [(at[0] + half * share, at[1]) for share in np.linspace(-1, 0.7, 30)], half / 7)

    used: Sequence[str] = [phase for phase in PHASE_COLORS if phase in paths.record.phases]
    entries = [LegendEntry(f"hand: {phase}", partial(line, phase)) for phase in used]
    entries.append(LegendEntry("object", dashes))
    if paths.record.target is not None:
        entries.append(LegendEntry("target", lambda draw, at, half: draw_goal(draw, at, half / 2)))
    bumps = len(paths.result.collision_steps)
    if bumps:
        entries.append(LegendEntry(f"bump ({bumps})", lambda draw, at, half: draw_bump(draw, at, half / 2)))
    return entries
