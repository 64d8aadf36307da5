"""What is kept of a drive: speeds, errors, the document, the part of the world that is shown."""

import json
import math

import msgspec
import numpy as np
import pytest
from drives import SUCCEEDED, made_up_drive

from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.navigation.skill.drive import AROUND_M, Drive, DriveLog, view_of


def log_of(targets, *, poses=None, dt=0.1):
    rows = []
    for index, target in enumerate(targets):
        pose = target if poses is None else poses[index]
        rows.append([5.0 + index * dt, *pose, 0, 0, 0, *target, 0, 0, 0])
    return DriveLog.of(rows)


def test_reference_speeds_are_those_of_the_targets():
    ahead = log_of([(0.05 * i, 0.0, 0.0) for i in range(5)])
    assert ahead.reference_speeds == pytest.approx(np.tile([0.5, 0.0], (5, 1)))
    backwards = log_of([(0.0, -0.02 * i, math.pi / 2) for i in range(5)])
    assert backwards.reference_speeds[:, 0] == pytest.approx(-0.2)
    turning = log_of([(0.0, 0.0, 3.1 + 0.05 * i) for i in range(5)])
    wrapped = log_of([(0.0, 0.0, math.remainder(3.1 + 0.05 * i, math.tau)) for i in range(5)])
    assert turning.reference_speeds[:, 1] == pytest.approx(0.5)
    assert wrapped.reference_speeds[:, 1] == pytest.approx(0.5)


def test_a_jump_to_another_trajectory_is_no_speed():
    nan = math.nan
    log = log_of([(nan, nan, nan), (0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (2.0, 0.0, 0.0), (2.1, 0.0, 0.0)])
    speeds = log.reference_speeds[:, 0]
    assert np.isnan(speeds[[0, 1, 3]]).all()
    assert speeds[[2, 4]] == pytest.approx(1.0)


def test_the_cross_track_error_is_to_the_left_and_only_where_there_is_a_target():
    targets = [(1.0, 1.0, math.pi / 2), (1.0, 2.0, math.pi / 2), (math.nan, math.nan, math.nan)]
    log = log_of(targets, poses=[(0.9, 1.5, 0.0), (1.2, 2.0, 0.0), (0.0, 0.0, 0.0)])
    assert log.cross_track_m == pytest.approx([0.1, -0.2])


def test_the_document_holds_what_the_skill_returned_and_a_thinned_drive():
    drive = made_up_drive()
    document = json.loads(msgspec.json.encode(drive.document()))
    assert document["status"] == "succeeded"
    assert document["final_distance"] == SUCCEEDED["final_distance"]
    assert document["total_time"] == SUCCEEDED["total_time"]
    assert document["timings_s"] == drive.timings_s
    assert document["goal"] == [*drive.goal, drive.goal_yaw]
    assert document["path"][-1] == pytest.approx(drive.path.points[-1], abs=1e-4)
    assert len(document["raw_path"]) == len(drive.path.raw)
    driven = np.array(document["driven"])
    assert len(driven) == math.ceil((len(drive.log.times_s) - 1) / 6) + 1
    assert len(document["driven_columns"]) == driven.shape[1]
    assert driven[-1, :4] == pytest.approx([drive.log.times_s[-1], *drive.log.poses[-1]], abs=1e-4)
    assert document["driven_length_m"] == pytest.approx(drive.path.length_m, rel=0.05)


def test_a_drive_that_never_began_has_a_document_too():
    failed = {"status": "failed", "message": "no", "reason": "no_path", "elapsed_time": 0.1}
    document = a_short_drive(DriveLog.of([]), failed).document()
    assert document["path"] == document["driven"] == []
    assert document["path_length_m"] is None
    assert document["driven_length_m"] == 0


def a_short_drive(log, result=SUCCEEDED, *, start=(1.0, 1.0), goal=(2.0, 1.0), size=200):
    grid = GridMap(np.zeros((size, size), dtype=bool))
    return Drive(result=result, start=Pose2(*start, 0.0), goal=goal, grid=grid, log=log)


def test_times_count_from_the_first_tick():
    assert log_of([(0.0, 0.0, 0.0)] * 3).elapsed_s == pytest.approx([0.0, 0.1, 0.2])


@pytest.mark.parametrize("goal", [(5.0, 1.5), (1.5, 5.0), (1.0, 1.0)])
def test_a_view_shows_all_of_a_drive_and_has_the_shape_that_was_asked_for(goal):
    view = view_of(a_short_drive(DriveLog.of([]), goal=goal), flattest=0.5, tallest=0.8)
    assert view.height_m / view.width_m + 1e-9 >= 0.5
    assert view.height_m / view.width_m <= 0.8 + 1e-9
    for x, y in ((1.0, 1.0), goal):
        assert view.low[0] < x < view.high[0]
        assert view.low[1] < y < view.high[1]


def test_a_view_that_must_grow_does_so_over_the_map():
    at_left = view_of(
        a_short_drive(DriveLog.of([]), start=(1.3, 2), goal=(1.3, 7)), flattest=0.5, tallest=0.8
    )
    at_right = view_of(
        a_short_drive(DriveLog.of([]), start=(8.7, 2), goal=(8.7, 7)), flattest=0.5, tallest=0.8
    )
    assert at_left.low[0] == pytest.approx(0.0)
    assert at_right.high[0] == pytest.approx(10.0)
    small = view_of(a_short_drive(DriveLog.of([]), size=10), flattest=0.5, tallest=0.8)
    assert small.low[0] == pytest.approx(1.0 - AROUND_M)
