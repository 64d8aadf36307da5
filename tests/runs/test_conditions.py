"""What agents are told and shown: each condition changes what a policy gets, and the results say so."""

import hashlib
import json
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from running import run
from served_agents import JSON, MSGPACK, Agent, served

from proctor.agents.chat.task import load_task
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.errors import UserError
from proctor.core.interfaces import TRUTH, Policy
from proctor.core.registry import suite_path
from proctor.core.types import EpisodeInfo
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.offers import read_inform
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.instruction_checker import check_instruction
from proctor.exams.vln.oracle import OraclePolicy
from proctor.instructions.mirror import mirror
from proctor.runs.agent_ids import draw_key
from proctor.runs.compare import compare, load_run
from proctor.runs.conditions import Conditions, delivered_texts, shuffled_texts
from proctor.runs.examiner import Examiner
from proctor.runs.job import RunJob, fit_job
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.scoring import dataset_of, rescore
from proctor.scenes.scene import Scene
from proctor.worlds.mock import MockEnv
from proctor.worlds.mujoco.wheeled.env import VLNEnv

SMALL = {"width": 32, "height": 24}


class Listener(Policy):
    """Turns left a few times and keeps all that it gets."""

    def reset(self, episode_info):
        self.told, self.seen = episode_info, []

    def act(self, observation):
        self.seen.append({name: np.copy(value) for name, value in observation.items()})
        for value in observation.values():
            if isinstance(value, np.ndarray):
                value[...] = 0  # what it is shown is its own
        return 2 if len(self.seen) < 4 else 0


class Gambler(Policy):
    """Lets all that it gets decide what it does."""

    def reset(self, episode_info):
        self.left = 5
        self.text = episode_info.instruction

    def act(self, observation):
        self.left -= 1
        seen = hashlib.sha256(observation["rgb"].tobytes() + self.text.encode()).digest()[0]
        return 1 + seen % 3 if self.left else 0


@cache
def houses():
    return load_dataset(suite_path("houses-v1")).episodes


def one_with_sides():
    return next(e for e in houses() if mirror(e.instruction) != e.instruction)


@pytest.fixture(scope="module")
def world():
    env = VLNEnv(**SMALL)
    yield env
    env.close()


def put(env, policy, episode, conditions, exam=None, *, privileged=False):
    """Put an episode of houses-v1 to a policy, and return the record."""
    exam = exam or VlnExam()
    texts = delivered_texts(conditions, exam, houses(), [episode], seed=0)
    examiner = Examiner(
        *(env, policy, exam),
        RunJob(
            policy="",
            privileged=privileged,
            agent_id_key=draw_key(),
            conditions=conditions,
            texts=texts,
        ),
    )
    return examiner.examine(episode).result


def seen_under(world, episode=None, **conditions):
    policy = Listener()
    result = put(world, policy, episode or one_with_sides(), Conditions(**conditions))
    assert result.error is None, result.error
    return policy, result


def test_by_default_the_agent_gets_what_exam_and_env_give(world):
    policy, result = seen_under(world)
    assert policy.told.instruction == one_with_sides().instruction
    assert policy.told.details == {}
    assert [set(view) for view in policy.seen] == [{"rgb", "depth"}] * 4
    assert result.delivered_instruction is msgspec.UNSET
    assert result.informed.resolution == {"rgb": (32, 24), "depth": (32, 24)}
    assert not any((result.informed.pose, result.informed.map, result.informed.goal, result.informed.truth))


@pytest.mark.parametrize("kind", ["blank", "noise", "frozen"])
def test_pictures_are_replaced_and_nothing_else(world, kind):
    plain, _ = seen_under(world)
    policy, result = seen_under(world, pictures=kind)
    assert result.informed.pictures == kind
    assert policy.told.instruction == plain.told.instruction
    shown, real = policy.seen, plain.seen
    assert not np.array_equal(real[0]["rgb"], real[1]["rgb"])
    for name in ("rgb", "depth"):
        assert {view[name].shape for view in shown} == {real[0][name].shape}
        assert {view[name].dtype for view in shown} == {real[0][name].dtype}
    if kind == "blank":
        assert all((view["rgb"] == 128).all() and (view["depth"] == 0).all() for view in shown)
    elif kind == "frozen":
        assert all(np.array_equal(view[name], real[0][name]) for view in shown for name in view)
    else:
        assert not any(np.array_equal(view[name], real[0][name]) for view in shown for name in view)
        again, _ = seen_under(world, pictures=kind)
        for view, same in zip(shown, again.seen, strict=True):
            assert all(np.array_equal(view[name], same[name]) for name in view)
        assert len({view["rgb"].tobytes() for view in shown}) == len(shown)
        other, _ = seen_under(world, houses()[-1], pictures=kind)
        assert not np.array_equal(other.seen[0]["rgb"], shown[0]["rgb"])


