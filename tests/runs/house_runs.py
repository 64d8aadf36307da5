"""Real runs for the tests of reports, and changed records in them."""

import msgspec
from running import finished

from proctor import cli
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset

FIRST_EPISODES = list(
    {e.scene_id: e for e in reversed(load_dataset(suite_path("houses-v1")).episodes)}.values()
)
"""The first episode of each house."""


def run_in_houses(out, *, episodes):
    """Let two policies, one of them privileged, drive in real houses with small pictures."""
    exam = ["--suite", "houses-v1", "--policy", "forward", "oracle", "--episodes", str(episodes)]
    small = ["--env-option", "width=64", "--env-option", "height=48"]
    assert cli.main(["run", *exam, *small, "--out", str(out)]) == 0
    return out


def edit_journal(run, change):
    """Pass every record of a run through a function; None leaves it out."""
    journal = run / "episodes.jsonl"
    records = [change(result) for result in finished(run).values()]
    journal.write_bytes(
        b"".join(msgspec.json.encode(record) + b"\n" for record in records if record is not None)
    )
