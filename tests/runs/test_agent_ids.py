"""What agents are told of an episode: nothing that identifies it among the stored ones."""

import json
import re
import stat
import zlib
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fake_tabletop import FakeTabletop
from fake_tabletop import record as tabletop_record
from policy_servers import CONFIG_PAGE, openpi, serving, vla_eval
from running import run
from served_agents import JSON, MSGPACK, Agent, served

from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.vln.episode import Episode
from proctor.runs.agent_ids import KEY_FILE, agent_id, draw_key, keep_key
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.scenes.scene_config import SceneConfig, save_scene
from vln_evaluator.evaluators import PickPlaceEvaluator

TESTS = Path(__file__).parent
STORED_IDS = ("house_kxwzq_0", "house_kxwzq_1")
OPAQUE = re.compile("[0-9a-f]{32}")
HEARD = []
"""What the policies of this file received."""


class Listener(Policy):
    """Goes one step, stops, and remembers everything it is given."""

    def reset(self, episode_info):
        HEARD.append(episode_info)
        self.actions = iter((1, 0))

    def act(self, observation):
        HEARD.append(observation)
        return next(self.actions)

    def episode_end(self, outcome):
        HEARD.append(outcome)


class Insider(Listener):
    """Is shown the truth."""

    privileged = True


@pytest.fixture
def exam(tmp_path, monkeypatch):
    """An exam in a folder, with names that no agent may see."""
    monkeypatch.syspath_prepend(TESTS)
    HEARD.clear()
    scenes = tmp_path / "exam" / "scenes"
    scenes.mkdir(parents=True)
    save_scene(SceneConfig(scene_name="house_kxwzq"), scenes / "house_kxwzq.json")
    episodes = [
        Episode(
            episode_id=name,
            scene_id="house_kxwzq",
            goal_position=Vector3(1 + index, 0, 0),
            instruction=f"Walk {index + 1} m.",
            max_steps=2,
            split="val_of_house_kxwzq",
        )
        for index, name in enumerate(STORED_IDS)
    ]
    save_dataset(episodes, scenes.parent / "episodes.json")
    return scenes.parent


def take(exam, policy, out="run", *, env="mock", **options):
    job = RunJob(env=env, policy=policy, **options)
    out = exam.parent / out
    return run(RunConfig(job=job, dataset=exam), out, lambda _: None).results


def assert_says_nothing(heard, exam):
    text = repr(heard)
    assert text.count("Walk 1 m.") >= 1  # it is what was heard
    for secret in ("kxwzq", "scenes", "val_of", str(exam), str(exam.parent), "episodes.json"):
        assert secret not in text


def ids_of(heard):
    return [info.episode_id for info in heard if hasattr(info, "episode_id")]


def test_a_local_policy_receives_nothing_that_identifies_the_episode(exam):
    sensors = {"width": 32, "height": 24, "sensors": ["rgb", "depth", "scan", "odom"]}
    results = take(exam, "test_agent_ids:Listener", env="embedded", env_options=sensors)
    assert [result.episode_id for result in results.episodes] == [*STORED_IDS]  # results keep them
    assert {result.scene_id for result in results.episodes} == {"house_kxwzq"}
    assert len(HEARD) == 2 * 4
    assert_says_nothing(HEARD, exam)
    assert all(OPAQUE.fullmatch(name) for name in ids_of(HEARD))
    assert len({*ids_of(HEARD)}) == 2


@contextmanager
def agent_of(dialect):
    """Serve an agent that stops at once; yields its address and a list of what it receives."""
    heard = []

    def stop(observation):
        heard.append(observation)
        return {"actions": np.array([0])}

    if dialect in (JSON, MSGPACK):
        agent = Agent(answer=lambda conversation: conversation.reply(0))

        def handle(connection):
            heard.append((connection.request.path, [*connection.request.headers.raw_items()]))
            agent(connection)

        with served(handle, subprotocol=dialect) as port:
            yield f"ws://127.0.0.1:{port}", heard
        heard += agent.messages
    elif dialect == "openpi":
        with serving(openpi(stop)) as url:
            yield url, heard
    else:
        with serving(vla_eval(stop, heard), process_request=CONFIG_PAGE) as url:
            yield url, heard


@pytest.mark.parametrize("dialect", [JSON, MSGPACK, "openpi", "vla-eval"])
def test_a_served_agent_receives_nothing_that_identifies_the_episode(exam, dialect):
    with agent_of(dialect) as (url, heard):
        results = take(exam, url)
    assert [result.steps for result in results.episodes] == [1, 1]
    assert [result.episode_id for result in results.episodes] == [*STORED_IDS]
    assert_says_nothing(heard, exam)


