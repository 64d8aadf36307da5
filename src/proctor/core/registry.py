"""Names for exams, suites, robots, environments, policies, executors, dialects and plug-ins of navigation.

A value is `module:Class` and is imported on use, so that a name costs nothing; of suites and robots it is
`package:file`. Other packages add theirs as entry points in the groups of `PLURAL`, such as `proctor.exams`;
exams and the plug-ins of navigation are found only there, Proctor's own like anybody's. Instead of a name, a
class of the user's own is given as `module:Class` or `folder/file.py:Class`; a policy may also be the address
of an agent that is served elsewhere, `ws://host:port`, or of the API of a chat model,
`chat+http://host:port/v1`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType, ModuleType
from typing import Any, Literal, get_args

from proctor.core.addresses import is_address, is_chat, replicas
from proctor.core.errors import (
    MissingDependency,
    UnknownName,
    UserError,
    did_you_mean,
    failed_at,
    missing_extra,
)
from proctor.core.interfaces import Env, Policy

Kind = Literal[
    "exam",
    "suite",
    "robot",
    "env",
    "policy",
    "executor",
    "recorder",
    "dialect",
    "planner",
    "controller",
    "goal_checker",
    "progress_checker",
    "recovery",
]

BUILT_IN: dict[Kind, dict[str, str]] = {
    **{kind: {} for kind in get_args(Kind)},
    "suite": {
        "houses-v1": "proctor.suites:houses-v1",
        "houses-v1-zh": "proctor.suites:houses-v1/episodes.zh.json",
        "tabletop-v1": "proctor.suites:tabletop-v1",
    },
    "robot": {
        "standard": "proctor.robots:specs/standard.json",
        "turtlebot3-burger": "proctor.robots:specs/turtlebot3-burger.json",
        "wide": "proctor.robots:specs/wide.json",
    },
    "env": {
        "embedded": "proctor.worlds.mujoco.wheeled.env:VLNEnv",
        "mock": "proctor.worlds.mock:MockEnv",
        "o3de": "proctor.o3de.simulator:O3DEEnv",
        "ros2": "proctor.worlds.ros2.env:Ros2Env",
        "tabletop": "proctor.exams.pick_place.env:PickPlaceEnv",
    },
    "policy": {
        "human": "proctor.contestants.seat:HumanSeat",
        "mcp": "proctor.contestants.seat:McpSeat",
        "random": "proctor.exams.baselines:MockPolicy",
        "replay": "proctor.runs.replay:ReplayPolicy",
    },
    "executor": {
        "in-process": "proctor.runs.executors:InProcess",
        "ray": "proctor.runs.ray_executor:RayExecutor",
        "slurm": "proctor.runs.slurm_executor:SlurmExecutor",
        "workers": "proctor.runs.pool:WorkerPool",
    },
    "recorder": {
        "video": "proctor.records.video:VideoFile",
    },
    "dialect": {
        "gr00t": "proctor.agents.dialects.gr00t:Gr00tDialect",
        "openpi": "proctor.agents.dialects.openpi:OpenPiDialect",
        "proctor": "proctor.agents.dialects.proctor:ProctorDialect",
        "roboarena": "proctor.agents.dialects.roboarena:RoboArenaDialect",
        "vla-eval": "proctor.agents.dialects.vla_eval:VlaEvalDialect",
        "vln-ce-docker": "proctor.agents.dialects.vln_ce_docker:VlnCeDockerDialect",
        "xpolicylab": "proctor.agents.dialects.xpolicylab:XPolicyLabDialect",
    },
}
USER_FILE = re.compile(r"(?P<file>[^:]+\.py)(:(?P<attribute>.*))?", re.DOTALL)
"""A file of the user's, and a class in it."""
_FILES_FOUND: dict[str, Path] = {}
EMPTY: Mapping[str, str] = MappingProxyType({})
REMOTE_POLICY = "proctor.agents.websocket_policy:WebSocketPolicy"
CHAT_POLICY = "proctor.agents.chat.policy:ChatPolicy"
BASES: dict[Kind, type | str] = {
    "env": Env,
    "policy": Policy,
    "exam": "proctor.exams.exam:Exam",
    "recorder": "proctor.records.episode_file:EpisodeFile",
    "dialect": "proctor.agents.dialects.dialect:Dialect",
    "planner": "proctor.navigation.plugins:PathPlanner",
    "controller": "proctor.navigation.plugins:Controller",
    "goal_checker": "proctor.navigation.plugins:GoalChecker",
    "progress_checker": "proctor.navigation.plugins:ProgressChecker",
    "recovery": "proctor.navigation.plugins:Recovery",
}
"""What a class of a kind inherits. By name where this package may not import it."""
PLURAL: dict[Kind, str] = {
    **{kind: f"{kind}s" for kind in get_args(Kind)},
    "policy": "policies",
    "recovery": "recoveries",
}


