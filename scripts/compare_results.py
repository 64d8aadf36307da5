"""Show that a change of the code leaves every result as it was: record results before and after, and compare.

Both exams with their baselines, scored files of predictions and an agent on a WebSocket are recorded, by the
`proctor` command of the Python that runs this script. To record takes about eight minutes on one core:

    .venv/bin/python scripts/compare_results.py record runs/before
    .venv/bin/python scripts/compare_results.py compare runs/before runs/after

Values have to be the same to the last digit. What only the second recording has is listed and allowed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROCTOR = (sys.executable, "-m", "proctor.cli")
HOUSES = ("run", "--suite", "houses-v1", "--workers", "1", "--episodes")
TABLES = ("run", "--suite", "tabletop-v1", "--workers", "1", "--episodes")
COMPARED = ("*/results.json", "*.predictions.json")
MOST_LINES, MOST_CHARACTERS = 20, 100
"""How many differences are shown, and how much of a value."""


class Number(str):
    """A number as a file writes it, so that 1 is not 1.0 and no digit is lost."""

    __slots__ = ()


def main() -> int:
    """Record or compare, and return the exit code: 0 done or the same, 1 different, 2 user error."""
    parser = argparse.ArgumentParser(description="Record results, or compare two recordings value by value.")
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="run the exams and keep their results")
    recorder.add_argument("out", type=Path, metavar="OUT", help="a new folder")
    comparer = commands.add_parser("compare", help="say whether B has every value of A")
    comparer.add_argument("before", type=Path, metavar="A")
    comparer.add_argument("after", type=Path, metavar="B")
    arguments = parser.parse_args()
    if arguments.command == "compare":
        if not recorded(arguments.before):
            parser.error(f"{arguments.before} has no recorded results")
        return compare(arguments.before, arguments.after)
    if arguments.out.exists():  # a finished run is not done again: its results would be those of other code
        parser.error(f"{arguments.out} exists already; give a new name")
    record(arguments.out.resolve())
    return 0


def record(out: Path) -> None:
    """Write all results into a new folder, and say how long each took."""
    for policy in ("oracle", "blind", "random"):
        proctor(*HOUSES, "30", "--policy", policy, out=out / f"houses-{policy}")
    for level in ("0", "2"):
        for policy in ("expert", "random"):
            folder = out / f"tabletop-{policy}-level-{level}"
            proctor(*TABLES, "12", "--policy", policy, "--level", level, out=folder)
    suite = Path(read(out / "houses-oracle/manifest.json")["source"]["dataset"])
    dataset = str(write_dataset(suite, out))
    for policy, scenes in (("oracle", ["--scenes", str(suite.parent / "scenes")]), ("blind", [])):
        predictions = out / f"{policy}.predictions.json"
        proctor("predictions", str(out / f"houses-{policy}"), "--format", "r2r", out=predictions)
        proctor("score", str(predictions), "--dataset", dataset, *scenes, out=out / f"scored-{policy}")
    record_served(out)
    say(f"{len(recorded(out))} files to compare in {out}, by {sys.executable}")


def write_dataset(suite: Path, out: Path) -> Path:
    """Write the episodes that were driven, and a few more, as an R2R-CE file that knows of no scene files."""
    dataset = out / "dataset" / "val.json"
    proctor("convert", str(suite), str(dataset), "--to", "r2r-ce")
    document = json.loads(dataset.read_text("utf-8"))
    kept = {episode["episode_id"] for episode in read(out / "houses-oracle/results.json")["episodes"]}
    others = [id_ for episode in document["episodes"] if (id_ := episode["episode_id"]) not in kept]
    kept.update(others[:5])  # an episode without a prediction is a failure
    document["episodes"] = [episode for episode in document["episodes"] if episode["episode_id"] in kept]
    document.pop("proctor", None)  # what the format has no place for, such as the paths of scenes
    dataset.write_text(json.dumps(document), "utf-8")
    return dataset


def record_served(out: Path) -> None:
    """Run an agent that another process serves on a WebSocket."""
    command, log = [*PROCTOR, "serve-policy", "random", "--port", "0"], out / "served.log"
    with (
        log.open("w", encoding="utf-8") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as server,  # noqa: S603
    ):
        try:
            said = server.stdout.readline() if server.stdout else ""
            address = re.search(r"ws://\S+:\d+", said)
            if address is None:
                raise SystemExit(f"serve-policy gave no address, but {said!r}; see {log}")
            proctor(*HOUSES, "10", "--policy", address[0], out=out / "houses-served")
        finally:
            server.terminate()


def proctor(*words: str, out: Path | None = None) -> None:
    """Run a command of Proctor's, quietly unless it fails, and say how long it took."""
    started = time.perf_counter()
    command = [*PROCTOR, *words, *(["--out", str(out)] if out else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    say(f"{words[0]}{f' {out.name}' if out else ''}: {time.perf_counter() - started:.1f} s")


def recorded(folder: Path) -> list[str]:
    """Return the names of the files that are compared."""
    return sorted(str(file.relative_to(folder)) for pattern in COMPARED for file in folder.glob(pattern))


def compare(before: Path, after: Path) -> int:
    """Print what differs and what is new, and return 0 if every value of the first is in the second."""
    names, there = recorded(before), recorded(after)
    found = [f"{name}: there is no such file in {after}" for name in names if name not in there]
    added: dict[str, set[str]] = defaultdict(set)
    episodes = equal = 0
    for name in names:
        old = read(before / name)
        episodes += len(old.get("episodes", ()))
        if name in there:
            found += [f"{name}: {text}" for text in differences(old, read(after / name), "", name, added)]
            equal += (before / name).read_bytes() == (after / name).read_bytes()
    for path, files in sorted(added.items()):
        say(f"new field: {path} (in {len(files)} of {len(names)} files)")
    for line in found[:MOST_LINES]:
        say(f"differs: {line}")
    if len(found) > MOST_LINES:
        say(f"and {len(found) - MOST_LINES} more differences")
    verdict = f"{len(found)} differences" if found else "the same values"
    say(f"{len(names)} files, {episodes} episodes: {verdict} (bytes equal: {equal} of {len(names)})")
    return 1 if found else 0


def differences(old: Any, new: Any, path: str, name: str, added: dict[str, set[str]]) -> Iterator[str]:
    """Yield where a value of the old is missing or another in the new, and collect what only the new has."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in new.keys() - old.keys():
            added[re.sub(r"\[\d+\]", "[]", f"{path}/{key}")].add(name)
        for key in old:
            if key in new:
                yield from differences(old[key], new[key], f"{path}/{key}", name, added)
            else:
                yield f"{path}/{key}: {shown(old[key])} is missing"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: {len(old)} entries became {len(new)}"
        for index, pair in enumerate(zip(old, new, strict=False)):
            yield from differences(*pair, f"{path}[{index}]", name, added)
    elif type(old) is not type(new) or old != new:
        yield f"{path}: {shown(old)} became {shown(new)}"


def shown(value: Any) -> str:
    """Return a value as text of limited length."""
    text = value if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def read(file: Path) -> Any:
    """Read a JSON file, with numbers as they are written."""
    text = file.read_text("utf-8")
    return json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
