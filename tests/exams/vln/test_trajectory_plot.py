"""Pictures of episodes: the way, the goal, the bumps, and the texts around them."""

import numpy as np
import pytest
from matplotlib import font_manager
from PIL import Image, ImageColor, ImageFont

from proctor.core.errors import UserError
from proctor.core.registry import suite_path
from proctor.core.types import Vector3
from proctor.exams.vln.baselines import ForwardPolicy
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.trajectory_plot import plot_trajectory, save_trajectory_png
from proctor.plots import figure, trajectory
from proctor.plots.figure import has_letters, new_figure, wrap_text
from proctor.plots.plan import draw_plan, grid_paper
from proctor.scenes.scene import Scene
from proctor.worlds.mock import MockEnv
from vln_evaluator.evaluators import VLNEvaluator

HOUSE = min((suite_path("houses-v1") / "scenes").glob("*.json"))
PAPER = grid_paper((-5, -5), (5, 5), width_px=500)
WHITE, GOAL, BUMP = (ImageColor.getrgb(color) for color in ("white", trajectory.GOAL, trajectory.BUMP))
WAY = [Vector3(x / 4, 0, 0) for x in range(9)]


def progress_color(share):
    return tuple(round(255 * value) for value in trajectory.PROGRESS(share)[:3])


def color_at(picture, x, y, plan=PAPER):
    column, row = plan.pixel(x, y)
    return np.array(picture.getpixel((int(column), int(row))), dtype=int)


def near(color, other):
    return np.abs(color - np.array(other)).max() < 40


def test_a_way_changes_its_colour_from_start_to_end():
    picture = plot_trajectory(PAPER, driven=WAY)
    assert near(color_at(picture, 0.6, 0), progress_color(0.3))
    assert near(color_at(picture, 1.6, 0), progress_color(0.8))
    assert near(color_at(picture, 2.0, 0), progress_color(1.0))
    assert near(color_at(picture, 0, 0), WHITE)  # the ring of the start
    assert near(color_at(picture, 0.09, 0), progress_color(0.0))


def test_the_goal_has_its_star_and_its_circle():
    picture = plot_trajectory(PAPER, driven=WAY, goal=Vector3(-2, -2, 0), success_threshold=1.0)
    assert near(color_at(picture, -2, -2), GOAL)
    assert near(color_at(picture, -2, -1.01), GOAL)
    plain = color_at(plot_trajectory(PAPER, driven=WAY), -2.5, -2.45)
    inside = color_at(picture, -2.5, -2.45)
    assert inside[0] < plain[0] - 15


def test_bumps_are_crosses_where_they_happened():
    picture = plot_trajectory(PAPER, driven=WAY, collisions=[4, 99])
    assert near(color_at(picture, 1.0, 0), BUMP)
    assert not near(color_at(picture, 1.5, 0), BUMP)


def test_the_reference_is_dashed():
    picture = plot_trajectory(PAPER, driven=WAY, reference=[Vector3(-4, 3, 0), Vector3(4, 3, 0)])
    dark = [color_at(picture, x, 3).sum() < 350 for x in np.arange(-3.9, 3.9, 0.05)]
    assert 0.3 < np.mean(dark) < 0.7
    assert np.abs(np.diff(np.array(dark, dtype=int))).sum() > 10


def test_the_plan_is_not_drawn_upon():
    plan = draw_plan(Scene.load(HOUSE))
    before = plan.image.tobytes()
    plot_trajectory(plan, driven=WAY)
    plot_trajectory(plan, driven=[Vector3(500, 0, 0)])
    assert plan.image.tobytes() == before


def test_title_and_caption_take_their_room():
    bare = plot_trajectory(PAPER, driven=WAY)
    both = plot_trajectory(PAPER, driven=WAY, title="a title", caption="a caption " * 40)
    assert bare.height < both.height
    assert bare.width == both.width == 500
    endless = plot_trajectory(PAPER, driven=WAY, caption="word " * 10_000)
    assert endless.height < bare.height + 200


@pytest.mark.parametrize(
    "driven",
    [
        [Vector3(0, 0, 0)],
        [Vector3(1, 1, 0)] * 5,
        [Vector3(9999, 9999, 0), Vector3(-9999, -9999, 3)],
        [Vector3(0, y / 10, 0) for y in range(3000)],
    ],
    ids=["a point", "standing", "huge", "a line"],
)
@pytest.mark.parametrize(
    "scene", [None, HOUSE, HOUSE.parent / "missing.json"], ids=["none", "house", "missing"]
)
def test_any_way_can_be_drawn_on_anything(driven, scene):
    picture = plot_trajectory(scene, driven=driven, reference=driven[:1], goal=driven[-1], width_px=240)
    assert picture.width == 240
    assert 100 < picture.height < 1200
    colors = np.asarray(picture).reshape(-1, 3).astype(int)
    start = np.abs(colors - progress_color(0.0)).max(axis=1) < 40
    assert start.sum() > 20


def test_a_way_out_of_the_house_shows_both():
    picture = plot_trajectory(HOUSE, driven=[Vector3(1, 4, 0), Vector3(40, 4, 0)], width_px=600)
    assert (np.asarray(picture).sum(axis=2) < 200).sum() > 300  # the dark walls of the house, now small


