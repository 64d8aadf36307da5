"""What runs inside the Editor needs its Python and nothing else."""

import ast
import importlib
import pkgutil
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from o3de_editors import TOKEN, editor_with_level, running_agent

import o3de_sim
from o3de_sim.constants import O3DE_AGENT_PEB_MODE
from o3de_sim.o3de_api.interface.math import Vector3
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
from o3de_sim.proctors_python import SIMULATOR_MODES, require_proctors_python
from proctor.core.errors import UserError
from proctor.o3de.config import config_of

SOURCES = sorted(Path(o3de_sim.__file__).parent.rglob("*.py"))
NEWER = {
    *("tomllib", "ExceptionGroup", "BaseExceptionGroup", "Self", "StrEnum", "UTC", "assert_never"),
    *("TaskGroup", "Required", "NotRequired", "LiteralString", "override", "batched", "chdir", "cbrt"),
}
"""Names of the standard library that Python 3.10 does not have."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_it_is_python_3_10_and_imports_only_the_standard_library(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 10))
    imported, names = set(), set()
    for node in ast.walk(tree):
        assert type(node).__name__ != "TryStar"
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module)
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Name):
            names.add(node.id)
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names | {"o3de_sim"}
    assert not (names | imported) & NEWER


def test_the_one_that_imports_azlmbr():
    naming = [path.name for path in SOURCES if 'import_module("azlmbr' in path.read_text()]
    assert naming == ["azlmbr_calls.py"]


def modules():
    return [info.name for info in pkgutil.walk_packages(o3de_sim.__path__, "o3de_sim.")]


def test_every_module_can_be_imported_outside_of_the_editor():
    for name in modules():
        if not name.endswith(".bootstrap"):  # a script for the Editor
            assert importlib.import_module(name).__name__ == name


@cache
def python_3_10():
    """Return a Python 3.10 that runs; version managers leave names that do not."""
    for found in (shutil.which("python3.10"), *Path.home().glob(".pyenv/versions/3.10.*/bin/python")):
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(found)
    return None


def in_python_3_10(code, tmp_path):
    return subprocess.run(
        [python_3_10(), "-c", code],
        env={"PYTHONPATH": str(SOURCES[0].parents[1]), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


BUILD = """
import importlib
from o3de_sim.common.scene_builder import BasicSceneBuilder
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
for name in {names!r}:
    importlib.import_module(name)
part = {{"shape": "box", "size": [1, 1, 1]}}
with O3DEAgent(port={port}, token={token!r}) as agent:
    scene = {{"scene_name": "a", "objects": [{{"name": "b", "parts": [part]}}]}}
    report = BasicSceneBuilder(agent).build_scene(scene)
    print(agent.tc.get_position(report.entities["b"]))
"""


@pytest.mark.skipif(python_3_10() is None, reason="there is no Python 3.10 here")
def test_python_3_10_runs_it(tmp_path):
    names = [name for name in modules() if not name.endswith(".bootstrap")]
    with running_agent(tmp_path) as pumped:
        code = BUILD.format(names=names, port=pumped.server.port, token=TOKEN)
        done = in_python_3_10(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "Vector3(x=0.0, y=0.0, z=0.0)"


DOCUMENTED = (
    "from o3de_simulator import O3DESimulator",
    "from vln_evaluator.o3de_simulator import O3DESimulator",
    "from vln_evaluator.env import O3DEEnv",
)


@pytest.mark.skipif(python_3_10() is None, reason="there is no Python 3.10 here")
@pytest.mark.parametrize("line", DOCUMENTED)
def test_the_documents_simulator_says_in_the_editors_python_what_to_use(tmp_path, line):
    done = in_python_3_10(line, tmp_path)
    assert done.returncode == 1
    said = f"ImportError: Proctor needs Python 3.11 or newer, found 3.10. {SIMULATOR_MODES}"
    assert done.stderr.splitlines()[-1] == said


def test_only_pythons_older_than_proctors_are_refused():
    for version in ((3, 11), (3, 12), (4, 0)):
        require_proctors_python(version)
    with pytest.raises(ImportError, match=r"found 3\.10\. O3DESimulator and O3DEEnv work with mode 'socket'"):
        require_proctors_python((3, 10))


def test_the_mode_of_scripts_in_the_editor_is_refused_for_the_simulator():
    with pytest.raises(
        UserError, match="mode is 'peb', but O3DESimulator and O3DEEnv work with mode 'socket'"
    ):
        config_of({"mode": O3DE_AGENT_PEB_MODE})


def test_what_the_sentence_names_works_in_the_editor(tmp_path):
    assert "O3DEAgent(mode='peb') of o3de_sim.o3de_api.o3de_agent" in SIMULATOR_MODES
    with editor_with_level(tmp_path), O3DEAgent(mode="peb") as agent:
        entity = agent.editor_tool.create_new_entity_at_position(Vector3(1.0, 2.0, 3.0))
        assert agent.tc.get_position(entity) == Vector3(1.0, 2.0, 3.0)
