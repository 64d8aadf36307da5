"""`proctor run --name`, tables that fit 80 columns, help of all commands, and progress without a terminal."""

import argparse
import io
import json

import pytest
from rich.console import Console

from proctor import cli
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.results import Interval, Results, SuccessBounds, Summary
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.report.tables import score_notes, score_table, shortened


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(episode_id=f"ep_{i}", scene_id="s", goal_position=Vector3(1 + i, 0, 0), max_steps=5)
        for i in range(2)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def test_a_name_is_the_agents_everywhere_and_the_same_command_resumes(proctor, dataset):
    out = dataset.parent / "runs"
    words = ["run", "--dataset", dataset, "--env", "mock", "--policy", "forward", "random", "--out", out]
    words += ["--name", "my walker", "dice"]
    code, text, _ = proctor(*words)
    assert code == 0
    assert " my walker " in text
    assert "forward" not in text
    assert sorted(folder.name for folder in out.iterdir()) == ["dice", "my_walker"]
    identity = json.loads((out / "my_walker" / "manifest.json").read_text())["identity"]
    assert (identity["name"], identity["policy"]) == ("my walker", "forward")
    code, text, _ = proctor(*words)
    assert code == 0
    assert "my walker: all 2 episodes were done before" in text
    assert proctor("compare", out / "my_walker", out / "dice")[1].startswith("A: my walker  (")
    proctor("report", out, "--frames", "none")
    page = (out / "report.html").read_text()
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert [run["name"] for run in data["runs"]] == ["dice", "my walker"]
    assert "my walker" in proctor("results", out)[1]
    unnamed = ["run", "--dataset", dataset, "--env", "mock", "--policy", "forward"]
    code, _, err = proctor(*unnamed, "--out", out / "my_walker")
    assert code == 2
    assert "its name is 'my walker', yours is None" in err


def test_a_name_changes_no_result(proctor, dataset):
    words = ["run", "--dataset", dataset, "--env", "mock", "--policy", "forward", "--out"]
    proctor(*words, dataset.parent / "a")
    proctor(*words, dataset.parent / "b", "--name", "b")
    assert (dataset.parent / "a/results.json").read_bytes() == (
        dataset.parent / "b/results.json"
    ).read_bytes()


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["one"], "--name: expected 2, one for each policy, found 1"),
        (["one", "one"], "--name: expected different names"),
        (["one", "../"], "--name: expected 1 to 60 printable characters"),
        (["one", ""], "--name: expected 1 to 60 printable characters"),
        (["one", "x" * 61], "--name: expected 1 to 60 printable characters"),
        (["one", "a\x1b[2J"], "--name: expected 1 to 60 printable characters"),
        (["a b", "a_b"], "would write to"),
    ],
)
def test_names_that_cannot_be_are_refused_before_anything_is_written(proctor, dataset, names, complaint):
    out = dataset.parent / "runs"
    words = ["run", "--dataset", dataset, "--env", "mock", "--policy", "forward", "random", "--out", out]
    code, _, err = proctor(*words, "--name", *names)
    assert code == 2
    assert complaint in err
    assert not out.exists()


def results(mean, low, high, n=10_000):
    shares = ("success", "success_at_0.2m", "spl", "ndtw", "oracle_success")
    lengths = ("navigation_error", "collisions")
    return Results(
        Summary(
            total_episodes=n,
            success_count=0,
            success_rate=0.0,
            success_rate_bounds=SuccessBounds(0.0, 0.0),
            avg_distance_error=0.0,
            avg_steps=0.0,
            avg_collision_count=0.0,
            timeout_count=0,
            error_counts={"agent": 0, "evaluator": 0},
            failure_reasons={},
            definition="vln-ce",
            distance="geodesic",
            metrics={name: Interval(1.0, 0.999, 1.0, n) for name in shares}
            | {name: Interval(mean, low, high, n) for name in lengths},
        ),
        [],
    )


LONG = [
    "my_package.agents.instruction_following:MapBuildingAgent",
    "my_package.agents.instruction_following:Agent",
]


@pytest.mark.parametrize("numbers", [(1.0, 1.0, 1.0), (123.4, 100.2, 1234.5), (9.5, 0.2, 99.9)])
def test_numbers_and_names_are_not_broken_over_lines_at_80_columns(numbers):
    runs = {name: results(*numbers) for name in LONG}
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(score_table(VlnExam, runs, title="", privileged=LONG[:1]))
    lines = [line for line in console.export_text().splitlines() if line.strip()]
    assert len(lines) == 2 + 2 * len(runs), "\n".join(lines)  # heading, rule, and two lines for each run
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert lines[2].split()[1] == lines[4].split()[1] == "10000"
    assert lines[2].split()[0] != lines[4].split()[0] + "*"
    assert not any("…" in word for line in lines for word in line.split()[1:])
    notes = score_notes(VlnExam, runs, privileged=LONG[:1])
    assert all(name in notes for name in LONG)


def test_a_shortened_name_keeps_its_beginning_and_its_end():
    assert shortened("my_agent:Agent", 14) == "my_agent:Agent"
    assert shortened("my_agent:Agent", 9) == "my_a…gent"
    assert shortened("导航导航导航导航", 9) == "导航…导航"


def commands():
    action = next(a for a in cli._parser()._actions if isinstance(a, argparse._SubParsersAction))
    return action.choices


@pytest.mark.parametrize("name", list(commands()))
def test_every_command_has_a_description_and_an_example_in_its_help(name):
    text = " ".join(commands()[name].format_help().split())
    assert commands()[name].description
    assert commands()[name].description.split()[0] in text
    assert "examples:" in text
    assert f"proctor {name}" in text.partition("examples:")[2]


def test_a_report_says_how_far_it_is_without_a_terminal(proctor, dataset):
    out = dataset.parent / "run"
    proctor("run", "--dataset", dataset, "--env", "mock", "--policy", "forward", "--out", out)
    _, text, _ = proctor("report", out)
    lines = text.splitlines()
    assert lines[:2] == ["diagnosing: 1 of 2 episodes", "diagnosing: 2 of 2 episodes"]
    assert "taking pictures: 2 of 2 episodes" in lines
    assert "drawing: 2 of 2 episodes" in lines
    assert lines[-1].startswith("Report: ")
