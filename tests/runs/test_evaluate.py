"""`proctor.evaluate` in a training loop: the same episodes every time, and worlds that stay open."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import proctor
from proctor.core.errors import UnknownName, UserError
from proctor.core.interfaces import Policy
from proctor.core.registry import suite_path
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.vln.episode import Episode
from proctor.runs.evaluate import MAX_OPEN_SCENES
from proctor.worlds.mock import MockEnv
from proctor.worlds.mujoco.wheeled import env as embedded

SMALL = {"width": 32, "height": 24}


class Learner(Policy):
    """Goes FORWARD as often as it has learnt, then stops."""

    def __init__(self, moves=0):
        self.moves, self.told, self.closed = moves, [], 0

    def reset(self, episode_info):
        self.left = self.moves
        self.told.append((episode_info.instruction, episode_info.seed))

    def act(self, observation):
        self.left -= 1
        return Action.FORWARD if self.left >= 0 else Action.STOP

    def close(self):
        self.closed += 1


class CountingEnv(MockEnv):
    """Counts how many there are, and how many are closed."""

    made = closed = 0

    def __init__(self, colour="grey"):
        super().__init__()
        self.colour = colour
        CountingEnv.made += 1

    def close(self):
        CountingEnv.closed += 1
        super().close()


class Farewell(MockEnv):
    """Says so when it is closed."""

    def close(self):
        sys.stdout.write("closed\n")


class Nested(Learner):
    """Evaluates another policy in the middle of its own episode."""

    def act(self, observation):
        inner = proctor.evaluate(Learner(4), self.dataset, env="test_evaluate:CountingEnv")
        assert inner.success_rate == 1.0
        return super().act(observation)


@pytest.fixture(autouse=True)
def counted():
    """Begin and end with no world open."""
    proctor.close()
    CountingEnv.made = CountingEnv.closed = 0
    yield CountingEnv
    proctor.close()


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(
            episode_id=f"ep_{k}",
            scene_id=f"flat_{k % 4}",
            instruction=f"Go ahead, {k}.",
            goal_position=Vector3(1.0, 0.0, 0.0),
            split="val" if k < 8 else "train",
            max_steps=10,
        )
        for k in range(12)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def test_a_policy_is_evaluated_again_and_again_while_it_learns(dataset, counted):
    policy, rates = Learner(), []
    for epoch in range(3):
        policy.moves = 2 * epoch
        rates.append(proctor.evaluate(policy, dataset, env="test_evaluate:CountingEnv", seed=7).success_rate)
    assert rates == [0.0, 0.0, 1.0]
    assert (counted.made, counted.closed, policy.closed) == (1, 0, 0)
    assert policy.told[:12] == policy.told[12:24] == policy.told[24:]
    proctor.close()
    proctor.close()
    assert counted.closed == 1
    proctor.evaluate(policy, dataset, env="test_evaluate:CountingEnv")
    assert counted.made == 2


def test_episodes_are_chosen_as_the_command_line_does(dataset, tmp_path):
    results = proctor.evaluate(Learner(), str(dataset), split="val", episodes=3, env="mock")
    chosen = [episode.episode_id for episode in load_dataset(dataset).select(split="val", count=3)]
    assert [result.episode_id for result in results.episodes] == chosen
    with pytest.raises(UnknownName, match="split"):
        proctor.evaluate(Learner(), dataset, split="test", env="mock")


def test_an_env_with_other_options_is_another_one(dataset, counted):
    for colour in ("red", "blue", "red"):
        proctor.evaluate(
            Learner(), dataset, env="test_evaluate:CountingEnv", env_options={"colour": colour}, episodes=1
        )
    assert counted.made == 2


def test_an_env_of_ones_own_stays_open(dataset, counted):
    env = CountingEnv()
    for _ in range(2):
        proctor.evaluate(Learner(), dataset, env=env, episodes=1)
    assert (counted.made, counted.closed) == (1, 0)
    with pytest.raises(UserError, match="env_options are for an env that is given by name"):
        proctor.evaluate(Learner(), dataset, env=env, env_options={"colour": "red"})


def test_an_evaluation_within_another_gets_a_world_of_its_own(dataset, counted):
    policy = Nested(4)
    policy.dataset = dataset
    results = proctor.evaluate(policy, dataset, env="test_evaluate:CountingEnv", episodes=1)
    assert results.success_rate == 1.0
    assert (counted.made, counted.closed) == (2, 1)


def test_threads_do_not_share_a_world(dataset, counted):
    both, rates = threading.Barrier(2), []

    class Waits(Learner):
        def reset(self, episode_info):
            if not self.told:
                both.wait(60.0)
            super().reset(episode_info)

    def work():
        rates.append(proctor.evaluate(Waits(4), dataset, env="test_evaluate:CountingEnv").success_rate)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert rates == [1.0, 1.0]
    assert (counted.made, counted.closed) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("houses-v1", Learner()), "expected a suite or an episode file, found Learner"),
        ((print, "houses-v1"), "expected a Policy or the name of one first, found builtin_function"),
        (("oracle", "house-v1"), "house-v1"),
    ],
)
def test_mistakes_are_told(arguments, message):
    with pytest.raises(UserError, match=message):
        proctor.evaluate(*arguments)


def test_the_second_epoch_builds_no_scene(monkeypatch):
    built, make = [], embedded.World

    def counted_world(*arguments, **options):
        built.append(arguments[0].file)
        return make(*arguments, **options)

    monkeypatch.setattr(embedded, "World", counted_world)
    first = proctor.evaluate(Learner(2), "houses-v1", episodes=3, env_options=SMALL)
    assert len(set(built)) == 3
    built.clear()
    second = proctor.evaluate(Learner(2), "houses-v1", episodes=3, env_options=SMALL)
    assert built == []
    assert [episode.trajectory for episode in first.episodes] == [e.trajectory for e in second.episodes]


def test_of_many_scenes_those_stay_that_come_first_again():
    env = embedded.VLNEnv(sensors=["odom"])
    env.max_open_scenes = 2
    episodes = list({e.scene_id: e for e in load_dataset(suite_path("houses-v1")).episodes}.values())[:3]
    kept = []
    for episode in episodes:
        env.reset(episode)
        kept.append([key[0].file.stem for key in env._stages])
    assert [len(names) for names in kept] == [1, 2, 2]
    assert kept[2][0] == kept[0][0]
    env.close()
    assert not env._stages
    assert MAX_OPEN_SCENES > 2


def test_to_import_proctor_costs_nothing_and_the_process_ends_quietly():
    code = (
        "import sys, proctor; assert 'numpy' not in sys.modules and 'msgspec' not in sys.modules;"
        "assert {'evaluate', 'close'} <= set(dir(proctor));"
        f"print(proctor.evaluate('forward', 'houses-v1', episodes=1, env_options={SMALL!r}).total_episodes);"
        "proctor.evaluate('forward', 'houses-v1', episodes=1, env='test_evaluate:Farewell')"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\nclosed\n", "")
    with pytest.raises(AttributeError, match="'proctor' has no attribute 'evalute'"):
        proctor.evalute  # noqa: B018
