"""The container images: what can rot without a build, and (slow) exams in containers."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from proctor.worlds.mujoco.render.gl import PACKAGES

REPOSITORY = Path(__file__).parents[2]
CONTAINERFILE = (REPOSITORY / "Containerfile").read_text()
SCRIPT = (REPOSITORY / "scripts" / "image.sh").read_text()
TOOLS = (
    "bash",
    "dirname",
    "mktemp",
    "rm",
    "tail",
    "id",
    "touch",
    "grep",
    "tr",
    "sed",
    "sort",
    "basename",
    "cp",
    "git",
    "awk",
)
SAFE = (
    "--read-only",
    "--tmpfs",
    "/tmp",
    "--cap-drop",
    "all",
    "--security-opt",
    "no-new-privileges",
    "--timeout",
    "900",
)
FIRST_EPISODES = ("run", "--suite", "houses-v1", "--episodes", "3")


def stage(name):
    """The instructions of one stage, lines joined, without comments."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    found = re.search(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, name
    return found[1].split("\n")


def test_the_evaluator_renders_with_the_packages_that_setup_installs():
    install = next(line for line in stage("rendering") if "apt-get install" in line)
    named = re.search(r"--no-install-recommends ([^&]*)", install)[1].split()
    assert tuple(named) == PACKAGES


@pytest.mark.parametrize("target", ["evaluator", "agent"])
def test_an_image_ends_as_another_user_than_root(target):
    lines = [line for line in stage(target) if line]
    users = [line for line in lines if line.startswith("USER ")]
    assert users == ["USER 1000:1000"]
    assert not [line for line in lines[lines.index(users[0]) :] if line.startswith(("RUN", "COPY"))]


def test_the_extras_of_the_evaluator_exist():
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    default = re.search(r"^ARG EXTRAS=(\S+)", CONTAINERFILE, re.MULTILINE)[1]
    assert f"EXTRAS:-{default}}}" in SCRIPT
    assert set(default.split(",")) <= set(extras)
    assert f"({default})" in SCRIPT  # as its head says


def test_only_what_is_copied_goes_into_the_build():
    ignored = [line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line[0] != "#"]
    assert ignored[0] == "*"
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    copies = [
        line.split()[1:-1]
        for name in ("build", "agent", "evaluator")
        for line in stage(name)
        if "COPY" in line
    ]
    copied = {path for paths in copies for path in paths if not path.startswith(("--from", "/"))}
    assert copied == let_in
    assert all((REPOSITORY / path).exists() for path in let_in)


def test_no_registry_is_named():
    base = re.search(r"^ARG BASE=(\S+)", CONTAINERFILE, re.MULTILINE)[1]
    assert f"default_base={base}\n" in SCRIPT
    images = [base, *re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)]
    assert not [image for image in images if re.match(r"[^/]*[.:][^/]*/", image)]


def test_a_node_of_ray_in_a_container_gets_what_all_nodes_need():
    """The container has a HOME of its own, without the token."""
    page = (REPOSITORY / "docs" / "containers.md").read_text()
    command = re.search(r"podman run [^`]*--entrypoint ray [^`]*```", page)[0]
    assert "--env RAY_AUTH_TOKEN " in command
    assert "--env RAY_worker_niceness=0 " in command


