"""The expert of pick-and-place: its plans, and what it does in the world."""

import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from proctor.core.errors import UserError
from proctor.core.interfaces import TRUTH
from proctor.core.types import EpisodeInfo, Pose2
from proctor.exams.pick_place.env import PickPlaceEnv, things_of
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.expert.expert import ExpertPolicy
from proctor.exams.pick_place.expert.grasps_and_spots import grasps_of, spots_of
from proctor.exams.pick_place.expert.paths import DrivableFloor, PathChecker, candidate_paths, changed
from proctor.exams.pick_place.expert.plans import HandGoal, stances_for, travel_s
from proctor.scenes.thing import Solid, level_tops
from proctor.scenes.things import ball, block, box, cylinder
from proctor.scenes.vessels import bottle, cup
from proctor.worlds.mujoco.tabletop.clearance import SEEN_M, Clearance, Grip

GREY = (0.5, 0.5, 0.5)
TABLE = {"name": "table", "position": [0.5, 0.0, 0.4], "static": True}
CUP = {"name": "cup_red", "position": [0.5, 0.0, 0.8], "graspable": True}
CRITERIA = {"type": "place_at_location"}


def episode(*, location=None, objects=(CUP,), setup=None, criteria=None):
    return PickAndPlaceEpisode(
        episode_id="one",
        task_goal={
            "target_object": {"name": "cup_red"},
            "target_location": location,
            "success_criteria": criteria or {},
        },
        scene_objects=[TABLE, *objects],
        robot_config=setup or {},
    )


def play(told, meddle=None):
    """Let the expert do an episode; `meddle` may change the world after a step."""
    env, policy = PickPlaceEnv(sensors=[]), ExpertPolicy()
    observation, info, done, clamped = env.reset(told), env.info(), False, 0
    policy.reset(
        EpisodeInfo(episode_id="one", instruction="", max_steps=500, seed=0, task=told.task, episode=told)
    )
    while not done:
        observation, _, done, info = env.step(policy.act({**observation, TRUTH: info}))
        clamped += len(info["clamped"])
        if meddle is not None:
            meddle(env, info)
    env.close()
    return info | {"all_clamped": clamped}


def yawed(degrees):
    return Rotation.from_euler("z", degrees, degrees=True).as_matrix()


@pytest.mark.parametrize("degrees", [0, 20, 77, 145])
def test_a_box_is_held_by_the_sides_that_are_near_to_each_other(degrees):
    at = np.array([1.0, 2.0, 0.8])
    grasps = grasps_of(box((0.05, 0.12, 0.1), GREY), at, yawed(degrees))
    assert {round(math.degrees(grasp.closing_yaw) % 180) for grasp in grasps} == {degrees % 180}
    assert grasps[0].width_m == pytest.approx(0.05, abs=1e-9)
    assert grasps[0].point[:2] == pytest.approx(at[:2])


def test_a_box_that_fits_both_ways_may_be_held_both_ways_the_narrow_one_first():
    grasps = grasps_of(box((0.06, 0.04, 0.1), GREY), np.zeros(3), np.eye(3))
    assert [round(grasp.width_m, 3) for grasp in grasps] == [0.04, 0.06]


def test_what_is_wider_than_the_hand_cannot_be_held():
    assert grasps_of(box((0.09, 0.08, 0.1), GREY), np.zeros(3), np.eye(3)) == []


def test_round_things_can_be_held_from_all_around():
    for thing in (cylinder((0.05, 0.05, 0.1), GREY), ball((0.06, 0.06, 0.06), GREY)):
        grasps = grasps_of(thing, np.zeros(3), np.eye(3))
        assert len(grasps) >= 12
        assert np.abs([grasp.point[:2] for grasp in grasps]).max() < 1e-3


def test_the_handle_of_a_cup_stays_out_of_the_fingers():
    for grasp in grasps_of(cup((0.06, 0.06, 0.09), GREY), np.zeros(3), np.eye(3)):
        assert grasp.width_m < 0.0605
        assert abs(math.cos(grasp.closing_yaw)) < 0.6  # the handle is along x


