"""Set-up names every Debian package that is missing, in one command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TOOLS = ("bash", "dirname", "env")


@pytest.fixture
def machine(tmp_path):
    """A machine with apt-get and Python, whose user may not install packages: `run(TARGET)` sets it up."""
    (tmp_path / "scripts").mkdir()
    for name in ("setup.sh", "fresh_machine.sh"):
        shutil.copy(REPOSITORY / "scripts" / name, tmp_path / "scripts")
    (tmp_path / "src").symlink_to(REPOSITORY / "src")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in TOOLS:
        (commands / name).symlink_to(shutil.which(name))
    add_command(commands, "id", "echo 1000")
    add_command(commands, "apt-get", "exit 1")

    def run(target, *, script="setup.sh"):
        return subprocess.run(
            ["bash", f"scripts/{script}", "--packages", target],
            cwd=tmp_path,
            env={**os.environ, "PATH": str(commands), "PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )

    run.commands = commands
    return run


def add_command(folder, name, body):
    (folder / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("target", "packages"),
    [
        ("ros", "cmake g++ make"),
        ("test", "cmake g++ make chromium nodejs npm"),
        ("slow", "cmake g++ make chromium nodejs npm slurm-wlm munge iproute2 podman runc debootstrap"),
    ],
)
def test_all_missing_packages_are_named_in_one_command(machine, target, packages):
    done = machine(target)
    assert (done.returncode, done.stdout) == (1, "")
    install = f"sudo apt-get install -y --no-install-recommends {packages}"
    assert done.stderr == f"Please run: sudo apt-get update && {install}\n"


def test_only_what_is_missing_is_named(machine):
    for name in ("cmake", "make", "chromium-browser", "node", "npm"):
        add_command(machine.commands, name, "exit 0")
    assert machine("test").stderr.endswith("--no-install-recommends g++\n")
    add_command(machine.commands, "g++", "exit 0")
    done = machine("test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_headers_of_the_python_are_asked_for_by_its_version(machine, tmp_path):
    """Debian's Python, whose headers are in a package of their own."""
    debian = (
        "import sys, sysconfig\n"
        "sys.base_prefix = '/usr'\n"
        "sysconfig.get_path = lambda name: '/nowhere'\n"
        "code = sys.argv[2]\n"
        "sys.argv = ['-c', *sys.argv[3:]]\n"
        "exec(code)\n"
    )
    (tmp_path / "debian.py").write_text(debian)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    add_command(tmp_path / ".venv/bin", "python", f'exec {sys.executable} {tmp_path}/debian.py "$@"')
    version = "{}.{}".format(*sys.version_info)
    assert machine("ros").stderr.endswith(f"--no-install-recommends cmake g++ make python{version}-dev\n")


def test_without_apt_the_packages_are_named(machine):
    (machine.commands / "apt-get").unlink()
    done = machine("ros")
    assert done.returncode == 1
    assert done.stderr == "Proctor needs the equivalent of these Debian packages: cmake g++ make\n"


def test_an_unknown_target_is_refused(machine):
    done = machine("tests")
    assert done.returncode == 2
    assert done.stderr == "expected ros, test or slow after --packages, found 'tests'\n"


def test_fresh_machines_are_made_by_root(machine):
    done = machine("test", script="fresh_machine.sh")
    assert done.returncode == 2
    assert done.stderr.endswith("sudo scripts/fresh_machine.sh\n")