def test_every_other_text_is_delivered_and_recorded(world):
    episode = one_with_sides()
    expected = {
        "blank": "",
        "mirrored": mirror(episode.instruction),
        "shuffled": shuffled_texts(VlnExam(), houses(), seed=0)[episode.episode_id],
        "paraphrased": VlnExam().reworded(episode, 0),
    }
    for kind, text in expected.items():
        policy, result = seen_under(world, instructions=kind)
        assert policy.told.instruction == text != episode.instruction
        assert result.delivered_instruction == text
        assert result.instruction == episode.instruction
        assert result.informed.instructions == kind
    assert len(set(expected.values())) == len(expected)


def test_a_text_without_sides_is_not_recorded_twice(world):
    episode = next(e for e in houses() if mirror(e.instruction) == e.instruction)
    policy, result = seen_under(world, episode, instructions="mirrored")
    assert policy.told.instruction == episode.instruction
    assert result.delivered_instruction is msgspec.UNSET


def test_nothing_but_instruction_and_colour_is_left_under_none(world):
    policy, result = seen_under(world, inform=("none",))
    assert {frozenset(view) for view in policy.seen} == {frozenset({"rgb"})}
    assert set(policy.told.sensors) == {"rgb"}
    assert result.informed.entries == ["rgb"]


def test_pose_map_goal_and_calibration_are_in_the_frame_of_the_start():
    episode = one_with_sides()
    with_all = Conditions(inform=("calibration", "default", "goal", "map", "pose"))
    env, policy = VLNEnv(**SMALL), Listener()
    result = put(env, policy, episode, with_all)
    env.close()
    assert result.error is None
    first, last = (view["pose"].item() for view in (policy.seen[0], policy.seen[-1]))
    assert (first.x, first.y, first.yaw) == pytest.approx((0, 0, 0), abs=1e-6)
    assert last.yaw == pytest.approx(np.radians(45), abs=0.02)  # three turns to the left
    details = policy.told.details
    goal, shown = details["goal"], details["map"]
    straight = np.hypot(*(getattr(episode.goal, a) - getattr(episode.start_position, a) for a in "xy"))
    assert np.hypot(goal["x"], goal["y"]) == pytest.approx(straight)
    origin, size_m = shown["origin"], shown["resolution_m"]

    def cell(x, y):
        """Look a point in the frame of the start up."""
        dx, dy, cos, sin = x - origin["x"], y - origin["y"], np.cos(origin["yaw"]), np.sin(origin["yaw"])
        return shown["rows"][int((cos * dy - sin * dx) / size_m)][int((cos * dx + sin * dy) / size_m)]

    assert cell(0.0, 0.0) == cell(goal["x"], goal["y"]) == "."
    assert 0.02 < np.mean([letter == "#" for row in shown["rows"] for letter in row]) < 0.6
    camera = details["cameras"]["rgb"]
    assert camera["fy"] == pytest.approx(12 / np.tan(np.radians(30)))
    assert camera["position"] == pytest.approx([0, 0, 1.25])
    w, x, y, z = camera["rotation"]
    ahead = (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))  # its z axis
    assert ahead == pytest.approx((1, 0, 0), abs=1e-9)
    informed = result.informed
    assert all((informed.pose, informed.map, informed.goal, informed.calibration))


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
def test_a_served_agent_gets_the_same(world, subprotocol):
    conditions = Conditions(
        inform=("calibration", "goal", "map", "pose"), instructions="mirrored", pictures="blank"
    )
    agent = Agent(answer=lambda conversation: conversation.reply([2, 0][conversation.step]))
    with served(agent, subprotocol=subprotocol) as port:
        policy = WebSocketPolicy("127.0.0.1", port)
        result = put(world, policy, one_with_sides(), conditions)
        policy.close()
    assert result.error is None, result.error
    told, first = agent.told("reset_episode")[0], agent.told("get_action")[0]["observation"]
    text = mirror(one_with_sides().instruction)
    assert told["episode"]["instruction"]["text"] == first["instruction"]["text"] == text
    local = Listener()
    put(world, local, one_with_sides(), conditions)
    for name in ("cameras", "goal", "map"):
        assert told["episode"][name] == msgspec.json.decode(msgspec.json.encode(local.told.details[name]))
    assert first["pose"] == pytest.approx({"x": 0.0, "y": 0.0, "yaw": 0.0}, abs=1e-6)
    assert set(first) == {"instruction", "pose", "rgb"}
    if subprotocol == MSGPACK:
        assert set(first["rgb"]["data"]) == {128}


