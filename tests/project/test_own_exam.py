"""An exam of a stranger's, installed beside Proctor: everything works for it without a change to Proctor."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.agents.server import PolicyServer

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "examples" / "own_exam"
MAX_LINES = 200
BLIND = ("--env-option", "sensors=[]")
"""Neither oracle nor random looks at pictures, which take most of the time."""


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Install the package into a folder of its own: the venv stays as it is."""
    source, target = tmp_path_factory.mktemp("own_exam") / "source", tmp_path_factory.mktemp("installed")
    shutil.copytree(SOURCE, source)  # setuptools builds in the folder of the source
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    offline = ["--no-index", "--disable-pip-version-check", "--target", str(target), str(source)]
    subprocess.run([*pip, *offline], check=True, capture_output=True, timeout=120)
    return target


@pytest.fixture
def proctor(installed, tmp_path):
    """Return a function that runs the command with the package installed, and returns what it printed."""

    def run(*words, code=0):
        command = [Path(sys.executable).with_name("proctor"), *map(str, words)]
        environ = os.environ | {"PYTHONPATH": str(installed), "COLUMNS": "200"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    return run


def test_it_is_a_small_package_that_proctor_knows_nothing_of():
    sources = sorted(SOURCE.rglob("*.py"))
    assert sum(len(path.read_text().splitlines()) for path in sources) <= MAX_LINES
    named = [
        str(path)
        for path in (REPOSITORY / "src").rglob("*.py")
        if "point_goal" in path.read_text() or "pointgoal" in path.read_text()
    ]
    assert named == []


def test_its_suite_is_what_its_script_makes(installed, tmp_path):
    shutil.copytree(SOURCE, tmp_path / "again")
    suite = tmp_path / "again" / "pointgoal" / "suite" / "episodes.json"
    stored = suite.read_bytes()
    suite.unlink()
    environ = os.environ | {"PYTHONPATH": str(tmp_path / "again")}
    subprocess.run([sys.executable, tmp_path / "again" / "make_suite.py"], env=environ, check=True)
    assert suite.read_bytes() == stored
    assert len(json.loads(stored)["episodes"]) == 12
    assert not list((installed / "pointgoal").rglob("house_*.json"))  # scenes are those of houses-v1


def test_a_run_is_resumed_shared_out_reported_compared_and_rescored(proctor, tmp_path):
    words = ("run", "--suite", "point-goal-v1", "--policy", "oracle", "random", "--episodes", "4", *BLIND)
    out = proctor(*words, "--out", "runs")
    assert "oracle*" in out
    assert "DTG m" in out
    done = json.loads((tmp_path / "runs" / "oracle" / "results.json").read_text())
    assert done["summary"]["success_rate"] == 1.0
    assert done["summary"]["task"] == "point_goal"
    assert done["summary"]["metrics"]["spl"]["mean"] > 0.95
    assert set(done["summary"]["metrics"]) == {
        *("success", "spl", "distance_to_goal", "path_length", "steps", "collisions")
    }
    before = {file: file.read_bytes() for file in (tmp_path / "runs").rglob("*") if file.is_file()}
    assert "oracle: all 4 episodes were done before; nothing to do" in proctor(*words, "--out", "runs")
    assert {file: file.read_bytes() for file in (tmp_path / "runs").rglob("*") if file.is_file()} == before
    proctor(*words, "--out", "shared", "--workers", "2")
    for policy in ("oracle", "random"):
        alone, shared = (tmp_path / folder / policy / "results.json" for folder in ("runs", "shared"))
        assert alone.read_bytes() == shared.read_bytes()
    proctor("report", "runs", "--frames", "none")
    page = (tmp_path / "runs" / "report.html").read_text()
    assert all(episode["episode_id"] in page for episode in done["episodes"])
    assert "point_goal" in page
    assert "4 episodes in pairs" in proctor("compare", "runs/random", "runs/oracle")
    assert "oracle: 4 episodes rescored, all scores as stored" in proctor("rescore", "runs/oracle")


def test_its_options_are_flags_and_make_another_run(proctor, tmp_path):
    told = " ".join(proctor("run", "--help").split())
    assert "point-goal navigation only: --goal-radius-m M how near to the goal a STOP counts" in told
    assert "--odometry" in told
    words = ("run", "--suite", "point-goal-v1", "--episodes", "1", *BLIND, "--out", "runs")
    proctor(*words, "--policy", "random", "--goal-radius-m", "1000")
    done = json.loads((tmp_path / "runs" / "results.json").read_text())
    assert done["summary"]["success_rate"] == 1.0  # it stopped, and anywhere counts
    refused = proctor(*words, "--policy", "random", code=2)
    assert "its goal_radius_m is 1000.0, yours is 0.5" in refused
    refused = proctor(*words, "--policy", "random", "--goal-radius-m", "-1", code=2)
    assert "--goal-radius-m: Expected `float` > 0" in refused
    houses = ("run", "--suite", "houses-v1", "--policy", "random", "--episodes", "1")
    refused = proctor(*houses, "--odometry", code=2)
    assert "--odometry is for point_goal, and these episodes are of vln" in refused


def test_a_served_agent_gets_the_goal_and_scores_as_a_local_one(proctor, installed, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(installed)
    from pointgoal.greedy import GreedyPolicy  # noqa: PLC0415  it is there only now

    words = ("run", "--suite", "point-goal-v1", "--episodes", "2", "--odometry")
    size = ("--env-option", "width=32", "--env-option", "height=24")
    with PolicyServer(GreedyPolicy, port=0) as server:
        proctor(*words, *size, "--policy", server.url, "--out", "served")
    proctor(*words, *size, "--policy", "greedy", "--out", "local")
    served, local = (
        json.loads((tmp_path / folder / "results.json").read_text())["episodes"]
        for folder in ("served", "local")
    )
    for one, other in zip(served, local, strict=True):
        assert one["error"] is None
        assert one["actions"] == other["actions"]
        assert one["metrics"] == other["metrics"]
    assert max(episode["metrics"]["path_length"] for episode in served) > 1


def test_what_its_agents_are_told_can_be_given_and_withheld(proctor, tmp_path):
    words = ("run", "--suite", "point-goal-v1", "--episodes", "1", "--policy", "random")
    size = ("--env-option", "width=32", "--env-option", "height=24")

    def informed(folder, *conditions):
        proctor(*words, *size, *conditions, "--out", folder)
        done = json.loads((tmp_path / folder / "results.json").read_text())
        return done["summary"]["informed"], done["episodes"][0]

    usual, _ = informed("usual")
    assert (usual["goal"], usual["odometry"], usual["details"]) == (True, False, ["goal"])
    bare, episode = informed("bare", "--inform", "none", "--instructions", "mirrored", "--pictures", "blank")
    assert (bare["goal"], bare["entries"], bare["details"]) == (False, ["rgb"], [])
    assert "to the right of your start" in episode["delivered_instruction"]
    more, _ = informed("more", "--inform", "default,odometry,pose,map")
    assert all(more[word] for word in ("goal", "odometry", "pose", "map"))
    refused = proctor(*words, "--instructions", "paraphrased", "--out", "other", code=2)
    assert "the exam point_goal cannot reword its instructions" in refused


def test_its_names_are_listed_and_its_files_checked(proctor, installed, tmp_path):
    listed = proctor("list")
    assert all(name in listed for name in ("point_goal", "point-goal-v1", "greedy", "distance_to_goal"))
    assert "12 episodes, native" in proctor("check-dataset", installed / "pointgoal" / "suite")
    document = json.loads((SOURCE / "pointgoal" / "suite" / "episodes.json").read_text())
    document["episodes"][1]["goal"] = {"x": 900.0, "y": 0.0, "z": 0.0}
    (tmp_path / "far.json").write_text(json.dumps(document))
    assert "no path leads from the start to the goal" in proctor("check-dataset", "far.json", code=1)
    words = ("--policy", "random", *BLIND, "--out", "far")
    refused = proctor("run", "--dataset", "far.json", *words, code=2)
    assert "episodes[1]: no path leads from the start to the goal" in refused
    document["episodes"][1]["scene_id"] = "castle"
    (tmp_path / "castle.json").write_text(json.dumps(document))
    refused = proctor("run", "--dataset", "castle.json", *words, code=2)
    assert "episodes[1].scene_id: there is no scene" in refused


def test_it_conforms(proctor):
    assert " 0 errors, 0 warnings" in proctor("check-exam", "point_goal")
    assert " 0 errors, 0 warnings" in proctor("check-policy", "greedy", "--suite", "point-goal-v1")
    assert " 0 errors, 0 warnings" in proctor("check-env", "embedded", "--suite", "point-goal-v1")


def test_a_chat_model_takes_it_without_code(proctor, tmp_path):
    server = subprocess.Popen(
        [sys.executable, REPOSITORY / "examples" / "chat_server.py", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = f"chat+{server.stdout.readline().split()[-1]}"
        model = ("--policy-option", "model=demo", "--policy-option", "wire=false")
        words = ("run", "--suite", "point-goal-v1", "--policy", address, *model, "--episodes", "1")
        out = proctor(*words, "--out", "runs")
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert "DTG m" in out
    (episode,) = json.loads((tmp_path / "runs" / "results.json").read_text())["episodes"]
    assert episode["error"] is None
    assert episode["actions"][-1] == 0  # its STOP
