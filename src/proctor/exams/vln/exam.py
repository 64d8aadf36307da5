"""Vision-and-language navigation as an exam. Start here; the other files of this folder are its parts."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import DialectDefaults, SentObservation
from proctor.exams.checked_dataset import CheckedDataset
from proctor.exams.driving import DrivingExam
from proctor.exams.episode_files import Loaded, Writer, first_records, located, raw_records, read_record
from proctor.exams.exam import ExamOptions, Metric
from proctor.exams.findings import EpisodesToCheck, Finding
from proctor.exams.path_distance import PathDistance
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M, Episode, stored_geodesic_m
from proctor.exams.vln.files import REQUIRED_KEYS, document_of_walks, scene_locator, with_relative_scenes
from proctor.exams.vln.foreign_results import read_vlnce_results
from proctor.exams.vln.gt import gt_candidates, gt_name
from proctor.exams.vln.metrics import DEFINITION, METRICS
from proctor.exams.vln.predictions import PREDICTIONS
from proctor.exams.vln.repair import VlnceRepair
from proctor.exams.vln.verdict import verdict_of
from proctor.exams.vln.vlnce import is_vlnce, load_vlnce
from proctor.exams.vln.vlnce_writer import write_vlnce

FILTERS = {
    "no-goal": "the goal is withheld",
    "no-gt": "no dense reference path",
    "no-scene": "the scene file is missing",
    "scene": "the scene is broken",
    "off-map": "start or goal inside of an object, or beyond the map",
    "start-blocked": "the robot cannot stand at the start",
    "unreachable": "no path from start to goal",
    "level-change": "more than 0.3 m up or down on the path",
    "empty-instruction": "nothing is said",
    "duplicate": "the same in all as an episode before",
}
"""Reasons to leave episodes out, by name. Nothing is left out unless asked for."""

DIALECTS = DialectDefaults(
    observations={
        # 224 x 224 is what the models of openpi see in the end; its own clients scale before they send, too.
        "openpi": SentObservation(
            entries={"observation/image": "rgb", "prompt": "instruction"}, resize={"rgb": (224, 224)}
        ),
        "vla-eval": SentObservation(entries={"images": {"head": "rgb"}, "task_description": "instruction"}),
        "roboarena": SentObservation(
            entries={"observation/exterior_image_0_left": "rgb", "prompt": "instruction"},
            resize={"rgb": (224, 224)},
        ),
        "vln-ce-docker": SentObservation(entries={"rgb": "rgb", "depth": "depth"}),
        "xpolicylab": SentObservation(
            entries={"vision": {"cam_head": {"color": "rgb"}}, "instruction": "instruction"}
        ),
        "lerobot": SentObservation(entries={"pixels": "rgb"}),
        "gr00t": SentObservation(entries={"video": {"head": "rgb"}, "language": {"task": "instruction"}}),
    },
    action_kinds={"index": (1,), "scores": (4,)},
    default_kind="index",
)


class VlnOptions(ExamOptions, frozen=True, kw_only=True):
    """The options of navigation."""

    success_threshold_m: Annotated[
        float,
        msgspec.Meta(
            description="metres from the goal, where an episode does not say it (default: 0.2)",
            extra={"flag": "--success-threshold", "metavar": "M"},
        ),
    ] = DEFAULT_SUCCESS_THRESHOLD_M

    def __post_init__(self) -> None:
        if not 0 < self.success_threshold_m < math.inf:
            raise UserError(f"expected a success threshold above 0 m, found {self.success_threshold_m}")


class VlnExam(DrivingExam[Episode]):
    """Follow an instruction through a building, and stop where it ends."""

    name = "vln"
    title = "navigation"
    episode = Episode
    options_type = VlnOptions
    worker_modules = ("proctor.exams.vln.exam", "proctor.scenes.scene")
    example_suite = "houses-v1"
    baselines: ClassVar[Mapping[str, str]] = {
        "forward": "proctor.exams.vln.baselines:ForwardPolicy",
        "blind": "proctor.exams.vln.baselines:BlindPolicy",
        "oracle": "proctor.exams.vln.oracle:OraclePolicy",
        "navigate_to": "proctor.exams.vln.navigate_to:NavigateToPolicy",
    }
    metrics: ClassVar[Sequence[Metric]] = METRICS
    metric_groups = ("proctor.metrics",)
    definition = DEFINITION
    dialects = DIALECTS
    chat = "proctor.exams.vln.chat:VlnChat"
    is_untagged = True
    formats: ClassVar[Mapping[str, Writer]] = {
        "r2r-ce": partial(write_vlnce, format_="r2r-ce"),
        "rxr-ce": partial(write_vlnce, format_="rxr-ce"),
    }
    filters: ClassVar[Mapping[str, str]] = FILTERS
    predictions = PREDICTIONS
    page = "proctor.exams.vln.page:VlnPage"
    table_notes = (
        "NE: {distance} to the goal at the end. SR and OSR go by it, too.",
        "SR: stopped within the episode's threshold; 0.2 m: stopped within 0.2 m.",
    )
    compared_options: ClassVar[Mapping[str, str]] = {"success_threshold_m": "success thresholds"}
    backend_gap = "proctor.exams.driving_gap:gap_of"

    locator = staticmethod(scene_locator)
    verdict = staticmethod(verdict_of)
    read_foreign_results = staticmethod(read_vlnce_results)

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Recognise native episodes and those of R2R-CE and RxR-CE."""
        return "start_position" in record and "task_goal" not in record

    @classmethod
    def read(cls, record: Any, file: Path, place: str) -> Episode:
        """Read a native episode."""
        return read_record(record, Episode, file, place, exam=cls.name, required=REQUIRED_KEYS)

    @classmethod
    def load(cls, raw: bytes, file: Path, scenes: Path | None) -> Loaded[Episode]:
        """Read a native file, R2R-CE or RxR-CE."""
        if any(map(is_vlnce, first_records(raw_records(raw)))):
            loaded, locate = load_vlnce(raw, file), scene_locator(file, scenes)
            episodes = [
                located(episode, locate, file, f"episodes[{index}]")
                for index, episode in enumerate(loaded.episodes)
            ]
            return loaded._replace(episodes=episodes)
        try:
            return super().load(raw, file, scenes)
        except InvalidFile as error:
            if error.place or "_gt.json" not in file.name:
                raise
            hint = "this looks like a gt file: give the episodes, it is found beside them"
            raise InvalidFile(file, f"{error.problem}; {hint}") from None

    @classmethod
    def document(cls, episodes: Sequence[Episode], folder: Path) -> dict[str, Any]:
        """Write all keys that files must have."""
        return document_of_walks(with_relative_scenes(episodes, folder))

    @classmethod
    def companions(cls, file: Path) -> Sequence[Path]:
        """Return the names of ground truth."""
        return list(dict.fromkeys([gt_name(file), *gt_candidates(file)]))

    @classmethod
    def read_broken(cls, checked: CheckedDataset) -> None:
        """Read a native file, R2R-CE or RxR-CE."""
        if any(map(is_vlnce, checked.records)):
            VlnceRepair(checked).run()
        else:
            checked.read_native()

    @classmethod
    def moved_record(
        cls, record: dict[str, Any], episode: Episode, file: Path, folder: Path
    ) -> dict[str, Any]:
        """Keep the path of the scene right."""
        if episode.scene_config_path is None or is_vlnce(record):  # VLN-CE has no place for paths
            return record
        return {**record, "scene_config_path": os.path.relpath(episode.scene_config_path, folder.resolve())}

    def check(self, given: EpisodesToCheck[Episode]) -> Iterator[Finding]:
        """Look at goals, scenes and maps; for `check-dataset` at everything else, too."""
        from proctor.exams.vln.checks import (  # noqa: PLC0415  (maps need packages that agents do not)
            check_before_run,
            check_dataset,
        )

        return check_before_run(given) if given.is_run else check_dataset(given, self.envs[0])

    @classmethod
    def completed_options(cls, given: Mapping[str, Any], env_options: Mapping[str, Any]) -> dict[str, Any]:
        """Take over a success threshold that was told to the env, as O3DE's configuration has one."""
        own_m = env_options.get("success_threshold")
        return ({"success_threshold_m": own_m} if isinstance(own_m, int | float) else {}) | dict(given)

    def distance(self, episode: Episode) -> PathDistance:
        """Return the distance on the map of the episode's scene, if it has one."""
        own_m = episode.success_threshold
        return PathDistance(
            episode,
            success_threshold_m=self.options.success_threshold_m if own_m is None else own_m,
            stored_m=stored_geodesic_m(episode),
        )

    def reworded(self, episode: Episode, seed: int) -> str:
        """Describe the same path in other words."""
        from proctor.exams.vln.instruction_checker import reworded  # noqa: PLC0415  (maps need packages that agents do not)

        return reworded(episode, seed)

    @classmethod
    def without_scene(cls, episode: Episode) -> Episode:
        """Leave the scene's file out."""
        return msgspec.structs.replace(episode, scene_config_path=None)
