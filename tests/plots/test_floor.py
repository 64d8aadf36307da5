"""Plans and maps with axes, a legend and names, read back as a viewer would."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.plots import floor
from proctor.plots.floor import draw_place, map_plan, plot_place
from proctor.plots.plan import ObjectName, RoomName, grid_paper, object_names
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject

ROBOT = standard_robot()


def names_in(figure):
    return [text for text in figure.axes[0].texts if text.get_text()]


def box(name, at, size, **more):
    return SceneObject(name=name, translate=at, parts=[Part(shape="box", size=size)], **more)


def test_a_map_has_axes_in_metres_and_a_legend_of_what_is_in_it():
    occupied = np.zeros((60, 80), dtype=bool)
    occupied[:, :4] = occupied[20:30, 30:40] = True
    unknown = np.zeros_like(occupied)
    unknown[50:, 60:] = True
    grid = GridMap(occupied, resolution_m=0.1, origin_world=(-3.0, 2.0), unknown=unknown)
    plan, legend = map_plan(grid, ROBOT.radius_m)
    figure = plot_place(plan, Pose2(3.0, 4.0, 0.0), ROBOT, legend=legend)
    (axes,) = figure.axes
    assert (axes.get_xlim(), axes.get_ylim()) == ((-3.0, 5.0), (2.0, 8.0))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (m)", "y (m)")
    assert len(axes.get_xticks()) >= 8
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words[0] == f"robot, {100 * ROBOT.radius_m:.0f} cm radius"
    assert {"free", "occupied", "unknown"} < set(words)
    assert "outside" not in words
    for (x, y), color in (
        ((0.55, 4.55), floor.OCCUPIED),
        ((4.55, 7.55), floor.UNKNOWN),
        ((3.05, 4.05), floor.FREE),
        ((1.05, 4.55), floor.TOO_CLOSE),
    ):
        column, row = plan.pixel(x, y)
        assert np.allclose(
            np.array(plan.image.getpixel((int(column), int(row)))) / 255, to_rgb(color), atol=0.01
        )


def test_names_stand_beside_the_robot_and_each_other_and_the_largest_object_has_one():
    plan = grid_paper((0, 0), (10, 8))._replace(rooms=(RoomName("kitchen", 5.0, 4.0, 0.2),))
    objects = [ObjectName("stool", 2.1, 2.1, (0.6, 0.6)), ObjectName("table", 2.0, 2.0, (2.0, 1.0))]
    objects += [ObjectName("salt", 8.0, 2.0, (0.02, 0.02))]
    figure = plot_place(plan, Pose2(5.0, 4.0, 1.0), ROBOT, objects=objects)
    axes, names = figure.axes[0], names_in(figure)
    assert [name.get_text() for name in names] == ["kitchen", "table", "stool"]  # on salt it does not fit
    boxes = [name.get_window_extent() for name in names]
    assert not any(one.overlaps(other) for one in boxes for other in boxes if one is not other)
    (robot,) = [patch for patch in axes.patches if type(patch).__name__ == "Circle"]
    assert not boxes[0].overlaps(robot.get_window_extent())


def test_axes_far_from_the_origin_have_plain_numbers():
    plan = grid_paper((500_000, 5_400_000), (500_010, 5_400_008))
    figure = plot_place(plan, Pose2(500_005.0, 5_400_004.0, 0.0), ROBOT)
    figure.canvas.draw()
    (axes,) = figure.axes
    assert "5400004.0" in {label.get_text() for label in axes.get_yticklabels()}


@pytest.mark.parametrize("at", [(100.0, 3.0), (-500.0, 3.0)])
def test_a_robot_beyond_the_plan_is_shown(at):
    plan = grid_paper((0, 0), (10, 8))
    axes = plot_place(plan, Pose2(*at, 0.0), ROBOT).axes[0]
    assert axes.get_xlim()[0] < at[0] < axes.get_xlim()[1]
    assert max(draw_place(plan, Pose2(*at, 0.0), ROBOT).size) < 1700


def test_objects_on_the_floor_have_names_but_not_the_house_nor_a_hundred_of_one_kind():
    objects = [
        box("Chair_01_002", (1, 1, 0.4), (0.5, 0.5, 0.8)),
        box("b", (2, 1, 0.4), (0.5, 0.5, 0.8), category="bed"),
        box("lamp", (1, 1, 2.0), (0.5, 0.5, 0.2)),
        box("rug", (1, 1, 0.0), (2.0, 2.0, 0.02)),
        box("a", (1, 3, 1.3), (4.0, 0.15, 2.6)),
        box("house", (5, 5, 1.5), (20.0, 20.0, 3.0)),
        box("arena", (5, 5, 0.2), (8.0, 7.0, 0.5)),
        *(box(f"pole_{k}", (k, 9, 0.5), (0.3, 0.3, 1.0)) for k in range(100)),
    ]
    found = object_names(Scene(SceneConfig(scene_name="s", objects=objects)))
    assert [name.text for name in found] == ["Chair", "bed"]
    assert (found[0].x, found[0].y, *found[0].size) == pytest.approx((1, 1, 0.5, 0.5))