@pytest.fixture
def machine(tmp_path):
    """A machine with the usual tools and no engine: `run(WORD..., NAME=VALUE...)` builds the images."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in TOOLS:
        (commands / name).symlink_to(shutil.which(name))

    def run(*words, **variables):
        return subprocess.run(
            ["bash", REPOSITORY / "scripts" / "image.sh", *words],
            env={"PATH": str(commands), "PYTHON": sys.executable, "TMPDIR": str(tmp_path), **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    run.folder = tmp_path
    return run


def add_command(machine, name, body):
    (machine.folder / "bin" / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
    (machine.folder / "bin" / name).chmod(0o755)


@pytest.mark.parametrize("docker", [False, True], ids=["nothing", "docker without its daemon"])
def test_without_an_engine_the_command_that_installs_one_is_told(machine, docker):
    if docker:
        add_command(machine, "docker", "exit 1")
    done = machine()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[1].startswith(
        "Please run: sudo apt-get update && sudo apt-get install -y "
    )
    assert " podman " in done.stderr.splitlines()[1]


def test_what_cannot_be_built_is_refused(machine):
    assert machine("agents").stderr == "expected evaluator or agent, found 'agents'\n"
    done = machine(ENGINE="nerdctl")
    assert (done.returncode, done.stderr) == (2, "ENGINE=nerdctl: there is no such command\n")


OFFLINE = 'case $1 in --version) echo "podman version 4";; *) echo "no such host" >&2; exit 1;; esac'


def test_a_base_that_is_not_there_is_not_replaced_by_another(machine):
    add_command(machine, "podman", OFFLINE)
    done = machine(BASE="mine:1")
    assert done.returncode == 2
    assert done.stderr == "no such host\nBASE=mine:1: there is no such image here, and it cannot be pulled\n"


def test_without_a_registry_debootstrap_is_recommended(machine):
    add_command(machine, "podman", OFFLINE)
    done = machine()
    assert done.returncode == 2
    assert done.stdout.endswith("It cannot be pulled: no such host\n")
    assert "sudo apt-get install -y debootstrap && sudo make image" in done.stderr
    assert not list(machine.folder.glob("proctor-image-*"))


RECORDER = """
case $1 in
--version) echo "podman version 4" ;;
image) echo 1 ;;
build)
    echo "$@" >>"$LOG/calls"
    for word in "$@"; do case $word in id=pip.conf,src=*) cp "${word#*src=}" "$LOG/pip.conf" ;; esac; done
    ;;
