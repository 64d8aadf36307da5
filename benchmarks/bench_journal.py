"""The journal of a run of 10,000 episodes: going on with it, reading it, and adding to it.

The records and traces are those of real episodes of houses-v1, with other ids. The bar of going on is the
time with an empty journal and two seconds; reading is compared with bare msgspec on the same bytes. Both are
CPU time. Adding is compared with the same bytes written and flushed to the disk in the same way.
"""

import os
import tempfile
import time
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchmarks.rows import Row
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.results import Results, as_in_results
from proctor.exams.vln.exam import VlnExam
from proctor.runs.agent_ids import keep_key
from proctor.runs.folder import JOURNAL, RESULTS, RunFolder, read_attempts, trace_file
from proctor.runs.job import RunJob
from proctor.runs.journal import Journal
from proctor.runs.plan import RunConfig, manifest_extras, plan_run
from proctor.runs.run import run
from proctor.runs.summary import summarise

EPISODES, REAL_EPISODES, APPENDED, ROUNDS = 10_000, 12, 300, 3
ALLOWED_S = 2.0


class FirstEpisode(Exception):
    """The run is about to begin its first episode."""


def bench() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        root = Path(folder)
        records, traces = real_records(root / "real")
        config = make_runs(root, records)
        empty_s = best_s(lambda: resume(config, root / "empty"))
        rows = [
            Row(
                f"journal: go on after {EPISODES - 1} episodes (vs none, + 2 s)",
                best_s(lambda: resume(config, root / "unfinished")),
                empty_s + ALLOWED_S,
                1.0,
            ),
            Row(
                f"journal: a finished run of {EPISODES} again (vs none, + 2 s)",
                best_s(lambda: run(plan_run(config, root / "finished"), lambda progress: None)),
                empty_s + ALLOWED_S,
                1.0,
            ),
        ]
        return [*rows, *reading(root / "finished"), appending(root, records, traces)]


def real_records(out):
    """Return the records of a few episodes, and their traces."""
    job = RunJob(policy="blind", env_options={"width": 64, "height": 48})
    config = RunConfig(job=job, suite="houses-v1", episodes=REAL_EPISODES)
    run(plan_run(config, out), lambda progress: None)
    records = read_attempts(out / JOURNAL, VlnExam)
    return records, [trace_file(out, record.episode_id).read_bytes() for record in records]


def make_runs(root, records) -> RunConfig:
    """Write a dataset, and run folders in which nothing, all but one and all of its episodes are done."""
    by_id = {episode.episode_id: episode for episode in load_dataset(suite_path("houses-v1")).episodes}
    many = [
        replace(records[k % len(records)], episode_id=f"{records[k % len(records)].episode_id}_{k:05}")
        for k in range(EPISODES)
    ]
    episodes = [replace(by_id[done.episode_id[:-6]], episode_id=done.episode_id) for done in many]
    save_dataset(episodes, root / "episodes.json")
    config = RunConfig(job=RunJob(policy="blind"), dataset=root / "episodes.json")
    for name, count in (("unfinished", EPISODES - 1), ("finished", EPISODES)):
        plan = plan_run(config, root / name)
        with Journal(plan.out, plan.identity, manifest_extras(plan)):
            keep_key(plan.out, plan.config.job.agent_id_key)
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in many[:count])
        (plan.out / JOURNAL).write_bytes(lines)
    summarise(VlnExam, many).save(root / "finished" / RESULTS)
    return config


def resume(config, out) -> None:
    """Do all that a run does before its first episode."""

    def stop(progress) -> None:
        raise FirstEpisode

    try:
        run(plan_run(config, out), stop)
    except FirstEpisode:
        pass
    else:
        raise AssertionError("expected an episode to do, found none")


def reading(folder) -> list[Row]:
    lines = (folder / JOURNAL).read_bytes().splitlines()
    results = (folder / RESULTS).read_bytes()

    def decode_journal():
        decoder = msgspec.json.Decoder(VlnExam.result)
        return [decoder.decode(line) for line in lines]

    def decode_both():
        written = msgspec.json.decode(results, type=Results)
        return [as_in_results(record) for record in decode_journal()] == written.episodes

    decode_s, decode_both_s = best_s(decode_journal), best_s(decode_both)
    return [
        Row(
            "journal: records read and checked (vs msgspec)",
            best_s(lambda: read_attempts(folder / JOURNAL, VlnExam)),
            decode_s,
            2.5,
        ),
        Row(
            "journal: RunFolder.open, files compared (vs msgspec)",
            best_s(lambda: RunFolder.open(folder)),
            decode_both_s,
            2.5,
        ),
    ]


def appending(root, records, traces) -> Row:
    """Measure what it takes until an episode is safe on the disk; both take turns."""
    made = [
        (f"e{k}", msgspec.json.encode(records[k % len(records)]), traces[k % len(traces)])
        for k in range(APPENDED)
    ]
    ours_s = theirs_s = 0.0
    (root / "bare").mkdir()
    bare = os.open(root / "bare" / JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Journal(root / "appended", {}, {}) as journal:
        for name, record, trace in made:
            begun_s = time.perf_counter()
            journal.append(name, record, trace)
            between_s = time.perf_counter()
            write_bare(root / "bare", bare, name, record, trace)
            ours_s, theirs_s = ours_s + between_s - begun_s, theirs_s + time.perf_counter() - between_s
    os.close(bare)
    return Row("journal: append an episode (vs bare fsyncs)", ours_s / APPENDED, theirs_s / APPENDED, 1.25)


def write_bare(folder, journal, name, record, trace) -> None:
    """Write a trace whole or not at all, then a line; all is flushed to the disk, also the new name."""
    draft = os.open(folder / f"{name}.tmp", os.O_WRONLY | os.O_CREAT)
    os.write(draft, trace)
    os.fsync(draft)
    os.close(draft)
    (folder / f"{name}.tmp").rename(folder / name)
    names = os.open(folder, os.O_RDONLY)
    os.fsync(names)
    os.close(names)
    os.write(journal, record + b"\n")
    os.fsync(journal)


def best_s(call) -> float:
    """Return the CPU time of a call, which does not depend on what else the machine does."""
    times_s = []
    for _ in range(ROUNDS):
        begun_s = time.process_time()
        call()
        times_s.append(time.process_time() - begun_s)
    return min(times_s)