def test_a_privileged_policy_still_gets_the_truth_and_does_not_move(world):
    class Watched(OraclePolicy):
        def act(self, observation):
            assert observation[TRUTH]["position"] is not None
            assert "depth" not in observation
            assert (observation["rgb"] == 128).all()
            return super().act(observation)

    hard = Conditions(inform=("none",), instructions="blank", pictures="blank")
    plain = put(world, OraclePolicy(), houses()[0], Conditions(), privileged=True)
    probed = put(world, Watched(), houses()[0], hard, privileged=True)
    assert probed.success
    assert probed.error is None
    assert probed.actions == plain.actions
    assert probed.informed.truth


def test_the_text_inside_of_an_observation_is_exchanged_as_well():
    episode = load_dataset(suite_path("tabletop-v1")).episodes[0]

    class Still(Listener):
        def act(self, observation):
            super().act(dict(observation))
            raise KeyboardInterrupt

    env, policy = PickPlaceEnv(sensors=[]), Still()
    examiner = Examiner(
        *(env, policy, PickPlaceExam()),
        RunJob(
            policy="",
            agent_id_key=draw_key(),
            conditions=Conditions(inform=("joints",), instructions="blank"),
            texts={episode.episode_id: ""},
        ),
    )
    with pytest.raises(KeyboardInterrupt):
        examiner.examine(episode)
    env.close()
    assert policy.told.instruction == ""
    assert policy.seen[0]["instruction"].item() == {"text": "", "language": "en"}
    assert set(policy.seen[0]) == {"instruction", "qpos", "qvel", "gripper_state"}
    assert set(policy.told.details) == {"sim_params"}


def job(**conditions):
    return RunJob(policy=f"{__file__}:Gambler", env_options=SMALL, conditions=Conditions(**conditions))


def test_only_other_conditions_make_another_identity():
    plain = fit_job(job(), VlnExam).identity()
    assert {"conditions", "texts"}.isdisjoint(plain)
    changed = fit_job(job(inform=("none",), pictures="noise"), VlnExam).identity()
    assert changed == plain | {"conditions": {"inform": ["none"], "pictures": "noise"}}


def test_workers_and_resuming_change_no_byte_and_another_condition_is_another_run(tmp_path):
    config = RunConfig(
        job=job(inform=("none",), instructions="shuffled", pictures="noise"), suite="houses-v1", episodes=3
    )
    alone = run(config, tmp_path / "alone")
    run(msgspec.structs.replace(config, workers=2), tmp_path / "two")
    first, second = (tmp_path / name / "results.json" for name in ("alone", "two"))
    assert first.read_bytes() == second.read_bytes()
    found = json.loads(first.read_bytes())
    assert found["summary"]["informed"]["pictures"] == "noise"
    assert found["summary"]["informed"]["entries"] == ["rgb"]
    assert all(episode["delivered_instruction"] for episode in found["episodes"])
    assert not any("informed" in episode for episode in found["episodes"])

    journal = tmp_path / "alone" / "episodes.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    first.unlink()
    again = run(config, tmp_path / "alone")
    assert again.done_before == 1
    assert again.results.summary == alone.results.summary
    assert first.read_bytes() == second.read_bytes()

    plain = msgspec.structs.replace(config, job=job())
    with pytest.raises(UserError, match="conditions"):
        plan_run(plain, tmp_path / "alone")
    run(plain, tmp_path / "plain")
    a, b = load_run(tmp_path / "plain"), load_run(tmp_path / "alone")
    assert any("what agents are told and shown differ" in warning for warning in compare(a, b).warnings)
    assert not load_run(tmp_path / "alone").warnings
    rescored = rescore(b, dataset_of(b))
    assert rescored.results.summary.informed == alone.results.summary.informed
    assert [e.delivered_instruction for e in rescored.results.episodes] == [
        e.delivered_instruction for e in b.episodes
    ]


def test_a_shuffled_text_is_of_another_episode_of_its_length_whatever_is_selected():
    exam, episodes = VlnExam(), houses()
    by_text = {episode.instruction: episode for episode in episodes}
    texts = shuffled_texts(exam, episodes, seed=3)
    for episode in episodes:
        other = by_text[texts[episode.episode_id]]
        assert other.instruction != episode.instruction
        assert (other.level, other.language) == (episode.level, episode.language)
    assert shuffled_texts(exam, episodes[::-1], seed=3) == texts
    assert shuffled_texts(exam, episodes, seed=4) != texts
    some = delivered_texts(Conditions(instructions="shuffled"), exam, episodes, episodes[:3], seed=3)
    assert some == {episode.episode_id: texts[episode.episode_id] for episode in episodes[:3]}


