"""One agent on two backends: how exactly actions are done, where ways part, and what is no gap."""

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from house_runs import edit_journal
from rich.console import Console

from proctor import cli
from proctor.core.types import STEP_M, TURN_RAD, Action, Vector3
from proctor.exams.driving_gap import PARTED_M, divergence, execution_errors, why_unmeasurable
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.exam import VlnExam
from proctor.report.comparison_table import comparison_header, execution_table, gap_notes
from proctor.runs.compare import compare
from proctor.runs.folder import RunFolder

STOP, FORWARD, LEFT, RIGHT = Action
DEG = math.radians(1)


def drive(*moves, start=(0.0, 0.0, 0.0), bumps=(), index=0, **more):
    """Return a record of moves: an action each, and the pose to which it led."""
    poses = [start, *(pose for _, pose in moves)]
    return EpisodeResult(
        **{
            "episode_id": f"ep_{index}",
            "scene_id": f"scene_{index}",
            "instruction": "Go.",
            "status": "success",
            "success": True,
            "failure_reason": None,
            "error": None,
            "final_distance_to_goal": 0.0,
            "steps": len(moves),
            "collision_count": len(bumps),
            "trajectory": [Vector3(x, y, 0.0) for x, y, _ in poses],
            "headings": [yaw for *_, yaw in poses],
            "collision_steps": list(bumps),
            "actions": [int(action) for action, _ in moves],
            "metrics": {"success": 1.0},
            "distance": "geodesic",
            "seed": 0,
        }
        | more
    )


IDENTITY = {"policy": "oracle", "policy_sha256": "f", "policy_options": {}, "env": "embedded", "seed": 0}


def run(*episodes, exam=VlnExam, **identity):
    return RunFolder(Path("runs/oracle"), {"identity": IDENTITY | identity}, exam, episodes)


def errors_of(*episodes):
    return {name: action.errors for name, action in execution_errors(episodes).items()}


def test_forward_is_measured_along_and_across_the_way_the_robot_looked():
    # Looks along +y: 10 mm too far is +y, 3 mm to the left is -x.
    moved = drive((FORWARD, (1 - 0.003, 2 + STEP_M + 0.010, math.pi / 2 - DEG)), start=(1, 2, math.pi / 2))
    forward = errors_of(moved)["FORWARD"]
    assert forward["along_mm"].bias == pytest.approx(10)
    assert forward["across_mm"].bias == pytest.approx(3)
    assert forward["heading_deg"].bias == pytest.approx(-1)
    assert forward["heading_deg"].worst == pytest.approx(1)
    backwards = errors_of(drive((FORWARD, (-STEP_M, 0, 0))))["FORWARD"]["along_mm"]
    assert (backwards.bias, backwards.worst) == pytest.approx((-500, 500))


@pytest.mark.parametrize("start_deg", [0, 179, -179, 180, -90])
def test_a_turn_too_far_is_positive_whichever_way_and_across_the_half_turn(start_deg):
    def turned(action, by_rad):
        yaw = math.remainder(start_deg * DEG + by_rad, math.tau)
        return errors_of(drive((action, (0.003, 0.004, yaw)), start=(0, 0, start_deg * DEG)))[action.name]

    assert turned(LEFT, TURN_RAD + 2 * DEG)["turn_deg"].bias == pytest.approx(2)
    assert turned(RIGHT, -TURN_RAD - 2 * DEG)["turn_deg"].bias == pytest.approx(2)
    assert turned(LEFT, TURN_RAD - 3 * DEG)["turn_deg"].bias == pytest.approx(-3)
    assert turned(RIGHT, TURN_RAD)["turn_deg"].bias == pytest.approx(-30)  # the wrong way
    drift = turned(LEFT, TURN_RAD)["drift_mm"]
    assert drift.bias is None
    assert drift.worst == pytest.approx(5)


def test_a_stop_drifts():
    stop = errors_of(drive((STOP, (0.006, -0.008, -2 * DEG))))["STOP"]
    assert stop["drift_mm"].median == pytest.approx(10)
    assert stop["heading_deg"].bias == pytest.approx(-2)


def test_errors_do_not_add_up_and_are_summed_up_by_size():
    offs_mm = [2.0, -4.0, 6.0, -8.0, 20.0]
    ends = np.cumsum([STEP_M + off / 1000 for off in offs_mm])
    moved = drive(*((FORWARD, (x, 0, 0)) for x in ends[:3]))
    more = drive(*((FORWARD, (x, 0, 0)) for x in ends[3:]), start=(ends[2], 0, 0))
    action = execution_errors([moved, more])["FORWARD"]
    along = action.errors["along_mm"]
    assert action.moves == 5
    assert along.bias == pytest.approx(np.mean(offs_mm))
    assert along.median == pytest.approx(6)
    assert along.p95 == pytest.approx(np.percentile(np.abs(offs_mm), 95))
    assert along.worst == pytest.approx(20)


