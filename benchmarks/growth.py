"""How speed, memory and start-up grow with workers, pictures, objects, rooms and journals.

`python -m benchmarks.growth` measures, for some minutes, prints tables for docs/cluster.md and draws
docs/images/growth.png. They are numbers of one machine: compare their shape, not their size.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.runs.attempts import Attempts
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.pool import WorkerPool

PICTURE = Path("docs/images/growth.png")
HOUSES, PER_HOUSE = 4, 6
REPEATS = 3


class Curve(NamedTuple):
    """One panel: what grows, and one value or more for each size."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    lines: dict[str, Sequence[float]]
    is_log: bool = False


def main() -> None:
    """Measure, print and draw."""
    curves = []
    for measure in (workers_curve, pictures_curve, objects_curve, rooms_curve, memory_curve, journal_curve):
        begun_s = time.monotonic()
        curves.append(measure())
        print(f"\n{curves[-1].title} ({time.monotonic() - begun_s:.0f} s)", flush=True)
        print_table(curves[-1])
    draw(curves)
    print(f"\n{PICTURE}")


def houses() -> list[Any]:
    """Return some episodes of some houses, each house's together."""
    episodes = load_dataset(suite_path("houses-v1")).episodes
    scenes = list(dict.fromkeys(episode.scene_id for episode in episodes))[:HOUSES]
    return [e for scene in scenes for e in [e for e in episodes if e.scene_id == scene][:PER_HOUSE]]


def pool_s(episodes: Sequence[Any], workers: int, env_options: dict[str, Any]) -> tuple[float, float, int]:
    """Return how long a pool takes to start and to do episodes, and how many steps those have."""
    job = RunJob(env="embedded", policy="replay", privileged=True, env_options=env_options)
    begun_s = time.perf_counter()
    pool = WorkerPool(job, workers)
    pool.start()
    ready_s = time.perf_counter()
    steps = sum(done.result.steps for done in pool.run(Attempts(episodes)) if done)
    done_s = time.perf_counter()
    pool.close()
    return ready_s - begun_s, done_s - ready_s, steps


def workers_curve() -> Curve:
    counts, episodes = (1, 2, 4), houses()
    sizes = {"640x480": {}, "224x224": {"width": 224, "height": 224}, "no pictures": {"sensors": []}}
    lines = {}
    for name, options in sizes.items():
        best_s = [min(pool_s(episodes, count, options)[1] for _ in range(REPEATS)) for count in counts]
        lines[name] = [60 * len(episodes) / passed_s for passed_s in best_s]
    return Curve(
        "Episodes per minute against workers", "workers on 2 cores", "episodes a minute", counts, lines
    )


