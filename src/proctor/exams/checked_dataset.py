"""A dataset as a doctor takes it in: read as far as it can be read, and mended where that is plain.

The strict loader stops at the first mistake. Here each is written down, and the copy of the document that a
corrected file is made from is mended: the order and length of quaternions, ids that stand twice. What is not
understood, such as tokens, stays as it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from proctor.core.documents import convert, parse_json, read_bytes, refuse_nan
from proctor.core.errors import InvalidFile
from proctor.core.types import Array
from proctor.exams.datasets import check_frozen, check_required, episode_file
from proctor.exams.findings import Findings
from proctor.exams.pick_place.episode import TASK, PickAndPlaceEpisode
from proctor.exams.pick_place.episode_checks import problems_of
from proctor.exams.pick_place.files import is_pick_place, read_record, records_of
from proctor.exams.vln.axes import Rotations, classify_rotations
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.gt import (
    NEAR_M,
    GroundTruth,
    gt_file,
    inconsistencies,
    mismatch,
    sound_entries,
    strays,
    turn_deg_of,
    version_of,
)
from proctor.exams.vln.vlnce import (
    Extra,
    Format,
    Record,
    episode_of,
    format_of,
    is_vlnce,
    split_of,
    start_of,
    usual_turn_deg,
)

HUGE, SHORT = 1e3, 0.1
"""Beyond these lengths a quaternion is not one that somebody forgot to normalise."""


class Patient:
    """A dataset under examination.

    Args:
        path: The file or folder.

    Raises:
        InvalidFile: It cannot even be opened as a list of episodes.
    """

    def __init__(self, path: Path) -> None:
        self.file = episode_file(path)
        self.findings = Findings(self.id_at)
        self.task = Episode.task
        self.format: Literal["native"] | Format = "native"
        self.document: dict[str, Any] = parse_json(read_bytes(self.file), self.file, nan_as_text=True)
        """The mended one."""
        self.episodes: dict[int, Episode] = {}
        """By index in the file; only those that can be understood."""
        self.picks: dict[int, PickAndPlaceEpisode] = {}
        """The same, of the other task."""
        self.gt: dict[str, Any] | None = None
        """What the gt file of a corrected copy holds."""
        self.changes: list[str] = []
        """What was mended, in words."""
        self.incurable = ""
        """Why no corrected copy can be written, if so."""
        if any(is_pick_place(record) for record, _ in records_of(self.document)):
            if isinstance(self.document, list) or "episodes" not in self.document:
                self.document = {"episodes": [record for record, _ in records_of(self.document)]}
            self.task = TASK
        shape_is_right = isinstance(self.document, dict) and isinstance(self.document.get("episodes"), list)
        if not shape_is_right or not self.records:
            check_required(self.document, self.file)
            raise InvalidFile(self.file, "expected at least one episode, found none", place="episodes")
        try:
            check_frozen(self.file.parent)
        except InvalidFile as error:
            self.findings.add("error", "frozen", str(error), places=[str(error.file)])
        if self.task == TASK:
            self._read_pick_place()
        elif any(map(is_vlnce, self.records)):
            _VlnceReading(self)
        else:
            self._read_native()

    @property
    def records(self) -> list[Any]:
        """The mended episodes, as JSON."""
        records: list[Any] = self.document["episodes"]
        return records

    def id_at(self, index: int) -> str:
        """Return the id of the episode at an index, or its place if it has none."""
        record = self.records[index]
        found = record.get("episode_id") if isinstance(record, dict) else None
        return str(found) if isinstance(found, str | int) and found != "" else f"episodes[{index}]"

    def mend_id(self, index: int, new_id: str, why: str) -> None:
        """Give an episode another id."""
        self.changes.append(
            f"episodes[{index}]: id {self.records[index]['episode_id']!r} to '{new_id}', {why}"
        )
        self.records[index]["episode_id"] = new_id

    def mend_duplicate_ids(self, ids: dict[int, str]) -> dict[int, str]:
        """Give every episode an id of its own. Returns the new ids with those they were copied from."""
        taken, twins = set(ids.values()), {}
        seen: set[str] = set()
        for index, name in ids.items():
            if name in seen:
                number = next(n for n in range(2, len(ids) + 2) if f"{name}_{n}" not in taken)
                self.mend_id(index, f"{name}_{number}", "which was taken")
                taken.add(f"{name}_{number}")
                twins[index] = name
            seen.add(name)
        text = "the id is taken by an episode before"
        self.findings.add("error", "duplicate-id", text, episodes=twins, remedy="fixed")
        return twins

    def add_malformed(self, problems: Sequence[tuple[int, str, str]]) -> None:
        """Write down (index, place, problem) of episodes that cannot be understood, alike ones together."""
        alike: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for index, place, problem in problems:
            alike[problem].append((index, place))
        for problem, found in alike.items():
            self.findings.add(
                "error",
                "malformed",
                problem,
                episodes=[index for index, _ in found],
                places=[place for _, place in found],
                remedy="dropped",
            )

    def _mend_native(self) -> None:
        """Mend what all native files have in common."""
        unknown = sorted(self.document.keys() - {"episodes"})
        self.findings.add("error", "unknown-key", "unknown beside `episodes`", places=unknown, remedy="fixed")
        for key in unknown:
            self.changes.append(f"without the key {key!r}")
            del self.document[key]
        numbers = [
            index
            for index, record in enumerate(self.records)
            if isinstance(record, dict) and type(record.get("episode_id")) is int
        ]
        for index in numbers:
            self.mend_id(index, str(self.records[index]["episode_id"]), "as text")
        self.findings.add("error", "id-type", "the id is no text", episodes=numbers, remedy="fixed")

    def _read_pick_place(self) -> None:
        self._mend_native()
        malformed = []
        for index, record in enumerate(self.records):
            place = f"episodes[{index}]"
            try:
                refuse_nan(record, self.file, place=place)
                episode = read_record(record, self.file, place)
            except InvalidFile as error:
                malformed.append((index, error.place or place, error.problem))
                continue
            problems = [(index, f"{place}.{inner}", problem) for inner, problem in problems_of(episode)]
            malformed += problems
            if not problems:
                self.picks[index] = episode
        self.add_malformed(malformed)
        self.mend_duplicate_ids({index: e.episode_id for index, e in self.picks.items()})

    def _read_native(self) -> None:
        self._mend_native()
        malformed = []
        for index, record in enumerate(self.records):
            place = f"episodes[{index}]"
            try:
                refuse_nan(record, self.file, place=place)
                check_required({"episodes": [record]}, self.file)
                self.episodes[index] = convert(record, Episode, self.file, place=place)
            except InvalidFile as error:
                own_place = error.place.replace("episodes[0]", place) if error.place else place
                malformed.append((index, own_place, error.problem))
        self.add_malformed(malformed)
        self.mend_duplicate_ids({index: e.episode_id for index, e in self.episodes.items()})
        for index in self.episodes:
            self.episodes[index] = convert(self.records[index], Episode, self.file)
        without = [index for index, e in self.episodes.items() if e.reference_path is None]
        text = "no reference path: nDTW, SDTW and CLS are not measured"
        self.findings.add("note", "no-gt", text, episodes=without)


class _VlnceReading:
    """The steps by which a file of VLN-CE is read and mended."""

    def __init__(self, patient: Patient) -> None:
        self._patient, self._findings = patient, patient.findings
        self._records: dict[int, Record] = {}
        patient.add_malformed(self._understand())
        patient.format = self._format = format_of(list(self._records.values()))
        quaternions = np.array([r.start_rotation for r in self._records.values()]).reshape(-1, 4)
        seen = classify_rotations(quaternions)
        if seen.about_z.sum() > max(seen.about_y.sum(), seen.about_y_wxyz.sum()):
            text = "most start_rotations turn about z, expected about the up axis y: z is up in this file"
            self._findings.add("error", "up-axis", text, episodes=self._records)
            patient.incurable = "z is up in it, and nobody knows where its agents look at heading 0"
            return  # in wrong axes, whatever else might be found would be false
        self._mend_rotations(quaternions, seen)
        twins = patient.mend_duplicate_ids({i: str(r.episode_id) for i, r in self._records.items()})
        if patient.changes or self._findings.dropped:
            self._understand()  # again, now as mended
        self._turn_deg = usual_turn_deg(self._format)
        self._extras = self._read_extras()
        gt = self._read_gt(twins)
        self._build(gt)

    def _understand(self) -> list[tuple[int, str, str]]:
        """Read the records as far as they can be mended; return (index, place, problem) of the others."""
        malformed = []
        records = {}
        for index, record in enumerate(self._patient.records):
            place = f"episodes[{index}]"
            if index in self._findings.dropped:
                continue
            try:
                refuse_nan(record, self._patient.file, place=place)
                records[index] = convert(record, Record, self._patient.file, place=place)
            except InvalidFile as error:
                malformed.append((index, error.place or place, error.problem))
        self._records = records
        return malformed

    def _mend_rotations(self, quaternions: Array, seen: Rotations) -> None:
        indices = np.array(list(self._records), dtype=int)
        wxyz = seen.about_y_wxyz | ((seen.order == "wxyz") & ~seen.about_y)
        quaternions[wxyz] = np.roll(quaternions[wxyz], -1, axis=1)
        huge = (np.abs(quaternions) > HUGE).any(axis=1, keepdims=True)
        yaw_only = np.where(huge, 0.0, quaternions * [0, 1, 0, 1])
        lengths = np.linalg.norm(yaw_only, axis=1)
        flat = classify_rotations(quaternions).about_y
        lost = (lengths < SHORT) | (~flat & seen.about_z)
        tilted, long = ~flat & ~lost, ~seen.unit & ~lost
        add = self._findings.add
        text = "start_rotation is in the order wxyz, expected xyzw"
        add("error", "quaternion-order", text, episodes=indices[wxyz & ~lost].tolist(), remedy="fixed")
        text = "start_rotation turns about z, expected about the up axis y"
        add("error", "up-axis", text, episodes=indices[lost & seen.about_z].tolist(), remedy="dropped")
        text = "start_rotation has no heading"
        add("error", "quaternion", text, episodes=indices[lost & ~seen.about_z].tolist(), remedy="dropped")
        text = "start_rotation is tilted, expected a rotation about y only; its heading is kept"
        add("error", "quaternion-tilt", text, episodes=indices[tilted].tolist(), remedy="fixed")
        text = "start_rotation is not of length 1"
        add("error", "quaternion-length", text, episodes=indices[long].tolist(), remedy="fixed")
        for row in np.flatnonzero((wxyz | tilted | long) & ~lost).tolist():
            mended = yaw_only[row] / lengths[row] if tilted[row] or long[row] else quaternions[row]
            self._mend_rotation(int(indices[row]), mended.tolist())

    def _mend_rotation(self, index: int, xyzw: list[float]) -> None:
        record = self._patient.records[index]
        self._patient.changes.append(
            f"episodes[{index}]: start_rotation {record['start_rotation']} to {xyzw}"
        )
        record["start_rotation"] = xyzw

    def _read_extras(self) -> dict[str, Extra]:
        document = self._patient.document
        try:
            return convert(document.get("proctor", {}), dict[str, Extra], self._patient.file, place="proctor")
        except InvalidFile as error:
            self._findings.add("error", "malformed", error.problem, places=[error.place], remedy="fixed")
            del document["proctor"]
            return {}

    def _read_gt(self, twins: dict[int, str]) -> dict[str, GroundTruth]:
        found = gt_file(self._patient.file)
        if found is None:
            text = "no gt file beside the episodes: nDTW, SDTW and CLS are not measured"
            self._findings.add("warning", "no-gt", text, episodes=self._records)
            return {}
        document = self._open_gt(found)
        if document is None:
            return {}
        gt, broken = sound_entries(document, found)
        by_problem: dict[str, list[str]] = defaultdict(list)
        for error in broken:
            by_problem[error.problem].append(error.place)
        for problem, places in by_problem.items():
            text = f"{found.name}: {problem}; a corrected copy goes without these entries"
            self._findings.add("error", "gt-broken", text, places=places, remedy="fixed")
        if not gt:
            return {}
        starts = {str(record.episode_id): start_of(record) for record in self._records.values()}
        self._turn_deg = turn_deg_of(starts, gt, usual=self._turn_deg)
        other = mismatch(starts, gt, turn_deg=self._turn_deg)
        if other is not None:
            text = f"{found.name}: {other}; a corrected copy goes without"
            self._findings.add("error", "gt-version", text, places=[found.name], remedy="fixed")
            return {}
        self._patient.gt = {key: document[key] for key in gt}
        for index, name in twins.items():
            start = self._records[index].start_position
            if name in gt and math.dist(gt[name].locations[0], start) < NEAR_M:
                twin = str(self._records[index].episode_id)
                gt[twin], self._patient.gt[twin] = gt[name], self._patient.gt[name]
        self._check_gt(gt, {str(record.episode_id) for record in self._records.values()})
        far = strays(starts, gt)
        text = "the gt begins elsewhere than its episode; a corrected copy goes without"
        self._findings.add("warning", "gt-mismatch", text, places=far, remedy="fixed")
        for key in far:
            del gt[key], self._patient.gt[key]
        return gt

    def _open_gt(self, file: Path) -> dict[str, Any] | None:
        """Return the gt file as JSON; None if it is none, which is written down."""
        try:
            document = parse_json(read_bytes(file), file, nan_as_text=True)
            if not isinstance(document, dict):
                raise InvalidFile(file, 'expected {"episode_id": {"locations": [...], ...}}')
        except InvalidFile as error:
            text = f"{file.name}: {error.problem}; a corrected copy goes without"
            self._findings.add("error", "gt-broken", text, places=[error.place or file.name], remedy="fixed")
            return None
        return document

    def _check_gt(self, gt: dict[str, GroundTruth], ids: set[str]) -> None:
        without = [index for index, r in self._records.items() if str(r.episode_id) not in gt]
        text = "no gt: nDTW, SDTW and CLS are not measured there"
        self._findings.add("warning", "no-gt", text, episodes=without)
        extra = sorted(gt.keys() - ids)
        self._findings.add("note", "gt-extra", "a gt without an episode", places=extra)
        text = (
            "actions and path of the gt do not fit each other: expected one point more than FORWARD actions"
        )
        self._findings.add("warning", "gt-inconsistent", text, places=inconsistencies(gt))

    def _build(self, gt: dict[str, GroundTruth]) -> None:
        patient = self._patient
        malformed = []
        for index, record in self._records.items():
            entry = gt.get(str(record.episode_id))
            try:
                patient.episodes[index] = episode_of(
                    record,
                    entry,
                    self._extras.get(str(record.episode_id), Extra()),
                    format_=self._format,
                    turn_deg=self._turn_deg,
                    split=split_of(patient.file),
                )
            except ValueError as error:
                malformed.append((index, f"episodes[{index}]", str(error)))
        patient.add_malformed(malformed)
        if self._format == "r2r-ce" and patient.episodes:
            version = version_of(start_of(record).heading_rad for record in self._records.values())
            are = "are" if version == "v1-3" else "are not"
            text = f"start headings {are} multiples of 30 degrees: looks like R2R-CE {version}"
            self._findings.add("note", "version", text, places=[patient.file.name])