def test_moves_that_hit_something_are_counted_apart():
    moved = drive(
        (FORWARD, (STEP_M, 0, 0)), (FORWARD, (STEP_M + 0.05, 0, 0)), (LEFT, (0.3, 0, 0.01)), bumps=[2, 3]
    )
    found = execution_errors([moved])
    assert (found["FORWARD"].moves, found["FORWARD"].collided) == (1, 1)
    assert found["FORWARD"].errors["along_mm"].worst == pytest.approx(0, abs=1e-9)
    assert (found["LEFT"].moves, found["LEFT"].collided, found["LEFT"].errors) == (0, 1, {})
    assert "RIGHT" not in found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"headings": []}, "no headings are recorded"),
        ({"headings": [0.0, 0.0]}, "poses and actions do not belong together"),
        ({"actions": [1]}, "poses and actions do not belong together"),
        ({"actions": [1, {"joint": 3}]}, "other actions than the four"),
        ({"actions": [1, 7]}, "other actions than the four"),
        ({"collision_count": 1}, "the steps of its collisions are not recorded"),
        ({"headings": [0.0, 0.0, 0.0]}, "headings never change, not even in turns"),
        ({"headings": [0.0, 0.0, 0.0], "collision_steps": [2], "collision_count": 1}, None),
        ({}, None),
    ],
)
def test_what_cannot_be_measured_says_why(change, reason):
    moved = drive((FORWARD, (STEP_M, 0, 0)), (LEFT, (STEP_M, 0, TURN_RAD)), **change)
    assert why_unmeasurable(moved) == reason


def test_where_two_ways_part():
    ahead = [(FORWARD, (k * STEP_M, 0, 0)) for k in range(1, 5)]
    bent = [(FORWARD, (k * STEP_M, 0.03 * k, 0)) for k in range(1, 5)]
    turned = (RIGHT, (0.75, 0.09, -TURN_RAD))
    same = divergence(drive(*ahead), drive(*bent))
    assert (same.other_action_step, same.apart_then_m, same.parted_step) == (None, None, None)
    assert same.final_apart_m == pytest.approx(0.12)
    other = divergence(drive(*ahead), drive(*bent[:3], turned, success=False))
    assert (other.other_action_step, other.parted_step, other.same_success) == (4, 4, False)
    assert other.apart_then_m == pytest.approx(0.09)
    assert other.final_apart_m == pytest.approx(math.hypot(0.25, 0.09))
    shorter = divergence(drive(*ahead[:2]), drive(*ahead))
    assert (shorter.other_action_step, shorter.apart_then_m, shorter.parted_step) == (3, 0, None)
    just = (FORWARD, (STEP_M, PARTED_M + 1e-6, 0))
    assert divergence(drive(ahead[0]), drive(just)).parted_step == 1


def test_heights_are_no_distance():
    lifted = drive((FORWARD, (STEP_M, 0, 0)), trajectory=[Vector3(0, 0, 0), Vector3(STEP_M, 0, 0.4)])
    assert divergence(drive((FORWARD, (STEP_M, 0, 0))), lifted).final_apart_m == 0
    assert errors_of(lifted)["FORWARD"]["along_mm"].worst == 0


EXACT = drive((FORWARD, (STEP_M, 0, 0)), (LEFT, (STEP_M, 0, TURN_RAD)), (STOP, (STEP_M, 0, TURN_RAD)))


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ({"env": "ros2"}, ("embedded", "ros2")),
        ({"env_options": {"fov_deg": 90}}, ("embedded", "embedded fov_deg=90")),
        ({"env": "ros2", "env_options": {"attach": True}}, ("embedded", "ros2 attach=true")),
    ],
)
def test_another_backend_is_a_gap_and_no_other_exam(other, names):
    comparison = compare(run(EXACT), run(EXACT, **other))
    assert comparison.warnings == []
    assert (comparison.gap.agent, comparison.gap.a_backend, comparison.gap.b_backend) == ("oracle", *names)
    heading = comparison_header(comparison).splitlines()[0]
    assert heading == f"One agent on two backends: A on {names[0]}, B on {names[1]}"


def test_options_that_both_have_are_not_in_the_name_of_a_backend():
    options = {"width": 64, "linear_speed_mps": 0.1}
    gap = compare(run(EXACT, env_options=options), run(EXACT, env_options=options | {"width": 128})).gap
    assert (gap.a_backend, gap.b_backend) == ("embedded width=64", "embedded width=128")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"policy": "forward"}, 'agents differ ("oracle" and "forward")'),
        ({"policy": "forward", "policy_sha256": "e"}, 'agents differ ("oracle" and "forward")'),
        ({"policy_sha256": "e"}, "their files differ"),
        ({"policy_options": {"k": 1}}, 'their options differ ({} and {"k":1})'),
    ],
)
def test_another_agent_on_another_backend_is_no_gap(other, said):
    comparison = compare(run(EXACT), run(EXACT, env="ros2", **other))
    assert comparison.gap is None
    assert comparison.warnings == [
        f"agent and backend differ, so this is no gap between backends: {said}",
        'not the same exam: envs differ ("embedded" and "ros2")',
    ]
    assert not comparison_header(comparison).startswith("One agent")