def names(kind: Kind) -> dict[str, str]:
    """Return all names of a kind with what they stand for."""
    return {point.name: point.value for point in _points_of(kind)} | BUILT_IN[kind]


def _points_of(kind: Kind) -> Sequence[EntryPoint]:
    return _read_points(entry_points, f"proctor.{PLURAL[kind]}")


@cache
def _read_points(read: Callable[..., Iterable[EntryPoint]], group: str) -> tuple[EntryPoint, ...]:
    """Read the entry points of a group, once: to look through all installed packages takes 50 ms."""
    return tuple(read(group=group))


def load(kind: Kind, name: str, more: Mapping[str, str] = EMPTY) -> Any:
    """Return the class behind a name, `module:Class`, `file.py:Class` or one or more addresses.

    A file without a class means the only one in it of this kind. `more` holds further names with what they
    stand for, such as the baselines of an exam. Raises a kind of UserError if nothing fits.
    """
    known = {**names(kind), **more}
    if name not in more:
        _check_unambiguous(kind, name)
    target = known.get(name, name)
    if kind == "policy" and replicas(name):
        target = CHAT_POLICY if is_chat(name) else REMOTE_POLICY
    if (found_file := USER_FILE.fullmatch(target)) is not None:
        module_name, attribute = found_file["file"], found_file["attribute"] or ""
    else:
        module_name, _, attribute = target.partition(":")
        if not (module_name and attribute):
            raise UnknownName(kind, name, known, hint="" if kind == "suite" else _own_class_hint(name))
    what = f"{kind} '{name}'"
    try:
        module = _import(what, module_name, attribute, is_file=found_file is not None)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            likely = "is its folder in PYTHONPATH?"
            if kind == "policy" and attribute.lstrip("/").rpartition(":")[2].isdigit():
                likely = f"for an agent that is served write ws://{name.removeprefix('ws:').lstrip('/')}"
            raise UserError(f"{what}: there is no module '{error.name}' ({likely})") from None
        needs = MissingDependency(what, f"Its module needs the package '{error.name}'.")
        raise missing_extra(what, error) or needs from error
    return _checked_class(kind, name, module, attribute or _only_class(kind, name, module))


def _check_unambiguous(kind: Kind, name: str) -> None:
    """Refuse a name that two packages have given to different classes: nobody could tell which was meant."""
    points = [point for point in _points_of(kind) if point.name == name]
    targets = {point.value for point in points} | (
        {BUILT_IN[kind][name]} if name in BUILT_IN[kind] else set()
    )
    if points and len(targets) > 1:
        owners = ", ".join(f"{p.value} of {p.dist.name if p.dist else 'an unknown package'}" for p in points)
        built_in = f", {BUILT_IN[kind][name]} of Proctor" if name in BUILT_IN[kind] else ""
        raise UserError(
            f"{kind} '{name}' stands for several classes: {owners}{built_in}; uninstall one of them"
        )


def _checked_class(kind: Kind, name: str, module: ModuleType, attribute: str) -> Any:
    """Return a class of a module if it is of this kind and can be used."""
    if not hasattr(module, attribute):
        hint = did_you_mean(attribute, _classes(kind, module))
        raise UserError(f"{kind} '{name}': the module {module.__name__} has no '{attribute}'{hint}")
    found = getattr(module, attribute)
    base = _base(kind)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UserError(f"{kind} '{name}' must be a class that inherits {base.__module__}.{base.__name__}")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise UserError(f"{kind} '{name}' lacks {missing}")
    return found


def _base(kind: Kind) -> type:
    base = BASES.get(kind, object)
    found: type = resolve_name(base) if isinstance(base, str) else base
    return found


def _classes(kind: Kind, module: ModuleType) -> dict[str, type]:
    """Return the classes of a kind that have a name in a module, without the one that all inherit."""
    base = _base(kind)
    return {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, base) and value is not base
    }


def _own_class_hint(name: str) -> str:
    """Return how to give a class of one's own, where a name is not known."""
    try:
        is_module = name.isidentifier() and importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        is_module = False
    if is_module:
        return f"there is a module '{name}': to use a class in it, write {name}:Class"
    return "a class of your own is given as module:Class or file.py:Class"


def _import(what: str, given: str, attribute: str, *, is_file: bool) -> ModuleType:
    """Import a module or a file of the user; UserError if its own code fails."""
    try:
        return _import_file(what, given) if is_file else _import_module(what, given, attribute)
    except (ModuleNotFoundError, UserError):
        raise
    except (Exception, SystemExit) as error:
        file = str(Path(given).resolve()) if is_file else _file_of(given, error)
        raise UserError(f"{what}: its import {failed_at(error, file)}") from error


