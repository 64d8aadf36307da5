"""`proctor compare`: two runs on the same episodes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from proctor.cli.terminal import DONE, console

EXAMPLES = """\
examples:
  proctor compare runs/houses-v1/forward runs/houses-v1/my_agent.Agent
  proctor compare runs/before runs/after --json > difference.json
  proctor compare runs/embedded/my_agent runs/ros2/my_agent   # one agent on two backends

Differences are B - A, over the episodes that both runs have finished. Of one agent on two backends also
told: how exactly each did its actions, and where the two ways through an episode part.
"""


def add_compare(commands: Any) -> None:
    """Add the command."""
    compare = commands.add_parser(
        "compare",
        help="tell how two runs of one exam differ, and where",
        description="Compare two runs of one exam: each metric's difference, and the episodes that flipped.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    compare.add_argument("a", type=Path, metavar="A", help="a run's folder, or its results.json")
    compare.add_argument("b", type=Path, metavar="B", help="the run to compare with it")
    compare.add_argument("--json", action="store_true", help="print JSON for scripts")
    compare.set_defaults(command=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    import msgspec

    from proctor.report.comparison_table import comparison_header, comparison_notes, comparison_table
    from proctor.report.gap_table import execution_table, gap_notes
    from proctor.runs.comparable import load_comparable
    from proctor.runs.compare import compare

    comparison = compare(load_comparable(arguments.a), load_comparable(arguments.b))
    if arguments.json:
        text = msgspec.json.format(msgspec.json.encode(comparison), indent=1).decode()
        console.print(text, markup=False, soft_wrap=True)
        return DONE
    console.print(comparison_header(comparison), markup=False, soft_wrap=True)
    console.print(comparison_table(comparison))
    if comparison.gap:
        if table := execution_table(comparison.gap):
            console.print(table)
        console.print(f"{gap_notes(comparison.gap)}\n", markup=False, soft_wrap=True)
    console.print(comparison_notes(comparison), markup=False, soft_wrap=True)
    return DONE