def test_the_same_backend_is_no_gap_and_unknown_agents_are_not_judged():
    assert compare(run(EXACT), run(EXACT)).gap is None
    assert compare(run(EXACT), run(EXACT, policy="forward")).warnings == []
    unknown = compare(run(EXACT, policy=None), run(EXACT, policy=None, env="ros2"))
    assert unknown.gap is None
    assert unknown.warnings == ['not the same exam: envs differ ("embedded" and "ros2")']


def test_an_exam_that_measures_none_and_two_exams_have_no_gap():
    a, b = run(EXACT, exam=PickPlaceExam), run(EXACT, exam=PickPlaceExam, env="other")
    assert compare(a, b).gap is None
    assert compare(run(EXACT), b).gap is None


def test_another_seed_is_said():
    comparison = compare(run(EXACT), run(EXACT, env="ros2", seed=1))
    assert comparison.gap is not None
    assert comparison.warnings == ["seeds differ (0 and 1): an agent may choose otherwise for that alone"]


def printed(gap, width=80):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(execution_table(gap))
    return captured.get()


def test_the_table_puts_b_below_a_and_fits_into_80_columns():
    slow = drive((FORWARD, (STEP_M - 0.0123, -1e-6, 0)), (LEFT, (STEP_M, 0, TURN_RAD)), bumps=[2])
    gap = compare(run(EXACT), run(slow, env="ros2")).gap
    lines = printed(gap).splitlines()
    assert max(map(len, [*lines, *gap_notes(gap).splitlines()])) <= 80
    cells = [line.split() for line in lines]
    at = cells.index(["FORWARD", "along", "mm", "A", "+0.0", "0.0", "0.0", "0.0", "1", "0"])
    assert cells[at + 1] == ["B", "-12.3", "12.3", "12.3", "12.3", "1", "0"]
    left = next(index for index, row in enumerate(cells) if row[:1] == ["LEFT"])
    assert cells[left + 1] == ["B", "0", "1"]  # bumped, so there is nothing to tell
    assert "-0.0" not in printed(gap)


def test_runs_without_headings_say_why_the_table_is_missing():
    old = msgspec.structs.replace(EXACT, headings=[])
    half = compare(run(EXACT), run(old, env="ros2")).gap
    assert half.b_execution == {}
    assert "Not in the errors: B: no headings are recorded in 1 of 1 episodes" in gap_notes(half)
    none = compare(run(old), run(old, env="ros2")).gap
    assert execution_table(none) is None
    assert gap_notes(none).startswith("No errors of actions are told: A: no headings are recorded")
    assert "Same actions       1 of 1\n" in gap_notes(none)


def test_names_of_others_cannot_move_the_cursor():
    gap = compare(
        run(msgspec.structs.replace(EXACT, episode_id="\x1b[2J")),
        run(msgspec.structs.replace(EXACT, episode_id="\x1b[2J"), env="\x1b[2J"),
    )
    assert "\x1b" not in comparison_header(gap) + gap_notes(gap.gap)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One agent in a real house at two speeds; the fast robot lands less exactly."""
    folder = tmp_path_factory.mktemp("gap")
    exam = ["run", "--suite", "houses-v1", "--policy", "forward", "--episodes", "2"]
    for name, options in {"slow": [], "fast": ["linear_speed_mps=1.5", "collision_threshold_m=0.6"]}.items():
        words = [word for option in ["sensors=[]", *options] for word in ("--env-option", option)]
        assert cli.main([*exam, *words, "--out", str(folder / name)]) == 0
    return folder


def proctor(capsys, *words):
    capsys.readouterr()
    assert cli.main(["compare", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_real_runs_on_two_backends(runs, capsys):
    text = proctor(capsys, runs / "slow", runs / "fast")
    assert text.startswith(
        "One agent on two backends: A on embedded, B on embedded collision_threshold_m=0.6"
    )
    assert "FORWARD  along mm" in text
    gap = json.loads(proctor(capsys, runs / "slow", runs / "fast", "--json"))["gap"]
    assert len(gap["divergences"]) == 2
    for letter in ("a", "b"):
        forward = gap[f"{letter}_execution"]["FORWARD"]
        assert forward["moves"] > 0
        assert forward["collided"] > 0
        assert forward["errors"]["along_mm"]["worst"] < 5  # collisions, which stop it short, are not in
    assert gap["a_execution"] != gap["b_execution"]


def test_journals_of_versions_that_kept_no_headings_are_compared_and_reported(runs, capsys, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    (old / "manifest.json").write_bytes((runs / "fast" / "manifest.json").read_bytes())
    records = map(json.loads, (runs / "fast" / "episodes.jsonl").read_text().splitlines())
    lines = [
        {key: value for key, value in record.items() if key not in ("headings", "collision_steps")}
        for record in records
    ]
    (old / "episodes.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "B: no headings are recorded in 2 of 2 episodes" in proctor(capsys, runs / "slow", old)
    edit_journal(old, lambda result: msgspec.structs.replace(result, success=False))
    assert cli.main(["report", str(old), "--frames", "none"]) == 0
