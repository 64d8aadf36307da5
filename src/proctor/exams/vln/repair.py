"""Reading broken files of VLN-CE: every mistake is found, and repaired where that is plain.

Repaired are quaternions and ids that stand twice; entries of the ground truth that do not fit are left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core.documents import convert, parse_json, read_bytes, refuse_nan
from proctor.core.errors import InvalidFile
from proctor.core.types import Array
from proctor.exams.checked_dataset import CheckedDataset
from proctor.exams.vln.axes import Rotations, classify_rotations
from proctor.exams.vln.gt import (
    NEAR_M,
    VlnceGroundTruth,
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
    VlnceRecord,
    episode_of,
    format_of,
    split_of,
    start_of,
    usual_turn_deg,
)

HUGE, SHORT = 1e3, 0.1
"""Beyond these lengths a quaternion is not one that somebody forgot to normalise."""


class VlnceRepair:
    """The steps by which a file of VLN-CE is read, as far as it can be, and repaired."""

    def __init__(self, checked: CheckedDataset) -> None:
        self._checked, self._findings = checked, checked.findings
        self._records: dict[int, VlnceRecord] = {}

    def run(self) -> None:
        """Read the file into the checked dataset, with what was found and changed."""
        checked = self._checked
        checked.add_malformed(self._understand())
        checked.format = self._format = format_of(list(self._records.values()))
        quaternions = np.array([r.start_rotation for r in self._records.values()]).reshape(-1, 4)
        seen = classify_rotations(quaternions)
        if seen.about_z.sum() > max(seen.about_y.sum(), seen.about_y_wxyz.sum()):
            text = "most start_rotations turn about z, expected about the up axis y: z is up in this file"
            self._findings.about("error", "up-axis", text, episodes=self._records)
            checked.unreadable = "z is up in it, and nobody knows where its agents look at heading 0"
            return  # in wrong axes, whatever else might be found would be false
        self._repair_rotations(quaternions, seen)
        renamed = checked.repair_duplicate_ids({i: str(r.episode_id) for i, r in self._records.items()})
        if checked.changes or self._findings.dropped:
            self._understand()  # again, now as repaired
        self._turn_deg = usual_turn_deg(self._format)
        self._extras = self._read_extras()
        gt = self._read_gt(renamed)
        self._build(gt)

    def _understand(self) -> list[tuple[int, str, str]]:
        """Read the records as far as they can be repaired; return (index, place, problem) of the others."""
        malformed = []
        records = {}
        for index, record in enumerate(self._checked.records):
            place = f"episodes[{index}]"
            if index in self._findings.dropped:
                continue
            try:
                refuse_nan(record, self._checked.file, place=place)
                records[index] = convert(record, VlnceRecord, self._checked.file, place=place)
            except InvalidFile as error:
                malformed.append((index, error.place or place, error.problem))
        self._records = records
        return malformed

    def _repair_rotations(self, quaternions: Array, seen: Rotations) -> None:
        indices = np.array(list(self._records), dtype=int)
        wxyz = seen.about_y_wxyz | ((seen.order == "wxyz") & ~seen.about_y)
        quaternions[wxyz] = np.roll(quaternions[wxyz], -1, axis=1)
        huge = (np.abs(quaternions) > HUGE).any(axis=1, keepdims=True)
        yaw_only = np.where(huge, 0.0, quaternions * [0, 1, 0, 1])
        lengths = np.linalg.norm(yaw_only, axis=1)
        flat = classify_rotations(quaternions).about_y
        lost = (lengths < SHORT) | (~flat & seen.about_z)
        tilted, long = ~flat & ~lost, ~seen.unit & ~lost
        add = self._findings.about
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
            repaired = yaw_only[row] / lengths[row] if tilted[row] or long[row] else quaternions[row]
            index, xyzw = int(indices[row]), repaired.tolist()
            record = self._checked.records[index]
            change = f"start_rotation {record['start_rotation']} to {xyzw}"
            self._checked.changes.append(f"episodes[{index}]: {change}")
            record["start_rotation"] = xyzw

    def _read_extras(self) -> dict[str, Extra]:
        document = self._checked.document
        try:
            return convert(document.get("proctor", {}), dict[str, Extra], self._checked.file, place="proctor")
        except InvalidFile as error:
            self._findings.about("error", "malformed", error.problem, places=[error.place], remedy="fixed")
            del document["proctor"]
            return {}

    def _read_gt(self, renamed: dict[int, str]) -> dict[str, VlnceGroundTruth]:
        found = gt_file(self._checked.file)
        if found is None:
            text = "no gt file beside the episodes: nDTW, SDTW and CLS are not measured"
            self._findings.about("warning", "no-gt", text, episodes=self._records)
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
            self._findings.about("error", "gt-broken", text, places=places, remedy="fixed")
        if not gt:
            return {}
        starts = {str(record.episode_id): start_of(record) for record in self._records.values()}
        self._turn_deg = turn_deg_of(starts, gt, usual=self._turn_deg)
        other = mismatch(starts, gt, turn_deg=self._turn_deg)
        if other is not None:
            text = f"{found.name}: {other}; a corrected copy goes without"
            self._findings.about("error", "gt-version", text, places=[found.name], remedy="fixed")
            return {}
        self._checked.companion = gt_kept = {key: document[key] for key in gt}
        for index, name in renamed.items():
            start = self._records[index].start_position
            if name in gt and math.dist(gt[name].locations[0], start) < NEAR_M:
                new_id = str(self._records[index].episode_id)
                gt[new_id], gt_kept[new_id] = gt[name], gt_kept[name]
        self._check_gt(gt, {str(record.episode_id) for record in self._records.values()})
        far = strays(starts, gt)
        text = "the gt begins elsewhere than its episode; a corrected copy goes without"
        self._findings.about("warning", "gt-mismatch", text, places=far, remedy="fixed")
        for key in far:
            del gt[key], gt_kept[key]
        return gt

    def _open_gt(self, file: Path) -> dict[str, Any] | None:
        """Return the gt file as JSON; None if it is none, which is written down."""
        try:
            document = parse_json(read_bytes(file), file, nan_as_text=True)
            if not isinstance(document, dict):
                raise InvalidFile(file, 'expected {"episode_id": {"locations": [...], ...}}')
        except InvalidFile as error:
            text = f"{file.name}: {error.problem}; a corrected copy goes without"
            self._findings.about(
                "error", "gt-broken", text, places=[error.place or file.name], remedy="fixed"
            )
            return None
        return document

    def _check_gt(self, gt: dict[str, VlnceGroundTruth], ids: set[str]) -> None:
        without = [index for index, r in self._records.items() if str(r.episode_id) not in gt]
        text = "no gt: nDTW, SDTW and CLS are not measured there"
        self._findings.about("warning", "no-gt", text, episodes=without)
        extra = sorted(gt.keys() - ids)
        self._findings.about("note", "gt-extra", "a gt without an episode", places=extra)
        text = (
            "actions and path of the gt do not fit each other: expected one point more than FORWARD actions"
        )
        self._findings.about("warning", "gt-inconsistent", text, places=inconsistencies(gt))

    def _build(self, gt: dict[str, VlnceGroundTruth]) -> None:
        checked = self._checked
        malformed = []
        for index, record in self._records.items():
            entry = gt.get(str(record.episode_id))
            try:
                checked.episodes[index] = episode_of(
                    record,
                    entry,
                    self._extras.get(str(record.episode_id), Extra()),
                    format_=self._format,
                    turn_deg=self._turn_deg,
                    split=split_of(checked.file),
                )
            except ValueError as error:
                malformed.append((index, f"episodes[{index}]", str(error)))
        checked.add_malformed(malformed)
        if self._format == "r2r-ce" and checked.episodes:
            version = version_of(start_of(record).heading_rad for record in self._records.values())
            are = "are" if version == "v1-3" else "are not"
            text = f"start headings {are} multiples of 30 degrees: looks like R2R-CE {version}"
            self._findings.about("note", "version", text, places=[checked.file.name])