esac
"""


def test_where_packages_come_from_is_a_secret_of_the_build(machine):
    add_command(machine, "podman", RECORDER)
    wheels = machine.folder / "wheels"
    wheels.mkdir()
    done = machine(
        LOG=str(machine.folder),
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="https://me:hidden@packages.example/simple",
        PIP_FIND_LINKS=str(wheels),
        PIP_REQUIRE_VIRTUALENV="0",
    )
    assert (done.returncode, done.stderr) == (0, "")
    settings = (machine.folder / "pip.conf").read_text().splitlines()
    assert sorted(settings[1:]) == [
        f"find-links = {wheels}",
        "index-url = https://me:hidden@packages.example/simple",
    ]
    calls = (machine.folder / "calls").read_text()
    assert "hidden" not in calls
    # Layers that stay are built without the folder.
    mounted = [f"--volume {wheels}" in call for call in calls.splitlines()]
    targets = re.findall(r"--target (\S+)", calls)
    assert list(zip(targets, mounted, strict=True)) == [
        ("rendering", False),
        ("evaluator", True),
        ("python", False),
        ("agent", True),
    ]


@pytest.fixture(scope="module")
def podman():
    """Podman with storage of its own, in which `make image` has built the images; all of it is removed."""
    if os.geteuid() != 0 or not shutil.which("podman"):
        pytest.skip("needs root and podman")
    # Not in pytest's folder: podman allows a runroot of 50 characters.
    folder = Path(tempfile.mkdtemp(prefix="proctor-", dir="/var/tmp"))
    runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""
    (folder / "containers.conf").write_text(
        "[containers]\ndefault_ulimits = []\n"  # root in a container may not raise limits
        f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n{runtime}'
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'
    )
    variables = {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "ENGINE": "podman",
    }

    def command(*words, check=True, program="podman", timeout=1200):
        done = subprocess.run(
            [program, *words],
            cwd=REPOSITORY,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    command.variables = variables
    try:
        command("image", program="make")
        yield command
    finally:
        command("rm", "--all", "--force", "--time", "5", check=False)
        command("rmi", "--all", "--force", check=False)
        command(str(folder / "root" / "overlay"), program="umount", check=False)
        assert f" {folder}" not in Path("/proc/self/mountinfo").read_text()
        shutil.rmtree(folder)


@pytest.fixture
def runs(tmp_path):
    """A folder that the user of the image can write to."""
    folder = tmp_path / "runs"
    folder.mkdir()
    os.chown(folder, 1000, 1000)
    return folder


def results_here(folder, policy, *, cwd=REPOSITORY):
    command = [sys.executable, "-m", "proctor.cli", *FIRST_EPISODES, "--policy", policy, "--out", folder]
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, timeout=600)
    return (folder / "results.json").read_bytes()


@pytest.mark.slow
def test_an_exam_in_a_container_has_the_results_of_one_outside(podman, runs, tmp_path):
    mount = f"{runs}:/work/runs"
    exam = (*FIRST_EPISODES, "--policy", "blind", "--out", "runs/blind")
    podman("run", "--rm", *SAFE, "--network", "none", "--volume", mount, "proctor-evaluator", *exam)
    manifest = runs / "blind" / "manifest.json"
    assert manifest.stat().st_uid == 1000
    assert "/opt/proctor/" in manifest.read_text()
    assert (runs / "blind" / "results.json").read_bytes() == results_here(tmp_path / "here", "blind")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["evaluator", "agent"])
def test_nothing_of_the_machine_that_built_it_is_in_the_image(podman, target):
    image = f"proctor-{target}"
    inside = (
        "run",
        "--rm",
        *SAFE,
        "--network",
        "none",
        "--user",
        "12345:54321",
        "--entrypoint",
        "sh",
        image,
        "-c",
    )
    assert podman(*inside, "ls /opt /run/secrets; id -u").stdout.split() == [
        "/opt:",
        "proctor",
        "/run/secrets:",
        "12345",
    ]
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    history = podman("history", "--no-trunc", image).stdout + podman("inspect", image).stdout
    assert not [value for value in re.findall(r"(?:file|https?)://[^\s']+", settings) if value in history]


@pytest.mark.slow
def test_an_agent_in_a_container_is_examined_by_an_evaluator_in_another(podman, runs, tmp_path):
    """With the Containerfile and the policy that the docs show. The two share a network without a way out."""
    page = (REPOSITORY / "docs" / "containers.md").read_text()
    source = tmp_path / "agent"
    source.mkdir()
    (source / "Containerfile").write_text(re.search(r"```dockerfile\n(.*?)```", page, re.DOTALL)[1])
    policy = (REPOSITORY / "docs" / "writing-a-policy.md").read_text()
    (source / "my_agent.py").write_text(re.search(r"```python\n(# my_agent.py.*?)```", policy, re.DOTALL)[1])
    podman("build", "--network", "none", "--tag", "my-agent", str(source))
    with subprocess.Popen(
        ["podman", "run", "--rm", "--name", "agent", *SAFE, "--network", "none", "my-agent"],
        env=os.environ | podman.variables,
        stdout=subprocess.PIPE,
        text=True,
    ) as agent:
        assert "is served at ws://" in agent.stdout.readline()
        exam = (*FIRST_EPISODES, "--policy", "ws://127.0.0.1:8080", "--out", "runs/served")
        network = ("--network", "container:agent", "--volume", f"{runs}:/work/runs")
        podman("run", "--rm", *SAFE, *network, "proctor-evaluator", *exam)
        podman("stop", "--time", "30", "agent")
    assert agent.returncode == 0
    here = results_here(tmp_path / "here", "my_agent:Agent", cwd=source)
    assert (runs / "served" / "results.json").read_bytes() == here


@pytest.mark.slow
def test_a_run_that_the_engine_stops_goes_on(podman, runs):
    mount = f"{runs}:/work/runs"
    exam = ("run", "--suite", "houses-v1", "--episodes", "30", "--policy", "blind", "--out", "runs/stopped")
    with subprocess.Popen(
        [
            "podman",
            "run",
            "--rm",
            "--name",
            "stopped",
            *SAFE,
            "--network",
            "none",
            "--volume",
            mount,
            "proctor-evaluator",
            *exam,
        ],
        env=os.environ | podman.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        told = (line for line in run.stdout if re.search(r"\b[1-9]\d* of 30 episodes", line))
        assert next(told, None)
        podman("stop", "--time", "60", "stopped")
        rest = run.stdout.read()
    assert run.returncode == 130, rest
    assert "the same command goes on" in rest
    records = (runs / "stopped" / "episodes.jsonl").read_text().splitlines()
    assert all(json.loads(line) for line in records)
    assert 1 <= len(records) < 30