def test_pads_stay_above_the_table_and_low_on_tall_things():
    low = grasps_of(block((0.04, 0.04, 0.02), GREY), np.zeros(3), np.eye(3))
    tall = grasps_of(bottle((0.065, 0.065, 0.25), GREY), np.zeros(3), np.eye(3))
    assert low[0].point[2] >= 0.028
    assert 0.06 < tall[0].point[2] < 0.1


def test_what_lies_on_its_side_is_held_across():
    lying = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    (grasp,) = grasps_of(box((0.05, 0.1, 0.12), GREY), np.array([0, 0, 0.05]), lying)
    assert grasp.point[2] == pytest.approx(0.055)  # the origin is the middle of a side now
    assert grasp.width_m == pytest.approx(0.05)


@pytest.mark.parametrize("nonholonomic", [False, True])
def test_every_stance_brings_the_hand_to_its_goal_and_the_quickest_comes_first(nonholonomic):
    goals = [HandGoal(np.array([0.5, 0.1, 0.85]), heading) for heading in (0.0, 1.0)]
    stances = stances_for(goals, Pose2(0.0, 0.0, 0.0), nonholonomic=nonholonomic)
    assert len(stances) > 50
    for stance in stances:
        hand, heading = stance.posture.hand()
        assert hand == pytest.approx(stance.goal.point)
        assert math.remainder(heading - stance.goal.heading, math.tau) == pytest.approx(0.0, abs=1e-9)
        assert stance.posture.is_possible()
    assert [s.cost_s for s in stances] == sorted(s.cost_s for s in stances)


def test_driving_sideways_costs_a_base_that_cannot_two_turns():
    start, beside = Pose2(0.0, 0.0, 0.0), Pose2(0.0, 1.0, 0.0)
    assert travel_s(start, beside, nonholonomic=True) > travel_s(start, beside, nonholonomic=False) + 3
    ahead = Pose2(1.0, 0.0, 0.0)
    assert travel_s(start, ahead, nonholonomic=True) == travel_s(start, ahead, nonholonomic=False)


def spots(location, objects=(CUP,), near=(0.5, 0.0, 0.8), target=(0.0, 0.0, 0.0)):
    told = episode(location=location, objects=objects)
    return spots_of(
        told, things_of(told), target_position=np.array(target), near=np.array(near), radius_m=0.03
    )


def test_an_object_goes_to_its_position_or_a_little_beside_it():
    found = spots({"position": [0.6, 0.2, 0.8]}, target=(0.6, 0.2, 0.8))
    assert found[0].point == pytest.approx([0.6, 0.2, 0.8])
    assert max(math.dist(spot.point, found[0].point) for spot in found) < 0.03


def test_an_object_goes_onto_the_floor_of_a_container():
    bowl = {"name": "bowl_blue", "position": [0.6, 0.3, 0.8]}
    found = spots({"type": "container", "object_name": "bowl_blue"}, (CUP, bowl), target=(0.6, 0.3, 0.8))
    assert found[0].point == pytest.approx([0.6, 0.3, 0.807])
    assert all(spot.is_inside for spot in found)


def test_an_object_goes_onto_a_surface_near_to_hand_and_not_over_its_edge():
    stand = {"name": "stand", "position": [0.5, 2.0, 0.35], "static": True}
    found = spots({"type": "surface", "object_name": "stand"}, (CUP, stand), near=(0.5, 1.9, 0.8))
    assert found[0].point == pytest.approx([0.5, 1.9, 0.7])
    assert all(math.dist(spot.point[:2], (0.5, 2.0)) <= 0.25 - 0.05 for spot in found)


def test_ways_of_a_base_that_cannot_move_sideways_never_do():
    told = episode()
    floor = DrivableFloor(told, things_of(told))
    start, end = np.array([0, 0, 0, 0.5, 0, 0, 0.04]), np.array([0.3, -1.2, 2.0, 0.9, 0.2, 0.5, 0.04])
    found = list(candidate_paths(start, end, floor, nonholonomic=True))
    assert found
    for path in found:
        assert path[-1][:2] == pytest.approx(end[:2])
        assert math.remainder(path[-1][2] - 2.0, math.tau) == pytest.approx(0.0, abs=1e-9)
        for here, there in pairwise([start, *path]):
            away = (there - here)[:2]
            if np.hypot(*away) > 1e-6:
                assert here[2] == there[2]
                assert abs(away @ [-math.sin(here[2]), math.cos(here[2])]) < 1e-3


