import inspect
import random
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from proctor.core import registry
from proctor.core.errors import MissingDependency, UnknownName, UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.registry import build, load, names, suite_path
from proctor.exams.datasets import load_dataset
from proctor.exams.exam import Exam
from proctor.exams.names import all_baselines


@pytest.mark.parametrize(
    ("kind", "base"), [("env", Env), ("policy", Policy), ("exam", Exam), ("executor", object)]
)
def test_every_name_leads_to_a_class_of_its_kind(kind, base):
    assert names(kind)
    for name in names(kind):
        if name not in ("ros2", "o3de") or find_spec("rclpy"):
            assert issubclass(load(kind, name), base)


def test_every_baseline_of_an_exam_is_a_policy():
    for name in all_baselines():
        assert issubclass(load("policy", name, all_baselines()), Policy)


class Point(NamedTuple):
    """An entry point as `importlib.metadata` gives it."""

    name: str
    value: str
    dist: Any = SimpleNamespace(name="somebody")


def with_entry_points(monkeypatch, *points):
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for g, p in points if g == group])


def test_a_name_that_two_packages_give_to_different_classes_is_refused_with_both(monkeypatch):
    mine, theirs = Point("mine", "a:A"), Point("mine", "b:B", SimpleNamespace(name="another"))
    with_entry_points(monkeypatch, ("proctor.policies", mine), ("proctor.policies", theirs))
    with pytest.raises(
        UserError, match=r"policy 'mine' stands for several classes: a:A of somebody, b:B of another"
    ):
        load("policy", "mine")
    with_entry_points(monkeypatch, ("proctor.policies", Point("random", "a:A")))
    with pytest.raises(UserError, match=r"a:A of somebody, proctor.exams.baselines:MockPolicy of Proctor"):
        load("policy", "random")
    assert load("policy", "replay")  # others are not touched by it


def test_every_suite_is_there():
    for name in names("suite"):
        assert load_dataset(suite_path(name)).episodes


def test_a_misspelt_name_gets_a_suggestion_and_the_list():
    with pytest.raises(
        UnknownName, match=r"unknown policy 'oracel'; did you mean 'oracle'\?; available: .*random"
    ):
        load("policy", "oracel", all_baselines())
    with pytest.raises(UnknownName, match="did you mean 'houses-v1'"):
        suite_path("house-v1")


