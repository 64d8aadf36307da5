"""The embedded world of pick-and-place as an environment: a Stretch, a table, objects, MuJoCo's physics."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
import numpy as np

from proctor.core.answers import UNSTABLE_PHYSICS
from proctor.core.errors import AgentFault, MissingDependency, SimulationError, UserError
from proctor.core.interfaces import Env
from proctor.core.options import checked_options, takes_options
from proctor.core.types import Info, Observation
from proctor.exams.findings import some_of
from proctor.exams.pick_place.actions import EePoseTarget, JointPosition, parse_manipulation_action
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.pick_place.ground_truth import GroundTruth
from proctor.robots.stretch import CONTROLS, JOINT_NAMES, controls_of_qpos, overstretches
from proctor.scenes.tabletop_parts import cameras_of
from proctor.scenes.thing import Thing, level_tops
from proctor.scenes.things import make_thing
from proctor.worlds.mujoco.render.gl import check_drawing
from proctor.worlds.mujoco.render.renderer import Renderer, View, calibration_of
from proctor.worlds.mujoco.tabletop.inverse_kinematics import HandSolver
from proctor.worlds.mujoco.tabletop.look import Look, color_of, look_of
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld
from proctor.worlds.mujoco.tabletop.tabletop_model import FAR_M, NEAR_M

Sensor = Literal["rgb_head", "rgb_wrist", "depth_head"]
SENSORS: tuple[Sensor, ...] = get_args(Sensor)
ARM = CONTROLS[4].name
NAMED = 5  # as many episodes are named where something is wrong with many
STAYS_M, STAYS_RAD = 0.02, 0.2
"""What moves or tilts more than this while the world settles was not put where it stands."""


class _Options(msgspec.Struct, kw_only=True):
    sensors: tuple[Sensor, ...] = SENSORS
    """What observations show; no pictures make it much faster."""
    object_info: bool = False
    """Whether observations say where object and target are, which makes the exam another one."""
    level: Annotated[int, msgspec.Meta(ge=0, le=3)] = 0
    """0 as stored, 1 other materials, 2 also another camera pose, 3 also other lights and mirrors."""
    level_seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Chooses among the looks of a level."""


