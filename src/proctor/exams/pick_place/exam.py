"""Pick-and-place with a Stretch as an exam. Start here; the other files of this folder are its parts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, get_args

import msgspec
import numpy as np

from proctor.core.errors import InvalidFile, UserError, did_you_mean
from proctor.core.geometry import distance as straight_m
from proctor.core.types import DialectDefaults, EpisodeInfo, Info, Observation, SentObservation, Vector3
from proctor.exams.episode_files import read_record
from proctor.exams.exam import Column, Exam, ExamOptions, Metric
from proctor.exams.findings import EpisodesToCheck, Finding
from proctor.exams.offers import SENSOR_OFFERS, Offer
from proctor.exams.pick_place.actions import ManipulationAction, parse_manipulation_action
from proctor.exams.pick_place.baselines import LEG_STEPS, joints_as_they_are, random_target
from proctor.exams.pick_place.checks import FILTERS, check_before_run, check_dataset, problems_of
from proctor.exams.pick_place.episode import TASK, PickAndPlaceEpisode
from proctor.exams.pick_place.metrics import METRICS
from proctor.exams.pick_place.results import PickPlaceResult, record_of, record_problems
from proctor.exams.pick_place.state import PickPlaceState, PickPlaceTrace, read_state
from proctor.exams.pick_place.verdict import verdict_of
from proctor.exams.results import Summary, Verdict
from proctor.exams.trace import plain_state
from proctor.robots.stretch import JOINT_NAMES, limits_as_dict
from proctor.scenes.mesh_files import files_of_mesh
from proctor.scenes.tabletop_parts import LocationType, SuccessType

LEVELS = range(4)

COORDINATES = frozenset(("position", "rotation", "initial_position", "initial_rotation"))
FILE_NAMES = frozenset(("usd_path",))  # files on the evaluator's side

OFFERS: Mapping[str, Offer] = {
    "depth": Offer("the depth picture of the head", entries=("depth_head",), sensor="depth_head"),
    "joints": Offer("positions and velocities of the joints", entries=("qpos", "qvel", "gripper_state")),
    "hand": Offer("where the hand is", entries=("ee_pose",)),
    "robot": Offer("the robot's configuration and limits", details=("robot_config",)),
    "calibration": SENSOR_OFFERS["calibration"],
    "goal": Offer(
        "the goal and the objects, with coordinates unless --hide-goal",
        entries=("object_info",),
        details=("task_goal", "scene_objects"),
    ),
}
CHOICES = {".target_location.type": get_args(LocationType), ".success_criteria.type": get_args(SuccessType)}
REQUIRED_KEYS = ("episode_id", "task_goal", "scene_objects")

CAMERAS: dict[str, str | dict[str, str]] = {"head": "rgb_head", "wrist": "rgb_wrist"}
SMALL = {"rgb_head": (224, 224), "rgb_wrist": (224, 224)}
"""What the models of openpi see in the end; its own clients scale before they send, too."""

DIALECTS = DialectDefaults(
    observations={
        "openpi": SentObservation(
            entries={
                "observation/image": "rgb_head",
                "observation/wrist_image": "rgb_wrist",
                "observation/state": "qpos",
                "prompt": "instruction",
            },
            resize=SMALL,
        ),
        "vla-eval": SentObservation(
            entries={"images": CAMERAS, "states": "qpos", "task_description": "instruction"}
        ),
        "roboarena": SentObservation(
            entries={
                "observation/exterior_image_0_left": "rgb_head",
                "observation/wrist_image_left": "rgb_wrist",
                "observation/joint_position": "qpos",
                "observation/gripper_position": "gripper_state",
                "prompt": "instruction",
            },
            resize=SMALL,
        ),
        "xpolicylab": SentObservation(
            entries={
                "vision": {"cam_head": {"color": "rgb_head"}, "cam_wrist": {"color": "rgb_wrist"}},
                "state": {"arm_joint_state": "qpos", "ee_joint_state": "gripper_state", "ee_pose": "ee_pose"},
                "instruction": "instruction",
            }
        ),
        "lerobot": SentObservation(entries={"pixels": CAMERAS, "agent_pos": "qpos"}),
        "gr00t": SentObservation(
            entries={"video": CAMERAS, "state": {"qpos": "qpos"}, "language": {"task": "instruction"}}
        ),
    },
    action_kinds={"joint_position": (7, 10), "ee_pose_target": (8,)},
)


class PickPlaceOptions(ExamOptions, frozen=True, kw_only=True):
    """The options of pick-and-place."""

    level: Annotated[
        int,
        msgspec.Meta(
            description="what looks other than stored: 1 materials, 2 also the cameras, 3 also the light",
            extra={"metavar": "N"},
        ),
    ] = 0
    object_info: Annotated[
        bool,
        msgspec.Meta(
            description="show the agent where object and target are, in every observation; for debugging"
        ),
    ] = False
    hide_goal: Annotated[
        bool,
        msgspec.Meta(description="tell the agent no coordinates of objects and places: it has to see them"),
    ] = False

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise UserError(f"--level: expected {LEVELS[0]} to {LEVELS[-1]}, found {self.level}")
        if self.hide_goal and self.object_info:
            raise UserError("hide_goal withholds what object_info shows; choose one of them")


class StraightDistance(NamedTuple):
    """What metrics of other packages may ask for."""

    success_threshold_m: float
    """How near to its target the object must be put."""

    def __call__(self, a: Vector3, b: Vector3) -> float:
        """Return metres."""
        return straight_m(a, b)


def _stages(summary: Summary) -> str:
    found, stages = summary.metrics, ("grasped", "lifted", "placed")
    return "/".join(f"{100 * found[stage].mean:.0f}" if stage in found else "-" for stage in stages)


def _bumps(summary: Summary) -> str:
    mean = summary.avg_collision_count
    return "-" if mean is None else f"{mean:.{0 if mean >= 10 else 1}f}"


class PickPlaceExam(Exam[PickAndPlaceEpisode, ManipulationAction, PickPlaceState]):
    """Pick an object up and put it where the instruction says."""

    name = TASK
    title = "pick-and-place"
    episode = PickAndPlaceEpisode
    state_type = PickPlaceState
    action_type = ManipulationAction
    result = PickPlaceResult
    options_type = PickPlaceOptions
    envs = ("tabletop",)
    worker_modules = ("proctor.exams.pick_place.exam",)
    example_suite = "tabletop-v1"
    baselines: ClassVar[Mapping[str, str]] = {
        "hold": "proctor.exams.pick_place.baselines:HoldPolicy",
        "expert": "proctor.exams.pick_place.expert.expert:ExpertPolicy",
    }
    metrics: ClassVar[Sequence[Metric]] = METRICS
    metric_groups = ("proctor.manipulation_metrics",)
    definition = "pick-and-place v1"
    actions = ("joint_position", "ee_pose_target")
    filters: ClassVar[Mapping[str, str]] = FILTERS
    dialects = DIALECTS
    offers: ClassVar[Mapping[str, Offer]] = OFFERS
    chat = "proctor.exams.pick_place.chat:PickPlaceChat"
    expected_metrics = ("success", "completion_rate", "trajectory_similarity")  # as the design documents have
    controls = "proctor.exams.pick_place.hand_controls:HandControls"
    page = "proctor.exams.pick_place.page:PickPlacePage"
    more_columns = (Column("G/L/P %", _stages), Column("Bumps", _bumps))
    table_notes = (
        "SR: at the end grasped, lifted and, where there is a target, placed, let go and at rest; "
        "Any: grasped, lifted and at the target in any step.",
        "Done: how far through reach, grasp, lift and place. Simil: joint path and reference, 1 is equal. "
        "G/L/P: grasped, lifted, placed. Bumps: steps in which the robot touched what it should not.",
    )
    compared_options: ClassVar[Mapping[str, str]] = {"hide_goal": "what agents are told of the goal"}

    problems = staticmethod(problems_of)
    parse_action = staticmethod(parse_manipulation_action)
    state = staticmethod(read_state)
    record = staticmethod(record_of)
    record_problems = staticmethod(record_problems)

    def __init__(self, options: PickPlaceOptions | None = None) -> None:
        super().__init__(options)
        self._target: Any = None

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Recognise an episode by the keys that no other has."""
        return bool({"task_goal", "scene_objects", "robot_config"} & record.keys())

    @classmethod
    def read(cls, record: Any, file: Path, place: str) -> PickAndPlaceEpisode:
        """Read an episode, and say which types there are where one is wrong."""
        try:
            return read_record(record, PickAndPlaceEpisode, file, place, exam=TASK, required=REQUIRED_KEYS)
        except InvalidFile as error:
            found = error.problem.removeprefix("Invalid enum value ")
            for key, choices in CHOICES.items():
                if found != error.problem and error.place.endswith(key):
                    problem = f"expected {' or '.join(map(repr, choices))}, found {found[:40]}"
                    hint = did_you_mean(found, choices)
                    raise InvalidFile(file, problem + hint, place=error.place) from None
            raise

    @classmethod
    def locator(cls, file: Path, scenes: Path | None) -> Callable[[PickAndPlaceEpisode], PickAndPlaceEpisode]:
        """Take the assets beside the dataset, or those in the other folder."""

        def locate(episode: PickAndPlaceEpisode) -> PickAndPlaceEpisode:
            folder = (scenes or file.parent) / (episode.assets_path or "")
            return msgspec.structs.replace(episode, assets_path=str(folder.resolve()))

        return locate

    @classmethod
    def document(cls, episodes: Sequence[PickAndPlaceEpisode], folder: Path) -> dict[str, Any]:
        """Begin with what people look for first."""
        always: dict[str, Any] = {"task_goal": {}, "scene_objects": []}
        records = []
        for episode in episodes:
            names = {"episode_id": episode.episode_id, "task_type": TASK, "scene_id": episode.scene_id}
            assets = None if episode.assets_path is None else _relative_path(episode.assets_path, folder)
            moved = msgspec.structs.replace(episode, assets_path=assets)
            records.append(names | always | msgspec.to_builtins(moved))
        return {"episodes": records}

    @classmethod
    def moved_record(
        cls, record: dict[str, Any], episode: PickAndPlaceEpisode, file: Path, folder: Path
    ) -> dict[str, Any]:
        """Keep the path of the assets right."""
        own = record.get("assets_path")
        path = _relative_path((file.parent / (own or "")).resolve(), folder)
        return record if path == own else record | {"assets_path": path}

    @classmethod
    def composition(cls, episodes: Sequence[PickAndPlaceEpisode]) -> list[str]:
        """Count splits, success criteria and targets."""
        sorts: dict[str, Callable[[PickAndPlaceEpisode], str]] = {
            "splits": lambda e: e.split or "none",
            "success": lambda e: e.task_goal.success_criteria.type,
            "targets": lambda e: e.task_goal.target_location.type if e.task_goal.target_location else "none",
        }
        counts = {title: Counter(map(sort, episodes)) for title, sort in sorts.items()}
        return [
            f"{title}: " + ", ".join(f"{name} {count}" for name, count in sorted(counted.items()))
            for title, counted in counts.items()
            if counted
        ]

    @classmethod
    def scene_files(cls, episodes: Sequence[PickAndPlaceEpisode]) -> Iterator[Path]:
        """Yield the files of the objects, as far as they exist; others are made, or refused by the env."""
        named = {(e.assets_path or "", item.usd_path) for e in episodes for item in e.scene_objects}
        for folder, name in sorted((folder, name) for folder, name in named if name and "\0" not in name):
            root = Path(folder).resolve()
            file = (root / name.replace("\\", "/")).resolve()
            if file.is_relative_to(root) and file.is_file():
                yield from (file, *files_of_mesh(file, root))

    def check(self, given: EpisodesToCheck[PickAndPlaceEpisode]) -> Iterator[Finding]:
        """Look for objects that the hand cannot reach; for `check-dataset` put all of them up, too."""
        return check_before_run(given) if given.is_run else check_dataset(given, self.envs[0])

    def brief(self, episode: PickAndPlaceEpisode, observation: Observation) -> EpisodeInfo:
        """Tell the robot, the goal and the objects, too."""
        told = super().brief(episode, observation)
        return msgspec.structs.replace(told, details=details_of(episode, hide_goal=self.options.hide_goal))

    def given_offers(self, told: EpisodeInfo, observation: Observation) -> set[str]:
        """Count a goal without coordinates as none."""
        given = super().given_offers(told, observation)
        return given - {"goal"} if self.options.hide_goal else given

    def instruction(self, episode: PickAndPlaceEpisode) -> str:
        """Return the text of the instruction."""
        return episode.instruction.text

    def encode_action(self, action: ManipulationAction) -> dict[str, Any]:
        """Return the action as messages hold it."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(action))
        return found

    @classmethod
    def as_info(cls, episode: PickAndPlaceEpisode, trace: PickPlaceTrace, index: int) -> Info:
        """Add the steps, the collisions so far and the distance to the goal."""
        state = trace.states[index]
        return {
            "step": index,
            "collision_count": sum(state.collision for state in trace.states[: index + 1]),
            "distance_to_goal": state.target_distance or 0.0,
            **plain_state(state),
            "position": Vector3(*state.position),
        }

    def distance(self, episode: PickAndPlaceEpisode) -> StraightDistance:
        """Measure in a straight line."""
        return StraightDistance(episode.task_goal.success_criteria.place_tolerance)

    def verdict(self, episode: PickAndPlaceEpisode | None, result: Any) -> Verdict:
        """Tell how far it came and what stopped it."""
        return verdict_of(episode, result)

    @classmethod
    def completed_options(cls, given: Mapping[str, Any], env_options: Mapping[str, Any]) -> dict[str, Any]:
        """Take over `object_info` that was told to the env, so that it is not combined with `hide_goal`."""
        return ({"object_info": True} if env_options.get("object_info") else {}) | dict(given)

    @classmethod
    def env_options(cls, options: PickPlaceOptions, seed: int) -> dict[str, Any]:
        """Return how the world looks. Level 0 is as stored, and the same run as one that names no level."""
        found: dict[str, Any] = {"level": options.level, "level_seed": seed} if options.level else {}
        return found | ({"object_info": True} if options.object_info else {})

    @classmethod
    def identity(cls, options: PickPlaceOptions) -> dict[str, Any]:
        """Return what the options of the env do not say."""
        return {"hide_goal": options.hide_goal}

    @classmethod
    def notes(cls, options: PickPlaceOptions, env_options: Mapping[str, Any]) -> list[str]:
        """Say what the world looks like and what agents are told."""
        found = []
        if env_options.get("level"):
            found.append(f"level {env_options['level']}: the world looks otherwise than it is stored")
        if env_options.get("object_info"):
            found.append("object_info is on: observations tell where the object and its target are")
        if options.hide_goal:
            found.append("the goal is hidden: agents are told no coordinates of objects and places")
        return found

    @classmethod
    def without_scene(cls, episode: PickAndPlaceEpisode) -> PickAndPlaceEpisode:
        """Leave the objects out."""
        return msgspec.structs.replace(episode, scene_objects=[])

    def sample_action(self, rng: np.random.Generator, step: int) -> ManipulationAction:
        """Send the joints to a place within their limits, and keep it for a while: else they get nowhere."""
        if step % LEG_STEPS == 0:
            self._target = random_target(rng)
        target: ManipulationAction = self._target
        return target

    def idle_action(self, observation: Observation, last: Any) -> Any:
        """Keep to the last action, or the joints where they are."""
        return joints_as_they_are(observation) if last is None else last


def _relative_path(path: Path | str, folder: Path) -> str | None:
    """Return where a folder of assets is, seen from another; None if it is the same."""
    relative = os.path.relpath(path, folder.resolve())
    return None if relative == "." else relative


def details_of(episode: PickAndPlaceEpisode, *, hide_goal: bool) -> dict[str, Any]:
    """Return what every agent is told of an episode; `hide_goal` leaves out where objects and target are."""
    hidden = FILE_NAMES | COORDINATES if hide_goal else FILE_NAMES
    robot = _plain(episode.robot_config)
    return {
        "robot_config": robot | {"joint_names": list(JOINT_NAMES), "joint_limits": limits_as_dict()},
        "task_goal": _plain(episode.task_goal, hidden),
        "scene_objects": _plain(episode.scene_objects, hidden),
        "sim_params": _plain(episode.sim_params),
    }


def _plain(value: Any, hidden: frozenset[str] = frozenset()) -> Any:
    """Return builtins, defaults included, unlike in files; None and hidden fields are left out."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        shown = {key: item for key, item in value.items() if item is not None and key not in hidden}
        return {key: _plain(item, hidden) for key, item in shown.items()}
    return [_plain(item, hidden) for item in value] if isinstance(value, list | tuple) else value