def test_an_agent_that_picks_and_places_is_told_no_id_scene_or_file(tmp_path):
    record = tabletop_record(scene_id="table_kxwzq", episode_id="pick_kxwzq", sim_params={"max_steps": 1})
    record["task_goal"]["target_object"]["usd_path"] = "objects/cup_red.usd"
    episode = PickAndPlaceEpisode(**record)
    episode = msgspec.structs.replace(episode, assets_path=str(tmp_path))

    class Still(Listener):
        def act(self, observation):
            HEARD.append(observation)
            return {"type": "joint_position", "qpos": observation["qpos"]}

    HEARD.clear()
    with PickPlaceEvaluator(FakeTabletop(), Still()) as evaluator:
        result = evaluator.evaluate_episode(episode)
    assert (result.episode_id, result.scene_id, result.steps) == ("pick_kxwzq", "table_kxwzq", 1)
    assert len(HEARD) == 3
    assert "Pick up the red cup" in repr(HEARD)
    for secret in ("kxwzq", "usd", str(tmp_path)):
        assert secret not in repr(HEARD)


def test_two_runs_tell_different_ids_and_a_resumed_run_the_same(exam):
    take(exam, "test_agent_ids:Listener")
    first = ids_of(HEARD)
    HEARD.clear()
    take(exam, "test_agent_ids:Listener", out="other")
    assert not {*first} & {*ids_of(HEARD)}
    HEARD.clear()
    journal = exam.parent / "run" / "episodes.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    take(exam, "test_agent_ids:Listener")
    assert ids_of(HEARD) == first[1:]
    runs = [(exam.parent / name / "results.json").read_bytes() for name in ("run", "other")]
    assert runs[0] == runs[1]


def test_workers_tell_the_same_ids_as_one_process(exam, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    out = exam.parent / "run"
    with agent_of(JSON) as (url, heard):
        run(RunConfig(job=RunJob(env="mock", policy=url), dataset=exam, workers=2), out, lambda _: None)
    key = (out / KEY_FILE).read_text().strip()
    told = {m["episode"]["episode_id"] for m in heard if isinstance(m, dict) and m["type"] == "reset_episode"}
    assert told == {agent_id(key, name) for name in STORED_IDS}


def test_the_secret_of_a_run_is_its_owners_and_is_written_nowhere_else(exam):
    take(exam, "test_agent_ids:Listener")
    file = exam.parent / "run" / KEY_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text().strip()
    others = [path for path in file.parent.rglob("*") if path.is_file() and path != file]
    kinds = {path.name if path.parent == file.parent else path.suffix for path in others}
    assert kinds == {"manifest.json", "episodes.jsonl", "results.json", ".trace"}
    for path in others:
        content = path.read_bytes() if path.suffix != ".trace" else zlib.decompress(path.read_bytes())
        assert not any(secret.encode() in content for secret in (key, *ids_of(HEARD)))


def test_a_run_of_an_earlier_version_goes_on_without_a_secret(exam):
    take(exam, "test_agent_ids:Listener")
    out = exam.parent / "run"
    written = (out / "results.json").read_bytes()
    (out / KEY_FILE).unlink()
    journal = out / "episodes.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    take(exam, "test_agent_ids:Listener")
    assert (out / "results.json").read_bytes() == written
    assert (out / KEY_FILE).is_file()


def test_a_broken_secret_is_refused_with_a_remedy(exam):
    take(exam, "test_agent_ids:Listener")
    (exam.parent / "run" / KEY_FILE).write_text("abc")
    with pytest.raises(UserError, match=r"agent_ids\.key: expected 64 hex.*, found 3 char.*; delete it"):
        take(exam, "test_agent_ids:Listener")


def test_a_secret_of_another_run_is_not_replaced(tmp_path):
    mine, theirs = draw_key(), draw_key()
    keep_key(tmp_path, theirs)
    with pytest.raises(UserError, match="was begun by another run"):
        keep_key(tmp_path, mine)
    keep_key(tmp_path, theirs)


def test_privileged_policies_get_the_stored_id_and_are_marked(exam):
    take(exam, "test_agent_ids:Insider")
    assert ids_of(HEARD) == [*STORED_IDS]
    manifest = json.loads((exam.parent / "run" / "manifest.json").read_text())
    assert manifest["identity"]["privileged"] is True


def test_a_run_can_be_replayed_by_its_stored_ids(exam):
    first = take(exam, "forward")
    again = take(exam, "replay", out="again", policy_options={"run": str(exam.parent / "run")})
    assert [r.actions for r in again.episodes] == [r.actions for r in first.episodes]
    manifest = json.loads((exam.parent / "again" / "manifest.json").read_text())
    assert manifest["identity"]["privileged"] is True
