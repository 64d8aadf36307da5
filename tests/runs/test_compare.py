"""Two runs against each other: pairs, differences, flips, and what is not the same exam."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binomtest

from proctor import cli
from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.results import EpisodeResult, Fault
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.report.comparison_table import comparison_header, comparison_notes, comparison_table
from proctor.runs.compare import compare, load_run, mcnemar_p
from proctor.runs.folder import RunFolder
from proctor.runs.summary import clustered_bootstrap


def result(index, *, success=True, fault=None, **more):
    reason = None if success else "stopped_far"
    return EpisodeResult(
        **{
            "episode_id": f"ep_{index:03}",
            "scene_id": f"scene_{index % 4}",
            "instruction": "Go.",
            "status": "error" if fault else "success" if success else "failure",
            "success": success,
            "failure_reason": fault or reason,
            "error": Fault(side=fault, kind="x", message="") if fault else None,
            "final_distance_to_goal": 0.0,
            "steps": 3,
            "collision_count": 0,
            "trajectory": [Vector3(index, 0, 0)],
            "headings": [0.0],
            "collision_steps": [],
            "actions": [],
            "metrics": {} if fault else {"success": float(success), "steps": 3.0},
            "distance": "geodesic",
            "seed": 0,
        }
        | more
    )


def run_of(name, episodes, identity=None, definition=""):
    return RunFolder(Path(name), {"identity": identity or {}}, VlnExam, episodes, definition=definition)


def agent(name, outcomes, **more):
    return run_of(name, [result(i, success=ok) for i, ok in enumerate(outcomes)], **more)


IDENTITY = {
    "dataset_sha256": "d",
    "scenes_sha256": "s",
    "env": "embedded",
    "episodes": 20,
    "privileged": False,
}


def test_flips_are_listed_both_ways_with_the_reason_of_the_one_that_failed():
    comparison = compare(
        agent("old", [True] * 5 + [False] * 5), agent("new", [False] + [True] * 7 + [False] * 2)
    )
    assert [flip.episode_id for flip in comparison.gained] == ["ep_005", "ep_006", "ep_007"]
    assert [flip.episode_id for flip in comparison.lost] == ["ep_000"]
    assert {flip.failure_reason for flip in [*comparison.gained, *comparison.lost]} == {"stopped_far"}
    assert (comparison.success_a, comparison.success_b) == (5, 7)
    assert comparison.p_value == pytest.approx(binomtest(1, 4).pvalue)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (5, 5), (0, 12), (3, 14), (700, 600)])
def test_the_p_value_is_that_of_a_fair_coin(gained, lost):
    expected = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar_p(gained, lost) == pytest.approx(expected, rel=1e-9)
    assert mcnemar_p(lost, gained) == mcnemar_p(gained, lost)


def test_differences_are_paired_and_resampled_by_scene():
    rng = np.random.default_rng(1)
    old = rng.uniform(0, 10, 40)
    new = old - 0.5 + rng.normal(0, 0.1, 40)
    runs = [
        run_of(n, [result(i, metrics={"navigation_error": float(v)}) for i, v in enumerate(x)])
        for n, x in (("a", old), ("b", new))
    ]
    metric = compare(*runs).metrics["navigation_error"]
    expected = clustered_bootstrap(list(new - old), [f"scene_{i % 4}" for i in range(40)], seed=0)
    assert metric.difference.mean == pytest.approx(expected.mean)
    assert (metric.difference.low, metric.difference.high) == pytest.approx((expected.low, expected.high))
    assert (
        -0.6 < metric.difference.low < metric.difference.high < -0.4
    )  # far narrower than the spread of 10 m
    assert metric.reading == "better"
    assert (metric.a, metric.b) == pytest.approx((old.mean(), new.mean()))
    assert compare(*reversed(runs)).metrics["navigation_error"].reading == "worse"
    assert compare(*runs) == compare(*runs)


@pytest.mark.parametrize(
    ("name", "change", "reading"),
    [
        ("spl", 1.0, "better"),
        ("spl", -1.0, "worse"),
        ("collisions", 1.0, "worse"),
        ("steps", 1.0, "higher"),
        ("path_length", -1.0, "lower"),
        ("my_own", 1.0, "higher"),
        ("spl", 0.0, "equal"),
    ],
)
def test_what_a_change_means_depends_on_the_metric(name, change, reading):
    a = run_of("a", [result(i, metrics={name: 1.0}) for i in range(8)])
    b = run_of("b", [result(i, metrics={name: 1.0 + change}) for i in range(8)])
    assert compare(a, b).metrics[name].reading == reading


def test_from_a_handful_of_episodes_nothing_is_told():
    comparison = compare(agent("a", [False] * 5), agent("b", [True] * 5))
    assert comparison.metrics["success"].reading == "unclear"
    assert (
        comparison.verdict
        == "No difference in success can be told from 5 episodes in 4 scenes: 5 won, 0 lost, p = 0.062."
    )


def test_verdicts_say_what_the_numbers_allow():
    def verdict(old, new):
        return compare(agent("a", old), agent("b", new)).verdict

    assert verdict([False] * 20, [True] * 20).startswith(
        "B succeeds more often than A in 20 episodes in 4 scenes"
    )
    assert verdict([True] * 20, [False] * 20).startswith("B succeeds less often than A")
    assert "p < 0.001" in verdict([True] * 20, [False] * 20)
    uneven = verdict([False] * 20, [True] * 3 + [False] * 17)
    assert (
        uneven
        == "No difference in success can be told from 20 episodes in 4 scenes: 3 won, 0 lost, p = 0.250."
    )
    same = verdict([True] * 3 + [False], [True] * 3 + [False])
    assert same == "No difference in success: both succeeded in the same 3 of 4 episodes in 4 scenes."
    assert "1 episode in 1 scene" in verdict([True], [True])


def test_a_metric_that_does_not_apply_is_left_out_of_its_difference_alone():
    a = run_of("a", [result(i, metrics={"spl": 0.5, "ndtw": 0.5}) for i in range(8)])
    rows = [{"spl": 0.7, "ndtw": 0.6} if i < 6 else {"spl": 0.7, "ndtw": float("nan")} for i in range(7)]
    b = run_of("b", [result(i, metrics=row) for i, row in enumerate([*rows, {"spl": 0.7}])])
    metrics = compare(a, b).metrics
    assert metrics["spl"].difference.n == 8
    assert metrics["ndtw"].difference.n == 6


def test_evaluator_faults_are_left_out_of_both_and_agent_faults_are_not():
    a = run_of("a", [result(0, fault="evaluator"), result(1), result(2), result(3)])
    b = run_of(
        "b",
        [
            result(0),
            result(1),
            result(2, fault="evaluator"),
            result(3, success=False, fault="agent"),
        ],
    )
    comparison = compare(a, b)
    assert comparison.unscored == 2
    assert comparison.pairs == 2
    assert [flip.episode_id for flip in comparison.lost] == ["ep_003"]
    assert "2 not scored in A or B" in comparison_header(comparison)


def test_only_common_episodes_are_paired_and_the_others_are_counted():
    a = agent("a", [True] * 10)
    b = run_of("b", [result(i) for i in range(7, 15)])
    comparison = compare(a, b)
    assert (comparison.pairs, comparison.only_in_a, comparison.only_in_b) == (3, 7, 5)
    assert "Left out: 7 only in A, 5 only in B" in comparison_header(comparison)


def test_runs_without_a_common_episode_are_refused():
    b = run_of("b", [result(i) for i in range(50, 53)])
    with pytest.raises(UserError, match=r"no episode in common \(4 and 3 episodes\)"):
        compare(agent("a", [True] * 4), b)
    elsewhere = run_of("b", [result(i, scene_id="other") for i in range(4)])
    with pytest.raises(UserError, match="4 ids are the same, but not one of the episodes"):
        compare(agent("a", [True] * 4), elsewhere)
    broken = run_of("b", [result(i, fault="evaluator") for i in range(4)])
    with pytest.raises(UserError, match="each of the 4 common episodes is not scored"):
        compare(agent("a", [True] * 4), broken)


def test_an_id_that_means_another_episode_is_no_pair():
    b = run_of("b", [result(0), result(1, trajectory=[Vector3(9, 9, 0)]), result(2, scene_id="other")])
    comparison = compare(agent("a", [True] * 3), b)
    assert comparison.pairs == 1
    assert "2 episodes have the same id, but another scene or start, and are left out" in comparison.warnings


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({"dataset_sha256": "e"}, "not the same exam: dataset files differ"),
        ({"scenes_sha256": "t"}, "not the same exam: scene files differ"),
        ({"env": "mock"}, 'not the same exam: envs differ ("embedded" and "mock")'),
        (
            {"env_options": {"width": 64}},
            'not the same exam: options of the env differ (null and {"width":64})',
        ),
        ({"success_threshold_m": 3.0}, "not the same exam: success thresholds differ (null and 3.0)"),
        ({"privileged": True}, "B is privileged: it was shown the truth, and the other was not"),
        ({"episodes": 30}, "B is unfinished: 20 of 30 episodes, paired on what there is"),
    ],
)
def test_what_makes_a_comparison_unfair_is_said(change, warning):
    a = agent("a", [True] * 20, identity=IDENTITY)
    assert compare(a, agent("b", [True] * 20, identity=IDENTITY)).warnings == []
    assert compare(a, agent("b", [True] * 20, identity=IDENTITY | change)).warnings == [warning]


def test_scenes_of_other_episodes_are_no_other_exam():
    a = agent("a", [True] * 20, identity=IDENTITY | {"episode_ids_sha256": "x"})
    b = agent("b", [True] * 20, identity=IDENTITY | {"episode_ids_sha256": "y", "scenes_sha256": "t"})
    assert compare(a, b).warnings == []


def test_other_definitions_distances_and_words_are_said():
    a = agent("a", [True] * 3, definition="vln-ce")
    b = run_of(
        "b",
        definition="other",
        episodes=[result(0, distance="euclidean"), result(1, instruction="Walk."), result(2)],
    )
    assert compare(a, b).warnings == [
        "not the same exam: metrics by vln-ce and by other",
        "not the same exam: 1 episodes are judged by another kind of distance",
        "not the same exam: 1 episodes have another instruction",
    ]


def test_the_table_fits_into_80_columns_and_does_not_rely_on_colours():
    names = (
        "success",
        "success_at_0.2m",
        "navigation_error",
        "path_length",
        "collision_rate",
        "my_[own]_metric",
    )
    a = run_of("a", [result(i, metrics=dict.fromkeys(names, 0.0)) for i in range(8)])
    b = run_of("b", [result(i, metrics=dict.fromkeys(names, 1.0)) for i in range(8)])
    console = Console(width=80, record=True, color_system=None)
    with console.capture() as captured:
        console.print(comparison_table(compare(a, b)))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split("  ")[0].strip(): line for line in lines}
    assert "+ better" in rows["SR %"]
    assert "+100" in rows["SR %"]
    assert "- worse" in rows["NE m"]
    assert "higher" in rows["my_[own]_metric"]
    assert "-0" not in captured.get().replace("-0.", "")


def test_long_lists_of_flips_are_cut_and_say_so():
    notes = comparison_notes(compare(agent("a", [False] * 50), agent("b", [True] * 50)))
    assert "B succeeded where A failed (50):" in notes
    assert "and 30 more; --json lists all" in notes


@pytest.fixture
def runs(tmp_path, capsys):
    episodes = [
        Episode(episode_id=f"ep_{i}", scene_id=f"s{i % 3}", goal_position=Vector3(1 + i, 0, 0), max_steps=9)
        for i in range(6)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    words = [
        "run",
        "--dataset",
        str(tmp_path / "episodes.json"),
        "--env",
        "mock",
        "--out",
        str(tmp_path / "runs"),
    ]
    assert cli.main([*words, "--policy", "forward", "random"]) == 0
    capsys.readouterr()
    return tmp_path / "runs"


def proctor(capsys, *words):
    code = cli.main(["compare", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_compares_two_folders(runs, capsys):
    code, out, _ = proctor(capsys, runs / "forward", runs / "random")
    assert code == 0
    assert out.startswith("A: forward")
    assert "6 episodes in pairs, from 3 scenes" in out
    assert "SR %" in out
    assert out.rstrip().splitlines()[-1].startswith(("No difference", "B succeeds"))
    assert proctor(capsys, runs / "forward", runs / "random")[1] == out


def test_the_command_prints_json_for_scripts(runs, capsys):
    code, out, _ = proctor(capsys, runs / "forward", runs / "random" / "results.json", "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["a"], document["b"], document["pairs"]) == ("forward", "random", 6)
    assert document["metrics"]["path_length"]["difference"]["n"] == 6
    assert document["warnings"] == []


def test_what_a_manifest_notes_is_told_before_the_numbers(runs, capsys):
    manifest = runs / "random" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"notes": ["paths through walls"]}))
    for theirs in (runs / "random", runs / "random" / "results.json"):
        assert "\n! B: paths through walls\n" in proctor(capsys, runs / "forward", theirs)[1]
    assert "\n! A: paths through walls\n" in proctor(capsys, runs / "random", runs / "forward")[1]


def test_ids_and_metrics_of_others_cannot_move_the_cursor(capsys):
    evil = "\x1b[2Jevil\u202e"
    mine = [result(0, episode_id=evil, metrics={"success": 1.0, evil: 1.0})]
    theirs = [result(0, episode_id=evil, success=False, metrics={"success": 0.0, evil: 2.0})]
    comparison = compare(run_of(evil, mine), run_of("b", theirs))
    console = Console(width=120)
    console.print(comparison_table(comparison))
    console.print(comparison_header(comparison), comparison_notes(comparison), markup=False)
    out = capsys.readouterr().out
    assert out.count("\\u001b[2Jevil\\u202e") == 3
    assert not {"\x1b", "\u202e"} & set(out)


def test_a_run_and_itself_are_equal(runs, capsys):
    _, out, _ = proctor(capsys, runs / "random", runs / "random", "--json")
    assert {metric["reading"] for metric in json.loads(out)["metrics"].values()} == {"equal"}


def test_what_is_no_run_is_refused_with_a_hint(runs, capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = proctor(capsys, runs, runs / "random")
    assert code == 2
    assert "it holds runs, name one of them: forward, random" in err
    assert "not a run" in proctor(capsys, tmp_path / "empty", runs / "random")[2]
    assert "no such folder" in proctor(capsys, tmp_path / "nowhere", runs / "random")[2]
    code, _, err = proctor(capsys, runs / "random", tmp_path / "episodes.json")
    assert code == 2
    assert "episodes.json" in err


def test_an_unfinished_run_is_compared_as_far_as_it_is(runs, capsys):
    journal = runs / "random" / "episodes.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]) + b'{"torn')
    (runs / "random" / "results.json").unlink()
    code, out, _ = proctor(capsys, runs / "forward", runs / "random")
    assert code == 0
    assert "4 episodes in pairs" in out
    assert "B is unfinished: 4 of 6 episodes" in out
    journal.write_bytes(b"")
    assert "no episode of this run is finished" in proctor(capsys, runs / "forward", runs / "random")[2]


def test_broken_files_are_named(runs):
    (runs / "random" / "results.json").write_text("{}")
    (note,) = load_run(runs / "random").notes
    assert note.endswith("missing required field `summary`; the numbers shown are those of episodes.jsonl")
    (runs / "random" / "manifest.json").write_text("[]")
    with pytest.raises(InvalidFile, match="not the manifest of a run"):
        load_run(runs / "random")
    (runs / "random" / "manifest.json").write_text('{"identity": {"episodes": "many"}}')
    with pytest.raises(InvalidFile, match=r"identity\.episodes"):
        load_run(runs / "random")
    (runs / "forward" / "episodes.jsonl").write_text("nonsense\n")
    with pytest.raises(InvalidFile, match="line 1"):
        load_run(runs / "forward")
