"""Finished runs, read from disk in order to be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from proctor.core.errors import InvalidFile, UserError
from proctor.exams.results import JOURNAL, MANIFEST, RESULTS, EpisodeResult, manifest_notes, read_manifest
from proctor.runs.folder import agent_name, read_results, read_run_folder


class ComparableRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run by its episodes. Of what another tool has measured, a name and the episodes are enough."""

    name: str
    """Of the agent."""
    episodes: list[EpisodeResult]
    path: str = ""
    identity: dict[str, Any] = {}
    """What defined the run: exam, env, options; empty if nobody knows."""
    definition: str = ""
    """Whose metric definitions were used, if it is known."""
    notes: list[str] = []
    """What its manifest says about how far to trust it."""

    @property
    def expected(self) -> int:
        """How many episodes the run has when it is finished."""
        return max(len(self.episodes), int(self.identity.get("episodes", 0)))

    @property
    def is_privileged(self) -> bool:
        """Whether the agent was shown the truth."""
        return bool(self.identity.get("privileged", False))


def load_comparable(path: Path) -> ComparableRun:
    """Read a run directory, or a `results.json` by itself. An unfinished run has what it has so far.

    Raises:
        UserError: There is no run, or nothing is finished in it.
        InvalidFile: A file of it is wrong.
    """
    if path.is_file():
        return _of_results(path)
    if not path.exists():
        raise UserError(f"{path}: no such folder; expected a run, as `proctor run --out` makes it")
    if not (path / MANIFEST).is_file():
        inside = sorted(item.parent.name for item in path.glob(f"*/{MANIFEST}"))
        hint = f"; it holds runs, name one of them: {', '.join(inside[:8])}" if inside else ""
        raise UserError(f"{path}: not a run: there is no {MANIFEST} in it{hint}")
    return _of_folder(path)


def _of_folder(path: Path) -> ComparableRun:
    run = read_run_folder(path)
    if not run.episodes:
        raise UserError(f"{path}: no episode of this run is finished; the command that began it goes on")
    return ComparableRun(
        name=agent_name(run.identity, path.name),
        episodes=run.episodes,
        path=str(path),
        identity=run.identity,
        definition=run.definition,
        notes=run.notes,
    )


def _of_results(path: Path) -> ComparableRun:
    if path.name == RESULTS and all(path.with_name(name).is_file() for name in (MANIFEST, JOURNAL)):
        return msgspec.structs.replace(_of_folder(path.parent), path=str(path))
    results = read_results(path)
    if not results.episodes:
        raise InvalidFile(path, "there is no episode in it")
    manifest = path.with_name(MANIFEST)
    found = read_manifest(manifest) if manifest.is_file() else {"identity": {}}
    identity = found["identity"]
    return ComparableRun(
        name=agent_name(identity, path.stem),
        episodes=results.episodes,
        path=str(path),
        identity=identity,
        definition=results.summary.definition,
        notes=manifest_notes(found),
    )