class PickPlaceEnv(Env):
    """A Stretch at a table.

    Observations hold the pictures that `sensors` names (`rgb_head`, `rgb_wrist` uint8, `depth_head` uint16
    millimetres), `qpos` and `qvel` of the ten joints, `ee_pose` in `base_link`, `gripper_state` and
    `instruction`. An action is a `JointPosition` or an `EePoseTarget` with finite numbers, or a dict of one.

    Raises:
        UserError: An option makes no sense.
        MissingDependency: This machine cannot render, or the robot's model is not installed.
    """

    @takes_options(_Options)
    def __init__(self, **options: Any) -> None:
        self._options = checked_options(_Options, options)
        if self._options.sensors:
            check_drawing()  # before the first episode
        self.looking = True
        """Set to False to skip rendering, for example between the steps you want to see."""
        self._episode: PickAndPlaceEpisode | None = None
        self._world: TabletopWorld | None = None
        self._renderer: Renderer | None = None
        self._solver: HandSolver | None = None
        self._truth: GroundTruth | None = None
        self._touched_since = 0  # what was touched after the last step, while the agent was thinking

    @classmethod
    def example_observation(
        cls, episode: PickAndPlaceEpisode, options: Mapping[str, Any]
    ) -> Observation | None:
        """Return zeros in the shapes of what the cameras and joints of this episode's robot show."""
        head, wrist = cameras_of(episode)
        pictures: Observation = {
            "rgb_head": np.zeros((head.height, head.width, 3), np.uint8),
            "rgb_wrist": np.zeros((wrist.height, wrist.width, 3), np.uint8),
            "depth_head": np.zeros((head.height, head.width), np.uint16),
        }
        wanted = checked_options(_Options, options).sensors
        joints = {"qpos": np.zeros(len(JOINT_NAMES)), "qvel": np.zeros(len(JOINT_NAMES))}
        shown: Observation = {name: pictures[name] for name in SENSORS if name in wanted}
        return {**shown, **joints, "ee_pose": np.zeros(7), "gripper_state": 0.0}

    def check(self, episodes: Sequence[PickAndPlaceEpisode]) -> list[str]:
        """Make all objects, put them and the robot to their places, and let them settle.

        Returns what had to be assumed of an object, and what does not stay where it was put. Raises
        UserError if an object cannot be made, or if objects are inside each other.
        """
        notes: dict[str, list[str]] = {}
        problems = []
        for episode in episodes:
            try:
                for note in _rehearsed(episode):
                    notes.setdefault(note, []).append(episode.episode_id)
            except MissingDependency:
                raise
            except (UserError, SimulationError) as error:
                problems.append(str(error))
        if len(problems) > 1:
            some = "\n  ".join(problems[:NAMED] + ["..."] * (len(problems) > NAMED))
            raise UserError(f"{len(problems)} of {len(episodes)} episodes cannot start:\n  {some}")
        if problems:
            raise UserError(problems[0])
        return [f"{_named(ids, len(episodes))}: {note}" for note, ids in notes.items()]

    def reset(self, episode: PickAndPlaceEpisode) -> Observation:
        """Put everything to its place and let it settle."""
        self.close()
        things = things_of(episode)
        look = self._look(episode, things)
        world = TabletopWorld(episode, things, look=look, drawn=self._draws)
        world.place()
        world.settle()
        if self._draws:
            views = [
                View(name, camera.width, camera.height, NEAR_M, FAR_M)
                for name, camera in zip(("head", "wrist"), cameras_of(episode), strict=True)
            ]
            mirrors = look.shine.reflectance > 0
            self._renderer = Renderer(world.model, world.data, *views, reflecting=mirrors)
        self._episode, self._world, self._solver = episode, world, HandSolver(world)
        self._truth = GroundTruth(episode, world)
        self._touched_since = 0
        return self._observe(episode, self._truth)

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Command the joints or the hand, and let one control period pass.

        If the physics breaks, that is an AgentFault. The world was at rest before the first action: were it
        the evaluator's fault, an agent could break it to have a bad episode left out.
        """
        episode, truth, world, solver = self._episode, self._truth, self._world, self._solver
        if episode is None or truth is None or world is None or solver is None:
            raise SimulationError("step() was called before reset()")
        if truth.done:
            raise SimulationError("step() was called after the episode was done; call reset() first")
        is_parsed, ik = isinstance(action, JointPosition | EePoseTarget), None
        command = action if is_parsed else parse_manipulation_action(action)
        if isinstance(command, EePoseTarget):
            solution = solver.solve(np.array(command.ee_pose_target), command.gripper_action)
            # The gripper as it was asked for, so that the world can say that it was too much.
            controls = np.array([*solution.controls[:-1], command.gripper_action])
            clamped, ik = world.command(controls), solution.report()
        else:
            clamped = world.command(np.array(controls_of_qpos(command.qpos)))
            if overstretches(command.qpos) and ARM not in clamped:
                clamped.append(ARM)
        truth.step += 1
        try:
            touched = self._touched_since | world.advance()
        except SimulationError as error:
            raise AgentFault(UNSTABLE_PHYSICS, str(error)) from None
        self._touched_since = 0
        truth.record(touched=touched, clamped=clamped, ik=ik)
        return self._observe(episode, truth), 0.0, truth.done, truth.info()

    def wait(self, duration_s: float, *, keep: bool) -> None:
        """Let the joints go on to their last targets, or stand. What breaks the physics is the agent's."""
        if self._world is None:
            raise SimulationError("wait() was called before reset()")
        try:
            self._touched_since |= self._world.wait(duration_s, keep=keep)
        except SimulationError as error:
            raise AgentFault(UNSTABLE_PHYSICS, str(error)) from None

    def time_s(self) -> float:
        """Return the simulated seconds since `reset`."""
        if self._world is None:
            raise SimulationError("time_s() was called before reset()")
        return self._world.time_s

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        if self._truth is None:
            raise SimulationError("info() was called before reset()")
        return self._truth.info()

    def close(self) -> None:
        """Free the world and its pictures' memory."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = self._episode = self._world = self._solver = self._truth = None

    def cameras(self) -> dict[str, Any]:
        """Return the calibration of the cameras on head and wrist."""
        if self._world is None or self._episode is None:
            raise SimulationError("cameras() was called before reset()")
        configs = dict(zip(("head", "wrist"), cameras_of(self._episode), strict=True))
        found: dict[str, Any] = {}
        for sensor in self._options.sensors:
            name = sensor.rpartition("_")[2]
            found[sensor] = calibration_of(self._world.model, name, configs[name].width, configs[name].height)
        return found

    @property
    def _draws(self) -> bool:
        return bool(self._options.sensors)

    def _look(self, episode: PickAndPlaceEpisode, things: Mapping[str, Thing]) -> Look:
        """Return the level's look. What is to be picked up, and what to be put into, are seen in any."""
        goal, options = episode.task_goal, self._options
        names = [episode.target_name]
        if goal.target_location is not None and goal.target_location.type == "container":
            names.append(episode.support_name() or names[0])
        seen = [color_of(things[name]) for name in names]
        return look_of(options.level, options.level_seed, episode.episode_id, seen)

    def _observe(self, episode: PickAndPlaceEpisode, truth: GroundTruth) -> Observation:
        renderer, info, wanted = self._renderer, truth.info(), self._options.sensors
        observation: Observation = {}
        if renderer is not None and self.looking:
            if "depth_head" in wanted:
                observation["rgb_head"], observation["depth_head"] = renderer.rgbd("head")
            elif "rgb_head" in wanted:
                observation["rgb_head"] = renderer.rgb("head")
            if "rgb_wrist" in wanted:
                observation["rgb_wrist"] = renderer.rgb("wrist")
        observation = {name: observation[name] for name in SENSORS if name in wanted and self.looking}
        for name in ("qpos", "qvel", "ee_pose"):
            observation[name] = info[name].copy()  # agents write into what they are shown
        observation["gripper_state"] = info["gripper_state"]
        observation["instruction"] = {"text": episode.instruction.text, "language": episode.language}
        if self._options.object_info:
            target = info["target_position"]
            observation["object_info"] = {
                "target_object_position": info["object_position"].tolist(),
                "target_location_position": None if target is None else target.tolist(),
            }
        return observation


