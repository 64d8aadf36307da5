"""What the agent calls of the engine, against the table of what the engine has."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import o3de_sim
from proctor.o3de.standin.fake_azlmbr import calls

PACKAGE = Path(o3de_sim.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(), feature_version=(3, 10)) for path in SOURCES}
ONE_FILE = PACKAGE / "editor/azlmbr_calls.py"
KINDS = {"broadcast": "broadcast", "event": "event", "general": "function"}
TABLE = {(call.module, call.bus, call.kind, call.name): call for call in calls()}


def name_of(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def literal(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def uses():
    """Give each place that calls the engine: kind, bus, event, number of arguments, and what is due."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or name_of(node.func) not in KINDS:
                continue
            if not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            kind = name_of(node.func)
            names = node.args[:1] if kind == "general" else node.args[:2]
            rest = node.args[len(names) :]
            due = next((literal(word.value) for word in node.keywords if word.arg == "returns"), "value")
            yield pytest.param(kind, names, rest, due, id=f"{path.stem}:{node.lineno}")


USES = list(uses())


def test_there_are_calls_to_look_at():
    assert len(USES) > 40


@pytest.mark.parametrize(("kind", "names", "rest", "due"), USES)
def test_every_call_is_one_that_the_engine_has(kind, names, rest, due):
    texts = [literal(name) for name in names]
    assert None not in texts, "the bus and the event must be written out, so that they can be looked up"
    assert not any(isinstance(argument, ast.Starred) for argument in rest)
    if kind == "general":
        key = ("azlmbr.legacy.general", None, "function", texts[0])
    else:
        module, _, bus = texts[0].partition(".")
        key = (f"azlmbr.{module}", bus, kind, texts[1])
    call = TABLE[key]
    assert len(rest) == len(call.arguments)
    expected = (
        "nothing" if call.returns == "None" else "outcome" if call.returns.startswith("Outcome") else "value"
    )
    assert due == expected or (due, expected) == ("perhaps", "value")


def test_handlers_are_those_that_the_engine_has():
    found = {
        tuple(map(literal, node.args[:3]))
        for node in ast.walk(TREES[ONE_FILE])
        if isinstance(node, ast.Call) and name_of(node.func) == "_handled"
    }
    assert len(found) == 2
    for module, handler, event in found:
        assert (f"azlmbr.{module}", handler.removesuffix("Handler"), "handler", event) in TABLE
    assert ("azlmbr.atom", "FrameCaptureNotificationBus", "handler", "OnFrameCaptureFinished") in TABLE


def mentions_azlmbr(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(name.name.startswith("azlmbr") for name in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "azlmbr":
            return True
        if isinstance(node, ast.Call) and name_of(node.func) in ("import_module", "find_spec", "__import__"):
            text = ast.unparse(node.args[0])
            if "azlmbr" in text:
                return True
    return False


def test_azlmbr_is_imported_in_one_file():
    assert [path for path, tree in TREES.items() if mentions_azlmbr(tree)] == [ONE_FILE]


def test_nothing_is_run_that_comes_from_outside():
    danger = {
        "eval",
        "exec",
        "compile",
        "__import__",
        "run_path",
        "run_module",
        "system",
        "Popen",
        "run_console",
    }
    found = [
        f"{path.name}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        if name_of(node.func) in danger and not ast.unparse(node.func).startswith("re.")
    ]
    assert found == []


def test_only_the_standard_library_is_needed():
    known = {*sys.stdlib_module_names, "o3de_sim"}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                names = [node.module]
            assert {name.split(".")[0] for name in names} <= known, path


def test_without_the_engine_the_modules_can_be_imported_and_say_so():
    code = (
        "from o3de_sim.editor import azlmbr_calls, bootstrap, operation_table, selftest, server\n"
        "from o3de_sim.editor import start_agent\n"
        "from o3de_sim.errors import O3DEError\n"
        "assert not azlmbr_calls.azlmbr_is_here()\n"
        "try:\n    start_agent.start()\nexcept O3DEError as error:\n    print(error.code, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("bad_state there is no azlmbr here")
