"""Videos of episodes, decoded again and looked at."""

import sys
from pkgutil import resolve_name
from types import SimpleNamespace

import av
import numpy as np
import pytest

from proctor import cli
from proctor.core.registry import dataset_path
from proctor.core.types import Vector3
from proctor.exams.datasets import load_dataset
from proctor.exams.driving import DrivingState
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.records import video
from proctor.records.episode_file import Subject
from proctor.records.mp4 import Mp4Writer
from proctor.records.video import FPS, HOLD_S, VideoFile


def subject(text="Go to the red door."):
    given = {"episode_id": "e", "scene_id": "s", "goal_position": Vector3(2.0, 1.5, 0.0)}
    return Subject(VlnExam(), Episode(instruction=text, **given), text)


def state(x, y=0.0, *, collision=False):
    return DrivingState(position=Vector3(x, y, 0.0), yaw=0.0, collision=collision)


def film(path, states, *, cameras=None, size=(160, 120), of=None):
    """Record an episode of grey pictures that grow lighter, and return the decoded frames."""
    file = VideoFile(path, of or subject())
    for step, each in enumerate(states):
        shade = np.full((size[1], size[0], 3), 10 + 8 * step, np.uint8)
        if step:
            file.step(1, policy_s=0.1)
        file.see({"rgb": shade} if cameras is None else cameras, each)
    file.close()
    return decoded(path)


def decoded(path):
    with av.open(str(path)) as stream:
        (track,) = stream.streams.video
        assert (track.codec_context.name, track.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert track.base_rate == FPS
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in stream.decode(track)]


def test_each_step_is_a_frame_with_what_the_agent_saw(tmp_path):
    frames = film(tmp_path / "a.mp4", [state(0.1 * step) for step in range(12)])
    assert len(frames) == 12
    shades = [frame[20:220, 20:300].mean() for frame in frames]  # shown twice as large
    assert shades == pytest.approx([10 + 8 * step for step in range(12)], abs=2.5)


def test_the_path_grows_on_the_map_where_the_robot_is(tmp_path):
    frames = film(tmp_path / "a.mp4", [state(0.25 * step) for step in range(9)])
    maps = [frame[:240, 320:] for frame in frames]
    blue = [(each[..., 2] - each[..., 0] > 60) & (each[..., 2] > 120) for each in maps]
    assert [where.sum() for where in blue] == sorted(where.sum() for where in blue)
    columns = [np.flatnonzero(where.any(axis=0)) for where in blue]
    starts, tips = [each.min() for each in columns], [each.max() for each in columns]
    assert np.ptp(starts[1:]) <= 2  # the path begins where it began
    steps = np.diff(tips)
    assert (steps >= 3).all()
    assert np.ptp(steps) <= 2
    green = (maps[0][..., 1] - maps[0][..., 0] > 40) & (maps[0][..., 1] - maps[0][..., 2] > 40)
    goal_y, goal_x = np.argwhere(green).mean(axis=0)
    assert goal_x == pytest.approx(tips[-1] - tips[0] + starts[0] + 9, abs=6)  # as far ahead, and to the left
    assert goal_y < np.argwhere(blue[0]).mean(axis=0)[0] - 20


def test_a_bump_stays_on_the_map_and_is_said_once(tmp_path):
    states = [state(0), state(0.2), state(0.4, collision=True), state(0.4, 0.6), state(0.4, 1.0)]
    frames = film(tmp_path / "a.mp4", states)
    red = [(each[..., 0] - each[..., 1] > 60) & (each[..., 0] - each[..., 2] > 60) for each in frames]
    on_map = [where[:240].sum() > 4 for where in red]
    below = [where[240:].sum() > 4 for where in red]
    assert on_map[:2] == [False, False]
    assert on_map[-1]
    assert below == [False, False, True, False, False]


def test_the_end_is_said_and_held(tmp_path, monkeypatch):
    verdict = SimpleNamespace(sentence="Stopped 0.1 m from the goal.")
    monkeypatch.setattr(VlnExam, "verdict", lambda *_: verdict)
    file = VideoFile(tmp_path / "a.mp4", subject())
    picture = np.zeros((120, 160, 3), np.uint8)
    file.see({"rgb": picture}, state(0))
    file.step(0, policy_s=0.1)
    file.see({"rgb": picture}, state(0))
    file.end(None)
    file.close()
    frames = decoded(tmp_path / "a.mp4")
    assert len(frames) == 2 + 2
    with av.open(str(tmp_path / "a.mp4")) as stream:
        assert stream.duration / av.time_base == pytest.approx(0.2 + HOLD_S + 0.1, abs=0.11)
    footers = [frame[240:] for frame in frames]
    assert np.abs(footers[0] - footers[1]).max() > 60  # "start", then "1 · STOP"
    assert np.abs(footers[1] - footers[2]).max() > 60
    assert np.abs(footers[2] - footers[-1]).max() < 30


