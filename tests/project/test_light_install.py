"""An agent is served without the packages that worlds need."""

import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path
from types import SimpleNamespace

import pytest
from evaluators import call

REPOSITORY = Path(__file__).parents[2]
WORLDLY = ("mujoco", "scipy", "trimesh", "gymnasium", "OpenGL", "matplotlib")
WITHOUT_THEM = f"""
import sys
sys.modules |= dict.fromkeys({WORLDLY!r})  # None there means that there is no such module
"""
ASK_ONCE = """
import json
from websockets.sync.client import connect

def ask_once(url):
    with connect(url) as client:
        episode = {"episode_id": "e", "instruction": {"text": "Turn left. Stop."}}
        client.send(json.dumps({"type": "reset_episode", "session_id": "s", "episode": episode}))
        client.send(json.dumps({"type": "get_action", "session_id": "s", "observation": {}}))
        return json.loads(client.recv(timeout=30))["action"]
"""


def python(code, *words):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_THEM + code, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "module",
    [
        "proctor.cli",
        "proctor.core.answers",
        "proctor.exams.pick_place.episode",
        "proctor.exams.pick_place.metrics",
        "proctor.exams.vln.metrics",
        "proctor.exams.vln.baselines",
        "proctor.exams.baselines",
        "proctor.agents.server",
        "proctor.agents.handshake",
        "proctor.core.registry",
        "proctor.robots.stretch",
    ],
)
def test_what_serves_an_agent_needs_nothing_worldly(module):
    done = python(f"import {module}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("policy", ["random", "forward", "blind"])
def test_a_policy_is_served_without_worlds(policy):
    done = python(
        ASK_ONCE
        + "import threading\n"
        + "from proctor import cli\n"
        + "from proctor.cli import serve as command\n"
        + "def announce(server, *_, **__):\n"
        + "    print(ask_once(server.url))\n"
        + "    server.stop()\n"
        + "command._announce = announce\n"
        + f"code = cli.main(['serve-policy', {policy!r}, '--port', '0'])\n"
        + f"print(code, [name for name in {WORLDLY!r} if sys.modules[name]])\n"
    )
    assert done.returncode == 0, done.stderr
    action, *_, last = done.stdout.splitlines()
    assert int(action) in range(4)
    assert last == "0 []"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--suite", "houses-v1", "--policy", "random"],
        ["run", "--suite", "houses-v1", "--policy", "oracle"],
        ["serve-policy", "oracle", "--port", "0"],
        ["generate", "--out", "somewhere"],
    ],
    ids=" ".join,
)
def test_what_needs_a_world_says_how_to_get_it(words):
    done = python("from proctor.cli import main\nsys.exit(main())", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.endswith("pip install -e '.[sim]'")


def test_trimesh_is_only_imported_to_read_mesh_files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build = """
from pathlib import Path
import proctor.exams.pick_place.env
from proctor.scenes.scene import Scene
from proctor.robots.spec import standard_robot
from proctor.worlds.mujoco.wheeled.world import World

scene = min(Path(proctor.__file__).parent.glob("suites/houses-v1/scenes/*.json"))
World(Scene.load(scene), standard_robot())
Scene.load(scene).map()
"""
    first = subprocess.run([sys.executable, "-c", build], capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    second = f"import sys\nsys.modules |= {{'trimesh': None, 'scipy.fft': None}}\n{build}"
    again = subprocess.run([sys.executable, "-c", second], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr


def test_the_doctor_comes_without_worlds_too():
    done = python("from proctor.cli import main\nsys.exit(main())", "doctor")
    assert "Traceback" not in done.stderr
    assert re.search(r"missing +Rendering +no", done.stdout)


def test_another_missing_module_is_not_taken_for_ours():
    code = (
        "from proctor import cli\n"
        "def broken(arguments): import nobody_has_this\n"
        "cli.add_run = lambda commands, **options: commands.add_parser('run').set_defaults(command=broken)\n"
        "cli.main(['run'])\n"
    )
    done = python(code)
    assert done.returncode == 1
    assert "No module named 'nobody_has_this'" in done.stderr


def test_help_comes_without_the_packages_that_serving_needs():
    code = "from proctor.cli import main\ntry:\n    main(['serve-policy', '--help'])\nfinally:\n"
    done = python(code + "    print([m for m in ('websockets', 'PIL') if m in sys.modules])")
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_a_light_install_serves_an_agent(tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    folder = tmp_path / "venv" / "bin"
    source = tmp_path / "source"  # a copy: a build leaves things behind
    shutil.copytree(REPOSITORY / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    subprocess.run([folder / "pip", "install", "-q", source], check=True, timeout=600)
    found = subprocess.run([folder / "pip", "list"], capture_output=True, text=True, check=True).stdout
    assert not [name for name in WORLDLY if re.search(rf"^{name}\b", found, re.IGNORECASE | re.MULTILINE)]
    (tmp_path / "my_agent.py").write_text(
        "from proctor.core.interfaces import Policy\n"
        "class Agent(Policy):\n"
        "    def act(self, observation): return 3\n"
    )
    process = subprocess.Popen(
        [folder / "proctor", "serve-policy", "my_agent:Agent", "--port", "0"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        stdout=subprocess.PIPE,
        text=True,
    )
    url = re.search(r"ws://[\d.]+:\d+", process.stdout.readline())[0]
    with call(SimpleNamespace(url=url)) as caller:
        caller.reset()
        assert caller.act().action == 3
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_cluster_needs_no_packages_of_chat_models():
    code = "import sys; sys.modules['httpx'] = None; import proctor.runs.ray_executor"
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
