"""The houses-v1 exam on the embedded world: solvable, not by chance, and without leaking memory."""

import ctypes
import gc
from pathlib import Path

import msgspec
import pytest
from running import run

from proctor.core.registry import suite_path
from proctor.exams.baselines import MockPolicy
from proctor.exams.datasets import load_dataset
from proctor.exams.vln.baselines import BlindPolicy, ForwardPolicy
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.oracle import OraclePolicy
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.summary import summarise
from proctor.suites.builder import Recipe, Split, build_suite
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from vln_evaluator.evaluators import VLNEvaluator

SMALL = {"width": 32, "height": 24}


def take(policy, episodes):
    with VLNEvaluator(VLNEnv(**SMALL), policy) as evaluator:
        return summarise(VlnExam, [evaluator.evaluate_episode(episode) for episode in episodes])


def assert_solved(results):
    assert results.success_rate == 1.0
    assert results.avg_collision_count == 0
    assert min(episode.metrics["spl"] for episode in results.episodes) >= 0.9
    assert results.summary.metrics["spl"].mean >= 0.95
    assert results.summary.metrics["success_at_0.2m"].mean >= 0.99


@pytest.fixture(scope="module")
def exam():
    return load_dataset(suite_path("houses-v1")).episodes


def test_the_exam_is_large_enough_and_every_episode_is_complete(exam):
    assert len(exam) >= 240
    for episode in exam:
        assert episode.instruction
        assert episode.success_threshold == 1.0
        assert episode.reference_path
        assert episode.reference_actions


def test_the_oracle_solves_one_episode_in_every_eighth_house(exam):
    one_each = list({episode.scene_id: episode for episode in exam}.values())
    assert_solved(take(OraclePolicy(), one_each[::8]))


def test_going_straight_ahead_does_not_solve_it(exam):
    assert take(ForwardPolicy(), exam[::40]).success_rate < 0.5


def test_results_on_the_embedded_world_do_not_depend_on_the_number_of_workers(tmp_path):
    job = RunJob(env="embedded", policy="random", env_options={"width": 64, "height": 48})
    for workers in (1, 2):
        config = RunConfig(job=job, suite="houses-v1", episodes=2, workers=workers)
        run(config, tmp_path / str(workers), lambda state: None)
    one, two = ((tmp_path / str(n) / "results.json").read_bytes() for n in (1, 2))
    assert one == two


def short_episodes(exam, count):
    scenes = [exam[0], exam[-1]]  # two houses by turns, so that every episode builds a world
    for index in range(count):
        yield msgspec.structs.replace(scenes[index % 2], episode_id=str(index), max_steps=3)


def resident_mib():
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what the allocator keeps for later is no leak
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def memory_growth_mib(exam, count, warm_up):
    policy = ForwardPolicy()
    with VLNEvaluator(VLNEnv(**SMALL), policy) as evaluator:
        for index, episode in enumerate(short_episodes(exam, count)):
            assert not evaluator.evaluate_episode(episode).is_evaluator_fault
            if index == warm_up:
                before = resident_mib()
    return resident_mib() - before


@pytest.mark.slow
def test_memory_stays_flat_over_1000_episodes(exam):
    assert memory_growth_mib(exam, 1000, warm_up=100) < 12


@pytest.mark.slow
def test_the_oracle_solves_the_whole_exam_and_chance_does_not(exam):
    assert_solved(take(OraclePolicy(), exam))
    assert take(MockPolicy(), exam).success_rate < 0.05
    assert take(ForwardPolicy(), exam).success_rate < 0.05


@pytest.mark.slow
def test_the_exam_needs_eyes(exam):
    assert take(BlindPolicy(), exam).success_rate < 0.2


@pytest.mark.slow
def test_the_oracle_solves_houses_that_nobody_has_seen(tmp_path):
    build_suite(tmp_path / "suite", Recipe((Split("train", 20),), episodes_per_house=3, seed=20_000))
    episodes = load_dataset(tmp_path / "suite").episodes
    assert_solved(take(OraclePolicy(), episodes))
    assert take(MockPolicy(), episodes).success_rate < 0.05
