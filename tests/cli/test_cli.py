"""The command line as a user meets it: scores, exit codes, one clear message for each mistake."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from proctor import cli
from proctor.cli import exams
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(
            episode_id=f"ep_{index}",
            scene_id="empty",
            goal_position=Vector3(1 + index, 0, 0),
            instruction=f"Go ahead {1 + index} m.",
            max_steps=40,
        )
        for index in range(3)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def proctor(capsys, *words):
    code = cli.main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run(capsys, dataset, *words, policy="forward", env="mock", out="run"):
    return proctor(
        capsys,
        *("run", "--dataset", dataset, "--policy", policy, "--env", env),
        *("--out", dataset.parent / out, *words),
    )


def test_a_run_ends_with_a_table_and_results(capsys, dataset):
    code, out, _ = run(capsys, dataset)
    assert code == 0
    assert "SPL" in out
    assert "3/3" in out
    results = json.loads((dataset.parent / "run" / "results.json").read_text())
    assert set(results) == {"summary", "episodes"}
    assert {
        "total_episodes",
        "success_count",
        "success_rate",
        "avg_distance_error",
        "avg_steps",
        "avg_collision_count",
        "timeout_count",
        "error_counts",
        "metrics",
    } <= set(results["summary"])
    assert set(results["summary"]["metrics"]["success"]) == {"mean", "low", "high", "n"}
    assert results["episodes"][0]["trajectory"][1] == {"x": 0.25, "y": 0.0, "z": 0.0}


def test_the_second_time_it_says_that_there_is_nothing_to_do(capsys, dataset):
    run(capsys, dataset)
    code, out, _ = run(capsys, dataset)
    assert code == 0
    assert "all 3 episodes were done before; nothing to do" in out


def test_several_policies_get_a_folder_and_a_row_each(capsys, dataset):
    code, out, _ = proctor(
        capsys,
        *("run", "--dataset", dataset, "--env", "mock", "--policy", "random", "forward"),
        *("--out", dataset.parent / "both", "--episodes", 2),
    )
    assert code == 0
    assert "random" in out
    assert "forward" in out
    assert {f.name for f in (dataset.parent / "both").iterdir()} == {"random", "forward"}


def test_one_episode_can_be_picked(capsys, dataset):
    code, _, _ = run(capsys, dataset, "--episode", "ep_1")
    assert code == 0
    results = json.loads((dataset.parent / "run" / "results.json").read_text())
    assert [episode["episode_id"] for episode in results["episodes"]] == ["ep_1"]


def test_options_reach_the_policy(capsys, dataset):
    code, _, _ = run(capsys, dataset, "--policy-option", "steps=4")
    assert code == 0
    results = json.loads((dataset.parent / "run" / "results.json").read_text())
    assert results["episodes"][0]["actions"] == [1, 1, 1, 1, 0]
    assert results["episodes"][0]["success"]


def test_a_run_can_be_replayed(capsys, dataset):
    run(capsys, dataset, policy="random", out="random")
    option = f"run={dataset.parent / 'random'}"
    code, _, _ = run(capsys, dataset, "--policy-option", option, policy="replay", out="replay")
    assert code == 0
    first, again = (
        json.loads((dataset.parent / name / "results.json").read_text())["episodes"]
        for name in ("random", "replay")
    )
    assert [e["trajectory"] for e in first] == [e["trajectory"] for e in again]


def broken(dataset, **changes):
    record = json.loads(dataset.read_text())
    record["episodes"][0].update(changes)
    dataset.write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"max_steps": 0}, "episodes[0].max_steps: expected at least 1, found 0"),
        ({"instrction": ""}, "unknown key 'instrction'; did you mean 'instruction'?"),
        (
            {"goal_position": {"x": float("nan"), "y": 0, "z": 0}},
            "episodes[0].goal_position.x: nan is not allowed",
        ),
        ({"episode_id": "ep_1"}, "the id 'ep_1' is taken by episodes[0]"),
    ],
)
def test_a_wrong_dataset_ends_with_one_message_and_code_2(capsys, dataset, changes, complaint):
    broken(dataset, **changes)
    code, _, err = run(capsys, dataset)
    assert code == 2
    assert complaint in err
    assert "Traceback" not in err
    assert not (dataset.parent / "run").exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "line 1, column 1: empty file"),
        ('{"episodes": [}', "line 1, column 15: invalid JSON"),
        ('{"episodes": []}', "expected at least one episode"),
        (None, "no such file"),
    ],
)
def test_an_unreadable_dataset_ends_with_one_message_and_code_2(capsys, dataset, content, complaint):
    dataset.unlink() if content is None else dataset.write_text(content)
    code, _, err = run(capsys, dataset)
    assert (code, complaint in err) == (2, True)
    assert not (dataset.parent / "run").exists()


def scene_with(dataset, **scene_object):
    scenes = dataset.parent / "scenes"
    scenes.mkdir()
    scene = {"scene_name": "empty", "objects": [{"name": "thing"} | scene_object]}
    (scenes / "empty.json").write_text(json.dumps(scene))
    return scenes


def test_a_scene_that_does_not_exist_is_refused(capsys, dataset):
    broken(dataset, scene_config_path="scenes/nowhere.json")
    code, _, err = run(capsys, dataset, env="embedded")
    assert code == 2
    assert "episodes[0].scene_config_path: there is no scene file" in err
    assert not (dataset.parent / "run").exists()


def test_an_asset_outside_of_the_scenes_folder_is_refused(capsys, dataset):
    scene_with(dataset, asset_path="../../etc/passwd.glb")
    code, _, err = run(capsys, dataset, env="embedded")
    assert code == 2
    assert "objects[0].asset_path: '../../etc/passwd.glb' must stay inside the scene's folder" in err


@pytest.mark.parametrize("name", ["thing.glb", "thing.obj", "thing.stl", "thing.dae"])
def test_a_mesh_that_is_no_mesh_is_refused(capsys, dataset, name):
    (scene_with(dataset, asset_path=name) / name).write_text("this is no mesh")
    code, _, err = run(capsys, dataset, env="embedded")
    assert code == 2
    assert name in err
    assert "Traceback" not in err
    assert not (dataset.parent / "run").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["--suite", "houses-v2", "--policy", "random"],
            "unknown suite 'houses-v2'; did you mean 'houses-v1'?",
        ),
        (["--suite", "houses-v1", "--policy", "oracl"], "unknown policy 'oracl'; did you mean 'oracle'?"),
        (["--suite", "houses-v1", "--policy", "random", "--env", "embeded"], "did you mean 'embedded'?"),
        (["--suite", "houses-v1", "--policy", "random", "--episode", "nope"], "unknown episode 'nope'"),
        (["--suite", "houses-v1", "--policy", "random", "--episodes", "0"], "expected at least 1 episode"),
        (["--suite", "houses-v1", "--policy", "random", "--workers", "0"], "expected at least 1 worker"),
        (["--suite", "houses-v1", "--policy", "random", "orcale"], "did you mean 'oracle'?"),
        (
            ["--suite", "houses-v1", "--policy", "random", "--success-threshold", "nan"],
            "above 0 m, found nan",
        ),
        (["--suite", "houses-v1", "--policy", "random", "--max-fault-rate", "nan"], "from 0 to 1, found nan"),
        (
            ["--suite", "houses-v1", "--policy", "replay", "--policy-option", "run=no", "--episodes", "1"],
            "is not the directory of a",
        ),
        (
            ["--suite", "houses-v1", "--policy", "random", "--policy-option", "x"],
            "expected KEY=VALUE, found 'x'",
        ),
        (
            ["--suite", "houses-v1", "--policy", "forward", "--policy-option", "step=3", "--episodes", "1"],
            "did you mean 'steps'?",
        ),
        (
            ["--suite", "houses-v1", "--policy", "random", "--env", "o3de"],
            "ROS 2 is not available here",
        ),
    ],
)
def test_a_name_that_is_nearly_right_gets_a_hint_and_code_2(capsys, tmp_path, words, complaint):
    code, _, err = proctor(capsys, "run", *words, "--out", tmp_path / "run")
    assert code == 2
    assert complaint in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--policy", "random", "--epsiodes", "3"], "did you mean '--episodes'"),
        (["--polcy", "random"], "did you mean '--policy'"),
    ],
)
def test_a_misspelt_flag_gets_a_hint_and_code_2(capsys, monkeypatch, words, hint):
    monkeypatch.setattr(sys, "argv", ["proctor", "run", "--suite", "houses-v1", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_the_folder_of_a_different_run_is_refused(capsys, dataset):
    run(capsys, dataset)
    code, _, err = run(capsys, dataset, "--seed", 1)
    assert code == 2
    assert "holds a different run: its seed is 0, yours is 1" in err


def test_a_read_only_folder_is_refused(dataset):
    dataset.parent.chmod(0o555)
    # Permissions do not bind root, unless it gives up the right to ignore them. It stays root: another user
    # could not read these sources in root's home.
    is_root = os.geteuid() == 0
    bound = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if is_root else []
    command = [*bound, sys.executable, "-m", "proctor.cli", "run", "--dataset", dataset, "--env", "mock"]
    command += ["--policy", "forward", "--out", dataset.parent / "run"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    finally:
        dataset.parent.chmod(0o755)
    assert done.returncode == 2
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr


def test_too_many_evaluator_faults_end_with_code_1(capsys, dataset, monkeypatch, tmp_path):
    (tmp_path / "broken_world.py").write_text(
        "from proctor.worlds.mock import MockEnv\n"
        "class World(MockEnv):\n"
        "    def reset(self, episode):\n"
        "        if episode.episode_id == 'ep_1': raise RuntimeError('crashed')\n"
        "        return super().reset(episode)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    code, out, _ = run(capsys, dataset, env="broken_world:World")
    assert code == 1
    assert "env_exception (the world raised an error), first in ep_1: RuntimeError: crashed" in out
    assert "1 of 3 episodes lost to evaluator faults and left out; SR is between 0% and 33%" in out
    code, _, _ = run(capsys, dataset, "--max-fault-rate", 0.5, env="broken_world:World", out="other")
    assert code == 0


def test_a_disk_that_fills_up_in_the_middle_of_a_line_loses_nothing_else(dataset):
    command = [
        *(sys.executable, "-m", "proctor.cli", "run", "--dataset", str(dataset), "--env", "mock"),
        *("--policy", "random", "--out", str(dataset.parent / "run")),
    ]
    journal = dataset.parent / "run" / "episodes.jsonl"
    quiet = subprocess.run([*command[:-1], str(dataset.parent / "quiet")], capture_output=True, check=True)
    whole = (dataset.parent / "quiet" / "episodes.jsonl").read_bytes()
    first, second, *_ = whole.split(b"\n")
    room = len(first) + len(second) // 2  # for one line, timings of any length, and a piece of the next
    done = subprocess.run(
        command,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "finished episodes are kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert journal.read_bytes().count(b"\n") == 1
    assert journal.read_bytes().endswith(b"\n")
    subprocess.run(command, capture_output=True, check=True)
    names = ("quiet", "run")
    results = [(dataset.parent / name / "results.json").read_bytes() for name in names]
    assert results[0] == results[1]
    assert quiet.returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_ends_with_130_and_the_journal_safe(dataset, tmp_path, workers):
    (tmp_path / "endless.py").write_text(
        "import pathlib, time\n"
        "from proctor.core.interfaces import Policy\n"
        "class Agent(Policy):\n"
        "    def reset(self, info): self.is_last = '3 m' in info.instruction\n"
        "    def act(self, observation):\n"
        "        if self.is_last:\n"
        f"            pathlib.Path({str(tmp_path / 'now')!r}).touch()\n"
        "            time.sleep(600)\n"
        "        return 0\n"
    )
    out = tmp_path / "run"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "proctor.cli", "run", "--dataset", str(dataset), "--env", "mock"),
            *("--policy", "endless:Agent", "--out", str(out), "--workers", str(workers)),
        ],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    journal = out / "episodes.jsonl"
    while process.poll() is None and not (
        (tmp_path / "now").exists() and journal.exists() and journal.read_bytes().count(b"\n") == 2
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert journal.read_bytes().count(b"\n") == 2


def test_an_interrupt_while_workers_are_being_built_leaves_no_process_behind(dataset, tmp_path):
    (tmp_path / "slow_to_build.py").write_text(
        "import os, pathlib, threading\n"
        "from proctor.core.interfaces import Policy\n"
        "class Agent(Policy):\n"
        "    def __init__(self):\n"
        f"        pathlib.Path({str(tmp_path)!r}, f'pid{{os.getpid()}}').touch()\n"
        "        threading.Event().wait()\n"
        "    def act(self, observation): return 0\n"
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "proctor.cli", "run", "--dataset", str(dataset), "--env", "mock"),
            *("--policy", "slow_to_build:Agent", "--out", str(tmp_path / "run"), "--workers", "2"),
        ],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline_s = time.monotonic() + 60
    while len(list(tmp_path.glob("pid*"))) < 2 and time.monotonic() < deadline_s:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    workers = [item.name.removeprefix("pid") for item in tmp_path.glob("pid*")]
    assert len(workers) == 2
    assert not any(Path("/proc", worker).exists() for worker in workers)
    assert not (tmp_path / "run").exists()


def test_list_names_everything(capsys):
    code, out, _ = proctor(capsys, "list")
    assert code == 0
    for name in ("houses-v1", "embedded", "mock", "oracle", "replay", "ndtw"):
        assert name in out


def test_doctor_tells_about_rendering(capsys):
    code, out, _ = proctor(capsys, "doctor")
    assert code == 0
    assert "Rendering" in out
    assert "mujoco" in out


def test_doctor_tells_how_to_get_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(exams.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(exams, "console", Console(width=200))
    code, out, _ = proctor(capsys, "doctor")
    assert code == 0
    assert "pip install 'proctor-eval[gym]'" in out


def test_generate_makes_a_dataset_that_runs(capsys, tmp_path):
    suite = tmp_path / "suite"
    code, _, _ = proctor(
        capsys, "generate", "--out", suite, "--houses", 1, "--episodes-per-house", 2, "--seed", 5
    )
    assert code == 0
    code, _, _ = proctor(
        capsys, "run", "--dataset", suite, "--policy", "oracle", "--env", "mock", "--out", tmp_path / "run"
    )
    assert code == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["summary"]["success_rate"] == 1.0
    assert results["summary"]["distance"] == "geodesic"
    code, _, err = proctor(capsys, "generate", "--out", suite)
    assert (code, "exists already" in err) == (2, True)
    code, _, err = proctor(capsys, "generate", "--out", tmp_path / "other", "--seed", -1)
    assert (code, "expected a seed from 0 up" in err) == (2, True)
    code, _, err = proctor(capsys, "generate", "--out", "/proc/nowhere/suite")
    assert (code, "cannot write to /proc/nowhere/suite" in err) == (2, True)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["run", "suite"]


def test_generate_makes_houses_with_as_many_rooms_as_asked_for(capsys, tmp_path):
    words = ["generate", "--out", tmp_path / "suite", "--houses", 2, "--episodes-per-house", 1, "--rooms"]
    assert proctor(capsys, *words, 4)[0] == 0
    scenes = [json.loads(file.read_text()) for file in (tmp_path / "suite" / "scenes").iterdir()]
    rooms = [{item["room"] for item in scene["objects"] if item.get("room")} for scene in scenes]
    assert [len(names) for names in rooms] == [4, 4]
    assert all(re.fullmatch("house_[0-9a-f]{10}", scene["scene_name"]) for scene in scenes)
    code, _, err = proctor(capsys, *words, 3, "--out", tmp_path / "small")
    assert (code, "expected 4 to 10 rooms, found 3" in err) == (2, True)
    code, _, err = proctor(capsys, *words, 4, "--suite", "houses-v1", "--out", tmp_path / "both")
    assert (code, "--rooms is for houses of your own" in err) == (2, True)
    assert [item.name for item in tmp_path.iterdir()] == ["suite"]


def test_generate_draws_a_seed_that_nobody_can_guess(capsys, tmp_path):
    words = ("generate", "--houses", 1, "--episodes-per-house", 1, "--rooms", 4, "--out")
    code, out, _ = proctor(capsys, *words, tmp_path / "drawn")
    seed = int(re.search(r"Its seed is (\d+)\.", out)[1])
    assert code == 0
    assert seed >= 2**64
    assert "can be guessed" not in out
    code, out, _ = proctor(capsys, *words, tmp_path / "again", "--seed", seed)
    assert "Its seed" not in out
    assert "can be guessed" not in out
    folders = [tmp_path / "drawn", tmp_path / "again"]
    first, again = ({p.name: p.read_bytes() for p in folder.rglob("*.json")} for folder in folders)
    assert first == again
    assert not [name for name, content in first.items() if str(seed) in name or str(seed).encode() in content]


def test_generate_warns_of_a_seed_that_can_be_guessed(capsys, tmp_path):
    words = ("generate", "--houses", 1, "--episodes-per-house", 1, "--rooms", 4, "--out", tmp_path / "small")
    _, out, _ = proctor(capsys, *words, "--seed", 4242)
    assert "note: this seed can be guessed" in out
    assert "leave --seed out" in out


def test_policies_of_the_current_folder_and_of_a_file_run(capsys, dataset, tmp_path, monkeypatch):
    folder = tmp_path / "agents"
    for name in ("beside/in_a_file.py", "in_a_module.py"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / f"actions_of_{file.stem}.py").write_text("STOP = 0\n")
        file.write_text(
            "import os\n"
            "from proctor.core.interfaces import Policy\n"
            f"from actions_of_{file.stem} import STOP\n"
            "class Agent(Policy):\n"
            "    def __init__(self): os.chdir('/')\n"
            "    def act(self, observation): return STOP\n"
        )
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    words = ("run", "--dataset", dataset, "--env", "mock", "--policy")
    assert proctor(capsys, *words, "./beside/in_a_file.py:Agent", "--workers", 2)[0] == 0  # it finds its own
    assert proctor(capsys, *words, "in_a_module:Agent")[0] == 0
    results = {file.parent.name: json.loads(file.read_text()) for file in tmp_path.rglob("results.json")}
    assert results.keys() == {"in_a_file.Agent", "in_a_module.Agent"}
    for result in results.values():
        assert [episode["actions"] for episode in result["episodes"]] == [[0]] * 3


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "proctor run --suite houses-v1 --policy oracle" in text
    assert "exit codes" in text


def test_generate_makes_tabletops_the_same_for_the_same_seed(capsys, tmp_path):
    made = []
    for name in ("one", "two"):
        code, out, _ = proctor(capsys, "generate", "--out", tmp_path / name, "--tabletops", 1, "--seed", 5)
        assert code == 0
        assert f"proctor run --dataset {tmp_path / name} --policy expert" in out
        made.append((tmp_path / name / "episodes.json").read_bytes())
    assert made[0] == made[1]
    code, _, err = proctor(capsys, "generate", "--out", tmp_path / "none", "--tabletops", 0)
    assert code == 2
    assert "at least 1" in err
