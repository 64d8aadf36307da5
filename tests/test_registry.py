import sys
from importlib.util import find_spec

import pytest

from proctor.core.errors import MissingDependency, UnknownName, UserError
from proctor.core.interfaces import Env, Metric, Policy
from proctor.episodes.datasets import load_dataset
from proctor.registry import build, load, names, suite_path


@pytest.mark.parametrize(("kind", "base"), [("env", Env), ("policy", Policy), ("metric", Metric)])
def test_every_name_leads_to_a_class_of_its_kind(kind, base):
    assert names(kind)
    for name in names(kind):
        if name not in ("ros2", "o3de") or find_spec("rclpy"):
            assert issubclass(load(kind, name), base)


def test_every_suite_is_there():
    for name in names("suite"):
        assert load_dataset(suite_path(name)).episodes


def test_a_misspelt_name_gets_a_suggestion_and_the_list():
    with pytest.raises(
        UnknownName, match=r"unknown policy 'oracel'; did you mean 'oracle'\?; available: .*random"
    ):
        load("policy", "oracel")
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


def test_a_module_that_does_not_exist_is_told_from_one_that_lacks_a_package(tmp_path, monkeypatch):
    (tmp_path / "needs_something.py").write_text("import a_package_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="there is no module 'no_such_module'"):
        load("policy", "no_such_module:Agent")
    with pytest.raises(MissingDependency, match="needs the package 'a_package_nobody_has'"):
        load("policy", "needs_something:Agent")
