"""The pick-and-place environment: what is seen, what is done, what is true, what is refused."""

import math

import msgspec
import numpy as np
import pytest
import trimesh
from stretch_moves import CLOSED, OPEN, TABLE, TABLE_Z, UP, controls_for, episode_with

from proctor.core.errors import AgentFault, SimulationError, UserError
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld

CUP = {"shape": {"kind": "cup", "color": "red"}}
AT = np.array([0.5, 0.0, TABLE_Z + 0.05])
THERE = np.array([0.6, 0.15, TABLE_Z + 0.053])


def joints(controls):
    return {"type": "joint_position", "qpos": [float(value) for value in controls]}


def play(env, controls, *, more=0, limit=120):
    """Repeat a command until the arm is there, and some more; return all infos."""
    infos = []
    for _ in range(limit):
        _, _, done, info = env.step(joints(controls))
        infos.append(info)
        now = np.array([*info["qpos"][:4], info["qpos"][4:8].sum(), info["qpos"][8]])
        if np.abs(now - controls[:6]).max() < 3e-3:
            more -= 1
        if done or more < 0:
            break
    return infos


@pytest.fixture
def env():
    env = PickPlaceEnv(sensors=[])
    yield env
    env.close()


def pick_and_place(env):
    infos = []
    for controls, more in (
        (controls_for(AT + UP, OPEN), 0),
        (controls_for(AT, OPEN), 0),
        (controls_for(AT, CLOSED), 12),
        (controls_for(AT + UP, CLOSED), 2),
        (controls_for(THERE + UP, CLOSED), 2),
        (controls_for(THERE, CLOSED), 2),
        (controls_for(THERE, OPEN), 8),
        (controls_for(THERE + UP, OPEN), 20),
    ):
        infos += play(env, controls, more=more)
    return infos


def test_a_pick_and_place_goes_through_all_phases_and_ends_itself(env):
    env.reset(episode_with(CUP))
    infos = pick_and_place(env)
    phases = list(dict.fromkeys(info["phase"] for info in infos))
    assert phases == ["reach", "grasp", "lift", "place"]
    end = infos[-1]
    assert end["success"]
    assert end["object_released"]
    assert end["object_in_target"]
    assert end["target_distance"] < 0.01
    assert end["collision_count"] == 0
    assert end["step"] == len(infos)
    with pytest.raises(SimulationError, match="done"):
        env.step(joints(controls_for(AT, OPEN)))
    held = [info for info in infos if info["object_grasped"]]
    assert all(info["gripper_state"] < info["gripper_closed_below"] for info in held)
    assert 0 < len(held) < len(infos)


def test_without_a_target_location_holding_it_aloft_is_enough(env):
    env.reset(episode_with(CUP, task_goal={"target_object": {"name": "thing"}}))
    for controls, more in (
        (controls_for(AT, OPEN), 0),
        (controls_for(AT, CLOSED), 12),
        (controls_for(AT + UP, CLOSED), 15),
    ):
        infos = play(env, controls, more=more)
    assert infos[-1]["success"]
    assert infos[-1]["target_distance"] is None
    assert infos[-1]["object_in_target"] is None


def test_an_object_that_is_still_in_the_hand_is_not_placed(env):
    env.reset(episode_with(CUP))
    for controls, more in (
        (controls_for(AT, OPEN), 0),
        (controls_for(AT, CLOSED), 12),
        (controls_for(AT + UP, CLOSED), 2),
        (controls_for(THERE + UP, CLOSED), 2),
        (controls_for(THERE, CLOSED), 20),
    ):
        infos = play(env, controls, more=more)
    assert infos[-1]["object_in_target"]
    assert not infos[-1]["success"]


def test_an_object_that_was_never_lifted_is_no_success(env):
    goal = {"target_object": {"name": "thing"}, "target_location": {"position": [0.5, 0.0, TABLE_Z]}}
    env.reset(episode_with(CUP, task_goal=goal))
    infos = play(env, controls_for(AT + UP, OPEN), more=30)
    assert infos[-1]["object_in_target"]
    assert not infos[-1]["success"]