def _file_of(module_name: str, error: BaseException) -> str | None:
    """Return the file of a module, or of a package around it, whose import raised an error."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    own = (f for f in frames if f"{module_name}.".startswith(f"{f.f_globals.get('__name__')}."))
    return next((frame.f_code.co_filename for frame in own), None)


def _import_module(what: str, module_name: str, attribute: str) -> ModuleType:
    is_path = "/" in module_name or module_name.startswith(".")
    if is_path and not attribute.rpartition(":")[2].isdigit():  # else it may be meant as an address
        problem = f"'{module_name}' is not the name of a module"
        raise UserError(f"{what}: {problem}; a file is given as {module_name}.py:{attribute}")
    return importlib.import_module(module_name)


def _import_file(what: str, given: str) -> ModuleType:
    """Import a file of the user, which finds the modules beside it, as `python FILE` does.

    Its module has the file's name, unless that is taken or is not a module's name.
    """
    file = _user_file(what, given)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    importlib.invalidate_caches()
    own = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    for module_name in (file.stem, own):
        loaded = sys.modules.get(module_name)
        if loaded is not None and getattr(loaded, "__file__", None) == str(file):
            return loaded
    is_free = file.stem not in sys.modules and "." not in file.stem
    spec = importlib.util.find_spec(file.stem) if is_free else None
    if spec is not None and spec.origin == str(file):
        return importlib.import_module(file.stem)
    spec = importlib.util.spec_from_file_location(own, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{what}: {file} is not a Python file")
    sys.modules[own] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[own]
        raise
    return module


def _user_file(what: str, given: str) -> Path:
    """Return a file's absolute path; where it was found before, if an agent has changed the folder since."""
    file = Path(given).resolve()
    if file.is_file():
        _FILES_FOUND[given] = file
    elif given not in _FILES_FOUND:
        raise UserError(f"{what}: there is no file {file}")
    return _FILES_FOUND[given]


def _only_class(kind: Kind, name: str, module: ModuleType) -> str:
    """Return the name of the only class of a kind that a user's file defines."""
    base = _base(kind)
    found = [key for key, value in _classes(kind, module).items() if value.__module__ == module.__name__]
    if len(found) != 1:
        count = "none" if not found else f"{len(found)}: {', '.join(found)}; write {name}:{found[0]}"
        raise UserError(f"{kind} '{name}': expected one class that inherits {base.__name__}, found {count}")
    return found[0]


def build(kind: Kind, name: str, options: Mapping[str, Any], more: Mapping[str, str] = EMPTY) -> Any:
    """Make the object behind a name, or behind one address, with these constructor options."""
    class_ = check_options(kind, name, options, more)
    address = [name] if kind == "policy" and is_address(name) else []
    try:
        return class_(*address, **options)
    except SystemExit as error:  # else a script would take it for the end of a run
        raise UserError(f"{kind} '{name}' called sys.exit({error.code}) while it was being built") from None


def check_options(kind: Kind, name: str, options: Mapping[str, Any], more: Mapping[str, str] = EMPTY) -> Any:
    """Return the class behind a name; refuse constructor options that it does not have."""
    class_ = load(kind, name, more)
    address = [name] if kind == "policy" and is_address(name) else []
    try:
        inspect.signature(class_).bind(*address, **options)
    except TypeError as error:
        taken = [p.name for p in inspect.signature(class_).parameters.values() if p.kind is not p.VAR_KEYWORD]
        wrong = next((key for key in options if key not in taken), "")
        hint = did_you_mean(wrong, taken) if wrong else ""
        raise UserError(f"{kind} '{name}': {error}{hint}; options: {', '.join(taken) or 'none'}") from None
    return class_


def is_served(policy: Policy) -> bool:
    """Tell whether a policy is Proctor's connection to an agent elsewhere.

    Only our own classes are: one that an agent derives from them is the agent.
    """
    return f"{type(policy).__module__}:{type(policy).__qualname__}" in (REMOTE_POLICY, CHAT_POLICY)


def dataset_path(name: str | Path) -> Path:
    """Return the dataset that a user names: that of a suite, else a file or a folder."""
    return suite_path(str(name)) if str(name) in names("suite") else Path(name)


def suite_path(name: str) -> Path:
    """Return the dataset of a suite: a folder with an `episodes.json`, or one of several files in it."""
    return package_file("suite", name)


def package_file(kind: Literal["suite", "robot"], name: str) -> Path:
    """Return the file or folder in a package that a name stands for."""
    known = BUILT_IN[kind] if name in BUILT_IN[kind] else names(kind)
    if name not in known:
        own = "a spec of your own is given as path/to/robot.json" if kind == "robot" else ""
        raise UnknownName(kind, name, known, hint=own)
    package, _, file = known[name].partition(":")
    location = importlib.import_module(package).__file__
    if location is None:
        raise UserError(f"{kind} '{name}': the package {package} has no files")
    return Path(location).parent / file
