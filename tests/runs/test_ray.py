"""The executor `ray`, on real clusters on this machine."""

import errno
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pytest
from ray.exceptions import RayTaskError
from ray_nodes import processes_of, ray_nodes
from running import finished, run

import proctor
from proctor.core.errors import MissingDependency, UserError
from proctor.core.registry import load
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.runs import ray_actor, ray_cluster
from proctor.runs.job import RunJob, agent_digest
from proctor.runs.journal import read_earlier_attempts
from proctor.runs.plan import RunConfig
from proctor.runs.ray_actor import ActorSetup, EpisodeActor, localhost_hint, passed_on, shared_file
from proctor.runs.ray_cluster import Lost, RayCluster, RayOptions
from proctor.runs.ray_executor import RayExecutor
from proctor.runs.recorder import Count, Recorders, RecordingConfig

TESTS = Path(__file__).parent
DEADLINE_S = 120.0
OTHER_PYTHON = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/opt/venv/lib/python3.11/site-packages/ray/_private/worker.py", line 1966, in init
    connect(
  File "/opt/venv/lib/python3.11/site-packages/ray/_private/node.py", line 425, in check_version_info
    ray._private.utils.check_version_info(
  File "/opt/venv/lib/python3.11/site-packages/ray/_private/utils.py", line 1440, in check_version_info
    raise RuntimeError(error_message)
RuntimeError: Version mismatch: The cluster was started with:
    Ray: 2.60.0
    Python: 3.11.9
This process on node 10.0.0.1:6379 was started with:
    Ray: 2.60.0
    Python: 3.11.7

"""

SIGTERM_TWICE = """
import os, signal, time
from proctor.cli.terminal import interrupted_by_sigterm
from proctor.runs.ray_cluster import RayCluster, RayOptions, ray

def end_this_process(*args, **options):
    init(*args, **options)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

cluster, init, ray.init = RayCluster(RayOptions()), ray.init, end_this_process
with interrupted_by_sigterm():
    try:
        cluster.join()
    except KeyboardInterrupt:
        cluster.leave()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A head with one CPU and a node `b` with one."""
    with ray_nodes(tmp_path_factory) as nodes:
        nodes.start("a", "b")
        yield nodes


@pytest.fixture
def exam(tmp_path):
    """Return a function that writes episodes with these instructions, and a folder for policies."""

    def write(*instructions):
        episodes = [
            Episode(
                episode_id=f"ep_{number}",
                scene_id=f"scene_{number % 3}",
                goal_position=Vector3(1, 0, 0),
                instruction=instruction,
                max_steps=20,
            )
            for number, instruction in enumerate(instructions)
        ]
        save_dataset(episodes, tmp_path / "episodes.json")
        return tmp_path / "episodes.json"

    return write


def command(dataset, policy, out, **options):
    """Return the words of a run, with policies of this folder."""
    words = [sys.executable, "-m", "proctor.cli", "run", "--env", "mock", "--dataset", dataset]
    words += ["--policy", f"ray_policies:{policy}", "--out", out]
    for key, value in {"folder": str(dataset.parent), **options}.items():
        words += ["--policy-option", f"{key}={value}"]
    return [str(word) for word in words]


def on(cluster, **options):
    """Return the words that let a run join a cluster."""
    given = {"address": cluster.address, **options}
    pairs = [["--executor-option", f"{key}={value}"] for key, value in given.items()]
    return ["--executor", "ray", *(word for pair in pairs for word in pair)]


def begin(words, **environ):
    return subprocess.Popen(
        words,
        cwd=TESTS,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """Return the exit code, and what was written to stdout and stderr."""
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()  # if it has not ended in time
    return process.returncode, out, err


def await_file(file, process):
    deadline_s = time.monotonic() + DEADLINE_S
    while not file.exists():
        assert process.poll() is None, ended(process)
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def run_here(dataset, policy, out, **config):
    """Let a policy of this folder take the exam without Ray."""
    job = RunJob(env="mock", policy=f"ray_policies:{policy}", policy_options={"folder": str(dataset.parent)})
    run(RunConfig(job=job, dataset=dataset, **config), out)


def lost_workers(err):
    """Return how many workers were lost in an episode; stderr must say nothing else."""
    lines = [
        re.fullmatch(r"warning: \S+: node \S+ \(.+\): (\d+) workers? lost in the middle of an episode", line)
        for line in " ".join(err.splitlines()).replace(" warning: ", "\nwarning: ").splitlines()
    ]
    return sum(int(line[1]) for line in lines)


def results(folder):
    return (folder / "results.json").read_bytes()


def test_a_node_that_is_killed_in_the_middle_changes_no_byte_of_the_results(cluster, exam, tmp_path):
    dataset = exam(*["walk"] * 6)
    environ = {name: value for name, value in cluster.environ.items() if name != "RAY_AUTH_MODE"}
    process = begin([*command(dataset, "Walker", tmp_path / "ray"), *on(cluster)], **environ)
    await_file(tmp_path / "at.a", process)
    await_file(tmp_path / "at.b", process)
    cluster.kill("b")
    (tmp_path / "gate").touch()
    code, out, err = ended(process)
    assert code == 0
    assert lost_workers(err) == 1
    assert "raylet" not in out
    cluster.start("b")
    run_here(dataset, "Walker", tmp_path / "one")
    assert results(tmp_path / "ray") == results(tmp_path / "one")


def test_a_crash_is_the_agents_and_happens_once_and_a_lost_worker_is_tried_three_times(
    cluster, exam, tmp_path
):
    dataset = exam("walk", "crash", "walk", "lose", "walk")
    (tmp_path / "gate").touch()
    process = begin([*command(dataset, "Crasher", tmp_path / "ray"), *on(cluster)], **cluster.environ)
    code, out, err = ended(process)
    assert code == 1  # an episode is not scored
    assert lost_workers(err) == 3
    assert "node_lost" in out
    assert "raylet" not in out  # of which Ray says a lot when a worker is gone
    tries = (tmp_path / "tries").read_text().split()
    assert {word: tries.count(word) for word in tries} == {"walk": 3, "crash": 1, "lose": 3}
    lost = finished(tmp_path / "ray")["ep_3"]
    assert (lost.error.side, lost.error.kind) == ("evaluator", "node_lost")
    assert not lost.is_scored

    dataset = exam("walk", "crash", "walk")
    there, here = tmp_path / "there", tmp_path / "here"
    assert ended(begin([*command(dataset, "Crasher", there), *on(cluster)], **cluster.environ))[0] == 0
    run_here(dataset, "Crasher", here, executor="workers")
    assert results(there) == results(here)
    assert finished(there)["ep_1"].error.side == "agent"


def test_a_node_that_cannot_build_the_policy_or_has_another_version_is_named(cluster, exam, tmp_path):
    dataset = exam("walk", "walk", "walk")
    words = command(dataset, "Broken", tmp_path / "run", node="b")
    words.remove(f"folder={tmp_path}")
    del words[words.index("--policy-option")]
    code, _, err = ended(begin([*words, *on(cluster)], **cluster.environ))
    assert code == 2
    assert "error: node " in err
    assert "no weights here" in err

    other = tmp_path / "other" / "proctor"
    other.mkdir(parents=True)
    real = Path(proctor.__file__).parent
    (other / "__init__.py").write_text(f"__version__ = '0.0.9'\n__path__.append({str(real)!r})\n")
    cluster.start("c", PYTHONPATH=str(other.parent))
    try:
        words = [*command(dataset, "Walker", tmp_path / "run"), *on(cluster)]
        code, _, err = ended(begin(words, **cluster.environ))
    finally:
        cluster.kill("c")
    assert code == 2
    assert f"it has Proctor 0.0.9, and the run is of Proctor {proctor.__version__}" in err
    assert not (tmp_path / "run").exists()


def test_recordings_of_all_nodes_are_counted_and_workers_that_fit_nowhere_are_refused(
    cluster, exam, tmp_path
):
    dataset = exam(*["walk"] * 3)
    (tmp_path / "gate").touch()
    words = [*command(dataset, "Walker", tmp_path / "run"), *on(cluster), "--save-frames"]
    code, out, err = ended(begin(words, **cluster.environ))
    assert (code, err) == (0, "")
    frames = len([*(tmp_path / "run").glob("recordings/*/frames/*.jpg")])
    assert frames
    assert f"recorded 3 episodes with {frames} frames" in out

    words = [*command(dataset, "Walker", tmp_path / "large"), *on(cluster, cpus_per_worker=64)]
    code, _, err = ended(begin(words, **cluster.environ))
    assert code == 2
    assert "a worker needs 64 CPUs, and none of its 2 nodes has that" in err


CPUS_IN_USE = """
import sys, time
from proctor.runs.ray_cluster import RayCluster, RayOptions
cluster = RayCluster(RayOptions(address=sys.argv[1]))
cluster.join()
actor = cluster.hire(cluster.nodes()[0])
cluster.wait([actor.describe.remote()], 60.0)
deadline_s = time.monotonic() + 60.0
while cluster.nodes()[0].free and time.monotonic() < deadline_s:
    time.sleep(0.1)
print([(node.places, node.free) for node in cluster.nodes()])
"""


def test_nodes_say_how_many_cpus_are_free(cluster):
    code, out, err = ended(begin([sys.executable, "-c", CPUS_IN_USE, cluster.address], **cluster.environ))
    assert (code, out.splitlines()[-1:]) == (0, ["[(1, 0), (1, 1)]"]), err


@pytest.mark.usefixtures("cluster")  # which keeps other processes from having one at the same time
def test_a_run_that_is_ended_leaves_no_process_and_no_file_of_its_own_ray(exam, tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        words = [*command(exam("walk"), "Walker", tmp_path / "run"), "--executor", "ray"]
        process = begin(words, TMPDIR=folder)
        await_file(tmp_path / "at.here", process)
        assert len(processes_of(folder)) > 2
        process.send_signal(signal.SIGTERM)
        code, _, err = ended(process)
        assert (code, err) == (130, "interrupted; the same command goes on from what is finished\n")
        deadline_s = time.monotonic() + DEADLINE_S
        while processes_of(folder) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        assert processes_of(folder) == []
        assert [*Path(folder).glob("proctor-ray-*")] == []


@pytest.mark.usefixtures("cluster")
def test_sigterm_is_ours_while_ray_starts_and_when_it_has_ended():
    code, out, err = ended(begin([sys.executable, "-c", SIGTERM_TWICE]))
    assert (code, out) == (0, "interrupted\n"), err


def test_a_driver_with_another_token_is_told_so(cluster, monkeypatch):
    monkeypatch.setattr(ray_cluster, "JOIN_TIMEOUT_S", DEADLINE_S)  # it ends when it has been told
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with pytest.raises(UserError, match="it wants a token, and the one that is here is another"):
        RayCluster(RayOptions(address=cluster.address)).join()


def test_a_driver_with_another_python_is_told_both_versions(monkeypatch):
    answer = subprocess.CompletedProcess([], 1, stderr=OTHER_PYTHON.encode())
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: answer)
    words = "it has Ray 2.60.0 and Python 3.11.9, and this machine has Ray 2.60.0 and Python 3.11.7; install"
    with pytest.raises(UserError, match=words):
        RayCluster(RayOptions(address="auto")).join()


@pytest.mark.parametrize("address", ["", "auto"])
def test_an_address_of_rays_client_is_refused_in_the_environment_too(address, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    with pytest.raises(UserError, match="RAY_ADDRESS: expected HOST:PORT or auto, found 'ray://head:10001'"):
        RayCluster(RayOptions(address=address))


def test_a_cluster_that_cannot_be_joined_is_refused_soon(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(ray_cluster, "JOIN_TIMEOUT_S", 3.0)
        with pytest.raises(UserError, match=f"127.0.0.1:{port}: it could not be joined within 3 s"):
            RayCluster(RayOptions(address=f"127.0.0.1:{port}")).join()
    with pytest.raises(UserError, match=f"127.0.0.1:{port}: nothing answers there"):
        RayCluster(RayOptions(address=f"127.0.0.1:{port}")).join()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"address": "head"}, "expected HOST:PORT or auto, found 'head'"),
        ({"address": "ray://head:10001"}, "ray://. is not supported"),
        ({"cpus_per_worker": 0.0}, "cpus_per_worker: expected a number above 0, found 0"),
        ({"gpus_per_worker": -1.0}, "gpus_per_worker: expected a number from 0 up, found -1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        RayExecutor(RunJob(policy="random", env="mock", task="vln"), None, **options).start()


def test_without_ray_the_extra_is_named(monkeypatch):
    for name in ("ray_executor", "ray_cluster"):
        monkeypatch.delitem(sys.modules, f"proctor.runs.{name}")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=r"pip install 'proctor-eval\[ray\]'"):
        load("executor", "ray")


def test_a_node_says_which_file_or_folder_it_does_not_share_with_the_run(tmp_path):
    job = RunJob(policy="random", env="mock", task="vln")
    scene = tmp_path / "scene.json"
    setup = {"job": job, "check": True, "folder": str(tmp_path), "environ": {}}

    def complaint(**more):
        return EpisodeActor().prepare(msgspec.json.encode(ActorSetup(**setup, **more))).decode()

    assert f"cannot read {scene}: No such file" in complaint(files=[(str(scene), "0")])
    scene.write_text("another")
    assert f"{scene} is another file here" in complaint(files=[(str(scene), "0")])
    text = complaint(
        recording=RecordingConfig(), run_dir=str(tmp_path), shared_file=str(tmp_path / "missing")
    )
    assert f"the run's folder {tmp_path} is not the same here" in text


def test_a_node_with_another_file_of_the_agent_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_actor, "get_temp_dir", lambda: tmp_path / "sockets")  # not that of this process
    file = tmp_path / "agent.py"
    file.write_text("from proctor.exams.baselines import MockPolicy\n\nclass Agent(MockPolicy): ...\n")
    job = RunJob(policy=f"{file}:Agent", env="mock", task="vln")
    digest = agent_digest(job)

    def complaint():
        given = msgspec.structs.replace(job, policy_sha256=digest)
        setup = ActorSetup(job=given, check=False, folder=str(tmp_path / "missing"), environ={})
        actor = EpisodeActor()
        try:
            return actor.prepare(msgspec.json.encode(setup)).decode()
        finally:
            actor.close()

    assert complaint() == ""
    file.write_text(f"{file.read_text()}\n# edited\n")
    assert f"the files of policy '{file}:Agent' are not the same here" in complaint()


def test_what_a_node_cannot_do_is_told_in_a_line(monkeypatch):
    assert EpisodeActor().prepare(b"{}").startswith(b"Object missing required field")
    assert b"had not been prepared" in EpisodeActor().examine(b"{}", 0)[0]

    def fail(call, timeout):
        raise RayTaskError(
            "examine", "ray::EpisodeActor.examine()\n  File ...\nValueError: bad", ValueError("bad")
        )

    monkeypatch.setattr(ray_cluster.ray, "get", fail)
    with pytest.raises(Lost, match=r"^ValueError: bad$"):
        RayCluster(RayOptions()).answer(None)


@pytest.mark.parametrize(
    ("policy", "options", "more"),
    [
        ("random", {}, []),
        ("chat+http://localhost:8000/v1", {"model": "m"}, []),
        ("chat+https://api.openai.com/v1", {"model": "m"}, ["OPENAI_API_KEY"]),
        ("chat+anthropic+https://api.anthropic.com", {"model": "m"}, ["ANTHROPIC_API_KEY"]),
        ("chat+https://api.openai.com/v1", {"model": "m", "key_env": "MY_KEY"}, ["MY_KEY"]),
    ],
)
def test_nodes_get_the_variables_with_the_keys_of_the_model(policy, options, more, monkeypatch):
    names = {"PROCTOR_AGENT_TOKEN", "PROCTOR_CHAT_KEY", *more}
    for name in ("MY_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "PROCTOR_AGENT_TOKEN", "PROCTOR_CHAT_KEY"):
        monkeypatch.setenv(name, "secret")
    assert set(passed_on(RunJob(policy=policy, policy_options=options))) == names


def test_what_a_killed_run_leaves_in_its_folder_does_not_keep_the_next_one_out(tmp_path):
    with shared_file(tmp_path) as left:
        assert Path(left).parent == tmp_path
        assert read_earlier_attempts(tmp_path, {}, VlnExam) == []


def test_an_error_of_the_system_on_a_node_is_told_without_a_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "chdir", _refused)  # root may enter all folders
    setup = ActorSetup(job=RunJob(policy="random", task="vln"), check=False, folder=str(tmp_path), environ={})
    assert b"Permission denied" in EpisodeActor().prepare(msgspec.json.encode(setup))


def _refused(folder):
    raise PermissionError(errno.EACCES, "Permission denied", folder)


def test_localhost_is_explained_where_an_agent_is_given_by_it():
    assert "localhost is the node itself" in localhost_hint("ws://10.0.0.1:80,ws://localhost:80")
    assert localhost_hint("ws://10.0.0.1:80") == localhost_hint("random") == ""


def test_what_a_node_recorded_is_taken_off_the_budget(tmp_path):
    config = RecordingConfig(frames=True, frames_budget_bytes=1000)
    run, node = Recorders(tmp_path, config, 2), Recorders(tmp_path, config, 1)
    for granted, written in ((600, 500), (500, 400)):
        node.begin_share(granted)
        recorder = node.recorder(0)
        assert recorder.has_room_for(granted)
        assert not recorder.has_room_for(granted + 1)
        recorder.count(Count.FRAME_BYTES, written)
        recorder.count(Count.EPISODES)
        run.add_share(node.share())
    assert run.bytes_left() == 100
    assert (run.total().episodes, run.total().size_bytes) == (2, 900)


@pytest.mark.slow
def test_nodes_and_workers_that_are_killed_at_random_moments_change_nothing(cluster, exam, tmp_path):
    dataset = exam(*["walk"] * 60)
    (tmp_path / "gate").touch()
    run_here(dataset, "Walker", tmp_path / "one")
    for trial in range(20):
        out, moment = tmp_path / f"ray{trial}", random.Random(trial)
        words = [*command(dataset, "Walker", out, pause_s=0.1), *on(cluster)]
        process = begin(words, **cluster.environ)
        await_episodes(out, moment.randrange(1, 40), process)
        time.sleep(moment.uniform(0.0, 0.1))
        if trial % 2:
            cluster.kill("b")
        else:
            assert cluster.kill_worker("b") == 1
        done = journal_lines(out)
        code, said, err = ended(process)
        assert done < 60
        assert code == 0, f"trial {trial}: {said}"
        assert lost_workers(err) <= 1
        assert results(out) == results(tmp_path / "one"), trial
        if trial % 2:
            cluster.start("b")


@pytest.mark.slow
def test_a_node_that_falls_silent_and_wakes_up_again_changes_no_byte(cluster, exam, tmp_path):
    dataset = exam(*["walk"] * 40)
    words = [*command(dataset, "Walker", tmp_path / "ray", pause_s=1.0), *on(cluster)]
    process = begin(words, **cluster.environ)
    await_file(tmp_path / "at.a", process)
    await_file(tmp_path / "at.b", process)
    frozen = cluster.freeze("b")
    (tmp_path / "gate").touch()
    await_episodes(tmp_path / "ray", 20, process)  # the head gives the node up after some nine seconds
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    cluster.forget("b")  # it has been told that it is dead
    code, _, err = ended(process)
    assert code == 0, err
    assert lost_workers(err) == 1
    assert journal_lines(tmp_path / "ray") == 40
    run_here(dataset, "Walker", tmp_path / "one")
    assert results(tmp_path / "ray") == results(tmp_path / "one")
    cluster.start("b")


@pytest.mark.slow
def test_a_run_whose_cluster_loses_its_head_says_so_and_goes_on_by_the_same_command(cluster, exam, tmp_path):
    dataset = exam(*["walk"] * 120)
    (tmp_path / "gate").touch()
    words = [*command(dataset, "Walker", tmp_path / "ray", pause_s=1.0), *on(cluster)]
    process = begin(words, **cluster.environ)
    await_episodes(tmp_path / "ray", 1, process)
    cluster.kill_head_server("a")
    code, _, err = ended(process)
    assert code == 2
    assert "its head has not answered for 30 s" in " ".join(err.split())
    assert "Traceback" not in err
    assert 5 < journal_lines(tmp_path / "ray") < 120  # the nodes went on meanwhile
    cluster.stop()
    cluster.start("a", "b")
    assert ended(begin(words, **cluster.environ))[0] == 0
    assert len(finished(tmp_path / "ray")) == 120


def await_episodes(out, count, process):
    await_file(out / "episodes.jsonl", process)
    while journal_lines(out) < count:
        assert process.poll() is None, ended(process)
        time.sleep(0.01)


def journal_lines(out):
    return (out / "episodes.jsonl").read_bytes().count(b"\n")
