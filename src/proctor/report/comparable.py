"""Finished runs, read from disk in order to be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from proctor.core.documents import MAX_BYTES, convert, read_json
from proctor.core.errors import InvalidFile, UserError
from proctor.core.results import (
    JOURNAL,
    MANIFEST,
    RESULTS,
    EpisodeResult,
    Results,
    manifest_notes,
    read_journal,
    read_manifest,
)


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
    identity, notes = _manifest(path / MANIFEST)
    journal = path / JOURNAL
    episodes = list(read_journal(journal).values()) if journal.is_file() else []
    if not episodes:
        raise UserError(f"{path}: no episode of this run is finished; the command that began it goes on")
    name = str(identity.get("policy") or path.name)
    return ComparableRun(
        name=name,
        episodes=episodes,
        path=str(path),
        identity=identity,
        definition=_definition(path / RESULTS),
        notes=notes,
    )


def _of_results(path: Path) -> ComparableRun:
    results = convert(read_json(path), Results, path)
    if not results.episodes:
        raise InvalidFile(path, "there is no episode in it")
    manifest = path.with_name(MANIFEST)
    identity, notes = _manifest(manifest) if manifest.is_file() else ({}, [])
    return ComparableRun(
        name=str(identity.get("policy") or path.stem),
        episodes=results.episodes,
        path=str(path),
        identity=identity,
        definition=results.summary.definition,
        notes=notes,
    )


def _manifest(path: Path) -> tuple[dict[str, Any], list[str]]:
    manifest = read_manifest(path)
    identity: dict[str, Any] = manifest["identity"]
    if not isinstance(identity.get("episodes", 0), int):
        raise InvalidFile(path, "expected a number of episodes", place="identity.episodes")
    return identity, manifest_notes(manifest)


class _Head(msgspec.Struct):
    """The one word of a results file that its journal does not say."""

    definition: str = ""


class _ResultsHead(msgspec.Struct):
    summary: _Head


def _definition(results: Path) -> str:
    if not results.is_file() or results.stat().st_size > MAX_BYTES:
        return ""
    try:
        return msgspec.json.decode(results.read_bytes(), type=_ResultsHead).summary.definition
    except msgspec.MsgspecError as error:
        raise InvalidFile(results, f"not the results of a run: {error}") from None
