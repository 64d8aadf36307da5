"""Other bases than the standard one in the embedded world: what they fit below and between."""

from pathlib import Path

import msgspec
import pytest

from proctor.core.errors import UserError
from proctor.core.types import Action, Pose2, Vector3
from proctor.exams.vln.episode import Episode
from proctor.robots.spec import load_robot
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run, run_notes
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.mujoco.wheeled.navigator import EmbeddedNavigator

LOW = "turtlebot3-burger"


def box(name, x, y, low_z, size):
    part = Part(shape="box", size=Vector3(*size), translate=Vector3(x, y, low_z + size[2] / 2))
    return SceneObject(name=name, parts=[part])


@pytest.fixture
def episode(tmp_path):
    """A robot before a beam at knee height that closes the only door of 1 m."""
    objects = [box("beam", 1.0, 0.0, 0.3, (0.1, 1.0, 0.2))]
    objects += [box(f"wall {y}", 1.0, y, 0.0, (0.1, 2.0, 2.0)) for y in (-1.5, 1.5)]
    path = tmp_path / "scene.json"
    path.write_bytes(msgspec.json.encode(SceneConfig(scene_name="door", objects=objects)))
    start, goal = Vector3(0.0, 0.0, 0.0), Vector3(2.0, 0.0, 0.0)
    return Episode(scene_config_path=str(path), start_position=start, goal_position=goal)


def driven(episode, robot):
    env = VLNEnv(sensors=["odom"], robot=robot)
    env.reset(episode)
    for _ in range(8):
        seen, *_, info = env.step(Action.FORWARD)
    env.close()
    return seen["odom"].x, info["collision_count"]


def test_a_low_robot_drives_below_what_stops_a_high_one(episode):
    low_m, low_bumps = driven(episode, LOW)
    high_m, high_bumps = driven(episode, "standard")
    assert (low_m, low_bumps) == (pytest.approx(2.0, abs=0.01), 0)
    assert high_m == pytest.approx(1.0 - 0.05 - 0.17, abs=0.01)  # its scanner looks below the beam
    assert high_bumps > 0


def test_a_faster_robot_needs_less_time(episode):
    def time_s(robot):
        env = VLNEnv(sensors=["odom"], robot=robot)
        env.reset(episode)
        env.step(Action.FORWARD)
        return env.time_s()

    assert time_s(LOW) < 0.7 * time_s("standard")


def test_a_wide_robot_is_refused_where_a_narrow_one_can_stand(episode):
    near = msgspec.structs.replace(episode, start_position=Vector3(0.75, 0.8, 0.0))
    VLNEnv(sensors=[], robot="standard").check([near])
    with pytest.raises(UserError, match=r"starts inside of 'wall 1\.5'"):
        VLNEnv(sensors=[], robot="wide").check([near])


def test_navigate_to_plans_for_the_robot_that_drives(episode):
    goal = [2.0, 0.0, 0.0]
    arrived = {}
    for name in (LOW, "standard"):
        robot = load_robot(name)
        with EmbeddedNavigator(
            Path(episode.scene_config_path), Pose2(0.0, 0.0, 0.0), robot=robot, goals=[(2.0, 0.0)]
        ) as navigator:
            assert navigator.wait_until_ready()
            drive = navigator.navigate(goal, timeout=40.0)
        arrived[name] = drive.log.length_m if drive.arrived else None
        assert drive.radius_m == robot.radius_m
    assert arrived[LOW] == pytest.approx(2.0, abs=0.05)
    assert arrived["standard"] is None or arrived["standard"] > 4.0


def test_another_robot_makes_another_run_and_is_noted(tmp_path):
    def plan(**options):
        job = RunJob(policy="oracle", env_options=options)
        return plan_run(RunConfig(job=job, suite="houses-v1", episodes=1), tmp_path)

    assert "robot" not in plan().identity
    assert run_notes(plan()) == []
    assert plan(robot=LOW).identity["robot"]["radius_m"] == load_robot(LOW).radius_m
    assert run_notes(plan(robot=LOW)) == [
        "driven by the robot turtlebot3-burger; distances are the standard base's"
    ]