def pictures_curve() -> Curve:
    widths, episodes = (64, 128, 224, 320, 640, 1280), houses()[:PER_HOUSE]
    step_ms = []
    for width in widths:
        options = {"width": width, "height": width * 3 // 4}
        tries = [pool_s(episodes, 1, options) for _ in range(REPEATS)]
        step_ms.append(1e3 * min(passed_s / steps for _, passed_s, steps in tries))
    pixels = [width * (width * 3 // 4) / 1e6 for width in widths]
    lines = {"one worker": step_ms}
    return Curve(
        "A step against the size of its RGB-D picture", "megapixels", "ms a step", pixels, lines, is_log=True
    )


def objects_curve() -> Curve:
    counts = (50, 100, 200, 400, 800)
    measured = [_made_scene(count, side_m=20.0) for count in counts]
    lines = {
        "step with a picture (ms)": [m.step_ms for m in measured],
        "first scene, GL start included (ms)": [m.build_ms for m in measured],
    }
    return Curve("Objects in the scene", "objects", "ms", counts, lines, is_log=True)


def rooms_curve() -> Curve:
    sides_m = (10.0, 20.0, 40.0, 80.0)
    measured = [_made_scene(100, side_m=side_m) for side_m in sides_m]
    lines = {
        "first scene, map and distances included (ms)": [m.build_ms for m in measured],
        "step with a picture (ms)": [m.step_ms for m in measured],
    }
    return Curve("Size of the map", "side of the room, m", "ms", sides_m, lines, is_log=True)


class _Made(NamedTuple):
    build_ms: float
    """Reset: from the file to the first picture, map and distances included."""
    step_ms: float


def _made_scene(objects: int, side_m: float) -> _Made:
    """Measure an episode in a square room with boxes at random places."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "episodes.json"
        (Path(folder) / "scenes").mkdir()
        (Path(folder) / "scenes" / "room.json").write_text(json.dumps(_room(objects, side_m)))
        dataset.write_text(json.dumps({"episodes": [_episode(side_m)]}))
        episodes = load_dataset(dataset).episodes
        first = [pool_s(episodes, 1, {})[1] for _ in range(REPEATS)]
        many = [msgspec.structs.replace(episodes[0], episode_id=f"e{index}") for index in range(6)]
        rest = [pool_s(many, 1, {}) for _ in range(REPEATS)]
    steps = rest[0][2] // len(many)
    episode_s = (min(passed_s for _, passed_s, _ in rest) - min(first)) / (len(many) - 1)
    return _Made(1e3 * max(0.0, min(first) - episode_s), 1e3 * episode_s / steps)


def _room(objects: int, side_m: float) -> dict[str, Any]:
    chance, half_m = random.Random(objects), side_m / 2
    walls = [
        {"name": f"wall {index}", "translate": [x, y, 1.3], "parts": [{"shape": "box", "size": [*size, 2.6]}]}
        for index, (x, y, size) in enumerate(
            [
                (half_m, 0, (0.1, side_m)),
                (-half_m, 0, (0.1, side_m)),
                (0, half_m, (side_m, 0.1)),
                (0, -half_m, (side_m, 0.1)),
            ]
        )
    ]
    boxes = []
    while len(boxes) < objects:
        x, y = chance.uniform(-half_m + 0.5, half_m - 0.5), chance.uniform(-half_m + 0.5, half_m - 0.5)
        if abs(y) > 1.0:  # the robot drives along y = 0
            part = {"shape": "box", "size": [0.3, 0.3, 0.8], "texture": "wood"}
            boxes.append({"name": f"box {len(boxes)}", "translate": [x, y, 0.4], "parts": [part]})
    return {"scene_name": "room", "objects": walls + boxes}


def _episode(side_m: float) -> dict[str, Any]:
    start_m, moves = -side_m / 2 + 1.0, 24
    return {
        "episode_id": "e",
        "scene_id": "room",
        "start_position": {"x": start_m, "y": 0.0, "z": 0.0},
        "start_rotation": {"x": 0, "y": 0, "z": 0},
        "goal_position": {"x": start_m + 0.25 * moves, "y": 0.0, "z": 0.0},
        "instruction": "Drive on.",
        "reference_actions": [1] * moves + [0],
    }


def memory_curve() -> Curve:
    counts = (1, 2, 4)
    per_worker, start_s = [], []
    for count in counts:
        with _peak_memory_mb() as peak:
            start_s.append(pool_s(houses(), count, {})[0])
        per_worker.append(peak.mb / count)
    lines = {
        "memory of a worker (MB, shared pages split)": per_worker,
        "start-up of all workers (ms)": [1e3 * passed_s for passed_s in start_s],
    }
    return Curve("Memory and start-up", "workers", "MB; ms", counts, lines)


class _peak_memory_mb:  # noqa: N801  (used as a function)
    """Watch what the children of this process take, shared pages divided by those who share them (PSS)."""

    mb = 0.0

    def __enter__(self) -> _peak_memory_mb:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.2):
            self.mb = max(self.mb, sum(_pss_mb(child) for child in _descendants(os.getpid())))


def _descendants(process: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _descendants(child)


def _pss_mb(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def journal_curve() -> Curve:
    counts = (100, 1000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        resume_ms, size_mb = zip(
            *(_journal(Path(folder) / str(count), count) for count in counts), strict=True
        )
    lines = {"plan of a resumed run (ms)": resume_ms, "journal (MB)": size_mb}
    return Curve("Journal of a long run", "episodes in the journal", "ms; MB", counts, lines, is_log=True)


def _journal(folder: Path, count: int) -> tuple[float, float]:
    """Return how long it takes to plan a run of which so many episodes are done, and its journal's size."""
    folder.mkdir()
    suite = suite_path("houses-v1")
    stored = json.loads((suite / "episodes.json").read_text())
    chosen = [{**stored["episodes"][index % 12], "episode_id": f"e{index}"} for index in range(count)]
    (folder / "scenes").symlink_to(suite / "scenes")
    dataset, out = folder / "episodes.json", folder / "run"
    dataset.write_text(json.dumps({**stored, "episodes": chosen}))
    config = RunConfig(job=RunJob(policy="replay"), dataset=dataset)
    command = [sys.executable, "-m", "proctor.cli", "run", "--policy", "replay", "--out", str(out)]
    short = folder / "short.json"
    short.write_text(json.dumps({**stored, "episodes": chosen[:12]}))
    subprocess.run([*command, "--dataset", str(short)], check=True, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
    lines = [json.dumps({**records[index % 12], "episode_id": f"e{index}"}) for index in range(count)]
    (out / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    (out / "results.json").unlink()
    plan = plan_run(config, folder / "fresh")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["identity"] = msgspec.to_builtins(plan.identity)
    (out / "manifest.json").write_text(json.dumps(manifest))
    loaded = load_dataset(dataset)
    fresh_s = _quickest_s(lambda: plan_run(config, folder / "fresh", loaded))
    resumed_s = _quickest_s(lambda: plan_run(config, out, loaded))
    return 1e3 * (resumed_s - fresh_s), (out / "episodes.jsonl").stat().st_size / 1e6


def _quickest_s(call: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        begun_s = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun_s)
    return min(times)


def print_table(curve: Curve) -> None:
    """Print a curve as a table of Markdown."""
    print(f"| {curve.x_label} | {' | '.join(curve.lines)} |")
    print(f"|{'---|' * (1 + len(curve.lines))}")
    for index, x in enumerate(curve.x):
        values = [f"{values[index]:.3g}" for values in curve.lines.values()]
        print(f"| {x:.3g} | {' | '.join(values)} |")


def draw(curves: Sequence[Curve]) -> None:
    """Draw all curves as one picture."""
    figure = Figure(figsize=(15, 8.4))
    FigureCanvasAgg(figure)
    for index, curve in enumerate(curves):
        axes = figure.add_subplot(2, 3, index + 1)
        for name, values in curve.lines.items():
            axes.plot(curve.x, values, marker="o", label=name)
        axes.set_title(curve.title, fontsize=11)
        axes.set_xlabel(curve.x_label)
        axes.set_ylabel(curve.y_label)
        if curve.is_log:
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        axes.set_xticks(list(curve.x), [f"{x:g}" if x == int(x) else f"{x:.2g}" for x in curve.x])
        axes.minorticks_off()
        axes.set_ylim(bottom=None if curve.is_log else 0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