def test_the_path_to_the_other_side_leads_around_the_table():
    told = episode()
    path = DrivableFloor(told, things_of(told)).path(np.array([-0.2, 0.0]), np.array([1.3, 0.0]))
    assert np.abs(path[:, 1]).max() > 0.6 + 0.2  # the table is 1.2 m wide


def test_gaps_are_those_of_the_robot_and_of_what_it_holds():
    told = episode()
    clearance = Clearance(told, things_of(told))
    away = np.array([-1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.04])
    assert clearance.gaps(away).robot_m == SEEN_M
    inside = np.array([0.5, 0.0, 0.0, 0.5, 0.0, 0.0, 0.04])
    assert clearance.gaps(inside).robot_m < -0.05
    # The arm points to +x; the pads' corners are 24.6 mm below their middle.
    above = np.array([0.0, 0.1214, math.pi / 2, 0.8 + 0.035 - 0.0274, 0.15, 0.0, 0.04])
    assert clearance.gaps(above).robot_m == pytest.approx(0.035 - 0.0246, abs=0.002)
    clearance.move_object(np.array([0.5, 0.1, 0.8]), np.array([1.0, 0, 0, 0]))
    assert 0 < clearance.gaps(above).grip_m < 0.015
    held = Grip(np.array([0.0, 0.0, 0.5]), np.eye(3))
    assert clearance.gaps(above, held).object_m == SEEN_M


def test_paths_around_what_is_in_between_are_found():
    told = episode()
    things = things_of(told)
    checker = PathChecker(Clearance(told, things), DrivableFloor(told, things), nonholonomic=False)
    start, end = np.array([-0.3, 0, 0, 0.5, 0, 0, 0.0]), np.array([1.3, 0, 0, 0.95, 0, 0, 0.0])
    assert not checker.is_clear(start, [end], margin_m=0.01)
    path = checker.path_to(start, end, margin_m=0.01)
    assert len(path) > 3
    assert checker.is_clear(start, path, margin_m=0.01)
    assert checker.is_clear(start, [changed(start, lift=0.9)], margin_m=0.01)


def test_the_example_of_the_design_documents_is_done_without_a_touch():
    told = episode(location={"position": [0.7, 0.2, 0.8], "radius": 0.1})
    info = play(told)
    assert info["success"]
    assert info["step"] < 200
    assert info["collision_count"] == info["all_clamped"] == 0
    assert info["target_distance"] < 0.005


def test_a_base_that_cannot_move_sideways_does_it_too():
    start = {"init_pose": {"base": [-0.4, 0.5, 0.3]}, "nonholonomic": True}
    info = play(episode(location={"position": [0.6, -0.25, 0.8]}, setup=start))
    assert info["success"]
    assert info["collision_count"] == info["all_clamped"] == 0


def test_what_need_only_be_lifted_is_held_aloft():
    info = play(episode())
    assert info["success"]
    assert info["object_grasped"]
    assert info["object_position"][2] > 0.9


def test_puts_a_cup_into_a_bowl_among_other_things():
    others = (
        {"name": "bowl_blue", "position": [0.55, 0.3, 0.8]},
        {"name": "bottle_green", "position": [0.4, 0.1, 0.8], "graspable": True},
        {"name": "can_yellow", "position": [0.58, -0.12, 0.8], "graspable": True},
    )
    info = play(
        episode(
            location={"type": "container", "object_name": "bowl_blue"},
            objects=(CUP, *others),
            criteria=CRITERIA,
        )
    )
    assert info["success"]
    assert info["collision_count"] == 0