def test_other_cameras_stand_beside_the_main_one(tmp_path):
    cameras = {
        "rgb_arm": np.full((90, 120, 3), (0, 200, 0), np.uint8),
        "rgb_head": np.full((240, 320, 3), (200, 0, 0), np.uint8),
        "depth_head": np.zeros((240, 320), np.uint16),
    }
    (frame,) = film(tmp_path / "a.mp4", [state(0)], cameras=cameras)
    assert frame[120, 160] == pytest.approx([200, 0, 0], abs=12)
    assert frame[60, 320 + 90] == pytest.approx([0, 200, 0], abs=12)
    assert frame[230, 330].min() > 200  # the map below


@pytest.mark.parametrize("size", [(2, 2), (33, 47), (640, 480), (101, 3000), (3000, 101)])
def test_pictures_of_any_size_are_shown(tmp_path, size):
    (frame, _) = film(tmp_path / "a.mp4", [state(0), state(0.1)], size=size)
    height, width = frame.shape[:2]
    assert height % 2 == width % 2 == 0
    assert 280 < height <= 900
    assert width <= 2100


@pytest.mark.parametrize("observation", [{}, {"depth": np.zeros((8, 8), np.uint16)}])
def test_an_agent_that_sees_nothing_is_followed_on_the_map(tmp_path, observation):
    frames = film(tmp_path / "a.mp4", [state(0), state(1)], cameras=observation)
    assert len(frames) == 2
    assert np.abs(frames[0] - frames[1]).max() > 60


def test_an_env_that_does_not_say_where_the_robot_is_is_filmed_without(tmp_path):
    assert len(film(tmp_path / "a.mp4", [None, SimpleNamespace(), state(0)])) == 3


def test_the_camera_may_change_its_size_and_be_gone_for_a_while(tmp_path):
    file = VideoFile(tmp_path / "a.mp4", subject())
    for size in ((120, 160), (60, 80), None, (121, 161)):
        shown = {} if size is None else {"rgb": np.zeros((*size, 3), np.uint8)}
        file.see(shown, state(0))
    file.close()
    assert len(decoded(tmp_path / "a.mp4")) == 4


def test_an_episode_that_showed_nothing_has_no_video(tmp_path):
    VideoFile(tmp_path / "a.mp4", subject()).close()
    assert not (tmp_path / "a.mp4").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "Walk past the sofa and stop by the lamp. " * 40,
        "longerthanthepicture" * 40,
        "走到红色的门前停下。" * 20,
        "a\nb\tc \x1b[31mred\x00",
        "\U0010ffff",
    ],
)
def test_any_instruction_fits(tmp_path, text):
    (frame,) = film(tmp_path / "a.mp4", [state(0)], of=subject(text))
    assert frame.shape[0] < 330
    assert frame[240:, :2].min() > 200  # nothing runs out of the picture
    assert frame[240:, -2:].min() > 200


def test_lines_break_between_words_and_say_when_something_is_left_out():
    font, text = video._font_for("one two three four five six", 16)
    wide_px = font.getlength("one two three ")
    assert [line.strip() for line in video._wrapped(text, font, wide_px, 3)] == [
        "one two three",
        "four five six",
    ]
    (line,) = video._wrapped(text, font, wide_px, 1)
    assert line.startswith("one two")
    assert line.endswith(" …")
    assert font.getlength(line) <= wide_px


@pytest.mark.parametrize("suite", ["houses-v1", "tabletop-v1"])
def test_the_map_shows_the_plan_of_a_house_and_the_table(suite):
    dataset = load_dataset(dataset_path(suite))
    episode, page = dataset.episodes[0], resolve_name(dataset.exam.page)
    first = {
        "houses-v1": state(0),
        "tabletop-v1": SimpleNamespace(
            ee_position=(0.0, -0.4, 0.9), object_position=(0.0, -0.6, 0.8), target_position=(0.2, -0.6, 0.8)
        ),
    }[suite]
    shown = page.episode_map(episode, first, width_px=300)
    assert np.asarray(shown.plan.image).std() > 20  # squared paper has 4
    assert shown.goal is not None


def test_a_machine_without_the_encoder_of_h264_writes_another(tmp_path, monkeypatch):
    monkeypatch.setattr(av, "codecs_available", av.codecs_available - {"libx264"})
    with Mp4Writer(tmp_path / "a.mp4", (64, 48), fps=10) as writer:
        writer.add(np.zeros((48, 64, 3), np.uint8))
    with av.open(str(tmp_path / "a.mp4")) as stream:
        assert stream.streams.video[0].codec_context.name == "mpeg4"


def test_without_pyav_the_command_names_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.delitem(sys.modules, "proctor.records.mp4")
    monkeypatch.delitem(sys.modules, "proctor.records.video")
    words = ["run", "--suite", "houses-v1", "--policy", "forward", "--record", "video"]
    assert cli.main([*words, "--out", str(tmp_path / "run")]) == 2
    assert "pip install 'proctor-eval[video]'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()