def test_observations_are_as_the_documents_say():
    env = PickPlaceEnv(object_info=True)
    first = env.reset(episode_with(CUP, instruction={"text": "Pick up the cup"}))
    assert first["rgb_head"].shape == (480, 640, 3)
    assert first["rgb_head"].dtype == np.uint8
    assert first["rgb_wrist"].shape == (240, 320, 3)
    assert first["depth_head"].shape == (480, 640)
    assert first["depth_head"].dtype == np.uint16
    assert first["qpos"].shape == first["qvel"].shape == (10,)
    assert first["qpos"] == pytest.approx([0, 0, 0, 0.98, 0, 0, 0, 0, 0, OPEN], abs=1e-3)
    assert first["ee_pose"].shape == (7,)
    # At the start the hand is beside the base, fingers along -y and 30 degrees down.
    assert first["ee_pose"][:3] == pytest.approx([-0.0213, -0.3481, 1.0074], abs=2e-3)
    assert first["gripper_state"] == pytest.approx(OPEN, abs=1e-3)
    assert first["instruction"] == {"text": "Pick up the cup", "language": "en"}
    assert first["object_info"]["target_object_position"] == pytest.approx([0.5, 0, TABLE_Z], abs=1e-3)
    assert first["object_info"]["target_location_position"] == pytest.approx([0.6, 0.15, TABLE_Z])
    again, *_ = env.step(joints(controls_for(AT + UP, OPEN)))
    assert set(again) == set(first)
    assert not np.array_equal(again["rgb_head"], first["rgb_head"])
    env.close()
    assert "object_info" not in PickPlaceEnv(sensors=[]).reset(episode_with(CUP))


def test_the_head_sees_the_cup_where_it_is():
    env = PickPlaceEnv(sensors=["rgb_head", "depth_head"])
    seen = env.reset(episode_with(CUP))
    env.close()
    red = (seen["rgb_head"][..., 0] > 120) & (seen["rgb_head"][..., 1:] < 70).all(axis=2)
    assert red.sum() > 300
    rows, columns = np.nonzero(red)
    depth_m = np.median(seen["depth_head"][rows, columns]) / 1000
    # The camera is at (0.1, 0, 1.2) of the base, which is turned to the left, and looks 35 degrees down.
    forward = np.array([math.cos(math.radians(35)), 0, -math.sin(math.radians(35))])
    expected_m = (np.array([0.5, 0.0, TABLE_Z + 0.06]) - [0.0, 0.1214, 1.2]) @ forward
    assert depth_m == pytest.approx(expected_m, abs=0.03)
    assert columns.mean() > 320, "the cup is to the right of the camera"


def test_ten_numbers_and_seven_mean_the_same(env):
    seven = controls_for(AT + UP, OPEN)
    ten = [*seven[:4], *[seven[4] / 4] * 4, *seven[5:]]
    ends = []
    for numbers in (seven, ten):
        env.reset(episode_with(CUP))
        for _ in range(5):
            *_, info = env.step(joints(numbers))
        ends.append(info["qpos"])
    assert ends[0] == pytest.approx(ends[1], abs=1e-12)


def test_commands_beyond_the_limits_are_clamped_and_told(env):
    env.reset(episode_with(CUP))
    *_, info = env.step(joints([0.7, 0, 0, 1.5, 0.9, -3.0, 0.1]))
    assert info["clamped"] == ["base_x", "lift", "arm", "wrist_yaw", "gripper"]
    *_, info = env.step(joints(controls_for(AT + UP, OPEN)))
    assert info["clamped"] == []
    # The documents' own example: two of the four segments are asked for what they cannot do.
    *_, info = env.step(joints([0.05, 0, 0.1, 0.6, -0.5, 1.0, 0, 0, 0, 0.02]))
    assert info["clamped"] == ["arm"]
    shown = env.reset(episode_with(CUP))
    *_, info = env.step(joints(shown["qpos"]))
    assert info["clamped"] == [], "an arm that is drawn in is measured a little beyond its limit"