def test_no_point_at_all_is_refused():
    with pytest.raises(UserError, match="none"):
        plot_trajectory(PAPER, driven=[])


def test_a_finished_episode_becomes_a_png(tmp_path):
    episode = Episode(
        episode_id="up/and\\away",
        goal_position=Vector3(2, 0, 0),
        instruction="Go straight.\nThen stop.",
        max_steps=4,
        success_threshold=0.5,
    )
    with VLNEvaluator(MockEnv(), ForwardPolicy()) as evaluator:
        result = evaluator.evaluate_episode(episode)
    save_trajectory_png(result, episode, tmp_path / "deep" / "way.png", width_px=300)
    with Image.open(tmp_path / "deep" / "way.png") as picture:
        assert picture.format == "PNG"
        assert picture.width == 300


def test_a_withheld_goal_is_not_drawn(tmp_path):
    episode = Episode(goal_position=Vector3(2, 0, 0), max_steps=2)
    with VLNEvaluator(MockEnv(), ForwardPolicy()) as evaluator:
        result = evaluator.evaluate_episode(episode)
    save_trajectory_png(result, Episode(goal_position=None, max_steps=2), tmp_path / "way.png")
    colors = np.asarray(Image.open(tmp_path / "way.png").convert("RGB")).reshape(-1, 3).astype(int)
    assert not (np.abs(colors - np.array(GOAL)).max(axis=1) < 10).any()


def test_a_text_without_a_font_is_left_out_and_that_is_said(monkeypatch):
    monkeypatch.setattr(figure, "font_families", lambda: ["DejaVu Sans"])
    assert has_letters("Go to the sofa.\n")
    assert not has_letters("走到沙发")
    bare = plot_trajectory(PAPER, driven=WAY)
    assert plot_trajectory(PAPER, driven=WAY, caption="走到沙发旁边").height > bare.height


def test_a_font_of_the_machine_is_found_for_letters_that_matplotlib_lacks(tmp_path, monkeypatch):
    """Pillow's own font stands for one with Chinese letters."""
    (tmp_path / "simhei.ttf").write_bytes(b"this is no font")
    (tmp_path / "NotoSansCJK-Regular.ttc").write_bytes(ImageFont.load_default(10).font_bytes)
    monkeypatch.setattr(figure, "findSystemFonts", lambda: [str(file) for file in tmp_path.iterdir()])
    monkeypatch.setattr(font_manager.fontManager, "ttflist", list(font_manager.fontManager.ttflist))
    figure.font_families.cache_clear()
    try:
        assert figure.font_families() == ["DejaVu Sans", "Aileron"]
        found = font_manager.findfont("Aileron")
    finally:
        figure.font_families.cache_clear()
    assert found == str(tmp_path / "NotoSansCJK-Regular.ttc")


@pytest.mark.parametrize(
    "text", ["a few short words", "ԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀ", "Donaudampfschifffahrt " * 3, " ", "a\n\nb"]
)
@pytest.mark.parametrize("width_px", [30, 60, 500])
def test_wrapped_lines_fit_and_lose_nothing(text, width_px):
    written = new_figure(100, 100).text(0, 0, text, fontsize=12)
    wrap_text(written, width_px, 100)
    assert "".join(written.get_text().split()) == "".join(text.split())
    assert written.get_window_extent().width <= width_px


def test_words_are_kept_whole_where_they_fit():
    written = new_figure(100, 100).text(0, 0, "aaa bbb", fontsize=12)
    width_px = written.get_window_extent().width
    written.set_text("aaa bbb ccc")
    wrap_text(written, width_px, 5)
    assert written.get_text() == "aaa bbb\nccc"


@pytest.mark.parametrize("caption", ["pay $5_ and \\$x^{ then", "a\u3000wide blank", "a\x07bell", "😀"])
def test_signs_that_matplotlib_minds_in_a_caption_are_letters(caption):
    bare = plot_trajectory(PAPER, driven=WAY)
    assert plot_trajectory(PAPER, driven=WAY, title=caption, caption=caption).height > bare.height


def test_the_name_of_a_room_is_readable_on_a_path_that_crosses_it():
    plan = draw_plan(Scene.load(HOUSE), names=False)
    room = plan.rooms[0]
    across = [Vector3(room.x + dx / 10, room.y, 0) for dx in range(-15, 16)]
    nameless = plan._replace(rooms=())
    half_x, half_y = 0.4 * room.height_m * len(room.text) / 2, room.height_m / 2
    corners = plan.pixel(room.x - half_x, room.y + half_y), plan.pixel(room.x + half_x, room.y - half_y)
    box = tuple(round(value) for corner in corners for value in corner)
    with_name, without = (
        np.asarray(plot_trajectory(each, driven=across).crop(box), dtype=int) for each in (plan, nameless)
    )
    assert (np.abs(with_name - without).sum(axis=2) > 60).mean() > 0.2


def test_the_end_is_seen_on_bumps_and_on_the_start():
    where = [Vector3(0, 0, 0)] * 3
    picture = plot_trajectory(PAPER, driven=where, collisions=[1, 2])
    left, upper = (round(value) for value in PAPER.pixel(0, 0))
    ring = [picture.getpixel((left + dx, upper)) for dx in range(5, 14)]
    assert any(near(color, progress_color(1.0)) for color in ring)
    assert near(picture.getpixel((left, upper)), BUMP)
