"""The arms of a probe: the same episodes, differences in pairs, a sentence for words and one for pictures."""

import json
import math

import msgspec
import pytest

from proctor.core.errors import UserError
from proctor.core.types import Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.episode import Episode
from proctor.runs.conditions import Conditions
from proctor.runs.probe import ARMS, arm_conditions, chosen_arms, standard_errors

SMALL = ("--env-option", "width=32", "--env-option", "height=24")


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """Episodes on an endless floor, that a policy with closed eyes can do if it gets the text."""
    goals = {"left": 3.0, "right": -3.0}
    episodes = [
        Episode(
            episode_id=f"{side}_{number}",
            scene_id=f"floor_{number}",
            goal_position=Vector3(3.0, y, 0.0),
            instruction=f"Walk on for {number} steps. Turn {side}.",
            max_steps=60,
            success_threshold=1.0,
            reference_path=[
                *(Vector3(x / 4, 0.0, 0.0) for x in range(13)),
                *(Vector3(3.0, y * step / (12 + number), 0.0) for step in range(1, 13 + number)),
            ],
        )
        for number in range(6)
        for side, y in goals.items()
    ]
    file = tmp_path_factory.mktemp("walks") / "walks.json"
    save_dataset(episodes, file)
    return file


def test_blind_listens_and_does_not_look(proctor, walks, tmp_path):
    out, numbers = tmp_path / "probe", tmp_path / "probe.json"
    exam = ("--dataset", walks, "--policy", "blind", "--env", "mock")
    words = ("probe", *exam, "--out", out, "--json", numbers)
    code, printed, _ = proctor(*words)
    assert code == 0
    assert "left out: --instructions paraphrased: 12 of 12 episodes cannot be reworded" in printed
    flat = " ".join(printed.split())
    assert "Words: " in flat
    assert "of nDTW depends on them." in flat
    assert "Pictures: nothing of nDTW depends on them." in flat
    probe = json.loads(numbers.read_bytes())
    assert list(probe["arms"]) == [name for name in ARMS if name != "words-paraphrased"]
    mirrored, blank = probe["arms"]["words-mirrored"], probe["arms"]["pictures-blank"]
    assert mirrored["pairs"] == 12
    assert mirrored["metrics"]["ndtw"]["change"]["reading"] == "worse"
    assert mirrored["metrics"]["success"]["change"]["reading"] == "worse"
    assert blank["metrics"]["ndtw"]["change"]["reading"] == "equal"
    for arm in probe["arms"].values():
        run = json.loads((out / arm["run"].rpartition("/")[2] / "results.json").read_bytes())
        assert run["summary"]["informed"]["pictures"] == arm["conditions"]["pictures"]
    before = numbers.read_bytes()
    code, printed, _ = proctor(*words)
    assert code == 0
    assert printed.count("all 12 episodes were done before; nothing to do") == 7
    assert numbers.read_bytes() == before


def test_an_arm_that_changes_nothing_says_nothing(proctor, walks, tmp_path):
    episodes = [msgspec.structs.replace(e, instruction="Walk on.") for e in load_dataset(walks).episodes]
    save_dataset(episodes, tmp_path / "walks.json")
    exam = ("--dataset", tmp_path / "walks.json", "--policy", "blind", "--env", "mock")
    code, printed, _ = proctor("probe", *exam, "--arms", "words-mirrored", "--out", tmp_path / "probe")
    flat = " ".join(printed.split())
    assert code == 0
    assert "! words-mirrored: no instruction was changed, so this arm says nothing about words" in flat
    assert "depends on them" not in flat


def test_pairs_tell_more_than_two_means_do(proctor, tmp_path):
    exam = ("--suite", "houses-v1", "--policy", "blind", "--episodes", 10, "--env-option", "sensors=[]")
    words = ("--arms", "words-blank", "--out", tmp_path / "probe")
    code, printed, _ = proctor("probe", *exam, *words, "--json", tmp_path / "probe.json")
    assert code == 0, printed
    arm = json.loads((tmp_path / "probe.json").read_bytes())["arms"]["words-blank"]
    errors = arm["metrics"]["ndtw"]["standard_errors"]
    assert 0 < errors["paired"] < errors["unpaired"]