def test_a_class_of_the_users_own_is_found_by_module_and_name(tmp_path, monkeypatch):
    (tmp_path / "my_agent_module.py").write_text(
        "from proctor.core.interfaces import Policy\n"
        "class Agent(Policy):\n"
        "    def __init__(self, speed=1): self.speed = speed\n"
        "    def act(self, observation): return 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert build("policy", "my_agent_module:Agent", {"speed": 3}).speed == 3
    with pytest.raises(UserError, match="has no 'Agnet'; did you mean 'Agent'"):
        load("policy", "my_agent_module:Agnet")
    with pytest.raises(UserError, match=r"unexpected keyword.*'sped'.*did you mean 'speed'.*options: speed"):
        build("policy", "my_agent_module:Agent", {"sped": 3})
    with pytest.raises(UserError, match=r"must be a class that inherits proctor.core.interfaces.Env"):
        load("env", "my_agent_module:Agent")
    with pytest.raises(UserError, match=r"policy 'proctor.core.interfaces:Policy' lacks act"):
        load("policy", "proctor.core.interfaces:Policy")
    with pytest.raises(UnknownName, match="unknown policy ':Agent'"):
        load("policy", ":Agent")
    sys.modules.pop("my_agent_module")


AGENT = (
    "from proctor.core.interfaces import Policy\n"
    "from beside_the_agent import ANSWER\n"
    "class Agent(Policy):\n"
    "    def act(self, observation): return ANSWER\n"
)


@pytest.fixture
def agents(tmp_path, monkeypatch):
    """A folder of agents that is not in the path."""
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "beside_the_agent.py").write_text("ANSWER = 3\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    before = {*sys.modules}
    yield folder
    for name in {*sys.modules} - before:
        del sys.modules[name]


@pytest.mark.parametrize("stem", ["agent_in_a_file", "random", "my-agent", "agent.v2"])
def test_a_class_is_found_in_a_file_which_finds_its_neighbours(agents, stem):
    (agents / f"{stem}.py").write_text(AGENT)
    for given in (f"agents/{stem}.py:Agent", f"./agents/{stem}.py", f"{agents / stem}.py:Agent"):
        assert build("policy", given, {}).act({}) == 3
    first, again = (load("policy", name) for name in (f"agents/{stem}.py:Agent", f"./agents/{stem}.py"))
    assert first is again
    assert inspect.getsourcefile(first) == str(agents / f"{stem}.py")
    assert sys.modules["random"] is random


def test_a_file_is_still_found_after_an_agent_has_changed_the_folder(agents, monkeypatch):
    (agents / "wanderer.py").write_text(AGENT)
    first = load("policy", "./agents/wanderer.py:Agent")
    monkeypatch.chdir("/")
    assert load("policy", "./agents/wanderer.py:Agent") is first


def test_what_is_wrong_with_a_file_is_said(agents):
    with pytest.raises(UserError, match=rf"policy '\./nothing\.py:Agent': there is no file {agents.parent}"):
        load("policy", "./nothing.py:Agent")
    (agents / "two.py").write_text(AGENT + "class Other(Agent): pass\n")
    with pytest.raises(
        UserError, match=r"one class that inherits Policy, found 2: Agent, Other; write agents/two"
    ):
        load("policy", "agents/two.py")
    (agents / "no.py").write_text("from proctor.exams.vln.baselines import BlindPolicy\n")
    with pytest.raises(UserError, match="expected one class that inherits Policy, found none"):
        load("policy", "agents/no.py")
    with pytest.raises(UserError, match=r"'\./agents/two' is not .* given as \./agents/two\.py:Agent"):
        load("policy", "./agents/two:Agent")
    (agents / "needy.py").write_text("import a_package_nobody_has\n")
    with pytest.raises(MissingDependency, match="needs the package 'a_package_nobody_has'"):
        load("policy", "agents/needy.py:Agent")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "import sys\n1 / 0\n",
            r"its import failed \(broken.py, line 2\): ZeroDivisionError: division by zero",
        ),
        ("def act(:\n", r"SyntaxError: invalid syntax \(broken.py, line 1\)"),
        ("from proctor import nobody\n", r"line 1\): ImportError: cannot import name 'nobody'"),
        ("raise SystemExit(0)\n", r"line 1\): SystemExit: 0"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_its_line(agents, content, words):
    (agents / "broken.py").write_text(content)
    with pytest.raises(UserError, match=rf"policy 'agents/broken.py:Agent': .*{words}"):
        load("policy", "agents/broken.py:Agent")


@pytest.mark.parametrize("file", ["inner.py", "__init__.py"])
def test_a_module_that_cannot_be_imported_is_refused_with_its_line(tmp_path, monkeypatch, file):
    package = f"broken_{file[:5]}"
    (tmp_path / package).mkdir()
    (tmp_path / package / file).write_text("\nraise RuntimeError('boom')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=rf"its import failed \({file}, line 2\): RuntimeError: boom"):
        load("policy", f"{package}.inner:Agent")


def test_the_name_of_a_module_alone_gets_the_form_to_write(agents):
    (agents / "lonely_agent.py").write_text(AGENT)
    with pytest.raises(UnknownName, match=r"class of your own is given as module:Class or file\.py:Class"):
        load("policy", "lonely_agent")
    sys.path.insert(0, str(agents))
    with pytest.raises(UnknownName, match=r"there is a module 'lonely_agent': .*write lonely_agent:Class"):
        load("policy", "lonely_agent")


def test_of_many_names_only_the_nearest_are_listed():
    dataset = load_dataset(suite_path("houses-v1"))
    with pytest.raises(UnknownName) as caught:
        dataset.select(episode_id="house_68675_77")
    text = str(caught.value)
    assert "did you mean 'house_68675_7'?" in text
    assert "the nearest of 300: house_68675_7, " in text
    assert text.count("house_") == 2 + 5
    with pytest.raises(UnknownName, match="unknown episode 'qqq'; some of 300: house_"):
        dataset.select(episode_id="qqq")


def test_a_module_that_does_not_exist_is_told_from_one_that_lacks_a_package(tmp_path, monkeypatch):
    (tmp_path / "needs_something.py").write_text("import a_package_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="there is no module 'no_such_module'"):
        load("policy", "no_such_module:Agent")
    with pytest.raises(MissingDependency, match="needs the package 'a_package_nobody_has'"):
        load("policy", "needs_something:Agent")
