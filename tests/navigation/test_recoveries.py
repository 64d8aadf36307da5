"""What a robot tries when there is no way on, and when it gives up."""

import numpy as np
import pytest
from floor_robots import room

from proctor.core.types import Pose2
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.navigation.skill.goal import read_goal
from proctor.navigation.skill.mission import Mission
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.recoveries import ClearOptions, WaitOptions, WayOut
from proctor.robots.dynamics import Dynamics

HERE = Pose2(1.0, 1.0, 0.0)


class _Pilot:
    dynamics = Dynamics()

    def now_s(self):
        return 0.0


@pytest.fixture
def live_map():
    live_map = LiveMap(GridMap(room(), resolution_m=0.05))
    live_map.mark_points(np.array([[3.0, 2.0, 0.3]]), 0.0)
    return live_map


def _mission():
    return Mission(read_goal([4.0, 2.0, 0.0]), NavigationParams(), Pose2(1.0, 1.0, 0.0), 0.0)


def test_they_come_in_turn_and_only_waiting_takes_long(live_map):
    way_out, mission = WayOut(live_map, NavigationParams(), _Pilot()), _mission()
    blocked = NavigationFailure(Reason.NO_PATH, "no way")
    done = []
    for _ in range(4):
        live_map.mark_points(np.array([[3.0, 2.0, 0.3]]), 0.0)
        trajectory, message = way_out.find(blocked, mission, HERE)
        done.append((message, trajectory.duration_s))
        mission.count_recovery()
    assert [message for message, _ in done] == [
        "Forgetting what was seen",
        "Waiting for the way to clear",
        "Turning to look around",
        "Backing out",
    ]
    assert done[0][1] == ClearOptions().look_s  # what is really there is seen at once
    assert done[1][1] == WaitOptions().wait_s


@pytest.mark.parametrize("beyond", [0, 1])
def test_it_gives_up_also_when_collisions_have_used_them_up(live_map, beyond):
    way_out, mission = WayOut(live_map, NavigationParams(), _Pilot()), _mission()
    for _ in range(NavigationParams().max_recoveries + beyond):
        mission.count_recovery()
    with pytest.raises(NavigationFailure, match=r"no way, after \d recoveries") as caught:
        way_out.find(NavigationFailure(Reason.NO_PATH, "no way"), mission, HERE)
    assert caught.value.reason is Reason.BLOCKED


def test_what_the_map_itself_says_does_not_pass():
    way_out = WayOut(LiveMap(GridMap(room(), resolution_m=0.05)), NavigationParams(), _Pilot())
    failure = NavigationFailure(Reason.NO_PATH, "no way")
    with pytest.raises(NavigationFailure) as caught:
        way_out.find(failure, _mission(), HERE)
    assert caught.value is failure
