"""A drive as a picture and as a film, read back as a viewer would."""

import av
import msgspec
import numpy as np
import pytest
from drives import made_up_drive
from PIL import Image

from proctor.navigation.skill.drive import DriveLog, view_of
from proctor.plots.plan import Plan
from proctor.report import drive_plot, drive_video
from proctor.report.drive_plot import draw_drive, plot_drive, save_plot
from proctor.report.drive_video import FPS, HOLD_S, frames_of, save_video

FAILED = {
    "status": "failed",
    "message": "Navigation failed: timeout after 60 s",
    "reason": "timeout",
    "final_distance": 1.2,
    "elapsed_time": 60.0,
}


@pytest.fixture(scope="module")
def drive():
    return made_up_drive(seen=[(6.0, 9.0), (6.05, 9.0)])


@pytest.fixture(scope="module")
def short(drive):
    """The first three seconds."""
    log = drive.log
    parts = {name: getattr(log, name)[:181] for name in log.__struct_fields__}
    return msgspec.structs.replace(drive, log=DriveLog(**parts))


def nowhere(drive):
    return msgspec.structs.replace(drive, result=FAILED, path=None, trajectory=None, log=DriveLog.of([]))


def words_of(figure):
    texts = [text.get_text() for text in figure.texts]
    return texts + [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_the_plot_is_a_picture_with_equal_axes_and_all_that_was_asked_for(drive, tmp_path):
    save_plot(drive, tmp_path / "drive.png")
    with Image.open(tmp_path / "drive.png") as picture:
        assert picture.width == 1600
    assert [file.name for file in tmp_path.iterdir()] == ["drive.png"]
    figure = plot_drive(drive)
    floor, going, turning = figure.axes
    (bar,) = floor.child_axes
    assert floor.get_aspect() == 1
    box = floor.get_window_extent()
    view = view_of(drive, flattest=0.45, tallest=0.85)
    assert box.height / box.width == pytest.approx(view.height_m / view.width_m, rel=1e-3)
    words = words_of(figure)
    assert {"start", "goal", "driven", "raw path", "occupied", "seen on the way"} <= set(words)
    assert any("planner grid" in word and "planned" in word for word in words)
    assert bar.get_ylabel() == "planned speed (m/s)"
    speeds = floor.collections[1]
    assert speeds.get_clim() == (0, drive.dynamics.v_max)
    assert speeds.get_array().max() == pytest.approx(1.0, abs=0.01)
    measured = going.lines[-2].get_ydata()
    assert measured == pytest.approx(drive.log.velocities[:, 0])
    assert turning.get_xlabel() == "time (s)"


def test_nothing_is_written_over_what_the_plot_tells(drive):
    figure = plot_drive(drive)
    figure.canvas.draw()
    legend = figure.axes[0].get_legend().get_window_extent()
    boxes = [axes.get_window_extent() for axes in figure.axes]
    assert not any(legend.overlaps(box) for box in boxes)
    assert not any(text.get_window_extent().overlaps(box) for text in figure.texts for box in boxes)
    assert all(text.get_window_extent().x1 < figure.bbox.x1 for text in figure.texts)


def test_a_drive_that_never_began_is_drawn_and_filmed_with_its_reason(drive, tmp_path):
    failed = nowhere(drive)
    assert FAILED["message"] in words_of(plot_drive(failed))
    save_plot(failed, tmp_path / "drive.png")
    save_video(failed, tmp_path / "drive.mp4")
    assert (tmp_path / "drive.mp4").stat().st_size > 1000


def test_a_film_runs_at_real_speed_with_even_sides(short, tmp_path):
    save_video(short, tmp_path / "drive.mp4")
    assert [file.name for file in tmp_path.iterdir()] == ["drive.mp4"]
    with av.open(str(tmp_path / "drive.mp4")) as film:
        (stream,) = film.streams
        assert stream.codec_context.name in ("h264", "mpeg4")
        assert stream.average_rate == FPS
        assert (stream.width % 2, stream.height % 2) == (0, 0)
        count = sum(1 for _ in film.decode(stream))
    assert count / FPS == pytest.approx(short.log.times_s[-1] + HOLD_S, abs=0.1)


def drive_view(drive):
    return view_of(drive, flattest=drive_plot.FLATTEST, tallest=drive_plot.TALLEST)


def floor_of(drive):
    """Return where a place is in a film's pictures, how many pixels are a metre, and where the floor ends."""
    parts = draw_drive(drive)
    parts.figure.set_dpi(drive_video.DPI)
    floor, height_px = parts.floor, int(parts.figure.bbox.height)

    def pixel(x, y):
        right, up = floor.transData.transform((x, y))
        return round(right), round(height_px - up)

    return pixel, floor.bbox.width / np.ptp(floor.get_xlim()), round(height_px - floor.bbox.y0)


def test_the_robot_is_drawn_where_it_is_and_leaves_a_line(short):
    drive = short
    pixel, pixels_per_m, lower_px = floor_of(short)
    frames = list(frames_of(drive))
    index = 60
    tick = int(np.searchsorted(drive.log.times_s, index / FPS))
    radius_px = drive.radius_m * pixels_per_m
    changed = np.abs(frames[index].astype(int) - frames[0].astype(int)).sum(axis=2) > 60
    upper_px = pixel(0, drive_view(drive).high[1])[1]
    changed = changed[:lower_px]
    changed[:upper_px] = False  # the title
    x, y = pixel(*drive.log.poses[tick, :2])
    rows, columns = np.nonzero(changed)
    assert changed[y - 3 : y + 3, x - 3 : x + 3].any()
    reach = np.hypot(columns - x, rows - y) <= radius_px + 3
    way = np.array([pixel(*pose[:2]) for pose in drive.log.poses[: tick + 1]])
    on_way = np.hypot(columns[:, None] - way[:, 0], rows[:, None] - way[:, 1]).min(axis=1) <= radius_px + 3
    assert (reach | on_way).all()
    ahead_x, ahead_y = pixel(*drive.log.poses[-1, :2])
    assert not changed[ahead_y - 3 : ahead_y + 3, ahead_x - 3 : ahead_x + 3].any()
    passed_x, passed_y = way[tick // 2]
    assert frames[-1][passed_y - 2 : passed_y + 3, passed_x - 2 : passed_x + 3, :3].min() < 60


def test_a_backdrop_is_put_where_it_belongs(drive):
    view = drive_view(drive)
    low, scale = (view.low[0] - 1.0, view.low[1] - 2.0), 0.02
    image = Image.new("RGB", (1000, 1000), (200, 220, 240))
    at = (view.low[0] + 1.0, view.low[1] + 0.5)
    column, row = round((at[0] - low[0]) / scale), 1000 - round((at[1] - low[1]) / scale)
    image.paste((255, 0, 0), (column - 5, row - 5, column + 5, row + 5))
    frame = next(frames_of(drive, Plan(image, low, scale)))
    found = np.argwhere((frame[..., :3] == (255, 0, 0)).all(axis=2)).mean(axis=0)
    pixel, _, _ = floor_of(drive)
    assert found[::-1] == pytest.approx(pixel(*at), abs=2)


def test_a_film_ends_with_what_became_of_the_drive(short):
    frames = list(frames_of(short))
    upper_px = floor_of(short)[0](0, drive_view(short).high[1])[1]
    green = np.abs(frames[-1][:upper_px, :, :3].astype(int) - (10, 122, 76)).max(axis=2) < 20
    assert green.sum() > 100
    assert (frames[-1] == frames[-2]).all()


def test_a_film_that_breaks_off_leaves_nothing_behind(drive, tmp_path, monkeypatch):
    def broken(*_):
        noise = np.random.default_rng(0).integers(0, 255, (200, 64, 64, 4), dtype=np.uint8)
        yield from noise
        raise OSError("no space left")

    monkeypatch.setattr(drive_video, "frames_of", broken)
    (tmp_path / "drive.mp4").write_bytes(b"before")
    with pytest.raises(OSError, match="no space left"):
        save_video(drive, tmp_path / "drive.mp4")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"before"]