def test_the_oracle_does_not_move_in_a_house(proctor, tmp_path):
    words = ("--policy", "oracle", "--episodes", 2, *SMALL, "--out", tmp_path / "probe", "--arms", "blank")
    code, printed, _ = proctor("probe", *words, "--json", tmp_path / "probe.json")
    assert code == 0
    probe = json.loads((tmp_path / "probe.json").read_bytes())
    assert list(probe["arms"]) == ["plain", "words-blank", "pictures-blank"]
    assert {arm["metrics"]["success"]["mean"] for arm in probe["arms"].values()} == {1.0}
    flat = " ".join(printed.split())
    assert "Words: nothing of nDTW depends on them." in flat
    assert "Pictures: nothing of nDTW depends on them." in flat


def test_an_arm_that_was_asked_for_is_not_left_out(proctor, walks, tmp_path):
    words = ("probe", "--dataset", walks, "--policy", "blind", "--env", "mock", "--out", tmp_path / "probe")
    code, _, complaint = proctor(*words, "--arms", "paraphrased")
    assert code == 2
    assert "cannot be reworded" in complaint
    code, _, complaint = proctor(*words, "--arms", "miror")
    assert code == 2
    assert "there is no arm 'miror'" in complaint
    assert "did you mean 'mirrored'" in complaint
    assert not (tmp_path / "probe").exists()


def test_arms_are_chosen_by_name_group_or_condition():
    assert chosen_arms([]) == list(ARMS)
    assert chosen_arms(["pictures"]) == ["plain", "pictures-blank", "pictures-noise", "pictures-frozen"]
    assert chosen_arms(["blank"]) == ["plain", "words-blank", "pictures-blank"]
    assert chosen_arms(["words-mirrored", "noise"]) == ["plain", "words-mirrored", "pictures-noise"]
    with pytest.raises(UserError, match="there is no arm 'pixels'"):
        chosen_arms(["pixels"])
    common = Conditions(inform=("none",))
    assert arm_conditions("plain", common) == common
    assert arm_conditions("words-blank", common) == Conditions(inform=("none",), instructions="blank")


def test_without_reference_paths_the_sentences_are_about_another_score(proctor, tmp_path):
    walk = Episode(episode_id="e", goal_position=Vector3(9.0, 0.0, 0.0), instruction="Walk on.", max_steps=9)
    save_dataset([walk], tmp_path / "walk.json")
    exam = ("--dataset", tmp_path / "walk.json", "--policy", "forward", "--env", "mock", "--arms", "pictures")
    code, printed, _ = proctor("probe", *exam, "--out", tmp_path / "probe")
    assert code == 0
    assert "Pictures: nothing of SPL depends on them. It is 0 in all arms." in " ".join(printed.split())


def result(score):
    return EpisodeResult(
        episode_id="e",
        scene_id="s",
        instruction="",
        status="failure",
        success=False,
        failure_reason=None,
        error=None,
        steps=0,
        actions=[],
        metrics={"ndtw": score} if score is not None else {},
        seed=0,
    )


def test_standard_errors_are_those_of_the_formulas():
    pairs = [(result(a), result(b)) for a, b in ((0.1, 0.2), (0.4, 0.5), (0.7, 0.9), (None, 1.0))]
    errors = standard_errors("ndtw", pairs)
    third = 0.1 + 0.1 / 3
    spread = math.sqrt(((0.1 - third) ** 2 * 2 + (0.2 - third) ** 2) / 2)
    assert errors.paired == pytest.approx(spread / math.sqrt(3))
    old, new = 0.3, math.sqrt(((0.2 - 8 / 15) ** 2 + (0.5 - 8 / 15) ** 2 + (0.9 - 8 / 15) ** 2) / 2)
    assert errors.unpaired == pytest.approx(math.hypot(old, new) / math.sqrt(3))
    assert standard_errors("ndtw", pairs[:1]) is None


def test_the_walks_are_what_they_say(walks):
    assert len({episode.instruction for episode in load_dataset(walks).episodes}) == 12