def test_a_text_comes_from_another_class_if_its_own_has_no_other():
    def episodes(*texts):
        return [Episode(episode_id=str(n), instruction=text) for n, text in enumerate(texts)]

    texts = shuffled_texts(VlnExam(), episodes("Go.", "Go.", "Go.", "Go on until you see the door."), seed=0)
    assert texts == {**dict.fromkeys("012", "Go on until you see the door."), "3": "Go."}
    for seed in range(9):
        alike = episodes("Go.", "Go.", "Up.", "Go.", "Up.")
        found = shuffled_texts(VlnExam(), alike, seed=seed)
        assert all(found[episode.episode_id] != episode.instruction for episode in alike)
    with pytest.raises(UserError, match="found the same in all 2 episodes"):
        shuffled_texts(VlnExam(), episodes("Go.", "Go."), seed=0)


def test_other_words_for_a_path_pass_the_check_of_instructions():
    for suite in ("houses-v1", "houses-v1-zh"):
        for episode in load_dataset(suite_path(suite)).episodes[:12]:
            text = VlnExam().reworded(episode, 5)
            assert text != episode.instruction
            assert text == VlnExam().reworded(episode, 5)
            asked = msgspec.structs.replace(episode, instruction=text)
            assert check_instruction(Scene.load(Path(episode.scene_config_path)).config, asked) == []


def test_what_cannot_be_reworded_is_refused_before_the_run(tmp_path):
    save_dataset([Episode(episode_id="foreign", instruction="Walk on.")], tmp_path / "mine.json")
    config = RunConfig(
        job=RunJob(policy="forward", env="mock", conditions=Conditions(instructions="paraphrased")),
        dataset=tmp_path / "mine.json",
    )
    with pytest.raises(
        UserError, match=r"1 of 1 episodes cannot be reworded:\s+episode 'foreign': it has no"
    ):
        plan_run(config, tmp_path / "out")
    with pytest.raises(UserError, match="the exam pick_and_place cannot reword its instructions"):
        PickPlaceExam().reworded(None, 0)


def test_a_word_that_an_exam_does_not_offer_is_refused_with_what_it_offers():
    for words, message in {
        "poze": r"cannot give 'poze'.*did you mean 'pose'.*default, none, depth, scan, odometry",
        "calibration": r"MockEnv has no cameras\(\), which 'calibration' comes from",
    }.items():
        job = RunJob(policy="forward", env="mock", conditions=Conditions(inform=read_inform(words)))
        with pytest.raises(UserError, match=message):
            fit_job(job, VlnExam)
    for words, message in {"": "found nothing", " , ": "found nothing", "none,map": "none goes with"}.items():
        with pytest.raises(UserError, match=message):
            read_inform(words)
    assert read_inform(" pose,map ,pose") == ("map", "pose")


@pytest.mark.parametrize(
    ("policy", "options"), [("mcp", {"transport": "http"}), ("chat+http://127.0.0.1:9/v1", {"model": "m"})]
)
def test_what_the_tools_of_pick_and_place_need_cannot_be_withheld(policy, options):
    def fitted(words):
        conditions = Conditions(inform=read_inform(words))
        return fit_job(RunJob(policy=policy, policy_options=options, conditions=conditions), PickPlaceExam)

    with pytest.raises(UserError, match="MCP need joints and hand; try --inform joints,hand"):
        fitted("none")
    with pytest.raises(UserError, match="MCP need joints; try --inform goal,hand,joints"):
        fitted("goal,hand")
    for words in ("default", "hand,joints"):
        assert fitted(words).conditions.inform == read_inform(words)


def test_a_goal_that_is_withheld_is_not_told_to_chat_models():
    told = EpisodeInfo(episode_id="", instruction="", max_steps=1, seed=0, chat=PickPlaceExam.chat)
    assert load_task(told, None).details() == ""


def test_a_sensor_that_is_named_is_turned_on():
    job = RunJob(policy="forward", env_options=SMALL, conditions=Conditions(inform=("odometry", "scan")))
    fitted = fit_job(job, VlnExam)
    assert fitted.env_options == {**SMALL, "sensors": ["rgb", "depth", "odom", "scan"]}
    assert fit_job(RunJob(policy="forward"), VlnExam).env_options == {}


def test_what_the_env_does_not_give_is_the_evaluators_fault_in_its_words():
    episode = Episode(episode_id="e", instruction="Walk.", max_steps=3)
    examiner = Examiner(
        *(MockEnv(), Listener(), VlnExam()),
        RunJob(policy="", agent_id_key=draw_key(), conditions=Conditions(inform=("scan",))),
    )
    fault = examiner.examine(episode).result.error
    assert fault.side == "evaluator"
    assert "--inform scan: MockEnv does not give it with its present options" in fault.message