def things_of(episode: PickAndPlaceEpisode) -> dict[str, Thing]:
    """Make the objects of an episode; raise UserError if one cannot be made, or none is to be picked up."""
    if episode.target_name not in episode.object_names:
        raise UserError(f"episode '{episode.episode_id}': no object '{episode.target_name}' to pick up")
    folder = Path(episode.assets_path) if episode.assets_path else None
    things = {}
    for index, item in enumerate(episode.scene_objects):
        try:
            things[item.name] = make_thing(item, folder)
        except ValueError as error:
            place = f"episode '{episode.episode_id}': scene_objects[{index}] ('{item.name}')"
            raise UserError(f"{place}: {error}") from None
    return things


def _named(ids: Sequence[str], total: int) -> str:
    """Return of how many and which episodes something is true."""
    if len(ids) == 1:
        return f"episode '{ids[0]}'"
    return f"{len(ids)} of {total} episodes ({some_of(ids, NAMED)})"


def _rehearsed(episode: PickAndPlaceEpisode) -> list[str]:
    """Put an episode up, once for each content of its files, and return what people should know of it."""
    digest = hashlib.sha256(msgspec.json.encode(episode))
    for file in PickPlaceExam.scene_files([episode]):
        digest.update(file.read_bytes())
    if digest.digest() not in _REHEARSED:
        _REHEARSED[digest.digest()] = _rehearse(episode)
    return _REHEARSED[digest.digest()]


_REHEARSED: dict[bytes, list[str]] = {}
"""Notes by digests of episodes and their files: the next policies of a command build no worlds for them."""


def _rehearse(episode: PickAndPlaceEpisode) -> list[str]:
    things = things_of(episode)
    world = TabletopWorld(episode, things, drawn=False)
    world.place()
    notes = [note for thing in things.values() for note in thing.notes]
    location = episode.task_goal.target_location
    if location is not None and location.type == "container":
        name = str(episode.support_name())
        if things[name].cavity is None:
            notes.append(f"nothing is known of the inside of '{name}': what is within its box counts")
    if location is not None and location.type == "surface":
        name = str(episode.support_name())
        if things[name].cavity is None and not level_tops(things[name]):
            notes.append(f"'{name}' has no level top that could hold '{episode.target_name}'")
    for motion in world.settle():
        if not world.is_at_rest(motion.name):
            notes.append(f"'{motion.name}' is still moving when the episode begins")
        elif motion.tilted_rad > STAYS_RAD:
            notes.append(f"'{motion.name}' falls over before the episode begins")
        elif motion.moved_m > STAYS_M:
            notes.append(f"'{motion.name}' moves {motion.moved_m:.2f} m before the episode begins")
    return list(dict.fromkeys(notes))