def test_what_is_longer_than_the_floor_of_a_bowl_is_dropped_into_it():
    long = {**CUP, "shape": {"kind": "box", "color": "red", "size": [0.05, 0.108, 0.09]}}
    bowl = {
        "name": "bowl_blue",
        "position": [0.55, 0.3, 0.8],
        "shape": {"kind": "bowl", "size": [0.172, 0.172, 0.055]},
    }
    told = episode(location={"type": "container", "object_name": "bowl_blue"}, objects=(long, bowl))
    info = play(told)
    assert info["success"]
    assert info["collision_count"] == 0


def on_top_of(kind, size):
    support = {
        "name": "support",
        "position": [0.72, 0.05, 0.8],
        "shape": {"kind": kind, "color": "blue", "size": size},
    }
    return episode(
        location={"type": "surface", "object_name": "support"}, objects=(CUP, support), criteria=CRITERIA
    )


def test_puts_a_cup_onto_a_block_that_is_smaller_than_the_cup():
    info = play(on_top_of("block", [0.04, 0.04, 0.04]))
    assert info["success"]
    assert info["object_position"] == pytest.approx([0.72, 0.05, 0.84], abs=0.012)


def test_says_that_nothing_can_be_put_on_a_ball():
    told = on_top_of("ball", [0.06, 0.06, 0.06])
    with pytest.raises(UserError, match="episode 'one': 'cup_red' cannot be put on 'support': expected a"):
        play(told)
    assert PickPlaceEnv(sensors=[]).check([told]) == [
        "episode 'one': 'support' has no level top that could hold 'cup_red'"
    ]


def test_a_ridge_and_a_point_are_no_level_tops():
    low = [[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    for high in ([[0.0, 0.0, 0.1]], [[x, 0.0, 0.1] for x in (-0.1, 0.0, 0.1)]):
        points = np.array([*low, *high])
        solid = Solid("hull", np.ptp(points, axis=0), np.zeros(3), np.eye(3), points)
        assert level_tops(box((0.2, 0.2, 0.1), GREY)._replace(solids=[solid])) == []


def test_gets_the_hand_out_from_below_the_table():
    pose = {"base": [0.0, 0.0, math.pi / 2], "joint_positions": [0.0, 0.0, 0.0, 0.5, 0.2, 0.0, 0.0]}
    info = play(episode(setup={"init_pose": pose, "nonholonomic": True}))
    assert info["success"]
    assert info["collision_count"] == 0


def moved_once(when, position):
    """Return what moves the cup away, once."""
    done = []

    def meddle(env, info):
        if not done and when(info):
            done.append(info["step"])
            world = env._world
            address = world.model.jnt_qposadr[world.model.body("cup_red").jntadr[0]]
            world.data.qpos[address : address + 7] = [*position, 1.0, 0.0, 0.0, 0.0]

    return meddle


@pytest.mark.parametrize(
    ("when", "steps"),
    [
        (lambda info: info["step"] == 40, 160),
        (lambda info: info["phase"] == "grasp" and info["gripper_state"] < 0.036, 195),
        (lambda info: info["phase"] == "place", 195),
    ],
    ids=["pushed", "missed", "dropped"],
)
def test_what_was_pushed_missed_or_dropped_is_picked_up_again(when, steps):
    told = episode(location={"position": [0.7, 0.2, 0.8]})
    info = play(told, moved_once(when, (0.45, -0.15, 0.8)))
    assert info["success"]
    assert info["step"] < steps  # who notices it only in the end needs some 40 steps more
    assert info["collision_count"] == 0


def test_an_object_that_cannot_be_grasped_is_left_alone():
    wide = {**CUP, "shape": {"kind": "box", "size": [0.2, 0.2, 0.1]}}
    told = episode(objects=(wide,))
    told = msgspec.structs.replace(told, sim_params={"max_steps": 20})
    info = play(told)
    assert not info["success"]
    assert info["collision_count"] == 0


def test_two_experts_do_the_same():
    told = episode(location={"position": [0.7, 0.2, 0.8]})
    first, second = play(told), play(told)
    assert first["step"] == second["step"]
    assert (first["qpos"] == second["qpos"]).all()
    assert (first["object_position"] == second["object_position"]).all()