def test_what_an_agent_does_to_what_it_is_shown_or_told_changes_nothing(env):
    shown = env.reset(episode_with(CUP))
    before = env.info()
    true = {name: before[name].copy() for name in ("qpos", "qvel", "ee_pose")}
    for name in true:
        shown[name][:] = 9.0
    assert all(np.array_equal(env.info()[name], value) for name, value in true.items())
    before["target_position"][:] = 9.0
    *_, info = env.step(joints(true["qpos"]))
    assert info["target_distance"] < 1.0


@pytest.mark.parametrize("action", [3, {"type": "joint_position", "qpos": [0.0] * 9}, {"type": "fly"}])
def test_what_is_no_action_is_the_agents_fault(env, action):
    env.reset(episode_with(CUP))
    with pytest.raises(AgentFault):
        env.step(action)


def test_bumping_into_the_table_is_counted(env):
    env.reset(episode_with(CUP))
    infos = play(env, controls_for([0.5, 0.3, TABLE_Z - 0.02], OPEN), limit=40)
    assert infos[-1]["touched"] == {"furniture": True, "objects": False, "self": False}
    assert infos[-1]["collision"]
    assert infos[-1]["collision_count"] > 0


def test_bumping_into_another_thing_is_counted(env):
    other = {"name": "can", "position": [0.5, 0.25, TABLE_Z], "shape": {"kind": "can", "color": "blue"}}
    env.reset(episode_with(CUP, other))
    infos = play(env, controls_for([0.5, 0.21, TABLE_Z + 0.06], OPEN), limit=60)
    assert any(info["touched"]["objects"] for info in infos)
    assert not any(info["touched"]["furniture"] for info in infos)


def test_the_hand_bumps_into_the_robots_own_base(env):
    env.reset(episode_with(CUP))
    infos = play(env, np.array([0, 0, 0, 0.1, 0.0, -1.7, OPEN]), limit=80)
    assert any(info["touched"]["self"] for info in infos)


def test_two_runs_are_bitwise_equal(env):
    ends = []
    for _ in range(2):
        env.reset(episode_with(CUP))
        infos = pick_and_place(env)
        ends.append(np.concatenate([infos[-1]["qpos"], infos[-1]["object_position"], infos[-1]["ee_pose"]]))
    assert ends[0].tobytes() == ends[1].tobytes()


def test_time_steps_are_the_episodes(env):
    params = {"time_step": 0.02, "control_period": 0.2, "max_steps": 3}
    env.reset(episode_with(CUP, sim_params=params))
    for _ in range(3):
        _, _, done, info = env.step(joints(controls_for(AT + UP, OPEN)))
    assert info["time_s"] == pytest.approx(0.6)
    assert done
    assert not info["success"]


def test_gravity_is_the_episodes(env):
    env.reset(episode_with(CUP, sim_params={"gravity": [0, 0, -1.62]}))
    assert env.info()["object_position"][2] == pytest.approx(TABLE_Z, abs=1e-3)
    assert env._world.model.opt.gravity[2] == -1.62


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (
            [{"name": "can", "position": [0.51, 0.0, TABLE_Z], "shape": {"kind": "can"}}],
            "'thing' and 'can'|'can' and 'thing'",
        ),
        (
            [
                {
                    "name": "wall",
                    "position": [0.0, 0.0, 0.0],
                    "static": True,
                    "shape": {"kind": "box", "size": [0.2, 0.2, 0.6]},
                }
            ],
            "the robot",
        ),
    ],
)
def test_things_inside_each_other_are_refused(env, others, message):
    with pytest.raises(UserError, match=message):
        env.check([episode_with(CUP, *others)])


@pytest.mark.parametrize(
    ("goal", "message"),
    [({}, "no object to pick up"), ({"target_object": {"name": "cup"}}, "no object 'cup' to pick up")],
)
def test_an_episode_without_an_object_is_refused(env, goal, message):
    with pytest.raises(UserError, match=message):
        env.check([PickAndPlaceEpisode("empty", scene_objects=[TABLE], task_goal=goal)])


def test_a_thing_that_cannot_be_made_is_told_with_its_place(env):
    with pytest.raises(UserError, match=r"scene_objects\[1\] \('thing'\)"):
        env.check([episode_with({"usd_path": "objects/nothing_like_it.usd"})])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"sensors": ["rgb"]}, "rgb"), ({"level": 4}, "level"), ({"level_seed": -1}, "level_seed")],
)
def test_wrong_options_are_told(options, message):
    with pytest.raises(UserError, match=message):
        PickPlaceEnv(**options)


def test_a_container_and_a_surface_are_places(env):
    bowl = {"name": "bowl", "position": [0.6, 0.2, TABLE_Z], "shape": {"kind": "bowl", "color": "blue"}}
    goal = {
        "target_object": {"name": "thing"},
        "target_location": {"type": "container", "object_name": "bowl"},
    }
    env.reset(episode_with(CUP, bowl, task_goal=goal))
    info = env.info()
    assert info["object_in_target"] is False
    assert 0.05 < info["target_distance"] < 0.25
    assert info["target_position"][:2] == pytest.approx([0.6, 0.2], abs=2e-3)
    goal = {
        "target_object": {"name": "thing"},
        "target_location": {"type": "surface", "object_name": "table"},
    }
    env.reset(episode_with(CUP, bowl, task_goal=goal))
    assert env.info()["object_in_target"] is True
    assert env.info()["target_distance"] == 0.0
    assert env.info()["target_position"] == pytest.approx([0.5, 0.0, TABLE_Z], abs=1e-6)


def test_what_was_lost_has_to_be_lifted_once_more(env):
    env.reset(episode_with(CUP))
    for controls, more in (
        (controls_for(AT, OPEN), 0),
        (controls_for(AT, CLOSED), 12),
        (controls_for(AT + UP, CLOSED), 2),
        (controls_for(AT, CLOSED), 2),
        (controls_for(AT, OPEN), 8),
    ):
        infos = play(env, controls, more=more)
    assert infos[0]["phase"] == "place"
    assert infos[-1]["phase"] == "grasp"
    assert play(env, controls_for(AT, CLOSED), more=12)[-1]["phase"] == "lift"


def test_a_gripper_that_is_told_to_open_too_wide_is_clamped_also_by_pose(env):
    env.reset(episode_with(CUP))
    pose = env.info()["ee_pose"].tolist()
    *_, info = env.step({"type": "ee_pose_target", "ee_pose_target": pose, "gripper_action": 0.1})
    assert info["clamped"] == ["gripper"]
    assert info["ik"]["reached"]


def test_an_open_gripper_is_never_closed_however_wide_the_object(env):
    # Between the fingers a cup with its handle across measures 81 mm: more than an open gripper.
    env.reset(episode_with({**CUP, "rotation": [0.0, 0.0, 0.7071, 0.7071]}))
    assert env.info()["gripper_closed_below"] == pytest.approx(OPEN - 0.002)
    assert env.info()["gripper_state"] > env.info()["gripper_closed_below"]


def test_an_episode_is_put_up_once_for_each_version_of_its_files(env, tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(
        "proctor.exams.pick_place.env.TabletopWorld",
        lambda *args, **options: built.append(args) or TabletopWorld(*args, **options),
    )
    mesh = tmp_path / "brick.stl"
    episode = msgspec.structs.replace(
        episode_with({"usd_path": "brick.stl"}), assets_path=str(tmp_path), episode_id="brick"
    )
    for side_m in (0.05, 0.05, 0.04):
        trimesh.creation.box((side_m, side_m, side_m)).export(mesh)
        env.check([episode])
    assert len(built) == 2
